//! Many private jobs at once: as many models as fit the budget, whoever hears of them in which order.

use crate::common::*;
use crate::hospitals::*;
use crate::promise::*;
use heda_job::job::Progress;
use heda_job::proposal::Privacy;
use heda_node::client::training::{NetworkJob, NetworkJobError};
use heda_node::guard::ledger::{LedgerPlace, LedgerReader};
use heda_node::identity::Identity;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A job waits for the end of others; a busy machine takes its time.
const LONG: Duration = Duration::from_secs(300);

/// Whether what the data user says is held back.
#[derive(Default)]
struct Held(Mutex<bool>, Condvar);

impl Held {
    fn set(&self, held: bool) {
        *self.0.lock().unwrap() = held;
        self.1.notify_all();
    }

    fn wait(&self) {
        let held = self.0.lock().unwrap();
        drop(self.1.wait_while(held, |held| *held).unwrap());
    }
}

/// A line that carries; what goes to its target can be held back.
fn held_line(target: SocketAddr) -> (SocketAddr, Arc<Held>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let held: Arc<Held> = Arc::default();
    let kept = Arc::clone(&held);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(target) else {
                continue;
            };
            let (client2, server2) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let held = Arc::clone(&kept);
            std::thread::spawn(move || copy(client, server, || held.wait()));
            std::thread::spawn(move || copy(server2, client2, || {}));
        }
    });
    (address, held)
}

fn copy(mut from: TcpStream, mut to: TcpStream, before: impl Fn()) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n) = from.read(&mut buffer)
        && n > 0
    {
        before();
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// In which order each of three providers hears of so many jobs: no two of them alike.
fn orders(jobs: usize, round: usize) -> [Vec<usize>; 3] {
    let turned = |place: usize| (place + round) % jobs;
    let orders = [
        (0..jobs).map(turned).collect::<Vec<_>>(),
        (0..jobs).rev().map(turned).collect(),
        // 7 divides no number of jobs that is tried.
        (0..jobs).map(|place| turned(place * 7 + 1)).collect(),
    ];
    let different: BTreeSet<&Vec<usize>> = orders.iter().collect();
    assert_eq!(different.len(), 3);
    orders
}

/// Lets a provider hear of one job after the other, in this order.
fn tell_in_order(ledger: &LedgerPlace, order: &[usize], lines: &[Arc<Held>], names: &[String]) {
    for &number in order {
        lines[number].set(false);
        let began = Instant::now();
        let heard = || {
            let ledger = LedgerReader::open(ledger).unwrap();
            let status = ledger.status("biopsies", now()).unwrap();
            status.jobs.iter().any(|job| job.job == names[number])
        };
        while !heard() {
            assert!(began.elapsed() < LONG, "the provider hears of a job");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// How often jobs are run at once; more by the variable.
fn rounds() -> usize {
    let said = std::env::var("HEDA_JOBS_AT_ONCE_ROUNDS").ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(1)
}

/// Runs so many jobs of so many data users at once, and counts those that gave a model.
fn run_at_once(jobs: usize, users: usize, round: usize) -> u64 {
    let second = identity("second");
    let mut world = world(CAP);
    for hospital in &mut world.hospitals {
        hospital.iterations_per_day = 10_000;
        hospital.sessions = 100;
        if users == 2 {
            hospital.more_users = vec![second.clone()];
        }
    }
    let users: Vec<Identity> = [world.user.clone(), second][..users].to_vec();
    let place = |hospital: &Hospital| hospital.config().ledger_place();
    let ledgers: Vec<LedgerPlace> = world.hospitals.iter().map(place).collect();
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let specs: Vec<_> = (0..jobs as u64)
        .map(|number| private_spec(100 + number, privacy()))
        .collect();
    let names: Vec<String> = specs.iter().map(|spec| spec.id.to_string()).collect();
    // For each provider a line from each job.
    let mut held: Vec<Vec<Arc<Held>>> = vec![Vec::new(); 3];
    let connected = Arc::new(Barrier::new(jobs + 1));
    let mut all = Vec::new();
    for (number, spec) in specs.into_iter().enumerate() {
        let mut remotes = world.remotes(&daemons);
        let mut own = Vec::new();
        for ((remote, daemon), held) in remotes.iter_mut().zip(&daemons).zip(&mut held) {
            let (address, line) = held_line(daemon.address);
            remote.address = address.to_string();
            own.push(Arc::clone(&line));
            held.push(line);
        }
        let mut job = NetworkJob {
            spec,
            ..world.job(100 + number as u64, remotes, LONG)
        };
        job.connector.identity = users[number % users.len()].clone();
        let (first, connected) = (Mutex::new(true), Arc::clone(&connected));
        job.listener = Arc::new(move |notice| {
            if notice == Progress::Connected && std::mem::take(&mut *first.lock().unwrap()) {
                own.iter().for_each(|line| line.set(true));
                connected.wait();
            }
        });
        all.push(job);
    }
    let orders = orders(jobs, round);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let run = |(number, job): (usize, NetworkJob)| {
            let (world, out) = (&world, format!("job-{number}"));
            scope.spawn(move || world.run(job, &out, false))
        };
        let running: Vec<_> = all.into_iter().enumerate().map(run).collect();
        connected.wait();
        for ((ledger, order), lines) in ledgers.iter().zip(&orders).zip(&held) {
            let names = &names;
            scope.spawn(move || tell_in_order(ledger, order, lines, names));
        }
        running.into_iter().map(|job| job.join().unwrap()).collect()
    });
    let finished = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        let words = refused.to_string();
        assert!(words.contains("nothing was released"), "{words}");
        assert!(!words.contains("resume"), "it cannot help: {words}");
    }
    let cost = plan().cost();
    assert_eq!(
        spent(&world),
        [cost.times(finished); 3],
        "nobody paid for nothing"
    );
    for hospital in &world.hospitals {
        let cap = hospital.config().limits.private_cap().unwrap();
        let report = hospital.ledger().private("biopsies", Some(&cap)).unwrap();
        assert!(report.holds.is_empty(), "{:?}", report.holds);
        for user in report.users {
            assert!(user.squared <= cap.of_user().squared(), "{user:?}");
        }
    }
    finished
}

/// As many models as one after the other would have given, and nobody pays for nothing; of two data
/// users each stays below its own ceiling.
#[test]
fn of_jobs_at_once_as_many_finish_as_fit_and_the_others_pay_nothing() {
    let fit = cap().total().parts() / plan().cost().parts();
    assert_eq!(fit, 3);
    for round in 0..rounds() {
        for (jobs, users) in [(4, 1), (12, 2), (4, 2), (12, 1)] {
            let finished = run_at_once(jobs, users, round);
            assert_eq!(
                finished, fit,
                "{jobs} jobs of {users} data users, round {round}"
            );
            eprintln!("round {round}: {finished} models of {jobs} jobs of {users} data users");
        }
    }
}

/// One of several data users cannot have all that there is, if nothing else is said.
#[test]
fn one_of_several_data_users_has_three_quarters_at_most() {
    let second = identity("second");
    let mut world = world(CAP);
    for hospital in &mut world.hospitals {
        hospital.more_users = vec![second.clone()];
        hospital.iterations_per_day = 1000;
    }
    let daemons: Vec<Running> = world.hospitals.iter().map(Hospital::serve).collect();
    let promise = |epsilon: &str| Privacy {
        epsilon: epsilon.parse().unwrap(),
        ..privacy()
    };
    let most = job(&world, &daemons, private_spec(1, promise("1.5")));
    world.run(most, "most", false).unwrap();
    let before = spent(&world);
    let more = private_spec(2, promise("0.5"));
    let refused = world.run(job(&world, &daemons, more.clone()), "more", false);
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, NetworkJobError::Refused { .. }),
        "{refused}"
    );
    let words = refused.to_string();
    assert!(
        words.contains("all private jobs of this data user"),
        "{words}"
    );
    assert!(words.contains("epsilon 1.5 "), "{words}");
    assert!(!words.contains("resume"), "it cannot help: {words}");
    assert_eq!(spent(&world), before);
    // What is left is for the other one.
    let mut others = job(&world, &daemons, more);
    others.connector.identity = second;
    others.spec.id = private_spec(3, privacy()).id;
    world.run(others, "others", false).unwrap();
    assert!(spent(&world)[0] > before[0]);
}
