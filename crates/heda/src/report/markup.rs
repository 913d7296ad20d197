//! Small pieces of HTML. Everything is put together by templates that escape every text; no text
//! becomes markup in another way.

use maud::{Markup, html};

/// A section with a heading.
pub(super) fn section(heading: &str, inner: &Markup) -> Markup {
    html! {
        section {
            h2 { (heading) }
            (inner)
        }
    }
}

/// Markup that is shown on demand.
pub(super) fn details(summary: &str, inner: &Markup) -> Markup {
    html! {
        details {
            summary { (summary) }
            (inner)
        }
    }
}

/// Two pieces side by side where there is room.
pub(super) fn pair(left: &Markup, right: &Markup) -> Markup {
    html! {
        div.pair {
            div { (left) }
            div { (right) }
        }
    }
}

/// A table. Cells that begin with a digit or a sign are set as numbers.
pub(super) fn table(caption: &str, head: &[&str], rows: &[Vec<String>]) -> Markup {
    let under = |index: usize| rows.first().and_then(|row| row.get(index));
    html! {
        div.scroll {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for (index, cell) in head.iter().enumerate() {
                            th scope="col" class=[under(index).and_then(|cell| class_of(cell))] {
                                (cell)
                            }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 {
                                    th scope="row" { (breakable(cell)) }
                                } @else {
                                    td class=[class_of(cell)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A name that may be broken after its parts, and nowhere else.
fn breakable(name: &str) -> Markup {
    html! {
        @for part in name.split_inclusive(['_', '.', '=', '-', '/']) { (part) wbr; }
    }
}

fn class_of(cell: &str) -> Option<&'static str> {
    let is_number = |c: char| c.is_ascii_digit() || "+−-".contains(c);
    cell.starts_with(is_number).then_some("number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_markup() {
        let cells = table("<c>", &["<h>"], &[vec!["<r>".into(), "−1<".into()]]).into_string();
        for raw in ["<c>", "<h>", "<r>", "1<<"] {
            assert!(!cells.contains(raw), "{cells}");
        }
        assert!(cells.contains("<td class=\"number\">−1&lt;</td>"));
    }
}
