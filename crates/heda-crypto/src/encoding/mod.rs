//! Real numbers as integers, and several integers in one plaintext.

mod fixed;
mod packing;

pub use fixed::{Fixed, FixedError, Scale};
pub use packing::{PackedCiphertext, PackedPlaintext, PackingError, SlotLayout};
