//! Why something failed, whose turn it is to act, and what to do: the only error of this crate.

use heda_dp::epsilon::Epsilon;
use heda_learn::table::{ReadError, ReadFault};
use heda_node::client::state::StateError;
use heda_node::config::template::NotAnswered;
use heda_node::config::{ConfigError, Contradiction};
use std::error::Error as StdError;
use std::fmt;

/// What lies behind an error.
type Cause = Box<dyn StdError + Send + Sync>;

/// Whose turn it is to act after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Bad usage or input: the user corrects it.
    Input,
    /// Refused by policy or budget.
    Refused,
    /// A peer or the network failed.
    Peer,
    /// Interrupted: the job can be resumed from its checkpoint.
    Resumable,
    /// A defect of ours.
    Bug,
}

/// What to do after an error, where each door to the library has words of its own for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Put right what the error says, then resume the job.
    Resume,
    /// Resume the job that the folder holds, or choose another folder.
    ResumeOrOtherFolder,
    /// Start a job instead of resuming one.
    StartAfresh,
    /// Start the job afresh in another folder.
    StartElsewhere,
    /// Wait until another job in the folder has ended, or choose another folder.
    WaitOrOtherFolder,
    /// Choose another folder: nothing that is there is overwritten.
    OtherFolder,
    /// Replace what was read from rows and delete the marks, or accept the schema unconfirmed.
    ConfirmSchema,
    /// State the encoding of the table.
    StateEncoding,
    /// Give the answers of providers to the invitation.
    GiveAnswers,
    /// Say how many rows there are.
    StateRows,
    /// Give the rows, so that they can be counted.
    GiveRows,
    /// Ask for a private job, or serve exact sums.
    AllowExact,
    /// Ask for a job with a smaller ε, or allow this one.
    AllowEpsilon(Epsilon),
}

impl Remedy {
    /// What helps against an error of the crates below: they do not know by which words their callers
    /// are told what to do.
    fn of(cause: &(dyn StdError + 'static)) -> Option<Self> {
        let mut next = Some(cause);
        while let Some(cause) = next {
            let found = Self::of_one(cause);
            if found.is_some() {
                return found;
            }
            next = cause.source();
        }
        None
    }

    fn of_one(cause: &(dyn StdError + 'static)) -> Option<Self> {
        if let Some(state) = cause.downcast_ref() {
            return Self::of_state(state);
        }
        if let Some(answer) = cause.downcast_ref() {
            return Some(Self::of_answer(answer));
        }
        if let Some(ConfigError::Contradiction { problem, .. }) = cause.downcast_ref() {
            return (*problem == Contradiction::NoProvider).then_some(Self::GiveAnswers);
        }
        let read = cause.downcast_ref::<ReadError>()?;
        (*read.fault() == ReadFault::Utf8).then_some(Self::StateEncoding)
    }

    fn of_state(error: &StateError) -> Option<Self> {
        match error {
            StateError::InUse(_) => Some(Self::WaitOrOtherFolder),
            StateError::Nothing(_) => Some(Self::StartAfresh),
            StateError::Unfinished(_) => Some(Self::ResumeOrOtherFolder),
            StateError::OtherTerms(_) => Some(Self::StartElsewhere),
            StateError::Content { .. } | StateError::Format { .. } => Some(Self::StartElsewhere),
            _ => None,
        }
    }

    fn of_answer(error: &NotAnswered) -> Self {
        match error {
            NotAnswered::TooMuch(asked) => Self::AllowEpsilon(asked.asked),
            _ => Self::AllowExact,
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resume => "put this right and resume the job",
            Self::ResumeOrOtherFolder => "resume that job, or choose another folder",
            Self::StartAfresh => "start the job without resuming",
            Self::StartElsewhere => "start afresh in another folder",
            Self::WaitOrOtherFolder => "wait for its end, or choose another folder",
            Self::OtherFolder => "choose another folder",
            Self::ConfirmSchema => {
                "replace it by what is publicly known and delete the marks, or accept the schema \
                 unconfirmed"
            }
            Self::StateEncoding => {
                "if it is in Latin-1 (as from older Excel on Windows), state that encoding"
            }
            Self::GiveAnswers => "give the folder with the answers of the providers",
            Self::StateRows => "state the number of rows",
            Self::GiveRows => "give the rows",
            Self::AllowExact => "ask for a private job, or serve exact sums",
            Self::AllowEpsilon(epsilon) => {
                return write!(
                    f,
                    "ask for a job with a smaller one, or allow epsilon {epsilon}"
                );
            }
        })
    }
}

/// Why something failed. Its words name the place, the value and the bound; its remedy says what to do,
/// where that is not among the words.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    cause: Cause,
    remedy: Option<Remedy>,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        Self {
            kind,
            remedy: Remedy::of(&*cause),
            cause,
        }
    }

    /// Bad usage or input, the most common case.
    pub fn input(cause: impl Into<Cause>) -> Self {
        Self::new(ErrorKind::Input, cause)
    }

    /// A defect of ours.
    pub fn bug(cause: impl Into<Cause>) -> Self {
        Self::new(ErrorKind::Bug, cause)
    }

    /// The same with what to do.
    pub fn with_remedy(self, remedy: Remedy) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }

    /// Whose turn it is to act.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to do, where the words do not say it.
    pub fn remedy(&self) -> Option<Remedy> {
        self.remedy
    }

    /// What happened, without the remedy: for programs that have words of their own for it.
    pub fn what(&self) -> impl fmt::Display {
        &self.cause
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remedy {
            Some(remedy) => write!(f, "{}; {remedy}", self.cause),
            None => self.cause.fmt(f),
        }
    }
}

impl StdError for Error {
    /// What lies behind the cause, whose words are this error's own.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn an_error_of_a_crate_below_gets_its_remedy_wherever_it_lies() {
        let nothing = Error::input(StateError::Nothing(PathBuf::from("there")));
        assert_eq!(nothing.remedy(), Some(Remedy::StartAfresh));
        assert_eq!(nothing.kind(), ErrorKind::Input);
        let words = nothing.to_string();
        assert!(
            words.ends_with("; start the job without resuming"),
            "{words}"
        );
        assert!(!nothing.what().to_string().contains("resuming"));
        let format = StateError::Format {
            path: PathBuf::from("there"),
            found: 2,
        };
        assert_eq!(Error::input(format).remedy(), Some(Remedy::StartElsewhere));
        assert_eq!(Error::input("words").remedy(), None);
    }

    #[test]
    fn what_lies_behind_an_error_is_its_source() {
        let system = std::io::Error::from(std::io::ErrorKind::NotFound);
        let file = ConfigError::File {
            path: PathBuf::from("job.toml"),
            cause: system,
        };
        let error = Error::input(file);
        assert!(error.to_string().starts_with("job.toml: "));
        assert!(error.remedy().is_none());
        let broken = Error::new(ErrorKind::Resumable, "broken").with_remedy(Remedy::Resume);
        assert_eq!(
            broken.to_string(),
            "broken; put this right and resume the job"
        );
        assert!(broken.source().is_none());
    }

    /// Flags belong to the command line, which has words of its own for every remedy.
    #[test]
    fn no_remedy_names_a_flag() {
        let epsilon = Epsilon::from_billionths(1_000_000_000).unwrap();
        for remedy in [
            Remedy::Resume,
            Remedy::ResumeOrOtherFolder,
            Remedy::StartAfresh,
            Remedy::StartElsewhere,
            Remedy::WaitOrOtherFolder,
            Remedy::OtherFolder,
            Remedy::ConfirmSchema,
            Remedy::StateEncoding,
            Remedy::GiveAnswers,
            Remedy::StateRows,
            Remedy::GiveRows,
            Remedy::AllowExact,
            Remedy::AllowEpsilon(epsilon),
        ] {
            let words = remedy.to_string();
            assert!(!words.contains("--") && !words.contains('`'), "{words}");
        }
    }
}
