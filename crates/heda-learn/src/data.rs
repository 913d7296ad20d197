//! Encoded rows: what training, scoring and publishing work on.

use crate::scaling::Window;
use crate::target;
use std::fmt;
use std::ops::Range;

/// One attribute of the schema and the encoded columns that it became.
///
/// An attribute in ordinal coding or a number is one column; a one-hot attribute is one column a
/// level. Attributes, not columns, are scored, encrypted or published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The attribute's name in the schema.
    pub name: String,
    /// Its columns in the encoded row.
    pub columns: Range<usize>,
    /// How many levels it has; `None` for a number.
    pub levels: Option<usize>,
}

/// Rows encoded by a schema: every value in [0, 1], every label a class index or, where there are
/// no classes, a number as a count of [`target::STEPS`] between its bounds.
///
/// `Debug` shows its size: rows do not belong in logs.
#[derive(Clone, PartialEq)]
pub struct Dataset {
    features: Vec<Feature>,
    width: usize,
    values: Vec<f64>,
    labels: Vec<u32>,
    classes: Vec<String>,
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("rows", &self.labels.len())
            .field("width", &self.width)
            .field("classes", &self.classes.len())
            .finish_non_exhaustive()
    }
}

/// Why encoded rows cannot be put together or trained on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// Values, rows and columns do not multiply.
    #[error("{values} values do not fill {rows} rows of {width} columns")]
    Shape {
        /// How many values there are.
        values: usize,
        /// How many labels there are.
        rows: usize,
        /// How many columns the features span.
        width: usize,
    },
    /// The features do not cover the columns one after the other.
    #[error("feature {0} does not begin where the one before it ends")]
    Columns(String),
    /// A value outside [0, 1], or not a number.
    #[error("row {row}, column {column}: a value outside [0, 1]")]
    Value {
        /// Row, from 0.
        row: usize,
        /// Encoded column, from 0.
        column: usize,
    },
    /// A label that is no class.
    #[error("row {row}: label {label} of {classes} classes")]
    Label {
        /// Row, from 0.
        row: usize,
        /// The class index found.
        label: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// A numeric label beyond its bounds.
    #[error("row {row}: a label outside its bounds")]
    Target {
        /// Row, from 0.
        row: usize,
    },
    /// Rows of another schema.
    #[error("rows of {found} columns for an encoding of {expected}; use the job's schema")]
    Width {
        /// Columns of the encoding, or of the rows before.
        expected: usize,
        /// Columns of the rows.
        found: usize,
    },
    /// Not one pair of moments for each column that has none in the schema.
    #[error("{found} means and deviations for {expected} numbers without `typical`, within [0, 1]")]
    Moments {
        /// Columns.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// Not every row has a person.
    #[error("{named} rows name a person, and there are {rows}")]
    Persons {
        /// Rows.
        rows: usize,
        /// Names.
        named: usize,
    },
    /// A row that would count for more than was paid for.
    #[error("row {row} is longer than the noise allows for; cut it first")]
    TooLong {
        /// Which row, from 0.
        row: usize,
    },
}

impl Dataset {
    /// Puts encoded rows together (`values` row by row) and checks them. Without classes the
    /// labels are numbers.
    pub fn new(
        features: Vec<Feature>,
        values: Vec<f64>,
        labels: Vec<u32>,
        classes: Vec<String>,
    ) -> Result<Self, RowsError> {
        let mut width = 0;
        for feature in &features {
            if feature.columns.start != width || feature.columns.is_empty() {
                return Err(RowsError::Columns(feature.name.clone()));
            }
            width = feature.columns.end;
        }
        let rows = labels.len();
        if values.len() != rows * width {
            return Err(RowsError::Shape {
                values: values.len(),
                rows,
                width,
            });
        }
        if let Some(at) = values.iter().position(|v| !(0.0..=1.0).contains(v)) {
            return Err(RowsError::Value {
                row: at / width,
                column: at % width,
            });
        }
        check_labels(&labels, classes.len())?;
        Ok(Self {
            features,
            width,
            values,
            labels,
            classes,
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The attributes, in column order.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// One encoded row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..][..self.width]
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// One encoded column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        assert!(column < self.width, "column {column} of {}", self.width);
        self.values.iter().skip(column).step_by(self.width).copied()
    }

    /// Class index of every row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Whether the labels are numbers.
    pub fn is_numeric(&self) -> bool {
        self.classes.is_empty()
    }

    /// Names of the classes; the class index points here. None if the labels are numbers.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The same rows with every value at its place in the window of its column.
    pub fn in_windows(mut self, windows: &[Window]) -> Self {
        for (value, window) in self.values.iter_mut().zip(windows.iter().cycle()) {
            *value = window.apply(*value);
        }
        self
    }

    /// The given rows, in the given order.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let mut values = Vec::with_capacity(rows.len() * self.width);
        rows.iter()
            .for_each(|&row| values.extend_from_slice(self.row(row)));
        Self {
            features: self.features.clone(),
            width: self.width,
            values,
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
            classes: self.classes.clone(),
        }
    }

    /// The given attributes, in the given order.
    pub fn select_features(&self, chosen: &[usize]) -> Self {
        let mut features = Vec::with_capacity(chosen.len());
        let mut width = 0;
        for &index in chosen {
            let source = &self.features[index];
            let end = width + source.columns.len();
            features.push(Feature {
                columns: width..end,
                ..source.clone()
            });
            width = end;
        }
        let columns: Vec<usize> = chosen
            .iter()
            .flat_map(|&index| self.features[index].columns.clone())
            .collect();
        let mut values = Vec::with_capacity(self.rows() * width);
        for row in 0..self.rows() {
            let row = self.row(row);
            values.extend(columns.iter().map(|&column| row[column]));
        }
        Self {
            features,
            width,
            values,
            labels: self.labels.clone(),
            classes: self.classes.clone(),
        }
    }
}

fn check_labels(labels: &[u32], classes: usize) -> Result<(), RowsError> {
    let numeric = classes == 0;
    let beyond = |&label: &u32| match numeric {
        true => label > target::STEPS,
        false => label as usize >= classes,
    };
    match labels.iter().position(beyond) {
        None => Ok(()),
        Some(row) if numeric => Err(RowsError::Target { row }),
        Some(row) => Err(RowsError::Label {
            row,
            label: labels[row],
            classes,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(name: &str, columns: Range<usize>) -> Feature {
        Feature {
            name: name.into(),
            columns,
            levels: None,
        }
    }

    fn sample() -> Dataset {
        Dataset::new(
            vec![feature("a", 0..1), feature("b", 1..3)],
            vec![0.0, 0.1, 0.2, 1.0, 0.4, 0.5],
            vec![0, 1],
            vec!["no".into(), "yes".into()],
        )
        .unwrap()
    }

    #[test]
    fn debug_shows_no_row() {
        let feature = Feature {
            name: "age".into(),
            columns: 0..1,
            levels: None,
        };
        let classes = vec!["well".to_owned(), "ill".to_owned()];
        let data = Dataset::new(vec![feature], vec![0.123, 0.456], vec![0, 1], classes).unwrap();
        let shown = format!("{data:?}");
        assert_eq!(shown, "Dataset { rows: 2, width: 1, classes: 2, .. }");
    }

    #[test]
    fn selects_rows_and_features_in_the_order_given() {
        let data = sample();
        let swapped = data.select_features(&[1, 0]);
        assert_eq!(swapped.row(1), [0.4, 0.5, 1.0]);
        assert_eq!(swapped.features()[1].columns, 2..3);
        assert_eq!(data.select_rows(&[1]).row(0), data.row(1));
        assert_eq!(data.column(2).collect::<Vec<_>>(), [0.2, 0.5]);
    }

    #[test]
    fn refuses_what_does_not_fit_together() {
        let classes = || vec!["no".to_string(), "yes".to_string()];
        let one = || vec![feature("a", 0..1)];
        let shape = Dataset::new(one(), vec![0.0; 3], vec![0, 1], classes());
        assert!(matches!(
            shape,
            Err(RowsError::Shape {
                values: 3,
                rows: 2,
                width: 1
            })
        ));
        let value = Dataset::new(one(), vec![0.0, f64::NAN], vec![0, 1], classes());
        assert!(matches!(value, Err(RowsError::Value { row: 1, column: 0 })));
        let label = Dataset::new(one(), vec![0.0], vec![2], classes());
        assert!(matches!(
            label,
            Err(RowsError::Label {
                row: 0,
                label: 2,
                classes: 2
            })
        ));
        let far = Dataset::new(one(), vec![0.0], vec![target::STEPS + 1], Vec::new());
        assert!(matches!(far, Err(RowsError::Target { row: 0 })));
        let number = Dataset::new(one(), vec![0.0], vec![target::STEPS], Vec::new());
        assert!(number.unwrap().is_numeric());
        let gap = Dataset::new(vec![feature("a", 1..2)], vec![0.0], vec![0], classes());
        assert!(matches!(gap, Err(RowsError::Columns(_))));
    }
}
