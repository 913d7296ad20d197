//! Several numbers in one plaintext, with the headroom counted.
//!
//! A plaintext is a row of slots of W bits: Σ vᵢ·2^(iW) with signed vᵢ. Sums and products with a
//! known number act on all slots at once, as long as every |vᵢ| stays below 2^(W−1). Each packed
//! value therefore carries a public bound on its slots, and an operation that could exceed a slot
//! is refused before it is done. The bound tells nothing about the values.
//!
//! ```
//! use heda_paper::packing::SlotLayout;
//! use heda_paper::integer::{Integer, Natural};
//! use heda_paper::paillier::PrivateKey;
//! # use heda_crypto::random::Randomness;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let private = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! let public = private.public();
//! let layout = SlotLayout::new(public, 3, 40)?;
//! let values = [5i64, -7, 0].map(Integer::from);
//! let packed = layout.pack(&values, Natural::from(100u64))?;
//! let encrypted = packed.encrypt(public, &mut rng)?;
//! let tripled = encrypted.scale(public, &Integer::from(-3i64), 2)?;
//! let slots = tripled.decrypt(&private)?;
//! assert_eq!(slots, [-15i64, 21, 0].map(Integer::from));
//! # Ok(())
//! # }
//! ```

use crate::integer::{Integer, Natural};
use crate::paillier::{Ciphertext, PaillierError, PrivateKey, PublicKey};
use rand_core::CryptoRng;

/// What is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackingError {
    /// No slots, or slots of fewer than two bits.
    #[error("{slots} slots of {slot_bits} bits hold nothing")]
    Empty {
        /// Slots that were asked for.
        slots: usize,
        /// Bits of a slot.
        slot_bits: usize,
    },
    /// The row is longer than a plaintext.
    #[error("{slots} slots of {slot_bits} bits do not fit a plaintext of {available} bits")]
    TooWide {
        /// Slots that were asked for.
        slots: usize,
        /// Bits of a slot.
        slot_bits: usize,
        /// Bits that a plaintext has.
        available: usize,
    },
    /// Another number of values than of slots.
    #[error("{found} values for {expected} slots")]
    Count {
        /// Slots of the layout.
        expected: usize,
        /// Values that were given.
        found: usize,
    },
    /// A value is beyond the bound that was given for it.
    #[error("the value in slot {slot} is beyond the bound that was given")]
    BeyondBound {
        /// Which slot.
        slot: usize,
    },
    /// A slot could overflow.
    #[error("a slot of {slot_bits} bits could need {needed}; use wider slots or fewer operations")]
    Overflow {
        /// Bits that a slot could need.
        needed: usize,
        /// Bits that it has.
        slot_bits: usize,
    },
    /// Two layouts do not agree.
    #[error("two packed values have different layouts")]
    MixedLayouts,
    /// A decrypted row holds a value that its bound excludes: the sender broke the bound.
    #[error("the decrypted slots exceed their bound; the sender did not keep to the protocol")]
    BrokenBound,
    /// The encryption refused.
    #[error(transparent)]
    Paillier(#[from] PaillierError),
}

/// How many slots, and how wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotLayout {
    slots: usize,
    slot_bits: usize,
}

impl SlotLayout {
    /// A layout that fits the plaintexts of `key`.
    pub fn new(key: &PublicKey, slots: usize, slot_bits: usize) -> Result<Self, PackingError> {
        if slots == 0 || slot_bits < 2 {
            return Err(PackingError::Empty { slots, slot_bits });
        }
        // |Σ vᵢ·2^(iW)| < 2^(slots·W − 1) + …, below 2^(slots·W), has to stay below N/2.
        let available = key.bits().saturating_sub(2);
        match slots.checked_mul(slot_bits) {
            Some(bits) if bits <= available => Ok(Self { slots, slot_bits }),
            _ => Err(PackingError::TooWide {
                slots,
                slot_bits,
                available,
            }),
        }
    }

    /// The most slots of this width that `key` has room for; zero if none fits.
    pub fn capacity(key: &PublicKey, slot_bits: usize) -> usize {
        key.bits().saturating_sub(2) / slot_bits.max(1)
    }

    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bits of a slot, its sign included.
    pub fn slot_bits(&self) -> usize {
        self.slot_bits
    }

    /// Packs one value a slot, none of which is beyond ±`bound`.
    pub fn pack(
        &self,
        values: &[Integer],
        bound: Natural,
    ) -> Result<PackedPlaintext, PackingError> {
        let (expected, found) = (self.slots, values.len());
        if expected != found {
            return Err(PackingError::Count { expected, found });
        }
        self.check(&bound)?;
        if let Some(slot) = values.iter().position(|v| v.magnitude() > &bound) {
            return Err(PackingError::BeyondBound { slot });
        }
        let row = values.iter().rev().fold(Integer::zero(), |row, value| {
            let shifted = Integer::from_parts(row.is_negative(), row.magnitude() << self.slot_bits);
            &shifted + value
        });
        Ok(PackedPlaintext {
            row,
            layout: *self,
            bound,
        })
    }

    /// The bound, if a slot can hold it.
    fn check(&self, bound: &Natural) -> Result<(), PackingError> {
        let needed = bound.bit_length() + 1;
        let slot_bits = self.slot_bits;
        match needed <= slot_bits {
            true => Ok(()),
            false => Err(PackingError::Overflow { needed, slot_bits }),
        }
    }

    /// Reads the slots back, lowest first.
    fn unpack(&self, row: &Integer, bound: &Natural) -> Result<Vec<Integer>, PackingError> {
        // Adding 2^(W−1) to each slot makes all of them non-negative digits in base 2^W.
        let half = Natural::power_of_two(self.slot_bits - 1);
        let ones =
            (0..self.slots).fold(Natural::zero(), |sum, _| &(&sum << self.slot_bits) + &half);
        let shifted = row + &Integer::from(ones);
        if shifted.is_negative() {
            return Err(PackingError::BrokenBound);
        }
        let base = Natural::power_of_two(self.slot_bits);
        let mut rest = shifted.magnitude().clone();
        let mut slots = Vec::with_capacity(self.slots);
        for _ in 0..self.slots {
            let high = &rest >> self.slot_bits;
            let digit = &Integer::from(rest) - &Integer::from(&high * &base);
            slots.push(&digit - &Integer::from(half.clone()));
            rest = high;
        }
        let kept = rest.is_zero() && slots.iter().all(|v| v.magnitude() <= bound);
        if kept {
            Ok(slots)
        } else {
            Err(PackingError::BrokenBound)
        }
    }
}

/// Packed values in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedPlaintext {
    row: Integer,
    layout: SlotLayout,
    bound: Natural,
}

impl PackedPlaintext {
    /// The layout.
    pub fn layout(&self) -> SlotLayout {
        self.layout
    }

    /// No slot is beyond ± this.
    pub fn bound(&self) -> &Natural {
        &self.bound
    }

    /// The values, lowest slot first.
    pub fn unpack(&self) -> Result<Vec<Integer>, PackingError> {
        self.layout.unpack(&self.row, &self.bound)
    }

    /// Encrypts all slots in one ciphertext.
    pub fn encrypt<R: CryptoRng + ?Sized>(
        &self,
        key: &PublicKey,
        rng: &mut R,
    ) -> Result<PackedCiphertext, PackingError> {
        let ciphertext = key.encrypt(&key.plaintext(self.row.clone())?, rng)?;
        Ok(self.with(ciphertext))
    }

    /// As [`encrypt`](Self::encrypt), by the key's owner.
    pub fn encrypt_as_owner<R: CryptoRng + ?Sized>(
        &self,
        key: &PrivateKey,
        rng: &mut R,
    ) -> Result<PackedCiphertext, PackingError> {
        let plaintext = key.public().plaintext(self.row.clone())?;
        Ok(self.with(key.encrypt(&plaintext, rng)?))
    }

    fn with(&self, ciphertext: Ciphertext) -> PackedCiphertext {
        PackedCiphertext {
            ciphertext,
            layout: self.layout,
            bound: self.bound.clone(),
        }
    }
}

/// Packed values under encryption, with the public bound on each slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedCiphertext {
    ciphertext: Ciphertext,
    layout: SlotLayout,
    bound: Natural,
}

impl PackedCiphertext {
    /// Takes a ciphertext that came from a peer as packed; layout and bound are known from the
    /// context, and whether the peer kept to them shows at decryption.
    pub fn from_parts(
        ciphertext: Ciphertext,
        layout: SlotLayout,
        bound: Natural,
    ) -> Result<Self, PackingError> {
        layout.check(&bound)?;
        Ok(Self {
            ciphertext,
            layout,
            bound,
        })
    }

    /// The ciphertext.
    pub fn ciphertext(&self) -> &Ciphertext {
        &self.ciphertext
    }

    /// The layout.
    pub fn layout(&self) -> SlotLayout {
        self.layout
    }

    /// No slot is beyond ± this.
    pub fn bound(&self) -> &Natural {
        &self.bound
    }

    /// Bits by which the values can still grow.
    pub fn headroom_bits(&self) -> usize {
        self.layout.slot_bits - 1 - self.bound.bit_length()
    }

    /// Adds slot by slot.
    pub fn add(&self, key: &PublicKey, other: &Self) -> Result<Self, PackingError> {
        let bound = self.sum_bound(other.layout, &other.bound)?;
        Self::from_parts(
            key.add(&self.ciphertext, &other.ciphertext)?,
            self.layout,
            bound,
        )
    }

    /// Adds known values slot by slot, for example masks.
    pub fn add_plaintext(
        &self,
        key: &PublicKey,
        other: &PackedPlaintext,
    ) -> Result<Self, PackingError> {
        let bound = self.sum_bound(other.layout, &other.bound)?;
        let plaintext = key.plaintext(other.row.clone())?;
        let sum = key.add_plaintext(&self.ciphertext, &plaintext)?;
        Self::from_parts(sum, self.layout, bound)
    }

    /// Multiplies every slot by one secret weight below 2^`weight_bits`.
    pub fn scale(
        &self,
        key: &PublicKey,
        weight: &Integer,
        weight_bits: usize,
    ) -> Result<Self, PackingError> {
        let bound = &self.bound << weight_bits;
        self.layout.check(&bound)?;
        let scaled = key.scale(&self.ciphertext, weight, weight_bits)?;
        Self::from_parts(scaled, self.layout, bound)
    }

    /// Σ weightᵢ·termᵢ slot by slot, for secret weights below 2^`weight_bits`. At least one term.
    pub fn linear_combination(
        key: &PublicKey,
        terms: &[(&Self, &Integer)],
        weight_bits: usize,
    ) -> Result<Self, PackingError> {
        let Some((first, _)) = terms.first() else {
            return Err(PackingError::Count {
                expected: 1,
                found: 0,
            });
        };
        let layout = first.layout;
        if terms.iter().any(|(term, _)| term.layout != layout) {
            return Err(PackingError::MixedLayouts);
        }
        let total = terms
            .iter()
            .fold(Natural::zero(), |sum, (term, _)| &sum + &term.bound);
        let bound = &total << weight_bits;
        layout.check(&bound)?;
        let plain: Vec<_> = terms
            .iter()
            .map(|(term, w)| (&term.ciphertext, *w))
            .collect();
        Self::from_parts(key.linear_combination(&plain, weight_bits)?, layout, bound)
    }

    /// Makes it impossible to link this to its origin.
    pub fn rerandomise<R: CryptoRng + ?Sized>(
        &self,
        key: &PublicKey,
        rng: &mut R,
    ) -> Result<Self, PackingError> {
        let fresh = key.rerandomise(&self.ciphertext, rng)?;
        Self::from_parts(fresh, self.layout, self.bound.clone())
    }

    /// Decrypts the slots, lowest first; refuses values that the bound excludes.
    pub fn decrypt(&self, key: &PrivateKey) -> Result<Vec<Integer>, PackingError> {
        let row = key.decrypt(&self.ciphertext)?;
        self.layout.unpack(row.integer(), &self.bound)
    }

    fn sum_bound(&self, layout: SlotLayout, bound: &Natural) -> Result<Natural, PackingError> {
        if layout != self.layout {
            return Err(PackingError::MixedLayouts);
        }
        let sum = &self.bound + bound;
        self.layout.check(&sum)?;
        Ok(sum)
    }
}

#[cfg(test)]
mod tests;
