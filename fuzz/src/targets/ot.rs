//! Messages of oblivious transfer.

use crate::driver::{Target, Verdict};
use heda_crypto::ot::{ChooserSetup, LookupChooser, LookupSender};
use heda_crypto::random::Randomness;
use rand_core::CryptoRng;
use std::cell::RefCell;

const ROWS: usize = 9;
const INDICES: [u16; ROWS] = [0, 1, 2, 3, 4, 5, 6, 7, 0];
const INDEX_BITS: u32 = 3;
const ENTRY_BYTES: usize = 6;

fn rng(purpose: &str) -> impl CryptoRng {
    let source = Randomness::seeded(1);
    source
        .fork(purpose, 0)
        .expect("a seeded source always gives")
}

fn begin() -> (ChooserSetup, Vec<u8>) {
    ChooserSetup::start(&mut rng("chooser"))
}

fn session() -> (LookupChooser, LookupSender) {
    let (setup, first) = begin();
    let (sender, second) = LookupSender::setup(&first, &mut rng("sender")).expect("our own");
    (setup.finish(&second).expect("our own"), sender)
}

fn fill(_: usize, table: &mut [u8]) {
    table.fill(7);
}

/// The chooser's first message.
pub(super) fn setup_first() -> Target {
    let decode = |input: &[u8]| Verdict::from(LookupSender::setup(input, &mut rng("sender")));
    Target::new(vec![begin().1], decode).short_run(200)
}

/// The sender's reply to it.
pub(super) fn setup_second() -> Target {
    let (_, first) = begin();
    let (_, second) = LookupSender::setup(&first, &mut rng("sender")).expect("our own");
    let decode = |input: &[u8]| Verdict::from(begin().0.finish(input));
    Target::new(vec![second], decode).short_run(200)
}

/// A target for a message to the sender, which is at the beginning of a session each time.
fn to_sender(seed: Vec<u8>, decode: fn(&mut LookupSender, &[u8]) -> Verdict) -> Target {
    let sender = RefCell::new(session().1);
    let decode = move |input: &[u8]| {
        let verdict = decode(&mut sender.borrow_mut(), input);
        if verdict == Verdict::Accepted {
            sender.replace(session().1);
        }
        verdict
    };
    Target::new(vec![seed], decode).short_run(200)
}

/// Requests for lookups.
pub(super) fn request() -> Target {
    let (request, _) = session()
        .0
        .request(&INDICES, INDEX_BITS)
        .expect("valid indices");
    to_sender(request, |sender, input| {
        let answer = sender.answer(input, ROWS, INDEX_BITS, ENTRY_BYTES, fill);
        Verdict::from(answer)
    })
}

/// Requests for random transfers.
pub(super) fn random_request() -> Target {
    let (request, _) = session().0.random(&[true; ROWS]).expect("few transfers");
    to_sender(request, |sender, input| {
        Verdict::from(sender.random(input, ROWS))
    })
}

/// Masked tables.
pub(super) fn answer() -> Target {
    let (mut chooser, mut sender) = session();
    let (request, _) = chooser
        .request(&INDICES, INDEX_BITS)
        .expect("valid indices");
    let answer = sender.answer(&request, ROWS, INDEX_BITS, ENTRY_BYTES, fill);
    let chooser = RefCell::new(chooser);
    Target::new(vec![answer.expect("our own")], move |input| {
        let request = chooser.borrow_mut().request(&INDICES, INDEX_BITS);
        let (_, pending) = request.expect("valid indices");
        Verdict::from(pending.finish(input, ENTRY_BYTES))
    })
}
