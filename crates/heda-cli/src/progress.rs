//! Progress of a job on stderr: one line that changes on a terminal, plain lines otherwise.

use crate::output::note;
use heda_train::job::{Checkpoint, NotKept, Observer};
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Cells of the bar.
const WIDTH: u32 = 30;

/// Shows phases and iterations.
pub(crate) struct Progress {
    plain: bool,
    /// When the first iteration was seen, and which one it was.
    began: Option<(Instant, u32)>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            plain: !std::io::stderr().is_terminal(),
            began: None,
        }
    }

    /// Puts a line in the place of the last one. A terminal that went away is no failure of ours.
    fn show(&self, line: &str) {
        let mut terminal = std::io::stderr().lock();
        let _ = write!(terminal, "\r\x1b[K{line}");
        let _ = terminal.flush();
    }

    /// Seconds that the iterations to come will take at most, if they are like those before.
    fn left(&mut self, done: u32, at_most: u32) -> u64 {
        let (began, first) = *self.began.get_or_insert((Instant::now(), done));
        let seen = done.saturating_sub(first).max(1);
        let each = began.elapsed().as_secs_f64() / f64::from(seen);
        (each * f64::from(at_most.saturating_sub(done))) as u64
    }
}

fn bar(done: u32, at_most: u32) -> String {
    let full = u64::from(WIDTH) * u64::from(done) / u64::from(at_most.max(1));
    let full = (full as usize).min(WIDTH as usize);
    format!("{}{}", "█".repeat(full), "░".repeat(WIDTH as usize - full))
}

impl Observer for Progress {
    fn phase(&mut self, name: &'static str) {
        let what = match name {
            "agree" => "agreeing on the job",
            "score" => "scoring features",
            "scale" => "finding where the columns lie",
            "publish" => "publishing the low part",
            "encrypt" => "encrypting the high part",
            "train" => "training",
            "evaluate" => "evaluating on held-out rows",
            other => other,
        };
        match self.plain {
            true => note!("{what}"),
            false => self.show(what),
        }
    }

    fn split_chosen(&mut self, reason: &str) {
        match self.plain {
            true => note!("{reason}"),
            false => self.show(&format!("{reason}\n")),
        }
    }

    fn iteration(&mut self, done: u32, at_most: u32, norm: Option<f64>) {
        if self.plain {
            return;
        }
        let left = self.left(done, at_most);
        let norm = norm.map_or(String::new(), |norm| format!("  gradient {norm:.1e}"));
        let bar = bar(done, at_most);
        self.show(&format!(
            "training  {bar} {done}/{at_most} at most, {left} s left{norm}"
        ));
    }

    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        Ok(true)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.plain {
            self.show("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_from_left_to_right_and_never_overflows() {
        let full = |done, at_most| bar(done, at_most).chars().filter(|c| *c == '█').count();
        assert_eq!([full(0, 80), full(40, 80), full(80, 80)], [0, 15, 30]);
        assert_eq!([full(9, 0), full(u32::MAX, 2)], [30, 30]);
        assert_eq!(bar(7, 9).chars().count(), 30);
    }
}
