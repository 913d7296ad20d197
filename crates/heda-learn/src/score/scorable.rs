//! Rows that can be scored, column by column.

use super::RankingError;
use crate::data::{Dataset, Feature};

/// One attribute of all rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// The same in every row.
    Constant,
    /// One column: a number or an ordinal code, scaled to [0, 1].
    Values {
        /// A value a row.
        values: Vec<f64>,
        /// Whether the values are codes of levels.
        coded: bool,
    },
    /// A one-hot attribute.
    Levels {
        /// The level of each row.
        codes: Vec<u32>,
        /// One more than the largest possible code.
        count: usize,
    },
}

/// Rows with at least two classes, turned into attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorable {
    attributes: Vec<Attribute>,
    labels: Vec<u32>,
    class_sizes: Vec<usize>,
}

impl Scorable {
    /// Checks a data set and lays it out by attribute.
    pub fn new(data: &Dataset) -> Result<Self, RankingError> {
        if data.rows() == 0 {
            return Err(RankingError::NoRows);
        }
        if data.features().is_empty() {
            return Err(RankingError::NoFeatures);
        }
        if data.is_numeric() {
            return Err(RankingError::Numeric);
        }
        let (labels, class_sizes) = occurring_classes(data);
        if class_sizes.len() < 2 {
            return Err(RankingError::OneClass {
                class: data.classes()[data.labels()[0] as usize].clone(),
                rows: data.rows(),
            });
        }
        let attributes = data
            .features()
            .iter()
            .map(|feature| attribute(data, feature))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            attributes,
            labels,
            class_sizes,
        })
    }

    /// Number of rows, at least two.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// The attributes in schema order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The class of each row, counted over classes that occur.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Rows of each class that occurs, at least two of them.
    pub fn class_sizes(&self) -> &[usize] {
        &self.class_sizes
    }

    /// The sum of a row's numbers within each class.
    pub(super) fn sum_by_class(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.class_sizes.len()];
        for (&value, &label) in values.iter().zip(&self.labels) {
            sums[label as usize] += value;
        }
        sums
    }
}

/// Labels renumbered over the classes that occur, and the size of each.
fn occurring_classes(data: &Dataset) -> (Vec<u32>, Vec<usize>) {
    let mut sizes = vec![0usize; data.classes().len()];
    data.labels().iter().for_each(|&l| sizes[l as usize] += 1);
    let mut next = 0;
    let renumbered: Vec<u32> = sizes
        .iter()
        .map(|&size| {
            let number = next;
            next += u32::from(size > 0);
            number
        })
        .collect();
    let labels = data
        .labels()
        .iter()
        .map(|&label| renumbered[label as usize])
        .collect();
    sizes.retain(|&size| size > 0);
    (labels, sizes)
}

fn attribute(data: &Dataset, feature: &Feature) -> Result<Attribute, RankingError> {
    if feature.columns.len() == 1 {
        let values: Vec<f64> = data.column(feature.columns.start).collect();
        let constant = values.iter().all(|value| *value == values[0]);
        return Ok(if constant {
            Attribute::Constant
        } else {
            let coded = feature.levels.is_some();
            Attribute::Values { values, coded }
        });
    }
    let codes = (0..data.rows())
        .map(|row| level_of(&data.row(row)[feature.columns.clone()]))
        .enumerate()
        .map(|(row, level)| {
            level.ok_or_else(|| RankingError::NotOneHot {
                feature: feature.name.clone(),
                row,
            })
        })
        .collect::<Result<Vec<u32>, _>>()?;
    Ok(if codes.iter().all(|code| *code == codes[0]) {
        Attribute::Constant
    } else {
        // A row without any level is a level of its own: some rules for missing values do that.
        let count = feature.columns.len() + 1;
        Attribute::Levels { codes, count }
    })
}

/// The level that is set; one past the last if none is; nothing if this is not one-hot.
fn level_of(columns: &[f64]) -> Option<u32> {
    let mut level = columns.len();
    for (column, &value) in columns.iter().enumerate() {
        if value == 1.0 && level == columns.len() {
            level = column;
        } else if value != 0.0 {
            return None;
        }
    }
    u32::try_from(level).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(values: Vec<f64>, labels: Vec<u32>, columns: usize) -> Dataset {
        let feature = Feature {
            name: "f".into(),
            columns: 0..columns,
            levels: (columns > 1).then_some(columns),
        };
        let classes = ["a", "b", "c"].map(String::from).to_vec();
        Dataset::new(vec![feature], values, labels, classes).unwrap()
    }

    #[test]
    fn counts_only_the_classes_that_occur() {
        let rows = Scorable::new(&data(vec![0.1, 0.2, 0.3], vec![2, 0, 2], 1)).unwrap();
        assert_eq!(rows.labels(), [1, 0, 1]);
        assert_eq!(rows.class_sizes(), [1, 2]);
        assert_eq!(rows.sum_by_class(&[1.0, 2.0, 4.0]), [2.0, 5.0]);
    }

    #[test]
    fn refuses_rows_that_cannot_be_scored() {
        let refused = |d| Scorable::new(&d).unwrap_err();
        assert_eq!(refused(data(vec![], vec![], 1)), RankingError::NoRows);
        let rows = data(vec![0.1, 0.2], vec![0, 1], 1);
        let (features, values) = (rows.features().to_vec(), rows.values().to_vec());
        let number = Dataset::new(features, values, vec![7, 9], Vec::new()).unwrap();
        assert_eq!(refused(number), RankingError::Numeric);
        let one = refused(data(vec![0.1, 0.2], vec![1, 1], 1));
        assert!(matches!(&one, RankingError::OneClass { class, rows: 2 } if class == "b"));
        assert!(one.to_string().contains("second class"));
        let none = Dataset::new(vec![], vec![], vec![0, 1], vec!["a".into(), "b".into()]).unwrap();
        assert_eq!(refused(none), RankingError::NoFeatures);
        let split = refused(data(vec![1.0, 0.0, 0.5, 0.5], vec![0, 1], 2));
        assert!(matches!(split, RankingError::NotOneHot { row: 1, .. }));
        let both = refused(data(vec![1.0, 0.0, 1.0, 1.0], vec![0, 1], 2));
        assert!(matches!(both, RankingError::NotOneHot { row: 1, .. }));
    }

    #[test]
    fn a_one_hot_row_without_a_level_is_a_level_of_its_own() {
        let rows = data(vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0], vec![0, 1, 1], 2);
        assert_eq!(
            Scorable::new(&rows).unwrap().attributes(),
            [Attribute::Levels {
                codes: vec![0, 1, 2],
                count: 3
            }]
        );
    }

    #[test]
    fn sees_constants_of_both_kinds() {
        let number = data(vec![0.5, 0.5], vec![0, 1], 1);
        let onehot = data(vec![0.0, 1.0, 0.0, 1.0], vec![0, 1], 2);
        for rows in [number, onehot] {
            let rows = Scorable::new(&rows).unwrap();
            assert_eq!(rows.attributes(), [Attribute::Constant]);
        }
    }
}
