//! Private jobs over TLS sockets: what they cost is in the ledger before it leaves, and no more leaves
//! than was paid for.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod common;
#[path = "common/hospitals.rs"]
mod hospitals;

use common::*;
use heda_dp::gdp::Cost;
use heda_learn::private::PrivatePlan;
use heda_node::client::training::{NetworkJob, NetworkJobError, Notice};
use heda_node::config::OnLoss;
use heda_node::house::ledger::{JobKey, JobTerms, PrivateCap};
use heda_train::house::Bought;
use heda_train::job::{Choice, JobSpec};
use heda_train::proposal::{Privacy, Ranking};
use hospitals::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn privacy() -> Privacy {
    let promise = Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 699);
    promise.suited(&spec(1).schema)
}

fn private_spec(job: u64, privacy: Privacy) -> JobSpec {
    let plain = spec(job);
    let names = plain.schema.columns().iter();
    let features: Vec<String> = names.map(|column| column.name().to_owned()).collect();
    JobSpec {
        loss: heda_learn::loss::LossKind::BoundedLogistic,
        resolution: heda_learn::resident::Resolution::PRIVATE,
        holdout_permille: 200,
        choice: Choice::Best(features.len()),
        ranking: Ranking::Given { features },
        spending: None,
        privacy: Some(privacy),
        ..plain
    }
}

fn plan() -> PrivatePlan {
    let width = spec(1).schema.width() + 1;
    privacy().plan(width).unwrap()
}

const CAP: &str = "privacy_required = true\nprivacy_epsilon_total = 2\nprivacy_delta = 1e-5";

fn cap() -> PrivateCap {
    PrivateCap {
        epsilon: "2".parse().unwrap(),
        per_user: "2".parse().unwrap(),
        delta: "1e-5".parse().unwrap(),
    }
}

fn world(limits: &str) -> World {
    let mut world = World::new();
    for hospital in &mut world.hospitals {
        hospital.limits = format!("{limits}\n");
    }
    world
}

fn job(world: &World, daemons: &[Running], spec: JobSpec) -> NetworkJob {
    NetworkJob {
        spec,
        ..world.job(1, world.remotes(daemons), PATIENCE)
    }
}

fn spent(world: &World) -> Vec<Cost> {
    let one = |hospital: &Hospital| {
        let account = hospital.ledger().private("biopsies", Some(&cap()));
        account.unwrap().spent
    };
    world.hospitals.iter().map(one).collect()
}

fn refused(world: &World, job: NetworkJob, out: &str) -> String {
    match world.run(job, out, false) {
        Err(NetworkJobError::Refused { stop, .. }) => stop.to_string(),
        other => panic!("{:?}", other.map(|outcome| outcome.fits.len())),
    }
}

#[test]
fn sockets_train_the_same_private_model_as_memory_and_every_ledger_was_charged() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let spec = private_spec(1, privacy());
    let outcome = world.run(job(&world, &daemons, spec.clone()), "one", false);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.fits[0].beta, in_process_as(&spec));
    // Held-out rows were counted with noise, and the job cost no more for it.
    let histogram = outcome.fits[0].histogram.as_ref().unwrap();
    assert_eq!(histogram.confusion().rows(), 138);
    assert!(histogram.noise.unwrap() > 5.0);
    assert_eq!(outcome.fits[0].iterations, plan().gradients());
    assert_eq!(spent(&world), [plan().cost(); 3]);
    for hospital in &world.hospitals {
        let report = hospital.ledger().private("biopsies", Some(&cap())).unwrap();
        let epsilon = report.epsilon_spent.unwrap();
        assert!(epsilon > 0.99 && epsilon <= 1.0, "{epsilon}");
        assert_eq!((report.users.len(), report.users[0].jobs), (1, 1));
        assert!(report.epsilon_left > 1.0 && report.epsilon_left < 2.0);
        // Numbers with noise are paid for and not counted.
        let status = hospital.ledger().status("biopsies").unwrap();
        assert_eq!(status.disclosed[0].numbers, 0);
        assert_eq!(status.jobs[0].iterations, u64::from(plan().gradients()));
    }
    let shown = world.hospitals[0].metrics.render();
    assert!(shown.contains("heda_private_epsilon_spent{data_set=\"biopsies\"} 1\n"));
    assert!(shown.contains("heda_private_user_epsilon_spent{data_set=\"biopsies\",user="));
    assert!(shown.contains("heda_private_epsilon_total{data_set=\"biopsies\"} 2\n"));
    // Of what is left, such a job can be paid three times in all, and then no more.
    for number in 2..=3 {
        let next = job(&world, &daemons, private_spec(number, privacy()));
        world.run(next, &number.to_string(), false).unwrap();
    }
    let before = spent(&world);
    let words = refused(
        &world,
        job(&world, &daemons, private_spec(4, privacy())),
        "4",
    );
    assert!(
        words.contains("may cost a row epsilon 2 at delta 1e-5"),
        "{words}"
    );
    assert_eq!(spent(&world), before, "refused before anything was paid");
}

#[test]
fn a_budget_that_ends_in_the_middle_ends_the_job() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let mut running = job(&world, &daemons, private_spec(1, privacy()));
    // Somebody else is served meanwhile, until two more gradients are left.
    let each = plan().cost_of_gradient();
    let config = world.hospitals[1].config();
    let seen = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&seen);
    running.listener = Arc::new(move |notice| {
        let Notice::Iteration { done, .. } = notice else {
            return;
        };
        *counted.lock().unwrap() = done;
        if done == 3 {
            let clock = Arc::new(heda_node::system::clock::SystemClock);
            let place = config.ledger_place();
            let ledger = heda_node::house::ledger::Ledger::open(&place, clock).unwrap();
            let other = JobKey {
                peer: identity("other").fingerprint(),
                id: "other".into(),
            };
            let terms = JobTerms {
                label: "other".into(),
                data_set: "biopsies".into(),
                engine: "resident".into(),
                request: "x".into(),
            };
            ledger.open_job(&other, &terms).unwrap();
            let kept = each.times(5).plus(plan().cost_of_moments());
            let left = cap().total().minus(kept).unwrap();
            let bought = Bought::Gradient { iteration: 0 };
            ledger
                .pay(&other, "biopsies", (bought, left), &cap())
                .unwrap();
        }
    });
    let words = refused(&world, running, "one");
    assert!(words.contains("nothing was released"), "{words}");
    assert_eq!(*seen.lock().unwrap(), 5, "two more, as there was room for");
    let spent = spent(&world);
    assert!(spent[1] <= cap().total());
    assert!(spent[0] >= each.times(5) && spent[2] >= each.times(5));
}

#[test]
fn a_provider_decides_what_it_serves_and_whose_noise_it_counts_on() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let words = refused(&world, job(&world, &daemons, spec(1)), "exact");
    assert!(words.contains("private jobs only"), "{words}");
    let trusting = Privacy {
        trusted: Some(2),
        ..privacy()
    };
    let words = refused(
        &world,
        job(&world, &daemons, private_spec(2, trusting)),
        "all",
    );
    assert!(
        words.contains("put `trusted = 1` under [privacy]"),
        "{words}"
    );
    let weak = Privacy {
        delta: "0.01".parse().unwrap(),
        rows: 50,
        ..privacy()
    };
    let words = refused(&world, job(&world, &daemons, private_spec(3, weak)), "weak");
    assert!(words.contains("is no protection for 187 rows"), "{words}");
    assert_eq!(spent(&world), [Cost::ZERO; 3]);
    drop(daemons);
    let strangers =
        self::world("privacy_epsilon_total = 2\nprivacy_delta = 1e-5\nprivacy_trusted = 0");
    let daemons: Vec<Running> = strangers.hospitals.iter().map(Hospital::serve).collect();
    let words = refused(
        &strangers,
        job(&strangers, &daemons, private_spec(1, privacy())),
        "one",
    );
    assert!(
        words.contains("put `trusted = 0` under [privacy]"),
        "{words}"
    );
    let alone = Privacy {
        trusted: Some(0),
        ..privacy()
    };
    let outcome = job(&strangers, &daemons, private_spec(2, alone));
    strangers.run(outcome, "two", false).unwrap();
    assert_eq!(spent(&strangers), [plan().cost(); 3]);
    drop(daemons);
    let without = self::world("");
    let daemons: Vec<Running> = without.hospitals.iter().map(Hospital::serve).collect();
    let words = refused(
        &without,
        job(&without, &daemons, private_spec(1, privacy())),
        "one",
    );
    assert!(words.contains("no budget for private jobs"), "{words}");
}

/// A gradient that is asked for again after a break has other noise and is paid again; nobody gets
/// one that was not paid for.
#[test]
fn broken_lines_cost_and_never_give() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let line = Proxy::cut_at(daemons[1].address, &[4_000, 60_000, 150_000, 300_000]);
    let mut remotes = world.remotes(&daemons);
    remotes[1].address = line.address.to_string();
    let spec = private_spec(1, privacy());
    let mut running = NetworkJob {
        spec,
        ..world.job(1, remotes, PATIENCE)
    };
    let losses = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&losses);
    running.listener = Arc::new(move |notice| {
        if matches!(notice, Notice::Lost { .. } | Notice::Retry { .. }) {
            *counted.lock().unwrap() += 1;
        }
    });
    world.run(running, "one", false).unwrap();
    assert!(*losses.lock().unwrap() >= 3, "the line was cut");
    let each = plan().cost_of_gradient();
    for (hospital, spent) in world.hospitals.iter().zip(spent(&world)) {
        let status = hospital.ledger().status("biopsies").unwrap();
        let (gradients, counts) = (status.jobs[0].iterations, status.jobs[0].evaluations);
        let counts = plan().cost_of_counts().times(counts);
        // Moments were bought once, or again where the line broke before they were known.
        let moments = plan().cost_of_moments();
        let training = spent.minus(each.times(gradients));
        let sold = training.map_or(0, |rest| rest.parts() / moments.parts());
        assert_eq!(
            spent,
            each.times(gradients).plus(moments.times(sold)).max(counts)
        );
        assert!(sold >= 1 || spent == counts);
        assert!(spent >= plan().cost());
    }
    let all: u64 = spent(&world).iter().map(|spent| spent.parts()).sum();
    assert!(
        all > 3 * plan().cost().parts(),
        "repeated gradients were paid"
    );
}

/// A provider that is lost takes its noise along. While nothing has left, the others go on with
/// shares that suffice without it; afterwards nobody does.
#[test]
fn who_goes_on_without_a_provider_has_enough_noise_without_it() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let line = Arc::new(MovableLine::start(daemons[0].address));
    let mut remotes = world.remotes(&daemons);
    remotes[0].address = line.address.to_string();
    // In which phase the line is cut; after three gradients if in none.
    let lost = |phase: Option<&'static str>, out: &str, number: u64| {
        let mut running = NetworkJob {
            spec: private_spec(number, privacy()),
            ..world.job(number, remotes.clone(), Duration::from_secs(1))
        };
        running.on_loss = OnLoss::Continue;
        let cutter = Arc::clone(&line);
        running.listener = Arc::new(move |notice| match notice {
            Notice::Phase(name) if Some(name) == phase => cutter.cut(),
            Notice::Iteration { done: 3, .. } if phase.is_none() => cutter.cut(),
            _ => {}
        });
        world.run(running, out, false)
    };
    let outcome = lost(Some("agree"), "early", 1).unwrap();
    let names: Vec<_> = outcome.providers.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    // Of two providers each counts on its own noise alone.
    assert_eq!(privacy().counts_on(2), 0);
    assert_eq!(privacy().share(plan().variance(), 2), plan().variance());
    assert_eq!(spent(&world), [Cost::ZERO, plan().cost(), plan().cost()]);
    line.lead_to(daemons[0].address);
    let gone = lost(None, "late", 2).unwrap_err();
    assert!(matches!(gone, NetworkJobError::Lost { .. }), "{gone}");
    // Moments are an answer as well: with others the training rows would be others.
    line.lead_to(daemons[0].address);
    let gone = lost(Some("publish"), "bought", 3).unwrap_err();
    assert!(matches!(gone, NetworkJobError::Lost { .. }), "{gone}");
}
