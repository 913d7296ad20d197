//! How the learning rate of engine `paper` was chosen.

use super::Rows;
use super::markdown::{number, percent, table};
use crate::rate::{MOST_REACHED, best, excess, fits};
use heda_learn::bundled::Bundle;
use heda_paper::engine::{DECAY, RATE};

pub(super) fn chosen(rows: &Rows<'_>, _folder: &str) -> String {
    let decays = rows.distinct("decay");
    let line = |rate: &str| -> Vec<String> {
        let cell = |decay: &&str| {
            let mark = if fits(rows, rate, decay) { "" } else { " †" };
            number(excess(rows, rate, decay), 4) + mark
        };
        let cells = decays.iter().map(cell);
        std::iter::once(rate.to_owned()).chain(cells).collect()
    };
    let body: Vec<Vec<String>> = rows.distinct("rate").into_iter().map(line).collect();
    let heads: Vec<String> = decays
        .iter()
        .map(|decay| format!("decay {decay}"))
        .collect();
    let mut head = vec!["α"];
    head.extend(heads.iter().map(String::as_str));
    let Some((rate, decay)) = best(rows) else {
        return String::new();
    };
    let at_best = rows.with("rate", rate).with("decay", decay);
    let accuracy = |bundle: Bundle| {
        let rows = at_best.with("dataset", bundle.name());
        format!(
            "{} {} % (oracle {} %)",
            bundle.name(),
            percent(&rows, "accuracy"),
            percent(&rows, "plain_accuracy")
        )
    };
    format!(
        "\n## The learning rate of engine `paper`\n{}\n\
         The paper does not say how it chose its learning rate. Here are rates α/(1 + decay·t) in \
         iteration t, for as many iterations as the paper's, on mini-batches, in clear: mean loss \
         on training rows above that of the oracle, mean of {} random splits of each data set and \
         then of the data sets. The splits are used for nothing else, and the held-out rows of a split had \
         no part in its loss; rows that table 3b holds out were training rows in some of them. The oracle has a small penalty, so its own loss is not quite the least. † With \
         this rate the coefficients go beyond {:.0} % of what the engine's plaintexts are planned for, \
         on some split in some iteration.\n\n\
         - The least loss that fits is that of {rate}/(1 + {decay}·t); engine `paper` uses \
         {RATE}/(1 + {DECAY}·t).\n\
         - Held-out accuracy with that rate: {}.\n",
        table(&head, &body),
        rows.distinct("split").len(),
        100.0 * MOST_REACHED,
        Bundle::ALL.map(accuracy).join(", "),
    )
}
