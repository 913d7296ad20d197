//! A job file: what is to be trained, with which providers on the network.

use crate::client::{Client, ResultFolder};
use crate::error::Error;
use crate::identity::PeerFingerprint;
use crate::job::{Job, JobBuilder};
use crate::schema::{self, Schema};
use crate::trained::Trained;
use heda_learn::data::Dataset;
use heda_learn::table::TableReader;
use heda_node::client::training::Listener;
use heda_node::config::{Answer, JobConfig, SecondsValue};
use heda_node::system::stop::StopSignal;
use std::path::Path;
use std::sync::Arc;

/// A job file with its schema.
#[derive(Debug, Clone)]
pub struct JobFile {
    config: JobConfig,
    job: Job,
    answers: Vec<Answer>,
}

impl JobFile {
    /// Reads and checks a job file and its schema.
    ///
    /// # Errors
    /// If one of them cannot be used. The error names the place and the remedy.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::answered_by(path, Vec::new())
    }

    /// A job file as `heda invite` wrote it, with the answers of a folder, or of `answers` beside the
    /// file if none is named. Nobody may have answered yet: such a job can be looked at, not trained.
    ///
    /// # Errors
    /// As [`JobFile::with_answers`].
    pub fn as_invited(path: &Path, folder: Option<&Path>) -> Result<Self, Error> {
        let named = JobConfig::load_early(path, &[]).map_err(Error::input)?;
        let answers = match named.providers.is_empty() || folder.is_some() {
            true => Answer::of_job(path, folder).map_err(Error::input)?,
            false => Vec::new(),
        };
        let config = JobConfig::load_early(path, &answers).map_err(Error::input)?;
        Self::checked(config, answers)
    }

    /// The same with providers whose answers to an invitation are in a folder.
    ///
    /// # Errors
    /// As [`JobFile::load`], and if an answer is about other data or another schema.
    pub fn with_answers(path: &Path, folder: &Path) -> Result<Self, Error> {
        Self::answered_by(path, Answer::in_folder(folder).map_err(Error::input)?)
    }

    fn answered_by(path: &Path, answers: Vec<Answer>) -> Result<Self, Error> {
        let config = JobConfig::load_with(path, &answers).map_err(Error::input)?;
        Self::checked(config, answers)
    }

    fn checked(config: JobConfig, answers: Vec<Answer>) -> Result<Self, Error> {
        let (text, schema) = schema::read(&config.schema)?;
        let schema = Arc::new(schema);
        let own = schema.fingerprint().to_string();
        for answer in &answers {
            let (what, theirs, ours) = match answer {
                _ if answer.data_set != config.data_set => (
                    "data set",
                    answer.data_set.as_str(),
                    config.data_set.as_str(),
                ),
                _ if answer.schema != own => ("schema", answer.schema.as_str(), own.as_str()),
                _ => continue,
            };
            return Err(Error::input(format!(
                "{} answered for the {what} {theirs}, the job is about {ours}; send it the \
                 invitation again",
                answer.name
            )));
        }
        let job = builder(&config, &schema, None)?;
        // Who accepts a schema that was read from rows does not make it public.
        let job = job.bounds_from_rows(schema::marks(&text) > 0).build()?;
        Ok(Self {
            config,
            job,
            answers,
        })
    }

    /// Where the schema is.
    pub fn schema_path(&self) -> &Path {
        &self.config.schema
    }

    /// What is to be trained.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// How many providers take part.
    pub fn providers(&self) -> usize {
        self.config.providers.len()
    }

    /// That somebody takes part.
    ///
    /// # Errors
    /// If no provider is named and none has answered yet.
    pub fn check_answered(&self) -> Result<(), Error> {
        match self.config.providers.is_empty() {
            false => Ok(()),
            true => Err(Error::input(
                "no provider has answered yet; put the answers into the folder `answers` beside the \
                 job file, or name providers in it",
            )),
        }
    }

    /// Rows of all providers, held-out ones included, as a private job states them.
    pub fn stated_rows(&self) -> Option<usize> {
        let training = self.config.privacy.as_ref()?.rows.get();
        let trained = 1.0 - self.config.held_out.get();
        Some((training as f64 / trained).round() as usize)
    }

    /// Providers that answered, by name and fingerprint.
    pub fn answered(&self) -> impl Iterator<Item = (&str, PeerFingerprint)> {
        let answers = self.answers.iter();
        answers.map(|answer| (answer.name.as_str(), answer.fingerprint))
    }

    /// The same, but providers that cannot be reached are waited for so many seconds.
    ///
    /// # Errors
    /// If that is not between 1 and a week.
    pub fn with_patience(mut self, seconds: u64) -> Result<Self, Error> {
        let patience = SecondsValue::try_from(seconds).map_err(Error::input)?;
        self.config.timeouts.loss_seconds = patience;
        Ok(self)
    }

    /// Whether the run can be repeated, and therefore protects nothing.
    pub fn is_seeded(&self) -> bool {
        self.config.seed.is_some()
    }

    /// What deserves a second thought before it runs.
    pub fn warning(&self) -> Option<String> {
        let privacy = self.config.privacy.as_ref();
        privacy.and_then(|privacy| privacy.warning())
    }

    /// The data user of the file.
    ///
    /// # Errors
    /// If the certificate of an authority cannot be read.
    pub fn client(&self) -> Result<Client, Error> {
        let config = &self.config;
        Ok(Client {
            identity: config.identity.clone(),
            providers: config.remote_providers().map_err(Error::input)?,
            ranked_by: config.ranked_by.as_ref().map(ToString::to_string),
            on_loss: config.on_loss,
            timeouts: config.timeouts,
            seed: config.seed,
        })
    }

    /// Trains with the providers of the file, as [`Client::train`] does.
    ///
    /// # Errors
    /// As [`Client::train`].
    pub fn train(&self, into: &ResultFolder<'_>, listener: Listener) -> Result<Trained, Error> {
        self.client()?.train(&self.with_sample()?, into, listener)
    }

    /// The same until the end or until `stop` is set.
    ///
    /// # Errors
    /// As [`Client::train`].
    pub fn train_until(
        &self,
        into: &ResultFolder<'_>,
        listener: Listener,
        stop: &StopSignal,
    ) -> Result<Trained, Error> {
        let job = self.with_sample()?;
        self.client()?.train_until(&job, into, listener, stop)
    }

    /// The job with the rows that the data user may read, if the file names some.
    fn with_sample(&self) -> Result<Job, Error> {
        let Some(sample) = sample(&self.config, self.job.schema())? else {
            return Ok(self.job.clone());
        };
        let job = builder(&self.config, self.job.schema(), Some(Arc::new(sample)))?;
        let marked = self.job.has_bounds_from_rows();
        job.bounds_from_rows(marked).build()
    }
}

/// The job of a file. With `iota = "auto"` accuracy is estimated on the sample.
fn builder(
    config: &JobConfig,
    schema: &Arc<Schema>,
    sample: Option<Arc<Dataset>>,
) -> Result<JobBuilder, Error> {
    let raw = config.raw(schema).map_err(Error::input)?;
    Ok(JobBuilder::of_raw(raw, Arc::clone(schema), sample))
}

/// The same, checked, as a provider may look at it.
pub(crate) fn described(config: &JobConfig, schema: &Arc<Schema>) -> Result<Job, Error> {
    builder(config, schema, None)?.build()
}

/// Rows that the data user may read, if the job names some.
fn sample(config: &JobConfig, schema: &Schema) -> Result<Option<Dataset>, Error> {
    let path = config.auto.as_ref().and_then(|auto| auto.sample.as_ref());
    let read = path.map(|path| TableReader::new(schema).read_file(path));
    let read = read.transpose().map_err(Error::input)?;
    Ok(read.map(|(rows, _)| rows))
}
