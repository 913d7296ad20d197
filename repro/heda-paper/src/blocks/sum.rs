//! What [`addition`](crate::blocks::addition) and [`subtraction`](crate::blocks::subtraction) have in common:
//! Alice encrypts her numbers and sends them, Bob adds his own or takes them away.

use crate::blocks::InputBits;
use crate::blocks::error::BlockError;
use crate::blocks::message::{
    check_lengths, check_paillier, check_same_length, magnitudes, only, plaintexts,
    receive_paillier, send_inputs,
};
use crate::integer::Integer;
use crate::paillier::{Ciphertext, PaillierError, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use rand_core::CryptoRng;
use std::marker::PhantomData;
use std::slice::from_ref;

/// What Bob does with his number.
pub trait Operation: std::fmt::Debug {
    /// Tag of Alice's message.
    const TAG: u8;
    /// Name of the block in errors.
    const BLOCK: &'static str;
    /// Name of Alice's message in errors.
    const MESSAGE: &'static str;

    /// What is added to \[a\] for a number b in clear.
    fn addend(b: &Integer) -> Integer;

    /// \[a\] and \[b\] combined, number by number.
    fn combine(
        key: &PublicKey,
        a: &[Ciphertext],
        b: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, PaillierError>;
}

/// Holds the key and a.
#[derive(Debug)]
pub struct Alice<'k, O> {
    key: &'k PrivateKey,
    bits: InputBits,
    operation: PhantomData<fn() -> O>,
}

impl<'k, O: Operation> Alice<'k, O> {
    /// Refuses lengths whose result could leave the key's range.
    pub fn new(key: &'k PrivateKey, bits: InputBits) -> Result<Self, BlockError> {
        check_capacity::<O>(key.public(), bits)?;
        Ok(Self {
            key,
            bits,
            operation: PhantomData,
        })
    }

    /// Step A1 or S1 for a vector.
    pub fn vector<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        a: &[Integer],
        rng: &mut R,
    ) -> Result<(), BlockError> {
        send_inputs(channel, O::TAG, self.key, a, self.bits.alice, rng)
    }

    /// Step A1 or S1 for one number.
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
pub struct Bob<'k, O> {
    key: &'k PublicKey,
    bits: InputBits,
    operation: PhantomData<fn() -> O>,
}

impl<'k, O: Operation> Bob<'k, O> {
    /// Refuses lengths whose result could leave the key's range.
    pub fn new(key: &'k PublicKey, bits: InputBits) -> Result<Self, BlockError> {
        check_capacity::<O>(key, bits)?;
        Ok(Self {
            key,
            bits,
            operation: PhantomData,
        })
    }

    /// Step A2 or S2 under condition 1, for vectors.
    pub fn vector_clear(
        &self,
        channel: &mut Channel,
        b: &[Integer],
    ) -> Result<Vec<Ciphertext>, BlockError> {
        check_lengths(magnitudes(b), self.bits.bob)?;
        let addends: Vec<Integer> = b.iter().map(O::addend).collect();
        let addends = plaintexts(self.key, &addends)?;
        let a = self.receive(channel, addends.len())?;
        let pairs = a.iter().zip(&addends);
        pairs
            .map(|(a, b)| Ok(self.key.add_plaintext(a, b)?))
            .collect()
    }

    /// Step A2 or S2 under condition 2, for vectors.
    pub fn vector_encrypted(
        &self,
        channel: &mut Channel,
        b: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, BlockError> {
        self.combine(&self.receive(channel, b.len())?, b)
    }

    /// The same with Alice's numbers that Bob has already: in training a column is sent once.
    pub fn combine(
        &self,
        a: &[Ciphertext],
        b: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, BlockError> {
        check_same_length(a.len(), b.len())?;
        Ok(O::combine(self.key, a, b)?)
    }

    /// Step A2 or S2 under condition 1, for one number.
    pub fn scalar_clear(
        &self,
        channel: &mut Channel,
        b: &Integer,
    ) -> Result<Ciphertext, BlockError> {
        only(self.vector_clear(channel, from_ref(b))?)
    }

    /// Step A2 or S2 under condition 2, for one number.
    pub fn scalar_encrypted(
        &self,
        channel: &mut Channel,
        b: &Ciphertext,
    ) -> Result<Ciphertext, BlockError> {
        only(self.vector_encrypted(channel, from_ref(b))?)
    }

    fn receive(&self, channel: &mut Channel, count: usize) -> Result<Vec<Ciphertext>, BlockError> {
        receive_paillier(channel, O::TAG, self.key, count, O::MESSAGE)
    }
}

fn check_capacity<O: Operation>(key: &PublicKey, bits: InputBits) -> Result<(), BlockError> {
    check_paillier(O::BLOCK, key, bits.alice.max(bits.bob) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::addition::Plus;
    use crate::blocks::subtraction::Minus;
    use crate::blocks::testing::{
        ALICE, ALICE_2048, both, combined, decrypted, encrypted, integers, refuses_damage, rng,
        shaped_pairs,
    };

    const BITS: InputBits = InputBits { alice: 32, bob: 32 };

    fn equals_the_clear_computation<O: Operation>(
        key: &PrivateKey,
        [a, b]: [&[i64]; 2],
        clear: fn(i64, i64) -> i64,
    ) {
        let alice = |channel: &mut Channel| {
            let alice = Alice::<O>::new(key, BITS).unwrap();
            alice.vector(channel, &integers(a), &mut rng(20)).unwrap();
            alice.vector(channel, &integers(a), &mut rng(21)).unwrap();
        };
        let bob = Bob::<O>::new(key.public(), BITS).unwrap();
        let expected = combined(a, b, clear);
        let ((), (clear, hidden)) = both(alice, |channel| {
            let clear = bob.vector_clear(channel, &integers(b)).unwrap();
            let b = encrypted(key, b);
            (clear, bob.vector_encrypted(channel, &b).unwrap())
        });
        assert_eq!(decrypted(key, &clear), expected);
        assert_eq!(decrypted(key, &hidden), expected);
    }

    #[test]
    fn equals_the_clear_computation_under_both_conditions() {
        let (a, b) = shaped_pairs();
        equals_the_clear_computation::<Plus>(&ALICE, [&a, &b], |a, b| a + b);
        equals_the_clear_computation::<Minus>(&ALICE, [&a, &b], |a, b| a - b);
    }

    #[test]
    fn equals_the_clear_computation_at_2048_bits() {
        let pairs: [&[i64]; 2] = [&[7, -1, 0], &[-9, -1, 4_000_000_000]];
        equals_the_clear_computation::<Plus>(&ALICE_2048, pairs, |a, b| a + b);
        equals_the_clear_computation::<Minus>(&ALICE_2048, pairs, |a, b| a - b);
    }

    #[test]
    fn scalars_are_vectors_of_one() {
        scalars_give::<Plus>(41 + -17);
        scalars_give::<Minus>(41 + 17);
    }

    fn scalars_give<O: Operation>(expected: i64) {
        let (a, b) = (Integer::from(41i64), Integer::from(-17i64));
        let hidden_b = encrypted(&ALICE, &[-17]);
        let alice = Alice::<O>::new(&ALICE, BITS).unwrap();
        let bob = Bob::<O>::new(ALICE.public(), BITS).unwrap();
        let send = |channel: &mut Channel| {
            (0..2).for_each(|i| alice.scalar(channel, &a, &mut rng(i)).unwrap());
        };
        let ((), results) = both(send, |channel| {
            let clear = bob.scalar_clear(channel, &b).unwrap();
            [clear, bob.scalar_encrypted(channel, &hidden_b[0]).unwrap()]
        });
        let expected = Integer::from(expected);
        assert_eq!(decrypted(&ALICE, &results), [expected.clone(), expected]);
    }

    #[test]
    fn a_damaged_message_blames_the_peer() {
        damage_blames_the_peer::<Plus>();
        damage_blames_the_peer::<Minus>();
    }

    fn damage_blames_the_peer<O: Operation>() {
        let message = ALICE.public().encode(&encrypted(&ALICE, &[1, 2])).unwrap();
        let bob = Bob::<O>::new(ALICE.public(), BITS).unwrap();
        let b = encrypted(&ALICE, &[3, 4]);
        refuses_damage(O::TAG, &message, |channel| {
            bob.vector_clear(channel, &integers(&[3, 4]))
        });
        refuses_damage(O::TAG, &message, |channel| {
            bob.vector_encrypted(channel, &b)
        });
    }

    #[test]
    fn what_could_wrap_is_refused_before_anything_is_encrypted() {
        refuses_what_could_wrap::<Plus>();
        refuses_what_could_wrap::<Minus>();
    }

    fn refuses_what_could_wrap<O: Operation>() {
        let bits = InputBits { alice: 510, bob: 1 };
        let refused = Alice::<O>::new(&ALICE, bits).unwrap_err();
        assert!(matches!(
            refused,
            BlockError::Capacity {
                needed: 511,
                available: 510,
                ..
            }
        ));
        assert!(Bob::<O>::new(ALICE.public(), bits).is_err());
        let (mut channel, _other) = Channel::pair(std::time::Duration::from_millis(10));
        let alice = Alice::<O>::new(&ALICE, BITS).unwrap();
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
