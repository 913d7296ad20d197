//! Why a request is not allowed, in words for both sides.

use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use heda_job::engine::Engine;
use heda_learn::private::PlanError;

/// One reason for a refusal.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Names that do not fit into a ledger.
    #[error("a job's name has 1 to 64 letters, digits, `-` and `_`")]
    JobName,
    /// The parties read different schemas.
    #[error("the schemas differ: the data user has {theirs}, this provider {ours}")]
    Schema {
        /// The data user's.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// A feature that is not there.
    #[error("there is no feature {0} in this data set")]
    NoFeature(String),
    /// Features that this data user may not use.
    #[error("{label} may not use the columns {columns}")]
    Columns {
        /// The data user.
        label: String,
        /// Their names.
        columns: String,
    },
    /// Features that this data user may not have scored.
    #[error(
        "{label} may not use the columns {columns}, and a ranking scores every column; name the \
         columns in `encrypt` instead"
    )]
    Scored {
        /// The data user.
        label: String,
        /// Their names.
        columns: String,
    },
    /// No features, or one twice.
    #[error("the request must name each of its features once, and at least one")]
    Features,
    /// More is published than there is.
    #[error("{published} features would be published, of {features}")]
    Published {
        /// Asked.
        published: u64,
        /// There are.
        features: usize,
    },
    /// An engine that is not allowed.
    #[error("engine {asked} is not allowed here; allowed: {allowed}")]
    Engine {
        /// Asked.
        asked: Engine,
        /// Allowed.
        allowed: String,
    },
    /// A mechanism that is not allowed.
    #[error("publishing by {0} is not allowed here")]
    Mechanism(Mechanism),
    /// Publishing without a price.
    #[error("features are published, but the request names no epsilon")]
    NoEpsilon,
    /// This provider publishes nothing, or not that much.
    #[error("epsilon {asked} is asked, this provider allows {allowed} in all")]
    Epsilon {
        /// Asked.
        asked: Epsilon,
        /// Allowed; zero when nothing may be published.
        allowed: String,
    },
    /// So few held-out rows that an evaluation is about few people.
    #[error(
        "{rows} rows would be held out, this provider wants at least {least} or none; hold out a \
         larger share"
    )]
    HeldOut {
        /// There would be.
        rows: u64,
        /// The limit.
        least: u64,
    },
    /// Batches so small that a gradient is about few people.
    #[error("{asked} rows in a batch, this provider wants at least {least}")]
    Batch {
        /// Asked, or there are.
        asked: u64,
        /// The limit.
        least: u64,
    },
    /// Too many iterations.
    #[error("{asked} iterations, a job may have {most}")]
    Iterations {
        /// Asked.
        asked: u64,
        /// The limit.
        most: u64,
    },
    /// The data user could have invented the others.
    #[error("{known} of the other providers are known to this one, it wants at least {least}")]
    CoProviders {
        /// Known ones in the request.
        known: u64,
        /// The limit.
        least: u64,
    },
    /// This provider wants a guarantee.
    #[error(
        "this provider serves private jobs only (privacy_required): give `epsilon` under [privacy]"
    )]
    NotPrivate,
    /// This provider has no account for private jobs.
    #[error(
        "this provider has no budget for private jobs; ask it for `privacy_epsilon_total` and \
         `privacy_delta`"
    )]
    NoPrivateBudget,
    /// There is no plan, or none for so few rows.
    #[error("{0}")]
    Plan(PlanError),
    /// A gradient a day keeps secrecy away.
    #[error(
        "the job would learn {revealed} numbers about {unknowns} unknown values, {ratio:.4} for \
         each; this provider allows {most}"
    )]
    Revealed {
        /// Numbers that the data user would see.
        revealed: u128,
        /// Values that it does not know.
        unknowns: u128,
        /// Their ratio.
        ratio: f64,
        /// The limit.
        most: f64,
    },
}

/// A request that is not allowed, with every reason.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRefusal {
    /// All of them, so that they can be mended at once.
    pub reasons: Vec<Reason>,
}

impl std::fmt::Display for PolicyRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        f.write_str(&reasons.join("; "))
    }
}

impl std::error::Error for PolicyRefusal {}
