//! Choosers that cheat, and what the sender does about it. Every kind of cheating that the sources
//! name is here: trees that fit only some Δ, columns that stand for different choices, wrong answers
//! to the challenge, and messages that were moved, repeated or cut.

use super::extension::Draft;
use super::field::bit_mask;
use super::request::{Request, RequestShape};
use super::stream::BLOCK_WORDS;
use super::tests::{bit_pads, field, rng, session};
use super::*;

const ROWS: usize = 300;

/// The setup with a third message that `spoil` changed, and the Δ that the sender drew.
fn spoilt_setup(
    bits: u32,
    seed: u64,
    spoil: impl FnOnce(&mut Vec<u8>),
) -> (Vec<u8>, Chooser, Result<Sender, TransferError>) {
    let (field, rng) = (field(bits), &mut rng(seed));
    let (chooser, first) = ChooserSetup::start(field, b"test", rng);
    let (sender, second) = SenderSetup::answer(field, b"test", &first, rng);
    let delta = sender.delta().to_vec();
    let mut grown = chooser.grow(&second, rng).unwrap();
    let mut bytes = grown.third.to_bytes();
    spoil(&mut bytes);
    grown.third = SetupThird::from_bytes(field, &bytes).unwrap();
    let result = sender.finish(&grown.third);
    (delta, grown.ready(), result)
}

#[test]
fn a_tree_spoilt_for_one_side_passes_only_if_delta_takes_the_other() {
    let mut passed = 0;
    for transfer in (0..128).step_by(9) {
        for side in 0..2 {
            let at = 32 * transfer + 16 * side + 3;
            let (delta, chooser, result) = spoilt_setup(4, 20, |bytes| bytes[at] ^= 8);
            let bit = usize::from(delta[transfer / 4] >> (3 - transfer % 4) & 1);
            // The sender reads the offer of its own bit only.
            assert_eq!(result.is_ok(), bit != side);
            match result {
                Err(error) => {
                    assert_eq!(error, TransferError::InconsistentTrees);
                    assert!(error.is_cheating());
                }
                Ok(sender) => {
                    passed += 1;
                    // A right guess changes nothing else.
                    let (own, pairs) = bit_pads(&mut (chooser, sender), &[true; ROWS], 16);
                    assert!(own.iter().zip(&pairs).all(|(own, pair)| *own == pair[1]));
                }
            }
        }
    }
    assert_eq!(passed, 15);
}

#[test]
fn commitments_and_their_digest_are_bound_to_the_trees() {
    let offers = 32 * field(6).base_transfers();
    let length = SetupThird::bytes(field(6));
    for at in [offers, offers + 31, length - 33, length - 32, length - 1] {
        let (_, _, result) = spoilt_setup(6, 21, |bytes| bytes[at] ^= 1);
        assert_eq!(
            result.map(|_| ()).unwrap_err(),
            TransferError::InconsistentTrees
        );
    }
    // The offers of two trees exchanged as a whole.
    let (_, _, result) = spoilt_setup(6, 21, |bytes| {
        let (first, second) = bytes.split_at_mut(6 * 32);
        first.swap_with_slice(&mut second[..6 * 32]);
    });
    assert_eq!(
        result.map(|_| ()).unwrap_err(),
        TransferError::InconsistentTrees
    );
    assert!(spoilt_setup(6, 21, |_| ()).2.is_ok());
}

/// A chooser whose column of `tree` stands for choices that differ from the others' in some rows,
/// and that answers as if Δ were `guess` there.
struct Split {
    tree: usize,
    guess: u8,
}

impl Split {
    fn spoil(&self, draft: &mut Draft, bits: usize, planes: usize, column_bytes: usize) {
        // One block. The difference is in the lowest plane, in rows 5 and 9.
        let difference = 1u128 << 5 | 1 << 9;
        let first = (self.tree - 1) * planes * column_bytes;
        for (byte, change) in draft.parts[0][first..]
            .iter_mut()
            .zip(difference.to_le_bytes())
        {
            *byte ^= change;
        }
        for bit in 0..bits {
            let plane = (self.tree * bits + bit) * BLOCK_WORDS;
            draft.v[plane] ^= difference & bit_mask(self.guess, bit);
        }
    }
}

#[test]
fn columns_that_differ_pass_only_with_the_right_guess_at_delta() {
    const BITS: usize = 3;
    for tree in [1, 20, 42] {
        for planes in [1, BITS] {
            let mut passed = Vec::new();
            for guess in 0..1 << BITS {
                let (mut chooser, mut sender) = session(BITS as u32, 22);
                let shape = RequestShape::new(field(BITS as u32), planes, ROWS).unwrap();
                let mut draft = chooser.draft(shape).unwrap();
                let column_bytes = ROWS.div_ceil(8) + 16;
                Split { tree, guess }.spoil(&mut draft, BITS, planes, column_bytes);
                let (request, _, _) = chooser.close(draft);
                let delta = sender.delta()[tree];
                let result = sender.accept(&request).map(|_| ());
                assert_eq!(result.is_ok(), guess == delta);
                if let Err(error) = result {
                    assert_eq!(error, TransferError::InconsistentRequest);
                    assert!(sender.is_poisoned());
                    // Whatever comes next, honest or not, is refused.
                    let (request, _) = chooser.extend_bits(1).unwrap();
                    assert_eq!(
                        sender.accept_bits(&request).unwrap_err(),
                        TransferError::Poisoned
                    );
                } else {
                    passed.push(guess);
                }
            }
            assert_eq!(passed.len(), 1);
        }
    }
}

#[test]
fn a_column_that_differs_without_a_guess_is_caught_in_every_tree() {
    let mut caught = 0;
    for tree in 1..field(6).trees() {
        let (mut chooser, mut sender) = session(6, 23);
        let mut draft = chooser
            .draft(RequestShape::new(field(6), 1, ROWS).unwrap())
            .unwrap();
        let column_bytes = ROWS.div_ceil(8) + 16;
        Split { tree, guess: 0 }.spoil(&mut draft, 6, 1, column_bytes);
        let (request, _, _) = chooser.close(draft);
        // A guess of zero is right for one tree of 64.
        let right = sender.delta()[tree] == 0;
        assert_eq!(sender.accept(&request).is_ok(), right);
        caught += usize::from(!right);
    }
    assert!(caught >= 18, "{caught} of 21");
}

#[test]
fn other_choices_than_those_of_the_first_tree_are_caught() {
    // The chooser answers for u + e everywhere, but tree 0 stands for u.
    let (mut chooser, mut sender) = session(6, 24);
    let mut draft = chooser
        .draft(RequestShape::new(field(6), 1, ROWS).unwrap())
        .unwrap();
    draft.u[1] ^= 1;
    let (request, _, _) = chooser.close(draft);
    assert_eq!(
        sender.accept(&request).map(|_| ()),
        Err(TransferError::InconsistentRequest)
    );
}

#[test]
fn every_byte_of_a_request_counts() {
    let honest = {
        let (mut chooser, _) = session(6, 25);
        chooser.extend_bits(9).unwrap().0.to_bytes()
    };
    let (_, mut sender) = session(6, 25);
    let request = |bytes: &[u8]| BitRequest::from_bytes(field(6), 9, bytes).unwrap();
    for at in 0..8 {
        let mut bytes = honest.clone();
        bytes[at] ^= 1;
        let error = sender.accept_bits(&request(&bytes)).unwrap_err();
        assert!(matches!(
            error,
            TransferError::OutOfStep { expected: 0, .. }
        ));
        assert!(!error.is_cheating() && !sender.is_poisoned());
    }
    assert!(sender.accept_bits(&request(&honest)).is_ok());
    let mut setups = (8..honest.len()).step_by(23).peekable();
    assert!(setups.peek().is_some());
    for at in setups.chain([honest.len() - 33, honest.len() - 1]) {
        let (_, mut sender) = session(6, 25);
        let mut bytes = honest.clone();
        bytes[at] ^= 0x10;
        let error = sender.accept_bits(&request(&bytes)).unwrap_err();
        assert_eq!(error, TransferError::InconsistentRequest);
        assert!(sender.is_poisoned());
    }
}

#[test]
fn requests_are_taken_once_in_order_and_in_their_session() {
    let (mut chooser, mut sender) = session(6, 26);
    let (first, _) = chooser.extend_bits(10).unwrap();
    let (second, _) = chooser.extend_indices(10).unwrap();
    let early = sender.accept_indices(&second).unwrap_err();
    assert_eq!(
        early,
        TransferError::OutOfStep {
            got: 10,
            expected: 0
        }
    );
    sender.accept_bits(&first).unwrap();
    let again = sender.accept_bits(&first).unwrap_err();
    assert_eq!(
        again,
        TransferError::OutOfStep {
            got: 0,
            expected: 10
        }
    );
    // The same columns under the number that is due.
    let mut moved = first.to_bytes();
    moved[0] = 10;
    let moved = BitRequest::from_bytes(field(6), 10, &moved).unwrap();
    assert_eq!(
        sender.accept_bits(&moved).unwrap_err(),
        TransferError::InconsistentRequest
    );
    let (mut other, _) = session(6, 27);
    let (_, mut sender) = session(6, 26);
    let (foreign, _) = other.extend_bits(10).unwrap();
    assert!(sender.accept_bits(&foreign).unwrap_err().is_cheating());
}

#[test]
fn a_request_for_one_kind_or_field_is_not_taken_for_another() {
    let (mut chooser, mut sender) = session(6, 28);
    let (request, _) = chooser.extend_bits(16).unwrap();
    let bytes = request.to_bytes();
    let wrong = |got, expected| TransferError::WrongLength {
        what: "the request",
        got,
        expected,
    };
    for (result, expected) in [
        (
            IndexRequest::from_bytes(field(6), 16, &bytes).map(|_| ()),
            2286 + 118,
        ),
        (
            BitRequest::from_bytes(field(6), 17, &bytes).map(|_| ()),
            455,
        ),
        (
            BitRequest::from_bytes(field(8), 16, &bytes).map(|_| ()),
            326,
        ),
    ] {
        assert_eq!(result, Err(wrong(434, expected)));
    }
    // Same length, other number of rows: 9 to 16 rows have 2 bytes a column.
    let fewer = BitRequest::from_bytes(field(6), 15, &bytes).unwrap();
    assert!(sender.accept_bits(&fewer).unwrap_err().is_cheating());
    let request =
        Request::from_bytes(RequestShape::new(field(5), 1, 0).unwrap(), &[0; 456]).unwrap();
    let (_, mut sender) = session(6, 28);
    assert!(sender.accept(&request).is_err());
}

/// The image of u travels. Its masking rows enter it as they are, so it tells nothing of the others.
#[test]
fn the_answer_to_a_challenge_is_masked() {
    for planes in [1, 6] {
        let shape = RequestShape::new(field(6), planes, ROWS).unwrap();
        let image = |change: u128| -> Vec<u128> {
            let (mut chooser, _) = session(6, 29);
            let mut draft = chooser.draft(shape).unwrap();
            for plane in draft.u.chunks_exact_mut(BLOCK_WORDS) {
                plane[shape.row_words()] ^= change;
            }
            let (request, _, _) = chooser.close(draft);
            read_words(request.parts().2).collect()
        };
        let (plain, changed) = (image(0), image(77));
        assert_eq!(plain.len(), planes);
        assert!(plain.iter().zip(&changed).all(|(a, b)| a ^ b == 77));
    }
}

/// Two requests of a session share no piece of a stream: neither their columns nor the choices that
/// they give are related.
#[test]
fn no_stream_is_used_twice() {
    let (mut chooser, _) = session(6, 30);
    let shape = RequestShape::new(field(6), 1, 8 * 1024).unwrap();
    let mut drafts = Vec::new();
    for _ in 0..2 {
        let (request, u, _) = chooser.extend(shape).unwrap();
        drafts.push((request.parts().1.to_vec(), u.to_vec()));
    }
    let columns = drafts[0].0.iter().zip(&drafts[1].0);
    let apart: u32 = columns.map(|(a, b)| (a ^ b).count_ones()).sum();
    let bits = 8.0 * drafts[0].0.len() as f64;
    let off = (f64::from(apart) - bits / 2.0) / (bits / 4.0).sqrt();
    assert!(off.abs() < 5.0, "{off} deviations");
    let choices = drafts[0].1.iter().zip(&drafts[1].1);
    let apart: u32 = choices.map(|(a, b)| (a ^ b).count_ones()).sum();
    assert!(apart.abs_diff(4096) < 250, "{apart} of 8192 choices differ");
}

/// Nor are two blocks of one request made from the same words of the streams, in any tree.
#[test]
fn no_stream_is_used_twice_within_a_request() {
    let (chooser, _) = session(4, 31);
    for planes in [1, 4] {
        let shape = RequestShape::new(field(4), planes, 3 * 64 * 128).unwrap();
        let draft = chooser.draft(shape).unwrap();
        let (u, v) = (draft.u.chunks_exact(64), draft.v.chunks_exact(64));
        let planes: std::collections::BTreeSet<&[u128]> = u.clone().chain(v.clone()).collect();
        // The last block has masking rows and no others; its words beyond them are not used.
        let whole = (u.len() + v.len()) * 3 / 4;
        assert!(
            planes.len() > whole,
            "{} of {}",
            planes.len(),
            u.len() + v.len()
        );
        let words = draft
            .u
            .iter()
            .chain(draft.v.iter())
            .filter(|word| **word != 0);
        let all = words.clone().count();
        let distinct: std::collections::BTreeSet<&u128> = words.collect();
        assert_eq!(distinct.len(), all);
    }
}
