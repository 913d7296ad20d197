//! The bundled data sets in the paper's coding, and the three mechanisms it compares.

use chacha20::ChaCha20Rng;
use heda_dp::account::{Accountant, Charge, ColumnCharge, Receipt, Spend};
use heda_dp::epsilon::Epsilon;
use heda_mechanisms::auto::automatic_epsilon;
use heda_mechanisms::centroid::{Prepared, Reference};
use heda_mechanisms::points::Points;
use heda_mechanisms::{ima, imdav, measure, standard};
use rand_core::SeedableRng;
use std::path::PathBuf;

/// A file of the repository.
pub(crate) fn repository_file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// A data set without its class: categories (with `?` as one of them) by their place in the
/// alphabet, missing numbers by the median, every column scaled to [0, 1].
pub(crate) fn scaled(name: &str) -> Points {
    let path = repository_file(&format!("datasets/{name}.csv"));
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let width = rows[0].len() - 1;
    let columns: Vec<Vec<f64>> = (0..width)
        .map(|j| scale(code(&rows.iter().map(|row| row[j]).collect::<Vec<_>>())))
        .collect();
    let values = (0..rows.len()).flat_map(|i| columns.iter().map(move |column| column[i]));
    Points::new(width, values.collect()).unwrap()
}

fn code(cells: &[&str]) -> Vec<f64> {
    let numbers: Vec<Option<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
    let missing = |(cell, number): (&&str, &Option<f64>)| number.is_none() && *cell != "?";
    if cells.iter().zip(&numbers).any(missing) {
        let mut levels = cells.to_vec();
        levels.sort_unstable();
        levels.dedup();
        return cells
            .iter()
            .map(|cell| levels.binary_search(cell).unwrap() as f64)
            .collect();
    }
    let mut present: Vec<f64> = numbers.iter().flatten().copied().collect();
    present.sort_unstable_by(f64::total_cmp);
    let median = present[present.len() / 2];
    numbers
        .into_iter()
        .map(|number| number.unwrap_or(median))
        .collect()
}

fn scale(column: Vec<f64>) -> Vec<f64> {
    let low = column.iter().copied().fold(f64::INFINITY, f64::min);
    let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    column
        .into_iter()
        .map(|x| (x - low) / (high - low))
        .collect()
}

/// SSE and record linkage, averaged over runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Score {
    pub(crate) sse: f64,
    pub(crate) linkage: f64,
}

/// The paper's three mechanisms.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Compared {
    Ima(usize),
    Imdav(usize),
    Standard,
}

impl Compared {
    pub(crate) fn prepare(self, points: &Points) -> Prepared<'_> {
        match self {
            Self::Ima(size) => ima::prepare(points, size, Reference::Data).unwrap(),
            Self::Imdav(size) => imdav::prepare(points, size, Reference::Data).unwrap(),
            Self::Standard => standard::prepare(points, Reference::Data).unwrap(),
        }
    }

    /// Mean scores over `runs` releases at the automatic ε.
    pub(crate) fn score(self, points: &Points, runs: u8) -> Score {
        let epsilons = automatic_epsilon(points).unwrap();
        let prepared = self.prepare(points);
        let (mut sse, mut linkage) = (0.0, 0.0);
        for run in 0..runs {
            let mut rng = ChaCha20Rng::from_seed([run; 32]);
            let receipt = pay(prepared.mechanism(), epsilons.columns());
            let released = prepared.clone().release(receipt, &mut rng).unwrap();
            sse += measure::squared_errors(points, released.points()).unwrap();
            linkage += measure::record_linkage(points, released.points()).unwrap();
        }
        let runs = f64::from(runs);
        Score {
            sse: sse / runs,
            linkage: linkage / runs,
        }
    }
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
