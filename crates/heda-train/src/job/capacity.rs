//! Whether a job can be done at all with one provider's rows. Both sides ask as soon as the split
//! is known (J5): nothing of it depends on what is published, and what is published is paid for.

use super::paper::Terms;
use crate::lookup::{DIGIT_BITS, WIDEST_STRING};
use crate::paper::Shape;
use crate::proposal::Engine;
use heda_blocks::lookup::{WORD_BYTES, answer_bytes};
use heda_crypto::lattice::EncryptedMatrix;
use heda_learn::fixed::{Layout, Precision};

/// The shape for engine `paper`, if that is the engine; otherwise why the job cannot be done.
pub(super) fn check(
    engine: Engine,
    terms: &Terms<'_>,
    precision: Precision,
    held_out: usize,
) -> Result<Option<Shape>, String> {
    let shape = match engine {
        Engine::Paper => Some(terms.shape()?),
        Engine::Lookup => {
            check_training(terms, precision)?;
            None
        }
    };
    if held_out > 0 {
        // Of held-out rows all columns are encrypted; the error has its own remedy.
        EncryptedMatrix::byte_length(held_out, terms.columns.width)
            .map_err(|e| format!("held-out rows: {e}"))?;
        answer_bytes(held_out, DIGIT_BITS, WIDEST_STRING)
            .map_err(|e| format!("held-out rows: {e}; hold out fewer, or no rows"))?;
    }
    Ok(shape)
}

fn check_training(terms: &Terms<'_>, precision: Precision) -> Result<(), String> {
    let rows = terms.rows.div_ceil(terms.batches.max(1));
    let hidden = terms.columns.hidden.len();
    if hidden > 0 {
        EncryptedMatrix::byte_length(rows, hidden)
            .map_err(|e| format!("a batch of {rows} rows: {e}"))?;
    }
    let bits = Layout::of(terms.loss).index_bits(precision);
    answer_bytes(rows, bits, WORD_BYTES).map_err(|e| {
        format!(
            "a batch of {rows} rows: {e}; use an optimiser with batches (descent or nesterov), and \
             more of them"
        )
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::Columns;
    use heda_learn::loss::LossKind;

    fn reason(
        engine: Engine,
        hidden: usize,
        [rows, batches, held_out]: [usize; 3],
    ) -> Option<String> {
        let columns = Columns {
            width: hidden,
            hidden: (0..hidden).collect(),
            open: Vec::new(),
        };
        let terms = Terms {
            columns: &columns,
            rows,
            batches,
            positives: &[1],
            key_bits: 2048,
            value_bits: 10,
            loss: LossKind::Logistic,
        };
        check(engine, &terms, Precision::default(), held_out).err()
    }

    #[test]
    fn what_does_not_fit_is_known_with_its_remedy() {
        assert_eq!(reason(Engine::Lookup, 14, [26_049, 1, 6_512]), None);
        assert_eq!(reason(Engine::Paper, 14, [26_049, 500, 6_512]), None);
        let cases = [
            (Engine::Lookup, 14, [800_000, 1, 0], "and more of them"),
            (Engine::Lookup, 1025, [1000, 1, 0], "encrypt fewer features"),
            (Engine::Lookup, 14, [1000, 1, 300_000], "hold out fewer"),
            (Engine::Paper, 25, [1000, 10, 0], "encrypt at most"),
            (Engine::Paper, 14, [1000, 10, 300_000], "hold out fewer"),
        ];
        let remedies = cases.map(|(_, _, _, remedy)| remedy);
        for (engine, hidden, sizes, remedy) in cases {
            let words = reason(engine, hidden, sizes).unwrap();
            for other in remedies {
                assert_eq!(words.contains(other), other == remedy, "{words}");
            }
        }
        assert_eq!(reason(Engine::Lookup, 14, [800_000, 2, 0]), None);
    }
}
