//! Fixed-point numbers with a checked scale.

use crate::integer::Integer;

/// What is refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum FixedError {
    /// More fraction bits than a float can be scaled by.
    #[error("{bits} fraction bits; at most {} are supported", Scale::LARGEST)]
    ScaleTooLarge {
        /// Bits that were asked for.
        bits: u32,
    },
    /// Not a number, or infinite.
    #[error("{value} cannot be written in fixed point")]
    NotFinite {
        /// The value.
        value: f64,
    },
    /// Larger than a double machine integer at this scale.
    #[error("{value} with {bits} fraction bits is too large; use fewer fraction bits")]
    TooLarge {
        /// The value.
        value: f64,
        /// Fraction bits.
        bits: u32,
    },
    /// Two scales that do not agree were added.
    #[error("numbers with {left} and {right} fraction bits were added; rescale one first")]
    MixedScales {
        /// Fraction bits of one.
        left: u32,
        /// Fraction bits of the other.
        right: u32,
    },
}

/// How many bits stand after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scale(u32);

impl Scale {
    /// The most fraction bits: products of products of encoded numbers stay below it.
    pub const LARGEST: u32 = 900;

    /// A scale with this many fraction bits.
    pub fn new(fraction_bits: u32) -> Result<Self, FixedError> {
        match fraction_bits <= Self::LARGEST {
            true => Ok(Self(fraction_bits)),
            false => Err(FixedError::ScaleTooLarge {
                bits: fraction_bits,
            }),
        }
    }

    /// Bits after the point.
    pub fn fraction_bits(self) -> u32 {
        self.0
    }

    /// The nearest fixed-point number.
    pub fn encode(self, value: f64) -> Result<Fixed, FixedError> {
        if !value.is_finite() {
            return Err(FixedError::NotFinite { value });
        }
        let scaled = (value * 2f64.powi(self.0 as i32)).round();
        if scaled.abs() >= 2f64.powi(127) {
            let bits = self.0;
            return Err(FixedError::TooLarge { value, bits });
        }
        Ok(self.of(Integer::from(scaled as i128)))
    }

    /// The number that an integer stands for at this scale.
    pub fn of(self, integer: Integer) -> Fixed {
        Fixed {
            integer,
            scale: self,
        }
    }
}

/// A fixed-point number: an integer and how many of its bits are a fraction.
///
/// ```
/// use heda_crypto::encoding::Scale;
/// let scale = Scale::new(10)?;
/// let product = scale.encode(1.5)?.multiply(&scale.encode(-0.25)?)?;
/// assert_eq!(product.scale().fraction_bits(), 20);
/// assert_eq!(product.to_f64(), -0.375);
/// # Ok::<(), heda_crypto::encoding::FixedError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    integer: Integer,
    scale: Scale,
}

impl Fixed {
    /// The scaled integer.
    pub fn integer(&self) -> &Integer {
        &self.integer
    }

    /// The scaled integer.
    pub fn into_integer(self) -> Integer {
        self.integer
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The nearest float.
    pub fn to_f64(&self) -> f64 {
        // In two steps, so that a large integer with a large scale does not overflow on the way.
        let half = self.scale.0 / 2;
        let rest = self.scale.0 - half;
        self.integer.to_f64() * 2f64.powi(-(half as i32)) * 2f64.powi(-(rest as i32))
    }

    /// The sum of two numbers of one scale.
    pub fn add(&self, other: &Self) -> Result<Self, FixedError> {
        let (left, right) = (self.scale.0, other.scale.0);
        match left == right {
            true => Ok(self.scale.of(&self.integer + &other.integer)),
            false => Err(FixedError::MixedScales { left, right }),
        }
    }

    /// The exact product, whose scale has the fraction bits of both.
    pub fn multiply(&self, other: &Self) -> Result<Self, FixedError> {
        let scale = Scale::new(self.scale.0 + other.scale.0)?;
        Ok(scale.of(&self.integer * &other.integer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoding_errs_by_half_a_step_at_most(value in -1e6f64..1e6, bits in 0u32..40) {
            let fixed = Scale::new(bits).unwrap().encode(value).unwrap();
            prop_assert!((fixed.to_f64() - value).abs() <= 0.5 * 2f64.powi(-(bits as i32)));
        }

        #[test]
        fn sums_and_products_are_exact(x in -10000i64..10000, y in -10000i64..10000) {
            let scale = Scale::new(7).unwrap();
            let (a, b) = (scale.of(x.into()), scale.of(y.into()));
            prop_assert_eq!(a.add(&b).unwrap().to_f64(), (x + y) as f64 / 128.0);
            prop_assert_eq!(a.multiply(&b).unwrap().to_f64(), (x * y) as f64 / 16384.0);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let scale = Scale::new(100).unwrap();
        assert!(matches!(
            scale.encode(f64::NAN),
            Err(FixedError::NotFinite { .. })
        ));
        assert!(matches!(
            scale.encode(f64::INFINITY),
            Err(FixedError::NotFinite { .. })
        ));
        assert!(matches!(
            scale.encode(1e10),
            Err(FixedError::TooLarge { .. })
        ));
        assert!(matches!(
            scale.encode(-1e300),
            Err(FixedError::TooLarge { .. })
        ));
        assert_eq!(
            Scale::new(901),
            Err(FixedError::ScaleTooLarge { bits: 901 })
        );
        let sum = scale
            .encode(1.0)
            .unwrap()
            .add(&Scale::new(7).unwrap().encode(1.0).unwrap());
        assert_eq!(
            sum,
            Err(FixedError::MixedScales {
                left: 100,
                right: 7
            })
        );
        let large = Scale::new(600).unwrap().of(1i64.into());
        assert_eq!(
            large.multiply(&large),
            Err(FixedError::ScaleTooLarge { bits: 1200 })
        );
    }

    #[test]
    fn large_integers_at_large_scales_come_back() {
        let scale = Scale::new(900).unwrap();
        let integer = Integer::from(&crate::integer::Natural::power_of_two(901) << 0);
        assert_eq!(scale.of(integer).to_f64(), 2.0);
    }
}
