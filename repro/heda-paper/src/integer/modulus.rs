//! Integers modulo an odd n, in Montgomery form.

use super::limbs;
use super::natural::Natural;
use super::ring::{Residue, Ring, Workspace};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The ring of integers modulo an odd n, with what its products need. May be secret (a prime of a
/// private key), so it is erased when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Modulus {
    pub(super) n: Vec<u64>,
    pub(super) minus_inverse: u64,
    one: Residue,
    r_squared: Residue,
}

impl Modulus {
    /// The ring modulo `n`; `None` unless `n` is odd and at least 3.
    pub(crate) fn new(n: &Natural) -> Option<Self> {
        if !n.is_odd() || n.bit_length() < 2 {
            return None;
        }
        let n = n.limbs_exact(n.bit_length().div_ceil(64));
        let mut power = Residue::zero(n.len());
        power.0[0] = 1;
        doublings(&mut power.0, &n);
        let one = power.clone();
        doublings(&mut power.0, &n);
        Some(Self {
            minus_inverse: limbs::minus_inverse(n[0]),
            n,
            one,
            r_squared: power,
        })
    }

    /// The residue of a number of any length, in time that depends on its length only.
    pub(crate) fn residue(&self, value: &Natural) -> Residue {
        let k = self.n.len();
        let mut work = self.workspace();
        let mut sum = Residue::zero(k);
        let mut chunk_residue = Residue::zero(k);
        for chunk in value.limbs().chunks(k).rev() {
            let mut chunk = chunk.to_vec();
            chunk.resize(k, 0);
            self.multiply_assign(&mut sum, &self.r_squared, &mut work);
            // The product allows one factor up to 2^(64k), so the chunk need not be reduced.
            self.multiply_into(&mut chunk_residue.0, &chunk, &self.r_squared.0, &mut work);
            self.add_assign(&mut sum.0, &chunk_residue.0);
            chunk.zeroize();
        }
        sum
    }

    /// The number between 0 and n − 1.
    pub(crate) fn natural(&self, x: &Residue) -> Natural {
        let mut plain_one = Residue::zero(self.n.len());
        plain_one.0[0] = 1;
        Natural::from_limbs(&self.multiply(x, &plain_one).0)
    }

    /// `x − y`.
    pub(crate) fn subtract(&self, x: &Residue, y: &Residue) -> Residue {
        let mut out = x.clone();
        let borrow = limbs::subtract(&mut out.0, &y.0);
        limbs::add_masked(&mut out.0, &self.n, limbs::mask_from_bit(borrow));
        out
    }

    pub(super) fn add_assign(&self, x: &mut [u64], y: &[u64]) {
        let carry = limbs::add(x, y, 0);
        limbs::subtract_if_fits(x, carry, &self.n, 0);
    }
}

/// `x·2^(64k)` modulo n by doubling: slow, simple, and the same time for every secret n.
fn doublings(x: &mut [u64], n: &[u64]) {
    for _ in 0..64 * n.len() {
        let out = limbs::double(x);
        limbs::subtract_if_fits(x, out, n, 0);
    }
}

impl Ring for Modulus {
    fn width(&self) -> usize {
        self.n.len()
    }

    fn base_limbs(&self) -> usize {
        self.n.len()
    }

    fn one(&self) -> &Residue {
        &self.one
    }

    fn multiply_into(&self, out: &mut [u64], x: &[u64], y: &[u64], work: &mut Workspace) {
        work.product.fill(0);
        limbs::add_product(&mut work.product, x, y);
        self.finish(out, work);
    }

    fn square_into(&self, out: &mut [u64], x: &[u64], work: &mut Workspace) {
        limbs::square(&mut work.product, x);
        self.finish(out, work);
    }
}

impl Modulus {
    fn finish(&self, out: &mut [u64], work: &mut Workspace) {
        let carry = limbs::reduce(
            &mut work.product,
            &mut work.quotient,
            &self.n,
            self.minus_inverse,
        );
        out.copy_from_slice(&work.product[self.n.len()..]);
        limbs::subtract_if_fits(out, carry, &self.n, 0);
    }
}
