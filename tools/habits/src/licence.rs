//! Licence expressions: `MIT OR Apache-2.0`, `(MIT OR ISC) AND Zlib`, and the older `MIT/Apache-2.0`.

/// Whether an expression can be satisfied with allowed licences only. Calls `allowed` for every
/// licence that it names.
pub fn satisfied(expression: &str, allowed: &mut dyn FnMut(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        allowed,
    };
    let holds = parser.either();
    holds && parser.words.is_empty()
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a mut dyn FnMut(&str) -> bool,
}

impl Parser<'_> {
    fn either(&mut self) -> bool {
        let mut holds = self.both();
        while self.take("OR") {
            holds |= self.both();
        }
        holds
    }

    fn both(&mut self) -> bool {
        let mut holds = self.one();
        while self.take("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            let holds = self.either();
            return self.take(")") && holds;
        }
        match self.words {
            [name, "WITH", exception, rest @ ..] => {
                self.words = rest;
                (self.allowed)(&format!("{name} WITH {exception}"))
            }
            [name, rest @ ..] => {
                self.words = rest;
                (self.allowed)(name)
            }
            [] => false,
        }
    }

    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_their_authors_meant_them() {
        let holds =
            |text: &str| satisfied(text, &mut |name| ["MIT", "ISC", "A WITH e"].contains(&name));
        for good in [
            "MIT",
            "MIT/GPL",
            "GPL OR ISC",
            "MIT AND ISC",
            "A WITH e AND MIT",
            "(GPL OR MIT) AND ISC",
        ] {
            assert!(holds(good), "{good}");
        }
        for bad in [
            "",
            "GPL",
            "MIT AND GPL",
            "A",
            "(MIT",
            "MIT)",
            "MIT ISC",
            "MIT AND",
        ] {
            assert!(!holds(bad), "{bad}");
        }
        assert!(
            holds("MIT OR ISC AND GPL"),
            "AND binds more closely than OR"
        );
    }
}
