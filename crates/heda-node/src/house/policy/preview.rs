//! What a request would cost and reveal, for the operator's eyes.

use super::request::{batch_rows, count};
use super::{DataFacts, JobRequest, Policy};
use crate::identity::trust::PeerIdentity;
use std::fmt::Write as _;

impl Policy {
    /// What a request would cost and reveal, for the operator's eyes, allowed or not.
    /// `learned` numbers are known to the data user from its jobs so far.
    pub fn preview(
        &self,
        peer: &PeerIdentity,
        facts: &DataFacts,
        request: &JobRequest,
        learned: u64,
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
            Some(epsilon) if request.published.count() > 0 => format!(
                "epsilon {epsilon} in sum over the published columns of a row, by {}: {}",
                request.mechanism,
                request.mechanism.guarantee()
            ),
            _ => "nothing is published, no epsilon is spent".into(),
        };
        let _ = writeln!(text, "  cost: {cost}");
        let _ = writeln!(
            text,
            "  reveals: at most {} numbers (the gradient in each iteration) about {} unknown \
             values of this provider, {:.4} for each",
            count.revealed,
            count.unknowns,
            count.ratio()
        );
        let _ = writeln!(
            text,
            "  over all jobs: {learned} numbers so far, at most {} with this one; {} are allowed",
            u128::from(learned) + count.revealed,
            self.lifetime_most(&count)
        );
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
}
