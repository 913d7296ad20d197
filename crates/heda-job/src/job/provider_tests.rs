//! A provider's side of a job: what it asks its guard, in which order, and what it refuses to a data user.

use super::{Provider, Quiet, Served, ToldCharge};
use crate::agreement::tests::{Case, announced, exact, identity, private, proposal_of, serve};
use crate::engine::testing::{FEATURES, SEED, spec, with};
use crate::guard::{Admission, AgreedPlan, Charged, Guard, Refusal, Step};
use crate::local::{self, LocalProvider, LocalRun};
use crate::message::{Agreement, Announcements, Message};
use crate::moments::Scale;
use crate::proposal::{JobId, Privacy, Proposal, Split};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_dp::account::{Charge, Receipt};
use heda_learn::loss::LossKind;
use heda_learn::resident::Resolution;
use heda_learn::scaling::Centre;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a guard was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    Split,
    Reserved(AgreedPlan),
    Begun(Step),
    Recorded(Step),
    Cheated,
    Charged,
}

/// A guard that writes down what it is asked.
struct Watched {
    guard: Box<dyn Guard>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Watched {
    fn note(&self, asked: Asked) {
        self.asked.lock().unwrap().push(asked);
    }
}

impl Guard for Watched {
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal> {
        self.guard.admit(proposal)
    }

    fn agree_split(&self, job: JobId, split: &Split) -> Result<(), Refusal> {
        self.note(Asked::Split);
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
        self.note(Asked::Reserved(plan));
        self.guard.reserve(job, plan)
    }

    fn begin(&self, job: JobId, step: &Step) -> Result<(), Refusal> {
        self.note(Asked::Begun(*step));
        self.guard.begin(job, step)
    }

    fn record(&self, job: JobId, step: &Step, plan: Option<AgreedPlan>) -> Result<(), Refusal> {
        self.note(Asked::Recorded(*step));
        self.guard.record(job, step, plan)
    }

    fn end_cheating(&self, job: JobId) -> Result<(), Refusal> {
        self.note(Asked::Cheated);
        self.guard.end_cheating(job)
    }

    fn charged(&self, job: JobId) -> Result<Charged, Refusal> {
        self.note(Asked::Charged);
        self.guard.charged(job)
    }
}

/// Runs a whole job, and what the first provider's guard was asked.
fn watched(case: &Case) -> (LocalRun, Vec<Asked>) {
    let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let guards = case.guards().into_iter().enumerate();
    let providers = guards.map(|(place, LocalProvider { name, guard })| LocalProvider {
        name,
        guard: match place {
            0 => Box::new(Watched {
                guard,
                asked: Arc::clone(&asked),
            }),
            _ => guard,
        },
    });
    let providers: Vec<LocalProvider> = providers.collect();
    let randomness = Randomness::seeded(SEED);
    let run = local::run(&case.spec, &providers, &randomness, &mut Quiet, None, false).unwrap();
    let asked = asked.lock().unwrap().clone();
    (run, asked)
}

fn kind(step: &Step) -> &'static str {
    match step {
        Step::Scores => "scores",
        Step::Sums { .. } => "sums",
        Step::Moments { .. } => "moments",
        Step::Gradient { .. } => "gradient",
        Step::Evaluation { .. } => "evaluation",
    }
}

/// The answers of a job: each is begun before it is recorded, and recorded before the next is begun.
fn answers(asked: &[Asked]) -> Vec<Step> {
    let steps: Vec<&Asked> = asked
        .iter()
        .filter(|asked| matches!(asked, Asked::Begun(_) | Asked::Recorded(_)))
        .collect();
    let pairs = steps.chunks(2).map(|pair| match pair {
        [Asked::Begun(begun), Asked::Recorded(recorded)] => {
            assert_eq!(begun, recorded);
            *begun
        }
        other => panic!("{other:?}"),
    });
    pairs.collect()
}

#[test]
fn every_answer_of_an_exact_job_is_begun_and_then_recorded() {
    let case = exact();
    let (run, asked) = watched(&case);
    let answers = answers(&asked);
    let kinds: Vec<&str> = answers.iter().map(kind).collect();
    let expected = ["scores", "sums", "gradient", "gradient", "evaluation"];
    assert_eq!(kinds, expected);
    let numbers: Vec<u32> = answers.iter().filter_map(Step::number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert!(answers.iter().all(|step| step.cost().is_none()));
    // Nothing of the split is sent before the guard has agreed to it, and nothing is charged.
    let split = asked.iter().position(|asked| *asked == Asked::Split);
    let sums = asked
        .iter()
        .position(|asked| matches!(asked, Asked::Begun(Step::Sums { .. })));
    assert!(split.unwrap() < sums.unwrap());
    assert!(!asked.contains(&Asked::Charged) && !asked.contains(&Asked::Cheated));
    for (report, provider) in run.reports.iter().zip(&run.outcome.providers) {
        let (iterations, rows) = (2, provider.rows);
        assert_eq!(report.served, Served { iterations, rows });
        assert_eq!(provider.charged, None);
    }
    assert_eq!(run.outcome.reach, None);
}

#[test]
fn a_private_job_is_set_aside_as_a_whole_and_every_answer_is_begun_and_then_recorded() {
    let case = private();
    let width = case.parts[0].width();
    // A number of rows for which the bias, a column like the others, makes the plan cost something else.
    let of = |rows: u64| Privacy {
        rows,
        ..case.spec.job.privacy().unwrap()
    };
    let cost = |rows: u64, width: usize| of(rows).plan(width).unwrap().cost();
    let rows = (40..2000).find(|&rows| cost(rows, width) != cost(rows, width + 1));
    let privacy = of(rows.unwrap());
    let case = Case {
        spec: with(&case.spec, |raw| raw.privacy = Some(privacy)),
        ..case
    };
    let (run, asked) = watched(&case);
    let plan = privacy.plan(width + 1).unwrap();
    let agreed = AgreedPlan {
        cost: plan.cost(),
        persons: false,
    };
    assert_eq!(asked[0], Asked::Reserved(agreed));
    let answers = answers(&asked);
    let gradients = vec!["gradient"; plan.all_gradients() as usize];
    let evaluations = ["evaluation"; 2];
    let expected = [&["moments"; 2][..], &gradients, &evaluations].concat();
    assert_eq!(answers.iter().map(kind).collect::<Vec<_>>(), expected);
    let numbers: Vec<u32> = answers.iter().filter_map(Step::number).collect();
    assert_eq!(numbers, (0..answers.len() as u32).collect::<Vec<_>>());
    // The provider tells what it charged when everything is answered.
    assert_eq!(asked.last(), Some(&Asked::Charged));
    let told = ToldCharge {
        cost: plan.cost(),
        left: None,
    };
    for (report, provider) in run.reports.iter().zip(&run.outcome.providers) {
        assert_eq!(provider.charged, Some(told));
        assert_eq!(report.served.iterations, plan.all_gradients());
    }
}

#[test]
fn a_proposal_that_contradicts_itself_is_refused_before_anything_is_answered() {
    let case = exact();
    let proposal = proposal_of(&case);
    let mut value: serde_json::Value = serde_json::from_slice(&proposal[1..]).unwrap();
    value["parties"]["chooser"] = 0.into();
    let body = serde_json::to_vec(&value).unwrap();
    let message = [&[Proposal::TAG][..], &body].concat();
    let (acceptance, words) = serve(&case.guards()[0], vec![message]);
    assert!(acceptance.is_none());
    assert!(words.contains("which of its providers ranks"), "{words}");
}

/// Plays a data user to the first provider of a case: what it says after the announcements. Gives why the provider ended;
/// a message that is never due comes last.
fn played(case: &Case, messages: &[(u8, Vec<u8>)]) -> String {
    let proposal = proposal_of(case);
    let keys = case.guards();
    let keys = keys.iter().map(|provider| announced(provider, &proposal));
    let keys: Vec<u8> = keys.flat_map(Option::unwrap).collect();
    let (mut user, mut end) = Channel::pair(Duration::from_secs(10));
    user.send(proposal[0], &proposal[1..]).unwrap();
    user.send(Announcements::TAG, &keys).unwrap();
    for (tag, body) in messages {
        user.send(*tag, body).unwrap();
    }
    user.send(0x7f, &[]).unwrap();
    let provider = &case.guards()[0];
    let identity = identity(&provider.name);
    let party = Provider {
        guard: provider.guard.as_ref(),
        identity: &identity,
        randomness: Randomness::seeded(SEED).party(&provider.name),
    };
    party.serve(&mut end).unwrap_err().to_string()
}

fn message<M: Message>(message: &M) -> (u8, Vec<u8>) {
    (M::TAG, message.encode().unwrap())
}

/// An agreement, and a split by which everything is encrypted.
fn begun() -> Vec<(u8, Vec<u8>)> {
    let agreement = Agreement {
        trusted: 1,
        persons: false,
        first_step: 0,
    };
    let split = Split {
        encrypted: (0..FEATURES).collect(),
        published: Vec::new(),
        dropped: Vec::new(),
    };
    vec![message(&agreement), message(&split)]
}

/// The data user asks its engine before; a provider does not rely on that.
#[test]
fn a_provider_asks_its_engine_whether_it_can_do_the_job() {
    let case = |code_bits| {
        let spec = with(&spec(LossKind::Ridge, FEATURES, 1), |raw| {
            raw.training.resolution = Resolution::new(10, 2, 6, code_bits, 4).unwrap();
        });
        Case::of_classes(spec)
    };
    let refused = |code_bits| played(&case(code_bits), &begun()).contains("derivatives of one bit");
    assert!(refused(1) && !refused(2));
}

/// What a provider says to a data user that asks for these answers and tells these centres.
fn sold(steps: &[u32], centres: &[Centre]) -> String {
    let mut messages = begun();
    messages.extend(steps.iter().map(|&step| message(&Scale::AskNoisy { step })));
    messages.push(message(&Scale::Centres {
        centres: centres.to_vec(),
    }));
    played(&private(), &messages)
}

#[test]
fn each_half_of_the_moments_is_sold_once_and_in_order() {
    let centre = Centre {
        mean: 0.5,
        deviation: 0.25,
    };
    let centres = [centre; 3];
    for (steps, due) in [
        (&[][..], true),
        (&[0], true),
        (&[1], true),
        (&[0, 1], true),
        (&[0, 0], false),
        (&[1, 1], false),
        (&[1, 0], false),
        (&[0, 1, 1], false),
        (&[2], false),
    ] {
        let words = sold(steps, &centres);
        assert_eq!(
            !words.contains("it asks for what is not due"),
            due,
            "{steps:?}: {words}"
        );
    }
}

#[test]
fn centres_by_which_no_row_can_be_written_are_the_data_users_fault() {
    let good = Centre {
        mean: 0.5,
        deviation: 0.25,
    };
    let centre = |mean, deviation| Centre { mean, deviation };
    let unusable = "its message \"scale\" is unusable";
    assert!(!sold(&[0, 1], &[good; 3]).contains(unusable));
    for bad in [
        vec![good, good],
        vec![good; 4],
        vec![good, centre(0.5, 0.0), good],
        vec![good, good, centre(1.5, 0.25)],
        vec![centre(0.5, 2.0), good, good],
    ] {
        let words = sold(&[0, 1], &bad);
        assert!(words.contains(unusable), "{bad:?}: {words}");
    }
}
