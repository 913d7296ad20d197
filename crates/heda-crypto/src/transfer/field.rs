//! The small field F_{2^f}, alone and bit-sliced.
//!
//! An element is a polynomial in α over F_2, bit j the coefficient of α^j. Many elements together
//! are *planes*: plane j holds coefficient j of each. Only products with α and with one secret
//! element are ever needed on planes, and they are sums of planes.

use super::TransferError;
use zeroize::{Zeroize, Zeroizing};

/// The widest field has 2^8 elements.
pub(super) const MAX_BITS: usize = 8;
/// Bits of a row that are hashed.
pub(super) const ROW_BITS: usize = 128;

/// Irreducible polynomials over F_2 of degree 2 to 8, without the leading term.
const MODULI: [u8; MAX_BITS - 1] = [0b11, 0b11, 0b11, 0b101, 0b11, 0b11, 0b1_1011];

/// Width f of the field, which sets the balance of a session: more bits, fewer bytes, more work.
///
/// A session has ⌈128/f⌉ trees of 2^f leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldBits(u8);

impl FieldBits {
    /// 22 trees of 64 leaves.
    pub const DEFAULT: Self = Self(6);

    /// A width from 2 to 8.
    pub fn new(bits: u32) -> Result<Self, TransferError> {
        match bits {
            2..=8 => Ok(Self(bits as u8)),
            _ => Err(TransferError::FieldBits(bits)),
        }
    }

    /// f.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }

    /// Elements of the field, and leaves of a tree.
    pub fn elements(self) -> usize {
        1 << self.0
    }

    /// Trees of a session: the length of the repetition code.
    pub fn trees(self) -> usize {
        ROW_BITS.div_ceil(self.get())
    }

    /// Base transfers of the setup, and bits of Δ: at least 128.
    pub fn base_transfers(self) -> usize {
        self.trees() * self.get()
    }

    fn modulus(self) -> u8 {
        MODULI[self.get() - 2]
    }

    /// The powers of α whose sum is α^f.
    pub(super) fn modulus_terms(self) -> impl Iterator<Item = usize> {
        (0..self.get()).filter(move |term| self.modulus() >> term & 1 == 1)
    }

    /// a·b, in a time that does not depend on either.
    pub(super) fn multiply(self, a: u8, b: u8) -> u8 {
        let top = self.get() - 1;
        (0..self.get()).rev().fold(0u8, |product, bit| {
            let carry = (product >> top & 1).wrapping_neg() & self.modulus();
            let shifted = (product << 1) & ((1u16 << self.0) - 1) as u8;
            shifted ^ carry ^ ((b >> bit & 1).wrapping_neg() & a)
        })
    }

    /// Multiplies elements by α. `planes` are f runs of equal length, plane after plane.
    pub(super) fn times_alpha(self, planes: &mut [u128]) {
        let width = planes.len() / self.get();
        planes.rotate_right(width);
        // The highest plane is now the lowest, as the constant term of every modulus demands.
        let (lowest, others) = planes.split_at_mut(width);
        for (number, plane) in others.chunks_exact_mut(width).enumerate() {
            if self.modulus() >> (number + 1) & 1 == 1 {
                plane.iter_mut().zip(&*lowest).for_each(|(p, l)| *p ^= l);
            }
        }
    }

    /// Σ_j α^j·s_j by Horner's rule: `terms(j, planes)` adds s_j to f planes of one word each.
    pub(super) fn horner(self, planes: &mut [u128], terms: impl Fn(usize, &mut [u128])) {
        for power in (0..self.get()).rev() {
            self.times_alpha(planes);
            terms(power, planes);
        }
    }

    /// `element`·x, where `x` has one plane (an element of F_2 in each place) or f planes.
    pub(super) fn scale(self, element: u8, x: &[u128]) -> [u128; MAX_BITS] {
        let mut product = [0; MAX_BITS];
        self.horner(&mut product[..self.get()], |power, planes| {
            let mask = bit_mask(element, power);
            planes.iter_mut().zip(x).for_each(|(p, x)| *p ^= x & mask);
        });
        product
    }
}

/// The multiples y·Δ of every y, as rows: the bits of y·Δ_0, then of y·Δ_1, …, cut at 128.
pub(super) struct Multiples(Zeroizing<[u128; 1 << MAX_BITS]>);

impl Multiples {
    pub(super) fn new(field: FieldBits, delta: &[u8]) -> Self {
        let multiple = |y: usize| {
            let parts = delta.iter().enumerate();
            parts.fold(0, |row, (tree, part)| {
                row | u128::from(field.multiply(*part, y as u8)) << (tree * field.get())
            })
        };
        let mut rows = Zeroizing::new([0; 1 << MAX_BITS]);
        for (y, row) in rows[..field.elements()].iter_mut().enumerate() {
            *row = multiple(y);
        }
        Self(rows)
    }

    /// All of them, by y, with zeros after the last. What is public may be used as a place here, and
    /// nothing else.
    pub(super) fn rows(&self) -> &[u128; 1 << MAX_BITS] {
        &self.0
    }
}

/// All ones if bit `bit` of `value` is one, else zero.
pub(super) fn bit_mask(value: u8, bit: usize) -> u128 {
    u128::from(value >> bit & 1).wrapping_neg()
}

/// Elements from their planes: the element in place n gets bit n of every plane.
pub(super) fn elements(planes: &[u128], out: &mut [u8]) {
    for (byte, out) in out.chunks_mut(8).enumerate() {
        let mut square = planes
            .iter()
            .enumerate()
            .fold(0, |square, (number, plane)| {
                square | u64::from((plane >> (8 * byte)) as u8) << (8 * number)
            });
        for (shift, mask) in [
            (7, 0x00aa_00aa_00aa_00aa),
            (14, 0x0000_cccc_0000_cccc),
            (28, 0x0000_0000_f0f0_f0f0),
        ] {
            let swap = (square ^ square >> shift) & mask;
            square ^= swap ^ swap << shift;
        }
        out.copy_from_slice(&square.to_le_bytes()[..out.len()]);
        square.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_zeros_after_the_last_multiple() {
        for bits in 2..=MAX_BITS as u32 {
            let field = FieldBits::new(bits).unwrap();
            let multiples = Multiples::new(field, &vec![1; field.trees()]);
            let (rows, beyond) = multiples.rows().split_at(field.elements());
            assert!(rows[1..].iter().all(|row| *row != 0));
            assert!(beyond.iter().all(|row| *row == 0));
        }
    }

    /// Schoolbook product of polynomials, then division.
    fn product(field: FieldBits, a: u8, b: u8) -> u8 {
        let f = field.get();
        let modulus = 1u32 << f | u32::from(field.modulus());
        let mut long = (0..f).fold(0u32, |sum, bit| {
            sum ^ if b >> bit & 1 == 1 {
                u32::from(a) << bit
            } else {
                0
            }
        });
        for bit in (f..2 * f).rev() {
            if long >> bit & 1 == 1 {
                long ^= modulus << (bit - f);
            }
        }
        long as u8
    }

    #[test]
    fn every_width_is_a_field() {
        for bits in 2..=8 {
            let field = FieldBits::new(bits).unwrap();
            for a in 0..field.elements() {
                let mut seen = vec![false; field.elements()];
                for b in 0..field.elements() {
                    let got = field.multiply(a as u8, b as u8);
                    assert_eq!(got, product(field, a as u8, b as u8));
                    seen[usize::from(got)] = true;
                }
                // A product with a fixed element that is not zero is onto: there is an inverse.
                assert_eq!(seen.iter().all(|s| *s), a != 0);
            }
            assert!(field.base_transfers() >= 128 && field.base_transfers() < 128 + field.get());
        }
        assert!(FieldBits::new(1).is_err() && FieldBits::new(9).is_err());
    }

    #[test]
    fn planes_agree_with_single_elements() {
        for bits in 2..=8 {
            let field = FieldBits::new(bits).unwrap();
            let f = field.get();
            let values: Vec<u8> = (0..128)
                .map(|n| (n * 37 % field.elements()) as u8)
                .collect();
            let mut planes = vec![0u128; f];
            for (place, value) in values.iter().enumerate() {
                for (bit, plane) in planes.iter_mut().enumerate() {
                    *plane |= u128::from(value >> bit & 1) << place;
                }
            }
            let read = |planes: &[u128]| {
                let mut out = [0; 128];
                elements(planes, &mut out);
                out
            };
            assert_eq!(read(&planes)[..], values[..]);
            for by in 0..field.elements() as u8 {
                let scaled = field.scale(by, &planes);
                for (got, value) in read(&scaled[..f]).iter().zip(&values) {
                    assert_eq!(*got, field.multiply(by, *value));
                }
                let ones = field.scale(by, &[u128::MAX]);
                assert_eq!(read(&ones[..f]), [by; 128]);
            }
        }
    }

    #[test]
    fn multiples_of_a_secret_are_cut_at_128_bits() {
        let field = FieldBits::DEFAULT;
        let delta: Vec<u8> = (1..=22).collect();
        let multiples = Multiples::new(field, &delta);
        let multiples = multiples.rows();
        assert_eq!(multiples[0], 0);
        assert!(multiples[64..].iter().all(|row| *row == 0));
        for (y, row) in multiples[..64].iter().enumerate() {
            for (tree, part) in delta.iter().enumerate() {
                let kept = if tree == 21 { 0b11 } else { 0b11_1111 };
                let got = (row >> (6 * tree)) as u8 & 0b11_1111;
                assert_eq!(got, field.multiply(*part, y as u8) & kept);
            }
        }
    }
}
