//! Exchange 1, Protocol 6 of the paper: ‖x‖ under Alice's RSA key becomes [x·2^s] under her
//! Paillier key.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 3 | both keys | ‖x‖ | [x·2^s], s public |
//!
//! The paper multiplies by e^r and divides by it again. In integers: Bob multiplies by a random
//! ρ, Alice drops a public number of low bits that carry no precision, and Bob multiplies by
//! round(2^g/ρ). The result is right to a relative 2^−46.
//!
//! Who learns what. Bob learns a ciphertext. **Alice sees x·ρ, which does not hide x well**: ρ is
//! uniform in its length, so the length of x·ρ tells about the length of x whatever range ρ has;
//! and whoever knows the numbers that x may be a product of finds them by division. One ρ for
//! several numbers would show their ratios, so every number gets its own.
//!
//! Messages, in wire order (steps X1 to X3 of `docs/building-blocks.md`): Bob sends ‖x·ρ‖; Alice
//! sends [⌊x·ρ/2^drop⌋]; Bob multiplies by round(2^g/ρ).
//!
//! ```
//! use heda_blocks::channel::Channel;
//! use heda_paper::blocks::exchange_rsa_to_paillier::{Alice, Bob, Terms};
//! # use heda_paper::{hazmat_rsa::RsaPrivateKey, integer::Natural};
//! # use heda_crypto::random::Randomness;
//! # use heda_paper::paillier::PrivateKey;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let rsa = RsaPrivateKey::generate_insecure_for_tests(512, &mut rng)?;
//! # let paillier = PrivateKey::generate_insecure_for_tests(512, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let terms = Terms { lowest_bits: 0, highest_bits: 64, blinding_bits: 128 };
//! let alice = Alice::new(&rsa, &paillier, terms)?;
//! let bob = Bob::new(rsa.public(), paillier.public(), terms)?;
//! let x = rsa.public().encrypt(&Natural::from(1000u64))?;
//! let waiting = bob.send(&mut to_alice, &[x], &mut rng)?;
//! alice.answer(&mut to_bob, 1, &mut rng)?;
//! for exchanged in waiting.receive(&mut to_alice)? {
//!     let result = paillier.decrypt(&exchanged.finish(paillier.public())?)?;
//!     let x = result.integer().to_f64() * 2f64.powi(-(terms.scale() as i32));
//!     assert!((x - 1000.0).abs() < 1e-9);
//! }
//! # Ok(())
//! # }
//! ```

use crate::blocks::error::{BlockError, Misuse};
use crate::blocks::message::{
    check_lengths, check_paillier, check_rsa, receive_paillier, receive_rsa, send_paillier,
    send_rsa, tag,
};
use crate::hazmat_rsa::{RsaCiphertext, RsaPrivateKey, RsaPublicKey};
use crate::integer::{Integer, Natural};
use crate::paillier::{Ciphertext, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use rand_core::CryptoRng;

/// Bits of precision that dropping and unblinding keep.
pub const PRECISION_BITS: usize = 48;
/// No blinding factor is shorter.
pub const SHORTEST_BLINDING: usize = 32;

/// What both parties know about the numbers and their blinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Every number but 0 is at least 2^this.
    pub lowest_bits: usize,
    /// Every number is below 2^this.
    pub highest_bits: usize,
    /// Every blinding factor is below 2^this.
    pub blinding_bits: usize,
}

impl Terms {
    /// Low bits that Alice drops: beyond the precision of the smallest blinded number.
    pub fn dropped_bits(self) -> usize {
        (self.lowest_bits + SHORTEST_BLINDING - 1).saturating_sub(PRECISION_BITS)
    }

    /// Bits of what Alice encrypts.
    pub fn kept_bits(self) -> usize {
        self.highest_bits + self.blinding_bits - self.dropped_bits()
    }

    /// s: the result is x·2^s; negative if more was dropped than unblinding gives back.
    pub fn scale(self) -> isize {
        (self.blinding_bits + PRECISION_BITS) as isize - self.dropped_bits() as isize
    }

    /// Bits of the factor that undoes the blinding.
    fn unblinding_bits(self) -> usize {
        self.blinding_bits + PRECISION_BITS + 2 - SHORTEST_BLINDING
    }

    fn check(self, rsa: &RsaPublicKey, paillier: &PublicKey) -> Result<(), BlockError> {
        if self.blinding_bits <= SHORTEST_BLINDING || self.lowest_bits > self.highest_bits {
            return Err(BlockError::Misuse(Misuse::Blinding {
                lowest: self.lowest_bits,
                highest: self.highest_bits,
                blinding: self.blinding_bits,
                least: SHORTEST_BLINDING + 1,
            }));
        }
        check_rsa("exchange 1", rsa, self.highest_bits + self.blinding_bits)?;
        check_paillier(
            "exchange 1",
            paillier,
            self.kept_bits() + self.unblinding_bits(),
        )
    }
}

/// Holds both private keys.
#[derive(Debug)]
pub struct Alice<'k> {
    rsa: &'k RsaPrivateKey,
    paillier: &'k PrivateKey,
    terms: Terms,
}

impl<'k> Alice<'k> {
    /// Refuses terms whose blinded numbers do not fit the keys.
    pub fn new(
        rsa: &'k RsaPrivateKey,
        paillier: &'k PrivateKey,
        terms: Terms,
    ) -> Result<Self, BlockError> {
        terms.check(rsa.public(), paillier.public())?;
        Ok(Self {
            rsa,
            paillier,
            terms,
        })
    }

    /// Step X2, for `count` numbers.
    pub fn answer<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        count: usize,
        rng: &mut R,
    ) -> Result<(), BlockError> {
        let public = self.rsa.public();
        let blinded = receive_rsa(channel, tag::RSA_BLINDED, public, count, "blinded numbers")?;
        let numbers = self.rsa.decrypt_batch(&blinded)?;
        check_lengths(&numbers, self.terms.highest_bits + self.terms.blinding_bits)
            .map_err(|_| BlockError::peer("blinded numbers", "one is beyond the agreed bound"))?;
        let drop = self.terms.dropped_bits();
        let own = self.paillier.public();
        let plain = numbers.iter().map(|n| Ok(own.plaintext(n >> drop)?));
        let plain = plain.collect::<Result<Vec<_>, BlockError>>()?;
        let reply = self.paillier.encrypt_batch(&plain, rng)?;
        send_paillier(channel, tag::RSA_EXCHANGED, own, &reply)
    }
}

/// Holds ‖x‖ and wants \[x\].
#[derive(Debug)]
pub struct Bob<'k> {
    rsa: &'k RsaPublicKey,
    paillier: &'k PublicKey,
    terms: Terms,
}

impl<'k> Bob<'k> {
    /// Refuses terms whose blinded numbers do not fit the keys.
    pub fn new(
        rsa: &'k RsaPublicKey,
        paillier: &'k PublicKey,
        terms: Terms,
    ) -> Result<Self, BlockError> {
        terms.check(rsa, paillier)?;
        Ok(Self {
            rsa,
            paillier,
            terms,
        })
    }

    /// Step X1, with a blinding factor of its own for every number.
    pub fn send<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        numbers: &[RsaCiphertext],
        rng: &mut R,
    ) -> Result<Waiting<'k>, BlockError> {
        let mut draw = || draw_blinding(self.terms.blinding_bits, rng);
        let blindings = numbers.iter().map(|_| draw()).collect();
        self.send_with_given_blindings(channel, numbers, blindings)
    }

    /// Step X1 with given factors. A factor that is used twice gives the numbers' ratio away:
    /// this is here to show that.
    #[doc(hidden)]
    pub fn send_with_given_blindings(
        &self,
        channel: &mut Channel,
        numbers: &[RsaCiphertext],
        blindings: Vec<Natural>,
    ) -> Result<Waiting<'k>, BlockError> {
        let factors = self.rsa.encrypt_batch(&blindings)?;
        let pairs = numbers.iter().zip(&factors);
        let blinded = pairs.map(|(x, factor)| Ok(self.rsa.multiply(x, factor)?));
        let blinded = blinded.collect::<Result<Vec<_>, BlockError>>()?;
        send_rsa(channel, tag::RSA_BLINDED, self.rsa, &blinded)?;
        Ok(Waiting {
            paillier: self.paillier,
            terms: self.terms,
            blindings,
        })
    }
}

/// A factor between 2^31 and 2^`bits` whose length is uniform.
///
/// A factor that is uniform as a number would almost always have full length, and then the length
/// of a product tells the length of the other factor to the bit.
pub fn draw_blinding<R: CryptoRng + ?Sized>(bits: usize, rng: &mut R) -> Natural {
    let choices = bits.saturating_sub(SHORTEST_BLINDING) as u128 + 1;
    // The bias of this choice is below 2^−50.
    let extra = (u128::from(rng.next_u64()) * choices) >> 64;
    let below = SHORTEST_BLINDING - 1 + extra as usize;
    &Natural::power_of_two(below) + &Natural::random_bits(below as u32, rng)
}

/// Bob between his message and Alice's. Consumed by her answer, so no factor is used twice.
pub struct Waiting<'k> {
    paillier: &'k PublicKey,
    terms: Terms,
    blindings: Vec<Natural>,
}

impl Waiting<'_> {
    /// Takes Alice's answer; step X3 remains.
    pub fn receive(self, channel: &mut Channel) -> Result<Vec<Exchanged>, BlockError> {
        let (key, count) = (self.paillier, self.blindings.len());
        let tag = tag::RSA_EXCHANGED;
        let numbers = receive_paillier(channel, tag, key, count, "exchanged numbers")?;
        let terms = self.terms;
        let pairs = numbers.into_iter().zip(self.blindings);
        let exchanged = pairs.map(|(ciphertext, blinding)| Exchanged {
            ciphertext,
            blinding,
            terms,
        });
        Ok(exchanged.collect())
    }
}

/// Keeps the factors out of logs.
impl std::fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({} numbers)", self.blindings.len())
    }
}

/// [⌊x·ρ/2^drop⌋] and ρ, before the blinding is undone.
pub struct Exchanged {
    ciphertext: Ciphertext,
    blinding: Natural,
    terms: Terms,
}

impl Exchanged {
    /// Step X3: [x·2^s].
    pub fn finish(self, paillier: &PublicKey) -> Result<Ciphertext, BlockError> {
        let one = Natural::power_of_two(self.terms.blinding_bits + PRECISION_BITS);
        let weight = one.div_round(&self.blinding).unwrap_or_else(Natural::zero);
        let bits = self.terms.unblinding_bits();
        Ok(paillier.scale(&self.ciphertext, &Integer::from(weight), bits)?)
    }

    /// Ciphertext and ρ, for a caller who undoes the blinding together with a further product.
    pub fn into_parts(self) -> (Ciphertext, Natural) {
        (self.ciphertext, self.blinding)
    }
}

/// Keeps the factor out of logs.
impl std::fmt::Debug for Exchanged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exchanged({:?})", self.ciphertext)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::testing::{
        ALICE, ALICE_2048, RSA, RSA_2048, both, encrypted, hostile, refuses_damage, rng,
    };

    const TERMS: Terms = Terms {
        lowest_bits: 0,
        highest_bits: 64,
        blinding_bits: 160,
    };

    fn equals_the_input(
        rsa: &RsaPrivateKey,
        paillier: &PrivateKey,
        terms: Terms,
        numbers: &[Natural],
    ) {
        let alice = Alice::new(rsa, paillier, terms).unwrap();
        let bob = Bob::new(rsa.public(), paillier.public(), terms).unwrap();
        let hidden = rsa.public().encrypt_batch(numbers).unwrap();
        let count = numbers.len();
        let answer = |channel: &mut Channel| alice.answer(channel, count, &mut rng(1)).unwrap();
        let ((), exchanged) = both(answer, |channel| {
            let waiting = bob.send(channel, &hidden, &mut rng(2)).unwrap();
            waiting.receive(channel).unwrap()
        });
        assert_eq!(exchanged.len(), count);
        for (exchanged, number) in exchanged.into_iter().zip(numbers) {
            let result = exchanged.finish(paillier.public()).unwrap();
            let found = paillier.decrypt(&result).unwrap().integer().to_f64();
            let expected = Integer::from(number.clone()).to_f64();
            let found = found * 2f64.powi(-(terms.scale() as i32));
            let error = (found - expected).abs();
            assert!(error <= expected * 2f64.powi(-46), "{found} for {expected}");
        }
    }

    fn shaped() -> Vec<Natural> {
        [0, 1, 2, 3, 1 << 40, u64::MAX].map(Natural::from).to_vec()
    }

    #[test]
    fn numbers_arrive_under_paillier() {
        equals_the_input(&RSA, &ALICE, TERMS, &shaped());
        shaped()
            .into_iter()
            .for_each(|one| equals_the_input(&RSA, &ALICE, TERMS, &[one]));
    }

    #[test]
    fn large_numbers_lose_only_what_has_no_precision() {
        let terms = Terms {
            lowest_bits: 250,
            highest_bits: 300,
            blinding_bits: 120,
        };
        assert_eq!(terms.dropped_bits(), 233);
        let numbers = [
            Natural::power_of_two(250),
            Natural::random_bits(300, &mut rng(8)),
        ];
        equals_the_input(&RSA, &ALICE, terms, &numbers);
    }

    #[test]
    fn numbers_arrive_under_paillier_at_2048_bits() {
        let terms = Terms {
            lowest_bits: 0,
            highest_bits: 64,
            blinding_bits: 256,
        };
        equals_the_input(&RSA_2048, &ALICE_2048, terms, &shaped());
    }

    #[test]
    fn damaged_messages_blame_the_peer() {
        let alice = Alice::new(&RSA, &ALICE, TERMS).unwrap();
        let bob = Bob::new(RSA.public(), ALICE.public(), TERMS).unwrap();
        let hidden = RSA.public().encrypt_batch(&shaped()[..2]).unwrap();
        let message = RSA.public().encode(&hidden).unwrap();
        refuses_damage(tag::RSA_BLINDED, &message, |channel| {
            alice.answer(channel, 2, &mut rng(3))
        });
        let message = ALICE.public().encode(&encrypted(&ALICE, &[1, 2])).unwrap();
        refuses_damage(tag::RSA_EXCHANGED, &message, |channel| {
            bob.send(channel, &hidden, &mut rng(4))?.receive(channel)
        });
    }

    #[test]
    fn a_number_beyond_the_bound_blames_the_peer() {
        let beyond = RSA.public().encrypt(&Natural::power_of_two(224)).unwrap();
        let message = RSA.public().encode(&[beyond]).unwrap();
        let (mut own, _peer) = hostile(tag::RSA_BLINDED, &message);
        let alice = Alice::new(&RSA, &ALICE, TERMS).unwrap();
        let error = alice.answer(&mut own, 1, &mut rng(5)).unwrap_err();
        assert!(matches!(
            error,
            BlockError::Peer {
                message: "blinded numbers",
                ..
            }
        ));
    }

    #[test]
    fn terms_that_do_not_fit_are_refused() {
        let check = |terms: Terms| terms.check(RSA.public(), ALICE.public());
        let long = Terms {
            highest_bits: 352,
            blinding_bits: 160,
            lowest_bits: 300,
        };
        assert!(matches!(
            check(long),
            Err(BlockError::Capacity {
                needed: 512,
                available: 511,
                ..
            })
        ));
        let unblindable = Terms {
            blinding_bits: 32,
            ..TERMS
        };
        assert!(matches!(check(unblindable), Err(BlockError::Misuse(_))));
        let wide = Terms {
            lowest_bits: 0,
            highest_bits: 300,
            blinding_bits: 160,
        };
        assert!(matches!(
            check(wide),
            Err(BlockError::Capacity { available: 510, .. })
        ));
    }

    #[test]
    fn lengths_of_blinding_factors_are_spread_evenly() {
        let mut rng = rng(7);
        let mut seen = [0u32; 4];
        for _ in 0..400 {
            let length = draw_blinding(63 + 32, &mut rng).bit_length();
            assert!((32..=95).contains(&length));
            seen[(length - 32) / 16] += 1;
        }
        assert!(
            seen.iter().all(|&count| (60..140).contains(&count)),
            "{seen:?}"
        );
    }
}
