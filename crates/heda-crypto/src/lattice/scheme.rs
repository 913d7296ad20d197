//! The few operations that callers need, so that another scheme can take the place of BFV.

use super::{EncryptedMatrix, LatticeError, PublicKey, SecretKey, ZeroPool};
use rand_core::CryptoRng;
use std::sync::Arc;

/// A scheme that encrypts a matrix and evaluates linear maps of it modulo 2^48.
pub trait LinearEncryption {
    /// What decrypts.
    type SecretKey;
    /// What the other party needs to protect its answers.
    type PublicKey;
    /// A matrix under encryption.
    type Matrix;
    /// What protects answers, prepared ahead and consumed by them.
    type Protection;
    /// Why an operation refused.
    type Error: std::error::Error;

    /// A fresh key.
    fn generate<R: CryptoRng>(rng: &mut R) -> Result<Self::SecretKey, Self::Error>;
    /// The public key of a secret key.
    fn public_key(key: &Self::SecretKey) -> &Arc<Self::PublicKey>;
    /// Encrypts a row-major matrix.
    fn encrypt<R: CryptoRng>(
        key: &Self::SecretKey,
        values: &[u32],
        shape: Shape,
        rng: &mut R,
    ) -> Result<Self::Matrix, Self::Error>;
    /// Encrypted, masked scores, one for each row.
    fn scores(
        matrix: &Self::Matrix,
        weights: &[u64],
        mask: &[u64],
        protection: &mut Self::Protection,
    ) -> Result<Vec<u8>, Self::Error>;
    /// Encrypted, masked weighted sums, one for each column.
    fn weighted_sums(
        matrix: &Self::Matrix,
        weights: &[u64],
        mask: &[u64],
        protection: &mut Self::Protection,
    ) -> Result<Vec<u8>, Self::Error>;
    /// Reads scores.
    fn decrypt_scores(
        key: &Self::SecretKey,
        bytes: &[u8],
        shape: Shape,
    ) -> Result<Vec<u64>, Self::Error>;
    /// Reads weighted sums.
    fn decrypt_sums(
        key: &Self::SecretKey,
        bytes: &[u8],
        shape: Shape,
    ) -> Result<Vec<u64>, Self::Error>;
}

/// Rows and columns of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

/// The scheme of this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bfv;

impl LinearEncryption for Bfv {
    type SecretKey = SecretKey;
    type PublicKey = PublicKey;
    type Matrix = EncryptedMatrix;
    type Protection = ZeroPool;
    type Error = LatticeError;

    fn generate<R: CryptoRng>(rng: &mut R) -> Result<SecretKey, LatticeError> {
        SecretKey::generate(rng)
    }

    fn public_key(key: &SecretKey) -> &Arc<PublicKey> {
        key.public_key()
    }

    fn encrypt<R: CryptoRng>(
        key: &SecretKey,
        values: &[u32],
        shape: Shape,
        rng: &mut R,
    ) -> Result<EncryptedMatrix, LatticeError> {
        key.encrypt_matrix(values, shape.rows, shape.columns, rng)
    }

    fn scores(
        matrix: &EncryptedMatrix,
        weights: &[u64],
        mask: &[u64],
        protection: &mut ZeroPool,
    ) -> Result<Vec<u8>, LatticeError> {
        matrix.scores(weights, mask, protection)
    }

    fn weighted_sums(
        matrix: &EncryptedMatrix,
        weights: &[u64],
        mask: &[u64],
        protection: &mut ZeroPool,
    ) -> Result<Vec<u8>, LatticeError> {
        matrix.weighted_sums(weights, mask, protection)
    }

    fn decrypt_scores(
        key: &SecretKey,
        bytes: &[u8],
        shape: Shape,
    ) -> Result<Vec<u64>, LatticeError> {
        key.decrypt_scores(bytes, shape.rows, shape.columns)
    }

    fn decrypt_sums(key: &SecretKey, bytes: &[u8], shape: Shape) -> Result<Vec<u64>, LatticeError> {
        key.decrypt_sums(bytes, shape.rows, shape.columns)
    }
}
