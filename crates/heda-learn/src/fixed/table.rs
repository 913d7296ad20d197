//! Step 4: the derivative of the loss as a table over rounded scores.
//!
//! The holder of a row knows its label. If the loss separates and its derivative is bounded
//! (logistic), the table is indexed by the score alone and the holder subtracts 2^f·y itself: f
//! follows from public numbers. Otherwise ([`Layout::ByScoreAndLabel`]) the label is one more bit
//! of the index. That serves losses that do not separate (squared hinge), and also ridge
//! regression, which does: there f depends on the size of the coefficients, and telling it to the
//! holder would say something about the model.

use super::{Precision, RING, Scaled};
use crate::gradient::Gradient;
use crate::loss::{LabelTerm, LossKind};

/// Fractions finer than this gain nothing in f64.
const MOST_FRACTION_BITS: u32 = 40;
/// Coarser fractions would make the table, not the score, the limit of precision.
const LEAST_FRACTION_BITS: u32 = 6;

/// By what a table is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// k bits of the score.
    ByScore,
    /// The label above k bits of the score.
    ByScoreAndLabel,
}

impl Layout {
    /// The layout that a loss needs.
    pub fn of(loss: LossKind) -> Self {
        let loss = loss.loss();
        match loss.label_term() {
            LabelTerm::Separate { .. } if loss.is_bounded() => Self::ByScore,
            _ => Self::ByScoreAndLabel,
        }
    }

    /// Bits of an index into the table: k, or k + 1.
    pub fn index_bits(self, precision: Precision) -> u32 {
        match self {
            Self::ByScore => precision.index_bits(),
            Self::ByScoreAndLabel => precision.index_bits() + 1,
        }
    }

    /// The holder's choice in the oblivious table, from its masked top bits v and its label.
    pub fn choice(self, v: u32, positive: bool, precision: Precision) -> u32 {
        match self {
            Self::ByScore => v,
            Self::ByScoreAndLabel => u32::from(positive) << precision.index_bits() | v,
        }
    }

    /// What the holder subtracts from its entry for a positive row.
    pub fn label_term(self, fraction_bits: u32) -> i64 {
        match self {
            Self::ByScore => 1 << fraction_bits,
            Self::ByScoreAndLabel => 0,
        }
    }
}

/// Why a table cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TableError {
    /// The sum over the rows would leave the ring.
    #[error(
        "{rows} rows with values up to {largest} and derivatives up to {steepest} do not fit 48 \
         bits: use more batches, fewer bits for values, or a smaller learning rate"
    )]
    TooMuch {
        /// Rows of the batch, over all holders.
        rows: usize,
        /// Largest |value| on the grid.
        largest: i32,
        /// Largest |derivative|.
        steepest: f64,
    },
}

/// f: the most fraction bits with which Σ x_int·(T − 2^f·y) over `rows` rows stays in the ring.
///
/// An entry and its label term differ by at most 2^f·steepest + ½, so f is the largest with
/// rows·largest·(2^f·steepest + ½) < 2^47. For a bounded loss all of this is public.
pub fn fraction_bits(rows: usize, largest: i32, steepest: f64) -> Result<u32, TableError> {
    let terms = (rows.max(1) as f64) * f64::from(largest.max(1));
    let room = ((1u64 << (RING.bits() - 1)) - 1) as f64;
    (LEAST_FRACTION_BITS..=MOST_FRACTION_BITS)
        .rev()
        .find(|&f| terms * (2f64.powi(f as i32) * steepest + 0.5) <= room)
        .ok_or(TableError::TooMuch {
            rows,
            largest,
            steepest,
        })
}

/// The table of one gradient. The data user's secret until it is masked.
#[derive(Clone, PartialEq)]
pub struct LinkTable {
    precision: Precision,
    layout: Layout,
    fraction_bits: u32,
    /// In the order of t as an unsigned number; with labels, negative rows first.
    entries: Vec<i64>,
}

impl std::fmt::Debug for LinkTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "LinkTable({:?}, {} entries)",
            self.layout,
            self.entries.len()
        )
    }
}

impl LinkTable {
    /// The derivative of `loss`, for sums over `rows` rows with values up to `largest`.
    pub fn of_loss(
        loss: LossKind,
        scaled: &Scaled,
        precision: Precision,
        rows: usize,
        largest: i32,
    ) -> Result<Self, TableError> {
        let layout = Layout::of(loss);
        let loss = loss.loss();
        let steepest = loss.steepest(scaled.largest_score(precision));
        let fraction_bits = fraction_bits(rows, largest, steepest)?;
        Ok(match layout {
            Layout::ByScore => Self::tabulate(scaled, precision, fraction_bits, |z| {
                loss.derivative(z, false)
            }),
            Layout::ByScoreAndLabel => {
                let half = |label| {
                    Self::points(scaled, precision, fraction_bits, move |z| {
                        loss.derivative(z, label)
                    })
                };
                Self {
                    precision,
                    layout,
                    fraction_bits,
                    entries: half(false).chain(half(true)).collect(),
                }
            }
        })
    }

    /// Any other function of the score, indexed by the score alone.
    pub fn tabulate(
        scaled: &Scaled,
        precision: Precision,
        fraction_bits: u32,
        function: impl Fn(f64) -> f64,
    ) -> Self {
        Self {
            precision,
            layout: Layout::ByScore,
            fraction_bits,
            entries: Self::points(scaled, precision, fraction_bits, function).collect(),
        }
    }

    fn points(
        scaled: &Scaled,
        precision: Precision,
        fraction_bits: u32,
        function: impl Fn(f64) -> f64,
    ) -> impl Iterator<Item = i64> {
        let unit = 2f64.powi(fraction_bits as i32);
        (0..precision.table_len() as u32)
            .map(move |t| (unit * function(scaled.point(t, precision))).round() as i64)
    }

    /// The entry for table index t (unsigned, k bits) and a label.
    pub fn entry(&self, t: u32, positive: bool) -> i64 {
        self.entries[self.layout.choice(t, positive, self.precision) as usize]
    }

    /// The entries in the order in which the holder of a row with this mask chooses: number
    /// `choice` belongs to [`Layout::choice`] = `choice`.
    pub fn entries_for_mask(&self, mask: u64) -> impl ExactSizeIterator<Item = i64> + '_ {
        let top = self.precision.top_bits(mask);
        let len = self.precision.table_len() as u32;
        (0..self.entries.len() as u32).map(move |choice| {
            let t = self.precision.unmask_index(choice % len, top);
            self.entries[(choice / len * len + t) as usize]
        })
    }

    /// By what it is indexed.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// f.
    pub fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// Step 5, at the end: ring sums become a gradient in real units.
    pub fn gradient(&self, sums: &[u64], rows: usize) -> Gradient {
        let unit = 2f64.powi((self.fraction_bits + self.precision.value_bits()) as i32);
        Gradient {
            sum: sums.iter().map(|&s| RING.signed(s) as f64 / unit).collect(),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::{Domain, Span};
    use crate::loss::sigmoid;

    fn scaled(beta: &[f64], precision: Precision) -> Scaled {
        let unit = Span::Between {
            low: 0,
            high: precision.one(),
        };
        let domain = Domain::new(vec![(beta.len() - 1, unit)]).unwrap();
        Scaled::new(beta, &domain, precision).unwrap()
    }

    #[test]
    fn only_a_bounded_separable_loss_leaves_the_label_out() {
        assert_eq!(Layout::of(LossKind::Logistic), Layout::ByScore);
        assert_eq!(Layout::of(LossKind::SquaredHinge), Layout::ByScoreAndLabel);
        assert_eq!(Layout::of(LossKind::Ridge), Layout::ByScoreAndLabel);
    }

    #[test]
    fn the_fraction_is_the_largest_that_fits() {
        for (rows, largest) in [(1, 1024), (569, 1024), (32_561, 1024), (32_561, 3000)] {
            let f = fraction_bits(rows, largest, 1.0).unwrap();
            let sum = |f: u32| rows as i128 * i128::from(largest) * (1i128 << f);
            assert!(sum(f) < 1 << 47, "{rows} rows wrap");
            assert!(f == MOST_FRACTION_BITS || 2 * sum(f + 1) >= 1 << 47);
        }
        let refused = fraction_bits(usize::MAX, 1024, 1.0);
        assert!(matches!(refused, Err(TableError::TooMuch { .. })));
    }

    #[test]
    fn a_mask_turns_the_table_so_that_the_choice_finds_its_entry() {
        let precision = Precision::new(10, 6).unwrap();
        let scaled = scaled(&[0.3, 2.0, -1.0], precision);
        for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
            let table = LinkTable::of_loss(loss, &scaled, precision, 100, 1024).unwrap();
            for mask in [0, 1, RING.mask(), 0x1234_5678_9abc] {
                let turned: Vec<i64> = table.entries_for_mask(mask).collect();
                assert_eq!(turned.len(), 1 << table.layout().index_bits(precision));
                for v in 0..64 {
                    let t = precision.unmask_index(v, precision.top_bits(mask));
                    for y in [false, true] {
                        let choice = table.layout().choice(v, y, precision) as usize;
                        assert_eq!(turned[choice], table.entry(t, y));
                    }
                }
            }
        }
    }

    #[test]
    fn entries_are_the_derivative_at_the_table_points() {
        let precision = Precision::default();
        let scaled = scaled(&[-1.0, 4.0], precision);
        let table = LinkTable::of_loss(LossKind::Logistic, &scaled, precision, 10, 1024).unwrap();
        let unit = 2f64.powi(table.fraction_bits() as i32);
        for t in 0..256u32 {
            let z = scaled.point(t, precision);
            assert!((-3.1..=5.1).contains(&(z - 0.0)), "{z}");
            assert!((table.entry(t, false) as f64 / unit - sigmoid(z)).abs() <= 0.5 / unit);
        }
    }
}
