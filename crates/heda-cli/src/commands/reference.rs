//! `heda reference`: every key of the files that people write.

use crate::output;
use clap::ValueEnum;
use heda::Error;
use heda::reference;

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

pub(crate) fn run(arguments: &ReferenceArguments) -> Result<(), Error> {
    if let Some(file) = arguments.json_schema {
        let file = match file {
            File::Job => reference::File::Job,
            File::Provider => reference::File::Provider,
            File::Schema => reference::File::Schema,
        };
        return output::print_json(&file.json_schema());
    }
    let parts = reference::File::ALL.into_iter().map(|file| file.markdown());
    let parts: Vec<String> = std::iter::once(BEGINNING.to_owned()).chain(parts).collect();
    output::print_text(parts.join("\n").trim_end())
}
