//! What a release costs, who agreed to pay, and the receipt without which nothing is released.
//!
//! Rules of composition, as used here:
//! - Columns of one data set, and releases of one data set, concern the same rows: their ε
//!   **add up**. [`Charge::total`] and [`Accountant`] do that.
//! - Providers hold different rows of different people: for one person only the provider that
//!   holds the row counts, so across providers the **largest** ε holds ([`across_providers`]). It
//!   holds only as long as nobody's row lies at two providers.
//!
//! [`Accountant`] is the arithmetic in memory. A provider that must remember across restarts
//! implements [`Spend::record`] on its own store: it writes the charge durably, and
//! [`Spend::spend`] makes the receipt when that is done. There is no other way to a receipt.
//! Estimates, which pay nothing and let nothing leave, use the previews of the mechanisms.

use crate::epsilon::Epsilon;
use crate::error::ParameterError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to publish columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// Exact discrete Laplace noise on every number, randomised response on every category.
    Laplace,
    /// The paper's: noisy centroids of two-sided microaggregation.
    Ima,
    /// The control by Soria-Comas and others.
    Imdav,
    /// The paper's baseline: Laplace noise on every value, scale read from the data.
    Standard,
}

impl Mechanism {
    /// What the ε of this mechanism is worth, in words for a report.
    pub fn guarantee(self) -> &'static str {
        match self {
            Self::Laplace => {
                "epsilon-differential privacy for every row (the number of rows is public): the \
                 epsilons of the columns add up, bounds come from the schema, the noise is exact"
            }
            Self::Ima | Self::Imdav => {
                "no epsilon holds for linked rows: rows of a cluster share one noisy value, so \
                 which rows are alike is published exactly; the stated epsilon is what the paper \
                 claims, for the list of centroids alone and under its own assumptions"
            }
            Self::Standard => {
                "no proven epsilon: the scale of the noise is read from the data; with public \
                 bounds instead, and the epsilons of the columns added up, it would be laplace"
            }
        }
    }

    /// Whether the ε on the charge is a proven bound for every row.
    pub fn is_proven(self) -> bool {
        matches!(self, Self::Laplace)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Laplace => "laplace",
            Self::Ima => "ima",
            Self::Imdav => "imdav",
            Self::Standard => "standard",
        })
    }
}

/// The ε of one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnCharge {
    /// The column's name.
    pub name: String,
    /// What its release costs.
    pub epsilon: Epsilon,
}

/// The cost of one release: mechanism, and ε column by column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Charge {
    mechanism: Mechanism,
    columns: Vec<ColumnCharge>,
    total: Epsilon,
}

/// Why columns do not make a charge.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChargeError {
    /// A release of nothing.
    #[error("a release needs at least one column")]
    NoColumns,
    /// The same column twice: it would be counted once by a careless reader.
    #[error("column {0} is charged twice; release it once")]
    Repeated(String),
    /// The sum is no ε any more.
    #[error("the columns together: {0}")]
    Total(ParameterError),
    /// A stored charge whose total is not its sum.
    #[error("the stored total {stored} is not the sum of its columns, {sum}")]
    WrongTotal {
        /// What was stored.
        stored: Epsilon,
        /// What the columns add up to.
        sum: Epsilon,
    },
}

/// A charge as it is stored, before it is believed.
#[derive(Deserialize)]
struct Written {
    mechanism: Mechanism,
    columns: Vec<ColumnCharge>,
    total: Epsilon,
}

impl TryFrom<Written> for Charge {
    type Error = ChargeError;

    fn try_from(written: Written) -> Result<Self, ChargeError> {
        let charge = Self::new(written.mechanism, written.columns)?;
        match (written.total, charge.total) {
            (stored, sum) if stored != sum => Err(ChargeError::WrongTotal { stored, sum }),
            _ => Ok(charge),
        }
    }
}

impl Charge {
    /// Adds the columns up.
    pub fn new(mechanism: Mechanism, columns: Vec<ColumnCharge>) -> Result<Self, ChargeError> {
        if columns.is_empty() {
            return Err(ChargeError::NoColumns);
        }
        let mut names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ChargeError::Repeated(pair[0].to_owned()));
        }
        let total = Epsilon::sum(columns.iter().map(|c| c.epsilon)).map_err(ChargeError::Total)?;
        Ok(Self {
            mechanism,
            columns,
            total,
        })
    }

    /// How it will be released.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Column by column.
    pub fn columns(&self) -> &[ColumnCharge] {
        &self.columns
    }

    /// The sum over the columns: what one row pays.
    pub fn total(&self) -> Epsilon {
        self.total
    }

    /// Whether this is the price of so many columns by this mechanism.
    pub(crate) fn is_for(
        &self,
        mechanism: Mechanism,
        columns: usize,
    ) -> Result<(), ReceiptMismatch> {
        let (paid, paid_columns) = (self.mechanism, self.columns.len());
        if (paid, paid_columns) == (mechanism, columns) {
            return Ok(());
        }
        Err(ReceiptMismatch {
            paid,
            paid_columns,
            mechanism,
            columns,
        })
    }
}

/// Proof that a charge was paid. Not clonable, consumed by the release it pays for.
#[derive(Debug)]
#[must_use = "the budget is spent; release what was paid for"]
pub struct Receipt {
    charge: Charge,
}

impl Receipt {
    /// What was paid for.
    pub fn charge(&self) -> &Charge {
        &self.charge
    }

    /// Uses the receipt up, if it pays for this mechanism and this many columns.
    ///
    /// # Errors
    /// If it pays for something else.
    pub fn redeem(self, mechanism: Mechanism, columns: usize) -> Result<Charge, ReceiptMismatch> {
        self.charge.is_for(mechanism, columns)?;
        Ok(self.charge)
    }
}

/// A receipt or a price for something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the receipt pays for {paid_columns} columns by {paid}, not for {columns} by {mechanism}; \
     nothing was released"
)]
pub struct ReceiptMismatch {
    /// The mechanism paid for.
    pub paid: Mechanism,
    /// How many columns were paid for.
    pub paid_columns: usize,
    /// The mechanism asked for.
    pub mechanism: Mechanism,
    /// How many columns were to be released.
    pub columns: usize,
}

/// Who guards the budget of one data set.
///
/// An implementation says how a charge is recorded; [`Spend::spend`] is the only place where a
/// [`Receipt`] is made. A crash after recording loses budget, never privacy.
pub trait Spend {
    /// Why nothing was spent.
    type Refused: std::error::Error + Send + Sync + 'static;

    /// Checks the charge against the limit and records it, durably if the data outlive the
    /// process; or refuses and leaves everything as it was.
    fn record(&mut self, charge: &Charge) -> Result<(), Self::Refused>;

    /// Spends the charge, or refuses and leaves everything as it was.
    fn spend(&mut self, charge: Charge) -> Result<Receipt, Self::Refused> {
        self.record(&charge)?;
        Ok(Receipt { charge })
    }
}

/// The budget of one data set, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accountant {
    limit: Epsilon,
    spent: u64,
}

/// The budget does not reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the release costs epsilon {asked}, but of the limit {limit} of this data set there is {} \
     left; nothing was released. Ask for less, or raise the limit",
    .left.map_or("nothing".to_owned(), |left| left.to_string())
)]
pub struct Exhausted {
    /// What the release costs.
    pub asked: Epsilon,
    /// What is left, if anything.
    pub left: Option<Epsilon>,
    /// The limit of the data set.
    pub limit: Epsilon,
}

impl Accountant {
    /// A fresh budget.
    pub fn new(limit: Epsilon) -> Self {
        Self { limit, spent: 0 }
    }

    /// The limit.
    pub fn limit(&self) -> Epsilon {
        self.limit
    }

    /// The sum of all releases so far, if there were any.
    pub fn spent(&self) -> Option<Epsilon> {
        Epsilon::from_billionths(self.spent).ok()
    }

    /// What is left, if anything.
    pub fn left(&self) -> Option<Epsilon> {
        Epsilon::from_billionths(self.limit.billionths().saturating_sub(self.spent)).ok()
    }

    /// Whether a charge would be accepted. Nothing is spent.
    pub fn check(&self, charge: &Charge) -> Result<(), Exhausted> {
        let (asked, left, limit) = (charge.total, self.left(), self.limit);
        match left {
            Some(left) if asked <= left => Ok(()),
            _ => Err(Exhausted { asked, left, limit }),
        }
    }
}

impl Spend for Accountant {
    type Refused = Exhausted;

    fn record(&mut self, charge: &Charge) -> Result<(), Exhausted> {
        self.check(charge)?;
        self.spent += charge.total.billionths();
        Ok(())
    }
}

/// Parallel composition: what a person pays when several providers release, each about its own
/// rows. `None` if nobody releases anything.
pub fn across_providers(totals: impl IntoIterator<Item = Epsilon>) -> Option<Epsilon> {
    totals.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(text: &str) -> Epsilon {
        text.parse().unwrap()
    }

    fn charge(columns: &[(&str, &str)]) -> Result<Charge, ChargeError> {
        let column = |&(name, e): &(&str, &str)| ColumnCharge {
            name: name.to_owned(),
            epsilon: epsilon(e),
        };
        Charge::new(Mechanism::Laplace, columns.iter().map(column).collect())
    }

    #[test]
    fn columns_add_up_and_releases_add_up() {
        let mut accountant = Accountant::new(epsilon("1"));
        let first = charge(&[("a", "0.1"), ("b", "0.2")]).unwrap();
        assert_eq!(first.total(), epsilon("0.3"));
        let receipt = accountant.spend(first.clone()).unwrap();
        assert_eq!(receipt.charge(), &first);
        assert_eq!(accountant.left(), Some(epsilon("0.7")));
        let _ = accountant.spend(charge(&[("a", "0.7")]).unwrap()).unwrap();
        assert_eq!(accountant.spent(), Some(epsilon("1")));
        assert_eq!(accountant.left(), None);
    }

    #[test]
    fn what_exceeds_the_limit_is_refused_and_spends_nothing() {
        let mut accountant = Accountant::new(epsilon("1"));
        let _ = accountant.spend(charge(&[("b", "0.6")]).unwrap()).unwrap();
        let refused = accountant
            .spend(charge(&[("a", "0.400000001")]).unwrap())
            .unwrap_err();
        assert_eq!(refused.left, Some(epsilon("0.4")));
        assert!(refused.to_string().contains("there is 0.4 left"));
        assert_eq!(accountant.spent(), Some(epsilon("0.6")));
        let _ = accountant.spend(charge(&[("a", "0.4")]).unwrap()).unwrap();
        let refused = accountant
            .spend(charge(&[("a", "0.000000001")]).unwrap())
            .unwrap_err();
        assert!(refused.to_string().contains("there is nothing left"));
    }

    #[test]
    fn bad_charges_have_their_own_errors() {
        assert_eq!(charge(&[]), Err(ChargeError::NoColumns));
        let twice = charge(&[("a", "1"), ("b", "1"), ("a", "2")]);
        assert_eq!(twice, Err(ChargeError::Repeated("a".into())));
        let huge = charge(&[("a", "600"), ("b", "600")]);
        assert_eq!(
            huge,
            Err(ChargeError::Total(ParameterError::EpsilonTooLarge))
        );
    }

    #[test]
    fn a_stored_charge_is_checked_when_it_is_read() {
        let original = charge(&[("a", "0.1"), ("b", "0.2")]).unwrap();
        let json = serde_json::to_string(&original).unwrap();
        assert_eq!(serde_json::from_str::<Charge>(&json).unwrap(), original);
        let forged = json.replace("0.3", "0.2");
        assert!(serde_json::from_str::<Charge>(&forged).is_err());
    }

    #[test]
    fn providers_compose_in_parallel() {
        let totals = [epsilon("0.5"), epsilon("2"), epsilon("1")];
        assert_eq!(across_providers(totals), Some(epsilon("2")));
        assert_eq!(across_providers([]), None);
    }

    #[test]
    fn a_receipt_pays_for_its_own_release_only() {
        let receipt = || {
            let mut accountant = Accountant::new(epsilon("1"));
            accountant.spend(charge(&[("a", "1")]).unwrap()).unwrap()
        };
        assert!(receipt().redeem(Mechanism::Laplace, 1).is_ok());
        assert!(receipt().redeem(Mechanism::Laplace, 2).is_err());
        assert!(receipt().redeem(Mechanism::Ima, 1).is_err());
    }
}
