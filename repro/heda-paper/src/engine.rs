//! Engine `paper` for jobs: where a job meets [`algorithm5`](crate::algorithm5). It trains in its own
//! way; held-out rows are counted as engine `resident` counts them.

use crate::algorithm5::{
    Column, Limits, PaperDefect, PaperError, PaperProvider, PaperRemote, PaperRows, Plan,
    ProviderKeys, Shape, leaks,
};
use crate::blocks::BlockError;
use crate::paillier::PrivateKey;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_job::engine::{
    Engine, OwnRows, PairFailure, PairQuestion, PairwiseEngine, PairwiseProvider, PairwiseSession,
    PairwiseUser, PartTerms, register,
};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

/// Key size if a job gives none.
pub const KEY_BITS: u64 = 2048;
/// The option of a job that gives another one.
pub const KEY_BITS_OPTION: &str = "key_bits";

/// The paper's first data set was trained by 63 steps on about 32 rows each.
const ITERATIONS: u32 = 63;
/// Rows of a batch.
pub const BATCH_ROWS: usize = 32;
/// The rate falls as α/(1 + decay·t). Chosen by `heda-repro experiment rate`, which a test compares
/// with.
pub const RATE: f64 = 10.0;
/// How fast it falls.
pub const DECAY: f64 = 0.03;

/// The engine.
struct Paper;

/// Engine `paper`, as part of this program from now on.
pub fn paper() -> Engine {
    register(&Paper)
}

/// A loss that Algorithm 5 does not have.
#[derive(Debug, thiserror::Error)]
#[error("engine paper trains logistic regression only; use engine resident")]
struct OtherLoss;

/// The paper's way to train so many rows: plain descent on small batches.
pub fn usual_settings(training_rows: usize) -> Settings {
    Settings {
        method: Method::Descent {
            rate: RATE,
            minimum_rate: 0.0,
            decay: DECAY,
            batches: (training_rows / BATCH_ROWS).max(1),
        },
        c: None,
        tolerance: 0.0,
        max_iterations: ITERATIONS,
    }
}

fn key_bits(options: &BTreeMap<String, u64>) -> u64 {
    options.get(KEY_BITS_OPTION).copied().unwrap_or(KEY_BITS)
}

/// The shape of one provider's part, if the engine can do it.
fn shape(part: &PartTerms<'_>) -> Result<Shape, Box<dyn Error + Send + Sync>> {
    let job = part.job;
    if job.loss() != LossKind::Logistic {
        return Err(OtherLoss.into());
    }
    let published = Column::Published {
        fraction_bits: job.resolution().value_bits(),
    };
    let column = |protected: &bool| match protected {
        true => Column::Encrypted,
        false => published,
    };
    let shape = Shape {
        columns: part.protected.iter().map(column).collect(),
        rows: part.rows,
        batches: job.batches() as usize,
        positives: job.positives().to_vec(),
        key_bits: usize::try_from(key_bits(job.engine_options()))?,
        limits: Limits::default(),
        insecure_test_keys: false,
    };
    Plan::new(&shape)?;
    Ok(shape)
}

impl PairwiseEngine for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn leaks(&self) -> &'static [&'static str] {
        leaks()
    }

    fn cryptosystem(&self) -> &'static str {
        "textbook RSA and Paillier"
    }

    fn usual_settings(&self, training_rows: usize) -> Settings {
        usual_settings(training_rows)
    }

    fn options(&self) -> &'static [&'static str] {
        &[KEY_BITS_OPTION]
    }

    fn check(&self, part: &PartTerms<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        shape(part).map(drop)
    }

    fn data_user(
        &self,
        parts: &[PartTerms<'_>],
        randomness: &Randomness,
    ) -> Result<Box<dyn PairwiseUser>, PairFailure> {
        let shapes = parts.iter().map(shape).collect::<Result<Vec<_>, _>>();
        let shapes = shapes.map_err(PairFailure::Unsuitable)?;
        let first = shapes
            .first()
            .ok_or(PaperError::Bug(PaperDefect::NoProviders))?;
        let own = PaperRemote::user_key(first, &mut randomness.fork("paper keys", 0)?)?;
        Ok(Box::new(User { own }))
    }

    fn provider(
        &self,
        channel: &mut Channel,
        part: &PartTerms<'_>,
        rows: OwnRows,
        randomness: &Randomness,
    ) -> Result<Box<dyn PairwiseProvider>, PairFailure> {
        let shape = shape(part).map_err(PairFailure::Unsuitable)?;
        let own = PaperRows::new(shape.columns.clone(), &rows.cells, rows.labels);
        let own = own.map_err(|e| PairFailure::Defect(e.into()))?;
        let keys = ProviderKeys::generate(&shape, &mut randomness.fork("paper keys", 0)?)?;
        let provider = PaperProvider::set_up(channel, shape, own, keys, randomness.clone())?;
        Ok(Box::new(provider))
    }
}

/// The data user's own key, the same for all providers.
struct User {
    own: Arc<PrivateKey>,
}

impl PairwiseUser for User {
    fn set_up(
        &self,
        channel: &mut Channel,
        part: &PartTerms<'_>,
        published: Vec<f64>,
        randomness: Randomness,
    ) -> Result<Box<dyn PairwiseSession>, PairFailure> {
        let shape = shape(part).map_err(PairFailure::Unsuitable)?;
        let own = Arc::clone(&self.own);
        let remote = PaperRemote::set_up(channel, shape, own, published, randomness)?;
        Ok(Box::new(remote))
    }
}

impl PairwiseSession for PaperRemote {
    fn check(&self, beta: &[f64]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(Self::check(self, beta)?)
    }

    fn gradient(
        &self,
        channel: &mut Channel,
        question: PairQuestion<'_>,
    ) -> Result<Vec<f64>, PairFailure> {
        let PairQuestion {
            beta,
            class,
            batch,
            iteration,
        } = question;
        Ok(Self::gradient(
            self, channel, beta, class, batch, iteration,
        )?)
    }
}

impl PairwiseProvider for PaperProvider {
    fn gradient(
        &mut self,
        channel: &mut Channel,
        batch: usize,
        iteration: u64,
    ) -> Result<(), PairFailure> {
        Ok(Self::gradient(self, channel, batch, iteration)?)
    }
}

impl From<PaperError> for PairFailure {
    fn from(error: PaperError) -> Self {
        match error {
            PaperError::Channel(error) | PaperError::Block(BlockError::Channel(error)) => {
                error.into()
            }
            PaperError::Peer { message, reason }
            | PaperError::Block(BlockError::Peer { message, reason }) => {
                Self::Peer { message, reason }
            }
            PaperError::Capacity(error) => Self::Unsuitable(error.into()),
            PaperError::Randomness(error) => error.into(),
            other => Self::Defect(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_job::description::{Job, RawJob};
    use heda_learn::schema::Schema;

    const SCHEMA: &str = "format = 1\nname = \"rows\"\n[label]\ncolumn = \"class\"\n\
        classes = [\"no\", \"yes\"]\npositive = \"yes\"\n[[column]]\nname = \"a\"\n\
        kind = \"numeric\"\nbounds = [0.0, 1.0]\n";

    fn job() -> Job {
        let schema = Schema::parse(SCHEMA, "rows.toml").unwrap();
        let mut raw = RawJob::new("rows", &schema);
        raw.engine = paper();
        raw.training.settings = usual_settings(320);
        raw.try_into().unwrap()
    }

    #[test]
    fn protected_cells_are_rounded_to_two_decimals_and_published_ones_stay_as_published() {
        let job = job();
        let part = PartTerms {
            job: &job,
            protected: vec![true, false],
            rows: 20,
        };
        let shape = shape(&part).unwrap();
        assert_eq!((shape.batches, shape.key_bits), (10, 2048));
        let step = 1.0 / f64::from(1u32 << job.resolution().value_bits());
        let cells = [0.1149, 118.0 * step, 1.0, 7.0 * step];
        let own = PaperRows::new(shape.columns, &cells, vec![0, 1]).unwrap();
        assert_eq!((own.row(0), own.row(1)), (&[11, 118][..], &[100, 7][..]));
    }

    #[test]
    fn too_many_protected_columns_are_refused_with_the_remedy() {
        let job = job();
        let reason = |columns, rows| {
            let part = PartTerms {
                job: &job,
                protected: vec![true; columns],
                rows,
            };
            Paper.check(&part).err().map(|e| e.to_string())
        };
        assert_eq!(reason(14, 26_049), None);
        let wide = reason(25, 1000).unwrap();
        assert!(wide.contains("encrypt at most"), "{wide}");
    }
}
