//! `heda train`: a job with providers over the network.

use crate::output::{self, note};
use clap::Args;
use heda::failure::Failure;
use heda::{DataUser, RemoteJob, ResultFolder, report};
use heda_node::client::training::{Listener, Notice};
use std::path::PathBuf;
use std::sync::Arc;

/// Train a model on the rows of providers over the network.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The job file.
    job: PathBuf,
    /// Folder for the model, the report and, while the job runs, its checkpoint.
    #[arg(long, default_value = "heda-result")]
    out: PathBuf,
    /// Permissions of model and report, as in chmod.
    #[arg(long, default_value = "600", value_parser = permissions)]
    mode: u32,
    /// Go on from the checkpoint in the folder.
    #[arg(long)]
    resume: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Three octal digits, with which the owner can read.
fn permissions(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(mode),
        _ => Err(
            "three octal digits, such as 600 or 640, by which the owner can read and write".into(),
        ),
    }
}

pub(crate) fn run(arguments: &Train) -> Result<(), Failure> {
    let job = RemoteJob::load(&arguments.job)?;
    if job.is_seeded() {
        note!("heda: a seed is given: this run can be repeated and protects nothing");
    }
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

/// Plain lines on stderr, one for each thing that a person who waits wants to know.
fn listener() -> Listener {
    Arc::new(|notice| match notice {
        Notice::Reached(provider) => note!("connected to {provider}"),
        Notice::Connected => note!("connected to all providers"),
        Notice::Retry { cause, pause } => note!("{cause}; again in {pause:?}"),
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
            Some(norm) => note!("iteration {done} of at most {at_most}, gradient {norm:.2e}"),
            None => note!("iteration {done} of at most {at_most}"),
        },
        Notice::Lost { provider, cause } => note!("lost {provider}: {cause}"),
        Notice::Ledger(words) => note!("{words}"),
        Notice::LeftBehind(provider) => note!("going on without {provider}, with new masks"),
    })
}
