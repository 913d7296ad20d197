//! Two-party building blocks. One file each; all run over one [`channel::Channel`].

pub mod channel;
pub mod lookup;
