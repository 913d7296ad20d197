//! What the network costs a job, measured on this machine:
//!
//! ```text
//! cargo run --release -p heda-node --example network -- throughput [ROUNDS]
//! cargo run --release -p heda-node --example network -- strangers  [ROUNDS]
//! cargo run --release -p heda-node --example network -- memory     [JOBS]
//! cargo run --release -p heda-node --example network -- wire       [ROUNDS]
//! ```
//!
//! `throughput` runs the same job over channels in memory and over TLS on loopback, in turn;
//! `strangers` over TLS with and without 50 idle connections of strangers; `memory` starts a
//! daemon as a process of its own and looks at its memory while small jobs come and go; `wire`
//! moves messages of a few sizes there and back over TLS, without a job.
#![allow(
    clippy::unwrap_used,
    reason = "a measurement that fails should say where"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Running, Setup, User, identity, pinned, wire_limits};
use heda_blocks::channel::Traffic;
use heda_crypto::random::Randomness;
use heda_dp::account::Accountant;
use heda_job::description::{RawJob, Training};
use heda_job::guard::LocalGuard;
use heda_job::job::{self, JobSpec, Link, Outcome, Quiet};
use heda_job::local::{self, LocalProvider, fresh_job_id};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
use heda_node::config::ProviderConfig;
use heda_node::daemon::metrics::Metrics;
use heda_node::guard::ProviderService;
use heda_node::guard::ledger::Ledger;
use heda_node::guard::policy::Policy;
use heda_node::guard::provider_data::ProviderData;
use heda_node::identity::Identity;
use heda_node::system::clock::SystemClock;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SEED: u64 = 3;
const NAME: &str = "provider";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |default| words.get(1).map_or(default, |word| word.parse().unwrap());
    match words.first().map(String::as_str) {
        Some("throughput") => throughput(number(5)),
        Some("strangers") => strangers(number(5)),
        Some("memory") => memory(number(100)),
        Some("wire") => wire(number(5)),
        // The other half of `memory`.
        Some("serve") => serve(Path::new(&words[1])),
        _ => eprintln!("throughput, strangers, memory or wire; see the head of this file"),
    }
}

/// A data set, a job on it and one provider's files.
struct Bench {
    bundle: Bundle,
    iterations: u32,
    folder: tempfile::TempDir,
    user: Identity,
    provider: Identity,
}

impl Bench {
    fn new(bundle: Bundle, iterations: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = Vec::new();
        bundle.csv().read_to_end(&mut rows).unwrap();
        std::fs::write(folder.path().join("rows.csv"), rows).unwrap();
        let schema = bundle.schema_text(Coding::Paper);
        std::fs::write(folder.path().join("schema.toml"), schema).unwrap();
        let bench = Self {
            bundle,
            iterations,
            user: identity("user"),
            provider: identity(NAME),
            folder,
        };
        let place = bench.folder.path().join("identity");
        bench.provider.store(NAME, &place).unwrap();
        std::fs::create_dir(bench.folder.path().join("store")).unwrap();
        bench
    }

    fn config_path(&self) -> PathBuf {
        let text = format!(
            "identity = \"identity\"\ndata_set = \"rows\"\ndata = \"rows.csv\"\n\
             schema = \"schema.toml\"\nlisten = \"127.0.0.1:0\"\nstore = \"store\"\n[[allow]]\n\
             name = \"user\"\nfingerprint = \"{}\"\n[limits]\nrows_per_batch_min = 50\n\
             iterations_per_job = 1000\niterations_per_day = 100000\n\
             known_co_providers_min = 0\nrevealed_per_unknown_max = 0.5\n\
             revealed_per_unknown_lifetime_max = 100\n",
            self.user.fingerprint()
        );
        let path = self.folder.path().join("provider.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn daemon(&self) -> Running {
        let config = ProviderConfig::load(&self.config_path()).unwrap();
        let guard = ProviderService {
            policy: Policy::new(&config),
            config: config.path.clone(),
            data: ProviderData::load(&config).unwrap(),
            ledger: Ledger::open(&config.ledger_place(), Arc::new(SystemClock)).unwrap(),
            identity: self.provider.signing_key().clone(),
            row_secret: [7; 32].into(),
            randomness: Randomness::seeded(SEED).party(NAME),
            metrics: Arc::new(Metrics::default()),
        };
        let mut setup = Setup::for_peers(vec![pinned("user", &self.user)]);
        setup.identity = self.provider.clone();
        setup.sessions.wire = heda_node::wire::WireLimits::default();
        setup.start(Arc::new(guard))
    }

    fn spec(&self, job: u64) -> JobSpec {
        let schema = Arc::new(self.bundle.schema(Coding::Paper));
        let raw = RawJob {
            training: Training {
                settings: Settings {
                    method: Method::Lbfgs { memory: 10 },
                    c: Some(1.0),
                    tolerance: 0.0,
                    max_iterations: self.iterations,
                },
                resolution: Resolution::default(),
                ..Training::usual(&schema)
            },

            ..RawJob::new("rows", &schema)
        };
        let id = fresh_job_id(&Randomness::seeded(job)).unwrap();
        JobSpec::new(id, raw.try_into().unwrap(), schema)
    }

    fn in_memory(&self, job: u64) -> Measured {
        let schema = Arc::new(self.bundle.schema(Coding::Paper));
        let (rows, _) = self.bundle.table(Coding::Paper).unwrap();
        let randomness = Randomness::seeded(SEED);
        let seed = heda_job::RowSeed::fresh(&randomness.party(NAME)).unwrap();
        let accountant = Accountant::new("1".parse().unwrap());
        let guard = LocalGuard::new(Arc::new(rows), schema, seed, accountant);
        let providers = [LocalProvider {
            name: NAME.into(),
            guard: Box::new(guard),
        }];
        let spec = self.spec(job);
        let began = (Instant::now(), processor_time());
        let run = local::run(&spec, &providers, &randomness, &mut Quiet, None, false).unwrap();
        Measured::new(began, run.outcome)
    }

    fn over_tls(
        &self,
        user: &User,
        daemon: &heda_node::client::RemoteProvider,
        job: u64,
    ) -> Measured {
        let spec = self.spec(job);
        let began = (Instant::now(), processor_time());
        let opened = user.runtime.block_on(user.connector.open(daemon)).unwrap();
        let link = Link {
            name: NAME.into(),
            identity: opened.identity,
            channel: heda_blocks::channel::Channel::new(Box::new(opened.wire)),
        };
        let randomness = Randomness::seeded(SEED).party("user");
        let outcome = job::run(&spec, vec![link], &randomness, &mut Quiet, None).unwrap();
        Measured::new(began, outcome)
    }

    fn data_user(&self) -> User {
        let mut user = User::new(self.user.clone());
        user.connector.limits = heda_node::wire::WireLimits {
            inbox_bytes: heda_node::wire::WireLimits::default().inbox_bytes,
            ..wire_limits(Duration::from_secs(600))
        };
        user
    }
}

/// One run.
struct Measured {
    total: Duration,
    processor: Duration,
    training: Duration,
    traffic: Traffic,
    beta: Vec<f64>,
}

impl Measured {
    fn new(began: (Instant, Duration), outcome: Outcome) -> Self {
        let phases = outcome.phases.iter();
        let mut traffic = Traffic::default();
        let parts = outcome.providers[0].traffic.values();
        parts.for_each(|part| traffic += *part);
        Self {
            total: began.0.elapsed(),
            processor: processor_time().saturating_sub(began.1),
            training: phases
                .filter(|phase| phase.phase == "train")
                .map(|phase| phase.took)
                .sum(),
            traffic,
            beta: outcome.fits[0].beta.clone(),
        }
    }

    fn megabytes(&self) -> f64 {
        (self.traffic.bytes_sent + self.traffic.bytes_received) as f64 / 1e6
    }
}

/// The middle of some durations, in seconds.
fn median(runs: &[Measured], of: impl Fn(&Measured) -> Duration) -> f64 {
    let mut seconds: Vec<f64> = runs.iter().map(|run| of(run).as_secs_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// What all threads of this process have computed so far; other programs do not count.
fn processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = status.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|f| f.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(10 * ticks)
}

/// Prints the medians and returns those of job, training and processor.
fn line(name: &str, runs: &[Measured]) -> [f64; 3] {
    let medians = [
        median(runs, |r| r.total),
        median(runs, |r| r.training),
        median(runs, |r| r.processor),
    ];
    let [total, training, processor] = medians;
    let megabytes = runs[0].megabytes();
    let rate = megabytes / total;
    println!(
        "| {name} | {total:.3} | {training:.3} | {processor:.2} | {megabytes:.1} | {rate:.0} |"
    );
    medians
}

fn heading(first: &str) {
    println!("| {first} | job, s | training, s | processor, s | MB | MB/s |");
    println!("| --- | --- | --- | --- | --- | --- |");
}

/// The same job over memory and over TLS, in turn.
fn throughput(rounds: u64) {
    let bench = Bench::new(Bundle::Adult, 10);
    let daemon = bench.daemon();
    let (user, remote) = (bench.data_user(), daemon.remote());
    let (mut memory, mut tls) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        memory.push(bench.in_memory(round));
        tls.push(bench.over_tls(&user, &remote, round));
        assert_eq!(memory.last().unwrap().beta, tls.last().unwrap().beta);
    }
    println!("Adult, all features encrypted, 10 iterations, median of {rounds}, same model\n");
    heading("channel");
    let memory = line("memory", &memory);
    let tls = line("TLS on loopback", &tls);
    println!(
        "\nthroughput over TLS / in memory: {:.2} of the job, {:.2} of its training, {:.2} by \
         processor time",
        memory[0] / tls[0],
        memory[1] / tls[1],
        memory[2] / tls[2]
    );
}

/// The same job with and without strangers at the door, in turn.
fn strangers(rounds: u64) {
    let bench = Bench::new(Bundle::Adult, 10);
    let daemon = bench.daemon();
    let (user, remote) = (bench.data_user(), daemon.remote());
    let (mut alone, mut crowded) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        alone.push(bench.over_tls(&user, &remote, 2 * round));
        // New ones in every round: the daemon ends them after its patience.
        let idle: Vec<_> = (0..50)
            .map(|_| TcpStream::connect(daemon.address).unwrap())
            .collect();
        crowded.push(bench.over_tls(&user, &remote, 2 * round + 1));
        drop(idle);
    }
    println!("Adult over TLS, 10 iterations, median of {rounds}\n");
    heading("at the door");
    let alone = line("nobody", &alone);
    let crowded = line("50 idle strangers", &crowded);
    println!(
        "\nwith strangers / without: {:.3} of the time, {:.3} of the processor time",
        crowded[0] / alone[0],
        crowded[2] / alone[2]
    );
}

/// Small jobs, one after the other, at a daemon in a process of its own.
fn memory(jobs: u64) {
    let bench = Bench::new(Bundle::Bcwd, 5);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("serve")
        .arg(bench.config_path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut address).unwrap();
    let remote = heda_node::client::RemoteProvider {
        address: address.trim().to_owned(),
        peer: pinned(NAME, &bench.provider),
    };
    let user = bench.data_user();
    println!("BCWD, 5 iterations, one daemon\n");
    println!("| jobs done | resident memory, MB | threads |\n| --- | --- | --- |");
    let steps = [1, 10, 20, 50];
    for done in 1..=jobs {
        bench.over_tls(&user, &remote, done);
        if steps.contains(&done) || done % 50 == 0 || done == jobs {
            let (resident, threads) = vital_signs(child.id());
            println!("| {done} | {resident:.1} | {threads} |");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Messages of one length, there and back, as many as make this many bytes each way.
const WIRE_BYTES: usize = 256 << 20;

/// Echoes of messages of a few lengths over TLS on loopback: medians of some rounds.
fn wire(rounds: u64) {
    let user = identity("user");
    let daemon = Setup::for_peers(vec![pinned("user", &user)]).start(Arc::new(common::Echo));
    let user = User::new(user);
    println!("echo over TLS on loopback, both ends in one process, median of {rounds}\n");
    println!("| message | messages | MB each way | s | MB/s, both ways | processor, s |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, bytes) in [("100 B", 100), ("64 kB", 64_000), ("4 MB", 4_000_000)] {
        let messages = (WIRE_BYTES / bytes).min(20_000);
        let message = vec![7; bytes];
        let mut runs: Vec<(f64, f64)> = (0..rounds)
            .map(|_| {
                let mut channel = user.open(&daemon.remote()).unwrap();
                let began = (Instant::now(), processor_time());
                for _ in 0..messages {
                    channel.send(common::ECHO, &message).unwrap();
                    let back = channel.receive(common::ECHO, common::LIMIT).unwrap();
                    assert_eq!(back.len(), bytes);
                    channel.recycle(back);
                }
                let processor = processor_time().saturating_sub(began.1);
                let took = began.0.elapsed().as_secs_f64();
                common::echo(&mut channel, b"").unwrap();
                (took, processor.as_secs_f64())
            })
            .collect();
        let mut middle = |of: fn(&(f64, f64)) -> f64| {
            runs.sort_by(|a, b| of(a).total_cmp(&of(b)));
            of(&runs[runs.len() / 2])
        };
        let (took, processor) = (middle(|run| run.0), middle(|run| run.1));
        let megabytes = (messages * bytes) as f64 / 1e6;
        let rate = 2.0 * megabytes / took;
        println!(
            "| {name} | {messages} | {megabytes:.0} | {took:.2} | {rate:.0} | {processor:.2} |"
        );
    }
    let (resident, _) = vital_signs(std::process::id());
    println!("\nresident memory after it: {resident:.0} MB");
}

/// Resident megabytes and threads of a process.
fn vital_signs(process: u32) -> (f64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.unwrap().split_whitespace().next();
        word.unwrap().parse().unwrap()
    };
    (field("VmRSS:") as f64 / 1e3, field("Threads:"))
}

fn serve(config: &Path) {
    let config = ProviderConfig::load(config).unwrap();
    heda_node::daemon::serve::serve(&config, |address| println!("{address}")).unwrap();
}
