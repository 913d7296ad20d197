//! The engines: ways to compute a gradient over everybody's rows and to count held-out rows.
//!
//! An engine is one file or folder here, an arm of `Engine::implementation` and a name. The job
//! knows no engine by name: it holds a `UserEngine` at the data user and a `ProviderEngine` at
//! a provider.

pub(crate) mod columns;
pub(crate) mod label_encoding;
#[cfg(feature = "paper")]
mod paper;
mod resident;
#[cfg(test)]
pub(crate) mod testing;
mod traits;

pub(crate) use columns::Columns;
pub use resident::{StepCost, gradient_bytes, profile};
pub(crate) use traits::{
    EvaluationAsk, GradientAsk, GradientQuestion, Implementation, Joined, Limits, Part,
    ProviderEngine, ProviderRows, Terms, UserEngine, row_bits,
};

use heda_learn::reference::{FileValue, Form};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How gradients are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// Rows stay at home: the data user only chooses, by oblivious transfer. The default.
    #[default]
    Resident,
    /// The paper's Algorithm 5, with its leaks: for reproduction only.
    Paper,
}

/// A word that names no engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no engine is called {word}; there are {}", names())]
pub struct UnknownEngine {
    /// The word.
    pub word: String,
}

/// Why an engine cannot do a job. Known before anything is paid for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Impossible {
    /// It is not part of this program.
    #[error("this build was made without engine {0}; use another engine, or another build")]
    Absent(Engine),
    /// It cannot do this job; its own words say what would help.
    #[error(transparent)]
    Job(Box<dyn std::error::Error + Send + Sync>),
}

impl Impossible {
    /// The engine's own reason.
    pub(crate) fn job(reason: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Job(Box::new(reason))
    }
}

impl Engine {
    /// Every engine, the default first.
    pub const ALL: [Self; 2] = [Self::Resident, Self::Paper];

    /// Its name in files, messages and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::Paper => "paper",
        }
    }

    /// What it gives away although the protocol is followed, in plain words. Whoever starts it
    /// must show this.
    pub fn leaks(self) -> &'static [&'static str] {
        self.implementation().map_or(&[], |engine| engine.leaks())
    }

    /// The one place where a name becomes an engine.
    pub(crate) fn implementation(self) -> Result<&'static dyn Implementation, Impossible> {
        match self {
            Self::Resident => Ok(&resident::Resident),
            #[cfg(feature = "paper")]
            Self::Paper => Ok(&paper::Paper),
            #[cfg(not(feature = "paper"))]
            Self::Paper => Err(Impossible::Absent(self)),
        }
    }
}

fn names() -> String {
    Engine::ALL.map(Engine::name).join(", ")
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, UnknownEngine> {
        let mut all = Self::ALL.into_iter();
        all.find(|engine| engine.name() == word)
            .ok_or_else(|| UnknownEngine {
                word: word.chars().take(40).collect(),
            })
    }
}

impl FileValue for Engine {
    fn form() -> Form {
        Form::OneOf(Self::ALL.map(|engine| engine.name().to_owned()).to_vec())
    }
}

impl Serialize for Engine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_its_engine_everywhere_and_others_are_refused_with_the_choice() {
        assert_eq!(Engine::default(), Engine::ALL[0]);
        for engine in Engine::ALL {
            assert_eq!(engine.to_string().parse(), Ok(engine));
            let json = serde_json::to_string(&engine).unwrap();
            assert_eq!(json, format!("\"{engine}\""));
            assert_eq!(serde_json::from_str::<Engine>(&json).unwrap(), engine);
        }
        let refused = serde_json::from_str::<Engine>("\"magic\"").unwrap_err();
        let words = refused.to_string();
        assert!(
            words.starts_with("no engine is called magic; there are resident"),
            "{words}"
        );
    }

    #[test]
    fn an_engine_that_was_left_out_is_known_by_name_and_refused() {
        let paper: Engine = "paper".parse().unwrap();
        let refused = paper.implementation().err().map(|e| e.to_string());
        match cfg!(feature = "paper") {
            true => assert_eq!(refused, None),
            false => assert!(refused.is_some_and(|words| words.contains("without engine paper"))),
        }
    }
}
