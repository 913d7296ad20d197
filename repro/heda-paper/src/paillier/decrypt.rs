//! Decryption by the private key.

use super::private::Half;
use super::{Ciphertext, PaillierError, Plaintext, PrivateKey};
use crate::integer::{Integer, Natural, Residue, Ring};

impl PrivateKey {
    /// Decrypts, in time that depends on the key's length only.
    ///
    /// c^(p−1) modulo p² is 1 + L·p, and m = −L/q modulo p; the same modulo q; then both are put
    /// together by the Chinese remainder theorem.
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Plaintext, PaillierError> {
        self.public().check(ciphertext.fingerprint())?;
        let number = self.public().number(ciphertext);
        let m_p = self.p.root().natural(&self.p.plaintext(&number));
        let m_q = self.q.plaintext(&number);
        let (p, q) = (&self.p, &self.q);
        let difference = q.root().subtract(&m_q, &q.root().residue(&m_p));
        let quotient = q.root().multiply(&difference, &self.p_inverse);
        let m = &m_p + &(&p.prime * &q.root().natural(&quotient));
        Ok(self.signed(m))
    }

    /// Decrypts by one power modulo N², as textbooks do: the yardstick for [`decrypt`](Self::decrypt).
    #[doc(hidden)]
    pub fn decrypt_without_crt(&self, ciphertext: &Ciphertext) -> Result<Plaintext, PaillierError> {
        self.public().check(ciphertext.fingerprint())?;
        let ring = self.public().ring();
        let order = &self.p.exponent * &self.q.exponent;
        let power = ring.power(&ciphertext.residue, order.limbs(), self.public().bits());
        let inverse = order.inverse(self.public().modulus());
        let high = ring.base_n(&power).high.clone();
        let root = ring.root();
        let inverse = root.residue(&inverse.ok_or(PaillierError::NotInvertible)?);
        let m = root.natural(&root.multiply(&root.residue(&high), &inverse));
        Ok(self.signed(m))
    }

    fn signed(&self, m: Natural) -> Plaintext {
        let wrapped = self.public().modulus().checked_sub(&m);
        let negative = m > *self.public().largest_plaintext();
        let mut magnitude = m;
        magnitude.select_if(&wrapped.unwrap_or_else(Natural::zero), negative);
        let value = Integer::from_parts(negative, magnitude);
        Plaintext::new(value, self.public().fingerprint())
    }
}

impl Half {
    /// The plaintext modulo this prime.
    fn plaintext(&self, number: &Natural) -> Residue {
        let c = self.ring.residue(number);
        let bits = self.prime.bit_length();
        let power = self.ring.power(&c, self.exponent.limbs(), bits);
        let l = self.ring.base_n(&power);
        self.root()
            .multiply(&self.root().residue(&l.high), &self.factor)
    }
}
