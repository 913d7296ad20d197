//! Table 3a: the building blocks, with inputs that each call encrypts and with inputs that are encrypted
//! already.

use super::Rows;
use super::markdown::{number, range, table};
use crate::blocks::{BLOCKS, ENCRYPTED, FRESH};
use crate::printed::TABLE_3A;
use heda_learn::bundled::Bundle;

/// The one block of which the paper prints the same time whatever the number of iterations.
const ONCE: &str = "exchange 2";

pub(super) fn page(rows: &Rows<'_>, _folder: &str) -> String {
    let (encrypted, faster) = compared(&rows.with("inputs", ENCRYPTED));
    let (fresh, faster_fresh) = compared(&rows.with("inputs", FRESH));
    format!(
        "\n## Table 3a: time of the building blocks\n{encrypted}\n\
         Seconds of a whole training run, processor time of both parties together, keys of {} bits, on \
         inputs that are already encrypted, which is what training has: each value of a column is \
         encrypted once and used in every iteration. A mini-batch has {} rows; the power function takes \
         all features of a row, the dot product adds up the rows of a batch with weights of 32 bits, which is the length that the paper gives its numbers, \
         the others take a number a row. The least of {} measurements is multiplied by the iterations \
         that table 3b implies ({}); {ONCE}, on one packed gradient, is one call, as the print must be: \
         it does not grow with the iterations.\n\n\
         - The paper's time over ours: {faster}.\n\
         - The paper does not say how many calls its sums cover, nor whether encrypting the inputs is \
         in them. With inputs that every call encrypts afresh, and a dot product for every row over its \
         features:\n{fresh}\n\
         - The paper's time over ours, inputs encrypted in every call: {faster_fresh}.\n",
        rows.text("key_bits").unwrap_or("–"),
        rows.text("batch_rows").unwrap_or("–"),
        rows.with("inputs", ENCRYPTED).distinct("repeat").len(),
        rows.distinct("iterations").join(", "),
    )
}

/// A table of all blocks beside the paper's, and how many times faster each is.
fn compared(rows: &Rows<'_>) -> (String, String) {
    let mut head = vec!["building block", "ms a batch, bcwd"];
    for (bundle, _) in TABLE_3A {
        head.extend([bundle.name(), "paper"]);
    }
    let mut ratios = Vec::new();
    let mut body = Vec::new();
    for (place, block) in BLOCKS.into_iter().enumerate() {
        let mut cells = vec![
            block.to_owned(),
            number(batch_milliseconds(rows, Bundle::Bcwd, block), 2),
        ];
        for (bundle, printed) in TABLE_3A {
            let ours = run_seconds(rows, bundle, block);
            ratios.extend(ours.map(|ours| (block, printed[place] / 1000.0 / ours)));
            cells.extend([number(ours, 3), format!("{:.3}", printed[place] / 1000.0)]);
        }
        body.push(cells);
    }
    let faster = BLOCKS.map(|wanted| {
        let ratios = ratios.iter().filter(|(block, _)| *block == wanted);
        let (low, high) = range(ratios.map(|(_, ratio)| *ratio));
        format!("{wanted} {low:.2} to {high:.2}")
    });
    (table(&head, &body), faster.join("; "))
}

/// The fastest batch: what slows a call down is always something else.
fn batch_milliseconds(rows: &Rows<'_>, bundle: Bundle, block: &str) -> Option<f64> {
    let rows = rows.with("dataset", bundle.name()).with("block", block);
    let times = rows.numbers("processor_milliseconds_batch");
    times.into_iter().reduce(f64::min)
}

fn run_seconds(rows: &Rows<'_>, bundle: Bundle, block: &str) -> Option<f64> {
    let iterations = match block {
        ONCE => 1.0,
        _ => rows.with("dataset", bundle.name()).mean("iterations")?,
    };
    Some(batch_milliseconds(rows, bundle, block)? * iterations / 1000.0)
}
