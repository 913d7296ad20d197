//! Attacks that go on for a while: memory of the daemon before, during and after, and what a running
//! job loses to them.

use crate::chance::Chance;
use crate::peers::Visit;
use crate::relay::Recording;
use crate::tally::{Tally, Trouble};
use crate::tls::{connect_from, raw_frame, secured, session};
use crate::world::{Daemon, Job, World};
use heda_node::wire::frame::{FrameKind, PIECE_LIMIT};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;

const TIMED: &str = "jobs timed while a provider is attacked";
/// Percent that a job may take longer.
const MOST_SLOWER: f64 = 10.0;
const MEMORY: &str = "attacks during which the daemon's memory was watched";
/// More than its working set, in kilobytes.
const MOST_ABOVE: u64 = 100 << 10;
/// Of the daemon's memory before, ten seconds later, and kilobytes that the system's allocator may
/// keep beside: a daemon without work is so small that its arenas count.
const LATER_PERCENT: u64 = 110;
const ALLOCATOR: u64 = 1 << 10;

/// A way to be a nuisance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attack {
    /// A data user in a session that sends frames of seven bytes and reads nothing.
    SmallFrames,
    /// The same with the longest frames.
    LongFrames,
    /// 1,500 connections that say nothing.
    Idle,
    /// Handshakes with a key that nobody knows.
    Strangers,
    /// Proposals of 900 kB that are none.
    Proposals,
}

impl Attack {
    pub(crate) const ALL: [Self; 5] = [
        Self::SmallFrames,
        Self::Idle,
        Self::LongFrames,
        Self::Strangers,
        Self::Proposals,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::SmallFrames => "frames of seven bytes, nothing read",
            Self::LongFrames => "frames of a megabyte, nothing read",
            Self::Idle => "1,500 idle connections",
            Self::Strangers => "handshakes with an unknown key",
            Self::Proposals => "proposals of 900 kB that are none",
        }
    }
}

/// Who attacks, with which keys.
#[derive(Clone)]
pub(crate) struct Attackers {
    pub(crate) runtime: Handle,
    pub(crate) user: TlsConnector,
    pub(crate) stranger: TlsConnector,
    pub(crate) job: Arc<Recording>,
}

/// An attack that goes on until this is dropped.
struct Ongoing {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

impl Attackers {
    fn start(&self, attack: Attack, port: u16) -> Ongoing {
        let ongoing = Ongoing {
            stop: Arc::default(),
            made: Arc::default(),
        };
        let tasks = match attack {
            Attack::Idle => 1500,
            Attack::Strangers => 4,
            _ => 2,
        };
        for task in 0..tasks {
            let (stop, made) = (Arc::clone(&ongoing.stop), Arc::clone(&ongoing.made));
            let this = self.clone();
            self.runtime.spawn(async move {
                while !stop.load(Relaxed) {
                    let done = this.once(attack, port, task, &stop).await;
                    made.fetch_add(done.unwrap_or(0), Relaxed);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        }
        ongoing
    }

    async fn once(
        &self,
        attack: Attack,
        port: u16,
        task: usize,
        stop: &AtomicBool,
    ) -> std::io::Result<u64> {
        match attack {
            Attack::SmallFrames => {
                let frame = raw_frame(FrameKind::LastPiece, &[7, 7]).repeat(1000);
                self.pour(port, &frame, 1000, stop).await
            }
            Attack::LongFrames => {
                let frame = raw_frame(FrameKind::Piece, &vec![7; PIECE_LIMIT]);
                self.pour(port, &frame, 1, stop).await
            }
            Attack::Idle => {
                let stream = connect_from(2 + (task % 3) as u8, port).await?;
                let mut rest = [0; 1];
                while !stop.load(Relaxed) {
                    let closed = stream.readable();
                    let waited = tokio::time::timeout(Duration::from_millis(500), closed).await;
                    if waited.is_ok() && !matches!(stream.try_read(&mut rest), Ok(1..)) {
                        break;
                    }
                }
                Ok(1)
            }
            Attack::Strangers => {
                let mut stream = secured(&self.stranger, 2, port).await?;
                let _ = stream.write_all(&[0; 9]).await;
                Ok(1)
            }
            Attack::Proposals => {
                let mut stream = session(&self.user, port).await?;
                let words = [&[1, b'{', b'"'][..], &vec![b'A'; 900_000], b"\":1}"].concat();
                stream
                    .write_all(&raw_frame(FrameKind::LastPiece, &words))
                    .await?;
                let _ = crate::tls::read_frame(&mut stream).await;
                Ok(1)
            }
        }
    }

    /// Enters a session up to where the provider computes, then sends and never reads.
    async fn pour(
        &self,
        port: u16,
        bytes: &[u8],
        frames: u64,
        stop: &AtomicBool,
    ) -> std::io::Result<u64> {
        let visit = Visit {
            connector: &self.user,
            port,
            job: &self.job,
            changed: None,
            name: None,
        };
        let (mut stream, _) = visit.play(3, &mut Chance::new(0)).await?;
        let mut sent = 0;
        let until = Instant::now() + Duration::from_secs(5);
        while !stop.load(Relaxed) && Instant::now() < until {
            let written = tokio::time::timeout(Duration::from_secs(1), stream.write_all(bytes));
            match written.await {
                Ok(Ok(())) => sent += frames,
                Ok(Err(_)) => break,
                Err(_) => {}
            }
        }
        Ok(sent)
    }
}

/// Memory of a daemon under the first so many attacks, each for so many seconds.
pub(crate) fn memory(
    world: &World,
    attackers: &Attackers,
    (attacks, seconds): (usize, u64),
    tally: &mut Tally,
) -> Result<(), Trouble> {
    for attack in Attack::ALL.into_iter().take(attacks) {
        let daemon = world.serve_well(2)?;
        let port = world.port(2);
        // A job first, and the attack itself for a moment: what it needs once is its working set.
        warm(attackers, port);
        drop(attackers.start(attack, port));
        std::thread::sleep(Duration::from_secs(3));
        let before = daemon.memory()?;
        let ongoing = attackers.start(attack, port);
        let (peak, began) = (watch(&daemon, seconds)?, Instant::now());
        let made = ongoing.made.load(Relaxed);
        drop(ongoing);
        while began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(100));
        }
        let after = daemon.memory()?;
        tally.count(MEMORY, 1);
        let name = attack.name();
        tally.expect(MEMORY, peak <= before + MOST_ABOVE, || {
            format!("{name}: {before} kB before, {peak} kB during")
        });
        tally.expect(
            MEMORY,
            after <= before * LATER_PERCENT / 100 + ALLOCATOR,
            || format!("{name}: {before} kB before, {after} kB ten seconds after"),
        );
        tally.measures.push(format!(
            "| {name} | {made} | {:.1} | {:.1} | {:.1} |",
            before as f64 / 1024.0,
            peak as f64 / 1024.0,
            after as f64 / 1024.0
        ));
        let ended = daemon.terminate()?;
        tally.expect(MEMORY, ended.success(), || {
            format!("{name}: ended with {ended}")
        });
    }
    Ok(())
}

/// A few whole visits.
fn warm(attackers: &Attackers, port: u16) {
    for number in 0..3 {
        let visit = Visit {
            connector: &attackers.user,
            port,
            job: &attackers.job,
            changed: None,
            name: None,
        };
        let mut chance = Chance::new(number);
        let _ = attackers.runtime.block_on(visit.run(&mut chance));
    }
}

/// The most memory during these seconds.
fn watch(daemon: &Daemon, seconds: u64) -> Result<u64, Trouble> {
    let began = Instant::now();
    let mut peak = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        peak = peak.max(daemon.memory()?);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(peak)
}

/// How much longer a job takes while its provider is attacked than while another one is, by those who
/// attack the first and the third.
pub(crate) fn slowdown(
    world: &World,
    attackers: &[Attackers; 2],
    rounds: u64,
    tally: &mut Tally,
) -> Result<Vec<String>, Trouble> {
    let daemons = [0, 1, 2].map(|place| world.serve_well(place));
    let mut lines = Vec::new();
    let mut seed = 500_000;
    for attack in Attack::ALL {
        let mut took = [Vec::new(), Vec::new()];
        for round in 0..2 * rounds {
            let control = round % 2 == 1;
            seed += 1;
            world.write_job(&Job {
                seed,
                terms: "engine = \"resident\"\niota = \"all\"\niterations = 40\ntolerance = 1e-12",
                providers: &[(0, world.port(0)), (1, world.port(1))],
                loss_seconds: 60,
            })?;
            let target = world.port(if control { 2 } else { 0 });
            let ongoing = attackers[usize::from(control)].start(attack, target);
            let began = Instant::now();
            world.finish(seed)?;
            took[usize::from(control)].push(began.elapsed().as_secs_f64());
            drop(ongoing);
            std::thread::sleep(Duration::from_millis(700));
        }
        let [attacked, control] = took.map(middle);
        let more = 100.0 * (attacked / control - 1.0);
        let name = attack.name();
        tally.expect(TIMED, more < MOST_SLOWER, || {
            format!("{name}: {control:.3} s while another is hit, {attacked:.3} s")
        });
        lines.push(format!(
            "| {name} | {control:.2} | {attacked:.2} | {more:+.0} % |"
        ));
    }
    tally.count(TIMED, 2 * rounds * Attack::ALL.len() as u64);
    for daemon in daemons {
        daemon?.terminate()?;
    }
    Ok(lines)
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
