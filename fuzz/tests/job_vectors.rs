//! Known answers for one whole small job: every message that its parties receive, and what they
//! say to messages that are wrong.
//!
//! A change of any byte is a change of the wire between versions. If it is meant, raise the version
//! of the protocol and write the file anew with `UPDATE_VECTORS=1`.
#![allow(clippy::unwrap_used)]

use heda_fuzz::play::{Message, Play};
use heda_job::engine::Engine;
use heda_paper::engine::paper;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vectors {
    about: String,
    /// In the order of arrival at each party.
    messages: Vec<Arrival>,
    refusals: Vec<Refusal>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Arrival {
    to: Party,
    number: usize,
    tag: u8,
    bytes: usize,
    sha256: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Refusal {
    to: Party,
    number: usize,
    change: Change,
    error: String,
}

/// The first provider, or the data user as far as it hears the first provider.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Party {
    Provider,
    DataUser,
}

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    /// Its tag is another.
    Tag,
    /// Its last byte is missing.
    Shorter,
    /// It has a byte too many.
    Longer,
    /// It stops for a reason that is no text.
    Stop,
    /// In its JSON, the first text is replaced by the second.
    Text(String, String),
}

impl Change {
    fn apply(&self, message: &mut Message) {
        match self {
            Self::Tag => message[0] ^= 0x40,
            Self::Shorter => drop(message.pop()),
            Self::Longer => message.push(0),
            Self::Stop => *message = vec![0xff, 0xfe, 0x07],
            Self::Text(from, to) => {
                let text = String::from_utf8(message.clone()).unwrap();
                assert!(text.contains(from.as_str()), "{from} in {text}");
                *message = text.replacen(from, to, 1).into_bytes();
            }
        }
    }
}

/// Changes of every message.
const CHANGES: [Change; 4] = [Change::Tag, Change::Shorter, Change::Longer, Change::Stop];

/// Changes of the proposal, which is JSON in every version.
const PROPOSALS: [(&str, &str); 6] = [
    ("\"version\":", "\"version\":9"),
    ("\"engine\":\"", "\"engine\":\"un"),
    ("\"index_bits\":", "\"index_bits\":9"),
    ("\"positives\":[1]", "\"positives\":[1,1]"),
    ("\"schema\":\"", "\"schema\":\"00"),
    ("\"id\":\"", "\"id\":\"g"),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn messages_to(play: &Play, to: Party) -> &[Message] {
    match to {
        Party::Provider => &play.to_provider,
        Party::DataUser => &play.to_user[0],
    }
}

fn arrivals(play: &Play, to: Party) -> Vec<Arrival> {
    let arrival = |(number, message): (usize, &Message)| Arrival {
        to,
        number,
        tag: message[0],
        bytes: message.len() - 1,
        sha256: hex(&Sha256::digest(&message[1..])),
    };
    messages_to(play, to)
        .iter()
        .enumerate()
        .map(arrival)
        .collect()
}

/// What a party says when one message is changed; nothing if it goes on to the end.
fn answer(play: &Play, to: Party, number: usize, change: &Change) -> Option<String> {
    let mut messages = messages_to(play, to).to_vec();
    change.apply(&mut messages[number]);
    match to {
        Party::Provider => play.serve(messages).err().map(|e| e.to_string()),
        Party::DataUser => {
            let mut scripts = play.to_user.clone();
            scripts[0] = messages;
            play.train(scripts).err().map(|e| e.to_string())
        }
    }
}

/// Every message is refused with another tag, one byte short, one byte long, and when it stops.
fn refusals(play: &Play) -> Vec<Refusal> {
    let mut cases = Vec::new();
    for to in [Party::Provider, Party::DataUser] {
        for number in 0..messages_to(play, to).len() {
            cases.extend(CHANGES.map(|change| (to, number, change)));
        }
    }
    let text = |(from, to): (&str, &str)| Change::Text(from.into(), to.into());
    cases.extend(PROPOSALS.map(|change| (Party::Provider, 0, text(change))));
    let refusal = |(to, number, change)| Refusal {
        to,
        number,
        error: answer(play, to, number, &change)
            .unwrap_or_else(|| panic!("{to:?}, message {number}: {change:?} is not noticed")),
        change,
    };
    cases.into_iter().map(refusal).collect()
}

/// A step of a protocol: its name in the documents, and the tags of its messages by who hears them.
type Step = (&'static str, Party, &'static [u8]);

/// The job up to its training, from `docs/protocols.md`: this one is ranked by all, standardises and
/// publishes.
const BEGIN: [Step; 10] = [
    ("J1 proposal", Party::Provider, &[0x01]),
    ("J2 acceptance", Party::DataUser, &[0x02]),
    ("J3 announcements", Party::Provider, &[0x03]),
    ("J3a agreement", Party::Provider, &[0x0a]),
    ("J4 scores", Party::DataUser, &[0x04]),
    ("J5 split", Party::Provider, &[0x05]),
    ("J5a question", Party::Provider, &[0x06]),
    ("J5a sums", Party::DataUser, &[0x07]),
    ("J5a windows", Party::Provider, &[0x06]),
    ("J6 charge and release", Party::DataUser, &[0x08, 0x09]),
];
/// J7 and J8 of engine `resident`, from `docs/resident.md`; engine `paper` counts with it.
const SETUP: [Step; 3] = [
    ("S first", Party::Provider, &[0x30]),
    ("S second", Party::DataUser, &[0x30]),
    ("S third", Party::Provider, &[0x30]),
];
/// J9: one gradient.
const GRADIENT: [Step; 6] = [
    ("command, requests", Party::Provider, &[0x20, 0x31]),
    ("R1, R2", Party::DataUser, &[0x32]),
    ("R3", Party::Provider, &[0x33]),
    ("R4", Party::DataUser, &[0x34]),
    ("R5", Party::Provider, &[0x35]),
    ("R6", Party::DataUser, &[0x36, 0x37]),
];
/// J10: one evaluation.
const EVALUATION: [Step; 8] = [
    ("command, requests", Party::Provider, &[0x20, 0x31]),
    ("E1", Party::DataUser, &[0x32]),
    ("E2 question", Party::Provider, &[0x33]),
    ("E2 symbols", Party::DataUser, &[0x34]),
    ("E3 question", Party::Provider, &[0x33]),
    ("E3 symbols", Party::DataUser, &[0x34]),
    ("E4 choices", Party::Provider, &[0x35]),
    ("E4 counts", Party::DataUser, &[0x36]),
];
/// J7 and J8 of engine `paper`, from `docs/building-blocks.md`.
const PAPER_SETUP: [Step; 3] = [
    ("S1 keys", Party::DataUser, &[0x50, 0x51]),
    ("S2 key", Party::Provider, &[0x52]),
    ("S3 dictionary, S4 labels", Party::DataUser, &[0x53, 0x54]),
];
/// J9 of engine `paper`: exchange 1, division, exchange 2.
const PAPER_GRADIENT: [Step; 6] = [
    ("command, blinded products", Party::Provider, &[0x20, 0x45]),
    ("exchanged", Party::DataUser, &[0x46]),
    ("denominators", Party::Provider, &[0x56]),
    ("quotients", Party::DataUser, &[0x57]),
    ("masked sum", Party::Provider, &[0x47]),
    ("sum under the other key", Party::DataUser, &[0x48]),
];
const FINISH: Step = ("J11 finish", Party::Provider, &[0x20]);

/// The steps of the recorded job, which has one gradient and one evaluation.
fn steps(engine: Engine) -> Vec<Step> {
    let (setup, gradient) = match engine == paper() {
        true => ([&SETUP[..], &PAPER_SETUP].concat(), &PAPER_GRADIENT[..]),
        false => (SETUP.to_vec(), &GRADIENT[..]),
    };
    [&BEGIN[..], &setup, gradient, &EVALUATION, &[FINISH]].concat()
}

/// The tags that a party hears, by the protocol.
fn expected_tags(engine: Engine, by: Party) -> Vec<u8> {
    let steps = steps(engine).into_iter();
    let heard = steps.filter(|(_, to, _)| *to == by);
    heard.flat_map(|(_, _, tags)| tags).copied().collect()
}

/// Compares a job of an engine with its file; `wrong` are the wrong messages to be tried, so many in
/// all and so many for each message.
fn compare(engine: Engine, wrong: fn(&Play) -> Vec<Refusal>, (in_all, each): (usize, usize)) {
    let play = Play::record(engine);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let path = folder.join(format!("job_{engine}.json"));
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        let vectors = Vectors {
            about: "A whole small job: written and read by fuzz/tests/job_vectors.rs".into(),
            messages: [Party::Provider, Party::DataUser]
                .map(|to| arrivals(&play, to))
                .concat(),
            refusals: wrong(&play),
        };
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(
            &path,
            serde_json::to_string_pretty(&vectors).unwrap() + "\n",
        )
        .unwrap();
    }
    let vectors: Vectors = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let found = [Party::Provider, Party::DataUser].map(|to| arrivals(&play, to));
    assert_eq!(found.concat(), vectors.messages);
    for Refusal {
        to,
        number,
        change,
        error,
    } in &vectors.refusals
    {
        let told = answer(&play, *to, *number, change);
        assert_eq!(
            told.as_deref(),
            Some(error.as_str()),
            "{to:?}, message {number}: {change:?}"
        );
    }
    for by in [Party::Provider, Party::DataUser] {
        let heard = vectors.messages.iter().filter(|message| message.to == by);
        let heard: Vec<u8> = heard.map(|message| message.tag).collect();
        assert_eq!(heard, expected_tags(engine, by), "{engine}: {by:?}");
    }
    assert_eq!(
        vectors.refusals.len(),
        in_all + each * vectors.messages.len()
    );
}

#[test]
fn every_message_of_engine_resident_is_that_of_the_file() {
    compare(Engine::RESIDENT, refusals, (PROPOSALS.len(), CHANGES.len()));
}

/// Wrong messages to this engine would each need new keys of real length.
#[test]
fn every_message_of_engine_paper_is_that_of_the_file() {
    compare(paper(), |_| Vec::new(), (0, 0));
}
