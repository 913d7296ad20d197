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
//! Providers that were told different things must not add up. What all of them must agree on goes
//! into every mask: the context of the [`Roster`], which they sign, and whatever [`Masks::agree`] is
//! given since, in order.
//!
//! Messages: 1. provider → data user: announcement (129 bytes). 2. data user → every provider: all
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
/// Bytes of an announcement: identity, ephemeral key, origin of its numbers, signature.
pub const ANNOUNCEMENT_BYTES: usize = 32 + 32 + 1 + 64;

const MASK: u64 = (1 << MASK_BITS) - 1;

/// Where a provider's random numbers come from. It signs this with its keys: masks that can be drawn
/// again from a seed hide nothing, neither its own numbers nor, with two providers, the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From the operating system.
    System = 0,
    /// From a seed, so that a run can be repeated. It protects nothing.
    Seed = 1,
}

impl Origin {
    /// Of numbers that are drawn again in a seeded run.
    pub fn of_seeded(seeded: bool) -> Self {
        if seeded { Self::Seed } else { Self::System }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::System, Self::Seed]
            .into_iter()
            .find(|o| *o as u8 == byte)
    }
}

/// Why no masks could be made. All but the first four blame the data user, who relays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// Neither of the two origins.
    #[error("announcement {0} does not say where its numbers come from")]
    UnknownOrigin(usize),
    /// A provider whose masks anybody with its seed can draw again.
    #[error(
        "announcement {0} is by a provider with seeded randomness, which protects nobody; it must \
         run without a seed, or every provider with one"
    )]
    Seeded(usize),
    /// An announcement of somebody else in the place of a provider's.
    #[error("announcement {0} is by another provider")]
    OtherAuthor(usize),
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
    /// The roster of a job. `context` is what its providers agree on before they announce keys: the
    /// whole proposal. Errors count from 0 in the order given.
    pub fn new(context: &[u8], providers: &[VerifyingKey]) -> Result<Self, MaskingError> {
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
        digest.update((context.len() as u64).to_le_bytes());
        digest.update(context);
        identities
            .iter()
            .for_each(|identity| digest.update(identity));
        let digest = digest.finalize().into();
        Ok(Self { identities, digest })
    }

    /// What a provider signs: the job with all of its providers, its own key, and the origin of its
    /// numbers.
    fn statement(&self, identity: &[u8; 32], ephemeral: &[u8; 32], origin: u8) -> Vec<u8> {
        let prefix: &[u8] = b"heda masking: announcement";
        [prefix, &self.digest, identity, ephemeral, &[origin]].concat()
    }

    /// Checks a single announcement, of this provider, for the data user that will relay it.
    pub fn announced_origin(
        &self,
        announcement: &[u8],
        by: &VerifyingKey,
    ) -> Result<Origin, MaskingError> {
        let announcement = KeyAnnouncement::verify(self, announcement, 0)?;
        match announcement.identity == by.to_bytes() {
            true => Ok(announcement.origin),
            false => Err(MaskingError::OtherAuthor(0)),
        }
    }
}

/// An announcement whose signature is good and whose author is a member.
struct KeyAnnouncement {
    identity: [u8; 32],
    ephemeral: CompressedRistretto,
    point: RistrettoPoint,
    origin: Origin,
}

impl KeyAnnouncement {
    /// Step 2: checks announcement number `place`.
    fn verify(roster: &Roster, bytes: &[u8], place: usize) -> Result<Self, MaskingError> {
        if bytes.len() != ANNOUNCEMENT_BYTES {
            let (got, expected) = (bytes.len(), ANNOUNCEMENT_BYTES);
            return Err(MaskingError::WrongLength { got, expected });
        }
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
        let signature = Signature::from_slice(&bytes[65..]).map_err(bad_signature)?;
        let statement = roster.statement(&identity, ephemeral.as_bytes(), bytes[64]);
        key.verify_strict(&statement, &signature)
            .map_err(bad_signature)?;
        let point = ephemeral.decompress().ok_or(MaskingError::BadKey(place))?;
        if point.is_identity() {
            return Err(MaskingError::IdentityKey(place));
        }
        let origin = Origin::from_byte(bytes[64]).ok_or(MaskingError::UnknownOrigin(place))?;
        Ok(Self {
            identity,
            ephemeral,
            point,
            origin,
        })
    }
}

/// A provider that has announced its key and waits for the others'.
pub struct MaskSetup {
    roster: Roster,
    identity: [u8; 32],
    secret: Zeroizing<Scalar>,
    ephemeral: CompressedRistretto,
    origin: Origin,
}

impl MaskSetup {
    /// Step 1: a fresh key, and the announcement of it for the data user to relay.
    pub fn announce<R: CryptoRng + ?Sized>(
        roster: Roster,
        identity: &SigningKey,
        origin: Origin,
        rng: &mut R,
    ) -> Result<(Self, Vec<u8>), MaskingError> {
        let own = identity.verifying_key().to_bytes();
        if !roster.identities.contains(&own) {
            return Err(MaskingError::NotOnRoster);
        }
        let secret = Zeroizing::new(Scalar::random(rng));
        let ephemeral = RistrettoPoint::mul_base(&secret).compress();
        let flag = origin as u8;
        let signature = identity.sign(&roster.statement(&own, ephemeral.as_bytes(), flag));
        let signature = signature.to_bytes();
        let announcement = [&own[..], ephemeral.as_bytes(), &[flag], &signature].concat();
        let setup = Self {
            roster,
            identity: own,
            secret,
            ephemeral,
            origin,
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
            let announcement = KeyAnnouncement::verify(&self.roster, bytes, place)?;
            if !seen.insert(announcement.identity) {
                return Err(MaskingError::DuplicateAnnouncement(place));
            }
            if announcement.origin == Origin::Seed && self.origin == Origin::System {
                return Err(MaskingError::Seeded(place));
            }
            if announcement.identity != self.identity {
                pairs.insert(announcement.identity, self.pair(&announcement));
            } else if announcement.ephemeral != self.ephemeral {
                return Err(MaskingError::NotOurAnnouncement(place));
            }
        }
        Ok(Masks {
            pairs: pairs.into_values().collect(),
            agreed: self.roster.digest,
            last_round: BTreeMap::new(),
        })
    }

    /// Step 3: the secret with one other provider. Both hash the same, so they sort first.
    fn pair(&self, other: &KeyAnnouncement) -> Pair {
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
    /// The stream of one purpose and round, for providers that agreed on the same.
    fn stream(&self, agreed: &[u8; 32], purpose: &str, round: u64) -> ChaCha20Rng {
        let digest = Sha256::new_with_prefix(b"heda masking: stream")
            .chain_update(*self.key)
            .chain_update(agreed)
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
    /// Running digest of all that the providers agreed on, the roster first.
    agreed: [u8; 32],
    last_round: BTreeMap<String, u64>,
}

impl Masks {
    /// Whether this provider is the only one. Then every mask is zero and hides nothing.
    pub fn is_alone(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Adds a message to what all providers must agree on. Masks that are drawn afterwards cancel only
    /// between providers that were given the same messages in the same order.
    pub fn agree(&mut self, message: &[u8]) {
        self.agreed = Sha256::new_with_prefix(b"heda masking: agreed")
            .chain_update(self.agreed)
            .chain_update((message.len() as u64).to_le_bytes())
            .chain_update(message)
            .finalize()
            .into();
    }

    /// What was agreed on so far, for people or programs to compare: masks cancel between providers
    /// for which it is the same.
    pub fn agreed(&self) -> &[u8; 32] {
        &self.agreed
    }

    /// Step 4: `length` masks modulo 2^48. Added over all providers they are zero.
    ///
    /// Every provider must have agreed on the same and ask for the same purpose, round and length. Rounds of a purpose must
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
            let mut stream = pair.stream(&self.agreed, purpose, round);
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
mod tests;
