//! Processor time: what work costs whatever else the machine does.

use heda_train::job::{Checkpoint, NotKept, Observer};

/// Processor time of this process so far, over all threads. Known on Linux only, in hundredths of
/// a second.
pub(super) fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program comes before and may hold spaces; user and system time are the
    // 12th and 13th fields after it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

/// Notes the processor time at which each phase of a job begins.
#[derive(Debug, Default)]
pub(super) struct PhaseClock {
    began: Vec<(&'static str, Option<f64>)>,
}

impl PhaseClock {
    /// Processor time of all parties in a phase that another one followed.
    pub(super) fn spent_in(&self, phase: &str) -> Option<f64> {
        let place = self.began.iter().position(|(name, _)| *name == phase)?;
        Some(self.began.get(place + 1)?.1? - self.began[place].1?)
    }
}

impl Observer for PhaseClock {
    fn phase(&mut self, name: &'static str) {
        self.began.push((name, processor_seconds()));
    }

    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        Ok(true)
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
