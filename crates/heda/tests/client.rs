//! A job from the builder over the network: invited, answered, served and trained by the library alone.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda::data::CsvFormat;
use heda::invitation::Invite;
use heda::provider::{self, PrivacyChoice, Setup, SetupChoices};
use heda::system::{StopSignal, StopSwitch};
use heda::{Client, Error, ErrorKind, Job, Provider, Remedy, ResultFolder, data, model, schema};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// The program that users write, as the example has it.
#[path = "../examples/data_user.rs"]
mod data_user;

const ROWS: &str = include_str!("../../../datasets/bcwd.csv");
const SCHEMA: &str = include_str!("../../../datasets/bcwd.natural.toml");

/// Every other row of the data set.
fn part(place: usize) -> String {
    let lines = ROWS.lines().enumerate();
    let chosen = lines.filter(|(number, _)| *number == 0 || number % 2 == place);
    chosen.map(|(_, line)| format!("{line}\n")).collect()
}

fn job(here: &Path) -> Job {
    let (_, schema) = schema::read(&here.join("schema.toml")).unwrap();
    let name = schema.name().to_owned();
    Job::builder(name, schema).iterations(15).build().unwrap()
}

/// A data user's folder with an invitation.
fn invited(here: &Path) -> PathBuf {
    let path = here.join("schema.toml");
    std::fs::write(&path, SCHEMA).unwrap();
    let invite = Invite {
        name: "university",
        job: &job(here),
        privacy: None,
        schema_path: &path,
        schema_text: SCHEMA,
    };
    let written = invite.write(here).unwrap();
    let again = invite.write(here).unwrap_err();
    assert_eq!(again.remedy(), Some(Remedy::OtherFolder));
    written.invitation
}

/// A hospital that answers an invitation and serves until the switch is set.
fn hospital(
    (here, invitation): (&Path, &Path),
    place: usize,
    stop: StopSignal,
) -> JoinHandle<Result<(), Error>> {
    let name = ["north", "south"][place];
    let folder = here.join(name);
    std::fs::create_dir(&folder).unwrap();
    let rows = folder.join("rows.csv");
    std::fs::write(&rows, part(place)).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let setup = Setup::of_invitation(invitation, &folder).unwrap();
    let done = setup.write(&SetupChoices {
        name: name.to_owned(),
        data: rows,
        csv: CsvFormat::default(),
        address,
        listen: None,
        epsilon_total: None,
        privacy: PrivacyChoice::Exact,
        known: Vec::new(),
    });
    let done = done.unwrap();
    assert!(done.rows > 300);
    let answer = here.join("answers").join(done.answer.file_name().unwrap());
    std::fs::copy(&done.answer, answer).unwrap();
    let config = provider::load(&done.config).unwrap();
    let (ready, listening) = channel();
    let thread = std::thread::spawn(move || {
        let ready = move |_| ready.send(()).unwrap();
        Provider::serve_until(&config, ready, stop)
    });
    listening.recv().unwrap();
    thread
}

#[test]
fn a_job_of_the_builder_goes_to_the_network_without_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let invitation = invited(here);
    let (switch, stop) = StopSwitch::new();
    let hospitals = [0, 1].map(|place| hospital((here, &invitation), place, stop.clone()));
    // The paths of the example are those of the folder that the invitation made.
    std::env::set_current_dir(here).unwrap();
    data_user::main().unwrap();
    let trained = model::read(Path::new("result/model.json")).unwrap();
    let (rows, _) = data::read(
        Path::new("north/rows.csv"),
        trained.schema(),
        CsvFormat::default(),
    )
    .unwrap();
    assert!(trained.evaluate(&rows).accuracy > Some(0.93));
    assert!(Path::new("result/report.html").exists());
    assert!(!Path::new("result/checkpoint.json").exists());
    // There is nothing to go on with.
    let client = Client::new("identity")
        .answered(Path::new("answers"))
        .unwrap();
    let into = ResultFolder::new(Path::new("result")).resumed();
    let nothing = client
        .train(&job(here), &into, Arc::new(|_| ()))
        .unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Input);
    assert_eq!(nothing.remedy(), Some(Remedy::StartAfresh));
    // More iterations than a provider allows are refused by it, and by its own judgement.
    let (_, schema) = schema::read(Path::new("schema.toml")).unwrap();
    let long = Job::builder(schema.name().to_owned(), schema).iterations(1000);
    let into = ResultFolder::new(Path::new("more"));
    let refused = client.train(&long.build().unwrap(), &into, Arc::new(|_| ()));
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("iterations"), "{refused}");
    switch.stop();
    for hospital in hospitals {
        hospital.join().unwrap().unwrap();
    }
}
