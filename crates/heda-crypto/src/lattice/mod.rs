//! Linear encryption over a lattice.
//!
//! One party encrypts a matrix of small integers. Another one, without the key, turns it into
//! scores (a weight for each column) or weighted sums (a weight for each row), adds a mask and
//! sends the result back; the key holder decrypts masked numbers and learns nothing else, not
//! even from the noise (`docs/circuit-privacy.md`). Everything lives in the integers modulo 2^48.
//!
//! The scheme is BFV (Brakerski 2012; Fan and Vercauteren 2012) over Z_q\[X\]/(X^8192 + 1).
//!
//! Why not the crate `fhe`: its linear layer has no flooding, sends whole ciphertexts although few
//! coefficients matter, and pays a transform for each encoded weight. Its arithmetic, `fhe-math`,
//! serves any modulus and any degree; for our three primes just below 2^62 the short transform in
//! `transform` is several times faster, and nothing else of that crate was left in use.

mod answer;
mod error;
mod keys;
mod layout;
mod matrix;
mod parameters;
mod prime;
mod ring;
mod sample;
mod transform;
mod wire;
mod zeros;

#[cfg(test)]
mod tests;

pub use error::LatticeError;
pub use keys::{PublicKey, SecretKey};
pub use matrix::EncryptedMatrix;
pub use parameters::{COLUMN_LIMIT, MODULUS_BITS, ROW_LIMIT};
pub use wire::LatticeFingerprint;
pub use zeros::ZeroPool;
