//! The promise of a private job, as it is proposed and agreed to.

use crate::description::Share;
use crate::histogram::{DECISION_EDGE, PRIVATE_EDGES};
use heda_dp::epsilon::Epsilon;
use heda_dp::gaussian::Variance;
use heda_dp::gdp::Delta;
use heda_learn::private::evaluation::{ROW_UNITS, ROWS_FOR_AREA, both, right_in_table};
use heda_learn::private::{
    Extent, PlanError, PrivatePlan, SENSITIVITY_SQUARED, share_of, unstated,
};
use heda_learn::schema::Schema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// What a private job promises, and what its plan is made from. Every party derives the same plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    /// ε of everything that the job reveals.
    pub epsilon: Epsilon,
    /// δ beside it.
    pub delta: Delta,
    /// About how many training rows all providers have together: sets the number of gradients and the
    /// length of steps, never the guarantee.
    pub rows: u64,
    /// From how many other providers each provider counts noise besides its own; all but one of the
    /// others if absent, so that one may collude with the data user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<u32>,
    /// How many models share the promise: one for two classes, otherwise one a class.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub models: NonZeroU32,
    /// Of how many numbers, those for which the schema states nothing typical, means and deviations are
    /// bought with a part of it; nought if they are not.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub moments: u32,
    /// Whether the number of persons is bought as well, because a provider protects persons. The
    /// providers' acceptances decide it (J3a).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub persons: bool,
}

/// Models for the classes of a schema: one for two, otherwise one a class.
pub fn models_of(schema: &Schema) -> NonZeroU32 {
    let models = match schema.label().classes().len() {
        2 => 1,
        many => u32::try_from(many).unwrap_or(u32::MAX),
    };
    NonZeroU32::new(models).unwrap_or(NonZeroU32::MIN)
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn is_one(models: &NonZeroU32) -> bool {
    models.get() == 1
}

fn is_nought(moments: &u32) -> bool {
    *moments == 0
}

impl Privacy {
    /// A promise for one model about so many training rows, one provider of which may collude, without
    /// moments.
    pub fn new(epsilon: Epsilon, delta: Delta, rows: u64) -> Self {
        Self {
            epsilon,
            delta,
            rows,
            trusted: None,
            models: NonZeroU32::MIN,
            moments: 0,
            persons: false,
        }
    }

    /// The same for rows of a schema: a model for each of several classes, and moments bought wherever
    /// nothing typical is stated.
    pub fn suited(self, schema: &Schema) -> Self {
        Self {
            models: models_of(schema),
            moments: u32::try_from(unstated(schema).len()).unwrap_or(u32::MAX),
            ..self
        }
    }

    /// The plan for rows of so many columns, the bias among them.
    ///
    /// # Errors
    /// If there is none for these numbers.
    pub fn plan(&self, width: usize) -> Result<PrivatePlan, PlanError> {
        let extent = Extent {
            rows: self.rows,
            width,
            models: self.models,
            moments: self.sums(),
            persons: self.persons,
        };
        PrivatePlan::of(extent, self.epsilon, self.delta)
    }

    /// Columns that moments are bought of, the number of persons counted as one.
    pub(crate) fn sums(&self) -> u32 {
        self.moments.saturating_add(self.persons.into())
    }

    /// On how many others' noise a provider counts if there are so many providers.
    pub fn counts_on(&self, providers: usize) -> u32 {
        let providers = u32::try_from(providers).unwrap_or(u32::MAX);
        let trusted = self.trusted.unwrap_or(providers.saturating_sub(2));
        trusted.min(providers.saturating_sub(1))
    }

    /// The noise that each of so many providers adds to a number that needs so much.
    pub fn share(&self, needed: Variance, providers: usize) -> Variance {
        let trusted = self.counts_on(providers);
        let providers = u32::try_from(providers).unwrap_or(u32::MAX);
        let providers = NonZeroU32::new(providers).unwrap_or(NonZeroU32::MIN);
        share_of(needed, providers, trusted)
    }

    /// About how many rows are held out where so many train.
    pub fn held_out_beside(training: u64, held_out: Share) -> u64 {
        let held_out = held_out.permille();
        training.saturating_mul(held_out) / 1000u64.saturating_sub(held_out).max(1)
    }

    /// The deviation of the noise in the number of right predictions of a model, in rows, if there
    /// are so many providers and held-out rows: by both of its counts.
    pub fn noise_in_right(&self, plan: &PrivatePlan, providers: usize, held_out: u64) -> f64 {
        let deviation = |needed: Variance| {
            let all = self.share(needed, providers).get() as f64 * providers as f64;
            all.sqrt() / f64::from(ROW_UNITS)
        };
        let counts = match held_out >= ROWS_FOR_AREA {
            true => 2 * (PRIVATE_EDGES.len() + 1),
            false => 2 * (DECISION_EDGE.len() + 1),
        };
        both(
            deviation(plan.right_variance()),
            right_in_table(counts, deviation(plan.table_variance())),
        )
    }

    /// The deviation of the noise in every number that a step opens, as a multiple of what a row of its batch
    /// can add to it at most, if there are so many providers.
    pub fn noise_in_rows(&self, plan: &PrivatePlan, providers: usize) -> f64 {
        self.noise_opened(plan, providers) / f64::from(plan.passes().band(0))
    }

    /// The same as a multiple of what a row can add to the sum over a batch.
    pub fn noise_opened(&self, plan: &PrivatePlan, providers: usize) -> f64 {
        let variance = self.share(plan.variance(), providers).get() as f64 * providers as f64;
        (variance / SENSITIVITY_SQUARED as f64).sqrt()
    }
}
