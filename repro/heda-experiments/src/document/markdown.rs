//! Tables, pictures and numbers as text.

use super::Rows;
use heda_learn::bundled::Bundle;

/// Rows of a table.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = vec!["---".to_owned(); head.len()];
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("\n{}{}{rows}", line(&head), line(&rule))
}

pub(super) fn picture(folder: &str, stem: &str, words: &str) -> String {
    format!("\n![{words}]({folder}/{stem}.svg)\n")
}

pub(super) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.decimals$}"))
}

/// Mean and standard deviation of shares, in %.
pub(super) fn percent(rows: &Rows<'_>, column: &str) -> String {
    match rows.summary(column) {
        Some(summary) if rows.numbers(column).len() > 1 => format!(
            "{:.2} ± {:.2}",
            100.0 * summary.mean,
            100.0 * summary.deviation
        ),
        Some(summary) => format!("{:.2}", 100.0 * summary.mean),
        None => "–".into(),
    }
}

/// "on 3 of 4 data sets", and which ones it does not hold for.
pub(super) fn holds(sets: &[(Bundle, bool)]) -> String {
    let right = sets.iter().filter(|(_, holds)| *holds).count();
    let wrong: Vec<&str> = sets
        .iter()
        .filter(|(_, holds)| !holds)
        .map(|(bundle, _)| bundle.name())
        .collect();
    let measured = |bundle: &Bundle| sets.iter().any(|(set, _)| set == bundle);
    let missing: Vec<&str> = Bundle::ALL
        .iter()
        .filter(|bundle| !measured(bundle))
        .map(|bundle| bundle.name())
        .collect();
    let mut notes = Vec::new();
    if !wrong.is_empty() {
        notes.push(format!("not on {}", wrong.join(", ")));
    }
    if !missing.is_empty() {
        notes.push(format!("not measured on {}", missing.join(", ")));
    }
    let but = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join("; ")),
    };
    format!("on {right} of {} data sets{but}", Bundle::ALL.len())
}

/// The smallest and the largest of some numbers.
pub(super) fn range(numbers: impl IntoIterator<Item = f64>) -> (f64, f64) {
    numbers
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), n| {
            (low.min(n), high.max(n))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_name_what_does_not_hold() {
        let sets = [(Bundle::Bcwd, true), (Bundle::Car, false)];
        assert_eq!(
            holds(&sets),
            "on 1 of 4 data sets (not on car; not measured on adult, crx)"
        );
        let all = Bundle::ALL.map(|bundle| (bundle, true));
        assert_eq!(holds(&all), "on 4 of 4 data sets");
    }

    #[test]
    fn tables_have_a_rule_under_their_head() {
        let text = table(&["a", "b"], &[vec!["1".into(), "2".into()]]);
        assert_eq!(text, "\n| a | b |\n| --- | --- |\n| 1 | 2 |\n");
        assert_eq!(range([2.0, 1.0, 3.0]), (1.0, 3.0));
    }
}
