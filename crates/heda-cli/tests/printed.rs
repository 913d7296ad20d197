//! The way that `heda simulate` prints, walked as it is printed: from empty folders, by a data user and
//! providers that have never met.

#![allow(clippy::unwrap_used)]

mod lines;

use lines::{Ended, confirm, done, free_port, run, serve};
use std::fs;
use std::path::Path;

/// Rows of a ward; whether somebody is ill, or how long somebody stays.
fn ward(rows: std::ops::Range<usize>, numeric: bool) -> String {
    let row = |i: usize| {
        let (age, crp) = (20 + (i * 37) % 71, (i * 13) % 60);
        let ill = age + (i * 29) % 30 > 70;
        let last = match numeric {
            true => format!("{:.1}", age as f64 / 5.0 + ((i * 7) % 40) as f64 / 10.0),
            false => if ill { "yes" } else { "no" }.to_owned(),
        };
        format!("{age},{crp},{},{last}\n", ["a", "b", "c"][i % 3])
    };
    let rows: String = rows.map(row).collect();
    format!("age,crp,group,outcome\n{rows}")
}

/// The commands under "Next", without comments.
fn printed(text: &str) -> Vec<String> {
    let (_, next) = text.split_once("Next, ").unwrap();
    let whole = next.replace(" \\\n", " ");
    let lines = whole
        .lines()
        .map(str::trim)
        .filter(|l| l.starts_with("heda "));
    lines
        .map(|line| line.trim_start_matches("heda ").to_owned())
        .collect()
}

/// What a command prints; every line fits a terminal.
fn fits(folder: &Path, line: &str) -> String {
    let text = done(folder, line);
    for shown in text.lines() {
        assert!(shown.chars().count() <= 80, "heda {line}: {shown}");
    }
    text
}

/// The simulation and everything that it prints, with so many providers; the last command's output.
fn walked(providers: usize, simulate: &str, numeric: bool) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let each = 150;
    let user = folder.path().join("user");
    fs::create_dir(&user).unwrap();
    fs::write(user.join("ward.csv"), ward(0..providers * each, numeric)).unwrap();
    let line = format!("simulate --data ward.csv {simulate} --write-schema proposal.toml");
    fits(&user, &line);
    // The one thing that people do by hand: they read the schema and take its marks off.
    confirm(&user, "proposal.toml", "schema.toml");
    let text = fits(
        &user,
        &format!("simulate --data ward.csv {simulate} --schema schema.toml"),
    );
    let commands = printed(&text);
    assert_eq!(commands.len(), 3, "{text}");
    fits(&user, &commands[0]);
    let daemons: Vec<Ended> = (0..providers)
        .map(|number| {
            let here = folder.path().join(format!("provider-{number}"));
            fs::create_dir(&here).unwrap();
            let rows = ward(number * each..(number + 1) * each, numeric);
            fs::write(here.join("ward.csv"), rows).unwrap();
            fs::copy(user.join("invitation.toml"), here.join("invitation.toml")).unwrap();
            let name = format!("hospital-{number}");
            let address = format!("127.0.0.1:{}", free_port().unwrap());
            let line = commands[1]
                .replace("NAME", &name)
                .replace("HOST:PORT", &address);
            let daemon = serve(&here, &line);
            let answer = format!("{name}.answer.toml");
            fs::copy(here.join(&answer), user.join("answers").join(&answer)).unwrap();
            daemon
        })
        .collect();
    let output = run(&user, &commands[2]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "heda {}: {words}", commands[2]);
    drop(daemons);
    let text = String::from_utf8(output.stdout).unwrap();
    (folder, format!("{words}\n{text}"))
}

fn budget(folder: &Path, provider: usize) -> serde_json::Value {
    let here = folder.join(format!("provider-{provider}"));
    let text = done(&here, "provider budget --config provider.toml --json");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_first_private_job_works_as_printed_with_two_three_and_five_providers() {
    for providers in [2, 3, 5] {
        let (folder, text) = walked(providers, "--private 1", false);
        assert!(text.contains("epsilon 1, delta"), "{text}");
        // Nobody knows anybody yet, so each counts on its own noise, and that is said with its price.
        let larger = ((providers - 1) as f64).sqrt();
        match providers {
            2 => assert!(!text.contains("times larger"), "{text}"),
            _ => {
                let words = format!("noise {larger:.1} times larger");
                assert!(text.contains(&words), "{words} in {text}");
                assert!(text.contains("`heda provider know`"), "{text}");
            }
        }
        for provider in 0..providers {
            let spent = budget(folder.path(), provider)["private"]["epsilon_spent"].as_f64();
            assert!(
                spent.is_some_and(|spent| spent > 0.9 && spent <= 1.0),
                "{spent:?}"
            );
        }
        assert!(folder.path().join("user/heda-result/model.json").exists());
    }
}

#[test]
fn a_first_exact_job_works_as_printed_with_two_three_and_five_providers() {
    for providers in [2, 3, 5] {
        let (folder, text) = walked(providers, "", true);
        assert!(!text.contains("epsilon 1"), "{text}");
        assert!(folder.path().join("user/heda-result/model.json").exists());
    }
}

/// The value of a key in a file of TOML, as it is written.
fn key(path: &Path, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).unwrap();
    let value = |line: &str| Some(line.strip_prefix(key)?.strip_prefix(" = ")?.to_owned());
    text.lines().find_map(value)
}

/// Whatever the simulated job was asked for is what the invitation asks for.
#[test]
fn the_printed_invitation_is_to_the_job_that_was_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("ward.csv"), ward(0..600, false)).unwrap();
    fits(
        here,
        "simulate --data ward.csv --iterations 1 --write-schema proposal.toml",
    );
    confirm(here, "proposal.toml", "schema.toml");
    let simulate = "simulate --data ward.csv --schema schema.toml --held-out 0.25";
    let invited = |options: &str, out: &str| {
        let text = fits(here, &format!("{simulate} {options}"));
        let line = format!("{} --out {out}", printed(&text)[0]);
        fits(here, &line);
        let object = done(here, &format!("{simulate} {options} --json"));
        let object: serde_json::Value = serde_json::from_str(&object).unwrap();
        (text, object)
    };
    let (_, object) = invited("--private 0.7 --delta 1e-6", "private");
    for file in ["invitation.toml", "job.toml"] {
        let path = here.join("private").join(file);
        let found = |name| key(&path, name).unwrap();
        assert_eq!(found("epsilon"), "0.7", "{file}");
        assert_eq!(found("delta").parse::<f64>().unwrap(), 1e-6, "{file}");
        assert_eq!(found("rows"), "450", "{file}: rows that are trained on");
        assert_eq!(found("held_out"), "0.25", "{file}");
    }
    assert_eq!(object["privacy"]["epsilon"], 0.7);
    assert_eq!(object["privacy"]["delta"], 1e-6);
    assert_eq!(
        (&object["rows"], &object["held_out"]),
        (&450.into(), &150.into())
    );

    let options = "--penalty 0.5 --iterations 7 --balanced";
    let (text, object) = invited(options, "exact");
    assert!(!printed(&text)[0].contains("--private"), "{text}");
    assert!(printed(&text)[1].contains("--allow-exact"), "{text}");
    let job = here.join("exact/job.toml");
    for (name, value) in [
        ("c", "0.5"),
        ("iterations", "7"),
        ("class_weight", "\"balanced\""),
        ("held_out", "0.25"),
    ] {
        assert_eq!(key(&job, name).as_deref(), Some(value), "{name}");
    }
    assert!(key(&job, "epsilon").is_none());
    assert!(object["iterations"].as_u64() <= Some(7), "{object}");
    let (_, object) = invited("--penalty auto --iterations 3", "chosen");
    let path = here.join("chosen/job.toml");
    assert_eq!(key(&path, "penalty").as_deref(), Some("\"auto\""));
    assert!(object["chosen_penalty"].is_object(), "{object}");
}

/// The five commands of the README, in its own words.
fn five_commands() -> Vec<String> {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme.split_once("<!-- five commands:").unwrap();
    let (_, block) = rest.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    let whole = block.replace(" \\\n", " ");
    let commands = whole.lines().filter_map(|line| line.strip_prefix("heda "));
    commands.map(str::to_owned).collect()
}

/// What an object says of its guarantee: the same in the model, and in what is printed.
fn guarantee(model: &Path) -> serde_json::Value {
    let text = fs::read_to_string(model).unwrap();
    let model: serde_json::Value = serde_json::from_str(&text).unwrap();
    model["provenance"]["privacy"].clone()
}

/// Three hospitals that have never met train by the README; then they get to know each other while their
/// daemons serve, and the next job has less noise.
#[test]
fn the_five_commands_of_the_readme_train_a_private_model_and_to_know_each_other_saves_noise() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("all.csv"), ward(0..600, false)).unwrap();
    let line = "simulate --data all.csv --iterations 1 --write-schema proposal.toml";
    done(here, line);
    confirm(here, "proposal.toml", "schema.toml");
    for (number, name) in ["a", "b", "c"].iter().enumerate() {
        let rows = ward(200 * number..200 * (number + 1), false);
        fs::write(here.join(format!("{name}.csv")), rows).unwrap();
    }
    let commands = five_commands();
    assert_eq!(commands.len(), 5);
    fits(here, &commands[0]);
    let mut daemons: Vec<Ended> = Vec::new();
    for (command, name) in commands[1..4].iter().zip(["a", "b", "c"]) {
        let port = free_port().unwrap();
        let host = format!("{name}.example:7443");
        assert!(command.contains(&host), "{command}");
        daemons.push(serve(
            here,
            &command.replace(&host, &format!("127.0.0.1:{port}")),
        ));
        let answer = format!("hospital-{name}.answer.toml");
        let from = here.join(format!("hospital-{name}")).join(&answer);
        fs::copy(from, here.join("study/answers").join(answer)).unwrap();
    }
    let first = run(here, &commands[4]);
    let notes = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(first.status.success(), "{notes}");
    assert!(
        notes.lines().all(|line| line.chars().count() <= 80),
        "{notes}"
    );
    // Two others were asked to be counted on, less one that may collude: √2 for nobody.
    assert!(notes.contains("noise 1.4 times larger"), "{notes}");
    let text = String::from_utf8(first.stdout).unwrap();
    assert!(
        text.contains("480 training rows of 3 providers, 120 held out"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );

    // The model, wherever it goes, says what was promised and what was charged.
    let promised = guarantee(&here.join("result/model.json"));
    assert_eq!(
        (&promised["epsilon"], &promised["unit"]),
        (&1.0.into(), &"row".into())
    );
    assert_eq!(promised["delta"], 1e-5);
    let charged = promised["charged"].as_f64().unwrap();
    assert!(charged > 0.9 && charged <= 1.0, "{promised}");
    done(
        here,
        "export --model result/model.json --onnx --out model.onnx",
    );
    let onnx = fs::read(here.join("model.onnx")).unwrap();
    let onnx = String::from_utf8_lossy(&onnx).into_owned();
    let start = onnx.find("{\"epsilon\":").unwrap();
    let mut told = serde_json::Deserializer::from_str(&onnx[start..]).into_iter();
    let told: serde_json::Value = told.next().unwrap().unwrap();
    assert_eq!(told, promised, "the same in ONNX");

    // They know each other from now on; nobody is restarted.
    for name in ["a", "b", "c"] {
        let others = ["a", "b", "c"].into_iter().filter(|other| *other != name);
        let answers: Vec<String> = others
            .map(|other| format!("study/answers/hospital-{other}.answer.toml"))
            .collect();
        let line = format!(
            "provider know --config hospital-{name}/provider.toml {}",
            answers.join(" ")
        );
        assert!(fits(here, &line).contains("2 providers are new"));
    }
    let second = "train study/job.toml --answers study/answers --out second --json";
    let second = run(here, second);
    let notes = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.success(), "{notes}");
    assert!(!notes.contains("times larger"), "{notes}");
    let page = fs::read_to_string(here.join("result/report.html")).unwrap();
    assert!(page.contains("colludes with 2 other providers"), "{page}");
    let object: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    let sentence = object["guarantee"].as_str().unwrap();
    assert!(
        sentence.contains("colludes with one other provider"),
        "{sentence}"
    );
    let private = &object["privacy"];
    let charged = private["charged"].as_f64().unwrap();
    assert!(charged > 0.9 && charged <= 1.0, "{private}");
    // The noise that the reports tell is less by √2.
    let noise = |folder: &str| -> f64 {
        let page = fs::read_to_string(here.join(folder).join("report.html")).unwrap();
        let told = page.split("with noise of standard deviation ").nth(1);
        told.unwrap().split(';').next().unwrap().parse().unwrap()
    };
    let (before, after) = (noise("result"), noise("second"));
    assert!(
        (before / after - 2f64.sqrt()).abs() < 0.1,
        "{before} {after}"
    );
    drop(daemons);
}
