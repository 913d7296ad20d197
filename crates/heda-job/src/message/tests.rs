//! Every message, there and back.

use super::*;
use crate::proposal::testing::proposal;
use heda_learn::scaling::{Centre, Window};
use heda_learn::target::TargetScale;

fn round_trip<M: Message + PartialEq + std::fmt::Debug>(message: M, known: M::Known) {
    let bytes = message.encode().unwrap();
    assert!(bytes.len() <= M::limit(known), "{}", M::NAME);
    assert_eq!(M::decode(&bytes, known).unwrap(), message);
}

#[test]
fn every_message_round_trips_within_its_limit() {
    round_trip(proposal(), ());
    let announcement = Announcement(vec![7; ANNOUNCEMENT_BYTES]);
    let acceptance = Acceptance {
        rows: 3,
        held_out: 1,
        announcement,
        ledger: Some(LedgerHead {
            epoch: "ab".repeat(16),
            entry: 7,
            hash: "cd".repeat(32),
        }),
        next_step: 4,
        trusted_most: 2,
        persons: true,
    };
    round_trip(acceptance, ());
    round_trip(Announcements(vec![1; 2 * ANNOUNCEMENT_BYTES]), 2);
    let agreement = Agreement {
        trusted: 1,
        persons: false,
        first_step: 9,
    };
    round_trip(agreement, ());
    round_trip(Reserved {}, ());
    for left in [None, Some(0.25)] {
        round_trip(Account { charged: 7, left }, ());
    }
    round_trip(Contribution(vec![1, 2, 3]), 3);
    let split = Split {
        encrypted: vec![1],
        published: vec![0],
        dropped: vec![2],
    };
    round_trip(split, ());
    round_trip(Scale::Ask { fraction_bits: 30 }, ());
    let windows = vec![
        Window::WHOLE,
        Window {
            low: 0.1,
            high: 0.3,
        },
    ];
    let told = |label, weights| Scale::Told {
        windows: windows.clone(),
        label,
        weights,
    };
    round_trip(told(None, Vec::new()), ());
    let label = TargetScale::of(&[1, 5, 9]);
    round_trip(told(label, vec![[0.5, 3.0]]), ());
    round_trip(Scale::AskNoisy { step: 1 }, ());
    let centres = vec![Centre {
        mean: 0.1,
        deviation: 0.3,
    }];
    round_trip(Scale::Centres { centres }, ());
    round_trip(Sums(vec![1, 2, 3]), 3);
    for command in [
        Command::Finish,
        Command::Evaluate { step: 5, number: 1 },
        Command::Gradient {
            step: 6,
            iteration: 1,
            class: 2,
            batch: 3,
            row_bits: 4,
        },
    ] {
        round_trip(command, ());
    }
}

#[test]
fn nonsense_is_refused_and_tags_are_told_apart() {
    assert!(
        Acceptance::decode(
            b"{\"rows\": 1, \"held_out\": 0, \"announcement\": \"zz\"}",
            ()
        )
        .is_err()
    );
    assert!(Command::decode(b"\"begin\"", ()).is_err());
    assert!(Split::decode(b"{\"encrypted\": [-1]}", ()).is_err());
    assert!(Announcements::decode(&[0; 5], 1).is_err());
    assert!(Scale::decode(b"{\"ask\": {}}", ()).is_err());
    assert!(Sums::decode(&[0; 5], 6).is_err());
    let tags = [
        Proposal::TAG,
        Acceptance::TAG,
        Announcements::TAG,
        Contribution::TAG,
        Split::TAG,
        Scale::TAG,
        Sums::TAG,
        Charge::TAG,
        Release::TAG,
        Agreement::TAG,
        Reserved::TAG,
        Command::TAG,
        Account::TAG,
    ];
    let mut sorted = tags.to_vec();
    sorted.dedup();
    assert_eq!(sorted.len(), tags.len());
    assert!(tags.is_sorted());
}

#[test]
fn a_peer_of_another_version_is_told_which_one_it_needs_whatever_its_fields_are() {
    let other = PROTOCOL_VERSION + 1;
    let later = format!("{{\"version\": {other}, \"shape\": \"unheard of\"}}");
    for proposal in [later, "{\"version\": 0}".to_owned()] {
        let refused = Proposal::decode(proposal.as_bytes(), ()).unwrap_err();
        let words = refused.to_string();
        let ours = format!("this provider {PROTOCOL_VERSION}");
        assert!(
            words.contains(&ours) && words.contains("upgrade"),
            "{words}"
        );
    }
    assert!(Proposal::decode(b"{}", ()).is_err());
}
