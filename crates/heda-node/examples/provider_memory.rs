//! What memory a provider needs for many rows, measured on this machine:
//!
//! ```text
//! cargo run -p heda-node --example provider_memory -- [ROWS [COLUMNS [private]]]
//! ```
//!
//! A daemon in a process of its own holds ROWS rows of COLUMNS numbers (200,000 of 30) and serves a job of six
//! gradients, exact or private. Its resident memory is looked at before the job and after every gradient.
#![allow(
    clippy::unwrap_used,
    reason = "a measurement that fails should say where"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{User, identity, pinned, wire_limits};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_job::description::{RawJob, Training};
use heda_job::job::{self, Checkpoint, JobSpec, Link, NotKept, Observer, Progress};
use heda_job::local::fresh_job_id;
use heda_job::proposal::Privacy;
use heda_learn::optimise::Settings;
use heda_learn::schema::Schema;
use heda_node::client::RemoteProvider;
use heda_node::config::ProviderConfig;
use heda_node::identity::Identity;
use heda_node::wire::WireLimits;
use rand_core::Rng;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "provider";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, config] = &words[..]
        && first == "serve"
    {
        return serve(Path::new(config));
    }
    let number = |place: usize, default| words.get(place).map_or(default, |w| w.parse().unwrap());
    let (rows, columns) = (number(0, 200_000), number(1, 30));
    let private = words.get(2).is_some_and(|word| word == "private");
    measure(rows, columns, private);
}

/// The daemon, as the program runs it.
fn serve(config: &Path) {
    heda_node::system::memory::keep_freed_memory();
    let config = ProviderConfig::load(config).unwrap();
    heda_node::daemon::serve::serve(&config, |address| println!("{address}")).unwrap();
}

fn schema(columns: usize) -> Schema {
    let mut text = "format = 1\nname = \"rows\"\n[label]\ncolumn = \"y\"\n\
                    classes = [\"no\", \"yes\"]\npositive = \"yes\"\n"
        .to_owned();
    for column in 0..columns {
        write!(
            text,
            "[[column]]\nname = \"x{column}\"\nkind = \"numeric\"\nbounds = [0, 1]\n\
             typical = {{ mean = 0.5, deviation = 0.29 }}\n"
        )
        .unwrap();
    }
    Schema::parse(&text, "schema.toml").unwrap()
}

/// Rows that are drawn from a seed; the sum of the columns decides the class.
fn csv(rows: usize, columns: usize) -> String {
    let mut rng = Randomness::seeded(1).fork("rows", 0).unwrap();
    let names: Vec<String> = (0..columns).map(|column| format!("x{column}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for _ in 0..rows {
        let mut sum = 0;
        for _ in 0..columns {
            let value = rng.next_u32() % 1000;
            sum += value as usize;
            write!(text, "0.{value:03},").unwrap();
        }
        let label = if sum > 500 * columns { "yes" } else { "no" };
        writeln!(text, "{label}").unwrap();
    }
    text
}

fn config(folder: &Path, user: &Identity) -> PathBuf {
    let text = format!(
        "identity = \"identity\"\ndata_set = \"rows\"\ndata = \"rows.csv\"\n\
         schema = \"schema.toml\"\nlisten = \"127.0.0.1:0\"\nstore = \"store\"\n[[allow]]\n\
         name = \"user\"\nfingerprint = \"{}\"\n[limits]\nrows_per_batch_min = 50\n\
         iterations_per_job = 1000\niterations_per_day = 100000\nknown_co_providers_min = 0\n\
         revealed_per_unknown_max = 0.5\nrevealed_per_unknown_lifetime_max = 100\n\
         privacy_epsilon_total = 2\nprivacy_delta = 1e-6\n",
        user.fingerprint()
    );
    let path = folder.join("provider.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn spec(rows: usize, columns: usize, private: bool) -> JobSpec {
    let schema = Arc::new(schema(columns));
    let promise = Privacy::new("1".parse().unwrap(), "1e-6".parse().unwrap(), rows as u64);
    let raw = RawJob {
        privacy: private.then(|| promise.suited(&schema)),
        training: Training {
            settings: Settings {
                max_iterations: 6,
                ..Settings::lbfgs()
            },
            ..Training::usual(&schema)
        },
        ..RawJob::new("rows", &schema)
    };
    let id = fresh_job_id(&Randomness::seeded(5)).unwrap();
    JobSpec::new(id, raw.try_into().unwrap(), schema)
}

/// Looks at the daemon after every gradient.
struct Watch {
    daemon: u32,
    most: f64,
}

impl Observer for Watch {
    fn progress(&mut self, progress: Progress) {
        if matches!(progress, Progress::Iteration { .. }) {
            self.most = self.most.max(mebibytes(self.daemon, "VmRSS:"));
        }
    }

    fn checkpoint(&mut self, _: &Checkpoint) -> Result<bool, NotKept> {
        Ok(true)
    }
}

fn mebibytes(process: u32, what: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kibibytes = line.unwrap().split_whitespace().next();
    kibibytes.unwrap().parse::<f64>().unwrap() / 1024.0
}

fn start(config: &Path) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("serve")
        .arg(config)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut address).unwrap();
    (child, address.trim().to_owned())
}

fn measure(rows: usize, columns: usize, private: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (own, provider) = (identity("user"), identity(NAME));
    std::fs::write(folder.path().join("rows.csv"), csv(rows, columns)).unwrap();
    std::fs::write(folder.path().join("schema.toml"), schema(columns).to_toml()).unwrap();
    provider
        .store(NAME, &folder.path().join("identity"))
        .unwrap();
    std::fs::create_dir(folder.path().join("store")).unwrap();
    let (mut child, address) = start(&config(folder.path(), &own));
    let before = mebibytes(child.id(), "VmRSS:");
    let mut user = User::new(own);
    user.connector.limits = WireLimits {
        inbox_bytes: WireLimits::default().inbox_bytes,
        ..wire_limits(Duration::from_secs(600))
    };
    let remote = RemoteProvider {
        address,
        peer: pinned(NAME, &provider),
    };
    let opened = user.runtime.block_on(user.connector.open(&remote)).unwrap();
    let link = Link {
        name: NAME.into(),
        identity: opened.identity,
        channel: Channel::new(Box::new(opened.wire)),
    };
    let mut watch = Watch {
        daemon: child.id(),
        most: 0.0,
    };
    let spec = spec(rows, columns, private);
    let outcome = job::run(&spec, vec![link], &Randomness::from_os(), &mut watch, None);
    let most = mebibytes(child.id(), "VmHWM:");
    child.kill().unwrap();
    child.wait().unwrap();
    let job = if private { "private" } else { "exact" };
    println!(
        "{rows} rows of {columns} columns, {job} job of {} gradients: resident MiB of the provider: {before:.0} \
         before it, at most {:.0} in training, {most:.0} at the highest",
        outcome.unwrap().fits[0].iterations,
        watch.most
    );
}
