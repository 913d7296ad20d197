//! A job file against the builder: the same job, and the same rules.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda::{Bundle, Coding, Job, JobFile, PenaltyPath};
use heda_dp::gdp::Delta;
use heda_job::proposal::Privacy;
use std::sync::Arc;

const END: &str = r#"
[[provider]]
name = "hospital-a"
address = "a.example:7443"
fingerprint = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

[[provider]]
name = "hospital-b"
address = "b.example:7443"
fingerprint = "sha256:00000000000000000000000000000000000000000000000000000000000000bb"
"#;

/// A job file on a bundled schema, with these lines.
fn file(lines: &str) -> Result<JobFile, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    let schema = Bundle::Bcwd.schema(Coding::Natural).to_toml();
    std::fs::write(folder.path().join("schema.toml"), schema).unwrap();
    let begin = "identity = \"identity\"\nschema = \"schema.toml\"\ndata_set = \"tumours\"\n";
    std::fs::write(&path, format!("{begin}{lines}\n{END}")).unwrap();
    JobFile::load(&path).map_err(|failure| failure.to_string())
}

fn builder() -> heda::JobBuilder {
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
    Job::builder("tumours", schema)
}

#[test]
fn a_file_makes_the_job_that_the_builder_makes() {
    let promise = Privacy::new("1".parse().unwrap(), Delta::default_for(560), 560);
    let schema = builder().build().unwrap().schema().clone();
    for (lines, built) in [
        ("", builder()),
        (
            "iota = 5\nepsilon = 2\niterations = 40\nheld_out = 0.25\nc = 10",
            builder()
                .encrypt_best(5)
                .publish_rest("2".parse().unwrap())
                .iterations(40)
                .hold_out(0.25)
                .penalty(10.0),
        ),
        (
            "encrypt = [\"mitoses\"]\npenalty = \"auto\"",
            builder()
                .encrypt_named(["mitoses"])
                .choose_penalty(PenaltyPath::usual()),
        ),
        (
            "[privacy]\nepsilon = 1\nrows = 560",
            builder().private(promise.suited(&schema)),
        ),
    ] {
        let read = file(lines).unwrap();
        let (read, built) = (read.job().description().clone(), built.build().unwrap());
        assert_eq!(&read, built.description(), "{lines}");
        assert_eq!(
            read.digest().unwrap(),
            built.description().digest().unwrap()
        );
    }
}

#[test]
fn what_a_private_job_cannot_have_is_refused_with_its_key() {
    for (line, key) in [
        ("iota = 5", "iota"),
        ("encrypt = [\"mitoses\"]", "encrypt"),
        ("epsilon = 1", "epsilon"),
        ("ranked_by = \"hospital-a\"", "ranked_by"),
        ("loss = \"ridge\"", "loss"),
        ("loss = \"squared-hinge\"", "loss"),
        ("class_weight = \"balanced\"", "class_weight"),
        ("penalty = \"auto\"", "penalty"),
    ] {
        let lines = format!("{line}\n[privacy]\nepsilon = 1\nrows = 30000");
        let error = file(&lines).unwrap_err();
        let words = format!("does not go with `{key}`");
        assert!(error.contains(&words), "{line}: {error}");
    }
    file("loss = \"bounded-logistic\"\n[privacy]\nepsilon = 1\nrows = 30000").unwrap();
    let generous = file("[privacy]\nepsilon = 1\nrows = 100\ndelta = 0.01").unwrap_err();
    assert!(
        generous.contains("no protection for 100 rows"),
        "{generous}"
    );
}

#[test]
fn what_else_contradicts_itself_is_refused_with_the_remedy() {
    for (lines, words) in [
        (
            "iota = 0",
            "nothing to train on; encrypt some, or give an epsilon",
        ),
        ("encrypt = []", "nothing to train on"),
        ("iota = 99", "choose 0 to 9"),
        ("held_out = 0.95", "0.95; it must be a number from 0 to 0.9"),
        (
            "penalty = \"auto\"\nheld_out = 0.0",
            "rows held out to choose by",
        ),
        (
            "penalty = \"auto\"\noptimiser = { name = \"nesterov\", rate = 1.0 }",
            "the optimiser lbfgs",
        ),
        ("class_weight = { ill = 2.0 }", "class_weight names \"ill\""),
    ] {
        let error = file(lines).unwrap_err();
        assert!(error.contains(words), "{lines}: {error}");
    }
}
