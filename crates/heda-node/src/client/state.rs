//! What a data user keeps on disk during a job, so that it can go on after a crash.
//!
//! One file, replaced as a whole after every iteration and evaluation. It is written before the first provider
//! is asked for anything: the job's name in it is what makes a release that was paid for come
//! again without being paid for twice.

use crate::system::files::{self, FolderLock};
use heda_job::guard::LedgerHead;
use heda_job::job::Checkpoint;
use heda_job::proposal::JobId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The format of the file.
const FORMAT: u32 = 1;
/// Larger files are no states of ours: a model of 65 536 columns with its history is smaller.
const FILE_LIMIT: u64 = 1 << 30;

/// A job in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobState {
    format: u32,
    /// Digest of what the job is about; another job file cannot go on with this state.
    pub terms: String,
    /// The job's name at the providers.
    pub job: JobId,
    /// Providers that were lost and left behind, by name.
    pub lost: Vec<String>,
    /// How far the ledgers of the providers had come when they were last seen, by name.
    #[serde(default)]
    pub ledgers: BTreeMap<String, LedgerHead>,
    /// After the last finished iteration or evaluation.
    pub checkpoint: Option<Checkpoint>,
}

/// As much of a state as every format has.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

/// Why a state cannot be kept or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be written.
    #[error("the checkpoint {path} cannot be written: {cause}; {}", remedy(cause))]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file cannot be read.
    #[error("the checkpoint {path} cannot be read: {cause}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is not JSON, or other JSON.
    #[error("the checkpoint {path} cannot be read: {cause}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// Where, and what is wrong.
        cause: serde_json::Error,
    },
    /// Another version wrote it.
    #[error(
        "the checkpoint {path} cannot be read: it has format {found}, this program reads {FORMAT}; \
         the version that began the job can finish it"
    )]
    Format {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Another process works on it.
    #[error("another job is under way in {0}")]
    InUse(PathBuf),
    /// There is none to go on from.
    #[error("there is nothing to resume in {0}")]
    Nothing(PathBuf),
    /// There is one already.
    #[error("{0} holds an unfinished job")]
    Unfinished(PathBuf),
    /// It belongs to another job.
    #[error("{0} belongs to a job with other terms")]
    OtherTerms(PathBuf),
}

/// What helps depends on what is wrong.
fn remedy(cause: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some room and resume",
        _ => "put this right and resume",
    }
}

/// Keeps the state of one job.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    state: JobState,
    /// Two processes on one state would count every iteration twice.
    _lock: FolderLock,
}

/// The file in the folder of a job.
const FILE: &str = "checkpoint.json";

impl StateFile {
    /// Begins a job whose state lies in a folder, and whose results will have these names there.
    pub fn begin(
        folder: &Path,
        terms: &str,
        job: JobId,
        results: &[&str],
    ) -> Result<Self, StateError> {
        let path = folder.join(FILE);
        let failed = |cause| StateError::Write {
            path: path.clone(),
            cause,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = take(folder, results)?;
        if path.exists() {
            return Err(StateError::Unfinished(folder.to_owned()));
        }
        let state = JobState {
            format: FORMAT,
            terms: terms.to_owned(),
            job,
            lost: Vec::new(),
            ledgers: BTreeMap::new(),
            checkpoint: None,
        };
        let file = Self {
            path,
            state,
            _lock: lock,
        };
        file.write()?;
        Ok(file)
    }

    /// Takes up the job whose state lies in a folder.
    pub fn resume(folder: &Path, terms: &str, results: &[&str]) -> Result<Self, StateError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Err(StateError::Nothing(folder.to_owned()));
        }
        let lock = take(folder, results)?;
        let state = read(&path)?;
        if state.terms != terms {
            return Err(StateError::OtherTerms(path));
        }
        Ok(Self {
            path,
            state,
            _lock: lock,
        })
    }

    /// What is kept.
    pub fn state(&self) -> &JobState {
        &self.state
    }

    /// Keeps a new checkpoint.
    pub fn keep(&mut self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        self.state.checkpoint = Some(checkpoint.clone());
        self.write()
    }

    /// Keeps that a provider was left behind.
    pub fn leave_behind(&mut self, provider: &str) -> Result<(), StateError> {
        self.state.lost.push(provider.to_owned());
        self.write()
    }

    /// Keeps how far a provider's ledger has come. What does not follow on what was seen before
    /// is returned in words: the provider's operator wants to know.
    pub fn keep_ledger(
        &mut self,
        provider: &str,
        head: &LedgerHead,
    ) -> Result<Option<String>, StateError> {
        let before = self.state.ledgers.insert(provider.to_owned(), head.clone());
        let words = before
            .filter(|before| !head.can_follow(before))
            .map(|before| {
                format!(
                    "the ledger of {provider} is not the one that this job has seen: entry {} of \
                 ledger {} then, entry {} of ledger {} now; tell its operator",
                    before.entry, before.epoch, head.entry, head.epoch
                )
            });
        self.write()?;
        Ok(words)
    }

    /// Removes the state of a job that was given up before anything was learned or may have been
    /// paid for: the folder is free again. Says whether it is.
    pub fn abandon(&self) -> bool {
        let checkpoint = self.state.checkpoint.as_ref();
        let nothing = checkpoint.is_none_or(|checkpoint| {
            checkpoint.iteration == 0 && checkpoint.split.published.is_empty()
        });
        nothing && std::fs::remove_file(&self.path).is_ok()
    }

    /// The job is done and its results are written: nothing to resume.
    pub fn finish(self) -> Result<(), StateError> {
        std::fs::remove_file(&self.path).map_err(|cause| self.write_error(cause))
    }

    fn write(&self) -> Result<(), StateError> {
        let bytes = serde_json::to_vec(&self.state)
            .map_err(|e| self.write_error(std::io::Error::other(e)))?;
        files::replace(&self.path, &bytes, 0o600).map_err(|cause| self.write_error(cause))
    }

    fn write_error(&self, cause: std::io::Error) -> StateError {
        StateError::Write {
            path: self.path.clone(),
            cause,
        }
    }
}

/// Takes the folder, and removes what a killed run has left of its files.
fn take(folder: &Path, results: &[&str]) -> Result<FolderLock, StateError> {
    let lock = FolderLock::take(folder).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::WouldBlock => StateError::InUse(folder.to_owned()),
        _ => StateError::Write {
            path: folder.to_owned(),
            cause,
        },
    })?;
    let names = [results, &[FILE]].concat();
    files::remove_partial(folder, &names).map_err(|cause| StateError::Write {
        path: folder.to_owned(),
        cause,
    })?;
    Ok(lock)
}

/// Reads a state; the number of its format first, since another one may have fields that we do not
/// know.
fn read(path: &Path) -> Result<JobState, StateError> {
    let place = || path.to_owned();
    let bytes = files::read_bounded(path, FILE_LIMIT).map_err(|cause| StateError::Read {
        path: place(),
        cause,
    })?;
    let content = |cause| StateError::Content {
        path: place(),
        cause,
    };
    match serde_json::from_slice(&bytes).map_err(content)? {
        Numbered { format: FORMAT } => serde_json::from_slice(&bytes).map_err(content),
        Numbered { format: found } => Err(StateError::Format {
            path: place(),
            found,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId([7; 16]);

    #[test]
    fn a_job_is_begun_once_and_resumed_on_the_same_terms() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = StateFile::resume(folder.path(), "t", &[]);
        assert!(matches!(nothing, Err(StateError::Nothing(_))));
        let mut file = StateFile::begin(folder.path(), "t", JOB, &[]).unwrap();
        file.leave_behind("b").unwrap();
        let kept = file.state().clone();
        let at_once = StateFile::resume(folder.path(), "t", &[]);
        assert!(matches!(at_once, Err(StateError::InUse(_))));
        drop(file);
        let again = StateFile::begin(folder.path(), "t", JOB, &[]);
        assert!(matches!(again, Err(StateError::Unfinished(_))));
        let other = StateFile::resume(folder.path(), "u", &[]);
        assert!(matches!(other, Err(StateError::OtherTerms(_))));
        let resumed = StateFile::resume(folder.path(), "t", &[]).unwrap();
        assert_eq!(*resumed.state(), kept);
        assert_eq!(resumed.state().lost, ["b"]);
        resumed.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_a_job_of_nothing_frees_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "checkpoint.json.1.partial",
            "model.json.1.partial",
            "x.1.partial",
        ] {
            std::fs::write(folder.path().join(name), b"half").unwrap();
        }
        let file = StateFile::begin(folder.path(), "t", JOB, &["model.json"]).unwrap();
        assert!(!folder.path().join("model.json.1.partial").exists());
        assert!(!folder.path().join("checkpoint.json.1.partial").exists());
        assert!(folder.path().join("x.1.partial").exists());
        assert!(file.abandon());
        drop(file);
        StateFile::begin(folder.path(), "other", JOB, &[]).unwrap();
    }

    #[test]
    fn room_is_asked_for_only_where_there_is_none() {
        let words = |kind: std::io::ErrorKind| {
            let path = PathBuf::from("x");
            let cause = kind.into();
            StateError::Write { path, cause }.to_string()
        };
        assert!(words(std::io::ErrorKind::StorageFull).contains("free some room"));
        assert!(!words(std::io::ErrorKind::PermissionDenied).contains("room"));
    }

    #[test]
    fn a_ledger_that_does_not_follow_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFile::begin(folder.path(), "t", JOB, &[]).unwrap();
        let head = |epoch: &str, entry, hash: &str| LedgerHead {
            epoch: epoch.into(),
            entry,
            hash: hash.into(),
        };
        let mut seen = |head| file.keep_ledger("ward", &head).unwrap().is_some();
        assert!(!seen(head("a", 3, "x")));
        assert!(!seen(head("a", 3, "x")));
        assert!(!seen(head("a", 5, "y")));
        assert!(seen(head("a", 4, "z")), "shorter");
        assert!(seen(head("a", 4, "q")), "another entry");
        assert!(seen(head("b", 9, "r")), "another ledger");
    }

    #[test]
    fn a_state_of_another_format_is_refused_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let later = "{\"format\":2,\"something\":\"new\"}";
        std::fs::write(folder.path().join("checkpoint.json"), later).unwrap();
        let words = StateFile::resume(folder.path(), "t", &[])
            .unwrap_err()
            .to_string();
        assert!(
            words.contains("it has format 2, this program reads 1; the version that began"),
            "{words}"
        );
    }

    #[test]
    fn garbage_is_not_a_state() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("checkpoint.json"), "{\"format\":1}").unwrap();
        let read = StateFile::resume(folder.path(), "t", &[]);
        assert!(matches!(read, Err(StateError::Content { .. })));
    }
}
