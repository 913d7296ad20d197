//! The summary in words: who learned what.

use super::{Promise, Summary};
use crate::knowledge::{Who, learned};
use heda_job::proposal::{Engine, Privacy};
use heda_learn::model::Unit;

/// What a private job guarantees, in one sentence: ε, δ, for whom and against whom.
pub(super) fn guarantee(privacy: &Privacy, providers: usize) -> String {
    let others = providers.saturating_sub(1);
    let colluding = others.saturating_sub(privacy.counts_on(providers) as usize);
    let against = match (others, colluding) {
        (0, _) | (_, 0) => "a data user that cheats".to_owned(),
        (_, 1) => "a data user that cheats and colludes with one other provider".to_owned(),
        (_, many) => format!("a data user that cheats and colludes with {many} other providers"),
    };
    // A person with more rows changes how many there are.
    let (unit, except) = match privacy.persons {
        true => (
            Unit::Person,
            " apart from how many rows each provider has, which is told exactly,",
        ),
        false => (Unit::Row, ""),
    };
    format!(
        "Everything that this job revealed, the model included,{except} is differentially private \
         with ε = {} and δ = {:e} for every {unit} of every provider, also against {against}.",
        privacy.epsilon,
        privacy.delta.get(),
    )
}

impl Promise {
    /// The promise in plain words.
    fn words(&self) -> String {
        if self.bounds_from_rows {
            return format!(
                "Nothing is guaranteed: bounds were read from the rows, so the model holds values of \
                 single rows. With publicly known bounds this job would be private with ε = {} and \
                 δ = {:e}.",
                self.epsilon, self.delta
            );
        }
        format!(
            "Every number that the data user saw of rows carries noise; how many rows each provider has is \
             public{}. Whether or not {}, any result is about equally likely (factor {:.1}, except with \
             probability about {:e}). This holds even if the data user cheats. It does not stop \
             conclusions about people like {}.",
            match self.unit {
                Unit::Row => "",
                Unit::Person => ", and so is not protected",
            },
            match self.unit {
                Unit::Row => "a row had its values",
                Unit::Person => "the rows of a person had their values",
            },
            self.epsilon.exp(),
            self.delta,
            match self.unit {
                Unit::Row => "the one in the row",
                Unit::Person => "that one",
            }
        )
    }
}

impl Summary {
    /// Notes that bounds and levels were read from the rows: a promise then holds for none of them.
    pub(crate) fn note_bounds_from_rows(&mut self) {
        if let Some(promise) = &mut self.privacy {
            promise.bounds_from_rows = true;
            self.guarantee = None;
        }
    }

    /// Who learned what.
    pub fn who_learned(&self) -> String {
        let user = learned(Who::DataUser, self).join("; ");
        let scored = self.is_scored();
        let providers = match self.engine.leaks() {
            [] => self.providers_learned(
                "they decrypt nothing, and whatever reached them was uniform to them",
            ),
            leaks => format!("Engine {} leaks. {}", self.engine, leaks.join(" ")),
        };
        if let Some(promise) = &self.privacy {
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

    /// What publishing bought over dropping, if it is known. Another engine may stop before it has
    /// converged, so its accuracy does not compare with that of the control.
    fn worth(&self) -> String {
        match (self.accuracy, self.dropped_accuracy) {
            (Some(with), Some(without)) if self.engine == Engine::RESIDENT => format!(
                "; publishing instead of dropping them changed accuracy by {:+.2} points",
                100.0 * (with - without)
            ),
            _ => String::new(),
        }
    }
}
