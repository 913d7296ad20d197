//! Encryption and re-randomisation, by anybody and by the key's owner.

use super::{Ciphertext, PaillierError, Plaintext, PrivateKey, PublicKey};
use crate::integer::{Natural, Residue, Ring};
use rand_core::CryptoRng;

impl PublicKey {
    /// Encrypts with short randomness (see the module's documentation for its assumption).
    pub fn encrypt<R: CryptoRng + ?Sized>(
        &self,
        plaintext: &Plaintext,
        rng: &mut R,
    ) -> Result<Ciphertext, PaillierError> {
        self.encrypt_with(plaintext, &self.draw_exponent(rng))
    }

    /// Encrypts with uniform randomness r^N: slow, but with the fewest assumptions.
    pub fn encrypt_with_full_randomness<R: CryptoRng + ?Sized>(
        &self,
        plaintext: &Plaintext,
        rng: &mut R,
    ) -> Result<Ciphertext, PaillierError> {
        let r = loop {
            // Bounds the loop in practice: a non-unit would be a factor of N.
            match Natural::random_below(self.modulus(), rng) {
                Some(r) if r.gcd(self.modulus()) == Natural::one() => break r,
                _ => {}
            }
        };
        self.encrypt_with_given_randomness(plaintext, &r)
    }

    /// Encrypts with a given r, for known answers. A repeated r gives the plaintexts away.
    #[doc(hidden)]
    pub fn encrypt_with_given_randomness(
        &self,
        plaintext: &Plaintext,
        r: &Natural,
    ) -> Result<Ciphertext, PaillierError> {
        let ring = self.ring();
        let randomiser = ring.power_vartime(&ring.residue(r), self.modulus().limbs());
        self.carry(plaintext, randomiser)
    }

    /// Encrypts with a given short exponent, for known answers.
    #[doc(hidden)]
    pub fn encrypt_with_given_exponent(
        &self,
        plaintext: &Plaintext,
        exponent: &Natural,
    ) -> Result<Ciphertext, PaillierError> {
        self.encrypt_with(plaintext, exponent)
    }

    /// Makes a ciphertext of the same plaintext that cannot be linked to the given one.
    pub fn rerandomise<R: CryptoRng + ?Sized>(
        &self,
        ciphertext: &Ciphertext,
        rng: &mut R,
    ) -> Result<Ciphertext, PaillierError> {
        self.rerandomise_with(ciphertext, &self.draw_exponent(rng))
    }

    pub(super) fn draw_exponent<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> Natural {
        Natural::random_bits(self.exponent_bits() as u32, rng)
    }

    pub(super) fn encrypt_with(
        &self,
        plaintext: &Plaintext,
        exponent: &Natural,
    ) -> Result<Ciphertext, PaillierError> {
        self.carry(plaintext, self.randomisers().power(self.ring(), exponent))
    }

    pub(super) fn rerandomise_with(
        &self,
        ciphertext: &Ciphertext,
        exponent: &Natural,
    ) -> Result<Ciphertext, PaillierError> {
        self.check(ciphertext.fingerprint())?;
        let randomiser = self.randomisers().power(self.ring(), exponent);
        let fresh = self.ring().multiply(&ciphertext.residue, &randomiser);
        Ok(Ciphertext::new(fresh, self.fingerprint()))
    }

    /// (1 + m·N)·ρ.
    pub(super) fn carry(
        &self,
        plaintext: &Plaintext,
        mut randomiser: Residue,
    ) -> Result<Ciphertext, PaillierError> {
        self.check(plaintext.fingerprint())?;
        let m = plaintext.residue(self.modulus());
        self.ring()
            .multiply_by_one_plus_multiple(&mut randomiser, &m);
        Ok(Ciphertext::new(randomiser, self.fingerprint()))
    }
}

impl PrivateKey {
    /// Encrypts under the own key: as [`PublicKey::encrypt`], with the same distribution, but the
    /// power is taken modulo p² and q², which takes half the time.
    pub fn encrypt<R: CryptoRng + ?Sized>(
        &self,
        plaintext: &Plaintext,
        rng: &mut R,
    ) -> Result<Ciphertext, PaillierError> {
        self.encrypt_with(plaintext, &self.public().draw_exponent(rng))
    }

    /// As [`PublicKey::rerandomise`], faster.
    pub fn rerandomise<R: CryptoRng + ?Sized>(
        &self,
        ciphertext: &Ciphertext,
        rng: &mut R,
    ) -> Result<Ciphertext, PaillierError> {
        self.public().check(ciphertext.fingerprint())?;
        let randomiser = self.randomiser(&self.public().draw_exponent(rng));
        let fresh = self
            .public()
            .ring()
            .multiply(&ciphertext.residue, &randomiser);
        Ok(Ciphertext::new(fresh, self.public().fingerprint()))
    }

    pub(super) fn encrypt_with(
        &self,
        plaintext: &Plaintext,
        exponent: &Natural,
    ) -> Result<Ciphertext, PaillierError> {
        self.public().carry(plaintext, self.randomiser(exponent))
    }
}
