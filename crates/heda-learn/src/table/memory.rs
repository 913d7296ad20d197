//! Columns in memory as a table: what a program has that never wrote a file.

use super::error::{ReadError, ReadFault, TablePlace};
use super::source::{Cell, RowSource, Visit};

/// The values of one column in memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers; NaN is a missing one.
    Numbers(Vec<f64>),
    /// Texts; `None` is a missing one.
    Texts(Vec<Option<String>>),
    /// Positions in a list of levels, as data frames keep categories; a position beyond the list is
    /// a missing one.
    Codes {
        /// A position a row.
        codes: Vec<u32>,
        /// What the positions stand for.
        levels: Vec<String>,
    },
}

/// Named columns of the same length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    names: Vec<String>,
    values: Vec<Values>,
}

impl Columns {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one column more.
    pub fn with(mut self, name: impl Into<String>, values: Values) -> Self {
        self.names.push(name.into());
        self.values.push(values);
        self
    }

    pub(crate) fn source<'a>(&'a self, name: &'a str) -> ColumnsSource<'a> {
        ColumnsSource {
            columns: self,
            name,
        }
    }

    /// Rows of the longest column.
    pub fn rows(&self) -> usize {
        self.values.iter().map(Values::len).max().unwrap_or(0)
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
            Self::Codes { codes, .. } => codes.len(),
        }
    }

    fn cell(&self, row: usize) -> Option<Cell<'_>> {
        Some(match self {
            Self::Numbers(numbers) => match *numbers.get(row)? {
                number if number.is_nan() => Cell::Null,
                number => Cell::Number(number),
            },
            Self::Texts(texts) => match texts.get(row)? {
                Some(text) => Cell::Text(text.trim()),
                None => Cell::Null,
            },
            Self::Codes { codes, levels } => match levels.get(*codes.get(row)? as usize) {
                Some(level) => Cell::Text(level.trim()),
                None => Cell::Null,
            },
        })
    }
}

/// Columns, seen as a file.
pub(crate) struct ColumnsSource<'a> {
    columns: &'a Columns,
    name: &'a str,
}

impl RowSource for ColumnsSource<'_> {
    fn file(&self) -> &str {
        self.name
    }

    fn header(&self) -> &[String] {
        &self.columns.names
    }

    fn header_place(&self) -> Option<TablePlace> {
        None
    }

    fn rows(&self) -> Option<usize> {
        Some(self.columns.rows())
    }

    fn visit(self, wanted: &[usize], visit: &mut Visit<'_>) -> Result<(), ReadError> {
        let mut cells = Vec::with_capacity(wanted.len());
        for row in 0..self.columns.rows() {
            let place = TablePlace::Row(row as u64 + 1);
            let cell = |&index: &usize| {
                let short = || {
                    let fault = ReadFault::ColumnLength;
                    let error = ReadError::new(self.name, fault).at(place);
                    error.column(&self.columns.names[index])
                };
                self.columns.values[index].cell(row).ok_or_else(short)
            };
            cells.clear();
            for index in wanted {
                cells.push(cell(index)?);
            }
            visit(place, &cells)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::table::collect::{Collected, Purpose};
    use crate::table::{ReadLimits, TableReader};

    const SCHEMA: &str = r#"
format = 1
name = "memory"
[label]
column = "ill"
classes = ["no", "yes"]
positive = "yes"
[[column]]
name = "age"
kind = "numeric"
bounds = [0, 100]
missing = { value = 50 }
"#;

    fn columns(ages: Vec<f64>) -> Columns {
        let text = |text: &str| Some(text.to_owned());
        Columns::new().with("age", Values::Numbers(ages)).with(
            "ill",
            Values::Texts(vec![text("no"), text("yes"), text("no")]),
        )
    }

    #[test]
    fn columns_are_read_as_a_file_would_be() {
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let reader = TableReader::new(&schema);
        let read = reader.read_columns(&columns(vec![20.0, f64::NAN, 100.0]), "rows");
        let (data, report) = read.unwrap();
        assert_eq!(data.values(), [0.2, 0.5, 1.0]);
        assert_eq!(data.labels(), [0, 1, 0]);
        assert_eq!(report.columns[0].missing, 1);
    }

    #[test]
    fn codes_stand_for_their_levels() {
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let reader = TableReader::new(&schema);
        let levels = vec!["yes".to_owned(), "no".to_owned()];
        let coded = |codes: Vec<u32>| {
            Columns::new()
                .with("age", Values::Numbers(vec![20.0, 40.0, 100.0]))
                .with(
                    "ill",
                    Values::Codes {
                        codes,
                        levels: levels.clone(),
                    },
                )
        };
        let (data, _) = reader.read_columns(&coded(vec![1, 0, 1]), "rows").unwrap();
        assert_eq!(data.labels(), [0, 1, 0]);
        let missing = reader.read_columns(&coded(vec![1, 0, u32::MAX]), "rows");
        assert_eq!(missing.unwrap_err().fault(), &ReadFault::Missing);
    }

    #[test]
    fn room_is_made_once_and_for_no_more_than_the_rows() {
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let rows = 1000;
        let ages = (0..rows).map(|row| f64::from(row % 100)).collect();
        let codes = (0..rows).map(|row| row % 2).collect();
        let levels = vec!["no".to_owned(), "yes".to_owned()];
        let columns = Columns::new()
            .with("age", Values::Numbers(ages))
            .with("ill", Values::Codes { codes, levels });
        let mut table = Collected::new(
            &schema,
            ReadLimits::default(),
            Purpose::Training { person: None },
        );
        table.collect(columns.source("rows")).unwrap();
        assert_eq!(table.values.capacity(), rows as usize);
    }

    #[test]
    fn a_numeric_label_is_its_place_between_the_bounds() {
        let label = "classes = [\"no\", \"yes\"]\npositive = \"yes\"";
        let read = |rule: &str, numbers: Vec<f64>| {
            let numeric = format!("kind = \"numeric\"\nbounds = [-1, 3]\n{rule}");
            let schema = Schema::parse(&SCHEMA.replacen(label, &numeric, 1), "x").unwrap();
            let ages = vec![20.0; numbers.len()];
            let columns = Columns::new()
                .with("age", Values::Numbers(ages))
                .with("ill", Values::Numbers(numbers));
            TableReader::new(&schema).read_columns(&columns, "rows")
        };
        let one = crate::target::STEPS;
        let (data, report) = read("", vec![-1.0, 0.0, 3.0]).unwrap();
        assert!(data.is_numeric());
        assert_eq!(
            (data.labels(), report.labels_clipped),
            (&[0, one / 4, one][..], 0)
        );
        let outside = read("", vec![0.0, 4.0]).unwrap_err();
        assert!(matches!(outside.fault(), ReadFault::OutsideBounds { .. }));
        let (data, report) = read("outside = \"clip\"", vec![0.0, 4.0]).unwrap();
        assert_eq!(
            (data.labels(), report.labels_clipped),
            (&[one / 4, one][..], 1)
        );
        assert!(report.warnings()[0].contains("1 of 2 labels clipped"));
        let same = read("", vec![1.0, 1.0]).unwrap_err();
        assert_eq!(same.fault(), &ReadFault::OneNumber);
        let missing = read("missing = \"drop\"", vec![1.0, f64::NAN, 2.0]).unwrap();
        assert_eq!(missing.0.rows(), 2);
    }

    #[test]
    fn rows_to_predict_come_from_columns_as_well() {
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let columns = Columns::new().with("age", Values::Numbers(vec![20.0, 100.0]));
        let (rows, _) = TableReader::new(&schema)
            .read_rows_columns(&columns, "rows")
            .unwrap();
        assert_eq!(rows.values(), [0.2, 1.0]);
    }

    #[test]
    fn columns_of_other_lengths_are_refused() {
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let read = TableReader::new(&schema).read_columns(&columns(vec![20.0]), "rows");
        let error = read.unwrap_err();
        assert_eq!(error.fault(), &ReadFault::ColumnLength);
        assert_eq!(error.place(), Some(TablePlace::Row(2)));
    }
}
