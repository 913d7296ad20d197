//! Agreements that are weaker than a provider's own terms, played to one provider.

use super::tests::{Case, announced, private, proposal_of, serve};
use crate::guard::{Admission, AgreedPlan, Charged, Guard, Refusal, Step};
use crate::local::LocalProvider;
use crate::message::{Agreement, Announcements, Message};
use crate::proposal::{JobId, Proposal, Split};
use heda_dp::account::{Charge, Receipt};
use serde_json::{Value, json};

/// What a provider insists on.
#[derive(Clone, Copy)]
struct Terms {
    trusted_most: u32,
    next_step: u32,
    persons: bool,
}

/// A guard with terms of its own.
struct Strict {
    guard: Box<dyn Guard>,
    terms: Terms,
}

impl Guard for Strict {
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal> {
        let admission = self.guard.admit(proposal)?;
        let rows = admission.data.rows() as u32;
        Ok(Admission {
            trusted_most: self.terms.trusted_most,
            next_step: self.terms.next_step,
            persons: self.terms.persons.then(|| (0..rows).collect()),
            ..admission
        })
    }

    fn agree_split(&self, job: JobId, split: &Split) -> Result<(), Refusal> {
        self.guard.agree_split(job, split)
    }

    fn release(
        &self,
        job: JobId,
        charge: Charge,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        self.guard.release(job, charge, make)
    }

    fn reserve(&self, job: JobId, plan: AgreedPlan) -> Result<(), Refusal> {
        self.guard.reserve(job, plan)
    }

    fn begin(&self, job: JobId, step: &Step) -> Result<(), Refusal> {
        self.guard.begin(job, step)
    }

    fn record(&self, job: JobId, step: &Step, plan: Option<AgreedPlan>) -> Result<(), Refusal> {
        self.guard.record(job, step, plan)
    }

    fn end_cheating(&self, job: JobId) -> Result<(), Refusal> {
        self.guard.end_cheating(job)
    }

    fn charged(&self, job: JobId) -> Result<Charged, Refusal> {
        self.guard.charged(job)
    }
}

/// What the first provider says to an agreement.
fn told(case: &Case, terms: Terms, agreement: &Value) -> String {
    let proposal = proposal_of(case);
    let strict = || -> Vec<LocalProvider> {
        let guards = case.guards().into_iter();
        let strict = guards.map(|LocalProvider { name, guard }| LocalProvider {
            name,
            guard: Box::new(Strict { guard, terms }),
        });
        strict.collect()
    };
    let all = strict();
    let keys = all.iter().map(|provider| announced(provider, &proposal));
    let keys: Vec<u8> = keys.flat_map(Option::unwrap).collect();
    let agreement = agreement.to_string();
    let messages = vec![
        proposal.clone(),
        [&[Announcements::TAG][..], &keys].concat(),
        [&[Agreement::TAG][..], agreement.as_bytes()].concat(),
    ];
    serve(&strict()[0], messages).1
}

#[test]
fn an_agreement_below_a_providers_own_terms_is_refused() {
    let case = private();
    let own = Terms {
        trusted_most: 1,
        next_step: 3,
        persons: false,
    };
    let agreed = |trusted: u32, first_step: u32, persons: bool| json!({"trusted": trusted, "first_step": first_step, "persons": persons});
    let noise = "it counts on more providers' noise";
    let back = "it goes back to an answer";
    let rows = "this provider protects persons";
    let refused = |terms: Terms, agreement: Value| {
        let words = told(&case, terms, &agreement);
        [noise, back, rows].map(|reason| words.contains(reason))
    };
    assert_eq!(refused(own, agreed(1, 3, false)), [false; 3]);
    assert_eq!(refused(own, agreed(0, 4, false)), [false; 3]);
    assert_eq!(refused(own, agreed(2, 3, false)), [true, false, false]);
    assert_eq!(refused(own, agreed(3, 3, false)), [true, false, false]);
    assert_eq!(refused(own, agreed(1, 2, false)), [false, true, false]);
    let persons = Terms {
        persons: true,
        ..own
    };
    assert_eq!(refused(persons, agreed(1, 3, false)), [false, false, true]);
    assert_eq!(refused(persons, agreed(1, 3, true)), [false; 3]);
}
