//! Secure power function, Protocol 5 of the paper: Bob obtains ‖e^{a·b}‖ under Alice's RSA key.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 1 | key, a | b | ‖e^{Σ aᵢ·bᵢ}·2^s/e^o‖, s public, o known to Bob |
//!
//! The printed loop multiplies ‖e^a‖ with itself b times. It has no negative and no broken b, and
//! its scale grows with b until no key can hold it. Here b is rounded to a multiple of 1/128 and
//! written in four signed digits of base 8 ([`Exponents`]). For every a Alice sends e^{a·d·w} for
//! each digit d and weight w, at most 32 numbers, and Bob multiplies one a digit.
//!
//! A factor is rounded to F fraction bits. So that none loses precision by being small, each is
//! divided by the smallest value that it has on the agreed interval of a, which for all factors
//! together is e^o; Bob knows o. For a digit 0 Bob multiplies by 2^F, so that the scale is always
//! s = 4·n·F. Every factor is right to a relative 2^−(F+1), so the result to about 4n·2^−(F+1).
//!
//! Who learns what: Alice nothing. **Bob may learn a**: textbook RSA is deterministic and a has
//! few possible values, so he encrypts them all and compares.
//!
//! Messages, in wire order (steps P1 and P2 of `docs/building-blocks.md`): Alice sends the factors
//! of every a.
//!
//! ```
//! use heda_blocks::channel::Channel;
//! use heda_paper::blocks::power::{Alice, Bob, PowerGrid};
//! # use heda_crypto::random::Randomness;
//! # use heda_paper::{hazmat_rsa::RsaPrivateKey, integer::Integer};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let key = RsaPrivateKey::generate_insecure_for_tests(512, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let grid = PowerGrid::new(24, 0.0, 1.0)?;
//! Alice::new(key.public(), grid).vector(&mut to_bob, &[0.5, 1.0])?;
//! let power = Bob::new(key.public(), grid).vector(&mut to_alice, &[-3.0, 0.25])?;
//! let number = Integer::from(key.decrypt(&power.ciphertext)?);
//! assert!((power.value(&number) - (-1.25f64).exp()).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```

use crate::blocks::error::BlockError;
use crate::blocks::message::{check_rsa, check_same_length, receive_rsa, send_rsa, tag};
use crate::hazmat_rsa::{RsaCiphertext, RsaPublicKey};
use crate::integer::{Integer, Natural};
use heda_blocks::channel::Channel;
use std::f64::consts::LOG2_E;
use std::fmt;
use std::slice::from_ref;
use zeroize::Zeroize;

/// Digits of an exponent.
pub const DIGITS: usize = 4;
/// Factors of one base: eight digits other than 0 at each place.
pub const FACTORS: usize = 8 * DIGITS;
/// Fraction bits of an exponent.
const UNIT_BITS: i32 = 7;
const RADIX: i64 = 8;
/// The largest number of four digits that are at most 4: 4·(1 + 8 + 64 + 512).
const LARGEST_UNITS: i64 = 2340;
/// The largest digit times the largest weight, 4·512/128.
const LARGEST_STEP: f64 = 16.0;

/// The largest exponent that four digits can write.
pub const LARGEST_EXPONENT: f64 = LARGEST_UNITS as f64 / 128.0;

/// How factors are rounded, and between which ends the bases lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerGrid {
    fraction_bits: u32,
    low: f64,
    high: f64,
}

impl PowerGrid {
    /// Refuses a grid whose largest factor is longer than a machine word.
    pub fn new(fraction_bits: u32, low: f64, high: f64) -> Result<Self, BlockError> {
        let width = high - low;
        let longest = f64::from(fraction_bits) + LARGEST_STEP * width * LOG2_E;
        match width >= 0.0 && longest <= 62.0 && fraction_bits >= 8 {
            true => Ok(Self {
                fraction_bits,
                low,
                high,
            }),
            false => Err(BlockError::Grid {
                fraction_bits,
                low,
                high,
            }),
        }
    }

    /// F.
    pub fn fraction_bits(self) -> usize {
        self.fraction_bits as usize
    }

    /// All factors of one base, in the order that [`Exponents::chosen`] counts in.
    pub fn factors(self, base: f64) -> Result<Vec<Natural>, BlockError> {
        let (low, high) = (self.low, self.high);
        if !(low..=high).contains(&base) {
            let value = base;
            return Err(BlockError::Base { value, low, high });
        }
        let scale = f64::from(self.fraction_bits).exp2();
        let factor = |(place, digit): (usize, i8)| {
            let step = step(place, digit);
            Natural::from((scale * (step * base - self.smallest(step)).exp()).round() as u64)
        };
        Ok(places_and_digits().map(factor).collect())
    }

    /// The smallest step·a on the interval.
    fn smallest(self, step: f64) -> f64 {
        (step * self.low).min(step * self.high)
    }

    fn largest(self, step: f64) -> f64 {
        (step * self.low).max(step * self.high)
    }
}

/// What a digit at a place adds to an exponent.
fn step(place: usize, digit: i8) -> f64 {
    f64::from(digit) * 2f64.powi(3 * place as i32 - UNIT_BITS)
}

fn places_and_digits() -> impl Iterator<Item = (usize, i8)> {
    let digits = |place| {
        (-4..=4)
            .filter(|d| *d != 0)
            .map(move |digit| (place, digit))
    };
    (0..DIGITS).flat_map(digits)
}

/// Exponents in signed digits. Erased when dropped; `Debug` shows their number only.
pub struct Exponents {
    digits: Vec<[i8; DIGITS]>,
    offset: f64,
    spread: f64,
}

impl Exponents {
    /// Rounds every exponent to a multiple of 1/128 and writes it in digits.
    pub fn new(grid: PowerGrid, exponents: &[f64]) -> Result<Self, BlockError> {
        let digits = exponents.iter().map(|&b| signed_digits(b));
        let digits = digits.collect::<Result<Vec<_>, _>>()?;
        let (mut offset, mut spread) = (0.0, 0.0);
        for digits in &digits {
            let steps = || (0..DIGITS).map(|place| step(place, digits[place]));
            let own_offset: f64 = steps().map(|step| grid.smallest(step)).sum();
            offset += own_offset;
            spread += grid.largest(steps().sum()) - own_offset;
        }
        Ok(Self {
            digits,
            offset,
            spread,
        })
    }

    /// The exponent as it is computed with, rounded.
    pub fn rounded(exponent: f64) -> f64 {
        (exponent * 2f64.powi(UNIT_BITS)).round() * 2f64.powi(-UNIT_BITS)
    }

    /// Which of a base's factors exponent `index` needs; one for each digit but 0.
    pub fn chosen(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let digits = self.digits[index].iter().enumerate();
        digits
            .filter(|(_, digit)| **digit != 0)
            .map(|(place, digit)| {
                let skip_zero = i8::from(*digit > 0);
                8 * place + (digit + 4 - skip_zero) as usize
            })
    }

    /// How many digits are 0, over all exponents.
    pub fn missing(&self) -> usize {
        self.digits
            .iter()
            .flatten()
            .filter(|digit| **digit == 0)
            .count()
    }

    /// o: the product of the factors is e^{a·b − o}.
    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// The product of the factors is between 1 and e to this power.
    pub fn spread(&self) -> f64 {
        self.spread
    }
}

impl Drop for Exponents {
    fn drop(&mut self) {
        self.digits.zeroize();
        self.offset.zeroize();
        self.spread.zeroize();
    }
}

impl std::fmt::Debug for Exponents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exponents({})", self.digits.len())
    }
}

/// Digits from −3 to 4, lowest first, for a positive exponent; turned around for a negative one.
fn signed_digits(exponent: f64) -> Result<[i8; DIGITS], BlockError> {
    let units = Exponents::rounded(exponent) * 2f64.powi(UNIT_BITS);
    if units.is_nan() || units.abs() > LARGEST_UNITS as f64 {
        let (value, largest) = (exponent, LARGEST_EXPONENT);
        return Err(BlockError::Exponent { value, largest });
    }
    let mut rest = units.abs() as i64;
    let sign = if units < 0.0 { -1 } else { 1 };
    let mut digits = [0; DIGITS];
    for digit in &mut digits {
        let lowest = rest.rem_euclid(RADIX);
        let signed = if lowest > 4 { lowest - RADIX } else { lowest };
        rest = (rest - signed) / RADIX;
        *digit = sign * signed as i8;
    }
    Ok(digits)
}

/// Holds the bases. Encryption needs only the public half of her key.
#[derive(Debug)]
pub struct Alice<'k> {
    key: &'k RsaPublicKey,
    grid: PowerGrid,
}

impl<'k> Alice<'k> {
    /// Bases on this grid.
    pub fn new(key: &'k RsaPublicKey, grid: PowerGrid) -> Self {
        Self { key, grid }
    }

    /// Step P1.
    pub fn vector(&self, channel: &mut Channel, bases: &[f64]) -> Result<(), BlockError> {
        let factors = bases.iter().map(|&a| self.grid.factors(a));
        let factors = factors.collect::<Result<Vec<_>, _>>()?.concat();
        let encrypted = self.key.encrypt_batch(&factors)?;
        send_rsa(channel, tag::POWER, self.key, &encrypted)
    }

    /// Step P1 for one base.
    pub fn scalar(&self, channel: &mut Channel, base: f64) -> Result<(), BlockError> {
        self.vector(channel, from_ref(&base))
    }
}

/// Holds the exponents and gets the power.
#[derive(Debug)]
pub struct Bob<'k> {
    key: &'k RsaPublicKey,
    grid: PowerGrid,
}

impl<'k> Bob<'k> {
    /// Bases on this grid.
    pub fn new(key: &'k RsaPublicKey, grid: PowerGrid) -> Self {
        Self { key, grid }
    }

    /// Step P2.
    pub fn vector(&self, channel: &mut Channel, exponents: &[f64]) -> Result<Power, BlockError> {
        let written = self.written(exponents)?;
        let count = FACTORS * exponents.len();
        let factors = receive_rsa(channel, tag::POWER, self.key, count, "factors")?;
        self.choose(&factors, &written)
    }

    /// Step P2 with Alice's factors that Bob has already: in training a column is sent once.
    pub fn combine(
        &self,
        factors: &[RsaCiphertext],
        exponents: &[f64],
    ) -> Result<Power, BlockError> {
        check_same_length(factors.len(), FACTORS * exponents.len())?;
        self.choose(factors, &self.written(exponents)?)
    }

    /// The exponents in digits, if the power fits the key.
    fn written(&self, exponents: &[f64]) -> Result<Exponents, BlockError> {
        let written = Exponents::new(self.grid, exponents)?;
        let needed = self.scale(&written) + (written.spread() * LOG2_E).ceil() as usize + 1;
        check_rsa("secure power function", self.key, needed)?;
        Ok(written)
    }

    /// s.
    fn scale(&self, written: &Exponents) -> usize {
        DIGITS * written.digits.len() * self.grid.fraction_bits()
    }

    fn choose(&self, factors: &[RsaCiphertext], written: &Exponents) -> Result<Power, BlockError> {
        let chosen = (0..written.digits.len()).flat_map(|index| {
            written
                .chosen(index)
                .map(move |factor| FACTORS * index + factor)
        });
        let filling = self.filling(written.missing())?;
        let factors = chosen.map(|at| &factors[at]).chain(from_ref(&filling));
        let ciphertext = self.key.product(factors)?;
        Ok(Power {
            ciphertext,
            offset: written.offset(),
            fraction_bits: self.scale(written),
        })
    }

    /// Step P2 for one exponent.
    pub fn scalar(&self, channel: &mut Channel, exponent: f64) -> Result<Power, BlockError> {
        self.vector(channel, from_ref(&exponent))
    }

    /// What stands in for the factors of so many digits that are 0.
    pub fn filling(&self, missing: usize) -> Result<RsaCiphertext, BlockError> {
        let one = Natural::power_of_two(missing * self.grid.fraction_bits());
        Ok(self.key.encrypt(&one)?)
    }
}

/// ‖e^{a·b − offset}·2^fraction_bits‖. `Debug` does not show the offset.
#[derive(Clone)]
pub struct Power {
    /// The encrypted number.
    pub ciphertext: RsaCiphertext,
    /// What is missing in the exponent. It tells about b: Bob keeps it.
    pub offset: f64,
    /// Bits after the point.
    pub fraction_bits: usize,
}

impl fmt::Debug for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Power")
            .field("ciphertext", &self.ciphertext)
            .field("fraction_bits", &self.fraction_bits)
            .finish_non_exhaustive()
    }
}

impl Power {
    /// e^{a·b}, once the number is decrypted.
    pub fn value(&self, number: &Integer) -> f64 {
        // In logarithms: the number and its scale may both be beyond the floats.
        let excess = number.magnitude().bit_length().saturating_sub(64);
        let head = Integer::from(number.magnitude() >> excess).to_f64();
        let bits = excess as f64 - self.fraction_bits as f64;
        (head.ln() + bits / LOG2_E + self.offset).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::testing::{RSA, RSA_2048, both, refuses_damage};
    use crate::hazmat_rsa::RsaPrivateKey;
    use proptest::prelude::*;

    fn grid() -> PowerGrid {
        PowerGrid::new(24, 0.0, 1.0).unwrap()
    }

    fn equals_the_clear_computation(key: &RsaPrivateKey, a: &[f64], b: &[f64]) {
        let alice = Alice::new(key.public(), grid());
        let bob = Bob::new(key.public(), grid());
        let send = |channel: &mut Channel| alice.vector(channel, a).unwrap();
        let ((), power) = both(send, |channel| bob.vector(channel, b).unwrap());
        let number = Integer::from(key.decrypt(&power.ciphertext).unwrap());
        let products = a.iter().zip(b).map(|(a, b)| a * Exponents::rounded(*b));
        let expected = products.sum::<f64>().exp();
        let found = power.value(&number);
        let allowed = 4.0 * a.len() as f64 * 2f64.powi(-24);
        assert!(
            (found / expected - 1.0).abs() < allowed,
            "{found} for {expected}, {a:?} {b:?}"
        );
    }

    #[test]
    fn equals_the_clear_computation_on_shaped_numbers() {
        let bases = [0.0, 0.01, 0.5, 0.99, 1.0];
        let exponents = [0.0, 1.0, -1.0, 1.0 / 128.0, 0.3, -7.77, LARGEST_EXPONENT];
        for a in bases {
            for b in exponents.into_iter().chain([-LARGEST_EXPONENT]) {
                equals_the_clear_computation(&RSA, &[a], &[b]);
            }
        }
        equals_the_clear_computation(&RSA, &[0.25, 1.0, 0.0, 0.6], &[5.0, -4.5, 3.0, 0.0]);
    }

    #[test]
    fn equals_the_clear_computation_at_2048_bits() {
        let a: Vec<f64> = (0..18).map(|i| f64::from(i) / 17.0).collect();
        let b: Vec<f64> = (0..18)
            .map(|i| f64::from(i * 37 % 19) / 3.0 - 3.0)
            .collect();
        equals_the_clear_computation(&RSA_2048, &a, &b);
    }

    #[test]
    fn a_scalar_is_a_vector_of_one() {
        let alice = Alice::new(RSA.public(), grid());
        let bob = Bob::new(RSA.public(), grid());
        let send = |channel: &mut Channel| alice.scalar(channel, 0.5).unwrap();
        let ((), power) = both(send, |channel| bob.scalar(channel, -2.0).unwrap());
        let number = Integer::from(RSA.decrypt(&power.ciphertext).unwrap());
        assert!((power.value(&number) - (-1f64).exp()).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn digits_write_every_exponent(units in -LARGEST_UNITS..=LARGEST_UNITS) {
            let exponent = units as f64 / 128.0;
            let digits = signed_digits(exponent).unwrap();
            prop_assert!(digits.iter().all(|d| (-4..=4).contains(d)));
            let steps = digits.iter().enumerate().map(|(place, &d)| step(place, d));
            prop_assert_eq!(steps.sum::<f64>(), exponent);
            let written = Exponents::new(grid(), &[exponent]).unwrap();
            prop_assert!(written.spread() <= 1.75 * exponent.abs() + 1e-9);
            let all: Vec<_> = places_and_digits().collect();
            let chosen: Vec<_> = written.chosen(0).map(|at| all[at]).collect();
            let expected = digits.into_iter().enumerate().filter(|(_, d)| *d != 0);
            prop_assert_eq!(chosen, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for value in [18.29, -18.29, f64::NAN, f64::INFINITY] {
            let refused = Exponents::new(grid(), &[value]);
            assert!(
                matches!(refused, Err(BlockError::Exponent { .. })),
                "{value}"
            );
        }
        for value in [-0.01, 1.01, f64::NAN] {
            assert!(matches!(
                grid().factors(value),
                Err(BlockError::Base { .. })
            ));
        }
        assert!(matches!(
            PowerGrid::new(40, 0.0, 1.0),
            Err(BlockError::Grid { .. })
        ));
        assert!(PowerGrid::new(24, -1.0, 1.0).is_err());
        let (mut channel, _other) = Channel::pair(std::time::Duration::from_millis(10));
        let refused = Bob::new(RSA.public(), grid()).vector(&mut channel, &[0.0; 6]);
        assert!(matches!(
            refused,
            Err(BlockError::Capacity { needed: 577, .. })
        ));
    }

    #[test]
    fn a_damaged_message_blames_the_peer() {
        let factors = grid().factors(0.5).unwrap();
        assert_eq!(factors.len(), FACTORS);
        let hidden = RSA.public().encrypt_batch(&factors).unwrap();
        let message = RSA.public().encode(&hidden).unwrap();
        let bob = Bob::new(RSA.public(), grid());
        refuses_damage(tag::POWER, &message, |channel| bob.scalar(channel, 1.0));
    }
}
