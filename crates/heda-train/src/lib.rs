//! Negotiation, split, the two training engines, and the whole job.

pub mod negotiation;
