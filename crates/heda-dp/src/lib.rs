//! Differential privacy for Heda: pure mathematics, no cryptography, no I/O.
//!
//! Internal to `heda`, without a promise of stability: programs use the crate `heda`.
//!
//! A release goes one way: the columns are checked ([`laplace::prepare`]), the ε of every column
//! is put on a [`account::Charge`], a ledger that implements [`account::Spend`] turns the charge
//! into a [`account::Receipt`], and the receipt is consumed by the release. Without a receipt
//! nothing can be released, and a receipt serves once.
//!
//! [`laplace`] is how columns are published; [`account::Mechanism::guarantee`] says what that is worth.
//!
//! Two data sets are neighbours when they have the same number of rows and differ in the values
//! of one row: published rows stand beside encrypted ones, so how many there are is public.

pub mod account;
pub mod audit;
pub mod budget;
pub mod column;
pub mod compose;
pub mod epsilon;
pub mod error;
pub mod gaussian;
pub mod gdp;
pub mod laplace;
pub mod normal;
pub mod sample;
