//! A provider's guard and data users of every kind: greedy, many at once, gone in the middle,
//! held to columns. After each of them the ledger says exactly what left.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod cheats;
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod other_engine;
mod penalties;
#[path = "../common/steps.rs"]
mod steps;

use common::*;
use heda_blocks::channel::{Channel, ChannelError};
use heda_blocks::stop::StopCode;
use heda_crypto::random::Randomness;
use heda_job::description::{Protected, Ranking, RawJob, Training};
use heda_job::error::JobError;
use heda_job::job::{self, Checkpoint, JobSpec, Link, NotKept, Observer, Outcome, Quiet};
use heda_job::local::fresh_job_id;
use heda_job::proposal::{PROTOCOL_VERSION, Parties, Proposal, Spending};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::optimise::{Method, PenaltyPath, Settings};
use heda_learn::resident::Resolution;
use heda_node::config::ProviderConfig;
use heda_node::guard::ledger::{BudgetReport, JobReport, Ledger};
use heda_node::identity::Identity;
use heda_node::system::clock::ManualClock;
use other_engine::other;
use std::sync::Arc;
use std::time::Duration;

const DATA_SET: &str = "biopsies";

/// One provider with a ledger, and the data users that it allows.
struct Guard {
    folder: tempfile::TempDir,
    identity: Identity,
    users: [Identity; 2],
    clock: Arc<ManualClock>,
    limits: String,
    columns: &'static str,
}

impl Guard {
    fn new(limits: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = Vec::new();
        std::io::Read::read_to_end(&mut Bundle::Bcwd.csv(), &mut rows).unwrap();
        std::fs::write(folder.path().join("rows.csv"), rows).unwrap();
        let schema = Bundle::Bcwd.schema_text(Coding::Natural);
        std::fs::write(folder.path().join("schema.toml"), schema).unwrap();
        Self {
            folder,
            identity: identity("provider"),
            users: ["one", "two"].map(identity),
            clock: Arc::new(ManualClock::at(now())),
            limits: limits.to_owned(),
            columns: "",
        }
    }

    fn config(&self) -> ProviderConfig {
        let [one, two] = self.users.each_ref().map(Identity::fingerprint);
        let text = format!(
            "identity = \"identity\"\ndata_set = \"{DATA_SET}\"\ndata = \"rows.csv\"\n\
             schema = \"schema.toml\"\nlisten = \"127.0.0.1:0\"\nstore = \".\"\n\
             [[allow]]\nname = \"one\"\nfingerprint = \"{one}\"\n{}\n\
             [[allow]]\nname = \"two\"\nfingerprint = \"{two}\"\n\
             [limits]\nrows_per_batch_min = 50\niterations_per_job = 30\n\
             known_co_providers_min = 0\nrevealed_per_unknown_max = 0.5\n{}\n",
            self.columns, self.limits
        );
        let path = self.folder.path().join("provider.toml");
        std::fs::write(&path, text).unwrap();
        ProviderConfig::load(&path).unwrap()
    }

    fn ledger(&self) -> Ledger {
        let clock = Arc::clone(&self.clock);
        Ledger::open(&self.config().ledger_place(), clock).unwrap()
    }

    fn serve(&self) -> Running {
        let config = self.config();
        let guard = guard(
            &config,
            &self.identity,
            self.ledger(),
            Randomness::from_os(),
        );
        let peers = ["one", "two"].iter().zip(&self.users);
        let peers = peers.map(|(name, user)| pinned(name, user)).collect();
        let mut setup = Setup::for_peers(peers);
        setup.identity = self.identity.clone();
        setup.sessions.sessions = 64;
        setup.sessions.sessions_per_peer = 64;
        setup.start(Arc::new(guard))
    }

    fn budget(&self) -> BudgetReport {
        let total = self.config().limits.epsilon_total.unwrap();
        self.ledger().budget(DATA_SET, Some(total)).unwrap()
    }

    fn jobs(&self) -> Vec<JobReport> {
        self.ledger().status(DATA_SET).unwrap().jobs
    }

    /// Numbers that data users have learned in all.
    fn learned(&self) -> u64 {
        let users = self.ledger().status(DATA_SET).unwrap().disclosed;
        users.iter().map(|user| user.numbers).sum()
    }

    /// A proposal that this guard accepts: nothing is scored.
    fn proposal(&self, job: u64, epsilon: &str) -> Proposal {
        let key = self.identity.signing_key().verifying_key();
        let hex = key.as_bytes().iter().map(|byte| format!("{byte:02x}"));
        let raw = RawJob {
            training: Training {
                settings: Settings {
                    method: Method::Nesterov {
                        rate: 1.0,
                        batches: 1,
                    },
                    max_iterations: 6,
                    ..Settings::lbfgs()
                },
                resolution: Resolution::default(),
                ..Training::usual(&schema())
            },
            ranking: Some(Ranking::Schema),
            spending: Some(Spending::Total(epsilon.parse().unwrap())),
            ..RawJob::new(DATA_SET, &schema())
        };
        Proposal {
            version: PROTOCOL_VERSION,
            id: fresh_job_id(&Randomness::seeded(job)).unwrap(),
            job: raw.try_into().unwrap(),
            parties: Parties {
                identities: vec![hex.collect()],
                chooser: None,
            },
            order: None,
            seeded: false,
        }
    }
}

fn schema() -> heda_learn::schema::Schema {
    Bundle::Bcwd.schema(Coding::Natural)
}

/// The same proposal with something about the job changed.
fn change_job(proposal: &mut Proposal, change: impl FnOnce(&mut RawJob)) {
    proposal.job = proposal.job.with(change).unwrap();
}

fn settled(daemon: &Running) {
    while daemon.metrics.running() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What is wrong with a proposal.
type Change = fn(&mut Proposal);

/// How far a data user goes.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    /// It leaves when the release is on its way.
    Split,
    /// It takes the release.
    Release,
}

fn session(
    user: &User,
    daemon: &Running,
    proposal: &Proposal,
    until: Until,
) -> Result<Option<String>, ChannelError> {
    let mut channel = user.open(&daemon.remote()).unwrap();
    steps::agree(&mut channel, proposal)?;
    steps::split(&mut channel)?;
    match until {
        Until::Split => Ok(None),
        Until::Release => steps::release(&mut channel).map(Some),
    }
}

#[test]
fn many_jobs_at_once_some_of_them_interrupted_cannot_exceed_the_budget() {
    // Six releases of 0.25 fit into 1.6, whoever comes first and whoever leaves in between.
    let guard = Guard::new("epsilon_total = 1.6\niterations_per_day = 1000");
    let daemon = guard.serve();
    let users = guard.users.clone().map(User::new);
    let proposals: Vec<Proposal> = (0..24).map(|job| guard.proposal(job, "0.25")).collect();
    let visits = |until: fn(usize) -> Until| -> Vec<Result<Option<String>, ChannelError>> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = proposals
                .iter()
                .enumerate()
                .map(|(place, proposal)| {
                    let (user, daemon) = (&users[place % 2], &daemon);
                    scope.spawn(move || session(user, daemon, proposal, until(place)))
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    };
    let first = visits(|place| match place % 3 {
        0 => Until::Split,
        _ => Until::Release,
    });
    settled(&daemon);
    let paid = guard.budget();
    assert_eq!(
        (paid.epsilon_spent.as_str(), paid.releases.len()),
        ("1.5", 6)
    );
    assert!(paid.releases.iter().all(|release| release.sha256.is_some()));
    let of_job = |place: usize| {
        let job = proposals[place].id.to_string();
        let found = paid.releases.iter().find(|release| release.job == job);
        found.map(|release| release.sha256.clone().unwrap())
    };
    for (place, outcome) in first.into_iter().enumerate() {
        match outcome {
            Ok(Some(hash)) => assert_eq!(Some(hash), of_job(place)),
            Ok(None) => {}
            Err(ChannelError::PeerStopped(stop)) => {
                assert_eq!(stop.code, StopCode::Refused);
                assert!(stop.words.contains("1.5 of 1.6 are spent"), "{stop}");
                assert_eq!(of_job(place), None);
            }
            Err(other) => panic!("{other}"),
        }
    }
    // Everyone comes back: what was paid for comes again as it was, the others get nothing.
    for (place, outcome) in visits(|_| Until::Release).into_iter().enumerate() {
        assert_eq!(outcome.ok().flatten(), of_job(place), "{place}");
    }
    settled(&daemon);
    assert_eq!(guard.budget(), paid);
}

#[test]
fn a_job_belongs_to_the_data_user_that_began_it() {
    let guard = Guard::new("epsilon_total = 1\niterations_per_day = 1000");
    let daemon = guard.serve();
    let users = guard.users.clone().map(User::new);
    let proposal = guard.proposal(1, "0.25");
    let claims = std::thread::scope(|scope| {
        let (daemon, proposal) = (&daemon, &proposal);
        let claim = |user| scope.spawn(move || session(user, daemon, proposal, Until::Release));
        let threads = users.each_ref().map(claim);
        threads.map(|thread| thread.join().unwrap())
    });
    let refusals: Vec<_> = claims.into_iter().filter_map(Result::err).collect();
    let [refusal] = refusals.as_slice() else {
        panic!("one of both is refused, not {}", refusals.len());
    };
    assert!(
        refusal.to_string().contains("belongs to another data user"),
        "{refusal}"
    );
    settled(&daemon);
    assert_eq!(guard.jobs().len(), 1);
    assert_eq!(guard.budget().epsilon_spent, "0.25");
}

#[test]
fn proposals_and_splits_that_break_the_rules_leave_no_trace_but_their_refusal() {
    let guard = Guard::new("epsilon_total = 1\niterations_per_day = 1000");
    let daemon = guard.serve();
    let user = User::new(guard.users[0].clone());
    let cases: [(Change, &str); 8] = [
        (
            |p| p.version += 1,
            "speaks protocol version 4, this provider 3",
        ),
        (
            |p| change_job(p, |raw| raw.schema = "0".repeat(64)),
            "the schemas differ",
        ),
        (
            |p| change_job(p, |raw| raw.data_set = "salaries".into()),
            "this provider has biopsies",
        ),
        (
            |p| change_job(p, |raw| raw.engine = other()),
            "engine other is not allowed",
        ),
        (
            |p| change_job(p, |raw| raw.training.settings.max_iterations = 31),
            "31 iterations, a job may have 30",
        ),
        (
            |p| {
                change_job(p, |raw| {
                    raw.training.settings.method = Method::Nesterov {
                        rate: 1.0,
                        batches: 20,
                    };
                });
            },
            "rows in a batch",
        ),
        (|p| p.parties.identities = vec!["1".repeat(64)], "key"),
        (
            |p| change_job(p, |raw| raw.spending = Some(Spending::Automatic)),
            "name an epsilon",
        ),
    ];
    for (change, words) in cases {
        let mut proposal = guard.proposal(1, "0.25");
        change(&mut proposal);
        let refused = session(&user, &daemon, &proposal, Until::Release).unwrap_err();
        assert!(refused.to_string().contains(words), "{words}: {refused}");
    }
    let broken: [&[u8]; 4] = [
        b"\x00\xff garbage",
        b"{}",
        br#"{"encrypted":[0,0],"published":[1],"dropped":[]}"#,
        br#"{"encrypted":[99],"published":[],"dropped":[]}"#,
    ];
    for split in broken {
        let mut channel = user.open(&daemon.remote()).unwrap();
        steps::agree(&mut channel, &guard.proposal(2, "0.25")).unwrap();
        channel.send(steps::SPLIT, split).unwrap();
        let refused = steps::release(&mut channel).unwrap_err();
        assert!(refused.to_string().contains("\"split\""), "{refused}");
    }
    settled(&daemon);
    let budget = guard.budget();
    assert_eq!(
        (budget.epsilon_spent.as_str(), budget.releases.len()),
        ("0", 0)
    );
    let jobs = guard.jobs();
    assert_eq!(jobs.len(), 1, "only the one whose proposal was accepted");
    assert_eq!((jobs[0].iterations, jobs[0].evaluations), (0, 0));
}

/// A job that encrypts these features and leaves out the others.
fn spec(job: u64, encrypt: &[&str]) -> JobSpec {
    let schema = Arc::new(schema());
    let raw = RawJob {
        training: Training {
            settings: Settings {
                tolerance: 0.0,
                max_iterations: 4,
                ..Settings::lbfgs()
            },
            resolution: Resolution::default(),
            ..Training::usual(&schema)
        },
        ranking: Some(Ranking::Schema),
        protected: Protected::Named(encrypt.iter().map(ToString::to_string).collect()),
        ..RawJob::new(DATA_SET, &schema)
    };
    let id = fresh_job_id(&Randomness::seeded(job)).unwrap();
    JobSpec::new(id, raw.try_into().unwrap(), schema)
}

fn train(
    user: &User,
    daemon: &Running,
    spec: &JobSpec,
    observer: &mut dyn Observer,
    resume: Option<Checkpoint>,
) -> Result<Outcome, JobError> {
    let session = user.runtime.block_on(user.connector.open(&daemon.remote()));
    let session = session.unwrap();
    let link = Link {
        name: "provider".into(),
        identity: session.identity,
        channel: Channel::new(Box::new(session.wire)),
    };
    let outcome = job::run(spec, vec![link], &Randomness::from_os(), observer, resume);
    settled(daemon);
    outcome
}

/// Keeps the last checkpoint, and stops the job after some iterations.
struct Keeping {
    stop_after: u32,
    kept: Option<Checkpoint>,
}

impl Observer for Keeping {
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        self.kept = Some(checkpoint.clone());
        Ok(checkpoint.iteration < self.stop_after)
    }
}

#[test]
fn a_data_user_is_held_to_its_columns_and_to_nothing_else() {
    let mut guard = Guard::new("iterations_per_day = 1000");
    guard.columns = "columns = [\"clump_thickness\", \"bare_nuclei\", \"mitoses\"]";
    let daemon = guard.serve();
    let users = guard.users.clone().map(User::new);
    let allowed = ["clump_thickness", "bare_nuclei"];
    let trained = train(&users[0], &daemon, &spec(1, &allowed), &mut Quiet, None).unwrap();
    assert_eq!(trained.split.encrypted.len(), 2);
    let more = ["clump_thickness", "bland_chromatin", "normal_nucleoli"];
    let refused = train(&users[0], &daemon, &spec(2, &more), &mut Quiet, None).unwrap_err();
    let words = "one may not use the columns bland_chromatin, normal_nucleoli";
    assert!(refused.to_string().contains(words), "{refused}");
    let ranked = spec(3, &allowed).with(|raw| {
        let method = heda_learn::score::ScoringMethod::KruskalWallis;
        raw.ranking = Some(Ranking::Agreed { method });
    });
    let ranked = ranked.unwrap();
    let refused = train(&users[0], &daemon, &ranked, &mut Quiet, None).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("a ranking scores every column"),
        "{refused}"
    );
    train(&users[1], &daemon, &spec(4, &more), &mut Quiet, None).unwrap();
    let reasons = guard.ledger().status(DATA_SET).unwrap().refusals;
    assert_eq!(reasons.len(), 2);
    assert!(reasons.iter().all(|refusal| refusal.label == "one"));
}

#[test]
fn what_the_job_itself_refuses_costs_nothing_and_is_noted_as_well() {
    let engines =
        "engines = [\"resident\", \"other\"]\nepsilon_total = 1\niterations_per_day = 100";
    let other = other();
    let guard = Guard::new(engines);
    let daemon = guard.serve();
    let user = User::new(guard.users[0].clone());
    let mut proposal = guard.proposal(1, "0.25");
    change_job(&mut proposal, |raw| raw.engine = other);
    let refused = session(&user, &daemon, &proposal, Until::Release).unwrap_err();
    assert!(
        refused.to_string().contains("use engine resident"),
        "{refused}"
    );
    settled(&daemon);
    assert_eq!(guard.budget().epsilon_spent, "0");
    let reasons = guard.ledger().status(DATA_SET).unwrap().refusals;
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].reason.contains("use engine resident"));
}

#[test]
fn what_left_is_counted_before_and_after_an_interruption() {
    let guard = Guard::new("iterations_per_day = 1000\nevaluations_per_model = 2");
    let daemon = guard.serve();
    let user = User::new(guard.users[0].clone());
    let spec = spec(1, &["clump_thickness", "bare_nuclei"]);
    let (stop_after, kept) = (2, None);
    let mut keeping = Keeping { stop_after, kept };
    let stopped = train(&user, &daemon, &spec, &mut keeping, None).unwrap_err();
    assert!(matches!(stopped, JobError::Interrupted), "{stopped}");
    let job = || guard.jobs().swap_remove(0);
    let counts = || (job().iterations, job().evaluations, job().state);
    assert_eq!(counts(), (2, 0, "open".into()));
    // Three sums of each of two columns, two gradients of three numbers.
    assert_eq!((job().rankings, guard.learned()), (1, 6 + 2 * 3));
    keeping.stop_after = u32::MAX;
    let resume = keeping.kept.clone();
    train(&user, &daemon, &spec, &mut keeping, resume).unwrap();
    assert_eq!(counts(), (4, 1, "finished".into()));
    assert_eq!(job().rankings, 1);
    // A data user that lost its result may have it evaluated again, but not for ever; and a
    // finished job is not trained again.
    let kept = keeping.kept.clone();
    train(&user, &daemon, &spec, &mut keeping, kept.clone()).unwrap();
    assert_eq!(counts(), (4, 1, "finished".into()));
    let last = kept.map(|kept| Checkpoint {
        histograms: Vec::new(),
        ..kept
    });
    train(&user, &daemon, &spec, &mut keeping, last.clone()).unwrap();
    let refused = train(&user, &daemon, &spec, &mut keeping, last).unwrap_err();
    assert!(
        refused.to_string().contains("had 2 evaluations"),
        "{refused}"
    );
    let refused = train(&user, &daemon, &spec, &mut Quiet, None).unwrap_err();
    assert!(refused.to_string().contains("is not open"), "{refused}");
    assert_eq!(counts(), (4, 2, "finished".into()));
}
