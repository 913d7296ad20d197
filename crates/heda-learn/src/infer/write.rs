//! Writes the proposal, with a mark at everything that was read from the rows.

use super::MARK;
use super::profile::{ColumnProfile, Profile, Range};
use crate::date;
use crate::schema::is_usable_name;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The whole proposal.
pub(super) fn schema(
    name: &str,
    header: &[String],
    profiles: &[Profile],
    columns: &[ColumnProfile<'_>],
    label: usize,
) -> String {
    let mut text = head(name, header, profiles, columns);
    text += &label_text(&header[label], &profiles[label]);
    for ((name, profile), column) in header.iter().zip(profiles).zip(columns) {
        let head = format!("\n[[column]]\nname = {}", quoted(name));
        match column {
            ColumnProfile::Number {
                range,
                dates,
                markers,
            } => {
                let missing = profile.missing() > 0 || !markers.is_empty();
                text += &(head + &numeric(profile, *range, *dates, missing));
            }
            ColumnProfile::Levels(levels) => {
                text += &format!("{head}\n{}", categorical(profile, levels));
            }
            ColumnProfile::Label | ColumnProfile::Passed(_) => {}
        }
    }
    text
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list<'t>(items: impl IntoIterator<Item = &'t str>) -> String {
    let items: Vec<String> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

/// A number as TOML, whole numbers without a decimal point; or a date in quotes.
fn number(value: f64, dates: bool) -> String {
    let exact_integer = value.fract() == 0.0 && value.abs() < 9.0e15;
    if dates {
        quoted(&date::text(value))
    } else if exact_integer {
        (value as i64).to_string()
    } else {
        format!("{value:?}")
    }
}

/// All texts that mean that a value is missing.
pub(super) fn markers<'p>(
    profiles: &'p [Profile],
    columns: &[ColumnProfile<'p>],
) -> BTreeSet<&'p str> {
    let usual = profiles.iter().flat_map(|p| p.markers()).copied();
    let odd = columns.iter().filter_map(|column| match column {
        ColumnProfile::Number { markers, .. } => Some(markers.iter().copied()),
        _ => None,
    });
    usual.chain(odd.flatten()).collect()
}

fn head(
    name: &str,
    header: &[String],
    profiles: &[Profile],
    columns: &[ColumnProfile<'_>],
) -> String {
    let mut text = format!(
        "# A proposal. Whatever is marked {MARK} was read from the rows: it is private until you\n\
         # have replaced it by what is publicly known. Delete each mark when that is done.\n\n\
         format = 1\nname = {}\n",
        quoted(if is_usable_name(name) { name } else { "table" })
    );
    let markers = markers(profiles, columns);
    let comment = if markers.is_empty() {
        String::new()
    } else {
        format!(" # {MARK}: do these mean that a value is missing?")
    };
    let _ = writeln!(text, "missing_markers = {}{comment}", list(markers));
    text.push_str("ignore = [\n");
    for (name, column) in header.iter().zip(columns) {
        if let ColumnProfile::Passed(reason) = column {
            let _ = writeln!(text, "    {}, # {MARK}: {reason}", quoted(name));
        }
    }
    text.push_str("]\n");
    text
}

/// The bounds of a number, and what happens outside.
fn bounds(range: Range, dates: bool) -> String {
    // Whole days, so that no time of day is cut off.
    let (lowest, highest) = match dates {
        true => (range.lowest.floor(), range.highest.ceil()),
        false => (range.lowest, range.highest),
    };
    format!(
        "bounds = [{}, {}] # {MARK}: private, lowest and highest value of the file\n\
         outside = \"clip\" # {MARK}: or \"refuse\"\n",
        number(lowest, dates),
        number(highest, dates)
    )
}

fn label_text(name: &str, profile: &Profile) -> String {
    let mut text = format!(
        "\n[label]\ncolumn = {} # {MARK}: is this what is to be learned?\n",
        quoted(name)
    );
    text += &match profile.numeric_label() {
        Some(range) => format!(
            "kind = \"numeric\" # {MARK}: a number? else list `classes`\n{}",
            bounds(range, false)
        ),
        None => class_label(profile),
    };
    if profile.missing() > 0 {
        let _ = writeln!(
            text,
            "missing = \"drop\" # {MARK}: rows without a label are left out"
        );
    }
    text
}

fn class_label(profile: &Profile) -> String {
    let classes = profile.levels().unwrap_or_default();
    let mut text = format!(
        "classes = {} # {MARK}: all classes that can occur?\n",
        list(classes.iter().copied())
    );
    if let [_, last] = classes[..] {
        let _ = writeln!(
            text,
            "positive = {} # {MARK}: or the other one?",
            quoted(last)
        );
    }
    text
}

fn numeric(profile: &Profile, range: Range, dates: bool, missing: bool) -> String {
    let mut text = match range.looks_like_an_identifier && !dates {
        true => format!(" # {MARK}: every value differs; move an identifier to `ignore`"),
        false => String::new(),
    };
    let kind = if dates { "date" } else { "numeric" };
    let _ = write!(text, "\nkind = \"{kind}\"");
    if range.looks_like_a_code && !dates {
        let levels = list(profile.levels().unwrap_or_default());
        let _ = write!(
            text,
            " # {MARK}: a number? for a code write kind = \"categorical\" and levels = {levels}, \
             without bounds and outside"
        );
    }
    let _ = write!(text, "\n{}", bounds(range, dates));
    if missing {
        let median = number(range.median, dates);
        let _ = writeln!(
            text,
            "missing = {{ value = {median} }} # {MARK}: private, the median"
        );
    }
    text
}

fn categorical(profile: &Profile, levels: &[&str]) -> String {
    let mut text = format!(
        "kind = \"categorical\" # {MARK}: or \"ordinal\", with the levels in their order\n\
         levels = {} # {MARK}: all levels that can occur?\n",
        list(levels.iter().copied())
    );
    if let (1.., Some(mode)) = (profile.missing(), profile.mode()) {
        let mode = quoted(mode);
        let _ = writeln!(
            text,
            "missing = {{ value = {mode} }} # {MARK}: private, the mode"
        );
    }
    text
}
