//! `heda-storm`: kills, full disks, broken lines and hostile peers against real processes of the
//! program `heda`, counted. `--quick` takes about a minute and runs in CI; the whole storm has at
//! least 1,000 kills and 10,000 hostile messages and writes `docs/reliability.md`.

mod chance;
mod floods;
mod kills;
mod lines;
mod losses;
mod page;
mod peers;
mod relay;
mod tally;
mod tls;
mod world;

use chance::Chance;
use clap::Parser;
use floods::Attackers;
use peers::{SCORES, Visit};
use relay::{Hostile, Recording, Relay};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use tally::{Tally, Trouble};
use tokio::runtime::Handle;
use world::{Job, PROVIDERS, World};

/// Kills, full disks, broken lines and hostile peers against real processes, counted.
#[derive(Debug, Parser)]
struct Arguments {
    /// About a minute in all, for CI.
    #[arg(long)]
    quick: bool,
    /// The program; the one beside this one if not given.
    #[arg(long)]
    heda: Option<PathBuf>,
    /// One stage alone.
    #[arg(long, value_enum)]
    only: Option<Stage>,
    /// Where the random choices come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes the page here.
    #[arg(long)]
    page: Option<PathBuf>,
}

/// Parts of the storm, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stage {
    /// Kills and full disks.
    Kills,
    /// Lost and replaced ledgers.
    Ledgers,
    /// Cut connections and flipped bytes.
    Lines,
    /// A hostile data user and a hostile provider in whole jobs.
    Parties,
    /// Many hostile messages.
    Messages,
    /// Memory of a daemon under attack.
    Memory,
    /// What a job loses to attacks.
    Speed,
}

/// How much of everything.
struct Amount {
    /// Different jobs.
    jobs: u64,
    kills: u64,
    exact: u64,
    full: u64,
    strikes: u64,
    messages: u64,
    relayed: u64,
    attack_seconds: u64,
    rounds: u64,
}

const QUICK: Amount = Amount {
    jobs: 4,
    kills: 8,
    exact: 6,
    full: 3,
    strikes: 6,
    messages: 150,
    relayed: 4,
    attack_seconds: 2,
    rounds: 0,
};

const WHOLE: Amount = Amount {
    jobs: 12,
    kills: 700,
    exact: 320,
    full: 100,
    strikes: 200,
    messages: 10_000,
    relayed: 300,
    attack_seconds: 30,
    rounds: 5,
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut tally = Tally::default();
    let stormed = storm(&arguments, &mut tally);
    print!("{}", tally.table());
    if let Err(trouble) = &stormed {
        eprintln!("the storm could not go on: {trouble}");
    }
    match stormed.is_ok() && tally.failures() == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn program(arguments: &Arguments) -> Result<PathBuf, Trouble> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("heda"));
    let heda = arguments.heda.clone().or_else(beside);
    let heda = heda.filter(|path| path.exists());
    heda.ok_or_else(|| {
        Trouble::new("there is no program `heda`; build it with `cargo build -p heda-cli`".into())
    })
}

fn storm(arguments: &Arguments, tally: &mut Tally) -> Result<(), Trouble> {
    let heda = program(arguments)?.canonicalize()?;
    let amount = if arguments.quick { &QUICK } else { &WHOLE };
    let runtime = tokio::runtime::Runtime::new()?;
    let mut chance = Chance::new(arguments.seed);
    let world = World::new(&heda)?;
    let mut timed = Vec::new();
    let stage = |stage: Stage| {
        let wanted = arguments.only.is_none_or(|only| only == stage);
        if wanted {
            eprintln!("storm: {stage:?}");
        }
        wanted
    };
    if stage(Stage::Kills) {
        kills_and_full_disks(&heda, amount, &mut chance, tally)?;
    }
    if stage(Stage::Ledgers) {
        losses::run(&world, tally)?;
    }
    if stage(Stage::Lines) {
        broken_lines(&world, amount.strikes, &mut chance, tally)?;
    }
    if stage(Stage::Parties) {
        hostile_parties(&world, runtime.handle(), amount.relayed, &mut chance, tally)?;
    }
    let attackers = attackers(&world, runtime.handle())?;
    if stage(Stage::Messages) {
        hostile_messages(&world, &attackers, amount.messages, &mut chance, tally)?;
        rankings(&world, &attackers, &mut chance, tally)?;
    }
    if stage(Stage::Memory) {
        floods::memory(&world, &attackers, amount.attack_seconds, tally)?;
    }
    if amount.rounds > 0 && stage(Stage::Speed) {
        timed = floods::slowdown(&world, &attackers, amount.rounds, tally)?;
    }
    for panic in world.panics()? {
        tally.fail("processes that were watched for panics", panic);
    }
    if let Some(path) = &arguments.page {
        std::fs::write(path, page::page(tally, &timed, arguments.seed))?;
    }
    Ok(())
}

fn kills_and_full_disks(
    heda: &Path,
    amount: &Amount,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    let folder = tempfile::tempdir()?;
    let shim = kills::shim(folder.path());
    if shim.is_none() {
        eprintln!("storm: no C compiler, so nothing at exact system calls");
    }
    let references = kills::references(heda, amount.jobs, tally)?;
    loop {
        let mut course = kills::Course::begin(heda, references.clone())?;
        while !course.is_over() {
            match &shim {
                _ if tally.of(kills::KILLS) < amount.kills => {
                    let most = 1 + chance.below(8) as u64;
                    course.random_kills(most, chance, tally)?;
                }
                Some(shim) if tally.of(kills::EXACT) < amount.exact => {
                    course.exact(shim, false, chance, tally)?;
                }
                Some(shim) if tally.of(kills::FULL) < amount.full => {
                    course.exact(shim, true, chance, tally)?;
                }
                _ => return course.end(tally),
            }
        }
        course.end(tally)?;
    }
}

/// Jobs over a line that flips and cuts: a job ends in words, or with the usual model.
fn broken_lines(
    world: &World,
    strikes: u64,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    const LINES: &str = "connections cut, or a byte flipped, below TLS";
    let daemon = world.serve_well(0)?;
    let mut seed = 300_000;
    let engines = ["resident", "resident", "resident", "paper"];
    while tally.of(LINES) < strikes {
        seed += 1;
        let line = lines::Line::start(world.port(0), chance.next(), 3)?;
        let engine = *chance.of(&engines);
        let terms =
            format!("engine = \"{engine}\"\niota = \"all\"\niterations = 4\nkey_bits = 2048");
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
fn hostile_parties(
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
        while tally.of(kind) < many / 2 {
            seed += 1;
            let hostile = if kind == USER {
                Hostile::DataUser
            } else {
                Hostile::Provider
            };
            let keys = (keys.0.as_path(), keys.1.as_path());
            let relay = Relay::start(runtime, keys, world.port(0), hostile, chance.next())?;
            let engine = *chance.of(&["resident", "resident", "paper"]);
            world.write_job(&Job {
                seed,
                terms: &format!(
                    "engine = \"{engine}\"\niota = 5\nepsilon = 0.1\niterations = 3\nkey_bits = 2048"
                ),
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

/// Records a whole job with one provider, to be sent again with changes.
fn record(world: &World, runtime: &Handle) -> Result<Recording, Trouble> {
    let daemon = world.serve_well(2)?;
    let keys = (
        world.path("university/identity"),
        world.path(&format!("{}/identity", PROVIDERS[2])),
    );
    let keys = (keys.0.as_path(), keys.1.as_path());
    let relay = Relay::start(runtime, keys, world.port(2), Hostile::Nobody, 0)?;
    let seed = 800_000;
    world.write_job(&Job {
        seed,
        terms: "engine = \"resident\"\niota = 5\nepsilon = 0.1\niterations = 2",
        providers: &[(2, relay.port)],
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

fn attackers(world: &World, runtime: &Handle) -> Result<Attackers, Trouble> {
    world.run(&["init", "--name", "stranger", "--out", "stranger"])?;
    Ok(Attackers {
        runtime: runtime.clone(),
        user: tls::connector(&world.path("university/identity"))?,
        stranger: tls::connector(Path::new(&world.path("stranger")))?,
        job: Arc::new(record(world, runtime)?),
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
fn hostile_messages(
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
    while tally.of(MESSAGES) < many {
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
fn rankings(
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
            changed: Some(2),
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
