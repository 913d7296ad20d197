//! Columns in memory as a table: what a program has that never wrote a file.

use super::error::{Place, ReadError, ReadFault};
use super::source::{Cell, RowSource, Visit};

/// The values of one column in memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers; NaN is a missing one.
    Numbers(Vec<f64>),
    /// Texts; `None` is a missing one.
    Texts(Vec<Option<String>>),
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

    fn rows(&self) -> usize {
        self.values.iter().map(Values::len).max().unwrap_or(0)
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
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

    fn header_place(&self) -> Option<Place> {
        None
    }

    fn visit(self, wanted: &[usize], visit: &mut Visit<'_>) -> Result<(), ReadError> {
        for row in 0..self.columns.rows() {
            let place = Place::Row(row as u64 + 1);
            let cell = |&index: &usize| {
                let short = || {
                    let fault = ReadFault::ColumnLength;
                    let error = ReadError::new(self.name, fault).at(place);
                    error.column(&self.columns.names[index])
                };
                self.columns.values[index].cell(row).ok_or_else(short)
            };
            let cells = wanted.iter().map(cell).collect::<Result<Vec<_>, _>>()?;
            visit(place, &cells)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::table::TableReader;

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
    fn columns_of_other_lengths_are_refused() {
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let read = TableReader::new(&schema).read_columns(&columns(vec![20.0]), "rows");
        let error = read.unwrap_err();
        assert_eq!(error.fault(), &ReadFault::ColumnLength);
        assert_eq!(error.place(), Some(Place::Row(2)));
    }
}
