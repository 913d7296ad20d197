//! Says in sentences what a proposal assumed, for whoever does not read it.

use super::profile::{ColumnProfile, Profile};
use super::write;
use crate::schema::Schema;

/// Most names in a list.
const NAMED: usize = 8;

/// What was assumed, a sentence each. `named` is the label that the caller named.
pub(super) fn assumptions(
    schema: &Schema,
    header: &[String],
    profiles: &[Profile],
    columns: &[ColumnProfile<'_>],
    named: Option<&str>,
) -> Vec<String> {
    let all = || header.iter().zip(columns);
    let label = schema.label();
    let guessed = if named.is_some() { "" } else { " (a guess)" };
    let what = match label.number() {
        Some(_) => "a number, from lowest to highest value".to_owned(),
        None => {
            let classes = label.classes();
            format!("classes {}", names(classes.iter().map(String::as_str)))
        }
    };
    let mut lines = vec![format!("label: {}{guessed}, {what}", label.column())];
    let mut list = |title: &str, found: Vec<&String>| {
        if !found.is_empty() {
            lines.push(format!(
                "{title}: {}",
                names(found.into_iter().map(String::as_str))
            ));
        }
    };
    let of = |wanted: fn(&ColumnProfile<'_>) -> bool| {
        let found = all().filter(|(_, column)| wanted(column));
        found.map(|(name, _)| name).collect::<Vec<_>>()
    };
    list(
        "numbers, from lowest to highest value",
        of(|c| matches!(c, ColumnProfile::Number { dates: false, .. })),
    );
    list(
        "dates, as days",
        of(|c| matches!(c, ColumnProfile::Number { dates: true, .. })),
    );
    list("categories", of(|c| matches!(c, ColumnProfile::Levels(_))));
    list(
        "numbers that may be codes of categories",
        of(
            |c| matches!(c, ColumnProfile::Number { range, dates: false, .. } if range.looks_like_a_code),
        ),
    );
    list(
        "numbers that may be identifiers",
        of(
            |c| matches!(c, ColumnProfile::Number { range, dates: false, .. } if range.looks_like_an_identifier),
        ),
    );
    for (name, column) in all() {
        if let ColumnProfile::Passed(reason) = column {
            lines.push(format!("passed over: {name} ({reason})"));
        }
    }
    let markers = write::markers(profiles, columns);
    if !markers.is_empty() {
        let quoted: Vec<String> = markers.iter().map(|m| format!("{m:?}")).collect();
        lines.push(format!(
            "missing: {}; the median or most frequent value stands for it",
            names(quoted.iter().map(String::as_str))
        ));
    }
    lines
}

/// The first names, and how many more there are.
fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
