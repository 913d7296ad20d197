//! Checks of the repository itself. They run as tests of this crate:
//!
//! - `errors`: failures are typed, and public lists of them may grow;
//! - `mutants`: the list of changes made by machine fits the sources;
//! - `mutations`: the list of defences that can be taken out fits the sources;
//! - `source_length`: no source file is too long to read.
//!
//! `cargo run -p heda-habits` builds every crate with every feature alone, with none and with all;
//! `cargo run -p heda-habits --bin count` prints the size of the product;
//! `cargo run -p heda-habits --bin mutations` takes defences out one by one;
//! `cargo run -p heda-habits --bin mutants` makes changes by machine that some test must notice.

pub mod decoders;
pub mod functions;
pub mod mutants;
pub mod mutations;
pub mod packages;
pub mod size;
pub mod sources;
