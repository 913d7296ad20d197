//! Figure 7: accuracy and time as more and more features are encrypted.

use super::Rows;
use super::markdown::{holds, number, percent, picture, range, table};
use crate::training::DEFAULT_ENGINE;
use heda_learn::bundled::Bundle;
use heda_learn::metrics::Summary;

/// The smallest, a middle and the largest ι that were measured, each once.
fn ends(rows: &Rows<'_>) -> Option<Vec<u64>> {
    let texts = rows.distinct("iota").into_iter();
    let mut iotas: Vec<u64> = texts.filter_map(|text| text.parse().ok()).collect();
    iotas.sort_unstable();
    let (first, last) = (*iotas.first()?, *iotas.last()?);
    let middle = iotas[iotas.len() / 2];
    let mut ends = vec![first, middle, last];
    ends.dedup();
    Some(ends)
}

pub(super) fn figure_7(rows: &Rows<'_>, folder: &str) -> String {
    let rows = &rows.with("coding", "paper");
    let default = DEFAULT_ENGINE;
    let mut body = Vec::new();
    for bundle in Bundle::ALL {
        for engine in [default, "paper"] {
            let all = rows.with("dataset", bundle.name());
            let jobs = all.with("engine", engine);
            for iota in ends(&jobs).into_iter().flatten() {
                body.push(dial_row(bundle, engine, &all, iota));
            }
        }
    }
    let head = [
        "data set",
        "engine",
        "ι",
        "splits",
        "accuracy, %",
        "by IMA in clear, %",
        "rest dropped, %",
        "all in clear, %",
        "Σ ε",
        "time, s",
        "data user, s",
        "providers, s",
    ];
    let mut text = format!(
        "\n## Figure 7: the dial ι\n{}{}{}{}\n\
         Features beyond the ι best are published with exact discrete noise on every value \
         (`laplace`) at the paper's automatic ε, of which the sum over a row's columns is shown. \
         IMA, the paper's mechanism, was simulated in clear with the oracle on the same training rows, \
         as one provider with the automatic ε of all rows together. \
         Test rows are never perturbed. A curve or a line is about the splits that have all of its \
         points. Engine `paper` is slow and has few ι of one split, so its height does not compare \
         with the others.\n\n",
        picture(
            folder,
            "figure7-accuracy",
            "Accuracy over the number of encrypted features"
        ),
        picture(
            folder,
            &format!("figure7-time-{default}"),
            &format!("Time over the number of encrypted features, engine {default}")
        ),
        picture(
            folder,
            "figure7-time-paper",
            "Time over the number of encrypted features, engine paper"
        ),
        table(&head, &body),
    );
    for engine in [default, "paper"] {
        text += &dial_verdict(rows, engine);
    }
    text += &publishing_verdict(rows);
    text
}

fn dial_row(bundle: Bundle, engine: &str, all: &Rows<'_>, iota: u64) -> Vec<String> {
    let at = all.with("iota", &iota.to_string());
    let jobs = of_common_splits(&all.with("engine", engine), &at.with("engine", engine));
    let simulated = of_common_splits(&all.with("mechanism", "ima"), &at.with("mechanism", "ima"));
    vec![
        bundle.name().to_owned(),
        format!("`{engine}`"),
        iota.to_string(),
        jobs.len().to_string(),
        percent(&jobs, "accuracy"),
        match engine {
            "paper" => "–".into(),
            _ => percent(&simulated, "accuracy"),
        },
        percent(&jobs, "dropped_accuracy"),
        percent(&jobs, "plain_accuracy"),
        number(jobs.mean("epsilon_sum"), 1),
        number(jobs.mean("seconds"), 1),
        number(jobs.mean("seconds_user"), 1),
        number(jobs.mean("seconds_providers"), 1),
    ]
}

/// Those rows whose split was run at every ι: otherwise the lines would be about splits.
fn of_common_splits<'a>(all: &Rows<'a>, rows: &Rows<'a>) -> Rows<'a> {
    let iotas = all.distinct("iota");
    let everywhere = |split: &&str| {
        let of_split = all.with("repeat", split);
        iotas
            .iter()
            .all(|iota| of_split.with("iota", iota).len() > 0)
    };
    let common: Vec<&str> = all
        .distinct("repeat")
        .into_iter()
        .filter(everywhere)
        .collect();
    rows.with_any("repeat", &common)
}

/// The mean of a column at the smallest and the largest ι, over the splits that have both.
fn at_ends(rows: &Rows<'_>, engine: &str, bundle: Bundle, column: &str) -> Option<(f64, f64)> {
    let rows = rows.with("dataset", bundle.name()).with("engine", engine);
    let ends = ends(&rows)?;
    let (first, last) = (*ends.first()?, *ends.last()?);
    // A dial that was not turned from one end to the other says nothing about its ends.
    let features = rows.text("features")?;
    if first != 1 || last.to_string() != features {
        return None;
    }
    let splits = rows.with("iota", &first.to_string());
    let splits = splits.distinct("repeat");
    let mean = |iota: u64| {
        let rows = rows.with("iota", &iota.to_string());
        let values = splits
            .iter()
            .filter_map(|split| rows.with("repeat", split).mean(column));
        let values: Vec<f64> = values.collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    Some((mean(first)?, mean(last)?))
}

fn dial_verdict(rows: &Rows<'_>, engine: &str) -> String {
    let pairs = |column: &str| -> Vec<(Bundle, f64, f64)> {
        let pair = |bundle: Bundle| {
            let (first, last) = at_ends(rows, engine, bundle, column)?;
            Some((bundle, first, last))
        };
        Bundle::ALL.into_iter().filter_map(pair).collect()
    };
    let losses = pairs("accuracy");
    let within: Vec<(Bundle, bool)> = losses
        .iter()
        .map(|(bundle, first, last)| (*bundle, last - first <= 0.08))
        .collect();
    let (_, worst) = range(losses.iter().map(|(_, first, last)| 100.0 * (last - first)));
    let growth = pairs("seconds_processor")
        .into_iter()
        .zip(pairs("iterations"));
    // Fewer iterations are not less work for ι's sake.
    let growth = growth.map(|((_, a, b), (_, first, last))| (b / last) / (a / first));
    let (least, most) = range(growth);
    format!(
        "- Engine `{engine}`: at ι = 1 at most 8 points of accuracy are lost against ι = d {}; the \
         largest loss is {worst:.1} points. Processor time for each iteration changes from ι = 1 to \
         ι = d by a factor of {least:.1} to {most:.1}; the paper's total grows by more than three.\n",
        holds(&within)
    )
}

fn publishing_verdict(rows: &Rows<'_>) -> String {
    let ours = rows.with("engine", DEFAULT_ENGINE).with("iota", "1");
    let ima = rows.with("mechanism", "ima").with("iota", "1");
    format!(
        "- Publishing instead of dropping the same features at ι = 1, difference in points with its \
         standard error over the splits: {}. Where it is not above zero, users should not publish.\n\
         - Noise on every value instead of IMA, likewise: {}.\n",
        differences(&ours, &ours, "dropped_accuracy"),
        differences(&ours, &ima, "accuracy"),
    )
}

/// By how much the accuracy of some runs exceeds a number of others, split by split.
fn differences(ours: &Rows<'_>, others: &Rows<'_>, column: &str) -> String {
    let of_set = |bundle: Bundle| {
        let (ours, others) = (
            ours.with("dataset", bundle.name()),
            others.with("dataset", bundle.name()),
        );
        let pair = |split: &str| {
            let ours = ours.with("repeat", split).mean("accuracy")?;
            let other = others.with("repeat", split).mean(column)?;
            Some(100.0 * (ours - other))
        };
        let splits = ours.distinct("repeat").into_iter();
        let differences: Vec<f64> = splits.filter_map(pair).collect();
        let name = bundle.name();
        match (Summary::new(&differences), differences.len()) {
            (Some(one), 1) => format!("{name} {:+.2} (one split)", one.mean),
            (Some(all), count) => {
                let error = all.deviation / (count as f64).sqrt();
                let verdict = match all.mean.abs() > 2.0 * error {
                    true => "",
                    false => ", not told from zero",
                };
                format!("{name} {:+.2} ± {error:.2}{verdict}", all.mean)
            }
            (None, _) => format!("{name} not measured"),
        }
    };
    Bundle::ALL.map(of_set).join("; ")
}
