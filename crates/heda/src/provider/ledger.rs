//! What an operator asks of a provider's ledger: which jobs there were, what is left of the budget, and
//! how to go on after a loss.

use crate::error::Error;
use heda_node::config::ProviderConfig;
use heda_node::guard::backup;
use heda_node::guard::ledger::{Caps, Ledger, LedgerReader};
use heda_node::guard::provider_data::ProviderData;
use heda_node::system::clock::{Clock, SystemClock};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use heda_node::guard::ledger::{
    BudgetReport, DisclosedReport, FailedChecksReport, HoldReport, JobReport, OtherSpent,
    PrivateReport, PrivateUser, RefusalReport, StatusReport,
};
pub use heda_node::system::clock::{Day, Timestamp};

/// A report of the ledger with the account of private jobs.
#[derive(Debug, Serialize)]
pub struct WithPrivate<T> {
    /// What was asked for.
    #[serde(flatten)]
    pub report: T,
    /// What private jobs have cost, and may still cost.
    pub private: PrivateReport,
    /// Other data sets of the same ledger, which may hold the same people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherSpent>,
}

/// A ledger that begins anew, as an operator is told.
#[derive(Debug, Serialize)]
pub struct BegunAnew {
    /// Where that went which could not be read.
    pub aside: Option<PathBuf>,
    /// Entries that are gone, for which all that was left is charged.
    pub missing: u64,
    /// What private jobs have cost.
    pub private: PrivateReport,
    /// What was published.
    pub budget: BudgetReport,
}

/// Accepts a ledger that is damaged, or not there, and begins a new one over what can be read.
///
/// # Errors
/// If the ledger or its anchor cannot be written.
pub fn begin_anew(config: &ProviderConfig, because: &str) -> Result<BegunAnew, Error> {
    let cap = config.limits.private_cap();
    let caps = Caps {
        data_set: config.data_set.as_str(),
        private: cap.as_ref(),
        published: config.limits.epsilon_total,
    };
    let begun = Ledger::begin_anew(
        &config.ledger_place(),
        because,
        &caps,
        Arc::new(SystemClock),
    );
    let begun = begun.map_err(Error::input)?;
    let private = begun.ledger.private(caps.data_set, cap.as_ref());
    let budget = begun.ledger.budget(caps.data_set, caps.published);
    Ok(BegunAnew {
        private: private.map_err(Error::input)?,
        budget: budget.map_err(Error::input)?,
        aside: begun.aside,
        missing: begun.missing,
    })
}

/// Frees what a private job has set aside of the budget; whether it had anything.
///
/// # Errors
/// If the ledger cannot be written.
pub fn release(config: &ProviderConfig, job: &str) -> Result<bool, Error> {
    let ledger = Ledger::open(&config.ledger_place(), Arc::new(SystemClock));
    let freed = ledger.and_then(|ledger| ledger.release(job));
    Ok(freed.map_err(Error::input)? > 0)
}

/// Copies ledger, row order and identity into a new folder, also while the provider serves; the files
/// that are there now.
///
/// # Errors
/// If the folder is there already, or a file cannot be copied.
pub fn backup(config: &ProviderConfig, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    backup::backup(config, folder).map_err(Error::input)
}

/// The account of private jobs; none before there is a ledger.
pub(super) fn account(config: &ProviderConfig) -> Result<Option<PrivateReport>, Error> {
    if !config.ledger_place().ledger.exists() {
        return Ok(None);
    }
    private(&reader(config)?, config).map(Some)
}

fn private(reader: &LedgerReader, config: &ProviderConfig) -> Result<PrivateReport, Error> {
    let cap = config.limits.private_cap();
    let report = reader.private(config.data_set.as_str(), cap.as_ref());
    report.map_err(Error::input)
}

/// Other data sets of the ledger with what they cost; rows that cannot be read are nobody's.
fn others(reader: &LedgerReader, config: &ProviderConfig) -> Result<Vec<OtherSpent>, Error> {
    let own = config.data_set.as_str();
    // Reading all rows is only worth it where there is something to compare.
    let names = reader.other_names(own).map_err(Error::input)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let data = ProviderData::load(config).ok();
    let digest = data.as_ref().map(ProviderData::digest);
    let cap = config.limits.private_cap();
    OtherSpent::of_reader(reader, own, digest, cap.as_ref()).map_err(Error::input)
}

/// Jobs and refusals.
///
/// # Errors
/// If there is no ledger, or none that can be read.
pub fn status(config: &ProviderConfig) -> Result<WithPrivate<StatusReport>, Error> {
    let reader = reader(config)?;
    let report = reader.status(config.data_set.as_str(), SystemClock.now());
    Ok(WithPrivate {
        report: report.map_err(Error::input)?,
        private: private(&reader, config)?,
        others: others(&reader, config)?,
    })
}

/// What was released, and what is left of ε. Without a budget nothing is published any more; what
/// was published stays on the books.
///
/// # Errors
/// As [`status`].
pub fn budget(config: &ProviderConfig) -> Result<WithPrivate<BudgetReport>, Error> {
    let reader = reader(config)?;
    let limit = config.limits.epsilon_total;
    let report = reader.budget(config.data_set.as_str(), limit);
    Ok(WithPrivate {
        report: report.map_err(Error::input)?,
        private: private(&reader, config)?,
        others: others(&reader, config)?,
    })
}

pub(super) fn reader(config: &ProviderConfig) -> Result<LedgerReader, Error> {
    let place = config.ledger_place();
    if !place.ledger.exists() && !place.anchor.exists() {
        let path = place.ledger.display();
        return Err(Error::input(format!(
            "there is no ledger {path} yet; it is made by the first `provider serve`"
        )));
    }
    LedgerReader::open(&place).map_err(Error::input)
}
