//! The number-theoretic transform of Z_p[X]/(X^n + 1), n a power of two.
//!
//! With r a root of X^n + 1 it evaluates a polynomial at all odd powers of r; products become
//! pointwise. Powers of r are merged into the butterflies and lie in the order in which they are
//! used (Longa and Naehrig, "Speeding up the number theoretic transform for faster ideal
//! lattice-based cryptography", 2016). Residues stay unreduced between layers: below 4p forward
//! and below 2p backward, which fits 64 bits because p is below 2^62 (Harvey, "Faster arithmetic
//! for number-theoretic transforms", 2014).
//!
//! The same instructions run whatever the residues are: secret keys are transformed here.

use super::prime::{Factor, Prime};

/// Tables for one prime and one degree.
pub(super) struct Transform {
    prime: Prime,
    /// r to the reversed bits of the index.
    forward: Vec<Factor>,
    /// The inverses of `forward`.
    backward: Vec<Factor>,
    /// 1/n and the last inverse root divided by n: the last layer divides by n on the way.
    last: [Factor; 2],
}

impl Transform {
    /// Tables for a degree, which must be a power of two from 2 on; `None` if the prime has no
    /// root of X^n + 1.
    pub(super) fn new(prime: Prime, degree: usize) -> Option<Self> {
        let root = root(&prime, degree)?;
        let inverse_degree = prime.inverse(degree as u64)?;
        let inverse_root = prime.inverse(root)?;
        let backward = powers(&prime, inverse_root, degree);
        let last_root = prime.product(backward.get(1)?.value, inverse_degree);
        Some(Self {
            prime,
            forward: powers(&prime, root, degree),
            backward,
            last: [inverse_degree, last_root].map(|value| prime.factor(value)),
        })
    }

    /// Coefficients to values, both reduced.
    pub(super) fn forward(&self, residues: &mut [u64]) {
        let prime = self.prime;
        let mut half = residues.len() / 2;
        while half >= 1 {
            let parts = residues.len() / (2 * half);
            let roots = &self.forward[parts..2 * parts];
            let butterfly = |x: &mut u64, y: &mut u64, root| {
                let [sum, product] = [prime.twice(*x), prime.lazy_times(*y, root)];
                *x = sum + product;
                *y = sum + 2 * prime.value() - product;
            };
            layer(residues, half, roots, butterfly);
            half /= 2;
        }
        for residue in residues {
            *residue = prime.once(prime.twice(*residue));
        }
    }

    /// Values back to coefficients, both reduced.
    pub(super) fn backward(&self, residues: &mut [u64]) {
        let prime = self.prime;
        let mut half = 1;
        while half < residues.len() / 2 {
            let parts = residues.len() / (2 * half);
            let roots = &self.backward[parts..2 * parts];
            let butterfly = |x: &mut u64, y: &mut u64, root| {
                let [sum, difference] = [*x + *y, *x + 2 * prime.value() - *y];
                *x = prime.twice(sum);
                *y = prime.lazy_times(difference, root);
            };
            layer(residues, half, roots, butterfly);
            half *= 2;
        }
        let [scale, scaled_root] = self.last;
        let (left, right) = residues.split_at_mut(half);
        for (x, y) in left.iter_mut().zip(right) {
            let [sum, difference] = [*x + *y, *x + 2 * prime.value() - *y];
            *x = prime.times(sum, scale);
            *y = prime.times(difference, scaled_root);
        }
    }
}

/// One layer: the two halves of each part meet in butterflies with the root of the part.
///
/// The short layers are spelt out, so that the compiler unrolls their loops.
#[inline(always)]
fn layer(
    residues: &mut [u64],
    half: usize,
    roots: &[Factor],
    butterfly: impl Fn(&mut u64, &mut u64, Factor) + Copy,
) {
    match half {
        1 => layer_of(residues, 1, roots, butterfly),
        2 => layer_of(residues, 2, roots, butterfly),
        4 => layer_of(residues, 4, roots, butterfly),
        _ => layer_of(residues, half, roots, butterfly),
    }
}

#[inline(always)]
fn layer_of(
    residues: &mut [u64],
    half: usize,
    roots: &[Factor],
    butterfly: impl Fn(&mut u64, &mut u64, Factor),
) {
    for (part, root) in residues.chunks_exact_mut(2 * half).zip(roots) {
        let (left, right) = part.split_at_mut(half);
        for (x, y) in left.iter_mut().zip(right) {
            butterfly(x, y, *root);
        }
    }
}

/// A root of X^n + 1: the smallest number that is no square, raised to (p − 1)/2n.
///
/// Everybody must find the same one, because seeds expand to transformed values.
fn root(prime: &Prime, degree: usize) -> Option<u64> {
    let order = 2 * degree as u64;
    let minus_one = prime.value() - 1;
    if !degree.is_power_of_two() || degree < 2 || !minus_one.is_multiple_of(order) {
        return None;
    }
    (2..)
        .map(|base| prime.power(base, minus_one / order))
        .find(|root| prime.power(*root, degree as u64) == minus_one)
}

/// Entry i is the root to the power of i with its bits reversed.
fn powers(prime: &Prime, root: u64, degree: usize) -> Vec<Factor> {
    let successive = std::iter::successors(Some(1), |power| Some(prime.product(*power, root)));
    let successive: Vec<u64> = successive.take(degree).collect();
    let spare_bits = usize::BITS - degree.trailing_zeros();
    let entry = |i: usize| prime.factor(successive[i.reverse_bits() >> spare_bits]);
    (0..degree).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::parameters::{DEGREE, PRIMES};
    use crate::random::Randomness;
    use rand_core::Rng;

    fn prime(index: usize) -> Prime {
        Prime::new(PRIMES[index]).unwrap()
    }

    /// Shaped polynomials (all 0, all 1, all p − 1, a single p − 1 at either end) and random ones.
    fn shaped(prime: &Prime, degree: usize) -> Vec<Vec<u64>> {
        let largest = prime.value() - 1;
        let single = |at| (0..degree).map(|i| largest * u64::from(i == at)).collect();
        let mut rng = Randomness::seeded(9).fork("transform", 0).unwrap();
        let mut random = || {
            (0..degree)
                .map(|_| rng.next_u64() % prime.value())
                .collect()
        };
        vec![
            vec![0; degree],
            vec![1; degree],
            vec![largest; degree],
            single(0),
            single(degree - 1),
            random(),
            random(),
        ]
    }

    /// The product modulo X^n + 1 by its definition.
    fn schoolbook(prime: &Prime, left: &[u64], right: &[u64]) -> Vec<u64> {
        let degree = left.len();
        let mut product = vec![0; degree];
        for (i, a) in left.iter().enumerate().filter(|(_, a)| **a != 0) {
            for (j, b) in right.iter().enumerate().filter(|(_, b)| **b != 0) {
                let term = prime.product(*a, *b);
                let at = &mut product[(i + j) % degree];
                *at = match i + j < degree {
                    true => prime.add(*at, term),
                    false => prime.subtract(*at, term),
                };
            }
        }
        product
    }

    fn by_transform(transform: &Transform, left: &[u64], right: &[u64]) -> Vec<u64> {
        let [mut left, mut right] = [left.to_vec(), right.to_vec()];
        transform.forward(&mut left);
        transform.forward(&mut right);
        for (x, y) in left.iter_mut().zip(right) {
            *x = transform.prime.product(*x, y);
        }
        transform.backward(&mut left);
        left
    }

    #[test]
    fn products_are_negacyclic_at_small_degrees() {
        for (index, degree) in (0..3).flat_map(|i| [2, 4, 8, 16, 32, 64].map(|d| (i, d))) {
            let prime = prime(index);
            let transform = Transform::new(prime, degree).unwrap();
            let cases = shaped(&prime, degree);
            for (left, right) in cases.iter().flat_map(|l| cases.iter().map(move |r| (l, r))) {
                let expected = schoolbook(&prime, left, right);
                assert_eq!(by_transform(&transform, left, right), expected, "{degree}");
            }
        }
    }

    #[test]
    fn sparse_products_are_negacyclic_at_the_full_degree() {
        let mut rng = Randomness::seeded(9).fork("sparse", 0).unwrap();
        for prime in [0, 1, 2].map(prime) {
            let transform = Transform::new(prime, DEGREE).unwrap();
            let mut sparse = || {
                let mut poly = vec![0; DEGREE];
                for _ in 0..50 {
                    poly[rng.next_u64() as usize % DEGREE] = rng.next_u64() % prime.value();
                }
                poly
            };
            let [left, right] = [sparse(), sparse()];
            let expected = schoolbook(&prime, &left, &right);
            assert_eq!(by_transform(&transform, &left, &right), expected);
        }
    }

    #[test]
    fn values_are_evaluations_at_odd_powers_of_the_root() {
        let (prime, degree) = (prime(0), 16);
        let transform = Transform::new(prime, degree).unwrap();
        let root = root(&prime, degree).unwrap();
        for poly in shaped(&prime, degree) {
            let evaluate = |odd: usize| {
                let at = prime.power(root, odd as u64);
                let horner = |sum, c: &u64| prime.add(prime.product(sum, at), *c);
                poly.iter().rev().fold(0, horner)
            };
            let mut expected: Vec<u64> = (0..degree).map(|i| evaluate(2 * i + 1)).collect();
            let mut found = poly.clone();
            transform.forward(&mut found);
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn backward_undoes_forward_and_both_reduce() {
        for prime in [0, 1, 2].map(prime) {
            let transform = Transform::new(prime, DEGREE).unwrap();
            for poly in shaped(&prime, DEGREE) {
                let mut residues = poly.clone();
                transform.forward(&mut residues);
                assert!(residues.iter().all(|r| prime.contains(*r)));
                transform.backward(&mut residues);
                assert!(residues == poly);
                // The other way round: any values have a polynomial.
                transform.backward(&mut residues);
                assert!(residues.iter().all(|r| prime.contains(*r)));
                transform.forward(&mut residues);
                assert!(residues == poly);
            }
        }
    }

    #[test]
    fn degrees_without_a_root_are_refused() {
        for degree in [0, 1, 3, 6, 1 << 40] {
            assert!(Transform::new(prime(0), degree).is_none(), "{degree}");
        }
    }
}
