//! Secure addition, Protocol 1 of the paper: Bob obtains \[a + b\] under Alice's key.
//!
//! | condition | Alice holds | Bob holds | Bob obtains |
//! | --- | --- | --- | --- |
//! | 1 | key, a | b | \[a + b\] |
//! | 2 | key, a | \[b\] | \[a + b\] |
//!
//! Who learns what: Alice nothing; Bob nothing but a ciphertext (Paillier's semantic security).
//! The result is not re-randomised, because it stays with Bob: he must re-randomise whatever he
//! derives from it before Alice sees it, as [`exchange_keys`](super::exchange_keys) does.
//!
//! Messages, in wire order (steps A1 and A2 of `docs/building-blocks.md`): Alice sends \[a\].
//!
//! ```
//! use heda_paper::blocks::InputBits;
//! use heda_blocks::channel::Channel;
//! use heda_paper::blocks::addition::{Alice, Bob};
//! # use heda_crypto::random::Randomness;
//! # use heda_paper::{integer::Integer, paillier::PrivateKey};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let key = PrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # let (mut to_bob, mut to_alice) = Channel::pair(std::time::Duration::from_secs(5));
//! let bits = InputBits { alice: 16, bob: 16 };
//! Alice::new(&key, bits)?.scalar(&mut to_bob, &Integer::from(20i64), &mut rng)?;
//! let result = Bob::new(key.public(), bits)?.scalar_clear(&mut to_alice, &Integer::from(3i64))?;
//! assert_eq!(key.decrypt(&result)?.to_i64(), Some(20 + 3));
//! # Ok(())
//! # }
//! ```

use crate::blocks::message::tag;
use crate::blocks::sum::{self, Operation};
use crate::integer::Integer;
use crate::paillier::{Ciphertext, PaillierError, PublicKey};

/// Bob adds his number.
#[derive(Debug)]
pub struct Plus;

impl Operation for Plus {
    const TAG: u8 = tag::ADDITION;
    const BLOCK: &'static str = "secure addition";
    const MESSAGE: &'static str = "addition input";

    fn addend(b: &Integer) -> Integer {
        b.clone()
    }

    fn combine(
        key: &PublicKey,
        a: &[Ciphertext],
        b: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, PaillierError> {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| key.add(a, b)).collect()
    }
}

/// Holds the key and a.
pub type Alice<'k> = sum::Alice<'k, Plus>;
/// Holds b, in clear or encrypted, and gets the result.
pub type Bob<'k> = sum::Bob<'k, Plus>;
