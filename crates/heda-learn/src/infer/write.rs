//! Writes the proposal, with a mark at everything that was read from the rows.

use super::MARK;
use super::profile::{Profile, Range};
use crate::schema::is_usable_name;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The whole proposal.
pub(super) fn schema(name: &str, header: &[String], profiles: &[Profile], label: usize) -> String {
    let mut columns = String::new();
    let mut ignored = Vec::new();
    for (index, (name, profile)) in header.iter().zip(profiles).enumerate() {
        if index == label {
            continue;
        }
        match column(name, profile) {
            Ok(text) => columns.push_str(&text),
            Err(reason) => ignored.push((name, reason)),
        }
    }
    head(name, profiles, &ignored) + &label_text(&header[label], &profiles[label]) + &columns
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list<'t>(items: impl IntoIterator<Item = &'t str>) -> String {
    let items: Vec<String> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

/// A number as TOML; whole numbers without a decimal point.
fn number(value: f64) -> String {
    let exact_integer = value.fract() == 0.0 && value.abs() < 9.0e15;
    if exact_integer {
        (value as i64).to_string()
    } else {
        format!("{value:?}")
    }
}

fn head(name: &str, profiles: &[Profile], ignored: &[(&String, &str)]) -> String {
    let mut text = format!(
        "# A proposal. Whatever is marked {MARK} was read from the rows: it is private until you\n\
         # have replaced it by what is publicly known. Delete each mark when that is done.\n\n\
         format = 1\nname = {}\n",
        quoted(if is_usable_name(name) { name } else { "table" })
    );
    let markers: BTreeSet<&str> = profiles.iter().flat_map(|p| p.markers()).copied().collect();
    let comment = if markers.is_empty() {
        String::new()
    } else {
        format!(" # {MARK}: do these mean that a value is missing?")
    };
    let _ = writeln!(text, "missing_markers = {}{comment}", list(markers));
    text.push_str("ignore = [\n");
    for (name, reason) in ignored {
        let _ = writeln!(text, "    {}, # {MARK}: {reason}", quoted(name));
    }
    text.push_str("]\n");
    text
}

fn label_text(name: &str, profile: &Profile) -> String {
    let classes = profile.levels().unwrap_or_default();
    let mut text = format!(
        "\n[label]\ncolumn = {} # {MARK}: is this what is to be learned?\n\
         classes = {} # {MARK}: all classes that can occur?\n",
        quoted(name),
        list(classes.iter().copied())
    );
    if let [_, last] = classes[..] {
        let _ = writeln!(
            text,
            "positive = {} # {MARK}: or the other one?",
            quoted(last)
        );
    }
    if profile.missing() > 0 {
        let _ = writeln!(
            text,
            "missing = \"drop\" # {MARK}: rows without a label are left out"
        );
    }
    text
}

/// A `[[column]]`, or why the column is better ignored.
fn column(name: &str, profile: &Profile) -> Result<String, &'static str> {
    if !is_usable_name(name) {
        return Err("this name cannot be used in a schema");
    }
    let head = format!("\n[[column]]\nname = {}", quoted(name));
    if let Some(range) = profile.range() {
        return Ok(head + &numeric(profile, range));
    }
    let levels = profile.levels().ok_or(TOO_MANY)?;
    match levels.len() {
        0 => Err("all values are missing"),
        1 => Err("all values are the same"),
        _ if profile.looks_like_names() => Err(NAMES),
        _ if !levels.iter().all(|level| is_usable_name(level)) => {
            Err("some values cannot be names of levels")
        }
        _ => Ok(format!("{head}\n{}", categorical(profile, &levels))),
    }
}

const TOO_MANY: &str = "too many different texts: names of persons or things?";
const NAMES: &str = "every text differs: names of persons or things?";

fn numeric(profile: &Profile, range: Range) -> String {
    let identifier = if range.looks_like_an_identifier {
        format!(" # {MARK}: every value differs; move an identifier to `ignore`")
    } else {
        String::new()
    };
    let mut text = format!(
        "{identifier}\nkind = \"numeric\"\n\
         bounds = [{}, {}] # {MARK}: private, lowest and highest value of the file\n\
         outside = \"clip\" # {MARK}: or \"refuse\"\n",
        number(range.lowest),
        number(range.highest)
    );
    if profile.missing() > 0 {
        let median = number(range.median);
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
