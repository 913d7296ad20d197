//! `heda provider know`: other providers, by their answers to an invitation.

use crate::output;
use heda::Error;
use heda::layout::wrapped;
use heda::provider::{self, NewlyKnown};
use std::path::PathBuf;

/// Know other providers by their answers, so that every job must have them
///
/// Adds them to provider.toml and raises known_co_providers_min: a data user that plays the other
/// providers itself is then refused. Compare their numbers by voice first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda provider know --config provider.toml answers/north.answer.toml answers/west.answer.toml")]
pub(crate) struct Know {
    /// The provider's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Answers of other providers to the same invitation
    #[arg(value_name = "ANSWER", required = true)]
    answers: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Know) -> Result<(), Error> {
    let known = provider::know(&arguments.config, &arguments.answers)?;
    if arguments.json {
        return output::print_json(&known);
    }
    let new = &known.new;
    let line = |new: &NewlyKnown| format!("{}  {}", new.number, new.name);
    let mut lines: Vec<String> = new.iter().map(line).collect();
    let word = if new.len() == 1 {
        "provider is"
    } else {
        "providers are"
    };
    let told = format!(
        "{} {word} new; {} of the others must take part in every job from now on.",
        new.len(),
        known.known_co_providers_min
    );
    lines.extend(wrapped(&told, ""));
    let compare = "The answers came through the data user: compare these words with each provider by \
                   voice.";
    lines.extend(wrapped(compare, ""));
    output::print_text(&lines.join("\n"))
}
