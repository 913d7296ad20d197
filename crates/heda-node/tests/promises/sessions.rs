//! Answers of a job over several sessions, at daemons with ledgers: each leaves once, is begun a few times
//! at most, and counts against every limit.

use crate::cheats::{ending_at_choices, honest, session, spoiling_a_request};
use crate::common::*;
use crate::hospitals::*;
use crate::promise::*;
use heda_blocks::channel::{Channel, ChannelError};
use heda_dp::gdp::Cost;
use heda_job::guard::MOST_TRIES;
use heda_job::proposal::{PROTOCOL_VERSION, Parties, Proposal, Split};
use serde_json::{Value, json};

/// Tags of messages, as in `docs/protocols.md`.
const PROPOSAL: u8 = 0x01;
const ACCEPTANCE: u8 = 0x02;
const ANNOUNCEMENTS: u8 = 0x03;
const SPLIT: u8 = 0x05;
const SCALE: u8 = 0x06;
const SUMS: u8 = 0x07;
const AGREEMENT: u8 = 0x0a;
const RESERVED: u8 = 0x0b;
const LIMIT: usize = 1 << 20;

fn started(world: &World) -> Vec<Running> {
    world.hospitals.iter().map(Hospital::serve).collect()
}

/// The proposal of a private job with all three.
fn proposal(world: &World) -> Proposal {
    let spec = private_spec(1, privacy());
    let hex = |hospital: &Hospital| -> String {
        let key = hospital.identity.signing_key().verifying_key();
        key.as_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    Proposal {
        version: PROTOCOL_VERSION,
        id: spec.id,
        job: spec.job,
        parties: Parties {
            identities: world.hospitals.iter().map(hex).collect(),
            chooser: None,
        },
        order: None,
        seeded: true,
    }
}

/// A data user that speaks to all three by hand, up to the split.
fn agreed(world: &World, daemons: &[Running]) -> (User, Vec<Channel>) {
    let user = User::new(world.user.clone());
    let remotes = world.remotes(daemons);
    let mut all: Vec<Channel> = remotes.iter().map(|r| user.open(r).unwrap()).collect();
    let proposal = serde_json::to_vec(&proposal(world)).unwrap();
    let mut announcements = Vec::new();
    for channel in &mut all {
        channel.send(PROPOSAL, &proposal).unwrap();
        let accepted = channel.receive(ACCEPTANCE, LIMIT).unwrap();
        let accepted: Value = serde_json::from_slice(&accepted).unwrap();
        let digits = accepted["announcement"].as_str().unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        announcements.extend(digits.chunks(2).map(|pair| byte(pair).unwrap()));
    }
    let agreement = json!({"trusted": 1, "persons": false, "first_step": 0}).to_string();
    let split = Split {
        encrypted: (0..9).collect(),
        published: Vec::new(),
        dropped: Vec::new(),
    };
    for channel in &mut all {
        channel.send(ANNOUNCEMENTS, &announcements).unwrap();
        channel.send(AGREEMENT, agreement.as_bytes()).unwrap();
        channel.receive(RESERVED, LIMIT).unwrap();
        channel
            .send(SPLIT, &serde_json::to_vec(&split).unwrap())
            .unwrap();
    }
    (user, all)
}

/// Asks for one half of the moments.
fn ask_noisy(channel: &mut Channel, step: u32) -> Result<Vec<u8>, ChannelError> {
    let ask = json!({"ask-noisy": {"step": step}}).to_string();
    channel.send(SCALE, ask.as_bytes())?;
    channel.receive(SUMS, LIMIT)
}

/// Two connections of one data user ask for the same answer at once, again and again: of the two each
/// provider answers one.
#[test]
fn of_two_connections_at_once_one_gets_the_answer() {
    let world = world(CAP);
    let daemons = started(&world);
    let [(_first, mut one), (_second, mut two)] = [(); 2].map(|()| agreed(&world, &daemons));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked = one
            .iter_mut()
            .zip(&mut two)
            .map(|(one, two)| [one, two].map(|channel| scope.spawn(move || ask_noisy(channel, 0))));
        let asked: Vec<_> = asked.collect();
        let joined = asked.into_iter();
        joined
            .map(|both| both.map(|thread| thread.join().unwrap()))
            .collect()
    });
    for both in answers {
        let (given, refused): (Vec<_>, Vec<_>) = both.into_iter().partition(Result::is_ok);
        assert_eq!((given.len(), refused.len()), (1, 1));
        let words = refused[0].as_ref().unwrap_err().to_string();
        assert!(words.contains("has left before"), "{words}");
    }
    assert_eq!(spent(&world), [plan().cost_of_moment_answer(); 3]);
    for hospital in &world.hospitals {
        let status = hospital.ledger().status("biopsies").unwrap();
        assert_eq!((status.jobs[0].rankings, status.iterations_today), (1, 1));
    }
}

/// Bought moments are answers like others: they count in the job and on the day.
#[test]
fn bought_moments_count_against_the_limits_of_a_job_and_of_a_day() {
    let world = world(CAP);
    let daemons = started(&world);
    world
        .run(
            job(&world, &daemons, private_spec(1, privacy())),
            "one",
            false,
        )
        .unwrap();
    for hospital in &world.hospitals {
        let status = hospital.ledger().status("biopsies").unwrap();
        let job = &status.jobs[0];
        assert_eq!((job.rankings, job.evaluations), (2, 2));
        assert_eq!(status.iterations_today, u64::from(plan().gradients()) + 4);
    }
    drop(daemons);
    let strict = self::world(&format!("{CAP}\nrankings_per_job = 1"));
    let daemons = started(&strict);
    let refused = refused(
        &strict,
        job(&strict, &daemons, private_spec(1, privacy())),
        "one",
    );
    assert!(refused.contains("had 1 rankings"), "{refused}");
    assert_eq!(spent(&strict), [plan().cost_of_moment_answer(); 3]);
    drop(daemons);
    // A day with room for one answer: nothing is served beyond it, in this job or another one.
    let mut short = self::world(CAP);
    for hospital in &mut short.hospitals {
        hospital.iterations_per_day = 1;
    }
    let daemons = started(&short);
    let (_user, mut all) = agreed(&short, &daemons);
    for channel in &mut all {
        ask_noisy(channel, 0).unwrap();
        let words = ask_noisy(channel, 1).unwrap_err().to_string();
        assert!(words.contains("as many as a day may have"), "{words}");
    }
    assert_eq!(spent(&short), [plan().cost_of_moment_answer(); 3]);
}

/// A job that runs has the day's room for its moments, too.
#[test]
fn the_room_of_a_day_is_set_aside_for_moments_as_well() {
    let mut world = world(CAP);
    for hospital in &mut world.hospitals {
        hospital.iterations_per_day = u64::from(plan().gradients()) + 4;
    }
    let daemons = started(&world);
    let running = agreed(&world, &daemons);
    let other = Proposal {
        id: private_spec(2, privacy()).id,
        ..proposal(&world)
    };
    let user = User::new(world.user.clone());
    let mut channel = user.open(&world.remotes(&daemons)[0]).unwrap();
    channel
        .send(PROPOSAL, &serde_json::to_vec(&other).unwrap())
        .unwrap();
    let words = channel.receive(ACCEPTANCE, LIMIT).unwrap_err().to_string();
    assert!(words.contains(", 0 are free;"), "{words}");
    drop(running);
}

/// What is begun and not taken costs nothing at the provider that was cut off, eight times; then the job has
/// ended. The others pay for what they answered.
#[test]
fn an_answer_is_begun_in_eight_sessions_and_refused_in_the_ninth() {
    let world = world(CAP);
    let daemons = started(&world);
    let spec = private_spec(1, privacy());
    let moments = plan().cost_of_moment_answer().times(2);
    let mut last = None;
    for attempt in 1..=MOST_TRIES {
        let (outcome, seen) = session((&world, &daemons), &spec, ending_at_choices(), last);
        assert!(outcome.is_err(), "attempt {attempt}");
        assert_eq!(spent(&world)[0], moments, "attempt {attempt}");
        last = seen.last;
    }
    let (outcome, _) = session((&world, &daemons), &spec, honest(), last);
    let words = outcome.map(|o| o.fits.len()).unwrap_err().to_string();
    assert!(words.contains("begun 8 times"), "{words}");
    let [own, others @ ..] = &spent(&world)[..] else {
        panic!("three providers");
    };
    assert_eq!(*own, moments);
    assert!(others.iter().all(|spent| *spent <= plan().cost()));
}

/// No honest data user fails a check: the job ends for good, it is counted, and others go on.
#[test]
fn a_failed_check_ends_the_job_and_no_other() {
    let world = world(CAP);
    let daemons = started(&world);
    let spec = private_spec(1, privacy());
    let (outcome, seen) = session((&world, &daemons), &spec, spoiling_a_request(), None);
    assert!(outcome.is_err());
    let paid = spent(&world);
    let checks = |world: &World| -> Vec<u64> {
        let of = |hospital: &Hospital| hospital.ledger().status("biopsies").unwrap();
        let all = world.hospitals.iter().map(of);
        all.map(|status| status.failed_checks.iter().map(|one| one.checks).sum())
            .collect()
    };
    assert_eq!(checks(&world), [1, 0, 0]);
    for resume in [seen.last.clone(), None] {
        let (outcome, _) = session((&world, &daemons), &spec, honest(), resume);
        let words = outcome.map(|o| o.fits.len()).unwrap_err().to_string();
        assert!(words.contains("consistency check"), "{words}");
        assert_eq!(spent(&world)[0], paid[0]);
    }
    assert_ne!(paid, [Cost::ZERO; 3], "moments were bought");
    let (outcome, _) = session(
        (&world, &daemons),
        &private_spec(2, privacy()),
        honest(),
        None,
    );
    outcome.unwrap();
}
