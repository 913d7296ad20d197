//! A data user that tells one provider something else than the others: its program is the honest one, and
//! one of its lines changes what it says.

use crate::common::*;
use crate::hospitals::*;
use crate::promise::*;
use heda_blocks::channel::{Channel, Wire, WireError};
use heda_crypto::random::Randomness;
use heda_dp::gdp::Cost;
use heda_job::description::Protected;
use heda_job::error::JobError;
use heda_job::job::{self, Checkpoint, JobSpec, Link, NotKept, Observer, Outcome, Progress};
use heda_learn::optimise::Method;
use heda_node::client::training::NetworkJob;
use heda_node::wire::NetworkWire;
use serde_json::Value;

/// Tags of messages, as in `docs/protocols.md`.
const PROPOSAL: u8 = 0x01;
const SCALE: u8 = 0x06;
const AGREEMENT: u8 = 0x0a;
const AHEAD: u8 = 0x31;
const CHOICES: u8 = 0x35;

/// What a line does to a message before it leaves; nothing if it ends instead.
pub(super) type Twist = Box<dyn FnMut(u8, Vec<u8>) -> Option<Vec<u8>> + Send>;

/// The way to one provider. It is there until the twist ends it.
struct Twisted {
    wire: Option<NetworkWire>,
    twist: Twist,
}

impl Twisted {
    fn wire(&mut self) -> Result<&mut NetworkWire, WireError> {
        let cut = || WireError::Closed("cut".into());
        self.wire.as_mut().ok_or_else(cut)
    }
}

impl Wire for Twisted {
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
        let tag = message[0];
        let Some(body) = (self.twist)(tag, message[1..].to_vec()) else {
            self.wire = None;
            return self.wire().map(|_| ());
        };
        self.wire()?.send_tagged(tag, &body)
    }

    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
        self.wire()?.receive(limit)
    }
}

/// Changes the first message with this tag that has this field.
fn telling(tag: u8, field: &'static str, change: fn(&mut Value)) -> Twist {
    let mut told = false;
    Box::new(move |sent, body| {
        if sent != tag || told {
            return Some(body);
        }
        let mut message: Value = serde_json::from_slice(&body).unwrap();
        let Some(value) = message.pointer_mut(field) else {
            return Some(body);
        };
        change(value);
        told = true;
        Some(serde_json::to_vec(&message).unwrap())
    })
}

/// A line that ends before the first message with this tag.
pub(super) fn ending_at_choices() -> Twist {
    Box::new(|tag, body| (tag != CHOICES).then_some(body))
}

/// A line that spoils the first request for transfers.
pub(super) fn spoiling_a_request() -> Twist {
    let mut spoilt = false;
    Box::new(move |tag, mut body| {
        if tag == AHEAD && !std::mem::replace(&mut spoilt, true) {
            // Behind its number, in the columns that the check is about.
            body[23] ^= 1;
        }
        Some(body)
    })
}

/// Keeps norms of gradients and the last checkpoint.
#[derive(Default)]
pub(super) struct Seen {
    norms: Vec<f64>,
    pub(super) last: Option<Checkpoint>,
}

impl Observer for Seen {
    fn progress(&mut self, progress: Progress) {
        if let Progress::Iteration { norm, .. } = progress {
            self.norms.extend(norm);
        }
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        self.last = Some(checkpoint.clone());
        Ok(true)
    }
}

/// One session of a job with all three, of which the first is told what `twist` makes of it.
pub(super) fn session(
    (world, daemons): (&World, &[Running]),
    spec: &JobSpec,
    twist: Twist,
    resume: Option<Checkpoint>,
) -> (Result<Outcome, JobError>, Seen) {
    let job = world.job(1, world.remotes(daemons), PATIENCE);
    let runtime = runtime();
    let mut twist = Some(twist);
    let links = job.providers.iter().map(|remote| {
        let session = runtime.block_on(job.connector.open(remote)).unwrap();
        let wire: Box<dyn Wire> = match twist.take() {
            Some(twist) => Box::new(Twisted {
                wire: Some(session.wire),
                twist,
            }),
            None => Box::new(session.wire),
        };
        Link {
            name: remote.peer.label.clone(),
            identity: session.identity,
            channel: Channel::new(wire),
        }
    });
    let links = links.collect();
    let mut seen = Seen {
        last: resume.clone(),
        ..Seen::default()
    };
    let randomness = Randomness::seeded(SEED).party("user");
    let outcome = job::run(spec, links, &randomness, &mut seen, resume);
    (outcome, seen)
}

pub(super) fn honest() -> Twist {
    Box::new(|_, body| Some(body))
}

/// A world whose daemons have served nothing, and what comes of one job.
fn cheated(limits: &str, spec: &JobSpec, twist: Twist) -> (World, Result<Outcome, JobError>, Seen) {
    let world = world(limits);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let (outcome, seen) = session((&world, &daemons), spec, twist, None);
    for mut daemon in daemons {
        daemon.stop().unwrap();
    }
    (world, outcome, seen)
}

/// Gradients of sums that do not add up are larger than those of any rows.
fn assert_no_sums(seen: &Seen, honest: &Seen) {
    let largest = honest
        .norms
        .iter()
        .fold(0.0f64, |most, norm| most.max(*norm));
    assert!(largest > 0.0);
    for norm in &seen.norms {
        assert!(*norm > 4.0 * largest, "{norm} and {largest}");
    }
}

fn words(outcome: Result<Outcome, JobError>) -> String {
    outcome
        .map(|outcome| outcome.fits.len())
        .unwrap_err()
        .to_string()
}

/// With another promise at one provider nobody makes masks: nothing is computed, and nothing paid.
#[test]
fn another_epsilon_for_one_provider_ends_the_job_before_anything_is_paid() {
    for change in [
        |epsilon: &mut Value| *epsilon = "2".into(),
        |epsilon: &mut Value| *epsilon = "0.5".into(),
    ] {
        let spec = private_spec(1, privacy());
        let twist = telling(PROPOSAL, "/job/task/private/privacy/epsilon", change);
        let (world, outcome, _) = cheated(CAP, &spec, twist);
        let words = words(outcome);
        assert!(words.contains("signature of announcement"), "{words}");
        assert_eq!(spent(&world), [Cost::ZERO; 3]);
        for hospital in &world.hospitals {
            let status = hospital.ledger().status("biopsies").unwrap();
            assert_eq!(status.iterations_today, 0);
        }
    }
}

/// A provider that counts on fewer others than the others do adds other noise: no sum, and everyone has
/// charged what it answered.
#[test]
fn another_agreement_for_one_provider_gives_no_sum() {
    let spec = private_spec(1, privacy());
    let (_, honest, _) = cheated(CAP, &spec, honest());
    assert!(honest.is_ok());
    let twist = telling(AGREEMENT, "/trusted", |trusted| *trusted = 0.into());
    let (world, outcome, seen) = cheated(CAP, &spec, twist);
    assert!(outcome.is_err());
    let moments = plan().cost_of_moment_answer().times(2);
    let answered = seen
        .last
        .map_or(0, |last| u64::from(last.step.saturating_sub(2)));
    let gradients = plan()
        .cost_of_pass()
        .times(answered.min(plan().gradients().into()));
    assert_eq!(spent(&world), [moments.plus(gradients); 3]);
}

/// Rows that one provider writes by another scale: no gradient and no count, and all is charged.
#[test]
fn other_scales_for_one_provider_give_no_sum() {
    let spec = private_spec(1, privacy());
    let (_, outcome, honest_seen) = cheated(CAP, &spec, honest());
    assert!(outcome.is_ok());
    let twist = telling(SCALE, "/centres/centres/0/mean", |mean| {
        *mean = (mean.as_f64().unwrap() * 0.5).into();
    });
    let (world, outcome, seen) = cheated(CAP, &spec, twist);
    let refused = words(outcome);
    assert!(refused.contains("do not add up"), "{refused}");
    assert_eq!(seen.norms.len(), plan().gradients() as usize);
    assert_no_sums(&seen, &honest_seen);
    assert_eq!(spent(&world), [plan().cost(); 3]);
    // The same without noise.
    let (world, outcome, honest_seen) = cheated("", &self::spec(1), honest());
    assert!(outcome.is_ok());
    let learned = |world: &World| {
        let of = |hospital: &Hospital| hospital.ledger().status("biopsies").unwrap().disclosed;
        world
            .hospitals
            .iter()
            .map(|h| of(h)[0].numbers)
            .collect::<Vec<_>>()
    };
    let honest_numbers = learned(&world);
    let twist = telling(SCALE, "/told/windows/0/low", |low| {
        *low = (low.as_f64().unwrap() + 0.001).into();
    });
    let (world, outcome, seen) = cheated("", &self::spec(1), twist);
    let refused = words(outcome);
    assert!(refused.contains("do not add up"), "{refused}");
    assert_no_sums(&seen, &honest_seen);
    assert_eq!(
        learned(&world),
        honest_numbers,
        "numbers count, sums or not"
    );
}

/// Sums of columns are sums over rows, as gradients are: with a job of fewer providers the sums of the one that
/// is missing would follow.
#[test]
fn sums_of_columns_of_all_and_gradients_of_fewer_are_not_both_given() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    // It has the sums, and leaves before it says what follows from them.
    let mut scales = 0;
    let leaving: Twist = Box::new(move |tag, body| {
        scales += usize::from(tag == SCALE);
        (scales < 2).then_some(body)
    });
    let (ended, _) = session((&world, &daemons), &spec(1), leaving, None);
    assert!(ended.is_err());
    for hospital in &world.hospitals {
        let status = hospital.ledger().status("biopsies").unwrap();
        assert_eq!(status.jobs[0].iterations, 0, "no gradient left");
    }
    let descent = spec(2).with(|raw| {
        raw.training.settings.method = Method::Nesterov {
            rate: 0.1,
            batches: 1,
        };
        raw.ranking = None;
        raw.protected = Protected::All;
        raw.spending = None;
    });
    let fewer = NetworkJob {
        spec: descent.unwrap(),
        ..world.job(2, world.remotes(&daemons)[..2].to_vec(), PATIENCE)
    };
    let words = refused(&world, fewer, "fewer");
    assert!(words.contains("alone contributes"), "{words}");
}
