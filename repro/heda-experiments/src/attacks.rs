//! Attacks on transcripts of real runs of engine `paper`. Engine `resident` sends no ciphertext that
//! could be compared; what cheats can do to it is in its tests.

use super::private_attacks::subtraction;
use super::private_guesses::{membership, small_groups};
use super::sheet::{Sheet, SheetLayout};
use super::{Options, data_set};
use heda::Error;
use heda::local_job::{LocalJob, Rest};
use heda_crypto::random::Randomness;
use heda_job::proposal::Engine;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::gradient::{Batch, GradientSource};
use heda_learn::optimise::{self, Settings};
use heda_learn::resident::Resolution;
use heda_learn::score::ScoringMethod;
use heda_paper::algorithm5::{ClearPaper, Column, Limits, PaperRows, Plan, local};
use heda_paper::attacks::{Recording, cells_from_dictionaries, row_from_gradient};
use heda_paper::engine::{KEY_BITS, paper};
use rand_core::Rng;
use std::collections::BTreeMap;

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "attacks",
    columns: &[
        "attack",
        "against",
        "dataset",
        "rows",
        "targets",
        "recovered",
        "chance",
        "remark",
    ],
};

const MOST_ROWS: usize = 4000;
const QUICK_ROWS: usize = 300;
/// A coefficient counts as recovered within this distance.
const NEAR: f64 = 0.01;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Tries what has not been tried.
pub(super) fn run(options: &Options) -> Result<(), Error> {
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    let seed = options.seed;
    for bundle in Bundle::ALL {
        let most = if options.quick { QUICK_ROWS } else { MOST_ROWS };
        let data = data_set(bundle, Coding::Paper, Some(most), seed)?;
        let key = key("dictionary", "engine paper", bundle.name(), data.rows());
        sheet.complete(seed, &key, || dictionary(bundle, &data, seed))?;
    }
    for (against, common) in [
        ("engine paper with common blinding", true),
        ("engine paper", false),
    ] {
        let key = key(
            "ratios of blinded products",
            against,
            "random",
            BLINDED_ROWS,
        );
        sheet.complete(seed, &key, || ratios(common, seed))?;
    }
    let named = key(
        "divisors of blinded products",
        "engine paper",
        "random",
        BLINDED_ROWS,
    );
    sheet.complete(seed, &named, || divisors(seed))?;
    let data = data_set(Bundle::Bcwd, Coding::Paper, Some(QUICK_ROWS), seed)?;
    let named = |against: &str| key("gradient of one row", against, "bcwd", data.rows());
    sheet.complete(seed, &named("gradients as printed"), || one_row(&data))?;
    for engine in [paper(), Engine::RESIDENT] {
        sheet.complete(seed, &named(&format!("engine {engine}")), || {
            one_row_job(engine, &data, seed)
        })?;
    }
    let data = data_set(Bundle::Bcwd, Coding::Natural, None, seed)?;
    for (against, noisy) in [("no noise", false), ("private training", true)] {
        let key = key("difference of two jobs", against, "bcwd", data.rows());
        sheet.complete(seed, &key, || subtraction(&data, noisy, seed))?;
    }
    let rare = data_set(Bundle::Crx, Coding::Natural, None, seed)?;
    for (against, noisy) in [("gradient in clear", false), ("private training", true)] {
        let key = key("labels of a small group", against, "crx", rare.rows());
        sheet.complete(seed, &key, || small_groups(&rare, noisy, seed))?;
    }
    for (against, noisy) in [("training in clear", false), ("private training", true)] {
        let key = key("membership from the model", against, "bcwd", data.rows());
        sheet.complete(seed, &key, || membership(&data, noisy, seed))?;
    }
    Ok(())
}

fn key(attack: &str, against: &str, dataset: &str, rows: usize) -> [String; 4] {
    [attack, against, dataset, &rows.to_string()].map(str::to_owned)
}

/// How many of how many, what blind guessing finds, and a remark.
pub(super) fn result(targets: usize, recovered: usize, chance: f64, remark: &str) -> Vec<String> {
    vec![
        targets.to_string(),
        recovered.to_string(),
        format!("{chance:.6}"),
        remark.to_owned(),
    ]
}

/// A short job of one provider, all features encrypted.
fn job(engine: Engine, bundle: Bundle, batches: usize, seed: u64) -> LocalJob {
    LocalJob {
        private: None,
        balanced: false,
        bundle,
        coding: Coding::Paper,
        providers: 1,
        iota: Some(bundle.schema(Coding::Paper).columns().len()),
        goal: None,
        engine,
        method: ScoringMethod::KruskalWallis,
        rest: Rest::Drop,
        settings: Some(Settings {
            method: optimise::Method::Descent {
                rate: 1.0,
                minimum_rate: 0.0,
                decay: 0.0,
                batches,
            },
            c: None,
            tolerance: 0.0,
            max_iterations: 1,
        }),
        randomness: Randomness::seeded(seed).party(&format!("attacks {engine} {bundle}")),
    }
}

/// The data user compares what it received with encryptions of all possible values.
fn dictionary(bundle: Bundle, data: &Dataset, seed: u64) -> Result<Vec<String>, Error> {
    let batches = (data.rows() / 32).max(1);
    let recorded = job(paper(), bundle, batches, seed).recorded(data)?;
    let rows = &recorded.training[0];
    let view = &recorded.run.outcome.providers[0].view;
    let bits = Resolution::default().value_bits();
    // What the provider put under encryption, row by row: the job's grid.
    let grid: Vec<u32> = rows
        .values()
        .iter()
        .map(|value| (value * f64::from(1u32 << bits)).round() as u32)
        .collect();
    let recovered = hundredths(rows, &grid, bits, view)?;
    let chance = most_frequent(&grid, rows.width());
    Ok(result(grid.len(), recovered, chance, ""))
}

/// Cells that the dictionaries of engine `paper` give away.
fn hundredths(
    rows: &Dataset,
    grid: &[u32],
    bits: u32,
    view: &[heda_blocks::channel::Recorded],
) -> Result<usize, Error> {
    let columns = vec![Column::Encrypted; rows.width()];
    let values: Vec<f64> = grid
        .iter()
        .map(|&cell| f64::from(cell) / f64::from(1u32 << bits))
        .collect();
    let truth = PaperRows::new(columns.clone(), &values, rows.labels().to_vec()).map_err(bug)?;
    let settings = settings(false);
    let plan = Plan::new(&settings.shape(&truth)).map_err(bug)?;
    let found = cells_from_dictionaries(view, truth.len(), plan.grid).map_err(bug)?;
    let right = |(column, cells): (usize, &Vec<Option<u32>>)| {
        let pairs = cells.iter().enumerate();
        pairs
            .filter(|(row, cell)| **cell == Some(truth.row(*row)[column]))
            .count()
    };
    Ok(found.iter().enumerate().map(right).sum())
}

/// The share of cells that are right if each column's most frequent value is guessed.
fn most_frequent(grid: &[u32], width: usize) -> f64 {
    let best = |column: usize| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for cell in grid.iter().skip(column).step_by(width) {
            *counts.entry(*cell).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(0)
    };
    (0..width).map(best).sum::<usize>() as f64 / grid.len().max(1) as f64
}

const BLINDED_ROWS: usize = 24;
const BETA: [f64; 5] = [0.5, 1.25, -2.5, 0.75, 3.0];

fn settings(record: bool) -> local::Settings {
    local::Settings {
        batches: 1,
        positives: vec![1],
        key_bits: KEY_BITS as usize,
        limits: Limits::default(),
        record,
        insecure_test_keys: false,
    }
}

/// One recorded iteration at the paper's key length.
fn recording(common_blinding: bool, seed: u64) -> Result<Recording, Error> {
    let randomness = Randomness::seeded(seed).party("blinded products");
    let mut rng = randomness.fork("rows", 0).map_err(bug)?;
    let width = BETA.len() - 1;
    let values: Vec<f64> = (0..BLINDED_ROWS * width)
        .map(|_| f64::from(rng.next_u32() % 101) / 100.0)
        .collect();
    let labels = (0..BLINDED_ROWS as u32).map(|row| row % 2).collect();
    let columns = vec![Column::Encrypted; width];
    let rows = PaperRows::new(columns, &values, labels).map_err(bug)?;
    Recording::new(&rows, &BETA, &settings(true), &randomness, common_blinding).map_err(bug)
}

/// The provider divides blinded products by each other and solves for the coefficients.
fn ratios(common_blinding: bool, seed: u64) -> Result<Vec<String>, Error> {
    let found = recording(common_blinding, seed)?;
    let found = found.coefficients_by_ratios().map_err(bug)?;
    let pairs = found.iter().zip(&BETA[1..]);
    let errors: Vec<f64> = pairs.map(|(found, truth)| (found - truth).abs()).collect();
    let right = errors.iter().filter(|error| **error < NEAR).count();
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let remark = format!("largest error {worst:.2e}");
    Ok(result(errors.len(), right, 0.0, &remark))
}

/// The provider tries which of its own factors divide every product.
fn divisors(seed: u64) -> Result<Vec<String>, Error> {
    let recording = recording(false, seed)?;
    let found = recording.coefficients_by_divisors().map_err(bug)?;
    let exponents: Vec<f64> = BETA[1..].iter().map(|b| -b).collect();
    let written = heda_paper::blocks::power::Exponents::new(recording.plan().grid, &exponents);
    let written = written.map_err(bug)?;
    let spelled =
        |(column, found): (usize, &Vec<usize>)| written.chosen(column).eq(found.iter().copied());
    let right = found
        .iter()
        .enumerate()
        .filter(|pair| spelled(*pair))
        .count();
    Ok(result(
        found.len(),
        right,
        0.0,
        "all digits of a coefficient",
    ))
}

/// A batch of one row, as the paper's mini-batches would allow: the row from its gradient.
fn one_row(data: &Dataset) -> Result<Vec<String>, Error> {
    let columns = vec![Column::Encrypted; data.width()];
    let rows = PaperRows::new(columns, data.values(), data.labels().to_vec()).map_err(bug)?;
    let beta: Vec<f64> = (0..=data.width()).map(|j| 0.3 - 0.1 * j as f64).collect();
    let parts = [rows];
    let mut source = ClearPaper::new(&parts, 1);
    let mut right = 0;
    for row in 0..data.rows() {
        let Ok(gradient) = source.gradient(&beta, Batch::new(row, data.rows()));
        let found = row_from_gradient(&gradient.sum).unwrap_or_default();
        let pairs = found.iter().zip(parts[0].values(row));
        right += pairs
            .filter(|(found, truth)| (*found - truth).abs() < 1e-6)
            .count();
    }
    Ok(result(
        data.rows() * data.width(),
        right,
        0.0,
        "batches of one row",
    ))
}

/// The same in a job: it is refused.
fn one_row_job(engine: Engine, data: &Dataset, seed: u64) -> Result<Vec<String>, Error> {
    let training = data.rows() * 4 / 5;
    let job = job(engine, Bundle::Bcwd, training, seed);
    match job.run_on(data, &mut heda::quiet) {
        Err(refused) => {
            let remark = format!("refused: {refused}");
            Ok(result(data.rows() * data.width(), 0, 0.0, &remark))
        }
        Ok(_) => Err(bug("a batch of one row was not refused")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_reads_all_cells_of_paper() {
        let data = data_set(Bundle::Car, Coding::Paper, Some(60), 1).unwrap();
        let row = dictionary(Bundle::Car, &data, 1).unwrap();
        let cells: Vec<f64> = row[..2].iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!((cells[0], cells[1]), (48.0 * 6.0, 48.0 * 6.0));
    }

    #[test]
    fn one_row_is_read_from_its_gradient_and_refused_in_jobs() {
        let data = data_set(Bundle::Bcwd, Coding::Paper, Some(60), 1).unwrap();
        let printed = one_row(&data).unwrap();
        assert_eq!(printed[0], printed[1]);
        let refused = one_row_job(Engine::RESIDENT, &data, 1).unwrap();
        assert!(
            refused[1] == "0" && refused[3].contains("at least"),
            "{refused:?}"
        );
    }

    #[test]
    fn guessing_the_most_frequent_value_is_counted_by_column() {
        assert_eq!(most_frequent(&[1, 5, 1, 6, 2, 7], 2), 0.5);
    }
}
