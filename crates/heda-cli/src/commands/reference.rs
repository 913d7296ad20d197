//! `heda reference`: every key of the files that people write.

use crate::output;
use clap::ValueEnum;
use heda::Error;
use heda::reference;

/// Print every key of every file, or a JSON schema of one for editors
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
    Invitation,
    Answer,
}

const BEGINNING: &str = "# Every key of every file

`heda reference` writes this page from the fields that the program reads, and a test compares them. All
files are TOML, and paths in a file are relative to it. The program refuses a key that is not listed and
names the nearest one that is. `heda reference --json-schema job` (or `provider`, `schema`, `invitation`,
`answer`) prints a JSON schema for editors; [docs/schemas](schemas) has all of them.
";

pub(crate) fn run(arguments: &ReferenceArguments) -> Result<(), Error> {
    // In the order of `File`.
    let files = reference::files();
    if let Some(file) = arguments.json_schema {
        return output::print_json(&files[file as usize].json_schema());
    }
    let parts = files.iter().map(|file| file.markdown());
    let parts: Vec<String> = std::iter::once(BEGINNING.to_owned()).chain(parts).collect();
    output::print_text(parts.join("\n").trim_end())
}
