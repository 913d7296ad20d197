//! Reads CSV and Parquet files by a schema.
//!
//! A file is read as a stream and checked to its end before anything comes out: there is a whole
//! [`Dataset`] or an error that names file, line, column and remedy.

mod csv;
mod encode;
mod error;
#[cfg(feature = "parquet")]
mod parquet;
mod report;
pub(crate) mod source;

pub(crate) use self::csv::CsvSource;
pub(crate) use self::encode::{level_text, number};
#[cfg(feature = "parquet")]
pub(crate) use self::parquet::ParquetSource;
pub use error::{Place, ReadError, ReadFault};
pub use report::{ColumnReport, ReadReport};

use crate::data::{Dataset, Feature};
use crate::schema::Schema;
use encode::{RowEncoder, is_missing};
use source::{Cell, RowSource};
use std::collections::{HashMap, HashSet};
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
}

/// Encoded rows without labels: what a model predicts on.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    features: Vec<Feature>,
    width: usize,
    values: Vec<f64>,
    numbers: Vec<u64>,
}

impl<'s> TableReader<'s> {
    /// A reader with the usual limits.
    pub fn new(schema: &'s Schema) -> Self {
        let limits = ReadLimits::default();
        Self { schema, limits }
    }

    /// The same with other limits.
    pub fn with_limits(self, limits: ReadLimits) -> Self {
        Self { limits, ..self }
    }

    /// Reads a file with labels; Parquet is recognised by its first bytes.
    pub fn read_file(&self, path: &Path) -> Result<(Dataset, ReadReport), ReadError> {
        match open(path, self.limits)? {
            AnySource::Csv(source) => self.read(source),
            #[cfg(feature = "parquet")]
            AnySource::Parquet(source) => self.read(source),
        }
    }

    /// Reads CSV with labels; `file` is named in errors.
    pub fn read_csv(
        &self,
        input: impl Read,
        file: &str,
    ) -> Result<(Dataset, ReadReport), ReadError> {
        self.read(CsvSource::open(input, file, self.limits.record_bytes)?)
    }

    /// Reads a file for prediction: a label column may be there and is passed over.
    pub fn read_rows_file(&self, path: &Path) -> Result<(Rows, ReadReport), ReadError> {
        match open(path, self.limits)? {
            AnySource::Csv(source) => self.read_rows(source),
            #[cfg(feature = "parquet")]
            AnySource::Parquet(source) => self.read_rows(source),
        }
    }

    /// Reads CSV for prediction: a label column may be there and is passed over.
    pub fn read_rows_csv(
        &self,
        input: impl Read,
        file: &str,
    ) -> Result<(Rows, ReadReport), ReadError> {
        self.read_rows(CsvSource::open(input, file, self.limits.record_bytes)?)
    }

    fn read(&self, source: impl RowSource) -> Result<(Dataset, ReadReport), ReadError> {
        let file = source.file().to_owned();
        let mut table = Collected::new(self.schema, self.limits, true);
        table.collect(source)?;
        if let Some((&first, rest)) = table.labels.split_first()
            && rest.iter().all(|&label| label == first)
        {
            let class = self.schema.label().classes().swap_remove(first as usize);
            let error = ReadError::new(&file, ReadFault::OneClass(class));
            return Err(error.column(self.schema.label().column()));
        }
        let classes = self.schema.label().classes();
        Dataset::new(self.schema.features(), table.values, table.labels, classes)
            .map(|data| (data, table.report))
            .map_err(|e| ReadError::new(&file, e.into()))
    }

    fn read_rows(&self, source: impl RowSource) -> Result<(Rows, ReadReport), ReadError> {
        let mut table = Collected::new(self.schema, self.limits, false);
        table.collect(source)?;
        let rows = Rows {
            features: self.schema.features(),
            width: table.width,
            values: table.values,
            numbers: table.numbers,
        };
        Ok((rows, table.report))
    }
}

impl Rows {
    /// The attributes, in column order.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The encoded rows, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// For each row its number in the file, from 1 and without the header: rows may have been
    /// dropped between them.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }
}

/// A file of either format.
pub(crate) enum AnySource {
    Csv(CsvSource<BufReader<File>>),
    #[cfg(feature = "parquet")]
    Parquet(ParquetSource),
}

/// Opens a file; Parquet is recognised by its first bytes.
pub(crate) fn open(path: &Path, limits: ReadLimits) -> Result<AnySource, ReadError> {
    let name = path.display().to_string();
    let failed = |e: std::io::Error| ReadError::new(&name, ReadFault::File(e.to_string()));
    let mut file = File::open(path).map_err(failed)?;
    let mut magic = Vec::new();
    file.by_ref()
        .take(4)
        .read_to_end(&mut magic)
        .map_err(failed)?;
    if magic == *b"PAR1" {
        return parquet_source(file, &name);
    }
    file.rewind().map_err(failed)?;
    CsvSource::open(BufReader::new(file), &name, limits.record_bytes).map(AnySource::Csv)
}

#[cfg(feature = "parquet")]
fn parquet_source(file: File, name: &str) -> Result<AnySource, ReadError> {
    ParquetSource::open(file, name).map(AnySource::Parquet)
}

#[cfg(not(feature = "parquet"))]
fn parquet_source(_: File, name: &str) -> Result<AnySource, ReadError> {
    Err(ReadError::new(name, ReadFault::NoParquet))
}

/// The rows read so far.
struct Collected<'s> {
    schema: &'s Schema,
    labelled: bool,
    limits: ReadLimits,
    width: usize,
    values: Vec<f64>,
    labels: Vec<u32>,
    numbers: Vec<u64>,
    report: ReadReport,
}

impl<'s> Collected<'s> {
    fn new(schema: &'s Schema, limits: ReadLimits, labelled: bool) -> Self {
        Self {
            schema,
            labelled,
            limits,
            width: schema.width(),
            values: Vec::new(),
            labels: Vec::new(),
            numbers: Vec::new(),
            report: ReadReport::new(schema),
        }
    }

    /// Reads all rows. Columns come in the order of the schema, the label last.
    fn collect(&mut self, source: impl RowSource) -> Result<(), ReadError> {
        let file = source.file().to_owned();
        let wanted = self.wanted(&source)?;
        let encoder = RowEncoder::new(self.schema);
        let classes = self.class_codes();
        source.visit(&wanted, &mut |place, cells| {
            let added = self.add(&encoder, &classes, cells);
            added.map_err(|(column, fault)| {
                let error = ReadError::new(&file, fault).at(place);
                match column {
                    Some(index) => error.column(self.column_name(index)),
                    None => error,
                }
            })
        })?;
        let fault = match (self.report.rows_read, self.numbers.len()) {
            (0, _) => ReadFault::Empty,
            (read, 0) => ReadFault::AllDropped(read),
            _ => return Ok(()),
        };
        Err(ReadError::new(&file, fault))
    }

    /// Adds a row; a fault comes with the position of its column.
    fn add(
        &mut self,
        encoder: &RowEncoder<'_>,
        classes: &HashMap<&str, u32>,
        cells: &[Cell<'_>],
    ) -> Result<(), (Option<usize>, ReadFault)> {
        if self.limits.values.saturating_sub(self.values.len()) < self.width {
            return Err((None, ReadFault::TooLarge(self.limits.values)));
        }
        self.report.rows_read += 1;
        let (attributes, label) = cells.split_at(self.schema.columns().len());
        let start = self.values.len();
        let mut kept = encoder
            .encode(attributes, &mut self.values, &mut self.report)
            .map_err(|(column, fault)| (Some(column), fault))?;
        if let Some(label) = label.first() {
            let class = self.class(label, classes);
            match class.map_err(|fault| (Some(attributes.len()), fault))? {
                Some(class) if kept => self.labels.push(class),
                Some(_) => {}
                None => kept = false,
            }
        }
        if kept {
            self.numbers.push(self.report.rows_read);
        } else {
            self.values.truncate(start);
            self.report.rows_dropped += 1;
        }
        Ok(())
    }

    /// The class of a row, or `None` if the row is to be dropped.
    fn class(
        &mut self,
        label: &Cell<'_>,
        classes: &HashMap<&str, u32>,
    ) -> Result<Option<u32>, ReadFault> {
        if is_missing(label, self.schema.missing_markers()) {
            self.report.labels_missing += 1;
            let dropped = self.schema.label().drops_missing();
            return dropped.then_some(None).ok_or(ReadFault::Missing);
        }
        let text = level_text(label);
        let class = classes.get(&*text).copied().map(Some);
        class.ok_or_else(|| ReadFault::UnknownClass(error::shorten(&text)))
    }

    fn class_codes(&self) -> HashMap<&'s str, u32> {
        let label = self.schema.label();
        let values = label.values().iter().enumerate();
        values
            .map(|(position, value)| (value.as_str(), label.class_of(position)))
            .collect()
    }

    fn column_name(&self, index: usize) -> &str {
        let columns = self.schema.columns();
        columns
            .get(index)
            .map_or(self.schema.label().column(), |column| column.name())
    }

    /// Positions in the file of the columns of the schema, the label last if it is wanted.
    fn wanted(&self, source: &impl RowSource) -> Result<Vec<usize>, ReadError> {
        let positions = source::positions(source)?;
        let label = self.schema.label().column();
        let columns = self.schema.columns().iter().map(|column| column.name());
        let names = columns.chain(self.labelled.then_some(label));
        let missing = |name| source::header_error(source, name, ReadFault::MissingColumn);
        let find = |name| positions.get(name).copied().ok_or_else(|| missing(name));
        let wanted = names.map(find).collect::<Result<Vec<_>, _>>()?;
        let mut used = vec![false; source.header().len()];
        wanted.iter().for_each(|&index| used[index] = true);
        let ignored: HashSet<&String> = self.schema.ignore().iter().collect();
        let unknown =
            |(name, used): &(&String, &bool)| !**used && *name != label && !ignored.contains(name);
        match source.header().iter().zip(&used).find(unknown) {
            Some((name, _)) => Err(source::header_error(source, name, ReadFault::UnknownColumn)),
            None => Ok(wanted),
        }
    }
}

#[cfg(test)]
mod tests;
