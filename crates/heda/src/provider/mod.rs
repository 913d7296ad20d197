//! Who holds rows: a [`Provider`] in this process, or a daemon for data users on the network, and what
//! its operator asks.

mod know;
mod ledger;
mod preview;
mod setup;

pub use know::{Known, NewlyKnown, know};
pub use ledger::{
    BegunAnew, BudgetReport, Day, DisclosedReport, FailedChecksReport, HoldReport, JobReport,
    OtherSpent, PrivateReport, PrivateUser, RefusalReport, StatusReport, Timestamp, WithPrivate,
    backup, begin_anew, budget, release, status,
};
pub use preview::{Finding, Invited, Preview, Verdict, check, preview, preview_invitation};
pub use setup::{PrivacyChoice, Setup, SetupChoices, SetupDone};

use crate::error::{Error, ErrorKind};
use heda_crypto::random::{NoRandomness, Randomness};
use heda_dp::account::Accountant;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::{Cost, Delta};
use heda_job::RowSeed;
use heda_job::guard::{LocalGuard, MemoryLedger};
use heda_job::local::LocalProvider;
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use heda_learn::table::{ReadReport, TableReader};
use heda_node::daemon::DaemonError;
use heda_node::daemon::serve::{serve, serve_until};
use heda_node::system::stop::StopSignal;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

pub use heda_node::config::ProviderConfig;

/// Reads and checks a provider's configuration.
///
/// # Errors
/// If it cannot be used. The error names the place and the remedy.
pub fn load(path: &Path) -> Result<ProviderConfig, Error> {
    ProviderConfig::load(path).map_err(Error::input)
}

/// Rows of one organisation, and what may be spent on publishing some of their columns. The budget
/// holds for all jobs of this value together and lives as long as it does; a daemon keeps a durable
/// ledger instead ([`Provider::serve`]).
#[derive(Debug, Clone)]
pub struct Provider {
    name: String,
    data: Arc<Dataset>,
    schema: Arc<Schema>,
    books: MemoryLedger,
    published: Option<Epsilon>,
    private: Option<Cost>,
    persons: Option<Arc<[u32]>>,
    public_data: bool,
}

impl Provider {
    /// A provider with the rows of a CSV or Parquet file, and what happened to them on the way.
    ///
    /// # Errors
    /// If the file does not fit the schema. The error names the place and the remedy.
    pub fn from_file(
        name: impl Into<String>,
        schema: &Arc<Schema>,
        path: &Path,
    ) -> Result<(Self, ReadReport), Error> {
        let read = TableReader::new(schema).read_file(path);
        let (data, report) = read.map_err(Error::input)?;
        Ok((Self::from_rows(name, schema, data), report))
    }

    /// The same where private jobs protect persons and not rows: the column `person` says whose row each one is.
    ///
    /// # Errors
    /// If the file does not fit the schema, or does not name a person in every row.
    pub fn from_file_of_persons(
        name: impl Into<String>,
        schema: &Arc<Schema>,
        path: &Path,
        person: &str,
    ) -> Result<(Self, ReadReport), Error> {
        let read = TableReader::new(schema).read_persons(path, person);
        let (data, persons, report) = read.map_err(Error::input)?;
        let provider = Self {
            persons: Some(persons.into()),
            ..Self::from_rows(name, schema, data)
        };
        Ok((provider, report))
    }

    /// A provider with these rows, which the schema has encoded.
    pub fn from_rows(name: impl Into<String>, schema: &Arc<Schema>, data: Dataset) -> Self {
        Self {
            name: name.into(),
            data: Arc::new(data),
            schema: Arc::clone(schema),
            books: MemoryLedger::default(),
            published: None,
            private: None,
            persons: None,
            public_data: false,
        }
    }

    /// The same with so much ε, in sum over all jobs, that columns may be published with. Without
    /// a budget nothing is published.
    pub fn with_budget(self, limit: Epsilon) -> Self {
        let private = self.private;
        self.with_fresh_ledger(Some(limit), private)
    }

    /// The same with a budget of private jobs: all of them together are (ε, δ)-differentially private for
    /// each row, or person. Jobs that run set aside what they cost. Without it each job has its own promise.
    pub fn with_private_budget(self, epsilon: Epsilon, delta: Delta) -> Self {
        let (published, private) = (self.published, Cost::for_guarantee(epsilon, delta));
        self.with_fresh_ledger(published, Some(private))
    }

    /// The same with these limits, of which nothing is spent.
    fn with_fresh_ledger(mut self, published: Option<Epsilon>, private: Option<Cost>) -> Self {
        let accountant = published.map(Accountant::new);
        self.books = accountant.map_or_else(MemoryLedger::default, MemoryLedger::from);
        if let Some(limit) = private {
            self.books.limit_private(limit);
        }
        (self.published, self.private) = (published, private);
        self
    }

    /// States that the rows are public, so that ε may be read from them.
    pub fn of_public_data(mut self) -> Self {
        self.public_data = true;
        self
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Serves data users on the network by a configuration, until SIGTERM or SIGINT. `ready` is
    /// called with the address when they can connect.
    ///
    /// # Errors
    /// If something of the configuration cannot be used, or the network fails.
    pub fn serve(
        configuration: &ProviderConfig,
        ready: impl FnOnce(SocketAddr),
    ) -> Result<(), Error> {
        serve(configuration, ready).map_err(serve_failure)
    }

    /// The same until `stop` is set: for programs that hear signals themselves.
    ///
    /// # Errors
    /// As [`Provider::serve`].
    pub fn serve_until(
        configuration: &ProviderConfig,
        ready: impl FnOnce(SocketAddr),
        stop: StopSignal,
    ) -> Result<(), Error> {
        serve_until(configuration, ready, stop).map_err(serve_failure)
    }

    /// Its side of one job: rows in an order that is drawn anew, the same budget.
    pub(crate) fn for_job(&self, randomness: &Randomness) -> Result<LocalProvider, NoRandomness> {
        let row_seed = RowSeed::fresh(&randomness.party(&self.name))?;
        let (data, schema) = (Arc::clone(&self.data), Arc::clone(&self.schema));
        let mut guard = LocalGuard::new(data, schema, row_seed, self.books.clone());
        if let Some(persons) = &self.persons {
            guard = guard.of_persons(Arc::clone(persons));
        }
        Ok(LocalProvider {
            name: self.name.clone(),
            guard: Box::new(match self.public_data {
                true => guard.of_public_data(),
                false => guard,
            }),
        })
    }
}

fn serve_failure(error: DaemonError) -> Error {
    let kind = match &error {
        DaemonError::Abandoned(..) => ErrorKind::Resumable,
        DaemonError::Runtime(_) => ErrorKind::Bug,
        _ => ErrorKind::Input,
    };
    Error::new(kind, error)
}
