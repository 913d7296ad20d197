//! Secure dot product, Protocol 3 of the paper: Bob obtains [Σ aᵢ·bᵢ] under Alice's key.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 1 | key, a | b | \[a · b\] |
//!
//! Paillier's cryptosystem cannot multiply two encrypted numbers, so there is no condition 2;
//! [`multiplication`](super::multiplication) has it, with RSA.
//!
//! Who learns what: Alice nothing; Bob nothing but a ciphertext. The time that Bob needs depends
//! on the announced lengths only. The result is not re-randomised: it stays with Bob.
//!
//! Messages, in wire order (steps D1 and D2 of `docs/building-blocks.md`): Alice sends \[a\].
//!
//! ```
//! use heda_paper::blocks::InputBits;
//! use heda_blocks::channel::Channel;
//! use heda_paper::blocks::dot_product::{Alice, Bob};
//! # use heda_crypto::random::Randomness;
//! # use heda_paper::{integer::Integer, paillier::PrivateKey};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let key = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let bits = InputBits { alice: 16, bob: 16 };
//! let (a, b) = ([2i64, -3].map(Integer::from), [10i64, 4].map(Integer::from));
//! Alice::new(&key, bits, 2)?.vector(&mut to_bob, &a, &mut rng)?;
//! let result = Bob::new(key.public(), bits, 2)?.vector(&mut to_alice, &b)?;
//! assert_eq!(key.decrypt(&result)?.to_i64(), Some(8));
//! # Ok(())
//! # }
//! ```

use crate::blocks::InputBits;
use crate::blocks::error::{BlockError, Misuse};
use crate::blocks::message::{
    check_lengths, check_paillier, check_same_length, magnitudes, receive_paillier, send_inputs,
    tag,
};
use crate::integer::Integer;
use crate::paillier::{Ciphertext, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use rand_core::CryptoRng;
use std::slice::from_ref;

/// Holds the key and a.
#[derive(Debug)]
pub struct Alice<'k> {
    key: &'k PrivateKey,
    bits: InputBits,
    longest: usize,
}

impl<'k> Alice<'k> {
    /// For vectors of at most `longest` numbers; refuses what could leave the key's range.
    pub fn new(key: &'k PrivateKey, bits: InputBits, longest: usize) -> Result<Self, BlockError> {
        check_capacity(key.public(), bits, longest)?;
        Ok(Self { key, bits, longest })
    }

    /// Step D1.
    pub fn vector<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        a: &[Integer],
        rng: &mut R,
    ) -> Result<(), BlockError> {
        check_count(a.len(), self.longest)?;
        send_inputs(channel, tag::DOT_PRODUCT, self.key, a, self.bits.alice, rng)
    }

    /// Step D1 for one number.
    pub fn scalar<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        a: &Integer,
        rng: &mut R,
    ) -> Result<(), BlockError> {
        self.vector(channel, from_ref(a), rng)
    }
}

/// Holds b and gets the result.
#[derive(Debug)]
pub struct Bob<'k> {
    key: &'k PublicKey,
    bits: InputBits,
    longest: usize,
}

impl<'k> Bob<'k> {
    /// For vectors of at most `longest` numbers; refuses what could leave the key's range.
    pub fn new(key: &'k PublicKey, bits: InputBits, longest: usize) -> Result<Self, BlockError> {
        check_capacity(key, bits, longest)?;
        Ok(Self { key, bits, longest })
    }

    /// Step D2.
    pub fn vector(&self, channel: &mut Channel, b: &[Integer]) -> Result<Ciphertext, BlockError> {
        self.check(b)?;
        let (key, count) = (self.key, b.len());
        let a = receive_paillier(channel, tag::DOT_PRODUCT, key, count, "dot product input")?;
        self.combine(&a, b)
    }

    /// Step D2 with Alice's numbers that Bob has already: in training a column is sent once.
    pub fn combine(&self, a: &[Ciphertext], b: &[Integer]) -> Result<Ciphertext, BlockError> {
        self.check(b)?;
        check_same_length(a.len(), b.len())?;
        let terms: Vec<(&Ciphertext, &Integer)> = a.iter().zip(b).collect();
        Ok(self.key.linear_combination(&terms, self.bits.bob)?)
    }

    fn check(&self, b: &[Integer]) -> Result<(), BlockError> {
        check_count(b.len(), self.longest)?;
        check_lengths(magnitudes(b), self.bits.bob)
    }

    /// Step D2 for one number.
    pub fn scalar(&self, channel: &mut Channel, b: &Integer) -> Result<Ciphertext, BlockError> {
        self.vector(channel, from_ref(b))
    }
}

fn check_count(found: usize, longest: usize) -> Result<(), BlockError> {
    match found <= longest {
        true => Ok(()),
        false => Err(Misuse::Count { found, longest }.into()),
    }
}

fn check_capacity(key: &PublicKey, bits: InputBits, longest: usize) -> Result<(), BlockError> {
    let growth = longest.max(1).next_power_of_two().ilog2() as usize;
    check_paillier("secure dot product", key, bits.alice + bits.bob + growth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::testing::{
        ALICE, ALICE_2048, both, decrypted, encrypted, integers, refuses_damage, rng, shaped_pairs,
    };

    const BITS: InputBits = InputBits { alice: 32, bob: 32 };

    fn equals_the_clear_computation(key: &PrivateKey, a: &[i64], b: &[i64]) {
        let alice = |channel: &mut Channel| {
            let alice = Alice::new(key, BITS, a.len()).unwrap();
            alice.vector(channel, &integers(a), &mut rng(20)).unwrap();
        };
        let bob = Bob::new(key.public(), BITS, b.len()).unwrap();
        let ((), result) = both(alice, |channel| bob.vector(channel, &integers(b)).unwrap());
        let products = a
            .iter()
            .zip(b)
            .map(|(&a, &b)| i128::from(a) * i128::from(b));
        assert_eq!(
            decrypted(key, &[result]),
            [Integer::from(products.sum::<i128>())]
        );
    }

    #[test]
    fn equals_the_clear_computation_for_vectors_and_scalars() {
        let (a, b) = shaped_pairs();
        equals_the_clear_computation(&ALICE, &a, &b);
        for (a, b) in a.iter().zip(&b).step_by(3) {
            let alice = Alice::new(&ALICE, BITS, 1).unwrap();
            let bob = Bob::new(ALICE.public(), BITS, 1).unwrap();
            let (a_number, b_number) = (Integer::from(*a), Integer::from(*b));
            let send = |channel: &mut Channel| alice.scalar(channel, &a_number, &mut rng(1));
            let (sent, result) = both(send, |channel| bob.scalar(channel, &b_number).unwrap());
            sent.unwrap();
            let product = i128::from(*a) * i128::from(*b);
            assert_eq!(decrypted(&ALICE, &[result]), [Integer::from(product)]);
        }
    }

    #[test]
    fn equals_the_clear_computation_at_2048_bits() {
        equals_the_clear_computation(&ALICE_2048, &[7, -1, 0], &[-9, -1, 4_000_000_000]);
    }

    #[test]
    fn numbers_that_bob_has_already_give_the_same_and_must_be_as_many() {
        let (a, b) = (encrypted(&ALICE, &[7, -1, 0, 5]), integers(&[-9, -1, 4, 3]));
        let bob = Bob::new(ALICE.public(), BITS, 4).unwrap();
        let result = bob.combine(&a, &b).unwrap();
        assert_eq!(decrypted(&ALICE, &[result]), integers(&[-47]));
        let refused = bob.combine(&a[..3], &b).unwrap_err();
        let lengths = Misuse::Lengths { alice: 3, bob: 4 };
        assert_eq!(refused, lengths.into());
    }

    #[test]
    fn a_damaged_message_blames_the_peer() {
        let message = ALICE.public().encode(&encrypted(&ALICE, &[1, 2])).unwrap();
        let bob = Bob::new(ALICE.public(), BITS, 2).unwrap();
        let b = integers(&[3, 4]);
        refuses_damage(tag::DOT_PRODUCT, &message, |channel| {
            bob.vector(channel, &b)
        });
    }

    #[test]
    fn what_could_wrap_is_refused_before_anything_is_encrypted() {
        let bits = InputBits {
            alice: 254,
            bob: 254,
        };
        assert!(Alice::new(&ALICE, bits, 4).is_ok());
        let refused = Alice::new(&ALICE, bits, 5).unwrap_err();
        assert!(matches!(
            refused,
            BlockError::Capacity {
                needed: 511,
                available: 510,
                ..
            }
        ));
        assert!(Bob::new(ALICE.public(), bits, 5).is_err());
        let (mut channel, _other) = Channel::pair(std::time::Duration::from_millis(10));
        let alice = Alice::new(&ALICE, BITS, 1).unwrap();
        let too_many = alice.vector(&mut channel, &integers(&[1, 2]), &mut rng(0));
        let (found, longest) = (2, 1);
        assert_eq!(too_many, Err(Misuse::Count { found, longest }.into()));
        assert_eq!(channel.total_traffic().bytes_sent, 0);
    }
}
