//! What a program that embeds Heda asks of the system: log, signals, memory, files, randomness.

pub use heda_crypto::random::Randomness;
pub use heda_node::system::logging::{LogFormat, finish as finish_log, note, start as start_log};
pub use heda_node::system::memory::keep_freed_memory;
pub use heda_node::system::stop::{StopSignal, StopSwitch, exit_on_interrupt};
