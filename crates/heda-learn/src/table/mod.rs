//! Reads CSV and Parquet files by a schema.
//!
//! A file is read as a stream and checked to its end before anything comes out: there is a whole
//! [`Dataset`] or an error that names file, line, column and remedy.

mod collect;
mod csv;
mod encode;
mod error;
mod format;
mod memory;
#[cfg(feature = "parquet")]
mod parquet;
mod report;
mod rows;
pub(crate) mod source;

pub(crate) use self::csv::CsvSource;
pub(crate) use self::encode::{days, level_text, number};
#[cfg(feature = "parquet")]
pub(crate) use self::parquet::ParquetSource;
pub(crate) use error::shorten;
pub use error::{ReadError, ReadFault, TablePlace};
pub use format::{CsvFormat, SeparatorMark, TextEncoding};
pub use memory::{Columns, Values};
pub use report::{ColumnReport, ReadReport};
pub use rows::Rows;

use crate::data::Dataset;
use crate::schema::Schema;
use collect::{Collected, Purpose};
use flate2::read::MultiGzDecoder;
use source::RowSource;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// How much a file may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Longest record of a CSV file in bytes.
    pub record_bytes: usize,
    /// Most encoded values (rows × encoded columns), of eight bytes each.
    pub values: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            record_bytes: 4 << 20,
            values: 1 << 30,
        }
    }
}

/// Reads files by a schema.
#[derive(Debug, Clone, Copy)]
pub struct TableReader<'s> {
    schema: &'s Schema,
    limits: ReadLimits,
    format: CsvFormat,
}

impl<'s> TableReader<'s> {
    /// A reader with the usual limits.
    pub fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            limits: ReadLimits::default(),
            format: CsvFormat::default(),
        }
    }

    /// The same for CSV that is written in this way.
    pub fn with_format(self, format: CsvFormat) -> Self {
        Self { format, ..self }
    }

    /// The same with other limits.
    pub fn with_limits(self, limits: ReadLimits) -> Self {
        Self { limits, ..self }
    }

    /// Reads a file with labels; Parquet, gzip and zstd are recognised by their first bytes.
    pub fn read_file(&self, path: &Path) -> Result<(Dataset, ReadReport), ReadError> {
        match open(path, self.limits, self.format)? {
            AnySource::Csv(source) => self.read(source),
            #[cfg(feature = "parquet")]
            AnySource::Parquet(source) => self.read(source),
        }
    }

    /// Reads a file with labels in which a column says whose row it is: beside the rows a number for
    /// each, the same for rows of the same person. Nothing else is kept of the column.
    pub fn read_persons(
        &self,
        path: &Path,
        person: &str,
    ) -> Result<(Dataset, Vec<u32>, ReadReport), ReadError> {
        match open(path, self.limits, self.format)? {
            AnySource::Csv(source) => self.read_with(source, Some(person)),
            #[cfg(feature = "parquet")]
            AnySource::Parquet(source) => self.read_with(source, Some(person)),
        }
    }

    /// Reads CSV with labels; `file` is named in errors.
    pub fn read_csv(
        &self,
        input: impl Read,
        file: &str,
    ) -> Result<(Dataset, ReadReport), ReadError> {
        let bytes = self.limits.record_bytes;
        self.read(CsvSource::open(input, file, bytes, self.format)?)
    }

    /// Reads columns in memory, with labels; `name` is named in errors.
    pub fn read_columns(
        &self,
        columns: &Columns,
        name: &str,
    ) -> Result<(Dataset, ReadReport), ReadError> {
        self.read(columns.source(name))
    }

    fn read(&self, source: impl RowSource) -> Result<(Dataset, ReadReport), ReadError> {
        let (data, _, report) = self.read_with(source, None)?;
        Ok((data, report))
    }

    fn read_with(
        &self,
        source: impl RowSource,
        person: Option<&str>,
    ) -> Result<(Dataset, Vec<u32>, ReadReport), ReadError> {
        let file = source.file().to_owned();
        let mut table = Collected::new(self.schema, self.limits, Purpose::Training { person });
        table.collect(source)?;
        if let Some((&first, rest)) = table.labels.split_first()
            && rest.iter().all(|&label| label == first)
        {
            let class = self
                .schema
                .label()
                .classes()
                .into_iter()
                .nth(first as usize);
            let fault = class.map_or(ReadFault::OneNumber, ReadFault::OneClass);
            let error = ReadError::new(&file, fault);
            return Err(error.column(self.schema.label().column()));
        }
        let classes = self.schema.label().classes();
        Dataset::new(self.schema.features(), table.values, table.labels, classes)
            .map(|data| (data, table.persons, table.report))
            .map_err(|e| ReadError::new(&file, e.into()))
    }
}

/// A file of either format.
pub(crate) enum AnySource {
    Csv(CsvSource<Box<dyn Read>>),
    #[cfg(feature = "parquet")]
    Parquet(ParquetSource),
}

/// Opens a file; Parquet, gzip and zstd are recognised by their first bytes.
pub(crate) fn open(
    path: &Path,
    limits: ReadLimits,
    format: CsvFormat,
) -> Result<AnySource, ReadError> {
    let name = path.display().to_string();
    let failed = |e: std::io::Error| ReadError::new(&name, ReadFault::File(e.to_string()));
    let mut file = File::open(path).map_err(failed)?;
    let mut magic = Vec::new();
    let mut beginning = file.by_ref().take(4);
    beginning.read_to_end(&mut magic).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let file = match magic[..] {
        [b'P', b'A', b'R', b'1'] => return parquet_source(file, &name),
        _ => BufReader::new(file),
    };
    // What is unpacked is bounded as any other text: by record and by table.
    let text: Box<dyn Read> = match magic[..] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd] => zstd_text(file, &name)?,
        _ => Box::new(file),
    };
    CsvSource::open(text, &name, limits.record_bytes, format).map(AnySource::Csv)
}

#[cfg(feature = "parquet")]
fn zstd_text(file: BufReader<File>, name: &str) -> Result<Box<dyn Read>, ReadError> {
    let unpacked = zstd::Decoder::with_buffer(file);
    let unpacked = unpacked.map_err(|e| ReadError::new(name, ReadFault::File(e.to_string())))?;
    Ok(Box::new(unpacked))
}

#[cfg(not(feature = "parquet"))]
fn zstd_text(_: BufReader<File>, name: &str) -> Result<Box<dyn Read>, ReadError> {
    Err(ReadError::new(name, ReadFault::NoZstd))
}

#[cfg(feature = "parquet")]
fn parquet_source(file: File, name: &str) -> Result<AnySource, ReadError> {
    ParquetSource::open(file, name).map(AnySource::Parquet)
}

#[cfg(not(feature = "parquet"))]
fn parquet_source(_: File, name: &str) -> Result<AnySource, ReadError> {
    Err(ReadError::new(name, ReadFault::NoParquet))
}

#[cfg(test)]
mod tests;
