//! What an operator asks about a provider: whether it can serve, what a job would cost and reveal,
//! which jobs there were, and what is left of the budget.

use crate::failure::{Failure, Kind};
use heda_dp::gdp::Cost;
use heda_learn::schema::Schema;
use heda_node::config::{JobConfig, ProviderConfig};
use heda_node::house::ledger::LedgerReader;
use heda_node::house::policy::{Grant, Policy};
use heda_node::house::provider_data::ProviderData;
use heda_node::identity::Identity;
use heda_node::identity::trust::PeerIdentity;
use heda_node::system::clock::{Clock, SystemClock};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

pub use heda_node::house::check::{Finding, Verdict};
pub use heda_node::house::ledger::{BudgetReport, DisclosedReport, PrivateReport, StatusReport};

/// What a job would be to a provider.
#[derive(Debug)]
pub struct Preview {
    /// What it would cost and reveal, in words.
    pub words: String,
    /// Why it would be refused, if it would.
    pub refusal: Option<Failure>,
}

/// A report of the ledger with the account of private jobs.
#[derive(Debug, Serialize)]
pub struct WithPrivate<T> {
    /// What was asked for.
    #[serde(flatten)]
    pub report: T,
    /// What private jobs have cost, and may still cost.
    pub private: PrivateReport,
}

/// Looks at data, schema, keys, ports, clock and permissions.
pub fn check(config: &ProviderConfig) -> Vec<Finding> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    heda_node::house::check::check(config, &clock)
}

/// Says what a job file would cost and reveal if `peer`, a data user of the configuration, asked.
///
/// # Errors
/// If something of configuration or job cannot be used, or the job is about other data.
pub fn preview(config: &ProviderConfig, job: &Path, peer: &str) -> Result<Preview, Failure> {
    let job = JobConfig::load(job).map_err(Failure::input)?;
    let data = ProviderData::load(config).map_err(Failure::input)?;
    let entry = config
        .allowed
        .iter()
        .find(|known| known.name.as_str() == peer);
    let entry =
        entry.ok_or_else(|| Failure::input(format!("no [[allow]] entry is called {peer}")))?;
    let peer = PeerIdentity {
        label: peer.to_owned(),
        fingerprint: entry
            .fingerprint
            .ok_or_else(|| Failure::input("only peers with a fingerprint can be previewed"))?,
    };
    let own = Identity::load(&config.identity).map_err(Failure::input)?;
    let facts = data.facts(job.holdout_permille());
    let mut request = job.request(&facts, own.fingerprint());
    // A plan knows its gradients: a private job has one model.
    request.iterations *= data.schema().label().models() as u64;
    if let Ok(schema) = Schema::read(&job.schema) {
        request.schema = schema.fingerprint().to_string();
    }
    if job.data_set != config.data_set {
        let words = format!(
            "the job asks for the data set {}, this provider has {}",
            job.data_set, config.data_set
        );
        return Err(Failure::new(Kind::Refused, words));
    }
    let policy = Policy::new(config);
    let learned = learned(config, &peer)?;
    let account = account(config)?;
    let words = policy.preview(&peer, &facts, &request, learned, account.as_ref());
    let refusal = match policy.evaluate(&peer, &facts, &request) {
        Ok(grant) => room(config, &grant, account.as_ref()).err(),
        Err(refusal) => Some(Failure::new(Kind::Refused, refusal)),
    };
    Ok(Preview { words, refusal })
}

/// Whether the budget of private jobs has room for one more.
fn room(
    config: &ProviderConfig,
    grant: &Grant,
    account: Option<&PrivateReport>,
) -> Result<(), Failure> {
    let cap = config.limits.private_cap();
    let (Some(each), Some(cap)) = (grant.private_gradient, cap) else {
        return Ok(());
    };
    let spent = account.map_or(Cost::ZERO, |account| account.spent);
    let job = each.times(grant.iterations).plus(grant.private_moments);
    match spent.plus(job) <= cap.total() {
        true => Ok(()),
        false => Err(Failure::new(
            Kind::Refused,
            "the budget of private jobs has no room for this one",
        )),
    }
}

/// The account of private jobs; none before there is a ledger.
fn account(config: &ProviderConfig) -> Result<Option<PrivateReport>, Failure> {
    if !config.ledger_place().ledger.exists() {
        return Ok(None);
    }
    private(&reader(config)?, config).map(Some)
}

fn private(reader: &LedgerReader, config: &ProviderConfig) -> Result<PrivateReport, Failure> {
    let cap = config.limits.private_cap();
    let report = reader.private(config.data_set.as_str(), cap.as_ref());
    report.map_err(Failure::input)
}

/// Jobs and refusals.
///
/// # Errors
/// If there is no ledger, or none that can be read.
pub fn status(config: &ProviderConfig) -> Result<WithPrivate<StatusReport>, Failure> {
    let reader = reader(config)?;
    let report = reader.status(config.data_set.as_str(), SystemClock.now());
    Ok(WithPrivate {
        report: report.map_err(Failure::input)?,
        private: private(&reader, config)?,
    })
}

/// What was released, and what is left of ε. Without a budget nothing is published any more; what
/// was published stays on the books.
///
/// # Errors
/// As [`status`].
pub fn budget(config: &ProviderConfig) -> Result<WithPrivate<BudgetReport>, Failure> {
    let reader = reader(config)?;
    let limit = config.limits.epsilon_total;
    let report = reader.budget(config.data_set.as_str(), limit);
    Ok(WithPrivate {
        report: report.map_err(Failure::input)?,
        private: private(&reader, config)?,
    })
}

/// Numbers that a data user has learned so far; none before there is a ledger.
fn learned(config: &ProviderConfig, peer: &PeerIdentity) -> Result<u64, Failure> {
    if !config.ledger_place().ledger.exists() {
        return Ok(0);
    }
    let own = peer.fingerprint.to_string();
    let disclosed = status(config)?.report.disclosed;
    let entry = disclosed.into_iter().find(|entry| entry.peer == own);
    Ok(entry.map_or(0, |entry| entry.numbers))
}

fn reader(config: &ProviderConfig) -> Result<LedgerReader, Failure> {
    let place = config.ledger_place();
    if !place.ledger.exists() && !place.anchor.exists() {
        let path = place.ledger.display();
        return Err(Failure::input(format!(
            "there is no ledger {path} yet; it is made by the first `provider serve`"
        )));
    }
    LedgerReader::open(&place).map_err(Failure::input)
}
