//! Linear encryption over a lattice.
//!
//! One party encrypts a matrix of small integers. Another one, without the key, turns it into
//! scores (a weight for each column) or weighted sums (a weight for each row), adds a mask and
//! sends the result back; the key holder decrypts masked numbers and learns nothing else, not
//! even from the noise (`docs/circuit-privacy.md`). Everything lives in the integers modulo 2^48.
//!
//! The scheme is BFV (Brakerski 2012; Fan and Vercauteren 2012) over Z_q[X]/(X^8192 + 1). Its ring
//! arithmetic comes from `fhe-math`, the arithmetic half of the crate `fhe`. The linear layer is
//! our own, because the high-level one has no flooding, sends whole ciphertexts although few
//! coefficients matter, and pays a transform for each encoded weight.

mod answer;
mod error;
mod keys;
mod layout;
mod matrix;
mod parameters;
mod ring;
mod sample;
mod scheme;
mod wire;
mod zeros;

#[cfg(test)]
mod tests;

pub use error::LatticeError;
pub use keys::{PublicKey, SecretKey};
pub use matrix::EncryptedMatrix;
pub use parameters::{COLUMN_LIMIT, MODULUS_BITS, ROW_LIMIT};
pub use scheme::{Bfv, LinearEncryption, Shape};
pub use wire::Fingerprint;
pub use zeros::ZeroPool;
