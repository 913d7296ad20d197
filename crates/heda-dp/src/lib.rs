//! Differential privacy for Heda: pure mathematics, no cryptography, no I/O.
