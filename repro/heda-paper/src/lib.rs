//! The Heda paper in its own cryptography, for measuring it again. **It protects little**:
//! [`algorithm5::leaks`] says what it gives away and [`attacks`] shows it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`integer`], [`paillier`], [`hazmat_rsa`], [`packing`] | big integers and the two cryptosystems |
//! | [`blocks`] | Protocols 1 to 7: two-party building blocks |
//! | [`algorithm5`] | training, with its plan, its oracle in clear and its leaks |
//! | [`engine`] | the same as an engine for jobs |
//! | [`attacks`] | what a curious party computes from its own transcript |
//!
//! No crate of the product depends on this one; the program `heda-repro` does.

pub mod algorithm5;
pub mod attacks;
pub mod blocks;
pub mod engine;
pub mod hazmat_rsa;
pub mod integer;
pub mod packing;
pub mod paillier;
