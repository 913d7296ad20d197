//! A source file with all its changes, each behind a switch.

use super::sites::{Bytes, Form, Kind, Site};
use std::collections::BTreeSet;
use std::ops::Range;

/// A file as it is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its text.
    pub text: String,
    /// Where each mutant has its code, as bytes of the text; a mutant may have several places, because operands may be
    /// written more than once.
    pub places: Vec<Place>,
}

/// Code of one mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose.
    pub id: u32,
    /// What runs if it is on.
    pub own: Range<usize>,
    /// All that was written because of its site.
    pub site: Range<usize>,
}

impl Rendered {
    /// The mutant whose code an error at these bytes is about: the innermost one.
    pub fn blamed(&self, at: &Range<usize>) -> Option<u32> {
        let inside = |range: &Range<usize>| range.start <= at.start && at.end <= range.end;
        let innermost = |by: fn(&Place) -> &Range<usize>| {
            let hit = self.places.iter().filter(|place| inside(by(place)));
            hit.min_by_key(|place| by(place).len())
                .map(|place| place.id)
        };
        innermost(|place| &place.own).or_else(|| innermost(|place| &place.site))
    }
}

/// Writes a file; the mutants of its sites have the numbers from `first` on, those in `without` are left out.
pub fn render(text: &str, sites: &[Site], first: u32, without: &BTreeSet<u32>) -> Rendered {
    let mut number = first;
    let numbers = sites.iter().map(|site| {
        let begin = number;
        number += site.mutations(text).len() as u32;
        begin
    });
    let mut writer = Writer {
        text,
        sites,
        numbers: numbers.collect(),
        without,
        out: String::new(),
        places: Vec::new(),
    };
    writer.copy(0..text.len(), 0);
    Rendered {
        text: writer.out,
        places: writer.places,
    }
}

struct Writer<'a> {
    text: &'a str,
    sites: &'a [Site],
    /// The first number of each site.
    numbers: Vec<u32>,
    without: &'a BTreeSet<u32>,
    out: String,
    places: Vec<Place>,
}

/// Calls the switch of a crate.
fn on(id: u32) -> String {
    format!("crate::mutant_switch::on({id})")
}

impl Writer<'_> {
    /// Writes a piece of the file with all sites in it, which are numbered from `from` on.
    fn copy(&mut self, bytes: Bytes, from: usize) {
        let mut at = bytes.start;
        let mut next = from;
        while let Some(site) = self.sites.get(next) {
            if site.bytes.start >= bytes.end {
                break;
            }
            if site.bytes.start < at || site.bytes.end > bytes.end {
                next += 1;
                continue;
            }
            self.out.push_str(&self.text[at..site.bytes.start]);
            at = site.bytes.end;
            self.site(next);
            next += 1;
        }
        self.out.push_str(&self.text[at..bytes.end]);
    }

    /// The mutants of a site that are not left out: which one of the site, and its number.
    fn used(&self, site: usize) -> Vec<(usize, u32)> {
        let count = self.sites[site].mutations(self.text).len();
        let all = (0..count).map(|which| (which, self.numbers[site] + which as u32));
        all.filter(|(_, id)| !self.without.contains(id)).collect()
    }

    fn site(&mut self, number: usize) {
        let site = &self.sites[number];
        let (begin, places) = (self.out.len(), self.places.len());
        let used = self.used(number);
        if used.is_empty() {
            return self.copy(site.bytes.clone(), number + 1);
        }
        match &site.kind {
            Kind::Body(values) => {
                for (which, id) in used {
                    let code = format!(" if {} {{ return {}; }}", on(id), values[which]);
                    self.own(id, |writer| writer.out.push_str(&code));
                }
            }
            Kind::Operands { form, .. } => match form {
                Form::Values => self.values(number, &used),
                Form::Places => self.each_operator(number, &used),
                Form::Lazy => self.lazy(number, used[0].1),
            },
            Kind::Sign { operand, .. } => {
                let (id, operand) = (used[0].1, operand.clone());
                self.out.push_str(&format!("(if {} {{ ", on(id)));
                self.own(id, |writer| writer.copy(operand, number + 1));
                self.out.push_str(" } else { ");
                self.copy(site.bytes.clone(), number + 1);
                self.out.push_str(" })");
            }
            Kind::Condition => {
                self.out.push_str("((");
                self.copy(site.bytes.clone(), number + 1);
                self.out.push_str(&format!(") ^ {})", on(used[0].1)));
            }
            Kind::Guard => self.guard(number, &used),
            Kind::Arm(_) => self.out.push_str(&format!(" if !{}", on(used[0].1))),
            Kind::Statement => {
                self.out.push_str(&format!("if !{} {{ ", on(used[0].1)));
                self.copy(site.bytes.clone(), number + 1);
                self.out.push_str(" }");
            }
        }
        self.note(number, begin, places);
    }

    /// Notes the whole site for its mutants, also where they have code of their own.
    fn note(&mut self, number: usize, begin: usize, places: usize) {
        let whole = begin..self.out.len();
        let ids = self.used(number);
        for (_, id) in ids {
            let own = |place: &&mut Place| place.id == id;
            match self.places[places..].iter_mut().find(own) {
                Some(place) => place.site = whole.clone(),
                None => self.places.push(Place {
                    id,
                    own: whole.clone(),
                    site: whole.clone(),
                }),
            }
        }
    }

    /// What runs if a mutant is on.
    fn own(&mut self, id: u32, write: impl FnOnce(&mut Self)) {
        let begin = self.out.len();
        let place = self.places.len();
        self.places.push(Place {
            id,
            own: begin..begin,
            site: begin..begin,
        });
        write(self);
        self.places[place].own.end = self.out.len();
    }

    /// Operands are computed once, then the operator is chosen.
    fn values(&mut self, number: usize, used: &[(usize, u32)]) {
        let Kind::Operands {
            left,
            right,
            operator,
            others,
            ..
        } = self.sites[number].kind.clone()
        else {
            return;
        };
        self.out.push_str("(match (");
        self.copy(left, number + 1);
        self.out.push_str(", ");
        self.copy(right, number + 1);
        self.out.push_str(") { (l, r) => ");
        for (which, id) in used {
            self.out.push_str(&format!("if {} {{ ", on(*id)));
            let code = format!("l {} r", others[*which]);
            self.own(*id, |writer| writer.out.push_str(&code));
            self.out.push_str(" } else ");
        }
        self.out.push_str(&format!("{{ l {operator} r }} }})"));
    }

    /// The whole for each operator.
    fn each_operator(&mut self, number: usize, used: &[(usize, u32)]) {
        let site = self.sites[number].clone();
        let Kind::Operands {
            left,
            right,
            others,
            ..
        } = site.kind
        else {
            return;
        };
        self.out.push('(');
        for (which, id) in used {
            self.out.push_str(&format!("if {} {{ ", on(*id)));
            let (left, right, other) = (left.clone(), right.clone(), others[*which]);
            self.own(*id, |writer| {
                writer.copy(left, number + 1);
                writer.out.push_str(&format!(" {other} "));
                writer.copy(right, number + 1);
            });
            self.out.push_str(" } else ");
        }
        self.out.push_str("{ ");
        self.copy(site.bytes, number + 1);
        self.out.push_str(" })");
    }

    /// `a && b` is `if a { b } else { false }`, and `a || b` the same with both turned.
    fn lazy(&mut self, number: usize, id: u32) {
        let Kind::Operands {
            left,
            right,
            operator,
            ..
        } = self.sites[number].kind.clone()
        else {
            return;
        };
        let is_or = match operator {
            "&&" => on(id),
            _ => format!("!{}", on(id)),
        };
        self.out.push_str("(if (");
        self.copy(left, number + 1);
        self.out.push_str(&format!(") ^ {is_or} {{ "));
        self.copy(right, number + 1);
        self.out.push_str(&format!(" }} else {{ {is_or} }})"));
    }

    fn guard(&mut self, number: usize, used: &[(usize, u32)]) {
        self.out.push_str("((");
        self.copy(self.sites[number].bytes.clone(), number + 1);
        self.out.push(')');
        for (which, id) in used {
            match which {
                0 => self.out.push_str(&format!(" || {}", on(*id))),
                _ => self.out.push_str(&format!(") && !({}", on(*id))),
            }
        }
        self.out.push(')');
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::sites::sites;
    use super::*;

    fn rendered(text: &str, without: &[u32]) -> Rendered {
        let sites = sites(text).unwrap();
        render(text, &sites, 1, &without.iter().copied().collect())
    }

    fn short(text: &str) -> String {
        text.replace("crate::mutant_switch::", "")
    }

    #[test]
    fn every_kind_of_change_is_behind_a_switch() {
        for (body, expected) in [
            (
                "x(a + b)",
                "x((match (a, b) { (l, r) => if on(2) { l - r } else if on(3) { l * r } else { l + r } }))",
            ),
            ("x(a == b)", "x((if on(2) { a != b } else { a == b }))"),
            ("x(a && b)", "x((if (a) ^ on(2) { b } else { on(2) }))"),
            ("x(a || b)", "x((if (a) ^ !on(2) { b } else { !on(2) }))"),
            ("x(!a)", "x((if on(2) { a } else { !a }))"),
            ("x.y(a);", "if !on(2) { x.y(a); }"),
            (
                "a ^= b;",
                "if !on(2) { (if on(3) { a |= b } else if on(4) { a &= b } else { a ^= b }); }",
            ),
            ("if a { }", "if ((a) ^ on(2)) { }"),
            (
                "match a { 1 => b, _ => c }",
                "match a { 1 if !on(2) => b, _ => c }",
            ),
            (
                "match a { x if b => c, _ => d }",
                "match a { x if ((b) || on(2)) && !(on(3)) => c, _ => d }",
            ),
        ] {
            let text = format!("fn f() {{ {body} }}");
            let expected = format!("fn f() {{ if on(1) {{ return (); }} {expected} }}");
            assert_eq!(short(&rendered(&text, &[]).text), expected);
        }
    }

    #[test]
    fn what_is_left_out_is_written_as_it_was() {
        let text = "fn f() -> u8 { g(a + b * c) }";
        assert_eq!(rendered(text, &[1, 2, 3, 4, 5, 6]).text, text);
        assert_eq!(
            short(&rendered(text, &[1, 2, 4, 5, 6]).text),
            "fn f() -> u8 { g((match (a, b * c) { (l, r) => if on(3) { l - r } else { l + r } })) }"
        );
    }

    #[test]
    fn an_error_is_blamed_on_the_innermost_mutant() {
        let text = "fn f() { g(a == b + c); }";
        let rendered = rendered(text, &[]);
        let at = |piece: &str| {
            let start = rendered.text.find(piece).unwrap();
            rendered.blamed(&(start..start + piece.len()))
        };
        // 1: body; 2: statement; 3: `!=`; 4 and 5: `-` and `*`.
        assert_eq!(at("return ()"), Some(1));
        assert_eq!(at("l - r"), Some(4));
        assert_eq!(at("l * r"), Some(5));
        assert_eq!(at("a != "), Some(3));
        assert_eq!(at("g("), Some(2));
        assert_eq!(at("fn f"), None);
    }
}
