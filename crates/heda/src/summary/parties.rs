//! What each phase took and what went to and from each party.

use heda_job::job::{Outcome, PhaseTime, ProviderSummary};
use serde::Serialize;
use std::time::Duration;

/// Times in seconds. Provider: the one that computed longest.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Seconds {
    /// From the first message to the model.
    pub total: f64,
    /// All that comes before training.
    pub setup: f64,
    /// All iterations.
    pub training: f64,
    /// On held-out rows.
    pub evaluation: f64,
    /// That the data user computed.
    pub user: f64,
    /// That a provider computed, where that is known.
    pub provider: Option<f64>,
}

/// Processor time in seconds, over all cores. In one process the parties cannot be told apart, and
/// over the network a provider does not tell.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct CpuSeconds {
    /// Of the data user.
    pub user: Option<f64>,
    /// Of the provider that needed most.
    pub provider: Option<f64>,
}

/// What went over all channels.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bytes {
    /// Sent by the data user.
    pub user_to_provider: u64,
    /// Received by the data user.
    pub provider_to_user: u64,
}

/// One phase of the job, in order.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// What is done in it.
    pub name: &'static str,
    /// At the data user, waiting included.
    pub seconds: f64,
    /// What went over the channels.
    pub bytes: Bytes,
    /// With all providers together.
    pub round_trips: u64,
}

/// One provider.
#[derive(Debug, Clone, Serialize)]
pub struct Party {
    /// As the data user calls it.
    pub name: String,
    /// Rows of training.
    pub rows: usize,
    /// Rows of evaluation.
    pub held_out: usize,
    /// Whether it ran with a seed, and therefore without protection.
    pub seeded: bool,
    /// What its columns cost in sum, if it published.
    pub epsilon: Option<f64>,
    /// How long it computed, where that is known.
    pub seconds: Option<f64>,
}

pub(super) fn phases(outcome: &Outcome) -> Vec<Phase> {
    let phase = |time: &PhaseTime| {
        let traffic = || {
            let providers = outcome.providers.iter();
            providers.filter_map(|provider| provider.traffic.get(time.phase))
        };
        Phase {
            name: time.phase,
            seconds: time.took.as_secs_f64(),
            bytes: Bytes {
                user_to_provider: traffic().map(|t| t.bytes_sent).sum(),
                provider_to_user: traffic().map(|t| t.bytes_received).sum(),
            },
            round_trips: traffic().map(|t| t.round_trips).sum(),
        }
    };
    outcome.phases.iter().map(phase).collect()
}

pub(super) fn parties(outcome: &Outcome, busy: &[Duration]) -> Vec<Party> {
    let party = |(index, provider): (usize, &ProviderSummary)| Party {
        name: provider.name.clone(),
        rows: provider.rows,
        held_out: provider.held_out,
        seeded: provider.seeded,
        epsilon: provider.charge.as_ref().map(|c| c.total().to_f64()),
        seconds: busy.get(index).map(Duration::as_secs_f64),
    };
    outcome.providers.iter().enumerate().map(party).collect()
}
