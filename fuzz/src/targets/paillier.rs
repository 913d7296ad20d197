//! Keys and ciphertexts of Paillier and textbook RSA.

use crate::driver::{Target, Verdict};
use heda_crypto::random::Randomness;
use heda_paper::hazmat_rsa::{RsaPrivateKey, RsaPublicKey};
use heda_paper::integer::Natural;
use heda_paper::paillier::{KeySize, PrivateKey, PublicKey};

/// Decoding a key of real length tests primes.
const KEY_RUN: u32 = 200;
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
