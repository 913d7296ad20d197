//! What the data user proposes and every provider must agree to (step J1), and what follows from it.

mod checks;
mod privacy;

pub use privacy::{Privacy, models_of};

use crate::codec::{hex, unhex};
pub use crate::engine::Engine;
pub use crate::rounds::Path;
use crate::rounds::Rounds;
pub use crate::weighing::ClassWeight;
use heda_dp::epsilon::Epsilon;
use heda_learn::loss::LossKind;
use heda_learn::resident::Resolution;
use heda_learn::score::Method;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of everything that data user and provider say to each other, from the greeting of a
/// connection on. Both sides must have the same. It counts what is released: two states of the sources between
/// releases may have the same and not understand each other.
pub const PROTOCOL_VERSION: u32 = 2;

/// More classes, batches or iterations than these are not trained.
const CLASSES_LIMIT: usize = 256;
const BATCHES_LIMIT: u32 = 1 << 16;
const ITERATIONS_LIMIT: u32 = 1_000_000;

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

/// A text that is not a job's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a job's name is 32 hexadecimal digits")]
pub struct BadJobId;

impl std::str::FromStr for JobId {
    type Err = BadJobId;

    fn from_str(text: &str) -> Result<Self, BadJobId> {
        unhex(text).map(Self).map_err(|_| BadJobId)
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

/// How the features are ordered by worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ranking {
    /// Every provider scores its rows; the masked scores are added.
    Agreed {
        /// By which method.
        method: Method,
    },
    /// One provider scores its rows and sends the order that follows, without the scores.
    Chosen {
        /// By which method.
        method: Method,
        /// Its place among the providers of the job.
        chooser: usize,
    },
    /// The order is given, best first; nothing is read from data.
    Given {
        /// Names of all features.
        features: Vec<String>,
    },
}

/// ε of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spending {
    /// So much in sum, split equally over the published features.
    Total(Epsilon),
    /// The paper's Algorithm 1 on each provider's own columns. Read from the data: only for data
    /// that are public anyway, and a house refuses it unless told so.
    Automatic,
}

/// Random choices of the data user that every party must make alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// [`PROTOCOL_VERSION`] of the data user.
    pub version: u32,
    /// The job.
    pub job: JobId,
    /// The provider's own name for the data that are asked for.
    pub dataset: String,
    /// Fingerprint of the schema, hexadecimal.
    pub schema: String,
    /// How gradients are computed.
    pub engine: Engine,
    /// The loss.
    pub loss: LossKind,
    /// Class indices to be told from the rest, one model each.
    pub positives: Vec<u32>,
    /// How finely values, weights, scores and derivatives are cut.
    pub resolution: Resolution,
    /// Batches an epoch; 1 is full batch.
    pub batches: u32,
    /// At most so many gradients, over all classes.
    pub iterations: u32,
    /// Share of rows held out for evaluation, in thousandths.
    pub holdout_permille: u32,
    /// How features are ranked.
    pub ranking: Ranking,
    /// What may be spent on publishing; `None`: nothing is published.
    pub spending: Option<Spending>,
    /// Identity keys of all providers of the job, hexadecimal, in order.
    pub identities: Vec<String>,
    /// The guarantee that is asked for; `None`: sums are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// Whether the data user draws reproducible masks, which protect nothing.
    pub seeded: bool,
    /// Key size of engine `paper`.
    pub key_bits: u32,
    /// Whether the grid follows means and deviations of the encrypted columns.
    pub standardise: bool,
    /// Whether the label is a number, to be learned by least squares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub numeric: bool,
    /// How much the rows of each class count; `None`: all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_weight: Option<ClassWeight>,
    /// Penalties that are tried one after the other; `None`: there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
}

/// A proposal that nobody should accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadProposal {
    /// The other side speaks another version.
    #[error(
        "the data user speaks protocol version {theirs}, this provider {ours}; upgrade the older"
    )]
    Version {
        /// The data user's.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
    /// A private job that asks for something that is not private.
    #[error("a private job must have {0}")]
    NotPrivate(&'static str),
    /// A job on a numeric label that asks for what only classes have.
    #[error("a job on a numeric label must have {0}")]
    NotNumeric(&'static str),
    /// Weights where rows cannot be weighed.
    #[error("a job with class_weight must have {0}")]
    NotWeighed(&'static str),
    /// A path of penalties where none can be chosen.
    #[error("a job that chooses its penalty must have {0}")]
    NoChoice(&'static str),
    /// A number outside what is allowed.
    #[error("{what} is {got}; it must be {allowed}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        got: u64,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl BadProposal {
    /// The data user speaks this version, and we another one.
    pub(crate) fn version(theirs: u32) -> Self {
        let ours = PROTOCOL_VERSION;
        Self::Version { theirs, ours }
    }
}

impl Proposal {
    /// Checks everything that can be checked without data.
    pub fn check(&self) -> Result<(), BadProposal> {
        if self.version != PROTOCOL_VERSION {
            return Err(BadProposal::version(self.version));
        }
        let rules: [(&'static str, u64, bool, &'static str); 5] = [
            (
                "batches",
                self.batches.into(),
                (1..=BATCHES_LIMIT).contains(&self.batches),
                "1 to 65536",
            ),
            (
                "iterations",
                self.iterations.into(),
                (1..=ITERATIONS_LIMIT).contains(&self.iterations),
                "1 to 1000000",
            ),
            (
                "holdout_permille",
                self.holdout_permille.into(),
                self.holdout_permille <= 900,
                "0 to 900",
            ),
            (
                "the number of classes",
                self.positives.len() as u64,
                (1..=CLASSES_LIMIT).contains(&self.positives.len()),
                "1 to 256",
            ),
            (
                "the number of providers",
                self.identities.len() as u64,
                (1..=1024).contains(&self.identities.len()),
                "1 to 1024",
            ),
        ];
        for (what, got, holds, allowed) in rules {
            if !holds {
                return Err(BadProposal::Range { what, got, allowed });
            }
        }
        let mut classes = self.positives.clone();
        classes.sort_unstable();
        if let Some(pair) = classes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BadProposal::Range {
                what: "class",
                got: pair[0].into(),
                allowed: "named once",
            });
        }
        self.check_privacy()?;
        self.check_numeric()?;
        self.check_weights()?;
        self.check_path()?;
        match self.ranking {
            Ranking::Chosen { chooser, .. } if chooser >= self.identities.len() => {
                Err(BadProposal::Range {
                    what: "the place of the provider that ranks the features",
                    got: chooser as u64,
                    allowed: "that of a provider of the job",
                })
            }
            _ => Ok(()),
        }
    }
}

impl Proposal {
    /// Evaluations that the data user may ask for: one a model, or one for each measure of a
    /// number's errors; and one for each penalty that is tried.
    pub fn evaluations(&self) -> u32 {
        Rounds::of(self).evaluations()
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

    /// Something to begin with.
    pub(crate) fn proposal() -> Proposal {
        Proposal {
            version: PROTOCOL_VERSION,
            job: JobId([7; 16]),
            dataset: "rows".into(),
            schema: String::new(),
            engine: Engine::Resident,
            loss: LossKind::Logistic,
            positives: vec![1],
            resolution: Resolution::default(),
            batches: 1,
            iterations: 5,
            holdout_permille: 200,
            ranking: Ranking::Given {
                features: Vec::new(),
            },
            spending: None,
            privacy: None,
            identities: vec!["00".repeat(32)],
            seeded: false,
            key_bits: 2048,
            standardise: false,
            numeric: false,
            class_weight: None,
            path: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_dp::gdp::Delta;

    #[test]
    fn job_names_round_trip_and_bad_ones_are_refused() {
        let id = JobId([0xab; 16]);
        assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
        for bad in ["", "ab", "zz".repeat(16).as_str(), "é".repeat(16).as_str()] {
            assert_eq!(bad.parse::<JobId>(), Err(BadJobId));
        }
    }

    #[test]
    fn a_class_is_named_once_and_numbers_are_within_bounds() {
        let base = testing::proposal();
        assert_eq!(base.check(), Ok(()));
        let twice = Proposal {
            positives: vec![3, 1, 3],
            ..base.clone()
        };
        let words = twice.check().unwrap_err().to_string();
        assert_eq!(words, "class is 3; it must be named once");
        let held_out = Proposal {
            holdout_permille: 901,
            ..base
        };
        assert!(held_out.check().is_err());
    }

    #[test]
    fn a_private_job_asks_for_no_sums_of_columns() {
        let base = testing::proposal();
        let private = Proposal {
            loss: LossKind::BoundedLogistic,
            resolution: Resolution::PRIVATE,
            privacy: Some(Privacy::new(
                "1".parse().unwrap(),
                Delta::new(1e-5).unwrap(),
                1000,
            )),
            ..base
        };
        assert_eq!(private.check(), Ok(()));
        let three = Proposal {
            positives: vec![0, 1, 2],
            ..private.clone()
        };
        let words = three.check().unwrap_err().to_string();
        assert!(words.contains("as many models"), "{words}");
        let with_sums = Proposal {
            standardise: true,
            ..private
        };
        let words = with_sums.check().unwrap_err().to_string();
        assert!(words.contains("no exact sums of columns"), "{words}");
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
