//! What a steward reads: the budget in plain words, jobs and refusals with their times.

use heda::layout::wrapped;
use heda::provider::{
    BegunAnew, BudgetReport, DisclosedReport, OtherSpent, PrivateReport, StatusReport,
};
use std::fmt::Write as _;

/// Lines that fit a terminal; what does not fit goes on below, indented.
fn paragraph(text: &mut String, words: &str) {
    let mut lines = wrapped(words, "").into_iter();
    if let Some(first) = lines.next() {
        let _ = writeln!(text, "{first}");
    }
    let rest: Vec<String> = lines.collect();
    if !rest.is_empty() {
        for line in wrapped(&rest.join(" "), "  ") {
            let _ = writeln!(text, "{line}");
        }
    }
}

/// The same below a line.
fn below(text: &mut String, words: &str) {
    for line in wrapped(words, "  ") {
        let _ = writeln!(text, "{line}");
    }
}

/// A number and its noun, which agree.
fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

/// ε that is used, rounded up.
fn used(epsilon: Option<f64>) -> String {
    match epsilon {
        Some(epsilon) => format!("{:.2}", (epsilon * 100.0 - 1e-7).ceil().max(0.0) / 100.0),
        None => "more than 1000".to_owned(),
    }
}

/// ε that is left, rounded down: a job of so much fits.
fn left(epsilon: f64) -> String {
    format!("{:.2}", (epsilon * 100.0).floor() / 100.0)
}

/// What private jobs have used, and what they may still use.
pub(super) fn private(text: &mut String, account: &PrivateReport) {
    let (spent, delta) = (used(account.epsilon_spent), account.delta);
    let sentence = match account.epsilon_total {
        Some(total) => {
            let fresh = account.epsilon_spent == Some(0.0) && account.holds.is_empty();
            let room = match account.epsilon_for_one {
                // Nothing is used: what a data user may have is what the configuration says.
                room if fresh => {
                    let most = match room < account.epsilon_left {
                        true => left(room),
                        false => format!("{total:.2}"),
                    };
                    format!("Room for one job of up to {most}, or for several smaller ones.")
                }
                room if room < 0.01 => "No room for another job.".to_owned(),
                room => format!("Room for one more job of up to {}.", left(room)),
            };
            format!("Privacy budget: {spent} of {total:.2} used (δ = {delta:e}). {room}")
        }
        None if account.users.is_empty() => {
            "Privacy budget: none is set, so private jobs are refused.".to_owned()
        }
        None => format!(
            "Privacy budget: none is set, so private jobs are refused; {spent} was used before \
             (δ = {delta:e})."
        ),
    };
    paragraph(text, &sentence);
    for user in &account.users {
        let jobs = counted(user.jobs, "job");
        let mut words = format!("{}: {} used in {jobs}", user.label, used(user.epsilon));
        // What is left of everybody's is said above.
        if user.epsilon_left < account.epsilon_for_one {
            words += &match user.epsilon_left {
                room if room < 0.01 => "; no room for another one".to_owned(),
                room => format!("; room for one more of up to {}", left(room)),
            };
        }
        below(text, &words);
        below(text, &user.peer);
    }
    for hold in &account.holds {
        let words = format!(
            "Job {} runs and has set its part aside, last used {}; `heda provider release` frees it.",
            hold.job, hold.used
        );
        paragraph(text, &words);
    }
    if account.epsilon_with_published != account.epsilon_spent {
        let both = used(account.epsilon_with_published);
        let words = format!("Together with the published columns: {both} used (δ = {delta:e}).");
        paragraph(text, &words);
    }
}

/// What publishing columns has used; nothing where nothing may be or was published.
pub(super) fn published(text: &mut String, budget: &BudgetReport) {
    let (spent, total) = (&budget.epsilon_spent, &budget.epsilon_total);
    match (spent.as_str(), total.as_str()) {
        ("0", "0") => {}
        (_, "0") => paragraph(
            text,
            &format!("Published columns: epsilon {spent} was used; nothing more is published."),
        ),
        _ => paragraph(
            text,
            &format!(
                "Published columns: epsilon {spent} of {total} used, {} left.",
                budget.epsilon_left
            ),
        ),
    }
}

/// What every data user has learned in exact sums.
pub(super) fn disclosed(text: &mut String, disclosed: &[DisclosedReport]) {
    // Numbers with noise are paid for instead of counted.
    for entry in disclosed.iter().filter(|entry| entry.numbers > 0) {
        let words = format!(
            "{} learned {} in all of its jobs, with {} of providers",
            entry.label,
            counted(entry.numbers, "exact number"),
            counted(entry.provider_sets, "set")
        );
        paragraph(text, &words);
        below(text, &entry.peer);
    }
}

/// `provider budget`.
pub(super) fn budget(budget: &BudgetReport, account: &PrivateReport) -> String {
    let mut text = String::new();
    private(&mut text, account);
    published(&mut text, budget);
    disclosed(&mut text, &budget.disclosed);
    for release in &budget.releases {
        let columns: Vec<String> = release
            .charge
            .columns()
            .iter()
            .map(|column| format!("{} {}", column.name, column.epsilon))
            .collect();
        paragraph(&mut text, &format!("Job {}, {}", release.job, release.paid));
        let words = format!(
            "epsilon {} by {} ({})",
            release.charge.total(),
            release.charge.mechanism(),
            columns.join(", ")
        );
        below(&mut text, &words);
        let content = release.sha256.as_deref().unwrap_or("not made yet");
        below(&mut text, &format!("sha256 {content}"));
    }
    text
}

/// What other data sets of the same ledger have used: a new name gives no new budget to the same people.
pub(super) fn others(others: &[OtherSpent]) -> String {
    let mut text = String::new();
    for other in others {
        let words = other.to_string();
        paragraph(&mut text, &format!("Warning: {words}"));
    }
    text
}

/// `provider begin-anew`.
pub(super) fn begun(begun: &BegunAnew, because: &str) -> String {
    let mut text = String::new();
    paragraph(
        &mut text,
        &format!("A new ledger begins, because: {because}"),
    );
    if begun.missing > 0 {
        let entries = match begun.missing {
            1 => "1 entry is missing or altered".to_owned(),
            many => format!("{many} entries are missing or altered"),
        };
        let words = format!(
            "{entries}. A single one can have used all that was left, so all of it counts as used, for \
             every data set that this ledger knows. If you know that less was used, for instance from the \
             data users, raise privacy_epsilon_total (private jobs) or epsilon_total (published \
             columns) by as much."
        );
        paragraph(&mut text, &words);
    }
    private(&mut text, &begun.private);
    published(&mut text, &begun.budget);
    if let Some(path) = &begun.aside {
        let _ = writeln!(text, "What could not be read is kept as {}", path.display());
    }
    text + "Restart the daemon if it runs."
}

/// `provider status`.
pub(super) fn status(status: &StatusReport, account: &PrivateReport) -> String {
    let mut text = String::new();
    private(&mut text, account);
    let today = counted(status.iterations_today, "answer");
    let given = match status.iterations_today {
        1 => "was",
        _ => "were",
    };
    let words = format!("{today} {given} given on {} (UTC), of any kind", status.day);
    paragraph(&mut text, &words);
    if let Some(begun) = &status.begun {
        paragraph(
            &mut text,
            &format!("This ledger was begun because: {begun}"),
        );
    }
    for failed in &status.failed_checks {
        let checks = counted(failed.checks, "consistency check");
        paragraph(
            &mut text,
            &format!(
                "Warning: {} failed {checks}, the last {}. No honest data user fails any.",
                failed.peer, failed.last
            ),
        );
    }
    disclosed(&mut text, &status.disclosed);
    for job in &status.jobs {
        let words = format!("Job {} of {} on {}", job.job, job.label, job.data_set);
        paragraph(&mut text, &words);
        let state = match job.ended {
            Some(ended) => format!("{} {ended}", job.state),
            None => format!("still {}", job.state),
        };
        below(&mut text, &format!("opened {}, {state}", job.opened));
        let words = format!(
            "engine {}, {}, {}, {}",
            job.engine,
            counted(job.iterations, "iteration"),
            counted(job.evaluations, "evaluation"),
            counted(job.rankings, "ranking")
        );
        below(&mut text, &words);
    }
    for refusal in &status.refusals {
        let words = format!(
            "Refused {}: job {} of {}",
            refusal.at, refusal.job, refusal.label
        );
        paragraph(&mut text, &words);
        below(&mut text, &refusal.reason);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda::provider::{
        Day, FailedChecksReport, HoldReport, JobReport, PrivateUser, RefusalReport, Timestamp,
    };

    fn account(spent: f64, left: f64) -> PrivateReport {
        PrivateReport {
            delta: 1e-5,
            epsilon_total: Some(2.0),
            epsilon_spent: Some(spent),
            epsilon_left: left,
            epsilon_for_one: left,
            epsilon_with_published: Some(spent),
            squared_total: 0.2,
            squared_spent: 0.1,
            spent: Default::default(),
            users: Vec::new(),
            holds: Vec::new(),
        }
    }

    fn nothing_published() -> BudgetReport {
        BudgetReport {
            data_set: "ward".into(),
            epsilon_total: "0".into(),
            epsilon_spent: "0".into(),
            epsilon_left: "0".into(),
            releases: Vec::new(),
            disclosed: Vec::new(),
        }
    }

    /// As one line: where it is broken does not matter here.
    fn joined(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_budget_begins_with_what_private_jobs_used_and_may_still_use() {
        let words = budget(&nothing_published(), &account(0.99995, 1.6584));
        assert_eq!(
            joined(&words),
            "Privacy budget: 1.00 of 2.00 used (δ = 1e-5). Room for one more job of up to 1.65."
        );
        let words = budget(&nothing_published(), &account(2.0, 0.0));
        assert!(words.contains("2.00 of 2.00 used"), "{words}");
        assert!(
            joined(&words).contains("No room for another job."),
            "{words}"
        );
        // Nothing is used yet: the whole budget is one job's if it asks for it.
        let words = joined(&budget(&nothing_published(), &account(0.0, 1.9999)));
        assert!(words.contains("0.00 of 2.00 used"), "{words}");
        assert!(words.contains("Room for one job of up to 2.00,"), "{words}");
        // Rounded against the steward's hopes on both sides.
        let mut running = account(0.0, 1.0);
        running.holds.push(HoldReport {
            peer: "sha256:ab".into(),
            job: "1b".repeat(16),
            cost: Default::default(),
            used: Timestamp(1_795_005_930),
        });
        let words = joined(&budget(&nothing_published(), &running));
        assert!(words.contains("has set its part aside, last used 2026-11-18 12:45 UTC"));
        let words = joined(&budget(&nothing_published(), &account(0.1211, 1.9999)));
        assert!(words.contains("0.13 of 2.00") && words.contains("up to 1.99."));
    }

    #[test]
    fn no_room_is_shown_that_a_data_user_cannot_have() {
        let shared = |spent, left, one| PrivateReport {
            epsilon_for_one: one,
            ..account(spent, left)
        };
        let words = joined(&budget(&nothing_published(), &shared(0.5, 1.8, 1.5)));
        assert!(
            words.contains("Room for one more job of up to 1.50."),
            "{words}"
        );
        let words = joined(&budget(&nothing_published(), &shared(0.0, 2.0, 1.5)));
        assert!(words.contains("Room for one job of up to 1.50,"), "{words}");
        let mut spent = shared(1.5, 1.1, 1.1);
        spent.users.push(PrivateUser {
            peer: "sha256:ab".into(),
            label: "university".into(),
            squared: 0.1,
            epsilon: Some(1.5),
            epsilon_left: 0.0,
            jobs: 2,
        });
        let words = joined(&budget(&nothing_published(), &spent));
        assert!(
            words.contains("1.50 used in 2 jobs; no room for another one"),
            "{words}"
        );
    }

    #[test]
    fn what_does_not_exist_is_not_shown_as_nought_of_nought() {
        let none = PrivateReport {
            epsilon_total: None,
            ..account(0.0, 0.0)
        };
        let words = budget(&nothing_published(), &none);
        assert!(words.contains("none is set"), "{words}");
        assert!(!words.contains("0 of 0") && !words.contains("Published"));
        let some = BudgetReport {
            epsilon_total: "1".into(),
            epsilon_spent: "0.25".into(),
            epsilon_left: "0.75".into(),
            ..nothing_published()
        };
        let words = budget(&some, &none);
        assert!(words.contains("Published columns: epsilon 0.25 of 1 used, 0.75 left."));
    }

    #[test]
    fn a_status_has_dates_plurals_that_agree_and_lines_that_fit() {
        let peer = format!("sha256:{}", "ab".repeat(32));
        let report = StatusReport {
            day: Day(20_775),
            iterations_today: 1,
            begun: Some("the first start".into()),
            failed_checks: vec![FailedChecksReport {
                peer: peer.clone(),
                checks: 1,
                last: Timestamp(1_795_005_930),
            }],
            disclosed: vec![DisclosedReport {
                peer: peer.clone(),
                label: "university".into(),
                numbers: 983,
                provider_sets: 1,
            }],
            jobs: vec![JobReport {
                peer: peer.clone(),
                label: "university".into(),
                job: "0a".repeat(16),
                data_set: "ward".into(),
                engine: "resident".into(),
                opened: Timestamp(1_795_005_930),
                ended: Some(Timestamp(1_795_005_990)),
                state: "finished".into(),
                iterations: 20,
                evaluations: 1,
                rankings: 0,
            }],
            refusals: vec![RefusalReport {
                at: Timestamp(1_795_006_930),
                peer: peer.clone(),
                label: "university".into(),
                job: "1b".repeat(16),
                reason: "the budget has no room for this job ".repeat(5),
            }],
        };
        let mut private = account(1.0, 1.65);
        private.users.push(PrivateUser {
            peer,
            label: "university".into(),
            squared: 0.1,
            epsilon: Some(1.0),
            epsilon_left: 0.31,
            jobs: 1,
        });
        let words = status(&report, &private);
        for part in [
            "1 answer was given on 2026-11-18 (UTC)",
            "opened 2026-11-18 12:45 UTC, finished 2026-11-18 12:46 UTC",
            "20 iterations, 1 evaluation, 0 rankings",
            "Refused 2026-11-18 13:02 UTC: job 1b",
            "university: 1.00 used in 1 job; room for one more of up to 0.31\n",
            "failed 1 consistency check",
            "learned 983 exact numbers in all of its jobs, with 1 set of providers",
        ] {
            assert!(words.contains(part), "{part} in {words}");
        }
        let widest = words.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{words}");
    }
}
