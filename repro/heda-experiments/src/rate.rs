//! How fast should engine `paper` descend? The paper does not say which learning rate it used, so
//! ours is chosen here: the training of engine `paper` in clear, for a grid of rates
//! α/(1 + decay·t), on random splits that no other experiment uses.
//!
//! The choice is made by the loss on training rows alone. Held-out accuracy is written down beside
//! it for the reader; choosing by it would flatter the accuracies that are then reported.

use super::clear::share_right;
use super::sheet::{Rows, Sheet, SheetLayout, load};
use super::training::printed_iterations;
use super::{Options, data_set};
use heda::Error;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings, TrainError};
use heda_learn::oracle::{ClearSource, TrainConfig, train, train_observed};
use heda_learn::split::Split;
use heda_paper::algorithm5::Limits;
use heda_paper::engine::usual_settings;
use rayon::prelude::*;

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "rate",
    columns: &[
        "dataset",
        "rows",
        "iterations",
        "split",
        "rate",
        "decay",
        "loss",
        "least_loss",
        "limits_reached",
        "accuracy",
        "plain_accuracy",
    ],
};

const RATES: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
const DECAYS: [f64; 6] = [0.0, 0.003, 0.01, 0.03, 0.1, 0.3];
const HELD_OUT: f64 = 0.2;
const QUICK_ROWS: usize = 600;
/// Share of the engine's limits that coefficients may reach on the way.
pub(super) const MOST_REACHED: f64 = 0.9;
/// Figure 6 uses the splits from 0 on.
const FIRST_SPLIT: u64 = 1000;

/// Measures what is missing.
pub(super) fn run(options: &Options) -> Result<(), Error> {
    let splits = if options.quick { 2 } else { 20 };
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    for bundle in Bundle::ALL {
        let most = options.quick.then_some(QUICK_ROWS);
        let data = data_set(bundle, Coding::Paper, most, options.seed)?;
        for split in FIRST_SPLIT..FIRST_SPLIT + splits {
            let key = [
                bundle.to_string(),
                data.rows().to_string(),
                printed_iterations(bundle).to_string(),
                split.to_string(),
            ];
            if sheet.has(options.seed, &key) {
                continue;
            }
            heda::note(format_args!("heda: {}: {}", LAYOUT.name, key.join(", ")));
            let load = load();
            let mut rows = one_split(&data, options.seed, split, printed_iterations(bundle))?;
            for row in &mut rows {
                row.splice(0..0, key.iter().cloned());
            }
            sheet.add(options.seed, &load, rows)?;
        }
    }
    Ok(())
}

/// All rates on one split.
fn one_split(
    data: &Dataset,
    seed: u64,
    split: u64,
    iterations: u32,
) -> Result<Vec<Vec<String>>, Error> {
    let split = Split::seeded(data.rows(), HELD_OUT, seed, split);
    let (training, test) = (
        data.select_rows(&split.train),
        data.select_rows(&split.test),
    );
    let bug = |error: TrainError| Error::bug(error.to_string());
    let source = ClearSource::new(&training, 1, LossKind::Logistic);
    let best = train(&training, 1, &TrainConfig::logistic()).map_err(bug)?;
    let (least, plain) = (
        source.mean_loss(&best.beta),
        share_right(&best.beta, &test)?,
    );
    let grid: Vec<(f64, f64)> = RATES
        .iter()
        .flat_map(|rate| DECAYS.map(|decay| (*rate, decay)))
        .collect();
    let measure = |(rate, decay): (f64, f64)| {
        let config = TrainConfig {
            loss: LossKind::Logistic,
            settings: descent(training.rows(), rate, decay, iterations),
        };
        let mut reached: f64 = 0.0;
        let fit = train_observed(&training, 1, &config, |optimiser| {
            reached = reached.max(Limits::default().reached(optimiser.beta()));
        });
        let fit = fit.map_err(bug)?;
        Ok(vec![
            rate.to_string(),
            decay.to_string(),
            format!("{:.6}", source.mean_loss(&fit.beta)),
            format!("{least:.6}"),
            format!("{reached:.3}"),
            format!("{:.6}", share_right(&fit.beta, &test)?),
            format!("{plain:.6}"),
        ])
    };
    grid.into_par_iter().map(measure).collect()
}

/// The training of engine `paper` with another rate.
fn descent(training_rows: usize, rate: f64, decay: f64, iterations: u32) -> Settings {
    let settings = usual_settings(training_rows);
    Settings {
        method: Method::Descent {
            rate,
            decay,
            minimum_rate: 0.0,
            batches: settings.method.batches(),
        },
        max_iterations: iterations,
        ..settings
    }
}

/// By how much the loss on training rows is above the oracle's with this rate, data set by data
/// set and then in the mean: small data sets count as much as large ones.
pub(super) fn excess(rows: &Rows<'_>, rate: &str, decay: &str) -> Option<f64> {
    let rows = rows.with("rate", rate).with("decay", decay);
    let of_set = |name: &str| {
        let rows = rows.with("dataset", name);
        Some(rows.mean("loss")? - rows.mean("least_loss")?)
    };
    let sets: Vec<f64> = rows
        .distinct("dataset")
        .into_iter()
        .filter_map(of_set)
        .collect();
    (!sets.is_empty()).then(|| sets.iter().sum::<f64>() / sets.len() as f64)
}

/// Whether engine `paper` can hold the coefficients all along the way, with room for other splits:
/// its plaintexts have a length that is planned before training.
pub(super) fn fits(rows: &Rows<'_>, rate: &str, decay: &str) -> bool {
    let rows = rows.with("rate", rate).with("decay", decay);
    let reached = rows.numbers("limits_reached");
    reached.iter().all(|share| *share <= MOST_REACHED)
}

/// The rate and its decay with the least loss on training rows, among those that fit.
pub(super) fn best<'a>(rows: &Rows<'a>) -> Option<(&'a str, &'a str)> {
    let mut grid = Vec::new();
    for rate in rows.distinct("rate") {
        for decay in rows.distinct("decay") {
            if fits(rows, rate, decay) {
                grid.extend(excess(rows, rate, decay).map(|excess| (excess, rate, decay)));
            }
        }
    }
    let least = grid.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    least.map(|(_, rate, decay)| (rate, decay))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_overshoots_is_not_the_best() {
        let data = data_set(Bundle::Car, Coding::Paper, Some(300), 1).unwrap();
        let rows = one_split(&data, 1, FIRST_SPLIT, 100).unwrap();
        assert_eq!(rows.len(), RATES.len() * DECAYS.len());
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &LAYOUT).unwrap();
        let key = ["car", "300", "100", "1000"].map(str::to_owned);
        let rows = rows.into_iter().map(|row| [key.to_vec(), row].concat());
        sheet.add(1, "-", rows.collect()).unwrap();
        let rows = sheet.rows();
        let (rate, decay) = best(&rows).unwrap();
        let least = excess(&rows, rate, decay).unwrap();
        // The oracle's penalty keeps it from the very least, but not by much.
        assert!((-0.02..0.02).contains(&least), "{least}");
        assert!(excess(&rows, "50", "0").unwrap() > least + 0.1);
        assert!(excess(&rows, "1", "0.3").unwrap() > least + 0.01);
        assert!(excess(&rows, "3", "0").is_none());
        assert!(fits(&rows, rate, decay) && !fits(&rows, "50", "0"));
    }
}
