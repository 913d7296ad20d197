//! What two parties talk over, and the building block that engine `lookup` needs.
//!
//! [`channel`] carries tagged, bounded, counted messages; [`lookup`] reads a table of one party at
//! a secret index of the other; [`stop`] says why a party stops.

pub mod channel;
pub mod lookup;
pub mod stop;
