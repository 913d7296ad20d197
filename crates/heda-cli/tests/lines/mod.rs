//! Commands as a user types them, each in a folder, and daemons that end with the test.
#![allow(dead_code, reason = "every test file uses a part of these helpers")]

#[path = "../ports/mod.rs"]
mod ports;

pub(crate) use ports::free_port;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

pub(crate) fn heda(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heda"));
    command.current_dir(folder).args(line.split_whitespace());
    command
}

pub(crate) fn run(folder: &Path, line: &str) -> Output {
    heda(folder, line).output().unwrap()
}

/// What a command prints that succeeds.
pub(crate) fn done(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "heda {line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command says that ends with this code.
pub(crate) fn ends_with(code: i32, folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "heda {line}: {words}");
    words
}

/// Ends a process when a test is over, however it ends.
pub(crate) struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a daemon and waits until it listens.
pub(crate) fn serve(here: &Path, line: &str) -> Ended {
    let mut command = heda(here, line);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Ended(child.spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|shown| {
        let shown = shown.unwrap();
        assert!(shown.chars().count() <= 80, "heda {line}: {shown}");
        shown.starts_with("listening on")
    }));
    child
}

/// What people do with a proposed schema in an editor: no mark is left.
pub(crate) fn confirm(here: &Path, proposal: &str, schema: &str) {
    let text = fs::read_to_string(here.join(proposal)).unwrap();
    let plain = |line: &str| format!("{}\n", line.split(" # CONFIRM").next().unwrap());
    let text: String = text.lines().map(plain).collect();
    fs::write(here.join(schema), text).unwrap();
}

/// Providers with these rows that answer the invitation in folder `user` and serve exact jobs.
pub(crate) fn joined(here: &Path, providers: &[(&str, String)]) -> Vec<Ended> {
    let join = |(name, rows): &(&str, String)| {
        fs::create_dir(here.join(name)).unwrap();
        fs::write(here.join(name).join("rows.csv"), rows).unwrap();
        let line = format!(
            "provider setup --invitation user/invitation.toml --name {name} --data {name}/rows.csv \
             --address 127.0.0.1:{} --out {name} --allow-exact --serve",
            free_port().unwrap()
        );
        let daemon = serve(here, &line);
        let answer = format!("{name}.answer.toml");
        let answers = here.join("user/answers");
        fs::copy(here.join(name).join(&answer), answers.join(&answer)).unwrap();
        daemon
    };
    providers.iter().map(join).collect()
}
