//! Paillier's cryptosystem: sums and products with known numbers, under encryption.
//!
//! P. Paillier, "Public-key cryptosystems based on composite degree residuosity classes",
//! EUROCRYPT '99, with generator 1 + N: a number m is encrypted as (1 + m·N)·ρ mod N², where ρ is
//! a random N-th power. Plaintexts are signed, between −N/2 and N/2.
//!
//! ```
//! use heda_paper::paillier::PrivateKey;
//! use heda_crypto::random::Randomness;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let private = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # /*
//! let private = PrivateKey::generate(KeySize::Bits3072, &mut rng)?;
//! # */
//! let public = private.public();
//! let x = public.encrypt(&public.plaintext(20i64)?, &mut rng)?;
//! let y = public.encrypt(&public.plaintext(-3i64)?, &mut rng)?;
//! let sum = public.linear_combination_vartime(&[(&x, &2i64.into()), (&y, &(-5i64).into())])?;
//! assert_eq!(private.decrypt(&sum)?.to_i64(), Some(55));
//! # Ok(())
//! # }
//! ```
//!
//! # Randomness
//!
//! [`PublicKey::encrypt_with_full_randomness`] draws r uniformly and takes ρ = r^N: semantic
//! security rests on the decisional composite residuosity assumption and nothing else.
//!
//! [`PublicKey::encrypt`] is some ten times faster. It follows I. Damgård, M. Jurik and
//! J. B. Nielsen, "A generalization of Paillier's public-key system with applications to
//! electronic voting", Int. J. Inf. Secur. 9 (2010), section 4.2: p and q are 3 modulo 4 with
//! gcd(p − 1, q − 1) = 2, h = −y² mod N generates (almost certainly) the whole group of elements
//! of Jacobi symbol 1 up to a small index, and ρ = (h^N)^a with a of ⌈|N|/2⌉ bits. The
//! additional assumption is that h^a with such a short exponent cannot be told from h^a with a
//! full one. To tell them apart is to tell whether a discrete logarithm modulo N is short; the
//! best known ways are to factor N or to search about 2^(|N|/4) steps, 2^512 for the smallest
//! key. Here y is a hash of N, so no party, not even the key's owner, can choose an h with a
//! trapdoor of its own, and a key is N and nothing else.
//!
//! # Time
//!
//! Whatever touches the private key, the plaintexts or the randomness takes a time that depends on
//! the key's length only. Ciphertexts and public keys are public, and so are the weights of the
//! functions that are named `_vartime`.

mod arithmetic;
mod batch;
mod ciphertext;
mod decrypt;
mod encrypt;
mod error;
mod private;
mod public;
#[cfg(test)]
mod tests;
mod wire;

pub use ciphertext::{Ciphertext, Plaintext};
pub use error::{CiphertextError, KeyError, PaillierError};
pub use private::PrivateKey;
pub use public::{KeyFingerprint, KeySize, PublicKey};
