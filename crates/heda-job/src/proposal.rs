//! What the data user proposes and every provider must agree to (step J1), and what follows from it.

mod foreseen;
mod privacy;

pub use foreseen::Foreseen;
pub use privacy::{Privacy, models_of};

pub use crate::class_weights::ClassWeight;
use crate::codec::{hex, unhex};
use crate::description::{Job, JobFault, Ranking};
pub use crate::engine::Engine;
use crate::message::Agreement;
pub use crate::rounds::PathRounds;
use crate::rounds::Rounds;
use heda_dp::epsilon::Epsilon;
use heda_learn::score::ScoringMethod;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of everything that data user and provider say to each other, from the greeting of a
/// connection on. Both sides must have the same. It counts what is released: two states of the sources between
/// releases may have the same and not understand each other.
pub const PROTOCOL_VERSION: u32 = 3;

/// More providers than these do not take part.
pub(crate) const PROVIDERS_LIMIT: usize = 1024;

/// A job's name: 16 random bytes. The same job may be resumed under the same name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub [u8; 16]);

impl JobId {
    /// A public number that all parties of the job share, for scorers that draw.
    pub(crate) fn seed(&self) -> u64 {
        let mut seed = [0; 8];
        seed.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(seed)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({self})")
    }
}

impl std::str::FromStr for JobId {
    type Err = JobFault;

    fn from_str(text: &str) -> Result<Self, JobFault> {
        unhex(text).map(Self).map_err(|_| JobFault::JobId)
    }
}

impl Serialize for JobId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// ε of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spending {
    /// So much in sum, split equally over the published features.
    Total(Epsilon),
    /// Read from each provider's own columns by the rule that the program registered: only for data
    /// that are public anyway, and a guard refuses it unless told so.
    Automatic,
}

/// Who takes part in a job, beside what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parties {
    /// Identity keys of all providers of the job, hexadecimal, in order.
    pub identities: Vec<String>,
    /// The place of the provider that ranks the features, if one does so for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chooser: Option<usize>,
}

/// What the data user proposes: the job, with whom, and what holds for this session only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// [`PROTOCOL_VERSION`] of the data user.
    pub version: u32,
    /// The job's name.
    pub id: JobId,
    /// What is to be trained.
    pub job: Job,
    /// With whom.
    pub parties: Parties,
    /// The order of the features that an earlier session came to, where the job goes on without one
    /// of its providers; names of all features, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
    /// Whether the data user draws reproducible masks, which protect nothing.
    pub seeded: bool,
}

/// Who scores the features in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoring {
    /// Nobody: their order is known.
    Nobody,
    /// Everybody; the masked scores are added.
    Everybody(ScoringMethod),
    /// The provider at this place, which sends the order that follows.
    One(ScoringMethod, usize),
}

impl Parties {
    /// Where a provider begins with its batches: its place by identity, which stays the same when the same
    /// providers come back in another order.
    pub(crate) fn place(&self, identity: &str) -> usize {
        let before = |other: &&String| other.as_str() < identity;
        self.identities.iter().filter(before).count()
    }
}

impl Proposal {
    /// Checks what is beside the job, which was checked when it was read.
    pub fn check(&self) -> Result<(), JobFault> {
        if self.version != PROTOCOL_VERSION {
            return Err(JobFault::version(self.version));
        }
        let providers = self.parties.identities.len();
        if !(1..=PROVIDERS_LIMIT).contains(&providers) {
            return Err(JobFault::Providers(providers));
        }
        let ranking = &self.job.features().ranking;
        let needed = matches!(ranking, Ranking::Chosen { .. }) && self.order.is_none();
        match needed == self.parties.chooser.is_some_and(|place| place < providers) {
            true => Ok(()),
            false => Err(JobFault::Chooser),
        }
    }

    /// Who scores the features in this session.
    pub fn scoring(&self) -> Scoring {
        match (&self.job.features().ranking, &self.order) {
            (Ranking::Given { .. } | Ranking::Schema, _) | (_, Some(_)) => Scoring::Nobody,
            (Ranking::Agreed { method }, None) => Scoring::Everybody(*method),
            (Ranking::Chosen { method }, None) => match self.parties.chooser {
                Some(place) => Scoring::One(*method, place),
                None => Scoring::Nobody,
            },
        }
    }

    /// The proposal with what was agreed since (J3a).
    pub(crate) fn agreed(self, agreement: &Agreement) -> Self {
        let job = self.job.promising(|privacy| Privacy {
            trusted: Some(agreement.trusted),
            persons: agreement.persons,
            ..privacy
        });
        Self { job, ..self }
    }

    /// Evaluations that the data user may ask for: one a model, two a model of a private job, or one
    /// for each measure of a number's errors; and one for each penalty that is tried.
    pub fn evaluations(&self) -> u32 {
        Rounds::of(&self.job).evaluations()
    }

    /// About how many rows all providers of a private job hold out, by the number of training rows
    /// that it states; zero for other jobs.
    pub fn held_out_rows(&self) -> u64 {
        let training = self.job.privacy().map_or(0, |privacy| privacy.rows);
        Privacy::held_out_beside(training, self.job.held_out())
    }
}

/// Step J5: which features are encrypted and which are published, by index in the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Encrypted features, best first.
    pub encrypted: Vec<usize>,
    /// Published features, best first.
    pub published: Vec<usize>,
    /// Features that take no part.
    pub dropped: Vec<usize>,
}

impl Split {
    /// Every feature must be in exactly one part.
    pub(crate) fn covers(&self, features: usize) -> bool {
        let mut all: Vec<usize> = [&self.encrypted, &self.published, &self.dropped]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        all.sort_unstable();
        all.into_iter().eq(0..features)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::description::RawJob;
    use crate::engine::testing::schema;
    use heda_learn::optimise::Method;
    use heda_learn::resident::Resolution;

    /// Something to begin with: plain descent in one batch.
    pub(crate) fn raw() -> RawJob {
        let mut raw = RawJob::new("rows", &schema());
        raw.training.settings.max_iterations = 5;
        raw.training.settings.method = Method::Descent {
            rate: 0.5,
            minimum_rate: 0.0,
            decay: 0.0,
            batches: 1,
        };
        raw.training.resolution = Resolution::default();
        raw.ranking = Some(Ranking::Schema);
        raw
    }

    /// A proposal of this job.
    pub(crate) fn proposal_of(raw: RawJob) -> Proposal {
        Proposal {
            version: PROTOCOL_VERSION,
            id: JobId([7; 16]),
            job: raw.try_into().unwrap(),
            parties: Parties {
                identities: vec!["00".repeat(32)],
                chooser: None,
            },
            order: None,
            seeded: false,
        }
    }

    /// A proposal of something to begin with.
    pub(crate) fn proposal() -> Proposal {
        proposal_of(raw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_names_round_trip_and_bad_ones_are_refused() {
        let id = JobId([0xab; 16]);
        assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
        for bad in ["", "ab", "zz".repeat(16).as_str(), "é".repeat(16).as_str()] {
            assert_eq!(bad.parse::<JobId>(), Err(JobFault::JobId));
        }
    }

    #[test]
    fn a_job_has_providers_and_one_of_them_ranks_if_one_is_to() {
        let base = testing::proposal();
        assert_eq!(base.check(), Ok(()));
        let nobody = Proposal {
            parties: Parties {
                identities: Vec::new(),
                chooser: None,
            },
            ..base.clone()
        };
        assert_eq!(nobody.check(), Err(JobFault::Providers(0)));
        let alone = testing::proposal_of(crate::description::RawJob {
            ranking: Some(Ranking::Chosen {
                method: ScoringMethod::default(),
            }),
            ..testing::raw()
        });
        for (chooser, fits) in [(None, false), (Some(0), true), (Some(1), false)] {
            let mut proposal = alone.clone();
            proposal.parties.chooser = chooser;
            assert_eq!(proposal.check().is_ok(), fits, "{chooser:?}");
        }
        let mut without_need = base;
        without_need.parties.chooser = Some(0);
        assert_eq!(without_need.check(), Err(JobFault::Chooser));
    }

    #[test]
    fn a_split_holds_every_feature_once() {
        let split = |e: &[usize], p: &[usize], d: &[usize]| Split {
            encrypted: e.to_vec(),
            published: p.to_vec(),
            dropped: d.to_vec(),
        };
        assert!(split(&[2, 0], &[1], &[]).covers(3));
        assert!(split(&[], &[1], &[0]).covers(2));
        assert!(!split(&[0, 0], &[1], &[]).covers(2));
        assert!(!split(&[0], &[2], &[]).covers(2));
    }
}
