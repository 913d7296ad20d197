//! What does not fit together in a file that can be read, and what would.

use crate::identity::fingerprint::PeerFingerprint;
use heda_dp::epsilon::Epsilon;

/// A contradiction within one file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// Two entries of one kind with one name.
    #[error("two [[{section}]] entries are called {name}; rename one")]
    RepeatedName {
        /// The kind of entry.
        section: &'static str,
        /// The name.
        name: String,
    },
    /// Two entries of one kind with one key.
    #[error("two [[{section}]] entries have {fingerprint}; keep one")]
    RepeatedFingerprint {
        /// The kind of entry.
        section: &'static str,
        /// The key.
        fingerprint: PeerFingerprint,
    },
    /// A peer that is recognised in no way or in two.
    #[error("{0}: give either `fingerprint` or `certified_as`")]
    Recognition(String),
    /// A certified peer without an authority.
    #[error("{0}: `certified_as` needs the certificate of an `authority`")]
    NoAuthority(String),
    /// More known providers are asked for than are known.
    #[error(
        "known_co_providers_min is {least}, but only {known} [[known_provider]] entries are \
         given, so every job would be refused"
    )]
    KnownProviders {
        /// The limit.
        least: u64,
        /// Entries.
        known: usize,
    },
    /// A limit of private jobs without what belongs to it.
    #[error(
        "the limits of private jobs lack `{0}`: give `privacy_epsilon_total` with \
         `privacy_delta`, such as 2 and 1e-6"
    )]
    PrivacyWithout(&'static str),
    /// One data user may have more than all together.
    #[error(
        "privacy_epsilon_per_user is {user}, but all data users together may have {total} \
         (privacy_epsilon_total)"
    )]
    PrivacyPerUser {
        /// One.
        user: Epsilon,
        /// All.
        total: Epsilon,
    },
    /// Two penalties.
    #[error("give either `c` or `penalty = \"auto\"`")]
    TwoPenalties,
    /// Nobody to train with.
    #[error("a job needs at least one [[provider]], or answers to an invitation")]
    NoProvider,
    /// Two ways to choose features, or none.
    #[error("give either `iota` or `encrypt`")]
    IotaOrEncrypt,
    /// An automatic choice without a goal.
    #[error("`iota = \"auto\"` needs a goal under [auto]")]
    NoGoal,
    /// A goal without an automatic choice.
    #[error("[auto] goes with `iota = \"auto\"` only")]
    GoalUnused,
    /// Two goals, or none.
    #[error("[auto] give either `within_seconds` or `accuracy_loss`")]
    TwoGoals,
    /// A goal in accuracy without rows to estimate it on.
    #[error(
        "[auto] `accuracy_loss` is estimated on rows that the data user may read: name them as \
         `sample`"
    )]
    NoSample,
    /// A ranking of features that are named.
    #[error("`encrypt` names the features, so leave `order` and `ranked_by` out")]
    RankingUnused,
    /// Two rankings.
    #[error("give either `order` or `ranked_by`")]
    TwoRankings,
    /// A ranking by a stranger.
    #[error("`ranked_by` names {0}, which is no [[provider]]")]
    RankedByStranger(String),
}
