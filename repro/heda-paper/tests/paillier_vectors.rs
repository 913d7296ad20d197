//! Known answers from an independent implementation (`tools/reference/paillier_vectors.py`).

#![allow(clippy::unwrap_used)]

use heda_paper::hazmat_rsa::RsaPrivateKey;
use heda_paper::integer::{Integer, Natural};
use heda_paper::paillier::{Ciphertext, PrivateKey};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    keys: Vec<KeyVectors>,
}

#[derive(Deserialize)]
struct KeyVectors {
    bits: usize,
    p: String,
    q: String,
    full: Vec<Full>,
    short: Vec<Short>,
    scaled: Vec<Scaled>,
    combination: Combination,
    rsa: Vec<Rsa>,
}

#[derive(Deserialize)]
struct Full {
    m: String,
    r: String,
    c: String,
}

#[derive(Deserialize)]
struct Short {
    m: String,
    a: String,
    c: String,
}

#[derive(Deserialize)]
struct Scaled {
    c: String,
    weight: String,
    result: String,
    m: String,
}

#[derive(Deserialize)]
struct Combination {
    result: String,
    m: String,
}

#[derive(Deserialize)]
struct Rsa {
    m: String,
    c: String,
}

fn vectors() -> Vec<KeyVectors> {
    let text = include_str!("vectors/paillier.json");
    serde_json::from_str::<Vectors>(text).unwrap().keys
}

fn natural(hex: &str) -> Natural {
    Natural::from_hex(hex).unwrap()
}

fn integer(hex: &str) -> Integer {
    let magnitude = natural(hex.trim_start_matches('-'));
    Integer::from_parts(hex.starts_with('-'), magnitude)
}

fn private_key(key: &KeyVectors) -> PrivateKey {
    let (p, q) = (natural(&key.p), natural(&key.q));
    match key.bits {
        256 => PrivateKey::from_primes_insecure_for_tests(p, q).unwrap(),
        _ => PrivateKey::from_primes(p, q).unwrap(),
    }
}

fn ciphertext(private: &PrivateKey, hex: &str) -> Ciphertext {
    let public = private.public();
    public.ciphertext_from_number(&natural(hex)).unwrap()
}

#[test]
fn encryptions_and_decryptions_are_as_known() {
    let mut ran = 0;
    for key in vectors() {
        let private = private_key(&key);
        let public = private.public();
        assert_eq!(public.bits(), key.bits);
        for v in &key.full {
            let m = public.plaintext(integer(&v.m)).unwrap();
            let c = ciphertext(&private, &v.c);
            let made = public
                .encrypt_with_given_randomness(&m, &natural(&v.r))
                .unwrap();
            assert_eq!(made, c);
            assert_eq!(private.decrypt(&c).unwrap(), m);
            let bytes = public.encode(&[c]).unwrap();
            assert_eq!(Natural::from_be_bytes(&bytes[17..]), natural(&v.c));
            ran += 1;
        }
        for v in &key.short {
            let m = public.plaintext(integer(&v.m)).unwrap();
            let c = ciphertext(&private, &v.c);
            let made = public
                .encrypt_with_given_exponent(&m, &natural(&v.a))
                .unwrap();
            assert_eq!(made, c);
            assert_eq!(private.decrypt(&c).unwrap(), m);
            ran += 1;
        }
    }
    assert_eq!(ran, 3 * 20);
}

#[test]
fn products_and_combinations_are_as_known() {
    let mut ran = 0;
    for key in vectors() {
        let private = private_key(&key);
        let public = private.public();
        let ciphertexts: Vec<Ciphertext> = key
            .scaled
            .iter()
            .map(|v| ciphertext(&private, &v.c))
            .collect();
        let weights: Vec<Integer> = key.scaled.iter().map(|v| integer(&v.weight)).collect();
        for ((v, c), weight) in key.scaled.iter().zip(&ciphertexts).zip(&weights) {
            let expected = ciphertext(&private, &v.result);
            assert_eq!(public.scale(c, weight, 64).unwrap(), expected);
            assert_eq!(public.scale_vartime(c, weight).unwrap(), expected);
            assert_eq!(
                private.decrypt(&expected).unwrap().integer(),
                &integer(&v.m)
            );
            ran += 1;
        }
        let terms: Vec<_> = ciphertexts.iter().zip(&weights).collect();
        let expected = ciphertext(&private, &key.combination.result);
        assert_eq!(public.linear_combination(&terms, 64).unwrap(), expected);
        assert_eq!(public.linear_combination_vartime(&terms).unwrap(), expected);
        let total = private.decrypt(&expected).unwrap();
        assert_eq!(total.integer(), &integer(&key.combination.m));
        ran += 1;
    }
    assert_eq!(ran, 3 * 11);
}

#[test]
fn textbook_rsa_is_as_known() {
    let mut ran = 0;
    for key in vectors() {
        let (p, q) = (natural(&key.p), natural(&key.q));
        let private = RsaPrivateKey::from_primes_insecure_for_tests(p, q).unwrap();
        let public = private.public();
        for v in &key.rsa {
            let c = public.encrypt(&natural(&v.m)).unwrap();
            let bytes = public.encode(std::slice::from_ref(&c)).unwrap();
            assert_eq!(Natural::from_be_bytes(&bytes[17..]), natural(&v.c));
            assert_eq!(private.decrypt(&c).unwrap(), natural(&v.m));
            ran += 1;
        }
    }
    assert_eq!(ran, 3 * 7);
}
