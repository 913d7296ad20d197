//! `heda train`: a job with providers over the network.

use crate::output::{self, note};
use crate::progress::{self, Phases, ProgressLine};
use crate::waiting::WaitingLine;
use clap::Args;
use heda::Error;
use heda::confirmed_schema;
use heda::{JobFile, Listener, Progress, ResultFolder, report};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Train a model on the rows of providers over the network
///
/// Connects to every provider of the job file, or of the answers to an invitation, agrees with all of
/// them on the job and trains. Interrupted by SIGINT or SIGTERM it ends after the iteration under way,
/// with exit code 5; --resume goes on from there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda train job.toml --answers answers
  heda train job.toml --out result --json
  heda train job.toml --out result --resume --patience 3600")]
pub(crate) struct Train {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Folder with the answers of providers to an invitation
    #[arg(long, value_name = "DIR")]
    answers: Option<PathBuf>,
    /// Accept a schema that still has marks of what was read from rows
    #[arg(long)]
    unconfirmed: bool,
    /// Folder for the model, the report and, while the job runs, its checkpoint
    #[arg(long, value_name = "DIR", default_value = "heda-result")]
    out: PathBuf,
    /// Permissions of model and report, as in chmod
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = permissions)]
    mode: u32,
    /// Go on from the checkpoint in the folder
    #[arg(long)]
    resume: bool,
    /// Time to wait for providers that cannot be reached; `timeouts.loss_seconds` of the job
    /// file, or 600, if not given
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
    /// Print one JSON object
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

pub(crate) fn run(arguments: &Train) -> Result<(), Error> {
    let job = match &arguments.answers {
        Some(folder) => JobFile::with_answers(&arguments.job, folder)?,
        None => JobFile::load(&arguments.job)?,
    };
    let job = match arguments.patience {
        Some(seconds) => {
            (job.with_patience(seconds)).map_err(|e| Error::input(format!("--patience: {e}")))?
        }
        None => job,
    };
    confirmed_schema(job.schema_path(), arguments.unconfirmed)?;
    for (name, fingerprint) in job.answered() {
        note!("{}  {name}", fingerprint.spoken());
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
    let trained = job.train(&into, listener(Phases::of(job.job())));
    // A thread that ends late may still have the listener, and with it the line on the terminal.
    progress::erase();
    let trained = trained?;
    match arguments.json {
        true => output::print_json(&trained),
        false => output::print_text(&trained.text()),
    }
}

/// Shows the job on stderr: the same line that changes as `heda demo` has, on a terminal, and a plain
/// line for each thing that happens otherwise.
fn listener(phases: Phases) -> Listener {
    let shown = Mutex::new(Shown {
        phases,
        waiting: WaitingLine::new(),
        line: progress::is_in_place().then(|| ProgressLine::new(phases)),
    });
    Arc::new(move |progress| {
        // What another thread left behind is good enough for showing.
        shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .see(progress);
    })
}

/// What is on the terminal.
struct Shown {
    phases: Phases,
    waiting: WaitingLine,
    /// The line that changes, if there is one.
    line: Option<ProgressLine>,
}

impl Shown {
    fn see(&mut self, progress: Progress) {
        match (progress, &mut self.line) {
            (
                passing @ (Progress::Phase(_) | Progress::Split(_) | Progress::Iteration { .. }),
                Some(line),
            ) => {
                // The job is stopped by signals.
                let _ = line.show(passing);
            }
            (staying, _) => {
                progress::erase();
                self.tell(staying);
            }
        }
    }

    /// Lines that stay.
    fn tell(&mut self, progress: Progress) {
        match progress {
            Progress::Retry {
                provider,
                cause,
                left,
            } => self.waiting.waits(&provider, &cause, left),
            Progress::Reached(provider) => {
                let words = format!("connected to {provider}");
                self.waiting.over(&provider, &words);
            }
            Progress::Connected => note!("connected to all providers"),
            Progress::Seeded(provider) => note!(
                "heda: {provider} runs with a seed: it can be repeated, and protects nothing of its rows"
            ),
            Progress::CountsOn { agreed, asked } if agreed < asked => {
                // Shares are such that as many as are counted on reach the noise that is needed.
                let larger = (f64::from(asked + 1) / f64::from(agreed + 1)).sqrt();
                note!(
                    "noise {larger:.1} times larger, because some providers do not know enough of the \
                     others\n  (they count on {agreed} of them, the job would on {asked}); `heda provider \
                     know` saves it"
                );
            }
            Progress::CountsOn { .. } => {}
            Progress::LostAnswer(_) => {
                note!("an answer was lost on the line; the job goes on without it");
            }
            // One word a phase, for scripts that wait for one.
            Progress::Phase(name) if self.phases.words(name).is_some() => note!("{name}"),
            Progress::Split(reason) => note!("{reason}"),
            Progress::Iteration {
                done,
                at_most,
                norm,
            } => note!("{}", progress::plain(done, at_most, norm)),
            Progress::Lost { provider, cause } => note!("lost {provider}: {cause}"),
            Progress::Ledger(words) => note!("{words}"),
            Progress::LeftBehind(provider) => {
                note!("going on without {provider}, with new masks");
            }
            _ => {}
        }
    }
}
