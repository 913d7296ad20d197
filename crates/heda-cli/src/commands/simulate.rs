//! `heda simulate`: a whole job on this machine with one's own file.

use crate::options::{CsvOptions, TrainingOptions};
use crate::output;
use crate::progress::Progress;
use heda::failure::Failure;
use heda::files::write_whole;
use heda::{Dataset, Job, Schema, Simulation, TableReader, Trained, report};
use heda_learn::infer::{self, Proposal};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Try a job on your own table: one file, this machine, no schema needed
///
/// Looks at the file, says what it takes each column for, divides the rows among providers that
/// are threads of this process with real keys and messages, trains under encryption, evaluates on
/// held-out rows and compares with training in clear. Nothing leaves the machine. At the end it
/// says which commands make the same a job between organisations.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda simulate --data patients.csv
  heda simulate --data patients.csv --label outcome --out first-look
  heda simulate --data patients.csv.gz --write-schema patients.toml
  heda simulate --data patients.csv --schema patients.toml --providers 5 --json")]
pub(crate) struct Arguments {
    /// The table: CSV (also gzip or zstd) or Parquet
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// The column to be learned; if not given the last one, or one with a usual name
    #[arg(long, value_name = "COLUMN", conflicts_with = "schema")]
    label: Option<String>,
    /// What the columns mean, instead of a look at the rows
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Write the schema that was read from the rows here, to be corrected
    #[arg(long, value_name = "FILE", conflicts_with = "schema")]
    write_schema: Option<PathBuf>,
    /// Among how many providers the rows are divided
    #[arg(long, value_name = "N", default_value_t = 3)]
    providers: usize,
    /// Draw everything from this seed: reproducible, and without protection
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write model.json and report.html into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    csv: CsvOptions,
}

#[derive(Serialize)]
struct Printed<'a> {
    assumptions: &'a [String],
    #[serde(flatten)]
    trained: &'a Trained,
}

/// Rows, what they mean, and what was assumed about them.
struct Table {
    data: Dataset,
    schema: Schema,
    assumptions: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let table = match &arguments.schema {
        Some(schema) => by_schema(arguments, schema)?,
        None => by_looking(arguments)?,
    };
    let name = table.schema.name().to_owned();
    let job = Job::builder(&name, table.schema);
    let job = arguments.training.put_into(job);
    let job = job.build().map_err(Failure::input)?;
    let mut simulation = Simulation::new(job).providers(arguments.providers);
    if let Some(seed) = arguments.seed {
        simulation = simulation.danger_seeded(seed);
    }
    let mut trained = simulation.run(&table.data, &mut Progress::new())?;
    if let Some(folder) = &arguments.out {
        trained.write(folder, &report::command_line())?;
    }
    if arguments.json {
        return output::print_json(&Printed {
            assumptions: &table.assumptions,
            trained: &trained,
        });
    }
    let mut parts = Vec::new();
    if !table.assumptions.is_empty() {
        parts.push(assumptions(&table.assumptions, arguments));
    }
    parts.push(trained.text());
    parts.push(next_commands(arguments, &table.data));
    output::print_text(&parts.join("\n\n"))
}

fn by_schema(arguments: &Arguments, path: &Path) -> Result<Table, Failure> {
    let schema = Schema::read(path).map_err(Failure::input)?;
    let reader = TableReader::new(&schema).with_format(arguments.csv.format());
    let (data, report) = reader.read_file(&arguments.data).map_err(Failure::input)?;
    output::warn(report.warnings());
    Ok(Table {
        data,
        schema,
        assumptions: Vec::new(),
    })
}

fn by_looking(arguments: &Arguments) -> Result<Table, Failure> {
    let (path, format) = (&arguments.data, arguments.csv.format());
    let proposal = infer::propose(path, arguments.label.as_deref(), format);
    let proposal = proposal.map_err(Failure::input)?;
    if let Some(path) = &arguments.write_schema {
        write_whole(path, proposal.text.as_bytes())?;
    }
    let (data, _) = proposal
        .reader(format)
        .read_file(path)
        .map_err(Failure::input)?;
    let Proposal {
        schema,
        assumptions,
        ..
    } = proposal;
    Ok(Table {
        data,
        schema,
        assumptions,
    })
}

fn assumptions(lines: &[String], arguments: &Arguments) -> String {
    let data = arguments.data.display();
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
    format!(
        "Assumed of {data} (--label and --schema say otherwise):\n{}",
        lines.join("\n")
    )
}

/// What makes the same a job between organisations.
fn next_commands(arguments: &Arguments, data_set: &Dataset) -> String {
    let word = |path: &Path| report::quoted(&path.to_string_lossy());
    let data = word(&arguments.data);
    let schema = match (&arguments.schema, &arguments.write_schema) {
        (Some(schema), _) => format!("  # {} is the schema that all parties share", word(schema)),
        (None, Some(written)) => format!(
            "  # correct {} and delete its CONFIRM marks; all parties share it",
            word(written)
        ),
        (None, None) => format!(
            "  heda simulate --data {data} --write-schema schema.toml  # correct it, delete its marks"
        ),
    };
    let shared = arguments
        .schema
        .as_ref()
        .or(arguments.write_schema.as_ref());
    let shared = shared.map_or("schema.toml".to_owned(), |path| word(path));
    // A provider serves private jobs, which learn classes, unless it says otherwise.
    let (private, exact) = match data_set.classes().is_empty() {
        false => (format!(" --private 1 --rows {}", data_set.rows()), ""),
        true => (String::new(), " --allow-exact"),
    };
    format!(
        "Next, the same between organisations (docs/tutorial.md):\n{schema}\n  \
         heda invite --name data-user --schema {shared}{private}  # the data user\n  \
         heda provider setup --invitation invitation.toml --data {data}{exact} --serve  # each provider\n  \
         heda train job.toml --answers answers  # the data user"
    )
}
