//! Table 3b, figure 6, and how time grows.

use super::Rows;
use super::markdown::{holds, number, percent, picture, range, table};
use crate::features::DATASETS;
use crate::growth::{fixed, line, points, shown};
use crate::printed::{Printed, TABLE_3B};
use crate::training::{DEFAULT_ENGINE, PROVIDERS};
use heda_learn::bundled::Bundle;
use heda_learn::score::ScoringMethod;
use heda_paper::engine::BATCH_ROWS;

/// Runs of an engine on a data set with everything encrypted, in the paper's coding.
fn all_encrypted<'a>(rows: &Rows<'a>, engine: &str, bundle: Bundle) -> Rows<'a> {
    encrypted_in(rows, "paper", engine, bundle)
}

/// The same in any coding.
fn encrypted_in<'a>(rows: &Rows<'a>, coding: &str, engine: &str, bundle: Bundle) -> Rows<'a> {
    let rows = rows.with("coding", coding).with("engine", engine);
    let rows = rows.with("dataset", bundle.name());
    let features = rows.text("features").unwrap_or("-");
    rows.with("iota", features)
}

pub(super) fn table_3b(rows: &Rows<'_>, _folder: &str) -> String {
    let mut text = String::from("\n## Table 3b: everything encrypted\n");
    let default = DEFAULT_ENGINE;
    let mut body = Vec::new();
    for printed in &TABLE_3B {
        for (engine, coding) in [
            (default, "paper"),
            (default, "natural"),
            ("paper", "paper"),
            ("paper", "natural"),
        ] {
            let ours = encrypted_in(rows, coding, engine, printed.bundle);
            if ours.len() > 0 {
                body.push(engine_row(printed, engine, &ours));
            }
        }
        body.push(printed_row(printed));
    }
    let head = [
        "data set",
        "engine",
        "coding",
        "rows",
        "splits",
        "accuracy, %",
        "in clear, %",
        "time, s",
        "data user, s",
        "providers, s",
        "processor, s",
        "iterations",
        "interactions",
        "MB",
    ];
    text += &table(&head, &body);
    let batch = rows.with("engine", "paper");
    text += &format!(
        "\nProviders are {PROVIDERS} threads of one process. The data user's and the providers' time \
         is that in which they did not wait for each other, the providers' summed as in the paper; \
         processor time is that of all parties together, controls in clear included, and depends \
         little on what else the machine does. Engine `{default}` trains by L-BFGS on all rows; engine \
         `paper` descends on mini-batches of about {} rows, as often as the paper's interactions \
         say, three in each iteration. \"In clear\" is our oracle on the same splits, and for the \
         paper its standard logistic regression. Interactions are with one provider, in \
         training. The paper's coding numbers categories in alphabetical order; the natural one \
         puts levels in their meaningful order and gives other categories a column each.\n\n",
        batch.distinct("batch_rows").join(" or "),
    );
    for engine in [default, "paper"] {
        text += &verdicts_3b(rows, engine);
        text += &natural_verdict(rows, engine).unwrap_or_default();
    }
    text
}

fn engine_row(printed: &Printed, engine: &str, rows: &Rows<'_>) -> Vec<String> {
    vec![
        printed.bundle.name().to_owned(),
        format!("`{engine}`"),
        rows.text("coding").unwrap_or("–").to_owned(),
        rows.text("rows").unwrap_or("–").to_owned(),
        rows.len().to_string(),
        percent(rows, "accuracy"),
        percent(rows, "plain_accuracy"),
        number(rows.mean("seconds"), 1),
        number(rows.mean("seconds_user"), 1),
        number(rows.mean("seconds_providers"), 1),
        number(rows.mean("seconds_processor"), 1),
        number(rows.mean("iterations"), 0),
        number(rows.mean("interactions"), 0),
        number(rows.mean("megabytes"), 0),
    ]
}

fn printed_row(printed: &Printed) -> Vec<String> {
    vec![
        printed.bundle.name().to_owned(),
        "the paper's table".into(),
        "paper".into(),
        "–".into(),
        "10".into(),
        format!("{:.2}", printed.secure),
        format!("{:.2}", printed.standard),
        format!("{:.0}", printed.seconds),
        format!("{:.0}", printed.seconds_user),
        format!("{:.0}", printed.seconds_providers),
        "–".into(),
        format!("{}", printed.interactions / 3),
        printed.interactions.to_string(),
        "–".into(),
    ]
}

fn verdicts_3b(rows: &Rows<'_>, engine: &str) -> String {
    let measured: Vec<(&Printed, Rows<'_>)> = TABLE_3B
        .iter()
        .map(|printed| (printed, all_encrypted(rows, engine, printed.bundle)))
        .filter(|(_, rows)| rows.len() > 0)
        .collect();
    let near = |(printed, rows): &(&Printed, Rows<'_>)| {
        let ours = rows.mean("accuracy").unwrap_or(0.0);
        (printed.bundle, 100.0 * ours >= printed.secure - 1.0)
    };
    let near: Vec<(Bundle, bool)> = measured.iter().map(near).collect();
    let faster =
        |(printed, rows): &(&Printed, Rows<'_>)| times_faster(printed, rows).unwrap_or(f64::NAN);
    let (least, most) = range(measured.iter().map(faster));
    let (least, most) = (two_digits(least), two_digits(most));
    let mut text = format!(
        "- Engine `{engine}`: accuracy is within a point of the paper's or better {}; data user \
         and providers together compute for {least} to {most} times less time than the paper \
         prints for them.\n",
        holds(&near)
    );
    for ((printed, rows), _) in measured.iter().zip(&near).filter(|(_, (_, near))| !near) {
        text += &shortfall(printed, rows);
    }
    text
}

/// The paper's time over ours, both the sum of what each party computes.
fn times_faster(printed: &Printed, rows: &Rows<'_>) -> Option<f64> {
    let ours = rows.mean("seconds_user")? + rows.mean("seconds_providers")?;
    Some((printed.seconds_user + printed.seconds_providers) / ours)
}

/// Machines and languages differ: more digits would say nothing.
fn two_digits(number: f64) -> String {
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    format!("{:.0}", (number / unit).round() * unit)
}

/// What is behind a mean that is more than a point below the paper's.
fn shortfall(printed: &Printed, rows: &Rows<'_>) -> String {
    let percent = |column| 100.0 * rows.mean(column).unwrap_or(f64::NAN);
    let (ours, clear) = (percent("accuracy"), percent("plain_accuracy"));
    let chance = match rows.summary("accuracy") {
        Some(summary) if rows.len() > 1 => {
            let (spread, splits) = (100.0 * summary.deviation, rows.len() as f64);
            format!(
                "A split deviates by {spread:.2} points, so the standard error is {:.2} points for \
                 our {splits:.0} splits and would be {:.2} for the paper's ten.",
                spread / splits.sqrt(),
                spread / 10f64.sqrt()
            )
        }
        _ => "It is one split only.".to_owned(),
    };
    format!(
        "  On {} it is {:.2} points below the paper's, and {:+.2} points from the oracle in clear on \
         the same splits ({clear:.2} %). {chance}\n",
        printed.bundle.name(),
        printed.secure - ours,
        ours - clear,
    )
}

/// What a better coding is worth.
fn natural_verdict(rows: &Rows<'_>, engine: &str) -> Option<String> {
    let gain = |printed: &Printed| {
        let mean = |coding| encrypted_in(rows, coding, engine, printed.bundle).mean("accuracy");
        let (natural, papers) = (100.0 * mean("natural")?, 100.0 * mean("paper")?);
        Some(format!(
            "{} {natural:.2} %, {:+.2} points against the paper's coding and {:+.2} against its table",
            printed.bundle.name(),
            natural - papers,
            natural - printed.secure,
        ))
    };
    let gains: Vec<String> = TABLE_3B.iter().filter_map(gain).collect();
    (!gains.is_empty()).then(|| {
        format!(
            "- Engine `{engine}` with the natural coding, which `heda demo` uses unless told \
             otherwise: {}.\n",
            gains.join("; ")
        )
    })
}

/// Accuracy and time beside the paper's, in short.
pub(super) fn against_the_paper(rows: &Rows<'_>) -> String {
    let default = DEFAULT_ENGINE;
    let row = |printed: &Printed| {
        let ours = |engine| all_encrypted(rows, engine, printed.bundle);
        let percent = |share: Option<f64>| number(share.map(|share| 100.0 * share), 1);
        let accuracy = |engine| ours(engine).mean("accuracy");
        let natural = encrypted_in(rows, "natural", default, printed.bundle).mean("accuracy");
        let seconds = |engine| number(ours(engine).mean("seconds"), 1);
        let faster = times_faster(printed, &ours(default)).map_or("–".into(), two_digits);
        let splits = |engine| ours(engine).len();
        vec![
            printed.bundle.title().to_owned(),
            format!("{} ({})", percent(accuracy(default)), splits(default)),
            format!("{} ({})", percent(accuracy("paper")), splits("paper")),
            format!("{:.1}", printed.secure),
            match printed.bundle {
                // Without categories both codings are the same.
                Bundle::Bcwd => percent(accuracy(default)),
                _ => percent(natural),
            },
            seconds(default),
            seconds("paper"),
            format!("{:.0}", printed.seconds),
            faster,
        ]
    };
    let body: Vec<Vec<String>> = TABLE_3B.iter().map(row).collect();
    let head = [
        "all features encrypted",
        &format!("accuracy, `{default}`, % (splits)"),
        "`paper`, % (splits)",
        "printed, %",
        &format!("natural coding, `{default}`, %"),
        &format!("time, `{default}`, s"),
        "`paper`, s",
        "printed, s",
        "times faster",
    ];
    table(&head, &body)
}

pub(super) fn figure_6(rows: &Rows<'_>, folder: &str) -> String {
    let mut body = Vec::new();
    let mut spreads = Vec::new();
    for bundle in DATASETS {
        let of_set = rows.with("dataset", bundle.name());
        let features = of_set.text("features_left").unwrap_or("0");
        let half = (features.parse::<usize>().unwrap_or(0) / 2).to_string();
        let mut means = Vec::new();
        for method in ScoringMethod::ALL {
            let curve = of_set.with("method", method.name());
            let left = |count: &str| {
                let mean = curve.with("features_left", count).mean("accuracy");
                number(mean.map(|share| 100.0 * share), 1)
            };
            let mean = curve.mean("accuracy").map(|share| 100.0 * share);
            means.extend(mean);
            body.push(vec![
                bundle.name().to_owned(),
                format!("`{}`", method.name()),
                left(features),
                left(&half),
                left("1"),
                number(mean, 1),
            ]);
        }
        let (low, high) = range(means);
        spreads.push(format!("{:.1} points on {}", high - low, bundle.name()));
    }
    let head = [
        "data set",
        "method",
        "all features",
        "half of them",
        "one",
        "mean over all steps",
    ];
    format!(
        "\n## Figure 6: which features to encrypt\n{}{}\n\
         Accuracy in %, mean of {} splits, as the lowest-scored feature is removed step by step.\n\n\
         - The paper finds Kruskal–Wallis the most stable. Over all steps the best and the worst \
         method differ by {}. With two classes Kruskal–Wallis and Spearman rank alike: \
         H = (N−1)·ρ².\n\
{}",
        picture(
            folder,
            "figure6",
            "Accuracy as features are removed, six methods, two data sets"
        ),
        table(&head, &body),
        rows.distinct("split").len(),
        spreads.join(" and "),
        redundancy(rows),
    )
}

/// Why mRMR does worst on Adult, where it does.
fn redundancy(rows: &Rows<'_>) -> &'static str {
    let adult = rows.with("dataset", Bundle::Adult.name());
    let mean = |method: ScoringMethod| adult.with("method", method.name()).mean("accuracy");
    let others = ScoringMethod::ALL
        .into_iter()
        .filter(|m| *m != ScoringMethod::Mrmr);
    let (least, _) = range(others.filter_map(mean));
    match mean(ScoringMethod::Mrmr) {
        Some(mrmr) if mrmr < least => {
            "- mRMR does worst on Adult in this coding: `education` and `education-num` are two \
             codes of one attribute; it takes the first, whose alphabetical numbers are useless to \
             a linear model, and the other is then redundant.\n"
        }
        _ => "",
    }
}

pub(super) fn grown(rows: &Rows<'_>, folder: &str) -> String {
    let mut body = Vec::new();
    let default = DEFAULT_ENGINE;
    let all_shown = shown(default);
    for shown in all_shown {
        let (engine, over, part) = shown;
        let points = points(rows, shown);
        let (Some((start, slope, explained)), Some(first), Some(last)) =
            (line(&points), points.first(), points.last())
        else {
            continue;
        };
        let (unit, other) = match over {
            "iota" => (
                "feature",
                format!("{} rows", fixed(rows, engine, over, "training_rows")),
            ),
            _ => ("row", format!("ι = {}", fixed(rows, engine, over, "iota"))),
        };
        body.push(vec![
            format!("{part}, `{engine}`"),
            format!("{:.0} to {:.0} {unit}s, {other}", first.x, last.x),
            format!("{:.1}", 1000.0 * start),
            format!("{:.4}", 1000.0 * slope),
            format!("{explained:.3}"),
            format!("{:.2}", last.y / first.y),
        ]);
    }
    let head = [
        "time of",
        "over",
        "ms at 0",
        "ms for each more",
        "R²",
        "last to first",
    ];
    let explained = |shown| line(&points(rows, shown)).map_or(f64::NAN, |(_, _, share)| share);
    let verdict = |shown: (&str, &str, &str)| {
        let points = points(rows, shown);
        let (Some((_, _, explained)), Some(first), Some(last)) =
            (line(&points), points.first(), points.last())
        else {
            return "was not measured".to_owned();
        };
        let change = 100.0 * (last.y / first.y - 1.0);
        match explained < 0.5 {
            true => format!("shows no trend ({change:+.0} %, R² {explained:.2})"),
            false => format!("changes by {change:+.0} %"),
        }
    };
    format!(
        "\n## How time grows\n{}{}\n\
         Processor time of data user and one provider together, on rows of Adult, least of {} runs, \
         fitted by a straight line; R² is the share of variance that it explains.\n\n\
         - Over the rows, a straight line explains a share of {:.3} (`paper`) and {:.3} (`{default}`) \
         of the variance; the first row of a batch costs more than the next.\n\
         - The paper: T = τ·ι + b. Here, from the first ι to the last, a gradient of engine `paper` \
         {}: one RSA decryption and a few Paillier operations a row cost the same whatever ι is, \
         because all features of a row share one packed ciphertext and one product a feature is \
         nothing beside them. The paper treats every feature by itself, hence its steep line, which \
         this engine does not reproduce. What does grow is its setup, which {}: every column is \
         encrypted once.\n\
         - A gradient of engine `{default}` {}.\n",
        picture(
            folder,
            "growth",
            "Time of one gradient and of the setup over encrypted features and over rows, both engines"
        ),
        table(&head, &body),
        rows.distinct("repeat").len(),
        explained(all_shown[1]),
        explained(all_shown[3]),
        verdict(all_shown[0]),
        verdict(all_shown[4]),
        verdict(all_shown[2]),
    )
}

/// What the page does not show.
pub(super) fn limits(rows: &Rows<'_>, _folder: &str) -> String {
    let default = DEFAULT_ENGINE;
    let splits = |engine: &str| {
        let counts = Bundle::ALL.map(|bundle| {
            let count = all_encrypted(rows, engine, bundle).len();
            format!("{} {count}", bundle.name())
        });
        counts.join(", ")
    };
    format!(
        "\n## What this does not show\n\n\
         - Splits with everything encrypted: engine `{default}` {}; engine `paper` {}. The paper \
         averages ten.\n\
         - All parties share one machine and talk in memory. Networks add the round trips and the \
         traffic that the tables count.\n\
         - The paper does not say how its learning rate was chosen, how large its batches are or \
         how many providers it simulates; engine `paper` uses about \
         {BATCH_ROWS} rows, {PROVIDERS} providers and the rate above.\n\
         - [Differences from the paper](differences.md) says what was changed and why.\n",
        splits(default),
        splits("paper"),
    )
}
