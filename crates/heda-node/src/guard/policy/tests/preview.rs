//! What an operator reads before a job.

use super::*;
use crate::guard::ledger::PrivateReport;
use heda_dp::gdp::Cost;

#[test]
fn the_preview_says_what_it_costs_and_reveals() {
    let text = policy().preview(&peer("user"), &facts(), &request(), 30, None);
    for part in [
        "epsilon 1.5 in sum",
        "at most 120 numbers",
        "about 1000 unknown",
        "over all jobs: 30 numbers so far, at most 150 with this one; 500 are allowed",
        "1 of 2 other providers are known",
        "verdict: allowed",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let mut alone = request();
    alone.co_providers.clear();
    let text = policy().preview(&peer("user"), &facts(), &alone, 30, None);
    assert!(
        text.contains("this provider alone") && text.contains("refused"),
        "{text}"
    );
}

#[test]
fn a_preview_says_what_is_asked_of_the_lifetime_budget() {
    let (policy, mut request) = (private_policy(""), private_request(None));
    request.co_providers = vec![fingerprint("b"), fingerprint("c")];
    let text = policy.preview(&peer("user"), &facts(), &request, 0, None);
    assert!(text.contains("promise: epsilon 1 at delta 1e-5"), "{text}");
    // With two of three shares counted, the noise of all is 1.5 times what is needed.
    let plan = facts().plan(&request.privacy.unwrap()).unwrap();
    let needed = (plan.variance().get() as f64).sqrt() / 2048.0;
    // Two are known here, and one of them may collude.
    for (trusted, factor, accepted) in
        [(0, 3f64, ""), (1, 1.5, ""), (2, 1.0, ", not accepted here")]
    {
        let words = format!("{trusted} ({:.1} rows{accepted})", needed * factor.sqrt());
        assert!(text.contains(&words), "{words} in {text}");
    }
    // A hundred rows here, 300 of all: the promise is about 1,500 that train.
    assert!(text.contains("about 300 held-out rows"), "{text}");
    assert!(text.contains("verdict: allowed"), "{text}");
}

#[test]
fn a_preview_says_from_what_a_job_is_paid() {
    let preview = |request: &JobRequest, policy: &Policy| {
        policy.preview(&peer("user"), &facts(), request, 0, None)
    };
    let private = preview(&private_request(Some(0)), &private_policy(""));
    assert!(private.contains("cost: of the budget of private jobs\n"));
    let mut asked = request();
    let published = preview(&asked, &policy());
    let by = "cost: epsilon 1.5 in sum over the published columns of a row, by laplace: ";
    assert!(published.contains(by), "{published}");
    // Whatever may be spent, nothing is where nothing is published.
    for (count, epsilon) in [(0, asked.epsilon), (0, None), (1, None)] {
        asked.published = Published::Any(count);
        asked.epsilon = epsilon;
        let text = preview(&asked, &policy());
        let nothing = "cost: nothing is published, no epsilon is spent\n";
        assert!(text.contains(nothing), "{text}");
    }
}

fn account(spent: Cost) -> PrivateReport {
    PrivateReport {
        delta: 1e-6,
        epsilon_total: Some(2.0),
        epsilon_spent: None,
        epsilon_left: 0.0,
        epsilon_for_one: 0.0,
        epsilon_with_published: None,
        squared_total: 0.0,
        squared_spent: spent.squared(),
        spent,
        users: Vec::new(),
        holds: Vec::new(),
    }
}

#[test]
fn a_preview_says_what_is_spent_before_and_with_the_job() {
    let (policy, request) = (private_policy(""), private_request(Some(0)));
    let cap = policy.limits.private_cap().unwrap();
    let plan = facts().plan(&request.privacy.unwrap()).unwrap();
    let words = |cost: Cost| {
        let epsilon = cost.epsilon(cap.delta).unwrap().to_f64();
        format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
    };
    let half = Cost::for_guarantee("0.5".parse().unwrap(), cap.delta);
    let both = half.plus(plan.cost());
    let large = Cost::from_parts(1 << 62);
    for (spent, before, after) in [
        (Cost::ZERO, "0".to_owned(), words(plan.cost())),
        (half, words(half), words(both)),
        (large, "more than 1000".into(), "more than 1000".into()),
    ] {
        let account = account(spent);
        let text = policy.preview(&peer("user"), &facts(), &request, 0, Some(&account));
        let expected = format!(
            "lifetime budget: epsilon 2 at delta 1e-6; {before} is spent, {after} with this job"
        );
        assert!(text.contains(&expected), "{expected} in {text}");
    }
    assert!(words(both) > words(plan.cost()));
}
