//! Schema, table, feature scores, clear-text training and metrics: the oracle.

pub mod data;
pub mod gradient;
