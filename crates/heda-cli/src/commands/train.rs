//! `heda train`: a job with providers over the network.

use crate::output::{self, note};
use crate::waiting::Waiting;
use clap::Args;
use heda::confirmed_schema;
use heda::failure::Failure;
use heda::{DataUser, RemoteJob, ResultFolder, report};
use heda_node::client::training::{Listener, Notice};
use heda_node::config::{Answer, Seconds};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Train a model on the rows of providers over the network.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The job file.
    job: PathBuf,
    /// Folder with the answers of providers to an invitation.
    #[arg(long, value_name = "DIR")]
    answers: Option<PathBuf>,
    /// Train by a schema that still has marks of what was read from rows.
    #[arg(long)]
    unconfirmed: bool,
    /// Folder for the model, the report and, while the job runs, its checkpoint.
    #[arg(long, default_value = "heda-result")]
    out: PathBuf,
    /// Permissions of model and report, as in chmod.
    #[arg(long, default_value = "600", value_parser = permissions)]
    mode: u32,
    /// Go on from the checkpoint in the folder.
    #[arg(long)]
    resume: bool,
    /// Seconds to wait for providers that cannot be reached; `timeouts.loss_seconds` of the job
    /// file, or 600, if not given.
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Three octal digits, with which the owner can read.
fn permissions(text: &str) -> Result<u32, NotAMode> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(mode),
        _ => Err(NotAMode),
    }
}

/// A text that is no mode of a file, or one that shuts its owner out.
#[derive(Debug, thiserror::Error)]
#[error("three octal digits, such as 600 or 640, by which the owner can read and write")]
struct NotAMode;

pub(crate) fn run(arguments: &Train) -> Result<(), Failure> {
    let answers = match &arguments.answers {
        Some(folder) => Answer::in_folder(folder).map_err(Failure::input)?,
        None => Vec::new(),
    };
    let job = RemoteJob::with_answers(&arguments.job, &answers)?;
    let job = match arguments.patience.map(Seconds::try_from).transpose() {
        Ok(Some(patience)) => job.with_patience(patience),
        Ok(None) => job,
        Err(error) => return Err(Failure::input(format!("--patience: {error}"))),
    };
    confirmed_schema(job.schema_path(), arguments.unconfirmed)?;
    for answer in &answers {
        note!("{}  {}", answer.fingerprint.spoken(), answer.name);
    }
    if job.is_seeded() {
        note!("heda: a seed is given: this run can be repeated and protects nothing");
    }
    output::warn(job.warning());
    output::warn_of_leaks(job.job().engine());
    let into = ResultFolder {
        folder: &arguments.out,
        resume: arguments.resume,
        command: &report::command_line(),
        mode: arguments.mode,
    };
    let trained = DataUser::train_remotely(&job, &into, listener())?;
    match arguments.json {
        true => output::print_json(&trained),
        false => output::print_text(&trained.text()),
    }
}

/// Lines on stderr, one for each thing that a person who waits wants to know.
fn listener() -> Listener {
    let waiting = Mutex::new(Waiting::new());
    Arc::new(move |notice| {
        // What another thread left behind is good enough for showing.
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match notice {
            Notice::Retry {
                provider,
                cause,
                left,
            } => waiting.waits(&provider, &cause, left),
            Notice::Reached(provider) => {
                waiting.over(&provider, &format!("connected to {provider}"));
            }
            Notice::Connected => note!("connected to all providers"),
            Notice::Seeded(provider) => note!(
                "heda: {provider} runs with a seed: it can be repeated, and protects nothing of its rows"
            ),
            Notice::Phase(name) => note!("{name}"),
            Notice::Split(reason) => note!("{reason}"),
            Notice::Iteration {
                done,
                at_most,
                norm,
            } => match norm {
                Some(norm) => {
                    note!("iteration {done} of at most {at_most}, gradient {norm:.2e}");
                }
                None => note!("iteration {done} of at most {at_most}"),
            },
            Notice::Lost { provider, cause } => note!("lost {provider}: {cause}"),
            Notice::Ledger(words) => note!("{words}"),
            Notice::LeftBehind(provider) => {
                note!("going on without {provider}, with new masks");
            }
        }
    })
}
