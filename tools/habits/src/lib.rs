//! Checks of the repository itself. They run as tests of this crate:
//!
//! - `dependencies`: licences, banned crates, sources and duplicate versions, by `deny.toml`;
//! - `source_length`: no source file is too long to read.
//!
//! `cargo run -p heda-habits` builds every crate with every feature alone, with none and with all.

pub mod functions;
pub mod licence;
pub mod packages;
pub mod policy;
pub mod sources;
