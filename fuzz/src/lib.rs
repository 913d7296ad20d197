//! A small fuzzer for the stable compiler: see `README.md` beside this crate.

pub mod driver;
pub mod mutate;
pub mod targets;
