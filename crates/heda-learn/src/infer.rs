//! Proposes a schema from a file, for its owner to correct.
//!
//! Bounds, levels, classes and medians of the proposal are read from the rows and are therefore as
//! private as the rows. Every such line carries a comment beginning with [`MARK`]; the owner
//! replaces it by public knowledge before the schema leaves the house.

mod profile;
mod write;

use crate::schema::Schema;
use crate::table::source::{self, RowSource};
use crate::table::{AnySource, CsvSource, ReadError, ReadFault, ReadLimits, open};
use profile::Profile;
use std::io::Read;
use std::path::Path;

/// Begins the comment at everything that the owner must confirm.
pub const MARK: &str = "CONFIRM";

/// Most levels or classes that are proposed: more look like names or numbers of persons.
pub const MAX_PROPOSED_LEVELS: usize = 100;

/// Cells that are taken for missing values if they occur.
pub(crate) const USUAL_MARKERS: [&str; 9] =
    ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"];

/// Proposes a schema for a CSV or Parquet file, as TOML. The label is the last column unless named.
pub fn propose(path: &Path, label: Option<&str>) -> Result<String, ReadError> {
    let limits = ReadLimits::default();
    let name = path
        .file_stem()
        .map_or("".into(), |stem| stem.to_string_lossy());
    match open(path, limits)? {
        AnySource::Csv(source) => propose_from(source, &name, label, limits),
        #[cfg(feature = "parquet")]
        AnySource::Parquet(source) => propose_from(source, &name, label, limits),
    }
}

/// Proposes a schema for CSV from anywhere; `file` is named in errors and names the schema.
pub fn propose_csv(input: impl Read, file: &str, label: Option<&str>) -> Result<String, ReadError> {
    let limits = ReadLimits::default();
    let source = CsvSource::open(input, file, limits.record_bytes)?;
    propose_from(source, file, label, limits)
}

fn propose_from(
    source: impl RowSource,
    name: &str,
    label: Option<&str>,
    limits: ReadLimits,
) -> Result<String, ReadError> {
    let file = source.file().to_owned();
    let header = source.header().to_vec();
    let label_at = find_label(&source, label)?;
    let mut profiles = vec![Profile::default(); header.len()];
    let wanted: Vec<usize> = (0..header.len()).collect();
    let mut budget = limits.values;
    source.visit(&wanted, &mut |place, cells| {
        budget = budget
            .checked_sub(cells.len())
            .ok_or_else(|| ReadError::new(&file, ReadFault::TooLarge(limits.values)).at(place))?;
        profiles
            .iter_mut()
            .zip(cells)
            .for_each(|(profile, cell)| profile.see(cell));
        Ok(())
    })?;
    if profiles[label_at].rows() == 0 {
        return Err(ReadError::new(&file, ReadFault::Empty));
    }
    check_label(&profiles[label_at])
        .map_err(|fault| ReadError::new(&file, fault).column(&header[label_at]))?;
    let text = write::schema(name, &header, &profiles, label_at);
    match Schema::parse(&text, "proposal") {
        Ok(_) => Ok(text),
        Err(error) => {
            let fault = ReadFault::NoProposal(error.fault().to_string());
            Err(ReadError::new(&file, fault))
        }
    }
}

fn find_label(source: &impl RowSource, label: Option<&str>) -> Result<usize, ReadError> {
    let positions = source::positions(source)?;
    let last = source.header().len().checked_sub(1);
    match label {
        None => last.ok_or_else(|| ReadError::new(source.file(), ReadFault::Empty)),
        Some(name) => positions
            .get(name)
            .copied()
            .ok_or_else(|| source::header_error(source, name, ReadFault::MissingColumn)),
    }
}

fn check_label(label: &Profile) -> Result<(), ReadFault> {
    match label.levels().as_deref() {
        None => Err(ReadFault::TooManyClasses(MAX_PROPOSED_LEVELS)),
        Some([]) => Err(ReadFault::Missing),
        Some([class]) => Err(ReadFault::OneClass((*class).to_owned())),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
