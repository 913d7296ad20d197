//! Two-party building blocks. One file each; all run over one [`heda_blocks::channel::Channel`].
//!
//! Alice holds a private key and Bob computes on what she encrypted. [`addition`],
//! [`subtraction`] and [`dot_product`] use Paillier's cryptosystem, [`multiplication`] and
//! [`power`] textbook RSA, which hides little: see [`crate::hazmat_rsa`].
//! [`exchange_rsa_to_paillier`] and [`exchange_keys`] carry a number from one cryptosystem or key
//! to another. They are Protocols 1 to 7 of the Heda paper; `docs/building-blocks.md` has the
//! steps by number.
//!
//! Each role checks public bounds before anything is encrypted, and an error says whether the
//! peer is to blame ([`BlockError::blames_peer`]). All blocks are for parties that keep to the
//! protocol and try to learn from what they see (semi-honest).

pub mod addition;
pub mod dot_product;
mod error;
pub mod exchange_keys;
pub mod exchange_rsa_to_paillier;
mod message;
pub mod multiplication;
pub mod power;
pub mod subtraction;
mod sum;
#[cfg(test)]
mod testing;

pub use error::{BlockError, Misuse};
pub use message::InputBits;
