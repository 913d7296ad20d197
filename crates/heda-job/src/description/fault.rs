//! Why there is no such job. One list for all doors: a message names what was asked for and what it
//! needs, in words that a job file, an option and the library share.

use super::limits::{BadShare, NoName};
use crate::engine::Engine;
use crate::proposal::{PROTOCOL_VERSION, PROVIDERS_LIMIT};
use heda_dp::error::ParameterError;
use heda_learn::optimise::TrainError;
use heda_learn::private::PlanError;

/// Why a job cannot be proposed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JobFault {
    /// Something that a private job cannot have, or that its plan decides.
    #[error("a private job does not go with `{key}`, because {because}; leave it out")]
    Private {
        /// The key of the job file.
        key: &'static str,
        /// Why.
        because: &'static str,
    },
    /// Something that does not go with a numeric label.
    #[error("the label is a number, which needs {0}")]
    Number(&'static str),
    /// A class is to be learned and the label is a number, or the reverse.
    #[error("the label is {0}")]
    Label(&'static str),
    /// Something that does not go with weights of classes.
    #[error("weights of classes need {0}")]
    Weighed(&'static str),
    /// Something that does not go with a choice of the penalty.
    #[error("choosing the penalty needs {0}")]
    Choice(&'static str),
    /// An option that the engine does not have.
    #[error("engine {engine} has no option {name}: {}", options(*engine))]
    EngineOption {
        /// Which engine.
        engine: Engine,
        /// What it does not have.
        name: String,
    },
    /// Not one weight a class.
    #[error("{found} weights for {classes} classes; give one for each class")]
    WeightCount {
        /// Classes of the schema.
        classes: usize,
        /// Weights given.
        found: usize,
    },
    /// A weight that is not a sensible number.
    #[error("a weight of {0}; choose a number from 0.000001 to 1000000")]
    WeightValue(f64),
    /// There is nothing to be balanced.
    #[error("no rows of a class at any provider: there is nothing to balance; give the weights")]
    NothingToBalance,
    /// Numbers of the optimiser that make no sense.
    #[error(transparent)]
    Settings(#[from] TrainError),
    /// A share of rows that cannot be held out.
    #[error(transparent)]
    HeldOut(#[from] BadShare),
    /// A text that does not name a data set.
    #[error("the name of the data: {0}")]
    Name(#[from] NoName),
    /// δ that protects nobody.
    #[error(transparent)]
    Delta(#[from] ParameterError),
    /// No plan keeps the promise.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
    /// A goal that is not a number to aim at.
    #[error("a goal for the number of encrypted features is a number above 0")]
    Goal,
    /// More features to encrypt than there are.
    #[error("iota is {iota}, but there are {features} features; choose 0 to {features}")]
    TooMany {
        /// What was asked for.
        iota: usize,
        /// What the schema has.
        features: usize,
    },
    /// A feature that the schema does not have.
    #[error("the schema has no feature \"{0}\"")]
    NoSuchFeature(String),
    /// A feature that was named before.
    #[error("a feature to encrypt is named twice")]
    Twice,
    /// No feature is encrypted and none published.
    #[error(
        "no feature is encrypted and none published: there is nothing to train on; encrypt some, or \
         give an epsilon to publish them for"
    )]
    Nothing,
    /// The job is about rows of another schema.
    #[error("the job is about schema {theirs}, the rows are of schema {ours}")]
    Schema {
        /// The job's.
        theirs: String,
        /// That of the rows.
        ours: String,
    },
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
    /// Nobody, or more providers than can take part.
    #[error("{0} providers: a job has 1 to {PROVIDERS_LIMIT}")]
    Providers(usize),
    /// A job whose features one provider ranks, and no provider that does.
    #[error("the job does not say which of its providers ranks the features")]
    Chooser,
    /// A text that is not a job's name.
    #[error("a job's name is 32 hexadecimal digits")]
    JobId,
}

impl JobFault {
    /// The data user speaks this version, and we another one.
    pub(crate) fn version(theirs: u32) -> Self {
        let ours = PROTOCOL_VERSION;
        Self::Version { theirs, ours }
    }
}

/// What an engine has, in words.
fn options(engine: Engine) -> String {
    match engine.options() {
        [] => "leave out engine_options".to_owned(),
        known => format!("engine_options may have {}", known.join(", ")),
    }
}
