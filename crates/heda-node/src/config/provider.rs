//! `provider.toml`: what a provider offers, to whom, and how much of it.

use super::values::{Name, Positive, SecondsValue};
use super::{ConfigError, Contradiction, beside, read, repeated};
use crate::guard::ledger::{LedgerPlace, PrivateCap};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::load_certificates;
use crate::identity::trust::{Recognition, TrustedPeer};
use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::engine::Engine;
use heda_learn::reference::FileKeys;
use heda_learn::table::CsvFormat;
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// Every key of `provider.toml`.
pub const PROVIDER_KEYS: FileKeys = FileKeys {
    file: "provider.toml",
    about: "What a provider offers, to whom, and how much of it. What has no default the operator must decide.",
    parts: &[
        ProviderConfig::KEYS,
        CsvFormat::KEYS,
        AllowedPeer::KEYS,
        KnownProvider::KEYS,
        LimitsConfig::KEYS,
        Reproducible::KEYS,
    ],
};

pub(super) fn engines() -> Vec<&'static str> {
    Engine::ALL.iter().map(|engine| engine.name()).collect()
}

fn stated_engines() -> String {
    format!("[\"{}\"]", Engine::default())
}

heda_learn::described! {
    /// The provider's configuration.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ProviderConfig in "" {
        /// The file that it was read from; who else is known is read from there again.
        #[serde(skip)]
        pub path: PathBuf,
        /// Folder with key and certificate, made by `heda init` or `heda provider setup`.
        #[key(Path, Required, "\"identity\"")]
        pub identity: PathBuf,
        /// What the data set is called; its budget in the ledger goes by this name.
        #[key(Text, Required, "\"ward-2026\"")]
        pub data_set: Name,
        /// The rows, CSV or Parquet.
        #[key(Path, Required, "\"rows.csv\"")]
        pub data: PathBuf,
        /// How the rows are written, if they are CSV; found from the first lines where not given.
        #[serde(default)]
        pub csv: CsvFormat,
        /// The column of the rows that says whose row it is; it is never sent. With it private jobs
        /// protect the person and not the row: all rows of a person together count as much as one.
        #[key(Text, Optional, "\"patient_id\"")]
        pub person: Option<String>,
        /// The [schema](schema.md) that all parties agreed on.
        #[key(Path, Required, "\"schema.toml\"")]
        pub schema: PathBuf,
        /// Address and port for data users.
        #[key(Text, Required, "\"0.0.0.0:7443\"")]
        pub listen: SocketAddr,
        /// Local address and port for Prometheus.
        #[key(Text, Optional, "\"127.0.0.1:9464\"")]
        pub metrics: Option<SocketAddr>,
        /// Folder for the ledger and for what jobs need after a restart.
        #[key(Path, Required, "\"store\"")]
        pub store: PathBuf,
        /// The file outside the store by which a ledger that was lost or replaced is noticed;
        /// `ledger.anchor` in the folder of the identity if not given.
        #[key(Path, Optional, "\"/var/lib/heda/ledger.anchor\"")]
        pub anchor: Option<PathBuf>,
        /// Certificate of a private authority, for data users that are `certified_as` something.
        #[key(Path, Optional, "\"authority.pem\"")]
        pub authority: Option<PathBuf>,
        /// Who may ask.
        #[serde(default, rename = "allow")]
        pub allowed: Vec<AllowedPeer>,
        /// Other providers that this one knows to be real.
        #[serde(default, rename = "known_provider")]
        pub known_providers: Vec<KnownProvider>,
        /// How much.
        pub limits: LimitsConfig,
        /// Reproducible randomness, which protects nothing: for tests with public data.
        pub reproducible: Option<Reproducible>,
    }
}

heda_learn::described! {
    /// Randomness that can be repeated, as in a run where all parties share one process.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Reproducible in "reproducible" {
        /// Randomness that can be repeated, which protects nothing: for tests with public data. The
        /// seed of the run.
        #[key(Whole, Required, "7")]
        pub seed: u64,
        /// This party's name in the run.
        #[key(Text, Required, "\"provider-1\"")]
        pub party: Name,
    }
}

heda_learn::described! {
    /// A data user that may ask.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct AllowedPeer in "allow[]" {
        /// What to call a data user that may ask.
        #[key(Text, Required, "\"university\"")]
        pub name: Name,
        /// Its fingerprint, as its `heda init` printed it.
        #[key(Fingerprint, Optional, "\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: Option<PeerFingerprint>,
        /// Instead: the name in its certificate of the authority.
        #[key(Text, Optional, "\"university.example\"")]
        pub certified_as: Option<String>,
        /// The columns it may use; all when not given.
        #[key(Texts, Optional, "[\"age\", \"marker\"]")]
        pub columns: Option<Vec<String>>,
    }
}

/// Exactly one way of recognising a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecognitionConfig<'a> {
    /// By its key.
    Fingerprint(PeerFingerprint),
    /// By its name in a certificate of the authority.
    CertifiedAs(&'a str),
}

impl AllowedPeer {
    fn recognition(&self) -> Option<RecognitionConfig<'_>> {
        match (&self.fingerprint, &self.certified_as) {
            (Some(fingerprint), None) => Some(RecognitionConfig::Fingerprint(*fingerprint)),
            (None, Some(name)) => Some(RecognitionConfig::CertifiedAs(name)),
            _ => None,
        }
    }
}

heda_learn::described! {
    /// Another provider that this one knows.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct KnownProvider in "known_provider[]" {
        /// What to call another provider that is known to be real.
        #[key(Text, Required, "\"hospital-b\"")]
        pub name: Name,
        /// Its fingerprint.
        #[key(Fingerprint, Required, "\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: PeerFingerprint,
    }
}

heda_learn::described! {
    /// What jobs may use up. What has no default must be decided by the operator.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct LimitsConfig in "limits" {
        /// Epsilon that may be spent on the data set in all, by everybody together; without it
        /// nothing is ever published.
        #[key(Number, Optional, "2.5")]
        pub epsilon_total: Option<Epsilon>,
        /// Whether jobs that promise no epsilon and delta for everything they reveal are refused;
        /// `heda provider setup` writes `true`.
        #[key(Flag, Default("false"), "true")]
        #[serde(default)]
        pub privacy_required: bool,
        /// Epsilon that everything that private jobs reveal of a row may reach, over all jobs and
        /// by everybody together; without it no private job is served.
        #[key(Number, Optional, "2")]
        pub privacy_epsilon_total: Option<Epsilon>,
        /// The same for the jobs of one data user; three quarters of it when not given and several
        /// data users are allowed, so that none of them can take, or set aside, everything.
        #[key(Number, Optional, "1")]
        pub privacy_epsilon_per_user: Option<Epsilon>,
        /// Delta of both; goes with `privacy_epsilon_total`.
        #[key(Number, Optional, "1e-6")]
        pub privacy_delta: Option<Delta>,
        /// On how many other providers' noise a private job may count besides this one's own; all
        /// but one of the known ones among the others when not given, and never more than those; 0:
        /// its own suffices.
        #[key(Whole, Optional, "0")]
        pub privacy_trusted: Option<u32>,
        /// Whether a data user is told, at the end of its job, how large a further private job of
        /// its own may be; this tells a bound on what others have used.
        #[key(Flag, Default("true"), "false")]
        #[serde(default = "default_told")]
        pub privacy_room_told: bool,
        /// The fewest rows that an iteration may be about.
        #[key(Count, Required, "50")]
        pub rows_per_batch_min: NonZeroU64,
        /// The fewest rows that may be held out for evaluation, if any are.
        #[key(Count, Default("20"), "20")]
        #[serde(default = "default_held_out")]
        pub held_out_rows_min: NonZeroU64,
        /// Iterations in one job.
        #[key(Count, Required, "100")]
        pub iterations_per_job: NonZeroU64,
        /// Iterations on one day, by everybody together; an evaluation counts as one.
        #[key(Count, Required, "1000")]
        pub iterations_per_day: NonZeroU64,
        /// Evaluations on held-out rows for each model of a job; one that is lost may be repeated.
        #[key(Count, Default("5"), "5")]
        #[serde(default = "default_evaluations")]
        pub evaluations_per_model: NonZeroU64,
        /// How many of the other providers in a job must be known ones.
        #[key(Whole, Required, "1")]
        pub known_co_providers_min: u64,
        /// Numbers that a job may learn for each unknown value of this provider.
        #[key(Number, Required, "0.2")]
        pub revealed_per_unknown_max: Positive,
        /// Numbers that a data user may learn over all of its jobs for each unknown value of this
        /// provider; as for one job when not given.
        #[key(Number, Optional, "0.4")]
        pub revealed_per_unknown_lifetime_max: Option<Positive>,
        /// Whether a data user may train with sets of providers such that one provider's part
        /// follows by subtraction: with a provider and later without it, for instance.
        #[key(Flag, Default("false"), "true")]
        #[serde(default)]
        pub rosters_may_single_out: bool,
        /// Engines; `paper` only when named here.
        #[key(SomeNamed(engines), Computed(stated_engines), "[\"paper\"]")]
        #[serde(default = "default_engines")]
        pub engines: Vec<Engine>,
        /// Ways of publishing; only `laplace` has a proven epsilon for linked rows.
        #[key(Texts, Default("[\"laplace\"]"), "[\"laplace\"]")]
        #[serde(default = "default_mechanisms")]
        pub mechanisms: Vec<Mechanism>,
        /// Jobs at once.
        #[key(Count, Default("4"), "4")]
        #[serde(default = "default_jobs")]
        pub concurrent_jobs: NonZeroU64,
        /// Jobs at once of one data user.
        #[key(Count, Default("2"), "1")]
        #[serde(default = "default_jobs_per_peer")]
        pub concurrent_jobs_per_peer: NonZeroU64,
        /// Memory for what data users have sent and jobs have not read yet, in all; every job has
        /// an equal part of it.
        #[key(Count, Default("64"), "64")]
        #[serde(default = "default_waiting")]
        pub waiting_megabytes: NonZeroU64,
        /// Connections at once that have not proved who they are.
        #[key(Count, Default("256"), "256")]
        #[serde(default = "default_unknown")]
        pub unknown_connections: NonZeroU64,
        /// Jobs and refusals that the ledger keeps beside those that its budgets need.
        #[key(Count, Default("10000"), "10000")]
        #[serde(default = "default_kept")]
        pub records_kept: NonZeroU64,
        /// How often the features may be ranked, or sums of columns given, in one job; it is done
        /// again after a loss.
        #[key(Count, Default("20"), "20")]
        #[serde(default = "default_rankings")]
        pub rankings_per_job: NonZeroU64,
        /// How long a data user that broke the protocol waits before its next session; twice as
        /// long each further time, up to 64 times; 0: not at all.
        #[key(Whole, Default("1"), "5")]
        #[serde(default = "default_breach_pause")]
        pub breach_pause_seconds: u32,
        /// How long to wait for a data user's answer.
        #[key(Whole, Default("300"), "60")]
        #[serde(default = "default_answer")]
        pub answer_seconds: SecondsValue,
        /// How long jobs may go on after the wish to stop.
        #[key(Whole, Default("60"), "30")]
        #[serde(default = "default_grace")]
        pub stop_grace_seconds: SecondsValue,
    }
}

fn default_told() -> bool {
    true
}

fn default_engines() -> Vec<Engine> {
    vec![Engine::default()]
}

fn default_mechanisms() -> Vec<Mechanism> {
    vec![Mechanism::Laplace]
}

fn default_held_out() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(19)
}

fn default_evaluations() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(4)
}

fn default_jobs() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(3)
}

fn default_jobs_per_peer() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(1)
}

fn default_waiting() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(63)
}

fn default_unknown() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(255)
}

fn default_kept() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(9_999)
}

fn default_rankings() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(19)
}

impl LimitsConfig {
    /// What private jobs may cost in all; none if no private job is served.
    pub fn private_cap(&self) -> Option<PrivateCap> {
        let (epsilon, delta) = (self.privacy_epsilon_total?, self.privacy_delta?);
        Some(PrivateCap {
            epsilon,
            per_user: self.privacy_epsilon_per_user.unwrap_or(epsilon),
            delta,
        })
    }

    fn check_privacy(&self) -> Result<(), Contradiction> {
        let total = self.privacy_epsilon_total;
        match (total, self.privacy_delta, self.privacy_epsilon_per_user) {
            (Some(_), None, _) => Err(Contradiction::PrivacyWithout("privacy_delta")),
            (None, Some(_), _) | (None, _, Some(_)) => {
                Err(Contradiction::PrivacyWithout("privacy_epsilon_total"))
            }
            (Some(total), _, Some(user)) if user > total => {
                Err(Contradiction::PrivacyPerUser { user, total })
            }
            (None, None, None) if self.privacy_required => Err(Contradiction::PrivacyWithout(
                "privacy_epsilon_total and privacy_delta",
            )),
            _ => Ok(()),
        }
    }

    /// One job's part of the memory for what was not read yet.
    pub(crate) fn inbox_bytes(&self) -> u32 {
        let all = self.waiting_megabytes.get().saturating_mul(1 << 20);
        let each = all / self.concurrent_jobs.get();
        u32::try_from(each).unwrap_or(u32::MAX)
    }
}

fn default_breach_pause() -> u32 {
    1
}

fn default_answer() -> SecondsValue {
    SecondsValue::of(300)
}

fn default_grace() -> SecondsValue {
    SecondsValue::of(60)
}

impl ProviderConfig {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let mut config: Self = read(path, &PROVIDER_KEYS)?;
        config
            .check()
            .map_err(|problem| ConfigError::Contradiction {
                path: path.to_owned(),
                problem,
            })?;
        for place in [
            &mut config.identity,
            &mut config.data,
            &mut config.schema,
            &mut config.store,
        ] {
            *place = beside(path, place);
        }
        config.path = path.to_owned();
        config.share_among_users();
        config.anchor = config.anchor.map(|anchor| beside(path, &anchor));
        config.authority = config.authority.map(|authority| beside(path, &authority));
        Ok(config)
    }

    /// One of several data users may not have everything: three quarters if nothing else is said.
    fn share_among_users(&mut self) {
        let limits = &mut self.limits;
        if self.allowed.len() > 1 && limits.privacy_epsilon_per_user.is_none() {
            let total = limits.privacy_epsilon_total;
            let part = total.map(|total| total.billionths() / 4 * 3);
            let part = part.and_then(|part| Epsilon::from_billionths(part).ok());
            limits.privacy_epsilon_per_user = part;
        }
    }

    fn check(&self) -> Result<(), Contradiction> {
        if let Some(name) = repeated(self.allowed.iter().map(|peer| &peer.name)) {
            let (section, name) = ("allow", name.to_string());
            return Err(Contradiction::RepeatedName { section, name });
        }
        let allowed = repeated(self.allowed.iter().filter_map(|peer| peer.fingerprint));
        let known = repeated(self.known_providers.iter().map(|p| p.fingerprint));
        for (section, repeated) in [("allow", allowed), ("known_provider", known)] {
            if let Some(fingerprint) = repeated {
                return Err(Contradiction::RepeatedFingerprint {
                    section,
                    fingerprint,
                });
            }
        }
        for peer in &self.allowed {
            match peer.recognition() {
                None => return Err(Contradiction::Recognition(peer.name.to_string())),
                Some(RecognitionConfig::CertifiedAs(_)) if self.authority.is_none() => {
                    return Err(Contradiction::NoAuthority(peer.name.to_string()));
                }
                Some(_) => {}
            }
        }
        self.limits.check_privacy()?;
        let (least, known) = (
            self.limits.known_co_providers_min,
            self.known_providers.len(),
        );
        if least > known as u64 {
            return Err(Contradiction::KnownProviders { least, known });
        }
        Ok(())
    }

    /// The data users that may connect, for TLS.
    pub fn trusted_peers(&self) -> Result<Vec<TrustedPeer>, ConfigError> {
        let authority = match &self.authority {
            Some(path) => load_certificates(path)?.into_iter().next(),
            None => None,
        };
        let peers = self.allowed.iter().filter_map(|peer| {
            let recognition = match peer.recognition()? {
                RecognitionConfig::Fingerprint(fingerprint) => {
                    Recognition::Fingerprint(fingerprint)
                }
                RecognitionConfig::CertifiedAs(name) => Recognition::Certified {
                    authority: authority.clone()?,
                    name: name.to_owned(),
                },
            };
            Some(TrustedPeer {
                label: peer.name.to_string(),
                recognition,
            })
        });
        Ok(peers.collect())
    }

    /// Where the ledger and its anchor lie.
    pub fn ledger_place(&self) -> LedgerPlace {
        let anchor = self.anchor.clone();
        LedgerPlace {
            ledger: self.store.join("ledger.sqlite"),
            anchor: anchor.unwrap_or_else(|| self.identity.join("ledger.anchor")),
        }
    }
}

#[cfg(test)]
mod tests;
