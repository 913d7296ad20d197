use super::*;
use heda_crypto::random::Randomness;
use proptest::prelude::*;
use std::sync::LazyLock;

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| {
    let mut rng = Randomness::seeded(1).fork("packing", 0).unwrap();
    PrivateKey::generate_insecure_for_tests(256, &mut rng).unwrap()
});

fn integers(values: &[i64]) -> Vec<Integer> {
    values.iter().map(|&v| Integer::from(v)).collect()
}

fn encrypted(values: &[i64], bound: u64) -> PackedCiphertext {
    let layout = SlotLayout::new(KEY.public(), values.len(), 254 / values.len()).unwrap();
    let packed = layout
        .pack(&integers(values), Natural::from(bound))
        .unwrap();
    assert_eq!(packed.unpack().unwrap(), integers(values));
    let mut rng = Randomness::seeded(2).fork("packing", 0).unwrap();
    packed.encrypt(KEY.public(), &mut rng).unwrap()
}

fn slot() -> impl Strategy<Value = i64> {
    let max = i64::from(i32::MAX);
    prop_oneof![
        Just(0),
        Just(1),
        Just(-1),
        Just(max),
        Just(-max),
        -max..=max
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn slots_do_not_touch_each_other(
        x in prop::collection::vec(slot(), 3),
        y in prop::collection::vec(slot(), 3),
        w in -7i64..8,
    ) {
        let public = KEY.public();
        let (cx, cy) = (encrypted(&x, 1 << 31), encrypted(&y, 1 << 31));
        let clear = |f: &dyn Fn(i64, i64) -> i64| -> Vec<Integer> {
            x.iter().zip(&y).map(|(&x, &y)| Integer::from(f(x, y))).collect()
        };
        let sum = cx.add(public, &cy).unwrap();
        prop_assert_eq!(sum.decrypt(&KEY).unwrap(), clear(&|x, y| x + y));
        let weight = Integer::from(w);
        let scaled = cx.scale(public, &weight, 3).unwrap();
        prop_assert_eq!(scaled.decrypt(&KEY).unwrap(), clear(&|x, _| w * x));
        let minus = Integer::from(-1i64);
        let terms = [(&cx, &weight), (&cy, &minus)];
        let mix = PackedCiphertext::linear_combination(public, &terms, 3).unwrap();
        prop_assert_eq!(mix.decrypt(&KEY).unwrap(), clear(&|x, y| w * x - y));
        let layout = cx.layout();
        let known = layout.pack(&integers(&y), Natural::from(1u64 << 31)).unwrap();
        let moved = cx.add_plaintext(public, &known).unwrap();
        prop_assert_eq!(moved.decrypt(&KEY).unwrap(), clear(&|x, y| x + y));
    }
}

#[test]
fn extremes_of_full_slots_come_back() {
    let layout = SlotLayout::new(KEY.public(), 127, 2).unwrap();
    for value in [1i64, -1] {
        let values = integers(&[value; 127]);
        let packed = layout.pack(&values, Natural::one()).unwrap();
        let mut rng = Randomness::seeded(3).fork("packing", 0).unwrap();
        let back = packed.encrypt_as_owner(&KEY, &mut rng).unwrap();
        let fresh = back.rerandomise(KEY.public(), &mut rng).unwrap();
        assert_eq!(fresh.decrypt(&KEY).unwrap(), values);
    }
}

#[test]
fn what_could_overflow_is_refused_before_it_happens() {
    let public = KEY.public();
    let layout = SlotLayout::new(public, 3, 10).unwrap();
    let bound = Natural::from(300u64);
    let packed = layout.pack(&integers(&[1, 2, 3]), bound.clone()).unwrap();
    let mut rng = Randomness::seeded(4).fork("packing", 0).unwrap();
    let c = packed.encrypt(public, &mut rng).unwrap();
    assert_eq!(c.headroom_bits(), 0);
    let (needed, slot_bits) = (11, 10);
    let overflow = PackingError::Overflow { needed, slot_bits };
    assert_eq!(c.add(public, &c).unwrap_err(), overflow);
    assert_eq!(c.add_plaintext(public, &packed).unwrap_err(), overflow);
    let one = Integer::from(1i64);
    assert_eq!(c.scale(public, &one, 1).unwrap_err(), overflow);
    let terms = [(&c, &one)];
    let combined = PackedCiphertext::linear_combination(public, &terms, 1);
    assert_eq!(combined.unwrap_err(), overflow);
    let wide = Natural::from(512u64);
    assert_eq!(layout.pack(&integers(&[0; 3]), wide).unwrap_err(), overflow);
    let beyond = layout.pack(&integers(&[0, -301, 0]), bound.clone());
    assert_eq!(beyond.unwrap_err(), PackingError::BeyondBound { slot: 1 });
    let few = layout.pack(&integers(&[0; 2]), bound);
    assert_eq!(
        few.unwrap_err(),
        PackingError::Count {
            expected: 3,
            found: 2
        }
    );
    let other = encrypted(&[1, 2], 5);
    assert_eq!(
        c.add(public, &other).unwrap_err(),
        PackingError::MixedLayouts
    );
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let public = KEY.public();
    assert!(matches!(
        SlotLayout::new(public, 0, 8),
        Err(PackingError::Empty { .. })
    ));
    assert!(matches!(
        SlotLayout::new(public, 8, 1),
        Err(PackingError::Empty { .. })
    ));
    assert!(matches!(
        SlotLayout::new(public, 128, 2),
        Err(PackingError::TooWide { .. })
    ));
    assert!(matches!(
        SlotLayout::new(public, usize::MAX, 4),
        Err(PackingError::TooWide { .. })
    ));
    assert_eq!(SlotLayout::capacity(public, 50), 5);
}

#[test]
fn a_sender_who_breaks_the_bound_is_found_out() {
    let layout = SlotLayout::new(KEY.public(), 2, 20).unwrap();
    let mut rng = Randomness::seeded(5).fork("packing", 0).unwrap();
    for row in [2000i128, -2000, 1 << 70, -(1 << 70)] {
        let plaintext = KEY.public().plaintext(row).unwrap();
        let c = KEY.encrypt(&plaintext, &mut rng).unwrap();
        let packed = PackedCiphertext::from_parts(c, layout, Natural::from(1000u64)).unwrap();
        assert_eq!(packed.decrypt(&KEY), Err(PackingError::BrokenBound));
    }
}
