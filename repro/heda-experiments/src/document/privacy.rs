//! Figures 4 and 5, the attacks and the audit.

use super::Rows;
use super::markdown::{holds, picture, table};
use heda_learn::bundled::Bundle;
use heda_mechanisms::cluster::default_size;

pub(super) fn figure_4(rows: &Rows<'_>, folder: &str) -> String {
    let below = |against: usize| {
        holds(&Bundle::ALL.map(|bundle| {
            let means = means_at_best_size(rows, bundle, "sse");
            (bundle, means[0] < means[against])
        }))
    };
    format!(
        "\n## Figure 4: what a release loses\n{}{}\n\
         Sum of squared errors at k = √(m/2); ε by the paper's automatic rule.\n\n\
         - The paper: IMA loses less than IMDAV. Here: {}.\n\
         - The paper: IMA loses less than standard noise at k = √(m/2). Here: {}. Its own formulas \
         do not allow it: at that k its noise scale equals the standard one, and the spread \
         within the clusters comes on top.\n",
        picture(
            folder,
            "figure4",
            "Sum of squared errors over the cluster size, four data sets"
        ),
        at_best_size(rows, "sse", 1.0, 1),
        below(1),
        below(2),
    )
}

pub(super) fn figure_5(rows: &Rows<'_>, folder: &str) -> String {
    let compare = |test: fn([f64; 3]) -> bool| {
        holds(&Bundle::ALL.map(|bundle| {
            let means = means_at_best_size(rows, bundle, "linkage");
            (bundle, test(means))
        }))
    };
    format!(
        "\n## Figure 5: what a release gives away\n{}{}\n\
         Rows found again, in %, at k = √(m/2).\n\n\
         - The paper: IMA links about as many rows as IMDAV. Here they are within one point of each \
         other {}.\n\
         - The paper: IMA links fewer rows than standard noise. Here: {}. With the automatic ε, \
         which is large, noise alone leaves many rows nearest to themselves; clusters of k rows \
         share one value and hide each other.\n",
        picture(
            folder,
            "figure5",
            "Record linkage over the cluster size, four data sets"
        ),
        at_best_size(rows, "linkage", 100.0, 2),
        compare(|[ima, imdav, _]| (ima - imdav).abs() < 0.01),
        compare(|[ima, _, standard]| ima < standard),
    )
}

/// IMA, IMDAV and standard noise at k = √(m/2).
fn means_at_best_size(rows: &Rows<'_>, bundle: Bundle, column: &str) -> [f64; 3] {
    let rows = rows.with("dataset", bundle.name());
    let count = rows.text("rows").and_then(|text| text.parse().ok());
    let size = default_size(count.unwrap_or(0)).to_string();
    let mean = |mechanism: &str, size: &str| {
        let rows = rows.with("mechanism", mechanism).with("k", size);
        rows.mean(column).unwrap_or(f64::NAN)
    };
    [
        mean("ima", &size),
        mean("imdav", &size),
        mean("standard", "-"),
    ]
}

fn at_best_size(rows: &Rows<'_>, column: &str, factor: f64, decimals: usize) -> String {
    let row = |bundle: Bundle| {
        let all = rows.with("dataset", bundle.name());
        let count: usize = all.text("rows")?.parse().ok()?;
        let values = means_at_best_size(rows, bundle, column);
        let mut cells = vec![
            bundle.name().to_owned(),
            count.to_string(),
            default_size(count).to_string(),
            all.distinct("repeat").len().to_string(),
        ];
        cells.extend(values.map(|value| format!("{:.decimals$}", factor * value)));
        Some(cells)
    };
    let body: Vec<Vec<String>> = Bundle::ALL.into_iter().filter_map(row).collect();
    let head = [
        "data set",
        "rows",
        "k",
        "releases",
        "IMA",
        "IMDAV",
        "standard noise",
    ];
    table(&head, &body)
}

pub(super) fn attacked(rows: &Rows<'_>, _folder: &str) -> String {
    let row = |row: Rows<'_>| {
        let text = |column: &str| row.text(column).unwrap_or("–").to_owned();
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        vec![
            text("attack"),
            text("against"),
            text("dataset"),
            text("rows"),
            text("targets"),
            text("recovered"),
            percent(success(&row)),
            row.mean("chance").map_or("–".into(), percent),
            match text("remark").as_str() {
                "" => "–".into(),
                remark => remark.to_owned(),
            },
        ]
    };
    let body: Vec<Vec<String>> = rows.each().map(row).collect();
    let head = [
        "attack",
        "against",
        "data set",
        "rows",
        "targets",
        "recovered",
        "%",
        "by guessing, %",
        "remark",
    ];
    let dictionary = rows.with("attack", "dictionary");
    let against_paper = dictionary.with("against", "engine paper");
    let worst = against_paper.each().map(|row| success(&row));
    let worst = worst.fold(1.0, f64::min);
    format!(
        "\n## Attacks on transcripts\n{}\n\
         Each attack uses what one party received in a real run at the paper's key length, or, where \
         the engines refuse to run as printed, the printed computation in clear.\n\n\
         - *Dictionary*: the data user encrypts every possible value and compares. Textbook RSA \
         always gives the same ciphertext, so it reads at least {:.0} % of the cells from \
         transcripts of engine `paper`. (The guess beside it is each column's most frequent \
         value.) Engine `resident` sends no ciphertext of a row: rows stay at home.\n\
         - *Ratios*: the provider divides the blinded products of two rows. With one blinding \
         factor for all rows, as printed, it solves for the coefficients; engine `paper` therefore \
         draws a factor for each row.\n\
         - *Divisors*: which does not help, because a product is divisible by the factors that the \
         provider made itself. Engine `resident` has no such step: a provider decrypts nothing, and \
         all that it receives is uniform (tested in \
         `crates/heda-job/src/engine/resident/cheat_tests.rs`).\n\
         - *Gradient of one row*: the gradient of a batch of one row is the row. The paper's \
         mini-batches do not forbid it; here both engines refuse such a job.\n\
         - *Difference of two jobs*: a data user that cheats takes the sums of all payloads from each \
         other before and after a row was replaced, and reads its cells.\n\
         - *Small group*: the first gradient is taken at coefficients of nought, where every row \
         counts in full. Who knows the values of all rows and all labels but those of a few with a rare level \
         tries which labels fit the sum best.\n\
         - *Membership*: which of two rows is in the table, by the nearer of the two models that \
         training on either would give. Guessing is right in half of the runs, and whatever the attack, ε = 1 \
         with δ = 10⁻⁵ leaves 55.3 % at most.\n",
        table(&head, &body),
        100.0 * worst,
    )
}

/// The share of targets that was recovered.
fn success(row: &Rows<'_>) -> f64 {
    let number = |column| row.mean(column).unwrap_or(f64::NAN);
    number("recovered") / number("targets")
}

pub(super) fn audited(rows: &Rows<'_>, _folder: &str) -> String {
    let row = |row: Rows<'_>| {
        let text = |column: &str| row.text(column).unwrap_or("–").to_owned();
        vec![
            text("mechanism"),
            text("case"),
            text("claimed"),
            text("at_least"),
            match row.text("refuted") {
                Some("true") => "refuted".to_owned(),
                _ => "not refuted".to_owned(),
            },
        ]
    };
    let body: Vec<Vec<String>> = rows.each().map(row).collect();
    let head = ["mechanism", "case", "claimed ε", "at least", "verdict"];
    format!(
        "\n## Audit of claimed ε\n{}\n\
         Each line compares {} releases of two neighbouring tables at confidence {}. Noise of half \
         the scale is a control that must be refuted. IMA is refuted where rows can be linked, as \
         in mixed training: the clusters themselves are published. Private jobs are whole ones in the \
         integer oracle, moments that are bought included, with every row but one known and that one \
         where it does most harm; their ε goes with δ = 10⁻⁵. A row that is held out is seen in counts \
         alone. A claim that is not refuted is not thereby proven.\n",
        table(&head, &body),
        rows.distinct("runs").join(" or "),
        rows.distinct("confidence").join(" or "),
    )
}
