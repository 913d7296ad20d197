//! Private jobs between processes: from the invitation to the budget, and what is refused on the way.

#![allow(clippy::unwrap_used)]

mod lines;

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
    let text = done(here, &format!("{train} first"));
    assert!(text.contains("epsilon 1, delta 1e-5"), "{text}");
    let budget = done(here, "provider budget --config north/provider.toml");
    assert!(budget.contains("of 2 at delta 1e-5 is spent"), "{budget}");
    assert!(
        done(here, preview).contains("is spent, 1.4"),
        "the next job adds up"
    );
    let status = done(here, "provider status --json --config south/provider.toml");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let spent = status["private"]["epsilon_spent"].as_f64().unwrap();
    assert!(spent > 0.99 && spent <= 1.0, "{spent}");

    // A job whose sums are exact is not served.
    let exact = job.split("\n# What is promised").next().unwrap();
    fs::write(here.join("user/exact.toml"), exact).unwrap();
    let words = ends_with(
        3,
        here,
        "train user/exact.toml --answers user/answers --out exact",
    );
    assert!(words.contains("private jobs only"), "{words}");

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
    assert!(after.contains("of 1.2 at delta 1e-5 is spent"), "{after}");
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
