//! What a provider publishes of its rows: price, noise, and how both sides read it (J6).

use crate::codec::Malformed;
use crate::proposal::Spending;
use crate::rows::{domain, release_from_bytes, release_to_bytes, to_publish};
use heda_dp::account::{Charge, ChargeError, ColumnCharge, Mechanism, Receipt, ReceiptMismatch};
use heda_dp::epsilon::Epsilon;
use heda_dp::{budget, laplace};
use heda_learn::data::Feature;
use rand_core::CryptoRng;
use std::sync::OnceLock;

/// Why columns cannot be published as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The ε does not split over the columns.
    #[error(transparent)]
    Split(#[from] budget::SplitError),
    /// The price is none.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The values do not fit their public domain.
    #[error(transparent)]
    Values(#[from] laplace::PrepareError),
    /// What was paid for is something else.
    #[error(transparent)]
    Receipt(#[from] ReceiptMismatch),
    /// The job wants ε read from the values, and no rule for that was registered.
    #[error("this program has no rule for automatic epsilon; state it, or use heda-repro")]
    NoRule,
    /// The rule gives no ε for these values.
    #[error("no automatic epsilon: {0}")]
    Rule(Box<dyn std::error::Error + Send + Sync>),
    /// The release does not read as one.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Columns with a price: nothing leaves before it is paid.
pub(crate) struct Offer<'a> {
    features: Vec<&'a Feature>,
    values: Vec<Vec<u32>>,
    charge: Charge,
    bits: u32,
}

impl<'a> Offer<'a> {
    /// These features of a grid of so many columns, at this price.
    pub(crate) fn new(
        features: Vec<&'a Feature>,
        grid: &[u32],
        width: usize,
        bits: u32,
        spending: &Spending,
    ) -> Result<Self, ReleaseError> {
        let columns = features.iter().map(|feature| &feature.columns);
        let values: Vec<Vec<u32>> = columns
            .map(|columns| to_publish(grid, width, columns))
            .collect();
        let charge = charge(spending, &features, &values)?;
        Ok(Self {
            features,
            values,
            charge,
            bits,
        })
    }

    /// The price, column by column.
    pub(crate) fn charge(&self) -> &Charge {
        &self.charge
    }

    fn prepare(&self) -> Result<laplace::Prepared<'_>, ReleaseError> {
        let features = self.features.iter();
        let specs: Vec<_> = features.map(|feature| domain(feature, self.bits)).collect();
        Ok(laplace::prepare(&specs, &self.values)?)
    }

    /// The noisy columns on the wire.
    pub(crate) fn release<R: CryptoRng>(
        &self,
        receipt: Receipt,
        rng: &mut R,
    ) -> Result<Vec<u8>, ReleaseError> {
        let released = self.prepare()?.release(receipt, rng)?;
        Ok(release_to_bytes(released.columns()))
    }

    /// What the release would look like, on the grid. Nothing is paid and nothing may leave.
    pub(crate) fn preview<R: CryptoRng>(
        &self,
        rows: usize,
        rng: &mut R,
    ) -> Result<Vec<u32>, ReleaseError> {
        let previewed = self.prepare()?.preview(&self.charge, rng)?;
        let bytes = release_to_bytes(previewed.columns());
        Ok(self.read(&bytes, rows)?)
    }

    /// Reads a release of this offer: for every row the published columns, on the grid.
    pub(crate) fn read(&self, bytes: &[u8], rows: usize) -> Result<Vec<u32>, Malformed> {
        release_from_bytes(bytes, &self.features, rows, self.bits)
    }
}

/// Puts what was published in place of what it was made from.
pub(crate) fn overwrite(grid: &mut [u32], width: usize, columns: &[usize], noisy: &[u32]) {
    for (row, cells) in grid.chunks_exact_mut(width).enumerate() {
        let released = &noisy[row * columns.len()..][..columns.len()];
        for (&column, &value) in columns.iter().zip(released) {
            cells[column] = value;
        }
    }
}

/// Reads ε from the values to be published, column by column.
pub type EpsilonRule =
    fn(&[Vec<u32>]) -> Result<Vec<Epsilon>, Box<dyn std::error::Error + Send + Sync>>;

/// What jobs with automatic ε go by. One for the process, as engines are.
static RULE: OnceLock<EpsilonRule> = OnceLock::new();

/// Gives this program a rule for automatic ε, unless it has one.
pub fn register_epsilon_rule(rule: EpsilonRule) {
    RULE.get_or_init(|| rule);
}

fn automatic(values: &[Vec<u32>]) -> Result<Vec<Epsilon>, ReleaseError> {
    let rule = RULE.get().ok_or(ReleaseError::NoRule)?;
    rule(values).map_err(ReleaseError::Rule)
}

/// ε column by column.
fn charge(
    spending: &Spending,
    features: &[&Feature],
    values: &[Vec<u32>],
) -> Result<Charge, ReleaseError> {
    let epsilons = match spending {
        Spending::Total(total) => budget::split_equally(*total, features.len())?,
        Spending::Automatic => automatic(values)?,
    };
    let columns = features
        .iter()
        .zip(epsilons)
        .map(|(feature, epsilon)| ColumnCharge {
            name: feature.name.clone(),
            epsilon,
        });
    Ok(Charge::new(Mechanism::Laplace, columns.collect())?)
}
