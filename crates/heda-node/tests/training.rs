//! Whole jobs over TLS sockets: guards with ledgers on one side, a data user on the other.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod common;
#[path = "common/hospitals.rs"]
mod hospitals;

use common::*;
use heda_job::job::Progress;
use heda_node::client::training::NetworkJobError;
use heda_node::config::OnLoss;
use hospitals::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn sockets_train_the_same_model_as_memory_and_the_ledger_knows() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let patience = Duration::from_secs(30);
    let job = world.job(1, world.remotes(&daemons), patience);
    let outcome = world.run(job, "one", false).unwrap();
    assert_eq!(outcome.fits[0].beta, in_process(1));
    assert_eq!(world.spent(), [1_000_000_000; 3]);
    drop(daemons);
    for hospital in &world.hospitals {
        let status = hospital.ledger().status("biopsies").unwrap();
        assert_eq!(status.jobs[0].state, "finished");
        assert_eq!(
            status.jobs[0].iterations,
            u64::from(outcome.fits[0].iterations)
        );
        let budget = hospital.ledger().budget("biopsies", "1.5".parse().ok());
        assert!(budget.unwrap().releases[0].sha256.is_some());
    }
}

#[test]
fn a_second_job_beyond_the_budget_is_refused_in_words_and_noted() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let patience = Duration::from_secs(30);
    let first = world.job(1, world.remotes(&daemons), patience);
    world.run(first, "one", false).unwrap();
    let second = world.job(2, world.remotes(&daemons), patience);
    let refused = world.run(second, "two", false).unwrap_err();
    assert!(
        matches!(refused, NetworkJobError::Refused { .. }),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("1 of 1.5 are spent"),
        "{refused}"
    );
    assert_eq!(world.spent(), [1_000_000_000; 3]);
    let status = world
        .hospitals
        .iter()
        .map(|h| h.ledger().status("biopsies").unwrap());
    assert!(status.map(|s| s.refusals.len()).sum::<usize>() >= 1);
}

#[test]
fn a_provider_that_restarts_in_the_middle_changes_nothing() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    // The data user reaches hospital c over a line that can be moved to its next daemon.
    let line = MovableLine::start(daemons[2].address);
    let mut remotes = world.remotes(&daemons);
    remotes[2].address = line.address.to_string();
    let mut job = world.job(1, remotes, Duration::from_secs(60));
    let daemons = Mutex::new(daemons);
    let (send, receive) = std::sync::mpsc::channel();
    let send = Mutex::new(send);
    job.listener = Arc::new(move |notice| {
        if matches!(notice, Progress::Iteration { done: 3, .. }) {
            let _ = send.lock().unwrap().send(());
        }
    });
    std::thread::scope(|scope| {
        let (hospital, line, daemons) = (&world.hospitals[2], &line, &daemons);
        scope.spawn(move || {
            receive.recv().unwrap();
            line.cut();
            let next = hospital.serve();
            line.lead_to(next.address);
            daemons.lock().unwrap().push(next);
            // Nobody listens for the second third iteration, if there is one.
            drop(receive);
        });
        let outcome = world.run(job, "one", false).unwrap();
        assert_eq!(outcome.fits[0].beta, in_process(1));
    });
    assert_eq!(world.spent(), [1_000_000_000; 3]);
}

/// Once gradients have left, the sum over fewer providers would show the part of the lost one. The
/// data user does not ask for it, and one that does is refused, under the job's name or a new one.
#[test]
fn nobody_goes_on_without_a_provider_whose_gradients_have_left() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let line = Arc::new(MovableLine::start(daemons[2].address));
    let mut remotes = world.remotes(&daemons);
    remotes[2].address = line.address.to_string();
    let mut job = world.job(1, remotes.clone(), Duration::from_secs(2));
    let cutter = Arc::clone(&line);
    job.listener = Arc::new(move |notice| {
        if matches!(notice, Progress::Iteration { done: 3, .. }) {
            cutter.cut();
        }
    });
    job.on_loss = OnLoss::Continue;
    let lost = world.run(job, "one", false).unwrap_err();
    assert!(
        matches!(&lost, NetworkJobError::Lost { provider, .. } if provider == "c"),
        "{lost}"
    );
    for (number, out, resume, words) in [
        (1, "one", true, "wait until all of them are back"),
        (2, "two", false, "alone contributes"),
    ] {
        let fewer = world.job(number, remotes[..2].to_vec(), Duration::from_secs(2));
        let refused = world.run(fewer, out, resume).unwrap_err();
        assert!(
            matches!(&refused, NetworkJobError::Refused { stop, .. } if stop.to_string().contains(words)),
            "{refused}"
        );
    }
    // With everyone back the job comes to its end, and nothing was paid twice or for nothing.
    line.lead_to(daemons[2].address);
    let job = world.job(1, remotes, Duration::from_secs(30));
    let outcome = world.run(job, "one", true).unwrap();
    assert_eq!(outcome.fits[0].beta, in_process(1));
    assert_eq!(world.spent(), [1_000_000_000; 3]);
}

#[test]
fn a_line_cut_in_the_middle_of_messages_changes_nothing() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    // In the agreement, in the columns, in symbols and payloads of later iterations.
    let line = Proxy::cut_at(daemons[1].address, &[4_000, 40_000, 150_000, 300_000]);
    let mut remotes = world.remotes(&daemons);
    remotes[1].address = line.address.to_string();
    let mut job = world.job(1, remotes, Duration::from_secs(60));
    let losses = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&losses);
    job.listener = Arc::new(move |notice| {
        if matches!(notice, Progress::Lost { .. } | Progress::Retry { .. }) {
            *counted.lock().unwrap() += 1;
        }
    });
    let outcome = world.run(job, "one", false).unwrap();
    assert_eq!(outcome.fits[0].beta, in_process(1));
    assert!(*losses.lock().unwrap() >= 3, "the line was cut");
    assert_eq!(world.spent(), [1_000_000_000; 3]);
}

#[test]
fn the_others_go_on_when_that_is_wished_and_nothing_has_left() {
    let world = World::new();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let line = Arc::new(MovableLine::start(daemons[0].address));
    let mut remotes = world.remotes(&daemons);
    remotes[0].address = line.address.to_string();
    let mut job = world.job(1, remotes, Duration::from_secs(1));
    job.on_loss = OnLoss::Continue;
    let left_behind = Arc::new(Mutex::new(Vec::new()));
    let (noted, cutter) = (Arc::clone(&left_behind), Arc::clone(&line));
    job.listener = Arc::new(move |notice| match notice {
        Progress::Phase("agree") => cutter.cut(),
        Progress::LeftBehind(name) => noted.lock().unwrap().push(name),
        _ => {}
    });
    let outcome = world.run(job, "one", false).unwrap();
    assert_eq!(*left_behind.lock().unwrap(), ["a"]);
    let names: Vec<_> = outcome.providers.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    // The model is another one: the rows of the lost provider do not count.
    assert_ne!(outcome.fits[0].beta, in_process(1));
    assert_eq!(world.spent(), [0, 1_000_000_000, 1_000_000_000]);
}

#[test]
fn two_data_users_train_at_once_without_disturbing_each_other() {
    let mut world = World::new();
    let other = identity("other");
    for hospital in &mut world.hospitals {
        hospital.more_users.push(other.clone());
        hospital.epsilon_total = "2";
    }
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let patience = Duration::from_secs(30);
    let mut theirs = world.job(2, world.remotes(&daemons), patience);
    theirs.connector.identity = other;
    let ours = world.job(1, world.remotes(&daemons), patience);
    let betas = std::thread::scope(|scope| {
        let world = &world;
        let run = |job, out| scope.spawn(move || world.run(job, out, false).unwrap());
        let threads = [run(ours, "one"), run(theirs, "two")];
        threads.map(|thread| thread.join().unwrap().fits[0].beta.clone())
    });
    // As if each were alone: nothing of one job got into the other.
    assert_eq!(betas, [in_process(1), in_process(2)]);
    assert_eq!(world.spent(), [2_000_000_000; 3]);
    for hospital in &world.hospitals {
        let jobs = hospital.ledger().status("biopsies").unwrap().jobs;
        let peers: std::collections::BTreeSet<_> = jobs.iter().map(|job| &job.peer).collect();
        assert_eq!((jobs.len(), peers.len()), (2, 2));
    }
}
