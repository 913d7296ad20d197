//! Exchange 2, Protocol 7 of the paper: \[b\] under Alice's key becomes \[b\] under Bob's.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 4 | her key, Bob's public key | \[b\] under Alice's key | \[b\] under Bob's key |
//!
//! Who learns what: Alice decrypts b + r, where r has [`HIDING_BITS`] more bits than b can have,
//! so what she sees is within 2^−80 of independent of b. Bob obtains a ciphertext under his own
//! key and may decrypt it: that is the purpose.
//!
//! The mask is added over the integers and not modulo Alice's N, because a wrap modulo her N
//! could not be undone under Bob's. Room for that is checked first.
//!
//! Messages, in wire order (steps K1 to K3 of `docs/building-blocks.md`): Bob sends [b + r] under
//! Alice's key, re-randomised; Alice sends [b + r] under Bob's key; Bob subtracts r.
//!
//! ```
//! use heda_blocks::channel::Channel;
//! use heda_paper::blocks::exchange_keys::{Alice, Bob};
//! # use heda_crypto::random::Randomness;
//! # use heda_paper::paillier::PrivateKey;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let alice_key = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # let bob_key = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let bits = 32;
//! let alice = Alice::new(&alice_key, bob_key.public(), bits)?;
//! let bob = Bob::new(alice_key.public(), bob_key.public(), bits)?;
//! let b = alice_key.public().encrypt(&alice_key.public().plaintext(-5i64)?, &mut rng)?;
//! let waiting = bob.send(&mut to_alice, &[b], &mut rng)?;
//! alice.answer(&mut to_bob, 1, &mut rng)?;
//! let exchanged = waiting.finish(&mut to_alice)?;
//! assert_eq!(bob_key.decrypt(&exchanged[0])?.to_i64(), Some(-5));
//! # Ok(())
//! # }
//! ```

use crate::blocks::error::BlockError;
use crate::blocks::message::{check_lengths, check_paillier, receive_paillier, send_paillier, tag};
use crate::integer::{Integer, Natural};
use crate::paillier::{Ciphertext, Plaintext, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use rand_core::CryptoRng;

/// By how many bits the mask is longer than what it hides.
pub const HIDING_BITS: usize = 80;

/// Bits of b + r for a b below 2^`bits` in absolute value.
pub const fn masked_bits(bits: usize) -> usize {
    bits + HIDING_BITS + 1
}

/// Holds the key under which b is encrypted.
#[derive(Debug)]
pub struct Alice<'k> {
    own: &'k PrivateKey,
    bobs: &'k PublicKey,
    bits: usize,
}

impl<'k> Alice<'k> {
    /// For numbers below 2^`bits`; refuses a length whose mask does not fit both keys.
    pub fn new(own: &'k PrivateKey, bobs: &'k PublicKey, bits: usize) -> Result<Self, BlockError> {
        check_capacity(own.public(), bobs, bits)?;
        Ok(Self { own, bobs, bits })
    }

    /// Step K2, for `count` numbers.
    pub fn answer<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        count: usize,
        rng: &mut R,
    ) -> Result<(), BlockError> {
        let own = self.own.public();
        let masked = receive_paillier(channel, tag::KEY_MASKED, own, count, "masked numbers")?;
        let numbers: Vec<Integer> = self
            .own
            .decrypt_batch(&masked)?
            .into_iter()
            .map(Plaintext::into_integer)
            .collect();
        check_lengths(
            numbers.iter().map(Integer::magnitude),
            masked_bits(self.bits),
        )
        .map_err(|_| BlockError::peer("masked numbers", "one is beyond the agreed bound"))?;
        let plain = numbers.into_iter().map(|n| Ok(self.bobs.plaintext(n)?));
        let plain = plain.collect::<Result<Vec<_>, BlockError>>()?;
        let reply = self.bobs.encrypt_batch(&plain, rng)?;
        send_paillier(channel, tag::KEY_EXCHANGED, self.bobs, &reply)
    }
}

/// Holds \[b\] under Alice's key and wants it under his own.
#[derive(Debug)]
pub struct Bob<'k> {
    alices: &'k PublicKey,
    own: &'k PublicKey,
    bits: usize,
}

impl<'k> Bob<'k> {
    /// For numbers below 2^`bits`; refuses a length whose mask does not fit both keys.
    pub fn new(alices: &'k PublicKey, own: &'k PublicKey, bits: usize) -> Result<Self, BlockError> {
        check_capacity(alices, own, bits)?;
        Ok(Self { alices, own, bits })
    }

    /// Step K1.
    pub fn send<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        numbers: &[Ciphertext],
        rng: &mut R,
    ) -> Result<Waiting<'k>, BlockError> {
        let mask_bits = (self.bits + HIDING_BITS) as u32;
        let mut draw = || Integer::from(Natural::random_bits(mask_bits, rng));
        let masks: Vec<Integer> = numbers.iter().map(|_| draw()).collect();
        let pairs = numbers.iter().zip(&masks);
        let add = |(b, r): (&Ciphertext, &Integer)| {
            let r = self.alices.plaintext(r.clone())?;
            Ok(self.alices.add_plaintext(b, &r)?)
        };
        let masked = pairs.map(add).collect::<Result<Vec<_>, BlockError>>()?;
        // Without fresh randomness Alice would see how the ciphertext was made from hers.
        let masked = self.alices.rerandomise_batch(&masked, rng)?;
        send_paillier(channel, tag::KEY_MASKED, self.alices, &masked)?;
        let own = self.own;
        Ok(Waiting { own, masks })
    }
}

/// Bob between his message and Alice's. Consumed by her answer, so no mask is used twice.
pub struct Waiting<'k> {
    own: &'k PublicKey,
    masks: Vec<Integer>,
}

impl Waiting<'_> {
    /// Step K3.
    pub fn finish(self, channel: &mut Channel) -> Result<Vec<Ciphertext>, BlockError> {
        let count = self.masks.len();
        let tag = tag::KEY_EXCHANGED;
        let masked = receive_paillier(channel, tag, self.own, count, "exchanged numbers")?;
        let subtract = |(c, r): (&Ciphertext, Integer)| {
            Ok(self.own.add_plaintext(c, &self.own.plaintext(-r)?)?)
        };
        masked.iter().zip(self.masks).map(subtract).collect()
    }
}

/// Keeps the masks out of logs.
impl std::fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({} numbers)", self.masks.len())
    }
}

fn check_capacity(alices: &PublicKey, bobs: &PublicKey, bits: usize) -> Result<(), BlockError> {
    let needed = masked_bits(bits);
    check_paillier("exchange 2", alices, needed)?;
    check_paillier("exchange 2", bobs, needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::testing::{
        ALICE, ALICE_2048, BOB, BOB_2048, both, decrypted, encrypted, hostile, integers,
        refuses_damage, rng, shaped,
    };

    const BITS: usize = 32;

    fn equals_the_input(alices: &PrivateKey, bobs: &PrivateKey, values: &[i64]) {
        let alice = Alice::new(alices, bobs.public(), BITS).unwrap();
        let bob = Bob::new(alices.public(), bobs.public(), BITS).unwrap();
        let count = values.len();
        let answer = |channel: &mut Channel| alice.answer(channel, count, &mut rng(1)).unwrap();
        let ((), exchanged) = both(answer, |channel| {
            let waiting = bob
                .send(channel, &encrypted(alices, values), &mut rng(2))
                .unwrap();
            waiting.finish(channel).unwrap()
        });
        assert_eq!(decrypted(bobs, &exchanged), integers(values));
    }

    #[test]
    fn numbers_arrive_under_the_other_key() {
        equals_the_input(&ALICE, &BOB, &shaped());
        equals_the_input(&BOB, &ALICE, &shaped());
        shaped()
            .into_iter()
            .for_each(|one| equals_the_input(&ALICE, &BOB, &[one]));
    }

    #[test]
    fn numbers_arrive_under_the_other_key_at_2048_bits() {
        equals_the_input(&ALICE_2048, &BOB_2048, &[0, -4_000_000_000, 17]);
    }

    #[test]
    fn damaged_messages_blame_the_peer() {
        let alice = Alice::new(&ALICE, BOB.public(), BITS).unwrap();
        let bob = Bob::new(ALICE.public(), BOB.public(), BITS).unwrap();
        let numbers = encrypted(&ALICE, &[1, 2]);
        let message = ALICE.public().encode(&numbers).unwrap();
        refuses_damage(tag::KEY_MASKED, &message, |channel| {
            alice.answer(channel, 2, &mut rng(3))
        });
        let message = BOB.public().encode(&encrypted(&BOB, &[1, 2])).unwrap();
        refuses_damage(tag::KEY_EXCHANGED, &message, |channel| {
            bob.send(channel, &numbers, &mut rng(4))?.finish(channel)
        });
    }

    #[test]
    fn a_number_beyond_the_bound_blames_the_peer() {
        let beyond = Natural::power_of_two(masked_bits(BITS));
        let plain = ALICE.public().plaintext(beyond).unwrap();
        let number = ALICE.encrypt(&plain, &mut rng(5)).unwrap();
        let message = ALICE.public().encode(&[number]).unwrap();
        let (mut own, _peer) = hostile(tag::KEY_MASKED, &message);
        let alice = Alice::new(&ALICE, BOB.public(), BITS).unwrap();
        let error = alice.answer(&mut own, 1, &mut rng(6)).unwrap_err();
        assert!(matches!(
            error,
            BlockError::Peer {
                message: "masked numbers",
                ..
            }
        ));
    }

    #[test]
    fn a_mask_without_room_is_refused() {
        assert!(Bob::new(ALICE.public(), BOB.public(), 429).is_ok());
        let refused = Bob::new(ALICE.public(), BOB.public(), 430).unwrap_err();
        assert!(matches!(
            refused,
            BlockError::Capacity {
                needed: 511,
                available: 510,
                ..
            }
        ));
        assert!(Alice::new(&ALICE, BOB.public(), 430).is_err());
    }
}
