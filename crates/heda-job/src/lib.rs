//! Negotiation, split, the training engines, and the whole job.
//!
//! Internal to `heda`, without a promise of stability: programs use the crate `heda`.

pub mod agreement;
pub mod class_weights;
pub mod closing;
mod codec;
pub mod description;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod guard;
pub mod histogram;
pub mod job;
pub mod local;
mod message;
pub mod moments;
pub mod negotiation;
mod parallel;
mod plan;
pub mod proposal;
pub mod regression_metrics;
mod release;
mod rounds;
mod rows;

pub use release::{EpsilonRule, ReleaseError, register_epsilon_rule};
pub use rows::RowSeed;
