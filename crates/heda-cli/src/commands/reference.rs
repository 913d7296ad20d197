//! `heda reference`: every key of the files that people write.

use crate::output;
use clap::ValueEnum;
use heda::failure::Failure;
use heda_learn::reference::FileKeys;
use heda_learn::schema::SCHEMA_KEYS;
use heda_node::config::{JOB_KEYS, PROVIDER_KEYS};

/// Print every key of job, provider and schema files, or a JSON schema for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda reference
  heda reference --json-schema job > job.json")]
pub(crate) struct ReferenceArguments {
    /// A JSON schema of one file instead
    #[arg(long, value_enum, value_name = "FILE")]
    json_schema: Option<File>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum File {
    Job,
    Provider,
    Schema,
}

const BEGINNING: &str = "# Every key of every file

Written by `heda reference`, from what the code reads; a test compares them. Files are TOML. A key that
is not listed is refused, with the nearest one that is. `heda reference --json-schema job` (or `provider`,
`schema`) prints a JSON schema for editors; [docs/schemas](schemas) has all three.
";

pub(crate) fn run(arguments: &ReferenceArguments) -> Result<(), Failure> {
    let keys = |file| match file {
        File::Job => &JOB_KEYS,
        File::Provider => &PROVIDER_KEYS,
        File::Schema => &SCHEMA_KEYS,
    };
    if let Some(file) = arguments.json_schema {
        return output::print_json(&keys(file).json_schema());
    }
    let files = [File::Job, File::Provider, File::Schema].map(keys);
    let parts = files.iter().map(|file: &&FileKeys| file.markdown());
    let parts: Vec<String> = std::iter::once(BEGINNING.to_owned()).chain(parts).collect();
    output::print_text(parts.join("\n").trim_end())
}
