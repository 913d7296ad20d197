//! All parties in one process: what `heda demo`, tests and experiments run. The parties are
//! threads that share nothing but channels; keys, masks and messages are the real ones.

use crate::description::Share;
use crate::error::{Defect, JobError, ServeError};
use crate::guard::{Guard, LocalGuard};
use crate::job::{self, Checkpoint, JobSpec, Link, Observer, Outcome, Provider, Served};
use crate::proposal::JobId;
use crate::rounds::HeldOut;
use crate::rows::{RowOrder, RowSeed};
use ed25519_dalek::SigningKey;
use heda_blocks::channel::{Channel, Recorded, Traffic};
use heda_crypto::random::{NoRandomness, Randomness};
use heda_dp::account::Accountant;
use heda_dp::epsilon::Epsilon;
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use rand_core::Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a party waits for another one before it gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// One provider of a local run.
pub struct LocalProvider {
    /// Its name.
    pub name: String,
    /// Its rules and rows.
    pub guard: Box<dyn Guard>,
}

/// Public rows cut into the parts of several providers, and the order in which each will use its
/// rows: drawn once, so that a control in clear can use the same training and held-out rows.
pub struct Parts {
    data: Vec<Arc<Dataset>>,
    seeds: Vec<RowSeed>,
}

impl Parts {
    /// Draws the order of every part.
    pub fn new(data: Vec<Dataset>, randomness: &Randomness) -> Result<Self, NoRandomness> {
        let seed = |index| RowSeed::fresh(&randomness.party(&provider_name(index)));
        let seeds = (0..data.len()).map(seed).collect::<Result<_, _>>()?;
        Ok(Self {
            data: data.into_iter().map(Arc::new).collect(),
            seeds,
        })
    }

    /// Training rows and held-out rows, part by part.
    pub fn rows(&self, held_out: Share) -> (Vec<Dataset>, Vec<Dataset>) {
        let cut = |(part, seed): (&Arc<Dataset>, &RowSeed)| {
            RowOrder::draw(part.rows(), held_out, seed).cut(part)
        };
        self.data.iter().zip(&self.seeds).map(cut).unzip()
    }

    /// A guard for each part. The rows are public: ε may be read from them, and the accountant
    /// only counts.
    pub fn guards(&self, schema: &Arc<Schema>, limit: Epsilon) -> Vec<LocalProvider> {
        let parts = self.data.iter().zip(&self.seeds).enumerate();
        let guard = |(index, (part, seed)): (usize, (&Arc<Dataset>, &RowSeed))| {
            let (data, schema) = (Arc::clone(part), Arc::clone(schema));
            let guard = LocalGuard::new(data, schema, seed.clone(), Accountant::new(limit));
            LocalProvider {
                name: provider_name(index),
                guard: Box::new(guard.of_public_data()),
            }
        };
        parts.map(guard).collect()
    }
}

/// The held-out rows of a provider that the result is counted on if the others choose a penalty.
pub fn reported(held_out: &Dataset) -> Dataset {
    let rows: Vec<usize> = HeldOut::Reported.of(held_out.rows()).collect();
    held_out.select_rows(&rows)
}

fn provider_name(index: usize) -> String {
    format!("provider-{}", index + 1)
}

/// What one provider's thread reports.
#[derive(Debug)]
pub struct LocalReport {
    /// What it did.
    pub served: Served,
    /// What went over its channel, seen from the provider.
    pub traffic: Traffic,
    /// Time that it computed instead of waiting.
    pub busy: Duration,
    /// What it received, if the run was recorded.
    pub view: Vec<Recorded>,
}

/// A finished local run.
#[derive(Debug)]
pub struct LocalRun {
    /// What the data user got.
    pub outcome: Outcome,
    /// What each provider did.
    pub reports: Vec<LocalReport>,
}

/// A name for a job.
pub fn fresh_job_id(randomness: &Randomness) -> Result<JobId, NoRandomness> {
    let mut id = [0; 16];
    randomness.fork("job", 0)?.fill_bytes(&mut id);
    Ok(JobId(id))
}

/// Runs a job with every provider on a thread of its own.
pub fn run(
    spec: &JobSpec,
    providers: &[LocalProvider],
    randomness: &Randomness,
    observer: &mut dyn Observer,
    resume: Option<Checkpoint>,
    record: bool,
) -> Result<LocalRun, JobError> {
    let mut identities = Vec::with_capacity(providers.len());
    for provider in providers {
        let mut rng = randomness.party(&provider.name).fork("identity", 0)?;
        identities.push(SigningKey::generate(&mut rng));
    }
    let mut links = Vec::with_capacity(providers.len());
    let mut ends = Vec::with_capacity(providers.len());
    for (provider, identity) in providers.iter().zip(&identities) {
        let (mut user, mut end) = Channel::pair(PATIENCE);
        if record {
            user.record();
            end.record();
        }
        links.push(Link {
            name: provider.name.clone(),
            identity: identity.verifying_key(),
            channel: user,
        });
        ends.push(end);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = providers
            .iter()
            .zip(&identities)
            .zip(ends)
            .map(|((provider, identity), mut channel)| {
                let randomness = randomness.party(&provider.name);
                let party = Provider {
                    guard: provider.guard.as_ref(),
                    identity,
                    randomness,
                };
                scope.spawn(move || serve(&party, &mut channel))
            })
            .collect();
        // The data user's ends close when the job is over, which ends every provider.
        let outcome = job::run(spec, links, &randomness.party("user"), observer, resume);
        let served: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let outcome = outcome?;
        let mut reports = Vec::with_capacity(served.len());
        for (provider, served) in providers.iter().zip(served) {
            let report = served.map_err(|_| Defect::Panicked)?;
            let failed = |error| Defect::LocalProvider {
                name: provider.name.clone(),
                error: Box::new(error),
            };
            reports.push(report.map_err(failed)?);
        }
        Ok(LocalRun { outcome, reports })
    })
}

fn serve(party: &Provider<'_>, channel: &mut Channel) -> Result<LocalReport, ServeError> {
    let began = Instant::now();
    let served = party.serve(channel)?;
    let traffic = channel.total_traffic();
    let busy = began.elapsed().saturating_sub(traffic.waited);
    Ok(LocalReport {
        served,
        traffic,
        busy,
        view: channel.transcript().to_vec(),
    })
}
