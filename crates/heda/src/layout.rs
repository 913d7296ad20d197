//! Lines that fit a terminal.

/// No line is longer, so that none is broken by a terminal of the usual width.
const WIDTH: usize = 80;
/// Where the words of a row begin.
const LABEL: usize = 16;

/// A label and its words; what does not fit goes on below them.
pub(crate) fn row(label: &str, words: &str) -> Vec<String> {
    labelled(&format!("{label:<LABEL$}"), words)
}

/// The same under a heading.
pub(crate) fn bullet(label: &str, words: &str) -> Vec<String> {
    labelled(&format!("  {label:<14}"), words)
}

fn labelled(label: &str, words: &str) -> Vec<String> {
    let mut lines = wrapped(words, &" ".repeat(label.chars().count()));
    if let Some(first) = lines.first_mut() {
        *first = format!("{label}{}", first.trim_start())
            .trim_end()
            .to_owned();
    }
    lines
}

/// Words in lines that fit, each behind an indent. A word that is longer than a line stays whole.
pub fn wrapped(words: &str, indent: &str) -> Vec<String> {
    let width = WIDTH.saturating_sub(indent.chars().count());
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        let fits = |line: &String| line.chars().count() + 1 + word.chars().count() <= width;
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines.iter().map(|line| format!("{indent}{line}")).collect()
}

/// A text whose lines fit; what does not goes on below, indented so far.
pub fn fitted(text: &str, indent: usize) -> String {
    let lines = text.lines().flat_map(|line| {
        if line.chars().count() <= WIDTH {
            return vec![line.to_owned()];
        }
        let start: String = line.chars().take(indent).collect();
        let rest: String = line.chars().skip(indent).collect();
        let mut lines = wrapped(&rest, &" ".repeat(indent));
        if let Some(first) = lines.first_mut() {
            let words: String = first.chars().skip(indent).collect();
            *first = start + &words;
        }
        lines
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A command that a shell takes as it is printed: what does not fit goes on in the next line, with a
/// backslash before it. It is broken before options only, so that quoted words stay whole.
pub fn command(line: &str, indent: &str) -> String {
    let mut parts = line.split(" --");
    let mut lines = vec![format!("{indent}{}", parts.next().unwrap_or_default())];
    for part in parts {
        let part = format!("--{part}");
        let fits = |line: &String| line.chars().count() + 1 + part.chars().count() <= WIDTH - 2;
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => {
                line.push(' ');
                line.push_str(&part);
            }
            None => lines.push(format!("{indent}  {part}")),
        }
    }
    lines.join(" \\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_go_on_below_their_label() {
        let words = "words ".repeat(25);
        let lines = row("Time", &words);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("Time            words"));
        assert!(lines[1].starts_with("                words"));
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        let together: Vec<&str> = lines.iter().flat_map(|l| l.split_whitespace()).collect();
        assert_eq!(together.len(), 26);
    }

    #[test]
    fn long_lines_of_a_text_go_on_below_their_label_and_short_ones_stay() {
        let text = format!(
            "short   line\ntime      {}\n  last",
            "words ".repeat(20).trim_end()
        );
        let shown = fitted(&text, 10);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines[0], lines.len()), ("short   line", 4));
        assert!(lines[1].starts_with("time      words words"));
        assert!(lines[2].starts_with("          words") && lines[3] == "  last");
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn long_commands_go_on_in_the_next_line_as_a_shell_takes_them() {
        assert_eq!(command("heda plan --iota 3", "  "), "  heda plan --iota 3");
        let line = format!(
            "heda simulate --data 'my rows.csv'{}",
            " --option value".repeat(6)
        );
        let shown = command(&line, "  ");
        assert!(shown.lines().all(|l| l.chars().count() <= 80), "{shown}");
        assert!(shown.lines().count() > 1);
        let again = shown.replace(" \\\n", " ");
        let again: Vec<&str> = again.split_whitespace().collect();
        assert_eq!(again.join(" "), line);
        assert!(shown.contains("'my rows.csv'"));
    }

    #[test]
    fn a_word_that_fits_no_line_stays_whole_and_nothing_is_a_line() {
        let word = "x".repeat(100);
        assert_eq!(wrapped(&word, "  "), [format!("  {word}")]);
        assert_eq!(row("Empty", ""), ["Empty"]);
    }
}
