//! `heda-storm`: kills, full disks, broken lines and hostile peers against real processes of the
//! program `heda`, counted. `--quick` takes about a minute and runs in CI; the whole storm has at
//! least 1,000 kills and 10,000 hostile messages and writes `docs/reliability.md`.

mod chance;
mod floods;
#[path = "../../../crates/heda-node/tests/common/gullible.rs"]
mod gullible;
mod hostile;
mod kills;
mod lines;
mod losses;
mod page;
mod peers;
#[path = "../../../crates/heda-cli/tests/ports/mod.rs"]
mod ports;
mod relay;
mod tally;
mod tls;
mod world;

use chance::Chance;
use clap::Parser;
use floods::Attack;
use hostile::{attackers, broken_lines, hostile_messages, hostile_parties, rankings};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tally::{Tally, Trouble};
use tokio::runtime::Handle;
use world::{RIVAL, World};

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
    /// Ends kills, lines and hostile peers after so many minutes, wherever they are.
    #[arg(long)]
    minutes: Option<u64>,
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
    attacks: usize,
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
    attacks: 2,
    attack_seconds: 2,
    rounds: 0,
};

const WHOLE: Amount = Amount {
    jobs: 12,
    kills: 850,
    exact: 180,
    full: 60,
    strikes: 100,
    messages: 10_000,
    relayed: 120,
    attacks: Attack::ALL.len(),
    attack_seconds: 15,
    rounds: 11,
};

static END: OnceLock<Instant> = OnceLock::new();

/// Whether the storm has lasted as long as it may.
fn time_is_up() -> bool {
    END.get().is_some_and(|end| Instant::now() > *end)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(minutes) = arguments.minutes {
        let end = Instant::now() + Duration::from_secs(60 * minutes);
        let _ = END.set(end);
    }
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
    let amount = arguments.amount();
    let runtime = tokio::runtime::Runtime::new()?;
    let mut chance = Chance::new(arguments.seed);
    let world = World::new(&heda)?;
    let mut timed = Vec::new();
    // Kills have parties of their own, so that they can go on beside everything else.
    let mut killed = Tally::default();
    let mut killing = Chance::new(chance.next());
    std::thread::scope(|scope| {
        let kills = arguments.wants(Stage::Kills).then(|| {
            scope.spawn(|| kills_and_full_disks(&heda, amount, &mut killing, &mut killed))
        });
        peers_and_lines(arguments, &world, runtime.handle(), &mut chance, tally)?;
        let ended = kills.map(|kills| kills.join());
        match ended {
            Some(Ok(stormed)) => stormed,
            Some(Err(_)) => Err(Trouble::new("the stage of kills panicked".into())),
            None => Ok(()),
        }
    })?;
    tally.absorb(killed);
    write_page(arguments, tally, &timed)?;
    if arguments.wants(Stage::Memory) || arguments.wants(Stage::Speed) {
        let of_rival = |place, seed| attackers(&world, runtime.handle(), (RIVAL, place), seed);
        let attackers = of_rival(2, 800_001)?;
        if arguments.wants(Stage::Memory) {
            let each = (amount.attacks, amount.attack_seconds);
            floods::memory(&world, &attackers, each, tally)?;
            write_page(arguments, tally, &timed)?;
        }
        if amount.rounds > 0 && arguments.wants(Stage::Speed) {
            world.pause_after_breaches()?;
            let both = [of_rival(0, 800_002)?, attackers];
            timed = floods::slowdown(&world, &both, amount.rounds, tally)?;
        }
    }
    for panic in world.panics()? {
        tally.fail("processes that were watched for panics", panic);
    }
    write_page(arguments, tally, &timed)
}

fn write_page(arguments: &Arguments, tally: &Tally, timed: &[String]) -> Result<(), Trouble> {
    match &arguments.page {
        Some(path) => Ok(std::fs::write(
            path,
            page::page(tally, timed, arguments.seed),
        )?),
        None => Ok(()),
    }
}

/// Everything between a data user and a provider that goes wrong on purpose.
fn peers_and_lines(
    arguments: &Arguments,
    world: &World,
    runtime: &Handle,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), Trouble> {
    let amount = arguments.amount();
    if arguments.wants(Stage::Ledgers) {
        losses::run(world, tally)?;
    }
    if arguments.wants(Stage::Messages) {
        let attackers = attackers(world, runtime, ("university", 2), 800_000)?;
        hostile_messages(world, &attackers, amount.messages, chance, tally)?;
        rankings(world, &attackers, chance, tally)?;
    }
    if arguments.wants(Stage::Parties) {
        hostile_parties(world, runtime, amount.relayed, chance, tally)?;
    }
    if arguments.wants(Stage::Lines) {
        broken_lines(world, amount.strikes, chance, tally)?;
    }
    Ok(())
}

impl Arguments {
    fn amount(&self) -> &'static Amount {
        match self.quick {
            true => &QUICK,
            false => &WHOLE,
        }
    }

    /// Whether a stage is to run; says so if it is.
    fn wants(&self, stage: Stage) -> bool {
        let wanted = self.only.is_none_or(|only| only == stage);
        if wanted {
            eprintln!("storm: {stage:?}");
        }
        wanted
    }
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
            let mut left = vec![(kills::KILLS, amount.kills)];
            if shim.is_some() {
                left.extend([(kills::EXACT, amount.exact), (kills::FULL, amount.full)]);
            }
            left.retain(|(kind, many)| tally.of(kind) < *many);
            if left.is_empty() || time_is_up() {
                return course.end(tally);
            }
            let (kind, _) = *chance.of(&left);
            match &shim {
                Some(shim) if kind != kills::KILLS => {
                    course.exact(shim, kind == kills::FULL, chance, tally)?;
                }
                _ => {
                    let most = 1 + chance.below(12) as u64;
                    course.random_kills(most, chance, tally)?;
                }
            }
        }
        course.end(tally)?;
    }
}
