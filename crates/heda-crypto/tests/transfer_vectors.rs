//! Known answers for transfers from an independent implementation
//! (`tools/reference/transfer_vectors.py`).

#![allow(clippy::unwrap_used)]

use heda_crypto::transfer::*;
use rand_core::{TryCryptoRng, TryRng};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::convert::Infallible;

#[derive(Deserialize)]
struct Vectors {
    trees: Vec<TreeVector>,
    sessions: Vec<SessionVector>,
    negative: Vec<Negative>,
}

#[derive(Deserialize)]
struct TreeVector {
    height: usize,
    label: String,
    seed: String,
    leaves: Vec<String>,
    sums: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct SessionVector {
    field_bits: u32,
    context: String,
    chooser: String,
    sender: String,
    first: String,
    second: String,
    third: String,
    batches: Vec<Batch>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Batch {
    Bits {
        rows: usize,
        pad_bytes: usize,
        request: String,
        wanted: Vec<u8>,
        corrections: String,
        zero: String,
        one: String,
        chosen: Vec<String>,
    },
    Indices {
        rows: usize,
        index_bits: u32,
        entry_bits: u32,
        request: String,
        wanted: Vec<u8>,
        corrections: String,
        tables: String,
        chosen: Vec<u16>,
    },
}

/// A change to one message of a session, and what the receiver must say.
#[derive(Deserialize)]
struct Negative {
    message: String,
    at: Option<usize>,
    xor: Option<u8>,
    fill: Option<u8>,
    length: Option<usize>,
    error: String,
}

impl Negative {
    fn apply(&self, message: &str, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if self.message == message {
            if let (Some(at), Some(xor)) = (self.at, self.xor) {
                bytes[at] ^= xor;
            }
            if let Some(fill) = self.fill {
                bytes.fill(fill);
            }
            if let Some(length) = self.length {
                bytes.resize(length, 0);
            }
        }
        bytes
    }
}

/// Plays given bytes as randomness.
struct Tape(std::vec::IntoIter<u8>);

impl TryRng for Tape {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill_with(|| self.0.next().expect("the tape is long enough"));
        Ok(())
    }
}

impl TryCryptoRng for Tape {}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn word(hex: &str) -> u128 {
    u128::from_le_bytes(bytes(hex).try_into().unwrap())
}

fn hash(parts: &[u8]) -> Vec<u8> {
    Sha256::digest(parts).to_vec()
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors/transfer.json")).unwrap()
}

#[test]
fn trees() {
    let trees = vectors().trees;
    assert_eq!(trees.len(), 3);
    for vector in trees {
        let label = TreeLabel::from_bytes(bytes(&vector.label).try_into().unwrap());
        let tree = Tree::grow(&label, word(&vector.seed), vector.height);
        let leaves: Vec<u128> = vector.leaves.iter().map(|leaf| word(leaf)).collect();
        assert_eq!(tree.leaves(), leaves);
        let sums = vector
            .sums
            .iter()
            .map(|[left, right]| [word(left), word(right)]);
        assert_eq!(tree.sums(), sums.collect::<Vec<_>>());
    }
}

/// The setup, with messages compared and one of them perhaps changed.
fn setup(
    vector: &SessionVector,
    change: Option<&Negative>,
) -> Result<(Chooser, Sender), TransferError> {
    let field = FieldBits::new(vector.field_bits)?;
    let context = bytes(&vector.context);
    let mut chooser_tape = Tape(bytes(&vector.chooser).into_iter());
    let mut sender_tape = Tape(bytes(&vector.sender).into_iter());
    let changed = |name: &str, message: Vec<u8>| match change {
        Some(change) => change.apply(name, &message),
        None => message,
    };
    let (chooser, first) = ChooserSetup::start(field, &context, &mut chooser_tape);
    assert_eq!(first.to_bytes(), bytes(&vector.first));
    let first = SetupFirst::from_bytes(&changed("first", first.to_bytes()))?;
    let (sender, second) = SenderSetup::answer(field, &context, &first, &mut sender_tape);
    assert_eq!(hash(&second.to_bytes()), bytes(&vector.second));
    let second = SetupSecond::from_bytes(field, &changed("second", second.to_bytes()))?;
    let (chooser, third) = chooser.finish(&second, &mut chooser_tape)?;
    assert_eq!(hash(&third.to_bytes()), bytes(&vector.third));
    let third = SetupThird::from_bytes(field, &changed("third", third.to_bytes()))?;
    let sender = sender.finish(&third)?;
    assert_eq!((chooser_tape.0.len(), sender_tape.0.len()), (0, 0));
    Ok((chooser, sender))
}

#[test]
fn sessions() {
    let sessions = vectors().sessions;
    assert_eq!(
        sessions.iter().map(|s| s.batches.len()).collect::<Vec<_>>(),
        [3, 2, 1, 3, 1, 2]
    );
    for vector in &sessions {
        let (mut chooser, mut sender) = setup(vector, None).unwrap();
        for batch in &vector.batches {
            check(batch, &mut chooser, &mut sender);
        }
    }
}

fn check(batch: &Batch, chooser: &mut Chooser, sender: &mut Sender) {
    match batch {
        Batch::Bits {
            rows,
            pad_bytes,
            request,
            wanted,
            corrections,
            zero,
            one,
            chosen,
        } => {
            let (sent, random) = chooser.extend_bits(*rows).unwrap();
            assert_eq!(hash(&sent.to_bytes()), bytes(request));
            let keys = sender.accept_bits(&sent).unwrap();
            let wanted: Vec<bool> = wanted.iter().map(|w| *w == 1).collect();
            let (corrected, own) = random.correct(&wanted).unwrap();
            assert_eq!(corrected.to_bytes(), bytes(corrections));
            own.pads(*pad_bytes, |row, pad| assert_eq!(pad, bytes(&chosen[row])))
                .unwrap();
            let mut pads = [Vec::new(), Vec::new()];
            let each = |_, zero: &[u8], one: &[u8]| {
                pads[0].extend_from_slice(zero);
                pads[1].extend_from_slice(one);
            };
            keys.pads(&corrected, *pad_bytes, each).unwrap();
            assert_eq!(pads.map(|pads| hash(&pads)), [bytes(zero), bytes(one)]);
        }
        Batch::Indices {
            rows,
            index_bits,
            entry_bits,
            request,
            wanted,
            corrections,
            tables,
            chosen,
        } => {
            let (sent, random) = chooser.extend_indices(*rows).unwrap();
            assert_eq!(hash(&sent.to_bytes()), bytes(request));
            let keys = sender.accept_indices(&sent).unwrap();
            let (corrected, own) = random.correct(wanted).unwrap();
            assert_eq!(corrected.to_bytes(), bytes(corrections));
            assert_eq!(own.pads(*entry_bits).unwrap(), *chosen);
            let mut pads = Vec::new();
            let each =
                |_, table: &[u16]| pads.extend(table.iter().flat_map(|pad| pad.to_le_bytes()));
            keys.pads(&corrected, *index_bits, *entry_bits, each)
                .unwrap();
            assert_eq!(hash(&pads), bytes(tables));
        }
    }
}

/// The first batch of the session over F_64, with one message changed.
fn changed_batch(vector: &SessionVector, change: &Negative) -> Result<(), TransferError> {
    let (mut chooser, mut sender) = setup(vector, Some(change))?;
    let Batch::Bits { rows, wanted, .. } = &vector.batches[0] else {
        panic!("the first batch is of bits");
    };
    let (request, random) = chooser.extend_bits(*rows)?;
    let request = change.apply("request", &request.to_bytes());
    let request = BitRequest::from_bytes(chooser.field(), *rows, &request)?;
    let keys = sender.accept_bits(&request)?;
    let wanted: Vec<bool> = wanted.iter().map(|w| *w == 1).collect();
    let (corrections, _) = random.correct(&wanted)?;
    let corrections = change.apply("corrections", &corrections.to_bytes());
    let corrections = BitCorrections::from_bytes(*rows, &corrections)?;
    keys.pads(&corrections, 16, |_, _, _| ())
}

#[test]
fn changed_messages_are_refused() {
    let vectors = vectors();
    assert_eq!(vectors.negative.len(), 17);
    let session = &vectors.sessions[3];
    assert_eq!(session.field_bits, 6);
    for change in &vectors.negative {
        let error = format!("{:?}", changed_batch(session, change).unwrap_err());
        assert!(
            error.starts_with(&change.error),
            "{error}, not {}",
            change.error
        );
    }
}
