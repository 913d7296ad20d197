//! One file a command: its arguments, `run`, and how it prints.

mod bench;
mod completions;
mod demo;
mod evaluate;
mod export;
mod init;
mod invite;
mod man;
mod plan;
mod predict;
mod provider;
mod publish;
mod reference;
mod score;
mod simulate;
mod train;

use crate::Program;
use crate::output::{self, OutputOptions};
use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use heda::Error;
use heda::system::{LogFormat, exit_on_interrupt, start_log};
use std::ffi::OsString;
use std::process::ExitCode;

/// Train one classifier on the data of several organisations, without showing each other the
/// data or the model.
#[derive(Debug, Parser)]
#[command(name = "heda", version = env!("HEDA_VERSION"), after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: OutputOptions,
}

const AFTER_HELP: &str = "Examples:
  heda demo
  heda simulate --data patients.csv --private 1
  heda help provider setup

Exit codes:
  0    done
  2    bad usage or input
  3    refused by policy or budget
  4    peer or network
  5    interrupted and resumable
  70   a defect of heda
  130  interrupted";

/// The exit code of a command that was interrupted and cannot be resumed.
const INTERRUPTED: i32 = 130;

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Invite(invite::InviteArguments),
    Provider(provider::ProviderArguments),
    Train(train::Train),
    Demo(demo::DemoArguments),
    Simulate(simulate::SimulateArguments),
    Predict(predict::PredictArguments),
    Evaluate(evaluate::EvaluateArguments),
    Export(export::ExportArguments),
    Plan(plan::PlanArguments),
    Publish(publish::PublishArguments),
    Bench(bench::BenchArguments),
    Score(score::ScoreArguments),
    Reference(reference::ReferenceArguments),
    Completions(completions::CompletionsArguments),
    #[command(hide = true)]
    Man(man::ManArguments),
}

/// What was typed, understood.
pub(crate) enum Typed {
    Usual(Arguments),
    /// A command beside the usual ones, by its place.
    Extra(usize, OutputOptions, ArgMatches),
}

impl Program {
    /// All of its commands.
    fn command(&self) -> clap::Command {
        let extras = self.extras.iter().map(|extra| extra.command.clone());
        Arguments::command().name(self.name).subcommands(extras)
    }

    fn understand(&self, typed: Vec<OsString>, colour: ColorChoice) -> Result<Typed, clap::Error> {
        let command = self.command();
        #[cfg(feature = "terminal")]
        let command = command.color(colour);
        let _ = colour;
        let matches = command.try_get_matches_from(typed)?;
        let extra = matches.subcommand().and_then(|(name, own)| {
            let extras = &mut self.extras.iter();
            let place = extras.position(|extra| extra.command.get_name() == name)?;
            Some((place, own.clone()))
        });
        match extra {
            Some((place, own)) => {
                let output = OutputOptions::from_arg_matches(&matches)?;
                Ok(Typed::Extra(place, output, own))
            }
            None => Arguments::from_arg_matches(&matches).map(Typed::Usual),
        }
    }
}

/// The command line as it was typed. What is wrong with it is said like any other failure.
pub(crate) fn parse(program: &Program) -> Result<Typed, ExitCode> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let colour = output::wanted_colour(&typed);
    program
        .understand(typed, colour)
        .map_err(|error| match error.use_stderr() {
            true => {
                let words = match output::is_coloured(colour) {
                    #[cfg(feature = "terminal")]
                    true => error.render().ansi().to_string(),
                    _ => error.render().to_string(),
                };
                heda::note(words.replacen("error:", "heda:", 1).trim_end());
                ExitCode::from(2)
            }
            // Help and version were asked for.
            false => match error.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            },
        })
}

/// Runs the chosen command.
pub(crate) fn run(program: &Program, typed: Typed) -> Result<(), Error> {
    let arguments = match typed {
        Typed::Usual(arguments) => arguments,
        Typed::Extra(place, options, matches) => {
            options.apply();
            begin(false, false);
            let text = (program.extras[place].run)(&matches)?;
            return output::print_text(&text);
        }
    };
    arguments.output.apply();
    let command = arguments.command;
    begin(command.stops_by_itself(), command.serves());
    match command {
        Command::Init(arguments) => init::run(arguments),
        Command::Invite(arguments) => invite::run(&arguments),
        Command::Provider(arguments) => provider::run(arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Publish(arguments) => publish::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Score(arguments) => score::run(&arguments),
        Command::Reference(arguments) => reference::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, program),
        Command::Man(arguments) => man::run(&arguments, program),
    }
}

/// Handlers and the log, unless the command has its own.
fn begin(stops_by_itself: bool, serves: bool) {
    if !stops_by_itself {
        // Without a handler the system ends the process, which shells tell as 130 as well.
        let _ = exit_on_interrupt(INTERRUPTED, || {
            crate::progress::erase();
            output::fail(&"interrupted");
        });
    }
    if output::verbosity() > 0 && !serves {
        start_log(LogFormat::Text, output::verbosity() - 1);
    }
}

impl Command {
    /// Whether it serves, and logs by options of its own.
    fn serves(&self) -> bool {
        matches!(self, Self::Provider(provider) if provider.serves())
    }

    /// Whether it comes to a good end by itself when it is interrupted.
    fn stops_by_itself(&self) -> bool {
        matches!(self, Self::Train(_)) || self.serves()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Every command of the program and its path, but not clap's `help`.
    fn commands() -> Vec<(String, clap::Command)> {
        fn below(path: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
            found.push((path.to_owned(), command.clone()));
            let inner = command.get_subcommands();
            for command in inner.filter(|command| command.get_name() != "help") {
                below(&format!("{path} {}", command.get_name()), command, found);
            }
        }
        let mut found = Vec::new();
        below("heda", &Arguments::command(), &mut found);
        found
    }

    #[test]
    fn the_commands_are_well_formed() {
        Arguments::command().debug_assert();
        assert!(commands().len() > 25);
    }

    #[test]
    fn every_command_has_an_example_that_names_it() {
        for (path, command) in commands() {
            let after = command.get_after_help().map(ToString::to_string);
            let after = after.unwrap_or_default();
            let lines = after
                .lines()
                .skip_while(|line| *line != "Examples:")
                .skip(1);
            let mut lines = lines.map(str::trim_start);
            assert!(lines.any(|line| line.starts_with(&path)), "{path}: {after}");
        }
    }

    /// Words that may be a file of one command and something else of another.
    const TWO_KINDS: [&str; 2] = ["job", "out"];

    #[test]
    fn every_flag_has_one_spelling_and_one_placeholder() {
        let mut placeholders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, command) in commands() {
            for argument in command.get_arguments() {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                if argument.get_action().takes_values() {
                    let names = argument.get_value_names().unwrap_or_default();
                    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
                    placeholders
                        .entry(long.to_owned())
                        .or_default()
                        .insert(names.join(" "));
                }
                let help = argument.get_help().map(ToString::to_string);
                let help = help.unwrap_or_default();
                assert!(
                    !help.is_empty() && !help.ends_with('.'),
                    "{path} --{long}: {help}"
                );
            }
        }
        for (long, names) in &placeholders {
            let most = if TWO_KINDS.contains(&long.as_str()) {
                2
            } else {
                1
            };
            assert!(names.len() <= most, "--{long}: {names:?}");
            let shown = names
                .iter()
                .all(|name| !name.is_empty() && *name == name.to_uppercase());
            assert!(shown, "--{long}: {names:?}");
        }
        let plain = |name: &String| name.replace('-', "");
        let distinct: BTreeSet<String> = placeholders.keys().map(plain).collect();
        assert_eq!(
            distinct.len(),
            placeholders.len(),
            "two spellings of one flag"
        );
    }

    #[test]
    fn the_version_says_what_was_built() {
        let version = Arguments::command().render_version();
        assert!(version.starts_with(concat!("heda ", env!("CARGO_PKG_VERSION"), " (")));
        for feature in ["parquet", "terminal"] {
            let on = match feature {
                "parquet" => cfg!(feature = "parquet"),
                _ => cfg!(feature = "terminal"),
            };
            assert_eq!(version.contains(feature), on, "{version}");
        }
    }

    #[test]
    fn the_readme_has_the_same_exit_codes() {
        let readme = include_str!("../../../../README.md");
        let (_, codes) = AFTER_HELP.split_once("Exit codes:\n").unwrap();
        assert!(codes.lines().count() >= 7);
        for line in codes.lines() {
            let (code, meaning) = line.trim().split_once(' ').unwrap();
            let row = format!("| {code} | {} |\n", meaning.trim());
            assert!(readme.contains(&row), "{row}");
        }
    }
}
