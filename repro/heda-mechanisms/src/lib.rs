//! What the Heda paper publishes columns with, to make its figures again.
//!
//! [`ima`], [`imdav`] and [`standard`] are the mechanisms that the paper compares,
//! [`auto`] is its choice of ε and [`measure`] what it judges them by.
//! [`Mechanism::guarantee`](heda_dp::account::Mechanism::guarantee) says what each is worth: a careful
//! user publishes by [`heda_dp::laplace`].

pub mod auto;
pub mod bounds;
pub mod centroid;
pub mod cluster;
pub mod ima;
pub mod imdav;
pub mod measure;
pub mod points;
mod rule;
pub mod standard;

pub use rule::register;
