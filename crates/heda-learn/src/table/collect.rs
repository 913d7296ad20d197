//! Collects the rows of a file: the wanted columns, encoded, with classes or identifiers.

use super::ReadLimits;
use super::encode::{RowEncoder, is_missing, level_text, number_label};
use super::error::{ReadError, ReadFault, shorten};
use super::report::ReadReport;
use super::source::{self, Cell, RowSource};
use crate::schema::Schema;
use std::collections::{HashMap, HashSet};

/// What rows are read for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// Every column must be known, every row has a class. One more column may say whose row it is.
    Training { person: Option<&'a str> },
    /// Columns that the schema does not know are passed over, and so are classes. A row with a
    /// missing value that the schema refuses is left out. One column may name the rows.
    Prediction { id: Option<&'a str> },
}

/// The rows read so far.
pub(super) struct Collected<'s> {
    schema: &'s Schema,
    purpose: Purpose<'s>,
    limits: ReadLimits,
    width: usize,
    pub(super) values: Vec<f64>,
    pub(super) labels: Vec<u32>,
    /// For each row to predict its number in the file.
    pub(super) numbers: Vec<u64>,
    /// For each row its name, if a column names rows.
    pub(super) ids: Vec<String>,
    /// For each row its person, by number, if a column says so.
    pub(super) persons: Vec<u32>,
    known_persons: HashMap<String, u32>,
    /// Numbers and names of the rows that were left out.
    pub(super) left_out: Vec<(u64, Option<String>)>,
    pub(super) report: ReadReport,
}

impl<'s> Collected<'s> {
    pub(super) fn new(schema: &'s Schema, limits: ReadLimits, purpose: Purpose<'s>) -> Self {
        Self {
            schema,
            purpose,
            limits,
            width: schema.width(),
            values: Vec::new(),
            labels: Vec::new(),
            numbers: Vec::new(),
            ids: Vec::new(),
            persons: Vec::new(),
            known_persons: HashMap::new(),
            left_out: Vec::new(),
            report: ReadReport::new(schema),
        }
    }

    /// Reads all rows. Columns come in the order of the schema, the label or the name last.
    pub(super) fn collect(&mut self, source: impl RowSource) -> Result<(), ReadError> {
        let file = source.file().to_owned();
        let wanted = self.wanted(&source)?;
        self.make_room(source.rows().unwrap_or(0));
        let encoder = RowEncoder::new(self.schema);
        let encoder = match self.purpose {
            Purpose::Training { .. } => encoder,
            Purpose::Prediction { .. } => encoder.lenient(),
        };
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
        let training = matches!(self.purpose, Purpose::Training { .. });
        let fault = match (self.report.rows_read, self.labels.is_empty()) {
            (0, _) => ReadFault::Empty,
            (read, true) if training => ReadFault::AllDropped(read),
            _ => return Ok(()),
        };
        Err(ReadError::new(&file, fault))
    }

    /// Room for so many rows, so that memory never holds old and new room beside each other.
    fn make_room(&mut self, rows: usize) {
        let rows = rows.min(self.limits.values / self.width.max(1));
        self.values.reserve_exact(rows * self.width);
        match self.purpose {
            Purpose::Training { .. } => self.labels.reserve_exact(rows),
            Purpose::Prediction { .. } => self.numbers.reserve_exact(rows),
        }
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
        let (attributes, last) = cells.split_at(self.schema.columns().len());
        let start = self.values.len();
        let mut kept = encoder
            .encode(attributes, &mut self.values, &mut self.report)
            .map_err(|(column, fault)| (Some(column), fault))?;
        let mut name = None;
        match (self.purpose, last.first()) {
            (Purpose::Training { .. }, Some(label)) => {
                let class = self.class(label, classes);
                match class.map_err(|fault| (Some(attributes.len()), fault))? {
                    Some(class) if kept => self.labels.push(class),
                    Some(_) => {}
                    None => kept = false,
                }
            }
            (_, last) => name = last.map(|cell| level_text(cell).into_owned()),
        }
        if let (true, Purpose::Training { .. }, Some(cell)) = (kept, self.purpose, last.get(1)) {
            let person = self.person(cell);
            let person = person.map_err(|fault| (Some(attributes.len() + 1), fault))?;
            self.persons.push(person);
        }
        if kept {
            if matches!(self.purpose, Purpose::Prediction { .. }) {
                self.numbers.push(self.report.rows_read);
            }
            self.ids.extend(name);
        } else {
            self.values.truncate(start);
            self.report.rows_dropped += 1;
            self.left_out.push((self.report.rows_read, name));
        }
        Ok(())
    }

    /// The number of a row's person.
    fn person(&mut self, cell: &Cell<'_>) -> Result<u32, ReadFault> {
        let text = level_text(cell);
        if text.trim().is_empty() || is_missing(cell, self.schema.missing_markers()) {
            return Err(ReadFault::NoPerson);
        }
        let next = self.known_persons.len() as u32;
        Ok(*self.known_persons.entry(text.into_owned()).or_insert(next))
    }

    /// The label of a row, or `None` if the row is to be dropped.
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
        if let Some(number) = self.schema.label().number() {
            return number_label(label, number, &mut self.report.labels_clipped).map(Some);
        }
        let text = level_text(label);
        let class = classes.get(&*text).copied().map(Some);
        class.ok_or_else(|| ReadFault::UnknownClass(shorten(&text)))
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
        match (columns.get(index), self.purpose) {
            (Some(column), _) => column.name(),
            (None, Purpose::Training { person: Some(name) }) if index > columns.len() => name,
            (None, _) => self.schema.label().column(),
        }
    }

    /// Positions in the file of the columns of the schema, the label last if it is wanted.
    fn wanted(&self, source: &impl RowSource) -> Result<Vec<usize>, ReadError> {
        let positions = source::positions(source)?;
        let label = self.schema.label().column();
        let columns = self.schema.columns().iter().map(|column| column.name());
        let (last, person) = match self.purpose {
            Purpose::Training { person } => (Some(label), person),
            Purpose::Prediction { id } => (id, None),
        };
        let names = columns.chain(last);
        let missing = |name| source::header_error(source, name, ReadFault::MissingColumn);
        let find = |name| positions.get(name).copied().ok_or_else(|| missing(name));
        let mut wanted = names.map(find).collect::<Result<Vec<_>, _>>()?;
        if let Some(name) = person {
            let lacks = || source::header_error(source, name, ReadFault::NoPersonColumn);
            wanted.push(positions.get(name).copied().ok_or_else(lacks)?);
        }
        if matches!(self.purpose, Purpose::Prediction { .. }) {
            return Ok(wanted);
        }
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
