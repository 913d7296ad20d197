//! Progress and cancellation for programs that embed a job: a closure that sees what happens and
//! says whether to go on.

use heda_job::job::{Checkpoint, NotKept, Observer};
use std::ops::ControlFlow;

/// What happens in a job.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A phase begins.
    Phase(&'static str),
    /// The number of encrypted features was chosen, for this reason.
    Split(&'a str),
    /// An iteration is done.
    Iteration {
        /// So many so far, over all models.
        done: u32,
        /// There will be no more than this.
        at_most: u32,
        /// Largest entry of the mean gradient, where it is over all rows.
        norm: Option<f64>,
    },
}

/// Shows a job to a closure. `ControlFlow::Break` stops the job in good order after the iteration
/// that is under way; nothing is left running.
#[derive(Debug)]
pub struct Watch<F> {
    see: F,
    stopped: bool,
}

impl<F: FnMut(Event<'_>) -> ControlFlow<()>> Watch<F> {
    /// Shows the job to this closure.
    pub fn new(see: F) -> Self {
        Self {
            see,
            stopped: false,
        }
    }

    fn show(&mut self, event: Event<'_>) {
        self.stopped |= (self.see)(event).is_break();
    }
}

impl<F: FnMut(Event<'_>) -> ControlFlow<()>> Observer for Watch<F> {
    fn phase(&mut self, name: &'static str) {
        self.show(Event::Phase(name));
    }

    fn split_chosen(&mut self, reason: &str) {
        self.show(Event::Split(reason));
    }

    fn iteration(&mut self, done: u32, at_most: u32, norm: Option<f64>) {
        self.show(Event::Iteration {
            done,
            at_most,
            norm,
        });
    }

    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        Ok(!self.stopped)
    }
}
