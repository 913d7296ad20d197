//! What two parties talk over.
//!
//! [`channel`] carries tagged, bounded, counted messages; [`stop`] says why a party stops.

pub mod channel;
pub mod stop;
