//! Many at once, on all cores.
//!
//! Randomness is drawn one after the other and the work is then shared out, so a seeded run gives
//! the same ciphertexts on any number of cores. To use fewer cores, call from a smaller `rayon`
//! pool.

use super::{Ciphertext, PaillierError, Plaintext, PrivateKey, PublicKey};
use crate::integer::{Integer, Natural};
use rand_core::CryptoRng;
use rayon::prelude::*;

impl PublicKey {
    /// Encrypts each, as [`encrypt`](Self::encrypt).
    pub fn encrypt_batch<R: CryptoRng + ?Sized>(
        &self,
        plaintexts: &[Plaintext],
        rng: &mut R,
    ) -> Result<Vec<Ciphertext>, PaillierError> {
        let exponents = self.draw_exponents(plaintexts.len(), rng);
        self.randomisers();
        let pairs = plaintexts.par_iter().zip(&exponents);
        pairs.map(|(m, a)| self.encrypt_with(m, a)).collect()
    }

    /// Re-randomises each, as [`rerandomise`](Self::rerandomise).
    pub fn rerandomise_batch<R: CryptoRng + ?Sized>(
        &self,
        ciphertexts: &[Ciphertext],
        rng: &mut R,
    ) -> Result<Vec<Ciphertext>, PaillierError> {
        let exponents = self.draw_exponents(ciphertexts.len(), rng);
        self.randomisers();
        let pairs = ciphertexts.par_iter().zip(&exponents);
        pairs.map(|(c, a)| self.rerandomise_with(c, a)).collect()
    }

    /// Multiplies each by its own secret weight, as [`scale`](Self::scale).
    pub fn scale_batch(
        &self,
        terms: &[(&Ciphertext, &Integer)],
        weight_bits: usize,
    ) -> Result<Vec<Ciphertext>, PaillierError> {
        let scaled = terms.par_iter().map(|(x, w)| self.scale(x, w, weight_bits));
        scaled.collect()
    }

    fn draw_exponents<R: CryptoRng + ?Sized>(&self, count: usize, rng: &mut R) -> Vec<Natural> {
        (0..count).map(|_| self.draw_exponent(rng)).collect()
    }
}

impl PrivateKey {
    /// Encrypts each under the own key, as [`encrypt`](Self::encrypt).
    pub fn encrypt_batch<R: CryptoRng + ?Sized>(
        &self,
        plaintexts: &[Plaintext],
        rng: &mut R,
    ) -> Result<Vec<Ciphertext>, PaillierError> {
        let exponents = self.public().draw_exponents(plaintexts.len(), rng);
        let pairs = plaintexts.par_iter().zip(&exponents);
        pairs.map(|(m, a)| self.encrypt_with(m, a)).collect()
    }

    /// Decrypts each, as [`decrypt`](Self::decrypt).
    pub fn decrypt_batch(
        &self,
        ciphertexts: &[Ciphertext],
    ) -> Result<Vec<Plaintext>, PaillierError> {
        ciphertexts.par_iter().map(|c| self.decrypt(c)).collect()
    }
}
