//! ε as an exact, validated number.
//!
//! An [`Epsilon`] is a whole number of billionths. Sums, splits and comparisons are therefore
//! exact, and so is the scale of the noise that is drawn from it.

use crate::error::ParameterError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Billionths in one.
pub(crate) const UNIT: u64 = 1_000_000_000;

/// The largest ε, in whole units. Far beyond what protects anybody, but the automatic choice of
/// the paper reaches 141 in sum on the Adult data set, and that must be possible to say.
pub const LARGEST: u64 = 1_000;

/// How much a release may tell about one row: e^ε bounds the ratio of the probabilities of any
/// result with and without a change of that row.
///
/// Positive, at most [`LARGEST`], a multiple of 10⁻⁹. There is no default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epsilon {
    billionths: u64,
}

impl Epsilon {
    /// From billionths.
    pub fn from_billionths(billionths: u64) -> Result<Self, ParameterError> {
        match billionths {
            0 => Err(ParameterError::EpsilonZero),
            b if b > LARGEST * UNIT => Err(ParameterError::EpsilonTooLarge),
            billionths => Ok(Self { billionths }),
        }
    }

    /// The largest ε that is not above a computed number. For what a person wrote, parse it: that
    /// is exact.
    pub fn at_most(value: f64) -> Result<Self, ParameterError> {
        if value.is_nan() {
            return Err(ParameterError::EpsilonNotANumber);
        }
        if value < 0.0 {
            return Err(ParameterError::EpsilonNegative);
        }
        if value > LARGEST as f64 {
            return Err(ParameterError::EpsilonTooLarge);
        }
        let floor = (value * UNIT as f64).floor() as u64;
        if floor == 0 && value > 0.0 {
            return Err(ParameterError::EpsilonTooSmall);
        }
        // The product above may have been rounded up to the next whole number.
        let exact = floor - u64::from(floor > 0 && floor as f64 / UNIT as f64 > value);
        Self::from_billionths(exact)
    }

    /// The least ε that is not below a computed number: for what is told to people.
    pub fn at_least(value: f64) -> Result<Self, ParameterError> {
        match value {
            v if v.is_nan() => Err(ParameterError::EpsilonNotANumber),
            v if v < 0.0 => Err(ParameterError::EpsilonNegative),
            v if v > LARGEST as f64 => Err(ParameterError::EpsilonTooLarge),
            v => {
                let ceiling = (v * UNIT as f64).ceil() as u64;
                // The product above may have been rounded down to a whole number.
                let exact = ceiling + u64::from((ceiling as f64 / UNIT as f64) < v);
                Self::from_billionths(exact.max(1))
            }
        }
    }

    /// In billionths, exactly.
    pub fn billionths(self) -> u64 {
        self.billionths
    }

    /// The nearest floating-point number, for reports and formulas only.
    pub fn to_f64(self) -> f64 {
        self.billionths as f64 / UNIT as f64
    }

    /// The sum, if it is still an ε.
    pub fn checked_add(self, other: Self) -> Result<Self, ParameterError> {
        Self::from_billionths(self.billionths + other.billionths)
    }

    /// Sequential composition: what several releases about the same rows cost together.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Result<Self, ParameterError> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or(ParameterError::EpsilonZero)?;
        parts.try_fold(first, Self::checked_add)
    }
}

impl FromStr for Epsilon {
    type Err = ParameterError;

    /// Reads a decimal like `0.5`, exactly.
    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let text = text.trim();
        if let Some(positive) = text.strip_prefix('-') {
            return match parse_billionths(positive)? {
                0 => Err(ParameterError::EpsilonZero),
                _ => Err(ParameterError::EpsilonNegative),
            };
        }
        Self::from_billionths(parse_billionths(text.strip_prefix('+').unwrap_or(text))?)
    }
}

/// Digits, optionally a point and more digits; anything larger than u64 is clamped, because the
/// caller refuses it anyway.
fn parse_billionths(text: &str) -> Result<u64, ParameterError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if matches!(text, "inf" | "infinity" | "Infinity") {
        return Err(ParameterError::EpsilonTooLarge);
    }
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(ParameterError::EpsilonNotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return Err(ParameterError::EpsilonTooFine);
    }
    let whole = match whole.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().unwrap_or(u64::MAX),
    };
    let fraction: u64 = format!("{fraction:0<9}")
        .parse()
        .map_err(|_| ParameterError::EpsilonNotANumber)?;
    Ok(whole.saturating_mul(UNIT).saturating_add(fraction))
}

impl fmt::Display for Epsilon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.billionths / UNIT, self.billionths % UNIT);
        let decimals = format!("{rest:09}");
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            decimals => write!(f, "{whole}.{decimals}"),
        }
    }
}

impl fmt::Debug for Epsilon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epsilon({self})")
    }
}

impl Serialize for Epsilon {
    /// As a number: twelve digits survive a floating-point number exactly.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_f64())
    }
}

impl<'de> Deserialize<'de> for Epsilon {
    /// From a number or a decimal string, through the same checks as everything else.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Decimal)
    }
}

/// Reads numbers by their shortest decimal form, which is what was written.
struct Decimal;

impl serde::de::Visitor<'_> for Decimal {
    type Value = Epsilon;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a positive decimal number like 0.5")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Epsilon, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Epsilon, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Epsilon, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Epsilon, E> {
        self.visit_str(&value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Epsilon, ParameterError> {
        text.parse()
    }

    #[test]
    fn reads_decimals_exactly_and_prints_them_back() {
        for (text, billionths) in [
            ("0.5", 500_000_000),
            ("1", 1_000_000_000),
            ("1.0", 1_000_000_000),
            (".25", 250_000_000),
            ("0.000000001", 1),
            ("1000", 1_000 * UNIT),
            ("0.1000000000000", 100_000_000),
        ] {
            let epsilon = parse(text).unwrap();
            assert_eq!(epsilon.billionths(), billionths, "{text}");
            assert_eq!(parse(&epsilon.to_string()), Ok(epsilon), "{text}");
        }
        assert_eq!(parse("0.50").unwrap().to_string(), "0.5");
        assert_eq!(format!("{:?}", parse("2").unwrap()), "Epsilon(2)");
    }

    #[test]
    fn every_bad_number_has_its_own_error() {
        for (text, error) in [
            ("0", ParameterError::EpsilonZero),
            ("0.000", ParameterError::EpsilonZero),
            ("-0", ParameterError::EpsilonZero),
            ("-1", ParameterError::EpsilonNegative),
            ("1000.000000001", ParameterError::EpsilonTooLarge),
            ("1e9", ParameterError::EpsilonNotANumber),
            (
                "99999999999999999999999999",
                ParameterError::EpsilonTooLarge,
            ),
            ("inf", ParameterError::EpsilonTooLarge),
            ("NaN", ParameterError::EpsilonNotANumber),
            ("", ParameterError::EpsilonNotANumber),
            (".", ParameterError::EpsilonNotANumber),
            ("0,5", ParameterError::EpsilonNotANumber),
            ("1.2.3", ParameterError::EpsilonNotANumber),
            ("0.0000000001", ParameterError::EpsilonTooFine),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn computed_numbers_are_rounded_down_only() {
        assert_eq!(
            Epsilon::at_most(f64::NAN),
            Err(ParameterError::EpsilonNotANumber)
        );
        assert_eq!(
            Epsilon::at_most(-1e-300),
            Err(ParameterError::EpsilonNegative)
        );
        assert_eq!(Epsilon::at_most(0.0), Err(ParameterError::EpsilonZero));
        assert_eq!(
            Epsilon::at_most(f64::INFINITY),
            Err(ParameterError::EpsilonTooLarge)
        );
        assert_eq!(
            Epsilon::at_most(1e-10),
            Err(ParameterError::EpsilonTooSmall)
        );
        assert_eq!(
            Epsilon::at_most(1.999_999_999_9).unwrap().billionths(),
            1_999_999_999
        );
    }

    #[test]
    fn serde_goes_through_the_constructor() {
        for text in ["0.5", "\"0.5\"", "0.500000000"] {
            assert_eq!(
                serde_json::from_str::<Epsilon>(text).unwrap(),
                parse("0.5").unwrap()
            );
        }
        assert_eq!(
            serde_json::from_str::<Epsilon>("3").unwrap(),
            parse("3").unwrap()
        );
        for text in ["0", "-1", "\"NaN\"", "1e300", "null", "0.12345678901"] {
            assert!(serde_json::from_str::<Epsilon>(text).is_err(), "{text}");
        }
        assert_eq!(
            serde_json::to_string(&parse("0.1").unwrap()).unwrap(),
            "0.1"
        );
    }

    #[test]
    fn sums_are_exact_and_bounded() {
        let tenth = parse("0.1").unwrap();
        assert_eq!(Epsilon::sum([tenth; 3]), parse("0.3"));
        assert_eq!(Epsilon::sum([]), Err(ParameterError::EpsilonZero));
        assert_eq!(
            Epsilon::sum([parse("600").unwrap(); 2]),
            Err(ParameterError::EpsilonTooLarge)
        );
    }

    proptest! {
        #[test]
        fn every_epsilon_survives_json_and_text(billionths in 1..=LARGEST * UNIT) {
            let epsilon = Epsilon::from_billionths(billionths).unwrap();
            prop_assert_eq!(parse(&epsilon.to_string()), Ok(epsilon));
            let json = serde_json::to_string(&epsilon).unwrap();
            prop_assert_eq!(serde_json::from_str::<Epsilon>(&json).unwrap(), epsilon);
        }

        #[test]
        fn at_most_never_exceeds(value in 1e-9..1000.0f64) {
            let epsilon = Epsilon::at_most(value).unwrap();
            prop_assert!(epsilon.to_f64() <= value);
            prop_assert!(value - epsilon.to_f64() < 2.1e-9);
        }

        #[test]
        fn at_least_never_falls_below(value in 0.0..999.0f64) {
            let epsilon = Epsilon::at_least(value).unwrap();
            prop_assert!(epsilon.to_f64() >= value);
            prop_assert!(epsilon.to_f64() - value < 2.1e-9);
        }
    }
}
