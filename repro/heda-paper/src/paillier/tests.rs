use super::*;
use crate::integer::{Integer, Natural};
use chacha20::ChaCha20Rng;
use heda_crypto::random::Randomness;
use proptest::prelude::*;
use std::sync::LazyLock;

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| small_key(1));

fn small_key(seed: u64) -> PrivateKey {
    PrivateKey::generate_insecure_for_tests(256, &mut generator(seed)).unwrap()
}

fn generator(seed: u64) -> ChaCha20Rng {
    Randomness::seeded(seed).fork("paillier tests", 0).unwrap()
}

/// 0, ±1, ±max and random numbers over the whole range, by index.
fn shaped(index: usize, seed: u64) -> Integer {
    let largest = KEY.public().largest_plaintext();
    let magnitude = match index % 8 {
        0 => Natural::zero(),
        1 | 2 => Natural::one(),
        3 | 4 => largest.clone(),
        _ => Natural::random_below(largest, &mut generator(seed)).unwrap(),
    };
    Integer::from_parts(index.is_multiple_of(2), magnitude)
}

/// What the plaintext space makes of a number: the representative between −N/2 and N/2.
fn wrapped(value: &Integer) -> Integer {
    let n = KEY.public().modulus();
    let remainder = value.magnitude().div_rem(n).unwrap().1;
    let signed = Integer::from_parts(value.is_negative(), remainder);
    let n = Integer::from(n.clone());
    if signed.magnitude() <= KEY.public().largest_plaintext() {
        return signed;
    }
    match signed.is_negative() {
        true => &signed + &n,
        false => &signed - &n,
    }
}

fn encrypted(value: &Integer, seed: u64) -> Ciphertext {
    let public = KEY.public();
    let plaintext = public.plaintext(value.clone()).unwrap();
    public.encrypt(&plaintext, &mut generator(seed)).unwrap()
}

fn decrypted(ciphertext: &Ciphertext) -> Integer {
    let plaintext = KEY.decrypt(ciphertext).unwrap();
    assert_eq!(plaintext, KEY.decrypt_without_crt(ciphertext).unwrap());
    plaintext.into_integer()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_kind_of_encryption_decrypts(i in 0usize..8, seed: u64) {
        let value = shaped(i, seed);
        let public = KEY.public();
        let plaintext = public.plaintext(value.clone()).unwrap();
        let rng = &mut generator(seed);
        for ciphertext in [
            public.encrypt(&plaintext, rng).unwrap(),
            public.encrypt_with_full_randomness(&plaintext, rng).unwrap(),
            KEY.encrypt(&plaintext, rng).unwrap(),
        ] {
            prop_assert_eq!(decrypted(&ciphertext), value.clone());
            for fresh in [public.rerandomise(&ciphertext, rng), KEY.rerandomise(&ciphertext, rng)] {
                let fresh = fresh.unwrap();
                prop_assert!(fresh != ciphertext);
                prop_assert_eq!(decrypted(&fresh), value.clone());
            }
        }
    }

    #[test]
    fn sums_obey_the_laws(i in 0usize..8, j in 0usize..8, seed: u64) {
        let (x, y) = (shaped(i, seed), shaped(j, seed ^ 1));
        let (cx, cy) = (encrypted(&x, seed), encrypted(&y, seed ^ 2));
        let public = KEY.public();
        let sum = wrapped(&(&x + &y));
        prop_assert_eq!(decrypted(&public.add(&cx, &cy).unwrap()), sum.clone());
        prop_assert_eq!(decrypted(&public.sum([&cx, &cy]).unwrap()), sum.clone());
        let known = public.plaintext(y.clone()).unwrap();
        prop_assert_eq!(decrypted(&public.add_plaintext(&cx, &known).unwrap()), sum);
        let difference = wrapped(&(&x - &y));
        prop_assert_eq!(decrypted(&public.subtract(&cx, &cy).unwrap()), difference);
        prop_assert_eq!(decrypted(&public.negate(&cx).unwrap()), wrapped(&-x));
    }

    #[test]
    fn products_with_weights_obey_the_laws(i in 0usize..8, j in 0usize..8, seed: u64) {
        let (x, weight) = (shaped(i, seed), shaped(j, seed ^ 1));
        let cx = encrypted(&x, seed);
        let public = KEY.public();
        let expected = wrapped(&(&x * &weight));
        let scaled = public.scale(&cx, &weight, 256).unwrap();
        prop_assert_eq!(decrypted(&scaled), expected.clone());
        prop_assert_eq!(public.scale_vartime(&cx, &weight).unwrap(), scaled.clone());
        prop_assert_eq!(public.scale_batch(&[(&cx, &weight)], 255).unwrap(), vec![scaled]);
    }

    #[test]
    fn linear_combinations_equal_the_clear_sum(count in 0usize..90, seed: u64) {
        let weight = |i: usize| match i % 5 {
            0 => Integer::from(0i64),
            1 => Integer::from(1i64),
            2 => Integer::from(-1i64),
            3 => Integer::from(i64::MIN),
            _ => Integer::from((seed as i64).wrapping_mul(i as i64)),
        };
        let values: Vec<Integer> = (0..count).map(|i| shaped(i, seed)).collect();
        let weights: Vec<Integer> = (0..count).map(weight).collect();
        let ciphertexts: Vec<Ciphertext> = values.iter().map(|v| encrypted(v, seed)).collect();
        let terms: Vec<_> = ciphertexts.iter().zip(&weights).collect();
        let clear = values.iter().zip(&weights).fold(Integer::zero(), |s, (v, w)| &s + &(v * w));
        let public = KEY.public();
        let hidden = public.linear_combination(&terms, 64).unwrap();
        prop_assert_eq!(decrypted(&hidden), wrapped(&clear));
        prop_assert_eq!(public.linear_combination_vartime(&terms).unwrap(), hidden);
    }
}

#[test]
fn batches_equal_single_calls_in_order() {
    let public = KEY.public();
    let plaintexts: Vec<Plaintext> = (0..20)
        .map(|i| public.plaintext(shaped(i, i as u64)).unwrap())
        .collect();
    let rng = &mut generator(3);
    let single: Vec<Ciphertext> = plaintexts
        .iter()
        .map(|m| public.encrypt(m, rng).unwrap())
        .collect();
    assert_eq!(
        public
            .encrypt_batch(&plaintexts, &mut generator(3))
            .unwrap(),
        single
    );
    // The owner's faster way computes the very same ciphertexts from the same randomness.
    assert_eq!(
        KEY.encrypt_batch(&plaintexts, &mut generator(3)).unwrap(),
        single
    );
    assert_eq!(KEY.decrypt_batch(&single).unwrap(), plaintexts);
    let fresh = public.rerandomise_batch(&single, rng).unwrap();
    assert!(fresh.iter().zip(&single).all(|(a, b)| a != b));
    assert_eq!(KEY.decrypt_batch(&fresh).unwrap(), plaintexts);
}

#[test]
fn plaintexts_beyond_half_the_modulus_are_refused() {
    let public = KEY.public();
    let above = public.largest_plaintext() + &Natural::one();
    for negative in [false, true] {
        let value = Integer::from_parts(negative, above.clone());
        assert_eq!(
            public.plaintext(value),
            Err(PaillierError::OutOfRange { bits: 255 })
        );
    }
}

#[test]
fn a_weight_longer_than_announced_is_refused() {
    let x = encrypted(&Integer::from(1i64), 4);
    let weight = Integer::from(256i64);
    let refused = Err(PaillierError::WeightTooLong {
        bits: 9,
        announced: 8,
    });
    assert_eq!(KEY.public().scale(&x, &weight, 8), refused);
    assert_eq!(
        KEY.public().linear_combination(&[(&x, &weight)], 8),
        refused
    );
}

#[test]
fn things_of_different_keys_do_not_mix() {
    let other = small_key(2);
    let (public, stranger) = (KEY.public(), other.public());
    let theirs = stranger.plaintext(1i64).unwrap();
    let foreign = stranger.encrypt(&theirs, &mut generator(5)).unwrap();
    let own = encrypted(&Integer::from(1i64), 6);
    let one = Integer::from(1i64);
    let rng = &mut generator(7);
    let mixed = [
        public.add(&own, &foreign).unwrap_err(),
        public.negate(&foreign).unwrap_err(),
        public.sum([&own, &foreign]).unwrap_err(),
        public.scale(&foreign, &one, 1).unwrap_err(),
        public.scale_vartime(&foreign, &one).unwrap_err(),
        public
            .linear_combination(&[(&foreign, &one)], 1)
            .unwrap_err(),
        public
            .linear_combination_vartime(&[(&foreign, &one)])
            .unwrap_err(),
        public.rerandomise(&foreign, rng).unwrap_err(),
        KEY.rerandomise(&foreign, rng).unwrap_err(),
        public.encrypt(&theirs, rng).unwrap_err(),
        KEY.encrypt(&theirs, rng).unwrap_err(),
        public.add_plaintext(&own, &theirs).unwrap_err(),
        public.encode(std::slice::from_ref(&foreign)).unwrap_err(),
        KEY.decrypt(&foreign).unwrap_err(),
    ];
    let expected = PaillierError::MixedKeys {
        expected: public.fingerprint(),
        found: stranger.fingerprint(),
    };
    assert!(mixed.iter().all(|error| *error == expected));
}

#[test]
fn ciphertexts_round_trip_through_their_bytes() {
    let public = KEY.public();
    let ciphertexts: Vec<Ciphertext> = (0..9).map(|i| encrypted(&shaped(i, 8), 9)).collect();
    let bytes = public.encode(&ciphertexts).unwrap();
    assert_eq!(Some(bytes.len()), public.encoded_length(9));
    assert_eq!(public.decode(&bytes, 9).unwrap(), ciphertexts);
    assert_eq!(public.decode(&bytes[..17], 0).unwrap(), vec![]);
    assert!(public.decode(&bytes, usize::MAX).is_err());
}

#[test]
fn bad_ciphertexts_are_refused_each_with_its_own_error() {
    let public = KEY.public();
    let n = public.modulus();
    let (p, _) = KEY.primes();
    let square = n * n;
    let good = encrypted(&Integer::from(5i64), 10);
    let refusal = |number: &Natural| {
        let mut bytes = public.encode(&[good.clone(), good.clone()]).unwrap();
        bytes[17 + 64..].copy_from_slice(&number.to_be_bytes(64).unwrap());
        public.decode(&bytes, 2).unwrap_err()
    };
    let index = 1;
    assert_eq!(refusal(&Natural::zero()), CiphertextError::Zero { index });
    assert_eq!(refusal(n), CiphertextError::MultipleOfModulus { index });
    assert_eq!(refusal(&square), CiphertextError::ModulusSquared { index });
    let above = &square + &Natural::one();
    assert_eq!(
        refusal(&above),
        CiphertextError::AboveModulusSquared { index }
    );
    assert_eq!(refusal(p), CiphertextError::NotAUnit { index });
    assert_eq!(refusal(&(p * p)), CiphertextError::NotAUnit { index });
    assert_eq!(
        public.ciphertext_from_number(p),
        Err(CiphertextError::NotAUnit { index: 0 })
    );

    let bytes = public.encode(std::slice::from_ref(&good)).unwrap();
    let (expected, found) = (81, 80);
    assert_eq!(
        public.decode(&bytes[..80], 1),
        Err(CiphertextError::Length { expected, found })
    );
    assert_eq!(
        small_key(2).public().decode(&bytes, 1),
        Err(CiphertextError::OtherKey)
    );
    let mut other_version = bytes.clone();
    other_version[0] = 2;
    assert_eq!(
        public.decode(&other_version, 1),
        Err(CiphertextError::Format { found: 2 })
    );
}

#[test]
fn bad_public_keys_are_refused_each_with_its_own_error() {
    let even = Natural::power_of_two(2047);
    assert_eq!(PublicKey::from_modulus(even).unwrap_err(), KeyError::Even);
    let short = KEY.public().to_bytes();
    let (expected, found) = (258, 34);
    assert_eq!(
        PublicKey::from_bytes(&short).unwrap_err(),
        KeyError::Length { expected, found }
    );
    let mut padded = vec![b'P', 1];
    padded.resize(258 - 32, 0);
    padded.extend_from_slice(&short[2..]);
    assert_eq!(
        PublicKey::from_bytes(&padded).unwrap_err(),
        KeyError::Size { bits: 256 }
    );
    let mut root = Natural::power_of_two(1024);
    root = root.checked_sub(&Natural::from(105u64)).unwrap();
    assert_eq!(
        PublicKey::from_modulus(&root * &root).unwrap_err(),
        KeyError::Square
    );
    let (p, _) = KEY.primes();
    let prime = PublicKey::from_modulus_insecure_for_tests(p.clone());
    assert_eq!(prime.unwrap_err(), KeyError::Prime);
    assert_eq!(
        PublicKey::from_bytes(b"x1").unwrap_err(),
        KeyError::Format { found: *b"x1" }
    );
    let (expected, found) = (2, 1);
    assert_eq!(
        PublicKey::from_bytes(b"P").unwrap_err(),
        KeyError::Length { expected, found }
    );
    let copy = PublicKey::from_bytes_insecure_for_tests(&short).unwrap();
    assert_eq!(&copy, KEY.public());
}

#[test]
fn bad_private_keys_are_refused_each_with_its_own_error() {
    let (p, q) = KEY.primes();
    let small = |p: &Natural, q: &Natural| {
        PrivateKey::from_primes_insecure_for_tests(p.clone(), q.clone()).unwrap_err()
    };
    assert_eq!(small(p, p), KeyError::EqualPrimes);
    assert_eq!(small(p, &(q + &Natural::one())), KeyError::Even);
    assert_eq!(small(p, &(p * q)), KeyError::Composite);
    assert_eq!(small(p, &Natural::from(7u64)), KeyError::Form);
    assert_eq!(small(p, &Natural::from(13u64)), KeyError::Form);
    let short = PrivateKey::from_primes(p.clone(), q.clone());
    assert_eq!(short.unwrap_err(), KeyError::Size { bits: 256 });
    let odd = PrivateKey::generate_insecure_for_tests(65, &mut generator(11));
    assert_eq!(odd.unwrap_err(), KeyError::TestSize { bits: 65 });
}

#[test]
fn a_real_key_works_and_round_trips_through_its_bytes() {
    let private = PrivateKey::generate(KeySize::Bits2048, &mut generator(12)).unwrap();
    let bytes = private.to_bytes();
    let copy = PrivateKey::from_bytes(&bytes).unwrap();
    let public = PublicKey::from_bytes(&private.public().to_bytes()).unwrap();
    assert_eq!((public.bits(), &public), (2048, copy.public()));
    let smallest = Integer::from_parts(true, public.largest_plaintext().clone());
    let plaintext = public.plaintext(smallest).unwrap();
    let rng = &mut generator(13);
    for ciphertext in [
        public.encrypt(&plaintext, rng),
        copy.encrypt(&plaintext, rng),
    ] {
        assert_eq!(private.decrypt(&ciphertext.unwrap()).unwrap(), plaintext);
    }
    let truncated = PrivateKey::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(
        truncated,
        KeyError::Length {
            expected: 258,
            found: 257
        }
    );
}

#[test]
fn debug_output_shows_no_secret() {
    let (p, q) = KEY.primes();
    let plaintext = KEY.public().plaintext(424242i64).unwrap();
    let text = format!("{:?} {plaintext:?}", *KEY);
    assert!(!text.contains("424242"));
    assert!(!text.contains(&format!("{p:x}")) && !text.contains(&format!("{q:x}")));
}
