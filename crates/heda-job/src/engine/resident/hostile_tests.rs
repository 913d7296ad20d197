//! Whole jobs in which a provider sends whatever it likes, or a data user repeats what it sent
//! before: what the other side lets be seen of its reaction.

use super::tag;
use crate::engine::testing::{FEATURES, SEED, dataset, local_providers_for, settings, spec, with};
use crate::error::{JobError, ServeError};
use crate::guard::{Refusal, Step};
use crate::job::{self, JobSpec, Link, Outcome, Provider, Quiet};
use crate::message::{Command, Message};
use ed25519_dalek::SigningKey;
use heda_blocks::channel::{Channel, Wire, WireError};
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::Method;
use rand_core::Rng;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Changes the body of a message, which keeps its length; it is told the tag, and how many
/// messages with this tag there were before.
type Spoil = dyn Fn(u8, usize, &mut [u8]) + Send + Sync;

/// What arrived at one end: tags and lengths, and commands word by word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    tag: u8,
    length: usize,
    command: Option<Vec<u8>>,
}

/// One end of a conversation in memory.
struct TestWire {
    outgoing: Sender<Vec<u8>>,
    incoming: Receiver<Vec<u8>>,
    spoil: Arc<Spoil>,
    sent: [usize; 256],
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Wire for TestWire {
    fn send(&mut self, mut message: Vec<u8>) -> Result<(), WireError> {
        let (tag, before) = (message[0], self.sent[usize::from(message[0])]);
        self.sent[usize::from(tag)] += 1;
        (self.spoil)(tag, before, &mut message[1..]);
        let closed = |_| WireError::Closed("the peer ended".into());
        self.outgoing.send(message).map_err(closed)
    }

    fn receive(&mut self, _limit: usize) -> Result<Vec<u8>, WireError> {
        let message = self.incoming.recv_timeout(Duration::from_secs(60));
        let message = message.map_err(|_| WireError::Closed("the peer ended".into()))?;
        self.seen.lock().unwrap().push(Seen {
            tag: message[0],
            length: message.len(),
            command: (message[0] == Command::TAG).then(|| message[1..].to_vec()),
        });
        Ok(message)
    }
}

/// Two ends: what the first sends is changed by `spoils[0]`, what the second sends by `spoils[1]`;
/// and what arrived at the second.
fn ends(spoils: [Arc<Spoil>; 2]) -> (Channel, Channel, Arc<Mutex<Vec<Seen>>>) {
    let ((to_second, from_first), (to_first, from_second)) = (channel(), channel());
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let wire = |outgoing, incoming, spoil: &Arc<Spoil>, seen: &Arc<Mutex<Vec<Seen>>>| {
        let wire = TestWire {
            outgoing,
            incoming,
            spoil: Arc::clone(spoil),
            sent: [0; 256],
            seen: Arc::clone(seen),
        };
        Channel::new(Box::new(wire))
    };
    let first = wire(to_second, from_second, &spoils[0], &Arc::default());
    let second = wire(to_first, from_first, &spoils[1], &seen);
    (first, second, seen)
}

fn honest() -> Arc<Spoil> {
    Arc::new(|_, _, _| {})
}

/// What happened in a job with two providers, of which the second is not honest.
struct Happened {
    outcome: Result<Outcome, JobError>,
    served: Vec<Result<(), ServeError>>,
    /// What each provider received.
    seen: Vec<Vec<Seen>>,
    /// Whether each provider's guard answers the job no more, because its data user cheated.
    ended: Vec<bool>,
}

/// A job in which the data user spoils what it sends to the second provider, or that provider what
/// it sends.
fn run(spec: &JobSpec, parts: &[Dataset], user: Arc<Spoil>, provider: Arc<Spoil>) -> Happened {
    let randomness = Randomness::seeded(SEED);
    let guards = local_providers_for(parts, &randomness);
    let mut links = Vec::new();
    let mut served = Vec::new();
    for (number, guard) in guards.iter().enumerate() {
        let mut rng = randomness.party(&guard.name).fork("identity", 0).unwrap();
        let identity = SigningKey::generate(&mut rng);
        let spoils = match number {
            1 => [Arc::clone(&user), Arc::clone(&provider)],
            _ => [honest(), honest()],
        };
        let (channel, end, seen) = ends(spoils);
        links.push(Link {
            name: guard.name.clone(),
            identity: identity.verifying_key(),
            channel,
        });
        served.push((identity, end, seen));
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = guards
            .iter()
            .zip(served)
            .map(|(guard, (identity, mut end, seen))| {
                let randomness = randomness.party(&guard.name);
                scope.spawn(move || {
                    let guard = guard.guard.as_ref();
                    let party = Provider {
                        guard,
                        identity: &identity,
                        randomness,
                    };
                    let served = party.serve(&mut end).map(|_| ());
                    let seen = seen.lock().unwrap().clone();
                    (served, seen)
                })
            })
            .collect();
        let user = randomness.party("user");
        let outcome = job::run(spec, links, &user, &mut Quiet, None);
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        let (served, seen) = ended.unzip();
        let ended = guards.iter().map(|provider| {
            let begun = provider.guard.begin(spec.id, &Step::Scores);
            matches!(begun, Err(Refusal::Cheated))
        });
        Happened {
            outcome,
            served,
            seen,
            ended: ended.collect(),
        }
    })
}

fn noise(seed: u64) -> impl Fn(&mut [u8]) + Send + Sync {
    move |body: &mut [u8]| {
        let mut rng = Randomness::seeded(seed).fork("garbage", body.len() as u64);
        rng.as_mut().unwrap().fill_bytes(body);
    }
}

/// What a provider may send in place of what it should, from a certain gradient on.
fn spoils() -> Vec<(&'static str, Arc<Spoil>)> {
    let engine = [tag::COLUMNS, tag::SYMBOLS, tag::PAYLOAD, tag::SUM];
    let mut all: Vec<(&'static str, Arc<Spoil>)> = vec![
        (
            "noise in everything",
            Arc::new(move |tag, before, body| {
                if engine.contains(&tag) {
                    noise(before as u64)(body);
                }
            }),
        ),
        (
            "the greatest sums",
            Arc::new(|tag, _, body| {
                if tag == tag::SUM {
                    body.fill(0x77);
                }
            }),
        ),
        (
            "symbols of one half of all places turned over",
            Arc::new(|tag, _, body| {
                if tag == tag::SYMBOLS {
                    let half = body
                        .chunks_mut(32)
                        .flat_map(|table| table.iter_mut().take(16));
                    half.for_each(|byte| *byte ^= 0xff);
                }
            }),
        ),
        (
            "columns that fit some digits only",
            Arc::new(|tag, _, body| {
                if tag == tag::COLUMNS {
                    body.iter_mut().step_by(32).for_each(|byte| *byte ^= 1);
                }
            }),
        ),
    ];
    all.push((
        "nothing but noughts",
        Arc::new(move |tag, _, body| {
            if engine.contains(&tag) {
                body.fill(0);
            }
        }),
    ));
    all
}

/// A provider that lies learns nothing from the conversation: whatever it sends, every provider
/// receives the same commands and messages of the same lengths to the very end.
#[test]
fn no_provider_sees_a_reaction_to_what_it_sent() {
    let parts = [dataset(60, 1), dataset(60, 2)];
    let lbfgs = Method::Lbfgs { memory: 5 };
    let two_batches = spec(LossKind::Logistic, FEATURES, 2);
    let batches = settings(&two_batches).method.clone();
    for method in [lbfgs, batches] {
        let spec = with(&spec(LossKind::Logistic, FEATURES, 1), |raw| {
            raw.training.settings.method = method.clone();
            raw.training.settings.max_iterations = 7;
            raw.training.settings.tolerance = 1e-3;
        });
        let expected = run(&spec, &parts, honest(), honest());
        assert!(expected.outcome.is_ok());
        assert_eq!(expected.ended, [false; 2]);
        for (words, spoil) in spoils() {
            let found = run(&spec, &parts, honest(), spoil);
            assert_eq!(found.seen, expected.seen, "{words} with {method:?}");
            assert!(found.served.iter().all(Result::is_ok), "{words}");
        }
    }
}

/// When a class converged cannot be read from the batches either: with two classes and a number of
/// gradients that the batches do not divide.
#[test]
fn batches_go_on_after_the_training_converged_as_before() {
    let parts = [dataset(60, 1), dataset(60, 2)];
    // As long as each other where they are written: the job itself travels.
    let [soon, late] = [1000.0, 0.0001].map(|tolerance| {
        let spec = with(&spec(LossKind::Logistic, FEATURES, 3), |raw| {
            raw.positives = vec![1, 0];
            raw.training.settings.max_iterations = 5;
            raw.training.settings.tolerance = tolerance;
        });
        let happened = run(&spec, &parts, honest(), honest());
        let fits = happened.outcome.unwrap().fits;
        let used: Vec<u32> = fits.iter().map(|fit| fit.iterations).collect();
        (used, happened.seen)
    });
    assert_eq!((soon.0, late.0), (vec![3, 3], vec![5, 5]));
    assert_eq!(soon.1, late.1);
}

/// Steps that leave the range of numbers end the job, but not before the conversation is over.
#[test]
fn providers_cannot_see_that_the_training_diverged() {
    let parts = [dataset(60, 1), dataset(60, 2)];
    let at_rate = |rate: f64| {
        let spec = with(&spec(LossKind::Logistic, FEATURES, 1), |raw| {
            raw.training.settings.method = Method::Descent {
                rate,
                minimum_rate: 0.0,
                decay: 0.0,
                batches: 1,
            };
        });
        run(&spec, &parts, honest(), honest())
    };
    // As long as each other where they are written: the job itself travels.
    let (small, large) = (at_rate(1.7976931348623157e-100), at_rate(f64::MAX));
    assert!(small.outcome.is_ok());
    let words = large.outcome.unwrap_err().to_string();
    assert!(words.contains("lower the learning rate"), "{words}");
    assert_eq!(small.seen, large.seen);
    assert!(large.served.iter().all(Result::is_ok));
}

/// A data user that repeats or changes its messages is refused before anything is answered, or has
/// made another choice and nothing else.
#[test]
fn a_data_user_that_repeats_a_request_is_refused() {
    let parts = [dataset(60, 1), dataset(60, 2)];
    let spec = spec(LossKind::Logistic, FEATURES, 1);
    let stored: Arc<Mutex<Vec<u8>>> = Arc::default();
    // The request of the second gradient again in place of the third one's.
    let repeat: Arc<Spoil> = {
        let stored = Arc::clone(&stored);
        Arc::new(move |tag, before, body| {
            let mut stored = stored.lock().unwrap();
            match (tag, before) {
                (tag::PREPROCESS, 1) => *stored = body.to_vec(),
                (tag::PREPROCESS, 2) => body.copy_from_slice(&stored),
                _ => {}
            }
        })
    };
    // The same with the number that is due: it was answered under other columns.
    let renumbered: Arc<Spoil> = {
        let stored = Arc::clone(&stored);
        Arc::new(move |tag, before, body| {
            let mut stored = stored.lock().unwrap();
            match (tag, before) {
                (tag::PREPROCESS, 1) => *stored = body.to_vec(),
                (tag::PREPROCESS, 2) => body[8..].copy_from_slice(&stored[8..]),
                _ => {}
            }
        })
    };
    // What was sent in an earlier session of the same job, under other keys.
    let earlier: Arc<Mutex<Vec<u8>>> = Arc::default();
    let keep: Arc<Spoil> = {
        let earlier = Arc::clone(&earlier);
        Arc::new(move |tag, before, body| {
            if (tag, before) == (tag::PREPROCESS, 0) {
                *earlier.lock().unwrap() = body.to_vec();
            }
        })
    };
    assert!(run(&spec, &parts, keep, honest()).outcome.is_ok());
    let mut other = spec.clone();
    other.id = crate::proposal::JobId([8; 16]);
    let replay: Arc<Spoil> = Arc::new(move |tag, before, body| {
        if (tag, before) == (tag::PREPROCESS, 0) {
            body.copy_from_slice(&earlier.lock().unwrap());
        }
    });
    for (spec, spoil, expected, words) in [
        (&spec, repeat, 2, "begin a new session"),
        (&spec, renumbered, 2, "it cheated"),
        (&other, replay, 0, "it cheated"),
    ] {
        let happened = run(spec, &parts, spoil, honest());
        let told = happened.outcome.unwrap_err().to_string();
        assert!(told.starts_with("provider provider-2: "), "{told}");
        // Only a check that no honest data user fails ends the job for good, and only where it failed.
        assert_eq!(happened.ended, [false, words == "it cheated"]);
        let refused = happened.served[1].as_ref().unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
        // Nothing was answered after it.
        let asked = happened.seen[1]
            .iter()
            .filter(|seen| seen.tag == tag::PREPROCESS);
        assert_eq!(asked.count(), expected + 1);
    }
}
