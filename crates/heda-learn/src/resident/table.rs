//! Step 4: derivatives as whole numbers of b bits.

use super::Resolution;
use crate::loss::LossKind;

/// Bits by which the provider knows its mask more finely than a node.
const FINE_BITS: u32 = 4;

/// The derivative of a loss for every place that the data user may read, for both labels, as a code
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
#[derive(Debug, Clone, PartialEq)]
pub struct CodeTable {
    resolution: Resolution,
    span: f64,
    zeros: [u32; 2],
    /// By label; then by what of the mask lies below a node, then by node, unsigned.
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
                // Half of the codes on each side: two bits are needed.
                let half = (most / 2).max(1);
                let reach = loss.loss().steepest(resolution.bound());
                (reach * f64::from(most) / f64::from(half), [most - half; 2])
            }
        };
        let entry = |low: u32, node: u32, positive: bool| {
            let middle = middle(resolution, low, node);
            let code = slope(loss, resolution, middle, positive) / span * f64::from(most)
                + f64::from(zeros[usize::from(positive)]);
            (code.clamp(0.0, f64::from(most)) * 2f64.powi(32)).round() as u64
        };
        let entries = [false, true].map(|positive| {
            let lows = 0..1u32 << FINE_BITS;
            let nodes = 0..1u32 << resolution.index_bits();
            lows.flat_map(|low| nodes.clone().map(move |node| (low, node)))
                .map(|(low, node)| entry(low, node, positive))
                .collect()
        });
        Self {
            resolution,
            span,
            zeros,
            entries,
        }
    }

    /// The entries of places 0, 1, … for a row with this label and mask; a code is
    /// (entry + coin) >> 32.
    pub fn places(&self, positive: bool, mask: u32) -> impl Iterator<Item = &u64> {
        let k = self.resolution.index_bits();
        let nodes = 1usize << k;
        let fine = self.resolution.first_bits(mask, k + FINE_BITS) as usize;
        let (high, low) = (fine >> FINE_BITS, fine % (1 << FINE_BITS));
        let entries = &self.entries[usize::from(positive)][low << k..][..nodes];
        // Place v is node v − high: the entries from there to their end, then their beginning.
        let (before, after) = entries.split_at((nodes - high) % nodes);
        after.iter().chain(before)
    }

    /// The code that stands for derivative nought.
    pub fn zero(&self, positive: bool) -> u32 {
        self.zeros[usize::from(positive)]
    }

    /// The code at a place for a mask and a coin.
    pub fn code(&self, place: u32, positive: bool, mask: u32, coin: u32) -> u32 {
        let entry = self.places(positive, mask).nth(place as usize);
        entry.map_or(0, |entry| ((entry + u64::from(coin)) >> 32) as u32)
    }

    /// The derivative that one step of the code stands for.
    pub fn unit(&self) -> f64 {
        let most = (1u32 << self.resolution.code_bits()) - 1;
        self.span / f64::from(most)
    }
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
                        for n in 0..1u32 << 12 {
                            let mask = (n << (bits - 12)) + (1 << (bits - 13));
                            let place = resolution.top_bits(score.wrapping_add(mask));
                            let entry = table.places(positive, mask).nth(place as usize).unwrap();
                            sum += *entry as f64 / 2f64.powi(32) - f64::from(table.zero(positive));
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
