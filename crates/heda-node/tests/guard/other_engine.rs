//! An engine that can do no job: to a provider's guard it is one like any other.

use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_job::engine::{
    Engine, OwnRows, PairFailure, PairwiseEngine, PairwiseProvider, PairwiseUser, PartTerms,
    register,
};
use heda_learn::optimise::Settings;

struct Unable;

const REASON: &str = "the other engine does nothing; use engine resident";

/// The engine, registered.
pub(crate) fn other() -> Engine {
    register(&Unable)
}

impl PairwiseEngine for Unable {
    fn name(&self) -> &'static str {
        "other"
    }

    fn leaks(&self) -> &'static [&'static str] {
        &[]
    }

    fn cryptosystem(&self) -> &'static str {
        "none"
    }

    fn usual_settings(&self, _: usize) -> Settings {
        Settings::lbfgs()
    }

    fn check(&self, _: &PartTerms<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err(REASON.into())
    }

    fn data_user(
        &self,
        _: &[PartTerms<'_>],
        _: &Randomness,
    ) -> Result<Box<dyn PairwiseUser>, PairFailure> {
        Err(PairFailure::Unsuitable(REASON.into()))
    }

    fn provider(
        &self,
        _: &mut Channel,
        _: &PartTerms<'_>,
        _: OwnRows,
        _: &Randomness,
    ) -> Result<Box<dyn PairwiseProvider>, PairFailure> {
        Err(PairFailure::Unsuitable(REASON.into()))
    }
}
