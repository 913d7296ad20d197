//! What encoded rows hold. Public and the same for all parties: bounds of scores and widths of sums
//! follow from it.
//!
//! A row is two things. Its *values* make its score: numbers on the grid of 2^−fx, and for a category
//! one column a level, of which at most one is 1. Its *payload*, bias first, is what its derivative is
//! multiplied by in the sums. Usually that is 1 and the values again; with other units, weights or
//! centres it is another vector of whole numbers, and then the sums are of that vector.

use super::GridError;
use crate::data::Feature;
use crate::scaling::{Centre, Scaling};
use std::ops::Range;

/// The widest block of columns, and the largest value, that an encoding may name.
const MOST_COLUMNS: usize = 1 << 20;
const LARGEST_VALUE: i32 = 1 << 20;

/// How many deviations on both sides of the mean are taken for likely.
const LIKELY_DEVIATIONS: f64 = 3.0;

/// What the columns of one feature may hold, on the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Every column between the bounds, independently.
    Between {
        /// Least value.
        low: i32,
        /// Largest value.
        high: i32,
    },
    /// At most one column is 2^fx, the others are 0.
    OneHot,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number on the grid.
    Number,
    /// 0 or 1: needs no fraction bits.
    Indicator,
}

/// One column of the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PayloadColumn {
    /// No row has more, in absolute value.
    pub largest: u32,
    /// What a payload of 1 stands for.
    pub unit: f64,
}

/// What encoded rows hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    value_bits: u32,
    blocks: Vec<(Range<usize>, Span)>,
    width: usize,
    number_norm: Option<u32>,
    payload: Vec<PayloadColumn>,
}

impl Encoding {
    /// Blocks of the given widths and spans, one after the other; the payload is 1 and the values.
    pub fn new(
        value_bits: u32,
        blocks: impl IntoIterator<Item = (usize, Span)>,
    ) -> Result<Self, GridError> {
        let unit = 2f64.powi(-(value_bits as i32));
        let one = PayloadColumn {
            largest: 1,
            unit: 1.0,
        };
        let mut made = Self {
            value_bits,
            blocks: Vec::new(),
            width: 0,
            number_norm: None,
            payload: vec![one],
        };
        for (columns, span) in blocks {
            let end = made.width.saturating_add(columns);
            if end > MOST_COLUMNS {
                return Err(GridError::Columns(end));
            }
            let columns = made.width..end;
            let column = match span {
                Span::Between { low, high } => {
                    let fits = low < high && low >= -LARGEST_VALUE && high <= LARGEST_VALUE;
                    if !fits {
                        return Err(GridError::Bounds { columns, low, high });
                    }
                    let largest = low.unsigned_abs().max(high.unsigned_abs());
                    PayloadColumn { largest, unit }
                }
                Span::OneHot => one,
            };
            made.payload.extend(columns.clone().map(|_| column));
            made.blocks.push((columns, span));
            made.width = end;
        }
        Ok(made)
    }

    /// Features as a schema encodes them: [0, 1], and one-hot blocks.
    pub fn of_features(features: &[Feature], value_bits: u32) -> Result<Self, GridError> {
        let high = 1 << value_bits;
        let blocks = features.iter().map(|feature| match feature.columns.len() {
            1 => (1, Span::Between { low: 0, high }),
            width => (width, Span::OneHot),
        });
        Self::new(value_bits, blocks)
    }

    /// Rows whose numbers, taken together, have at most this Euclidean norm on the grid: scores are
    /// then bounded more closely than by the columns one by one.
    pub fn with_number_norm(self, norm: u32) -> Self {
        Self {
            number_norm: Some(norm),
            ..self
        }
    }

    /// What rows hold as a rule: of single numbers three deviations on both sides of the mean, as
    /// far as they go. All columns together far off in the same direction is what bounds would have
    /// to allow for and what rows do not do.
    pub fn likely(&self, scaling: &Scaling) -> Self {
        let mut likely = self.clone();
        for (columns, span) in &mut likely.blocks {
            let centre = scaling.centres().get(columns.start);
            if let (Span::Between { low, high }, 1, Some(centre)) =
                (&mut *span, columns.len(), centre)
            {
                let [least, most] = centre.likely_on_grid(self.value_bits);
                let narrow = (least.max(*low), most.min(*high));
                if narrow.0 < narrow.1 {
                    (*low, *high) = narrow;
                }
            }
        }
        likely
    }

    /// Another payload, of as many columns as it has.
    pub fn with_payload(self, payload: Vec<PayloadColumn>) -> Result<Self, GridError> {
        let sound = |column: &PayloadColumn| {
            (1..=LARGEST_VALUE as u32).contains(&column.largest) && column.unit.is_finite()
        };
        match !payload.is_empty() && payload.iter().all(sound) {
            true => Ok(Self { payload, ..self }),
            false => Err(GridError::Payload),
        }
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// fx: fraction bits of a value.
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }

    /// The payload's columns: bias first, unless it is one of its own.
    pub fn payload(&self) -> &[PayloadColumn] {
        &self.payload
    }

    /// Every column by its kind.
    pub fn kinds(&self) -> Vec<ColumnKind> {
        let blocks = self.blocks.iter();
        blocks
            .flat_map(|(columns, span)| {
                let kind = match span {
                    Span::Between { .. } => ColumnKind::Number,
                    Span::OneHot => ColumnKind::Indicator,
                };
                columns.clone().map(move |_| kind)
            })
            .collect()
    }

    /// Whether the values of a row are within.
    pub fn contains(&self, row: &[i32]) -> bool {
        row.len() == self.width
            && self.blocks.iter().all(|(columns, span)| {
                let values = &row[columns.clone()];
                match *span {
                    Span::Between { low, high } => values.iter().all(|v| (low..=high).contains(v)),
                    Span::OneHot => self.is_one_hot(values),
                }
            })
            && self.is_within_norm(row)
    }

    fn is_one_hot(&self, values: &[i32]) -> bool {
        let hot = values.iter().filter(|&&v| v == 1 << self.value_bits);
        let cold = values.iter().filter(|&&v| v == 0);
        let hot = hot.count();
        hot <= 1 && hot + cold.count() == values.len()
    }

    fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        let blocks = self.blocks.iter();
        let numbers = blocks.filter(|(_, span)| matches!(span, Span::Between { .. }));
        numbers.flat_map(|(columns, _)| columns.clone())
    }

    fn is_within_norm(&self, row: &[i32]) -> bool {
        let square = |column: usize| i128::from(row[column]).pow(2);
        self.number_norm
            .is_none_or(|norm| self.numbers().map(square).sum::<i128>() <= i128::from(norm).pow(2))
    }

    /// Least and largest Σ weight_j·value_j over all rows that are possible; exact by columns,
    /// rounded outwards by the norm.
    pub(super) fn range(&self, weights: &[i64]) -> (i128, i128) {
        let (mut numbers, mut levels) = ((0i128, 0i128), (0i128, 0i128));
        for (columns, span) in &self.blocks {
            let weights = weights[columns.clone()].iter().map(|w| i128::from(*w));
            match *span {
                Span::Between { low, high } => weights.for_each(|weight| {
                    let (a, b) = (weight * i128::from(low), weight * i128::from(high));
                    numbers = (numbers.0 + a.min(b), numbers.1 + a.max(b));
                }),
                Span::OneHot => {
                    let (least, most) =
                        weights.fold((0, 0), |(least, most), w| (w.min(least), w.max(most)));
                    levels.0 += least << self.value_bits;
                    levels.1 += most << self.value_bits;
                }
            }
        }
        if let Some(norm) = self.number_norm {
            let squares = self
                .numbers()
                .map(|column| (weights[column] as f64).powi(2));
            let reach = (squares.sum::<f64>().sqrt() * f64::from(norm) * (1.0 + 1e-9)).ceil();
            let reach = reach as i128;
            numbers = (numbers.0.max(-reach), numbers.1.min(reach));
        }
        (numbers.0 + levels.0, numbers.1 + levels.1)
    }
}

impl Centre {
    /// The ends of what is likely, rounded outwards.
    fn likely_on_grid(self, value_bits: u32) -> [i32; 2] {
        let one = 2f64.powi(value_bits as i32);
        let reach = LIKELY_DEVIATIONS * self.deviation;
        let ends = [
            ((self.mean - reach) * one).floor(),
            ((self.mean + reach) * one).ceil(),
        ];
        ends.map(|end| end as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding() -> Encoding {
        let number = Span::Between {
            low: -300,
            high: 400,
        };
        Encoding::new(8, [(2, number), (3, Span::OneHot)]).unwrap()
    }

    #[test]
    fn rows_outside_are_told_from_rows_within() {
        let plain = encoding();
        assert!(plain.contains(&[400, -300, 0, 256, 0]));
        assert!(plain.contains(&[0, 0, 0, 0, 0]));
        for outside in [
            [401, 0, 0, 0, 0],
            [0, -301, 0, 0, 0],
            [0, 0, 256, 256, 0],
            [0, 0, 1, 0, 0],
        ] {
            assert!(!plain.contains(&outside), "{outside:?}");
        }
        assert!(!plain.contains(&[0, 0, 0, 0]));
        let round = encoding().with_number_norm(500);
        assert!(round.contains(&[400, -300, 0, 0, 0]));
        assert!(!round.contains(&[400, 301, 0, 0, 0]));
    }

    #[test]
    fn the_range_of_scores_is_reached_by_columns_and_never_left_by_the_norm() {
        let weights = [3, -2, 7, -1, 0];
        let (low, high) = encoding().range(&weights);
        assert_eq!(low, 3 * -300 + -2 * 400 - 256);
        assert_eq!(high, 3 * 400 + -2 * -300 + 7 * 256);
        let (low, high) = encoding().with_number_norm(300).range(&weights);
        let reach = (13f64.sqrt() * 300.0).ceil() as i128;
        assert_eq!((low, high), (-reach - 256, reach + 7 * 256));
    }

    #[test]
    fn likely_rows_are_near_the_mean_and_within_the_bounds() {
        let number = Span::Between { low: 0, high: 1024 };
        let blocks = [(1, number.clone()), (1, number), (3, Span::OneHot)];
        let whole = Encoding::new(10, blocks).unwrap();
        let mut centres = vec![Centre::NONE; 5];
        centres[0] = Centre {
            mean: 0.25,
            deviation: 0.125,
        };
        let likely = whole.likely(&Scaling::new(centres));
        assert_eq!(likely.range(&[1, 0, 0, 0, 0]), (0, 640));
        assert_eq!(likely.range(&[0, -1, 5, 0, -2]), (-1024 - 2048, 5120));
        assert_eq!(whole.likely(&Scaling::none(5)), whole);
        let nowhere = Centre {
            mean: f64::NAN,
            deviation: 0.1,
        };
        assert_eq!(whole.likely(&Scaling::new(vec![nowhere; 5])), whole);
    }

    #[test]
    fn bounds_and_payloads_that_make_no_sense_are_refused() {
        let reversed = Span::Between { low: 5, high: 5 };
        assert!(Encoding::new(8, [(1, reversed)]).is_err());
        assert!(Encoding::new(8, [(1 << 21, Span::OneHot)]).is_err());
        let column = PayloadColumn {
            largest: 0,
            unit: 1.0,
        };
        assert!(encoding().with_payload(vec![column; 6]).is_err());
        let column = PayloadColumn {
            largest: 3,
            ..column
        };
        assert!(encoding().with_payload(Vec::new()).is_err());
        assert!(encoding().with_payload(vec![column; 6]).is_ok());
    }
}
