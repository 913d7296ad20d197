//! Proposes a schema from a file, for its owner to correct.
//!
//! Bounds, levels, classes and medians of the proposal are read from the rows and are therefore as
//! private as the rows. Every such line carries a comment beginning with [`MARK`]; the owner
//! replaces it by public knowledge before the schema leaves the provider. A column that cannot be
//! used is listed under `ignore` with its reason.

mod describe;
mod profile;
mod write;

use crate::schema::Schema;
use crate::table::source::{self, RowSource};
use crate::table::{AnySource, Columns, CsvFormat, CsvSource, ReadError, ReadFault, ReadLimits};
use crate::table::{TableReader, open};
use profile::Profile;
use std::io::Read;
use std::path::Path;

/// Begins the comment at everything that the owner must confirm.
pub const MARK: &str = "CONFIRM";

/// Most levels or classes that are proposed: more look like names or numbers of persons.
pub const MAX_PROPOSED_LEVELS: usize = 100;

/// Cells that are taken for missing values wherever they occur.
pub(crate) const USUAL_MARKERS: [&str; 13] = [
    "", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "null", "NULL", "None",
];

/// Names by which a column is taken for the label, in any case, if none is named.
const USUAL_LABELS: [&str; 5] = ["label", "class", "target", "outcome", "y"];

/// A proposed schema.
#[derive(Debug, Clone)]
pub struct SchemaProposal {
    /// The schema as TOML, with marks.
    pub text: String,
    /// The same, checked.
    pub schema: Schema,
    /// What was assumed, a sentence each.
    pub assumptions: Vec<String>,
}

/// How many marks a schema still has: everything that was read from rows and not replaced.
pub fn unconfirmed(schema_text: &str) -> usize {
    let marked = |line: &&str| {
        let comment = line.split_once('#').map(|(_, comment)| comment);
        comment.is_some_and(|comment| comment.contains(&format!("{MARK}:")))
    };
    schema_text.lines().filter(marked).count()
}

/// Proposes a schema for a CSV or Parquet file. The label is the last column, or one with a usual
/// name, unless named.
pub fn propose(
    path: &Path,
    label: Option<&str>,
    format: CsvFormat,
) -> Result<SchemaProposal, ReadError> {
    let limits = ReadLimits::default();
    let name = path
        .file_name()
        .map_or("".into(), |name| name.to_string_lossy());
    let name = name.split('.').next().unwrap_or_default();
    match open(path, limits, format)? {
        AnySource::Csv(source) => propose_from(source, name, label, limits),
        #[cfg(feature = "parquet")]
        AnySource::Parquet(source) => propose_from(source, name, label, limits),
    }
}

/// Proposes a schema for CSV from anywhere; `file` is named in errors and names the schema.
pub fn propose_csv(
    input: impl Read,
    file: &str,
    label: Option<&str>,
) -> Result<SchemaProposal, ReadError> {
    let limits = ReadLimits::default();
    let source = CsvSource::open(input, file, limits.record_bytes, CsvFormat::default())?;
    propose_from(source, file, label, limits)
}

/// Proposes a schema for columns in memory.
pub fn propose_columns(
    columns: &Columns,
    name: &str,
    label: Option<&str>,
) -> Result<SchemaProposal, ReadError> {
    propose_from(columns.source(name), name, label, ReadLimits::default())
}

impl SchemaProposal {
    /// A reader of the file that the proposal was made from.
    pub fn reader(&self, format: CsvFormat) -> TableReader<'_> {
        TableReader::new(&self.schema).with_format(format)
    }
}

fn propose_from(
    source: impl RowSource,
    name: &str,
    label: Option<&str>,
    limits: ReadLimits,
) -> Result<SchemaProposal, ReadError> {
    let file = source.file().to_owned();
    let header = source.header().to_vec();
    let label_at = find_label(&source, label)?;
    let readable = source.readable();
    let wanted: Vec<usize> = (0..header.len()).filter(|&at| readable[at]).collect();
    let mut profiles = vec![Profile::default(); header.len()];
    let mut budget = limits.values;
    source.visit(&wanted, &mut |place, cells| {
        budget = budget
            .checked_sub(cells.len())
            .ok_or_else(|| ReadError::new(&file, ReadFault::TooLarge(limits.values)).at(place))?;
        let seen = wanted.iter().zip(cells);
        seen.for_each(|(&at, cell)| profiles[at].see(cell));
        Ok(())
    })?;
    if profiles[label_at].rows() == 0 {
        return Err(ReadError::new(&file, ReadFault::Empty));
    }
    check_label(&profiles[label_at])
        .map_err(|fault| ReadError::new(&file, fault).column(&header[label_at]))?;
    let columns = profile::columns(&header, &profiles, &readable, label_at);
    let text = write::schema(name, &header, &profiles, &columns, label_at);
    match Schema::parse(&text, "proposal") {
        Ok(schema) => Ok(SchemaProposal {
            assumptions: describe::assumptions(&schema, &header, &profiles, &columns, label),
            text,
            schema,
        }),
        Err(error) => {
            let fault = ReadFault::NoProposal(error.fault().to_string());
            Err(ReadError::new(&file, fault))
        }
    }
}

fn find_label(source: &impl RowSource, label: Option<&str>) -> Result<usize, ReadError> {
    let positions = source::positions(source)?;
    let header = source.header();
    let usual = |name: &String| USUAL_LABELS.contains(&name.to_lowercase().as_str());
    let guess = header
        .iter()
        .rposition(usual)
        .or(header.len().checked_sub(1));
    match label {
        None => guess.ok_or_else(|| ReadError::new(source.file(), ReadFault::Empty)),
        Some(name) => positions
            .get(name)
            .copied()
            .ok_or_else(|| source::header_error(source, name, ReadFault::MissingColumn)),
    }
}

fn check_label(label: &Profile) -> Result<(), ReadFault> {
    match label.levels().as_deref() {
        _ if label.numeric_label().is_some() => Ok(()),
        None => Err(ReadFault::TooManyClasses(MAX_PROPOSED_LEVELS)),
        Some([]) => Err(ReadFault::Missing),
        Some([class]) => Err(ReadFault::OneClass((*class).to_owned())),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
