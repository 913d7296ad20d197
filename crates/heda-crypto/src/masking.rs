//! Masks that cancel: the data user learns the sum of what providers send, and no part of it.
//!
//! Every two providers share a secret that the data user cannot compute. From it both draw the
//! same stream; the one whose identity sorts first adds it, the other subtracts it. All masks of
//! a round add up to zero. The idea is that of Bonawitz et al., "Practical Secure Aggregation"
//! (CCS 2017), without its recovery of lost members: who
//! goes on without a lost provider begins a new roster with new secrets.
//!
//! Who learns what: the data user relays announcements and learns public keys only. One provider
//! among dishonest others is protected as long as one other is honest and does not help the data
//! user. A provider must know from its own configuration who the others are: a roster made of
//! identities that the data user invented protects nothing.
//!
//! Messages: 1. provider → data user: announcement (128 bytes). 2. data user → every provider: all
//! announcements, in any order. Steps and argument: `docs/masking.md`.

use chacha20::ChaCha20Rng;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use rand_core::{CryptoRng, Rng, SeedableRng};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use zeroize::Zeroizing;

/// Masks are numbers modulo 2^48.
pub const MASK_BITS: u32 = 48;
/// The most providers of a job.
pub const MAX_PROVIDERS: usize = 1024;
/// Bytes of an announcement: identity, ephemeral key, signature.
pub const ANNOUNCEMENT_BYTES: usize = 32 + 32 + 64;

const MASK: u64 = (1 << MASK_BITS) - 1;

/// Why no masks could be made. All but the first four blame the data user, who relays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaskingError {
    /// A job without providers, or with more than are supported.
    #[error("{0} providers; 1 to {MAX_PROVIDERS} are possible")]
    RosterSize(usize),
    /// The same identity twice.
    #[error("provider {0} appears twice among the providers of the job")]
    DuplicateProvider(usize),
    /// An identity key with which anyone could sign.
    #[error("the identity key of provider {0} is weak; it must make a new one")]
    WeakIdentity(usize),
    /// This provider is no member of the job.
    #[error("our own identity is not among the providers of the job")]
    NotOnRoster,
    /// Announcements are missing or too many.
    #[error("{got} bytes of announcements where {expected} are due")]
    WrongLength {
        /// What arrived.
        got: usize,
        /// What the number of providers demands.
        expected: usize,
    },
    /// Someone announced who is no member of the job.
    #[error("announcement {0} is by someone who is not a provider of the job")]
    UnknownIdentity(usize),
    /// A member announced twice, so another one is missing.
    #[error("announcement {0} is the second one of its provider")]
    DuplicateAnnouncement(usize),
    /// Changed on its way, made for another job, or for other providers.
    #[error("the signature of announcement {0} is wrong for this job and its providers")]
    BadSignature(usize),
    /// 32 bytes that encode no group element, or encode one in a second way.
    #[error("the key of announcement {0} is no canonical encoding of a group element")]
    BadKey(usize),
    /// The neutral element, with which every secret would be public.
    #[error("the key of announcement {0} is the identity element")]
    IdentityKey(usize),
    /// Not the announcement that this provider made: an old one, for instance.
    #[error("announcement {0} is not the one that we made")]
    NotOurAnnouncement(usize),
    /// A mask was asked for again; using it twice reveals the difference of what it hides.
    #[error("the mask of round {round} for {purpose} was already used; make new keys to resume")]
    Reused {
        /// The purpose.
        purpose: String,
        /// The round.
        round: u64,
    },
}

/// The providers of a job. All of them must have the same one, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    identities: BTreeSet<[u8; 32]>,
    digest: [u8; 32],
}

impl Roster {
    /// The roster of a job. Errors count from 0 in the order given.
    pub fn new(job: &[u8], providers: &[VerifyingKey]) -> Result<Self, MaskingError> {
        if !(1..=MAX_PROVIDERS).contains(&providers.len()) {
            return Err(MaskingError::RosterSize(providers.len()));
        }
        let mut identities = BTreeSet::new();
        for (place, provider) in providers.iter().enumerate() {
            if provider.is_weak() {
                return Err(MaskingError::WeakIdentity(place));
            }
            if !identities.insert(provider.to_bytes()) {
                return Err(MaskingError::DuplicateProvider(place));
            }
        }
        let mut digest = Sha256::new_with_prefix(b"heda masking: roster");
        digest.update((job.len() as u64).to_le_bytes());
        digest.update(job);
        identities
            .iter()
            .for_each(|identity| digest.update(identity));
        let digest = digest.finalize().into();
        Ok(Self { identities, digest })
    }

    /// What a provider signs: the job with all of its providers, and its own key.
    fn statement(&self, identity: &[u8; 32], ephemeral: &[u8; 32]) -> Vec<u8> {
        let prefix: &[u8] = b"heda masking: announcement";
        [prefix, &self.digest, identity, ephemeral].concat()
    }
}

/// An announcement whose signature is good and whose author is a member.
struct Announcement {
    identity: [u8; 32],
    ephemeral: CompressedRistretto,
    point: RistrettoPoint,
}

impl Announcement {
    /// Step 2: checks announcement number `place`.
    fn verify(roster: &Roster, bytes: &[u8], place: usize) -> Result<Self, MaskingError> {
        let part = |at: usize| {
            let mut part = [0; 32];
            part.copy_from_slice(&bytes[at..at + 32]);
            part
        };
        let (identity, ephemeral) = (part(0), CompressedRistretto(part(32)));
        if !roster.identities.contains(&identity) {
            return Err(MaskingError::UnknownIdentity(place));
        }
        let key = VerifyingKey::from_bytes(&identity);
        let key = key.map_err(|_| MaskingError::UnknownIdentity(place))?;
        let bad_signature = |_| MaskingError::BadSignature(place);
        let signature = Signature::from_slice(&bytes[64..]).map_err(bad_signature)?;
        let statement = roster.statement(&identity, ephemeral.as_bytes());
        key.verify_strict(&statement, &signature)
            .map_err(bad_signature)?;
        let point = ephemeral.decompress().ok_or(MaskingError::BadKey(place))?;
        if point.is_identity() {
            return Err(MaskingError::IdentityKey(place));
        }
        Ok(Self {
            identity,
            ephemeral,
            point,
        })
    }
}

/// A provider that has announced its key and waits for the others'.
pub struct MaskSetup {
    roster: Roster,
    identity: [u8; 32],
    secret: Zeroizing<Scalar>,
    ephemeral: CompressedRistretto,
}

impl MaskSetup {
    /// Step 1: a fresh key, and the announcement of it for the data user to relay.
    pub fn announce<R: CryptoRng + ?Sized>(
        roster: Roster,
        identity: &SigningKey,
        rng: &mut R,
    ) -> Result<(Self, Vec<u8>), MaskingError> {
        let own = identity.verifying_key().to_bytes();
        if !roster.identities.contains(&own) {
            return Err(MaskingError::NotOnRoster);
        }
        let secret = Zeroizing::new(Scalar::random(rng));
        let ephemeral = RistrettoPoint::mul_base(&secret).compress();
        let signature = identity.sign(&roster.statement(&own, ephemeral.as_bytes()));
        let announcement = [&own[..], ephemeral.as_bytes(), &signature.to_bytes()].concat();
        let setup = Self {
            roster,
            identity: own,
            secret,
            ephemeral,
        };
        Ok((setup, announcement))
    }

    /// Steps 2 and 3: checks the announcements of all providers, our own among them, one after
    /// another in any order, and agrees on a secret with each other provider.
    pub fn finish(self, announcements: &[u8]) -> Result<Masks, MaskingError> {
        let expected = self.roster.identities.len() * ANNOUNCEMENT_BYTES;
        if announcements.len() != expected {
            let got = announcements.len();
            return Err(MaskingError::WrongLength { got, expected });
        }
        // As many announcements as members, all of members, no member twice: nobody is missing.
        let mut pairs = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (place, bytes) in announcements.chunks_exact(ANNOUNCEMENT_BYTES).enumerate() {
            let announcement = Announcement::verify(&self.roster, bytes, place)?;
            if !seen.insert(announcement.identity) {
                return Err(MaskingError::DuplicateAnnouncement(place));
            }
            if announcement.identity != self.identity {
                pairs.insert(announcement.identity, self.pair(&announcement));
            } else if announcement.ephemeral != self.ephemeral {
                return Err(MaskingError::NotOurAnnouncement(place));
            }
        }
        Ok(Masks {
            pairs: pairs.into_values().collect(),
            last_round: BTreeMap::new(),
        })
    }

    /// Step 3: the secret with one other provider. Both hash the same, so they sort first.
    fn pair(&self, other: &Announcement) -> Pair {
        let shared = Zeroizing::new((other.point * *self.secret).compress().to_bytes());
        let own = (self.identity, self.ephemeral.to_bytes());
        let other = (other.identity, other.ephemeral.to_bytes());
        let adds = own.0 < other.0;
        let (first, second) = if adds { (own, other) } else { (other, own) };
        let mut digest = Sha256::new_with_prefix(b"heda masking: pair");
        digest.update(self.roster.digest);
        for part in [first.0, first.1, second.0, second.1] {
            digest.update(part);
        }
        digest.update(*shared);
        Pair {
            key: Zeroizing::new(digest.finalize().into()),
            adds,
        }
    }
}

/// What two providers share.
struct Pair {
    key: Zeroizing<[u8; 32]>,
    adds: bool,
}

impl Pair {
    /// The stream of one purpose and round.
    fn stream(&self, purpose: &str, round: u64) -> ChaCha20Rng {
        let digest = Sha256::new_with_prefix(b"heda masking: stream")
            .chain_update(*self.key)
            .chain_update((purpose.len() as u64).to_le_bytes())
            .chain_update(purpose)
            .chain_update(round.to_le_bytes());
        let seed = Zeroizing::new(<[u8; 32]>::from(digest.finalize()));
        ChaCha20Rng::from_seed(*seed)
    }
}

/// A provider's masks. They live in memory only: after a restart the providers make new keys, and
/// rounds may then be repeated.
pub struct Masks {
    pairs: Vec<Pair>,
    last_round: BTreeMap<String, u64>,
}

impl Masks {
    /// Whether this provider is the only one. Then every mask is zero and hides nothing.
    pub fn is_alone(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Step 4: `length` masks modulo 2^48. Added over all providers they are zero.
    ///
    /// Every provider must ask for the same purpose, round and length. Rounds of a purpose must
    /// increase: a mask that was handed out, or skipped, is never handed out again.
    pub fn stream(
        &mut self,
        purpose: &str,
        round: u64,
        length: usize,
    ) -> Result<Zeroizing<Vec<u64>>, MaskingError> {
        if self
            .last_round
            .get(purpose)
            .is_some_and(|last| *last >= round)
        {
            let purpose = purpose.to_string();
            return Err(MaskingError::Reused { purpose, round });
        }
        self.last_round.insert(purpose.to_string(), round);
        let mut sum = Zeroizing::new(vec![0u64; length]);
        for pair in &self.pairs {
            let mut stream = pair.stream(purpose, round);
            for mask in sum.iter_mut() {
                let drawn = stream.next_u64();
                let signed = if pair.adds {
                    drawn
                } else {
                    drawn.wrapping_neg()
                };
                *mask = mask.wrapping_add(signed) & MASK;
            }
        }
        Ok(sum)
    }
}

impl fmt::Debug for MaskSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("MaskSetup");
        text.field("roster", &self.roster).finish_non_exhaustive()
    }
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Masks");
        text.field("others", &self.pairs.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;

    fn identities(count: u64) -> Vec<SigningKey> {
        let source = Randomness::seeded(1);
        let rng = |n| source.fork("identity", n).unwrap();
        (0..count)
            .map(|n| SigningKey::generate(&mut rng(n)))
            .collect()
    }

    fn roster(job: &[u8], identities: &[SigningKey]) -> Roster {
        let keys: Vec<_> = identities.iter().map(SigningKey::verifying_key).collect();
        Roster::new(job, &keys).unwrap()
    }

    fn announce(job: &[u8], all: &[SigningKey], own: usize, seed: u64) -> (MaskSetup, Vec<u8>) {
        let mut rng = Randomness::seeded(seed)
            .fork("announce", own as u64)
            .unwrap();
        MaskSetup::announce(roster(job, all), &all[own], &mut rng).unwrap()
    }

    fn announcements(job: &[u8], all: &[SigningKey], seed: u64) -> (Vec<MaskSetup>, Vec<Vec<u8>>) {
        (0..all.len())
            .map(|own| announce(job, all, own, seed))
            .unzip()
    }

    fn masks(all: &[SigningKey], seed: u64) -> Vec<Masks> {
        let (setups, messages) = announcements(b"job", all, seed);
        let relayed = messages.concat();
        setups
            .into_iter()
            .map(|setup| setup.finish(&relayed).unwrap())
            .collect()
    }

    fn total(masks: &[Zeroizing<Vec<u64>>]) -> Vec<u64> {
        let length = masks[0].len();
        (0..length)
            .map(|n| masks.iter().fold(0, |sum, mask| (sum + mask[n]) & MASK))
            .collect()
    }

    /// Provider 0 of three finishes with announcements that were changed on the way.
    fn refused(change: impl Fn(&mut Vec<Vec<u8>>)) -> MaskingError {
        let all = identities(3);
        let (mut setups, mut messages) = announcements(b"job", &all, 1);
        change(&mut messages);
        setups.remove(0).finish(&messages.concat()).unwrap_err()
    }

    #[test]
    fn masks_of_all_cancel_and_those_of_fewer_do_not() {
        for count in 2..=5 {
            let mut masks = masks(&identities(count), 1);
            for (purpose, round) in [("gradient", 0), ("gradient", 1), ("scores", 0)] {
                let drawn: Vec<_> = masks
                    .iter_mut()
                    .map(|m| m.stream(purpose, round, 100).unwrap())
                    .collect();
                assert_eq!(total(&drawn), vec![0; 100]);
                assert!(drawn.iter().all(|mask| mask.iter().all(|m| *m <= MASK)));
                assert!(total(&drawn[1..]).iter().all(|sum| *sum != 0));
            }
            assert!(!masks[0].is_alone());
        }
    }

    #[test]
    fn the_order_of_relaying_does_not_matter() {
        let all = identities(3);
        let (setups, mut messages) = announcements(b"job", &all, 1);
        let mut drawn = Vec::new();
        for setup in setups {
            messages.rotate_left(1);
            let mut masks = setup.finish(&messages.concat()).unwrap();
            drawn.push(masks.stream("gradient", 7, 9).unwrap());
        }
        assert_eq!(total(&drawn), vec![0; 9]);
    }

    #[test]
    fn a_single_provider_is_alone_and_its_mask_is_zero() {
        let mut masks = masks(&identities(1), 1);
        assert!(masks[0].is_alone());
        assert_eq!(*masks[0].stream("gradient", 0, 5).unwrap(), vec![0; 5]);
    }

    #[test]
    fn masks_look_random_and_depend_on_purpose_round_and_keys() {
        let all = identities(2);
        let draw =
            |seed, purpose, round| masks(&all, seed)[0].stream(purpose, round, 4000).unwrap();
        let first = draw(1, "gradient", 1);
        for other in [
            draw(1, "scores", 1),
            draw(1, "gradient", 2),
            draw(2, "gradient", 1),
        ] {
            assert!(first.iter().zip(other.iter()).all(|(a, b)| a != b));
        }
        let ones: u32 = first.iter().map(|mask| mask.count_ones()).sum();
        let bits = 4000.0 * f64::from(MASK_BITS);
        let deviations = (f64::from(ones) - bits / 2.0).abs() / (bits / 4.0).sqrt();
        assert!(deviations < 4.5, "{deviations}");
    }

    #[test]
    fn a_mask_is_handed_out_once_but_new_keys_may_repeat_a_round() {
        let all = identities(2);
        let mut first = masks(&all, 1);
        let drawn = first[0].stream("gradient", 5, 3).unwrap();
        for round in [5, 4, 0] {
            let error = first[0].stream("gradient", round, 3).unwrap_err();
            assert!(matches!(error, MaskingError::Reused { round: r, .. } if r == round));
        }
        assert!(first[0].stream("scores", 0, 3).is_ok());
        let resumed = masks(&all, 2)[0].stream("gradient", 5, 3).unwrap();
        assert_ne!(drawn, resumed);
    }

    #[test]
    fn any_changed_byte_is_refused() {
        for place in [0, 31, 32, 63, 64, 127] {
            let error = refused(|messages| messages[1][place] ^= 1);
            let expected = match place {
                0..32 => MaskingError::UnknownIdentity(1),
                _ => MaskingError::BadSignature(1),
            };
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn substituted_missing_and_repeated_providers_are_refused() {
        let strangers = identities(4);
        let (_, stranger) = announce(b"job", &strangers, 3, 1);
        let error = refused(|messages| messages[2] = stranger.clone());
        assert_eq!(error, MaskingError::UnknownIdentity(2));
        let error = refused(|messages| messages[2] = messages[1].clone());
        assert_eq!(error, MaskingError::DuplicateAnnouncement(2));
        let error = refused(|messages| messages[0] = messages[1].clone());
        assert_eq!(error, MaskingError::DuplicateAnnouncement(1));
        let error = refused(|messages| drop(messages.pop()));
        assert_eq!(
            error,
            MaskingError::WrongLength {
                got: 256,
                expected: 384
            }
        );
        let (_, old) = announce(b"job", &identities(3), 0, 9);
        let error = refused(|messages| messages[0] = old.clone());
        assert_eq!(error, MaskingError::NotOurAnnouncement(0));
    }

    #[test]
    fn another_job_or_other_providers_are_refused() {
        let (_, other_job) = announce(b"other job", &identities(3), 1, 1);
        let error = refused(|messages| messages[1] = other_job.clone());
        assert_eq!(error, MaskingError::BadSignature(1));
        let (_, other_roster) = announce(b"job", &identities(4), 1, 1);
        let error = refused(|messages| messages[1] = other_roster.clone());
        assert_eq!(error, MaskingError::BadSignature(1));
    }

    #[test]
    fn bad_keys_are_refused_even_when_a_member_signs_them() {
        let signed = |ephemeral: [u8; 32]| {
            let all = identities(3);
            let own = all[1].verifying_key().to_bytes();
            let signature = all[1].sign(&roster(b"job", &all).statement(&own, &ephemeral));
            [&own[..], &ephemeral, &signature.to_bytes()].concat()
        };
        let error = refused(|messages| messages[1] = signed([0; 32]));
        assert_eq!(error, MaskingError::IdentityKey(1));
        // Encodings of points of small order on the curve below Ristretto: u = 1, −1 and others.
        let mut one = [0; 32];
        one[0] = 1;
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        for small in [one, minus_one, [0xff; 32]] {
            let error = refused(|messages| messages[1] = signed(small));
            assert_eq!(error, MaskingError::BadKey(1));
        }
    }

    #[test]
    fn rosters_are_checked() {
        let keys: Vec<_> = identities(2)
            .iter()
            .map(SigningKey::verifying_key)
            .collect();
        assert_eq!(Roster::new(b"job", &[]), Err(MaskingError::RosterSize(0)));
        let twice = Roster::new(b"job", &[keys[0], keys[1], keys[0]]);
        assert_eq!(twice, Err(MaskingError::DuplicateProvider(2)));
        let weak = VerifyingKey::from_bytes(&[0; 32]).unwrap();
        assert_eq!(
            Roster::new(b"job", &[keys[0], weak]),
            Err(MaskingError::WeakIdentity(1))
        );
        let outsider = identities(3).remove(2);
        let mut rng = Randomness::seeded(1).fork("announce", 0).unwrap();
        let only_others = Roster::new(b"job", &keys).unwrap();
        let error = MaskSetup::announce(only_others, &outsider, &mut rng).unwrap_err();
        assert_eq!(error, MaskingError::NotOnRoster);
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let all = identities(2);
        let (setup, _) = announce(b"job", &all, 0, 1);
        assert!(!format!("{setup:?}").contains("secret"));
        assert_eq!(
            format!("{:?}", masks(&all, 1)[0]),
            "Masks { others: 1, .. }"
        );
    }
}
