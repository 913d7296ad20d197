//! What a private job promised, what was charged for it, and what is left.

use heda_job::job::Outcome;
use heda_learn::model::{SpentOn, Unit};
use serde::{Serialize, Serializer};

/// What a private job promised, and how good its model is where that may be known.
#[derive(Debug, Clone, Serialize)]
pub struct Promise {
    /// ε of everything that the job revealed.
    pub epsilon: f64,
    /// δ beside it.
    pub delta: f64,
    /// Who is protected.
    pub unit: Unit,
    /// ε that the providers have charged, the most of any that told.
    pub charged: Option<f64>,
    /// What it was spent on.
    pub spent_on: Vec<SpentOn>,
    /// Accuracy on held-out rows, counted in clear where all parties are on one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_in_clear: Option<f64>,
    /// Standard deviation of the noise in each count of the table, if held-out rows were counted.
    #[serde(skip)]
    pub counts_deviation: Option<f64>,
    /// Standard deviation of the noise in the number of right predictions, likewise.
    #[serde(skip)]
    pub right_deviation: Option<f64>,
    /// Whether bounds were read from the rows themselves, so that nothing is guaranteed.
    #[serde(skip)]
    pub bounds_from_rows: bool,
}

/// A promise as it is told to programs: none where bounds were read from the rows, because then it
/// guarantees nothing.
pub(super) fn guaranteed<S: Serializer>(
    promise: &Option<Promise>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let guarantees = |promise: &&Promise| !promise.bounds_from_rows;
    promise.as_ref().filter(guarantees).serialize(serializer)
}

/// What a provider has left of its privacy budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetLeft {
    /// Which provider.
    pub provider: String,
    /// ε that one more job may have.
    pub epsilon: f64,
}

/// What providers told that further jobs may have.
pub(super) fn budgets_left(outcome: &Outcome) -> Vec<BudgetLeft> {
    let told = outcome.providers.iter().filter_map(|provider| {
        Some(BudgetLeft {
            provider: provider.name.clone(),
            epsilon: provider.charged?.left?,
        })
    });
    told.collect()
}
