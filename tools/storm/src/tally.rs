//! What happened and what went wrong, as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The storm itself could not go on, or found something that it cannot count.
#[derive(Debug)]
pub(crate) struct Trouble(String);

impl Trouble {
    pub(crate) fn new(words: String) -> Self {
        Self(words)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Events and failures by kind.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Kind of event: how often, and failures in words.
    events: BTreeMap<&'static str, (u64, Vec<String>)>,
    /// Measured, not judged.
    pub(crate) measures: Vec<String>,
}

impl Tally {
    /// So many events of a kind.
    pub(crate) fn count(&mut self, kind: &'static str, many: u64) {
        self.events.entry(kind).or_default().0 += many;
    }

    /// Takes over what another part of the storm has counted.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (kind, (count, failures)) in other.events {
            let mine = self.events.entry(kind).or_default();
            mine.0 += count;
            mine.1.extend(failures);
        }
        self.measures.extend(other.measures);
    }

    /// One event went wrong.
    pub(crate) fn fail(&mut self, kind: &'static str, words: String) {
        eprintln!("FAILED {kind}: {words}");
        self.events.entry(kind).or_default().1.push(words);
    }

    /// Fails unless this holds.
    pub(crate) fn expect(
        &mut self,
        kind: &'static str,
        holds: bool,
        words: impl FnOnce() -> String,
    ) {
        if !holds {
            self.fail(kind, words());
        }
    }

    pub(crate) fn of(&self, kind: &str) -> u64 {
        self.events.get(kind).map_or(0, |(count, _)| *count)
    }

    pub(crate) fn failures(&self) -> usize {
        self.events
            .values()
            .map(|(_, failures)| failures.len())
            .sum()
    }

    /// For people.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("| event | how often | failures |\n| --- | --- | --- |\n");
        for (kind, (count, failures)) in &self.events {
            let _ = writeln!(text, "| {kind} | {count} | {} |", failures.len());
        }
        let (count, failures) = (
            self.events.values().map(|(count, _)| count).sum::<u64>(),
            self.failures(),
        );
        let _ = writeln!(text, "| all | {count} | {failures} |");
        text
    }

    /// What went wrong, one line each.
    pub(crate) fn failures_text(&self) -> String {
        let mut text = String::new();
        for (kind, (_, failures)) in &self.events {
            for words in failures {
                let _ = writeln!(text, "- {kind}: {words}");
            }
        }
        text
    }
}
