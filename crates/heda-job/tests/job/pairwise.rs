//! An engine that a program adds, here one that computes in clear: whole jobs by it, and what is
//! said when it cannot do one.

use super::*;
use heda_blocks::channel::Channel;
use heda_job::engine::{
    OwnRows, PairFailure, PairQuestion, PairwiseEngine, PairwiseProvider, PairwiseSession,
    PairwiseUser, PartTerms, register,
};
use std::collections::BTreeMap;
use std::error::Error;

const QUESTION: u8 = 0x70;
const SUM: u8 = 0x71;

/// The data user sends its coefficients, a provider its gradient.
struct Clear;

fn engine() -> Engine {
    register(&Clear)
}

impl PairwiseEngine for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn leaks(&self) -> &'static [&'static str] {
        &["Everything."]
    }

    fn cryptosystem(&self) -> &'static str {
        "none"
    }

    fn usual_settings(&self, _: usize) -> Settings {
        lbfgs(3)
    }

    fn options(&self) -> &'static [&'static str] {
        &["most_rows"]
    }

    fn check(&self, part: &PartTerms<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let most = part.job.engine_options().get("most_rows");
        match most.is_some_and(|most| part.rows as u64 > *most) {
            true => Err(format!("{} rows are too many; use fewer", part.rows).into()),
            false => Ok(()),
        }
    }

    fn data_user(
        &self,
        _: &[PartTerms<'_>],
        _: &Randomness,
    ) -> Result<Box<dyn PairwiseUser>, PairFailure> {
        Ok(Box::new(Self))
    }

    fn provider(
        &self,
        _: &mut Channel,
        part: &PartTerms<'_>,
        rows: OwnRows,
        _: &Randomness,
    ) -> Result<Box<dyn PairwiseProvider>, PairFailure> {
        let (width, batches) = (part.protected.len(), part.job.batches() as usize);
        Ok(Box::new(ClearProvider {
            rows,
            width,
            batches,
        }))
    }
}

impl PairwiseUser for Clear {
    fn set_up(
        &self,
        _: &mut Channel,
        part: &PartTerms<'_>,
        published: Vec<f64>,
        _: Randomness,
    ) -> Result<Box<dyn PairwiseSession>, PairFailure> {
        let open = part.protected.iter().filter(|protected| !**protected);
        assert_eq!(published.len(), part.rows * open.count());
        Ok(Box::new(Self))
    }
}

fn to_bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    let chunks = bytes.chunks_exact(8);
    chunks
        .map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap()))
        .collect()
}

impl PairwiseSession for Clear {
    fn check(&self, beta: &[f64]) -> Result<(), Box<dyn Error + Send + Sync>> {
        match beta.iter().all(|b| b.abs() < 100.0) {
            true => Ok(()),
            false => Err("a coefficient is above 100".into()),
        }
    }

    fn gradient(
        &self,
        channel: &mut Channel,
        question: PairQuestion<'_>,
    ) -> Result<Vec<f64>, PairFailure> {
        channel.send(QUESTION, &to_bytes(question.beta))?;
        Ok(numbers(&channel.receive(SUM, 8 * question.beta.len())?))
    }
}

struct ClearProvider {
    rows: OwnRows,
    width: usize,
    batches: usize,
}

impl PairwiseProvider for ClearProvider {
    fn gradient(&mut self, channel: &mut Channel, batch: usize, _: u64) -> Result<(), PairFailure> {
        let beta = numbers(&channel.receive(QUESTION, 8 * (self.width + 1))?);
        let mut sum = vec![0.0; beta.len()];
        let batch = Batch::new(batch, self.batches);
        for row in batch.share(self.rows.labels.len()) {
            let cells = &self.rows.cells[row * self.width..][..self.width];
            let weighed: f64 = cells.iter().zip(&beta[1..]).map(|(x, b)| x * b).sum();
            let predicted = 1.0 / (1.0 + (-beta[0] - weighed).exp());
            let off = predicted - f64::from(self.rows.labels[row]);
            sum[0] += off;
            for (sum, x) in sum[1..].iter_mut().zip(cells) {
                *sum += off * x;
            }
        }
        Ok(channel.send(SUM, &to_bytes(&sum))?)
    }
}

fn descent(rate: f64, batches: usize) -> Settings {
    Settings {
        method: Method::Descent {
            rate,
            minimum_rate: 0.0,
            decay: 0.0,
            batches,
        },
        c: None,
        tolerance: 0.0,
        max_iterations: 6,
    }
}

#[test]
fn a_job_by_an_added_engine_agrees_with_resident() {
    let plain = spec(&TWO, descent(1.0, 3));
    let added = with(&plain, |raw| raw.engine = engine());
    assert_ne!(added.job.digest().unwrap(), plain.job.digest().unwrap());
    let expected = run_with(&plain, two_parts(), &mut Quiet, None).unwrap();
    let found = run_with(&added, two_parts(), &mut Quiet, None).unwrap();
    assert_eq!(found.split, expected.split);
    assert_eq!(found.split.published.len(), 1);
    let pairs = found.fits[0].beta.iter().zip(&expected.fits[0].beta);
    for (found, expected) in pairs {
        assert!((found - expected).abs() < 0.05, "{found} for {expected}");
    }
    assert!(found.fits[0].histogram.is_some());
    assert!(!found.revealed.summed, "every gradient is seen by itself");
}

#[test]
fn a_stopped_job_of_an_added_engine_goes_on() {
    let added = with(&spec(&TWO, descent(1.0, 3)), |raw| raw.engine = engine());
    let whole = run_with(&added, two_parts(), &mut Quiet, None).unwrap();
    let mut observer = StopAfter {
        left: 4,
        kept: None,
    };
    run_with(&added, two_parts(), &mut observer, None).unwrap_err();
    let checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    let resumed = run_with(&added, two_parts(), &mut Quiet, Some(checkpoint)).unwrap();
    assert_eq!(resumed.fits[0].beta, whole.fits[0].beta);
}

#[test]
fn options_are_the_engines_own_and_part_of_the_job() {
    let plain = with(&spec(&TWO, descent(1.0, 3)), |raw| raw.engine = engine());
    let option = |name: &str, value| {
        let options = BTreeMap::from([(name.to_owned(), value)]);
        plain.with(|raw| raw.engine_options = options)
    };
    let refused = option("colour", 1).unwrap_err().to_string();
    assert!(refused.contains("has no option colour"), "{refused}");
    let (many, few) = (
        option("most_rows", 100).unwrap(),
        option("most_rows", 50).unwrap(),
    );
    assert_ne!(many.job.digest().unwrap(), few.job.digest().unwrap());
    let text = serde_json::to_string(&few.job).unwrap();
    assert!(
        text.contains(r#""engine_options":{"most_rows":50}"#),
        "{text}"
    );
    run_with(&many, two_parts(), &mut Quiet, None).unwrap();
    let refused = message(run_with(&few, two_parts(), &mut Quiet, None));
    assert!(refused.contains("64 rows are too many"), "{refused}");
}

#[test]
fn what_cannot_be_done_costs_nothing() {
    let randomness = Randomness::seeded(5);
    let parts = Parts::new(two_parts(), &randomness).unwrap();
    // Enough for one release.
    let guards = parts.guards(&schema(&TWO), "2".parse().unwrap());
    let possible = spec(&TWO, lbfgs(2));
    let impossible = JobSpec {
        id: JobId([9; 16]),
        ..with(&possible, |raw| {
            raw.engine = engine();
            raw.engine_options = BTreeMap::from([("most_rows".to_owned(), 1)]);
        })
    };
    let run = |spec| local::run(spec, &guards, &randomness, &mut Quiet, None, false);
    let refused = run(&impossible).err().unwrap().to_string();
    assert!(refused.contains("too many"), "{refused}");
    run(&possible).unwrap();
}

#[test]
fn coefficients_beyond_what_an_engine_takes_end_the_training() {
    let added = with(&spec(&TWO, descent(1e6, 1)), |raw| raw.engine = engine());
    let failed = message(run_with(&added, two_parts(), &mut Quiet, None));
    assert!(failed.contains("above 100"), "{failed}");
    assert!(failed.contains("learning rate"), "{failed}");
}
