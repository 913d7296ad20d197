//! One file a command: its arguments, `run`, and how it prints.

mod bench;
mod demo;
mod evaluate;
mod export;
mod init;
mod invite;
mod plan;
mod predict;
mod provider;
mod publish;
mod reference;
mod score;
mod simulate;
mod train;

use clap::{Parser, Subcommand};
use heda::failure::Failure;

/// Train one classifier on the data of several organisations, without showing each other the
/// data or the model.
#[derive(Debug, Parser)]
#[command(name = "heda", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 2 bad usage or input, 3 refused by policy or budget, \
4 peer or network, 5 interrupted and resumable, 70 a defect of heda.";

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Invite(invite::Arguments),
    Provider(provider::Provider),
    Train(train::Train),
    Demo(demo::Arguments),
    Simulate(simulate::Arguments),
    Predict(predict::Arguments),
    Evaluate(evaluate::Arguments),
    Export(export::Arguments),
    Plan(plan::Arguments),
    Publish(publish::Arguments),
    Bench(bench::Arguments),
    Score(score::Arguments),
    Reference(reference::Arguments),
    #[cfg(feature = "experiments")]
    #[command(subcommand)]
    Experiment(heda_experiments::Experiment),
}

/// Runs the chosen command.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
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
        #[cfg(feature = "experiments")]
        Command::Experiment(experiment) => {
            crate::output::print_text(&heda_experiments::run(&experiment)?)
        }
    }
}
