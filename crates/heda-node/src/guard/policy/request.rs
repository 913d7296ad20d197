//! What a data user asks for, what is known about the rows, and how much the one would tell of
//! the other.

use super::reason::Reason;
use crate::identity::fingerprint::PeerFingerprint;
use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use heda_job::description::{Features, Job, Protected, Share};
use heda_job::engine::Engine;
use heda_job::proposal::{Privacy, Spending, models_of};
use heda_learn::private::{PlanError, PrivatePlan, unstated};
use heda_learn::schema::Schema;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// What is public about the provider's data: agreed by schema, or told to the data user anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFacts {
    /// Fingerprint of the schema.
    pub schema: String,
    /// Names of the features.
    pub features: Vec<String>,
    /// Encoded columns of each feature.
    pub widths: Vec<usize>,
    /// Rows for training.
    pub training_rows: u64,
    /// Rows that are held out, if a share of them is to be.
    pub held_out: Option<u64>,
    /// The same in persons, if they and not rows are what private jobs protect: of each that is held
    /// out one row is counted.
    pub persons_held_out: Option<u64>,
    /// Models of a job: one for two classes, otherwise one a class.
    pub models: NonZeroU32,
    /// Numbers for which the schema states nothing typical.
    pub unstated: u32,
}

/// Which features are published, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// These.
    Named(Vec<String>),
    /// This many; which ones depends on the ranking.
    Any(u64),
}

impl Published {
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Named(names) => names.len() as u64,
            Self::Any(count) => *count,
        }
    }
}

/// What a data user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRequest {
    /// The job's name, chosen by the data user.
    pub job: String,
    /// Fingerprint of the schema.
    pub schema: String,
    /// The engine.
    pub engine: Engine,
    /// Whether all features of the schema are scored on the rows, to rank them.
    pub scored: bool,
    /// Features that the model uses.
    pub features: Vec<String>,
    /// Which of them are published rather than encrypted.
    pub published: Published,
    /// What publishing may cost in sum, if anything is published.
    pub epsilon: Option<Epsilon>,
    /// How it is published.
    pub mechanism: Mechanism,
    /// Iterations at most.
    pub iterations: u64,
    /// Rows in an iteration; none for all.
    pub batch_rows: Option<u64>,
    /// The other providers of the job.
    pub co_providers: Vec<PeerFingerprint>,
    /// What everything that the job reveals keeps to, if it is private.
    pub privacy: Option<Privacy>,
}

impl JobRequest {
    /// What a job asks for, as far as it is known before its features are ranked.
    pub fn of(
        (name, job): (String, &Job),
        facts: &DataFacts,
        scored: bool,
        co_providers: Vec<PeerFingerprint>,
    ) -> Self {
        let privacy = job.privacy();
        let plan = privacy.and_then(|privacy| facts.plan(&privacy).ok());
        let all = facts.features.len() as u64;
        let Features {
            protected,
            spending,
            ..
        } = job.features();
        let published = match (spending, protected) {
            (None, _) | (_, Protected::All) => Published::Any(0),
            (_, Protected::Named(encrypted)) => {
                let open = facts.features.iter().filter(|f| !encrypted.contains(f));
                Published::Named(open.cloned().collect())
            }
            (_, Protected::Best(iota)) => Published::Any(all.saturating_sub(*iota as u64)),
            // Chosen later: at worst everything is published.
            (_, Protected::For(_)) => Published::Any(all),
        };
        // Where nothing is published, what is not encrypted takes no part.
        let features = match (spending, protected) {
            (None, Protected::Named(encrypted)) => encrypted.clone(),
            _ => facts.features.clone(),
        };
        Self {
            job: name,
            schema: job.schema().to_owned(),
            engine: job.engine(),
            scored,
            features,
            published,
            epsilon: match spending {
                Some(Spending::Total(epsilon)) => Some(*epsilon),
                Some(Spending::Automatic) | None => None,
            },
            mechanism: Mechanism::Laplace,
            iterations: match plan {
                Some(plan) => plan.all_gradients().into(),
                None => job.gradients().into(),
            },
            batch_rows: Some(facts.training_rows / u64::from(job.batches())),
            co_providers,
            privacy,
        }
    }
}

impl DataFacts {
    /// Held-out rows that are counted, if any are.
    pub fn counted(&self, private: bool) -> Option<u64> {
        let persons = self.persons_held_out.filter(|_| private);
        persons.or(self.held_out)
    }

    /// What is public about so many rows of a schema, when this share of them is held out.
    pub fn of_schema(schema: &Schema, rows: u64, share: Share) -> Self {
        let held_out = share.of(rows);
        let features = schema.features();
        Self {
            schema: schema.fingerprint().to_string(),
            features: features.iter().map(|f| f.name.clone()).collect(),
            widths: features.iter().map(|f| f.columns.len()).collect(),
            training_rows: rows - held_out,
            held_out: share.is_some().then_some(held_out),
            persons_held_out: None,
            models: models_of(schema),
            unstated: u32::try_from(unstated(schema).len()).unwrap_or(u32::MAX),
        }
    }

    /// What a promise means for rows of these columns.
    ///
    /// # Errors
    /// If there is no plan that keeps it.
    pub fn plan(&self, privacy: &Privacy) -> Result<PrivatePlan, PlanError> {
        privacy.plan(self.widths.iter().sum::<usize>() + 1)
    }
}

/// What is wrong with the request whatever the policy says.
pub(super) fn well_formed(request: &JobRequest, facts: &DataFacts) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !(1..=64).contains(&request.job.len()) || !request.job.chars().all(fits) {
        reasons.push(Reason::JobName);
    }
    if request.schema != facts.schema {
        reasons.push(Reason::Schema {
            theirs: request.schema.chars().take(80).collect(),
            ours: facts.schema.clone(),
        });
    }
    let distinct: BTreeSet<_> = request.features.iter().collect();
    if distinct.is_empty() || distinct.len() != request.features.len() {
        reasons.push(Reason::Features);
    }
    let strange = distinct.iter().filter(|f| !facts.features.contains(f));
    let strange = strange.take(10).map(|f| f.chars().take(80).collect());
    reasons.extend(strange.map(Reason::NoFeature));
    let taking_part = match &request.published {
        Published::Named(names) => {
            let published: BTreeSet<_> = names.iter().collect();
            published.len() == names.len() && published.is_subset(&distinct)
        }
        Published::Any(count) => *count <= distinct.len() as u64,
    };
    if !taking_part {
        reasons.push(Reason::Published {
            published: request.published.count(),
            features: request.features.len(),
        });
    }
    reasons
}

/// Rows in an iteration. A batch cannot have more than there are.
pub(super) fn batch_rows(facts: &DataFacts, request: &JobRequest) -> u64 {
    let all = facts.training_rows;
    request.batch_rows.map_or(all, |rows| rows.min(all))
}

/// What a request would reveal, counted.
pub(super) struct Count {
    /// Numbers in one gradient.
    pub(super) gradient: u128,
    /// Numbers in all of them.
    pub(super) revealed: u128,
    /// Values that the data user does not know.
    pub(super) unknowns: u128,
}

impl Count {
    pub(super) fn ratio(&self) -> f64 {
        self.revealed as f64 / self.unknowns.max(1) as f64
    }

    /// How many gradients stay within a limit of numbers for each unknown.
    pub(super) fn gradients_within(&self, most: f64) -> u64 {
        (most * self.unknowns as f64 / self.gradient as f64) as u64
    }
}

/// A gradient has a number for each encoded column and one for the bias. Unknown are the cells of
/// the encrypted features and the label of each row; where the ranking decides what is published,
/// the widest features are taken for published.
pub(super) fn count(facts: &DataFacts, request: &JobRequest) -> Count {
    let widths = facts.features.iter().zip(&facts.widths);
    let mut taking_part: Vec<(u128, &String)> = widths
        .filter(|(feature, _)| request.features.contains(feature))
        .map(|(feature, width)| (*width as u128, feature))
        .collect();
    taking_part.sort_unstable();
    let all: u128 = taking_part.iter().map(|(width, _)| width).sum();
    let hidden: u128 = match &request.published {
        Published::Named(names) => {
            let encrypted = taking_part.iter().filter(|(_, f)| !names.contains(f));
            encrypted.map(|(width, _)| width).sum()
        }
        Published::Any(count) => {
            let published = usize::try_from(*count).unwrap_or(usize::MAX);
            let encrypted = taking_part.len().saturating_sub(published);
            let narrowest = taking_part[..encrypted].iter();
            narrowest.map(|(width, _)| width).sum()
        }
    };
    Count {
        gradient: all + 1,
        revealed: u128::from(request.iterations) * (all + 1),
        unknowns: u128::from(facts.training_rows) * (hidden + 1),
    }
}
