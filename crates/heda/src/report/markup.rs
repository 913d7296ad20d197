//! Small pieces of HTML. Every function takes plain text and escapes it; only what these functions
//! return is put into a page as it is.

use std::fmt::Write;

/// Text that is safe between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// An element with text in it.
pub(super) fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>\n", escape(text))
}

/// A section with a heading; `inner` is markup.
pub(super) fn section(heading: &str, inner: &str) -> String {
    format!("<section>\n{}{inner}</section>\n", element("h2", heading))
}

/// Markup that is shown on demand.
pub(super) fn details(summary: &str, inner: &str) -> String {
    format!(
        "<details>\n{}{inner}</details>\n",
        element("summary", summary)
    )
}

/// A table. Cells that begin with a digit or a sign are set as numbers.
pub(super) fn table(caption: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = String::from("<div class=\"scroll\"><table>\n");
    text.push_str(&element("caption", caption));
    text.push_str("<thead><tr>");
    for (index, cell) in head.iter().enumerate() {
        let numbers = rows.first().and_then(|row| row.get(index));
        let class = class_of(numbers.map_or("", String::as_str));
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, "<th scope=\"col\"{class}>{}</th>", escape(cell));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = match index {
                0 => write!(text, "<th scope=\"row\">{}</th>", escape(cell)),
                _ => write!(text, "<td{}>{}</td>", class_of(cell), escape(cell)),
            };
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

fn class_of(cell: &str) -> &'static str {
    let is_number = |c: char| c.is_ascii_digit() || "+−-".contains(c);
    match cell.chars().next() {
        Some(first) if is_number(first) => " class=\"number\"",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_markup() {
        assert_eq!(
            escape("<a href=\"x\">&'\u{7}</a>"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}&lt;/a&gt;"
        );
        let cells = table("<c>", &["<h>"], &[vec!["<r>".into(), "−1<".into()]]);
        for raw in ["<c>", "<h>", "<r>", "1<<"] {
            assert!(!cells.contains(raw), "{cells}");
        }
        assert!(cells.contains("<td class=\"number\">−1&lt;</td>"));
    }
}
