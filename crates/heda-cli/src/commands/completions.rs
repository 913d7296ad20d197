//! `heda completions`: what a shell needs to complete commands and options.

use crate::{Program, output};
use clap_complete::{Shell, generate};
use heda::Error;

/// Print a script by which a shell completes commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda completions bash > ~/.local/share/bash-completion/completions/heda
  heda completions zsh > ~/.zfunc/_heda
  heda completions fish > ~/.config/fish/completions/heda.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &CompletionsArguments, program: &Program) -> Result<(), Error> {
    let mut script = Vec::new();
    let mut command = program.command();
    generate(arguments.shell, &mut command, program.name, &mut script);
    output::print_text(String::from_utf8_lossy(&script).trim_end())
}
