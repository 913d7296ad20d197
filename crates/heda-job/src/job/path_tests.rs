//! A path of penalties bit by bit: the job with gradients in clear, against the same steps written
//! down one after the other with the same coins.

use super::outcome::ChosenPenalty;
use super::progress::Quiet;
use super::spec::{Checkpoint, JobSpec, Tried};
use super::training::TrainingInput;
use super::user::JobRunner;
use crate::engine::label_encoding::LabelEncoding;
use crate::engine::testing::{self, dataset, nearest};
use crate::engine::{EvaluationAsk, GradientAsk, UserEngine};
use crate::error::JobError;
use crate::histogram::{Histogram, NoisyCounts};
use crate::proposal::Split;
use crate::regression_metrics::ErrorSum;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::gradient::{Gradient, GradientSource};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Basis, Optimiser, PenaltyPath, Settings};
use heda_learn::oracle::score;
use heda_learn::resident::{Coins, Encoding, GridRows, Position, ResidentSource, RowCoins};
use heda_learn::scaling::Scaling;
use std::ops::ControlFlow;

const ROWS: usize = 120;
const HELD_OUT: usize = 90;

/// Coins that depend on the place alone.
fn coins(at: Position) -> RowCoins {
    let place = (u64::from(at.iteration) << 32 | at.row as u64).wrapping_add(1);
    let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    RowCoins {
        mask: (mixed >> 32) as u32,
        coin: (mixed ^ (mixed >> 17)) as u32,
    }
}

fn source(spec: &JobSpec, rows: &Dataset) -> ResidentSource<impl Coins> {
    let bits = spec.job.resolution().value_bits();
    let encoding = Encoding::of_features(rows.features(), bits).unwrap();
    let values = nearest(rows.values(), bits);
    let values = values.into_iter().map(|x| x as i32).collect();
    let labels = rows.labels().iter().map(|&label| label == 1).collect();
    let grid = GridRows::plain(&encoding, values, labels).unwrap();
    ResidentSource::new(
        spec.job.resolution(),
        encoding,
        spec.job.loss(),
        vec![grid],
        coins,
    )
    .unwrap()
}

/// Held-out rows in two ranges, below nought and above.
fn counted(rows: &Dataset, range: std::ops::Range<usize>, beta: &[f64]) -> Histogram {
    let mut counts = [[0u64; 2]; 2];
    for row in range {
        let above = usize::from(score(beta, rows.row(row)) > 0.0);
        counts[rows.labels()[row] as usize][above] += 1;
    }
    Histogram {
        decision: 1,
        negatives: counts[0].to_vec(),
        positives: counts[1].to_vec(),
        noise: None,
    }
}

/// An engine that does everything in clear.
struct Clear<S> {
    source: S,
    held_out: Dataset,
}

impl<S: GradientSource> UserEngine for Clear<S> {
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError> {
        Ok(self.source.gradient(ask.beta, ask.batch).ok().unwrap())
    }

    fn histogram(&mut self, ask: EvaluationAsk<'_>) -> Result<Histogram, JobError> {
        let range = ask.evaluation.rows.of(self.held_out.rows());
        Ok(counted(&self.held_out, range, ask.beta))
    }

    fn noisy_counts(&mut self, _: EvaluationAsk<'_>) -> Result<NoisyCounts, JobError> {
        unreachable!("the job is exact")
    }

    fn errors(&mut self, _: EvaluationAsk<'_>) -> Result<ErrorSum, JobError> {
        unreachable!("the label is a class")
    }

    fn channels(&mut self) -> Vec<&mut Channel> {
        Vec::new()
    }
}

fn spec() -> JobSpec {
    let spec = testing::spec(LossKind::Logistic, testing::FEATURES, 1);
    testing::with(&spec, |raw| {
        raw.training.settings = Settings {
            max_iterations: 9,
            ..Settings::lbfgs()
        };
        raw.spending = None;
        raw.training.path = Some(PenaltyPath::usual());
    })
}

fn basis(spec: &JobSpec, rows: &Dataset) -> Basis {
    Basis {
        scaling: Scaling::of(rows),
        noise: spec.job.resolution().rounding(),
    }
}

/// The job's own steps on an engine in clear.
fn by_the_job(spec: &JobSpec, rows: &Dataset, held_out: &Dataset) -> (Vec<Tried>, ChosenPenalty) {
    let proposal = spec.proposal(vec!["00".repeat(32)], true);
    let (randomness, mut observer) = (Randomness::seeded(1), Quiet);
    let mut job = JobRunner::new(spec, &proposal, &randomness, &mut observer);
    job.held_out = vec![held_out.rows()];
    job.rows = rows.rows();
    let basis = basis(spec, rows);
    let labels_as = LabelEncoding::default();
    let input = TrainingInput {
        basis: &basis,
        features: rows.features(),
        labels_as: &labels_as,
        left: &[],
    };
    let split = Split {
        encrypted: (0..testing::FEATURES).collect(),
        published: Vec::new(),
        dropped: Vec::new(),
    };
    let mut state = Checkpoint::begun(spec.id, split);
    let mut engine = Clear {
        source: source(spec, rows),
        held_out: held_out.clone(),
    };
    let (_, chosen) = job.train(&mut engine, input, &mut state).unwrap();
    assert_eq!(state.iteration, 5 * 9);
    (state.tried, chosen.unwrap())
}

#[test]
fn the_path_equals_the_same_steps_in_clear_with_the_same_coins() {
    let spec = spec();
    let data = dataset(ROWS + HELD_OUT, 3);
    let rows = data.select_rows(&(0..ROWS).collect::<Vec<_>>());
    let held_out = data.select_rows(&(ROWS..ROWS + HELD_OUT).collect::<Vec<_>>());
    let (tried, chosen) = by_the_job(&spec, &rows, &held_out);

    let path = PenaltyPath::usual();
    let mut source = source(&spec, &rows);
    let mut wrong = Vec::new();
    let mut optimiser: Option<Optimiser> = None;
    for (step, tried) in tried.iter().enumerate() {
        let settings = path.settings(testing::settings(&spec), step);
        let mut next = match optimiser {
            Some(before) => before.with_settings(settings, ROWS),
            None => Optimiser::on(basis(&spec, &rows), settings, rows.width() + 1),
        };
        let next = next.as_mut().unwrap();
        next.run(&mut source, |_| ControlFlow::Continue(()))
            .unwrap();
        assert_eq!(tried.beta, next.beta(), "step {step}");
        let counts = counted(&held_out, 0..HELD_OUT / 2, next.beta());
        let confusion = counts.confusion();
        wrong.push((confusion.false_positives + confusion.false_negatives) as f64);
        assert_eq!(tried.histogram, Some(counts), "step {step}");
        optimiser = Some(next.clone());
    }
    assert_eq!(chosen.chosen, path.choose(&wrong), "{wrong:?}");
    assert_eq!(chosen.rows, HELD_OUT as u64 / 2);
    assert!(wrong[0] != wrong[4], "penalties differ: {wrong:?}");
}
