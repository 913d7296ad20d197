//! What a curious data user computes from its own transcript, as code: experiments measure it and
//! tests keep it honest. Attacks on engine `paper` are in its own crate.
//!
//! | attack | what it reads |
//! | --- | --- |
//! | [`nearest_encryptions`] | nothing of engine `lookup`, even if numbers are encrypted at will |

use crate::engine::lookup::tag;
use heda_blocks::channel::Recorded;
use heda_crypto::lattice::{EncryptedMatrix, LatticeError, PublicKey};

/// Why an attack could not even be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttackError {
    /// The transcript lacks a message.
    #[error("the transcript has no message {0:#04x}; was it recorded?")]
    Absent(u8),
    /// A lattice message cannot be read.
    #[error(transparent)]
    Lattice(#[from] LatticeError),
}

fn first(view: &[Recorded], tag: u8) -> Result<&[u8], AttackError> {
    let mut wanted = view.iter().filter(|message| message.tag == tag);
    let first = wanted.next().map(|message| message.body.as_slice());
    first.ok_or(AttackError::Absent(tag))
}

/// What came of comparing encryptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guesses {
    /// Cells whose ciphertext equals that of a guess.
    pub matches: usize,
    /// For each cell, row by row, the value whose encryption is nearest.
    pub nearest: Vec<u32>,
}

/// The data user against engine `lookup`, with more power than it has: somebody encrypts numbers
/// of its choice under the provider's own key. `encrypt` makes a matrix with the same number in
/// every cell; numbers go from 0 to `largest`.
pub fn nearest_encryptions(
    view: &[Recorded],
    rows: usize,
    columns: usize,
    largest: u32,
    mut encrypt: impl FnMut(u32) -> Result<EncryptedMatrix, LatticeError>,
) -> Result<Guesses, AttackError> {
    let key = PublicKey::from_bytes(first(view, tag::PUBLIC_KEY)?)?;
    let matrix = first(view, tag::MATRIX)?;
    let seen = EncryptedMatrix::from_bytes(matrix, rows, columns, &key)?.visible_cells();
    let mut best = vec![(u64::MAX, 0); seen.len()];
    for number in 0..=largest {
        let guess = encrypt(number)?.visible_cells();
        for ((best, seen), guess) in best.iter_mut().zip(&seen).zip(&guess) {
            *best = (*best).min((seen.abs_diff(*guess), number));
        }
    }
    Ok(Guesses {
        matches: best.iter().filter(|(distance, _)| *distance == 0).count(),
        nearest: best.into_iter().map(|(_, number)| number).collect(),
    })
}
