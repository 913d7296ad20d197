//! Products of powers that share their squarings.

use super::limbs;
use super::ring::{Residue, Ring, bit_length, powers};
use rayon::prelude::*;

/// A base and its exponent, least significant limb first.
pub(crate) type Term<'a> = (&'a Residue, &'a [u64]);

/// Window of the constant-time method.
const WINDOW: usize = 4;
/// Terms treated together: more would not fit a core's cache with their tables.
const GROUP: usize = 64;

/// Π baseᵢ^exponentᵢ in time that depends on `exponent_bits` and the number of terms only.
///
/// Straus' method: a table of small powers for each base, one row of squarings for all. Groups of
/// terms go to all cores.
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
    let mut work = ring.workspace();
    let tables: Vec<Vec<u64>> = terms
        .iter()
        .map(|(base, _)| powers(ring, base, 1 << WINDOW, &mut work))
        .collect();
    let mut result = ring.one().clone();
    let mut factor = Residue::zero(ring.width());
    let digits = bits.div_ceil(WINDOW);
    for position in (0..digits).rev() {
        if position + 1 != digits {
            (0..WINDOW).for_each(|_| ring.square_assign(&mut result, &mut work));
        }
        for ((_, exponent), table) in terms.iter().zip(&tables) {
            let digit = limbs::bits_at(exponent, position * WINDOW, WINDOW);
            limbs::select(&mut factor.0, table, digit);
            ring.multiply_assign(&mut result, &factor, &mut work);
        }
    }
    result
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
    terms * ((1 << WINDOW) + bits.div_ceil(WINDOW)) + bits * terms.div_ceil(GROUP)
}
