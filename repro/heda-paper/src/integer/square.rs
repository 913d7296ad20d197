//! Integers modulo n² for an odd n, in base n and Montgomery form.
//!
//! An element is written a + b·n with a, b below n, and R = 2^(64k) where n has k limbs. Let
//! u = −a₁a₂/n mod R be the quotient of the Montgomery reduction of a₁a₂, so a₁a₂ = R·a₃ − u·n.
//! Then
//!
//! ```text
//! (a₁ + b₁n)(a₂ + b₂n)/R = a₃ + n·((a₁b₂ + a₂b₁ − u)/R)   (mod n²)
//! ```
//!
//! and the bracket is one more reduction modulo n. That is five products of k by k limbs instead
//! of the eight that the same product takes with 2k limbs (fewer still for a square), it keeps
//! all tables to the size of n, and after a decryption's power the part b *is* the function L.

use super::limbs;
use super::modulus::Modulus;
use super::natural::Natural;
use super::ring::{Residue, Ring, Workspace};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The ring of integers modulo n². May be secret, so it is erased when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SquareModulus {
    root: Modulus,
    minus_one: Vec<u64>,
    doubled: Vec<u64>,
    doubled_top: u64,
    one: Residue,
    r_squared: Residue,
}

/// A number a + b·n below n², in base n.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct BaseN {
    /// The remainder by n.
    pub(crate) low: Natural,
    /// The quotient by n.
    pub(crate) high: Natural,
}

impl SquareModulus {
    /// The ring modulo `n²`; `None` unless `n` is odd and at least 3.
    pub(crate) fn new(n: &Natural) -> Option<Self> {
        let root = Modulus::new(n)?;
        let mut minus_one = root.n.clone();
        minus_one[0] -= 1;
        let mut doubled = root.n.clone();
        let doubled_top = limbs::double(&mut doubled);
        let width = 2 * root.n.len();
        let mut ring = Self {
            root,
            minus_one,
            doubled,
            doubled_top,
            one: Residue::zero(width),
            r_squared: Residue::zero(width),
        };
        let mut power = Residue::zero(width);
        power.0[0] = 1;
        ring.doublings(&mut power.0);
        ring.one = power.clone();
        ring.doublings(&mut power.0);
        ring.r_squared = power;
        Some(ring)
    }

    /// The ring modulo n.
    pub(crate) fn root(&self) -> &Modulus {
        &self.root
    }

    /// The residue of a number of any length, in time that depends on its length only.
    pub(crate) fn residue(&self, value: &Natural) -> Residue {
        let k = self.root.n.len();
        let mut work = self.workspace();
        let mut sum = Residue::zero(2 * k);
        let mut chunk_residue = Residue::zero(2 * k);
        for chunk in value.limbs().chunks(k).rev() {
            // As a + 0·n; the product allows an a up to 2^(64k), so it need not be reduced.
            let mut padded = Zeroizing::new(vec![0; 2 * k]);
            padded[..chunk.len()].copy_from_slice(chunk);
            self.multiply_assign(&mut sum, &self.r_squared, &mut work);
            self.multiply_into(&mut chunk_residue.0, &padded, &self.r_squared.0, &mut work);
            self.add_assign(&mut sum.0, &chunk_residue.0);
        }
        sum
    }

    /// `x *= 1 + m·n` for m below n: what carries a Paillier plaintext. Since
    /// (a + b·n)(1 + m·n) = a + (b + m·a)·n, it takes one product modulo n.
    pub(crate) fn multiply_by_one_plus_multiple(&self, x: &mut Residue, m: &Natural) {
        let k = self.root.n.len();
        let mut m = self.root.residue(m);
        let (a, b) = x.0.split_at_mut(k);
        self.root
            .multiply_limbs_assign(&mut m, a, &mut self.root.workspace());
        self.root.add_assign(b, &m.0);
    }

    /// The number below n², in base n.
    pub(crate) fn base_n(&self, x: &Residue) -> BaseN {
        let k = self.root.n.len();
        let mut plain_one = Residue::zero(2 * k);
        plain_one.0[0] = 1;
        let plain = self.multiply(x, &plain_one);
        BaseN {
            low: Natural::from_limbs(&plain.0[..k]),
            high: Natural::from_limbs(&plain.0[k..]),
        }
    }

    /// The inverse, for elements that everybody may know; `None` if there is none.
    ///
    /// An inverse i modulo n is lifted by one Newton step to i(2 − x·i) modulo n².
    pub(crate) fn invert_vartime(&self, x: &Residue) -> Option<Residue> {
        let n = Natural::from_limbs(&self.root.n);
        let inverse = self.base_n(x).low.inverse_vartime(&n)?;
        let mut lifted = self.residue(&inverse);
        let product = self.multiply(x, &lifted);
        let mut two_minus = self.one.clone();
        self.add_assign(&mut two_minus.0, &self.one.0);
        self.subtract_assign(&mut two_minus.0, &product.0);
        self.multiply_assign(&mut lifted, &two_minus, &mut self.workspace());
        Some(lifted)
    }

    /// `x + y`.
    pub(crate) fn add(&self, x: &Residue, y: &Residue) -> Residue {
        let mut sum = x.clone();
        self.add_assign(&mut sum.0, &y.0);
        sum
    }

    fn add_assign(&self, x: &mut [u64], y: &[u64]) {
        let k = self.root.n.len();
        let ((a, b), (ya, yb)) = (x.split_at_mut(k), y.split_at(k));
        let carry = limbs::add(a, ya, 0);
        let (_, into_high) = limbs::subtract_if_fits(a, carry, &self.root.n, 0);
        let top = limbs::add(b, yb, into_high);
        limbs::subtract_if_fits(b, top, &self.root.n, 0);
    }

    fn subtract_assign(&self, x: &mut [u64], y: &[u64]) {
        let k = self.root.n.len();
        let ((a, b), (ya, yb)) = (x.split_at_mut(k), y.split_at(k));
        let borrow = limbs::subtract(a, ya);
        limbs::add_masked(a, &self.root.n, limbs::mask_from_bit(borrow));
        // b + (n − 1 + 1) − y_b − borrow, between 0 and 2n − 1.
        let mut top = limbs::add(b, &self.minus_one, borrow ^ 1);
        top -= limbs::subtract(b, yb);
        limbs::subtract_if_fits(b, top, &self.root.n, 0);
    }

    fn doublings(&self, x: &mut [u64]) {
        for _ in 0..64 * self.root.n.len() {
            let copy = Zeroizing::new(x.to_vec());
            self.add_assign(x, &copy);
        }
    }

    /// Reduces `work.product` (the product of the low parts) to the low part of the result.
    /// Returns whether n was taken off, which the high part has to get back.
    fn finish_low(&self, low: &mut [u64], work: &mut Workspace) -> u64 {
        let (n, inverse) = (&self.root.n, self.root.minus_inverse);
        let carry = limbs::reduce(&mut work.product, &mut work.quotient, n, inverse);
        low.copy_from_slice(&work.product[n.len()..]);
        limbs::subtract_if_fits(low, carry, n, 0).1
    }

    /// Reduces `work.product` = a₁b₂ + a₂b₁, of which the carry is given, to the high part. First
    /// R − u is added to it; since (−R)/R = −1, n − 1 is added to the result, and 1 more if the
    /// low part was reduced. All that is less than 4n.
    fn finish_high(&self, high: &mut [u64], mut top: u64, taken: u64, work: &mut Workspace) {
        let (n, inverse) = (&self.root.n, self.root.minus_inverse);
        top += limbs::add_negated(&mut work.product, &work.quotient);
        top += limbs::reduce(&mut work.product, &mut work.quotient, n, inverse);
        high.copy_from_slice(&work.product[n.len()..]);
        top += limbs::add(high, &self.minus_one, taken);
        (top, _) = limbs::subtract_if_fits(high, top, &self.doubled, self.doubled_top);
        limbs::subtract_if_fits(high, top, n, 0);
    }
}

impl Ring for SquareModulus {
    fn width(&self) -> usize {
        2 * self.root.n.len()
    }

    fn base_limbs(&self) -> usize {
        self.root.n.len()
    }

    fn one(&self) -> &Residue {
        &self.one
    }

    fn multiply_into(&self, out: &mut [u64], x: &[u64], y: &[u64], work: &mut Workspace) {
        let k = self.root.n.len();
        let ((xa, xb), (ya, yb)) = (x.split_at(k), y.split_at(k));
        let (low, high) = out.split_at_mut(k);
        work.product.fill(0);
        limbs::add_product(&mut work.product, xa, ya);
        let taken = self.finish_low(low, work);
        work.product.fill(0);
        let mut top = limbs::add_product(&mut work.product, xa, yb);
        top += limbs::add_product(&mut work.product, ya, xb);
        self.finish_high(high, top, taken, work);
    }

    fn square_into(&self, out: &mut [u64], x: &[u64], work: &mut Workspace) {
        let k = self.root.n.len();
        let (a, b) = x.split_at(k);
        let (low, high) = out.split_at_mut(k);
        limbs::square(&mut work.product, a);
        let taken = self.finish_low(low, work);
        work.product.fill(0);
        limbs::add_product(&mut work.product, a, b);
        let top = limbs::double(&mut work.product);
        self.finish_high(high, top, taken, work);
    }
}
