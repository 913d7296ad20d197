//! A new user's path: from a file to a report in one command, and to a job between processes in
//! five, with no fingerprint copied by hand.

#![allow(clippy::unwrap_used)]

mod lines;

use lines::{confirm, done, ends_with, joined, run};
use std::fs;
use std::path::Path;

fn refused(folder: &Path, line: &str) -> String {
    ends_with(2, folder, line)
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
        ", in clear ",
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

#[test]
fn a_job_between_processes_in_five_commands() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("all.csv"), german(0..450)).unwrap();
    let line = "simulate --data all.csv --write-schema proposal.toml --seed 3 --iterations 1";
    done(here, line);
    confirm(here, "proposal.toml", "schema.toml");
    done(
        here,
        "invite --name university --schema schema.toml --iterations 12 --out user",
    );
    let rows = |index: usize| german(150 * index..150 * (index + 1));
    let providers = [("north", rows(0)), ("south", rows(1)), ("west", rows(2))];
    let _serving = joined(here, &providers);
    let text = done(
        here,
        "train user/job.toml --answers user/answers --out result",
    );
    assert!(
        text.contains("360 training rows of 3 providers, 90 held out"),
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
