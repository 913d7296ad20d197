//! Powers, written once for every ring with a Montgomery product.
//!
//! [`Modulus`](super::modulus::Modulus) is the ring of integers modulo n,
//! [`SquareModulus`](super::square::SquareModulus) the one modulo n².

use super::limbs;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// An element of a ring in the ring's own (Montgomery) form. It is reduced, so equal elements
/// have equal limbs. Erased when dropped: it may belong to a secret.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Residue(pub(super) Box<[u64]>);

impl Residue {
    pub(super) fn zero(width: usize) -> Self {
        Self(vec![0; width].into_boxed_slice())
    }

    /// Becomes `other` if the bit is set; the time does not tell.
    pub(crate) fn select_if(&mut self, other: &Self, bit: bool) {
        limbs::select_if(&mut self.0, &other.0, u64::from(bit));
    }
}

/// Memory for intermediate results, so that a product allocates nothing. Erased when dropped.
pub(crate) struct Workspace {
    /// A double-width product.
    pub(super) product: Vec<u64>,
    /// The quotient of a reduction.
    pub(super) quotient: Vec<u64>,
    /// One element.
    pub(super) element: Vec<u64>,
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.product.zeroize();
        self.quotient.zeroize();
        self.element.zeroize();
    }
}

/// A commutative ring whose product takes the same time for all elements.
pub(crate) trait Ring: Sync {
    /// Limbs of an element.
    fn width(&self) -> usize;

    /// Limbs of the number the arithmetic is built on: n, also for the ring modulo n².
    fn base_limbs(&self) -> usize;

    /// The element 1.
    fn one(&self) -> &Residue;

    /// `x·y` to `out`.
    fn multiply_into(&self, out: &mut [u64], x: &[u64], y: &[u64], work: &mut Workspace);

    /// `x²` to `out`.
    fn square_into(&self, out: &mut [u64], x: &[u64], work: &mut Workspace);

    /// Memory for products of this ring.
    fn workspace(&self) -> Workspace {
        let k = self.base_limbs();
        Workspace {
            product: vec![0; 2 * k],
            quotient: vec![0; k],
            element: vec![0; self.width()],
        }
    }

    /// `x *= y`.
    fn multiply_assign(&self, x: &mut Residue, y: &Residue, work: &mut Workspace) {
        self.multiply_limbs_assign(x, &y.0, work);
    }

    /// `x *= y` for an element that lies in a table.
    fn multiply_limbs_assign(&self, x: &mut Residue, y: &[u64], work: &mut Workspace) {
        let mut out = std::mem::take(&mut work.element);
        self.multiply_into(&mut out, &x.0, y, work);
        x.0.copy_from_slice(&out);
        work.element = out;
    }

    /// `x = x²`.
    fn square_assign(&self, x: &mut Residue, work: &mut Workspace) {
        let mut out = std::mem::take(&mut work.element);
        self.square_into(&mut out, &x.0, work);
        x.0.copy_from_slice(&out);
        work.element = out;
    }

    /// `x·y`.
    fn multiply(&self, x: &Residue, y: &Residue) -> Residue {
        let mut out = Residue::zero(self.width());
        self.multiply_into(&mut out.0, &x.0, &y.0, &mut self.workspace());
        out
    }

    /// `base^exponent`, in time that depends on `exponent_bits` only.
    fn power(&self, base: &Residue, exponent: &[u64], exponent_bits: usize) -> Residue {
        // Every entry is read at each step, so a larger table does not pay.
        let window = window_bits(exponent_bits).min(5);
        let mut work = self.workspace();
        let mut table = powers(self, base, 1 << window, &mut work);
        let mut result = self.one().clone();
        let mut factor = Residue::zero(self.width());
        for position in (0..exponent_bits.div_ceil(window)).rev() {
            if position + 1 != exponent_bits.div_ceil(window) {
                (0..window).for_each(|_| self.square_assign(&mut result, &mut work));
            }
            let digit = limbs::bits_at(exponent, position * window, window);
            limbs::select(&mut factor.0, &table, digit);
            self.multiply_assign(&mut result, &factor, &mut work);
        }
        table.zeroize();
        result
    }

    /// `base^exponent` for an exponent that everybody may know; the base may be secret.
    fn power_vartime(&self, base: &Residue, exponent: &[u64]) -> Residue {
        let bits = bit_length(exponent);
        let window = window_bits(bits);
        let mut work = self.workspace();
        let mut table = powers(self, base, 1 << window, &mut work);
        let mut result = self.one().clone();
        let width = self.width();
        for position in (0..bits.div_ceil(window)).rev() {
            if position + 1 != bits.div_ceil(window) {
                (0..window).for_each(|_| self.square_assign(&mut result, &mut work));
            }
            let digit = limbs::bits_at(exponent, position * window, window);
            if digit != 0 {
                let entry = &table[digit * width..(digit + 1) * width];
                self.multiply_limbs_assign(&mut result, entry, &mut work);
            }
        }
        table.zeroize();
        result
    }
}

/// 1, base, base², … as one row of limbs.
pub(super) fn powers<R: Ring + ?Sized>(
    ring: &R,
    base: &Residue,
    count: usize,
    work: &mut Workspace,
) -> Vec<u64> {
    let width = ring.width();
    let mut table = vec![0; count * width];
    table[..width].copy_from_slice(&ring.one().0);
    for i in 1..count {
        let (before, after) = table.split_at_mut(i * width);
        ring.multiply_into(
            &mut after[..width],
            &before[(i - 1) * width..],
            &base.0,
            work,
        );
    }
    table
}

/// Bits up to the highest one.
pub(super) fn bit_length(limbs: &[u64]) -> usize {
    limbs
        .iter()
        .rposition(|&limb| limb != 0)
        .map_or(0, |i| 64 * (i + 1) - limbs[i].leading_zeros() as usize)
}

/// The window that makes the fewest products for an exponent of this length.
fn window_bits(exponent_bits: usize) -> usize {
    match exponent_bits {
        0..=16 => 1,
        17..=40 => 3,
        41..=240 => 4,
        241..=1200 => 5,
        _ => 6,
    }
}
