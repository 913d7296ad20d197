//! A small fuzzer for the stable compiler: see `README.md` beside this crate.

pub mod corpus;
pub mod driver;
pub mod mutate;
pub mod play;
pub mod targets;
