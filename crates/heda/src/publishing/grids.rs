//! From encoded rows to the grids that a release works on, and back.
//!
//! The schema decides, never the data: a number becomes a grid of 2^bits steps between its public
//! bounds, ordered levels become the grid of their positions, categories without order become
//! levels for randomised response, whatever their coding in the row is.

use heda_dp::column::ColumnSpec;
use heda_learn::data::{Dataset, RowsError};
use heda_learn::schema::{Bounds, Kind, LevelCoding, Schema};
use heda_learn::spelling::nearest_first;
use std::ops::Range;

/// Most bits of the grid of a number.
pub(super) const MOST_BITS: u32 = 20;

/// The attributes that are to be published, each on its public grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Publication {
    columns: Vec<Published>,
}

#[derive(Debug, Clone, PartialEq)]
struct Published {
    name: String,
    spec: ColumnSpec,
    onehot: bool,
    place: Range<usize>,
    meaning: Meaning,
}

/// What a grid value stands for in the original file.
#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    Number(Bounds),
    Level(Vec<String>),
}

/// A released column.
#[derive(Debug, Clone, PartialEq)]
pub enum PublishedValues {
    /// Numbers in original units.
    Numbers(Vec<f64>),
    /// Positions among the levels.
    Levels {
        /// A position a row.
        codes: Vec<u32>,
        /// What they stand for.
        levels: Vec<String>,
    },
}

/// Why attributes cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublicationError {
    /// None named.
    #[error("no feature to publish is named")]
    None,
    /// Not in the schema.
    #[error("the schema has no column {name:?} to publish; it has {columns}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The columns that there are, the nearest name first.
        columns: String,
    },
    /// Named twice.
    #[error("column {0:?} is named twice; publish it once")]
    Repeated(String),
    /// A grid finer or coarser than possible.
    #[error("a grid of {0} bits; choose 1 to {MOST_BITS}")]
    Bits(u32),
    /// Released columns that are not the ones of this publication.
    #[error("the release does not have {rows} rows of {columns} columns on their grids")]
    Foreign {
        /// Rows expected.
        rows: usize,
        /// Columns expected.
        columns: usize,
    },
    /// Rows that do not fit together: a defect of ours.
    #[error(transparent)]
    Dataset(#[from] RowsError),
}

impl Publication {
    /// Finds the named attributes; numbers get grids of 2^bits steps.
    pub(super) fn new(
        schema: &Schema,
        names: &[String],
        bits: u32,
    ) -> Result<Self, PublicationError> {
        if !(1..=MOST_BITS).contains(&bits) {
            return Err(PublicationError::Bits(bits));
        }
        if names.is_empty() {
            return Err(PublicationError::None);
        }
        let mut columns: Vec<Published> = Vec::with_capacity(names.len());
        for name in names {
            if columns.iter().any(|column| column.name == *name) {
                return Err(PublicationError::Repeated(name.clone()));
            }
            columns.push(Published::find(schema, name, bits)?);
        }
        Ok(Self { columns })
    }

    /// Names in the order of publication.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The public domain of every attribute.
    pub(super) fn specs(&self) -> Vec<ColumnSpec> {
        self.columns.iter().map(|column| column.spec).collect()
    }

    /// The grid values of encoded rows, column by column.
    pub(super) fn to_grid(&self, data: &Dataset) -> Vec<Vec<u32>> {
        let rows = || (0..data.rows()).map(|row| data.row(row));
        let columns = self.columns.iter();
        columns
            .map(|column| rows().map(|row| column.to_grid(row)).collect())
            .collect()
    }

    /// The rows with the published attributes replaced by released values.
    pub(super) fn replace(
        &self,
        data: &Dataset,
        grid: &[Vec<u32>],
    ) -> Result<Dataset, PublicationError> {
        self.check(data.rows(), grid)?;
        let mut values = data.values().to_vec();
        for (row, cells) in values.chunks_exact_mut(data.width()).enumerate() {
            for (column, released) in self.columns.iter().zip(grid) {
                column.encode(released[row], &mut cells[column.place.clone()]);
            }
        }
        let (labels, classes) = (data.labels().to_vec(), data.classes().to_vec());
        Ok(Dataset::new(
            data.features().to_vec(),
            values,
            labels,
            classes,
        )?)
    }

    /// A released value as it would stand in a file: a number in original units, or a level.
    ///
    /// # Panics
    /// If the column or the value is not of this publication.
    pub(super) fn cell(&self, column: usize, value: u32) -> String {
        let column = &self.columns[column];
        match &column.meaning {
            Meaning::Level(levels) => levels[value as usize].clone(),
            Meaning::Number(_) => column.number(value).to_string(),
        }
    }

    /// A released column as it would stand in a table.
    ///
    /// # Panics
    /// As [`cell`](Self::cell).
    pub(super) fn values(&self, column: usize, released: &[u32]) -> PublishedValues {
        match &self.columns[column].meaning {
            Meaning::Level(levels) => PublishedValues::Levels {
                codes: released.to_vec(),
                levels: levels.clone(),
            },
            Meaning::Number(_) => {
                let number = |&value: &u32| self.columns[column].number(value);
                PublishedValues::Numbers(released.iter().map(number).collect())
            }
        }
    }

    fn check(&self, rows: usize, grid: &[Vec<u32>]) -> Result<(), PublicationError> {
        let columns = self.columns.len();
        let fits = |(column, values): (&Published, &Vec<u32>)| {
            values.len() == rows && values.iter().all(|&x| x <= column.spec.largest())
        };
        match grid.len() == columns && self.columns.iter().zip(grid).all(fits) {
            true => Ok(()),
            false => Err(PublicationError::Foreign { rows, columns }),
        }
    }
}

impl Published {
    fn find(schema: &Schema, name: &str, bits: u32) -> Result<Self, PublicationError> {
        let mut columns = schema.columns().iter().zip(schema.features());
        let unknown = || PublicationError::Unknown {
            name: name.to_owned(),
            columns: nearest_first(name, schema.columns().iter().map(|column| column.name())),
        };
        let (column, feature) = columns
            .find(|(column, _)| column.name() == name)
            .ok_or_else(unknown)?;
        let (spec, onehot, meaning) = match column.kind() {
            Kind::Numeric { bounds, .. } => {
                let spec = ColumnSpec::Grid { steps: 1 << bits };
                (spec, false, Meaning::Number(*bounds))
            }
            Kind::Levels {
                ordered,
                levels,
                coding,
            } => {
                let count = levels.len() as u32;
                let spec = match ordered {
                    true => ColumnSpec::Grid { steps: count - 1 },
                    false => ColumnSpec::Levels { count },
                };
                (
                    spec,
                    *coding == LevelCoding::Onehot,
                    Meaning::Level(levels.clone()),
                )
            }
        };
        let (name, place) = (name.to_owned(), feature.columns);
        Ok(Self {
            name,
            spec,
            onehot,
            place,
            meaning,
        })
    }

    /// A value of a number's grid in original units; its position if it is a level's.
    fn number(&self, value: u32) -> f64 {
        match &self.meaning {
            Meaning::Level(_) => f64::from(value),
            Meaning::Number(bounds) => {
                let share = f64::from(value) / f64::from(self.spec.largest());
                (bounds.lower() + bounds.range() * share).min(bounds.upper())
            }
        }
    }

    fn to_grid(&self, row: &[f64]) -> u32 {
        let cells = &row[self.place.clone()];
        match self.onehot {
            true => cells.iter().position(|&x| x == 1.0).unwrap_or(0) as u32,
            false => (cells[0] * f64::from(self.spec.largest())).round() as u32,
        }
    }

    fn encode(&self, value: u32, cells: &mut [f64]) {
        if self.onehot {
            cells.fill(0.0);
            cells[value as usize] = 1.0;
        } else {
            cells[0] = f64::from(value) / f64::from(self.spec.largest());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_learn::bundled::{Bundle, Coding};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn every_bundled_attribute_goes_to_its_grid_and_back() {
        for bundle in Bundle::ALL {
            for coding in [Coding::Paper, Coding::Natural] {
                let schema = bundle.schema(coding);
                let (data, _) = bundle.table(coding).unwrap();
                let all: Vec<String> = schema.columns().iter().map(|c| c.name().into()).collect();
                let publication = Publication::new(&schema, &all, 20).unwrap();
                let grid = publication.to_grid(&data);
                let back = publication.replace(&data, &grid).unwrap();
                let far = |(x, y): (&f64, &f64)| (x - y).abs() > 0.5f64.powi(20);
                assert!(
                    !data.values().iter().zip(back.values()).any(far),
                    "{bundle}"
                );
                assert!(heda_dp::laplace::prepare(&publication.specs(), &grid).is_ok());
            }
        }
    }

    #[test]
    fn only_the_published_attributes_change() {
        let schema = Bundle::Car.schema(Coding::Natural);
        let (data, _) = Bundle::Car.table(Coding::Natural).unwrap();
        let publication = Publication::new(&schema, &names(&["doors"]), 10).unwrap();
        let zero = vec![vec![0; data.rows()]];
        let replaced = publication.replace(&data, &zero).unwrap();
        let place = schema
            .features()
            .iter()
            .find(|f| f.name == "doors")
            .unwrap()
            .columns
            .clone();
        for column in 0..data.width() {
            let same = data.column(column).eq(replaced.column(column));
            assert_eq!(same, !place.contains(&column), "column {column}");
        }
    }

    #[test]
    fn cells_are_written_in_original_units() {
        let schema = Bundle::Adult.schema(Coding::Paper);
        let publication = Publication::new(&schema, &names(&["age", "sex"]), 10).unwrap();
        let cells = [(0, 0), (0, 512), (0, 1024), (1, 1)].map(|(c, v)| publication.cell(c, v));
        assert_eq!(cells, ["17", "53.5", "90", "Male"]);
    }

    #[test]
    fn bad_publications_have_their_own_errors() {
        let schema = Bundle::Car.schema(Coding::Paper);
        let (data, _) = Bundle::Car.table(Coding::Paper).unwrap();
        let new = |n: &[&str], bits| Publication::new(&schema, &names(n), bits);
        assert_eq!(new(&[], 10), Err(PublicationError::None));
        let unknown = new(&["door"], 10).unwrap_err().to_string();
        assert!(
            unknown.contains("no column \"door\" to publish; it has `doors`, "),
            "{unknown}"
        );
        assert_eq!(
            new(&["doors", "doors"], 10),
            Err(PublicationError::Repeated("doors".into()))
        );
        assert_eq!(new(&["doors"], 0), Err(PublicationError::Bits(0)));
        assert_eq!(new(&["doors"], 21), Err(PublicationError::Bits(21)));
        let publication = new(&["doors"], 10).unwrap();
        let foreign = PublicationError::Foreign {
            rows: data.rows(),
            columns: 1,
        };
        for grid in [vec![], vec![vec![0]], vec![vec![9; data.rows()]]] {
            assert_eq!(publication.replace(&data, &grid), Err(foreign.clone()));
        }
    }
}
