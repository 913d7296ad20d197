//! What a data user keeps on disk during a job, so that it can go on after a crash.
//!
//! One file, replaced as a whole after every iteration and evaluation. It is written before the first provider
//! is asked for anything: the job's name in it is what makes a release that was paid for come
//! again without being paid for twice.

use crate::system::files;
use heda_train::job::Checkpoint;
use heda_train::proposal::JobId;
use serde::{Deserialize, Serialize};
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
    #[error("the checkpoint {path} cannot be written: {cause}; free some room and resume")]
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
        /// What is wrong.
        cause: String,
    },
    /// There is none to go on from.
    #[error("there is nothing to resume in {0}; start without --resume")]
    Nothing(PathBuf),
    /// There is one already.
    #[error("{0} holds an unfinished job; go on with --resume, or choose another --out")]
    Unfinished(PathBuf),
    /// It belongs to another job.
    #[error("{0} belongs to a job with other terms; start afresh in another --out")]
    OtherTerms(PathBuf),
}

/// Keeps the state of one job.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    state: JobState,
}

impl StateFile {
    /// Begins a job whose state lies in a folder.
    pub fn begin(folder: &Path, terms: &str, job: JobId) -> Result<Self, StateError> {
        let path = folder.join("checkpoint.json");
        if path.exists() {
            return Err(StateError::Unfinished(folder.to_owned()));
        }
        let state = JobState {
            format: FORMAT,
            terms: terms.to_owned(),
            job,
            lost: Vec::new(),
            checkpoint: None,
        };
        let file = Self { path, state };
        std::fs::create_dir_all(folder).map_err(|cause| file.write_error(cause))?;
        file.write()?;
        Ok(file)
    }

    /// Takes up the job whose state lies in a folder.
    pub fn resume(folder: &Path, terms: &str) -> Result<Self, StateError> {
        let path = folder.join("checkpoint.json");
        if !path.exists() {
            return Err(StateError::Nothing(folder.to_owned()));
        }
        let unreadable = |cause: String| StateError::Read {
            path: path.clone(),
            cause,
        };
        let bytes =
            files::read_bounded(&path, FILE_LIMIT).map_err(|e| unreadable(e.to_string()))?;
        // The number first: a file of another format may have fields that we do not know.
        let Numbered { format } =
            serde_json::from_slice(&bytes).map_err(|e| unreadable(e.to_string()))?;
        if format != FORMAT {
            return Err(unreadable(format!(
                "it has format {format}, this program reads {FORMAT}; finish the job with the \
                 version that began it, or start afresh in another --out"
            )));
        }
        let state: JobState =
            serde_json::from_slice(&bytes).map_err(|e| unreadable(e.to_string()))?;
        if state.terms != terms {
            return Err(StateError::OtherTerms(path));
        }
        Ok(Self { path, state })
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

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId([7; 16]);

    #[test]
    fn a_job_is_begun_once_and_resumed_on_the_same_terms() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = StateFile::resume(folder.path(), "t");
        assert!(matches!(nothing, Err(StateError::Nothing(_))));
        let mut file = StateFile::begin(folder.path(), "t", JOB).unwrap();
        file.leave_behind("b").unwrap();
        let again = StateFile::begin(folder.path(), "t", JOB);
        assert!(matches!(again, Err(StateError::Unfinished(_))));
        let other = StateFile::resume(folder.path(), "u");
        assert!(matches!(other, Err(StateError::OtherTerms(_))));
        let resumed = StateFile::resume(folder.path(), "t").unwrap();
        assert_eq!(resumed.state(), file.state());
        assert_eq!(resumed.state().lost, ["b"]);
        resumed.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_state_of_another_format_is_refused_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let later = "{\"format\":2,\"something\":\"new\"}";
        std::fs::write(folder.path().join("checkpoint.json"), later).unwrap();
        let words = StateFile::resume(folder.path(), "t")
            .unwrap_err()
            .to_string();
        assert!(
            words.contains("it has format 2, this program reads 1; finish the job"),
            "{words}"
        );
    }

    #[test]
    fn garbage_is_not_a_state() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("checkpoint.json"), "{\"format\":1}").unwrap();
        let read = StateFile::resume(folder.path(), "t");
        assert!(matches!(read, Err(StateError::Read { .. })));
    }
}
