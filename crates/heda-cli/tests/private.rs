//! Private jobs between processes: from the invitation to the budget, and what is refused on the way.

#![allow(clippy::unwrap_used)]

mod lines;
mod result;

use lines::{Ended, done, ends_with, free_port, run, serve};
use std::fs;
use std::path::Path;

fn rows(place: usize) -> String {
    let all = include_str!("../../../datasets/bcwd.csv");
    let lines = all.lines().enumerate();
    let chosen = lines.filter(|(number, _)| *number == 0 || number % 2 == place);
    chosen.map(|(_, line)| format!("{line}\n")).collect()
}

/// Two hospitals that answered an invitation to a private job, and serve.
fn hospitals(here: &Path) -> Vec<Ended> {
    let schema = include_str!("../../../datasets/bcwd.natural.toml");
    fs::write(here.join("schema.toml"), schema).unwrap();
    done(
        here,
        "invite --name university --schema schema.toml --private 1 --rows 699 --out user",
    );
    let names = ["north", "south"].into_iter().enumerate();
    names
        .map(|(place, name)| {
            fs::create_dir(here.join(name)).unwrap();
            fs::write(here.join(name).join("rows.csv"), rows(place)).unwrap();
            let line = format!(
                "provider setup --invitation user/invitation.toml --name {name} --data \
                 {name}/rows.csv --address 127.0.0.1:{} --out {name} --serve",
                free_port().unwrap()
            );
            let served = serve(here, &line);
            let answer = format!("{name}.answer.toml");
            let answers = here.join("user/answers").join(&answer);
            fs::copy(here.join(name).join(&answer), answers).unwrap();
            served
        })
        .collect()
}

#[test]
fn a_private_job_between_processes_until_its_budget_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut daemons = hospitals(here);
    let config = fs::read_to_string(here.join("north/provider.toml")).unwrap();
    assert!(config.contains("privacy_required = true"), "{config}");
    assert!(config.contains("privacy_epsilon_total = 2"), "{config}");
    // With the providers in the file, what is asked can be looked at before.
    let job = fs::read_to_string(here.join("user/job.toml")).unwrap();
    let answer = fs::read_to_string(here.join("south/south.answer.toml")).unwrap();
    let fingerprint = answer
        .lines()
        .find(|l| l.starts_with("fingerprint"))
        .unwrap();
    let provider = format!("[[provider]]\nname = \"south\"\naddress = \"a:1\"\n{fingerprint}\n");
    fs::write(here.join("user/full.toml"), format!("{job}\n{provider}")).unwrap();
    let preview =
        "provider preview --config north/provider.toml --job user/full.toml --as university";
    let words = done(here, preview);
    assert!(
        words.contains("promise: epsilon 1 at delta 1e-5"),
        "{words}"
    );
    let plan = done(here, "plan user/full.toml --rows 699");
    assert!(
        plan.contains("noise in every number of a gradient like"),
        "{plan}"
    );
    let expected = plan.lines().find(|line| line.starts_with("expect"));
    assert!(expected.unwrap().contains("on simulated rows"), "{plan}");

    let train = "train user/job.toml --answers user/answers --out";
    let told = result::checked(done(here, &format!("{train} first --json")).as_bytes());
    let guarantee = told["guarantee"].as_str().unwrap();
    assert!(guarantee.contains("ε = 1 and δ = 1e-5"), "{guarantee}");
    let privacy = &told["privacy"];
    assert_eq!(
        (privacy["epsilon"].as_f64(), privacy["unit"].as_str()),
        (Some(1.0), Some("row"))
    );
    let charged = privacy["charged"].as_f64().unwrap();
    assert!(charged > 0.99 && charged <= 1.0, "{charged}");
    // Nobody may count the held-out rows in clear.
    assert!(privacy.get("accuracy_in_clear").is_none(), "{privacy}");
    assert_eq!(told["budget_left"].as_array().unwrap().len(), 2);
    assert!(told["cpu_seconds"]["user"].as_f64().unwrap() > 0.0);
    let budget = done(here, "provider budget --config north/provider.toml");
    let begins = "Privacy budget: 1.00 of 2.00 used (δ = 1e-5).";
    assert!(budget.starts_with(begins), "{budget}");
    assert!(budget.contains("Room for one more job"), "{budget}");
    assert!(budget.lines().all(|l| l.chars().count() <= 80), "{budget}");
    assert!(
        done(here, preview).contains("is spent, 1.4"),
        "the next job adds up"
    );
    let status = done(here, "provider status --json --config south/provider.toml");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let spent = status["private"]["epsilon_spent"].as_f64().unwrap();
    assert!(spent > 0.99 && spent <= 1.0, "{spent}");

    // A job whose sums are exact is not served.
    let exact = job.split("\n[privacy]").next().unwrap();
    fs::write(here.join("user/exact.toml"), exact).unwrap();
    let words = ends_with(
        3,
        here,
        "train user/exact.toml --answers user/answers --out exact",
    );
    assert!(words.contains("private jobs only"), "{words}");

    // Under another name the same rows have no new budget, and everybody who looks is told.
    let renamed = config.replacen("data_set = \"bcwd.natural\"", "data_set = \"tumours\"", 1);
    assert_ne!(renamed, config);
    fs::write(here.join("north/renamed.toml"), renamed).unwrap();
    for command in ["check", "budget"] {
        let line = format!("provider {command} --config north/renamed.toml");
        let told = String::from_utf8(run(here, &line).stdout).unwrap();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains("the data set bcwd.natural, on which private jobs used epsilon 1.00"),
            "{command}: {told}"
        );
        assert!(
            told.contains("Its rows are those that are served now as tumours: a new name gives them no new budget"),
            "{told}"
        );
    }
    assert!(!budget.contains("also knows"), "{budget}");

    // Nothing is left of a smaller budget: refused before anything is asked.
    let smaller = config.replacen(
        "privacy_epsilon_total = 2",
        "privacy_epsilon_total = 1.2",
        1,
    );
    fs::write(here.join("north/provider.toml"), smaller).unwrap();
    daemons.remove(0);
    daemons.push(serve(here, "provider serve --config north/provider.toml"));
    let words = ends_with(3, here, &format!("{train} second"));
    assert!(words.contains("nothing was released"), "{words}");
    assert!(!here.join("second/model.json").exists());
    let after = done(here, "provider budget --config north/provider.toml");
    assert!(after.contains("of 1.20 used (δ = 1e-5)"), "{after}");
    ends_with(3, here, preview);
}

#[test]
fn a_promise_that_is_none_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let schema = include_str!("../../../datasets/bcwd.natural.toml");
    fs::write(here.join("schema.toml"), schema).unwrap();
    let invite = "invite --name university --out user --schema";
    for (line, word) in [
        ("schema.toml --private 0 --rows 699", "zero"),
        ("schema.toml --private -1 --rows 699", ""),
        ("schema.toml --private nan --rows 699", ""),
        ("schema.toml --private inf --rows 699", ""),
        ("schema.toml --private 1", "--rows"),
        ("schema.toml --private 1 --rows 0", ""),
        ("schema.toml --private 1 --rows 699 --delta 0", "above 0"),
        ("schema.toml --private 1 --rows 699 --delta nan", "above 0"),
        ("schema.toml --private 1 --rows 699 --delta 1", "below 1"),
        (
            "schema.toml --private 1 --rows 699 --delta 0.01",
            "no protection for 699 rows",
        ),
        ("schema.toml --delta 1e-5", "--private"),
    ] {
        let words = ends_with(2, here, &format!("{invite} {line}"));
        assert!(words.contains(word), "{line}: {words}");
        assert!(!here.join("user").exists(), "{line}");
    }
    let line = format!("{invite} schema.toml --private 1 --rows 699 --delta 1e-3");
    let output = run(here, &line);
    assert!(output.status.success());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("delta 1e-3 is much for 699 rows"), "{words}");
}

fn schema_at(here: &Path) {
    let schema = include_str!("../../../datasets/bcwd.natural.toml");
    fs::write(here.join("schema.toml"), schema).unwrap();
}

#[test]
fn what_invite_wrote_can_be_planned_and_previewed_before_and_after_answers() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    schema_at(here);
    done(
        here,
        "invite --name university --schema schema.toml --private 1 --rows 559 --held-out 0.3 --out user",
    );
    for file in ["user/job.toml", "user/invitation.toml"] {
        let text = fs::read_to_string(here.join(file)).unwrap();
        assert!(text.contains("held_out = 0.3"), "{text}");
    }
    // Nobody has answered: rows are those that the job states, providers as many as one says.
    let plan = done(here, "plan user/job.toml --providers 2");
    assert!(plan.starts_with("799 rows of 2 providers"), "{plan}");
    assert!(plan.contains("private   epsilon 1 at delta 1e-5"), "{plan}");
    // A steward who has the invitation and nothing else.
    fs::write(here.join("rows.csv"), rows(0)).unwrap();
    let preview = "provider preview --invitation user/invitation.toml";
    let words = done(here, &format!("{preview} --data rows.csv --providers 2"));
    assert!(words.contains("of university on bcwd"), "{words}");
    assert!(
        words.contains("promise: epsilon 1 at delta 1e-5"),
        "{words}"
    );
    assert!(words.contains("over 245 rows"), "{words}");
    let words = done(here, &format!("{preview} --providers 2"));
    assert!(words.contains("over 280 rows"), "{words}");
    // With answers where they are, and with the configuration that setup wrote.
    for name in ["north", "south"] {
        let line = format!(
            "provider setup --invitation user/invitation.toml --name {name} --data rows.csv \
             --address 127.0.0.1:7443 --out {name}"
        );
        let told = done(here, &line);
        assert!(
            told.contains("Privacy budget: epsilon 2 for all private jobs"),
            "{told}"
        );
        let answer = format!("{name}.answer.toml");
        let to = here.join("user/answers").join(&answer);
        fs::copy(here.join(name).join(&answer), to).unwrap();
    }
    let plan = done(here, "plan user/job.toml --rows 600");
    assert!(plan.starts_with("600 rows of 2 providers"), "{plan}");
    let words = done(
        here,
        "provider preview --config north/provider.toml --job user/job.toml --as university",
    );
    assert!(
        words.contains("0 of 1 other providers are known"),
        "{words}"
    );
    let words = done(here, &format!("{preview} --config north/provider.toml"));
    assert!(words.contains("over 245 rows"), "{words}");
}

/// Model, ONNX and report of a folder name no guarantee.
fn promises_nothing(here: &Path, out: &str) {
    let text = fs::read_to_string(here.join(out).join("model.json")).unwrap();
    let model: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(model["provenance"]["privacy"].is_null(), "{out}: {text}");
    let note = model["provenance"]["notes"]["no_guarantee"].as_str();
    assert!(note.unwrap().contains("bounds were read"), "{out}: {text}");
    done(
        here,
        &format!("export --model {out}/model.json --onnx --out {out}.onnx"),
    );
    let onnx = fs::read(here.join(format!("{out}.onnx"))).unwrap();
    assert!(!String::from_utf8_lossy(&onnx).contains("epsilon"), "{out}");
    let page = fs::read_to_string(here.join(out).join("report.html")).unwrap();
    assert!(page.contains("nothing is guaranteed"), "{out}");
    assert!(!page.contains("even if the data user cheats"), "{out}");
}

/// Who trains with a schema that was read from rows, although it is marked, has no guarantee either.
#[test]
fn a_job_with_a_schema_that_is_not_confirmed_promises_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("rows.csv"), rows(0)).unwrap();
    done(
        here,
        "simulate --data rows.csv --label class --iterations 1 --write-schema schema.toml",
    );
    done(
        here,
        "invite --name university --schema schema.toml --unconfirmed --private 1 --rows 558 --out user",
    );
    let names = ["north", "south"].into_iter();
    let daemons: Vec<Ended> = names
        .map(|name| {
            let line = format!(
                "provider setup --invitation user/invitation.toml --name {name} --data rows.csv \
                 --address 127.0.0.1:{} --out {name}",
                free_port().unwrap()
            );
            done(here, &line);
            let answer = format!("{name}.answer.toml");
            let to = here.join("user/answers").join(&answer);
            fs::copy(here.join(name).join(&answer), to).unwrap();
            let line = format!("provider serve --config {name}/provider.toml --unconfirmed");
            serve(here, &line)
        })
        .collect();
    let text = done(
        here,
        "train user/job.toml --answers user/answers --unconfirmed --out result",
    );
    assert!(
        text.contains("none: bounds were read from the rows"),
        "{text}"
    );
    promises_nothing(here, "result");
    drop(daemons);
}

#[test]
fn plan_and_simulate_take_a_promise() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    schema_at(here);
    let plan = done(here, "plan --dataset bcwd --private 1");
    assert!(plan.contains("private   epsilon 1 at delta 1e-5"), "{plan}");
    assert!(plan.contains("expect    on simulated rows"), "{plan}");
    fs::write(here.join("rows.csv"), rows(0)).unwrap();
    let text = done(
        here,
        "simulate --data rows.csv --schema schema.toml --private 2",
    );
    assert!(text.contains("epsilon 2, delta 1e-5 for a row"), "{text}");
    assert!(text.contains("--private 2 --rows 280"), "{text}");
    // Bounds that were read from the rows are values of rows: nothing is guaranteed, whoever read them.
    done(
        here,
        "simulate --data rows.csv --label class --iterations 1 --write-schema proposal.toml",
    );
    for (options, out) in [
        ("--label class", "looked"),
        ("--schema proposal.toml", "marked"),
    ] {
        let line = format!("simulate --data rows.csv {options} --private 2 --out {out}");
        let text = done(here, &line);
        assert!(
            text.contains("none: bounds were read from the rows"),
            "{text}"
        );
        assert!(!text.contains("delta 1e-5 for a row"), "{text}");
        promises_nothing(here, out);
    }
    done(
        here,
        "simulate --data rows.csv --schema schema.toml --private 2 --out public",
    );
    let model = fs::read_to_string(here.join("public/model.json")).unwrap();
    assert!(model.contains("\"epsilon\": 2.0"), "{model}");
    for line in [
        "simulate --data rows.csv --schema schema.toml --private 2 --balanced",
        "simulate --data rows.csv --schema schema.toml --delta 1e-6",
        "plan --dataset bcwd --private 1 --iota 3",
    ] {
        ends_with(2, here, line);
    }
}

/// What `setup` would refuse is no preview of something that is allowed.
#[test]
fn a_preview_of_an_invitation_judges_as_setup_and_configuration_do() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    schema_at(here);
    fs::write(here.join("rows.csv"), rows(0)).unwrap();
    let refused = |line: &str| {
        let output = run(here, line);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "heda {line}: {words}");
        let shown = String::from_utf8(output.stdout).unwrap();
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        (shown, words)
    };
    let invite = "invite --name university --schema schema.toml";
    done(here, &format!("{invite} --out exact"));
    done(
        here,
        &format!("{invite} --private 400 --rows 559 --out much"),
    );
    done(here, &format!("{invite} --private 1 --rows 559 --out user"));
    let private = "--private 1 --rows 559";
    let stranger = "invite --name stranger --schema schema.toml";
    done(here, &format!("{stranger} {private} --out stranger"));
    done(
        here,
        &format!("{invite} {private} --dataset ward --out other"),
    );
    let preview =
        |of: &str| format!("provider preview --invitation {of}/invitation.toml --providers 2");
    let (shown, words) = refused(&format!("{} --data rows.csv", preview("exact")));
    assert!(shown.contains("verdict: refused"), "{shown}");
    assert!(words.contains("--allow-exact"), "{words}");
    let (shown, words) = refused(&format!("{} --data rows.csv", preview("much")));
    assert!(shown.contains("promise: epsilon 400"), "{shown}");
    assert!(shown.contains("verdict: refused"), "{shown}");
    assert!(words.contains("--privacy-epsilon 400"), "{words}");
    let shown = done(here, &format!("{} --data rows.csv", preview("user")));
    assert!(shown.contains("verdict: allowed"), "{shown}");
    // With a configuration it is the configuration that judges.
    done(
        here,
        "provider setup --invitation user/invitation.toml --name north --data rows.csv \
         --address 127.0.0.1:7443 --out north",
    );
    let config = "--config north/provider.toml";
    done(here, &format!("{} {config}", preview("user")));
    let (_, words) = refused(&format!("{} {config}", preview("stranger")));
    assert!(words.contains("no [[allow]] entry"), "{words}");
    // The same key under the same name, about other data.
    let text = fs::read_to_string(here.join("user/invitation.toml")).unwrap();
    let other = text.replacen("data_set = \"bcwd.natural\"", "data_set = \"ward\"", 1);
    assert_ne!(text, other);
    fs::write(here.join("other/invitation.toml"), other).unwrap();
    let (_, words) = refused(&format!("{} {config}", preview("other")));
    assert!(words.contains("the data set ward"), "{words}");
    // A part of the budget that is smaller than the job is no room for it.
    let text = fs::read_to_string(here.join("north/provider.toml")).unwrap();
    let narrow = text.replacen(
        "privacy_epsilon_total = 2",
        "privacy_epsilon_total = 2\nprivacy_epsilon_per_user = 0.5",
        1,
    );
    assert_ne!(text, narrow);
    fs::write(here.join("north/provider.toml"), narrow).unwrap();
    let (_, words) = refused(&format!("{} {config}", preview("user")));
    assert!(words.contains("no room for this one"), "{words}");
}

#[test]
fn no_invitation_decides_more_than_epsilon_two() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    schema_at(here);
    fs::write(here.join("rows.csv"), rows(0)).unwrap();
    done(
        here,
        "invite --name university --schema schema.toml --private 400 --rows 559 --out user",
    );
    let setup = "provider setup --invitation user/invitation.toml --name north --data rows.csv \
                 --address 127.0.0.1:7443 --out north";
    let words = ends_with(2, here, setup);
    assert!(words.contains("epsilon 400"), "{words}");
    assert!(words.contains("--privacy-epsilon 400"), "{words}");
    assert!(!here.join("north/provider.toml").exists());
    done(here, &format!("{setup} --privacy-epsilon 3"));
    let config = fs::read_to_string(here.join("north/provider.toml")).unwrap();
    assert!(config.contains("privacy_epsilon_total = 3"), "{config}");
}
