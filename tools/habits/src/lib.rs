//! Checks of the repository itself. They run as tests of this crate:
//!
//! - `dependencies`: licences, banned crates, sources and duplicate versions, by `deny.toml`;
//! - `errors`: failures are typed, and public lists of them may grow;
//! - `mutations`: the list of defences that can be taken out fits the sources;
//! - `module_map`: the map of modules in `docs/architecture.md` is up to date;
//! - `source_length`: no source file is too long to read.
//!
//! `cargo run -p heda-habits` builds every crate with every feature alone, with none and with all;
//! `cargo run -p heda-habits --bin mutations` takes defences out one by one.

pub mod decoders;
pub mod functions;
pub mod licence;
pub mod modules;
pub mod mutations;
pub mod packages;
pub mod policy;
pub mod sources;
