//! What is seen of one column.

use super::{MAX_PROPOSED_LEVELS, USUAL_MARKERS};
use crate::schema::MAX_NAME_BYTES;
use crate::table::source::Cell;
use crate::table::{level_text, number};
use std::collections::{BTreeMap, BTreeSet};

/// More values than this that all differ are suspected to be identifiers.
const ENOUGH: usize = 20;

/// Counts and values of one column.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    rows: u64,
    missing: u64,
    markers: BTreeSet<&'static str>,
    /// All values, until one is no number.
    numbers: Option<Vec<f64>>,
    /// How often each value occurs, until there are too many.
    levels: Option<BTreeMap<String, u64>>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            rows: 0,
            missing: 0,
            markers: BTreeSet::new(),
            numbers: Some(Vec::new()),
            levels: Some(BTreeMap::new()),
        }
    }
}

impl Profile {
    /// Takes one more cell into account.
    pub(super) fn see(&mut self, cell: &Cell<'_>) {
        self.rows += 1;
        let text = level_text(cell);
        let marker = USUAL_MARKERS.into_iter().find(|&marker| marker == text);
        if *cell == Cell::Null || marker.is_some() {
            self.missing += 1;
            self.markers.extend(marker);
            return;
        }
        match (number(cell), &mut self.numbers) {
            (Ok(value), Some(numbers)) => numbers.push(value),
            _ => self.numbers = None,
        }
        self.see_level(&text);
    }

    fn see_level(&mut self, level: &str) {
        let Some(levels) = &mut self.levels else {
            return;
        };
        if let Some(count) = levels.get_mut(level) {
            *count += 1;
        } else if levels.len() == MAX_PROPOSED_LEVELS || level.len() > MAX_NAME_BYTES {
            self.levels = None;
        } else {
            levels.insert(level.to_owned(), 1);
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    /// The markers of missing values that occurred.
    pub(super) fn markers(&self) -> &BTreeSet<&'static str> {
        &self.markers
    }

    /// The values in alphabetical order, unless they are too many.
    pub(super) fn levels(&self) -> Option<Vec<&str>> {
        let levels = self.levels.as_ref()?;
        Some(levels.keys().map(String::as_str).collect())
    }

    /// Whether no value comes twice in enough rows to be no accident.
    pub(super) fn looks_like_names(&self) -> bool {
        let distinct = self.levels.as_ref().map_or(0, BTreeMap::len);
        distinct > ENOUGH && distinct as u64 == self.rows - self.missing
    }

    /// The most frequent value.
    pub(super) fn mode(&self) -> Option<&str> {
        let counted = self.levels.as_ref()?.iter();
        counted
            .max_by_key(|(_, count)| **count)
            .map(|(level, _)| level.as_str())
    }

    /// Minimum, median and maximum in order, if all values are numbers and not all the same.
    pub(super) fn range(&self) -> Option<Range> {
        let mut sorted = self.numbers.clone()?;
        sorted.sort_by(f64::total_cmp);
        let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
        let distinct = sorted.windows(2).all(|pair| pair[0] < pair[1]);
        let whole = sorted.iter().all(|value| value.fract() == 0.0);
        // The lower of two middles: always a value that the column can have.
        let median = sorted[(sorted.len() - 1) / 2];
        (lowest < highest).then_some(Range {
            lowest,
            median,
            highest,
            looks_like_an_identifier: distinct && whole && sorted.len() > ENOUGH,
        })
    }
}

/// The extent of a numeric column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) lowest: f64,
    pub(super) median: f64,
    pub(super) highest: f64,
    pub(super) looks_like_an_identifier: bool,
}
