//! What the tests of all blocks share: keys, two parties on two threads, shaped numbers.

use crate::blocks::error::BlockError;
use crate::hazmat_rsa::RsaPrivateKey;
use crate::integer::Integer;
use crate::paillier::{Ciphertext, KeySize, PrivateKey};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) type Generator = chacha20::ChaCha20Rng;

/// Long enough for the shaped inputs, short enough for many runs.
const SMALL: usize = 512;

pub(crate) fn rng(index: u64) -> Generator {
    Randomness::seeded(11).fork("blocks", index).unwrap()
}

fn small(index: u64) -> PrivateKey {
    PrivateKey::generate_insecure_for_tests(SMALL, &mut rng(index)).unwrap()
}

pub(crate) static ALICE: LazyLock<PrivateKey> = LazyLock::new(|| small(1));
pub(crate) static BOB: LazyLock<PrivateKey> = LazyLock::new(|| small(2));
pub(crate) static RSA: LazyLock<RsaPrivateKey> =
    LazyLock::new(|| RsaPrivateKey::generate_insecure_for_tests(SMALL, &mut rng(3)).unwrap());
pub(crate) static ALICE_2048: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048, &mut rng(4)).unwrap());
pub(crate) static BOB_2048: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048, &mut rng(5)).unwrap());
pub(crate) static RSA_2048: LazyLock<RsaPrivateKey> =
    LazyLock::new(|| RsaPrivateKey::generate(KeySize::Bits2048, &mut rng(6)).unwrap());

/// Runs both roles, each on a thread of its own.
pub(crate) fn both<A: Send, B>(
    alice: impl FnOnce(&mut Channel) -> A + Send,
    bob: impl FnOnce(&mut Channel) -> B,
) -> (A, B) {
    let (mut to_bob, mut to_alice) = Channel::pair(Duration::from_secs(60));
    std::thread::scope(|scope| {
        let alice = scope.spawn(move || alice(&mut to_bob));
        let bob = bob(&mut to_alice);
        (alice.join().unwrap(), bob)
    })
}

/// A channel on which one hostile message waits.
pub(crate) fn hostile(tag: u8, body: &[u8]) -> (Channel, Channel) {
    let (mut peer, own) = Channel::pair(Duration::from_millis(200));
    peer.send(tag, body).unwrap();
    (own, peer)
}

/// The ways in which every message of ciphertexts is damaged.
pub(crate) fn damaged(message: &[u8]) -> Vec<Vec<u8>> {
    let mut other_key = message.to_vec();
    other_key[3] ^= 1;
    let mut too_large = message.to_vec();
    let header = 17;
    too_large[header..].fill(0xff);
    let truncated = message[..message.len() - 1].to_vec();
    vec![Vec::new(), truncated, other_key, too_large]
}

/// Every damaged message is refused, and the peer is named.
pub(crate) fn refuses_damage<T: std::fmt::Debug>(
    tag: u8,
    message: &[u8],
    mut role: impl FnMut(&mut Channel) -> Result<T, BlockError>,
) {
    let cases = damaged(message);
    assert_eq!(cases.len(), 4);
    for body in cases {
        let (mut own, _peer) = hostile(tag, &body);
        let error = role(&mut own).unwrap_err();
        assert!(error.blames_peer(), "{error}");
    }
    let (mut own, _peer) = hostile(tag ^ 0x20, message);
    assert!(role(&mut own).unwrap_err().blames_peer());
}

pub(crate) fn integers(values: &[i64]) -> Vec<Integer> {
    values.iter().map(|&v| Integer::from(v)).collect()
}

/// 0, ±1, the bounds of 32 bits and something between.
pub(crate) fn shaped() -> Vec<i64> {
    let most = i64::from(u32::MAX);
    vec![0, 1, -1, most, -most, 123_456_789, -987_654_321]
}

/// All pairs of shaped numbers, as two vectors.
pub(crate) fn shaped_pairs() -> (Vec<i64>, Vec<i64>) {
    let pairs = |x: i64| shaped().into_iter().map(move |y| (x, y));
    shaped().into_iter().flat_map(pairs).unzip()
}

pub(crate) fn encrypted(key: &PrivateKey, values: &[i64]) -> Vec<Ciphertext> {
    let plain = values.iter().map(|&v| key.public().plaintext(v).unwrap());
    let plain: Vec<_> = plain.collect();
    key.encrypt_batch(&plain, &mut rng(9)).unwrap()
}

pub(crate) fn decrypted(key: &PrivateKey, ciphertexts: &[Ciphertext]) -> Vec<Integer> {
    let plain = key.decrypt_batch(ciphertexts).unwrap();
    plain.into_iter().map(|m| m.into_integer()).collect()
}

pub(crate) fn combined(a: &[i64], b: &[i64], f: impl Fn(i64, i64) -> i64) -> Vec<Integer> {
    let pairs = a.iter().zip(b);
    pairs.map(|(&a, &b)| Integer::from(f(a, b))).collect()
}
