//! Every limit and its words.

mod preview;
mod requests;

use super::*;
use heda_dp::account::Mechanism;
use heda_job::engine::Engine;
use heda_job::proposal::Privacy;
use rustls::pki_types::SubjectPublicKeyInfoDer;

fn fingerprint(name: &str) -> PeerFingerprint {
    PeerFingerprint::of_key(&SubjectPublicKeyInfoDer::from(name.as_bytes().to_vec()))
}

fn policy() -> Policy {
    let limits = "epsilon_total = 2\nrows_per_batch_min = 50\niterations_per_job = 100\n\
         iterations_per_day = 1000\nknown_co_providers_min = 1\n\
         revealed_per_unknown_max = 0.5";
    Policy {
        data_set: "ward".into(),
        limits: toml::from_str(limits).unwrap(),
        known_providers: [fingerprint("b"), fingerprint("c")].into(),
        columns: vec![("narrow".into(), vec!["age".into()])],
    }
}

fn facts() -> DataFacts {
    DataFacts {
        schema: "s1".into(),
        features: vec!["age".into(), "ward".into(), "marker".into()],
        widths: vec![1, 4, 1],
        training_rows: 500,
        held_out: Some(100),
        persons_held_out: None,
        models: std::num::NonZeroU32::MIN,
        unstated: 0,
    }
}

fn request() -> JobRequest {
    JobRequest {
        job: "job-1".into(),
        schema: "s1".into(),
        engine: Engine::RESIDENT,
        scored: false,
        features: vec!["age".into(), "marker".into()],
        published: Published::Any(1),
        epsilon: Some("1.5".parse().unwrap()),
        mechanism: Mechanism::Laplace,
        iterations: 40,
        batch_rows: None,
        co_providers: vec![fingerprint("b"), fingerprint("stranger")],
        privacy: None,
    }
}

fn peer(label: &str) -> PeerIdentity {
    PeerIdentity {
        label: label.into(),
        fingerprint: fingerprint(label),
    }
}

fn refused(change: impl FnOnce(&mut JobRequest)) -> Vec<Reason> {
    let mut asked = request();
    change(&mut asked);
    let verdict = policy().evaluate(&peer("user"), &facts(), &asked);
    verdict.unwrap_err().reasons
}

#[test]
fn few_held_out_rows_are_refused_and_none_are_fine() {
    for (held_out, allowed) in [
        (None, true),
        (Some(20), true),
        (Some(19), false),
        (Some(0), false),
    ] {
        let facts = DataFacts {
            held_out,
            ..facts()
        };
        let verdict = policy().evaluate(&peer("user"), &facts, &request());
        assert_eq!(verdict.is_ok(), allowed, "{held_out:?}");
        if let Err(refusal) = verdict {
            let words = refusal.to_string();
            assert!(words.contains("at least 20 or none"), "{words}");
        }
    }
}

#[test]
fn a_fair_request_is_granted_with_its_cost() {
    let grant = policy()
        .evaluate(&peer("user"), &facts(), &request())
        .unwrap();
    // 40 gradients of two columns and the bias; one hidden column and the label of 500 rows.
    assert_eq!((grant.revealed, grant.unknowns), (120, 1000));
    assert_eq!(grant.epsilon, Some("1.5".parse().unwrap()));
    assert_eq!((grant.batch_rows, grant.known_co_providers), (500, 1));
}

#[test]
fn every_limit_has_its_reason() {
    use Reason as R;
    assert!(matches!(
        refused(|r| r.job = "../x".into())[..],
        [R::JobName]
    ));
    assert!(matches!(
        refused(|r| r.schema = "s2".into())[..],
        [R::Schema { .. }]
    ));
    assert!(matches!(
        refused(|r| r.features.clear())[..],
        [R::Features, ..]
    ));
    let twice = refused(|r| r.features[1] = "age".into());
    assert!(matches!(twice[..], [R::Features]));
    let strange = refused(|r| r.features[0] = "salary".into());
    assert!(matches!(strange[..], [R::NoFeature(_)]));
    assert!(matches!(
        refused(|r| r.published = Published::Any(3))[..],
        [R::Published { .. }]
    ));
    let mut without = policy();
    without.limits.engines.clear();
    let verdict = without.evaluate(&peer("user"), &facts(), &request());
    assert!(matches!(
        verdict.unwrap_err().reasons[..],
        [R::Engine { .. }]
    ));
    let ima = refused(|r| r.mechanism = Mechanism::Ima);
    assert!(matches!(ima[..], [R::Mechanism(_)]));
    assert!(matches!(refused(|r| r.epsilon = None)[..], [R::NoEpsilon]));
    let dear = refused(|r| r.epsilon = Some("2.1".parse().unwrap()));
    assert!(matches!(dear[..], [R::Epsilon { .. }]));
    assert!(matches!(
        refused(|r| r.batch_rows = Some(49))[..],
        [R::Batch { .. }]
    ));
    assert!(matches!(
        refused(|r| r.iterations = 101)[..],
        [R::Iterations { .. }]
    ));
    assert!(matches!(
        refused(|r| r.iterations = 0)[..],
        [R::Iterations { .. }]
    ));
    let invented = refused(|r| r.co_providers = vec![fingerprint("x"); 9]);
    assert!(matches!(
        invented[..],
        [R::CoProviders { known: 0, least: 1 }]
    ));
}

#[test]
fn what_is_exactly_at_a_limit_is_allowed() {
    let mut asked = request();
    asked.epsilon = Some("2".parse().unwrap());
    asked.batch_rows = Some(50);
    asked.iterations = 100;
    let grant = policy().evaluate(&peer("user"), &facts(), &asked).unwrap();
    assert_eq!((grant.iterations, grant.batch_rows), (100, 50));
    assert_eq!(grant.epsilon, asked.epsilon);
}

#[test]
fn repeating_a_known_provider_does_not_make_it_two() {
    let mut strict = policy();
    strict.limits.known_co_providers_min = 2;
    let mut asked = request();
    asked.co_providers = vec![fingerprint("b"); 2];
    assert!(strict.evaluate(&peer("user"), &facts(), &asked).is_err());
}

#[test]
fn too_many_numbers_for_the_unknowns_are_refused() {
    let mut few = facts();
    few.training_rows = 60;
    let mut asked = request();
    asked.iterations = 21;
    let verdict = policy().evaluate(&peer("user"), &few, &asked);
    let reasons = verdict.unwrap_err().reasons;
    assert!(matches!(
        reasons[..],
        [Reason::Revealed {
            revealed: 63,
            unknowns: 120,
            ..
        }]
    ));
    asked.iterations = 20;
    policy().evaluate(&peer("user"), &few, &asked).unwrap();
}

#[test]
fn a_data_user_is_held_to_its_columns() {
    let ask = |change: fn(&mut JobRequest)| {
        let mut asked = request();
        change(&mut asked);
        let verdict = policy().evaluate(&peer("narrow"), &facts(), &asked);
        verdict.map_err(|refusal| refusal.to_string())
    };
    let words = ask(|r| r.features = facts().features).unwrap_err();
    assert_eq!(words, "narrow may not use the columns ward, marker");
    let scored = ask(|r| {
        r.features = vec!["age".into()];
        r.scored = true;
    });
    let words = scored.unwrap_err();
    assert!(
        words.contains("columns ward, marker, and a ranking"),
        "{words}"
    );
    ask(|r| r.features = vec!["age".into()]).unwrap();
}

#[test]
fn a_job_that_comes_back_stays_within_what_it_may_learn() {
    // 1000 unknowns, half a number for each, three numbers in a gradient.
    let grant = policy().evaluate(&peer("user"), &facts(), &request());
    assert_eq!(grant.unwrap().iterations_most, 100);
    let mut few = facts();
    few.training_rows = 100;
    let mut asked = request();
    asked.iterations = 20;
    let grant = policy().evaluate(&peer("user"), &few, &asked).unwrap();
    assert_eq!(grant.iterations_most, 33);
}

#[test]
fn nothing_published_costs_nothing() {
    let mut asked = request();
    asked.published = Published::Named(vec![]);
    asked.mechanism = Mechanism::Ima;
    let grant = policy().evaluate(&peer("user"), &facts(), &asked).unwrap();
    assert_eq!(grant.epsilon, None);
}

#[test]
fn a_data_user_may_learn_as_much_in_all_jobs_as_in_one_unless_more_is_allowed() {
    let mut policy = policy();
    let most = |policy: &Policy| {
        let grant = policy.evaluate(&peer("user"), &facts(), &request());
        grant.unwrap().lifetime_most
    };
    // Half of 1000 unknown values.
    assert_eq!(most(&policy), 500);
    let more = "rows_per_batch_min = 1\niterations_per_job = 100\niterations_per_day = 1000\n\
         known_co_providers_min = 1\nrevealed_per_unknown_max = 0.5\nepsilon_total = 2\n\
         revealed_per_unknown_lifetime_max = 1.5";
    policy.limits = toml::from_str(more).unwrap();
    assert_eq!(most(&policy), 1500);
    assert!(!policy.limits.rosters_may_single_out);
}

#[test]
fn all_reasons_are_told_at_once() {
    let reasons = refused(|r| {
        r.iterations = 1000;
        r.batch_rows = Some(49);
        r.co_providers.clear();
    });
    assert_eq!(reasons.len(), 4, "{reasons:?}");
}

#[test]
fn named_columns_are_counted_exactly_and_guesses_at_their_worst() {
    let mut asked = request();
    asked.features = facts().features;
    let mut revealed = |published| {
        asked.published = published;
        let grant = policy().evaluate(&peer("user"), &facts(), &asked).unwrap();
        (grant.revealed, grant.unknowns)
    };
    let ward = Published::Named(vec!["ward".into()]);
    assert_eq!(revealed(ward), (40 * 7, 500 * 3));
    assert_eq!(revealed(Published::Any(1)), (40 * 7, 500 * 3));
    let age = Published::Named(vec!["age".into()]);
    assert_eq!(revealed(age), (40 * 7, 500 * 6));
    let elsewhere = refused(|r| r.published = Published::Named(vec!["ward".into()]));
    assert!(matches!(elsewhere[..], [Reason::Published { .. }]));
}

fn private_policy(more: &str) -> Policy {
    let limits = format!(
        "privacy_epsilon_total = 2\nprivacy_delta = 1e-6\nrows_per_batch_min = 50\n\
         iterations_per_job = 100\niterations_per_day = 1000\nknown_co_providers_min = 0\n\
         revealed_per_unknown_max = 0.0001\n{more}"
    );
    Policy {
        limits: toml::from_str(&limits).unwrap(),
        ..policy()
    }
}

fn private_request(trusted: Option<u32>) -> JobRequest {
    JobRequest {
        features: facts().features,
        published: Published::Any(0),
        epsilon: None,
        privacy: Some(Privacy {
            trusted,
            ..Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 1500)
        }),
        ..request()
    }
}

/// Where persons are protected so many of them are counted, and the fewest that may be is about them.
#[test]
fn persons_may_be_held_out_of_private_jobs_if_they_are_enough() {
    let policy = private_policy("held_out_rows_min = 20");
    for (persons, allowed) in [(Some(20), true), (Some(19), false), (None, true)] {
        let facts = DataFacts {
            persons_held_out: persons,
            ..facts()
        };
        let private = policy.evaluate(&peer("user"), &facts, &private_request(Some(0)));
        assert_eq!(private.is_ok(), allowed, "{persons:?}");
        let words = private.err().map(|refusal| refusal.to_string());
        assert!(words.is_none_or(|words| words.contains("at least 20 or none")));
        // An exact job holds out rows.
        assert_eq!(facts.counted(false), Some(100));
    }
}

/// What is promised counts, not how many numbers there are.
#[test]
fn a_private_job_is_judged_by_its_promise() {
    let evaluate = |policy: &Policy, request: &JobRequest| {
        let verdict = policy.evaluate(&peer("user"), &facts(), request);
        verdict.map_err(|refusal| refusal.reasons)
    };
    let policy = private_policy("");
    let grant = evaluate(&policy, &private_request(Some(0))).unwrap();
    let request = private_request(Some(0));
    let plan = facts().plan(&request.privacy.unwrap()).unwrap();
    assert_eq!(grant.private, Some(plan.cost()));
    let required = private_policy("privacy_required = true");
    let exact = JobRequest {
        privacy: None,
        ..request.clone()
    };
    let reasons = evaluate(&required, &exact).unwrap_err();
    assert!(reasons.contains(&Reason::NotPrivate), "{reasons:?}");
    let none = evaluate(&super::tests::policy(), &request).unwrap_err();
    assert!(none.contains(&Reason::NoPrivateBudget), "{none:?}");
    let mut weak = request;
    weak.privacy.as_mut().unwrap().delta = "0.01".parse().unwrap();
    weak.privacy.as_mut().unwrap().rows = 10;
    let reasons = evaluate(&policy, &weak).unwrap_err();
    assert!(matches!(reasons[..], [Reason::Plan(_)]), "{reasons:?}");
}

/// Noise of strangers may be known to the data user.
#[test]
fn noise_is_counted_from_known_providers_of_which_one_may_collude() {
    let known = ["b", "c"];
    for (others, limit, most) in [
        (&["b", "c"][..], "", 1),
        // Inviting strangers makes nobody count on the only one that may collude.
        (&["b", "stranger"], "", 0),
        (&["b", "x", "y", "z"], "", 0),
        (&["x", "y", "z"], "", 0),
        (&["b", "c", "z"], "", 1),
        (&["b"], "", 0),
        (&[], "", 0),
        (&["b", "c"], "privacy_trusted = 0", 0),
        (&["b", "c"], "privacy_trusted = 2", 2),
        (&["b", "c", "z"], "privacy_trusted = 9", 2),
        (&["b", "x"], "privacy_trusted = 9", 1),
        (&["x", "y"], "privacy_trusted = 9", 0),
    ] {
        let policy = private_policy(limit);
        assert!(
            known
                .iter()
                .all(|k| policy.known_providers.contains(&fingerprint(k)))
        );
        let mut request = private_request(None);
        request.co_providers = others.iter().map(|name| fingerprint(name)).collect();
        assert_eq!(policy.trusted_most(&request), most, "{others:?} {limit}");
        // Whatever the job asks for: the providers agree on the least that any of them allows.
        for trusted in 0..=others.len() as u32 {
            request.privacy.as_mut().unwrap().trusted = Some(trusted);
            assert!(policy.evaluate(&peer("user"), &facts(), &request).is_ok());
        }
    }
}
