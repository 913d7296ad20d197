//! Fuzz targets for everything that decodes bytes of a peer or a file: see `README.md` beside this
//! crate.

pub mod corpus;
pub mod driver;
pub mod play;
#[cfg(test)]
mod short_run;
pub mod targets;
