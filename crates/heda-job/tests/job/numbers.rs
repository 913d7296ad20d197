//! Jobs on a numeric label: the model is that of ridge regression, errors on held-out rows are those of
//! its predictions, whatever the bounds and whoever holds the rows.

use super::{StopAfter, lbfgs, with};
use heda_crypto::random::Randomness;
use heda_job::description::{Protected, Ranking, RawJob, Share, Training};
use heda_job::error::JobError;
use heda_job::job::{Checkpoint, JobSpec, Observer, Outcome, Quiet};
use heda_job::local::{self, Parts};
use heda_job::proposal::JobId;
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::model::Errors;
use heda_learn::optimise::{PenaltyPath, Settings};
use heda_learn::oracle::{TrainConfig, score, train};
use heda_learn::schema::Schema;
use heda_learn::target;
use rand_core::Rng;
use std::sync::Arc;

/// Three numbers and a label, whose bounds are `times` as wide as its values need.
fn schema(times: f64, typical: &str) -> Arc<Schema> {
    let column = |name| {
        format!(
            "[[column]]\nname = \"{name}\"\nkind = \"numeric\"\nbounds = [0.0, 1.0]\n{typical}\n"
        )
    };
    let text = format!(
        "format = 1\nname = \"rows\"\n[label]\ncolumn = \"y\"\nkind = \"numeric\"\n\
         bounds = [0, {}]\n{typical}\n{}{}{}",
        100.0 * times,
        column("a"),
        column("b"),
        column("c"),
    );
    Arc::new(Schema::parse(&text, "rows.toml").unwrap())
}

/// 20 + 30·a − 10·b, and noise.
fn rows(count: usize, times: f64, seed: u64) -> Dataset {
    let mut rng = Randomness::seeded(seed).fork("rows", 0).unwrap();
    let mut draw = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let row = [draw(), draw(), draw()];
        let noise = 8.0 * (draw() + draw() + draw() - 1.5);
        let y = 30.0 + 30.0 * row[0] - 10.0 * row[1] + noise;
        labels.push(target::steps(y / 100.0 / times));
        values.extend(row);
    }
    Dataset::new(schema(times, "").features(), values, labels, Vec::new()).unwrap()
}

fn spec(schema: Arc<Schema>, iterations: u32) -> JobSpec {
    let raw = RawJob {
        training: Training {
            settings: lbfgs(iterations),
            ..Training::usual(&schema)
        },
        held_out: 0.25,
        ..RawJob::new("rows", &schema)
    };
    JobSpec::new(JobId([3; 16]), raw.try_into().unwrap(), schema)
}

fn run_with(
    spec: &JobSpec,
    parts: &Parts,
    observer: &mut dyn Observer,
    resume: Option<Checkpoint>,
) -> Result<Outcome, JobError> {
    let guards = parts.guards(&spec.schema, "1".parse().unwrap());
    let run = local::run(
        spec,
        &guards,
        &Randomness::seeded(5),
        observer,
        resume,
        false,
    );
    run.map(|run| run.outcome)
}

fn parts(sizes: &[usize], times: f64) -> Parts {
    let data = sizes.iter().zip(1..);
    let data = data.map(|(count, seed)| rows(*count, times, seed));
    Parts::new(data.collect(), &Randomness::seeded(5)).unwrap()
}

fn joined(parts: &[Dataset]) -> Dataset {
    let values = parts.iter().flat_map(|part| part.values().to_vec());
    let labels = parts.iter().flat_map(|part| part.labels().to_vec());
    let features = parts[0].features().to_vec();
    Dataset::new(features, values.collect(), labels.collect(), Vec::new()).unwrap()
}

/// In the units of the label.
fn errors(beta: &[f64], rows: &Dataset, times: f64) -> Errors {
    let labels = rows.labels().iter().enumerate();
    let pairs = labels.map(|(row, label)| {
        let range = 100.0 * times;
        (
            range * score(beta, rows.row(row)),
            range * target::place(*label),
        )
    });
    Errors::of(&pairs.collect::<Vec<_>>()).unwrap()
}

#[test]
fn the_model_is_ridge_regression_and_its_errors_are_added_up() {
    for (sizes, times) in [
        (vec![240], 1.0),
        (vec![200, 160, 240], 1.0),
        (vec![200, 220], 50.0),
    ] {
        let parts = parts(&sizes, times);
        let spec = spec(schema(times, ""), 14);
        let outcome = run_with(&spec, &parts, &mut Quiet, None).unwrap();
        let (training, held_out) = parts.rows(Share::new(0.25).unwrap());
        let config = TrainConfig {
            loss: LossKind::Ridge,
            ..TrainConfig::logistic()
        };
        let exact = train(&joined(&training), 0, &config).unwrap();
        let fit = &outcome.fits[0];
        let range = 100.0 * times;
        for (found, exact) in fit.beta.iter().zip(&exact.beta) {
            let apart = range * (found - exact).abs();
            assert!(apart < 0.5, "{sizes:?} {times}: {:?} {exact:?}", fit.beta);
        }
        let held_out = joined(&held_out);
        let (found, clear) = (fit.errors.unwrap(), errors(&fit.beta, &held_out, times));
        assert_eq!(found.rows as usize, held_out.rows());
        assert!(
            (found.rmse / clear.rmse - 1.0).abs() < 0.06,
            "{found:?} {clear:?}"
        );
        assert!(
            (found.mae / clear.mae - 1.0).abs() < 0.06,
            "{found:?} {clear:?}"
        );
        let (found, clear) = (found.r2.unwrap(), clear.r2.unwrap());
        assert!(
            (found - clear).abs() < 0.02 && clear > 0.6,
            "{found} {clear}"
        );
        assert_eq!(outcome.revealed.moment_numbers, 3 * 3 + 2);
        assert_eq!(outcome.revealed.count_numbers, 4);
    }
}

/// The last message of the evaluation: the sum of the errors, of the labels and of their squares.
const SUM_TAG: u8 = 0x37;
const SUM_BYTES: usize = 5 + 2 * 6;

#[test]
fn sums_of_labels_leave_under_masks() {
    let parts = parts(&[200, 220], 1.0);
    let spec = spec(schema(1.0, ""), 3);
    let guards = parts.guards(&spec.schema, "1".parse().unwrap());
    let seed = Randomness::seeded(5);
    let run = local::run(&spec, &guards, &seed, &mut Quiet, None, true).unwrap();
    let (training, held_out) = parts.rows(Share::new(0.25).unwrap());
    let scale = target::TargetScale::of(joined(&training).labels()).unwrap();
    let own = |rows: &Dataset| {
        let labels = rows
            .labels()
            .iter()
            .map(|label| scale.deviations(*label).get());
        labels
            .map(|label| (4096.0 * label).round() as i64)
            .sum::<i64>()
    };
    let sent = run.outcome.providers.iter().map(|provider| {
        let mut last = provider.view.iter();
        let last = last.find(|m| m.tag == SUM_TAG && m.body.len() == SUM_BYTES);
        let mut word = [0; 8];
        word[..6].copy_from_slice(&last.unwrap().body[5..11]);
        u64::from_le_bytes(word)
    });
    let sent: Vec<u64> = sent.collect();
    let signed = |word: u64| (word << 16) as i64 >> 16;
    for (sent, rows) in sent.iter().zip(&held_out) {
        assert_ne!(signed(*sent), own(rows), "a provider's own sum");
    }
    let both = signed(sent.iter().fold(0, |sum, word| sum.wrapping_add(*word)));
    assert_eq!(both, held_out.iter().map(own).sum::<i64>());
}

#[test]
fn a_stated_mean_and_deviation_is_not_asked_for() {
    let schema = schema(1.0, "typical = { mean = 0.5, deviation = 0.29 }");
    let text = schema.to_toml();
    let label = text.find("[[column]]").unwrap();
    let text = text[..label]
        .replace("mean = 0.5", "mean = 40.0")
        .replace("0.29", "10.0")
        + &text[label..];
    let schema = Arc::new(Schema::parse(&text, "rows.toml").unwrap());
    let parts = parts(&[200, 220], 1.0);
    let outcome = run_with(&spec(schema, 14), &parts, &mut Quiet, None).unwrap();
    assert_eq!(outcome.revealed.moment_numbers, 0);
    assert!(outcome.fits[0].errors.unwrap().r2.unwrap() > 0.6);
}

#[test]
fn a_resumed_job_asks_for_nothing_twice() {
    let parts = parts(&[160, 200], 1.0);
    let spec = spec(schema(1.0, ""), 6);
    let whole = run_with(&spec, &parts, &mut Quiet, None).unwrap();
    // After the split, the sums, all six gradients, and the first of two sums of errors.
    for left in [2, 5, 9] {
        let mut stopped = StopAfter { left, kept: None };
        run_with(&spec, &parts, &mut stopped, None).unwrap_err();
        let kept: Checkpoint = serde_json::from_str(&stopped.kept.unwrap()).unwrap();
        if left == 9 {
            assert_eq!(kept.errors.len(), 1);
        }
        let resumed = run_with(&spec, &parts, &mut Quiet, Some(kept)).unwrap();
        assert_eq!(resumed.fits[0].beta, whole.fits[0].beta);
        assert_eq!(resumed.fits[0].errors, whole.fits[0].errors);
    }
}

#[test]
fn what_does_not_go_with_a_number_is_refused_in_words() {
    let good = spec(schema(1.0, ""), 4);
    let logistic = good.with(|raw| raw.loss = Some(LossKind::Logistic));
    let scored = good.with(|raw| {
        raw.protected = Protected::Best(1);
        raw.ranking = Some(Ranking::Agreed {
            method: heda_learn::score::ScoringMethod::KruskalWallis,
        });
    });
    for (fault, word) in [(logistic, "the loss ridge"), (scored, "a given order")] {
        let words = fault.unwrap_err().to_string();
        assert!(
            words.contains("label is a number") && words.contains(word),
            "{words}"
        );
    }
}

/// Of a number the penalty is chosen by squared errors.
#[test]
fn a_penalty_is_chosen_by_squared_errors() {
    let parts = parts(&[200, 240], 1.0);
    let spec = with(&spec(schema(1.0, ""), 14), |raw| {
        raw.training.path = Some(PenaltyPath::usual());
    });
    let outcome = run_with(&spec, &parts, &mut Quiet, None).unwrap();
    let (training, held_out) = parts.rows(Share::new(0.25).unwrap());
    let choosing = held_out.iter().map(|part| {
        let rows: Vec<usize> = (0..part.rows() / 2).collect();
        part.select_rows(&rows)
    });
    let choosing = joined(&choosing.collect::<Vec<_>>());
    let reported: Vec<Dataset> = held_out.iter().map(local::reported).collect();
    let reported = joined(&reported);
    assert_eq!(choosing.rows() + reported.rows(), 110);
    let chosen = outcome.chosen.unwrap();
    assert_eq!(chosen.rows, choosing.rows() as u64);
    for tried in &chosen.tried {
        let config = TrainConfig {
            loss: LossKind::Ridge,
            settings: Settings {
                c: Some(tried.c),
                ..Settings::lbfgs()
            },
        };
        let exact = train(&joined(&training), 0, &config).unwrap();
        let exact = errors(&exact.beta, &choosing, 1.0).rmse;
        let apart = (tried.rmse.unwrap() / exact - 1.0).abs();
        assert!(apart < 0.03, "C = {}: {:?} {exact}", tried.c, tried.rmse);
    }
    // A line with little noise and many rows: a strong penalty spoils it.
    assert!(chosen.tried[chosen.chosen].c >= 1.0, "{chosen:?}");
    assert!(chosen.tried[0].rmse > chosen.tried[2].rmse);
    let found = outcome.fits[0].errors.unwrap();
    let exact = errors(&outcome.fits[0].beta, &reported, 1.0);
    assert_eq!(found.rows, reported.rows() as u64);
    assert!(
        (found.rmse / exact.rmse - 1.0).abs() < 0.05,
        "{found:?} {exact:?}"
    );
    assert_eq!(outcome.revealed.count_numbers, 5 * 3 + 4);
}

/// Two columns that nearly say the same have coefficients that nobody can read, and are named.
#[test]
fn columns_that_follow_from_others_are_named() {
    let entangled = |twin: f64| {
        let part = |seed: u64| {
            let data = rows(200, 1.0, seed);
            let values = data.values().chunks_exact(3).flat_map(|row| {
                // The third column becomes the first one, and a little of its own.
                [row[0], row[1], (1.0 - twin) * row[0] + twin * row[2]]
            });
            let values = values.collect();
            let features = data.features().to_vec();
            Dataset::new(features, values, data.labels().to_vec(), Vec::new()).unwrap()
        };
        let parts = vec![part(1), part(2)];
        let parts = Parts::new(parts, &Randomness::seeded(5)).unwrap();
        let spec = spec(schema(1.0, ""), 14);
        let outcome = run_with(&spec, &parts, &mut Quiet, None).unwrap();
        outcome.fits[0].entangled.clone()
    };
    assert_eq!(entangled(1.0), Vec::<String>::new(), "all their own");
    assert_eq!(entangled(0.5), Vec::<String>::new(), "half its own");
    assert_eq!(entangled(0.02), ["a", "c"]);
}
