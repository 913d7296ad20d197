//! Whole numbers of any length and sign.

use super::natural::Natural;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// A whole number of any length and sign, erased when dropped; `Debug` shows its length only.
///
/// ```
/// use heda_paper::integer::Integer;
/// let difference = &Integer::from(3i64) - &Integer::from(5i64);
/// assert_eq!(difference.to_i128(), Some(-2));
/// ```
#[derive(Clone)]
pub struct Integer {
    negative: bool,
    magnitude: Natural,
}

impl Integer {
    /// A number from its sign and its distance from zero; zero has no sign.
    pub fn from_parts(negative: bool, magnitude: Natural) -> Self {
        Self {
            negative: negative && !magnitude.is_zero(),
            magnitude,
        }
    }

    /// 0.
    pub fn zero() -> Self {
        Self::from(0i64)
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.magnitude.is_zero()
    }

    /// The distance from zero.
    pub fn magnitude(&self) -> &Natural {
        &self.magnitude
    }

    /// As a machine integer, if it fits.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128()?.try_into().ok()
    }

    /// As a double machine integer, if it fits.
    pub fn to_i128(&self) -> Option<i128> {
        let magnitude = self.magnitude.to_u128()?;
        if self.negative {
            0i128.checked_sub_unsigned(magnitude)
        } else {
            magnitude.try_into().ok()
        }
    }

    /// The nearest float; precision is lost beyond 53 bits, and infinity stands for what is
    /// beyond the floats.
    pub fn to_f64(&self) -> f64 {
        // Cut to 64 bits; the lost tail decides nothing but ties of a value that is cut anyway.
        let excess = self.magnitude.bit_length().saturating_sub(64);
        let head = (&self.magnitude >> excess).to_u64().unwrap_or(u64::MAX);
        let exponent = i32::try_from(excess).unwrap_or(i32::MAX);
        let magnitude = head as f64 * 2f64.powi(exponent);
        if self.negative { -magnitude } else { magnitude }
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self::from(i128::from(value))
    }
}

impl From<i128> for Integer {
    fn from(value: i128) -> Self {
        Self::from_parts(value < 0, Natural::from(value.unsigned_abs()))
    }
}

impl From<Natural> for Integer {
    fn from(magnitude: Natural) -> Self {
        Self::from_parts(false, magnitude)
    }
}

impl Neg for Integer {
    type Output = Integer;
    fn neg(self) -> Integer {
        Self::from_parts(!self.negative, self.magnitude)
    }
}

impl Add for &Integer {
    type Output = Integer;
    fn add(self, other: Self) -> Integer {
        let (x, y) = (&self.magnitude, &other.magnitude);
        if self.negative == other.negative {
            return Integer::from_parts(self.negative, x + y);
        }
        match x.checked_sub(y) {
            Some(difference) => Integer::from_parts(self.negative, difference),
            None => Integer::from_parts(
                other.negative,
                y.checked_sub(x).unwrap_or_else(Natural::zero),
            ),
        }
    }
}

impl Sub for &Integer {
    type Output = Integer;
    fn sub(self, other: Self) -> Integer {
        self + &-other.clone()
    }
}

impl Mul for &Integer {
    type Output = Integer;
    fn mul(self, other: Self) -> Integer {
        Integer::from_parts(
            self.negative != other.negative,
            &self.magnitude * &other.magnitude,
        )
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude.cmp(&other.magnitude),
            (true, true) => other.magnitude.cmp(&self.magnitude),
            (negative, _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Integer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Integer {}

/// Shows the length only: the digits may be secret. `{:x}` prints them.
impl fmt::Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Integer({} bits)", self.magnitude.bit_length())
    }
}

/// Prints sign and digits: for numbers that may be seen.
impl fmt::LowerHex for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{:x}", self.magnitude)
    }
}
