//! Step 4: derivatives as whole numbers of b bits.

use super::Resolution;
use crate::loss::LossKind;
use crate::target::{REACH, RowLabel};

/// Bits by which the provider knows its mask more finely than a node.
const FINE_BITS: u32 = 4;

/// The derivative of a loss for every place that the data user may read, for every label, as a code
/// of b bits with 32 more bits for the coin. Public: it follows from loss and resolution.
///
/// A row's score z, its mask r and the place v that was read belong together as
/// v ≤ (z + r)/h < v + 1, with h the distance of two nodes. The provider knows r, so for it place v
/// stands for the scores from v·h − r to one node more, and the code there is that of their middle.
/// The middle differs from z by a number that is uniform in ±h/2, whatever z is.
///
/// The derivative is span·(code − zero)/(2^b − 1), where `zero` depends on the label. For the
/// logistic loss and the squared hinge a positive row's derivative lies in [−span, 0] and another
/// row's in [0, span]; for ridge both lie around nought.
///
/// With a numeric label y the derivative of ½(z − y)² is z − y: the provider, who knows y, shifts
/// what the place stands for. Held-out rows are added up the same way, by their squared or absolute
/// error.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeTable {
    resolution: Resolution,
    span: f64,
    zeros: [u32; 2],
    entries: Entries,
}

#[derive(Debug, Clone, PartialEq)]
enum Entries {
    /// By weight, then by label; then by what of the mask lies below a node, then by node, unsigned.
    Classes(Vec<[Vec<u64>; 2]>),
    /// The middle of the scores, in the same order; the row's label makes a code of it.
    Numbers { middles: Vec<f64>, form: Form },
}

/// What is added up over rows with a numeric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Derivative,
    Error(Measure),
}

/// How the error of a prediction counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Its square.
    Square,
    /// Its size.
    Absolute,
}

impl Measure {
    /// All of them, in the order in which held-out rows are added up.
    pub const ALL: [Self; 2] = [Self::Square, Self::Absolute];
}

impl CodeTable {
    /// The table of a loss.
    pub fn new(loss: LossKind, resolution: Resolution) -> Self {
        Self::weighted(loss, resolution, &[1.0])
    }

    /// The same for rows that count more or less than others: a label says which of the weights is
    /// its own.
    pub fn weighted(loss: LossKind, resolution: Resolution, weights: &[f64]) -> Self {
        let weights = if weights.is_empty() { &[1.0] } else { weights };
        let most = largest(resolution);
        let (span, zeros) = match loss {
            LossKind::Logistic => (1.0, [0, most]),
            LossKind::BoundedLogistic => (0.5, [0, most]),
            LossKind::SquaredHinge => (loss.loss().steepest(resolution.bound()), [0, most]),
            LossKind::Ridge => {
                let reach = loss.loss().steepest(resolution.bound());
                let (span, zero) = both_sides(reach, most);
                (span, [zero; 2])
            }
        };
        let span = span * weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let entry = |middle: f64, positive: bool, weight: f64| {
            let code = weight * slope(loss, resolution, middle, positive) / span * f64::from(most)
                + f64::from(zeros[usize::from(positive)]);
            fixed(code, most)
        };
        let middles = middles(resolution);
        let of_weight = |&weight: &f64| {
            [false, true].map(|positive| {
                let middles = middles.iter();
                let entries = middles.map(|middle| entry(*middle, positive, weight));
                entries.collect()
            })
        };
        Self {
            resolution,
            span,
            zeros,
            entries: Entries::Classes(weights.iter().map(of_weight).collect()),
        }
    }

    /// The table of least squares on a numeric label, in deviations: half of the codes on each side
    /// of nought.
    pub fn of_numbers(resolution: Resolution) -> Self {
        let (span, zero) = both_sides(REACH, largest(resolution));
        Self::numbers(resolution, span, zero, Form::Derivative)
    }

    /// The table that adds up errors of predictions, in deviations or their squares.
    pub fn of_errors(measure: Measure, resolution: Resolution) -> Self {
        let most = f64::from(largest(resolution));
        let (reach, room) = match measure {
            Measure::Square => (REACH * REACH, too_much(resolution)),
            Measure::Absolute => (REACH, 0.0),
        };
        let zero = (room / reach * most).ceil();
        let span = reach * most / (most - zero).max(1.0);
        Self::numbers(resolution, span, zero as u32, Form::Error(measure))
    }

    fn numbers(resolution: Resolution, span: f64, zero: u32, form: Form) -> Self {
        Self {
            resolution,
            span,
            zeros: [zero; 2],
            entries: Entries::Numbers {
                middles: middles(resolution),
                form,
            },
        }
    }

    /// The entries of places 0, 1, … for a row with this label and mask, in the place of what
    /// `into` held; a code is (entry + coin) >> 32.
    pub fn places(&self, label: impl Into<RowLabel>, mask: u32, into: &mut Vec<u64>) {
        let label = label.into();
        let (begin, first, nodes) = self.turned(mask);
        into.clear();
        match &self.entries {
            Entries::Classes(tables) => {
                let entries = &of_label(tables, label)[begin..][..nodes];
                into.extend_from_slice(&entries[first..]);
                into.extend_from_slice(&entries[..first]);
            }
            Entries::Numbers { middles, form } => {
                let middles = &middles[begin..][..nodes];
                let turned = middles[first..].iter().chain(&middles[..first]);
                into.extend(turned.map(|middle| self.of_number(*form, *middle, label)));
            }
        }
    }

    /// Where the nodes of a mask begin, the node of place 0, and how many there are. Place v is
    /// that many nodes further on, and the first node follows the last.
    fn turned(&self, mask: u32) -> (usize, usize, usize) {
        let k = self.resolution.index_bits();
        let nodes = 1usize << k;
        let fine = self.resolution.first_bits(mask, k + FINE_BITS) as usize;
        let (high, low) = (fine >> FINE_BITS, fine % (1 << FINE_BITS));
        (low << k, (nodes - high) % nodes, nodes)
    }

    fn of_number(&self, form: Form, middle: f64, label: RowLabel) -> u64 {
        let error = middle - label.deviations();
        let value = match form {
            Form::Derivative => error,
            Form::Error(Measure::Square) => error * error - too_much(self.resolution),
            Form::Error(Measure::Absolute) => error.abs(),
        };
        let code = value / self.unit() + f64::from(self.zeros[0]);
        fixed(code, largest(self.resolution))
    }

    /// The code that stands for nought.
    pub fn zero(&self, label: impl Into<RowLabel>) -> u32 {
        self.zeros[usize::from(label.into().is_positive())]
    }

    /// The code at a place for a mask and a coin.
    pub fn code(&self, place: u32, label: impl Into<RowLabel>, mask: u32, coin: u32) -> u32 {
        let label = label.into();
        let (begin, first, nodes) = self.turned(mask);
        let at = begin + (place as usize + first) % nodes;
        let entry = match &self.entries {
            Entries::Classes(tables) => of_label(tables, label)[at],
            Entries::Numbers { middles, form } => self.of_number(*form, middles[at], label),
        };
        ((entry + u64::from(coin)) >> 32) as u32
    }

    /// What one step of the code stands for.
    pub fn unit(&self) -> f64 {
        self.span / f64::from(largest(self.resolution))
    }
}

/// The entries for a label. A weight that the table does not have counts as its last one.
fn of_label(tables: &[[Vec<u64>; 2]], label: RowLabel) -> &[u64] {
    let weight = label.weight().min(tables.len() - 1);
    &tables[weight][usize::from(label.is_positive())]
}

/// The largest code.
fn largest(resolution: Resolution) -> u32 {
    (1u32 << resolution.code_bits()) - 1
}

/// Span and code of nought if values lie within ±`reach`: two bits are needed.
fn both_sides(reach: f64, most: u32) -> (f64, u32) {
    let half = (most / 2).max(1);
    (reach * f64::from(most) / f64::from(half), most - half)
}

/// A code with 32 more bits.
fn fixed(code: f64, most: u32) -> u64 {
    (code.clamp(0.0, f64::from(most)) * 2f64.powi(32)).round() as u64
}

/// What the mean square over the width of a node exceeds the square of its middle by.
fn too_much(resolution: Resolution) -> f64 {
    resolution.node_step().powi(2) / 12.0
}

/// The middles of all nodes, for all that may lie below a node.
fn middles(resolution: Resolution) -> Vec<f64> {
    let lows = 0..1u32 << FINE_BITS;
    let nodes = 0..1u32 << resolution.index_bits();
    lows.flat_map(|low| nodes.clone().map(move |node| middle(resolution, low, node)))
        .collect()
}

/// The middle of the scores that a node stands for, if `low` is what lies below a node of the mask.
fn middle(resolution: Resolution, low: u32, node: u32) -> f64 {
    let k = resolution.index_bits();
    let node = ((node << (32 - k)) as i32) >> (32 - k);
    let below = (f64::from(low) + 0.5) / f64::from(1u32 << FINE_BITS);
    (f64::from(node) + 0.5 - below) * resolution.node_step()
}

/// The derivative at a score, less what the mean over a node's width around it exceeds it by: then
/// the mean over masks is the derivative.
fn slope(loss: LossKind, resolution: Resolution, score: f64, positive: bool) -> f64 {
    let step = resolution.node_step();
    let at = |z: f64| {
        let z = z.clamp(-resolution.bound(), resolution.bound());
        loss.loss().derivative(z, positive)
    };
    at(score) - (at(score + step) - 2.0 * at(score) + at(score - step)) / 24.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mask in turn: the mean code stands for the derivative, and no code is further from it
    /// than a node and a step of the code.
    #[test]
    fn the_mean_over_masks_and_coins_is_the_derivative() {
        // The hinge has a kink, which the mean over half a step rounds off.
        for (loss, bias) in [
            (LossKind::Logistic, 2e-3),
            (LossKind::BoundedLogistic, 3e-2),
            (LossKind::SquaredHinge, 8e-2),
            (LossKind::Ridge, 2e-2),
        ] {
            // One bit has no code on one side of nought, which ridge needs.
            let least = if loss == LossKind::Ridge { 2 } else { 1 };
            for (k, b) in [(6, least), (6, 4), (8, 8)] {
                let resolution = Resolution::new(10, 2, k, b, 3).unwrap();
                let table = CodeTable::new(loss, resolution);
                let bits = resolution.score_bits();
                for positive in [false, true] {
                    for z in [-6.9, -3.0, -0.4, 0.0, 0.1, 1.0, 2.5, 6.0] {
                        let score = (z / resolution.score_unit()).round() as i64 as u32;
                        let (mut sum, mut count) = (0.0, 0.0);
                        let mut places = Vec::new();
                        for n in 0..1u32 << 12 {
                            let mask = (n << (bits - 12)) + (1 << (bits - 13));
                            let place = resolution.top_bits(score.wrapping_add(mask));
                            table.places(positive, mask, &mut places);
                            sum += places[place as usize] as f64 / 2f64.powi(32)
                                - f64::from(table.zero(positive));
                            count += 1.0;
                        }
                        let exact = loss.loss().derivative(z, positive);
                        let found = sum / count * table.unit();
                        assert!(
                            (found - exact).abs() < bias,
                            "{loss} k {k} b {b} z {z} {positive}: {found} {exact}"
                        );
                    }
                }
            }
        }
    }

    /// The mean over every mask of what a table stands for at a score.
    fn mean_at(table: &CodeTable, label: RowLabel, score: f64) -> f64 {
        let resolution = table.resolution;
        let bits = resolution.score_bits();
        let score = (score / resolution.score_unit()).round() as i64 as u32;
        let mut places = Vec::new();
        let mut sum = 0.0;
        for n in 0..1u32 << 12 {
            let mask = (n << (bits - 12)) + (1 << (bits - 13));
            let place = resolution.top_bits(score.wrapping_add(mask));
            table.places(label, mask, &mut places);
            sum += places[place as usize] as f64 / 2f64.powi(32) - f64::from(table.zero(label));
        }
        sum / 4096.0 * table.unit()
    }

    #[test]
    fn numeric_labels_shift_the_derivative_and_errors_are_measured() {
        let resolution = Resolution::new(10, 3, 8, 12, 4).unwrap();
        let derivative = CodeTable::of_numbers(resolution);
        let square = CodeTable::of_errors(Measure::Square, resolution);
        let absolute = CodeTable::of_errors(Measure::Absolute, resolution);
        for y in [-9.0, -0.7, 0.0, 0.3, 4.0] {
            let label = RowLabel::from(crate::target::Deviations::new(y));
            for z in [-6.0, -0.75, 0.0, 0.3, 2.0] {
                let close = |table: &CodeTable, exact: f64, bias: f64| {
                    let found = mean_at(table, label, z);
                    assert!(
                        (found - exact).abs() < bias,
                        "z {z}, y {y}: {found} {exact}"
                    );
                };
                let error: f64 = z - y;
                close(&derivative, error, 1e-2);
                close(&square, error * error, 5e-2 + error.abs() / 100.0);
                // The kink at nought is rounded off by a quarter of a node's width.
                close(&absolute, error.abs(), resolution.node_step() / 4.0 + 1e-2);
            }
        }
        // What lies beyond the reach counts as the reach.
        let far = RowLabel::from(crate::target::Deviations::new(40.0));
        assert!((mean_at(&derivative, far, 0.0) + REACH).abs() < 2.0 * derivative.unit());
        assert!((mean_at(&absolute, far, 0.0) - REACH).abs() < 1e-9);
    }

    #[test]
    fn weights_of_classes_stretch_the_derivative() {
        let resolution = Resolution::new(10, 2, 8, 8, 3).unwrap();
        let table = CodeTable::weighted(LossKind::Logistic, resolution, &[0.5, 3.0]);
        for z in [-3.0, -0.4, 0.0, 2.5] {
            for (positive, at, weight) in [(false, 0, 0.5), (true, 1, 3.0), (false, 1, 3.0)] {
                let exact = weight * LossKind::Logistic.loss().derivative(z, positive);
                let label = RowLabel::Class {
                    positive,
                    weight: at,
                };
                let found = mean_at(&table, label, z);
                assert!(
                    (found - exact).abs() < 2e-2,
                    "{z} {positive}: {found} {exact}"
                );
            }
        }
        assert!((table.unit() * 255.0 - 3.0).abs() < 1e-12);
    }

    #[test]
    fn codes_have_b_bits_and_one_bit_is_a_coin() {
        let resolution = Resolution::new(10, 2, 6, 1, 4).unwrap();
        let table = CodeTable::new(LossKind::Logistic, resolution);
        assert_eq!((table.zero(false), table.zero(true)), (0, 1));
        assert!((table.unit() - 1.0).abs() < 1e-12);
        for mask in [0, 1 << 13, 77_777, u32::MAX] {
            for place in 0..64 {
                let [low, high] = [0, u32::MAX].map(|coin| table.code(place, true, mask, coin));
                assert!(low <= high && high <= 1);
            }
        }
        // A score at the upper end is surely positive, one at the lower end surely not.
        assert_eq!(table.code(31, true, 0, 1 << 12), 1);
        assert_eq!(table.code(32, true, 0, u32::MAX - (1 << 12)), 0);
    }

    /// The largest scores that coefficients may give are read at their own end of the table, whatever
    /// the mask is: beyond them the rounding would carry to the other end.
    #[test]
    fn no_score_within_the_limit_is_read_at_the_other_end() {
        for k in [4, 6, 8] {
            let resolution = Resolution::new(10, 2, k, 4, 4).unwrap();
            let table = CodeTable::new(LossKind::Logistic, resolution);
            let middle = |place: u32, mask: u32| {
                let high = resolution.top_bits(mask);
                middle(resolution, 0, place.wrapping_sub(high) & ((1 << k) - 1))
            };
            for mask in (0..1u32 << resolution.score_bits()).step_by(97) {
                for score in [resolution.score_limit(), -resolution.score_limit()] {
                    let place = resolution.top_bits((score as u32).wrapping_add(mask));
                    assert_eq!(middle(place, mask) > 0.0, score > 0, "k {k}, mask {mask}");
                    let code = table.code(place, false, mask, 1 << 31);
                    assert_eq!(code, if score > 0 { 15 } else { 0 });
                }
            }
        }
    }
}
