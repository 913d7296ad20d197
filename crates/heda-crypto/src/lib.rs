//! Cryptography for Heda: no I/O, no async.
//!
//! Internal to `heda`, without a promise of stability: programs use the crate `heda`.
//!
//! Everything random is drawn from a generator that the caller passes in; [`random::Randomness`]
//! is where such generators come from.

pub mod bits;
pub(crate) mod cipher;
pub mod masking;
pub mod random;
pub mod transfer;
pub mod vole;
pub(crate) mod wipe;
