//! Providers that are waited for, on stderr: a line each, which changes in place on a terminal and is
//! said once otherwise.

use crate::output::note;
use crate::progress::is_in_place;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// What is known of providers that do not answer yet.
#[derive(Debug)]
pub(crate) struct WaitingLine {
    in_place: bool,
    /// Cause and line of each.
    lines: BTreeMap<String, (String, String)>,
    drawn: usize,
}

impl WaitingLine {
    pub(crate) fn new() -> Self {
        Self {
            in_place: is_in_place(),
            lines: BTreeMap::new(),
            drawn: 0,
        }
    }

    /// A provider does not answer; it is waited for until the time that is left is over.
    pub(crate) fn waits(&mut self, provider: &str, cause: &str, left: Duration) {
        let line = format!("{cause}; giving up in {}", minutes(left));
        let entry = (cause.to_owned(), line.clone());
        let before = self.lines.insert(provider.to_owned(), entry);
        match self.in_place {
            true => self.draw(),
            false if before.is_some_and(|(before, _)| before == cause) => {}
            false => note!("{line}"),
        }
    }

    /// A provider is waited for no longer, and this is said below those that are.
    pub(crate) fn over(&mut self, provider: &str, words: &str) {
        self.lines.remove(provider);
        self.erase();
        note!("{words}");
        if self.in_place {
            self.draw();
        }
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            // Up to the first line, and away with everything below.
            let mut terminal = std::io::stderr().lock();
            let _ = write!(terminal, "\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }

    /// A terminal that went away is no failure of ours.
    fn draw(&mut self) {
        self.erase();
        let mut terminal = std::io::stderr().lock();
        for (_, line) in self.lines.values() {
            let _ = writeln!(terminal, "{}", short(line));
        }
        self.drawn = self.lines.len();
    }
}

/// A line that does not wrap on a terminal of the usual width: wrapped ones could not be replaced.
fn short(line: &str) -> String {
    const WIDTH: usize = 79;
    match line.chars().count() {
        0..=WIDTH => line.to_owned(),
        length => {
            // The end says how long it will be waited for.
            let kept = WIDTH - 31;
            let end = line.chars().skip(length - 30);
            line.chars().take(kept).chain(['…']).chain(end).collect()
        }
    }
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_say_when_it_ends() {
        assert_eq!(minutes(Duration::from_secs(95)), "95 s");
        assert_eq!(minutes(Duration::from_secs(601)), "10 min 1 s");
        let line = format!("north: {}; giving up in 10 min 1 s", "x".repeat(90));
        let shown = short(&line);
        assert_eq!(shown.chars().count(), 79);
        assert!(shown.ends_with("giving up in 10 min 1 s"), "{shown}");
    }

    #[test]
    fn the_same_cause_is_said_once() {
        let mut waiting = WaitingLine::new();
        waiting.in_place = false;
        waiting.waits("north", "refused", Duration::from_secs(9));
        waiting.waits("north", "refused", Duration::from_secs(8));
        assert_eq!(waiting.lines.len(), 1);
        waiting.over("north", "connected to north");
        assert!(waiting.lines.is_empty());
    }
}
