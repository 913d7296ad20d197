//! How a command fails, and the exit code that says so.

use std::fmt;

/// Whose turn it is to act after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bad usage or input: the user corrects it.
    Input,
    /// Refused by policy or budget.
    Refused,
    /// A peer or the network failed.
    Peer,
    /// Interrupted; `--resume` goes on.
    Resumable,
    /// A defect of ours.
    Bug,
}

/// A failure with its words.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
        }
    }

    /// Bad usage or input, the most common case.
    pub fn input(message: impl fmt::Display) -> Self {
        Self::new(Kind::Input, message)
    }

    /// Whose turn it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The documented exit code.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Input => 2,
            Kind::Refused => 3,
            Kind::Peer => 4,
            Kind::Resumable => 5,
            Kind::Bug => 70,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
