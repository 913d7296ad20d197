//! The whole job, as in the paper's Algorithm 4: schema agreement, scores, ranking, split,
//! release of the low part, encryption, training, evaluation. Steps J1 to J11 of
//! `docs/protocols.md`.

mod asked;
mod checks;
mod outcome;
mod provider;
mod ranking;
mod spec;
mod training;
mod user;

pub use outcome::{ClassFit, Observer, Outcome, PhaseTime, ProviderSummary, Quiet, Revealed};
pub use provider::{Provider, Served};
pub use spec::{Checkpoint, Choice, IotaChooser, JobSpec, Known};
pub use user::{Link, run};

/// Tags of the job's own messages, in wire order.
pub(crate) mod tag {
    /// J1
    pub(crate) const PROPOSAL: u8 = 0x01;
    /// J2
    pub(crate) const ACCEPTANCE: u8 = 0x02;
    /// J3
    pub(crate) const ANNOUNCEMENTS: u8 = 0x03;
    /// J4
    pub(crate) const SCORES: u8 = 0x04;
    /// J5
    pub(crate) const SPLIT: u8 = 0x05;
    /// J6: what the release costs, then the release.
    pub(crate) const CHARGE: u8 = 0x06;
    /// J6
    pub(crate) const RELEASE: u8 = 0x07;
    /// G2, E1, J11: what is asked for next.
    pub(crate) const COMMAND: u8 = 0x20;
}
