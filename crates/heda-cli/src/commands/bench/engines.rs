//! Whole gradients of both engines, all parties on this machine, on random rows.

use heda::Job;
use heda::failure::Failure;
use heda::local_job::HOLDOUT_PERMILLE;
use heda::planning::{Costs, Shape, measure as measure_job};
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Method, Settings};
use heda_train::job::JobSpec;
use heda_train::proposal::{Engine, JobId, Ranking};
use serde::Serialize;
use std::fmt;

const PROVIDERS: usize = 3;
/// Engine `paper` is measured on mini-batches of about this many rows, as the paper used it.
const PAPER_BATCH_ROWS: usize = 32;
const KEY_BITS: u32 = 2048;
/// Rows of the test that time grows with rows: a block is 8,192 rows of one provider.
const GROWTH: [usize; 3] = [65_536, 131_072, 262_144];

/// One engine on rows of one shape.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    engine: Engine,
    columns: usize,
    training_rows: usize,
    batch_rows: usize,
    milliseconds_per_iteration: f64,
    microseconds_per_row_iteration: f64,
    bytes_per_row_iteration: f64,
}

/// Both engines.
#[derive(Serialize)]
pub(super) struct Section {
    lines: Vec<Line>,
    /// How many times faster `lookup` is per row and iteration than `paper`, on rows of BCWD, if
    /// this build has both.
    #[serde(skip_serializing_if = "Option::is_none")]
    lookup_faster_by: Option<f64>,
}

/// Measures the engines.
pub(super) fn measure() -> Result<Section, Failure> {
    let bcwd = line(Engine::Lookup, Bundle::Bcwd, 699)?;
    let paper = cfg!(feature = "paper")
        .then(|| line(Engine::Paper, Bundle::Bcwd, 699))
        .transpose()?;
    let mut lines = vec![bcwd.clone()];
    lines.extend(paper.clone());
    lines.push(line(Engine::Resident, Bundle::Bcwd, 699)?);
    for engine in [Engine::Lookup, Engine::Resident] {
        lines.push(line(engine, Bundle::Adult, 32_561)?);
    }
    for rows in GROWTH {
        lines.push(line(Engine::Lookup, Bundle::Adult, rows)?);
    }
    let lookup_faster_by = paper
        .map(|paper| paper.microseconds_per_row_iteration / bcwd.microseconds_per_row_iteration);
    Ok(Section {
        lines,
        lookup_faster_by,
    })
}

/// One engine on so many rows like those of a data set in the paper's coding, all encrypted.
fn line(engine: Engine, bundle: Bundle, rows: usize) -> Result<Line, Failure> {
    let schema = bundle.schema(Coding::Paper);
    let columns = schema.columns().len();
    let training_rows = rows - rows * HOLDOUT_PERMILLE as usize / 1000;
    let batches = match engine {
        Engine::Lookup | Engine::Resident => 1,
        Engine::Paper => training_rows / PAPER_BATCH_ROWS,
    };
    let names = schema.columns().iter();
    let order = names.map(|column| column.name().to_owned()).collect();
    let job = Job::builder("bench", schema)
        .engine(engine)
        .key_bits(KEY_BITS)
        .settings(Settings {
            method: Method::Descent {
                rate: 1.0,
                minimum_rate: 0.0,
                decay: 0.0,
                batches,
            },
            l2: 0.0,
            tolerance: 0.0,
            max_iterations: 1,
        })
        .hold_out(HOLDOUT_PERMILLE)
        .ranking(Ranking::Given { features: order });
    let job = job.build().map_err(Failure::input)?;
    let spec = job.spec(JobId([0; 16]), &Randomness::from_os());
    let shares: Vec<usize> = (0..PROVIDERS)
        .map(|part| Batch::new(part, PROVIDERS).share(rows).len())
        .collect();
    let order: Vec<usize> = (0..columns).collect();
    let costs = measure_job(&Shape {
        spec: &spec,
        order: &order,
        iota: columns,
        rows: &shares,
        most_rows: usize::MAX,
    })?;
    Ok(of_costs(
        &spec,
        &costs,
        training_rows,
        training_rows / batches,
    ))
}

fn of_costs(spec: &JobSpec, costs: &Costs, training_rows: usize, batch_rows: usize) -> Line {
    let bytes = costs.sent.each + costs.received.each;
    Line {
        engine: spec.engine,
        columns: spec.schema.columns().len(),
        training_rows,
        batch_rows,
        milliseconds_per_iteration: 1e3 * costs.seconds.each,
        microseconds_per_row_iteration: 1e6 * costs.seconds.each / batch_rows as f64,
        bytes_per_row_iteration: bytes / batch_rows as f64,
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "engines, {PROVIDERS} providers and the data user on this machine, all columns encrypted"
        )?;
        writeln!(
            f,
            "  {:<7} {:>7} {:>9} {:>9} {:>13} {:>9} {:>11}",
            "engine", "columns", "rows", "batch", "ms/iteration", "µs/row", "bytes/row"
        )?;
        for line in &self.lines {
            writeln!(
                f,
                "  {:<7} {:>7} {:>9} {:>9} {:>13.2} {:>9.2} {:>11.0}",
                line.engine.to_string(),
                line.columns,
                line.training_rows,
                line.batch_rows,
                line.milliseconds_per_iteration,
                line.microseconds_per_row_iteration,
                line.bytes_per_row_iteration
            )?;
        }
        match self.lookup_faster_by {
            Some(times) => write!(
                f,
                "  per row and iteration lookup is {times:.0} times faster than paper"
            ),
            None => write!(f, "  this build was made without engine paper"),
        }
    }
}
