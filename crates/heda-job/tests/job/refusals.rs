//! Everything that can be wrong with a proposal or a provider.

use super::{TWO, lbfgs, message, run_with, schema, spec, two_parts, with};
use ed25519_dalek::SigningKey;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_job::description::{Protected, RawJob};
use heda_job::error::JobError;
use heda_job::job::{
    self, Checkpoint, JobSpec, Link, NotKept, Observer, Outcome, Progress, Provider, Quiet,
};
use heda_job::local::{self, Parts};
use heda_job::proposal::JobId;
use heda_learn::optimise::{Method, Settings};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn too_small_batches_are_refused_by_the_provider_they_would_expose() {
    let method = Method::Descent {
        rate: 0.5,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 30,
    };
    let settings = Settings {
        method,
        c: None,
        tolerance: 0.0,
        max_iterations: 5,
    };
    let refused = message(run_with(
        &spec(&TWO, settings),
        two_parts(),
        &mut Quiet,
        None,
    ));
    assert!(
        refused.contains("provider-1") && refused.contains("use fewer batches"),
        "{refused}"
    );
}

#[test]
fn a_few_held_out_rows_are_refused_by_the_provider_they_would_expose() {
    // One row of 60, and none.
    for (share, held_out) in [(0.02, "1 rows"), (0.01, "0 rows")] {
        let spec = with(&spec(&TWO, lbfgs(3)), |raw| raw.held_out = share);
        let refused = message(run_with(&spec, two_parts(), &mut Quiet, None));
        assert!(refused.contains("provider-1"), "{refused}");
        assert!(refused.contains(held_out), "{refused}");
        assert!(refused.contains("hold out a larger share"), "{refused}");
    }
    let nothing = with(&spec(&TWO, lbfgs(3)), |raw| raw.held_out = 0.0);
    let trained = run_with(&nothing, two_parts(), &mut Quiet, None).unwrap();
    assert_eq!(trained.fits[0].histogram, None);
}

#[test]
fn a_training_that_runs_away_is_stopped_with_the_remedy() {
    let method = Method::Descent {
        rate: 1e308,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 1,
    };
    let settings = Settings {
        method,
        c: None,
        tolerance: 0.0,
        max_iterations: 20,
    };
    let failed = message(run_with(
        &spec(&TWO, settings),
        two_parts(),
        &mut Quiet,
        None,
    ));
    assert!(failed.contains("learning rate"), "{failed}");
}

#[test]
fn another_schema_is_refused_with_both_fingerprints() {
    let other = schema(&["nein", "ja"]);
    let raw = RawJob::new("rows", &other);
    let spec = JobSpec::new(JobId([1; 16]), raw.try_into().unwrap(), Arc::clone(&other));
    let refused = message(run_with(&spec, two_parts(), &mut Quiet, None));
    assert!(
        refused.contains(&other.fingerprint().to_string()),
        "{refused}"
    );
    assert!(
        refused.contains(&schema(&TWO).fingerprint().to_string()),
        "{refused}"
    );
}

#[test]
fn an_exhausted_budget_releases_nothing() {
    let randomness = Randomness::seeded(5);
    let parts = Parts::new(two_parts(), &randomness).unwrap();
    let guards = parts.guards(&schema(&TWO), "1".parse().unwrap());
    let spec = spec(&TWO, lbfgs(3));
    let failed = local::run(&spec, &guards, &randomness, &mut Quiet, None, false);
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("limit 1"), "{failed}");
}

#[test]
fn iota_beyond_the_features_is_refused_before_anything_is_encrypted() {
    let spec = with(&spec(&TWO, lbfgs(3)), |raw| {
        raw.protected = Protected::Best(3);
    });
    let refused = message(run_with(&spec, two_parts(), &mut Quiet, None));
    assert!(refused.contains("choose 0 to 2"), "{refused}");
}

/// Runs a job with one provider that behaves as told.
fn with_impostor(behave: impl FnOnce(Channel) + Send) -> String {
    let mut rng = Randomness::seeded(1).fork("identity", 0).unwrap();
    let identity = SigningKey::generate(&mut rng).verifying_key();
    let (user, end) = Channel::pair(Duration::from_millis(300));
    let links = vec![Link {
        name: "impostor".into(),
        identity,
        channel: user,
    }];
    std::thread::scope(|scope| {
        scope.spawn(move || behave(end));
        let randomness = Randomness::seeded(2);
        job::run(&spec(&TWO, lbfgs(3)), links, &randomness, &mut Quiet, None)
            .unwrap_err()
            .to_string()
    })
}

#[test]
fn nonsense_silence_and_departure_name_the_provider() {
    let nonsense = with_impostor(|mut channel| {
        channel.receive(0x01, 1 << 20).unwrap();
        channel.send(0x02, b"{\"rows\": -1}").unwrap();
    });
    assert!(
        nonsense.starts_with("provider impostor: its message \"acceptance\""),
        "{nonsense}"
    );
    let other_tag = with_impostor(|mut channel| {
        channel.receive(0x01, 1 << 20).unwrap();
        channel.send(0x55, b"").unwrap();
    });
    assert!(
        other_tag.contains("impostor") && other_tag.contains("message 85"),
        "{other_tag}"
    );
    let gone = with_impostor(drop);
    assert!(
        gone.contains("impostor") && gone.contains("closed"),
        "{gone}"
    );
    let silent = with_impostor(|_channel| std::thread::sleep(Duration::from_secs(1)));
    assert!(
        silent.contains("impostor") && silent.contains("did not answer"),
        "{silent}"
    );
    let greedy = with_impostor(|mut channel| {
        channel.receive(0x01, 1 << 20).unwrap();
        channel.send(0x02, &vec![b' '; 2 << 20]).unwrap();
    });
    assert!(
        greedy.contains("impostor") && greedy.contains("at most"),
        "{greedy}"
    );
}

/// Hears which providers run with a seed.
#[derive(Default)]
struct Warned(Vec<String>);

impl Observer for Warned {
    fn progress(&mut self, progress: Progress) {
        if let Progress::Seeded(name) = progress {
            self.0.push(name);
        }
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        Quiet.checkpoint(checkpoint)
    }
}

/// A data user with numbers of the operating system, and two providers of which some have a seed.
fn with_seeds(seeded: [bool; 2]) -> (Result<Outcome, JobError>, Vec<String>) {
    let parts = Parts::new(two_parts(), &Randomness::seeded(5)).unwrap();
    let guards = parts.guards(&schema(&TWO), "1000".parse().unwrap());
    let identities = [1, 2].map(|n| SigningKey::from_bytes(&[n; 32]));
    let mut warned = Warned::default();
    let outcome = std::thread::scope(|scope| {
        let mut links = Vec::new();
        for ((guard, identity), seeded) in guards.iter().zip(&identities).zip(seeded) {
            let (user, mut end) = Channel::pair(Duration::from_secs(60));
            links.push(Link {
                name: guard.name.clone(),
                identity: identity.verifying_key(),
                channel: user,
            });
            let randomness = match seeded {
                true => Randomness::seeded(9),
                false => Randomness::from_os(),
            };
            let provider = Provider {
                guard: guard.guard.as_ref(),
                identity,
                randomness,
            };
            scope.spawn(move || provider.serve(&mut end));
        }
        let spec = spec(&TWO, lbfgs(2));
        job::run(&spec, links, &Randomness::from_os(), &mut warned, None)
    });
    (outcome, warned.0)
}

#[test]
fn a_provider_with_a_seed_is_named_to_the_data_user_and_refused_by_the_others() {
    let (outcome, warned) = with_seeds([false, true]);
    let refused = message(outcome);
    assert!(
        refused.contains("provider-1") && refused.contains("without a seed"),
        "{refused}"
    );
    assert_eq!(warned, ["provider-2"]);
    let (outcome, warned) = with_seeds([true, true]);
    let seeded: Vec<bool> = outcome
        .unwrap()
        .providers
        .iter()
        .map(|p| p.seeded)
        .collect();
    assert_eq!((seeded, warned.len()), (vec![true; 2], 2));
    let (outcome, warned) = with_seeds([false, false]);
    assert!(outcome.unwrap().providers.iter().all(|p| !p.seeded) && warned.is_empty());
}
