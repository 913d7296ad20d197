//! Processor time: what work costs whatever else the machine does.

use heda::Progress;
pub(super) use heda::clock::processor_seconds;
use std::ops::ControlFlow;

/// Notes the processor time at which each phase of a job begins.
#[derive(Debug, Default)]
pub(super) struct PhaseClock {
    began: Vec<(&'static str, Option<f64>)>,
}

impl PhaseClock {
    /// Notes when a phase begins, and lets the job go on.
    pub(super) fn hear(&mut self, progress: Progress) -> ControlFlow<()> {
        if let Progress::Phase(name) = progress {
            self.began.push((name, processor_seconds()));
        }
        ControlFlow::Continue(())
    }

    /// Processor time of all parties in a phase that another one followed.
    pub(super) fn spent_in(&self, phase: &str) -> Option<f64> {
        let place = self.began.iter().position(|(name, _)| *name == phase)?;
        Some(self.began.get(place + 1)?.1? - self.began[place].1?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_costs_what_passes_until_the_next() {
        let clock = PhaseClock {
            began: vec![("train", Some(1.5)), ("evaluate", Some(4.0)), ("end", None)],
        };
        assert_eq!(clock.spent_in("train"), Some(2.5));
        assert_eq!(clock.spent_in("evaluate"), None);
        assert_eq!(clock.spent_in("end"), None);
        assert_eq!(clock.spent_in("score"), None);
    }
}
