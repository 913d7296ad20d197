//! What the defaults are worth on data that nobody tuned them for: the data sets that
//! `tools/reference/data_sets.py` exports, on the splits and beside the results of scikit-learn's
//! `StandardScaler` and `LogisticRegression` that it wrote down.
//!
//! Training is that of a job with engine `resident` and nothing but defaults: windows and
//! coordinates from means and deviations, integers, rounding by chance, as many gradients as the
//! rule says. It is computed in clear by the oracle that the engine equals to the last bit, or, with
//! `--encrypted`, as a job with three providers. Accuracy is always that of the model in clear on
//! the split's own test rows.

mod page;

use page::page;

use super::document::in_place;
use super::sheet::{Sheet, SheetLayout};
use heda::Error;
use heda::files::write_whole;
use heda::{Job, Simulation};
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::grid::Grid;
use heda_learn::loss::LossKind;
use heda_learn::model::{Model, Provenance};
use heda_learn::optimise::{Basis, Optimiser, Settings, usual_iterations};
use heda_learn::oracle::{TrainConfig, train};
use heda_learn::resident::{Encoding, GridRows, Position, ResidentSource, Resolution, RowCoins};
use heda_learn::scaling::{Scaling, Window, placed};
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use rand_core::Rng;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "defaults",
    columns: &[
        "dataset",
        "bounds",
        "encrypted",
        "split",
        "rows",
        "columns",
        "classes",
        "test_rows",
        "iterations",
        "settled",
        "right",
        "right_in_clear",
        "right_scikit_learn",
        "right_majority",
        "iterations_scikit_learn",
    ],
};

/// A provider may get no row of a rare class; other parts are drawn then.
const MOST_DRAWS: u64 = 20;

/// Options of this experiment.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Folder that tools/reference/data_sets.py wrote
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Folder for measurements (CSV)
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A page with a place for the tables
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Train under encryption, with three providers, on the first split only
    #[arg(long)]
    encrypted: bool,
    /// These data sets only
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Fixes every random draw
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Measures what is missing and writes the page.
pub(super) fn run(arguments: &Arguments) -> Result<String, Error> {
    let mut sheet = Sheet::open(&arguments.out, &LAYOUT)?;
    for name in names(arguments)? {
        let reference = Reference::read(&arguments.from, &name)?;
        for bounds in ["stated", "wide"] {
            one_data_set(arguments, &mut sheet, &name, bounds, &reference)?;
        }
    }
    let tables = page(&sheet);
    if let Some(page) = &arguments.page {
        let old = std::fs::read_to_string(page).map_err(Error::input)?;
        write_whole(page, in_place(&old, &tables)?.as_bytes())?;
    }
    Ok(tables)
}

fn names(arguments: &Arguments) -> Result<Vec<String>, Error> {
    if !arguments.only.is_empty() {
        return Ok(arguments.only.clone());
    }
    let folder = arguments.from.display();
    let failure = |e: std::io::Error| Error::input(format!("{folder}: {e}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&arguments.from).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            let name = path.file_stem().map(|name| name.to_string_lossy());
            names.extend(name.map(|name| name.into_owned()));
        }
    }
    names.sort();
    match names.is_empty() {
        true => Err(Error::input(format!(
            "{folder}: no data sets; run tools/reference/data_sets.py with this folder first"
        ))),
        false => Ok(names),
    }
}

fn one_data_set(
    arguments: &Arguments,
    sheet: &mut Sheet,
    name: &str,
    bounds: &str,
    reference: &Reference,
) -> Result<(), Error> {
    let file = match bounds {
        "wide" => format!("{name}.wide.toml"),
        _ => format!("{name}.toml"),
    };
    let schema = Schema::read(&arguments.from.join(file)).map_err(Error::input)?;
    let table = arguments.from.join(format!("{name}.csv"));
    let (data, _) = TableReader::new(&schema)
        .read_file(&table)
        .map_err(Error::input)?;
    let splits = if arguments.encrypted {
        1
    } else {
        reference.splits.len()
    };
    for (index, split) in reference.splits.iter().enumerate().take(splits) {
        let encrypted = if arguments.encrypted { "yes" } else { "no" };
        let key = [name, bounds, encrypted, &index.to_string()].map(str::to_owned);
        sheet.complete(arguments.seed, &key, || {
            let trial = Trial::new(&schema, &data, split);
            let seed = arguments.seed + 1000 * index as u64;
            trial.measure(arguments.encrypted, seed, split)
        })?;
    }
    Ok(())
}

/// What scikit-learn made of a data set.
struct Reference {
    splits: Vec<ReferenceSplit>,
}

struct ReferenceSplit {
    test: Vec<usize>,
    right: u64,
    majority: u64,
    iterations: f64,
}

impl Reference {
    fn read(folder: &Path, name: &str) -> Result<Self, Error> {
        let path = folder.join(format!("{name}.json"));
        let bad = |e: &dyn std::fmt::Display| Error::input(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|e| bad(&e))?;
        let value: Value = serde_json::from_str(&text).map_err(|e| bad(&e))?;
        let splits = value["splits"].as_array();
        let splits = splits.map(|all| all.iter().map(ReferenceSplit::of).collect());
        let splits: Option<Option<Vec<_>>> = splits;
        let splits = splits.flatten().ok_or_else(|| bad(&"it is not complete"))?;
        Ok(Self { splits })
    }
}

impl ReferenceSplit {
    /// Numbers and indicators both scaled, as `StandardScaler` does it to all columns.
    fn of(value: &Value) -> Option<Self> {
        let number = |value: &Value| value.as_u64();
        let test: Option<Vec<u64>> = value["test"].as_array()?.iter().map(number).collect();
        let scaled = &value["scaled"];
        let each: Option<Vec<u64>> = scaled["iterations"]
            .as_array()?
            .iter()
            .map(number)
            .collect();
        let each = each?;
        Some(Self {
            test: test?.into_iter().map(|row| row as usize).collect(),
            right: number(&scaled["right"])?,
            majority: number(&value["majority"])?,
            iterations: each.iter().sum::<u64>() as f64 / each.len().max(1) as f64,
        })
    }
}

/// One split of a data set.
struct Trial<'a> {
    schema: &'a Schema,
    training: Dataset,
    test: Dataset,
    positives: Vec<u32>,
}

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

impl<'a> Trial<'a> {
    fn new(schema: &'a Schema, data: &Dataset, split: &ReferenceSplit) -> Self {
        let test: std::collections::HashSet<usize> = split.test.iter().copied().collect();
        let rest: Vec<usize> = (0..data.rows()).filter(|row| !test.contains(row)).collect();
        let positives = match data.classes().len() {
            2 => vec![1],
            classes => (0..classes as u32).collect(),
        };
        Self {
            schema,
            training: data.select_rows(&rest),
            test: data.select_rows(&split.test),
            positives,
        }
    }

    fn measure(
        &self,
        encrypted: bool,
        seed: u64,
        split: &ReferenceSplit,
    ) -> Result<Vec<String>, Error> {
        let (model, settled) = match encrypted {
            true => (self.under_encryption(seed)?, String::new()),
            false => self.on_integers(seed)?,
        };
        Ok(vec![
            self.training.rows().to_string(),
            self.training.width().to_string(),
            self.training.classes().len().to_string(),
            self.test.rows().to_string(),
            usual_iterations(self.training.width()).to_string(),
            settled,
            self.right(&model)?.to_string(),
            self.right(&self.in_clear()?)?.to_string(),
            split.right.to_string(),
            split.majority.to_string(),
            format!("{:.2}", split.iterations),
        ])
    }

    fn right(&self, model: &Model) -> Result<u64, Error> {
        let accuracy = model.evaluate(&self.test).accuracy;
        let accuracy = accuracy.ok_or_else(|| bug("no test rows"))?;
        Ok((accuracy * self.test.rows() as f64).round() as u64)
    }

    fn model(&self, betas: &[Vec<f64>]) -> Result<Model, Error> {
        let schema = self.schema.clone();
        Model::new(LossKind::Logistic, schema, betas, Provenance::default()).map_err(bug)
    }

    /// Exact derivatives, to the end.
    fn in_clear(&self) -> Result<Model, Error> {
        let config = TrainConfig::logistic();
        let fit = |&positive: &u32| Ok(train(&self.training, positive, &config).map_err(bug)?.beta);
        let betas: Result<Vec<_>, Error> = self.positives.iter().map(fit).collect();
        self.model(&betas?)
    }

    /// As a job, step by step, in clear. Also the mean iteration in which noise was reached.
    fn on_integers(&self, seed: u64) -> Result<(Model, String), Error> {
        let (windows, basis) = self.coordinates();
        let rows = self.training.clone().in_windows(&windows);
        let outside = Scaling::new(windows.iter().map(|window| window.centre()).collect());
        let (mut betas, mut settled) = (Vec::new(), 0.0);
        for &positive in &self.positives {
            let optimiser = one_class(&rows, positive, basis.clone(), seed)?;
            let at = optimiser.settled().unwrap_or(optimiser.iterations());
            settled += f64::from(at) / self.positives.len() as f64;
            betas.push(outside.to_values(optimiser.beta()));
        }
        Ok((self.model(&betas)?, format!("{settled:.2}")))
    }

    fn coordinates(&self) -> (Vec<Window>, Basis) {
        let (windows, scaling) = placed(&self.training);
        let noise = resolution(&self.training).rounding();
        (windows, Basis { scaling, noise })
    }

    fn under_encryption(&self, seed: u64) -> Result<Model, Error> {
        let job = Job::builder("rows", self.schema.clone()).hold_out(0.0);
        let job = job.build()?;
        let mut last = None;
        for draw in 0..MOST_DRAWS {
            let simulation = Simulation::new(job.clone()).danger_seeded(seed + 100 * draw);
            match simulation.run(&self.training, &mut heda::quiet) {
                Ok(trained) => return Ok(trained.model),
                Err(failure) => last = Some(failure),
            }
        }
        Err(last.unwrap_or_else(|| bug("no draw")))
    }
}

/// How finely a job on these rows is cut.
fn resolution(rows: &Dataset) -> Resolution {
    Resolution::for_columns(rows.width()).of_count(rows.rows())
}

fn one_class(rows: &Dataset, positive: u32, basis: Basis, seed: u64) -> Result<Optimiser, Error> {
    let resolution = resolution(rows);
    let bits = resolution.value_bits();
    let encoding = Encoding::of_features(rows.features(), bits).map_err(bug)?;
    let values = rows.values().iter();
    let values = values.map(|&x| Grid::of_bits(bits).signed_point(x));
    let labels = rows.labels().iter().map(|&label| label == positive);
    let grid = GridRows::plain(&encoding, values.collect(), labels.collect()).map_err(bug)?;
    let randomness = Randomness::seeded(seed);
    let mut rng = randomness.fork("masks", u64::from(positive)).map_err(bug)?;
    let coins = move |_: Position| RowCoins {
        mask: rng.next_u32(),
        coin: rng.next_u32(),
    };
    let loss = LossKind::Logistic;
    let source = ResidentSource::new(resolution, encoding, loss, vec![grid], coins);
    let source = source.map_err(bug)?;
    let settings = Settings {
        max_iterations: usual_iterations(rows.width()),
        ..Settings::lbfgs()
    };
    let mut optimiser = Optimiser::on(basis.clone(), settings, rows.width() + 1).map_err(bug)?;
    optimiser
        .run(&mut source.near(&basis.scaling), |_| {
            ControlFlow::Continue(())
        })
        .map_err(bug)?;
    Ok(optimiser)
}
