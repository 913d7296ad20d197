//! Sums, products with known numbers, and linear combinations of encrypted numbers.
//!
//! None of these re-randomises: a result tells its operands' owner how it was made. Call
//! [`PublicKey::rerandomise`] before sending one to a party that must not learn the weights.

use super::{Ciphertext, PaillierError, Plaintext, PublicKey};
use crate::integer::{
    Integer, Natural, Residue, Ring, Term, product_of_powers, product_of_powers_vartime,
};

impl PublicKey {
    /// Encrypts x + y.
    pub fn add(&self, x: &Ciphertext, y: &Ciphertext) -> Result<Ciphertext, PaillierError> {
        self.check_all([x, y])?;
        Ok(self.ciphertext(self.ring().multiply(&x.residue, &y.residue)))
    }

    /// Encrypts x − y.
    pub fn subtract(&self, x: &Ciphertext, y: &Ciphertext) -> Result<Ciphertext, PaillierError> {
        self.add(x, &self.negate(y)?)
    }

    /// Encrypts xᵢ − yᵢ for every pair, with one inversion for all of them.
    pub fn subtract_each(
        &self,
        x: &[Ciphertext],
        y: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, PaillierError> {
        self.check_all(x.iter().chain(y))?;
        let (ring, mut work) = (self.ring(), self.ring().workspace());
        // Products of all y before each; then the inverse of all of them, from which one y after the
        // other is taken off again.
        let mut before = Vec::with_capacity(y.len());
        let mut product = ring.one().clone();
        for y in y {
            before.push(product.clone());
            ring.multiply_assign(&mut product, &y.residue, &mut work);
        }
        let mut inverse = self.inverse(&product)?;
        let mut differences = Vec::with_capacity(x.len());
        for ((x, y), mut difference) in x.iter().zip(y).zip(before).rev() {
            ring.multiply_assign(&mut difference, &inverse, &mut work);
            ring.multiply_assign(&mut difference, &x.residue, &mut work);
            ring.multiply_assign(&mut inverse, &y.residue, &mut work);
            differences.push(self.ciphertext(difference));
        }
        differences.reverse();
        Ok(differences)
    }

    /// Encrypts −x.
    pub fn negate(&self, x: &Ciphertext) -> Result<Ciphertext, PaillierError> {
        self.check(x.fingerprint())?;
        Ok(self.ciphertext(self.inverse(&x.residue)?))
    }

    /// Encrypts the sum of all; zero, without randomness, for none.
    pub fn sum<'a>(
        &self,
        terms: impl IntoIterator<Item = &'a Ciphertext>,
    ) -> Result<Ciphertext, PaillierError> {
        let mut product = self.ring().one().clone();
        let mut work = self.ring().workspace();
        for term in terms {
            self.check(term.fingerprint())?;
            self.ring()
                .multiply_assign(&mut product, &term.residue, &mut work);
        }
        Ok(self.ciphertext(product))
    }

    /// Encrypts x + y for a known y.
    pub fn add_plaintext(
        &self,
        x: &Ciphertext,
        y: &Plaintext,
    ) -> Result<Ciphertext, PaillierError> {
        self.check(x.fingerprint())?;
        self.carry(y, x.residue.clone())
    }

    /// Encrypts weight·x for a secret weight of any sign below 2^`weight_bits`, in time that
    /// depends on `weight_bits` only.
    pub fn scale(
        &self,
        x: &Ciphertext,
        weight: &Integer,
        weight_bits: usize,
    ) -> Result<Ciphertext, PaillierError> {
        self.check(x.fingerprint())?;
        check_weight(weight, weight_bits)?;
        let mut base = x.residue.clone();
        base.select_if(&self.inverse(&x.residue)?, weight.is_negative());
        let power = self
            .ring()
            .power(&base, weight.magnitude().limbs(), weight_bits);
        Ok(self.ciphertext(power))
    }

    /// Encrypts weight·x for a weight that everybody may know.
    pub fn scale_vartime(
        &self,
        x: &Ciphertext,
        weight: &Integer,
    ) -> Result<Ciphertext, PaillierError> {
        self.check(x.fingerprint())?;
        let power = self
            .ring()
            .power_vartime(&x.residue, weight.magnitude().limbs());
        let signed = if weight.is_negative() {
            self.inverse(&power)?
        } else {
            power
        };
        Ok(self.ciphertext(signed))
    }

    /// Encrypts Σ weightᵢ·xᵢ for secret weights of any sign below 2^`weight_bits`, in time that
    /// depends on `weight_bits` and the number of terms only. Uses all cores.
    ///
    /// To hide the signs, 2^`weight_bits` is added to every weight, and taken off the sum again
    /// with one inversion.
    pub fn linear_combination(
        &self,
        terms: &[(&Ciphertext, &Integer)],
        weight_bits: usize,
    ) -> Result<Ciphertext, PaillierError> {
        self.check_all(terms.iter().map(|(x, _)| *x))?;
        terms
            .iter()
            .try_for_each(|(_, w)| check_weight(w, weight_bits))?;
        let offset = Natural::power_of_two(weight_bits);
        let shifted: Vec<Natural> = terms.iter().map(|(_, w)| shifted(w, &offset)).collect();
        let powers: Vec<Term<'_>> = terms
            .iter()
            .zip(&shifted)
            .map(|((x, _), weight)| (&x.residue, weight.limbs()))
            .collect();
        let ring = self.ring();
        let product = product_of_powers(ring, &powers, weight_bits + 1);
        let sum = self.sum(terms.iter().map(|(x, _)| *x))?;
        let excess = ring.power_vartime(&sum.residue, offset.limbs());
        Ok(self.ciphertext(ring.multiply(&product, &self.inverse(&excess)?)))
    }

    /// Encrypts Σ weightᵢ·xᵢ for weights that everybody may know. Uses all cores.
    pub fn linear_combination_vartime(
        &self,
        terms: &[(&Ciphertext, &Integer)],
    ) -> Result<Ciphertext, PaillierError> {
        self.check_all(terms.iter().map(|(x, _)| *x))?;
        let part = |negative: bool| {
            let powers: Vec<Term<'_>> = terms
                .iter()
                .filter(|(_, w)| w.is_negative() == negative)
                .map(|(x, w)| (&x.residue, w.magnitude().limbs()))
                .collect();
            product_of_powers_vartime(self.ring(), &powers)
        };
        let (positive, negative) = (part(false), part(true));
        if negative == *self.ring().one() {
            return Ok(self.ciphertext(positive));
        }
        let inverse = self.inverse(&negative)?;
        Ok(self.ciphertext(self.ring().multiply(&positive, &inverse)))
    }

    pub(super) fn ciphertext(&self, residue: Residue) -> Ciphertext {
        Ciphertext::new(residue, self.fingerprint())
    }

    fn inverse(&self, residue: &Residue) -> Result<Residue, PaillierError> {
        self.ring()
            .invert_vartime(residue)
            .ok_or(PaillierError::NotInvertible)
    }
}

fn shifted(weight: &Integer, offset: &Natural) -> Natural {
    let sum = offset + weight.magnitude();
    let difference = offset.checked_sub(weight.magnitude());
    let mut chosen = sum;
    chosen.select_if(
        &difference.unwrap_or_else(Natural::zero),
        weight.is_negative(),
    );
    chosen
}

fn check_weight(weight: &Integer, announced: usize) -> Result<(), PaillierError> {
    let bits = weight.magnitude().bit_length();
    if bits <= announced {
        Ok(())
    } else {
        Err(PaillierError::WeightTooLong { bits, announced })
    }
}
