//! `iota = "auto"`: how many features are encrypted, and whether the others are published or left out.

use super::cost::{COMPARED_ROWS, Shape, measure};
use crate::error::Error;
use heda_crypto::random::Randomness;
use heda_job::estimate::{EstimateError, Estimator};
use heda_job::job::{IotaChooser, JobSpec, Known, NoIota};
use heda_learn::data::Dataset;
use heda_learn::partition::{CostModel, Goal, Partition, PartitionError};
use std::sync::Arc;

/// Chooses how many features are encrypted, for a goal: time measured as above with all parties on
/// this machine, accuracy estimated in clear on rows that may be read.
#[derive(Debug)]
pub(crate) struct AutoIota {
    goal: Goal,
    spec: JobSpec,
    estimator: Option<Estimator>,
}

impl AutoIota {
    /// Puts the choice into a job. Accuracy is estimated on `sample`.
    pub(crate) fn put_into(
        spec: JobSpec,
        goal: Goal,
        sample: Option<&Dataset>,
        randomness: &Randomness,
    ) -> JobSpec {
        let bits = spec.job.resolution().value_bits();
        let estimator = sample.map(|rows| {
            Estimator::new(rows, spec.job.spending().cloned(), bits, randomness.clone())
        });
        let chooser = Self {
            goal,
            spec: spec.clone(),
            estimator,
        };
        JobSpec {
            iota: Some(Arc::new(chooser)),
            ..spec
        }
    }

    /// The line through the times with the best feature encrypted and with all of them.
    fn cost_model(&self, known: &Known<'_>) -> Result<CostModel, NoChoice> {
        let order = known.ranking.order();
        let training = self.spec.job.training();
        let each = training.map_or(0, |training| training.settings.max_iterations);
        let iterations = each.saturating_mul(self.spec.job.positives().len() as u32);
        let mut times = Vec::new();
        for iota in [1, order.len()] {
            let shape = Shape {
                spec: &self.spec,
                order,
                iota,
                rows: known.rows,
                most_rows: COMPARED_ROWS,
                repeats: 1,
            };
            let costs = measure(&shape)?;
            let chosen = order[..iota].iter();
            let columns = chosen.map(|&f| known.features[f].columns.len()).sum();
            times.push((columns, costs.seconds.of(iterations)));
        }
        match times[..] {
            [(columns, seconds), (same, _)] if columns == same => Ok(CostModel {
                per_column_seconds: 0.0,
                fixed_seconds: seconds,
            }),
            _ => Ok(CostModel::fit(&times)?),
        }
    }
}

impl AutoIota {
    /// Publishes what is not encrypted only where an estimate says that it pays.
    fn published_or_not(&self, chosen: Partition) -> Result<Partition, NoChoice> {
        let all = chosen.iota() == chosen.ranking().len();
        if all || self.spec.job.spending().is_none() {
            return Ok(chosen);
        }
        let Some(estimator) = &self.estimator else {
            let because = "without a sample nothing says that publishing pays";
            return Ok(chosen.leaving_out(because));
        };
        let worth = estimator.worth(chosen.encrypted())?;
        let published = 100.0 * worth.published.unwrap_or(worth.dropped);
        let dropped = 100.0 * worth.dropped;
        let gain = format!(
            "estimated {published:.2} % published and {dropped:.2} % left out, {} than chance",
            if worth.pays { "more" } else { "no more" }
        );
        Ok(match worth.pays {
            true => chosen.publishing(&gain),
            false => chosen.leaving_out(&gain),
        })
    }
}

/// Why no ι was chosen.
#[derive(Debug, thiserror::Error)]
enum NoChoice {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Measure(#[from] Error),
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    #[error("an accepted loss of accuracy needs rows to estimate it with; name a sample")]
    NoSample,
}

impl IotaChooser for AutoIota {
    fn choose(&self, known: Known<'_>) -> Result<Partition, NoIota> {
        let cost = self.cost_model(&known).map_err(NoIota::because)?;
        let order = known.ranking.order().to_vec();
        let accuracy = |iota: usize| {
            let estimator = self.estimator.as_ref().ok_or(NoChoice::NoSample)?;
            Ok(estimator.worth(&order[..iota])?.best())
        };
        let chosen = Partition::auto(known.ranking, known.features, self.goal, &cost, accuracy)
            .map_err(|e: NoChoice| NoIota::because(e))?;
        self.published_or_not(chosen)
            .map_err(|e: NoChoice| NoIota::because(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use heda_job::proposal::JobId;
    use heda_learn::bundled::{Bundle, Coding};
    use heda_learn::score::Ranking as Order;

    fn spec(spending: &str) -> JobSpec {
        let schema = Bundle::Bcwd.schema(Coding::Paper);
        let job = Job::builder("auto", schema).publish_rest(spending.parse().unwrap());
        let job = job.build().unwrap();
        job.spec(JobId([0; 16]), &Randomness::seeded(3))
    }

    /// A choice of few features, with so much to be spent on the others.
    fn chosen(spending: &str, sample: bool) -> Partition {
        let (rows, _) = Bundle::Bcwd.table(Coding::Paper).unwrap();
        let spec = spec(spending);
        let estimator = sample.then(|| {
            Estimator::new(
                &rows,
                spec.job.spending().cloned(),
                10,
                Randomness::seeded(3),
            )
        });
        let auto = AutoIota {
            goal: Goal::WithinSeconds(1e9),
            spec,
            estimator,
        };
        let order = Order::from_order((0..9).collect()).unwrap();
        auto.published_or_not(Partition::exactly(order, 1).unwrap())
            .unwrap()
    }

    #[test]
    fn nothing_is_published_where_it_does_not_pay() {
        let pays = chosen("1000", true);
        assert!(pays.publishes(), "{}", pays.reason());
        assert!(pays.reason().contains("more than chance"));
        let noise = chosen("0.01", true);
        assert!(!noise.publishes(), "{}", noise.reason());
        assert!(noise.reason().contains("left out"), "{}", noise.reason());
        let unknown = chosen("1000", false);
        assert!(!unknown.publishes());
        assert!(unknown.reason().contains("without a sample"));
    }
}
