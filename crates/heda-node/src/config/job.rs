//! `job.toml`: what a data user wants trained, with whom, and at which price in privacy.

use super::privacy::PrivacyConfig;
use super::provider::engines;
use super::values::{
    ClassWeightValue, IotaValue, Name, NoClass, NotNegative, PenaltyValue, Positive, PublishedBy,
    SecondsValue, Share,
};
use super::{Answer, ConfigError, Contradiction, beside, read, repeated};
use crate::client::RemoteProvider;
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::load_certificates;
use crate::identity::trust::{Recognition, TrustedPeer};
use heda_dp::epsilon::Epsilon;
use heda_job::description::{KEY_BITS, Protected, Ranking, RawJob};
use heda_job::engine::Engine;
use heda_job::proposal::Spending;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Iterations, Method, PenaltyPath, Settings};
use heda_learn::partition::Goal;
use heda_learn::reference::FileKeys;
use heda_learn::schema::Schema;
use heda_learn::score;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Every key of `job.toml`.
pub const JOB_KEYS: FileKeys = FileKeys {
    file: "job.toml",
    about: "What a data user wants trained, with whom, and at which price in privacy.",
    parts: &[
        JobConfig::KEYS,
        PrivacyConfig::KEYS,
        Auto::KEYS,
        Timeouts::KEYS,
        ProviderEntry::KEYS,
    ],
};

fn stated_engine() -> String {
    format!("\"{}\"", Engine::default())
}

fn stated_tolerance() -> String {
    Settings::lbfgs().tolerance.to_string()
}

fn rankings() -> Vec<&'static str> {
    score::ScoringMethod::ALL
        .iter()
        .map(|method| method.name())
        .collect()
}

heda_learn::described! {
    /// A data user's job.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct JobConfig in "" {
        /// Folder with key and certificate, made by `heda init` or `heda invite`.
        #[key(Path, Required, "\"identity\"")]
        pub identity: PathBuf,
        /// The [schema](schema.md) that all parties agreed on.
        #[key(Path, Required, "\"schema.toml\"")]
        pub schema: PathBuf,
        /// What the providers call their data.
        #[key(Text, Required, "\"ward-2026\"")]
        pub data_set: Name,
        /// Certificate of a private authority, for providers that are `certified_as` something.
        #[key(Path, Optional, "\"authority.pem\"")]
        pub authority: Option<PathBuf>,
        /// How gradients are computed.
        #[key(Named(engines), Computed(stated_engine), "\"paper\"")]
        #[serde(default)]
        pub engine: Engine,
        /// How many features are encrypted, the best by the ranking; the others are published or,
        /// without `epsilon`, left out. `auto` goes by `[auto]`.
        #[key(WholeOr(&["all", "auto"]), Default("\"all\""), "5")]
        pub iota: Option<IotaValue>,
        /// Instead of `iota`: which features are encrypted, by name.
        #[key(Texts, Optional, "[\"age\", \"marker\"]")]
        pub encrypt: Option<Vec<String>>,
        /// What `iota = "auto"` aims at.
        pub auto: Option<Auto>,
        /// How features are ranked.
        #[key(Named(rankings), Default("\"kw\""), "\"chi2\"")]
        #[serde(default)]
        pub ranking: score::ScoringMethod,
        /// One provider whose own ranking counts for all, instead of the sum over everyone.
        #[key(Text, Optional, "\"hospital-a\"")]
        pub ranked_by: Option<Name>,
        /// All features from best to worst, so that nothing is read from data to rank them.
        #[key(Texts, Optional, "[\"age\", \"marker\"]")]
        pub order: Option<Vec<String>>,
        /// Key size of engine `paper`.
        #[key(Whole, Default("2048"), "2048")]
        #[serde(default = "default_key_bits")]
        pub key_bits: u32,
        /// What publishing may cost, for all published columns of a row together; nothing is
        /// published without it.
        #[key(Number, Optional, "1.5")]
        pub epsilon: Option<Epsilon>,
        /// How columns are published.
        #[key(OneOf(&["laplace"]), Default("\"laplace\""), "\"laplace\"")]
        #[serde(default)]
        pub mechanism: PublishedBy,
        /// What is minimised: `logistic` if not given or, for a numeric label, `ridge`, which is
        /// least squares.
        #[key(OneOf(&["logistic", "squared-hinge", "bounded-logistic", "ridge"]), Optional, "\"squared-hinge\"")]
        pub loss: Option<LossKind>,
        /// How much the rows of each class count: `balanced` by their number over all providers,
        /// n/(classes · rows of the class) as in scikit-learn; or `{ ill = 2.0, well = 0.5 }`, 1
        /// for a class that is not named.
        #[key(WordOrTable(&["balanced"]), Optional, "\"balanced\"")]
        pub class_weight: Option<ClassWeightValue>,
        /// How the model is improved: `lbfgs` (`memory`), `nesterov` (`rate`, `batches`) or
        /// `descent` (`rate`, `minimum_rate`, `decay`, `batches`).
        #[key(Table, Default("{ name = \"lbfgs\", memory = 30 }"), "{ name = \"lbfgs\" }")]
        #[serde(default = "default_optimiser")]
        pub optimiser: Method,
        /// Iterations at most, of each model, 1 to 1000000; twelve and the square root of the
        /// number of encoded columns if not given. A private job has as many gradients as its plan
        /// says.
        #[key(Count, Optional, "40")]
        pub iterations: Option<Iterations>,
        /// Training ends when no component of the gradient is larger.
        #[key(Number, Computed(stated_tolerance), "0.0001")]
        #[serde(default = "default_tolerance")]
        pub tolerance: NotNegative,
        /// The penalty as scikit-learn's C, on standardised features; a smaller number is a larger
        /// penalty. Of a numeric label it is 1/alpha of scikit-learn's Ridge.
        #[key(Number, Default("1"), "1")]
        #[serde(default = "default_c")]
        pub c: Positive,
        /// Instead of `c`: `auto` tries C = 0.01, 0.1, 1, 10 and 100 and keeps what is best on one
        /// half of the held-out rows; the other half is for the report. Five times as many
        /// gradients, and an evaluation for each.
        #[key(OneOf(&["auto"]), Optional, "\"auto\"")]
        pub penalty: Option<PenaltyValue>,
        /// A fixed seed makes the run reproducible and unprotected: for tests only.
        #[key(Whole, Optional, "7")]
        pub seed: Option<u64>,
        /// Share of the rows that is held out for evaluation, 0 to 0.9.
        #[key(Number, Default("0.2"), "0.25")]
        #[serde(default)]
        pub held_out: Share,
        /// What everything that the job reveals keeps to.
        pub privacy: Option<PrivacyConfig>,
        /// What to do when a provider is lost and does not come back in time: wait, then stop, so
        /// that `--resume` goes on; or go on with the others, with new masks.
        #[key(OneOf(&["wait", "continue"]), Default("\"wait\""), "\"continue\"")]
        #[serde(default)]
        pub on_loss: OnLoss,
        /// How long to wait.
        #[serde(default)]
        pub timeouts: Timeouts,
        /// With whom; answers to an invitation can stand for these.
        #[serde(default, rename = "provider")]
        pub providers: Vec<ProviderEntry>,
    }
}

heda_learn::described! {
    /// What `iota = "auto"` aims at: one of both goals.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Auto in "auto" {
        /// With `iota = "auto"`: encrypt as much as fits into so many seconds.
        #[key(Number, Optional, "60")]
        pub within_seconds: Option<Positive>,
        /// With `iota = "auto"`: encrypt as little as loses at most so many points of accuracy.
        #[key(Number, Optional, "1")]
        pub accuracy_loss: Option<NotNegative>,
        /// Rows of the same schema that the data user may read, to estimate accuracy with, and
        /// whether publishing pays.
        #[key(Path, Optional, "\"public.csv\"")]
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

heda_learn::described! {
    /// How long to wait, in seconds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Timeouts in "timeouts" {
        /// How long one try to connect may take.
        #[key(Whole, Default("20"), "20")]
        pub connect_seconds: SecondsValue,
        /// How long to wait for an answer in a session.
        #[key(Whole, Default("300"), "60")]
        pub answer_seconds: SecondsValue,
        /// How long to wait for providers that cannot be reached, or that were lost, before giving
        /// up.
        #[key(Whole, Default("600"), "120")]
        pub loss_seconds: SecondsValue,
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

heda_learn::described! {
    /// One provider of the job.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ProviderEntry in "provider[]" {
        /// What to call the provider.
        #[key(Text, Required, "\"hospital-a\"")]
        pub name: Name,
        /// Host and port.
        #[key(Text, Required, "\"a.example:7443\"")]
        pub address: String,
        /// Its fingerprint, as its `heda init` printed it.
        #[key(Fingerprint, Optional, "\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: Option<PeerFingerprint>,
        /// Instead: the name in its certificate of the authority.
        #[key(Text, Optional, "\"a.example\"")]
        pub certified_as: Option<String>,
    }
}

fn default_key_bits() -> u32 {
    KEY_BITS
}

fn default_optimiser() -> Method {
    Settings::lbfgs().method
}

fn default_tolerance() -> NotNegative {
    NotNegative::of(Settings::lbfgs().tolerance)
}

fn default_c() -> Positive {
    Positive::of(Settings::lbfgs().c.unwrap_or(1.0))
}

impl JobConfig {
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
        let mut config: Self = read(path, &JOB_KEYS)?;
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
        raw.key_bits = self.key_bits;
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
