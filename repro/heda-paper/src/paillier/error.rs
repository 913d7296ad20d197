//! What can be wrong with a key, a ciphertext, or a call.

/// A key that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The bytes end too early or go on too long.
    #[error("the key has {found} bytes where {expected} were expected; is the file whole?")]
    Length {
        /// Bytes that a key of this kind has.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// Written by another version or not a key at all.
    #[error("this is no key that this version reads (first bytes {found:02x?})")]
    Format {
        /// The first bytes.
        found: [u8; 2],
    },
    /// The modulus is even.
    #[error("the key's modulus is even, so it is no product of two large primes")]
    Even,
    /// The modulus is not as long as a key must be.
    #[error("the key's modulus has {bits} bits; 2048, 3072 or 4096 are accepted")]
    Size {
        /// Bits of the modulus.
        bits: usize,
    },
    /// The modulus is a square, so its root is its factor.
    #[error("the key's modulus is a square: anybody can decrypt with it")]
    Square,
    /// The modulus is prime.
    #[error("the key's modulus is prime: anybody can decrypt with it")]
    Prime,
    /// Both primes are the same.
    #[error("the private key's two primes are equal")]
    EqualPrimes,
    /// A factor is not prime.
    #[error("a factor of the private key is not prime")]
    Composite,
    /// The primes do not have the form that short randomness needs.
    #[error("the private key's primes must be 3 modulo 4 with gcd(p − 1, q − 1) = 2")]
    Form,
    /// Too small even for a test.
    #[error("{bits} bits are too few; even a test needs an even number from 64 on")]
    TestSize {
        /// Bits that were asked for.
        bits: usize,
    },
}

/// A ciphertext that is refused on reading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CiphertextError {
    /// The bytes end too early or go on too long.
    #[error("the ciphertexts have {found} bytes where {expected} were expected")]
    Length {
        /// Bytes that the context demands.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// Written by another version or not a ciphertext at all.
    #[error("this is no ciphertext that this version reads (first byte {found:02x})")]
    Format {
        /// The first byte.
        found: u8,
    },
    /// Made under another key.
    #[error("the ciphertext belongs to another key; ask for one under this key")]
    OtherKey,
    /// The number 0.
    #[error("ciphertext {index} is zero")]
    Zero {
        /// Which one.
        index: usize,
    },
    /// A multiple of N below N².
    #[error("ciphertext {index} is a multiple of the key's modulus")]
    MultipleOfModulus {
        /// Which one.
        index: usize,
    },
    /// Exactly N².
    #[error("ciphertext {index} is the square of the key's modulus")]
    ModulusSquared {
        /// Which one.
        index: usize,
    },
    /// Above N².
    #[error("ciphertext {index} is above the square of the key's modulus")]
    AboveModulusSquared {
        /// Which one.
        index: usize,
    },
    /// Shares a factor with N.
    #[error("ciphertext {index} has a factor in common with the key's modulus")]
    NotAUnit {
        /// Which one.
        index: usize,
    },
}

/// A call that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PaillierError {
    /// Two things of different keys were brought together.
    #[error("a ciphertext or plaintext of key {found} was used with key {expected}")]
    MixedKeys {
        /// Fingerprint of the key in use.
        expected: super::KeyFingerprint,
        /// Fingerprint of the other key.
        found: super::KeyFingerprint,
    },
    /// The number is not between −N/2 and N/2.
    #[error("a number of {bits} bits is beyond half of the key's modulus; use a longer key")]
    OutOfRange {
        /// Bits of the number.
        bits: usize,
    },
    /// A weight is longer than was announced.
    #[error("a weight of {bits} bits is longer than the announced {announced}")]
    WeightTooLong {
        /// Bits of the weight.
        bits: usize,
        /// Bits that were announced.
        announced: usize,
    },
    /// A ciphertext has no inverse. Only one that was never checked can do this.
    #[error("a ciphertext is not invertible; it cannot come from an honest party")]
    NotInvertible,
}
