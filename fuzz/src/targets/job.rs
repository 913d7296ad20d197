//! Every message of a job, where it arrives: a recorded job is played again to one party, and one
//! message of the recording is replaced.
//!
//! An input is the number of the message to replace (two bytes), its tag and its body. What follows from a
//! message is reached too, not only its decoder.

use crate::driver::{Target, Verdict};
use crate::play::{Message, Play};
use heda_job::engine::Engine;
use heda_paper::engine::paper;
use std::cell::Cell;

/// A party is played a whole job for every input.
const SHORT_RUN: u32 = 40;
/// A job of engine `paper` makes keys of real length.
const PAPER_RUN: u32 = 5;

/// One seed for each message.
fn seeds(messages: &[Message]) -> Vec<Vec<u8>> {
    let numbered = (0u16..).zip(messages);
    numbered
        .map(|(number, message)| [&number.to_be_bytes(), &message[..]].concat())
        .collect()
}

/// The recording with one message replaced; none if the input does not say which.
fn replaced(mut messages: Vec<Message>, input: &[u8]) -> Option<Vec<Message>> {
    let (number, message) = input.split_first_chunk()?;
    *messages.get_mut(usize::from(u16::from_be_bytes(*number)))? = message.to_vec();
    Some(messages)
}

/// A target for the messages that a party hears. The recording itself, which is the same for every
/// seed, is played once.
fn hears(recorded: Vec<Message>, play: impl Fn(Vec<Message>) -> Verdict + 'static) -> Target {
    let (seeds, played) = (seeds(&recorded), Cell::new(false));
    let decode = move |input: &[u8]| match replaced(recorded.clone(), input) {
        Some(messages) if messages == recorded && played.replace(true) => Verdict::Accepted,
        Some(messages) => play(messages),
        None => Verdict::Rejected,
    };
    Target::new(seeds, decode)
}

/// Messages of the data user to the first provider.
fn provider_hears(play: Play) -> Target {
    hears(play.to_provider.clone(), move |messages| {
        play.serve(messages).into()
    })
}

/// Messages of the first provider to the data user.
fn user_hears(play: Play) -> Target {
    hears(play.to_user[0].clone(), move |messages| {
        let mut scripts = play.to_user.clone();
        scripts[0] = messages;
        play.train(scripts).into()
    })
}

/// One provider ranks the features for all.
pub(super) fn chosen_user() -> Target {
    user_hears(Play::record_chosen(Engine::RESIDENT)).short_run(SHORT_RUN)
}

pub(super) fn paper_provider() -> Target {
    provider_hears(Play::record(paper())).short_run(PAPER_RUN)
}

pub(super) fn paper_user() -> Target {
    user_hears(Play::record(paper())).short_run(PAPER_RUN)
}

pub(super) fn resident_provider() -> Target {
    provider_hears(Play::record(Engine::RESIDENT)).short_run(SHORT_RUN)
}

pub(super) fn resident_user() -> Target {
    user_hears(Play::record(Engine::RESIDENT)).short_run(SHORT_RUN)
}
