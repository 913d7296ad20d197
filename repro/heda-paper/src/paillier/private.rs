//! Private keys.

use super::error::KeyError;
use super::public::{KeySize, PublicKey};
use crate::integer::{Comb, Modulus, Natural, Residue, Ring, SquareModulus};
use rand_core::CryptoRng;
use std::fmt;
use std::sync::OnceLock;

/// A private key. All its parts are erased when dropped; it is never printed, never copied.
pub struct PrivateKey {
    public: PublicKey,
    pub(super) p: Half,
    pub(super) q: Half,
    /// 1/p modulo q, for putting plaintexts together.
    pub(super) p_inverse: Residue,
    randomisers: OnceLock<[HalfRandomisers; 2]>,
}

/// What is done modulo one prime's square.
pub(super) struct Half {
    pub(super) prime: Natural,
    pub(super) ring: SquareModulus,
    /// p − 1.
    pub(super) exponent: Natural,
    /// 1/L((1 + N)^(p−1)) = −1/q modulo p.
    pub(super) factor: Residue,
}

/// Tables modulo one prime's square, and what lifts the result to N².
struct HalfRandomisers {
    comb: Comb,
    /// 1 modulo this prime's square, 0 modulo the other's.
    indicator: Residue,
}

impl PrivateKey {
    /// Makes a key.
    pub fn generate<R: CryptoRng + ?Sized>(size: KeySize, rng: &mut R) -> Result<Self, KeyError> {
        Self::generate_of_any_size(size.bits(), rng)
    }

    /// Makes a key that is too short to protect anything: for tests only.
    #[doc(hidden)]
    pub fn generate_insecure_for_tests<R: CryptoRng + ?Sized>(
        bits: usize,
        rng: &mut R,
    ) -> Result<Self, KeyError> {
        Self::generate_of_any_size(bits, rng)
    }

    fn generate_of_any_size<R: CryptoRng + ?Sized>(
        bits: usize,
        rng: &mut R,
    ) -> Result<Self, KeyError> {
        if bits < 64 || !bits.is_multiple_of(2) {
            return Err(KeyError::TestSize { bits });
        }
        let half_bits = u32::try_from(bits / 2).map_err(|_| KeyError::TestSize { bits })?;
        loop {
            let p = Natural::random_prime(half_bits, rng).ok_or(KeyError::TestSize { bits })?;
            let q = Natural::random_prime(half_bits, rng).ok_or(KeyError::TestSize { bits })?;
            match Self::from_primes_of_any_size(p, q) {
                Err(KeyError::EqualPrimes | KeyError::Form) => {}
                other => return other,
            }
        }
    }

    /// The key with these primes, if they make one of an accepted length.
    pub fn from_primes(p: Natural, q: Natural) -> Result<Self, KeyError> {
        let bits = (&p * &q).bit_length();
        if KeySize::from_bits(bits).is_none() {
            return Err(KeyError::Size { bits });
        }
        Self::from_primes_of_any_size(p, q)
    }

    /// As [`from_primes`](Self::from_primes), for keys that are too short to protect anything.
    #[doc(hidden)]
    pub fn from_primes_insecure_for_tests(p: Natural, q: Natural) -> Result<Self, KeyError> {
        Self::from_primes_of_any_size(p, q)
    }

    pub(super) fn from_primes_of_any_size(p: Natural, q: Natural) -> Result<Self, KeyError> {
        check_primes(&p, &q)?;
        let (p, q) = if p < q { (p, q) } else { (q, p) };
        let public = PublicKey::from_modulus_of_any_size(&p * &q)?;
        let inverse = p.inverse(&q).ok_or(KeyError::EqualPrimes)?;
        let half_p = Half::new(p.clone(), &q)?;
        let half_q = Half::new(q, &p)?;
        Ok(Self {
            public,
            p_inverse: half_q.root().residue(&inverse),
            p: half_p,
            q: half_q,
            randomisers: OnceLock::new(),
        })
    }

    /// The public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The primes, smaller first.
    pub(super) fn primes(&self) -> (&Natural, &Natural) {
        (&self.p.prime, &self.q.prime)
    }

    /// (h^N)^a modulo N², by its residues modulo p² and q².
    pub(super) fn randomiser(&self, exponent: &Natural) -> Residue {
        let ring = self.public.ring();
        let [for_p, for_q] = self.randomisers.get_or_init(|| {
            [
                HalfRandomisers::new(&self.p, &self.q, &self.public),
                HalfRandomisers::new(&self.q, &self.p, &self.public),
            ]
        });
        let from_p = for_p.lifted(&self.p, exponent, ring);
        let from_q = for_q.lifted(&self.q, exponent, ring);
        ring.add(&from_p, &from_q)
    }
}

fn check_primes(p: &Natural, q: &Natural) -> Result<(), KeyError> {
    if p == q {
        return Err(KeyError::EqualPrimes);
    }
    if !p.is_odd() || !q.is_odd() {
        return Err(KeyError::Even);
    }
    if !p.is_prime() || !q.is_prime() {
        return Err(KeyError::Composite);
    }
    let one = Natural::one();
    let minus_one = |prime: &Natural| prime.checked_sub(&one).unwrap_or_else(Natural::zero);
    let (p1, q1) = (minus_one(p), minus_one(q));
    // Equal lengths also make N coprime to (p − 1)(q − 1), without which decryption fails.
    let form = p1.gcd(&q1) == Natural::from(2u64)
        && p.is_three_modulo_four()
        && q.is_three_modulo_four()
        && p.bit_length() == q.bit_length();
    if form { Ok(()) } else { Err(KeyError::Form) }
}

impl Half {
    fn new(prime: Natural, other: &Natural) -> Result<Self, KeyError> {
        let ring = SquareModulus::new(&prime).ok_or(KeyError::Even)?;
        let exponent = prime.checked_sub(&Natural::one()).ok_or(KeyError::Even)?;
        let inverse = other.inverse(&prime).ok_or(KeyError::EqualPrimes)?;
        let negated = prime.checked_sub(&inverse).ok_or(KeyError::EqualPrimes)?;
        Ok(Self {
            factor: ring.root().residue(&negated),
            prime,
            ring,
            exponent,
        })
    }

    pub(super) fn root(&self) -> &Modulus {
        self.ring.root()
    }
}

impl HalfRandomisers {
    fn new(own: &Half, other: &Half, public: &PublicKey) -> Self {
        // An N-th power modulo p² depends on the exponent modulo p(p − 1) only, but N is public.
        let h = own.ring.residue(&public.randomiser_base());
        let base = own.ring.power_vartime(&h, public.modulus().limbs());
        let own_square = &own.prime * &own.prime;
        let other_square = &other.prime * &other.prime;
        let inverse = other_square.inverse(&own_square);
        let indicator = &other_square * &inverse.unwrap_or_else(Natural::zero);
        Self {
            comb: Comb::new(&own.ring, &base, public.exponent_bits()),
            indicator: public.ring().residue(&indicator),
        }
    }

    fn lifted(&self, own: &Half, exponent: &Natural, ring: &SquareModulus) -> Residue {
        let power = self.comb.power(&own.ring, exponent);
        let digits = own.ring.base_n(&power);
        let number = &digits.low + &(&digits.high * &own.prime);
        ring.multiply(&ring.residue(&number), &self.indicator)
    }
}

/// Names the key, never shows it.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {:?})", self.public)
    }
}
