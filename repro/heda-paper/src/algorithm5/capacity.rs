//! Whether a job fits its keys, and with how much blinding. Nothing is encrypted before this
//! agrees.
//!
//! All lengths follow from public facts, so both parties compute the same [`Plan`]:
//!
//! | number | length in bits |
//! | --- | --- |
//! | product of factors of a row | between L = 4·ι·F and H = L + spread |
//! | the same under RSA, blinded | H + R, below the RSA modulus |
//! | e^{−z}·2^s | s + score, where s = L − drop + g and g = H − L + R + 30 |
//! | (1 + e^{−z})·2^s·ρ', under Paillier | s + score + 2 + R' |
//! | a slot of quotients | R' + 24 + column + log₂ rows + 2 |
//! | all slots of a ciphertext, masked for exchange 2 | slots + 81 |

use super::rows::Shape;
use crate::blocks::BlockError;
use crate::blocks::exchange_keys::masked_bits;
use crate::blocks::exchange_rsa_to_paillier::{PRECISION_BITS, SHORTEST_BLINDING, Terms};
use crate::blocks::power::{DIGITS, Exponents, PowerGrid};
use crate::paillier::KeySize;
use std::f64::consts::LOG2_E;

/// F: fraction bits of a factor.
const FRACTION_BITS: u32 = 24;
/// Bits after the point in a quotient, beyond its blinding.
const QUOTIENT_BITS: usize = 24;
/// By how many bits the error of unblinding stays below 1 in 1 + e^{−z}.
const UNBLINDING_BITS: usize = 30;
/// Less blinding than this is refused.
pub const LEAST_BLINDING: usize = 80;
/// More blinding than this costs time and hides little more.
const MOST_BLINDING: usize = 256;
/// The same for the denominator, whose blinding also widens every slot.
const MOST_DIVISION_BLINDING: usize = 160;
/// A batch of one row is the row.
const SMALLEST_BATCH: usize = 2;

/// What the coefficients may reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Of Σ|β_j| over encrypted columns, times at most 1.75 for the digits.
    pub spread: f64,
    /// Of |z|: |β_0| + Σ|β_j| over all columns.
    pub score: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            spread: 64.0,
            score: 64.0,
        }
    }
}

impl Limits {
    /// The share of the limits that these coefficients, bias first, reach if all columns are
    /// encrypted: up to 1 they fit.
    pub fn reached(&self, beta: &[f64]) -> f64 {
        let score: f64 = beta.iter().map(|b| b.abs()).sum();
        let hidden: Vec<f64> = beta.iter().skip(1).map(|b| -b).collect();
        let written = factors().and_then(|grid| Exponents::new(grid, &hidden));
        let spread = written.map_or(f64::INFINITY, |written| written.spread());
        (score / self.score).max(spread / self.spread)
    }
}

/// The factors of the power function, on columns from 0 to 1.
fn factors() -> Result<PowerGrid, BlockError> {
    PowerGrid::new(FRACTION_BITS, 0.0, 1.0)
}

/// Why a job does not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// No such key.
    #[error("keys of {bits} bits are not offered; choose 2048, 3072 or 4096")]
    KeySize {
        /// What was asked for.
        bits: usize,
    },
    /// A batch would show single rows.
    #[error(
        "a batch would have {rows} rows of a provider; at least 2 are needed: use fewer batches"
    )]
    Batch {
        /// Rows of the smallest batch.
        rows: usize,
    },
    /// Limits that are no positive numbers, or beyond the floats.
    #[error("the limits for coefficients must be between 1 and 300")]
    Limits,
    /// The power function leaves no room.
    #[error(
        "{iota} encrypted columns need {needed} bits and a key of {key_bits} bits has \
         {key_bits}: encrypt at most {most} columns{longer}"
    )]
    Encrypted {
        /// Encrypted columns.
        iota: usize,
        /// Bits that they need with the least blinding.
        needed: usize,
        /// Bits of the key.
        key_bits: usize,
        /// How many would fit.
        most: usize,
        /// The key that would do, in words.
        longer: String,
    },
    /// A Paillier plaintext has no room.
    #[error(
        "the {what} needs {needed} bits and a plaintext of a key of {key_bits} bits has \
         {available}: use a longer key, lower limits or smaller batches"
    )]
    Plaintext {
        /// Which number.
        what: &'static str,
        /// Its length.
        needed: usize,
        /// Bits of the key.
        key_bits: usize,
        /// Bits of a plaintext.
        available: usize,
    },
}

/// Every length of a job that fits. Both parties compute the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Bits of all keys.
    pub key_bits: usize,
    /// Factors of the power function.
    pub grid: PowerGrid,
    /// Lengths of exchange 1; its blinding is R.
    pub terms: Terms,
    /// g: fraction bits of the factor that undoes the blinding.
    pub unblinding_bits: usize,
    /// s: fraction bits of e^{−z} under Paillier.
    pub denominator_bits: usize,
    /// Bits of e^{−z} before the point.
    pub score_bits: usize,
    /// R': bits of the blinding of the denominator.
    pub division_blinding: usize,
    /// Fraction bits of a quotient.
    pub quotient_bits: usize,
    /// Bits of a slot.
    pub slot_bits: usize,
    /// Columns, bias included, in each packed ciphertext.
    pub chunks: Vec<usize>,
    /// Bits of the largest sum in a slot.
    pub sum_bits: usize,
    /// What the coefficients may reach.
    pub limits: Limits,
    iota: usize,
}

impl Plan {
    /// Plans a job, or says why it does not fit and what would help.
    pub fn new(shape: &Shape) -> Result<Self, CapacityError> {
        let key_bits = shape.key_bits;
        if KeySize::from_bits(key_bits).is_none() && !shape.insecure_test_keys {
            return Err(CapacityError::KeySize { bits: key_bits });
        }
        check_batches(shape)?;
        let limits = shape.limits;
        let sane = |limit: f64| (1.0..=300.0).contains(&limit);
        if !sane(limits.spread) || !sane(limits.score) {
            return Err(CapacityError::Limits);
        }
        let iota = shape.hidden().count();
        let packing = Packing::new(shape)?;
        let terms = exchange_terms(iota, key_bits, limits)?;
        let terms = fit_plaintexts(terms, key_bits, limits, packing.blinding)?;
        let grid = factors().map_err(|_| CapacityError::Limits)?;
        let score_bits = bits(limits.score);
        let unblinding_bits =
            terms.highest_bits - terms.lowest_bits + terms.blinding_bits + UNBLINDING_BITS;
        let denominator_bits = terms.lowest_bits + unblinding_bits - terms.dropped_bits();
        let quotient_bits = packing.blinding + QUOTIENT_BITS;
        Ok(Self {
            key_bits,
            grid,
            terms,
            unblinding_bits,
            denominator_bits,
            score_bits,
            division_blinding: packing.blinding,
            quotient_bits,
            slot_bits: packing.slot_bits,
            chunks: packing.chunks,
            sum_bits: quotient_bits + packing.growth,
            limits,
            iota,
        })
    }

    /// Bits of the largest blinded denominator.
    pub fn largest_denominator(&self) -> usize {
        self.denominator_bits + self.score_bits + 2 + self.division_blinding
    }

    /// Bits of the factor that undoes one blinding and brings in the other.
    pub fn weight_bits(&self) -> usize {
        self.unblinding_bits + self.score_bits + self.division_blinding + 2 - SHORTEST_BLINDING
    }

    /// Bits of the smallest blinded denominator: 2^s times the shortest blinding factor.
    pub fn smallest_denominator(&self) -> usize {
        self.denominator_bits + SHORTEST_BLINDING
    }

    /// Bits of all slots of the fullest ciphertext.
    pub fn packed_bits(&self) -> usize {
        self.slot_bits * self.chunks.iter().copied().max().unwrap_or(1)
    }

    /// How far σ can be off in a row, for coefficients on their grid: factors are right to
    /// 2^−25, each of four digits of each column; unblinding to 2^−29; quotients to 2^−24.
    pub fn rounding(&self) -> f64 {
        // σ moves by at most a quarter of a relative change of e^{−z}.
        let factors = self.iota as f64 * 2f64.powi(-25);
        factors + 2f64.powi(-29) + 2f64.powi(-24)
    }
}

fn check_batches(shape: &Shape) -> Result<(), CapacityError> {
    let rows = shape.smallest_batch();
    match rows >= SMALLEST_BATCH {
        true => Ok(()),
        false => Err(CapacityError::Batch { rows }),
    }
}

/// Bits of e to this power.
fn bits(nats: f64) -> usize {
    (nats * LOG2_E).ceil() as usize
}

fn exchange_terms(iota: usize, key_bits: usize, limits: Limits) -> Result<Terms, CapacityError> {
    let lowest_bits = DIGITS * iota * FRACTION_BITS as usize;
    let highest_bits = lowest_bits + bits(limits.spread) + 1;
    let least = SHORTEST_BLINDING + LEAST_BLINDING;
    let room = (key_bits - 1).saturating_sub(highest_bits);
    if room < least {
        let most = most_encrypted(key_bits, limits);
        return Err(CapacityError::Encrypted {
            iota,
            needed: highest_bits + least + 1,
            key_bits,
            most,
            longer: longer_key(iota, key_bits, limits),
        });
    }
    Ok(Terms {
        lowest_bits,
        highest_bits,
        blinding_bits: room.min(MOST_BLINDING),
    })
}

/// Shortens the blinding until what is made of it fits a Paillier plaintext, too.
fn fit_plaintexts(
    terms: Terms,
    key_bits: usize,
    limits: Limits,
    division_blinding: usize,
) -> Result<Terms, CapacityError> {
    let kept = terms.highest_bits - terms.dropped_bits();
    let denominator = kept + UNBLINDING_BITS + bits(limits.score) + 2 + division_blinding;
    let available = key_bits.saturating_sub(2);
    // The block multiplies the blinding by its inverse, so there it counts twice.
    let inverse = kept + PRECISION_BITS + 2 - SHORTEST_BLINDING;
    let room = available
        .saturating_sub(denominator)
        .min(available.saturating_sub(inverse) / 2);
    let least = SHORTEST_BLINDING + LEAST_BLINDING;
    if room < least {
        let needed = (denominator + least).max(inverse + 2 * least);
        check_plaintext("blinded denominator", needed, key_bits)?;
    }
    Ok(Terms {
        blinding_bits: terms.blinding_bits.min(room),
        ..terms
    })
}

/// The most encrypted columns that a key has room for.
fn most_encrypted(key_bits: usize, limits: Limits) -> usize {
    let fixed = bits(limits.spread) + 2 + SHORTEST_BLINDING + LEAST_BLINDING;
    key_bits.saturating_sub(fixed) / (DIGITS * FRACTION_BITS as usize)
}

fn longer_key(iota: usize, key_bits: usize, limits: Limits) -> String {
    let longer = KeySize::ALL.map(KeySize::bits).into_iter();
    let mut enough = longer.filter(|&k| k > key_bits && most_encrypted(k, limits) >= iota);
    match enough.next() {
        Some(k) => format!(", or use keys of {k} bits"),
        None => ", and publish, drop or use engine resident for the others".into(),
    }
}

/// How columns share ciphertexts.
struct Packing {
    chunks: Vec<usize>,
    slot_bits: usize,
    blinding: usize,
    /// Bits by which a sum over rows of column times quotient exceeds a quotient.
    growth: usize,
}

impl Packing {
    /// The fewest ciphertexts a row in which there is enough blinding.
    fn new(shape: &Shape) -> Result<Self, CapacityError> {
        let slots = shape.columns.len() + 1;
        let rows = shape.largest_batch().next_power_of_two().ilog2() as usize;
        let growth = shape.largest_cell_bits() + rows;
        let fixed = QUOTIENT_BITS + growth + 2;
        let room = shape.key_bits.saturating_sub(2 + masked_bits(0));
        for count in 1..=slots {
            let fullest = slots.div_ceil(count);
            let blinding = (room / fullest)
                .saturating_sub(fixed)
                .min(MOST_DIVISION_BLINDING);
            if blinding >= SHORTEST_BLINDING + LEAST_BLINDING / 2 {
                return Ok(Self {
                    chunks: chunks(slots, fullest),
                    slot_bits: fixed + blinding,
                    blinding,
                    growth,
                });
            }
        }
        let needed = fixed + SHORTEST_BLINDING + LEAST_BLINDING / 2;
        check_plaintext("sum over a batch", needed + masked_bits(0), shape.key_bits)?;
        Err(CapacityError::Limits)
    }
}

fn chunks(slots: usize, fullest: usize) -> Vec<usize> {
    let starts = (0..slots).step_by(fullest);
    starts.map(|start| fullest.min(slots - start)).collect()
}

fn check_plaintext(
    what: &'static str,
    needed: usize,
    key_bits: usize,
) -> Result<(), CapacityError> {
    let available = key_bits.saturating_sub(2);
    match needed <= available {
        true => Ok(()),
        false => Err(CapacityError::Plaintext {
            what,
            needed,
            key_bits,
            available,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Column;
    use super::*;

    fn shape(iota: usize, key_bits: usize) -> Shape {
        Shape {
            columns: vec![Column::Encrypted; iota],
            rows: 320,
            batches: 10,
            positives: vec![1],
            key_bits,
            limits: Limits::default(),
            insecure_test_keys: false,
        }
    }

    #[test]
    fn up_to_eighteen_columns_fit_2048_bits() {
        for iota in 0..=18 {
            let plan = Plan::new(&shape(iota, 2048)).unwrap();
            assert!(plan.terms.blinding_bits >= 200, "{iota}");
            assert!(plan.division_blinding >= SHORTEST_BLINDING + 40);
            assert!(plan.rounding() < 7e-7);
        }
        assert_eq!(Plan::new(&shape(14, 2048)).unwrap().chunks, [15]);
    }

    #[test]
    fn sixty_columns_are_refused_with_a_remedy() {
        let refused = Plan::new(&shape(60, 2048)).unwrap_err();
        assert!(matches!(
            refused,
            CapacityError::Encrypted {
                iota: 60,
                most: 19,
                ..
            }
        ));
        let words = refused.to_string();
        assert!(
            words.contains("at most 19 columns") && words.contains("engine resident"),
            "{words}"
        );
        let words = Plan::new(&shape(25, 2048)).unwrap_err().to_string();
        assert!(words.contains("or use keys of 3072 bits"), "{words}");
        assert!(Plan::new(&shape(25, 3072)).is_ok());
        assert!(Plan::new(&shape(19, 2048)).is_ok());
        assert!(Plan::new(&shape(20, 2048)).is_err());
    }

    #[test]
    fn single_rows_odd_keys_and_odd_limits_are_refused() {
        let single = Shape {
            batches: 161,
            ..shape(3, 2048)
        };
        assert_eq!(Plan::new(&single), Err(CapacityError::Batch { rows: 1 }));
        assert_eq!(
            Plan::new(&shape(3, 1024)),
            Err(CapacityError::KeySize { bits: 1024 })
        );
        for limit in [0.0, -1.0, f64::NAN, 1e9] {
            let limits = Limits {
                spread: limit,
                ..Limits::default()
            };
            let odd = Shape {
                limits,
                ..shape(3, 2048)
            };
            assert_eq!(Plan::new(&odd), Err(CapacityError::Limits));
        }
        let tiny = Shape {
            insecure_test_keys: true,
            ..shape(0, 256)
        };
        assert!(matches!(
            Plan::new(&tiny),
            Err(CapacityError::Plaintext { .. })
        ));
    }

    #[test]
    fn every_length_of_a_plan_fits_its_key() {
        for key_bits in [2048, 3072, 4096] {
            for iota in 0..40 {
                let Ok(plan) = Plan::new(&shape(iota, key_bits)) else {
                    continue;
                };
                let terms = plan.terms;
                assert!(terms.highest_bits + terms.blinding_bits < key_bits);
                assert!(plan.largest_denominator() <= key_bits - 2);
                assert!(terms.blinding_bits >= SHORTEST_BLINDING + LEAST_BLINDING);
                assert!(masked_bits(plan.packed_bits()) <= key_bits - 2);
                assert_eq!(plan.chunks.iter().sum::<usize>(), iota + 1);
                assert!(plan.sum_bits < plan.slot_bits);
            }
        }
    }
}
