//! Providers and a data user as processes on this machine, with public data and seeds: whatever
//! happens to them, every finished job must give the same model.

use crate::chance::Chance;
use crate::ports::free_port;
use crate::tally::Trouble;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// North and south take part in jobs; what happens to `apart` must not matter to them.
pub(crate) const PROVIDERS: [&str; 3] = ["north", "south", "apart"];
/// A data user that is allowed in and has nothing good in mind.
pub(crate) const RIVAL: &str = "rival";
/// Whoever breaks the protocol may do so again at once: there is much to be tried.
const NO_PAUSE: &str = "breach_pause_seconds = 0";
const ROWS: &str = include_str!("../../../datasets/bcwd.csv");
const SCHEMA: &str = include_str!("../../../datasets/bcwd.natural.toml");
/// No job takes longer, whatever happens to it.
const PATIENCE: Duration = Duration::from_secs(240);

/// Everything that a storm goes over.
pub(crate) struct World {
    folder: tempfile::TempDir,
    heda: PathBuf,
    ports: Vec<u16>,
    prints: Vec<String>,
    logs: Cell<u32>,
    /// What was said in trainings, by the seed of the job.
    trainings: RefCell<Vec<(u64, PathBuf)>>,
}

/// Variables of the environment for one process.
pub(crate) type Environment<'a> = &'a [(&'a str, String)];

impl World {
    pub(crate) fn new(heda: &Path) -> Result<Self, Trouble> {
        let mut world = Self {
            folder: tempfile::tempdir()?,
            heda: heda.to_owned(),
            ports: Vec::new(),
            prints: Vec::new(),
            logs: Cell::new(0),
            trainings: RefCell::default(),
        };
        std::fs::create_dir(world.path("logs"))?;
        let users = [world.identity("university")?, world.identity(RIVAL)?];
        std::fs::write(world.path("university/schema.toml"), SCHEMA)?;
        for (place, name) in PROVIDERS.iter().enumerate() {
            let print = world.identity(name)?;
            world.prints.push(print);
            world.ports.push(free_port()?);
            world.provide(place, name, &users)?;
        }
        Ok(world)
    }

    /// The engines of the program: `heda-repro` has one more.
    fn engines(&self) -> &'static [&'static str] {
        match self
            .heda
            .file_stem()
            .is_some_and(|name| name == "heda-repro")
        {
            true => &["resident", "paper"],
            false => &["resident"],
        }
    }

    /// An engine for a job.
    pub(crate) fn some_engine(&self, chance: &mut Chance) -> &'static str {
        chance.of::<&str>(self.engines())
    }

    fn identity(&self, name: &str) -> Result<String, Trouble> {
        let out = format!("{name}/identity");
        let made = self.run(&["init", "--name", name, "--out", &out])?;
        Ok(made.trim().to_owned())
    }

    fn provide(&self, place: usize, name: &str, users: &[String; 2]) -> Result<(), Trouble> {
        let lines = ROWS.lines().enumerate();
        let rows: String = lines
            .filter(|(number, _)| *number == 0 || number % PROVIDERS.len() == place)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        let config = format!(
            "identity = \"identity\"\ndata_set = \"biopsies\"\ndata = \"rows.csv\"\n\
             schema = \"schema.toml\"\nlisten = \"127.0.0.1:{}\"\nstore = \"store\"\n\
             [[allow]]\nname = \"university\"\nfingerprint = \"{}\"\n\
             [[allow]]\nname = \"{RIVAL}\"\nfingerprint = \"{}\"\n\
             [limits]\nepsilon_total = 1000\n\
             privacy_epsilon_total = 1000\nprivacy_delta = 1e-5\nrows_per_batch_min = 50\n\
             iterations_per_job = 100000\niterations_per_day = 10000000\n\
             evaluations_per_model = 100000\nrankings_per_job = 100000\n\
             known_co_providers_min = 0\nrevealed_per_unknown_max = 100000\n\
             revealed_per_unknown_lifetime_max = 1000000\nrosters_may_single_out = true\n\
             engines = {:?}\nconcurrent_jobs_per_peer = 4\n\
             answer_seconds = 20\nstop_grace_seconds = 20\n{NO_PAUSE}\n\
             [reproducible]\nseed = 5\nparty = \"{name}\"\n",
            self.ports[place],
            users[0],
            users[1],
            self.engines()
        );
        std::fs::write(self.path(&format!("{name}/rows.csv")), rows)?;
        std::fs::write(self.path(&format!("{name}/schema.toml")), SCHEMA)?;
        Ok(std::fs::write(
            self.path(&format!("{name}/provider.toml")),
            config,
        )?)
    }

    /// From now on whoever breaks the protocol waits as long as it does by default. For daemons that
    /// are started after this.
    pub(crate) fn pause_after_breaches(&self) -> Result<(), Trouble> {
        for name in PROVIDERS {
            let path = self.path(&format!("{name}/provider.toml"));
            let config = std::fs::read_to_string(&path)?;
            std::fs::write(&path, config.replace(NO_PAUSE, ""))?;
        }
        Ok(())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn port(&self, place: usize) -> u16 {
        self.ports[place]
    }

    fn command(&self, environment: Environment<'_>) -> Result<(Command, PathBuf), Trouble> {
        let number = self.logs.get();
        self.logs.set(number + 1);
        let log = self.path(&format!("logs/{number}"));
        let mut command = Command::new(&self.heda);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log)?);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.folder.path());
        Ok((command, log))
    }

    /// Output of a command that succeeds.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String, Trouble> {
        let (mut command, log) = self.command(&[])?;
        let output = command.args(arguments).stdout(Stdio::piped()).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(Trouble::new(format!(
                "heda {}: {}",
                arguments.join(" "),
                std::fs::read_to_string(log)?.trim()
            ))),
        }
    }

    /// A daemon, when it listens; nothing if it ended before.
    pub(crate) fn serve(
        &self,
        place: usize,
        environment: Environment<'_>,
    ) -> Result<Option<Daemon>, Trouble> {
        let config = format!("{}/provider.toml", PROVIDERS[place]);
        let (mut command, _) = self.command(environment)?;
        command.args(["provider", "serve", "--config", &config]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let daemon = Daemon(child);
        Ok(line.starts_with("listening on ").then_some(daemon))
    }

    /// A daemon that has to come up.
    pub(crate) fn serve_well(&self, place: usize) -> Result<Daemon, Trouble> {
        let served = self.serve(place, &[])?;
        served.ok_or_else(|| {
            let log = self.path(&format!("logs/{}", self.logs.get() - 1));
            let words = std::fs::read_to_string(log).unwrap_or_default();
            Trouble::new(format!("{} does not serve: {words}", PROVIDERS[place]))
        })
    }

    /// Writes a job with these providers, at these ports.
    pub(crate) fn write_job(&self, job: &Job<'_>) -> Result<(), Trouble> {
        let mut text = format!(
            "identity = \"identity\"\nschema = \"schema.toml\"\ndata_set = \"biopsies\"\n\
             seed = {}\n{}\n[timeouts]\nconnect_seconds = 5\nanswer_seconds = 20\n\
             loss_seconds = {}\n",
            job.seed, job.terms, job.loss_seconds
        );
        for (place, port) in job.providers {
            text += &format!(
                "[[provider]]\nname = \"{}\"\naddress = \"127.0.0.1:{port}\"\nfingerprint = \"{}\"\n",
                PROVIDERS[*place], self.prints[*place]
            );
        }
        let path = self.path(&format!("university/job-{}.toml", job.seed));
        Ok(std::fs::write(path, text)?)
    }

    /// Begins a job, or goes on with it.
    pub(crate) fn train(&self, seed: u64, environment: Environment<'_>) -> Result<Run, Trouble> {
        let (job, out) = (format!("university/job-{seed}.toml"), out(seed));
        let (mut command, log) = self.command(environment)?;
        command.args(["train", &job, "--out", &out]);
        if self.path(&out).join("checkpoint.json").exists() {
            command.arg("--resume");
        }
        self.trainings.borrow_mut().push((seed, log.clone()));
        let child = command.spawn()?;
        Ok(Run {
            child,
            log,
            began: Instant::now(),
        })
    }

    /// Whether a job has left all that it leaves: whoever began it again would begin another one.
    pub(crate) fn is_done(&self, seed: u64) -> bool {
        let there = |file: &str| self.path(&out(seed)).join(file).exists();
        there("report.html") && !there("checkpoint.json")
    }

    /// Runs a job until it is done, whatever interrupted it before; its model.
    pub(crate) fn finish(&self, seed: u64) -> Result<Value, Trouble> {
        if !self.is_done(seed) {
            let mut run = self.train(seed, &[])?;
            let status = run.wait()?;
            if !status.success() {
                return Err(Trouble::new(format!(
                    "job {seed} ended with {status}: {}",
                    run.words()
                )));
            }
        }
        let model = std::fs::read(self.path(&out(seed)).join("model.json"))?;
        Ok(serde_json::from_slice(&model)?)
    }

    /// What a provider's ledger says.
    pub(crate) fn budget(&self, place: usize) -> Result<Value, Trouble> {
        let config = format!("{}/provider.toml", PROVIDERS[place]);
        let text = self.run(&["provider", "budget", "--json", "--config", &config])?;
        Ok(serde_json::from_str(&text)?)
    }

    /// What private jobs have cost by a ledger, as mu squared.
    pub(crate) fn charged(&self, place: usize) -> Result<f64, Trouble> {
        let budget = self.budget(place)?;
        let spent = budget["private"]["squared_spent"].as_f64();
        spent.ok_or_else(|| Trouble::new("a budget without private jobs".into()))
    }

    /// Gradients that the data user saw in all attempts at a job.
    pub(crate) fn gradients_seen(&self, seed: u64) -> Result<u64, Trouble> {
        let mut seen = 0;
        for (_, log) in self.trainings.borrow().iter().filter(|(of, _)| *of == seed) {
            let text = std::fs::read(log)?;
            let text = String::from_utf8_lossy(&text);
            let lines = text.lines().filter(|line| line.starts_with("iteration "));
            seen += lines.count() as u64;
        }
        Ok(seen)
    }

    /// Releases in a ledger, and whether each is stored.
    pub(crate) fn releases(&self, place: usize) -> Result<(usize, bool), Trouble> {
        let budget = self.budget(place)?;
        let releases = budget["releases"].as_array().map_or(&[][..], Vec::as_slice);
        let stored = releases.iter().all(|release| release["sha256"].is_string());
        Ok((releases.len(), stored))
    }

    /// Files that should not be there when all is quiet.
    pub(crate) fn orphans(&self, seed: u64) -> Result<Vec<String>, Trouble> {
        let mut orphans = Vec::new();
        let mut look = |folder: String, known: &[&str]| -> Result<(), Trouble> {
            let Ok(entries) = std::fs::read_dir(self.path(&folder)) else {
                return Ok(());
            };
            for entry in entries {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if !known.contains(&name.as_str()) {
                    orphans.push(format!("{folder}/{name}"));
                }
            }
            Ok(())
        };
        look(out(seed), &["model.json", "report.html"])?;
        for name in PROVIDERS {
            let store = ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"];
            look(
                format!("{name}/store"),
                &[&store[..], &["row-order.key"]].concat(),
            )?;
            let identity = ["key.pem", "certificate.pem", "request.pem", "ledger.anchor"];
            look(format!("{name}/identity"), &identity)?;
        }
        Ok(orphans)
    }

    /// Lines of any process that tell of a panic.
    pub(crate) fn panics(&self) -> Result<Vec<String>, Trouble> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.path("logs"))? {
            let text = std::fs::read(entry?.path())?;
            let text = String::from_utf8_lossy(&text);
            let lines = text.lines().filter(|line| line.contains("panicked at"));
            found.extend(lines.map(str::to_owned));
        }
        Ok(found)
    }
}

fn out(seed: u64) -> String {
    format!("university/result-{seed}")
}

/// What a data user asks for, and over which ports.
pub(crate) struct Job<'a> {
    pub(crate) seed: u64,
    pub(crate) terms: &'a str,
    pub(crate) providers: &'a [(usize, u16)],
    pub(crate) loss_seconds: u64,
}

/// A provider's process.
pub(crate) struct Daemon(Child);

impl Daemon {
    /// SIGKILL.
    pub(crate) fn kill(mut self) -> Result<(), Trouble> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    pub(crate) fn has_ended(&mut self) -> Result<bool, Trouble> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Resident memory, in kilobytes.
    pub(crate) fn memory(&self) -> Result<u64, Trouble> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| Trouble::new("the memory of a daemon is unknown".into()))
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(mut self) -> Result<ExitStatus, Trouble> {
        let process = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &process]).status()?;
        Ok(self.0.wait()?)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A data user's process.
pub(crate) struct Run {
    child: Child,
    log: PathBuf,
    pub(crate) began: Instant,
}

impl Run {
    /// SIGKILL; whether it was still there.
    pub(crate) fn kill(&mut self) -> Result<bool, Trouble> {
        let alive = self.child.try_wait()?.is_none();
        self.child.kill()?;
        self.child.wait()?;
        Ok(alive)
    }

    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Trouble> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end, but not for ever.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, Trouble> {
        while self.began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill()?;
        Err(Trouble::new(format!("a job hangs: {}", self.words())))
    }

    /// The end of what it said.
    pub(crate) fn words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last: Vec<&str> = text.lines().rev().take(2).collect();
        last.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
