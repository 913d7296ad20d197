//! How fast this machine does what jobs are made of: what `heda bench` prints.

mod engines;
mod noise;
mod timing;
mod transfer;

pub use engines::{EngineSection, measure as engines};
pub use noise::{NoiseSection, measure as noise};
pub use timing::milliseconds;
pub use transfer::{TransferSection, measure as transfer};
