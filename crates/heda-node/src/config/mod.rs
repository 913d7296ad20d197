//! The files that people write or exchange: a provider's configuration, a data user's job, invitations and
//! answers.
//!
//! All are TOML, read strictly: an unknown key, a wrong type or a value out of range is an error
//! that shows the line. Paths in a file are relative to the file.

mod contradiction;
mod invitation;
mod job;
mod privacy;
mod provider;
pub mod template;
mod values;

pub use contradiction::Contradiction;
pub use invitation::{ANSWER_ENDING, ANSWERS_FOLDER, Answer, Invitation, Terms};
pub use job::{Auto, JobConfig, OnLoss, ProviderEntry, Timeouts};
pub use privacy::PrivacyConfig;
pub use provider::{
    AllowedPeer, KnownProvider, LimitsConfig, ProviderConfig, RecognitionConfig, Reproducible,
};
pub use values::{
    ClassWeightValue, IotaValue, Name, NoClass, NoName, NoSeconds, NotNegative, PenaltyValue,
    Positive, PublishedBy, SecondsValue, Share,
};

use crate::identity::IdentityError;
use crate::system::files::read_bounded;
use heda_learn::reference::{Described, FileKeys};
use heda_learn::schema::{MAX_SCHEMA_BYTES, SchemaError};
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
        cause: BadContent,
    },
    /// Its parts contradict each other.
    #[error("{path}: {problem}")]
    Contradiction {
        /// Which file.
        path: PathBuf,
        /// What does not fit, and what would.
        problem: Contradiction,
    },
    /// The schema in an invitation cannot be used.
    #[error(transparent)]
    Schema(SchemaError),
    /// The certificate of the authority cannot be read.
    #[error(transparent)]
    Authority(#[from] IdentityError),
}

/// What is wrong with the content of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadContent {
    /// Bytes that are no text.
    #[error("not UTF-8 text; save it as UTF-8")]
    NotText,
    /// Text that does not follow the reference of keys: line, words and what fits.
    #[error("{0}")]
    Syntax(String),
    /// A format of another version.
    #[error("format {0} is not known here; this program reads format {known}", known = invitation::FORMAT)]
    Format(u32),
    /// A folder that does not hold the answers of a job.
    #[error(
        "{0} files end in {ANSWER_ENDING}; put the answers of the providers here, at most {most}",
        most = invitation::MOST_ANSWERS
    )]
    Answers(usize),
}

/// Files that people write are short.
const FILE_LIMIT: u64 = 1 << 20;
/// An invitation holds a schema, quoted.
const INVITATION_LIMIT: u64 = FILE_LIMIT + 2 * MAX_SCHEMA_BYTES as u64;

/// The kinds of files that people write or exchange, with all of their keys.
pub fn files() -> [FileKeys; 5] {
    [
        FileKeys::of::<JobConfig>(JobConfig::FILE),
        FileKeys::of::<ProviderConfig>(ProviderConfig::FILE),
        heda_learn::schema::keys(),
        FileKeys::of::<Invitation>(Invitation::FILE),
        FileKeys::of::<Answer>(Answer::FILE),
    ]
}

fn read_text<T: DeserializeOwned + Described>(
    path: &Path,
    file: &'static str,
    limit: u64,
) -> Result<T, ConfigError> {
    let bytes = read_bounded(path, limit).map_err(|cause| ConfigError::File {
        path: path.to_owned(),
        cause,
    })?;
    let content = |cause| ConfigError::Content {
        path: path.to_owned(),
        cause,
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| content(BadContent::NotText))?;
    let explain = |e| FileKeys::of::<T>(file).explain(text, &e);
    toml::from_str(text).map_err(|e| content(BadContent::Syntax(explain(e))))
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

#[cfg(test)]
mod reference_tests;
