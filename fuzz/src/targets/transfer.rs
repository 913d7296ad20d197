//! Messages of transfers between parties that may cheat: setup, requests, corrections, trees.
//!
//! Whatever is decoded is encoded as it came, and then used by the party that it is for.

use crate::driver::{Target, Verdict};
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{
    BitCorrections, BitRequest, Chooser, ChooserSetup, FieldBits, IndexCorrections, IndexRequest,
    Sender, SenderSetup, SetupFirst, SetupSecond, SetupThird, TransferError, Tree, TreeOffers,
    path_bits,
};
use rand_core::CryptoRng;

const FIELD: FieldBits = FieldBits::DEFAULT;
const CONTEXT: &[u8] = b"job";
const COUNT: usize = 5;
const HEIGHT: usize = 3;
/// Every input needs a session of its own.
const SHORT_RUN: u32 = 100;

fn rng(purpose: &str) -> impl CryptoRng {
    Randomness::seeded(1).fork(purpose, 0).expect("seeded")
}

struct Begun {
    chooser: ChooserSetup,
    first: SetupFirst,
    sender: SenderSetup,
    second: SetupSecond,
}

fn begin() -> Begun {
    let (chooser, first) = ChooserSetup::start(FIELD, CONTEXT, &mut rng("chooser"));
    let (sender, second) = SenderSetup::answer(FIELD, CONTEXT, &first, &mut rng("sender"));
    Begun {
        chooser,
        first,
        sender,
        second,
    }
}

fn finish() -> (Chooser, SenderSetup, SetupThird) {
    let Begun {
        chooser,
        sender,
        second,
        ..
    } = begin();
    let (chooser, third) = chooser.finish(&second, &mut rng("trees")).expect("our own");
    (chooser, sender, third)
}

fn session() -> (Chooser, Sender) {
    let (chooser, sender, third) = finish();
    (chooser, sender.finish(&third).expect("our own"))
}

/// A target for one message: how it is decoded, encoded, and used.
fn message<T: 'static>(
    seed: Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, TransferError> + 'static,
    encode: fn(&T) -> Vec<u8>,
    used: impl Fn(T) -> Verdict + 'static,
) -> Target {
    let decode = move |input: &[u8]| match decode(input) {
        Ok(message) => {
            assert!(encode(&message) == input);
            used(message)
        }
        Err(_) => Verdict::Rejected,
    };
    Target::new(vec![seed], decode).short_run(SHORT_RUN)
}

pub(super) fn setup_first() -> Target {
    let answer = |first| {
        SenderSetup::answer(FIELD, CONTEXT, &first, &mut rng("sender"));
        Verdict::Accepted
    };
    message(
        begin().first.to_bytes(),
        SetupFirst::from_bytes,
        SetupFirst::to_bytes,
        answer,
    )
}

pub(super) fn setup_second() -> Target {
    let decode = |input: &[u8]| SetupSecond::from_bytes(FIELD, input);
    message(
        begin().second.to_bytes(),
        decode,
        SetupSecond::to_bytes,
        |second| Verdict::from(begin().chooser.finish(&second, &mut rng("trees"))),
    )
}

pub(super) fn setup_third() -> Target {
    let decode = |input: &[u8]| SetupThird::from_bytes(FIELD, input);
    message(
        finish().2.to_bytes(),
        decode,
        SetupThird::to_bytes,
        |third| Verdict::from(finish().1.finish(&third)),
    )
}

pub(super) fn bit_request() -> Target {
    let (request, _) = session().0.extend_bits(COUNT).expect("few");
    let decode = |input: &[u8]| BitRequest::from_bytes(FIELD, COUNT, input);
    message(
        request.to_bytes(),
        decode,
        BitRequest::to_bytes,
        |request| Verdict::from(session().1.accept_bits(&request)),
    )
}

pub(super) fn bit_corrections() -> Target {
    let (_, random) = session().0.extend_bits(COUNT).expect("few");
    let (corrections, _) = random
        .correct(&[true, false, true, true, false])
        .expect("as many");
    let decode = |input: &[u8]| BitCorrections::from_bytes(COUNT, input);
    message(
        corrections.to_bytes(),
        decode,
        BitCorrections::to_bytes,
        |corrections| Verdict::from(corrections.part(1..COUNT)),
    )
}

pub(super) fn index_request() -> Target {
    let (request, _) = session().0.extend_indices(COUNT).expect("few");
    let decode = |input: &[u8]| IndexRequest::from_bytes(FIELD, COUNT, input);
    message(
        request.to_bytes(),
        decode,
        IndexRequest::to_bytes,
        |request| Verdict::from(session().1.accept_indices(&request)),
    )
}

pub(super) fn index_corrections() -> Target {
    let (_, random) = session().0.extend_indices(COUNT).expect("few");
    let (corrections, _) = random.correct(&[0, 1, 2, 3, 4]).expect("as many");
    let decode = |input: &[u8]| IndexCorrections::from_bytes(FIELD, COUNT, input);
    message(
        corrections.to_bytes(),
        decode,
        IndexCorrections::to_bytes,
        |corrections| Verdict::from(corrections.part(1..COUNT)),
    )
}

pub(super) fn tree_offers() -> Target {
    let (mut chooser, mut sender) = session();
    let (request, random) = chooser.extend_bits(HEIGHT).expect("few");
    let keys = sender.accept_bits(&request).expect("our own");
    let (corrections, _) = random
        .correct(&path_bits(&[5], &[HEIGHT]))
        .expect("as many");
    let tree = Tree::grow(&sender.tree_label(0), 7, HEIGHT);
    let offers = keys.offer_trees(&corrections, &[tree]).expect("our own");
    let decode = |input: &[u8]| TreeOffers::from_bytes(HEIGHT, input);
    message(offers.to_bytes(), decode, TreeOffers::to_bytes, |offers| {
        let (mut chooser, _) = session();
        let (_, random) = chooser.extend_bits(HEIGHT).expect("few");
        let (_, chosen) = random
            .correct(&path_bits(&[5], &[HEIGHT]))
            .expect("as many");
        Verdict::from(chosen.open_trees(&[chooser.tree_label(0)], &[HEIGHT], &offers))
    })
}
