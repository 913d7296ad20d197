//! Progress of a job on stderr: one line that changes on a terminal, plain lines otherwise.

use crate::output::{note, verbosity};
pub(crate) use heda::Phases;
use heda::Progress;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::Instant;

/// Cells of the bar.
const WIDTH: u32 = 20;
/// No line is longer: one that a terminal breaks could not be replaced.
const LINE: usize = 79;

/// Whether progress is shown by one line that changes: on a terminal, unless quiet was asked for.
pub(crate) fn is_in_place() -> bool {
    verbosity() >= 0 && std::io::stderr().is_terminal()
}

/// Removes the line that changes, if there may be one.
pub(crate) fn erase() {
    if is_in_place() {
        show("");
    }
}

/// Puts a line in the place of the last one. A terminal that went away is no failure of ours.
fn show(line: &str) {
    let mut terminal = std::io::stderr().lock();
    let _ = write!(terminal, "\r\x1b[K{line}");
    let _ = terminal.flush();
}

/// Shows phases and iterations.
pub(crate) struct ProgressLine {
    phases: Phases,
    in_place: bool,
    /// When the first iteration was seen, and which one it was.
    began: Option<(Instant, u32)>,
}

impl ProgressLine {
    pub(crate) fn new(phases: Phases) -> Self {
        Self {
            phases,
            in_place: is_in_place(),
            began: None,
        }
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

/// The line of an iteration, cut where a terminal would break it.
fn line(done: u32, at_most: u32, left: u64, norm: Option<f64>) -> String {
    let norm = norm.map_or(String::new(), |norm| format!(", gradient {norm:.1e}"));
    let bar = bar(done, at_most);
    let whole = format!("training  {bar} {done} of {at_most}, at most {left} s left{norm}");
    whole.chars().take(LINE).collect()
}

/// The line of an iteration where none is replaced.
pub(crate) fn plain(done: u32, at_most: u32, norm: Option<f64>) -> String {
    let norm = norm.map_or(String::new(), |norm| format!(", gradient {norm:.2e}"));
    format!("iteration {done} of at most {at_most}{norm}")
}

impl ProgressLine {
    /// Shows phases, choices and iterations; the rest is for lines that stay.
    pub(crate) fn show(&mut self, progress: Progress) -> ControlFlow<()> {
        match progress {
            Progress::Phase(name) => {
                if let Some(what) = self.phases.words(name) {
                    self.tell(what);
                }
            }
            Progress::Split(reason) if self.in_place => show(&format!("{reason}\n")),
            Progress::Split(reason) => note!("{reason}"),
            Progress::Iteration {
                done,
                at_most,
                norm,
            } => self.iteration(done, at_most, norm),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn tell(&self, what: &str) {
        match self.in_place {
            true => show(what),
            false => note!("{what}"),
        }
    }

    fn iteration(&mut self, done: u32, at_most: u32, norm: Option<f64>) {
        if self.in_place {
            let left = self.left(done, at_most);
            show(&line(done, at_most, left, norm));
        } else if verbosity() > 0 {
            note!("{}", plain(done, at_most, norm));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.in_place {
            show("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_from_left_to_right_and_never_overflows() {
        let full = |done, at_most| bar(done, at_most).chars().filter(|c| *c == '█').count();
        assert_eq!([full(0, 80), full(40, 80), full(80, 80)], [0, 10, 20]);
        assert_eq!([full(9, 0), full(u32::MAX, 2)], [20, 20]);
        assert_eq!(bar(7, 9).chars().count(), 20);
    }

    #[test]
    fn no_line_is_so_long_that_a_terminal_breaks_it() {
        let usual = line(10, 60, 13, Some(1.2e-3));
        assert!(usual.ends_with("10 of 60, at most 13 s left, gradient 1.2e-3"));
        assert!(usual.chars().count() < 80, "{usual}");
        let long = line(u32::MAX, u32::MAX, u64::MAX, Some(-1.2e-300));
        assert_eq!(long.chars().count(), 79);
    }
}
