//! What the machine provides: the time, files, memory, the wish to stop, a place for logs.

pub mod clock;
pub mod files;
mod hexadecimal;
pub mod logging;
pub mod memory;
pub mod stop;

pub(crate) use hexadecimal::{hex, unhex};
