//! Whole jobs: beside the oracle on integers, and the evaluation beside the clear model.

use super::tag;
use crate::description::Protected;
use crate::engine::gradient_bytes;
use crate::engine::testing::{
    FEATURES, SEED, counted_in_clear, dataset, nearest, run, schema, settings, spec, with,
};
use crate::guard::{LocalGuard, MemoryLedger};
use crate::job::{JobSpec, Quiet};
use crate::local::{self, LocalProvider};
use crate::proposal::{Privacy, Spending};
use crate::rows::{RowOrder, RowSeed, domain, release_from_bytes, release_to_bytes, to_publish};
use heda_crypto::random::Randomness;
use heda_dp::account::{Accountant, Charge, ColumnCharge, Mechanism, Spend};
use heda_dp::gdp::{Cost, Delta};
use heda_dp::{budget, laplace};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::{Dataset, Feature};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Optimiser};
use heda_learn::private::{PrivateEncoding, PrivateSource};
use heda_learn::resident::{Encoding, GridRows, Position, ResidentSource, Resolution, RowCoins};
use rand_core::Rng;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A provider's training rows as the engine uses them: published columns with the noise that the
/// provider's generator draws.
fn rows_of(spec: &JobSpec, name: &str, data: &Dataset, published: &[usize]) -> GridRows {
    let randomness = Randomness::seeded(SEED).party(name);
    let seed = RowSeed::fresh(&randomness).unwrap();
    let order = RowOrder::draw(data.rows(), spec.job.held_out(), &seed);
    let bits = spec.job.resolution().value_bits();
    let mut grid = nearest(order.cut(data).0.values(), bits);
    let width = data.width();
    if !published.is_empty() {
        let open: Vec<&Feature> = published.iter().map(|&f| &data.features()[f]).collect();
        let specs: Vec<_> = open.iter().map(|f| domain(f, bits)).collect();
        let values: Vec<_> = open
            .iter()
            .map(|f| to_publish(&grid, width, &f.columns))
            .collect();
        let parts = budget::split_equally("8".parse().unwrap(), open.len()).unwrap();
        let columns = open.iter().zip(parts).map(|(f, epsilon)| ColumnCharge {
            name: f.name.clone(),
            epsilon,
        });
        let charge = Charge::new(Mechanism::Laplace, columns.collect()).unwrap();
        let receipt = Accountant::new("8".parse().unwrap()).spend(charge).unwrap();
        let mut rng = randomness.fork("release noise", 0).unwrap();
        let released = laplace::prepare(&specs, &values)
            .unwrap()
            .release(receipt, &mut rng)
            .unwrap();
        let noisy = release_from_bytes(
            &release_to_bytes(released.columns()),
            &open,
            order.training.len(),
            bits,
        )
        .unwrap();
        let columns: Vec<usize> = open.iter().flat_map(|f| f.columns.clone()).collect();
        for (row, cells) in grid.chunks_exact_mut(width).enumerate() {
            for (at, &j) in columns.iter().enumerate() {
                cells[j] = noisy[row * columns.len() + at];
            }
        }
    }
    let labels = order
        .training
        .iter()
        .map(|&row| data.labels()[row] == 1)
        .collect();
    let encoding = Encoding::of_features(data.features(), bits).unwrap();
    let values = grid.into_iter().map(|x| x as i32).collect();
    GridRows::plain(&encoding, values, labels).unwrap()
}

/// The oracle on the rows of the job, published columns with their noise; finer than the engine, with
/// coins of its own.
fn oracle_beta(spec: &JobSpec, parts: &[Dataset], published: &[usize]) -> Vec<f64> {
    let rows = parts.iter().enumerate().map(|(index, data)| {
        let name = format!("provider-{}", index + 1);
        rows_of(spec, &name, data, published)
    });
    let mut rng = Randomness::seeded(5).fork("coins", 0).unwrap();
    let coins = move |_: Position| RowCoins {
        mask: rng.next_u32(),
        coin: rng.next_u32(),
    };
    let fine = Resolution::new(10, 4, 8, 12, 4).unwrap();
    let encoding = Encoding::of_features(parts[0].features(), 10).unwrap();
    let mut source =
        ResidentSource::new(fine, encoding, spec.job.loss(), rows.collect(), coins).unwrap();
    let mut optimiser = Optimiser::new(settings(spec).clone(), parts[0].width() + 1).unwrap();
    let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
    run.unwrap();
    optimiser.beta().to_vec()
}

/// Every loss, published columns and none, one provider and several, batches. That single gradients
/// equal the oracle's bit for bit is tested where both have the same coins.
#[test]
fn five_steps_end_near_those_of_the_oracle() {
    let cases = [
        (LossKind::Logistic, 0.05),
        (LossKind::SquaredHinge, 0.4),
        (LossKind::Ridge, 0.4),
    ];
    for (loss, within) in cases {
        for iota in [0, 2, FEATURES] {
            for (sizes, batches) in [(vec![60], 1), (vec![45, 60, 51], 3)] {
                let sizes = sizes.iter().enumerate();
                let parts: Vec<Dataset> = sizes.map(|(i, &rows)| dataset(rows, i as u64)).collect();
                let spec = spec(loss, iota, batches);
                let got = run(&spec, &parts);
                let mut published = got.outcome.split.published.clone();
                published.sort_unstable();
                assert_eq!(published.len(), FEATURES - iota);
                let expected = oracle_beta(&spec, &parts, &published);
                let found = &got.outcome.fits[0].beta;
                for (found, expected) in found.iter().zip(&expected) {
                    let apart = (found - expected).abs();
                    assert!(
                        apart < within,
                        "{loss} {iota} {batches}: {found} {expected}"
                    );
                }
                assert_ne!(found, &vec![0.0; 7]);
            }
        }
    }
}

#[test]
fn a_guard_whose_rows_are_not_public_refuses_automatic_epsilon_and_the_error_names_it() {
    let data = Arc::new(dataset(30, 1));
    let seed = [1; 32].into();
    let guard = LocalGuard::new(data, schema(), seed, Accountant::new("1".parse().unwrap()));
    let providers = [LocalProvider {
        name: "clinic".into(),
        guard: Box::new(guard),
    }];
    let spec = with(&spec(LossKind::Logistic, 2, 1), |raw| {
        raw.spending = Some(Spending::Automatic);
    });
    let randomness = Randomness::seeded(1);
    let failed = local::run(&spec, &providers, &randomness, &mut Quiet, None, false);
    let message = failed.unwrap_err().to_string();
    assert!(
        message.starts_with("provider clinic: the peer stopped: refused"),
        "{message}"
    );
}

/// With few rows it would have six bits. Both sides decide before they know how many there are.
#[test]
fn a_loss_of_both_signs_that_could_be_cut_into_one_bit_is_refused() {
    let refused = with(&spec(LossKind::Ridge, FEATURES, 1), |raw| {
        raw.training.resolution = Resolution::for_columns(FEATURES);
    });
    let randomness = Randomness::seeded(1);
    let providers = super::super::testing::local_providers_for(&[dataset(30, 1)], &randomness);
    let failed = local::run(&refused, &providers, &randomness, &mut Quiet, None, false);
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("one bit"), "{message}");
    run(&spec(LossKind::Ridge, FEATURES, 1), &[dataset(30, 1)]);
}

#[test]
fn two_round_trips_an_iteration_and_one_before_the_first() {
    let spec = spec(LossKind::Logistic, FEATURES, 1);
    let got = run(&spec, &[dataset(30, 1), dataset(30, 2)]);
    for provider in &got.outcome.providers {
        assert_eq!(provider.traffic["train"].round_trips, 2 * 5 + 1);
    }
}

#[test]
fn the_histogram_counts_the_held_out_rows_as_the_clear_model_does() {
    let parts = [dataset(200, 8), dataset(150, 9)];
    for iota in [1, FEATURES] {
        let spec = with(&spec(LossKind::Logistic, iota, 1), |raw| {
            raw.training.settings.max_iterations = 8;
        });
        let got = run(&spec, &parts);
        let fit = &got.outcome.fits[0];
        let expected = counted_in_clear(&parts, &fit.beta);
        let confusion = fit.histogram.as_ref().unwrap().confusion();
        assert_eq!(
            [confusion.true_negatives, confusion.false_positives],
            expected[0]
        );
        assert_eq!(
            [confusion.false_negatives, confusion.true_positives],
            expected[1]
        );
        assert_eq!(confusion.rows(), 70);
    }
}

/// A model that converges at once asks for as many gradients as one that does not.
#[test]
fn providers_cannot_see_when_the_training_converged() {
    let trips = [1e3, 0.0].map(|tolerance| {
        let spec = with(&spec(LossKind::Logistic, FEATURES, 2), |raw| {
            raw.training.settings.tolerance = tolerance;
        });
        let got = run(&spec, &[dataset(60, 1)]);
        let used = got.outcome.fits[0].iterations;
        (used, got.outcome.providers[0].traffic["train"])
    });
    assert!(trips[0].0 < trips[1].0, "one of them converged");
    assert_eq!(trips[0].1.round_trips, trips[1].1.round_trips);
    assert_eq!(trips[0].1.bytes_sent, trips[1].1.bytes_sent);
    assert_eq!(trips[0].1.bytes_received, trips[1].1.bytes_received);
}

/// Before the first gradient nothing is sent whose length depends on rows, and little else.
#[test]
fn setup_sends_no_rows() {
    let spec = spec(LossKind::Logistic, FEATURES, 1);
    let [small, large] = [40, 400].map(|rows| {
        let got = run(&spec, &[dataset(rows, 1)]);
        got.outcome.providers[0].traffic["encrypt"]
    });
    assert_eq!(small.bytes_sent, large.bytes_sent);
    assert_eq!(small.bytes_received, large.bytes_received);
    assert!(small.bytes_sent + small.bytes_received < 2_000_000);
}

/// A private job of one provider and of three.
pub(super) fn private_spec(rows: u64, epsilon: &str) -> JobSpec {
    with(&spec(LossKind::Logistic, FEATURES, 1), |raw| {
        raw.held_out = 0.0;
        raw.protected = Protected::All;
        raw.spending = None;
        raw.privacy = Some(Privacy::new(
            epsilon.parse().unwrap(),
            Delta::new(1e-5).unwrap(),
            rows,
        ));
    })
}

fn noise_free_and_private(sizes: &[usize], epsilon: &str) -> (Vec<f64>, Vec<f64>) {
    let parts = sizes.iter().enumerate();
    let parts: Vec<Dataset> = parts.map(|(i, &rows)| dataset(rows, i as u64)).collect();
    let total = sizes.iter().sum::<usize>() as u64;
    let spec = private_spec(total, epsilon);
    let got = run(&spec, &parts).outcome.fits[0].beta.clone();
    // The oracle on the same rows without any noise, and with coins of its own.
    let privacy = spec.job.privacy().unwrap();
    let encoding = PrivateEncoding::new(&schema());
    let plan = privacy.plan(encoding.width()).unwrap();
    let rows: Vec<_> = parts.iter().map(|p| encoding.rows(p, 1).unwrap()).collect();
    let mut rng = Randomness::seeded(5).fork("coins", 0).unwrap();
    let coins = move |_: Position| RowCoins {
        mask: rng.next_u32(),
        coin: rng.next_u32(),
    };
    let silence = |_: u32, width: usize| vec![0i64; width];
    let mut source = PrivateSource::new(&plan, &rows, coins, silence);
    let mut optimiser = Optimiser::new(plan.settings(), encoding.width()).unwrap();
    let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
    run.unwrap();
    (encoding.coefficients(optimiser.beta()), got)
}

/// With much ε the private job ends where the oracle without noise does, with little it does not:
/// the noise is there, and nothing else is.
#[test]
fn a_private_job_is_the_oracle_and_noise() {
    let distance = |(a, b): (Vec<f64>, Vec<f64>)| -> f64 {
        let apart: f64 = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum();
        (apart / a.iter().map(|a| a.powi(2)).sum::<f64>()).sqrt()
    };
    for sizes in [&[1500][..], &[500, 400, 600]] {
        let (little, much) = (
            distance(noise_free_and_private(sizes, "0.05")),
            distance(noise_free_and_private(sizes, "100")),
        );
        assert!(much < 0.15, "{sizes:?}: {much}");
        assert!(
            little > 0.3 && little > 3.0 * much,
            "{sizes:?}: {little} {much}"
        );
    }
}

/// Every gradient is paid for before it is computed; when nothing is left the job ends.
#[test]
fn a_private_job_pays_for_every_gradient_or_is_refused_as_a_whole() {
    let spec = private_spec(300, "1");
    let privacy = spec.job.privacy().unwrap();
    let plan = privacy
        .plan(PrivateEncoding::new(&schema()).width())
        .unwrap();
    let serve = |gradients: u64| within(&spec, plan.cost_of_pass().times(gradients));
    let (whole, spent) = serve(u64::from(plan.gradients()));
    assert_eq!(whole, None);
    assert_eq!(spent, plan.cost());
    // What does not fit as a whole is refused before anything of it is paid.
    let (stopped, spent) = serve(u64::from(plan.gradients()) - 1);
    let words = stopped.unwrap();
    assert!(words.contains("privacy budget"), "{words}");
    assert_eq!(spent, Cost::ZERO);
}

/// Why a job fails with a provider that has so much left, if it does, and what it spent.
fn within(spec: &JobSpec, limit: Cost) -> (Option<String>, Cost) {
    let books = MemoryLedger::default();
    books.limit_private(limit);
    let seed = [1; 32].into();
    let guard = LocalGuard::new(Arc::new(dataset(300, 1)), schema(), seed, books.clone());
    let providers = [LocalProvider {
        name: "clinic".into(),
        guard: Box::new(guard),
    }];
    let randomness = Randomness::seeded(1);
    let run = local::run(spec, &providers, &randomness, &mut Quiet, None, false);
    (run.err().map(|e| e.to_string()), books.spent_private())
}

/// Moments are paid for before anything else, and the whole keeps to the promise.
#[test]
fn moments_are_bought_with_a_part_of_the_promise() {
    let plain = private_spec(300, "1");
    let privacy = plain.job.privacy().unwrap().suited(&schema());
    assert_eq!((privacy.moments, privacy.models.get()), (3, 1));
    let spec = with(&plain, |raw| raw.privacy = Some(privacy));
    let plan = privacy.plan(PrivateEncoding::new(&schema()).width());
    let plan = plan.unwrap();
    let part = plan.cost_of_moments().squared() / plan.cost().squared();
    assert!((part - 0.05).abs() < 1e-3, "{part}");
    assert_eq!(within(&spec, plan.cost()), (None, plan.cost()));
    let (ended, spent) = within(&spec, Cost::from_parts(plan.cost_of_moments().parts() - 1));
    assert!(ended.unwrap().contains("privacy budget"));
    assert_eq!(spent, Cost::ZERO);
    // Of other columns than have nothing stated nobody sells anything.
    let other = with(&spec, |raw| {
        raw.privacy = Some(Privacy {
            moments: 2,
            ..privacy
        });
    });
    let (ended, spent) = within(&other, plan.cost());
    assert!(ended.unwrap().contains("other columns"));
    assert_eq!(spent, Cost::ZERO);
}

/// Coefficients beyond the bound of scores are made smaller for the gradient, and the result says so.
#[test]
fn coefficients_beyond_the_bound_are_told() {
    let parts = [dataset(60, 1)];
    let shrunk = |bound_bits: u32| {
        let spec = with(&spec(LossKind::Logistic, FEATURES, 1), |raw| {
            raw.training.resolution = Resolution::new(10, 3, 8, 6, bound_bits).unwrap();
            raw.training.settings.method = Method::Descent {
                rate: 40.0,
                minimum_rate: 0.0,
                decay: 0.0,
                batches: 1,
            };
        });
        run(&spec, &parts).outcome.fits[0].shrunk
    };
    assert_eq!(shrunk(8), None);
    let told = shrunk(1).unwrap();
    // All but the first gradient, which is taken at nought.
    assert_eq!(told.gradients, 4);
    assert!(told.least < 0.9 && told.least > 0.0, "{told:?}");
}

/// What is told of traffic before a job is what travels, to the byte.
#[test]
fn the_bytes_of_a_gradient_are_those_that_travel() {
    let spec = with(&spec(LossKind::Logistic, FEATURES, 1), |raw| {
        raw.held_out = 0.0;
    });
    let (data, resolution) = (dataset(61, 1), spec.job.resolution());
    let got = run(&spec, std::slice::from_ref(&data));
    let heard = [&got.outcome.providers[0].view, &got.reports[0].view];
    let of_gradients = heard.into_iter().flatten();
    let of_gradients = of_gradients.filter(|m| (tag::PREPROCESS..=tag::SUM).contains(&m.tag));
    let bytes: usize = of_gradients.map(|message| message.body.len()).sum();
    let gradients = settings(&spec).max_iterations as usize;
    let told = gradient_bytes(data.features(), data.rows(), resolution).unwrap();
    assert_eq!(bytes, gradients * told);
}

#[test]
fn gradients_of_several_providers_are_told_as_sums_over_them() {
    let spec = spec(LossKind::Logistic, FEATURES, 1);
    for (providers, summed) in [(1, false), (2, true)] {
        let parts = vec![dataset(60, 1); providers];
        assert_eq!(run(&spec, &parts).outcome.revealed.summed, summed);
    }
}

/// What a row costs in a gradient, whatever the machine: bytes with one bit and with six.
#[test]
fn a_gradient_takes_no_more_bytes_than_the_documents_say() {
    let rows = 26_049 / 3;
    let each = |coding: Coding, resolution: Resolution| {
        let features = Bundle::Adult.schema(coding).features();
        gradient_bytes(&features, rows, resolution).unwrap() / rows
    };
    let one_bit = Resolution::new(10, 2, 6, 1, 4).unwrap();
    // (coding, resolution, what the documents say, the goal)
    for (coding, resolution, told, most) in [
        (Coding::Paper, one_bit, 139, 170),
        (Coding::Natural, one_bit, 536, 800),
        (Coding::Paper, Resolution::default(), 670, 1738),
        (Coding::Paper, Resolution::for_columns(14), 330, 1738),
    ] {
        let found = each(coding, resolution);
        // With three providers sums have a bit or two more than with one.
        let near = found <= told && found >= told - told / 20;
        assert!(near && found <= most, "{coding}: {found}");
    }
}
