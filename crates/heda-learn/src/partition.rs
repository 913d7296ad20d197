//! Which features are encrypted and which are published: the ι best against the others.
//!
//! ι is given, or chosen for a time limit or an accepted loss of accuracy. Time is linear in what
//! is encrypted, T ≈ τ·columns + b, with both constants measured on the machines of the job. The
//! accuracy of a prefix is an estimate that the caller has: the clear-text oracle on public or
//! local rows. What is chosen comes with its reason in words.

use crate::data::Feature;
use crate::score::Ranking;
use crate::spelling::UnknownWord;
use std::fmt;
use std::str::FromStr;

/// How ι is set: a number, or chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Iota {
    /// So many features, from 0 (all published) to all of them (none published).
    Exactly(usize),
    /// Chosen for a [`Goal`].
    Auto,
}

/// What `auto` aims at.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Goal {
    /// Encrypt as much as fits into so many seconds.
    WithinSeconds(f64),
    /// Encrypt as little as loses at most this share of accuracy (0.01 is one point).
    AccuracyLoss(f64),
}

/// Time of a job that encrypts so many columns, T = per_column·columns + fixed, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CostModel {
    /// τ: what one more encrypted column costs. A one-hot attribute has one column a level.
    pub per_column_seconds: f64,
    /// b: what the job costs before anything is encrypted.
    pub fixed_seconds: f64,
}

/// The features of a schema in two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    ranking: Ranking,
    iota: usize,
    publishes: bool,
    reason: String,
}

/// Why there is no such split.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// ι beyond the number of features.
    #[error("cannot encrypt {iota} features: the schema has {features}; choose 0 to {features}")]
    TooMany {
        /// What was asked for.
        iota: usize,
        /// What there is.
        features: usize,
    },
    /// The ranking is of another schema.
    #[error("the ranking orders {ranked} features, the schema has {features}")]
    Features {
        /// Features in the ranking.
        ranked: usize,
        /// Features in the schema.
        features: usize,
    },
    /// Even without encryption the limit is passed.
    #[error(
        "the job takes {needed:.1} s before any feature is encrypted, the limit is {limit:.1} s; \
         raise the limit, or train on fewer rows or iterations"
    )]
    TooSlow {
        /// Seconds with ι = 0.
        needed: f64,
        /// Seconds allowed.
        limit: f64,
    },
    /// A number that means nothing here.
    #[error("{what} must be a number from 0, not {value}")]
    Number {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// Measurements that no line goes through.
    #[error("a cost model needs times of two different numbers of columns")]
    NoLine,
}

impl CostModel {
    /// The line through measured times, by least squares; neither constant is below zero.
    pub fn fit(measured: &[(usize, f64)]) -> Result<Self, PartitionError> {
        let n = measured.len() as f64;
        let mean_columns = measured.iter().map(|m| m.0 as f64).sum::<f64>() / n;
        let mean_seconds = measured.iter().map(|m| m.1).sum::<f64>() / n;
        let spread = |m: &(usize, f64)| m.0 as f64 - mean_columns;
        let variation: f64 = measured.iter().map(|m| spread(m).powi(2)).sum();
        let covariation: f64 = measured
            .iter()
            .map(|m| spread(m) * (m.1 - mean_seconds))
            .sum();
        let slope = covariation / variation;
        if !slope.is_finite() {
            return Err(PartitionError::NoLine);
        }
        let per_column_seconds = slope.max(0.0);
        let fixed_seconds = (mean_seconds - per_column_seconds * mean_columns).max(0.0);
        Ok(Self {
            per_column_seconds,
            fixed_seconds,
        })
    }

    /// Estimated seconds with so many columns encrypted.
    pub fn seconds(&self, columns: usize) -> f64 {
        self.per_column_seconds * columns as f64 + self.fixed_seconds
    }

    fn check(&self) -> Result<(), PartitionError> {
        check_number("the time per column", self.per_column_seconds)?;
        check_number("the fixed time", self.fixed_seconds)
    }
}

fn check_number(what: &'static str, value: f64) -> Result<(), PartitionError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(PartitionError::Number { what, value })
    }
}

impl Partition {
    /// The split that was asked for.
    pub fn exactly(ranking: Ranking, iota: usize) -> Result<Self, PartitionError> {
        let features = ranking.len();
        if iota > features {
            return Err(PartitionError::TooMany { iota, features });
        }
        let reason = match iota {
            0 => format!("as asked: all {features} features are published, none is encrypted"),
            _ if iota == features => {
                format!("as asked: all {features} features are encrypted, none is published")
            }
            _ => format!("as asked: the best {iota} of {features} features are encrypted"),
        };
        Ok(Self {
            ranking,
            iota,
            publishes: true,
            reason,
        })
    }

    /// The same split, with the features that are not encrypted left out instead of published.
    pub fn leaving_out(self, because: &str) -> Self {
        Self {
            publishes: false,
            reason: format!("{}; the others are left out: {because}", self.reason),
            ..self
        }
    }

    /// The same split, with a reason to publish the features that are not encrypted.
    pub fn publishing(self, because: &str) -> Self {
        Self {
            reason: format!("{}; the others are published: {because}", self.reason),
            ..self
        }
    }

    /// Whether the features that are not encrypted are published, if anything is spent on that.
    pub fn publishes(&self) -> bool {
        self.publishes
    }

    /// The split that meets a goal. `accuracy` estimates the accuracy, from 0 to 1, when the
    /// first ι features are encrypted and the others published or left out, whichever is better;
    /// it is asked only where needed.
    pub fn auto<E>(
        ranking: Ranking,
        features: &[Feature],
        goal: Goal,
        cost: &CostModel,
        accuracy: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E>
    where
        E: From<PartitionError>,
    {
        if ranking.len() != features.len() {
            return Err(E::from(PartitionError::Features {
                ranked: ranking.len(),
                features: features.len(),
            }));
        }
        cost.check()?;
        let seconds: Vec<f64> = prefix_columns(&ranking, features)
            .map(|columns| cost.seconds(columns))
            .collect();
        let (iota, reason) = match goal {
            Goal::WithinSeconds(limit) => within(&seconds, limit)?,
            Goal::AccuracyLoss(loss) => cheapest(&seconds, loss, accuracy)?,
        };
        Ok(Self {
            ranking,
            iota,
            publishes: true,
            reason,
        })
    }

    /// How many features are encrypted.
    pub fn iota(&self) -> usize {
        self.iota
    }

    /// The order that the split follows.
    pub fn ranking(&self) -> &Ranking {
        &self.ranking
    }

    /// Indices of the encrypted features, best first.
    pub fn encrypted(&self) -> &[usize] {
        &self.ranking.order()[..self.iota]
    }

    /// Indices of the features that are not encrypted, best first.
    pub fn published(&self) -> &[usize] {
        &self.ranking.order()[self.iota..]
    }

    /// What was chosen and why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Encoded columns of the first 0, 1, … all features of a ranking.
pub fn prefix_columns<'a>(
    ranking: &'a Ranking,
    features: &'a [Feature],
) -> impl Iterator<Item = usize> + 'a {
    let widths = ranking.order().iter().map(|&f| features[f].columns.len());
    let sums = widths.scan(0, |sum, width| {
        *sum += width;
        Some(*sum)
    });
    std::iter::once(0).chain(sums)
}

/// The largest ι that fits into the limit.
fn within(seconds: &[f64], limit: f64) -> Result<(usize, String), PartitionError> {
    check_number("the time limit", limit)?;
    let features = seconds.len() - 1;
    let iota = (0..=features)
        .rev()
        .find(|&iota| seconds[iota] <= limit)
        .ok_or(PartitionError::TooSlow {
            needed: seconds[0],
            limit,
        })?;
    let time = seconds[iota];
    let reason = match seconds.get(iota + 1) {
        None => format!(
            "all {features} features are encrypted: that takes about {time:.1} s of the {limit:.1} s allowed"
        ),
        Some(next) => format!(
            "the best {iota} of {features} features are encrypted: that takes about {time:.1} s of \
             the {limit:.1} s allowed, one more would take {next:.1} s"
        ),
    };
    Ok((iota, reason))
}

/// The smallest ι whose estimated accuracy is within `loss` of encrypting everything.
fn cheapest<E: From<PartitionError>>(
    seconds: &[f64],
    loss: f64,
    mut accuracy: impl FnMut(usize) -> Result<f64, E>,
) -> Result<(usize, String), E> {
    check_number("the accepted loss of accuracy", loss)?;
    let features = seconds.len() - 1;
    let full = accuracy(features)?;
    check_number("an estimated accuracy", full)?;
    for (iota, time) in seconds[..features].iter().enumerate() {
        let reached = accuracy(iota)?;
        check_number("an estimated accuracy", reached)?;
        if reached >= full - loss {
            let reason = format!(
                "the best {iota} of {features} features are encrypted: the fewest with an estimated \
                 accuracy ({:.2} %) within {:.2} points of encrypting all ({:.2} %); about \
                 {time:.1} s instead of {:.1} s",
                100.0 * reached,
                100.0 * loss,
                100.0 * full,
                seconds[features],
            );
            return Ok((iota, reason));
        }
    }
    let reason = format!(
        "all {features} features are encrypted: not to encrypt even the last one is estimated to cost \
         more than {:.2} points of accuracy ({:.2} % with all); about {:.1} s",
        100.0 * loss,
        100.0 * full,
        seconds[features],
    );
    Ok((features, reason))
}

impl FromStr for Iota {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(Self::Auto),
            _ => word
                .parse()
                .map(Self::Exactly)
                .map_err(|_| UnknownWord::ProtectedFeatures(word.into())),
        }
    }
}

impl fmt::Display for Iota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(iota) => iota.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: CostModel = CostModel {
        per_column_seconds: 2.0,
        fixed_seconds: 1.0,
    };

    /// Widths 1, 3, 1; the ranking takes the wide one second.
    fn features() -> Vec<Feature> {
        [(0..1), (1..4), (4..5)]
            .into_iter()
            .map(|columns| Feature {
                name: format!("f{}", columns.start),
                columns,
                levels: None,
            })
            .collect()
    }

    fn ranking() -> Ranking {
        Ranking::from_order(vec![2, 1, 0]).unwrap()
    }

    fn auto(goal: Goal, accuracy: &[f64]) -> Result<Partition, PartitionError> {
        Partition::auto(ranking(), &features(), goal, &COST, |iota| {
            Ok(accuracy[iota])
        })
    }

    #[test]
    fn splits_at_zero_and_at_all_and_not_beyond() {
        let none = Partition::exactly(ranking(), 0).unwrap();
        assert!(none.encrypted().is_empty() && none.published() == [2, 1, 0]);
        assert!(none.reason().contains("none is encrypted"));
        let all = Partition::exactly(ranking(), 3).unwrap();
        assert!(all.encrypted() == [2, 1, 0] && all.published().is_empty());
        assert!(all.reason().contains("none is published"));
        let error = Partition::exactly(ranking(), 4).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot encrypt 4 features: the schema has 3; choose 0 to 3"
        );
    }

    #[test]
    fn a_time_limit_takes_as_many_as_fit_counting_columns() {
        // Seconds: 1, 3, 9, 11.
        for (limit, iota) in [
            (1.0, 0),
            (2.9, 0),
            (3.0, 1),
            (8.9, 1),
            (10.0, 2),
            (11.0, 3),
            (1e9, 3),
        ] {
            let chosen = auto(Goal::WithinSeconds(limit), &[]).unwrap();
            assert_eq!(chosen.iota(), iota, "{}", chosen.reason());
        }
        let chosen = auto(Goal::WithinSeconds(10.0), &[]).unwrap();
        assert!(chosen.reason().contains("one more would take 11.0 s"));
        let error = auto(Goal::WithinSeconds(0.5), &[]).unwrap_err();
        assert!(matches!(error, PartitionError::TooSlow { needed: 1.0, .. }));
    }

    #[test]
    fn an_accepted_loss_takes_the_fewest_that_keep_it() {
        let accuracy = [0.70, 0.85, 0.84, 0.90];
        for (loss, iota) in [(0.0, 3), (0.04, 3), (0.051, 1), (0.2, 0), (1.0, 0)] {
            let chosen = auto(Goal::AccuracyLoss(loss), &accuracy).unwrap();
            assert_eq!(chosen.iota(), iota, "{}", chosen.reason());
            assert!(chosen.reason().contains("90.00 %"));
        }
    }

    #[test]
    fn refuses_numbers_that_mean_nothing() {
        for goal in [Goal::WithinSeconds(f64::NAN), Goal::AccuracyLoss(-0.1)] {
            assert!(matches!(
                auto(goal, &[1.0; 4]),
                Err(PartitionError::Number { .. })
            ));
        }
        let nothing = auto(Goal::AccuracyLoss(0.1), &[f64::NAN; 4]);
        assert!(matches!(nothing, Err(PartitionError::Number { .. })));
        let short = Partition::auto(
            ranking(),
            &features()[..2],
            Goal::WithinSeconds(1.0),
            &COST,
            |_| Ok::<_, PartitionError>(1.0),
        );
        assert!(matches!(
            short,
            Err(PartitionError::Features {
                ranked: 3,
                features: 2
            })
        ));
    }

    #[test]
    fn fits_the_line_that_made_the_times() {
        let times: Vec<(usize, f64)> = (0..5).map(|c| (c, COST.seconds(c))).collect();
        let fitted = CostModel::fit(&times).unwrap();
        assert!((fitted.per_column_seconds - 2.0).abs() < 1e-12);
        assert!((fitted.fixed_seconds - 1.0).abs() < 1e-12);
        for short in [&times[..0], &times[..1]] {
            assert_eq!(CostModel::fit(short), Err(PartitionError::NoLine));
        }
    }

    #[test]
    fn reads_a_number_or_auto() {
        assert_eq!("auto".parse(), Ok(Iota::Auto));
        assert_eq!("7".parse(), Ok(Iota::Exactly(7)));
        for bad in ["-1", "", "all", "1.5"] {
            assert!(bad.parse::<Iota>().is_err());
        }
    }
}
