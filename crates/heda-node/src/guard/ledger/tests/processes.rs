//! Several threads and processes on one ledger, and one that is killed.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CHILD_LEDGER: &str = "HEDA_TEST_CHILD_LEDGER";
const CHILD_TEST: &str = concat!(module_path!(), "::child_process_that_buys");

/// The test by the name that the test program knows it by: without the crate.
fn child_test() -> &'static str {
    let (_, name) = CHILD_TEST.split_once("::").unwrap();
    name
}

/// Asks again while others hold the ledger: on a busy machine they may for longer than it waits.
fn patiently<T>(ask: impl Fn() -> Result<T, LedgerError>) -> Result<T, LedgerError> {
    for _ in 0..20 {
        match ask() {
            Err(LedgerError::Locked) => {}
            done => return done,
        }
    }
    Err(LedgerError::Locked)
}

#[test]
fn many_threads_with_their_own_connections_cannot_overspend() {
    let bench = Bench::new();
    bench.ledger();
    let won: usize = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|thread| {
                let bench = &bench;
                scope.spawn(move || {
                    let ledger = patiently(|| bench.open()).unwrap();
                    let attempt = |i: usize| {
                        let key = key(&format!("{thread}-{i}"));
                        patiently(|| ledger.open_job(&key, &terms("same"))).unwrap();
                        let buy = || ledger.buy(&key, "ward", charge("0.1", 1), epsilon("1.05"));
                        match patiently(buy) {
                            Err(LedgerError::Locked) => panic!("the ledger stays locked"),
                            bought => bought.is_ok(),
                        }
                    };
                    (0..6).filter(|i| attempt(*i)).count()
                })
            })
            .collect();
        tries.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(won, 10);
    assert_eq!(spent(&bench.ledger()), 1_000_000_000);
}

/// Chain and tables are compared as of one moment, whatever is written meanwhile.
#[test]
fn a_ledger_is_found_whole_while_others_write() {
    let bench = Bench::new();
    let writer = bench.with_job("a");
    let written = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let limits = (u64::MAX, u64::MAX);
                count_one(&writer, Counted::Iteration, &key("a"), limits).unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        let reports = (0..50).map(|_| {
            bench.open()?;
            LedgerReader::open(&bench.place())?.status("ward", START)
        });
        let reports: Result<Vec<_>, LedgerError> = reports.collect();
        done.store(true, Ordering::Relaxed);
        for report in reports.unwrap() {
            assert_eq!(report.iterations_today, report.jobs[0].iterations);
        }
    });
    assert!(written.into_inner() > 10, "nothing was written meanwhile");
}

/// Who comes while the first entry is there and the anchor is not yet must not call it lost.
#[test]
fn many_may_begin_a_ledger_at_once() {
    for round in 0..10 {
        let bench = Bench::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let bench = &bench;
                scope.spawn(move || {
                    let ledger = patiently(|| bench.open()).unwrap();
                    let key = key(&format!("{thread}"));
                    patiently(|| ledger.open_job(&key, &terms("same"))).unwrap();
                });
            }
        });
        let report = bench.ledger().status("ward").unwrap();
        assert_eq!(report.jobs.len(), 4, "round {round}");
    }
}

/// The other half of the test below; does nothing unless that one starts it.
#[test]
fn child_process_that_buys() {
    let Ok(path) = std::env::var(CHILD_LEDGER) else {
        return;
    };
    let open = || {
        let clock = Arc::new(ManualClock::at(START));
        Ledger::open(&place(Path::new(&path)), clock as _)
    };
    let ledger = patiently(open).unwrap();
    let won = (0..10).filter(|i| {
        let key = key(&format!("{}-{i}", std::process::id()));
        patiently(|| ledger.open_job(&key, &terms("same"))).unwrap();
        let buy = || ledger.buy(&key, "ward", charge("0.1", 1), epsilon("1.55"));
        match patiently(buy) {
            Err(LedgerError::Locked) => panic!("the ledger stays locked"),
            bought => bought.is_ok(),
        }
    });
    println!("won {}", won.count());
}

#[test]
fn many_processes_cannot_overspend() {
    let bench = Bench::new();
    let children: Vec<_> = (0..4)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", child_test(), "--nocapture"])
                .env(CHILD_LEDGER, bench.path())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut won = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.split("won ").nth(1));
        won += line.unwrap().trim().parse::<u32>().unwrap();
    }
    assert_eq!(won, 15);
    assert_eq!(spent(&bench.ledger()), 1_500_000_000);
}

#[test]
fn a_process_killed_in_the_middle_leaves_whole_entries() {
    let bench = Bench::new();
    bench.ledger();
    for round in 0..3 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", child_test()])
            .env(CHILD_LEDGER, bench.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + 20 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = bench.ledger();
        let report = ledger.budget("ward", Some(epsilon("1.55"))).unwrap();
        let sum: u64 = report
            .releases
            .iter()
            .map(|r| r.charge.total().billionths())
            .sum();
        assert_eq!(sum, spent(&ledger));
        assert!(sum <= 1_550_000_000);
    }
}
