//! Large whole numbers: the only module that names the big-integer backend.
//!
//! [`Natural`] and [`Integer`] are the numbers that callers see. Below them lie two rings in
//! Montgomery form, modulo n and modulo n², with powers, tables for fixed bases and products of
//! powers. Work on secrets takes a time that depends on lengths only; whatever does not is named
//! `_vartime` and meant for numbers that everybody may know.
//!
//! The rings have their own product in safe Rust: modulo n² it measures about twice as fast as
//! the backend's, because it works in base n (see `square.rs`).

mod comb;
mod limbs;
mod modulus;
mod multi;
mod natural;
mod number_theory;
mod ring;
mod signed;
mod square;
#[cfg(test)]
mod tests;

pub(crate) use comb::Comb;
pub(crate) use modulus::Modulus;
pub(crate) use multi::{Term, product_of_powers, product_of_powers_vartime};
pub use natural::Natural;
pub(crate) use ring::{Residue, Ring};
pub use signed::Integer;
pub(crate) use square::SquareModulus;
