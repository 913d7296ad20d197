//! Who trains with providers in this process: a [`DataUser`].

use crate::error::Error;
use crate::job::Job;
use crate::provider::Provider;
use crate::simulation::job_failure;
use crate::summary::{About, Controls, CpuSeconds};
use crate::trained::Trained;
use crate::watch::{Watch, Watcher};
use heda_crypto::random::Randomness;
use heda_job::local;
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
        hear: Watcher<'_>,
    ) -> Result<Trained, Error> {
        let randomness = &self.randomness;
        let name = local::fresh_job_id(randomness).map_err(Error::bug)?;
        let spec = job.spec(name, &randomness.party("estimate"));
        let guards = providers.iter().map(|p| p.for_job(randomness));
        let guards = guards.collect::<Result<Vec<_>, _>>().map_err(Error::bug)?;
        let began = Instant::now();
        let run = local::run(
            &spec,
            &guards,
            randomness,
            &mut Watch::new(hear),
            None,
            false,
        );
        let run = run.map_err(job_failure)?;
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
}
