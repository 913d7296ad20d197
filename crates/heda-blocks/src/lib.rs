//! What two parties talk over.
//!
//! Internal to `heda`, without a promise of stability: programs use the crate `heda`.
//!
//! [`channel`] carries tagged, bounded, counted messages; [`stop`] says why a party stops.

pub mod channel;
pub mod stop;
