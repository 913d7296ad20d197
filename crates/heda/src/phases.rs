//! Which phases do something in a job.

use crate::job::Job;

/// Which phases do something in a job, so that nothing is announced that does not happen.
#[derive(Debug, Clone, Copy)]
pub struct Phases {
    /// Whether features are scored.
    pub scores: bool,
    /// Whether columns may be published.
    pub publishes: bool,
    /// Whether rows are held out.
    pub evaluates: bool,
}

impl Phases {
    /// Of a job.
    pub fn of(job: &Job) -> Self {
        Self {
            scores: job.scores_features(),
            publishes: job.publishes(),
            evaluates: job.held_out().is_some(),
        }
    }

    /// What happens in a phase; nothing where nothing does.
    pub fn words(self, name: &'static str) -> Option<&'static str> {
        let (happens, words) = match name {
            "agree" => (true, "agreeing on the job"),
            "score" => (self.scores, "scoring features"),
            "scale" => (true, "finding where the columns lie"),
            "publish" => (self.publishes, "publishing columns with noise"),
            "encrypt" => (true, "preparing the encrypted columns"),
            "train" => (true, "training"),
            "evaluate" => (self.evaluates, "evaluating on held-out rows"),
            other => (true, other),
        };
        happens.then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_learn::bundled::{Bundle, Coding};

    #[test]
    fn a_phase_in_which_nothing_happens_is_not_announced() {
        let all = Phases {
            scores: true,
            publishes: true,
            evaluates: true,
        };
        let none = Phases {
            scores: false,
            publishes: false,
            evaluates: false,
        };
        for name in ["score", "publish", "evaluate"] {
            assert!(all.words(name).is_some() && none.words(name).is_none());
        }
        for name in ["agree", "scale", "encrypt", "train", "anything else"] {
            assert!(none.words(name).is_some(), "{name}");
        }
        let schema = Bundle::Bcwd.schema(Coding::Natural);
        let job = Job::builder("tumours", schema).build().unwrap();
        let phases = Phases::of(&job);
        assert!(phases.words("publish").is_none() && phases.words("score").is_some());
    }
}
