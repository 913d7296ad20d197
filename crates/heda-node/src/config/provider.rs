//! `provider.toml`: what a provider offers, to whom, and how much of it.

use super::values::{Name, Positive, SecondsValue, count};
use super::{ConfigError, Contradiction, beside, read_text, repeated};
use crate::guard::ledger::{LedgerPlace, PrivateCap};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::load_certificates;
use crate::identity::trust::{Recognition, TrustedPeer};
use heda_dp::account::Mechanism;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::engine::Engine;
use heda_learn::described;
use heda_learn::table::CsvFormat;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

described! {
    /// What a provider offers, to whom, and how much of it. The operator must decide what has no
    /// default.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ProviderConfig {
        /// Folder with the key and the certificate of this provider; keep `key.pem` in it secret.
        #[key("\"identity\"")]
        pub identity: PathBuf,
        /// Name of the data set, under which the ledger counts what jobs use up.
        #[key("\"ward-2026\"")]
        pub data_set: Name,
        /// File with the rows, CSV or Parquet.
        #[key("\"rows.csv\"")]
        pub data: PathBuf,
        /// How the rows are written, if they are CSV.
        pub csv: CsvFormat = CsvFormat::default(),
        /// Column that says which person a row is about; it is never sent. With it, private jobs
        /// protect persons: all rows of a person together count as much as one.
        #[key("\"patient_id\"")]
        pub person: Option<String>,
        /// File with the schema that all parties agreed on: what the columns mean.
        #[key("\"schema.toml\"")]
        pub schema: PathBuf,
        /// Address and port where data users connect.
        #[key("\"0.0.0.0:7443\"")]
        pub listen: SocketAddr,
        /// Address and port for Prometheus; use a local address.
        #[key("\"127.0.0.1:9464\"")]
        pub metrics: Option<SocketAddr>,
        /// Folder for the ledger and for what jobs need after a restart; back it up.
        #[key("\"store\"")]
        pub store: PathBuf,
        /// File outside the store that shows whether the ledger was lost or replaced; by default
        /// `ledger.anchor` in the folder of the identity.
        #[key("\"/var/lib/heda/ledger.anchor\"")]
        pub anchor: Option<PathBuf>,
        /// Certificate of a private authority, for data users with `certified_as`.
        #[key("\"authority.pem\"")]
        pub authority: Option<PathBuf>,
        /// A data user that may ask.
        #[name = "allow"]
        pub allowed: Vec<AllowedPeer> = Vec::new(),
        /// Another provider that this one knows to be real.
        #[name = "known_provider"]
        pub known_providers: Vec<KnownProvider> = Vec::new(),
        /// How much jobs may use up, for all data users together.
        pub limits: LimitsConfig,
        /// Randomness that can be repeated and protects nothing: for tests with public data.
        pub reproducible: Option<Reproducible>,
        unlisted {
            /// The file that it was read from; known providers are read from there again.
            pub path: PathBuf,
        }
    }
}

described! {
    /// Randomness that can be repeated, as in a run where all parties share one process.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Reproducible {
        /// Seed of the run.
        #[key("7")]
        pub seed: u64,
        /// Name of this party in the run.
        #[key("\"provider-1\"")]
        pub party: Name,
    }
}

described! {
    /// A data user that may ask.
    #[derive(Debug, Clone, PartialEq)]
    pub struct AllowedPeer {
        /// Name of the data user.
        #[key("\"university\"")]
        pub name: Name,
        /// Fingerprint of its key, as its `heda init` printed it.
        #[key("\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: Option<PeerFingerprint>,
        /// Instead of `fingerprint`: the name in its certificate of the authority.
        #[key("\"university.example\"")]
        pub certified_as: Option<String>,
        /// Columns that it may use; all by default.
        #[key("[\"age\", \"marker\"]")]
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

described! {
    /// Another provider that this one knows.
    #[derive(Debug, Clone, PartialEq)]
    pub struct KnownProvider {
        /// Name of the provider.
        #[key("\"hospital-b\"")]
        pub name: Name,
        /// Fingerprint of its key.
        #[key("\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: PeerFingerprint,
    }
}

described! {
    /// What jobs may use up. The operator must decide what has no default.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LimitsConfig {
        /// Epsilon that publishing columns with noise may cost, over all jobs of all data users;
        /// without it nothing is published.
        #[key("2.5")]
        pub epsilon_total: Option<Epsilon>,
        /// Whether the provider refuses jobs that are not private: a private job guarantees an epsilon
        /// and a delta for everything that it reveals of a row. `heda provider setup` writes `true`.
        #[key("true")]
        pub privacy_required: bool = false,
        /// Epsilon that all private jobs of all data users may reach together, for as long as the
        /// ledger lives; without it no private job is served. No step is answered twice, so a job
        /// never costs more than its plan. Decide it before the first job.
        #[key("2")]
        pub privacy_epsilon_total: Option<Epsilon>,
        /// Epsilon that the private jobs of one data user may reach; by default everything, or three
        /// quarters of it if several data users are allowed, so that none of them can take all.
        #[key("1")]
        pub privacy_epsilon_per_user: Option<Epsilon>,
        /// Delta of private jobs; `privacy_epsilon_total` needs it.
        #[key("1e-6")]
        pub privacy_delta: Option<Delta>,
        /// How many other providers a private job may count on for noise; never more than all but one
        /// of the known ones that take part, which is the default. With 0 this provider's own noise
        /// suffices.
        #[key("0")]
        pub privacy_trusted: Option<u32>,
        /// Whether a data user learns, at the end of its job, how large its next private job may be;
        /// this gives it a bound on what other data users have used.
        #[key("false")]
        pub privacy_room_told: bool = true,
        /// Smallest number of rows in an iteration.
        #[key("50")]
        pub rows_per_batch_min: NonZeroU64,
        /// Smallest number of rows that may be held out for evaluation, if any are.
        #[key("20")]
        pub held_out_rows_min: NonZeroU64 = count(20),
        /// Largest number of iterations in a job.
        #[key("100")]
        pub iterations_per_job: NonZeroU64,
        /// Largest number of iterations in a day, over all jobs of all data users; an evaluation
        /// counts as one.
        #[key("1000")]
        pub iterations_per_day: NonZeroU64,
        /// Largest number of evaluations on held-out rows for each model of a job; one that was lost
        /// may be repeated.
        #[key("5")]
        pub evaluations_per_model: NonZeroU64 = count(5),
        /// How many of the other providers in a job must be known ones. Gradients are sums over all
        /// providers: a data user that plays all the others sees the gradients of this one.
        #[key("1")]
        pub known_co_providers_min: u64,
        /// How many numbers a job may learn for each unknown value of this provider's rows.
        #[key("0.2")]
        pub revealed_per_unknown_max: Positive,
        /// How many numbers a data user may learn over all of its jobs for each unknown value of this
        /// provider's rows; by default as many as in one job.
        #[key("0.4")]
        pub revealed_per_unknown_lifetime_max: Option<Positive>,
        /// Whether a data user may train with sets of providers whose difference is one provider,
        /// for example with a provider and later without it: a subtraction then shows that
        /// provider's part.
        #[key("true")]
        pub rosters_may_single_out: bool = false,
        /// Engines that may be used; one that leaks more than `resident` must be named here.
        #[key("[\"resident\"]")]
        pub engines: Vec<Engine> = vec![Engine::default()],
        /// Ways of publishing that may be used; only `laplace` has a proven epsilon for linked rows.
        #[key("[\"laplace\"]")]
        pub mechanisms: Vec<Mechanism> = vec![Mechanism::Laplace],
        /// Largest number of jobs at the same time.
        #[key("4")]
        pub concurrent_jobs: NonZeroU64 = count(4),
        /// Largest number of jobs of one data user at the same time.
        #[key("1")]
        pub concurrent_jobs_per_peer: NonZeroU64 = count(2),
        /// Memory in MiB for messages that jobs have not read yet; each job has an equal part of it.
        #[key("64")]
        pub waiting_megabytes: NonZeroU64 = count(64),
        /// Largest number of connections at the same time whose peer has not proved who it is.
        #[key("256")]
        pub unknown_connections: NonZeroU64 = count(256),
        /// Largest number of jobs and refusals that the ledger keeps beyond those that its budgets
        /// need.
        #[key("10000")]
        pub records_kept: NonZeroU64 = count(10_000),
        /// How often a job may rank the features or ask for sums of columns; it asks again after a
        /// loss of connection.
        #[key("20")]
        pub rankings_per_job: NonZeroU64 = count(20),
        /// Seconds that a data user that broke the protocol must wait; each further breach doubles
        /// them, up to 64 times as many. With 0 it need not wait.
        #[key("5")]
        pub breach_pause_seconds: u32 = 1,
        /// Seconds to wait for an answer of a data user.
        #[key("60")]
        pub answer_seconds: SecondsValue = SecondsValue::of(300),
        /// Seconds that running jobs have to end after a request to stop.
        #[key("30")]
        pub stop_grace_seconds: SecondsValue = SecondsValue::of(60),
    }
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

impl ProviderConfig {
    /// The usual name of the file.
    pub const FILE: &str = "provider.toml";

    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let mut config: Self = read_text(path, Self::FILE, super::FILE_LIMIT)?;
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
