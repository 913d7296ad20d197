//! What the machine provides: the time, files, the wish to stop, a place for logs.

pub mod clock;
pub mod files;
pub mod logging;
pub mod stop;
