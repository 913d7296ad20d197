//! Products of powers that share their squarings.

use super::limbs;
use super::ring::{Residue, Ring, Workspace, bit_length};
use rayon::prelude::*;
use zeroize::Zeroizing;

/// A base and its exponent, least significant limb first.
pub(crate) type Term<'a> = (&'a Residue, &'a [u64]);

/// Bits of an index into a table of the constant-time method: every entry is read at each step, so
/// that a larger table does not pay.
const INDEX_BITS: usize = 5;
/// Terms treated together: more would not fit a core's cache with their tables.
const GROUP: usize = 64;

/// Π baseᵢ^exponentᵢ in time that depends on `exponent_bits` and the number of terms only.
///
/// Straus' method: a table of products of small powers for every few bases, one row of squarings for
/// all. Groups of terms go to all cores.
pub(crate) fn product_of_powers<R: Ring>(
    ring: &R,
    terms: &[Term<'_>],
    exponent_bits: usize,
) -> Residue {
    combine(ring, terms, GROUP, |group| {
        straus(ring, group, exponent_bits)
    })
}

/// Π baseᵢ^exponentᵢ for exponents that everybody may know.
///
/// Pippenger's method: for each digit the bases are sorted into buckets, whose weighted product
/// takes two multiplications a bucket. Few terms go to Straus' method, which is faster for them.
pub(crate) fn product_of_powers_vartime<R: Ring>(ring: &R, terms: &[Term<'_>]) -> Residue {
    let bits = terms.iter().map(|(_, e)| bit_length(e)).max().unwrap_or(0);
    let share = terms.len().div_ceil(rayon::current_num_threads()).max(1);
    let window = bucket_window(share, bits);
    if bucket_cost(share, bits, window) >= straus_cost(share, bits) {
        return product_of_powers(ring, terms, bits);
    }
    combine(ring, terms, share, |part| {
        pippenger(ring, part, bits, window)
    })
}

fn combine<R: Ring>(
    ring: &R,
    terms: &[Term<'_>],
    size: usize,
    part: impl Fn(&[Term<'_>]) -> Residue + Send + Sync,
) -> Residue {
    let parts: Vec<Residue> = terms.par_chunks(size).map(part).collect();
    let mut work = ring.workspace();
    let mut product = ring.one().clone();
    for part in &parts {
        ring.multiply_assign(&mut product, part, &mut work);
    }
    product
}

fn straus<R: Ring>(ring: &R, terms: &[Term<'_>], bits: usize) -> Residue {
    let Joint { bases, window } = Joint::best(terms.len(), bits);
    let mut work = ring.workspace();
    let tables: Vec<Zeroizing<Vec<u64>>> = terms
        .chunks(bases)
        .map(|together| joint_powers(ring, together, window, &mut work))
        .collect();
    let mut result = ring.one().clone();
    let mut factor = Residue::zero(ring.width());
    let digits = bits.div_ceil(window);
    for position in (0..digits).rev() {
        if position + 1 != digits {
            (0..window).for_each(|_| ring.square_assign(&mut result, &mut work));
        }
        for (together, table) in terms.chunks(bases).zip(&tables) {
            let digit =
                |(_, exponent): &Term<'_>| limbs::bits_at(exponent, position * window, window);
            let index = together.iter().rev();
            let index = index.fold(0, |index, term| index << window | digit(term));
            limbs::select(&mut factor.0, table, index);
            ring.multiply_assign(&mut result, &factor, &mut work);
        }
    }
    result
}

/// How many bases share a table, and how many bits of each exponent choose from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Joint {
    bases: usize,
    window: usize,
}

impl Joint {
    /// What makes the fewest products.
    fn best(terms: usize, bits: usize) -> Self {
        let ways = (1..=INDEX_BITS).flat_map(|bases| {
            let windows = 1..=INDEX_BITS / bases;
            windows.map(move |window| Self { bases, window })
        });
        let one = Self {
            bases: 1,
            window: 1,
        };
        ways.min_by_key(|way| way.cost(terms, bits)).unwrap_or(one)
    }

    fn cost(self, terms: usize, bits: usize) -> usize {
        let table = 1usize << (self.bases * self.window);
        terms.div_ceil(self.bases) * (table + bits.div_ceil(self.window)) + bits
    }
}

/// Π baseᵢ^digitᵢ for all digits of so many bits, the first base's digit lowest in the index.
fn joint_powers<R: Ring>(
    ring: &R,
    bases: &[Term<'_>],
    window: usize,
    work: &mut Workspace,
) -> Zeroizing<Vec<u64>> {
    let width = ring.width();
    let mut table = Zeroizing::new(vec![0; width << (bases.len() * window)]);
    table[..width].copy_from_slice(&ring.one().0);
    for index in 1..1usize << (bases.len() * window) {
        let last = index.ilog2() as usize / window;
        let (before, after) = table.split_at_mut(index * width);
        let less = index - (1 << (last * window));
        let (entry, base) = (&mut after[..width], &bases[last].0.0);
        match less {
            0 => entry.copy_from_slice(base),
            less => ring.multiply_into(entry, &before[less * width..][..width], base, work),
        }
    }
    table
}

fn pippenger<R: Ring>(ring: &R, terms: &[Term<'_>], bits: usize, window: usize) -> Residue {
    let mut work = ring.workspace();
    let mut result = ring.one().clone();
    let digits = bits.div_ceil(window);
    for position in (0..digits).rev() {
        if position + 1 != digits {
            (0..window).for_each(|_| ring.square_assign(&mut result, &mut work));
        }
        let mut buckets: Vec<Option<Residue>> = vec![None; 1 << window];
        for (base, exponent) in terms {
            let digit = limbs::bits_at(exponent, position * window, window);
            match &mut buckets[digit] {
                _ if digit == 0 => {}
                Some(bucket) => ring.multiply_assign(bucket, base, &mut work),
                empty => *empty = Some((*base).clone()),
            }
        }
        // Π bucket_d^d as the product of the running products from the top.
        let mut running = ring.one().clone();
        for bucket in buckets[1..].iter().rev() {
            if let Some(bucket) = bucket {
                ring.multiply_assign(&mut running, bucket, &mut work);
            }
            ring.multiply_assign(&mut result, &running, &mut work);
        }
    }
    result
}

fn bucket_window(terms: usize, bits: usize) -> usize {
    (1..=14)
        .min_by_key(|&window| bucket_cost(terms, bits, window))
        .unwrap_or(1)
}

fn bucket_cost(terms: usize, bits: usize, window: usize) -> usize {
    bits.div_ceil(window) * (terms + (2 << window)) + bits
}

fn straus_cost(terms: usize, bits: usize) -> usize {
    let groups = terms.div_ceil(GROUP).max(1);
    Joint::best(terms, bits).cost(terms, bits) + bits * (groups - 1)
}
