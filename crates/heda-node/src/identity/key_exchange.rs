//! The key exchange of TLS: X25519 and ML-KEM-768 together, so that a conversation which somebody
//! recorded stays closed even to a quantum computer.
//!
//! Follows the group X25519MLKEM768 of draft-ietf-tls-ecdhe-mlkem, as browsers use it: the secret is
//! that of ML-KEM (FIPS 203) followed by that of X25519, and whoever wants it has to break both. X25519
//! is that of rustls' provider, ML-KEM is crate `ml-kem`; here they are put together.
//!
//! Who learns what: both ends the secret. An invalid share ends the handshake.
//!
//! Messages: 1. client → server: encapsulation key, X25519 key (1,216 bytes). 2. server → client:
//! ciphertext, X25519 key (1,120 bytes).

use heda_crypto::random::Randomness;
use ml_kem::ml_kem_768::{Ciphertext, DecapsulationKey, EncapsulationKey};
use ml_kem::{Decapsulate, Encapsulate, Generate, Key, KeyExport};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, GetRandomFailed, SharedSecret,
    SupportedKxGroup,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use zeroize::Zeroizing;

/// Bytes of an encapsulation key.
const KEY_BYTES: usize = 1184;
/// Bytes of a ciphertext.
const CIPHERTEXT_BYTES: usize = 1088;
/// Bytes of a key of X25519.
const POINT_BYTES: usize = 32;

const INVALID: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// What TLS is made of. There is no other key exchange: with a peer that knows only X25519 the
/// handshake fails.
pub fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![&Hybrid],
        ..rustls::crypto::ring::default_provider()
    }
}

/// X25519MLKEM768.
#[derive(Debug)]
struct Hybrid;

fn generator() -> Result<impl rand_core::CryptoRng, Error> {
    let rng = Randomness::from_os().fork("TLS key exchange", 0);
    rng.map_err(|_| GetRandomFailed.into())
}

/// The first part of a share, and its key of X25519.
fn halves(share: &[u8], first: usize) -> Result<(&[u8], &[u8]), Error> {
    match share.len() == first + POINT_BYTES {
        true => Ok(share.split_at(first)),
        false => Err(INVALID),
    }
}

fn joined(lattice: &[u8], curve: &SharedSecret) -> SharedSecret {
    let joined = Zeroizing::new([lattice, curve.secret_bytes()].concat());
    SharedSecret::from(&joined[..])
}

impl SupportedKxGroup for Hybrid {
    /// The client's first half.
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let curve = X25519.start()?;
        let lattice = DecapsulationKey::generate_from_rng(&mut generator()?);
        let key = lattice.encapsulation_key().to_bytes();
        let share = [&key[..], curve.pub_key()].concat();
        Ok(Box::new(Started {
            curve,
            lattice,
            share,
        }))
    }

    /// The server's part.
    fn start_and_complete(&self, client: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, point) = halves(client, KEY_BYTES)?;
        let key = Key::<EncapsulationKey>::try_from(key).map_err(|_| INVALID)?;
        let key = EncapsulationKey::new(&key).map_err(|_| INVALID)?;
        let curve = X25519.start_and_complete(point)?;
        let (ciphertext, secret) = key.encapsulate_with_rng(&mut generator()?);
        let secret = Zeroizing::new(secret);
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &curve.pub_key].concat(),
            secret: joined(&secret[..], &curve.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// A client that has sent its share.
struct Started {
    curve: Box<dyn ActiveKeyExchange>,
    lattice: DecapsulationKey,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    /// The client's second half.
    fn complete(self: Box<Self>, server: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, point) = halves(server, CIPHERTEXT_BYTES)?;
        let ciphertext = Ciphertext::try_from(ciphertext).map_err(|_| INVALID)?;
        let curve = self.curve.complete(point)?;
        let secret = Zeroizing::new(self.lattice.decapsulate(&ciphertext));
        Ok(joined(&secret[..], &curve))
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        Hybrid.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_one_secret_of_both_kinds() {
        let client = Hybrid.start().unwrap();
        assert_eq!(client.pub_key().len(), 1216);
        let server = Hybrid.start_and_complete(client.pub_key()).unwrap();
        assert_eq!((server.pub_key.len(), server.group), (1120, client.group()));
        let secret = client.complete(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(secret.secret_bytes().len(), 64);
    }

    /// Either half of the answer changes its own half of the secret, and no other.
    #[test]
    fn each_half_is_of_its_own() {
        for (at, changed) in [(5, 0..32), (CIPHERTEXT_BYTES + 5, 32..64)] {
            let client = Hybrid.start().unwrap();
            let server = Hybrid.start_and_complete(client.pub_key()).unwrap();
            let mut answer = server.pub_key.clone();
            answer[at] ^= 1;
            let secret = client.complete(&answer).unwrap();
            let pairs = secret
                .secret_bytes()
                .iter()
                .zip(server.secret.secret_bytes());
            let apart: Vec<usize> = (pairs.enumerate())
                .filter(|(_, (ours, theirs))| ours != theirs)
                .map(|(place, _)| place)
                .collect();
            assert!(!apart.is_empty() && apart.iter().all(|place| changed.contains(place)));
        }
    }

    #[test]
    fn shares_of_other_lengths_and_keys_that_are_none_are_refused() {
        let client = Hybrid.start().unwrap();
        let share = client.pub_key().to_vec();
        let refused = |share: &[u8]| Hybrid.start_and_complete(share).map(|_| ()).is_err();
        assert!(refused(&[]) && refused(&share[1..]) && refused(&[&share[..], &[0]].concat()));
        // A coefficient that is not reduced.
        assert!(refused(&[&[0xff; 3], &share[3..]].concat()));
        // The neutral point.
        assert!(refused(&[&share[..KEY_BYTES], &[0; 32]].concat()));
        assert!(client.complete(&share).is_err());
    }
}
