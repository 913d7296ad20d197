use super::*;
use heda_crypto::random::Randomness;
use proptest::prelude::*;

fn natural(hex: &str) -> Natural {
    Natural::from_hex(hex).unwrap()
}

/// Odd moduli whose lengths are no multiple of a limb, of odd and even limb counts, and extremes.
fn moduli() -> Vec<Natural> {
    let mut rng = Randomness::seeded(1).fork("moduli", 0).unwrap();
    let mut all = vec![
        natural("3"),
        natural("ffffffffffffffff"),
        natural("8000000000000001"),
    ];
    all.push(
        Natural::power_of_two(256)
            .checked_sub(&Natural::one())
            .unwrap(),
    );
    all.push(&Natural::power_of_two(255) + &Natural::one());
    for bits in [40, 64, 100, 128, 190, 192, 320, 513] {
        let top = Natural::power_of_two(bits as usize - 1);
        let mut n = &top + &(&Natural::random_bits(bits - 2, &mut rng) << 1);
        n = &n + &Natural::one();
        assert!(n.is_odd());
        all.push(n);
    }
    all
}

/// 0, 1, n − 1, n, n + 1, a few random numbers, and everything above n² too.
fn values(n: &Natural, seed: u64) -> Vec<Natural> {
    let mut rng = Randomness::seeded(seed).fork("values", 0).unwrap();
    let one = Natural::one();
    let square = n * n;
    let mut all = vec![
        Natural::zero(),
        one.clone(),
        n.clone(),
        n + &one,
        square.clone(),
    ];
    all.push(n.checked_sub(&one).unwrap());
    all.push(square.checked_sub(&one).unwrap());
    for _ in 0..4 {
        all.push(Natural::random_below(&square, &mut rng).unwrap());
        all.push(Natural::random_bits(
            3 * n.bit_length() as u32 + 5,
            &mut rng,
        ));
    }
    all
}

fn modulo(x: &Natural, n: &Natural) -> Natural {
    x.div_rem(n).unwrap().1
}

#[test]
fn products_and_squares_modulo_n_equal_the_backend() {
    let mut checked = 0;
    for n in moduli() {
        let ring = Modulus::new(&n).unwrap();
        for x in values(&n, 2) {
            let rx = ring.residue(&x);
            assert_eq!(ring.natural(&rx), modulo(&x, &n));
            assert_eq!(ring.natural(&square_of(&ring, &rx)), modulo(&(&x * &x), &n));
            for y in values(&n, 3) {
                let ry = ring.residue(&y);
                assert_eq!(
                    ring.natural(&ring.multiply(&rx, &ry)),
                    modulo(&(&x * &y), &n)
                );
                let sum = &modulo(&x, &n) + &n;
                let difference = sum.checked_sub(&modulo(&y, &n)).unwrap();
                assert_eq!(
                    ring.natural(&ring.subtract(&rx, &ry)),
                    modulo(&difference, &n)
                );
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 13 * 15 * 15);
}

fn square_of<R: Ring>(ring: &R, x: &Residue) -> Residue {
    let mut out = x.clone();
    ring.square_assign(&mut out, &mut ring.workspace());
    out
}

fn value_modulo_square(ring: &SquareModulus, n: &Natural, x: &Residue) -> Natural {
    let digits = ring.base_n(x);
    assert!(digits.low < *n && digits.high < *n);
    &digits.low + &(&digits.high * n)
}

#[test]
fn products_and_squares_modulo_n_squared_equal_the_backend() {
    let mut checked = 0;
    for n in moduli() {
        let ring = SquareModulus::new(&n).unwrap();
        let square = &n * &n;
        for x in values(&n, 4) {
            let rx = ring.residue(&x);
            assert_eq!(value_modulo_square(&ring, &n, &rx), modulo(&x, &square));
            let squared = value_modulo_square(&ring, &n, &square_of(&ring, &rx));
            assert_eq!(squared, modulo(&(&x * &x), &square));
            for y in values(&n, 5) {
                let product = ring.multiply(&rx, &ring.residue(&y));
                let expected = modulo(&(&x * &y), &square);
                assert_eq!(value_modulo_square(&ring, &n, &product), expected);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 13 * 15 * 15);
}

#[test]
fn carrying_a_plaintext_is_the_product_with_one_plus_multiple() {
    for n in moduli() {
        let ring = SquareModulus::new(&n).unwrap();
        let square = &n * &n;
        for (x, m) in values(&n, 6).into_iter().zip(values(&n, 7)) {
            let m = modulo(&m, &n);
            let mut carried = ring.residue(&x);
            ring.multiply_by_one_plus_multiple(&mut carried, &m);
            let factor = &Natural::one() + &(&m * &n);
            let expected = modulo(&(&x * &factor), &square);
            assert_eq!(value_modulo_square(&ring, &n, &carried), expected);
        }
    }
}

#[test]
fn inverses_modulo_n_squared_are_inverses_or_refused() {
    for n in moduli() {
        let ring = SquareModulus::new(&n).unwrap();
        for x in values(&n, 8) {
            let residue = ring.residue(&x);
            let unit = modulo(&x, &n).gcd_vartime(&n) == Natural::one();
            match ring.invert_vartime(&residue) {
                Some(inverse) => assert!(unit && ring.multiply(&residue, &inverse) == *ring.one()),
                None => assert!(!unit),
            }
        }
    }
}

#[test]
fn all_kinds_of_powers_equal_the_backend() {
    let mut rng = Randomness::seeded(9).fork("powers", 0).unwrap();
    for n in moduli() {
        let ring = SquareModulus::new(&n).unwrap();
        let square = &n * &n;
        let base = Natural::random_below(&square, &mut rng).unwrap();
        let residue = ring.residue(&base);
        for bits in [0, 1, 7, 30, 64, 300] {
            let exponent = Natural::random_bits(bits, &mut rng);
            let expected = base.power_by_backend(&exponent, &square).unwrap();
            let limbs = exponent.limbs();
            let comb = Comb::new(&ring, &residue, bits as usize);
            for power in [
                ring.power(&residue, limbs, bits as usize),
                ring.power(&residue, limbs, bits as usize + 70),
                ring.power_vartime(&residue, limbs),
                comb.power(&ring, &exponent),
            ] {
                assert_eq!(value_modulo_square(&ring, &n, &power), expected);
            }
        }
    }
}

#[test]
fn products_of_powers_equal_one_by_one() {
    let mut rng = Randomness::seeded(10).fork("multi", 0).unwrap();
    let n = &Natural::power_of_two(127) + &Natural::from(1234567u64);
    let ring = SquareModulus::new(&n).unwrap();
    for count in [0usize, 1, 2, 70, 500] {
        let bases: Vec<Residue> = (0..count)
            .map(|_| ring.residue(&Natural::random_bits(256, &mut rng)))
            .collect();
        let exponents: Vec<Natural> = (0..count)
            .map(|i| match i % 4 {
                0 => Natural::zero(),
                1 => Natural::one(),
                _ => Natural::random_bits(64, &mut rng),
            })
            .collect();
        let terms: Vec<Term<'_>> = bases
            .iter()
            .zip(&exponents)
            .map(|(b, e)| (b, e.limbs()))
            .collect();
        let mut expected = ring.one().clone();
        for (base, exponent) in &terms {
            expected = ring.multiply(&expected, &ring.power(base, exponent, 64));
        }
        assert!(product_of_powers(&ring, &terms, 64) == expected);
        assert!(product_of_powers_vartime(&ring, &terms) == expected);
    }
}

#[test]
fn even_and_tiny_moduli_are_refused() {
    for n in ["0", "1", "2", "10000000000000000"] {
        assert!(Modulus::new(&natural(n)).is_none());
        assert!(SquareModulus::new(&natural(n)).is_none());
    }
}

#[test]
fn primes_have_the_length_and_residue_that_keys_need() {
    let mut rng = Randomness::seeded(11).fork("primes", 0).unwrap();
    for bits in [16, 64, 100, 256] {
        let prime = Natural::random_prime(bits, &mut rng).unwrap();
        assert!(prime.is_prime() && prime.limbs()[0] & 3 == 3);
        assert_eq!((&prime * &prime).bit_length(), 2 * bits as usize);
    }
    assert!(Natural::random_prime(15, &mut rng).is_none());
}

#[test]
fn numbers_hide_their_digits_in_debug_output() {
    assert_eq!(format!("{:?}", natural("deadbeef")), "Natural(32 bits)");
    assert_eq!(format!("{:?}", Integer::from(-5i64)), "Integer(3 bits)");
    assert_eq!(format!("{:x}", Integer::from(-0xabci64)), "-abc");
}

#[test]
fn hexadecimal_round_trips_and_refuses_the_rest() {
    for text in [
        "0",
        "1",
        "ffffffffffffffff",
        "10000000000000000",
        "123456789abcdef0123456789",
    ] {
        assert_eq!(format!("{:x}", natural(text)), text);
    }
    for bad in ["", "-1", "+1", "g", " 1", "0x1", "1_0", "é"] {
        assert!(Natural::from_hex(bad).is_none(), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn signed_arithmetic_equals_machine_arithmetic(x: i64, y: i64) {
        let (a, b) = (Integer::from(x), Integer::from(y));
        let (x, y) = (i128::from(x), i128::from(y));
        prop_assert_eq!((&a + &b).to_i128(), Some(x + y));
        prop_assert_eq!((&a - &b).to_i128(), Some(x - y));
        prop_assert_eq!((&a * &b).to_i128(), Some(x * y));
        prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        prop_assert_eq!(a.to_f64(), x as f64);
    }

    #[test]
    fn natural_arithmetic_equals_machine_arithmetic(x: u64, y: u64, shift in 0usize..130) {
        let (a, b) = (Natural::from(x), Natural::from(y));
        prop_assert_eq!((&a * &b).to_u128(), Some(u128::from(x) * u128::from(y)));
        prop_assert_eq!((&a + &b).to_u128(), Some(u128::from(x) + u128::from(y)));
        prop_assert_eq!(a.checked_sub(&b).and_then(|d| d.to_u64()), x.checked_sub(y));
        prop_assert_eq!(&(&a << shift) >> shift, a.clone());
        prop_assert_eq!((&(&a * &b) >> shift).to_u128(),
            Some((u128::from(x) * u128::from(y)).checked_shr(shift as u32).unwrap_or(0)));
        let bytes = (&a * &b).to_be_bytes(16).unwrap();
        prop_assert_eq!(Natural::from_be_bytes(&bytes), &a * &b);
    }
}
