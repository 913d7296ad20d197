//! Other providers that a provider knows, by their answers to an invitation.

use super::load;
use crate::error::Error;
use crate::files::write_whole;
use heda_node::config::{Answer, template};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Providers that are known from now on.
#[derive(Debug, Serialize)]
pub struct Known {
    /// Those that were not known before.
    pub new: Vec<NewlyKnown>,
    /// How many of the known ones must take part in every job.
    pub known_co_providers_min: u64,
}

/// A provider that was not known before.
#[derive(Debug, Serialize)]
pub struct NewlyKnown {
    /// What it is called.
    pub name: String,
    /// Its fingerprint in numbers, to compare by voice.
    pub number: String,
}

const LEAST: &str = "known_co_providers_min";

/// Adds providers to a configuration by their answers, so that every job must have them.
///
/// # Errors
/// If the configuration or an answer cannot be used.
pub fn know(config_path: &Path, answers: &[PathBuf]) -> Result<Known, Error> {
    let config = load(config_path)?;
    let answers = answers.iter().map(|path| Answer::load(path));
    let answers: Vec<Answer> = answers.collect::<Result<_, _>>().map_err(Error::input)?;
    let is_new = |answer: &&Answer| {
        let mut entries = config.known_providers.iter();
        !entries.any(|entry| entry.fingerprint == answer.fingerprint)
    };
    let new: Vec<&Answer> = answers.iter().filter(is_new).collect();
    let text = std::fs::read_to_string(config_path).map_err(Error::input)?;
    let least = config.limits.known_co_providers_min + new.len() as u64;
    let lines = text.lines().map(|line| match line.starts_with(LEAST) {
        true => format!("{LEAST} = {least}\n"),
        false => format!("{line}\n"),
    });
    let entries = new
        .iter()
        .map(|a| template::known_provider(&a.name, a.fingerprint));
    let text: String = lines.chain(entries).collect();
    write_whole(config_path, text.as_bytes())?;
    // What was written must be as good as what was there.
    load(config_path)?;
    let known = |answer: &&Answer| NewlyKnown {
        name: answer.name.to_string(),
        number: answer.fingerprint.spoken(),
    };
    Ok(Known {
        new: new.iter().map(known).collect(),
        known_co_providers_min: least,
    })
}
