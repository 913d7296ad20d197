//! What a request would cost and reveal, for the operator's eyes.

use super::request::{batch_rows, count};
use super::{DataFacts, JobRequest, Policy};
use crate::guard::ledger::PrivateReport;
use crate::identity::trust::PeerIdentity;
use heda_dp::gdp::Cost;
use heda_job::proposal::Privacy;
use heda_learn::private::PrivatePlan;
use std::fmt::Write as _;

impl Policy {
    /// What a request would cost and reveal, for the operator's eyes, allowed or not.
    /// `learned` numbers are known to the data user from its jobs so far; `account` is that of the
    /// private jobs.
    pub fn preview(
        &self,
        peer: &PeerIdentity,
        facts: &DataFacts,
        request: &JobRequest,
        learned: u64,
        account: Option<&PrivateReport>,
    ) -> String {
        let mut text = String::new();
        let count = count(facts, request);
        let verdict = self.evaluate(peer, facts, request);
        let _ = writeln!(
            text,
            "Job {} of {} on {}",
            request.job, peer.label, self.data_set
        );
        let _ = writeln!(
            text,
            "  engine {}, {} features, {} of them published, {} iterations over {} rows",
            request.engine,
            request.features.len(),
            request.published.count(),
            request.iterations,
            batch_rows(facts, request)
        );
        let cost = match request.epsilon {
            _ if request.privacy.is_some() => "of the budget of private jobs".to_owned(),
            Some(epsilon) if request.published.count() > 0 => format!(
                "epsilon {epsilon} in sum over the published columns of a row, by {}: {}",
                request.mechanism,
                request.mechanism.guarantee()
            ),
            _ => "nothing is published, no epsilon is spent".into(),
        };
        if let Some(promise) = &request.privacy {
            self.preview_promise(&mut text, facts, request, promise, account);
        }
        let _ = writeln!(text, "  cost: {cost}");
        let _ = writeln!(
            text,
            "  reveals: at most {} numbers (the gradient in each iteration) about {} unknown \
             values of this provider, {:.4} for each",
            count.revealed,
            count.unknowns,
            count.ratio()
        );
        if request.privacy.is_none() {
            let _ = writeln!(
                text,
                "  over all jobs: {learned} numbers so far, at most {} with this one; {} are allowed",
                u128::from(learned) + count.revealed,
                self.lifetime_most(&count)
            );
        }
        let alone = request.co_providers.is_empty();
        let whose = if alone {
            "of this provider alone: nobody else takes part"
        } else {
            "summed over all providers; whoever controls all the others sees this one's"
        };
        let _ = writeln!(
            text,
            "  gradients: {whose}; {} of {} other providers are known here",
            self.known_co_providers(request),
            request.co_providers.len()
        );
        match verdict {
            Ok(_) => {
                text.push_str("  verdict: allowed, as far as the budget of the ledger reaches")
            }
            Err(refusal) => {
                let _ = write!(text, "  verdict: refused: {refusal}");
            }
        }
        text
    }

    /// What a promise asks of the lifetime budget, and what counting on others' noise costs.
    fn preview_promise(
        &self,
        text: &mut String,
        facts: &DataFacts,
        request: &JobRequest,
        promise: &Privacy,
        account: Option<&PrivateReport>,
    ) {
        let Ok(plan) = facts.plan(promise) else {
            return;
        };
        let _ = writeln!(
            text,
            "  promise: epsilon {} at delta {} for everything that {} reveal of a row",
            promise.epsilon,
            promise.delta,
            steps(&plan)
        );
        if let (Some(account), Some(cap)) = (account, self.limits.private_cap()) {
            let of = |cost: Cost| match cost.epsilon(cap.delta) {
                _ if cost == Cost::ZERO => "0".to_owned(),
                Ok(epsilon) => format!("{:.4}", (epsilon.to_f64() * 1e4).ceil() / 1e4),
                Err(_) => "more than 1000".to_owned(),
            };
            let spent = account.spent;
            let _ = writeln!(
                text,
                "  lifetime budget: epsilon {} at delta {}; {} is spent, {} with this job, which never \
                 costs more than its plan",
                cap.epsilon,
                cap.delta,
                of(spent),
                of(spent.plus(plan.cost()))
            );
        }
        let (all, most) = (request.co_providers.len() + 1, self.trusted_most(request));
        let choices = (0..all as u32).map(|trusted| {
            let choice = Privacy {
                trusted: Some(trusted),
                ..*promise
            };
            let noise = choice.noise_in_rows(&plan, all);
            let allowed = match trusted <= most {
                true => "",
                false => ", not accepted here",
            };
            format!("{trusted} ({noise:.1} rows{allowed})")
        });
        let _ = writeln!(
            text,
            "  noise: counts on that of {} others besides its own, or of fewer if a provider counts on \
             fewer. By how many are counted on, its deviation in each number of a gradient, as a \
             multiple of what a row can add: {}",
            promise.counts_on(all).min(most),
            choices.collect::<Vec<_>>().join(", ")
        );
        // As many beside the training rows of all as here.
        let counted = facts.counted(true).unwrap_or(0);
        let held_out = promise.rows.saturating_mul(counted) / facts.training_rows.max(1);
        if let Some(foreseen) = promise.foresee(&plan, all, held_out) {
            let _ = writeln!(text, "  evaluation: {foreseen}");
        }
    }
}

/// How a private job goes over the rows, in words.
fn steps(plan: &PrivatePlan) -> String {
    let (steps, passes) = (plan.all_gradients(), plan.all_passes());
    match (plan.passes().batches(), passes) {
        (1, _) => format!("{steps} gradients"),
        (_, 1) => format!("{steps} gradients in 1 pass over the rows"),
        _ => format!("{steps} gradients in {passes} passes over the rows"),
    }
}
