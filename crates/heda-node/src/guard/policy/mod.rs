//! What a provider allows: a pure function of its configuration, the facts about its data and a
//! request. No clock, no ledger, no network; budgets that change over time are the ledger's.

mod preview;
pub mod provider_set;
mod reason;
mod request;

pub use reason::{PolicyRefusal, Reason};
pub use request::{DataFacts, JobRequest, Published};

use crate::config::{LimitsConfig, ProviderConfig};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::trust::PeerIdentity;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Cost;
use heda_learn::private::PlanError;
use request::{Count, batch_rows, count, well_formed};
use serde::Serialize;
use std::collections::BTreeSet;

/// The limits of one provider, ready to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The data set on offer.
    pub data_set: String,
    /// What jobs may use up.
    pub limits: LimitsConfig,
    /// Other providers that this one knows.
    pub known_providers: BTreeSet<PeerFingerprint>,
    /// Columns by the label of a data user; all columns for those that are not here.
    pub columns: Vec<(String, Vec<String>)>,
}

/// A request that is allowed, with what it will cost and reveal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grant {
    /// Iterations that were asked for.
    pub iterations: u64,
    /// Iterations that the job may have in all, those included that it repeats after a loss.
    pub iterations_most: u64,
    /// ε for what is published; none when nothing is.
    pub epsilon: Option<Epsilon>,
    /// Rows in the smallest batch.
    pub batch_rows: u64,
    /// Numbers that the data user sees: a gradient for each iteration.
    pub revealed: u128,
    /// Values of this provider that the data user does not know.
    pub unknowns: u128,
    /// Numbers in one gradient.
    pub gradient: u64,
    /// Numbers that the data user may learn over all of its jobs.
    pub lifetime_most: u64,
    /// Known providers among the others.
    pub known_co_providers: u64,
    /// What a private job costs a row.
    pub private: Option<Cost>,
}

impl Policy {
    /// The policy of a configuration.
    pub fn new(config: &ProviderConfig) -> Self {
        let restricted = config.allowed.iter().filter_map(|peer| {
            let columns = peer.columns.clone()?;
            Some((peer.name.to_string(), columns))
        });
        Self {
            data_set: config.data_set.to_string(),
            limits: config.limits.clone(),
            known_providers: config
                .known_providers
                .iter()
                .map(|p| p.fingerprint)
                .collect(),
            columns: restricted.collect(),
        }
    }

    /// Whether a request of this peer is allowed.
    pub fn evaluate(
        &self,
        peer: &PeerIdentity,
        facts: &DataFacts,
        request: &JobRequest,
    ) -> Result<Grant, PolicyRefusal> {
        let privacy = request.privacy.as_ref();
        let plan = privacy.map(|privacy| facts.plan(privacy)).transpose();
        let mut reasons = well_formed(request, facts);
        if reasons.is_empty() {
            reasons.extend(self.columns_allowed(peer, facts, request));
            reasons.extend(self.publishing_allowed(request));
            reasons.extend(self.amounts_allowed(facts, request));
            reasons.extend(self.promise_allowed(facts, request, plan.as_ref().err()));
        }
        if !reasons.is_empty() {
            return Err(PolicyRefusal { reasons });
        }
        let count = count(facts, request);
        let limits = &self.limits;
        let within = match request.privacy {
            Some(_) => u64::MAX,
            None => count.gradients_within(limits.revealed_per_unknown_max.get()),
        };
        let plan = plan.ok().flatten();
        Ok(Grant {
            iterations: request.iterations,
            iterations_most: limits.iterations_per_job.get().min(within),
            epsilon: request.epsilon.filter(|_| request.published.count() > 0),
            batch_rows: batch_rows(facts, request),
            revealed: count.revealed,
            unknowns: count.unknowns,
            gradient: u64::try_from(count.gradient).unwrap_or(u64::MAX),
            lifetime_most: self.lifetime_most(&count),
            known_co_providers: self.known_co_providers(request),
            private: plan.map(|plan| plan.cost()),
        })
    }

    /// On how many others' noise a private job may count.
    pub fn trusted_most(&self, request: &JobRequest) -> u32 {
        // Whom nobody here knows the data user may have invented, noise and all.
        let known = u32::try_from(self.known_co_providers(request)).unwrap_or(u32::MAX);
        match self.limits.privacy_trusted {
            Some(trusted) => trusted.min(known),
            // One of them may collude.
            None => known.saturating_sub(1),
        }
    }

    fn promise_allowed(
        &self,
        facts: &DataFacts,
        request: &JobRequest,
        no_plan: Option<&PlanError>,
    ) -> Vec<Reason> {
        let Some(privacy) = &request.privacy else {
            let required = self.limits.privacy_required;
            return required.then_some(Reason::NotPrivate).into_iter().collect();
        };
        let mut reasons = Vec::new();
        if self.limits.private_cap().is_none() {
            reasons.push(Reason::NoPrivateBudget);
        }
        // The number of rows that the job states is for its plan; this one is true.
        let fits = privacy.delta.check_rows(facts.training_rows);
        let fits = fits.map_err(PlanError::from);
        reasons.extend(no_plan.cloned().or(fits.err()).map(Reason::Plan));
        reasons
    }

    /// Numbers that a data user may learn over all of its jobs, while so much is unknown to it.
    fn lifetime_most(&self, count: &Count) -> u64 {
        let limits = &self.limits;
        let lifetime = limits.revealed_per_unknown_lifetime_max;
        let ratio = lifetime.unwrap_or(limits.revealed_per_unknown_max).get();
        (ratio * count.unknowns as f64) as u64
    }

    /// Whether a data user is held to certain columns.
    pub fn columns_of(&self, peer: &PeerIdentity) -> Option<&[String]> {
        let entry = self.columns.iter().find(|(label, _)| *label == peer.label);
        entry.map(|(_, columns)| columns.as_slice())
    }

    fn columns_allowed(
        &self,
        peer: &PeerIdentity,
        facts: &DataFacts,
        request: &JobRequest,
    ) -> Option<Reason> {
        let allowed = self.columns_of(peer)?;
        let forbidden = |features: &[String]| {
            let forbidden = features.iter().filter(|f| !allowed.contains(f));
            forbidden.cloned().collect::<Vec<String>>().join(", ")
        };
        let label = peer.label.clone();
        let columns = forbidden(&request.features);
        if !columns.is_empty() && !request.scored {
            return Some(Reason::Columns { label, columns });
        }
        let columns = forbidden(&facts.features);
        (request.scored && !columns.is_empty()).then_some(Reason::Scored { label, columns })
    }

    fn publishing_allowed(&self, request: &JobRequest) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if request.published.count() == 0 {
            return reasons;
        }
        if !self.limits.mechanisms.contains(&request.mechanism) {
            reasons.push(Reason::Mechanism(request.mechanism));
        }
        match (request.epsilon, self.limits.epsilon_total) {
            (None, _) => reasons.push(Reason::NoEpsilon),
            (Some(asked), Some(total)) if asked <= total => {}
            (Some(asked), total) => reasons.push(Reason::Epsilon {
                asked,
                allowed: total.map_or("0".into(), |total| total.to_string()),
            }),
        }
        reasons
    }

    fn amounts_allowed(&self, facts: &DataFacts, request: &JobRequest) -> Vec<Reason> {
        let limits = &self.limits;
        let mut reasons = Vec::new();
        if !limits.engines.contains(&request.engine) {
            reasons.push(Reason::Engine {
                asked: request.engine,
                allowed: limits
                    .engines
                    .iter()
                    .map(|e| e.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        let (rows, least) = (batch_rows(facts, request), limits.rows_per_batch_min.get());
        if rows < least {
            reasons.push(Reason::Batch { asked: rows, least });
        }
        let least = limits.held_out_rows_min.get();
        let held_out = facts.counted(request.privacy.is_some());
        if let Some(rows) = held_out.filter(|rows| *rows < least) {
            reasons.push(Reason::HeldOut { rows, least });
        }
        let (asked, most) = (request.iterations, limits.iterations_per_job.get());
        if asked > most || asked == 0 {
            reasons.push(Reason::Iterations { asked, most });
        }
        let (known, least) = (
            self.known_co_providers(request),
            limits.known_co_providers_min,
        );
        if known < least {
            reasons.push(Reason::CoProviders { known, least });
        }
        let count = count(facts, request);
        let most = limits.revealed_per_unknown_max.get();
        // Of numbers with noise it is not the number that tells.
        if request.privacy.is_none() && count.ratio() > most {
            reasons.push(Reason::Revealed {
                revealed: count.revealed,
                unknowns: count.unknowns,
                ratio: count.ratio(),
                most,
            });
        }
        reasons
    }

    fn known_co_providers(&self, request: &JobRequest) -> u64 {
        let others: BTreeSet<_> = request.co_providers.iter().collect();
        let known = others.iter().filter(|f| self.known_providers.contains(f));
        known.count() as u64
    }
}

#[cfg(test)]
mod tests;
