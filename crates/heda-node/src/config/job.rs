//! `job.toml`: what a data user wants trained, with whom, and at which price in privacy.

use super::privacy::PrivacyConfig;
use super::values::{
    ClassWeightValue, IotaValue, Name, NoClass, NotNegative, PenaltyValue, Positive, PublishedBy,
    SecondsValue, Share,
};
use super::{Answer, ConfigError, Contradiction, beside, read_text, repeated};
use crate::client::RemoteProvider;
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::load_certificates;
use crate::identity::trust::{Recognition, TrustedPeer};
use heda_dp::epsilon::Epsilon;
use heda_job::description::{Protected, Ranking, RawJob};
use heda_job::engine::Engine;
use heda_job::proposal::Spending;
use heda_learn::described;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Iterations, Method, PenaltyPath, Settings};
use heda_learn::partition::Goal;
use heda_learn::schema::Schema;
use heda_learn::score;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

described! {
    /// What a data user wants trained, with whom, and at which price in privacy.
    #[derive(Debug, Clone, PartialEq)]
    pub struct JobConfig {
        /// Folder with the key and the certificate of the data user; keep `key.pem` in it secret.
        #[key("\"identity\"")]
        pub identity: PathBuf,
        /// File with the schema that all parties agreed on: what the columns mean.
        #[key("\"schema.toml\"")]
        pub schema: PathBuf,
        /// Name of the data set, as the providers call it.
        #[key("\"ward-2026\"")]
        pub data_set: Name,
        /// Certificate of a private authority, for providers with `certified_as`.
        #[key("\"authority.pem\"")]
        pub authority: Option<PathBuf>,
        /// How gradients are computed.
        #[key("\"resident\"")]
        pub engine: Engine = Engine::default(),
        /// How many features are encrypted, the best by the ranking: a number, `all`, which is the
        /// default, or `auto`, which goes by `[auto]`. The other features are published or, without
        /// `epsilon`, left out.
        #[key("5")]
        pub iota: Option<IotaValue>,
        /// Instead of `iota`: the names of the features that are encrypted.
        #[key("[\"age\", \"marker\"]")]
        pub encrypt: Option<Vec<String>>,
        /// What `iota = "auto"` aims at: one of `within_seconds` and `accuracy_loss`.
        pub auto: Option<Auto>,
        /// How features are ranked.
        #[key("\"chi2\"")]
        pub ranking: score::ScoringMethod = score::ScoringMethod::default(),
        /// The one provider whose ranking is used, instead of the sum over all providers.
        #[key("\"hospital-a\"")]
        pub ranked_by: Option<Name>,
        /// All features from best to worst; the providers then read no rows for a ranking.
        #[key("[\"age\", \"marker\"]")]
        pub order: Option<Vec<String>>,
        /// What the engine is told in its own words; engine `resident` has no options.
        #[key("{ size = 2 }")]
        pub engine_options: Option<BTreeMap<String, u64>>,
        /// Epsilon that publishing may cost, for all published columns of a row together; without it
        /// nothing is published.
        #[key("1.5")]
        pub epsilon: Option<Epsilon>,
        /// How columns are published.
        #[key("\"laplace\"")]
        pub mechanism: PublishedBy = PublishedBy::default(),
        /// What training minimises; by default `logistic`, or `ridge`, which is least squares, for a
        /// label that is a number.
        #[key("\"squared-hinge\"")]
        pub loss: Option<LossKind>,
        /// Weights of the classes: `balanced` gives all classes the same weight in total, like
        /// scikit-learn; `{ ill = 2.0, well = 0.5 }` gives each row of a class its weight, 1 for
        /// classes that are not named. By default every row has weight 1.
        #[key("\"balanced\"")]
        pub class_weight: Option<ClassWeightValue>,
        /// How the model is improved: `lbfgs` takes `memory`, `nesterov` takes `rate` and `batches`,
        /// `descent` takes `rate`, `minimum_rate`, `decay` and `batches`.
        #[key("{ name = \"lbfgs\" }")]
        pub optimiser: Method = Settings::lbfgs().method,
        /// Largest number of iterations of each model; by default 12 and the square root of the
        /// number of encoded columns. In a private job the plan sets it.
        #[key("40")]
        pub iterations: Option<Iterations>,
        /// Training ends when no component of the gradient is larger.
        #[key("0.0001")]
        pub tolerance: NotNegative = NotNegative::of(Settings::lbfgs().tolerance),
        /// Inverse strength of the penalty on standardised features, like scikit-learn's C; for a
        /// label that is a number it is 1/alpha of scikit-learn's Ridge.
        #[key("0.1")]
        pub c: Positive = default_c(),
        /// Instead of `c`: `auto` tries C = 0.01, 0.1, 1, 10 and 100 and keeps the best on one half
        /// of the held-out rows; the report uses the other half. This takes five times as many
        /// gradients and an evaluation of each model.
        #[key("\"auto\"")]
        pub penalty: Option<PenaltyValue>,
        /// Seed that makes the run reproducible and unprotected: for tests only.
        #[key("7")]
        pub seed: Option<u64>,
        /// Share of the rows that is held out for evaluation.
        #[key("0.25")]
        pub held_out: Share = Share::default(),
        /// Makes the job private: everything that it reveals is differentially private. Steps and
        /// noise follow from these values.
        pub privacy: Option<PrivacyConfig>,
        /// What happens when a provider is lost and does not come back in time: `wait` stops the job,
        /// and `--resume` continues it; `continue` goes on with the other providers and new masks.
        #[key("\"continue\"")]
        pub on_loss: OnLoss = OnLoss::default(),
        /// How long to wait.
        pub timeouts: Timeouts = Timeouts::default(),
        /// A provider of the job; answers to an invitation replace these entries.
        #[name = "provider"]
        pub providers: Vec<ProviderEntry> = Vec::new(),
    }
}

described! {
    /// What `iota = "auto"` aims at.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Auto {
        /// Encrypt as many features as training within this time in seconds allows.
        #[key("60")]
        pub within_seconds: Option<Positive>,
        /// Encrypt as few features as a loss of this many points of accuracy allows.
        #[key("1")]
        pub accuracy_loss: Option<NotNegative>,
        /// File with rows of the same schema that the data user may read, to estimate accuracy and
        /// whether publishing pays.
        #[key("\"public.csv\"")]
        pub sample: Option<PathBuf>,
    }
}

impl Auto {
    fn goal(&self) -> Goal {
        match (self.within_seconds, self.accuracy_loss) {
            (Some(seconds), _) => Goal::WithinSeconds(seconds.get()),
            (None, points) => Goal::AccuracyLoss(points.map_or(0.0, |p| p.get() / 100.0)),
        }
    }

    fn check(&self) -> Result<(), Contradiction> {
        match (self.within_seconds, self.accuracy_loss, &self.sample) {
            // With a sample it is known as well whether publishing the rest pays.
            (Some(_), None, _) | (None, Some(_), Some(_)) => Ok(()),
            (None, Some(_), None) => Err(Contradiction::NoSample),
            _ => Err(Contradiction::TwoGoals),
        }
    }
}

/// What to do when a provider is lost and does not come back in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLoss {
    /// Wait, then stop; `--resume` goes on.
    #[default]
    Wait,
    /// Go on with the others, with new masks, if nothing has left yet that belongs to all of them;
    /// the report says so.
    Continue,
}

heda_learn::words!(OnLoss);

described! {
    /// How long to wait.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Timeouts {
        /// Seconds that one attempt to connect may take.
        #[key("20")]
        pub connect_seconds: SecondsValue = Self::default().connect_seconds,
        /// Seconds to wait for an answer in a session.
        #[key("60")]
        pub answer_seconds: SecondsValue = Self::default().answer_seconds,
        /// Seconds to wait for providers that cannot be reached or were lost.
        #[key("120")]
        pub loss_seconds: SecondsValue = Self::default().loss_seconds,
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_seconds: SecondsValue::of(20),
            answer_seconds: SecondsValue::of(300),
            loss_seconds: SecondsValue::of(600),
        }
    }
}

described! {
    /// One provider of the job.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ProviderEntry {
        /// Name of the provider.
        #[key("\"hospital-a\"")]
        pub name: Name,
        /// Host and port.
        #[key("\"a.example:7443\"")]
        pub address: String,
        /// Fingerprint of its key, as its `heda init` printed it.
        #[key("\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: Option<PeerFingerprint>,
        /// Instead of `fingerprint`: the name in its certificate of the authority.
        #[key("\"a.example\"")]
        pub certified_as: Option<String>,
    }
}

fn default_c() -> Positive {
    Positive::of(Settings::lbfgs().c.unwrap_or(1.0))
}

impl JobConfig {
    /// The usual name of the file.
    pub const FILE: &str = "job.toml";

    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, &[])
    }

    /// The same with providers that answered an invitation, besides those of the file.
    pub fn load_with(path: &Path, answers: &[Answer]) -> Result<Self, ConfigError> {
        let config = Self::load_early(path, answers)?;
        match config.providers.is_empty() {
            false => Ok(config),
            true => Err(ConfigError::Contradiction {
                path: path.to_owned(),
                problem: Contradiction::NoProvider,
            }),
        }
    }

    /// The same where nobody may have answered yet: what will be asked is known all the same.
    pub fn load_early(path: &Path, answers: &[Answer]) -> Result<Self, ConfigError> {
        let mut config: Self = read_text(path, Self::FILE, super::FILE_LIMIT)?;
        if config.iota.is_none() && config.encrypt.is_none() {
            config.iota = Some(IotaValue::All);
        }
        config
            .providers
            .extend(answers.iter().map(|answer| ProviderEntry {
                name: answer.name.clone(),
                address: answer.address.clone(),
                fingerprint: Some(answer.fingerprint),
                certified_as: None,
            }));
        config
            .check()
            .map_err(|problem| ConfigError::Contradiction {
                path: path.to_owned(),
                problem,
            })?;
        config.identity = beside(path, &config.identity);
        config.schema = beside(path, &config.schema);
        config.authority = config.authority.map(|authority| beside(path, &authority));
        if let Some(sample) = config.auto.as_mut().and_then(|auto| auto.sample.as_mut()) {
            *sample = beside(path, sample);
        }
        Ok(config)
    }

    fn check(&self) -> Result<(), Contradiction> {
        self.check_providers()?;
        match (&self.iota, &self.encrypt) {
            (Some(_), None) | (None, Some(_)) => {}
            _ => return Err(Contradiction::IotaOrEncrypt),
        }
        match (&self.auto, self.iota == Some(IotaValue::Auto)) {
            (Some(auto), true) => auto.check()?,
            (None, false) => {}
            (None, true) => return Err(Contradiction::NoGoal),
            (Some(_), false) => return Err(Contradiction::GoalUnused),
        }
        if self.penalty.is_some() && self.c != default_c() {
            return Err(Contradiction::TwoPenalties);
        }
        self.check_ranking()
    }

    /// The penalties of which one is chosen, if that is wanted.
    pub fn penalty_path(&self) -> Option<PenaltyPath> {
        self.penalty.map(|PenaltyValue::Auto| PenaltyPath::usual())
    }

    fn check_providers(&self) -> Result<(), Contradiction> {
        let section = "provider";
        if let Some(name) = repeated(self.providers.iter().map(|p| &p.name)) {
            let name = name.to_string();
            return Err(Contradiction::RepeatedName { section, name });
        }
        let fingerprints = self.providers.iter().filter_map(|p| p.fingerprint);
        if let Some(fingerprint) = repeated(fingerprints) {
            return Err(Contradiction::RepeatedFingerprint {
                section,
                fingerprint,
            });
        }
        for provider in &self.providers {
            let name = || provider.name.to_string();
            match (&provider.fingerprint, &provider.certified_as) {
                (Some(_), None) => {}
                (None, Some(_)) if self.authority.is_some() => {}
                (None, Some(_)) => return Err(Contradiction::NoAuthority(name())),
                _ => return Err(Contradiction::Recognition(name())),
            }
        }
        Ok(())
    }

    fn check_ranking(&self) -> Result<(), Contradiction> {
        if self.encrypt.is_some() && (self.order.is_some() || self.ranked_by.is_some()) {
            return Err(Contradiction::RankingUnused);
        }
        match (&self.order, &self.ranked_by) {
            (Some(_), Some(_)) => Err(Contradiction::TwoRankings),
            (None, Some(name)) if !self.providers.iter().any(|p| p.name == *name) => {
                Err(Contradiction::RankedByStranger(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// What the file says about the job itself, for rows of this schema; defaults stand for the rest.
    ///
    /// # Errors
    /// If it weighs a class that the schema does not have.
    pub fn raw(&self, schema: &Schema) -> Result<RawJob, NoClass> {
        let mut raw = RawJob::new(self.data_set.as_str(), schema);
        raw.engine = self.engine;
        raw.engine_options = self.engine_options.clone().unwrap_or_default();
        raw.loss = self.loss;
        raw.class_weight = self
            .class_weight
            .as_ref()
            .map(|w| w.of(schema))
            .transpose()?;
        raw.held_out = self.held_out.get();
        raw.spending = self.epsilon.map(Spending::Total);
        raw.privacy = self.privacy.map(|privacy| privacy.promise(schema));
        let training = &mut raw.training;
        training.settings.method = self.optimiser.clone();
        training.settings.c = Some(self.c.get());
        training.settings.tolerance = self.tolerance.get();
        if let Some(iterations) = self.iterations {
            training.settings.max_iterations = iterations.into();
        }
        training.path = self.penalty_path();
        let method = self.ranking;
        raw.ranking = Some(match (&self.order, &self.ranked_by) {
            (Some(order), _) => Ranking::Given {
                features: order.clone(),
            },
            (None, Some(_)) => Ranking::Chosen { method },
            (None, None) => Ranking::Agreed { method },
        });
        match (&self.encrypt, self.iota, &self.auto) {
            (Some(names), ..) => raw.encrypt_named(names.clone(), schema),
            (None, Some(IotaValue::Best(iota)), _) => {
                raw.protected = Protected::Best(usize::try_from(iota).unwrap_or(usize::MAX));
            }
            (None, _, Some(auto)) => raw.protected = Protected::For(auto.goal()),
            (None, _, None) => {}
        }
        Ok(raw)
    }

    /// The place of the provider that ranks the features for all.
    pub fn chooser(&self) -> Option<usize> {
        let name = self.ranked_by.as_ref()?;
        self.providers.iter().position(|known| known.name == *name)
    }

    /// The providers, in the form that the client connects to.
    pub fn remote_providers(&self) -> Result<Vec<RemoteProvider>, ConfigError> {
        let authority = match &self.authority {
            Some(path) => load_certificates(path)?.into_iter().next(),
            None => None,
        };
        let remotes = self.providers.iter().filter_map(|provider| {
            let recognition = match (provider.fingerprint, &provider.certified_as) {
                (Some(fingerprint), _) => Recognition::Fingerprint(fingerprint),
                (None, Some(name)) => Recognition::Certified {
                    authority: authority.clone()?,
                    name: name.clone(),
                },
                (None, None) => return None,
            };
            Some(RemoteProvider {
                address: provider.address.clone(),
                peer: TrustedPeer {
                    label: provider.name.to_string(),
                    recognition,
                },
            })
        });
        Ok(remotes.collect())
    }
}

#[cfg(test)]
mod tests;
