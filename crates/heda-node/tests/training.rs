//! Whole jobs over TLS sockets: houses with ledgers on one side, a data user on the other.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod common;

use common::*;
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
use heda_node::client::state::StateFile;
use heda_node::client::training::{NetworkJob, NetworkJobError, Notice};
use heda_node::client::{Connector, RemoteProvider};
use heda_node::config::{OnLoss, ProviderConfig};
use heda_node::daemon::metrics::Metrics;
use heda_node::house::TrainingHouse;
use heda_node::house::ledger::Ledger;
use heda_node::house::policy::Policy;
use heda_node::house::provider_data::ProviderData;
use heda_node::identity::Identity;
use heda_node::system::clock::{Clock, SystemClock};
use heda_node::system::stop::StopSwitch;
use heda_train::house::OpenHouse;
use heda_train::job::{Choice, JobSpec, Outcome, Quiet};
use heda_train::local::{self, LocalProvider, fresh_job_id};
use heda_train::proposal::{Engine, Ranking, Spending};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SEED: u64 = 5;
const NAMES: [&str; 3] = ["a", "b", "c"];

fn rows_of(place: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/bcwd.csv");
    let all = std::fs::read_to_string(path).unwrap();
    let lines = all.lines().enumerate();
    let chosen = lines.filter(|(n, _)| *n == 0 || n % 3 == place);
    chosen.map(|(_, line)| format!("{line}\n")).collect()
}

fn schema_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/bcwd.natural.toml")
}

struct Hospital {
    folder: tempfile::TempDir,
    identity: Identity,
    user: Identity,
    more_users: Vec<Identity>,
    epsilon_total: &'static str,
    place: usize,
}

impl Hospital {
    fn new(place: usize, user: &Identity) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rows.csv"), rows_of(place)).unwrap();
        Self {
            folder,
            identity: identity(NAMES[place]),
            user: user.clone(),
            more_users: Vec::new(),
            epsilon_total: "1.5",
            place,
        }
    }

    fn config(&self) -> ProviderConfig {
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
             rows_per_batch_min = 50\niterations_per_job = 30\niterations_per_day = 100\n\
             known_co_providers_min = 1\nrevealed_per_unknown_max = 0.5\n",
            schema_path().display(),
            self.user.fingerprint(),
            self.epsilon_total,
        );
        let path = self.folder.path().join("provider.toml");
        std::fs::write(&path, text).unwrap();
        ProviderConfig::load(&path).unwrap()
    }

    fn ledger(&self) -> Ledger {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ledger::open(&self.config().ledger_place(), clock).unwrap()
    }

    fn serve(&self) -> Running {
        let config = self.config();
        let house = TrainingHouse {
            policy: Policy::new(&config),
            data: ProviderData::load(&config).unwrap(),
            ledger: self.ledger(),
            identity: self.identity.signing_key().clone(),
            row_secret: [7; 32].into(),
            randomness: Randomness::seeded(SEED).party(NAMES[self.place]),
            metrics: Arc::new(Metrics::default()),
        };
        let mut peers = vec![pinned("user", &self.user)];
        peers.extend(self.more_users.iter().map(|user| pinned("other", user)));
        let mut setup = Setup::for_peers(peers);
        setup.identity = self.identity.clone();
        setup.start(Arc::new(house))
    }

    fn spent(&self) -> u64 {
        self.ledger().spent_billionths("biopsies").unwrap()
    }
}

fn spec(job: u64) -> JobSpec {
    JobSpec {
        job: fresh_job_id(&Randomness::seeded(job)).unwrap(),
        dataset: "biopsies".into(),
        schema: Arc::new(Bundle::Bcwd.schema(Coding::Natural)),
        positives: vec![1],
        engine: Engine::Resident,
        loss: LossKind::Logistic,
        resolution: Resolution::default(),
        settings: Settings {
            method: Method::Lbfgs { memory: 10 },
            l2: 0.01,
            tolerance: 1e-4,
            max_iterations: 6,
        },
        holdout_permille: 200,
        ranking: Ranking::Agreed {
            method: heda_learn::score::Method::KruskalWallis,
        },
        choice: Choice::Best(5),
        spending: Some(Spending::Total("1".parse().unwrap())),
        privacy: None,
        key_bits: 2048,
    }
}

struct World {
    user: Identity,
    hospitals: Vec<Hospital>,
    out: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let user = identity("user");
        Self {
            hospitals: (0..3).map(|place| Hospital::new(place, &user)).collect(),
            user,
            out: tempfile::tempdir().unwrap(),
        }
    }

    fn job(&self, job: u64, remotes: Vec<RemoteProvider>, patience: Duration) -> NetworkJob {
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

    fn remotes(&self, daemons: &[Running]) -> Vec<RemoteProvider> {
        let remote = |(place, daemon): (usize, &Running)| {
            let mut remote = daemon.remote();
            remote.peer.label = NAMES[place].into();
            remote
        };
        daemons.iter().enumerate().map(remote).collect()
    }

    fn run(&self, job: NetworkJob, out: &str, resume: bool) -> Result<Outcome, NetworkJobError> {
        let folder = self.out.path().join(out);
        let mut state = match resume {
            true => StateFile::resume(&folder, "terms", &[]).unwrap(),
            false => StateFile::begin(&folder, "terms", job.spec.job, &[]).unwrap(),
        };
        let runtime = runtime();
        let (_switch, stop) = StopSwitch::new();
        job.run(runtime.handle(), &mut state, &stop)
    }

    fn spent(&self) -> Vec<u64> {
        self.hospitals.iter().map(Hospital::spent).collect()
    }
}

/// The same job with all parties as threads that share memory.
fn in_process(job: u64) -> Vec<f64> {
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
    let randomness = Randomness::seeded(SEED);
    let provider = |(place, name): (usize, &&str)| {
        let text = rows_of(place);
        let reader = heda_learn::table::TableReader::new(&schema);
        let (rows, _) = reader.read_csv(text.as_bytes(), "rows").unwrap();
        let seed = heda_train::fresh_row_seed(&randomness.party(name)).unwrap();
        let limit = heda_dp::account::Accountant::new("1.5".parse().unwrap());
        LocalProvider {
            name: (*name).to_owned(),
            house: Box::new(OpenHouse::new(
                Arc::new(rows),
                Arc::clone(&schema),
                seed,
                limit,
            )),
        }
    };
    let providers: Vec<_> = NAMES.iter().enumerate().map(provider).collect();
    let run = local::run(&spec(job), &providers, &randomness, &mut Quiet, None, false).unwrap();
    run.outcome.fits[0].beta.clone()
}

#[test]
fn sockets_train_the_same_model_as_memory_and_the_ledger_knows() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let patience = Duration::from_secs(30);
    let job = world.job(1, world.remotes(&daemons), patience);
    let outcome = world.run(job, "one", false).unwrap();
    assert_eq!(outcome.fits[0].beta, in_process(1));
    assert_eq!(world.spent(), [1_000_000_000; 3]);
    drop(daemons);
    for hospital in &world.hospitals {
        let status = hospital.ledger().status("biopsies").unwrap();
        assert_eq!(status.jobs[0].state, "finished");
        assert_eq!(
            status.jobs[0].iterations,
            u64::from(outcome.fits[0].iterations)
        );
        let budget = hospital.ledger().budget("biopsies", "1.5".parse().ok());
        assert!(budget.unwrap().releases[0].sha256.is_some());
    }
}

#[test]
fn a_second_job_beyond_the_budget_is_refused_in_words_and_noted() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let patience = Duration::from_secs(30);
    let first = world.job(1, world.remotes(&daemons), patience);
    world.run(first, "one", false).unwrap();
    let second = world.job(2, world.remotes(&daemons), patience);
    let refused = world.run(second, "two", false).unwrap_err();
    assert!(
        matches!(refused, NetworkJobError::Refused { .. }),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("1 of 1.5 are spent"),
        "{refused}"
    );
    assert_eq!(world.spent(), [1_000_000_000; 3]);
    let status = world
        .hospitals
        .iter()
        .map(|h| h.ledger().status("biopsies").unwrap());
    assert!(status.map(|s| s.refusals.len()).sum::<usize>() >= 1);
}

#[test]
fn a_provider_that_restarts_in_the_middle_changes_nothing() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    // The data user reaches hospital c over a line that can be moved to its next daemon.
    let line = MovableLine::start(daemons[2].address);
    let mut remotes = world.remotes(&daemons);
    remotes[2].address = line.address.to_string();
    let mut job = world.job(1, remotes, Duration::from_secs(60));
    let daemons = Mutex::new(daemons);
    let (send, receive) = std::sync::mpsc::channel();
    let send = Mutex::new(send);
    job.listener = Arc::new(move |notice| {
        if matches!(notice, Notice::Iteration { done: 3, .. }) {
            let _ = send.lock().unwrap().send(());
        }
    });
    std::thread::scope(|scope| {
        let (hospital, line, daemons) = (&world.hospitals[2], &line, &daemons);
        scope.spawn(move || {
            receive.recv().unwrap();
            line.cut();
            let next = hospital.serve();
            line.lead_to(next.address);
            daemons.lock().unwrap().push(next);
            // Nobody listens for the second third iteration, if there is one.
            drop(receive);
        });
        let outcome = world.run(job, "one", false).unwrap();
        assert_eq!(outcome.fits[0].beta, in_process(1));
    });
    assert_eq!(world.spent(), [1_000_000_000; 3]);
}

/// Once gradients have left, the sum over fewer providers would show the part of the lost one. The
/// data user does not ask for it, and one that does is refused, under the job's name or a new one.
#[test]
fn nobody_goes_on_without_a_provider_whose_gradients_have_left() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let line = Arc::new(MovableLine::start(daemons[2].address));
    let mut remotes = world.remotes(&daemons);
    remotes[2].address = line.address.to_string();
    let mut job = world.job(1, remotes.clone(), Duration::from_secs(2));
    let cutter = Arc::clone(&line);
    job.listener = Arc::new(move |notice| {
        if matches!(notice, Notice::Iteration { done: 3, .. }) {
            cutter.cut();
        }
    });
    job.on_loss = OnLoss::Continue;
    let lost = world.run(job, "one", false).unwrap_err();
    assert!(
        matches!(&lost, NetworkJobError::Lost { provider, .. } if provider == "c"),
        "{lost}"
    );
    for (number, out, resume, words) in [
        (1, "one", true, "wait until all of them are back"),
        (2, "two", false, "alone contributes"),
    ] {
        let fewer = world.job(number, remotes[..2].to_vec(), Duration::from_secs(2));
        let refused = world.run(fewer, out, resume).unwrap_err();
        assert!(
            matches!(&refused, NetworkJobError::Refused { stop, .. } if stop.to_string().contains(words)),
            "{refused}"
        );
    }
    // With everyone back the job comes to its end, and nothing was paid twice or for nothing.
    line.lead_to(daemons[2].address);
    let job = world.job(1, remotes, Duration::from_secs(30));
    let outcome = world.run(job, "one", true).unwrap();
    assert_eq!(outcome.fits[0].beta, in_process(1));
    assert_eq!(world.spent(), [1_000_000_000; 3]);
}

#[test]
fn a_line_cut_in_the_middle_of_messages_changes_nothing() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    // In the agreement, in the columns, in symbols and payloads of later iterations.
    let line = Proxy::cut_at(daemons[1].address, &[4_000, 40_000, 150_000, 300_000]);
    let mut remotes = world.remotes(&daemons);
    remotes[1].address = line.address.to_string();
    let mut job = world.job(1, remotes, Duration::from_secs(60));
    let losses = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&losses);
    job.listener = Arc::new(move |notice| {
        if matches!(notice, Notice::Lost { .. } | Notice::Retry { .. }) {
            *counted.lock().unwrap() += 1;
        }
    });
    let outcome = world.run(job, "one", false).unwrap();
    assert_eq!(outcome.fits[0].beta, in_process(1));
    assert!(*losses.lock().unwrap() >= 3, "the line was cut");
    assert_eq!(world.spent(), [1_000_000_000; 3]);
}

#[test]
fn the_others_go_on_when_that_is_wished_and_nothing_has_left() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let line = Arc::new(MovableLine::start(daemons[0].address));
    let mut remotes = world.remotes(&daemons);
    remotes[0].address = line.address.to_string();
    let mut job = world.job(1, remotes, Duration::from_secs(1));
    job.on_loss = OnLoss::Continue;
    let left_behind = Arc::new(Mutex::new(Vec::new()));
    let (noted, cutter) = (Arc::clone(&left_behind), Arc::clone(&line));
    job.listener = Arc::new(move |notice| match notice {
        Notice::Phase("agree") => cutter.cut(),
        Notice::LeftBehind(name) => noted.lock().unwrap().push(name),
        _ => {}
    });
    let outcome = world.run(job, "one", false).unwrap();
    assert_eq!(*left_behind.lock().unwrap(), ["a"]);
    let names: Vec<_> = outcome.providers.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    // The model is another one: the rows of the lost provider do not count.
    assert_ne!(outcome.fits[0].beta, in_process(1));
    assert_eq!(world.spent(), [0, 1_000_000_000, 1_000_000_000]);
}

#[test]
fn two_data_users_train_at_once_without_disturbing_each_other() {
    let mut world = World::new();
    let other = identity("other");
    for hospital in &mut world.hospitals {
        hospital.more_users.push(other.clone());
        hospital.epsilon_total = "2";
    }
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let patience = Duration::from_secs(30);
    let mut theirs = world.job(2, world.remotes(&daemons), patience);
    theirs.connector.identity = other;
    let ours = world.job(1, world.remotes(&daemons), patience);
    let betas = std::thread::scope(|scope| {
        let world = &world;
        let run = |job, out| scope.spawn(move || world.run(job, out, false).unwrap());
        let threads = [run(ours, "one"), run(theirs, "two")];
        threads.map(|thread| thread.join().unwrap().fits[0].beta.clone())
    });
    // As if each were alone: nothing of one job got into the other.
    assert_eq!(betas, [in_process(1), in_process(2)]);
    assert_eq!(world.spent(), [2_000_000_000; 3]);
    for hospital in &world.hospitals {
        let jobs = hospital.ledger().status("biopsies").unwrap().jobs;
        let peers: std::collections::BTreeSet<_> = jobs.iter().map(|job| &job.peer).collect();
        assert_eq!((jobs.len(), peers.len()), (2, 2));
    }
}
