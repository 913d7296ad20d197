//! What plans cost and how they step, and what bought moments are for.

use super::tests::{SMALL, delta, epsilon};
use super::*;
use crate::data::RowsError;
use crate::optimise::Method;
use crate::scaling::Centre;
use crate::schema::Schema;
use heda_dp::gaussian::Variance;
use heda_dp::gdp::{Cost, Delta};
use std::num::NonZeroU32;

#[test]
fn a_plan_never_costs_more_than_was_asked_for_and_hardly_less() {
    for text in ["0.01", "0.1", "1", "2", "10"] {
        for (rows, width) in [(50, 3), (559, 10), (26_000, 108), (1_000_000, 500)] {
            let delta = Delta::default_for(rows);
            let plan = PrivatePlan::new(rows, width, epsilon(text), delta).unwrap();
            let allowed = Cost::for_guarantee(epsilon(text), delta);
            assert!(plan.cost() <= allowed);
            assert!(plan.cost().squared() > 0.999 * allowed.squared());
            let spent = plan.cost().epsilon(delta).unwrap();
            assert!(spent <= epsilon(text), "{spent}");
            plan.settings().validate().unwrap();
        }
    }
}

/// Few rows go at the usual momentum; many meet the longest step and the most gradients, and momentum
/// makes up for what those leave of the time.
#[test]
fn momentum_rises_where_the_longest_step_does_not_reach() {
    let pace = |rows, width| {
        let plan = PrivatePlan::new(rows, width, epsilon("1"), delta()).unwrap();
        match plan.settings().method {
            Method::Averaged { rate, momentum, .. } => (plan.gradients(), rate, momentum),
            other => panic!("{other:?}"),
        }
    };
    let (gradients, rate, momentum) = pace(560, 10);
    assert_eq!(gradients, 18);
    assert!((rate * 18.0 - 142.4).abs() < 0.1, "{rate}");
    assert!((momentum - 0.7).abs() < 1e-12, "{momentum}");
    let (gradients, rate, momentum) = pace(26_049, 108);
    assert_eq!((gradients, rate), (64, 10.0));
    // 640 of 10k = 6719.
    assert!((momentum - 0.9047).abs() < 1e-4, "{momentum}");
    let (gradients, rate, momentum) = pace(90_000, 3);
    assert_eq!((gradients, rate, momentum), (64, 10.0, 0.95));
    assert_eq!(pace(10, 500).0, 8);
}

/// Where the signal is strong, few passes over batches do; persons, whose chains begin anew with each pass, keep
/// all rows in each step for longer.
#[test]
fn more_signal_takes_fewer_passes_over_more_batches() {
    let small = Delta::new(1e-7).unwrap();
    let shape = |rows, persons| {
        let extent = Extent {
            rows,
            width: 16,
            models: NonZeroU32::MIN,
            moments: 0,
            persons,
        };
        let plan = PrivatePlan::of(extent, epsilon("1"), small).unwrap();
        let passes = plan.passes();
        assert_eq!(plan.gradients(), passes.passes() * passes.batches());
        assert_eq!(plan.all_passes(), passes.passes());
        let cost = plan.cost_of_pass().times(passes.passes().into());
        assert_eq!(cost, plan.cost());
        if passes.passes() > 1 && passes.batches() > 1 {
            let (pass, chain) = (
                passes.batches(),
                passes.first_of_chain(passes.batches() + 1),
            );
            assert_eq!(chain == pass, persons, "{chain} of {pass}");
        }
        (passes.passes(), passes.batches())
    };
    // k = rows · μ / √16.
    let mu = Cost::for_guarantee(epsilon("1"), small).mu();
    let of = |k: u64, persons| shape((k as f64 * 4.0 / mu) as u64 + 1, persons);
    assert_eq!(of(299, false), (45, 1));
    assert_eq!(of(301, false), (4, 16));
    assert_eq!(of(2_499, false), (4, 16));
    assert_eq!(of(2_510, false), (2, 32));
    assert_eq!(of(10_050, false), (1, 64));
    assert_eq!(of(400, true), (52, 1));
    assert_eq!(of(605, true), (4, 16));
    assert_eq!(of(10_050, true), (1, 64));
}

/// The price of a pass is that of ‖a‖ in one sum.
#[test]
fn a_pass_costs_what_its_bands_move() {
    let small = Delta::new(1e-7).unwrap();
    let plan = PrivatePlan::new(100_000, 16, epsilon("1"), small).unwrap();
    let norm = plan.passes().norm_squared();
    assert_eq!(norm, 161);
    let noise = plan.variance().get() as f64 - 9.0;
    let expected = (SENSITIVITY_SQUARED * norm) as f64 / noise;
    let found = plan.cost_of_pass().squared();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
}

/// Whatever is bought, all of it together keeps to what was asked for; more models and moments leave less
/// for each gradient.
#[test]
fn models_and_moments_share_the_promise() {
    let extent = |models: u32, moments| Extent {
        rows: 2000,
        width: 20,
        models: NonZeroU32::new(models).unwrap(),
        moments,
        persons: false,
    };
    let allowed = Cost::for_guarantee(epsilon("1"), delta());
    let plain = PrivatePlan::of(extent(1, 0), epsilon("1"), delta()).unwrap();
    for (models, moments) in [(1, 7), (3, 0), (4, 19), (200, 1)] {
        let plan = PrivatePlan::of(extent(models, moments), epsilon("1"), delta()).unwrap();
        assert!(plan.cost() <= allowed && plan.cost().squared() > 0.99 * allowed.squared());
        let counts = plan.cost_of_counts().times(u64::from(models));
        assert!(counts <= plan.cost());
        assert!(counts.squared() > 0.999 * plan.cost().squared());
        let right = plan.cost_of_right().squared() / plan.cost_of_counts().squared();
        assert!((right - 0.8).abs() < 1e-3, "{right}");
        assert_eq!(plan.all_gradients(), models * plan.gradients());
        let part = plan.cost_of_moments().squared() / allowed.squared();
        let expected = if moments == 0 { 0.0 } else { 0.05 };
        assert!((part - expected).abs() < 1e-3, "{part}");
        let total =
            |plan: &PrivatePlan| plan.cost_of_pass().squared() * f64::from(plan.passes().passes());
        assert!(total(&plan) < total(&plain));
    }
}

/// Columns are numbered as they are encoded: levels in one-hot coding have several.
#[test]
fn bought_moments_go_to_the_columns_without_anything_typical() {
    // The one-hot column first, and bounds that do not begin at zero.
    let mut parts: Vec<&str> = SMALL.split("[[column]]").collect();
    parts[1..].rotate_right(1);
    let reordered = parts.join("[[column]]").replace("[0, 100]", "[10, 110]");
    let schema = Schema::parse(&reordered, "reordered.toml").unwrap();
    assert_eq!(unstated(&schema), [5, 6]);
    let bought = |mean, deviation| {
        let centre = Centre { mean, deviation };
        PrivateEncoding::with_moments(
            &schema,
            &[
                centre,
                Centre {
                    mean: 0.5,
                    deviation: 0.1,
                },
            ],
        )
    };
    let ends = |encoding: &PrivateEncoding| encoding.reach().ends().to_vec();
    let before = ends(&PrivateEncoding::new(&schema));
    // Three deviations on both sides of 40, between 10 and 110.
    assert!(before[4][0].abs() < 1e-9 && (before[4][1] - 0.6).abs() < 1e-9);
    let after = ends(&bought(0.25, 0.05).unwrap());
    assert_eq!(after[..5], before[..5]);
    let [from, to] = after[5];
    assert!(
        (from - 0.1).abs() < 1e-9 && (to - 0.4).abs() < 1e-9,
        "{from} {to}"
    );
    // What no rows can have, and not one for each.
    for (mean, deviation) in [
        (1.1, 0.1),
        (-0.1, 0.1),
        (0.5, 0.0),
        (0.5, 1.1),
        (f64::NAN, 0.1),
    ] {
        assert!(bought(mean, deviation).is_err(), "{mean} {deviation}");
    }
    for (mean, deviation) in [(0.0, 1.0), (1.0, 1e-3)] {
        assert!(bought(mean, deviation).is_ok(), "{mean} {deviation}");
    }
    let none = PrivateEncoding::with_moments(&schema, &[]);
    assert!(matches!(
        none,
        Err(RowsError::Moments {
            expected: 2,
            found: 0
        })
    ));
}

/// A plan that learns the number of persons later steps as one that was made for it.
#[test]
fn steps_follow_the_number_that_was_bought() {
    let of = |rows| {
        let extent = Extent {
            rows,
            width: 20,
            models: NonZeroU32::new(3).unwrap(),
            moments: 7,
            persons: false,
        };
        PrivatePlan::of(extent, epsilon("1"), delta()).unwrap()
    };
    let (few, many) = (of(2000), of(2010));
    assert_eq!(few.gradients(), many.gradients());
    assert_ne!(few.settings(), many.settings());
    assert_eq!(few.settings_for(2010.0), many.settings());
    assert_eq!(few.settings_for(2000.0), few.settings());
    assert!(few.moments_variance().is_some());
    // The last three tenths are averaged.
    let last = |plan: &PrivatePlan| match plan.settings().method {
        Method::Averaged { from, .. } => plan.gradients() - from,
        other => panic!("{other:?}"),
    };
    for plan in [few, of(100), of(3_000)] {
        assert_eq!(last(&plan), (3 * plan.gradients()).div_ceil(10));
    }
}

/// Coefficients of this length are not shrunk, and longer ones are shrunk to it.
#[test]
fn the_radius_is_the_length_at_which_coefficients_are_shrunk() {
    let (radius, unit) = (
        PrivatePlan::radius(),
        PrivatePlan::resolution().weight_unit(),
    );
    let length = |beta: f64| PrivatePlan::weights(&[beta, 0.0]).columns[0] as f64 * unit;
    let whole = length(0.99 * radius) / radius;
    assert!(
        (whole - 0.99).abs() * radius <= unit,
        "{whole} of {radius} in steps of {unit}"
    );
    for times in [1.02, 3.0] {
        let shrunk = length(times * radius) / radius;
        assert!((0.95..=1.0).contains(&shrunk), "{shrunk}");
    }
}

/// They are shrunk at once to a thousandth below the longest that is allowed, however long they were.
#[test]
fn coefficients_that_are_too_long_are_shrunk_by_what_they_exceed() {
    let resolution = PrivatePlan::resolution();
    let most = resolution.score_limit() as f64 / f64::from(SCORE_LENGTH);
    for whole in [340.0, 661.0, 10_000.0, 1e9] {
        let weights = PrivatePlan::weights(&[whole * resolution.weight_unit(), 0.0]);
        let expected = 0.999 * most / whole;
        assert!(
            (weights.shrunk / expected - 1.0).abs() < 1e-9,
            "{whole}: {} for {expected}",
            weights.shrunk
        );
        assert_eq!(weights.columns, [(0.999 * most).round() as i64, 0]);
    }
    let short = PrivatePlan::weights(&[most.floor() * resolution.weight_unit()]);
    assert_eq!(short.shrunk, 1.0);
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let plan = |rows, width, delta: f64| {
        PrivatePlan::new(rows, width, epsilon("1"), Delta::new(delta).unwrap())
    };
    assert_eq!(plan(0, 5, 1e-5), Err(PlanError::Empty));
    assert_eq!(plan(5, 0, 1e-5), Err(PlanError::Empty));
    assert!(matches!(plan(1_000, 5, 0.01), Err(PlanError::Delta(_))));
    let tiny = Delta::new(1e-300).unwrap();
    let silent = PrivatePlan::new(100, 5, epsilon("0.000000001"), tiny);
    assert!(matches!(silent, Err(PlanError::TooSmall(_))));
}

#[test]
fn the_shares_that_a_provider_counts_on_reach_the_noise() {
    let whole = Variance::new(1_000_003).unwrap();
    for providers in [1u32, 2, 3, 7] {
        for trusted in 0..providers {
            let share = share_of(whole, NonZeroU32::new(providers).unwrap(), trusted);
            assert!(share.get() * u64::from(trusted + 1) >= whole.get());
            assert!(share.get() * u64::from(trusted) < whole.get());
        }
    }
    let alone = share_of(whole, NonZeroU32::new(2).unwrap(), 9);
    assert_eq!(alone.get(), 500_002);
}
