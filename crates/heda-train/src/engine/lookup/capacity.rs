//! Whether a job can be done at all with one provider's rows. Nothing of it depends on what is
//! published.

use super::evaluate::{DIGIT_BITS, WIDEST_STRING};
use crate::engine::{Impossible, Part, Terms};
use heda_blocks::lookup::{WORD_BYTES, answer_bytes};
use heda_crypto::lattice::{EncryptedMatrix, LatticeError};
use heda_crypto::ot::OtError;
use heda_learn::fixed::Layout;

/// What does not fit. Errors of the lattice have their own remedy.
#[derive(Debug, thiserror::Error)]
enum TooMuch {
    #[error("a batch of {rows} rows: {error}")]
    Batch { rows: usize, error: LatticeError },
    #[error(
        "a batch of {rows} rows: {error}; use an optimiser with batches (descent or nesterov), and \
         more of them"
    )]
    BatchTables { rows: usize, error: OtError },
    #[error("held-out rows: {0}")]
    HeldOut(LatticeError),
    #[error("held-out rows: {0}; hold out fewer, or no rows")]
    HeldOutTables(OtError),
}

/// Whether the training rows fit.
pub(super) fn check_training(terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
    let rows = part.rows.div_ceil(terms.batches());
    let hidden = terms.columns.hidden.len();
    if hidden > 0 {
        EncryptedMatrix::byte_length(rows, hidden)
            .map_err(|error| Impossible::job(TooMuch::Batch { rows, error }))?;
    }
    let precision = terms.precision().map_err(Impossible::job)?;
    let bits = Layout::of(terms.proposal.loss).index_bits(precision);
    answer_bytes(rows, bits, WORD_BYTES)
        .map_err(|error| Impossible::job(TooMuch::BatchTables { rows, error }))?;
    Ok(())
}

/// Whether the held-out rows fit, of which all columns are encrypted.
pub(crate) fn check_held_out(terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
    if part.held_out > 0 {
        EncryptedMatrix::byte_length(part.held_out, terms.columns.width)
            .map_err(|error| Impossible::job(TooMuch::HeldOut(error)))?;
        answer_bytes(part.held_out, DIGIT_BITS, WIDEST_STRING)
            .map_err(|error| Impossible::job(TooMuch::HeldOutTables(error)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use crate::engine::seam::testing::reason;

    #[test]
    fn what_does_not_fit_is_known_with_its_remedy() {
        assert_eq!(reason(Engine::Lookup, 14, [26_049, 1, 6_512]), None);
        let cases = [
            (14, [800_000, 1, 0], "and more of them"),
            (1025, [1000, 1, 0], "encrypt fewer features"),
            (14, [1000, 1, 300_000], "hold out fewer"),
        ];
        let remedies = cases.map(|(_, _, remedy)| remedy);
        for (hidden, sizes, remedy) in cases {
            let words = reason(Engine::Lookup, hidden, sizes).unwrap();
            for other in remedies {
                assert_eq!(words.contains(other), other == remedy, "{words}");
            }
        }
        assert_eq!(reason(Engine::Lookup, 14, [800_000, 2, 0]), None);
    }
}
