//! Progress of a job on stderr: a bar on a terminal, plain lines otherwise.

use heda_train::job::{Checkpoint, Observer};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Shows phases and iterations.
pub(crate) struct Progress {
    bar: ProgressBar,
    plain: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        Self { bar, plain }
    }

    fn show_iterations(&self, at_most: u32) {
        if self.bar.length() != Some(u64::from(at_most)) {
            self.bar.set_length(u64::from(at_most));
            let template = "training  {bar:30} {pos}/{len} at most, {eta} left  {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
        }
    }
}

impl Observer for Progress {
    fn phase(&mut self, name: &'static str) {
        let what = match name {
            "agree" => "agreeing on the job",
            "score" => "scoring features",
            "publish" => "publishing the low part",
            "encrypt" => "encrypting the high part",
            "train" => "training",
            "evaluate" => "evaluating on held-out rows",
            other => other,
        };
        if self.plain {
            eprintln!("{what}");
        } else {
            self.bar.set_message(what);
            self.bar.tick();
        }
    }

    fn split_chosen(&mut self, reason: &str) {
        match self.plain {
            true => eprintln!("{reason}"),
            false => self.bar.println(reason),
        }
    }

    fn iteration(&mut self, done: u32, at_most: u32, norm: Option<f64>) {
        self.show_iterations(at_most);
        self.bar.set_position(u64::from(done));
        if let Some(norm) = norm {
            self.bar.set_message(format!("gradient {norm:.1e}"));
        }
    }

    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<bool, String> {
        Ok(true)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
