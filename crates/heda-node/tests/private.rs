//! Private jobs over TLS sockets: what they cost is in the ledger before it leaves, and no more leaves
//! than was paid for.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod common;
#[path = "common/hospitals.rs"]
mod hospitals;
#[path = "common/promise.rs"]
mod promise;

use common::*;
use heda_dp::gdp::Cost;
use heda_job::guard::AgreedPlan;
use heda_job::job::{Outcome, Progress};
use heda_job::proposal::Privacy;
use heda_node::client::training::{NetworkJob, NetworkJobError};
use heda_node::config::OnLoss;
use heda_node::guard::ledger::{JobKey, JobTerms, Ledger, PrivateCap};
use hospitals::*;
use promise::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// What a data user is told that it may still have is what it would get: its own part, less its own jobs;
/// or nothing, where the operator wishes it.
#[test]
fn a_data_user_is_told_its_own_room_or_none() {
    let mut world = world(&format!("{CAP}\nprivacy_epsilon_per_user = 1.3"));
    world.hospitals[2].limits += "privacy_room_told = false\n";
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let running = job(&world, &daemons, private_spec(1, privacy()));
    let outcome = world.run(running, "one", false).unwrap();
    let told = |number: usize| outcome.providers[number].charged.unwrap();
    assert_eq!(told(2).left, None);
    assert_eq!(told(2).cost, plan().cost());
    for number in [0, 1] {
        let cap = PrivateCap {
            per_user: "1.3".parse().unwrap(),
            ..cap()
        };
        let left = told(number).left.unwrap();
        let all = cap.total().minus(plan().cost()).unwrap();
        assert!(
            left < all.epsilon(cap.delta).unwrap().to_f64() - 0.3,
            "{left}"
        );
        let ledger = world.hospitals[number].ledger();
        let next = opened(&ledger, "user", "next");
        let held = |epsilon: f64| {
            let epsilon = format!("{epsilon:.4}").parse().unwrap();
            let cost = Cost::for_guarantee(epsilon, cap.delta);
            let plan = AgreedPlan {
                cost,
                persons: false,
            };
            ledger.hold(&next, "biopsies", plan, &cap)
        };
        assert!(held(left + 0.01).is_err(), "no more than it is told");
        held(left).unwrap();
    }
}

/// Where the operator keeps the room to himself, a refusal does not tell it either.
#[test]
fn a_refusal_does_not_tell_what_others_have_spent_and_set_aside() {
    for (told, words) in [
        (true, "jobs that run have set aside"),
        (false, "no room for this job"),
    ] {
        let world = world(&format!("{CAP}\nprivacy_room_told = {told}"));
        let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
        let ledger = world.hospitals[0].ledger();
        let most = AgreedPlan {
            cost: cap().total(),
            persons: false,
        };
        ledger
            .hold(&opened(&ledger, "other", "other"), "biopsies", most, &cap())
            .unwrap();
        let job = NetworkJob {
            spec: private_spec(1, privacy()),
            ..world.job(1, world.remotes(&daemons), Duration::from_secs(1))
        };
        let refused = world.run(job, "one", false).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
        assert_eq!(refused.contains("epsilon"), told, "{refused}");
    }
}

/// A job of a data user, recorded at a provider.
fn opened(ledger: &Ledger, user: &str, id: &str) -> JobKey {
    let job = JobKey {
        peer: identity(user).fingerprint(),
        id: id.into(),
    };
    let terms = JobTerms {
        label: user.into(),
        data_set: "biopsies".into(),
        engine: "resident".into(),
        request: "x".into(),
    };
    ledger.open_job(&job, &terms).unwrap();
    job
}

#[test]
fn what_a_job_has_set_aside_nobody_else_spends() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let mut running = job(&world, &daemons, private_spec(1, privacy()));
    let config = world.hospitals[1].config();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tried = Arc::clone(&seen);
    running.listener = Arc::new(move |notice| {
        if !matches!(notice, Progress::Iteration { done: 3, .. }) {
            return;
        }
        let clock = Arc::new(heda_node::system::clock::SystemClock);
        let ledger = Ledger::open(&config.ledger_place(), clock).unwrap();
        let other = opened(&ledger, "other", "other");
        let spent = ledger.private("biopsies", Some(&cap())).unwrap().spent;
        let left = cap().total().minus(spent).unwrap();
        let beside = cap().total().minus(plan().cost()).unwrap();
        for cost in [left, beside] {
            let plan = AgreedPlan {
                cost,
                persons: false,
            };
            let held = ledger.hold(&other, "biopsies", plan, &cap());
            tried.lock().unwrap().push(held.map_err(|e| e.to_string()));
        }
    });
    world.run(running, "one", false).unwrap();
    let tried = seen.lock().unwrap().clone();
    let words = tried[0].clone().unwrap_err();
    assert!(words.contains("have set aside"), "{words}");
    assert_eq!(tried[1], Ok(()), "what fits beside it is free");
    assert_eq!(spent(&world), [plan().cost(); 3]);
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
    // The job asks for two others, each counts on one of those it knows, and that is agreed on.
    let running = job(&world, &daemons, private_spec(2, trusting));
    let outcome = world.run(running, "all", false).unwrap();
    assert_eq!(outcome.privacy.unwrap().trusted, Some(1));
    let before = spent(&world);
    let weak = Privacy {
        delta: "0.01".parse().unwrap(),
        rows: 50,
        ..privacy()
    };
    let words = refused(&world, job(&world, &daemons, private_spec(3, weak)), "weak");
    assert!(words.contains("is no protection for 187 rows"), "{words}");
    assert_eq!(spent(&world), before);
    drop(daemons);
    let strangers =
        self::world("privacy_epsilon_total = 2\nprivacy_delta = 1e-5\nprivacy_trusted = 0");
    let daemons: Vec<Running> = strangers.hospitals.iter().map(Hospital::serve).collect();
    let running = job(&strangers, &daemons, private_spec(1, privacy()));
    let outcome = strangers.run(running, "one", false).unwrap();
    assert_eq!(outcome.privacy.unwrap().trusted, Some(0));
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

/// A job of which one line is cut wherever it falls, and how many of its answers were lost.
fn cut_everywhere(privacy: Privacy) -> (World, Outcome) {
    let mut world = world(CAP);
    for hospital in &mut world.hospitals {
        hospital.iterations_per_job = 100;
    }
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let cuts: Vec<usize> = (0..40).map(|n| 20_000 + 9_973 * n % 400_000).collect();
    let line = Proxy::cut_at(daemons[1].address, &cuts);
    let mut remotes = world.remotes(&daemons);
    remotes[1].address = line.address.to_string();
    let spec = private_spec(1, privacy);
    let mut running = NetworkJob {
        spec,
        ..world.job(1, remotes, PATIENCE)
    };
    let losses = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&losses);
    running.listener = Arc::new(move |notice| match notice {
        Progress::Lost { .. } | Progress::Retry { .. } => counted.lock().unwrap().0 += 1,
        Progress::LostAnswer(_) => counted.lock().unwrap().1 += 1,
        _ => {}
    });
    let outcome = world.run(running, "one", false).unwrap();
    let (cuts, lost) = *losses.lock().unwrap();
    assert!(cuts >= 3, "the line was cut {cuts} times");
    assert_eq!(outcome.lost, lost);
    for (provider, spent) in outcome.providers.iter().zip(spent(&world)) {
        assert_eq!(provider.charged.unwrap().cost, spent, "as it was told");
    }
    (world, outcome)
}

/// What providers charge is never more than the plan, and what was charged is what was recorded.
#[test]
fn broken_lines_cost_answers_and_never_budget() {
    let (world, outcome) = cut_everywhere(privacy());
    assert_eq!(outcome.fits[0].iterations, plan().gradients());
    let each = plan().cost_of_pass();
    for (hospital, spent) in world.hospitals.iter().zip(spent(&world)) {
        assert!(spent <= plan().cost(), "never more than the plan");
        let status = hospital.ledger().status("biopsies").unwrap();
        let moments = plan()
            .cost_of_moment_answer()
            .times(status.jobs[0].rankings);
        let training = each.times(status.jobs[0].iterations).plus(moments);
        assert!(
            status.jobs[0].evaluations <= 2,
            "right predictions and a table"
        );
        // Counts are of other rows and cost no more than the training.
        assert!(spent >= training && spent.minus(training) <= Some(plan().cost_of_counts()));
    }
}

/// A plan for many rows goes over batches. Every pass is paid with its first answer and once, and chains begin anew
/// where lines break.
#[test]
fn broken_lines_never_pay_a_pass_twice() {
    let many = Privacy {
        rows: 20_000,
        ..privacy()
    };
    let plan = many.plan(spec(1).schema.width() + 1).unwrap();
    assert_eq!((plan.passes().passes(), plan.passes().batches()), (4, 16));
    let (world, outcome) = cut_everywhere(many);
    assert_eq!(outcome.fits[0].iterations, 64);
    for (hospital, spent) in world.hospitals.iter().zip(spent(&world)) {
        let status = hospital.ledger().status("biopsies").unwrap();
        assert!(status.jobs[0].iterations <= 64);
        let moments = plan.cost_of_moment_answer().times(status.jobs[0].rankings);
        // Few steps are lost, so some of every pass have left; a pass that were paid twice would not fit.
        let training = plan.cost_of_pass().times(4).plus(moments);
        assert!(spent >= training && spent <= plan.cost());
    }
}

/// A data user that asks and goes away before it has paid blocks nobody.
#[test]
fn a_job_that_goes_away_leaves_the_budget_to_others() {
    let world = world(CAP);
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let whole = Privacy {
        epsilon: "2".parse().unwrap(),
        ..privacy()
    };
    // It sets everything aside and stops before it buys anything.
    let mut running = job(&world, &daemons, private_spec(1, whole));
    let (switch, stop) = heda_node::system::stop::StopSwitch::new();
    running.listener = Arc::new(move |notice| {
        if matches!(notice, Progress::CountsOn { .. }) {
            switch.stop();
        }
    });
    let stopped = world.run_until(running, "away", &stop);
    assert!(
        matches!(stopped, Err(NetworkJobError::Stopped(_))),
        "it went away"
    );
    assert_eq!(spent(&world), [Cost::ZERO; 3]);
    let next = job(&world, &daemons, private_spec(2, whole));
    world.run(next, "next", false).unwrap();
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
            Progress::Phase(name) if Some(name) == phase => cutter.cut(),
            Progress::Iteration { done: 3, .. } if phase.is_none() => cutter.cut(),
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
