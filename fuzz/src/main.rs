//! `heda-fuzz TARGET --seconds N [--seed S]`: a long run of one target. See `README.md`.

use heda_fuzz::driver::{Limit, run};
use heda_fuzz::targets::{TARGETS, find};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: heda-fuzz TARGET [--seconds N] [--seed S]   or   heda-fuzz --list";

struct Arguments {
    target: String,
    seconds: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["--list"] {
        TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    match parse(&words).and_then(|arguments| fuzz(&arguments)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("{line}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Result<Arguments, String> {
    let (target, mut options) = match words.split_first() {
        Some((target, rest)) => (target.clone(), rest.chunks(2)),
        None => return Err(USAGE.into()),
    };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut arguments = Arguments {
        target,
        seconds: 60,
        seed: clock.map_or(0, |time| time.as_nanos() as u64),
    };
    options.try_for_each(|option| {
        let [name, value] = option else {
            return Err(USAGE.to_string());
        };
        let value = value.parse().map_err(|_| USAGE.to_string())?;
        match name.as_str() {
            "--seconds" => arguments.seconds = value,
            "--seed" => arguments.seed = value,
            _ => return Err(USAGE.to_string()),
        }
        Ok(())
    })?;
    Ok(arguments)
}

fn fuzz(arguments: &Arguments) -> Result<String, String> {
    let Arguments {
        target: name,
        seconds,
        seed,
    } = arguments;
    let target = find(name).ok_or_else(|| format!("no target {name}; --list names them"))?;
    eprintln!("{name}: {seconds} s with seed {seed}");
    let limit = Limit::Time(Duration::from_secs(*seconds));
    let summary = run(&target, *seed, limit).map_err(|e| format!("{name}, seed {seed}: {e}"))?;
    Ok(format!(
        "{name}: {} inputs, {} accepted, {} refused, no panic",
        summary.executed, summary.accepted, summary.rejected
    ))
}
