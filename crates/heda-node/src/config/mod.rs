//! The two files that people write: the provider's configuration and the data user's job.
//!
//! Both are TOML, read strictly: an unknown key, a wrong type or a value out of range is an error
//! that shows the line. Paths in a file are relative to the file.

mod contradiction;
mod job;
mod provider;
mod values;

pub use contradiction::Contradiction;
pub use job::{Auto, JobConfig, OnLoss, ProviderEntry, Timeouts};
pub use provider::{
    AllowedPeer, KnownProvider, LimitsConfig, ProviderConfig, RecognitionConfig, Reproducible,
};
pub use values::{Iota, Name, NotNegative, Positive, Seconds, Share};

use crate::identity::IdentityError;
use crate::system::files;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{path}: {cause}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not what it should be; the cause shows the line.
    #[error("{path}: {cause}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// Line and reason.
        cause: String,
    },
    /// Its parts contradict each other.
    #[error("{path}: {problem}")]
    Contradiction {
        /// Which file.
        path: PathBuf,
        /// What does not fit, and what would.
        problem: Contradiction,
    },
    /// The certificate of the authority cannot be read.
    #[error(transparent)]
    Authority(#[from] IdentityError),
}

/// Files that people write are short.
const FILE_LIMIT: u64 = 1 << 20;

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let bytes = files::read_bounded(path, FILE_LIMIT).map_err(|cause| ConfigError::File {
        path: path.to_owned(),
        cause,
    })?;
    let content = |cause: String| ConfigError::Content {
        path: path.to_owned(),
        cause,
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| content("not UTF-8 text".into()))?;
    toml::from_str(text).map_err(|e| content(e.to_string().trim_end().to_owned()))
}

/// A path in a file, seen from where the program runs.
fn beside(file: &Path, path: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    }
}

/// The first value that occurs twice.
fn repeated<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut seen = std::collections::BTreeSet::new();
    for value in values {
        if seen.contains(&value) {
            return Some(value);
        }
        seen.insert(value);
    }
    None
}
