//! Intervals of private evaluations: how often they hold the truth, and how wide they are.
//!
//! A model that is right with a given probability is counted on held-out rows, with the noise that a
//! job of so many providers adds to both of its answers, and the program's own estimate and
//! interval are made from them. That is done 10,000 times for every promise, number of providers, number
//! of rows and accuracy. An interval that says 95 % must hold the accuracy in at least 94 % of the draws
//! of every cell: three standard deviations of the share that is found are 0.65 points.

use super::Options;
use super::document::{in_marked_place, table};
use super::sheet::{Rows, Sheet, SheetLayout};
use heda::Error;
use heda::files::write_whole;
use heda_crypto::random::Randomness;
use heda_dp::gaussian::{Variance, sample};
use heda_dp::gdp::Delta;
use heda_job::proposal::Privacy;
use heda_learn::private::evaluation::{NoisyTable, ROW_UNITS, ROWS_FOR_AREA, RightRows, combine};
use rand_core::{CryptoRng, Rng};
use rayon::prelude::*;
use std::path::PathBuf;

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "intervals",
    columns: &[
        "epsilon",
        "providers",
        "trusted",
        "rows",
        "accuracy",
        "draws",
        "coverage",
        "width",
        "bias",
        "noise",
    ],
};

/// Options, and where the table is to be.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) options: Options,
    /// A page with a place for the table
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Where the table begins and ends in a page.
const PLACE: [&str; 2] = ["<!-- intervals -->\n", "<!-- end of intervals -->\n"];

const DELTA: f64 = 1e-5;
const EPSILONS: [&str; 4] = ["0.5", "1", "2", "5"];
/// Providers, and on how many others' noise each counts.
const PROVIDERS: [(usize, u32); 3] = [(3, 1), (3, 0), (10, 8)];
const ROWS: [u64; 6] = [100, 138, 300, 1000, 3000, 10_000];
const ACCURACIES: [f64; 5] = [0.6, 0.75, 0.9, 0.97, 0.999];
/// Columns of the job, the bias among them; the noise of counts does not depend on it.
const WIDTH: usize = 20;
/// What must hold the truth, of the draws of every cell.
const LEAST_COVERAGE: f64 = 0.94;
/// Draws of one task.
const CHUNK: usize = 500;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Draws what is missing. Returns the table.
pub(super) fn run(arguments: &Arguments) -> Result<String, Error> {
    let options = &arguments.options;
    let draws = if options.quick { 1_000 } else { 10_000 };
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    for epsilon in EPSILONS {
        for (providers, trusted) in PROVIDERS {
            for rows in ROWS {
                for accuracy in ACCURACIES {
                    let cell = Cell::new(epsilon, (providers, trusted), rows, accuracy)?;
                    let numbers = [providers as u64, trusted.into(), rows];
                    let key = std::iter::once(epsilon.to_owned())
                        .chain(numbers.map(|number| number.to_string()))
                        .chain([accuracy.to_string(), draws.to_string()]);
                    let key: Vec<String> = key.collect();
                    sheet.complete(options.seed, &key, || {
                        let randomness = Randomness::seeded(options.seed).party(&key.join(" "));
                        Ok(cell.draw(draws, &randomness)?.cells())
                    })?;
                }
            }
        }
    }
    let all = sheet.rows().with("draws", &draws.to_string());
    let text = written(&all);
    if let Some(page) = &arguments.page {
        let old = std::fs::read_to_string(page).map_err(Error::input)?;
        write_whole(page, in_marked_place(&old, PLACE, &text)?.as_bytes())?;
    }
    Ok(text)
}

/// A job that is evaluated again and again.
struct Cell {
    rows: u64,
    accuracy: f64,
    /// Of all providers together, in units.
    right: Variance,
    table: Variance,
    /// Counts of the table.
    counts: usize,
    /// P(so many rows are right or fewer), from none on.
    chances: Vec<f64>,
}

/// What the draws of a cell came to.
#[derive(Debug, Clone, Copy, Default)]
struct Drawn {
    draws: usize,
    held: usize,
    widths: f64,
    off: f64,
    noise: f64,
}

impl Drawn {
    fn plus(self, other: Self) -> Self {
        Self {
            draws: self.draws + other.draws,
            held: self.held + other.held,
            widths: self.widths + other.widths,
            off: self.off + other.off,
            noise: self.noise.max(other.noise),
        }
    }

    fn coverage(&self) -> f64 {
        self.held as f64 / self.draws as f64
    }

    /// Mean width, as a share of rows.
    fn width(&self) -> f64 {
        self.widths / self.draws as f64
    }

    fn cells(&self) -> Vec<String> {
        let bias = self.off / self.draws as f64;
        vec![
            format!("{:.4}", self.coverage()),
            format!("{:.5}", self.width()),
            format!("{bias:.5}"),
            format!("{:.4}", self.noise),
        ]
    }
}

impl Cell {
    fn new(
        epsilon: &str,
        (providers, trusted): (usize, u32),
        rows: u64,
        accuracy: f64,
    ) -> Result<Self, Error> {
        let delta = Delta::new(DELTA).map_err(bug)?;
        let privacy = Privacy {
            trusted: Some(trusted),
            ..Privacy::new(epsilon.parse().map_err(bug)?, delta, 4 * rows)
        };
        let plan = privacy.plan(WIDTH).map_err(bug)?;
        // Shares of discrete noise add up to discrete noise: `heda_dp::gaussian` says why.
        let all = |needed: Variance| {
            let share = privacy.share(needed, providers).get();
            Variance::new(share * providers as u64).map_err(bug)
        };
        Ok(Self {
            rows,
            accuracy,
            right: all(plan.right_variance())?,
            table: all(plan.table_variance())?,
            counts: if rows >= ROWS_FOR_AREA { 8 } else { 4 },
            chances: cumulative(rows, accuracy),
        })
    }

    fn draw(&self, draws: usize, randomness: &Randomness) -> Result<Drawn, Error> {
        let chunk = |number: usize| {
            let mut rng = randomness.fork("draws", number as u64).map_err(bug)?;
            let mut each = (0..CHUNK.min(draws - number * CHUNK)).map(|_| self.once(&mut rng));
            each.try_fold(Drawn::default(), |sum, one| Some(sum.plus(one?)))
                .ok_or_else(|| bug("an evaluation without rows"))
        };
        let chunks = (0..draws.div_ceil(CHUNK)).into_par_iter().map(chunk);
        chunks.try_reduce(Drawn::default, |a, b| Ok(a.plus(b)))
    }

    /// One evaluation, as a job makes it.
    fn once(&self, rng: &mut impl CryptoRng) -> Option<Drawn> {
        let right = self.draw_right(rng);
        let answer = RightRows {
            estimate: right as f64 + noise(self.right, rng),
            deviation: in_rows(self.right.deviation()),
            rows: self.rows,
        };
        let lanes = self.counts / 2;
        let mut counts = vec![0.0; self.counts];
        // Both classes alike, scores far out.
        for (place, all) in [(0, right), (lanes - 1, self.rows - right)] {
            counts[place] = (all / 2) as f64;
            counts[self.counts - 1 - place] = (all - all / 2) as f64;
        }
        counts
            .iter_mut()
            .for_each(|count| *count += noise(self.table, rng));
        let table = NoisyTable {
            counts,
            deviation: in_rows(self.table.deviation()),
        };
        let (found, _) = combine(Some(answer), Some(&table), self.rows)?;
        let [low, high] = found.interval()?;
        Some(Drawn {
            draws: 1,
            held: usize::from(low <= self.accuracy && self.accuracy <= high),
            widths: high - low,
            off: found.estimate / self.rows as f64 - self.accuracy,
            noise: found.deviation,
        })
    }

    /// How many rows a model is right about.
    fn draw_right(&self, rng: &mut impl Rng) -> u64 {
        let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let place = self.chances.partition_point(|chance| *chance <= uniform);
        (place as u64).min(self.rows)
    }
}

fn in_rows(units: f64) -> f64 {
    units / f64::from(ROW_UNITS)
}

fn noise(variance: Variance, rng: &mut impl CryptoRng) -> f64 {
    in_rows(sample(variance, rng) as f64)
}

/// The binomial distribution.
fn cumulative(rows: u64, share: f64) -> Vec<f64> {
    let odds = (share / (1.0 - share)).ln();
    let mut logarithm = rows as f64 * (-share).ln_1p();
    let mut sum = 0.0;
    let step = |count: u64| {
        if count > 0 {
            logarithm += odds + ((rows - count + 1) as f64 / count as f64).ln();
        }
        sum += logarithm.exp();
        sum
    };
    (0..=rows).map(step).collect()
}

/// The table of the page, and what it shows.
fn written(all: &Rows<'_>) -> String {
    let points =
        |share: Option<f64>| share.map_or("–".to_owned(), |w| format!("{:.1}", 100.0 * w));
    let widths = ["0.75", "0.9", "0.97"];
    let mut lines = Vec::new();
    for epsilon in all.distinct("epsilon") {
        for (providers, trusted) in PROVIDERS {
            for rows in ROWS {
                let cells = all.with("epsilon", epsilon);
                let cells = cells.with("providers", &providers.to_string());
                let cells = cells.with("trusted", &trusted.to_string());
                let cells = cells.with("rows", &rows.to_string());
                let coverage = cells.numbers("coverage").into_iter().reduce(f64::min);
                let noise = cells.mean("noise");
                let mut line = vec![
                    epsilon.to_owned(),
                    format!("{providers}, {trusted}"),
                    rows.to_string(),
                    noise.map_or("–".to_owned(), |noise| format!("{noise:.2}")),
                    points(coverage),
                ];
                let of = |accuracy: &str| cells.with("accuracy", accuracy).mean("width");
                line.extend(widths.map(|accuracy| points(of(accuracy))));
                lines.push(line);
            }
        }
    }
    let head = [
        "ε",
        "providers, counted on",
        "held-out rows",
        "noise, rows",
        "least coverage, %",
        "width at 75 %",
        "at 90 %",
        "at 97 %",
    ];
    let coverages = all.numbers("coverage");
    let worst = coverages.iter().copied().fold(1.0, f64::min);
    let below = coverages.iter().filter(|c| **c < LEAST_COVERAGE).count();
    let bias = all.numbers("bias").into_iter().map(f64::abs);
    format!(
        "{}\n{} cells; the least coverage is {:.2} %, {below} are below {:.0} %; the mean estimate is off \
         by at most {:.2} points.\n",
        table(&head, &lines),
        coverages.len(),
        100.0 * worst,
        100.0 * LEAST_COVERAGE,
        100.0 * bias.fold(0.0, f64::max)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(epsilon: &str, rows: u64, accuracy: f64) -> Drawn {
        let cell = Cell::new(epsilon, (3, 1), rows, accuracy).unwrap();
        cell.draw(2_000, &Randomness::seeded(7)).unwrap()
    }

    /// Four deviations of 2,000 draws are 2 points.
    #[test]
    fn intervals_hold_the_accuracy_and_are_as_narrow_as_is_said() {
        for (epsilon, rows, accuracy) in [
            ("0.5", 100, 0.6),
            ("1", 138, 0.9),
            ("5", 100, 0.999),
            ("2", 1000, 0.97),
        ] {
            let found = drawn(epsilon, rows, accuracy);
            assert!(found.coverage() > 0.93, "{epsilon} {rows} {found:?}");
            let bias = found.off / found.draws as f64;
            assert!(bias.abs() < 0.01, "{epsilon} {rows} {bias}");
        }
        let narrow = drawn("1", 138, 0.97).width();
        assert!(narrow < 0.16, "{narrow}");
        assert!(drawn("5", 10_000, 0.9).width() < 0.015);
    }

    #[test]
    fn the_binomial_distribution_has_its_mean() {
        for (rows, share) in [(10, 0.3), (10_000, 0.97)] {
            let chances = cumulative(rows, share);
            assert!((chances[rows as usize] - 1.0).abs() < 1e-9);
            let beyond: f64 = chances[..rows as usize].iter().map(|c| 1.0 - c).sum();
            assert!((beyond - rows as f64 * share).abs() < 1e-5, "{beyond}");
        }
    }
}
