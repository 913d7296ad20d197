//! A path of penalties at the data user (steps P1 to P4 of `docs/protocols.md`): each is counted on
//! the rows that choose, the best one is kept.

use super::outcome::{ChosenPenalty, ClassFit, TriedPenalty};
use super::spec::Tried;
use super::training::Trace;
use crate::engine::label_encoding::LabelEncoding;
use crate::histogram::Histogram;
use heda_learn::optimise::PenaltyPath;

/// What the penalties of all models came to.
pub(super) struct Trials<'a> {
    pub(super) path: &'a PenaltyPath,
    /// The classes to be told from the rest.
    pub(super) positives: &'a [u32],
    /// How the rows count.
    pub(super) labels_as: &'a LabelEncoding,
    /// All penalties of one model before those of the next.
    pub(super) tried: &'a [Tried],
    /// Rows that chose, of all providers.
    pub(super) rows: u64,
}

impl Trials<'_> {
    fn of_model(&self, model: usize) -> &[Tried] {
        let penalties = self.path.values().len();
        &self.tried[model * penalties..][..penalties]
    }

    /// The penalty that loses least over all models, and what each of them lost.
    pub(super) fn choose(&self) -> ChosenPenalty {
        let models = self.positives.len();
        let lost = |step: usize| -> Lost {
            let each = (0..models).map(|model| self.lost(model, step));
            each.fold(Lost::default(), Lost::plus)
        };
        let lost: Vec<Lost> = (0..self.path.values().len()).map(lost).collect();
        let losses: Vec<f64> = lost.iter().map(|lost| lost.lost).collect();
        let numeric = matches!(self.labels_as, LabelEncoding::Number(_));
        let tried = self.path.values().iter().zip(&lost).enumerate();
        let tried = tried.map(|(step, (&c, lost))| TriedPenalty {
            c,
            gradients: (0..models)
                .map(|model| self.of_model(model)[step].iterations)
                .sum(),
            right: (!numeric && lost.all > 0.0).then(|| 1.0 - lost.lost / lost.all),
            // In deviations; whoever knows the label's unit puts it in.
            rmse: (numeric && lost.all > 0.0).then(|| (lost.lost.max(0.0) / lost.all).sqrt()),
        });
        ChosenPenalty {
            tried: tried.collect(),
            chosen: self.path.choose(&losses),
            rows: self.rows,
        }
    }

    /// What a penalty loses: rows that it gets wrong, weighed as in training, or squared errors.
    fn lost(&self, model: usize, step: usize) -> Lost {
        let tried = &self.of_model(model)[step];
        match (self.labels_as, &tried.histogram, &tried.errors) {
            (LabelEncoding::Classes(class_weights), Some(histogram), _) => {
                let weights = class_weights.of_model(model, self.positives[model]);
                Lost::of_counts(histogram, weights)
            }
            (LabelEncoding::Number(_), _, Some(errors)) => Lost {
                lost: errors.errors,
                all: self.rows as f64,
            },
            _ => Lost::default(),
        }
    }

    /// The models with one of the penalties.
    pub(super) fn fits(&self, step: usize, courses: &[Trace]) -> Vec<ClassFit> {
        let penalties = self.path.values().len();
        let fit = |(model, &positive): (usize, &u32)| {
            let tried = &self.of_model(model)[step];
            let course = courses.get(model * penalties + step);
            let course = course.cloned().unwrap_or_default();
            ClassFit {
                positive,
                beta: tried.beta.clone(),
                iterations: tried.iterations,
                stop: tried.stop,
                settled: tried.settled,
                undetermined: tried.undetermined.clone(),
                entangled: tried.entangled.clone(),
                shrunk: course.shrunk,
                norms: course.norms_or(tried.norm),
                histogram: None,
                right: None,
                errors: None,
            }
        };
        self.positives.iter().enumerate().map(fit).collect()
    }
}

/// What is lost, of all there is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Lost {
    lost: f64,
    all: f64,
}

impl Lost {
    /// Rows of the rest (first) and of the class count so much.
    fn of_counts(histogram: &Histogram, [rest, own]: [f64; 2]) -> Self {
        let counts = histogram.confusion();
        let [fp, fn_] = [counts.false_positives, counts.false_negatives].map(|n| n as f64);
        let [tp, tn] = [counts.true_positives, counts.true_negatives].map(|n| n as f64);
        Self {
            lost: rest * fp + own * fn_,
            all: rest * (fp + tn) + own * (fn_ + tp),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            all: self.all + other.all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_weights::ClassWeights;
    use crate::regression_metrics::ErrorSum;
    use heda_learn::optimise::Stop;
    use heda_learn::target::TargetScale;

    /// So many wrong of the rest and of the class, of ten rows each.
    fn tried(wrong: [u64; 2], errors: f64) -> Tried {
        let [rest, own] = wrong;
        Tried {
            beta: vec![0.0],
            iterations: 3,
            stop: Stop::NoiseFloor,
            settled: None,
            undetermined: Vec::new(),
            entangled: Vec::new(),
            norm: Some(0.5),
            histogram: Some(Histogram {
                decision: 1,
                negatives: vec![10 - rest, rest],
                positives: vec![own, 10 - own],
                noise: None,
            }),
            errors: Some(ErrorSum {
                errors,
                labels: None,
            }),
        }
    }

    fn choose(labels_as: &LabelEncoding, positives: &[u32], tried: &[Tried]) -> ChosenPenalty {
        let path = PenaltyPath::new(vec![0.1, 1.0, 10.0]).unwrap();
        let trials = Trials {
            path: &path,
            positives,
            labels_as,
            tried,
            rows: 20,
        };
        trials.choose()
    }

    #[test]
    fn rows_count_in_the_choice_as_they_do_in_training() {
        let counts = [[0, 5], [3, 3], [4, 0]].map(|wrong| tried(wrong, 0.0));
        let alike = LabelEncoding::Classes(ClassWeights::Alike);
        let chosen = choose(&alike, &[1], &counts);
        assert_eq!((chosen.chosen, chosen.tried[0].gradients), (2, 3));
        assert_eq!(chosen.tried[0].right, Some(0.75));
        let rest_first = LabelEncoding::Classes(ClassWeights::Pairs(vec![[8.0, 1.0]]));
        assert_eq!(choose(&rest_first, &[1], &counts).chosen, 0);
        let given = LabelEncoding::Classes(ClassWeights::ByClass(vec![8.0, 1.0]));
        assert_eq!(choose(&given, &[1], &counts).chosen, 0);
    }

    #[test]
    fn one_penalty_is_chosen_for_all_models_and_errors_choose_for_a_number() {
        let both = [[1, 0], [2, 0], [9, 0], [9, 0], [2, 0], [1, 0]].map(|w| tried(w, 0.0));
        let alike = LabelEncoding::Classes(ClassWeights::Alike);
        let chosen = choose(&alike, &[0, 2], &both);
        assert_eq!((chosen.chosen, chosen.tried[1].right), (1, Some(0.9)));
        let number = LabelEncoding::Number(TargetScale::of(&[0, 1 << 19]).unwrap());
        let errors = [9.0, 7.0, 5.0].map(|errors| tried([0, 0], errors));
        let chosen = choose(&number, &[0], &errors);
        assert_eq!(chosen.chosen, 2);
        assert_eq!(chosen.tried[2].rmse, Some(0.5));
        // Sums that cannot be true are found when the conversation is over, and choose nothing odd.
        let wild = [f64::NAN, 7.0, -1e9].map(|errors| tried([0, 0], errors));
        assert_eq!(choose(&number, &[0], &wild).chosen, 2);
    }
}
