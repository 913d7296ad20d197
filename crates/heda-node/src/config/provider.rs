//! `provider.toml`: what a provider offers, to whom, and how much of it.

use super::values::{Name, Positive, Seconds};
use super::{ConfigError, Contradiction, PROVIDER_KEYS, beside, read, repeated};
use crate::house::ledger::{LedgerPlace, PrivateCap};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::load_certificates;
use crate::identity::trust::{Recognition, TrustedPeer};
use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_learn::table::CsvFormat;
use heda_train::engine::Engine;
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// The provider's configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// Folder made by `heda init`.
    pub identity: PathBuf,
    /// What the data set is called; its budget in the ledger goes by this name.
    pub data_set: Name,
    /// The rows, CSV or Parquet.
    pub data: PathBuf,
    /// How the rows are written, if they are CSV; found from the first lines where not given.
    #[serde(default)]
    pub csv: CsvFormat,
    /// The column of the rows that says whose row it is. It is never sent; with it the person, and
    /// not the row, is what private jobs protect.
    pub person: Option<String>,
    /// The schema that all parties agreed on.
    pub schema: PathBuf,
    /// Address and port for data users.
    pub listen: SocketAddr,
    /// Local address and port for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Folder for the ledger and for what jobs need after a restart.
    pub store: PathBuf,
    /// The file outside the store by which a ledger that was lost or replaced is noticed;
    /// `ledger.anchor` in the folder of the identity if not given.
    pub anchor: Option<PathBuf>,
    /// Certificate of a private authority, for peers that are `certified_as` something.
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

/// Randomness that can be repeated, as in a run where all parties share one process.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproducible {
    /// The seed of the run.
    pub seed: u64,
    /// This party's name in the run.
    pub party: Name,
}

/// A data user that may ask.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedPeer {
    /// What to call it.
    pub name: Name,
    /// Its fingerprint, as its `heda init` printed it.
    pub fingerprint: Option<PeerFingerprint>,
    /// Or the name in its certificate of the authority.
    pub certified_as: Option<String>,
    /// The columns it may use; all when not given.
    pub columns: Option<Vec<String>>,
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

/// Another provider that this one knows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownProvider {
    /// What to call it.
    pub name: Name,
    /// Its fingerprint.
    pub fingerprint: PeerFingerprint,
}

/// What jobs may use up. What has no default must be decided by the operator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// ε that may be spent on the data set in all, by everybody together. Without it nothing is
    /// ever published.
    pub epsilon_total: Option<Epsilon>,
    /// Whether jobs that keep to no ε and δ are refused. A new configuration says so.
    #[serde(default)]
    pub privacy_required: bool,
    /// ε that everything that private jobs reveal of a row may reach, over all jobs and by
    /// everybody together. Without it no private job is served.
    pub privacy_epsilon_total: Option<Epsilon>,
    /// The same for one data user; as for everybody when not given.
    pub privacy_epsilon_per_user: Option<Epsilon>,
    /// δ of both.
    pub privacy_delta: Option<Delta>,
    /// From how many other providers' noise a private job may count on besides this one's own; all
    /// but one of those that are known when not given.
    pub privacy_trusted: Option<u32>,
    /// The fewest rows that an iteration may be about.
    pub rows_per_batch_min: NonZeroU64,
    /// The fewest rows that may be held out for evaluation, if any are.
    #[serde(default = "default_held_out")]
    pub held_out_rows_min: NonZeroU64,
    /// Iterations in one job.
    pub iterations_per_job: NonZeroU64,
    /// Iterations on one day, by everybody together; an evaluation counts as one.
    pub iterations_per_day: NonZeroU64,
    /// Evaluations on held-out rows for each model of a job; one that is lost may be repeated.
    #[serde(default = "default_evaluations")]
    pub evaluations_per_model: NonZeroU64,
    /// How many of the other providers in a job must be known ones.
    pub known_co_providers_min: u64,
    /// Numbers that a job may learn for each unknown value of this provider.
    pub revealed_per_unknown_max: Positive,
    /// Numbers that a data user may learn over all of its jobs for each unknown value of this
    /// provider; as for one job when not given.
    pub revealed_per_unknown_lifetime_max: Option<Positive>,
    /// Whether a data user may train with sets of providers such that one provider's part follows
    /// by subtraction: with a provider and later without it, for instance.
    #[serde(default)]
    pub rosters_may_single_out: bool,
    /// Engines; `paper` only when named here.
    #[serde(default = "default_engines")]
    pub engines: Vec<Engine>,
    /// Ways of publishing; only `laplace` has a proven ε for linked rows.
    #[serde(default = "default_mechanisms")]
    pub mechanisms: Vec<Mechanism>,
    /// Jobs at once.
    #[serde(default = "default_jobs")]
    pub concurrent_jobs: NonZeroU64,
    /// Jobs at once of one data user.
    #[serde(default = "default_jobs_per_peer")]
    pub concurrent_jobs_per_peer: NonZeroU64,
    /// Memory for what data users have sent and jobs have not read yet, in all. Every job has an
    /// equal part of it, so that no session and no data user can take another's.
    #[serde(default = "default_waiting")]
    pub waiting_megabytes: NonZeroU64,
    /// Connections at once that have not proved who they are.
    #[serde(default = "default_unknown")]
    pub unknown_connections: NonZeroU64,
    /// Jobs and refusals that the ledger keeps beside those that its budgets need.
    #[serde(default = "default_kept")]
    pub records_kept: NonZeroU64,
    /// How often the features may be ranked in one job; it is done again after a loss.
    #[serde(default = "default_rankings")]
    pub rankings_per_job: NonZeroU64,
    /// How long a data user that broke the protocol waits before its next session, the first time;
    /// not at all if nought.
    #[serde(default = "default_breach_pause")]
    pub breach_pause_seconds: u32,
    /// How long to wait for a data user's answer.
    #[serde(default = "default_answer")]
    pub answer_seconds: Seconds,
    /// How long jobs may go on after the wish to stop.
    #[serde(default = "default_grace")]
    pub stop_grace_seconds: Seconds,
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

fn default_answer() -> Seconds {
    Seconds::of(300)
}

fn default_grace() -> Seconds {
    Seconds::of(60)
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
        config.anchor = config.anchor.map(|anchor| beside(path, &anchor));
        config.authority = config.authority.map(|authority| beside(path, &authority));
        Ok(config)
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
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../tests/files/provider.toml");

    fn load(text: &str) -> Result<ProviderConfig, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("provider.toml");
        std::fs::write(&path, text).unwrap();
        ProviderConfig::load(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn the_sample_is_read_with_paths_beside_it() {
        let config = load(GOOD).unwrap();
        assert!(config.data.is_absolute() && config.data.ends_with("ward.csv"));
        assert_eq!(config.limits.engines, [Engine::Resident]);
        assert_eq!(config.limits.mechanisms, [Mechanism::Laplace]);
        assert_eq!(config.trusted_peers().unwrap().len(), 1);
    }

    #[test]
    fn errors_name_the_line_and_the_reason() {
        for (from, to, line, word) in [
            ("data_set", "dataset", "line 2", "dataset"),
            (
                "epsilon_total = 2.5",
                "epsilon_total = -1",
                "line ",
                "negative",
            ),
            (
                "rows_per_batch_min = 50",
                "rows_per_batch_min = 0",
                "line ",
                "from 1 upwards",
            ),
            ("127.0.0.1:9464", "here", "line ", "address"),
            (
                "sha256:0000",
                "sha256:000",
                "line ",
                "64 hexadecimal digits",
            ),
            ("max = 0.2", "max = nan", "line ", "above 0"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = load(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(line) && error.contains(word), "{error}");
        }
    }

    #[test]
    fn contradictions_are_found() {
        let no_way = GOOD.replacen(
            "name = \"university\"",
            "name = \"u\"\ncertified_as = \"u\"",
            1,
        );
        assert!(load(&no_way).unwrap_err().contains("either"));
        let too_many = GOOD.replacen("providers_min = 1", "providers_min = 3", 1);
        assert!(
            load(&too_many)
                .unwrap_err()
                .contains("every job would be refused")
        );
        let engine = format!("{GOOD}\nengines = [\"magic\"]");
        assert!(load(&engine).unwrap_err().contains("magic"));
    }
}
