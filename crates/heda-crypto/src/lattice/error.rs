//! What can go wrong with linear encryption.

use super::parameters::{COLUMN_LIMIT, MODULUS_BITS, ROW_LIMIT};

/// Why linear encryption refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LatticeError {
    /// The built-in parameters fail their own check: a fault of this program.
    #[error("the lattice parameters are unsound: {0}; this build must not be used")]
    UnsoundParameters(&'static str),
    /// A matrix needs at least one row and one column.
    #[error("a matrix of {rows} rows and {columns} columns holds nothing to encrypt")]
    EmptyMatrix {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        columns: usize,
    },
    /// More rows than the noise budget was computed for.
    #[error("{rows} rows exceed the limit of {ROW_LIMIT}; take part with fewer rows")]
    TooManyRows {
        /// Rows asked for.
        rows: usize,
    },
    /// More columns than the noise budget was computed for.
    #[error("{columns} columns exceed the limit of {COLUMN_LIMIT}; encrypt fewer features")]
    TooManyColumns {
        /// Columns asked for.
        columns: usize,
    },
    /// A vector does not fit the matrix.
    #[error("{what}: {expected} numbers are needed, {found} were given")]
    WrongCount {
        /// Which vector.
        what: &'static str,
        /// How many the matrix needs.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// A number lies outside of the ring of integers modulo 2^48.
    #[error("{what}: number {index} is not reduced modulo 2^{MODULUS_BITS}")]
    NotReduced {
        /// Which vector.
        what: &'static str,
        /// Position in it.
        index: usize,
    },
    /// The bytes do not begin as lattice messages of this version do.
    #[error("these bytes are no lattice message of version 1; check the peer's version")]
    UnknownFormat,
    /// A lattice message, but another one than expected.
    #[error("expected {expected}, the message is of kind {found}")]
    WrongKind {
        /// What was expected.
        expected: &'static str,
        /// The kind byte that was found.
        found: u8,
    },
    /// Made for another ring degree.
    #[error("the ring degree is 2^{found}, 2^{expected} is needed")]
    WrongDegree {
        /// Binary logarithm of the degree of these parameters.
        expected: u8,
        /// What the message says.
        found: u8,
    },
    /// The number of primes in the ciphertext modulus does not fit the kind of message.
    #[error("the ciphertext modulus has {found} primes, {expected} are needed here")]
    WrongLevel {
        /// Primes needed.
        expected: u8,
        /// Primes in the message.
        found: u8,
    },
    /// Other primes or another plaintext modulus.
    #[error("the message was made for another ciphertext or plaintext modulus")]
    WrongModulus,
    /// Made for a matrix of another shape.
    #[error(
        "the message is for {found_rows} × {found_columns}, not for {rows} × {columns} as agreed"
    )]
    WrongShape {
        /// Rows agreed on.
        rows: usize,
        /// Columns agreed on.
        columns: usize,
        /// Rows in the message.
        found_rows: u32,
        /// Columns in the message.
        found_columns: u32,
    },
    /// The matrix is laid out otherwise than its shape prescribes.
    #[error("{found} columns share a ciphertext, the shape prescribes {expected}")]
    WrongLayout {
        /// Columns per ciphertext that the shape prescribes.
        expected: usize,
        /// Columns per ciphertext in the message.
        found: u32,
    },
    /// Truncated or padded.
    #[error("the message has {found} bytes, {expected} are needed")]
    WrongLength {
        /// Bytes needed.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// A residue is not below its prime, or unused bits are set.
    #[error("a number in the message is not below its modulus or unused bits are set")]
    NotCanonical,
    /// The bytes of a public key do not match the fingerprint they carry.
    #[error("the public key does not match its own fingerprint; it was damaged on the way")]
    DamagedKey,
    /// Made under the key of another party.
    #[error("made under the public key of another party; use one key throughout a job")]
    OtherKey,
}
