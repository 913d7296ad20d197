//! Who trains: a [`DataUser`], with providers in this process or on the network.

use crate::failure::{Failure, Kind};
use crate::job::Job;
use crate::provider::Provider;
use crate::remote::{RemoteJob, ResultFolder};
use crate::simulation::job_failure;
use crate::summary::{About, Controls, CpuSeconds};
use crate::trained::Trained;
use heda_crypto::random::Randomness;
use heda_job::job::Observer;
use heda_job::local;
use heda_node::client::training::Listener;
use heda_node::system::stop::StopSignal;
use std::time::Instant;

/// Asks for gradients, learns the model, and sees no row.
#[derive(Debug, Clone)]
pub struct DataUser {
    randomness: Randomness,
}

impl Default for DataUser {
    fn default() -> Self {
        Self::new()
    }
}

impl DataUser {
    /// A data user with the randomness of the operating system.
    pub fn new() -> Self {
        Self {
            randomness: Randomness::from_os(),
        }
    }

    /// A data user whose runs can be repeated, and therefore protect nothing. In one process this
    /// goes for the providers as well: for tests and measurements.
    pub fn danger_seeded(seed: u64) -> Self {
        Self {
            randomness: Randomness::seeded(seed),
        }
    }

    /// Trains with providers that are threads of this process, with real keys and messages.
    ///
    /// # Errors
    /// If a provider refuses or the job cannot be done.
    pub fn train(
        &self,
        job: &Job,
        providers: &[Provider],
        observer: &mut dyn Observer,
    ) -> Result<Trained, Failure> {
        let randomness = &self.randomness;
        let bug = |e| Failure::new(Kind::Bug, e);
        let name = local::fresh_job_id(randomness).map_err(bug)?;
        let spec = job.spec(name, &randomness.party("estimate"));
        let guards = providers.iter().map(|p| p.for_job(randomness));
        let guards = guards.collect::<Result<Vec<_>, _>>().map_err(bug)?;
        let began = Instant::now();
        let run = local::run(&spec, &guards, randomness, observer, None, false);
        let run = run.map_err(|e| job_failure(&e))?;
        let about = About {
            privacy: job.privacy(),
            dataset: job.data_set().to_owned(),
            schema: job.schema(),
            engine: job.engine(),
            seeded: randomness.is_seeded(),
            automatic_epsilon: job.reads_epsilon(),
            total_seconds: began.elapsed().as_secs_f64(),
            busy: run.reports.iter().map(|report| report.busy).collect(),
            cpu_seconds: CpuSeconds::default(),
            controls: Controls::default(),
        };
        Trained::new(about, job.loss(), &run.outcome, Vec::new())
    }

    /// Trains with providers on the network until the end or until SIGTERM or SIGINT, and leaves
    /// model and report in a folder.
    ///
    /// # Errors
    /// If a provider refuses or is lost, or the job cannot be done.
    pub fn train_remotely(
        job: &RemoteJob,
        into: &ResultFolder<'_>,
        listener: Listener,
    ) -> Result<Trained, Failure> {
        job.train(into, listener, None)
    }

    /// The same until the end or until `stop` is set: for programs that hear signals themselves.
    ///
    /// # Errors
    /// As [`DataUser::train_remotely`].
    pub fn train_remotely_until(
        job: &RemoteJob,
        into: &ResultFolder<'_>,
        listener: Listener,
        stop: &StopSignal,
    ) -> Result<Trained, Failure> {
        job.train(into, listener, Some(stop))
    }
}
