//! Whole numbers of any length, not negative.

use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, RandomBits, RandomMod};
use rand_core::CryptoRng;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Mul, Shl, Shr};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A whole number, not negative, of any length.
///
/// It may be secret: it is erased when dropped and `Debug` shows its length only. The time of an
/// operation depends on the lengths of its operands in limbs of 64 bits and not on their digits,
/// except where a name says `_vartime`.
///
/// ```
/// use heda_paper::integer::Natural;
/// let seven = Natural::from(7u64);
/// let large = Natural::power_of_two(100);
/// let (quotient, remainder) = large.div_rem(&seven).unwrap();
/// assert_eq!(&(&quotient * &seven) + &remainder, large);
/// ```
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Natural(BoxedUint);

impl Natural {
    /// 0.
    pub fn zero() -> Self {
        Self::from(0u64)
    }

    /// 1.
    pub fn one() -> Self {
        Self::from(1u64)
    }

    /// 2^`exponent`.
    pub fn power_of_two(exponent: usize) -> Self {
        let mut limbs = vec![0; exponent / 64 + 1];
        limbs[exponent / 64] = 1 << (exponent % 64);
        Self::from_limbs(&limbs)
    }

    /// Reads big-endian bytes of any number; no bytes are zero.
    pub fn from_be_bytes(bytes: &[u8]) -> Self {
        let mut limbs: Vec<u64> = bytes.rchunks(8).map(be_limb).collect();
        let value = Self::from_limbs(&limbs);
        limbs.zeroize();
        value
    }

    /// Big-endian bytes, exactly `length` of them; `None` if the number does not fit.
    pub fn to_be_bytes(&self, length: usize) -> Option<Vec<u8>> {
        if self.bit_length() > 8 * length {
            return None;
        }
        let little = self.limbs().iter().flat_map(|limb| limb.to_le_bytes());
        let mut bytes: Vec<u8> = little.chain(std::iter::repeat(0)).take(length).collect();
        bytes.reverse();
        Some(bytes)
    }

    /// Reads hexadecimal digits; `None` if there is anything else.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let digits = digits.as_bytes();
        let mut limbs = Vec::with_capacity(digits.len() / 16 + 1);
        for chunk in digits.rchunks(16) {
            let text = std::str::from_utf8(chunk).ok()?;
            if !chunk.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            limbs.push(u64::from_str_radix(text, 16).ok()?);
        }
        (!digits.is_empty()).then(|| Self::from_limbs(&limbs))
    }

    /// Uniform below `bound`; `None` if the bound is zero.
    pub fn random_below<R: CryptoRng + ?Sized>(bound: &Self, rng: &mut R) -> Option<Self> {
        let bound = NonZero::new(bound.0.clone()).into_option()?;
        // Rejection: its time depends on draws that are thrown away, not on the one that is kept.
        Some(Self::trimmed(BoxedUint::random_mod_vartime(rng, &bound)))
    }

    /// Uniform below 2^`bits`.
    pub fn random_bits<R: CryptoRng + ?Sized>(bits: u32, rng: &mut R) -> Self {
        Self::trimmed(BoxedUint::random_bits(rng, bits))
    }

    /// Bits up to the highest one; 0 for zero.
    pub fn bit_length(&self) -> usize {
        super::ring::bit_length(self.limbs())
    }

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero().to_bool()
    }

    /// Whether this is odd.
    pub fn is_odd(&self) -> bool {
        self.limbs()[0] & 1 == 1
    }

    /// The difference; `None` if it would be negative.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        if self < other {
            return None;
        }
        Some(Self::trimmed(self.0.wrapping_sub(&other.0)))
    }

    /// Quotient and remainder; `None` for a zero divisor.
    pub fn div_rem(&self, divisor: &Self) -> Option<(Self, Self)> {
        let divisor = Zeroizing::new(NonZero::new(divisor.0.clone()).into_option()?);
        let (quotient, remainder) = self.0.div_rem(&divisor);
        Some((Self::trimmed(quotient), Self::trimmed(remainder)))
    }

    /// The quotient rounded to the nearest whole number, halves upwards; `None` for a zero divisor.
    pub fn div_round(&self, divisor: &Self) -> Option<Self> {
        let half = divisor >> 1;
        Some((self + &half).div_rem(divisor)?.0)
    }

    /// This number as a machine word, if it fits.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_u128()?.try_into().ok()
    }

    /// This number as a double word, if it fits.
    pub fn to_u128(&self) -> Option<u128> {
        match *self.limbs() {
            [low] => Some(low.into()),
            [low, high] => Some(u128::from(low) | (u128::from(high) << 64)),
            _ => None,
        }
    }

    /// Whether this is 3 modulo 4.
    pub(crate) fn is_three_modulo_four(&self) -> bool {
        self.limbs()[0] & 3 == 3
    }

    /// Becomes `other` if the bit is set; the time does not tell.
    pub(crate) fn select_if(&mut self, other: &Self, bit: bool) {
        let count = self.limbs().len().max(other.limbs().len());
        let (mut a, mut b) = (self.limbs_exact(count), other.limbs_exact(count));
        super::limbs::select_if(&mut a, &b, u64::from(bit));
        *self = Self::from_limbs(&a);
        a.zeroize();
        b.zeroize();
    }

    /// The limbs, least significant first, no more than needed but at least one.
    pub(crate) fn limbs(&self) -> &[u64] {
        self.0.as_words()
    }

    /// Exactly `count` limbs, padded with zeros; higher limbs are cut off.
    pub(super) fn limbs_exact(&self, count: usize) -> Vec<u64> {
        // At its full length from the beginning: a vector that grew would leave a copy unwiped.
        let mut limbs = vec![0; count];
        limbs
            .iter_mut()
            .zip(self.limbs())
            .for_each(|(limb, own)| *limb = *own);
        limbs
    }

    pub(super) fn from_limbs(limbs: &[u64]) -> Self {
        let used = limbs.iter().rposition(|&limb| limb != 0).unwrap_or(0);
        let limbs = limbs.get(..=used).unwrap_or(&[0]);
        Self(BoxedUint::from_words(limbs.iter().copied()))
    }

    pub(super) fn trimmed(mut value: BoxedUint) -> Self {
        let trimmed = Self::from_limbs(value.as_words());
        value.zeroize();
        trimmed
    }

    pub(super) fn backend(&self) -> &BoxedUint {
        &self.0
    }
}

fn be_limb(chunk: &[u8]) -> u64 {
    chunk
        .iter()
        .fold(0, |limb, &byte| (limb << 8) | u64::from(byte))
}

impl From<u64> for Natural {
    fn from(value: u64) -> Self {
        Self::from_limbs(&[value])
    }
}

impl From<u128> for Natural {
    fn from(value: u128) -> Self {
        Self::from_limbs(&[value as u64, (value >> 64) as u64])
    }
}

impl Add for &Natural {
    type Output = Natural;
    fn add(self, other: Self) -> Natural {
        Natural::trimmed(self.0.concatenating_add(&other.0))
    }
}

impl Mul for &Natural {
    type Output = Natural;
    fn mul(self, other: Self) -> Natural {
        Natural::trimmed(self.0.concatenating_mul(&other.0))
    }
}

impl Shl<usize> for &Natural {
    type Output = Natural;
    fn shl(self, bits: usize) -> Natural {
        let whole = bits / 64;
        let mut limbs = Zeroizing::new(vec![0; whole + self.limbs().len() + 1]);
        let mut carried = 0;
        for (shifted, &limb) in limbs[whole..].iter_mut().zip(self.limbs()) {
            let wide = (u128::from(limb) << (bits % 64)) | u128::from(carried);
            *shifted = wide as u64;
            carried = (wide >> 64) as u64;
        }
        limbs[whole + self.limbs().len()] = carried;
        Natural::from_limbs(&limbs)
    }
}

impl Shr<usize> for &Natural {
    type Output = Natural;
    fn shr(self, bits: usize) -> Natural {
        let dropped = (bits / 64).min(self.limbs().len());
        let kept = &self.limbs()[dropped..];
        let shift = bits % 64;
        let shifted: Zeroizing<Vec<u64>> = (0..kept.len())
            .map(|i| {
                let above = kept.get(i + 1).copied().unwrap_or(0);
                let pair = u128::from(kept[i]) | (u128::from(above) << 64);
                (pair >> shift) as u64
            })
            .collect::<Vec<u64>>()
            .into();
        Natural::from_limbs(&shifted)
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let count = self.limbs().len().max(other.limbs().len());
        let (mut a, mut b) = (self.limbs_exact(count), other.limbs_exact(count));
        let below = super::limbs::less_than(&a, &b);
        let above = super::limbs::less_than(&b, &a);
        a.zeroize();
        b.zeroize();
        above.cmp(&below)
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Natural {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Natural {}

/// Shows the length only: the digits may be secret. `{:x}` prints them.
impl fmt::Debug for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Natural({} bits)", self.bit_length())
    }
}

/// Prints the digits: for numbers that may be seen.
impl fmt::LowerHex for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limbs = self.limbs().iter().rev();
        if let Some(first) = limbs.next() {
            write!(f, "{first:x}")?;
        }
        limbs.try_for_each(|limb| write!(f, "{limb:016x}"))
    }
}
