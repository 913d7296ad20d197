//! Lines and peers that are against the parties: whole jobs over broken lines and with a hostile party
//! in the middle, and a recorded job that is sent again and again with one message changed.

use crate::chance::Chance;
use crate::floods::Attackers;
use crate::lines;
use crate::peers::{SCORES, Visit};
use crate::relay::{Hostile, Recording, Relay};
use crate::tally::{Tally, Trouble};
use crate::time_is_up;
use crate::tls;
use crate::world::{Job, PROVIDERS, World};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use tokio::runtime::Handle;

/// Jobs over a line that flips and cuts: a job ends in words, or with the usual model.
pub(crate) fn broken_lines(
    world: &World,
    strikes: u64,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    const LINES: &str = "connections cut, or a byte flipped, below TLS";
    let daemon = world.serve_well(0)?;
    let mut seed = 300_000;
    while tally.of(LINES) < strikes && !time_is_up() {
        seed += 1;
        let line = lines::Line::start(world.port(0), chance.next(), 3)?;
        let engine = world.some_engine(chance);
        let terms = format!("engine = \"{engine}\"\niota = \"all\"\niterations = 4");
        let at = |port| {
            world.write_job(&Job {
                seed,
                terms: &terms,
                providers: &[(0, port)],
                loss_seconds: 60,
            })
        };
        at(line.port)?;
        let mut run = world.train(seed, &[])?;
        let status = run.wait()?;
        let known = [Some(0), Some(4), Some(5)].contains(&status.code());
        tally.expect(LINES, known, || {
            format!("ended with {status}: {}", run.words())
        });
        tally.count(LINES, line.strikes.load(Relaxed).max(1));
        at(world.port(0))?;
        if let Err(trouble) = world.finish(seed) {
            tally.fail(LINES, trouble.to_string());
        }
    }
    let ended = daemon.terminate()?;
    tally.expect(LINES, ended.success(), || ended.to_string());
    Ok(())
}

/// A data user and a provider whose peer is a party in the middle that changes a message.
pub(crate) fn hostile_parties(
    world: &World,
    runtime: &Handle,
    many: u64,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    const USER: &str = "messages of a hostile data user, of any step of a job";
    const PROVIDER: &str = "messages of a hostile provider, of any step of a job";
    let mut daemon = world.serve_well(0)?;
    let keys = (
        world.path("university/identity"),
        world.path(&format!("{}/identity", PROVIDERS[0])),
    );
    let mut seed = 400_000;
    for kind in [USER, PROVIDER] {
        while tally.of(kind) < many / 2 && !time_is_up() {
            seed += 1;
            let hostile = if kind == USER {
                Hostile::DataUser
            } else {
                Hostile::Provider
            };
            let keys = (keys.0.as_path(), keys.1.as_path());
            let relay = Relay::start(runtime, keys, world.port(0), hostile, chance.next())?;
            let engine = world.some_engine(chance);
            world.write_job(&Job {
                seed,
                terms: &format!("engine = \"{engine}\"\niota = 5\nepsilon = 0.1\niterations = 3"),
                providers: &[(0, relay.port)],
                loss_seconds: 1,
            })?;
            let mut run = world.train(seed, &[])?;
            let status = run.wait()?;
            let known = [0, 2, 3, 4, 5].map(Some).contains(&status.code());
            tally.expect(kind, known, || {
                format!("ended with {status}: {}", run.words())
            });
            tally.count(kind, relay.changed.load(Relaxed).max(1));
            if daemon.has_ended()? {
                tally.fail(kind, "the daemon ended".into());
                daemon = world.serve_well(0)?;
            }
        }
    }
    let ended = daemon.terminate()?;
    tally.expect(USER, ended.success(), || ended.to_string());
    Ok(())
}

/// Records a whole job of a data user with one provider, to be sent again with changes.
fn record(
    world: &World,
    runtime: &Handle,
    (user, place): (&str, usize),
    seed: u64,
) -> Result<Recording, Trouble> {
    let daemon = world.serve_well(place)?;
    let keys = (
        world.path(&format!("{user}/identity")),
        world.path(&format!("{}/identity", PROVIDERS[place])),
    );
    let keys = (keys.0.as_path(), keys.1.as_path());
    let relay = Relay::start(runtime, keys, world.port(place), Hostile::Nobody, 0)?;
    world.write_job(&Job {
        seed,
        terms: "engine = \"resident\"\niota = 5\nepsilon = 0.1\niterations = 2",
        providers: &[(place, relay.port)],
        loss_seconds: 5,
    })?;
    world.finish(seed)?;
    daemon.terminate()?;
    let recorded = relay
        .recorded
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(recorded.clone())
}

/// Whoever attacks one provider, as this data user.
pub(crate) fn attackers(
    world: &World,
    runtime: &Handle,
    (user, place): (&str, usize),
    seed: u64,
) -> Result<Attackers, Trouble> {
    if !world.path("stranger").exists() {
        world.run(&["init", "--name", "stranger", "--out", "stranger"])?;
    }
    Ok(Attackers {
        runtime: runtime.clone(),
        user: tls::connector(&world.path(&format!("{user}/identity")))?,
        stranger: tls::connector(Path::new(&world.path("stranger")))?,
        job: Arc::new(record(world, runtime, (user, place), seed)?),
    })
}

/// A visit with one message changed. Early messages are short and many-sided: they are changed more
/// often.
fn hostile_visit<'a>(
    world: &World,
    attackers: &'a Attackers,
    chance: &mut Chance,
) -> (Visit<'a>, Chance) {
    let last = attackers.job.len().saturating_sub(2);
    let visit = Visit {
        connector: &attackers.user,
        port: world.port(2),
        job: &attackers.job,
        changed: Some(match chance.below(2) {
            0 => chance.below(last.min(4)),
            _ => chance.below(last),
        }),
        name: None,
    };
    (visit, Chance::new(chance.next()))
}

/// The recorded job again and again, each time with one message changed.
pub(crate) fn hostile_messages(
    world: &World,
    attackers: &Attackers,
    many: u64,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    const MESSAGES: &str = "hostile messages of an allowed data user";
    const BETWEEN: &str = "jobs in between that must finish";
    let mut daemon = world.serve_well(2)?;
    let mut seed = 850_000;
    while tally.of(MESSAGES) < many && !time_is_up() {
        for _ in 0..many.min(501) / 3 {
            let mut visits = [(); 3].map(|()| hostile_visit(world, attackers, chance));
            let [one, two, three] = &mut visits;
            // Refused, closed, or too many sessions that come to their end: all are answers.
            attackers.runtime.block_on(async {
                let _ = tokio::join!(
                    one.0.run(&mut one.1),
                    two.0.run(&mut two.1),
                    three.0.run(&mut three.1)
                );
            });
            tally.count(MESSAGES, 3);
        }
        if daemon.has_ended()? {
            tally.fail(MESSAGES, "the daemon ended".into());
            daemon = world.serve_well(2)?;
        }
        seed += 1;
        world.write_job(&Job {
            seed,
            terms: "engine = \"resident\"\niota = \"all\"\niterations = 2",
            providers: &[(2, world.port(2))],
            loss_seconds: 60,
        })?;
        tally.count(BETWEEN, 1);
        if let Err(trouble) = world.finish(seed) {
            tally.fail(BETWEEN, trouble.to_string());
        }
    }
    let ended = daemon.terminate()?;
    tally.expect(MESSAGES, ended.success(), || ended.to_string());
    Ok(())
}

/// Jobs that only rank, where a day has room for one.
pub(crate) fn rankings(
    world: &World,
    attackers: &Attackers,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    const RANKINGS: &str = "jobs that only rank, with room for one a day";
    let path = world.path(&format!("{}/provider.toml", PROVIDERS[2]));
    let usual = std::fs::read_to_string(&path)?;
    let served: u64 = {
        let budget = world.run(&[
            "provider",
            "status",
            "--json",
            "--config",
            &format!("{}/provider.toml", PROVIDERS[2]),
        ])?;
        let status: serde_json::Value = serde_json::from_str(&budget)?;
        status["iterations_today"].as_u64().unwrap_or_default()
    };
    let one = format!("iterations_per_day = {}", served + 1);
    std::fs::write(&path, usual.replace("iterations_per_day = 10000000", &one))?;
    let daemon = world.serve_well(2)?;
    let mut scores = 0;
    for _ in 0..40 {
        let name: String = (0..32).map(|_| format!("{:x}", chance.below(16))).collect();
        let visit = Visit {
            connector: &attackers.user,
            port: world.port(2),
            job: &attackers.job,
            changed: Some(3),
            name: Some(name),
        };
        let tags = attackers.runtime.block_on(visit.run(chance));
        scores += tags
            .unwrap_or_default()
            .iter()
            .filter(|tag| **tag == SCORES)
            .count();
        tally.count(RANKINGS, 1);
    }
    tally.expect(RANKINGS, scores == 1, || {
        format!("{scores} vectors of scores left")
    });
    daemon.terminate()?;
    Ok(std::fs::write(&path, usual)?)
}
