//! Negotiation, split, the training engines, and the whole job.

mod codec;
pub mod engine;
pub mod error;
pub mod errors;
pub mod estimate;
pub mod histogram;
pub mod house;
pub mod job;
pub mod local;
mod message;
pub mod moments;
pub mod negotiation;
mod parallel;
pub mod proposal;
mod release;
mod rounds;
mod rows;
pub mod weighing;

pub use release::ReleaseError;
pub use rows::fresh_row_seed;
