//! Progress and cancellation for programs that embed a job: a closure that hears what happens and says
//! whether to go on.

use heda_job::job::{Checkpoint, NotKept, Observer, Progress};
use std::ops::ControlFlow;

/// Hears what happens in a job of this process. `ControlFlow::Break` stops the job in good order after
/// the iteration that is under way; nothing is left running. [`quiet`] hears nothing.
pub type Watcher<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Hears nothing and lets the job go on.
pub fn quiet(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A watcher as a job has it. Providers in the same process are not lost, so no checkpoint is kept.
pub(crate) struct Watch<'a> {
    hear: Watcher<'a>,
    stopped: bool,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(hear: Watcher<'a>) -> Self {
        Self {
            hear,
            stopped: false,
        }
    }
}

impl Observer for Watch<'_> {
    fn progress(&mut self, progress: Progress) {
        self.stopped |= (self.hear)(progress).is_break();
    }

    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        Ok(!self.stopped)
    }
}
