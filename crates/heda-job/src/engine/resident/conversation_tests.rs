//! Conversations from seeds: known answers for every message, what each source of randomness changes, and
//! what parties that were told different things get.

use super::conversation::{Conversation, HELD_OUT, Heard, Kind, ROWS, promise};
use super::{CountNoise, Noise, count_noise, noise, tag};
use crate::engine::{Columns, Terms};
use crate::message::Command;
use crate::plan::JobPlan;
use crate::proposal::Proposal;
use heda_blocks::channel::Recorded;
use heda_crypto::random::Randomness;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// One message, as the file of known answers has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    job: String,
    to: String,
    tag: u8,
    bytes: usize,
    sha256: String,
}

fn known(kind: Kind, to: &str, heard: &[Recorded]) -> Vec<Known> {
    let one = |message: &Recorded| Known {
        job: format!("{kind:?}").to_lowercase(),
        to: to.to_owned(),
        tag: message.tag,
        bytes: message.body.len(),
        sha256: Sha256::digest(&message.body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    };
    heard.iter().map(one).collect()
}

/// S and R1 to R6 of two gradients and all evaluations, for every kind of job: any other byte is another
/// protocol. If that is meant, raise its version and write the file anew with `UPDATE_VECTORS=1`.
#[test]
fn every_message_of_the_engine_is_as_it_was() {
    let mut found = Vec::new();
    for kind in Kind::ALL {
        let heard = Conversation::new(kind).hold().unwrap();
        heard.served.unwrap();
        found.extend(known(kind, "provider", &heard.by_provider));
        found.extend(known(kind, "user", &heard.by_user));
    }
    let tags: BTreeSet<u8> = found.iter().map(|known| known.tag).collect();
    assert!((tag::SETUP..=tag::SUM).all(|tag| tags.contains(&tag)));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/resident.json");
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = serde_json::to_string_pretty(&found).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap();
    let expected: Vec<Known> = serde_json::from_str(&text).unwrap();
    assert_eq!(found.len(), expected.len());
    for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "message {place}");
    }
}

/// Who draws for a purpose, in which job it shows, and in which message first.
const PURPOSES: [(Who, &str, Kind, u8); 11] = [
    (Who::Provider, "transfer keys", Kind::Exact, tag::SETUP),
    (Who::Provider, "resident trees", Kind::Exact, tag::COLUMNS),
    (Who::Provider, "resident coins", Kind::Exact, tag::SYMBOLS),
    (Who::Provider, "resident noise", Kind::Private, tag::SUM),
    (Who::Provider, "resident counts", Kind::Exact, tag::COLUMNS),
    (
        Who::Provider,
        "resident noise of counts",
        Kind::Private,
        tag::PAYLOAD,
    ),
    (
        Who::Provider,
        "resident errors",
        Kind::Numeric,
        tag::COLUMNS,
    ),
    (Who::User, "transfer keys", Kind::Exact, tag::SETUP),
    (Who::User, "resident places", Kind::Exact, tag::PREPROCESS),
    (
        Who::User,
        "resident rounding",
        Kind::Published,
        tag::QUESTION,
    ),
    (Who::User, "resident held-out", Kind::Exact, tag::PREPROCESS),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Provider,
    User,
}

/// What the other party heard.
fn heard(who: Who, heard: &Heard) -> &[Recorded] {
    match who {
        Who::Provider => &heard.by_user,
        Who::User => &heard.by_provider,
    }
}

/// A source that were constant, for trees, places, coins or noise, would hide nothing, and every sum
/// would still be right. So for each purpose alone: another seed changes what is sent for it and nothing before.
#[test]
fn every_purpose_draws_from_its_own_randomness() {
    for (who, purpose, kind, tag) in PURPOSES {
        let base = Conversation::new(kind);
        let other = |source: Randomness, own: Who| match own == who {
            true => source.except(purpose, 99),
            false => source,
        };
        let changed = Conversation {
            user: other(base.user.clone(), Who::User),
            provider: other(base.provider.clone(), Who::Provider),
            ..Conversation::new(kind)
        };
        let (base, changed) = (base.hold().unwrap(), changed.hold().unwrap());
        let (before, after) = (heard(who, &base), heard(who, &changed));
        assert_eq!(before.len(), after.len(), "{purpose}");
        let first = before.iter().zip(after).find(|(a, b)| a != b);
        let Some((first, _)) = first else {
            panic!("{purpose} of {who:?} changes nothing");
        };
        assert_eq!(first.tag, tag, "{purpose} of {who:?}");
    }
}

/// The columns of R2 are hidden by the trees and by nothing else: other trees, other bytes nearly everywhere.
#[test]
fn other_trees_hide_every_column_anew() {
    let base = Conversation::new(Kind::Exact);
    let provider = base.provider.clone().except("resident trees", 99);
    let changed = Conversation {
        provider,
        ..Conversation::new(Kind::Exact)
    };
    let columns = |conversation: Conversation| -> Vec<Vec<u8>> {
        let heard = conversation.hold().unwrap().by_user.into_iter();
        let columns = heard.filter(|message| message.tag == tag::COLUMNS);
        columns.map(|message| message.body).collect()
    };
    let (base, changed) = (columns(base), columns(changed));
    // Two gradients and an evaluation, which has its own.
    assert_eq!((base.len(), changed.len()), (3, 3));
    for (before, after) in base.iter().zip(&changed).take(2) {
        for (before, after) in before.chunks(64).zip(after.chunks(64)) {
            let equal = before.iter().zip(after).filter(|(a, b)| a == b).count();
            assert!(
                equal * 4 < before.len().max(16),
                "{equal} of {} bytes",
                before.len()
            );
        }
    }
    assert_eq!(base[2], changed[2]);
}

/// All purposes that the engine's sources name are in the list above.
#[test]
fn no_purpose_of_randomness_is_missing_from_the_list() {
    let listed: BTreeSet<&str> = PURPOSES.iter().map(|(_, purpose, ..)| *purpose).collect();
    let mut found = BTreeSet::new();
    for source in [
        include_str!("serve.rs"),
        include_str!("ask.rs"),
        include_str!("regression.rs"),
        include_str!("evaluate.rs"),
        include_str!("provider.rs"),
        include_str!("user.rs"),
        include_str!("scores.rs"),
        include_str!("symbols.rs"),
        include_str!("payload.rs"),
    ] {
        for call in source.split(".fork(").skip(1) {
            let argument = call.trim_start().split(',').next().unwrap();
            match argument.strip_prefix('"') {
                Some(purpose) => found.insert(purpose.trim_end_matches('"').to_owned()),
                None => {
                    assert_eq!(argument, "ERRORS_MASK", "a purpose without a name");
                    found.insert("resident errors".to_owned())
                }
            };
        }
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, listed);
}

/// What travels in advance was cut by the number of rows, and the sums' width with it: a data user that named
/// another one later would have sums cut at another place.
#[test]
fn the_number_of_rows_cannot_change_within_a_session() {
    let gradient = |row_bits| Command::Gradient {
        step: 2,
        iteration: 2,
        class: 0,
        batch: 0,
        row_bits,
    };
    let commands: [fn(u32) -> Command; 3] = [
        |bits| Command::Gradient {
            step: 2,
            iteration: 2,
            class: 0,
            batch: 0,
            row_bits: bits + 1,
        },
        |bits| Command::Gradient {
            step: 2,
            iteration: 2,
            class: 0,
            batch: 0,
            row_bits: bits - 1,
        },
        |_| Command::Gradient {
            step: 2,
            iteration: 2,
            class: 0,
            batch: 0,
            row_bits: 48,
        },
    ];
    assert_eq!(commands[0](6), gradient(7));
    for command in commands {
        let conversation = Conversation {
            command: Some(command),
            ..Conversation::new(Kind::Exact)
        };
        let heard = conversation.hold().unwrap();
        let refused = heard.served.unwrap_err().to_string();
        assert!(
            refused.contains("bits for the number of all rows"),
            "{refused}"
        );
        assert_eq!(heard.gradients.len(), 2, "what came before was answered");
    }
}

/// A large batch travels in blocks, the first of them ahead of the gradient and the choices of many ahead of payloads.
/// It is the same gradient, but for coins of its own.
#[test]
fn a_gradient_in_twenty_blocks_is_that_of_one() {
    let whole = Conversation::new(Kind::Exact).hold().unwrap();
    let cut = Conversation {
        block_rows: Some(2),
        ..Conversation::new(Kind::Exact)
    };
    let cut = cut.hold().unwrap();
    cut.served.unwrap();
    for (whole, cut) in whole.gradients.iter().zip(&cut.gradients) {
        for (whole, cut) in whole.iter().zip(cut) {
            assert!((whole - cut).abs() < 3.0, "{whole} {cut}");
        }
    }
    assert_ne!(whole.gradients, cut.gradients);
    assert_eq!(
        whole.counts, cut.counts,
        "held-out rows are counted exactly"
    );
    let blocks = (ROWS - HELD_OUT) / 2;
    for (tag, heard) in [
        (tag::PREPROCESS, &cut.by_provider),
        (tag::COLUMNS, &cut.by_user),
        (tag::CHOICES, &cut.by_provider),
        (tag::PAYLOAD, &cut.by_user),
    ] {
        let count = heard.iter().filter(|message| message.tag == tag).count();
        // Two gradients and one evaluation.
        assert_eq!(count, 2 * blocks + 1, "{tag:#04x}");
    }
}

/// A promise that differs so little that all messages keep their lengths.
fn other_promise(told: &Proposal) -> Proposal {
    let columns = Columns {
        width: super::conversation::WIDTH,
        hidden: Vec::new(),
        open: Vec::new(),
    };
    let all = |proposal: &Proposal| -> [Noise; 3] {
        let plan = JobPlan::of(proposal, columns.width).unwrap();
        let terms = Terms {
            proposal,
            features: &[],
            columns: &columns,
            plan: plan.as_ref(),
        };
        let CountNoise { right, table } = count_noise(&terms).unwrap();
        [noise(&terms).unwrap(), right, table]
    };
    let other = |thousandths: u32| {
        let epsilon = f64::from(1000 + thousandths) / 1000.0;
        let promise = promise(&epsilon.to_string());
        let job = told.job.with(|raw| raw.privacy = Some(promise));
        Proposal {
            job: job.unwrap(),
            ..told.clone()
        }
    };
    let honest = all(told);
    let differs = |proposal: &Proposal| {
        let mut pairs = all(proposal).into_iter().zip(&honest);
        pairs.all(|(other, own)| other.bits() == own.bits() && other.share != own.share)
    };
    (1..2000).map(other).find(differs).unwrap()
}

/// Providers that were told different promises add noise for different plans. They share no masks then, so
/// the data user gets neither a gradient nor counts, and nobody's noise can be thinned.
#[test]
fn providers_with_different_plans_give_no_sum() {
    let honest = Conversation::new(Kind::Private);
    let other = other_promise(&honest.told);
    let split = Conversation {
        providers: [honest.told.clone(), other],
        ..Conversation::new(Kind::Private)
    };
    let (honest, split) = (honest.hold().unwrap(), split.hold().unwrap());
    // Noise of a gradient has the same distribution in both; masks that do not cancel are as wide as the sums.
    let largest = |heard: &Heard| {
        let all = heard.gradients.iter().flatten();
        all.fold(0.0f64, |most, sum| most.max(sum.abs()))
    };
    let wrong = split.gradients.iter().flatten();
    let wrong = wrong
        .filter(|sum| sum.abs() > 4.0 * largest(&honest))
        .count();
    assert!(wrong >= 7, "{wrong} of 14 numbers are no sums");
    let rows = |heard: &Heard| {
        let sizes = heard.counts.iter().map(|count| count.abs());
        sizes.fold(0.0f64, f64::max)
    };
    assert!(rows(&honest) < 1e3, "{} rows", rows(&honest));
    assert!(rows(&split) > 1e6, "{} rows", rows(&split));
}
