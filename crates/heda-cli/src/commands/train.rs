//! `heda train`: a job with providers over the network.

use crate::output;
use clap::Args;
use heda::failure::Failure;
use heda::{DataUser, RemoteJob, report};
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
    /// Go on from the checkpoint in the folder.
    #[arg(long)]
    resume: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Train) -> Result<(), Failure> {
    let job = RemoteJob::load(&arguments.job)?;
    if job.is_seeded() {
        eprintln!("heda: a seed is given: this run can be repeated and protects nothing");
    }
    output::warn_of_leaks(job.job().engine());
    let trained = DataUser::train_remotely(
        &job,
        &arguments.out,
        arguments.resume,
        &report::command_line(),
        listener(),
    )?;
    match arguments.json {
        true => output::print_json(&trained),
        false => output::print_text(&trained.text()),
    }
}

/// Plain lines on stderr, one for each thing that a person who waits wants to know.
fn listener() -> Listener {
    Arc::new(|notice| match notice {
        Notice::Reached(provider) => eprintln!("connected to {provider}"),
        Notice::Connected => eprintln!("connected to all providers"),
        Notice::Retry { cause, pause } => eprintln!("{cause}; again in {pause:?}"),
        Notice::Seeded(provider) => eprintln!(
            "heda: {provider} runs with a seed: it can be repeated, and protects nothing of its rows"
        ),
        Notice::Phase(name) => eprintln!("{name}"),
        Notice::Split(reason) => eprintln!("{reason}"),
        Notice::Iteration {
            done,
            at_most,
            norm,
        } => match norm {
            Some(norm) => eprintln!("iteration {done} of at most {at_most}, gradient {norm:.2e}"),
            None => eprintln!("iteration {done} of at most {at_most}"),
        },
        Notice::Lost { provider, cause } => eprintln!("lost {provider}: {cause}"),
        Notice::LeftBehind(provider) => eprintln!("going on without {provider}, with new masks"),
    })
}
