//! Base transfers: random one-of-two transfers of a key, as many as Δ has bits.
//!
//! Follows Chou, Orlandi, "The Simplest Protocol for Oblivious Transfer" (LATINCRYPT 2015), over
//! the group Ristretto. The number of the transfer and both messages enter the hash that makes the
//! keys, because transfers share the first message (McQuoid, Rosulek, Roy, "Batching Base Oblivious
//! Transfers", ASIACRYPT 2021, on what goes wrong otherwise).
//!
//! The base sender learns nothing about the choices, whatever it sends: x·G + c·A is uniform for
//! either c. The base chooser learns one key of each pair: the other needs a·A, a Diffie–Hellman
//! secret.
//!
//! Messages: 1. sender → chooser: A. 2. chooser → sender: B_0, B_1, …

use super::TransferError;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// Bytes of an encoded group element.
pub(super) const POINT_BYTES: usize = 32;

/// A group element of the peer, with the bytes it came in. Decoding is injective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    encoded: CompressedRistretto,
    point: RistrettoPoint,
}

impl Point {
    /// Refuses what is no canonical encoding, and the identity.
    pub(super) fn decode(bytes: &[u8], index: usize) -> Result<Self, TransferError> {
        let encoded = CompressedRistretto::from_slice(bytes)
            .map_err(|_| TransferError::NotAPoint { index })?;
        let point = encoded
            .decompress()
            .ok_or(TransferError::NotAPoint { index })?;
        match point.is_identity() {
            true => Err(TransferError::IdentityPoint { index }),
            false => Ok(Self { encoded, point }),
        }
    }

    fn new(point: RistrettoPoint) -> Self {
        Self {
            encoded: point.compress(),
            point,
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8; POINT_BYTES] {
        self.encoded.as_bytes()
    }
}

/// The base sender after its message.
pub(super) struct BaseSender {
    secret: Zeroizing<Scalar>,
    first: Point,
}

impl BaseSender {
    /// Step 1: A = a·G.
    pub(super) fn start<R: CryptoRng + ?Sized>(rng: &mut R) -> (Self, Point) {
        let secret = Zeroizing::new(Scalar::random(rng));
        let first = Point::new(RistrettoPoint::mul_base(&secret));
        let message = first.clone();
        (Self { secret, first }, message)
    }

    /// Step 3: both keys of every transfer, from a·B and a·(B − A).
    pub(super) fn finish(self, second: &[Point]) -> Zeroizing<Vec<[u128; 2]>> {
        let own = Zeroizing::new(self.first.point * *self.secret);
        let pair = |(index, sent): (usize, &Point)| {
            let shared = Zeroizing::new(sent.point * *self.secret);
            let other = Zeroizing::new(*shared - *own);
            [&shared, &other].map(|shared| derive(index, &self.first, sent, shared))
        };
        Zeroizing::new(second.iter().enumerate().map(pair).collect())
    }
}

/// Step 2: the base chooser's keys for its `choices`, and B_i = x_i·G + c_i·A.
pub(super) fn choose<R: CryptoRng + ?Sized>(
    first: &Point,
    choices: impl Iterator<Item = Choice>,
    rng: &mut R,
) -> (Zeroizing<Vec<u128>>, Vec<Point>) {
    let mut keys = Zeroizing::new(Vec::with_capacity(choices.size_hint().0));
    let mut second = Vec::new();
    for (index, choice) in choices.enumerate() {
        let secret = Zeroizing::new(Scalar::random(rng));
        let blind = RistrettoPoint::mul_base(&secret);
        let sum = blind + first.point;
        let sent = Point::new(RistrettoPoint::conditional_select(&blind, &sum, choice));
        let shared = Zeroizing::new(first.point * *secret);
        keys.push(derive(index, first, &sent, &shared));
        second.push(sent);
    }
    (keys, second)
}

fn derive(index: usize, first: &Point, second: &Point, shared: &RistrettoPoint) -> u128 {
    let digest = Sha256::new()
        .chain_update(b"heda transfer: base key")
        .chain_update((index as u64).to_le_bytes())
        .chain_update(first.as_bytes())
        .chain_update(second.as_bytes())
        .chain_update(shared.compress().as_bytes())
        .finalize();
    super::low_word(&digest.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;

    #[test]
    fn the_chooser_gets_the_chosen_key_and_not_the_other() {
        let mut rng = Randomness::seeded(2).fork("base", 0).unwrap();
        for choices in [
            [0u8; 20],
            [1; 20],
            std::array::from_fn(|n| (n as u8 / 3) & 1),
        ] {
            let (sender, first) = BaseSender::start(&mut rng);
            let bits = choices.iter().map(|c| Choice::from(*c));
            let (keys, second) = choose(&first, bits, &mut rng);
            let pairs = sender.finish(&second);
            assert_eq!((keys.len(), pairs.len()), (20, 20));
            for ((choice, key), pair) in choices.iter().zip(keys.iter()).zip(pairs.iter()) {
                assert_eq!(*key, pair[usize::from(*choice)]);
                assert_ne!(*key, pair[usize::from(1 - *choice)]);
            }
        }
    }

    #[test]
    fn only_canonical_points_other_than_the_identity_are_decoded() {
        let refused = |bytes: &[u8]| Point::decode(bytes, 5).unwrap_err();
        assert_eq!(refused(&[0xff; 32]), TransferError::NotAPoint { index: 5 });
        assert_eq!(refused(&[1; 31]), TransferError::NotAPoint { index: 5 });
        assert_eq!(refused(&[0; 32]), TransferError::IdentityPoint { index: 5 });
        // p + 0 and p + 2 encode the same field elements as 0 and 2 in a second way.
        let mut again = [0xff; 32];
        (again[0], again[31]) = (0xed, 0x7f);
        assert_eq!(refused(&again), TransferError::NotAPoint { index: 5 });
        again[0] += 2;
        assert_eq!(refused(&again), TransferError::NotAPoint { index: 5 });
        let generator = Point::new(RistrettoPoint::mul_base(&Scalar::ONE));
        assert_eq!(Point::decode(generator.as_bytes(), 0), Ok(generator));
    }
}
