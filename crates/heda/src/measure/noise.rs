//! What the promise of a private job costs in time and bytes: whole jobs on random rows with noise, and
//! with the same gradients at the same resolution without it, in turn.

use crate::Share;
use crate::error::Error;
use crate::forecast::cost::{Shape, Took, measuring, run_whole};
use crate::{Job, JobBuilder};
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::description::Ranking;
use heda_job::job::JobSpec;
use heda_job::proposal::JobId;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::Batch;
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use serde::Serialize;
use std::fmt;

const PROVIDERS: usize = 3;
/// Pairs of jobs after the one that warms up, of few rows and of many.
const PAIRS: [usize; 2] = [101, 25];
const MANY_ROWS: usize = 10_000;

/// Jobs like those on one data set.
#[derive(Debug, Serialize)]
struct NoiseLine {
    dataset: &'static str,
    columns: usize,
    rows: usize,
    gradients: u32,
    pairs: usize,
    seconds_private: f64,
    seconds_without_noise: f64,
    /// The middle half of the pairs: how much longer the private job took.
    more_in_quarters: [f64; 2],
    megabytes_private: f64,
    megabytes_without_noise: f64,
}

/// All data sets.
#[derive(Debug, Serialize)]
pub struct NoiseSection {
    lines: Vec<NoiseLine>,
}

/// Measures both kinds of jobs.
///
/// # Errors
/// If something cannot be run, which is a defect.
pub fn measure() -> Result<NoiseSection, Error> {
    let measured = [
        (Bundle::Bcwd, Coding::Natural, 699),
        (Bundle::Adult, Coding::Paper, 32_561),
    ];
    let lines = measured.map(|(bundle, coding, rows)| line(bundle, coding, rows));
    Ok(NoiseSection {
        lines: lines.into_iter().collect::<Result<_, _>>()?,
    })
}

fn line(bundle: Bundle, coding: Coding, rows: usize) -> Result<NoiseLine, Error> {
    let bug = |e: &dyn fmt::Display| Error::bug(e.to_string());
    let schema = bundle.schema(coding);
    let training = rows - Share::USUAL.of(rows as u64) as usize;
    let epsilon = Epsilon::from_billionths(1_000_000_000).map_err(|e| bug(&e))?;
    let private = builder(&schema).private_within(epsilon, None, training);
    let private = private?.build()?;
    let gradients = private.iterations();
    let plain = builder(&schema)
        .resolution(Resolution::PRIVATE)
        .settings(measuring(&schema, gradients, 1));
    let plain = plain.build()?;
    let [private, plain] = [private, plain].map(|job| spec(&job));
    let mut pairs = Vec::new();
    for pair in 0..=PAIRS[usize::from(rows > MANY_ROWS)] {
        // Whatever drifts meets both alike.
        pairs.push(match pair % 2 {
            0 => (whole(&private, rows)?, whole(&plain, rows)?),
            _ => {
                let without = whole(&plain, rows)?;
                (whole(&private, rows)?, without)
            }
        });
    }
    let pairs = &pairs[1..];
    let more = || {
        let ratio = |pair: &(Took, Took)| pair.0.seconds / pair.1.seconds - 1.0;
        pairs.iter().map(ratio)
    };
    let megabytes = |took: &Took| (took.sent + took.received) as f64 / 1e6;
    Ok(NoiseLine {
        dataset: bundle.name(),
        columns: schema.width(),
        rows: training,
        gradients,
        pairs: pairs.len(),
        seconds_private: median(pairs.iter().map(|pair| pair.0.seconds)),
        seconds_without_noise: median(pairs.iter().map(|pair| pair.1.seconds)),
        more_in_quarters: [0.25, 0.75].map(|part| quantile(more(), part)),
        megabytes_private: median(pairs.iter().map(|pair| megabytes(&pair.0))),
        megabytes_without_noise: median(pairs.iter().map(|pair| megabytes(&pair.1))),
    })
}

/// A job with all columns encrypted in their order.
fn builder(schema: &Schema) -> JobBuilder {
    let names = schema.columns().iter();
    let features = names.map(|column| column.name().to_owned()).collect();
    Job::builder("bench", schema.clone()).ranking(Ranking::Given { features })
}

fn spec(job: &Job) -> JobSpec {
    job.spec(JobId([0; 16]), &Randomness::from_os())
}

fn whole(spec: &JobSpec, rows: usize) -> Result<Took, Error> {
    let shares: Vec<usize> = (0..PROVIDERS)
        .map(|part| Batch::new(part, PROVIDERS).share(rows).len())
        .collect();
    let order: Vec<usize> = (0..spec.schema.columns().len()).collect();
    run_whole(&Shape {
        spec,
        order: &order,
        iota: order.len(),
        rows: &shares,
        most_rows: usize::MAX,
        repeats: 1,
    })
}

/// The middle one.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The one that this part of all lies below.
fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let place = (part * values.len() as f64) as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for NoiseSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "private jobs at epsilon 1 against the same gradients without noise, {PROVIDERS} providers and the \
             data user on this machine, medians of pairs in turn; the middle half of the pairs in brackets\n  {:<8} {:>7} {:>7} {:>9} {:>6} {:>9} {:>9} {:>7} {:>18} {:>10} {:>10} {:>7}",
            "data set",
            "columns",
            "rows",
            "gradients",
            "pairs",
            "private s",
            "without s",
            "more",
            "",
            "private MB",
            "without MB",
            "more"
        )?;
        for line in &self.lines {
            let [low, high] = line.more_in_quarters;
            let more =
                |with: f64, without: f64| format!("{:+.1} %", 100.0 * (with / without - 1.0));
            write!(
                f,
                "\n  {:<8} {:>7} {:>7} {:>9} {:>6} {:>9.3} {:>9.3} {:>7} {:>18} {:>10.3} {:>10.3} {:>7}",
                line.dataset,
                line.columns,
                line.rows,
                line.gradients,
                line.pairs,
                line.seconds_private,
                line.seconds_without_noise,
                more(line.seconds_private, line.seconds_without_noise),
                format!("({:+.1} to {:+.1} %)", 100.0 * low, 100.0 * high),
                line.megabytes_private,
                line.megabytes_without_noise,
                more(line.megabytes_private, line.megabytes_without_noise),
            )?;
        }
        Ok(())
    }
}
