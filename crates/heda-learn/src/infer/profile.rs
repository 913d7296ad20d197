//! What is seen of one column, and what it is taken for.

use super::{MAX_PROPOSED_LEVELS, USUAL_MARKERS};
use crate::schema::{MAX_NAME_BYTES, is_usable_name};
use crate::table::source::Cell;
use crate::table::{days, level_text, number};
use std::collections::{BTreeMap, BTreeSet};

/// More values than this that all differ are suspected to be identifiers.
const ENOUGH: usize = 20;
/// Most texts among numbers that can be markers of missing values.
const MAX_ODD: usize = 16;
/// So few different whole numbers may be codes of something.
const FEW: usize = 10;
/// More different whole numbers than these are no classes.
const MANY: usize = 30;

/// Counts and values of one column.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    rows: u64,
    missing: u64,
    markers: BTreeSet<&'static str>,
    numbers: Vec<f64>,
    dates: Vec<f64>,
    /// What is neither, and how often it occurs, until there is too much of it.
    odd: Option<BTreeMap<String, u64>>,
    /// How often each value occurs, until there are too many.
    levels: Option<BTreeMap<String, u64>>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            rows: 0,
            missing: 0,
            markers: BTreeSet::new(),
            numbers: Vec::new(),
            dates: Vec::new(),
            odd: Some(BTreeMap::new()),
            levels: Some(BTreeMap::new()),
        }
    }
}

/// Counts a text unless there are too many different ones.
fn count(texts: &mut Option<BTreeMap<String, u64>>, text: &str, most: usize) {
    let Some(counts) = texts else {
        return;
    };
    if let Some(count) = counts.get_mut(text) {
        *count += 1;
    } else if counts.len() == most || text.len() > MAX_NAME_BYTES {
        *texts = None;
    } else {
        counts.insert(text.to_owned(), 1);
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
        match (number(cell), days(cell)) {
            (Ok(value), _) => self.numbers.push(value),
            (_, Ok(days)) => self.dates.push(days),
            _ => count(&mut self.odd, &text, MAX_ODD),
        }
        count(&mut self.levels, &text, MAX_PROPOSED_LEVELS);
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
    fn looks_like_names(&self) -> bool {
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

    /// Texts among so many values that could mean that one is missing: few different ones, and
    /// either rare among many different values or of the kind that is no value (`<0.5`, `-`, `.`).
    fn odd_among(&self, values: usize, range: &Range) -> Option<Vec<&str>> {
        let odd = self.odd.as_ref()?;
        let cells: u64 = odd.values().sum();
        let values = values as u64;
        let no_value = |text: &String| {
            text.starts_with(['<', '>']) || !text.contains(|c: char| c.is_alphanumeric())
        };
        let rare = range.different > FEW && 10 * cells <= values + cells;
        let told = odd.keys().all(no_value) && cells <= values;
        (odd.is_empty() || rare || told).then(|| odd.keys().map(String::as_str).collect())
    }

    /// The extent of a label that is taken for a number: nothing but numbers, and too many
    /// different ones for classes.
    pub(super) fn numeric_label(&self) -> Option<Range> {
        let only_numbers =
            self.dates.is_empty() && self.odd.as_ref().is_some_and(BTreeMap::is_empty);
        let range = Range::new(&self.numbers).filter(|_| only_numbers)?;
        let whole = self.numbers.iter().all(|value| value.fract() == 0.0);
        let most = if whole { MANY } else { FEW };
        (range.different > most).then_some(range)
    }

    /// What the column is taken for, apart from what other columns say.
    fn kind(&self) -> Result<ColumnProfile<'_>, &'static str> {
        let (values, dates) = match (self.numbers.len(), self.dates.len()) {
            (_, 0) => (&self.numbers, false),
            (0, _) => (&self.dates, true),
            _ => return self.categorical(),
        };
        let Some(range) = Range::new(values) else {
            return self.categorical();
        };
        match self.odd_among(values.len(), &range) {
            Some(markers) => Ok(ColumnProfile::Number {
                range,
                dates,
                markers,
            }),
            None => self.categorical(),
        }
    }

    fn categorical(&self) -> Result<ColumnProfile<'_>, &'static str> {
        let levels = self.levels().ok_or_else(|| self.why_not_levels())?;
        match levels.len() {
            0 => Err("all values are missing"),
            1 => Err("all values are the same"),
            _ if self.looks_like_names() => Err(NAMES),
            _ if !levels.iter().all(|level| is_usable_name(level)) => {
                Err("some values cannot be names of levels")
            }
            _ => Ok(ColumnProfile::Levels(levels)),
        }
    }

    fn why_not_levels(&self) -> &'static str {
        match self.numbers.len() as u64 * 2 >= self.rows - self.missing {
            true => MIXED,
            false => TOO_MANY,
        }
    }
}

const TOO_MANY: &str = "too many different texts: names of persons or things?";
const NAMES: &str = "every text differs: names of persons or things?";
const MIXED: &str =
    "many numbers and many texts that are none, such as units or thousands separators";
const AMBIGUOUS: &str = "its texts among numbers mean something in another column";
const UNUSABLE: &str = "this name cannot be used in a schema";
const UNREADABLE: &str = "this type of a Parquet column is not read";

/// What a column is taken for.
#[derive(Debug, Clone)]
pub(super) enum ColumnProfile<'p> {
    /// Numbers, or dates as days, with texts that mean that a value is missing.
    Number {
        range: Range,
        dates: bool,
        markers: Vec<&'p str>,
    },
    Levels(Vec<&'p str>),
    Label,
    Passed(&'static str),
}

/// What each column is taken for.
pub(super) fn columns<'p>(
    header: &[String],
    profiles: &'p [Profile],
    readable: &[bool],
    label: usize,
) -> Vec<ColumnProfile<'p>> {
    let first = |at: usize| match (&header[at], readable[at]) {
        _ if at == label => ColumnProfile::Label,
        (_, false) => ColumnProfile::Passed(UNREADABLE),
        (name, _) if !is_usable_name(name) => ColumnProfile::Passed(UNUSABLE),
        _ => profiles[at].kind().unwrap_or_else(ColumnProfile::Passed),
    };
    let mut columns: Vec<ColumnProfile<'p>> = (0..header.len()).map(first).collect();
    let levels = columns.iter().filter_map(|column| match column {
        ColumnProfile::Levels(levels) => Some(levels.clone()),
        _ => None,
    });
    let mut meaningful: BTreeSet<&str> = levels.flatten().collect();
    if profiles[label].numeric_label().is_none() {
        meaningful.extend(profiles[label].levels().unwrap_or_default());
    }
    for column in &mut columns {
        // A marker counts for the whole table.
        if let ColumnProfile::Number { markers, .. } = column
            && markers.iter().any(|marker| meaningful.contains(marker))
        {
            *column = ColumnProfile::Passed(AMBIGUOUS);
        }
    }
    columns
}

/// The extent of a numeric column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) lowest: f64,
    pub(super) median: f64,
    pub(super) highest: f64,
    different: usize,
    pub(super) looks_like_an_identifier: bool,
    /// Whether there are so few different whole numbers that they may be codes.
    pub(super) looks_like_a_code: bool,
}

impl Range {
    /// Of values that are not all the same.
    fn new(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
        let different = 1 + sorted.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let whole = sorted.iter().all(|value| value.fract() == 0.0);
        (lowest < highest).then_some(Self {
            lowest,
            // The lower of two middles: always a value that the column can have.
            median: sorted[(sorted.len() - 1) / 2],
            highest,
            different,
            looks_like_an_identifier: different == sorted.len() && whole && different > ENOUGH,
            looks_like_a_code: whole && (3..=FEW).contains(&different),
        })
    }
}
