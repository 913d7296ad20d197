//! Hospitals and a university as processes on loopback.
#![allow(dead_code, reason = "every test file uses a part of these helpers")]

#[path = "../ports/mod.rs"]
mod ports;

pub(crate) use ports::free_port;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub(crate) const SEED: u64 = 11;
pub(crate) const HOSPITALS: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];

/// The program of the package whose tests these are.
const PROGRAM: &str = match (
    option_env!("CARGO_BIN_EXE_heda"),
    option_env!("CARGO_BIN_EXE_heda-repro"),
) {
    (Some(program), _) | (None, Some(program)) => program,
    (None, None) => panic!("a package without a program"),
};

pub(crate) fn heda() -> Command {
    let mut command = Command::new(PROGRAM);
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(arguments: &[&str], folder: &Path) -> Output {
    let output = heda().args(arguments).current_dir(folder).output();
    output.unwrap()
}

/// Stdout of a command that succeeds.
pub(crate) fn good(arguments: &[&str], folder: &Path) -> String {
    let output = run(arguments, folder);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of one hospital: every third one of the bundled biopsies.
pub(crate) fn part_of(place: usize) -> String {
    let all = std::fs::read_to_string(repository().join("datasets/bcwd.csv")).unwrap();
    let lines = all.lines().enumerate();
    let chosen = lines.filter(|(n, _)| *n == 0 || n % 3 == place);
    chosen.map(|(_, line)| format!("{line}\n")).collect()
}

pub(crate) fn schema_text() -> String {
    std::fs::read_to_string(repository().join("datasets/bcwd.natural.toml")).unwrap()
}

/// A daemon in a process of its own.
pub(crate) struct Daemon {
    child: Child,
}

impl Daemon {
    pub(crate) fn start(config: &Path) -> Self {
        let mut command = heda();
        command.args(["provider", "serve", "--config"]).arg(config);
        Self::spawn(command)
    }

    /// A daemon by a whole command line.
    pub(crate) fn start_as(command: &[&str], folder: &Path) -> Self {
        let mut daemon = heda();
        daemon.args(command).current_dir(folder);
        Self::spawn(daemon)
    }

    /// A command that becomes a daemon; waits until it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut errors = tempfile::tempfile().unwrap();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        if !line.starts_with("listening on ") {
            child.wait().unwrap();
            errors.rewind().unwrap();
            panic!("{line}{}", std::io::read_to_string(errors).unwrap());
        }
        Self { child }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: no time to say goodbye.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(mut self) -> std::process::ExitStatus {
        signal("-TERM", self.child.id());
        self.child.wait().unwrap()
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args([name, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Runs a command to its end; `watch` sees every line of stderr as it comes.
pub(crate) fn watched(mut command: Command, mut watch: impl FnMut(&str, &mut Child)) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let mut heard = String::new();
    for line in BufReader::new(stderr).lines() {
        let line = line.unwrap();
        watch(&line, &mut child);
        heard += &line;
        heard.push('\n');
    }
    let mut output = child.wait_with_output().unwrap();
    output.stderr = heard.into_bytes();
    output
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line on which every piece takes its time, so that no phase is over before a test can act.
pub(crate) struct SlowLine {
    pub(crate) port: u16,
}

impl SlowLine {
    pub(crate) fn start(target: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(("127.0.0.1", target));
                // Nobody is there: whoever called is hung up on.
                let (Ok(client), Ok(server)) = (client, server) else {
                    continue;
                };
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || carry_slowly(client, server, delay));
                std::thread::spawn(move || carry_slowly(back.0, back.1, delay));
            }
        });
        Self { port }
    }
}

fn carry_slowly(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let mut buffer = vec![0; 4 << 20];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        std::thread::sleep(delay);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// What a world differs in from the usual one.
pub(crate) struct Wishes {
    pub(crate) epsilon_total: &'static str,
    pub(crate) job: &'static str,
    pub(crate) hospitals: usize,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            epsilon_total: "1.5",
            job: "iota = 5\nepsilon = 1\niterations = 8\n",
            hospitals: 3,
        }
    }
}

/// Files of all parties, beside each other.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    hospitals: usize,
}

impl World {
    pub(crate) fn new(wishes: &Wishes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let print = |name: &str| {
            let out = format!("{name}/identity");
            good(&["init", "--name", name, "--out", &out], root)
                .trim()
                .to_owned()
        };
        let university = print("university");
        let hospitals = &HOSPITALS[..wishes.hospitals];
        let prints: Vec<String> = hospitals.iter().map(|name| print(name)).collect();
        let mut job = format!(
            "identity = \"identity\"\nschema = \"schema.toml\"\ndata_set = \"biopsies\"\n\
             seed = {SEED}\n{}\n[timeouts]\nconnect_seconds = 10\nanswer_seconds = 60\n\
             loss_seconds = 60\n",
            wishes.job
        );
        for (place, name) in hospitals.iter().enumerate() {
            let port = free_port().unwrap();
            let others = prints
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let known: String = others
                .map(|(other, print)| {
                    format!("[[known_provider]]\nname = \"{other}\"\nfingerprint = \"{print}\"\n")
                })
                .collect();
            let config = format!(
                "identity = \"identity\"\ndata_set = \"biopsies\"\ndata = \"biopsies.csv\"\n\
                 schema = \"schema.toml\"\nlisten = \"127.0.0.1:{port}\"\nstore = \"store\"\n\
                 [[allow]]\nname = \"university\"\nfingerprint = \"{university}\"\n{known}\
                 [limits]\nepsilon_total = {}\nrows_per_batch_min = 50\n\
                 iterations_per_job = 100\niterations_per_day = 1000\n\
                 known_co_providers_min = {}\nrevealed_per_unknown_max = 0.5\n\
                 stop_grace_seconds = 20\n\
                 [reproducible]\nseed = {SEED}\nparty = \"{name}\"\n",
                wishes.epsilon_total,
                (wishes.hospitals - 1).min(1),
            );
            let home = root.join(name);
            std::fs::write(home.join("provider.toml"), config).unwrap();
            std::fs::write(home.join("biopsies.csv"), part_of(place)).unwrap();
            std::fs::write(home.join("schema.toml"), schema_text()).unwrap();
            let print = &prints[place];
            job += &format!(
                "[[provider]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\n\
                 fingerprint = \"{print}\"\n"
            );
        }
        std::fs::write(root.join("university/job.toml"), job).unwrap();
        std::fs::write(root.join("university/schema.toml"), schema_text()).unwrap();
        let hospitals = wishes.hospitals;
        Self { folder, hospitals }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self, place: usize) -> PathBuf {
        self.root().join(HOSPITALS[place]).join("provider.toml")
    }

    /// The port that a hospital listens on.
    pub(crate) fn port(&self, place: usize) -> u16 {
        let text = std::fs::read_to_string(self.config(place)).unwrap();
        let port = text.split("listen = \"127.0.0.1:").nth(1).unwrap();
        port.split('"').next().unwrap().parse().unwrap()
    }

    /// Leads the data user to a hospital over a slow line.
    pub(crate) fn slow_line_to(&self, place: usize) {
        let port = self.port(place);
        let line = SlowLine::start(port, Duration::from_millis(120));
        let address = |port: u16| format!("address = \"127.0.0.1:{port}\"");
        self.change_job(&address(port), &address(line.port));
    }

    /// Changes the configuration of a hospital.
    pub(crate) fn change_provider(&self, place: usize, from: &str, to: &str) {
        change(&self.config(place), from, to);
    }

    pub(crate) fn serve(&self, place: usize) -> Daemon {
        Daemon::start(&self.config(place))
    }

    pub(crate) fn serve_all(&self) -> Vec<Daemon> {
        (0..self.hospitals).map(|place| self.serve(place)).collect()
    }

    /// Changes the job file.
    pub(crate) fn change_job(&self, from: &str, to: &str) {
        change(&self.root().join("university/job.toml"), from, to);
    }

    fn train_command(&self, out: &str, resume: bool) -> Command {
        let mut command = heda();
        command
            .args(["train", "university/job.toml", "--json", "--out", out])
            .current_dir(self.root());
        if resume {
            command.arg("--resume");
        }
        command
    }

    pub(crate) fn train(&self, out: &str, resume: bool) -> Output {
        self.train_command(out, resume).output().unwrap()
    }

    /// Another job on the same terms: another seed, and so another name.
    pub(crate) fn train_another(&self, out: &str, seed: u64) -> Output {
        let text = std::fs::read_to_string(self.root().join("university/job.toml")).unwrap();
        let text = text.replacen(&format!("seed = {SEED}"), &format!("seed = {seed}"), 1);
        let job = format!("university/job-{seed}.toml");
        std::fs::write(self.root().join(&job), text).unwrap();
        run(&["train", &job, "--json", "--out", out], self.root())
    }

    /// Trains in the background; `watch` sees every line of stderr.
    pub(crate) fn train_watched(
        &self,
        out: &str,
        resume: bool,
        watch: impl FnMut(&str, &mut Child),
    ) -> Output {
        watched(self.train_command(out, resume), watch)
    }

    pub(crate) fn model(&self, out: &str) -> serde_json::Value {
        let text = std::fs::read_to_string(self.root().join(out).join("model.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// `provider budget --json` of a hospital.
    pub(crate) fn budget(&self, place: usize) -> serde_json::Value {
        let config = self.config(place);
        let config = config.to_str().unwrap();
        let text = good(
            &["provider", "budget", "--json", "--config", config],
            self.root(),
        );
        serde_json::from_str(&text).unwrap()
    }

    /// `provider status --json` of a hospital.
    pub(crate) fn status(&self, place: usize) -> serde_json::Value {
        let config = self.config(place);
        let config = config.to_str().unwrap();
        let text = good(
            &["provider", "status", "--json", "--config", config],
            self.root(),
        );
        serde_json::from_str(&text).unwrap()
    }
}

fn change(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

pub(crate) fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", words(output));
}
