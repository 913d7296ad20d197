//! Secure subtraction, Protocol 2 of the paper: Bob obtains \[a − b\] under Alice's key.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 1 | key, a | b | \[a − b\] |
//! | 2 | key, a | \[b\] | \[a − b\] |
//!
//! The paper lets Bob hold b⁻¹, which in Paillier's group is −b; here he holds b and negates it.
//!
//! Who learns what: Alice nothing; Bob nothing but a ciphertext (Paillier's semantic security).
//! The result is not re-randomised, because it stays with Bob: he must re-randomise whatever he
//! derives from it before Alice sees it, as [`exchange_keys`](crate::exchange_keys) does.
//!
//! Messages, in wire order (steps S1 and S2 of `docs/building-blocks.md`): Alice sends \[a\].
//!
//! ```
//! use heda_blocks::InputBits;
//! use heda_blocks::channel::Channel;
//! use heda_blocks::subtraction::{Alice, Bob};
//! # use heda_crypto::{integer::Integer, paillier::PrivateKey, random::Randomness};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let key = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let bits = InputBits { alice: 16, bob: 16 };
//! Alice::new(&key, bits)?.scalar(&mut to_bob, &Integer::from(20i64), &mut rng)?;
//! let result = Bob::new(key.public(), bits)?.scalar_clear(&mut to_alice, &Integer::from(3i64))?;
//! assert_eq!(key.decrypt(&result)?.to_i64(), Some(20 - 3));
//! # Ok(())
//! # }
//! ```

use crate::InputBits;
use crate::channel::Channel;
use crate::error::BlockError;
use crate::message::{
    check_lengths, check_paillier, magnitudes, only, plaintexts, receive_paillier, send_paillier,
    tag,
};
use heda_crypto::integer::Integer;
use heda_crypto::paillier::{Ciphertext, PrivateKey, PublicKey};
use rand_core::CryptoRng;
use std::slice::from_ref;

/// Holds the key and a.
#[derive(Debug)]
pub struct Alice<'k> {
    key: &'k PrivateKey,
    bits: InputBits,
}

impl<'k> Alice<'k> {
    /// Refuses lengths whose result could leave the key's range.
    pub fn new(key: &'k PrivateKey, bits: InputBits) -> Result<Self, BlockError> {
        check_capacity(key.public(), bits)?;
        Ok(Self { key, bits })
    }

    /// Step S1 for a vector.
    pub fn vector<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        a: &[Integer],
        rng: &mut R,
    ) -> Result<(), BlockError> {
        check_lengths(magnitudes(a), self.bits.alice)?;
        let encrypted = self
            .key
            .encrypt_batch(&plaintexts(self.key.public(), a)?, rng)?;
        send_paillier(channel, tag::SUBTRACTION, self.key.public(), &encrypted)
    }

    /// Step S1 for one number.
    pub fn scalar<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        a: &Integer,
        rng: &mut R,
    ) -> Result<(), BlockError> {
        self.vector(channel, from_ref(a), rng)
    }
}

/// Holds b, in clear or encrypted, and gets the result.
#[derive(Debug)]
pub struct Bob<'k> {
    key: &'k PublicKey,
    bits: InputBits,
}

impl<'k> Bob<'k> {
    /// Refuses lengths whose result could leave the key's range.
    pub fn new(key: &'k PublicKey, bits: InputBits) -> Result<Self, BlockError> {
        check_capacity(key, bits)?;
        Ok(Self { key, bits })
    }

    /// Step S2 under condition 1, for vectors.
    pub fn vector_clear(
        &self,
        channel: &mut Channel,
        b: &[Integer],
    ) -> Result<Vec<Ciphertext>, BlockError> {
        check_lengths(magnitudes(b), self.bits.bob)?;
        let negated: Vec<Integer> = b.iter().map(|b| -b.clone()).collect();
        let b = plaintexts(self.key, &negated)?;
        let a = receive_paillier(
            channel,
            tag::SUBTRACTION,
            self.key,
            b.len(),
            "subtraction input",
        )?;
        let pairs = a.iter().zip(&b);
        pairs
            .map(|(a, b)| Ok(self.key.add_plaintext(a, b)?))
            .collect()
    }

    /// Step S2 under condition 2, for vectors.
    pub fn vector_encrypted(
        &self,
        channel: &mut Channel,
        b: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, BlockError> {
        let a = receive_paillier(
            channel,
            tag::SUBTRACTION,
            self.key,
            b.len(),
            "subtraction input",
        )?;
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| Ok(self.key.subtract(a, b)?)).collect()
    }

    /// Step S2 under condition 1, for one number.
    pub fn scalar_clear(
        &self,
        channel: &mut Channel,
        b: &Integer,
    ) -> Result<Ciphertext, BlockError> {
        only(self.vector_clear(channel, from_ref(b))?)
    }

    /// Step S2 under condition 2, for one number.
    pub fn scalar_encrypted(
        &self,
        channel: &mut Channel,
        b: &Ciphertext,
    ) -> Result<Ciphertext, BlockError> {
        only(self.vector_encrypted(channel, from_ref(b))?)
    }
}

fn check_capacity(key: &PublicKey, bits: InputBits) -> Result<(), BlockError> {
    check_paillier("secure subtraction", key, bits.alice.max(bits.bob) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        ALICE, ALICE_2048, both, combined, decrypted, encrypted, integers, refuses_damage, rng,
        shaped_pairs,
    };

    const BITS: InputBits = InputBits { alice: 32, bob: 32 };

    fn equals_the_clear_computation(key: &PrivateKey, a: &[i64], b: &[i64]) {
        let alice = |channel: &mut Channel| {
            let alice = Alice::new(key, BITS).unwrap();
            alice.vector(channel, &integers(a), &mut rng(20)).unwrap();
            alice.vector(channel, &integers(a), &mut rng(21)).unwrap();
        };
        let bob = Bob::new(key.public(), BITS).unwrap();
        let ((), (clear, hidden)) = both(alice, |channel| {
            let clear = bob.vector_clear(channel, &integers(b)).unwrap();
            let b = encrypted(key, b);
            (clear, bob.vector_encrypted(channel, &b).unwrap())
        });
        let expected = combined(a, b, |a, b| a - b);
        assert_eq!(decrypted(key, &clear), expected);
        assert_eq!(decrypted(key, &hidden), expected);
    }

    #[test]
    fn equals_the_clear_computation_under_both_conditions() {
        let (a, b) = shaped_pairs();
        equals_the_clear_computation(&ALICE, &a, &b);
    }

    #[test]
    fn equals_the_clear_computation_at_2048_bits() {
        equals_the_clear_computation(&ALICE_2048, &[7, -1, 0], &[-9, -1, 4_000_000_000]);
    }

    #[test]
    fn scalars_are_vectors_of_one() {
        let (a, b) = (Integer::from(41i64), Integer::from(-17i64));
        let hidden_b = encrypted(&ALICE, &[-17]);
        let alice = Alice::new(&ALICE, BITS).unwrap();
        let bob = Bob::new(ALICE.public(), BITS).unwrap();
        let send = |channel: &mut Channel| {
            (0..2).for_each(|i| alice.scalar(channel, &a, &mut rng(i)).unwrap());
        };
        let ((), results) = both(send, |channel| {
            let clear = bob.scalar_clear(channel, &b).unwrap();
            [clear, bob.scalar_encrypted(channel, &hidden_b[0]).unwrap()]
        });
        let expected = Integer::from(41i64 + 17);
        assert_eq!(decrypted(&ALICE, &results), [expected.clone(), expected]);
    }

    #[test]
    fn a_damaged_message_blames_the_peer() {
        let message = ALICE.public().encode(&encrypted(&ALICE, &[1, 2])).unwrap();
        let bob = Bob::new(ALICE.public(), BITS).unwrap();
        let b = encrypted(&ALICE, &[3, 4]);
        refuses_damage(tag::SUBTRACTION, &message, |channel| {
            bob.vector_clear(channel, &integers(&[3, 4]))
        });
        refuses_damage(tag::SUBTRACTION, &message, |channel| {
            bob.vector_encrypted(channel, &b)
        });
    }

    #[test]
    fn what_could_wrap_is_refused_before_anything_is_encrypted() {
        let bits = InputBits { alice: 510, bob: 1 };
        let refused = Alice::new(&ALICE, bits).unwrap_err();
        assert!(matches!(
            refused,
            BlockError::Capacity {
                needed: 511,
                available: 510,
                ..
            }
        ));
        assert!(Bob::new(ALICE.public(), bits).is_err());
        let (mut channel, _other) = Channel::pair(std::time::Duration::from_millis(10));
        let alice = Alice::new(&ALICE, BITS).unwrap();
        let refused = alice.vector(&mut channel, &integers(&[1, 1 << 32]), &mut rng(0));
        let expected = BlockError::Input {
            index: 1,
            bits: 33,
            allowed: 32,
        };
        assert_eq!(refused.unwrap_err(), expected);
        assert_eq!(channel.total_traffic().bytes_sent, 0);
    }
}
