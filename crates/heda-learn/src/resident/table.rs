//! Step 4: derivatives as whole numbers of b bits.

use super::Resolution;
use crate::loss::LossKind;

/// The derivative of a loss at every node of the table, for both labels, as a code of b bits with
/// 32 more bits for the coin. Public: it follows from loss and resolution.
///
/// The derivative is span·(code − zero)/(2^b − 1), where `zero` depends on the label. For the
/// logistic loss and the squared hinge a positive row's derivative lies in [−span, 0] and another
/// row's in [0, span]; for ridge both lie around nought.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeTable {
    resolution: Resolution,
    span: f64,
    zeros: [u32; 2],
    /// By label, then by node, unsigned as the index arrives.
    entries: [Vec<u64>; 2],
}

impl CodeTable {
    /// The table of a loss.
    pub fn new(loss: LossKind, resolution: Resolution) -> Self {
        let most = (1u32 << resolution.code_bits()) - 1;
        let (span, zeros) = match loss {
            LossKind::Logistic => (1.0, [0, most]),
            LossKind::BoundedLogistic => (0.5, [0, most]),
            LossKind::SquaredHinge => (loss.loss().steepest(resolution.bound()), [0, most]),
            LossKind::Ridge => {
                // Half of the codes on each side; with one bit the upper side has none.
                let half = (most / 2).max(1);
                let reach = loss.loss().steepest(resolution.bound());
                (reach * f64::from(most) / f64::from(half), [most - half; 2])
            }
        };
        let entry = |index: u32, positive: bool| {
            let code = slope(loss, resolution, index, positive) / span * f64::from(most)
                + f64::from(zeros[usize::from(positive)]);
            (code.clamp(0.0, f64::from(most)) * 2f64.powi(32)).round() as u64
        };
        let entries = [false, true].map(|positive| {
            (0..1u32 << resolution.index_bits())
                .map(|index| entry(index, positive))
                .collect()
        });
        Self {
            resolution,
            span,
            zeros,
            entries,
        }
    }

    /// All nodes for one label; a code is (entry + coin) >> 32.
    pub fn entries(&self, positive: bool) -> &[u64] {
        &self.entries[usize::from(positive)]
    }

    /// The code that stands for derivative nought.
    pub fn zero(&self, positive: bool) -> u32 {
        self.zeros[usize::from(positive)]
    }

    /// The code at a node for a coin.
    pub fn code(&self, index: u32, positive: bool, coin: u32) -> u32 {
        ((self.entries(positive)[index as usize] + u64::from(coin)) >> 32) as u32
    }

    /// The derivative that one step of the code stands for.
    pub fn unit(&self) -> f64 {
        let most = (1u32 << self.resolution.code_bits()) - 1;
        self.span / f64::from(most)
    }
}

/// The derivative at a node, less the mean by which the line between two nodes exceeds the curve:
/// then rounding between nodes is right in the mean over scores.
fn slope(loss: LossKind, resolution: Resolution, index: u32, positive: bool) -> f64 {
    let k = resolution.index_bits();
    let node = ((index << (32 - k)) as i32) >> (32 - k);
    let step = resolution.node_step();
    let at = |node: i32| {
        let z = (f64::from(node) * step).clamp(-resolution.bound(), resolution.bound());
        loss.loss().derivative(z, positive)
    };
    at(node) - (at(node + 1) - 2.0 * at(node) + at(node - 1)) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_for_the_derivative_within_a_step_of_the_table() {
        for loss in [
            LossKind::Logistic,
            LossKind::BoundedLogistic,
            LossKind::SquaredHinge,
            LossKind::Ridge,
        ] {
            for (k, b) in [(6, 2), (8, 8), (8, 12)] {
                let resolution = Resolution::new(10, 2, k, b, 3).unwrap();
                let table = CodeTable::new(loss, resolution);
                for index in 0..1u32 << k {
                    for positive in [false, true] {
                        let entry = table.entries(positive)[index as usize] as f64 / 2f64.powi(32);
                        let read = (entry - f64::from(table.zero(positive))) * table.unit();
                        let exact = slope(loss, resolution, index, positive);
                        // At the ends the correction would leave the codes and is cut off.
                        assert!((read - exact).abs() <= 1e-6 + 0.2 * resolution.node_step());
                        assert!(table.code(index, positive, u32::MAX) < 1 << b);
                    }
                }
            }
        }
    }

    #[test]
    fn one_bit_is_a_coin_with_the_right_mean() {
        let resolution = Resolution::new(10, 2, 6, 1, 4).unwrap();
        let table = CodeTable::new(LossKind::Logistic, resolution);
        assert_eq!((table.zero(false), table.zero(true)), (0, 1));
        assert!((table.unit() - 1.0).abs() < 1e-12);
        let half = 1u32 << 31;
        assert_eq!(table.code(0, false, half - 1), 0);
        assert_eq!(table.code(0, false, half), 1);
        assert_eq!(table.code(31, true, 1 << 12), 1);
        assert_eq!(table.code(32, true, u32::MAX - (1 << 12)), 0);
    }
}
