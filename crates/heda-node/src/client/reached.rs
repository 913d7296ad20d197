//! How far a job had come when somebody stopped it.

use heda_job::job::Checkpoint;

/// Finished work of a job that was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Iterations that are finished, over all models.
    pub iterations: u32,
}

impl Reached {
    /// By the last checkpoint, as people count: answers for moments and counts are no iterations.
    pub(crate) fn of(checkpoint: Option<&Checkpoint>) -> Self {
        Self {
            iterations: checkpoint.map_or(0, |checkpoint| checkpoint.iteration),
        }
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.iterations {
            0 => f.write_str("before the first iteration was finished"),
            1 => f.write_str("after 1 finished iteration"),
            many => write!(f, "after {many} finished iterations"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::training::NetworkJobError;
    use heda_job::proposal::{JobId, Split};

    #[test]
    fn whoever_stops_a_job_is_told_how_far_it_came() {
        let words = |iterations| NetworkJobError::Stopped(Reached { iterations }).to_string();
        assert_eq!(
            words(0),
            "stopped before the first iteration was finished; resume to go on"
        );
        assert!(words(1).contains("after 1 finished iteration;"));
        assert!(words(12).contains("after 12 finished iterations;"));
    }

    #[test]
    fn answers_for_moments_are_no_iterations() {
        let split = Split {
            encrypted: vec![0],
            published: Vec::new(),
            dropped: Vec::new(),
        };
        let moments = Checkpoint {
            job: JobId([1; 16]),
            iteration: 0,
            optimisers: Vec::new(),
            split,
            histograms: Vec::new(),
            noisy: Vec::new(),
            errors: Vec::new(),
            moments: None,
            step: 2,
            lost: 0,
            sums: vec![vec![1], vec![2]],
            bought: None,
            tried: Vec::new(),
        };
        let first = "before the first iteration was finished";
        assert_eq!(Reached::of(None).to_string(), first);
        assert_eq!(Reached::of(Some(&moments)).to_string(), first);
        let trained = Checkpoint {
            step: 3,
            iteration: 1,
            ..moments
        };
        assert_eq!(Reached::of(Some(&trained)).iterations, 1);
    }
}
