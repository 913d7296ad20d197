//! Three hospitals with guards and ledgers, and a data user, over TLS on loopback.
#![allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "every test file uses a part of these helpers"
)]

use crate::common::*;
use heda_crypto::random::Randomness;
use heda_job::description::{Protected, RawJob, Training};
use heda_job::guard::LocalGuard;
use heda_job::job::{JobSpec, Outcome, Quiet};
use heda_job::local::{self, LocalProvider, fresh_job_id};
use heda_job::proposal::Spending;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
use heda_node::client::state::StateFile;
use heda_node::client::training::{NetworkJob, NetworkJobError};
use heda_node::client::{Connector, RemoteProvider};
use heda_node::config::{OnLoss, ProviderConfig};
use heda_node::daemon::metrics::Metrics;
use heda_node::guard::ProviderService;
use heda_node::guard::ledger::Ledger;
use heda_node::identity::Identity;
use heda_node::system::clock::{Clock, SystemClock};
use heda_node::system::stop::{StopSignal, StopSwitch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub const SEED: u64 = 5;
pub const NAMES: [&str; 3] = ["a", "b", "c"];

pub fn rows_of(place: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/bcwd.csv");
    let all = std::fs::read_to_string(path).unwrap();
    let lines = all.lines().enumerate();
    let chosen = lines.filter(|(n, _)| *n == 0 || n % 3 == place);
    chosen.map(|(_, line)| format!("{line}\n")).collect()
}

pub fn schema_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/bcwd.natural.toml")
}

pub struct Hospital {
    pub folder: tempfile::TempDir,
    pub identity: Identity,
    pub user: Identity,
    pub more_users: Vec<Identity>,
    pub epsilon_total: &'static str,
    /// Further lines under `[limits]`.
    pub limits: String,
    pub iterations_per_day: u64,
    pub iterations_per_job: u64,
    /// Sessions at once.
    pub sessions: usize,
    pub place: usize,
    /// What its guard shows.
    pub metrics: Arc<Metrics>,
}

impl Hospital {
    pub fn new(place: usize, user: &Identity) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rows.csv"), rows_of(place)).unwrap();
        Self {
            folder,
            limits: String::new(),
            iterations_per_day: 100,
            iterations_per_job: 30,
            sessions: 8,
            identity: identity(NAMES[place]),
            user: user.clone(),
            more_users: Vec::new(),
            epsilon_total: "1.5",
            place,
            metrics: Arc::default(),
        }
    }

    pub fn config(&self) -> ProviderConfig {
        let others = (0..3).filter(|other| *other != self.place);
        let known: String = others
            .map(|other| {
                let print = identity(NAMES[other]).fingerprint();
                format!("[[known_provider]]\nname = \"{other}\"\nfingerprint = \"{print}\"\n")
            })
            .collect();
        let more: String = self
            .more_users
            .iter()
            .enumerate()
            .map(|(number, user)| {
                let print = user.fingerprint();
                format!("[[allow]]\nname = \"user-{number}\"\nfingerprint = \"{print}\"\n")
            })
            .collect();
        let text = format!(
            "identity = \"identity\"\ndata_set = \"biopsies\"\ndata = \"rows.csv\"\n\
             schema = \"{}\"\nlisten = \"127.0.0.1:0\"\nstore = \".\"\n[[allow]]\n\
             name = \"user\"\nfingerprint = \"{}\"\n{more}{known}[limits]\nepsilon_total = {}\n\
             rows_per_batch_min = 50\niterations_per_job = {}\niterations_per_day = {}\n\
             known_co_providers_min = 1\nrevealed_per_unknown_max = 0.5\n{}\n",
            schema_path().display(),
            self.user.fingerprint(),
            self.epsilon_total,
            self.iterations_per_job,
            self.iterations_per_day,
            self.limits,
        );
        let path = self.folder.path().join("provider.toml");
        std::fs::write(&path, text).unwrap();
        ProviderConfig::load(&path).unwrap()
    }

    pub fn ledger(&self) -> Ledger {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ledger::open(&self.config().ledger_place(), clock).unwrap()
    }

    pub fn serve(&self) -> Running {
        let config = self.config();
        let randomness = Randomness::seeded(SEED).party(NAMES[self.place]);
        let guard = ProviderService {
            metrics: Arc::clone(&self.metrics),
            ..guard(&config, &self.identity, self.ledger(), randomness)
        };
        let mut peers = vec![pinned("user", &self.user)];
        peers.extend(self.more_users.iter().map(|user| pinned("other", user)));
        let mut setup = Setup::for_peers(peers);
        setup.identity = self.identity.clone();
        setup.sessions.sessions = self.sessions;
        setup.sessions.sessions_per_peer = self.sessions / 2;
        setup.start(Arc::new(guard))
    }

    pub fn spent(&self) -> u64 {
        self.ledger().spent_billionths("biopsies").unwrap()
    }
}

pub fn spec(job: u64) -> JobSpec {
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
    let raw = RawJob {
        training: Training {
            settings: Settings {
                method: Method::Lbfgs { memory: 10 },
                c: Some(1.0),
                tolerance: 1e-4,
                max_iterations: 6,
            },
            resolution: Resolution::default(),
            ..Training::usual(&schema)
        },
        protected: Protected::Best(5),
        spending: Some(Spending::Total("1".parse().unwrap())),
        ..RawJob::new("biopsies", &schema)
    };
    let id = fresh_job_id(&Randomness::seeded(job)).unwrap();
    JobSpec::new(id, raw.try_into().unwrap(), schema)
}

pub struct World {
    pub user: Identity,
    pub hospitals: Vec<Hospital>,
    pub out: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let user = identity("user");
        Self {
            hospitals: (0..3).map(|place| Hospital::new(place, &user)).collect(),
            user,
            out: tempfile::tempdir().unwrap(),
        }
    }

    pub fn job(&self, job: u64, remotes: Vec<RemoteProvider>, patience: Duration) -> NetworkJob {
        NetworkJob {
            spec: spec(job),
            providers: remotes,
            connector: Connector {
                identity: self.user.clone(),
                clock: Arc::new(SystemClock),
                limits: wire_limits(Duration::from_secs(60)),
                connect_patience: Duration::from_secs(20),
            },
            randomness: Randomness::seeded(SEED).party("user"),
            on_loss: OnLoss::Wait,
            loss_patience: patience,
            listener: Arc::new(|_| {}),
        }
    }

    pub fn remotes(&self, daemons: &[Running]) -> Vec<RemoteProvider> {
        let remote = |(place, daemon): (usize, &Running)| {
            let mut remote = daemon.remote();
            remote.peer.label = NAMES[place].into();
            remote
        };
        daemons.iter().enumerate().map(remote).collect()
    }

    pub fn run(
        &self,
        job: NetworkJob,
        out: &str,
        resume: bool,
    ) -> Result<Outcome, NetworkJobError> {
        let folder = self.out.path().join(out);
        let mut state = match resume {
            true => StateFile::resume(&folder, "terms", &[]).unwrap(),
            false => StateFile::begin(&folder, "terms", job.spec.id, &[]).unwrap(),
        };
        let runtime = runtime();
        let (_switch, stop) = StopSwitch::new();
        job.run(runtime.handle(), &mut state, &stop)
    }

    /// Begins a job that may be stopped.
    pub fn run_until(
        &self,
        job: NetworkJob,
        out: &str,
        stop: &StopSignal,
    ) -> Result<Outcome, NetworkJobError> {
        let folder = self.out.path().join(out);
        let mut state = StateFile::begin(&folder, "terms", job.spec.id, &[]).unwrap();
        job.run(runtime().handle(), &mut state, stop)
    }

    pub fn spent(&self) -> Vec<u64> {
        self.hospitals.iter().map(Hospital::spent).collect()
    }
}

/// The same job with all parties as threads that share memory.
pub fn in_process(job: u64) -> Vec<f64> {
    in_process_as(&spec(job))
}

/// The same for any job.
pub fn in_process_as(spec: &JobSpec) -> Vec<f64> {
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
    let randomness = Randomness::seeded(SEED);
    let provider = |(place, name): (usize, &&str)| {
        let text = rows_of(place);
        let reader = heda_learn::table::TableReader::new(&schema);
        let (rows, _) = reader.read_csv(text.as_bytes(), "rows").unwrap();
        let seed = heda_job::RowSeed::fresh(&randomness.party(name)).unwrap();
        let limit = heda_dp::account::Accountant::new("1.5".parse().unwrap());
        LocalProvider {
            name: (*name).to_owned(),
            guard: Box::new(LocalGuard::new(
                Arc::new(rows),
                Arc::clone(&schema),
                seed,
                limit,
            )),
        }
    };
    let providers: Vec<_> = NAMES.iter().enumerate().map(provider).collect();
    let run = local::run(spec, &providers, &randomness, &mut Quiet, None, false).unwrap();
    run.outcome.fits[0].beta.clone()
}
