//! The engines: ways to compute a gradient over everybody's rows and to count held-out rows.
//!
//! A job knows no engine by name: it holds a `UserEngine` at the data user and a `ProviderEngine` at a
//! provider. Engine `resident` is here. A program may [`register`] more of them before it reads its
//! first job; a [`PairwiseEngine`] is what it must bring.

pub(crate) mod columns;
pub(crate) mod label_encoding;
mod pairwise;
mod resident;
#[cfg(test)]
pub(crate) mod testing;
mod traits;

pub(crate) use columns::Columns;
pub use pairwise::{
    OwnRows, PairFailure, PairQuestion, PairwiseEngine, PairwiseProvider, PairwiseSession,
    PairwiseUser, PartTerms,
};
pub use resident::{StepCost, gradient_bytes, profile};
pub(crate) use traits::{
    EvaluationAsk, GradientAsk, GradientQuestion, Implementation, Joined, Limits, Part,
    ProviderEngine, ProviderRows, Terms, UserEngine, row_bits,
};

use heda_learn::optimise::Settings;
use heda_learn::reference::{FileValue, Form};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

/// Engines that this program has beside `resident`. One list for the process, because a job that is
/// read names its engine, wherever it is read.
static REGISTERED: RwLock<Vec<&'static dyn PairwiseEngine>> = RwLock::new(Vec::new());

/// How gradients are computed: an engine of this program.
#[derive(Clone, Copy, Default)]
pub struct Engine(Option<&'static dyn PairwiseEngine>);

/// A word that names no engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no engine is called {word}; this program has {engines}. The program heda-repro also has paper"
)]
pub struct UnknownEngine {
    /// The word.
    pub word: String,
    /// The engines that there are.
    pub engines: String,
}

/// Why an engine cannot do a job, in its own words, which say what would help. Known before
/// anything is paid for.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Impossible(#[from] Box<dyn std::error::Error + Send + Sync>);

impl Impossible {
    /// The engine's own reason.
    pub(crate) fn job(reason: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(reason))
    }
}

/// Adds an engine to this program, before it reads its first job. One that is there already is not
/// added again.
pub fn register(engine: &'static dyn PairwiseEngine) -> Engine {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if registered.iter().all(|known| known.name() != engine.name()) {
        registered.push(engine);
    }
    Engine(Some(engine))
}

impl Engine {
    /// Rows stay with their provider, and the data user only chooses, by oblivious transfer. The
    /// default.
    pub const RESIDENT: Self = Self(None);

    /// Every engine of this program, the default first.
    pub fn all() -> Vec<Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        let added = registered.iter().map(|engine| Self(Some(*engine)));
        std::iter::once(Self::RESIDENT).chain(added).collect()
    }

    /// Its name in files, messages and on the command line.
    pub fn name(self) -> &'static str {
        self.0.map_or("resident", PairwiseEngine::name)
    }

    /// What it gives away although the protocol is followed, in plain words. Programs must show this.
    pub fn leaks(self) -> &'static [&'static str] {
        self.0.map_or(&[], PairwiseEngine::leaks)
    }

    /// What it encrypts with.
    pub fn cryptosystem(self) -> &'static str {
        let resident = "SoftSpoken oblivious transfer over Ristretto and AES, 114-bit";
        self.0.map_or(resident, PairwiseEngine::cryptosystem)
    }

    /// How it trains so many rows where nothing else is said, if not as any job.
    pub fn usual_settings(self, training_rows: usize) -> Option<Settings> {
        self.0.map(|engine| engine.usual_settings(training_rows))
    }

    /// Names of the options that a job may have for it.
    pub(crate) fn options(self) -> &'static [&'static str] {
        self.0.map_or(&[], |engine| engine.options())
    }

    /// The one place where a name becomes an engine.
    pub(crate) fn implementation(self) -> Box<dyn Implementation> {
        match self.0 {
            None => Box::new(resident::Resident),
            Some(engine) => Box::new(pairwise::Pairwise(engine)),
        }
    }
}

impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Engine {}

impl Hash for Engine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.name())
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, UnknownEngine> {
        let all = Self::all();
        let found = all.iter().find(|engine| engine.name() == word);
        found.copied().ok_or_else(|| UnknownEngine {
            word: word.chars().take(40).collect(),
            engines: all.iter().map(|e| e.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl FileValue for Engine {
    fn form() -> Form {
        let all = Self::all().into_iter();
        Form::OneOf(all.map(|engine| engine.name().to_owned()).collect())
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
        assert_eq!(Engine::default(), Engine::RESIDENT);
        for engine in Engine::all() {
            assert_eq!(engine.to_string().parse(), Ok(engine));
            let json = serde_json::to_string(&engine).unwrap();
            assert_eq!(json, format!("\"{engine}\""));
            assert_eq!(serde_json::from_str::<Engine>(&json).unwrap(), engine);
        }
        let refused = serde_json::from_str::<Engine>("\"magic\"").unwrap_err();
        let words = refused.to_string();
        assert!(
            words.starts_with("no engine is called magic; this program has resident"),
            "{words}"
        );
        assert!(words.contains("heda-repro also has paper"), "{words}");
    }
}
