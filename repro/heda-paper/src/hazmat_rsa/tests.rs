use super::*;
use crate::paillier::KeySize;
use heda_crypto::random::Randomness;

fn key(seed: u64) -> RsaPrivateKey {
    let mut rng = Randomness::seeded(seed).fork("rsa", 0).unwrap();
    RsaPrivateKey::generate_insecure_for_tests(256, &mut rng).unwrap()
}

fn shaped(public: &RsaPublicKey) -> Vec<Natural> {
    let mut rng = Randomness::seeded(5).fork("numbers", 0).unwrap();
    let n = public.modulus();
    let mut all = vec![Natural::zero(), Natural::one(), Natural::from(2u64)];
    all.push(n.checked_sub(&Natural::one()).unwrap());
    all.extend((0..4).filter_map(|_| Natural::random_below(n, &mut rng)));
    all
}

#[test]
fn products_under_encryption_equal_products_in_clear() {
    let private = key(1);
    let public = private.public();
    let numbers = shaped(public);
    let encrypted = public.encrypt_batch(&numbers).unwrap();
    assert_eq!(private.decrypt_batch(&encrypted).unwrap(), numbers);
    for (x, cx) in numbers.iter().zip(&encrypted) {
        for (y, cy) in numbers.iter().zip(&encrypted) {
            let product = public.multiply(cx, cy).unwrap();
            let expected = (x * y).div_rem(public.modulus()).unwrap().1;
            assert_eq!(private.decrypt(&product).unwrap(), expected);
        }
    }
    let none = public.product([]).unwrap();
    assert_eq!(private.decrypt(&none).unwrap(), Natural::one());
}

#[test]
fn encryption_is_the_power_that_the_backend_computes() {
    let private = key(2);
    let public = private.public();
    for m in shaped(public) {
        let expected = m.power_by_backend(&Natural::from(65537u64), public.modulus());
        let bytes = public.encode(&[public.encrypt(&m).unwrap()]).unwrap();
        assert_eq!(Natural::from_be_bytes(&bytes[17..]), expected.unwrap());
    }
}

#[test]
fn everything_round_trips_and_bad_bytes_are_refused() {
    let private = key(3);
    let public = private.public();
    let encrypted = public.encrypt_batch(&shaped(public)).unwrap();
    let bytes = public.encode(&encrypted).unwrap();
    let count = encrypted.len();
    assert_eq!(public.decode(&bytes, count).unwrap(), encrypted);
    assert!(matches!(
        public.decode(&bytes, count + 1),
        Err(RsaError::Length { .. })
    ));
    assert!(matches!(
        public.decode(&bytes[..9], 0),
        Err(RsaError::Length { .. })
    ));
    let other = key(4);
    assert_eq!(
        other.public().decode(&bytes, count),
        Err(RsaError::OtherKey)
    );
    let mut wrong = bytes.clone();
    wrong[0] = 9;
    assert_eq!(
        public.decode(&wrong, count),
        Err(RsaError::Format { found: 9 })
    );
    let mut large = bytes.clone();
    large[17..17 + 32].fill(0xff);
    let refused = public.decode(&large, count);
    assert_eq!(refused, Err(RsaError::NotBelowModulus { index: 0 }));
    assert!(matches!(
        other.decrypt(&encrypted[0]),
        Err(RsaError::MixedKeys { .. })
    ));
    assert!(matches!(
        other.public().encode(&encrypted),
        Err(RsaError::MixedKeys { .. })
    ));
    let n = public.modulus().clone();
    assert_eq!(public.encrypt(&n), Err(RsaError::OutOfRange { bits: 256 }));
    let copy = RsaPublicKey::from_bytes_insecure_for_tests(&public.to_bytes()).unwrap();
    assert_eq!(&copy, public);
}

#[test]
fn a_real_key_round_trips_through_its_bytes() {
    let mut rng = Randomness::seeded(6).fork("rsa", 0).unwrap();
    let private = RsaPrivateKey::generate(KeySize::Bits2048, &mut rng).unwrap();
    let copy = RsaPrivateKey::from_bytes(&private.to_bytes()).unwrap();
    let public = RsaPublicKey::from_bytes(&private.public().to_bytes()).unwrap();
    assert_eq!(&public, copy.public());
    let c = public.encrypt(&Natural::from(123u64)).unwrap();
    assert_eq!(copy.decrypt(&c).unwrap().to_u64(), Some(123));
    assert!(!format!("{private:?}").contains(&format!("{:x}", private.p.prime)));
}

#[test]
fn bad_keys_are_refused_each_with_its_own_error() {
    let bits = Natural::power_of_two(2047);
    let root = &Natural::power_of_two(1023) + &Natural::one();
    let public = RsaPublicKey::from_modulus;
    assert_eq!(public(bits.clone()).unwrap_err(), RsaError::Even);
    let short = Natural::from(15u64);
    assert_eq!(public(short).unwrap_err(), RsaError::Size { bits: 4 });
    let square = RsaPublicKey::from_modulus_insecure_for_tests(&root * &root);
    assert_eq!(square.unwrap_err(), RsaError::Square);
    let small = RsaPrivateKey::from_primes_insecure_for_tests;
    let prime = Natural::from(4294967291u64);
    assert_eq!(
        small(prime.clone(), prime.clone()).unwrap_err(),
        RsaError::EqualPrimes
    );
    let composite = Natural::from(4294967295u64);
    assert_eq!(
        small(prime.clone(), composite).unwrap_err(),
        RsaError::UnsuitablePrime
    );
    let prime_modulus = RsaPublicKey::from_modulus_insecure_for_tests(prime);
    assert_eq!(prime_modulus.unwrap_err(), RsaError::Prime);
    assert!(matches!(
        RsaPublicKey::from_bytes(&[2, 0]),
        Err(RsaError::Length { .. })
    ));
    assert!(matches!(
        RsaPublicKey::from_bytes(&[]),
        Err(RsaError::Length { .. })
    ));
    assert!(matches!(
        RsaPublicKey::from_bytes(&[7, 0]),
        Err(RsaError::Format { found: 7 })
    ));
}
