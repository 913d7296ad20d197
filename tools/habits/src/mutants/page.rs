//! The summary of all mutants, a section of `docs/mutations.md`.

use super::rules::{LIST, Rules};
use super::state::{KEPT, Outcome, State};
use super::{Key, Mutant};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where the section begins on the page.
pub const HEADING: &str = "# Mutants made by machine";

/// What was found in one area.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counts {
    generated: usize,
    unviable: usize,
    caught: usize,
    timeout: usize,
    equivalent: usize,
    open: usize,
    waiting: usize,
}

impl Counts {
    fn add(&mut self, found: Option<Outcome>, is_equivalent: bool) {
        self.generated += 1;
        let count = match found {
            Some(Outcome::Unviable) => &mut self.unviable,
            Some(Outcome::Caught) => &mut self.caught,
            Some(Outcome::Timeout) => &mut self.timeout,
            Some(_) if is_equivalent => &mut self.equivalent,
            Some(_) => &mut self.open,
            None => &mut self.waiting,
        };
        *count += 1;
    }

    fn plus(&mut self, other: &Self) {
        self.generated += other.generated;
        self.unviable += other.unviable;
        self.caught += other.caught;
        self.timeout += other.timeout;
        self.equivalent += other.equivalent;
        self.open += other.open;
        self.waiting += other.waiting;
    }

    fn line(&self, name: &str) -> String {
        let Self {
            generated,
            unviable,
            caught,
            timeout,
            equivalent,
            open,
            waiting,
        } = self;
        format!(
            "| {name} | {generated} | {unviable} | {caught} | {timeout} | {equivalent} | {open} | {waiting} |\n"
        )
    }
}

/// The section.
pub fn section(rules: &Rules, mutants: &[Mutant], state: &State) -> String {
    let mut areas: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
    let mut open: Vec<(&Key, Outcome)> = Vec::new();
    for mutant in mutants {
        let found = state.of(mutant).map(|finding| finding.outcome);
        let reason = rules.reason(&mutant.key);
        let area = areas.entry(&mutant.area).or_default();
        area.add(found, reason.is_some());
        match (found.filter(|found| found.is_open()), reason) {
            (Some(_), Some(reason)) => reasons.entry(reason).or_default().push(&mutant.key),
            (Some(found), None) => open.push((&mutant.key, found)),
            _ => {}
        }
    }
    let mut text = introduction(rules, &areas);
    text.push_str("\n## Survivors that change nothing\n\n");
    for (reason, keys) in reasons {
        let _ = writeln!(text, "{reason}\n");
        keys.iter().for_each(|key| text.push_str(&item(key)));
        text.push('\n');
    }
    text.push_str("## Survivors that no test notices yet\n\n");
    for (key, found) in open {
        let mut line = item(key);
        if found == Outcome::Unreached {
            line.insert_str(line.len() - 1, " (no test reaches it)");
        }
        text.push_str(&line);
    }
    text.trim_end().to_owned() + "\n"
}

/// A line of the page's lists.
fn item(key: &Key) -> String {
    let file = key.file.strip_prefix("crates/").unwrap_or(&key.file);
    format!("- {file}, {}: {}\n", key.function, key.mutation)
}

fn introduction(rules: &Rules, areas: &BTreeMap<&str, Counts>) -> String {
    let mut text = format!(
        "{HEADING}\n\n\
         Functions give a simple value at once, operators are exchanged, conditions negated, `!` and `-` left out, arms\n\
         of a `match` and statements deleted, in all files that `{LIST}` names by patterns. All changes are compiled at\n\
         once behind switches; for each one the tests that reach it run until one fails (with `--only-own-tests`\n\
         those of its package). Code that runs while it is compiled, code of macros and of `Debug` is left alone. Written by\n\n    \
         cargo run -p heda-habits --bin mutants\n\n\
         which goes on where it stopped: `{KEPT}` has what was found, also by runs on other machines. `-- --help` tells of\n\
         shards and of the sample that CI tries. *Equivalent* ones survive and change nothing that matters, for a reason that `{LIST}` gives.\n\n\
         | area | generated | do not compile | caught | never end | equivalent | survive | not tried yet |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    let mut all = Counts::default();
    let mut seen = std::collections::BTreeSet::new();
    for area in &rules.areas {
        if let Some(counts) = areas
            .get(area.name.as_str())
            .filter(|_| seen.insert(&area.name))
        {
            text.push_str(&counts.line(&area.name));
            all.plus(counts);
        }
    }
    text.push_str(&all.line("all"));
    text
}

/// The page with its section replaced; the rest stays as it is.
pub fn with_section(page: &str, section: &str) -> String {
    let before = page.split(&format!("\n{HEADING}\n")).next().unwrap_or(page);
    format!("{}\n\n{section}", before.trim_end())
}

/// The section as the page has it, with the line before it.
pub fn section_of(page: &str) -> &str {
    let begin = page.find(&format!("\n{HEADING}\n"));
    begin.map_or("", |begin| &page[begin..])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mutant(mutation: &str) -> Mutant {
        Mutant {
            key: Key {
                file: "crates/a.rs".into(),
                function: "f".into(),
                mutation: mutation.into(),
            },
            area: "one".into(),
            package: "p".into(),
            text: 0,
            id: 1,
        }
    }

    #[test]
    fn the_section_counts_every_mutant_once_and_names_survivors() {
        let rules: Rules = toml::from_str(
            "[[area]]\nname = \"one\"\npackage = \"p\"\nfiles = []\n\
             [[equivalent]]\nfile = \"**\"\nfunction = \"*\"\nmutation = \"two*\"\nreason = \"Because.\"",
        )
        .unwrap();
        let folder = std::env::temp_dir().join(format!("heda-page-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut state = State::open(&folder.join("kept"), &folder.join("state")).unwrap();
        let mutants = ["one", "two", "three", "four", "five", "six"].map(mutant);
        for (mutant, outcome) in mutants.iter().zip([
            Outcome::Caught,
            Outcome::Survived,
            Outcome::Unreached,
            Outcome::Timeout,
            Outcome::Unviable,
        ]) {
            state.add(mutant, outcome, None).unwrap();
        }
        let text = section(&rules, &mutants, &state);
        assert!(
            text.contains("| one | 6 | 1 | 1 | 1 | 1 | 1 | 1 |\n"),
            "{text}"
        );
        assert!(text.contains("Because.\n\n- a.rs, f: two\n"), "{text}");
        assert!(
            text.contains("- a.rs, f: three (no test reaches it)\n"),
            "{text}"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_rest_of_the_page_stays() {
        let page = with_section("# Other\n\nText.\n", &format!("{HEADING}\n\nFirst.\n"));
        let page = with_section(&page, &format!("{HEADING}\n\nSecond.\n"));
        assert_eq!(page, format!("# Other\n\nText.\n\n{HEADING}\n\nSecond.\n"));
        assert_eq!(section_of(&page), format!("\n{HEADING}\n\nSecond.\n"));
    }
}
