//! A new user's path: from a file to a report in one command, and to a job between processes in
//! five, with no fingerprint copied by hand.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn heda(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heda"));
    command.current_dir(folder).args(line.split_whitespace());
    command
}

fn run(folder: &Path, line: &str) -> Output {
    heda(folder, line).output().unwrap()
}

fn done(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "heda {line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert_eq!(output.status.code(), Some(2), "heda {line}");
    String::from_utf8(output.stderr).unwrap()
}

/// Rows as they come from a German spreadsheet: two thirds decided by the age.
fn german(rows: std::ops::Range<usize>) -> String {
    let row = |i: usize| {
        let age = 20 + (i * 37) % 71;
        let crp = match (i * 13) % 60 {
            0..=9 => "<0,5".to_owned(),
            other => format!("{},{}", other / 10, other % 10),
        };
        let ill = age + (i * 29) % 30 > 70;
        let group = ["A", "B", "C"][i % 3];
        let day = format!("{:02}.{:02}.2023", 1 + i % 28, 1 + i % 12);
        format!(
            "P{i};{day};{age};{crp};{group};{}\n",
            if ill { "ja" } else { "nein" }
        )
    };
    let rows: String = rows.map(row).collect();
    format!("patient;eingang;alter;crp;gruppe;krank\n{rows}")
}

#[test]
fn from_a_file_to_a_report_in_one_command() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("ward.csv"), german(0..400)).unwrap();
    let text = done(here, "simulate --data ward.csv --seed 3 --out first");
    for words in [
        "label: krank (a guess), classes ja, nein",
        "dates, as days: eingang",
        "passed over: patient",
        "missing: \"<0,5\"",
        "in clear, all features",
        "heda invite --name data-user --schema schema.toml",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(here.join("first/report.html").exists());
    assert!(here.join("first/model.json").exists());
    let line = "simulate --data ward.csv --seed 3 --json --iterations 30 --held-out 0.25";
    let object: serde_json::Value = serde_json::from_str(&done(here, line)).unwrap();
    assert_eq!(
        (&object["rows"], &object["held_out"]),
        (&301.into(), &99.into())
    );
    let share = |name: &str| object[name].as_f64().unwrap();
    assert!(
        share("accuracy") > share("majority_accuracy") + 0.1,
        "{object}"
    );
    assert!(
        (share("accuracy") - share("plain_accuracy")).abs() < 0.05,
        "{object}"
    );
}

#[test]
fn predictions_keep_every_row_and_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("ward.csv"), german(0..300)).unwrap();
    done(here, "simulate --data ward.csv --seed 3 --out first");
    let line = "simulate --data ward.csv --write-schema proposal.toml --seed 3 --iterations 1";
    done(here, line);
    // A model whose schema refuses missing values says nothing of such rows, and all of others.
    let schema = fs::read_to_string(here.join("proposal.toml")).unwrap();
    assert!(schema.contains("missing = { value ="), "{schema}");
    let extra = german(0..3)
        .replace("krank", "sonstiges")
        .replace(";ja", ";x");
    fs::write(here.join("new.csv"), extra).unwrap();
    let csv = done(
        here,
        "predict --model first/model.json --data new.csv --id patient",
    );
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("patient,class,score:"), "{csv}");
    assert!(
        lines[1].starts_with("P0,") && lines[3].starts_with("P2,"),
        "{csv}"
    );
    let words = refused(
        here,
        "predict --model first/model.json --data new.csv --id number",
    );
    assert!(words.contains("column `number`"), "{words}");
}

#[test]
fn a_schema_with_marks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("ward.csv"), german(0..100)).unwrap();
    let line = "simulate --data ward.csv --write-schema schema.toml --seed 3 --iterations 1";
    done(here, line);
    let words = refused(here, "invite --name user --schema schema.toml --out user");
    assert!(words.contains("marked CONFIRM"), "{words}");
    assert!(!here.join("user").exists(), "nothing was made");
    done(
        here,
        "invite --name user --schema schema.toml --out user --unconfirmed",
    );
    let setup = "provider setup --invitation user/invitation.toml --name north --data ward.csv \
                 --address 127.0.0.1:9 --out north";
    let exact = refused(here, setup);
    assert!(exact.contains("without a guarantee"), "{exact}");
    assert!(!here.join("north").exists(), "nothing was made");
    let setup = &format!("{setup} --allow-exact");
    done(here, setup);
    let again = refused(here, setup);
    assert!(again.contains("not overwritten"), "{again}");
    let words = refused(here, "provider serve --config north/provider.toml");
    assert!(words.contains("marked CONFIRM"), "{words}");
    let check = run(here, "provider check --config north/provider.toml");
    let check = String::from_utf8(check.stdout).unwrap();
    assert!(check.contains("BAD   schema"), "{check}");
    fs::copy(
        here.join("north/north.answer.toml"),
        here.join("user/answers/n.answer.toml"),
    )
    .unwrap();
    let words = refused(
        here,
        "train user/job.toml --answers user/answers --out result",
    );
    assert!(words.contains("marked CONFIRM"), "{words}");
}

/// Ends a process when a test is over, however it ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_job_between_processes_in_five_commands() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("all.csv"), german(0..450)).unwrap();
    let line = "simulate --data all.csv --write-schema proposal.toml --seed 3 --iterations 1";
    done(here, line);
    // What people do in an editor.
    let schema = fs::read_to_string(here.join("proposal.toml")).unwrap();
    let schema: String = schema
        .lines()
        .map(|line| format!("{}\n", line.split(" # CONFIRM").next().unwrap()))
        .collect();
    fs::write(here.join("schema.toml"), schema).unwrap();
    done(
        here,
        "invite --name university --schema schema.toml --iterations 12 --out user",
    );
    let mut providers = Vec::new();
    for (index, name) in ["north", "south", "west"].into_iter().enumerate() {
        fs::create_dir(here.join(name)).unwrap();
        let rows = german(150 * index..150 * (index + 1));
        fs::write(here.join(name).join("rows.csv"), rows).unwrap();
        let line = format!(
            "provider setup --invitation user/invitation.toml --name {name} --data {name}/rows.csv \
             --address 127.0.0.1:{} --out {name} --allow-exact --serve",
            free_port()
        );
        let mut child = heda(here, &line);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Ended(child.spawn().unwrap());
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.unwrap().starts_with("listening on")),
            "{name}"
        );
        let answer = format!("{name}.answer.toml");
        fs::copy(
            here.join(name).join(&answer),
            here.join("user/answers").join(&answer),
        )
        .unwrap();
        providers.push(child);
    }
    let text = done(
        here,
        "train user/job.toml --answers user/answers --out result",
    );
    assert!(
        text.contains("360 rows of 3 providers, 90 held out"),
        "{text}"
    );
    assert!(here.join("result/report.html").exists());
    // The others are known from now on, and a job without them is refused.
    let know = "provider know --config north/provider.toml south/south.answer.toml \
                west/west.answer.toml";
    let words = done(here, know);
    assert!(words.contains("2 providers are new"), "{words}");
    let config = fs::read_to_string(here.join("north/provider.toml")).unwrap();
    assert!(config.contains("known_co_providers_min = 2"), "{config}");
    assert!(done(here, know).contains("0 providers are new"));
}
