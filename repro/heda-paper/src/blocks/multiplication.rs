//! Secure multiplication, Protocol 4 of the paper: Bob obtains ‖a·b‖ under Alice's RSA key.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 2 | key, a | ‖b‖ | ‖a · b‖ |
//!
//! Who learns what: Alice nothing. **Bob may learn a**: textbook RSA is deterministic, so he can
//! encrypt guesses of a and compare. See [`hazmat_rsa`](crate::hazmat_rsa). Numbers are not negative.
//!
//! Messages, in wire order (steps M1 and M2 of `docs/building-blocks.md`): Alice sends ‖a‖.
//!
//! ```
//! use heda_paper::blocks::InputBits;
//! use heda_blocks::channel::Channel;
//! use heda_paper::blocks::multiplication::{Alice, Bob};
//! # use heda_crypto::random::Randomness;
//! # use heda_paper::{hazmat_rsa::RsaPrivateKey, integer::Natural};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let key = RsaPrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let bits = InputBits { alice: 16, bob: 16 };
//! let b = key.public().encrypt(&Natural::from(7u64))?;
//! Alice::new(key.public(), bits)?.scalar(&mut to_bob, &Natural::from(6u64))?;
//! let result = Bob::new(key.public(), bits)?.scalar(&mut to_alice, &b)?;
//! assert_eq!(key.decrypt(&result)?.to_u64(), Some(42));
//! # Ok(())
//! # }
//! ```

use crate::blocks::InputBits;
use crate::blocks::error::BlockError;
use crate::blocks::message::{
    check_lengths, check_rsa, check_same_length, only, receive_rsa, send_rsa, tag,
};
use crate::hazmat_rsa::{RsaCiphertext, RsaPublicKey};
use crate::integer::Natural;
use heda_blocks::channel::Channel;
use std::slice::from_ref;

/// Holds a. Encryption needs only the public half of her key.
#[derive(Debug)]
pub struct Alice<'k> {
    key: &'k RsaPublicKey,
    bits: InputBits,
}

impl<'k> Alice<'k> {
    /// Refuses lengths whose product could leave the key's range.
    pub fn new(key: &'k RsaPublicKey, bits: InputBits) -> Result<Self, BlockError> {
        check_capacity(key, bits)?;
        Ok(Self { key, bits })
    }

    /// Step M1.
    pub fn vector(&self, channel: &mut Channel, a: &[Natural]) -> Result<(), BlockError> {
        check_lengths(a, self.bits.alice)?;
        let encrypted = self.key.encrypt_batch(a)?;
        send_rsa(channel, tag::MULTIPLICATION, self.key, &encrypted)
    }

    /// Step M1 for one number.
    pub fn scalar(&self, channel: &mut Channel, a: &Natural) -> Result<(), BlockError> {
        self.vector(channel, from_ref(a))
    }
}

/// Holds ‖b‖ and gets the result.
#[derive(Debug)]
pub struct Bob<'k> {
    key: &'k RsaPublicKey,
}

impl<'k> Bob<'k> {
    /// Refuses lengths whose product could leave the key's range.
    pub fn new(key: &'k RsaPublicKey, bits: InputBits) -> Result<Self, BlockError> {
        check_capacity(key, bits)?;
        Ok(Self { key })
    }

    /// Step M2: number by number.
    pub fn vector(
        &self,
        channel: &mut Channel,
        b: &[RsaCiphertext],
    ) -> Result<Vec<RsaCiphertext>, BlockError> {
        let (key, count) = (self.key, b.len());
        let a = receive_rsa(channel, tag::MULTIPLICATION, key, count, "factors")?;
        self.combine(&a, b)
    }

    /// Step M2 with Alice's numbers that Bob has already.
    pub fn combine(
        &self,
        a: &[RsaCiphertext],
        b: &[RsaCiphertext],
    ) -> Result<Vec<RsaCiphertext>, BlockError> {
        check_same_length(a.len(), b.len())?;
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| Ok(self.key.multiply(a, b)?)).collect()
    }

    /// Step M2 for one number.
    pub fn scalar(
        &self,
        channel: &mut Channel,
        b: &RsaCiphertext,
    ) -> Result<RsaCiphertext, BlockError> {
        only(self.vector(channel, from_ref(b))?)
    }
}

fn check_capacity(key: &RsaPublicKey, bits: InputBits) -> Result<(), BlockError> {
    check_rsa("secure multiplication", key, bits.alice + bits.bob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::testing::{RSA, RSA_2048, both, refuses_damage};
    use crate::hazmat_rsa::RsaPrivateKey;

    const BITS: InputBits = InputBits { alice: 64, bob: 64 };

    fn naturals(values: &[u64]) -> Vec<Natural> {
        values.iter().map(|&v| Natural::from(v)).collect()
    }

    fn equals_the_clear_computation(key: &RsaPrivateKey, a: &[u64], b: &[u64]) {
        let public = key.public();
        let alice = Alice::new(public, BITS).unwrap();
        let bob = Bob::new(public, BITS).unwrap();
        let hidden = public.encrypt_batch(&naturals(b)).unwrap();
        let send = |channel: &mut Channel| {
            alice.vector(channel, &naturals(a)).unwrap();
            alice.scalar(channel, &Natural::from(a[0])).unwrap();
        };
        let ((), (results, one)) = both(send, |channel| {
            let results = bob.vector(channel, &hidden).unwrap();
            (results, bob.scalar(channel, &hidden[0]).unwrap())
        });
        assert_eq!(one, results[0]);
        let found = key.decrypt_batch(&results).unwrap();
        let pairs = a.iter().zip(b);
        let expected: Vec<Natural> = pairs
            .map(|(&a, &b)| Natural::from(u128::from(a) * u128::from(b)))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn equals_the_clear_computation_on_shaped_numbers() {
        let shaped = [0, 1, 2, 1 << 32, u64::MAX, 0xdead_beef];
        for a in shaped {
            equals_the_clear_computation(&RSA, &[a; 6], &shaped);
        }
    }

    #[test]
    fn equals_the_clear_computation_at_2048_bits() {
        equals_the_clear_computation(&RSA_2048, &[u64::MAX, 0, 3], &[u64::MAX, 9, 1]);
    }

    #[test]
    fn a_damaged_message_blames_the_peer() {
        let hidden = RSA.public().encrypt_batch(&naturals(&[3, 4])).unwrap();
        let message = RSA.public().encode(&hidden).unwrap();
        let bob = Bob::new(RSA.public(), BITS).unwrap();
        refuses_damage(tag::MULTIPLICATION, &message, |channel| {
            bob.vector(channel, &hidden)
        });
    }

    #[test]
    fn what_could_wrap_is_refused_before_anything_is_encrypted() {
        let bits = InputBits {
            alice: 256,
            bob: 256,
        };
        let refused = Alice::new(RSA.public(), bits).unwrap_err();
        assert!(matches!(
            refused,
            BlockError::Capacity {
                needed: 512,
                available: 511,
                ..
            }
        ));
        assert!(Bob::new(RSA.public(), bits).is_err());
        let alice = Alice::new(RSA.public(), InputBits { alice: 3, bob: 3 }).unwrap();
        let (mut channel, _other) = Channel::pair(std::time::Duration::from_millis(10));
        let refused = alice
            .scalar(&mut channel, &Natural::from(8u64))
            .unwrap_err();
        assert_eq!(
            refused,
            BlockError::Input {
                index: 0,
                bits: 4,
                allowed: 3
            }
        );
    }
}
