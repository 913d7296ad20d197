//! CSV: a header line, then rows, written as a [`CsvFormat`] says. Read as a stream, with bounded
//! memory.

use super::error::{ReadError, ReadFault, TablePlace};
use super::format::{CsvFormat, FoundFormat};
use super::source::{Cell, RowSource, Visit};
use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};
use std::borrow::Cow;
use std::cell;
use std::io::{self, Chain, Cursor, Read};
use std::rc::Rc;

/// Rows of a CSV file.
pub(crate) struct CsvSource<R> {
    reader: Reader<Rationed<Chain<Cursor<Vec<u8>>, R>>>,
    ration: Ration,
    format: FoundFormat,
    file: String,
    header: Vec<String>,
}

/// How many bytes the parser may still take before a record must be complete. The parser itself
/// would go on collecting a record for as long as the file lasts.
#[derive(Clone)]
struct Ration {
    left: Rc<cell::Cell<usize>>,
    full: usize,
}

impl Ration {
    fn new(full: usize) -> Self {
        let left = Rc::new(cell::Cell::new(full));
        Self { left, full }
    }

    fn refill(&self) {
        self.left.set(self.full);
    }
}

struct Rationed<R> {
    inner: R,
    ration: Ration,
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.ration.left.get();
        if left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let length = buffer.len().min(left);
        let read = self.inner.read(&mut buffer[..length])?;
        self.ration.left.set(left - read);
        Ok(read)
    }
}

/// Bytes that are looked at to find how the file is written.
const HEAD_BYTES: u64 = 1 << 16;

/// The beginning of a file, without a byte order mark; no more than a record may have.
fn head(input: &mut impl Read, record_bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let bytes = HEAD_BYTES.min(record_bytes as u64);
    input.by_ref().take(bytes).read_to_end(&mut head)?;
    if head.starts_with("\u{feff}".as_bytes()) {
        head.drain(..3);
    }
    Ok(head)
}

impl<R: Read> CsvSource<R> {
    /// Reads the header. No record may be longer than `record_bytes`.
    pub(crate) fn open(
        mut input: R,
        file: &str,
        record_bytes: usize,
        format: CsvFormat,
    ) -> Result<Self, ReadError> {
        let head = head(&mut input, record_bytes).map_err(|e| {
            let fault = ReadFault::File(e.to_string());
            ReadError::new(file, fault)
        })?;
        let format = format.complete(&head, file)?;
        let ration = Ration::new(record_bytes);
        let input = Rationed {
            inner: Cursor::new(head).chain(input),
            ration: ration.clone(),
        };
        let mut source = Self {
            // The header is read like any other record: its faults are reported like theirs.
            reader: ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(format.separator)
                .quote(format.quote)
                .from_reader(input),
            ration,
            format,
            file: file.to_owned(),
            header: Vec::new(),
        };
        let mut record = ByteRecord::new();
        let place = source
            .next(&mut record)?
            .ok_or_else(|| ReadError::new(file, ReadFault::Empty))?;
        let text = |(index, field)| source.text(field, place, || format!("{}", index + 1));
        let header = record.iter().enumerate().map(text);
        source.header = header
            .map(|name| name.map(Cow::into_owned))
            .collect::<Result<_, _>>()?;
        Ok(source)
    }

    /// Reads a record; `None` at the end.
    fn next(&mut self, record: &mut ByteRecord) -> Result<Option<TablePlace>, ReadError> {
        self.ration.refill();
        let before = TablePlace::Line(self.reader.position().line());
        match self.reader.read_byte_record(record) {
            Ok(false) => Ok(None),
            Ok(true) => {
                let line = record
                    .position()
                    .map_or(before, |p| TablePlace::Line(p.line()));
                Ok(Some(line))
            }
            Err(error) => Err(self.fault(error).at(before)),
        }
    }

    fn fault(&self, error: csv::Error) -> ReadError {
        let fault = match error.kind() {
            // Nothing is read from the file when the ration is used up, so that this is no fault of its.
            ErrorKind::Io(_) if self.ration.left.get() == 0 => {
                ReadFault::RecordTooLong(self.ration.full)
            }
            _ => ReadFault::File(error.to_string()),
        };
        ReadError::new(&self.file, fault)
    }

    fn text<'f>(
        &self,
        field: &'f [u8],
        place: TablePlace,
        column: impl Fn() -> String,
    ) -> Result<Cow<'f, str>, ReadError> {
        self.format.text(field).ok_or_else(|| {
            ReadError::new(&self.file, ReadFault::Utf8)
                .at(place)
                .column(&column())
        })
    }
}

impl<R: Read> RowSource for CsvSource<R> {
    fn file(&self) -> &str {
        &self.file
    }

    fn header(&self) -> &[String] {
        &self.header
    }

    fn header_place(&self) -> Option<TablePlace> {
        Some(TablePlace::Line(1))
    }

    fn visit(mut self, wanted: &[usize], visit: &mut Visit<'_>) -> Result<(), ReadError> {
        let mut record = ByteRecord::new();
        while let Some(place) = self.next(&mut record)? {
            let (expected, found) = (self.header.len(), record.len());
            if expected != found {
                let fault = ReadFault::FieldCount { expected, found };
                return Err(ReadError::new(&self.file, fault).at(place));
            }
            let text =
                |&index: &usize| self.text(&record[index], place, || self.header[index].clone());
            let texts = wanted.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            let cells: Vec<Cell<'_>> = texts.iter().map(|text| Cell::Text(text)).collect();
            visit(place, &cells)?;
        }
        Ok(())
    }
}
