//! Base transfers: 128 random one-of-two transfers of a key.
//!
//! Follows Chou, Orlandi, "The Simplest Protocol for Oblivious Transfer" (LATINCRYPT 2015), over
//! the group Ristretto. The number of the transfer and both messages enter the hash that makes the
//! keys, because transfers share the first message (McQuoid, Rosulek, Roy, "Batching Base Oblivious
//! Transfers", ASIACRYPT 2021, on what goes wrong otherwise).
//!
//! The base sender learns nothing about the choices: x·G + c·A is uniform for either c. The base
//! chooser learns one key of each pair: the other needs a·A, a Diffie–Hellman secret.
//!
//! Messages: 1. sender → chooser: A. 2. chooser → sender: B_0 … B_127.

use super::{OtError, expect_length};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// Transfers of one setup: the width of the extension.
pub(super) const BASE_TRANSFERS: usize = 128;
/// Bytes of an encoded group element.
pub(super) const POINT_BYTES: usize = 32;

/// A key of AES-128.
pub(super) type Seed = Zeroizing<[u8; 16]>;

/// The base sender after its message.
pub(super) struct BaseSender {
    secret: Zeroizing<Scalar>,
    first: CompressedRistretto,
}

impl BaseSender {
    /// Step 1: A = a·G.
    pub(super) fn start<R: CryptoRng + ?Sized>(rng: &mut R) -> (Self, Vec<u8>) {
        let secret = Zeroizing::new(Scalar::random(rng));
        let first = RistrettoPoint::mul_base(&secret).compress();
        (Self { secret, first }, first.as_bytes().to_vec())
    }

    /// Step 3: the keys from a·B and a·(B − A).
    pub(super) fn finish(self, second: &[u8]) -> Result<Vec<[Seed; 2]>, OtError> {
        expect_length(
            "the second setup message",
            second,
            POINT_BYTES * BASE_TRANSFERS,
        )?;
        // With it the sender's view would give both keys of every transfer.
        let own = Zeroizing::new(RistrettoPoint::mul_base(&self.secret) * *self.secret);
        let mut pairs = Vec::with_capacity(BASE_TRANSFERS);
        for (index, bytes) in second.chunks_exact(POINT_BYTES).enumerate() {
            let (encoded, point) = decode(bytes, index)?;
            let shared = Zeroizing::new(point * *self.secret);
            let other = Zeroizing::new(*shared - *own);
            let key = |shared| derive(index, &self.first, &encoded, shared);
            pairs.push([key(&shared), key(&other)]);
        }
        Ok(pairs)
    }
}

/// Step 2: the base chooser's keys for the bits of `choices`, and B_i = x_i·G + c_i·A.
pub(super) fn choose<R: CryptoRng + ?Sized>(
    first: &[u8],
    choices: u128,
    rng: &mut R,
) -> Result<(Vec<Seed>, Vec<u8>), OtError> {
    expect_length("the first setup message", first, POINT_BYTES)?;
    let (first, point) = decode(first, 0)?;
    let mut seeds = Vec::with_capacity(BASE_TRANSFERS);
    let mut second = Vec::with_capacity(POINT_BYTES * BASE_TRANSFERS);
    for index in 0..BASE_TRANSFERS {
        let secret = Zeroizing::new(Scalar::random(rng));
        let blind = RistrettoPoint::mul_base(&secret);
        let choice = Choice::from((choices >> index) as u8 & 1);
        let sent = RistrettoPoint::conditional_select(&blind, &(blind + point), choice).compress();
        let shared = Zeroizing::new(point * *secret);
        seeds.push(derive(index, &first, &sent, &shared));
        second.extend_from_slice(sent.as_bytes());
    }
    Ok((seeds, second))
}

fn decode(bytes: &[u8], index: usize) -> Result<(CompressedRistretto, RistrettoPoint), OtError> {
    let encoded =
        CompressedRistretto::from_slice(bytes).map_err(|_| OtError::NotAPoint { index })?;
    let point = encoded.decompress().ok_or(OtError::NotAPoint { index })?;
    match point.is_identity() {
        true => Err(OtError::IdentityPoint { index }),
        false => Ok((encoded, point)),
    }
}

fn derive(
    index: usize,
    first: &CompressedRistretto,
    second: &CompressedRistretto,
    shared: &RistrettoPoint,
) -> Seed {
    let digest = Sha256::new()
        .chain_update(b"heda oblivious transfer: base key")
        .chain_update((index as u64).to_le_bytes())
        .chain_update(first.as_bytes())
        .chain_update(second.as_bytes())
        .chain_update(shared.compress().as_bytes())
        .finalize();
    let digest = Zeroizing::new(<[u8; 32]>::from(digest));
    let mut seed = Seed::default();
    seed.copy_from_slice(&digest[..16]);
    seed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;

    fn rng() -> impl CryptoRng {
        Randomness::seeded(2).fork("base", 0).unwrap()
    }

    #[test]
    fn the_chooser_gets_the_chosen_key_and_not_the_other() {
        let mut rng = rng();
        for choices in [0, u128::MAX, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210] {
            let (sender, first) = BaseSender::start(&mut rng);
            let (seeds, second) = choose(&first, choices, &mut rng).unwrap();
            let pairs = sender.finish(&second).unwrap();
            for (index, (seed, pair)) in seeds.iter().zip(&pairs).enumerate() {
                let bit = (choices >> index & 1) as usize;
                assert_eq!(seed, &pair[bit]);
                assert_ne!(seed, &pair[1 - bit]);
            }
            assert_eq!((seeds.len(), pairs.len()), (128, 128));
        }
    }

    #[test]
    fn bad_points_and_lengths_are_told_apart() {
        let mut rng = rng();
        let not_canonical = [0xff; 32];
        let refused = |message: &[u8], rng: &mut _| choose(message, 0, rng).unwrap_err();
        assert_eq!(
            refused(&not_canonical, &mut rng),
            OtError::NotAPoint { index: 0 }
        );
        assert_eq!(
            refused(&[0; 32], &mut rng),
            OtError::IdentityPoint { index: 0 }
        );
        assert!(matches!(
            refused(&[0; 31], &mut rng),
            OtError::WrongLength { got: 31, .. }
        ));

        let spoilt = |change: &dyn Fn(&mut Vec<u8>), rng: &mut _| {
            let (sender, first) = BaseSender::start(rng);
            let (_, mut second) = choose(&first, 7, rng).unwrap();
            change(&mut second);
            sender.finish(&second).map(|_| ()).unwrap_err()
        };
        let five = 5 * 32..6 * 32;
        let error = spoilt(&|m| m[five.clone()].fill(0xff), &mut rng);
        assert_eq!(error, OtError::NotAPoint { index: 5 });
        let error = spoilt(&|m| m[five.clone()].fill(0), &mut rng);
        assert_eq!(error, OtError::IdentityPoint { index: 5 });
        let error = spoilt(&|m| m.truncate(4095), &mut rng);
        assert!(matches!(
            error,
            OtError::WrongLength {
                got: 4095,
                expected: 4096,
                ..
            }
        ));
    }
}
