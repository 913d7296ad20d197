//! Cryptography for Heda: no I/O, no async.
//!
//! Everything random is drawn from a generator that the caller passes in; [`random::Randomness`]
//! is where such generators come from.

pub mod encoding;
pub mod hazmat_rsa;
pub mod integer;
pub mod keyfile;
pub mod lattice;
pub mod masking;
pub mod ot;
pub mod paillier;
pub mod random;
pub mod transfer;
