//! The program `heda-repro`: the command line of Heda with engine `paper`, which protects little, the
//! experiments and a measurement of Paillier's cryptosystem.

mod paillier;

use clap::{Args, FromArgMatches, Subcommand};
use heda::Error;
use heda_cli::{Extra, Program};
use heda_experiments::Experiment;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any job is read: a job names its engine.
    heda_paper::engine::paper();
    heda_mechanisms::register();
    heda_cli::run(Program {
        name: "heda-repro",
        extras: extras(),
    })
}

fn extras() -> Vec<Extra> {
    let experiment = clap::Command::new("experiment")
        .about("Reproduce the paper's tables and figures")
        .subcommand_required(true)
        .arg_required_else_help(true);
    let paillier = clap::Command::new("paillier");
    vec![
        Extra {
            command: Experiment::augment_subcommands(experiment),
            run: |matches| {
                let experiment = Experiment::from_arg_matches(matches);
                heda_experiments::run(&experiment.map_err(Error::bug)?)
            },
        },
        Extra {
            command: paillier::Arguments::augment_args(paillier),
            run: |matches| {
                let arguments = paillier::Arguments::from_arg_matches(matches);
                paillier::run(&arguments.map_err(Error::bug)?)
            },
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed_and_say_what_they_do() {
        let extras = extras();
        let names: Vec<&str> = extras.iter().map(|e| e.command.get_name()).collect();
        assert_eq!(names, ["experiment", "paillier"]);
        for extra in extras {
            assert!(extra.command.get_about().is_some(), "{}", extra.command);
            extra.command.debug_assert();
        }
    }
}
