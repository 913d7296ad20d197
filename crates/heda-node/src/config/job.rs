//! `job.toml`: what a data user wants trained, with whom, and at which price in privacy.

use super::privacy::PrivacyConfig;
use super::values::{ClassWeights, Iota, Name, NotNegative, Penalty, Positive, Seconds, Share};
use super::{Answer, ConfigError, Contradiction, JOB_KEYS, beside, read, repeated};
use crate::client::RemoteProvider;
use crate::house::policy::{DataFacts, JobRequest, Published};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::load_certificates;
use crate::identity::trust::{Recognition, TrustedPeer};
use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, PenaltyPath};
use heda_learn::score;
use heda_train::engine::Engine;
use serde::Deserialize;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A data user's job.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// Folder made by `heda init`.
    pub identity: PathBuf,
    /// The schema that all parties agreed on.
    pub schema: PathBuf,
    /// What the providers call their data.
    pub data_set: Name,
    /// Certificate of a private authority, for providers that are `certified_as` something.
    pub authority: Option<PathBuf>,
    /// How gradients are computed.
    #[serde(default)]
    pub engine: Engine,
    /// How many features are encrypted, the best by the ranking; the others are published or,
    /// without `epsilon`, left out. All if neither this nor `encrypt` is given.
    pub iota: Option<Iota>,
    /// Or which features are encrypted, by name; the others are published.
    pub encrypt: Option<Vec<String>>,
    /// What `iota = "auto"` aims at.
    pub auto: Option<Auto>,
    /// How features are ranked, unless `encrypt` or `order` says what is to be known.
    #[serde(default)]
    pub ranking: score::Method,
    /// One provider whose own ranking counts for all, instead of the sum over everyone.
    pub ranked_by: Option<Name>,
    /// All features from best to worst, so that nothing is read from data to rank them.
    pub order: Option<Vec<String>>,
    /// Key size of engine `paper`.
    #[serde(default = "default_key_bits")]
    pub key_bits: u32,
    /// What publishing may cost, for all published columns of a row together. No default.
    pub epsilon: Option<Epsilon>,
    /// How columns are published.
    #[serde(default = "default_mechanism")]
    pub mechanism: Mechanism,
    /// What is minimised; what suits the label if absent.
    pub loss: Option<LossKind>,
    /// How much the rows of each class count.
    pub class_weight: Option<ClassWeights>,
    /// How the model is improved, and in how many batches.
    #[serde(default = "default_optimiser")]
    pub optimiser: Method,
    /// Iterations at most, of each model; a private job has as many as its plan says.
    #[serde(default = "default_iterations")]
    pub iterations: NonZeroU32,
    /// Training ends when no component of the gradient is larger.
    #[serde(default = "default_tolerance")]
    pub tolerance: NotNegative,
    /// The penalty as scikit-learn's C: ½‖w‖² beside C times the summed loss.
    #[serde(default = "default_c")]
    pub c: Positive,
    /// How the penalty is found instead.
    pub penalty: Option<Penalty>,
    /// A fixed seed makes the run reproducible and unprotected: for tests only.
    pub seed: Option<u64>,
    /// Share of the rows that is kept for evaluation.
    #[serde(default = "default_held_out")]
    pub held_out: Share,
    /// What everything that the job reveals keeps to.
    pub privacy: Option<PrivacyConfig>,
    /// What to do when a provider is lost.
    #[serde(default)]
    pub on_loss: OnLoss,
    /// How long to wait.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// With whom; answers to an invitation can stand for these.
    #[serde(default, rename = "provider")]
    pub providers: Vec<ProviderEntry>,
}

/// What `iota = "auto"` aims at: one of both goals.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auto {
    /// Encrypt as much as fits into so many seconds on machines like this one.
    pub within_seconds: Option<Positive>,
    /// Encrypt as little as loses at most so many points of accuracy.
    pub accuracy_loss: Option<NotNegative>,
    /// Rows of the same schema that the data user may read, to estimate accuracy with.
    pub sample: Option<PathBuf>,
}

impl Auto {
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLoss {
    /// Wait, then stop; `--resume` goes on.
    #[default]
    Wait,
    /// Go on with the others, with new masks, if nothing has left yet that belongs to all of them;
    /// the report says so.
    Continue,
}

/// How long to wait, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// For one connection.
    pub connect_seconds: Seconds,
    /// For an answer in a session.
    pub answer_seconds: Seconds,
    /// For a provider that was lost to come back.
    pub loss_seconds: Seconds,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_seconds: Seconds::of(20),
            answer_seconds: Seconds::of(300),
            loss_seconds: Seconds::of(600),
        }
    }
}

/// One provider of the job.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// What to call it.
    pub name: Name,
    /// Host and port.
    pub address: String,
    /// Its fingerprint, as its `heda init` printed it.
    pub fingerprint: Option<PeerFingerprint>,
    /// Or the name in its certificate of the authority.
    pub certified_as: Option<String>,
}

fn default_key_bits() -> u32 {
    2048
}

fn default_mechanism() -> Mechanism {
    Mechanism::Laplace
}

fn default_optimiser() -> Method {
    Method::Lbfgs { memory: 30 }
}

fn default_iterations() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(49)
}

fn default_tolerance() -> NotNegative {
    NotNegative::of(1e-4)
}

fn default_c() -> Positive {
    Positive::of(1.0)
}

fn default_held_out() -> Share {
    Share::of(0.2)
}

impl JobConfig {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, &[])
    }

    /// The same with providers that answered an invitation, besides those of the file.
    pub fn load_with(path: &Path, answers: &[Answer]) -> Result<Self, ConfigError> {
        let mut config: Self = read(path, &JOB_KEYS)?;
        if config.iota.is_none() && config.encrypt.is_none() {
            config.iota = Some(Iota::All);
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
        let nothing = self.encrypt.as_ref().is_some_and(Vec::is_empty);
        if (nothing || self.iota == Some(Iota::Best(0))) && self.epsilon.is_none() {
            return Err(Contradiction::NothingEncrypted);
        }
        match (&self.auto, self.iota == Some(Iota::Auto)) {
            (Some(auto), true) => auto.check()?,
            (None, false) => {}
            (None, true) => return Err(Contradiction::NoGoal),
            (Some(_), false) => return Err(Contradiction::GoalUnused),
        }
        if let Some(privacy) = &self.privacy {
            privacy.check(self)?;
        }
        self.check_penalty()?;
        self.check_ranking()
    }

    fn check_penalty(&self) -> Result<(), Contradiction> {
        match self.penalty {
            None => Ok(()),
            Some(Penalty::Auto) if self.c != default_c() => Err(Contradiction::TwoPenalties),
            Some(Penalty::Auto) if self.holdout_permille() == 0 => Err(Contradiction::NoChoice(
                "rows to choose by: set `held_out` above 0",
            )),
            Some(Penalty::Auto) if !self.optimiser.standardises() => {
                Err(Contradiction::NoChoice("the optimiser lbfgs"))
            }
            Some(Penalty::Auto) if self.engine != Engine::Resident => {
                Err(Contradiction::NoChoice("engine resident"))
            }
            Some(Penalty::Auto) => Ok(()),
        }
    }

    /// The penalties of which one is chosen, if that is wanted.
    pub fn penalty_path(&self) -> Option<PenaltyPath> {
        self.penalty.map(|Penalty::Auto| PenaltyPath::usual())
    }

    /// Gradients of each model of a job without a promise of privacy.
    fn gradients(&self) -> u32 {
        let single = self.iterations.get();
        let path = self.penalty_path();
        path.map_or(single, |path| path.all_gradients(single))
    }

    fn check_providers(&self) -> Result<(), Contradiction> {
        let section = "provider";
        if self.providers.is_empty() {
            return Err(Contradiction::NoProvider);
        }
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

    /// The held-out share in thousandths.
    pub fn holdout_permille(&self) -> u32 {
        (self.held_out.get() * 1000.0).round() as u32
    }

    /// What a provider would be asked for, as far as it is known before the ranking.
    pub fn request(&self, facts: &DataFacts, provider: PeerFingerprint) -> JobRequest {
        let features = facts.features.len() as u64;
        let published = match (&self.encrypt, self.iota) {
            _ if self.epsilon.is_none() => Published::Any(0),
            (Some(encrypted), _) => {
                let open = facts.features.iter().filter(|f| !encrypted.contains(f));
                Published::Named(open.cloned().collect())
            }
            (None, Some(Iota::Best(iota))) => Published::Any(features.saturating_sub(iota)),
            // Chosen later: at worst everything is published.
            (None, Some(Iota::Auto)) => Published::Any(features),
            _ => Published::Any(0),
        };
        // Without an epsilon nothing is published: what is not encrypted takes no part.
        let features = match (&self.encrypt, self.epsilon) {
            (Some(encrypted), None) => encrypted.clone(),
            _ => facts.features.clone(),
        };
        let fingerprints = self.providers.iter().filter_map(|p| p.fingerprint);
        let privacy = self.privacy.map(|privacy| facts.promise(&privacy));
        let plan = privacy.and_then(|privacy| facts.plan(&privacy).ok());
        JobRequest {
            job: "preview".into(),
            schema: facts.schema.clone(),
            engine: self.engine,
            scored: self.encrypt.is_none() && self.order.is_none() && self.privacy.is_none(),
            features,
            published,
            epsilon: self.epsilon,
            mechanism: self.mechanism,
            iterations: match plan {
                Some(plan) => u64::from(plan.all_gradients()),
                None => u64::from(self.gradients()),
            },
            batch_rows: Some(facts.training_rows / self.optimiser.batches().max(1) as u64),
            co_providers: fingerprints.filter(|f| *f != provider).collect(),
            privacy,
        }
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
