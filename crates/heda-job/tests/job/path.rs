//! A chosen penalty: the choice is the one that somebody with all rows in clear would make, counts
//! are those of the models that were tried, and a break changes nothing.

use super::{StopAfter, encrypted, lbfgs, message, spec as two_columns, with};
use heda_crypto::random::Randomness;
use heda_job::description::{Ranking, RawJob, Share, Training};
use heda_job::error::JobError;
use heda_job::job::{Checkpoint, JobSpec, NotKept, Observer, Outcome, Quiet, Tried};
use heda_job::local::{self, Parts};
use heda_job::proposal::JobId;
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, PenaltyPath, Settings};
use heda_learn::oracle::{TrainConfig, score, train};
use heda_learn::scaling::{Scaling, placed};
use heda_learn::schema::Schema;
use rand_core::Rng;
use std::sync::Arc;

/// Rows of two classes: what tells them apart is the small difference of two columns that are
/// otherwise alike; the other columns say nothing. A strong penalty does not see the difference, a
/// weak one sees things in the others that are not there.
struct World {
    /// How large the difference is.
    difference: f64,
    /// Columns that say nothing.
    idle: usize,
    /// Labels that are wrong.
    flipped: f64,
    /// Rows of each provider.
    rows: usize,
    held_out: f64,
    seed: u64,
}

/// The best penalty is weaker than C = 1.
const WEAK: World = World {
    difference: 0.02,
    idle: 6,
    flipped: 0.05,
    rows: 260,
    held_out: 0.4,
    seed: 1,
};

/// C = 1 is best.
const USUAL: World = World {
    difference: 0.2,
    idle: 40,
    flipped: 0.2,
    rows: 240,
    held_out: 0.83,
    seed: 1,
};

impl World {
    fn names(&self) -> Vec<String> {
        let idle = (0..self.idle).map(|n| format!("idle{n}"));
        ["a".to_owned(), "b".to_owned()]
            .into_iter()
            .chain(idle)
            .collect()
    }

    fn schema(&self) -> Arc<Schema> {
        let column = |name: &String| {
            format!("[[column]]\nname = \"{name}\"\nkind = \"numeric\"\nbounds = [0.0, 1.0]\n")
        };
        let columns: String = self.names().iter().map(column).collect();
        let text = format!(
            "format = 1\nname = \"rows\"\n[label]\ncolumn = \"class\"\nclasses = [\"no\", \"yes\"]\n\
             positive = \"yes\"\n{columns}"
        );
        Arc::new(Schema::parse(&text, "rows.toml").unwrap())
    }

    fn part(&self, provider: u64) -> Dataset {
        let mut rng = Randomness::seeded(self.seed)
            .fork("rows", provider)
            .unwrap();
        let mut draw = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..self.rows {
            let (middle, apart) = (0.25 + 0.5 * draw(), draw() - 0.5);
            let half = self.difference * apart;
            values.extend([middle + half, middle - half]);
            values.extend((0..self.idle).map(|_| draw()));
            let wrong = draw() < self.flipped;
            labels.push(u32::from((apart > 0.0) != wrong));
        }
        let classes = vec!["no".into(), "yes".into()];
        Dataset::new(self.schema().features(), values, labels, classes).unwrap()
    }

    fn parts(&self) -> Parts {
        let data = (0..2).map(|provider| self.part(provider)).collect();
        Parts::new(data, &Randomness::seeded(5)).unwrap()
    }

    fn spec(&self, iterations: u32) -> JobSpec {
        let schema = self.schema();
        let raw = RawJob {
            training: Training {
                settings: lbfgs(iterations),
                path: Some(PenaltyPath::usual()),
                ..Training::usual(&schema)
            },
            held_out: self.held_out,
            ranking: Some(Ranking::Given {
                features: self.names(),
            }),
            ..RawJob::new("rows", &schema)
        };
        JobSpec::new(JobId([1; 16]), raw.try_into().unwrap(), schema)
    }

    fn run(
        &self,
        observer: &mut dyn Observer,
        resume: Option<Checkpoint>,
    ) -> Result<Outcome, JobError> {
        run(&self.spec(18), &self.parts(), observer, resume)
    }

    /// Training rows of all, and those that choose.
    fn rows(&self) -> (Dataset, Dataset) {
        let (training, held_out) = self.parts().rows(Share::new(self.held_out).unwrap());
        let choosing = held_out.iter().map(|part| {
            let rows: Vec<usize> = (0..part.rows() / 2).collect();
            part.select_rows(&rows)
        });
        (joined(&training), joined(&choosing.collect::<Vec<_>>()))
    }
}

fn run(
    spec: &JobSpec,
    parts: &Parts,
    observer: &mut dyn Observer,
    resume: Option<Checkpoint>,
) -> Result<Outcome, JobError> {
    let guards = parts.guards(&spec.schema, "1".parse().unwrap());
    let randomness = Randomness::seeded(5);
    local::run(spec, &guards, &randomness, observer, resume, false).map(|run| run.outcome)
}

fn joined(parts: &[Dataset]) -> Dataset {
    let values = parts.iter().flat_map(|part| part.values().to_vec());
    let labels = parts.iter().flat_map(|part| part.labels().to_vec());
    let (features, classes) = (parts[0].features().to_vec(), parts[0].classes().to_vec());
    Dataset::new(features, values.collect(), labels.collect(), classes).unwrap()
}

/// Keeps the last checkpoint.
#[derive(Default)]
struct Last(Option<Checkpoint>);

impl Observer for Last {
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        self.0 = Some(checkpoint.clone());
        Ok(true)
    }
}

fn wrong(rows: &Dataset, beta: &[f64]) -> usize {
    let wrong = |&row: &usize| (score(beta, rows.row(row)) > 0.0) != (rows.labels()[row] == 1);
    (0..rows.rows()).filter(wrong).count()
}

/// Trained in clear with every penalty, to the end.
fn in_clear(training: &Dataset, choosing: &Dataset) -> Vec<usize> {
    let path = PenaltyPath::usual();
    let wrong = path.values().iter().map(|&c| {
        let config = TrainConfig {
            loss: LossKind::Logistic,
            settings: Settings {
                c: Some(c),
                ..Settings::lbfgs()
            },
        };
        wrong(choosing, &train(training, 1, &config).unwrap().beta)
    });
    wrong.collect()
}

/// The rows that choose as the engine sees them: in windows, on the grid.
fn counted(tried: &Tried, training: &Dataset, choosing: &Dataset) -> (usize, usize) {
    let (windows, _) = placed(training);
    let rows = choosing.clone().in_windows(&windows);
    let (mut wrong, mut near) = (0, 0);
    for row in 0..rows.rows() {
        let cells: Vec<f64> = rows
            .row(row)
            .iter()
            .map(|x| (x * 1024.0).round() / 1024.0)
            .collect();
        let score = score(&tried.beta, &cells);
        near += usize::from(score.abs() < 0.02);
        wrong += usize::from((score > 0.0) != (rows.labels()[row] == 1));
    }
    (wrong, near)
}

#[test]
fn the_penalty_is_the_one_that_training_in_clear_would_choose() {
    for (world, weak) in [(WEAK, true), (USUAL, false)] {
        let (training, choosing) = world.rows();
        let clear = in_clear(&training, &choosing);
        let losses: Vec<f64> = clear.iter().map(|wrong| *wrong as f64).collect();
        let best = PenaltyPath::usual().choose(&losses);
        match weak {
            // Clearly better than C = 1.
            true => assert!(best > 2 && clear[best] + 10 < clear[2], "{clear:?}"),
            false => assert_eq!(best, 2, "{clear:?}"),
        }
        let mut last = Last::default();
        let outcome = world.run(&mut last, None).unwrap();
        let chosen = outcome.chosen.as_ref().unwrap();
        let shares: Vec<f64> = chosen.tried.iter().map(|t| t.right.unwrap()).collect();
        // Two that are nearly equal may be taken for each other.
        let found = chosen.chosen;
        assert!(clear[found] <= clear[best] + 2, "{shares:?} {clear:?}");
        assert!(found > 2 || !weak, "{shares:?} {clear:?}");
        assert_eq!(outcome.settings.c, Some(chosen.tried[found].c));
        assert_eq!(chosen.rows, choosing.rows() as u64);
        // What was counted under encryption is what the same models get wrong in clear.
        let tried = last.0.unwrap().tried;
        assert_eq!(tried.len(), 5);
        for (tried, share) in tried.iter().zip(&shares) {
            let (wrong, near) = counted(tried, &training, &choosing);
            let found = (1.0 - share) * choosing.rows() as f64;
            let off = (found - wrong as f64).abs();
            assert!(off <= near as f64 + 1e-6, "{found} {wrong} {near}");
        }
        // And the model is that of the chosen penalty.
        let (windows, _) = placed(&training);
        let outside = windows.iter().map(|window| window.centre()).collect();
        let expected = Scaling::new(outside).to_values(&tried[chosen.chosen].beta);
        for (found, expected) in outcome.fits[0].beta.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0));
        }
        // The report is about the other half.
        let histogram = outcome.fits[0].histogram.as_ref().unwrap();
        let held_out: usize = outcome.providers.iter().map(|p| p.held_out).sum();
        assert_eq!(histogram.confusion().rows() + chosen.rows, held_out as u64);
        assert_eq!(outcome.revealed.count_numbers, 6 * 28);
        let gradients = 5 * 18;
        assert_eq!(
            outcome.revealed.gradient_numbers,
            gradients * (training.width() as u64 + 1)
        );
    }
}

/// Which penalty is best changes nothing that a provider sees.
#[test]
fn providers_cannot_see_which_penalty_was_chosen() {
    let small = |seed, difference| World {
        difference,
        rows: 60,
        seed,
        ..WEAK
    };
    let seen = [(1, 0.02), (2, 0.5)].map(|(seed, difference)| {
        let outcome = small(seed, difference).run(&mut Quiet, None).unwrap();
        let traffic = outcome.providers.iter().map(|provider| {
            ["train", "evaluate"].map(|phase| {
                let traffic = &provider.traffic[phase];
                (
                    traffic.bytes_sent,
                    traffic.bytes_received,
                    traffic.round_trips,
                )
            })
        });
        (outcome.chosen.unwrap().chosen, traffic.collect::<Vec<_>>())
    });
    assert_ne!(seen[0].0, seen[1].0, "another penalty was best");
    assert_eq!(seen[0].1, seen[1].1);
}

/// Stopped after any checkpoint: between gradients, after an evaluation, before the last one.
#[test]
fn a_break_anywhere_changes_nothing() {
    let world = World {
        rows: 60,
        idle: 1,
        ..WEAK
    };
    let spec = world.spec(4);
    let parts = world.parts();
    let whole = run(&spec, &parts, &mut Quiet, None).unwrap();
    // The split, the centres, 4 + 4·2 gradients, 5 evaluations, the last one.
    for left in [3, 6, 7, 8, 9, 10, 18, 19, 20] {
        let mut observer = StopAfter { left, kept: None };
        let stopped = run(&spec, &parts, &mut observer, None).unwrap_err();
        assert!(
            matches!(stopped, JobError::Interrupted),
            "{left}: {stopped}"
        );
        let kept: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
        let resumed = run(&spec, &parts, &mut Quiet, Some(kept)).unwrap();
        assert_eq!(resumed.chosen, whole.chosen, "after {left}");
        assert_eq!(resumed.fits[0].beta, whole.fits[0].beta, "after {left}");
        assert_eq!(resumed.fits[0].histogram, whole.fits[0].histogram);
    }
    // A path cannot be taken up as another one, or as none.
    let mut observer = StopAfter {
        left: 8,
        kept: None,
    };
    run(&spec, &parts, &mut observer, None).unwrap_err();
    let kept: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    assert_eq!(kept.tried.len(), 1);
    for path in [None, Some(PenaltyPath::new(vec![0.5, 1.0, 2.0]).unwrap())] {
        let other = with(&spec, |raw| raw.training.path = path);
        let refused = message(run(&other, &parts, &mut Quiet, Some(kept.clone())));
        assert!(refused.contains("put them back"), "{refused}");
    }
}

/// Several models share one penalty.
#[test]
fn one_penalty_is_chosen_for_all_classes() {
    const THREE: [&str; 3] = ["low", "middle", "high"];
    let spec = with(&encrypted(&two_columns(&THREE, lbfgs(6))), |raw| {
        raw.training.path = Some(PenaltyPath::usual());
    });
    let data = [1, 2].map(|seed| super::rows(150, &THREE, seed));
    let randomness = Randomness::seeded(6);
    let parts = Parts::new(data.to_vec(), &randomness).unwrap();
    let guards = parts.guards(&super::schema(&THREE), "1".parse().unwrap());
    let outcome = local::run(&spec, &guards, &randomness, &mut Quiet, None, false);
    let outcome = outcome.unwrap().outcome;
    assert_eq!(outcome.fits.len(), 3);
    let chosen = outcome.chosen.unwrap();
    assert_eq!(chosen.tried.len(), 5);
    assert!(chosen.tried.iter().all(|t| t.gradients == 3 * 6));
    let best = chosen.tried[chosen.chosen].right.unwrap();
    assert!(chosen.tried.iter().all(|t| t.right.unwrap() <= best));
    // The middle class is the one that no line tells apart.
    assert!(best > 0.75, "{best}");
    assert_eq!(outcome.revealed.count_numbers, (15 + 3) * 28);
}

/// What cannot choose is refused before anything leaves.
#[test]
fn a_path_needs_rows_to_choose_by_and_lbfgs() {
    let world = World { rows: 60, ..WEAK };
    let descent = Settings {
        method: Method::Descent {
            rate: 0.1,
            minimum_rate: 0.0,
            decay: 0.0,
            batches: 1,
        },
        ..lbfgs(4)
    };
    let base = world.spec(4);
    let faults = [
        base.with(|raw| raw.held_out = 0.0),
        base.with(|raw| raw.training.settings = descent),
    ];
    let words = faults.map(|fault| fault.unwrap_err().to_string());
    assert!(words[0].contains("rows held out to choose by"), "{words:?}");
    assert!(words[1].contains("the optimiser lbfgs"), "{words:?}");
    // 60 rows hold 3 out: one of them would choose.
    let few = with(&base, |raw| raw.held_out = 0.05);
    let refused = message(run(&few, &world.parts(), &mut Quiet, None));
    assert!(refused.contains("choose the penalty"), "{refused}");
}
