//! A data user that tells providers different things gets no sum. Fields are taken from the messages of
//! an honest job as they travel, so a new field, and a new message, is among them.

use crate::description::{Protected, Ranking, RawJob};
use crate::engine::testing::{FEATURES, SEED, dataset, schema, spec, with};
use crate::job::{self, JobSpec, Link, Provider, Quiet};
use crate::local::{LocalProvider, Parts};
use crate::message::testing::{HEARD_ALIKE, read};
use crate::message::{Acceptance, Announcements, FromProvider, Message};
use crate::proposal::{ClassWeight, JobId, Privacy, Proposal};
use ed25519_dalek::SigningKey;
use heda_blocks::channel::{Channel, Wire, WireError};
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{PenaltyPath, Settings};
use heda_learn::schema::Schema;
use heda_learn::{score, target};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A party that waits longer hears nothing any more: after a change both ends may wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);
const ANNOUNCEMENTS: u8 = Announcements::TAG;

/// What a provider drew masks for: purpose, round, and what it had agreed to.
pub(super) type Drawn = (String, u64, [u8; 32]);

thread_local! {
    pub(super) static DRAWN: RefCell<Vec<Drawn>> = const { RefCell::new(Vec::new()) };
}

/// One field of one message that a provider hears.
#[derive(Debug, Clone)]
struct Change {
    /// Which message, counted from the first.
    message: usize,
    /// What it becomes.
    body: Vec<u8>,
    /// Where it differs.
    place: String,
}

/// A line in memory that keeps what the provider heard and may alter one message.
struct Line {
    to: Sender<Vec<u8>>,
    from: Receiver<Vec<u8>>,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
    change: Option<Change>,
}

impl Wire for Line {
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
        let gone = |_| WireError::Closed("the other side is gone".into());
        self.to.send(message).map_err(gone)
    }

    fn receive(&mut self, _: usize) -> Result<Vec<u8>, WireError> {
        let gone = |e| WireError::Closed(format!("the other side: {e}"));
        let mut message = self.from.recv_timeout(PATIENCE).map_err(gone)?;
        let mut heard = self.heard.lock().unwrap();
        if let Some(change) = &self.change
            && change.message == heard.len()
        {
            message.truncate(1);
            message.extend(&change.body);
        }
        heard.push(message.clone());
        Ok(message)
    }
}

fn line(change: Option<Change>) -> (Channel, Channel, Arc<Mutex<Vec<Vec<u8>>>>) {
    let ((to_provider, provider), (to_user, user)) = (channel(), channel());
    let heard: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let end = |to, from, heard, change| {
        Channel::new(Box::new(Line {
            to,
            from,
            heard,
            change,
        }))
    };
    let user = end(to_provider, user, Arc::default(), None);
    let provider = end(to_user, provider, Arc::clone(&heard), change);
    (user, provider, heard)
}

/// What came of a job.
struct Run {
    /// What the first provider heard.
    heard: Vec<Vec<u8>>,
    /// Masks that each provider drew.
    drawn: Vec<Vec<Drawn>>,
}

pub(crate) fn identity(name: &str) -> SigningKey {
    let randomness = Randomness::seeded(SEED).party(name);
    SigningKey::generate(&mut randomness.fork("identity", 0).unwrap())
}

/// Runs a job of three providers of which the first hears something else.
fn run(spec: &JobSpec, guards: &[LocalProvider], change: Option<Change>) -> Run {
    let randomness = Randomness::seeded(SEED);
    let mut links = Vec::new();
    let mut ends = Vec::new();
    for (place, provider) in guards.iter().enumerate() {
        let (user, end, heard) = line(change.clone().filter(|_| place == 0));
        links.push(Link {
            name: provider.name.clone(),
            identity: identity(&provider.name).verifying_key(),
            channel: user,
        });
        ends.push((end, heard));
    }
    let first = Arc::clone(&ends[0].1);
    let drawn = std::thread::scope(|scope| {
        let serving: Vec<_> = guards
            .iter()
            .zip(ends)
            .map(|(provider, (mut end, _))| {
                let randomness = randomness.party(&provider.name);
                scope.spawn(move || {
                    let identity = identity(&provider.name);
                    let party = Provider {
                        guard: provider.guard.as_ref(),
                        identity: &identity,
                        randomness,
                    };
                    let _ = party.serve(&mut end);
                    DRAWN.take()
                })
            })
            .collect();
        let _ = job::run(spec, links, &randomness.party("user"), &mut Quiet, None);
        let drawn = serving.into_iter().map(|thread| thread.join().unwrap());
        drawn.collect()
    });
    let heard = first.lock().unwrap().clone();
    Run { heard, drawn }
}

/// Another value of the same kind.
fn altered(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![Value::from(1)],
        Value::Bool(flag) => vec![Value::from(!flag)],
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => vec![Value::from(whole + 1), Value::from(whole.saturating_sub(1))],
            (None, Some(real)) => vec![Value::from(real * 0.75 + 0.001)],
            _ => Vec::new(),
        },
        Value::String(text) => vec![Value::from(format!("{text}x")), other_text(text)],
        Value::Array(list) => {
            let mut shorter = list.clone();
            shorter.pop();
            let mut turned = list.clone();
            turned.reverse();
            vec![Value::from(shorter), Value::from(turned)]
        }
        Value::Object(_) => Vec::new(),
    }
}

/// A text of the same length, where the last digit is another.
fn other_text(text: &str) -> Value {
    let mut letters: Vec<char> = text.chars().collect();
    if let Some(last) = letters.last_mut() {
        *last = if *last == '1' { '2' } else { '1' };
    }
    Value::from(letters.into_iter().collect::<String>())
}

/// All values that differ from this one in one place.
fn changes(value: &Value, place: &str) -> Vec<(String, Value)> {
    let own = altered(value).into_iter().filter(|other| other != value);
    let mut all: Vec<(String, Value)> = own.map(|other| (place.to_owned(), other)).collect();
    match value {
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                for (inner, other) in changes(item, &format!("{place}.{index}")) {
                    let mut list = list.clone();
                    list[index] = other;
                    all.push((inner, Value::from(list)));
                }
            }
        }
        Value::Object(fields) => {
            for (name, item) in fields {
                for (inner, other) in changes(item, &format!("{place}.{name}")) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), other);
                    all.push((inner, Value::from(fields)));
                }
            }
        }
        _ => {}
    }
    all
}

/// Values for fields that an honest message leaves out.
fn candidates() -> Vec<Value> {
    vec![
        json!(true),
        json!(1),
        json!(2),
        json!(0.5),
        json!("balanced"),
        json!({"total": "4"}),
        json!([0.1, 1.0]),
        json!([[1.0, 2.0]]),
        json!(["x1", "kind", "x0", "x2"]),
        json!({"middle": 0.25, "deviation": 0.5}),
        json!("classes"),
        // Options of an engine that has none.
        json!({}),
    ]
}

/// Places of all objects in a value, as JSON pointers.
fn objects(value: &Value, place: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Array(list) => (0..).map(|i: usize| i.to_string()).zip(list).collect(),
        Value::Object(fields) => fields.iter().map(|(n, v)| (n.clone(), v)).collect(),
        _ => Vec::new(),
    };
    let own = value.is_object().then(|| place.to_owned());
    let inner = inner.into_iter();
    let inner = inner.flat_map(|(name, item)| objects(item, &format!("{place}/{name}")));
    own.into_iter().chain(inner).collect()
}

/// A message with one more field.
fn with_field(value: &Value, object: &str, name: &str, field: Value) -> Value {
    let mut value = value.clone();
    let fields = value.pointer_mut(object).and_then(Value::as_object_mut);
    fields.unwrap().insert(name.into(), field);
    value
}

/// All fields that an object of a message may have, told by the type that reads it.
fn fields_of(tag: u8, value: &Value, object: &str) -> Vec<String> {
    let stranger = with_field(value, object, "?", Value::Null);
    let words = read(tag, &serde_json::to_vec(&stranger).unwrap()).unwrap_err();
    let expected = words.split_once("unknown field `?`, expected ");
    let names = expected.map(|(_, names)| names.split('`').skip(1).step_by(2));
    names.into_iter().flatten().map(str::to_owned).collect()
}

/// All messages with one field more than an honest one has.
fn additions(tag: u8, value: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for object in objects(value, "") {
        for name in fields_of(tag, value, &object) {
            if value.pointer(&format!("{object}/{name}")).is_some() {
                continue;
            }
            let fits = |more: &Value| read(tag, &serde_json::to_vec(more).unwrap()).is_ok();
            let more = candidates().into_iter();
            let more = more.map(|field| with_field(value, &object, &name, field));
            let more: Vec<Value> = more.filter(fits).collect();
            assert!(!more.is_empty(), "{tag:#04x}{object}/{name}: no candidate");
            all.extend(more.into_iter().map(|m| (format!("{object}/{name}"), m)));
        }
    }
    all
}

/// All messages that differ from an honest one in one place, fields that it leaves out included.
fn other_messages(message: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (tag, value) = (message[0], serde_json::from_slice(&message[1..]).unwrap());
    let others = changes(&value, "").into_iter();
    let others = others.chain(additions(tag, &value));
    let others = others.map(|(place, other)| {
        let body = serde_json::to_vec(&other).unwrap();
        (format!("{tag:#04x}{place}"), body)
    });
    others.collect()
}

/// Every change of every message that all providers must hear alike, but the proposal.
fn all_changes(heard: &[Vec<u8>]) -> Vec<Change> {
    let alike = heard.iter().enumerate();
    let alike = alike.filter(|(_, bytes)| HEARD_ALIKE.contains(&bytes[0]));
    let change = |(message, bytes): (usize, &Vec<u8>)| {
        let others = other_messages(bytes).into_iter();
        others.map(move |(place, body)| Change {
            message,
            body,
            place,
        })
    };
    alike.flat_map(change).collect()
}

/// A job and its rows.
pub(crate) struct Case {
    pub(crate) spec: JobSpec,
    pub(crate) parts: Vec<Dataset>,
}

impl Case {
    pub(crate) fn of_classes(spec: JobSpec) -> Self {
        let parts = [30, 34, 38].map(|rows| dataset(rows, rows as u64));
        Self {
            spec,
            parts: parts.to_vec(),
        }
    }

    pub(crate) fn guards(&self) -> Vec<LocalProvider> {
        let parts = Parts::new(self.parts.clone(), &Randomness::seeded(SEED)).unwrap();
        parts.guards(&self.spec.schema, "1000".parse().unwrap())
    }
}

/// A ranking, sums of columns, weights of classes, gradients and counts.
pub(crate) fn exact() -> Case {
    let spec = with(&spec(LossKind::Logistic, FEATURES, 1), |raw| {
        raw.ranking = Some(Ranking::Agreed {
            method: score::ScoringMethod::KruskalWallis,
        });
        raw.training.settings = Settings {
            max_iterations: 2,
            ..Settings::lbfgs()
        };
        raw.class_weight = Some(ClassWeight::Balanced);
        raw.spending = None;
        raw.protected = Protected::All;
    });
    Case::of_classes(spec)
}

/// Moments, gradients and counts with noise.
pub(crate) fn private() -> Case {
    let promise = Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 40);
    let spec = with(&exact().spec, |raw| {
        raw.privacy = Some(promise.suited(&schema()));
        raw.class_weight = None;
    });
    Case::of_classes(spec)
}

/// Sums of columns and of a numeric label, gradients, and errors on held-out rows.
fn numeric() -> Case {
    let label = "kind = \"numeric\"\nbounds = [0, 100]\n";
    let column = |name| {
        format!(
            "[[column]]\nname = \"{name}\"\n{}",
            label.replace("100", "1")
        )
    };
    let columns: String = ["x0", "x1", "x2"].map(column).concat();
    let text = format!("format = 1\nname = \"n\"\n[label]\ncolumn = \"y\"\n{label}{columns}");
    let schema = Arc::new(Schema::parse(&text, "numbers.toml").unwrap());
    let number = |row: &[f64]| target::steps(0.3 + 0.3 * row[0] - 0.1 * row[1]);
    let part = |rows: usize| {
        let data = dataset(rows, rows as u64).select_features(&[0, 1, 2]);
        let labels = (0..rows).map(|row| number(data.row(row))).collect();
        let values = data.values().to_vec();
        Dataset::new(schema.features(), values, labels, Vec::new()).unwrap()
    };
    let parts = [30, 34, 38].map(part).to_vec();
    let mut raw = RawJob::new("shaped", &schema);
    raw.training.settings.max_iterations = 2;
    let spec = JobSpec::new(JobId([8; 16]), raw.try_into().unwrap(), schema);
    Case { spec, parts }
}

/// In every job where the first provider hears something else, whatever masks it draws afterwards are
/// bound to something else than those of the others. Gives the tags of what it heard.
fn nothing_adds_up(case: &Case, purposes: &[&str]) -> BTreeSet<u8> {
    let honest = run(&case.spec, &case.guards(), None);
    let drawn: BTreeSet<&str> = honest.drawn[0].iter().map(|(p, ..)| &p[..]).collect();
    assert_eq!(drawn, purposes.iter().copied().collect());
    assert_eq!(honest.drawn[0], honest.drawn[1], "all heard the same");
    assert_eq!(honest.drawn[0], honest.drawn[2]);
    let changes = all_changes(&honest.heard);
    assert!(changes.len() > 40, "{}", changes.len());
    for change in changes {
        let place = change.place.clone();
        let cheated = run(&case.spec, &case.guards(), Some(change));
        let (victim, other) = (&cheated.drawn[0], &cheated.drawn[1]);
        let before = honest.drawn[0].iter().zip(victim);
        let before = before.take_while(|(honest, drawn)| honest == drawn).count();
        // Sums that left before the change are those of everybody; later ones are nobody's.
        for (own, theirs) in victim.iter().zip(other).skip(before) {
            assert_ne!(own.2, theirs.2, "{place}: {own:?}");
        }
        assert!(
            before < honest.drawn[0].len() || place.starts_with("0x20"),
            "{place}"
        );
    }
    honest.heard.iter().map(|message| message[0]).collect()
}

#[test]
fn providers_that_hear_different_things_yield_no_sum_in_an_exact_job() {
    let purposes = ["scores", "moments", "resident gradient", "resident counts"];
    let heard = nothing_adds_up(&exact(), &purposes);
    assert!(
        HEARD_ALIKE.iter().all(|tag| heard.contains(tag)),
        "{heard:?}"
    );
}

#[test]
fn providers_that_hear_different_things_yield_no_sum_in_a_private_job() {
    let purposes = ["noisy moments", "resident gradient", "resident counts"];
    nothing_adds_up(&private(), &purposes);
}

#[test]
fn providers_that_hear_different_things_yield_no_sum_in_a_job_on_numbers() {
    let purposes = ["moments", "resident gradient", "resident errors"];
    nothing_adds_up(&numeric(), &purposes);
}

/// Plays messages to a provider and keeps what it says.
pub(crate) fn serve(
    provider: &LocalProvider,
    messages: Vec<Vec<u8>>,
) -> (Option<Acceptance>, String) {
    let (mut user, mut end, _) = line(None);
    for message in messages {
        user.send(message[0], &message[1..]).unwrap();
    }
    let identity = identity(&provider.name);
    let party = Provider {
        guard: provider.guard.as_ref(),
        identity: &identity,
        randomness: Randomness::seeded(SEED).party(&provider.name),
    };
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || party.serve(&mut end).err().map(|e| e.to_string()));
        let acceptance = Acceptance::receive(&mut user, ()).ok();
        drop(user);
        (acceptance, serving.join().unwrap().unwrap_or_default())
    })
}

/// The proposal of a job, as it travels.
pub(crate) fn proposal_of(case: &Case) -> Vec<u8> {
    let identities = case.guards().into_iter().map(|provider| {
        let key = identity(&provider.name).verifying_key();
        crate::codec::hex(key.as_bytes())
    });
    let proposal = case.spec.proposal(identities.collect(), true);
    [&[Proposal::TAG][..], &proposal.encode().unwrap()].concat()
}

/// What a provider announces to a proposal, if it does.
pub(crate) fn announced(provider: &LocalProvider, proposal: &[u8]) -> Option<Vec<u8>> {
    let (acceptance, _) = serve(provider, vec![proposal.to_vec()]);
    acceptance.map(|acceptance| acceptance.announcement.0)
}

/// Penalties of which one is chosen, and features that are published.
fn with_a_choice() -> Case {
    let spec = with(&exact().spec, |raw| {
        raw.training.path = Some(PenaltyPath::try_from(vec![0.1, 1.0]).unwrap());
        raw.protected = Protected::Best(2);
        raw.spending = Some(crate::proposal::Spending::Total("8".parse().unwrap()));
    });
    Case::of_classes(spec)
}

/// The proposal is what providers sign for each other: with another one they do not even make masks.
#[test]
fn providers_of_different_proposals_refuse_each_other() {
    for case in [exact(), private(), numeric(), with_a_choice()] {
        let proposal = proposal_of(&case);
        let own = |provider| announced(provider, &proposal).unwrap();
        let honest: Vec<Vec<u8>> = case.guards().iter().map(own).collect();
        let mut signed = 0;
        for (place, other) in other_messages(&proposal) {
            let message = [&[Proposal::TAG][..], &other].concat();
            let fresh = case.guards();
            let Some(own) = announced(&fresh[0], &message) else {
                continue;
            };
            signed += 1;
            // The others get what it signed, as a data user would relay it.
            let relayed = [&[ANNOUNCEMENTS][..], &own, &honest[1], &honest[2]].concat();
            let (_, words) = serve(&fresh[1], vec![proposal.clone(), relayed]);
            assert!(
                words.contains("the signature of announcement 0 is wrong"),
                "{place}: {words}"
            );
        }
        assert!(signed > 10, "{signed} proposals were accepted");
    }
}
