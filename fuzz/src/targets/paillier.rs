//! Keys and ciphertexts of Paillier and textbook RSA, and key files.

use crate::driver::{Target, Verdict};
use heda_crypto::hazmat_rsa::{RsaPrivateKey, RsaPublicKey};
use heda_crypto::integer::Natural;
use heda_crypto::keyfile;
use heda_crypto::paillier::{KeySize, PrivateKey, PublicKey};
use heda_crypto::random::Randomness;

/// Decoding a key of real length tests primes.
const KEY_RUN: u64 = 200;
/// Every passphrase costs 64 MiB and a fraction of a second.
const SEALED_RUN: u64 = 12;
const COUNT: usize = 3;

fn small_key() -> PrivateKey {
    let mut rng = Randomness::seeded(1).fork("paillier", 0).expect("seeded");
    PrivateKey::generate_insecure_for_tests(256, &mut rng).expect("the size is allowed")
}

fn real_key() -> PrivateKey {
    let mut rng = Randomness::seeded(2).fork("paillier", 0).expect("seeded");
    PrivateKey::generate(KeySize::Bits2048, &mut rng).expect("the size is allowed")
}

fn rsa_key(bits: usize) -> RsaPrivateKey {
    let mut rng = Randomness::seeded(3).fork("rsa", 0).expect("seeded");
    RsaPrivateKey::generate_insecure_for_tests(bits, &mut rng).expect("the size is allowed")
}

/// Whatever is accepted is encoded as it came.
pub(super) fn public_key() -> Target {
    let decode = |input: &[u8]| {
        let read = PublicKey::from_bytes(input);
        if let Ok(key) = &read {
            assert!(key.to_bytes() == input);
        }
        Verdict::from(read)
    };
    Target::new(vec![real_key().public().to_bytes()], decode).short_run(KEY_RUN)
}

/// Whatever is accepted has the primes that were given, in either order.
pub(super) fn private_key() -> Target {
    let decode = |input: &[u8]| {
        let read = PrivateKey::from_bytes(input);
        if let Ok(key) = &read {
            assert!(key.to_bytes().len() == input.len());
        }
        Verdict::from(read)
    };
    Target::new(vec![real_key().to_bytes().to_vec()], decode).short_run(KEY_RUN)
}

/// Whatever is accepted decrypts and is encoded as it came.
pub(super) fn ciphertexts() -> Target {
    let private = small_key();
    let public = private.public();
    let mut rng = Randomness::seeded(1).fork("paillier", 1).expect("seeded");
    let plaintexts = [0i64, 1, -1].map(|m| public.plaintext(m).expect("small"));
    let made = public
        .encrypt_batch(&plaintexts, &mut rng)
        .expect("one key");
    let seed = public.encode(&made).expect("one key");
    let decode = move |input: &[u8]| {
        let public = private.public();
        let read = public.decode(input, COUNT);
        if let Ok(ciphertexts) = &read {
            assert!(private.decrypt_batch(ciphertexts).is_ok());
            assert!(public.encode(ciphertexts).is_ok_and(|bytes| bytes == input));
        }
        Verdict::from(read)
    };
    Target::new(vec![seed], decode).short_run(1000)
}

/// Whatever is accepted is encoded as it came.
pub(super) fn rsa_public_key() -> Target {
    let decode = |input: &[u8]| {
        let read = RsaPublicKey::from_bytes(input);
        if let Ok(key) = &read {
            assert!(key.to_bytes() == input);
        }
        Verdict::from(read)
    };
    Target::new(vec![rsa_key(2048).public().to_bytes()], decode).short_run(KEY_RUN)
}

/// Whatever is accepted is encoded as it came.
pub(super) fn rsa_private_key() -> Target {
    let decode = |input: &[u8]| {
        let read = RsaPrivateKey::from_bytes(input);
        if let Ok(key) = &read {
            assert!(key.to_bytes()[..] == *input);
        }
        Verdict::from(read)
    };
    Target::new(vec![rsa_key(2048).to_bytes().to_vec()], decode).short_run(KEY_RUN)
}

/// Whatever is accepted decrypts and is encoded as it came.
pub(super) fn rsa_ciphertexts() -> Target {
    let private = rsa_key(256);
    let public = private.public();
    let numbers = [0u64, 1, 12345].map(Natural::from);
    let made = public.encrypt_batch(&numbers).expect("small");
    let seed = public.encode(&made).expect("one key");
    let decode = move |input: &[u8]| {
        let public = private.public();
        let read = public.decode(input, COUNT);
        if let Ok(ciphertexts) = &read {
            assert!(private.decrypt_batch(ciphertexts).is_ok());
            assert!(public.encode(ciphertexts).is_ok_and(|bytes| bytes == input));
        }
        Verdict::from(read)
    };
    Target::new(vec![seed], decode).short_run(1000)
}

/// A key file in clear.
pub(super) fn key_file() -> Target {
    let mut rng = Randomness::seeded(4).fork("key file", 0).expect("seeded");
    let seed = keyfile::seal(b"a key", None, &mut rng).expect("no passphrase");
    let decode = |input: &[u8]| Verdict::from(keyfile::open(input, None));
    Target::new(vec![seed.to_vec()], decode)
}

/// A key file under a passphrase.
pub(super) fn sealed_key_file() -> Target {
    let mut rng = Randomness::seeded(5).fork("key file", 0).expect("seeded");
    let seed = keyfile::seal(b"a key", Some("passphrase"), &mut rng).expect("a passphrase");
    let decode = |input: &[u8]| Verdict::from(keyfile::open(input, Some("passphrase")));
    Target::new(vec![seed.to_vec()], decode).short_run(SEALED_RUN)
}
