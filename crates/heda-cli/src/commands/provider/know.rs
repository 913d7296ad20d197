//! `heda provider know`: other providers, by their answers to an invitation.

use crate::output;
use heda::failure::Failure;
use heda::files::write_whole;
use heda::layout::wrapped;
use heda_node::config::{Answer, ProviderConfig, template};
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

#[derive(serde::Serialize)]
struct KnownProvider {
    /// Names and spoken numbers of the providers that are new.
    new: Vec<NewProvider>,
    known_co_providers_min: u64,
}

#[derive(serde::Serialize)]
struct NewProvider {
    name: String,
    number: String,
}

const LEAST: &str = "known_co_providers_min";

pub(crate) fn run(arguments: &Know) -> Result<(), Failure> {
    let config = ProviderConfig::load(&arguments.config).map_err(Failure::input)?;
    let answers = arguments.answers.iter().map(|path| Answer::load(path));
    let answers: Vec<Answer> = answers.collect::<Result<_, _>>().map_err(Failure::input)?;
    let known = |answer: &&Answer| {
        let mut entries = config.known_providers.iter();
        !entries.any(|entry| entry.fingerprint == answer.fingerprint)
    };
    let new: Vec<&Answer> = answers.iter().filter(known).collect();
    let text = std::fs::read_to_string(&arguments.config).map_err(Failure::input)?;
    let least = config.limits.known_co_providers_min + new.len() as u64;
    let lines = text.lines().map(|line| match line.starts_with(LEAST) {
        true => format!("{LEAST} = {least}\n"),
        false => format!("{line}\n"),
    });
    let entries = new
        .iter()
        .map(|a| template::known_provider(&a.name, a.fingerprint));
    let text: String = lines.chain(entries).collect();
    write_whole(&arguments.config, text.as_bytes())?;
    // What was written must be as good as what was there.
    ProviderConfig::load(&arguments.config).map_err(Failure::input)?;
    if arguments.json {
        let provider = |answer: &&Answer| NewProvider {
            name: answer.name.to_string(),
            number: answer.fingerprint.spoken(),
        };
        return output::print_json(&KnownProvider {
            new: new.iter().map(provider).collect(),
            known_co_providers_min: least,
        });
    }
    let line = |answer: &&Answer| format!("{}  {}", answer.fingerprint.spoken(), answer.name);
    let mut lines: Vec<String> = new.iter().map(line).collect();
    let word = if new.len() == 1 {
        "provider is"
    } else {
        "providers are"
    };
    let told = format!(
        "{} {word} new; {least} of the others must take part in every job from now on.",
        new.len()
    );
    lines.extend(wrapped(&told, ""));
    let compare = "The answers came through the data user: compare these words with each provider by \
                   voice.";
    lines.extend(wrapped(compare, ""));
    output::print_text(&lines.join("\n"))
}
