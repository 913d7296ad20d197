//! Words that name something: why one names nothing, and which name was meant.

/// Why a word from an option or a file names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownWord {
    /// Not among the names of its kind.
    #[error("no {what} is called {name:?}; choose one of {choices}")]
    Name {
        /// What is named.
        what: &'static str,
        /// The name.
        name: String,
        /// What there is.
        choices: &'static str,
    },
    /// Not a method that scores features.
    #[error(
        "no scoring method is called {0:?}; there are kw, chi2, pearson, spearman, forest, mrmr"
    )]
    ScoringMethod(String),
    /// Not one character that separates or quotes cells.
    #[error("{0:?} is not one plain character; write for example `;`, or the word `tab`")]
    Mark(String),
    /// Not an encoding of text.
    #[error("{0:?} is no encoding that is known here; write `utf-8` or `latin-1`")]
    Encoding(String),
    /// Neither a number of features nor `auto`.
    #[error("the number of encrypted features is a whole number or `auto`, not {0:?}")]
    ProtectedFeatures(String),
}

/// How many names are listed.
const LISTED: usize = 8;

/// The known names, those most like `name` first, and how many more there are.
pub fn nearest_first<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let small = name.to_lowercase();
    let mut known: Vec<&str> = known.into_iter().collect();
    // A stable order: equally near names stay as they were.
    known.sort_by_cached_key(|other| distance(&small, &other.to_lowercase()));
    let listed = known.iter().take(LISTED);
    let listed: Vec<String> = listed.map(|name| format!("`{name}`")).collect();
    match known.len().saturating_sub(LISTED) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// Letters to insert, delete or replace (Levenshtein).
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_levenshtein() {
        assert_eq!(distance("dataset", "data_set"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn the_nearest_name_is_first_and_long_lists_are_cut() {
        let found = nearest_first("Colour", ["age", "class", "color"]);
        assert_eq!(found, "`color`, `class`, `age`");
        let many: Vec<String> = (0..20).map(|n| format!("column-{n}")).collect();
        let found = nearest_first("column-19", many.iter().map(String::as_str));
        assert!(found.starts_with("`column-19`, ") && found.ends_with(" and 12 more"));
        assert_eq!(nearest_first("x", []), "");
    }
}
