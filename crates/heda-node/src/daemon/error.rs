//! Why a provider does not serve.

use crate::config::ConfigError;
use crate::guard::ledger::LedgerError;
use crate::guard::provider_data::DataError;
use crate::identity::IdentityError;
use crate::identity::trust::TrustError;
use heda_crypto::random::NoRandomness;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why a provider does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key or certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The peers cannot be recognised.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The rows cannot be used. Without the value that is at fault: this goes to logs.
    #[error("{}", .0.for_logs())]
    Data(DataError),
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The store cannot be used.
    #[error("the store {path}: {cause}")]
    Store {
        /// Which file or folder.
        path: PathBuf,
        /// What is wrong.
        cause: std::io::Error,
    },
    /// The operating system gave no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The runtime could not be started.
    #[error("cannot start: {0}")]
    Runtime(std::io::Error),
    /// A port is taken or not ours.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Some sessions did not end in time after the wish to stop.
    #[error("{0} sessions had not ended {1:?} after the wish to stop; their jobs can be resumed")]
    Abandoned(u64, Duration),
}
