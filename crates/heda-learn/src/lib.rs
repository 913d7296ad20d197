//! Schema, table, feature scores, clear-text training and metrics: the oracle.
//!
//! Internal to `heda`, without a promise of stability: programs use the crate `heda`.

pub mod bundled;
pub mod clip_range;
pub mod collinear;
pub mod data;
pub mod date;
pub mod gradient;
pub mod grid;
pub mod infer;
pub mod loss;
pub mod metrics;
pub mod model;
pub mod onnx;
pub mod optimise;
pub mod oracle;
pub mod partition;
pub mod private;
pub mod reference;
pub mod resident;
#[cfg(test)]
mod samples;
pub mod scaling;
pub mod schema;
pub mod score;
pub mod spelling;
pub mod split;
pub mod table;
pub mod target;
