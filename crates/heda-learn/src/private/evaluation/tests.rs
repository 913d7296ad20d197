use super::*;
use heda_dp::gaussian::{Variance, sample};
use rand_core::{Rng, SeedableRng};

fn rng(seed: u8) -> chacha20::ChaCha20Rng {
    chacha20::ChaCha20Rng::from_seed([seed; 32])
}

fn right(estimate: f64, deviation: f64, rows: u64) -> RightRows {
    RightRows {
        estimate,
        deviation,
        rows,
    }
}

/// Without noise it is Clopper and Pearson's interval; bounds found by halving, from its definition.
#[test]
fn intervals_without_noise_are_those_of_clopper_and_pearson() {
    for (found, rows, low, high) in [
        (8.0, 10, 0.443_904_5, 0.974_789_3),
        (0.0, 20, 0.0, 0.168_433_5),
        (135.0, 138, 0.937_784_56, 0.995_494_23),
        (500.0, 1000, 0.468_548_3, 0.531_451_7),
    ] {
        let [found_low, found_high] = right(found, 0.0, rows).interval().unwrap();
        assert!((found_low - low).abs() < 1e-6, "{found_low} {low}");
        assert!((found_high - high).abs() < 1e-6, "{found_high} {high}");
    }
    assert_eq!(right(0.0, 3.0, 0).interval(), None);
}

/// By its definition: at the bounds the number that was found is at the edge of what is likely.
#[test]
fn at_its_bounds_a_number_is_as_unlikely_as_is_said() {
    for (found, deviation, rows) in [(61.3, 4.9, 100), (9.2, 0.4, 12), (5200.0, 30.0, 10_000)] {
        let [low, high] = right(found, deviation, rows).interval().unwrap();
        let or_more = |share| by_definition(&right(found, deviation, rows), share);
        assert!((or_more(low) - 0.025).abs() < 1e-8, "{}", or_more(low));
        assert!((or_more(high) - 0.975).abs() < 1e-8, "{}", or_more(high));
    }
}

/// A sum over all numbers of rows, without leaving any out.
fn by_definition(found: &RightRows, share: f64) -> f64 {
    let binomial = Found::new(found);
    let chance = |k: u64| match found.deviation > 0.0 {
        true => tail((found.estimate - k as f64) / found.deviation),
        false => f64::from(u8::from(k as f64 >= found.estimate)),
    };
    let terms = (0..=found.rows).map(|k| binomial.probability(k, share) * chance(k));
    terms.sum()
}

/// Also where a part of a row is found, where the noise is larger than what is found, and for shares
/// so near to 0 and 1 that the mean is no whole row away from the end.
#[test]
fn the_probability_of_so_much_or_more_is_that_of_its_definition() {
    for (estimate, deviation, rows) in [
        (0.6, 1.0, 10),
        (0.1, 0.05, 3),
        (-4.0, 2.0, 30),
        (7.0, 0.0, 9),
        (1.0, 0.0, 1),
        (2_990.4, 12.0, 3_000),
    ] {
        let found = right(estimate, deviation, rows);
        for share in [1e-9, 0.001, 0.2, 0.5, 0.8, 0.9967, 1.0 - 1e-9] {
            let (sum, exact) = (
                Found::new(&found).or_more(share),
                by_definition(&found, share),
            );
            assert!(
                (sum - exact).abs() < 1e-11,
                "{found:?} {share}: {sum} {exact}"
            );
        }
    }
}

/// One row that is right is found with the probability that rows are right: the bound itself belongs
/// to the interval, and nothing above it.
#[test]
fn a_bound_is_the_last_share_that_is_unlikely_enough() {
    let one = Found::new(&right(1.0, 0.0, 1));
    assert_eq!(one.share_with(0.5), 0.5);
    for wanted in [0.025, 0.1, 0.7] {
        let share = one.share_with(wanted);
        assert!(share <= wanted && wanted - share < 1e-9, "{share}");
    }
    let none = Found::new(&right(0.0, 0.0, 20));
    assert_eq!(none.share_with(0.025), 0.0);
}

/// Numbers that no rows have give intervals too, and not empty ones.
#[test]
fn numbers_beyond_all_rows_have_intervals() {
    let [low, high] = right(170.0, 5.0, 138).interval().unwrap();
    let [all, _] = right(138.0, 5.0, 138).interval().unwrap();
    assert_eq!((low, high), (all, 1.0));
    assert!(low > 0.9 && low < 1.0, "{low}");
    let [low, high] = right(-20.0, 5.0, 138).interval().unwrap();
    assert!(low == 0.0 && high > 0.0 && high < 0.1, "{high}");
    assert_eq!(right(170.0, 5.0, 138).accuracy(), Some(1.0));
    assert_eq!(right(-1.0, 5.0, 138).accuracy(), Some(0.0));
}

/// Rows and noise drawn many times, where rows are few and where they are many.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut rng = rng(3);
    for (truth, rows, units) in [(0.6, 100, 2400u64), (0.97, 138, 1200), (0.999, 100, 60)] {
        let deviation = units as f64 / f64::from(ROW_UNITS);
        let variance = Variance::new(units * units).unwrap();
        let runs = 2000;
        let held = (0..runs).filter(|_| {
            let share = || f64::from(rng.next_u32()) / f64::from(u32::MAX) < truth;
            let exact = std::iter::repeat_with(share)
                .take(rows)
                .filter(|r| *r)
                .count();
            let noise = sample(variance, &mut rng) as f64 / f64::from(ROW_UNITS);
            let found = right(exact as f64 + noise, deviation, rows as u64);
            let [low, high] = found.interval().unwrap();
            low <= truth && truth <= high
        });
        // Three deviations of 2,000 draws are 1.5 points.
        let share = held.count() as f64 / f64::from(runs);
        assert!(share > 0.935, "{truth} {rows}: {share}");
    }
}

/// With noise in counts the whole width is what the issue of a first private job asks for.
#[test]
fn an_interval_of_138_rows_at_epsilon_one_is_narrower_than_16_points() {
    // Three providers of which one may collude: 1.5 times the variance that the promise needs.
    let whole = 3.73 * 1.5f64.sqrt();
    let by_table = right_in_table(4, whole * (2.0 / (1.0 - RIGHT_SHARE)).sqrt());
    let deviation = both(whole / RIGHT_SHARE.sqrt(), by_table);
    assert!((deviation - whole / 0.9f64.sqrt()).abs() < 0.01);
    let half = |share: f64| right(138.0 * share, deviation, 138).half_width().unwrap();
    assert!(2.0 * half(0.9638) < 0.16, "{}", half(0.9638));
    let many = right(1380.0 * 0.9638, deviation, 1380)
        .half_width()
        .unwrap();
    assert!(many < 0.05, "{many}");
}

/// Drawn many times, what both answers say together is right in the mean, and off by what is said.
#[test]
fn combined_answers_have_no_bias_and_less_noise_than_either() {
    let mut rng = rng(5);
    // A good model: most of the wrong cells are empty, where a projection would be biased.
    let truth = [70.0, 1.0, 2.0, 65.0];
    let [one, each] = [Variance::new(1600).unwrap(), Variance::new(6400).unwrap()];
    let runs = 4000;
    let (mut sum, mut squares, mut cells) = (0.0, 0.0, [0.0; 4]);
    for _ in 0..runs {
        let mut draw = |variance| sample(variance, &mut rng) as f64 / 10.0;
        let alone = right(135.0 + draw(one), 4.0, 138);
        let table = NoisyTable {
            counts: truth.iter().map(|count| count + draw(each)).collect(),
            deviation: 8.0,
        };
        let (found, fitted) = combine(Some(alone), Some(&table), 138).unwrap();
        assert!((found.deviation - both(4.0, 8.0)).abs() < 1e-12);
        sum += found.estimate - 135.0;
        squares += (found.estimate - 135.0).powi(2);
        let counts = fitted.unwrap().counts;
        assert!((counts.iter().sum::<f64>() - 138.0).abs() < 1e-9);
        assert!((counts[0] + counts[3] - found.estimate).abs() < 1e-9);
        for (cell, (count, truth)) in cells.iter_mut().zip(counts.iter().zip(truth)) {
            *cell += (count - truth) / f64::from(runs);
        }
    }
    let bias = sum / f64::from(runs);
    assert!(bias.abs() < 0.2, "{bias}");
    let spread = (squares / f64::from(runs)).sqrt();
    assert!((spread / both(4.0, 8.0) - 1.0).abs() < 0.05, "{spread}");
    assert!(cells.iter().all(|bias| bias.abs() < 0.4), "{cells:?}");
}

#[test]
fn one_answer_of_two_is_enough() {
    let alone = right(130.0, 4.0, 138);
    assert_eq!(combine(Some(alone), None, 138), Some((alone, None)));
    let table = NoisyTable {
        counts: vec![62.0, 10.0, 6.0, 64.0],
        deviation: 8.0,
    };
    let (found, fitted) = combine(None, Some(&table), 138).unwrap();
    // Four rows too many are taken off alike.
    assert_eq!((found.estimate, found.deviation), (124.0, 8.0));
    assert_eq!(fitted.unwrap().counts, [61.0, 9.0, 5.0, 63.0]);
    assert_eq!(combine(None, None, 138), None);
    let wide = NoisyTable {
        counts: vec![0.0; 8],
        deviation: 1.0,
    };
    let right: Vec<bool> = (0..8).map(|place| wide.is_right(place)).collect();
    let expected = [true, true, false, false, false, false, true, true];
    assert_eq!(right, expected);
}

/// Several models: the bound holds where models err on the same rows and where they do not, and the
/// confident one in nearly all draws.
#[test]
fn the_highest_score_is_right_at_least_as_often_as_is_said() {
    let mut rng = rng(8);
    let (rows, runs) = (400, 1000);
    for together in [true, false] {
        let (mut held, mut estimated) = (0, 0.0);
        let mut truth = 0.0;
        for _ in 0..runs {
            let mut wrong = [0.0; 3];
            for _ in 0..rows {
                let mut chance = || f64::from(rng.next_u32()) / f64::from(u32::MAX) < 0.05;
                let all = chance();
                for wrong in &mut wrong {
                    *wrong += f64::from(u8::from(if together { all } else { chance() }));
                }
            }
            truth = 1.0 - 3.0 * 0.05;
            let variance = Variance::new(3600).unwrap();
            let models = wrong.map(|wrong| {
                let noise = sample(variance, &mut rng) as f64 / 10.0;
                right(f64::from(rows) - wrong + noise, 6.0, rows as u64)
            });
            let overall = Overall::of(&models).unwrap();
            assert!(overall.confident <= overall.at_least);
            estimated += overall.at_least / f64::from(runs);
            held += u32::from(overall.confident <= truth);
        }
        assert!((estimated - truth).abs() < 0.005, "{estimated} {truth}");
        assert!(held * 100 >= 94 * runs as u32, "{together} {held}");
    }
    assert_eq!(Overall::of(&[]), None);
    let poor = Overall::of(&[right(40.0, 3.0, 100), right(50.0, 3.0, 100)]).unwrap();
    assert_eq!((poor.at_least, poor.confident), (0.0, 0.0));
}

#[test]
fn logarithms_of_factorials_have_their_digits() {
    let exact: f64 = (2..=100u32).map(|k| f64::from(k).ln()).sum();
    assert!((ln_factorial(100) / exact - 1.0).abs() < 1e-14);
    let before = ln_factorial(31) + 32f64.ln();
    assert!((ln_factorial(32) - before).abs() < 1e-12);
    assert_eq!(ln_factorial(0), 0.0);
}

/// Of several models: the mean of their right predictions, its noise, and the bound that both together give.
#[test]
fn several_models_are_right_together_as_their_mean_says() {
    let models = [
        right(96.0, 3.0, 100),
        right(90.0, 4.0, 100),
        right(99.0, 12.0, 100),
    ];
    let found = Overall::of(&models).unwrap();
    // 4 + 10 + 1 of 100 rows may be wrong; the noise of the mean is 13/3.
    assert!((found.at_least - 0.85).abs() < 1e-12, "{}", found.at_least);
    let mean = right(95.0, 13.0 / 3.0, 100);
    let expected = 1.0 - 3.0 * (1.0 - mean.at_least(0.05).unwrap());
    assert!(
        (found.confident - expected).abs() < 1e-9,
        "{}",
        found.confident
    );
    assert_eq!(Overall::of(&[]), None);
    let [low, high] = models[1].interval().unwrap();
    assert!((models[1].half_width().unwrap() - (high - low) / 2.0).abs() < 1e-12);
    assert_eq!(right(3.0, 1.0, 0).accuracy(), None);
}
