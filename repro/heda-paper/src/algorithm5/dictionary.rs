//! Step S3: the factors of a column's values, once for each value, and which row has which.
//!
//! Textbook RSA maps equal values to equal ciphertexts anyway, so a dictionary gives away
//! nothing more than a ciphertext a cell would; what it does give away, [`super::leaks`] says.
//!
//! A message is the number of values (1 byte), for every row the value's number (1 byte each), and
//! the encrypted factors of every value.

use super::error::PaperError;
use super::rows::STEPS;
use crate::blocks::power::{Exponents, FACTORS, PowerGrid};
use crate::hazmat_rsa::{RsaCiphertext, RsaPublicKey};
use crate::integer::Natural;

/// Values of a column: 0.00 to 1.00.
const MOST_VALUES: usize = STEPS as usize + 1;

/// Encrypts a column.
pub(super) fn encode(
    cells: impl Iterator<Item = u32>,
    grid: PowerGrid,
    key: &RsaPublicKey,
) -> Result<Vec<u8>, PaperError> {
    let mut values: Vec<u32> = Vec::new();
    let mut message = vec![0];
    for cell in cells {
        let known = values.iter().position(|value| *value == cell);
        let number = known.unwrap_or(values.len());
        if known.is_none() {
            values.push(cell);
        }
        message.push(number as u8);
    }
    message[0] = values.len() as u8;
    let factors = values.iter().map(|value| factors(*value, grid));
    let factors = factors.collect::<Result<Vec<_>, _>>()?.concat();
    message.extend(key.encode(&key.encrypt_batch(&factors)?)?);
    Ok(message)
}

/// The factors of one value, in clear.
pub(crate) fn factors(cell: u32, grid: PowerGrid) -> Result<Vec<Natural>, PaperError> {
    Ok(grid.factors(f64::from(cell) / f64::from(STEPS))?)
}

/// A column as the data user holds it.
#[derive(Debug)]
pub(crate) struct Dictionary {
    /// All factors of the first value, then of the second, and so on.
    factors: Vec<RsaCiphertext>,
    /// Which value each row has.
    rows: Vec<u8>,
}

impl Dictionary {
    /// No message is longer.
    pub(super) fn limit(rows: usize, key: &RsaPublicKey) -> usize {
        let factors = key.encoded_length(MOST_VALUES * FACTORS);
        factors.unwrap_or(usize::MAX).saturating_add(1 + rows)
    }

    /// Reads a message about so many rows.
    pub(crate) fn decode(
        message: &[u8],
        rows: usize,
        key: &RsaPublicKey,
    ) -> Result<Self, PaperError> {
        let bad = |reason: &str| PaperError::peer("dictionary", reason);
        let (&values, rest) = message.split_first().ok_or_else(|| bad("it is empty"))?;
        let values = usize::from(values);
        if values > MOST_VALUES {
            return Err(bad("it has more values than the grid"));
        }
        let (numbers, factors) = rest
            .split_at_checked(rows)
            .ok_or_else(|| bad("it is short"))?;
        if numbers.iter().any(|number| usize::from(*number) >= values) {
            return Err(bad("a row has a value that is not in it"));
        }
        let factors = key.decode(factors, values * FACTORS);
        Ok(Self {
            factors: factors.map_err(|e| PaperError::peer("dictionary", e))?,
            rows: numbers.to_vec(),
        })
    }

    /// The power of every value with this exponent, but for the digits that are 0.
    pub(super) fn powers(
        &self,
        exponents: &Exponents,
        index: usize,
        key: &RsaPublicKey,
    ) -> Result<Vec<RsaCiphertext>, PaperError> {
        let values = self.factors.chunks(FACTORS);
        let power = |factors: &[RsaCiphertext]| {
            Ok(key.product(exponents.chosen(index).map(|at| &factors[at]))?)
        };
        values.map(power).collect()
    }

    /// The number of a row's value.
    pub(crate) fn value_of(&self, row: usize) -> usize {
        self.rows[row].into()
    }

    /// All factors of a value, as an attacker compares them.
    pub(crate) fn factors_of(&self, value: usize) -> &[RsaCiphertext] {
        &self.factors[value * FACTORS..][..FACTORS]
    }
}
