//! The whole job, as in the paper's Algorithm 4: schema agreement, scores, ranking, split,
//! release of the low part, encryption, training, evaluation. Steps J1 to J11 of
//! `docs/protocols.md`.

mod checks;
mod fit;
mod outcome;
mod path;
#[cfg(test)]
mod path_tests;
mod progress;
mod provider;
#[cfg(test)]
mod provider_tests;
mod purchase;
#[cfg(test)]
mod purchase_tests;
mod ranking;
mod request_order;
mod scale;
mod spec;
mod training;
mod user;

pub use outcome::{
    ChosenPenalty, ClassFit, Outcome, PhaseTime, ProviderSummary, Revealed, Shrunk, ToldCharge,
    TriedPenalty,
};
pub use progress::{NotKept, Observer, Progress, Quiet};
pub use provider::{Provider, Served};
pub use purchase::Purchased;
pub use spec::{Checkpoint, IotaChooser, JobSpec, Known, NoIota, Tried};
pub use user::{Link, run};
