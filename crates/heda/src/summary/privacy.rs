//! The summary in words: who learned what.

use super::{Promise, Summary};
use crate::knowledge::{Who, learned};
use heda_train::proposal::Engine;

impl Promise {
    /// The promise in plain words.
    fn words(&self) -> String {
        format!(
            "Every number that the data user saw carries noise. Whether or not a row had its values, \
             any result is about equally likely (factor {:.1}, except with probability about {:e}). \
             That holds whatever the data user sends. It does not stop conclusions about people like \
             the one in the row.",
            self.epsilon.exp(),
            self.delta
        )
    }
}

impl Summary {
    /// Who learned what.
    pub fn privacy(&self) -> String {
        let user = learned(Who::DataUser, self).join("; ");
        let scored = self.is_scored();
        let providers = match self.engine {
            Engine::Resident => self.providers_learned(
                "they decrypt nothing, and whatever reached them was uniform to them",
            ),
            Engine::Paper => format!("Engine paper leaks. {}", self.engine.leaks().join(" ")),
        };
        if let Some(promise) = &self.private {
            return format!("{}\n{providers}", promise.words());
        }
        let published = match self.epsilon_total {
            Some(epsilon) => format!(
                "Published columns carry exact noise; in sum over the columns of a row they cost \
                 epsilon {epsilon:.3}{}{}{}.",
                match self.automatic_epsilon {
                    true => ", which was read from these public data",
                    false => "",
                },
                match scored {
                    true => ", and the scores, made from exact rows, are not covered by it",
                    false => "",
                },
                self.worth()
            ),
            None => "Nothing was published, so no epsilon was spent.".to_owned(),
        };
        format!("The data user learned {user}.\n{providers}\n{published}")
    }

    /// The first thing is about the model, the others are about rows.
    fn providers_learned(&self, because: &str) -> String {
        let learned = learned(Who::Provider, self);
        let Some((model, rows)) = learned.split_first() else {
            return String::new();
        };
        let mut text =
            format!("The providers learned {model} and nothing else about the model: {because}.");
        if !rows.is_empty() {
            text += &format!(
                " Of each other's rows they learned {}.",
                rows.join(", and ")
            );
        }
        text
    }

    /// Whether the data user saw scores of features.
    pub(crate) fn is_scored(&self) -> bool {
        self.features_by_rank.iter().any(|f| f.score.is_some())
    }

    /// What publishing bought over dropping, if it is known. Engine `paper` stops before it has
    /// converged, so its accuracy does not compare with that of the control.
    fn worth(&self) -> String {
        match (self.accuracy, self.dropped_accuracy) {
            (Some(with), Some(without)) if self.engine != Engine::Paper => format!(
                "; publishing instead of dropping them changed accuracy by {:+.2} points",
                100.0 * (with - without)
            ),
            _ => String::new(),
        }
    }
}
