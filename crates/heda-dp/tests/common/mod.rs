//! Files of the repository, and receipts.

use heda_dp::account::{Accountant, Charge, ColumnCharge, Receipt, Spend};
use heda_dp::epsilon::Epsilon;
use std::path::PathBuf;

/// A file of the repository.
pub(crate) fn repository_file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// A receipt from a budget that is just large enough.
pub(crate) fn pay(mechanism: heda_dp::account::Mechanism, epsilons: &[Epsilon]) -> Receipt {
    let name = |(j, &epsilon): (usize, &Epsilon)| ColumnCharge {
        name: format!("c{j}"),
        epsilon,
    };
    let columns = epsilons.iter().enumerate().map(name).collect();
    let charge = Charge::new(mechanism, columns).unwrap();
    Accountant::new(charge.total()).spend(charge).unwrap()
}
