//! A number instead of a class: from a file to a report, predictions, an evaluation and an ONNX file,
//! and the same between processes.

#![allow(clippy::unwrap_used)]

mod lines;

use lines::{confirm, done, ends_with, joined};
use std::fs;
use std::path::Path;

fn refused(folder: &Path, line: &str) -> String {
    ends_with(2, folder, line)
}

/// A rent that follows size, age and quarter, with something that nobody knows.
fn rents(rows: std::ops::Range<usize>) -> String {
    let row = |i: usize| {
        let size = 20.0 + ((i * 37) % 131) as f64;
        let age = ((i * 53) % 97) as f64;
        let quarter = ["old", "new", "port"][(i * 7) % 3];
        let extra = if quarter == "port" { 150.0 } else { 0.0 };
        let unknown = ((i * 7919) % 401) as f64 - 200.0;
        let rent = 200.0 + 9.5 * size - 2.0 * age + extra + unknown;
        format!("{size},{age},{quarter},{rent:.2}\n")
    };
    format!(
        "size,age,quarter,rent\n{}",
        rows.map(row).collect::<String>()
    )
}

#[test]
fn from_a_file_to_predictions_of_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("rents.csv"), rents(0..400)).unwrap();
    let text = done(here, "simulate --data rents.csv --seed 3 --out first");
    for words in [
        "label: rent (a guess), a number, from lowest to highest value",
        "error of rent on held-out rows",
        "mean of the training rows",
        "105 exact sums",
        "C = 1 on standardised features",
        "--allow-exact",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let report = fs::read_to_string(here.join("first/report.html")).unwrap();
    for words in [
        "predicts rent",
        "change of the predicted rent",
        "mean absolute",
    ] {
        assert!(report.contains(words), "{words}");
    }
    assert!(!report.contains("log-odds"));
    let line = "simulate --data rents.csv --seed 3 --json";
    let object: serde_json::Value = serde_json::from_str(&done(here, line)).unwrap();
    let number = &object["number"];
    let found = |path: &str| number.pointer(path).unwrap().as_f64().unwrap();
    let (model, clear) = (found("/errors/rmse"), found("/controls/plain/rmse"));
    assert!((model / clear - 1.0).abs() < 0.06, "{number}");
    assert!(
        found("/errors/r2") > 0.8 && model < 0.5 * found("/controls/mean/rmse"),
        "{number}"
    );

    fs::write(
        here.join("new.csv"),
        "size,quarter,age\n100,port,10\n50,old,50\n",
    )
    .unwrap();
    let csv = done(here, "predict --model first/model.json --data new.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "row,rent");
    let rent = |line: &str| line.split(',').nth(1).unwrap().parse::<f64>().unwrap();
    assert!((rent(lines[1]) - 1280.0).abs() < 80.0, "{csv}");
    assert!((rent(lines[2]) - 575.0).abs() < 80.0, "{csv}");
    let json = done(
        here,
        "predict --model first/model.json --data new.csv --json",
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["predictions"][1]["number"].as_f64(),
        Some(rent(lines[2]))
    );

    let evaluated = done(
        here,
        "evaluate --model first/model.json --data rents.csv --json",
    );
    let evaluated: serde_json::Value = serde_json::from_str(&evaluated).unwrap();
    assert_eq!(evaluated["rows"], 400);
    assert!(
        (evaluated["rmse"].as_f64().unwrap() / model - 1.0).abs() < 0.2,
        "{evaluated}"
    );
    let words = done(
        here,
        "export --onnx --model first/model.json --out model.onnx",
    );
    assert!(words.contains("a number: rent"), "{words}");
    let onnx = fs::read(here.join("model.onnx")).unwrap();
    assert!(onnx.windows(6).any(|name| name == b"number"));
}

#[test]
fn what_does_not_go_with_a_number_is_an_input_error() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("rents.csv"), rents(0..100)).unwrap();
    let words = refused(here, "simulate --data rents.csv --loss logistic");
    assert!(
        words.contains("the label is a number, which needs the loss ridge"),
        "{words}"
    );
    let words = refused(here, "simulate --data rents.csv --balanced");
    assert!(words.contains("no weights of classes"), "{words}");
    let line = "simulate --data rents.csv --seed 3 --iterations 1 --write-schema proposal.toml";
    done(here, line);
    let line = "invite --name u --schema proposal.toml --unconfirmed --private 1 --rows 80 --out u";
    let words = refused(here, line);
    assert!(words.contains("private jobs learn classes"), "{words}");
    let words = refused(here, "score --data rents.csv --schema proposal.toml");
    assert!(words.contains("features are scored by classes"), "{words}");
    fs::write(here.join("three.csv"), rents(0..3)).unwrap();
    let line = "simulate --data three.csv --schema proposal.toml --providers 1";
    let words = refused(here, line);
    assert!(words.contains("3 rows are too few"), "{words}");
}

#[test]
fn a_number_is_learned_between_processes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("all.csv"), rents(0..400)).unwrap();
    done(
        here,
        "simulate --data all.csv --write-schema proposal.toml --seed 3 --iterations 1",
    );
    confirm(here, "proposal.toml", "schema.toml");
    let line = "invite --name university --schema schema.toml --penalty 0.5 --out user";
    done(here, line);
    let job = fs::read_to_string(here.join("user/job.toml")).unwrap();
    assert!(
        job.contains("loss = \"ridge\"") && job.contains("c = 0.5"),
        "{job}"
    );
    let providers = [("north", rents(0..200)), ("south", rents(200..400))];
    let _serving = joined(here, &providers);
    let line = "train user/job.toml --answers user/answers --out result --json";
    let object: serde_json::Value = serde_json::from_str(&done(here, line)).unwrap();
    assert_eq!(object["held_out"], 80);
    assert_eq!(object["penalty"], "C = 0.5 on standardised features");
    assert!(
        object["number"]["errors"]["r2"].as_f64().unwrap() > 0.8,
        "{object}"
    );
    assert_eq!(object["revealed"]["count_numbers"], 4);
    // The ledger counted both evaluations.
    let status = done(here, "provider status --config north/provider.toml --json");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["jobs"][0]["evaluations"], 2, "{status}");
}

#[test]
fn a_job_on_a_number_can_be_planned() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("rents.csv"), rents(0..100)).unwrap();
    let line = "simulate --data rents.csv --seed 3 --iterations 1 --write-schema proposal.toml";
    done(here, line);
    let line = "plan --schema proposal.toml --rows 300 --iterations 5 --json";
    let plan: serde_json::Value = serde_json::from_str(&done(here, line)).unwrap();
    assert_eq!(plan["iterations"], 5);
    assert!(plan["seconds"].as_f64().unwrap() > 0.0, "{plan}");
}

/// A penalty is chosen on one's own file, in a plan and in an invitation.
#[test]
fn a_penalty_is_chosen_planned_and_invited_to() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("rents.csv"), rents(0..400)).unwrap();
    let line = "simulate --data rents.csv --seed 3 --penalty auto --iterations 8 --json";
    let object: serde_json::Value = serde_json::from_str(&done(here, line)).unwrap();
    let choice = &object["chosen_penalty"];
    let tried = choice["tried"].as_array().unwrap();
    let errors: Vec<f64> = tried.iter().map(|t| t["rmse"].as_f64().unwrap()).collect();
    let chosen = choice["chosen"].as_u64().unwrap() as usize;
    assert!(
        errors.iter().all(|error| *error >= errors[chosen]),
        "{choice}"
    );
    assert!(
        errors[0] > errors[2],
        "a strong penalty spoils it: {choice}"
    );
    assert_eq!(object["iterations"], 5 * 8);
    assert_eq!(
        (&choice["rows"], &object["held_out"]),
        (&39.into(), &39.into())
    );

    let line = "simulate --data rents.csv --seed 3 --iterations 2 --write-schema proposal.toml";
    done(here, line);
    confirm(here, "proposal.toml", "schema.toml");
    let line =
        "invite --name university --schema schema.toml --penalty auto --iterations 8 --out user";
    done(here, line);
    let job = fs::read_to_string(here.join("user/job.toml")).unwrap();
    let both = job.contains("iterations = 8\n") && job.contains("penalty = \"auto\"\n");
    assert!(both, "{job}");
    // Providers make room for all gradients.
    let invitation = fs::read_to_string(here.join("user/invitation.toml")).unwrap();
    assert!(invitation.contains("iterations = 40\n"), "{invitation}");
    let provider = "\n[[provider]]\nname = \"north\"\naddress = \"127.0.0.1:1\"\nfingerprint = \
        \"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"\n";
    fs::write(here.join("user/planned.toml"), job + provider).unwrap();
    let plan = done(here, "plan user/planned.toml --rows 400");
    assert!(plan.contains("at most 40 iterations"), "{plan}");
    let words = "penalty   5 are tried: 40 iterations and 7 evaluations in all";
    assert!(plan.contains(words), "{plan}");
    let providers = [("north", rents(0..200)), ("south", rents(200..400))];
    let _serving = joined(here, &providers);
    let line = "train user/job.toml --answers user/answers --out result --json";
    let object: serde_json::Value = serde_json::from_str(&done(here, line)).unwrap();
    assert_eq!(
        object["chosen_penalty"]["tried"].as_array().unwrap().len(),
        5
    );
    assert_eq!(object["revealed"]["count_numbers"], 5 * 3 + 4);
    let status = done(here, "provider status --config north/provider.toml --json");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["jobs"][0]["evaluations"], 7, "{status}");

    let words = refused(
        here,
        "simulate --data rents.csv --penalty auto --held-out 0",
    );
    assert!(words.contains("rows held out to choose by"), "{words}");
    let words = refused(here, "simulate --data rents.csv --penalty best");
    assert!(
        words.contains("a number above 0, such as 1, or auto"),
        "{words}"
    );
}
