//! The ledger against a model: what is spent, what is served again, and what a failure leaves.

mod disclosed;
mod forks;
mod limits;
mod losses;
mod opening;
mod private;
mod processes;
mod record;
mod turns;

use super::*;
use crate::guard::policy::provider_set::ProviderSet;
use crate::system::clock::ManualClock;
use crate::system::files;
use heda_dp::account::{Charge, ColumnCharge, Mechanism};
use heda_dp::epsilon::Epsilon;
use heda_job::guard::Step;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn epsilon(text: &str) -> Epsilon {
    text.parse().unwrap()
}

fn charge(each: &str, columns: usize) -> Charge {
    let column = |i| ColumnCharge {
        name: format!("c{i}"),
        epsilon: epsilon(each),
    };
    Charge::new(Mechanism::Laplace, (0..columns).map(column).collect()).unwrap()
}

fn peer(name: &str) -> PeerFingerprint {
    PeerFingerprint::of_key(&SubjectPublicKeyInfoDer::from(name.as_bytes().to_vec()))
}

fn key(id: &str) -> JobKey {
    key_of("user", id)
}

fn key_of(user: &str, id: &str) -> JobKey {
    JobKey {
        peer: peer(user),
        id: id.into(),
    }
}

fn terms(request: &str) -> JobTerms {
    JobTerms {
        label: "user".into(),
        data_set: "ward".into(),
        engine: "resident".into(),
        request: request.into(),
    }
}

static ALONE: std::sync::LazyLock<ProviderSet> =
    std::sync::LazyLock::new(|| ProviderSet::from([peer("provider")]));

/// Whether a job had all that it may have of something.
fn had_all(found: &Result<u64, LedgerError>, of: Counted) -> bool {
    matches!(found, Err(LedgerError::JobLimit { what, .. }) if *what == of)
}

/// Counts one more of something, within limits in a job and on a day.
fn count_one(
    ledger: &Ledger,
    what: Counted,
    job: &JobKey,
    (per_job, per_day): (u64, u64),
) -> Result<u64, LedgerError> {
    let limits = CountLimits { per_job, per_day };
    count(ledger, what, job, limits, Some(&plenty()))
}

/// One more answer of a kind, under the next number.
fn count(
    ledger: &Ledger,
    what: Counted,
    job: &JobKey,
    limits: CountLimits,
    disclosure: Option<&Disclosure<'_>>,
) -> Result<u64, LedgerError> {
    let (number, cost) = (ledger.next_step(job)?, None);
    let step = match what {
        Counted::Iteration => Step::Gradient { number, cost },
        Counted::Evaluation => Step::Evaluation { number, cost },
        Counted::Ranking => Step::Scores,
    };
    let answer = AnswerRecord {
        step: &step,
        what,
        limits,
        disclosure,
        cap: None,
        plan: None,
    };
    ledger.answer(job, "ward", &answer)
}

/// A gradient of a job without a limit over all jobs.
fn plenty() -> Disclosure<'static> {
    Disclosure {
        kind: DisclosureKind::Training,
        provider_set: &ALONE,
        numbers: 1,
        numbers_most: u64::MAX,
        may_single_out: false,
    }
}

const DAY: u64 = 86_400;
const START: Timestamp = Timestamp(20_000 * DAY);

/// A ledger whose anchor lies beside its folder.
fn place(ledger: &Path) -> LedgerPlace {
    LedgerPlace {
        ledger: ledger.to_owned(),
        anchor: ledger.with_file_name("identity").join("ledger.anchor"),
    }
}

struct Bench {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Bench {
    /// Lets so many seconds pass.
    fn pass(&self, seconds: u64) {
        let now = self.clock.now().0;
        self.clock.set(Timestamp(now + seconds));
    }

    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::at(START)),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    fn place(&self) -> LedgerPlace {
        place(&self.path())
    }

    fn open(&self) -> Result<Ledger, LedgerError> {
        Ledger::open(&self.place(), Arc::clone(&self.clock) as _)
    }

    fn ledger(&self) -> Ledger {
        self.open().unwrap()
    }

    /// A copy, with an anchor of the same age.
    fn copied(&self, copy: &Path) -> LedgerPlace {
        LedgerPlace {
            ledger: copy.to_owned(),
            ..self.place()
        }
    }

    fn with_job(&self, id: &str) -> Ledger {
        let ledger = self.ledger();
        ledger.open_job(&key(id), &terms("same")).unwrap();
        ledger
    }
}

fn spent(ledger: &Ledger) -> u64 {
    ledger.spent_billionths("ward").unwrap()
}

#[test]
fn a_release_is_paid_once_stored_and_served_again() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let buy = |ledger: &Ledger| ledger.buy(&key("a"), "ward", charge("0.1", 3), epsilon("1"));
    assert!(matches!(buy(&ledger), Ok(Purchase::Paid(_))));
    drop(ledger);
    // A crash between payment and release: paid already, so there is a receipt again.
    let ledger = bench.ledger();
    assert!(matches!(buy(&ledger), Ok(Purchase::Paid(_))));
    let hash = ledger.store_release(&key("a"), b"noisy").unwrap();
    let Ok(Purchase::Stored(content)) = buy(&ledger) else {
        panic!("the stored release must be served");
    };
    assert_eq!(content, b"noisy");
    assert_eq!(spent(&ledger), 300_000_000);
    let report = ledger.budget("ward", Some(epsilon("1"))).unwrap();
    assert_eq!(report.epsilon_left, "0.7");
    let [release] = report.releases.as_slice() else {
        panic!("one release");
    };
    let hex: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(release.sha256.as_deref(), Some(hex.as_str()));
    assert_eq!(release.charge, charge("0.1", 3));
}

#[test]
fn what_is_stored_never_changes() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let unpaid = ledger.store_release(&key("a"), b"early");
    assert!(matches!(unpaid, Err(LedgerError::OtherRelease(_))));
    ledger
        .buy(&key("a"), "ward", charge("0.1", 1), epsilon("1"))
        .unwrap();
    ledger.store_release(&key("a"), b"one").unwrap();
    let again = ledger.store_release(&key("a"), b"two");
    assert!(matches!(again, Err(LedgerError::OtherRelease(_))));
    let other = ledger.buy(&key("a"), "ward", charge("0.2", 1), epsilon("1"));
    assert!(matches!(other, Err(LedgerError::OtherRelease(_))));
    assert_eq!(spent(&ledger), 100_000_000);
}

#[test]
fn the_budget_is_exact_to_the_last_billionth() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    for (id, fits) in [("a", true), ("b", true), ("c", true), ("d", false)] {
        ledger.open_job(&key(id), &terms("same")).unwrap();
        let bought = ledger.buy(&key(id), "ward", charge("0.1", 1), epsilon("0.3"));
        assert_eq!(bought.is_ok(), fits, "{id}");
    }
    let refused = ledger.buy(&key("d"), "ward", charge("0.000000001", 1), epsilon("0.3"));
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("0.3 of 0.3 are spent"), "{words}");
    // Another data set has its own budget.
    let other = ledger.buy(&key("d"), "other", charge("0.3", 1), epsilon("0.3"));
    assert!(other.is_ok());
}

#[test]
fn a_job_keeps_its_terms() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    assert_eq!(ledger.open_job(&key("a"), &terms("same")).unwrap(), 0);
    let other = ledger.open_job(&key("a"), &terms("more"));
    assert!(matches!(other, Err(LedgerError::OtherTerms(_))));
    let theirs = JobKey {
        peer: peer("other"),
        id: "a".into(),
    };
    let taken = ledger.open_job(&theirs, &terms("same"));
    assert!(matches!(taken, Err(LedgerError::Taken(_))), "{taken:?}");
    ledger.finish_job(&key("a")).unwrap();
    let bought = ledger.buy(&key("a"), "ward", charge("0.1", 1), epsilon("1"));
    assert!(matches!(bought, Err(LedgerError::NotOpen(_))));
    let unknown = ledger.buy(&key("z"), "ward", charge("0.1", 1), epsilon("1"));
    assert!(matches!(unknown, Err(LedgerError::NotOpen(_))));
}

#[test]
fn a_job_has_begun_when_something_left() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    ledger.try_writing().unwrap();
    assert!(!ledger.has_begun_jobs().unwrap());
    let limits = (3, 5);
    count_one(&ledger, Counted::Iteration, &key("a"), limits).unwrap();
    ledger.finish_job(&key("a")).unwrap();
    assert!(ledger.has_begun_jobs().unwrap());
}

#[test]
fn iterations_are_limited_by_job_and_day() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    ledger.open_job(&key("b"), &terms("same")).unwrap();
    let limits = (3, 5);
    let count = |id| count_one(&ledger, Counted::Iteration, &key(id), limits);
    for n in 1..=3 {
        assert_eq!(count("a").unwrap(), n);
    }
    assert!(had_all(&count("a"), Counted::Iteration));
    assert!(count("b").is_ok() && count("b").is_ok());
    assert!(matches!(count("b"), Err(LedgerError::DayIterations(5))));
    let status = ledger.status("ward").unwrap();
    assert_eq!(status.iterations_today, 5);
    bench.clock.set(Timestamp(START.0 + DAY));
    assert_eq!(count("b").unwrap(), 3);
}

#[test]
fn evaluations_are_limited_and_may_be_repeated_after_the_end() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let count = |id, per_job, per_day| {
        let limits = (per_job, per_day);
        count_one(&ledger, Counted::Evaluation, &key(id), limits)
    };
    count("a", 2, 9).unwrap();
    ledger.finish_job(&key("a")).unwrap();
    count("a", 2, 9).unwrap();
    let third = count("a", 2, 9);
    assert!(had_all(&third, Counted::Evaluation));
    let another_day = count("a", 3, 2);
    assert!(matches!(another_day, Err(LedgerError::DayIterations(2))));
    let unknown = count("z", 2, 9);
    assert!(matches!(unknown, Err(LedgerError::NotOpen(_))));
    assert_eq!(ledger.status("ward").unwrap().iterations_today, 2);
    assert_eq!(ledger.status("ward").unwrap().jobs[0].evaluations, 2);
}

#[test]
fn many_data_users_cannot_claim_one_job() {
    let bench = Bench::new();
    bench.ledger();
    let claimed: usize = std::thread::scope(|scope| {
        let claim = |user: usize| {
            let bench = &bench;
            scope.spawn(move || {
                let job = JobKey {
                    peer: peer(&user.to_string()),
                    id: "a".into(),
                };
                bench.ledger().open_job(&job, &terms("same")).is_ok()
            })
        };
        let threads: Vec<_> = (0..8).map(claim).collect();
        let claims = threads.into_iter().map(|thread| thread.join().unwrap());
        claims.filter(|claimed| *claimed).count()
    });
    assert_eq!(claimed, 1);
    assert_eq!(bench.ledger().status("ward").unwrap().jobs.len(), 1);
}

#[test]
fn a_full_disk_spends_nothing_and_releases_nothing() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    ledger
        .buy(&key("a"), "ward", charge("0.1", 1), epsilon("1"))
        .unwrap();
    // As many pages as there are: the next one that is needed does not fit.
    let pages: u32 = {
        let connection = &ledger.opened().unwrap().connection;
        let count = connection
            .pragma_query_value(None, "page_count", |r| r.get(0))
            .unwrap();
        connection
            .pragma_update_and_check(None, "max_page_count", count, |_| Ok(()))
            .unwrap();
        count
    };
    assert!(pages > 0);
    let content = vec![1; 1 << 20];
    let stored = ledger.store_release(&key("a"), &content);
    assert!(matches!(stored, Err(LedgerError::DiskFull)), "{stored:?}");
    drop(ledger);
    let ledger = bench.ledger();
    let report = ledger.budget("ward", Some(epsilon("1"))).unwrap();
    assert_eq!(report.releases[0].sha256, None);
    ledger.store_release(&key("a"), &content).unwrap();
}

#[test]
fn refusals_are_listed_newest_first() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    for reason in ["first", "second\n\u{1b}[2Kline"] {
        ledger.refuse(&key("a"), "user", reason).unwrap();
    }
    let reader = LedgerReader::open(&bench.place()).unwrap();
    let refusals = reader.status("ward", START).unwrap().refusals;
    let reasons: Vec<_> = refusals.iter().map(|r| r.reason.as_str()).collect();
    // What a data user wrote stays on its line.
    assert_eq!(reasons, ["second  [2Kline", "first"]);
}

#[test]
fn the_file_is_private_durable_and_of_a_known_version() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let pragma = |name: &str| -> String {
        let connection = &ledger.opened().unwrap().connection;
        let value = connection.pragma_query_value(None, name, |row| {
            row.get::<_, String>(0)
                .or_else(|_| row.get::<_, i64>(0).map(|n| n.to_string()))
        });
        value.unwrap()
    };
    assert_eq!(
        (pragma("journal_mode"), pragma("synchronous")),
        ("wal".into(), "2".into())
    );
    for suffix in ["", "-wal", "-shm"] {
        let path = bench.folder.path().join(format!("ledger.sqlite{suffix}"));
        assert!(files::is_private(&path).unwrap(), "{suffix}");
    }
    drop(ledger);
    let connection = Connection::open(bench.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let opened = bench.open();
    assert!(matches!(
        opened,
        Err(LedgerError::FromTheFuture { found: 99, .. })
    ));
    assert!(LedgerReader::open(&bench.place()).is_err());
}

#[test]
fn an_empty_file_is_brought_to_the_current_version() {
    let bench = Bench::new();
    std::fs::write(bench.path(), b"").unwrap();
    bench.with_job("a");
    let connection = Connection::open(bench.path()).unwrap();
    assert_eq!(schema::version(&connection).unwrap(), LEDGER_VERSION);
}

#[test]
fn a_ledger_of_the_first_version_keeps_what_it_knows() {
    let bench = Bench::new();
    let connection = Connection::open(bench.path()).unwrap();
    connection.execute_batch(schema::MIGRATIONS[0]).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let user = peer("user").to_string();
    let charge = serde_json::to_string(&charge("0.1", 2)).unwrap();
    connection
        .execute(
            "INSERT INTO jobs VALUES (?1, 'a', 'user', 'ward', 'resident', 'same', 7, NULL, 'open', 3)",
            [&user],
        )
        .unwrap();
    connection
        .execute(
            "INSERT INTO releases VALUES (?1, 'a', 'ward', ?2, 200000000, 7, NULL, NULL)",
            [&user, &charge],
        )
        .unwrap();
    drop(connection);
    let reader = LedgerReader::open(&bench.place());
    assert!(matches!(
        reader,
        Err(LedgerError::FromThePast { found: 1, .. })
    ));
    let ledger = bench.ledger();
    assert_eq!(ledger.open_job(&key("a"), &terms("same")).unwrap(), 3);
    assert_eq!(spent(&ledger), 200_000_000);
    let job = &ledger.status("ward").unwrap().jobs[0];
    assert_eq!((job.iterations, job.evaluations), (3, 0));
    LedgerReader::open(&bench.place()).unwrap();
}

#[test]
fn a_copy_is_whole_private_and_does_not_replace_anything() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    ledger
        .buy(&key("a"), "ward", charge("0.1", 3), epsilon("1"))
        .unwrap();
    ledger.store_release(&key("a"), b"noisy").unwrap();
    let copy = bench.folder.path().join("copy.sqlite");
    let reader = LedgerReader::open(&bench.place()).unwrap();
    reader.copy_to(&copy).unwrap();
    assert!(files::is_private(&copy).unwrap());
    assert!(reader.copy_to(&copy).is_err());
    let copied = LedgerReader::open(&bench.copied(&copy)).unwrap();
    let total = epsilon("1");
    assert_eq!(
        copied.budget("ward", Some(total)).unwrap(),
        reader.budget("ward", Some(total)).unwrap()
    );
}

#[test]
fn something_else_is_not_taken_for_a_ledger() {
    let bench = Bench::new();
    std::fs::write(bench.path(), vec![b'x'; 5000]).unwrap();
    let opened = bench.open();
    assert!(
        matches!(opened, Err(LedgerError::Lost(LedgerLoss::Damaged(_)))),
        "{opened:?}"
    );
    assert_eq!(std::fs::read(bench.path()).unwrap(), vec![b'x'; 5000]);
}

#[test]
fn decimals_are_those_that_people_write() {
    for (billionths, text) in [
        (0, "0"),
        (1, "0.000000001"),
        (300_000_000, "0.3"),
        (10_000_000_000, "10"),
    ] {
        assert_eq!(decimal(billionths), text);
    }
}
