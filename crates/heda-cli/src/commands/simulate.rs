//! `heda simulate`: a whole job on this machine with one's own file.

use crate::options::{CsvOptions, PrivateOptions, TrainingOptions};
use crate::output;
use crate::progress::{Phases, ProgressLine};
use heda::Error;
use heda::files::write_whole;
use heda::layout::{command, fitted, wrapped};
use heda::schema::{self, Proposal};
use heda::{Dataset, Delta, Job, Schema, Simulation, Trained, data, report};
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
  heda simulate --data patients.csv --schema patients.toml --private 1
  heda simulate --data patients.csv --schema patients.toml --providers 5 --json")]
pub(crate) struct SimulateArguments {
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
    /// Number of providers that the rows are divided among
    #[arg(long, value_name = "N", default_value_t = 3)]
    providers: usize,
    /// Draw everything from this seed: reproducible, and without protection
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Write model.json and report.html into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    private: PrivateOptions,
    #[command(flatten)]
    training: TrainingOptions,
    #[command(flatten)]
    csv: CsvOptions,
}

#[derive(Serialize)]
struct SimulationWritten<'a> {
    assumptions: &'a [String],
    #[serde(flatten)]
    trained: &'a Trained,
}

/// Rows, what they mean, and what was assumed about them.
struct Table {
    data: Dataset,
    schema: Schema,
    assumptions: Vec<String>,
    /// Whether bounds or levels were read from the rows, so that no promise can hold.
    from_rows: bool,
}

pub(crate) fn run(arguments: &SimulateArguments) -> Result<(), Error> {
    let table = match &arguments.schema {
        Some(schema) => by_schema(arguments, schema)?,
        None => by_looking(arguments)?,
    };
    let job = job(arguments, &table)?;
    let phases = Phases::of(&job);
    let next = next_commands(arguments, &table, &job);
    let mut simulation = Simulation::new(job).providers(arguments.providers);
    if let Some(seed) = arguments.seed {
        simulation = simulation.danger_seeded(seed);
    }
    let mut line = ProgressLine::new(phases);
    let mut trained = simulation.run(&table.data, &mut |progress| line.show(progress))?;
    drop(line);
    if table.from_rows {
        trained.note_bounds_from_rows();
    }
    if let Some(folder) = &arguments.out {
        trained.write(folder, &report::command_line())?;
    }
    if arguments.json {
        return output::print_json(&SimulationWritten {
            assumptions: &table.assumptions,
            trained: &trained,
        });
    }
    let mut parts = Vec::new();
    if !table.assumptions.is_empty() {
        parts.push(assumptions(&table.assumptions, arguments));
    }
    parts.push(trained.text());
    parts.push(next);
    output::print_text(&parts.join("\n\n"))
}

fn job(arguments: &SimulateArguments, table: &Table) -> Result<Job, Error> {
    let schema = &table.schema;
    let job = Job::builder(schema.name(), schema.clone());
    let job = arguments.training.put_into(job);
    let job = match arguments.private.promise() {
        Some((epsilon, delta)) => {
            let rows = table.data.rows();
            let held_out = arguments.training.held_out().of(rows as u64);
            let training = rows - held_out as usize;
            job.private_within(epsilon, delta.map(Delta::get), training)?
        }
        None => job,
    };
    job.build()
}

fn by_schema(arguments: &SimulateArguments, path: &Path) -> Result<Table, Error> {
    let (text, schema) = schema::read(path)?;
    let (data, report) = data::read(&arguments.data, &schema, arguments.csv.format())?;
    output::warn(report.warnings());
    Ok(Table {
        data,
        schema,
        assumptions: Vec::new(),
        from_rows: schema::marks(&text) > 0,
    })
}

fn by_looking(arguments: &SimulateArguments) -> Result<Table, Error> {
    let (path, format) = (&arguments.data, arguments.csv.format());
    let proposal = schema::propose(path, arguments.label.as_deref(), format)?;
    if let Some(path) = &arguments.write_schema {
        write_whole(path, proposal.text.as_bytes())?;
    }
    let (data, _) = proposal
        .reader(format)
        .read_file(path)
        .map_err(Error::input)?;
    let Proposal {
        schema,
        assumptions,
        ..
    } = proposal;
    Ok(Table {
        data,
        schema,
        assumptions,
        from_rows: true,
    })
}

fn assumptions(lines: &[String], arguments: &SimulateArguments) -> String {
    let data = arguments.data.display();
    let lines: Vec<String> = lines
        .iter()
        .map(|line| fitted(&format!("  {line}"), 4))
        .collect();
    format!(
        "{}\n{}",
        fitted(
            &format!("How {data} was read (override with --label or --schema):"),
            2
        ),
        lines.join("\n")
    )
}

/// What makes the same a job between organisations.
fn next_commands(arguments: &SimulateArguments, table: &Table, job: &Job) -> String {
    let word = |path: &Path| report::quoted(&path.to_string_lossy());
    let comment = |words: &str| wrapped(words, "  # ").join("\n");
    let data = word(&arguments.data);
    let first = match (&arguments.schema, &arguments.write_schema) {
        (Some(schema), _) if !table.from_rows => comment(&format!(
            "{} is the schema that all parties share",
            word(schema)
        )),
        (Some(schema), _) | (None, Some(schema)) => comment(&format!(
            "correct {} and delete its CONFIRM marks; all parties share it",
            word(schema)
        )),
        (None, None) => {
            let line = format!("heda simulate --data {data} --write-schema schema.toml");
            comment("correct the schema that this writes, and delete its CONFIRM marks")
                + "\n"
                + &command(&line, "  ")
        }
    };
    let shared = arguments
        .schema
        .as_ref()
        .or(arguments.write_schema.as_ref());
    let shared = shared.map_or("schema.toml".to_owned(), |path| word(path));
    let rows = job.privacy().map_or(0, |privacy| privacy.rows);
    let invite = format!(
        "heda invite --name data-user --schema {shared}{}{}",
        arguments.private.line(rows),
        arguments.training.line()
    );
    // A provider serves private jobs unless it says otherwise.
    let (exact, advice) = match (job.privacy(), table.data.classes().is_empty()) {
        (Some(_), _) => ("", String::new()),
        (None, true) => (" --allow-exact", String::new()),
        (None, false) => {
            let words = "the sums of this job are exact; `heda simulate --private 1` tries it as a \
                         differentially private one";
            (" --allow-exact", comment(words) + "\n")
        }
    };
    let setup = format!(
        "heda provider setup --invitation invitation.toml --data {data}{}{exact} --name NAME \
         --address HOST:PORT --serve",
        arguments.csv.line()
    );
    [
        "Next, the same between organisations (docs/tutorial.md):".to_owned(),
        first,
        advice + &comment("the data user, who sends invitation.toml to the providers"),
        command(&invite, "  "),
        comment("each provider, who sends NAME.answer.toml back; HOST:PORT is where it listens"),
        command(&setup, "  "),
        comment("the data user, when the answers are in the folder answers"),
        command("heda train job.toml --answers answers", "  "),
    ]
    .join("\n")
}
