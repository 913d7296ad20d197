//! Two banks train a model of credit approval together, in one process:
//! `cargo run --release --example two_banks`.
//!
//! Each bank would read a file of its own with `Provider::from_file`; here the rows are those of a
//! public data set, cut in two. The six best features are encrypted. The others are published with
//! noise, for which each bank has a budget.

use heda::{Bundle, Coding, DataUser, Dataset, Epsilon, Job, Progress, Provider};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Shows how it goes, and lets it go on.
fn show(progress: Progress) -> ControlFlow<()> {
    if let Progress::Phase(name) = progress {
        eprintln!("{name}");
    }
    ControlFlow::Continue(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Arc::new(Bundle::Crx.schema(Coding::Natural));
    let (rows, _) = Bundle::Crx.table(Coding::Natural)?;
    let budget: Epsilon = "20".parse()?;
    let bank = |name, rows| Provider::from_rows(name, &schema, rows).with_budget(budget);
    let (north, south) = in_two(&rows);
    let banks = [bank("north bank", north), bank("south bank", south)];

    let job = Job::builder("credit", Arc::clone(&schema))
        .encrypt_best(6)
        .publish_rest("18".parse()?)
        .iterations(30)
        .build()?;
    let trained = DataUser::new().train(&job, &banks, &mut show)?;
    println!("{}", trained.text());

    // The budget holds for all jobs together: a second release of the same size is refused.
    match DataUser::new().train(&job, &banks, &mut show) {
        Err(refused) => println!("\nA second job: {refused}"),
        Ok(_) => return Err("a bank spent more than its budget".into()),
    }
    Ok(())
}

/// Every other row.
fn in_two(rows: &Dataset) -> (Dataset, Dataset) {
    let (even, odd): (Vec<usize>, Vec<usize>) = (0..rows.rows()).partition(|row| row % 2 == 0);
    (rows.select_rows(&even), rows.select_rows(&odd))
}
