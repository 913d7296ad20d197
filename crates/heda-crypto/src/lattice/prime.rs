//! Arithmetic modulo one of the primes, all of it just below 2^62.
//!
//! Secrets pass through here, so nothing branches on a residue: the smaller of x and x − p, which
//! wraps when x is below p, is the reduced one of the two.

use super::parameters::PRIME_BITS;

/// Bases that decide primality of every number below 2^81 (Sorenson and Webster 2015).
const WITNESSES: [u64; 13] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41];

/// A prime p below 2^62 by less than 2^20.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prime {
    value: u64,
    /// 2^62 − p.
    complement: u64,
}

/// A constant factor with floor(2^64·factor/p), which makes products with it cheap (Shoup).
#[derive(Debug, Clone, Copy)]
pub(super) struct Factor {
    pub(super) value: u64,
    quotient: u64,
}

impl Prime {
    /// Takes only primes of the promised size.
    pub(super) fn new(value: u64) -> Option<Self> {
        let complement = (1u64 << PRIME_BITS).checked_sub(value)?;
        let prime = Self { value, complement };
        (value % 2 == 1 && complement < 1 << 20 && prime.is_prime()).then_some(prime)
    }

    /// Miller–Rabin with bases that leave no doubt. The arithmetic is right for any odd number.
    fn is_prime(&self) -> bool {
        let even = self.value - 1;
        let twos = even.trailing_zeros();
        WITNESSES.iter().all(|base| {
            let start = self.power(*base, even >> twos);
            let squares = std::iter::successors(Some(start), |x| Some(self.product(*x, *x)));
            start == 1 || squares.take(twos as usize).any(|x| x == even)
        })
    }

    pub(super) fn value(&self) -> u64 {
        self.value
    }

    pub(super) fn contains(&self, residue: u64) -> bool {
        residue < self.value
    }

    /// Residue of a signed number that is smaller than the prime.
    pub(super) fn signed(&self, number: i64) -> u64 {
        number.wrapping_add(number.wrapping_shr(63) & self.value as i64) as u64
    }

    /// Residue of a 128-bit number: 2^64 is 4·complement and 2^62 is complement modulo the prime.
    pub(super) fn reduce(&self, number: u128) -> u64 {
        const LOW: u128 = (1 << PRIME_BITS) - 1;
        let [low, high] = [number as u64, (number >> 64) as u64];
        // Below 2^64 · 2^22 + 2^64, then below 2^62 + 2^25 · 2^20.
        let folded = u128::from(high) * u128::from(4 * self.complement) + u128::from(low);
        let rest = (folded & LOW) as u64 + (folded >> PRIME_BITS) as u64 * self.complement;
        self.once(rest)
    }

    /// Residue of a number below 2p.
    pub(super) fn once(&self, number: u64) -> u64 {
        number.min(number.wrapping_sub(self.value))
    }

    /// A number below 2p with the residue of a number below 4p.
    pub(super) fn twice(&self, number: u64) -> u64 {
        number.min(number.wrapping_sub(2 * self.value))
    }

    pub(super) fn add(&self, a: u64, b: u64) -> u64 {
        self.once(a + b)
    }

    pub(super) fn subtract(&self, a: u64, b: u64) -> u64 {
        self.once(a + self.value - b)
    }

    #[cfg(test)]
    pub(super) fn negate(&self, a: u64) -> u64 {
        self.once(self.value - a)
    }

    pub(super) fn product(&self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }

    /// A power of a residue; only for public numbers.
    pub(super) fn power(&self, base: u64, exponent: u64) -> u64 {
        (0..u64::BITS).rev().fold(1, |power, bit| {
            let square = self.product(power, power);
            match exponent >> bit & 1 {
                1 => self.product(square, base),
                _ => square,
            }
        })
    }

    /// The inverse of a number that is no multiple of the prime, by Fermat.
    pub(super) fn inverse(&self, number: u64) -> Option<u64> {
        let inverse = self.power(number % self.value, self.value - 2);
        (inverse != 0).then_some(inverse)
    }

    /// Prepares a residue that stays the same for many products.
    pub(super) fn factor(&self, value: u64) -> Factor {
        let quotient = ((u128::from(value) << 64) / u128::from(self.value)) as u64;
        Factor { value, quotient }
    }

    /// A number below 2p with the residue of `number` times `factor`, for any 64-bit number.
    ///
    /// The estimated quotient is the true one or one less, so that the remainder keeps at most
    /// one surplus prime.
    #[inline(always)]
    pub(super) fn lazy_times(&self, number: u64, factor: Factor) -> u64 {
        let estimate = (u128::from(number) * u128::from(factor.quotient)) >> 64;
        let product = number.wrapping_mul(factor.value);
        product.wrapping_sub((estimate as u64).wrapping_mul(self.value))
    }

    pub(super) fn times(&self, number: u64, factor: Factor) -> u64 {
        self.once(self.lazy_times(number, factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::parameters::PRIMES;

    fn primes() -> [Prime; 3] {
        PRIMES.map(|value| Prime::new(value).unwrap())
    }

    #[test]
    fn only_primes_of_the_promised_size_are_taken() {
        let largest = PRIMES[0];
        // The next numbers that are 1 modulo 2^14, above the largest prime, are composite.
        let next = (1..4).map(|i| largest + (i << 14));
        for refused in next.chain([0, 1, 3, largest - 1, largest - 2, 1 << 62, u64::MAX]) {
            assert!(Prime::new(refused).is_none(), "{refused}");
        }
    }

    #[test]
    fn reduction_is_right_at_the_bounds() {
        for prime in primes() {
            let p = u128::from(prime.value);
            let around = [0, p, 2 * p, p * p, u128::MAX - p];
            let around = around.map(|x| [x.wrapping_sub(1), x, x + 1]);
            let spread = (0..1000).map(|i| u128::MAX / 1009 * i + i);
            for number in around.into_iter().flatten().chain(spread) {
                assert_eq!(u128::from(prime.reduce(number)), number % p, "{number}");
            }
        }
    }

    #[test]
    fn sums_and_products_are_right_at_the_bounds() {
        for prime in primes() {
            let p = prime.value;
            let shaped = [0, 1, 2, p / 2, p / 2 + 1, p - 2, p - 1];
            for (a, b) in shaped.into_iter().flat_map(|a| shaped.map(|b| (a, b))) {
                let clear = |x: u128| (x % u128::from(p)) as u64;
                let [wide_a, wide_b, wide_p] = [a, b, p].map(u128::from);
                assert_eq!(prime.add(a, b), clear(wide_a + wide_b));
                assert_eq!(prime.subtract(a, b), clear(wide_a + wide_p - wide_b));
                assert_eq!(prime.negate(a), clear(wide_p - wide_a));
                assert_eq!(prime.product(a, b), clear(wide_a * wide_b));
                assert_eq!(prime.times(a, prime.factor(b)), clear(wide_a * wide_b));
                let unreduced = u64::MAX - a;
                let lazy = prime.lazy_times(unreduced, prime.factor(b));
                assert!(lazy < 2 * p);
                assert_eq!(prime.once(lazy), clear(u128::from(unreduced) * wide_b));
            }
        }
    }

    #[test]
    fn inverses_undo_products() {
        for prime in primes() {
            for number in [1, 2, 1 << 48, prime.value - 1, u64::MAX] {
                let inverse = prime.inverse(number).unwrap();
                assert_eq!(prime.product(number % prime.value, inverse), 1);
            }
            assert_eq!(prime.inverse(0), None);
            assert_eq!(prime.inverse(prime.value), None);
        }
    }
}
