//! Charts as inline SVG. The words are also in the title and the description, for those who do not
//! see the drawing. Widths are chosen so that text stays readable on a phone.

use super::markup::escape;
use std::fmt::Write;

const WIDTH: f64 = 400.0;
/// Height of a bar with its words.
const STEP: f64 = 36.0;
const BAR: f64 = 12.0;

/// A bar with its words; `class` chooses the colour.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) shown: String,
    pub(super) class: &'static str,
}

/// Horizontal bars from zero. With negative values zero lies in the middle.
pub(super) fn bars(title: &str, bars: &[Bar], largest: Option<f64>) -> String {
    let sizes = bars.iter().map(|bar| finite(bar.value).abs());
    let largest = largest
        .unwrap_or_else(|| sizes.fold(0.0, f64::max))
        .max(f64::MIN_POSITIVE);
    let signed = bars.iter().any(|bar| bar.value < 0.0);
    let (zero, room) = if signed {
        (WIDTH / 2.0, WIDTH / 2.0)
    } else {
        (0.0, WIDTH)
    };
    let mut inner = String::new();
    for (index, bar) in bars.iter().enumerate() {
        let top = index as f64 * STEP;
        let length = (finite(bar.value).abs() / largest).min(1.0) * room;
        let left = if bar.value < 0.0 { zero - length } else { zero };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            inner,
            "<text x=\"0\" y=\"{:.1}\">{}</text><text x=\"{WIDTH}\" y=\"{:.1}\" \
             class=\"end\">{}</text><rect x=\"0\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{BAR}\" \
             class=\"back\"/><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{length:.1}\" \
             height=\"{BAR}\" class=\"{}\"/>",
            top + 13.0,
            escape(&shortened(&bar.label)),
            top + 13.0,
            escape(&bar.shown),
            top + 18.0,
            top + 18.0,
            bar.class
        );
    }
    if signed {
        let bottom = bars.len() as f64 * STEP;
        let _ = writeln!(
            inner,
            "<line x1=\"{zero}\" y1=\"0\" x2=\"{zero}\" y2=\"{bottom:.1}\" class=\"axis\"/>"
        );
    }
    let words = bars
        .iter()
        .map(|bar| format!("{}: {}", bar.label, bar.shown));
    let description = words.collect::<Vec<_>>().join("; ");
    drawing(title, &description, bars.len() as f64 * STEP, &inner)
}

/// Positive values one after the other on a logarithmic axis.
pub(super) fn decay(title: &str, x_label: &str, values: &[f64]) -> String {
    const HEIGHT: f64 = 220.0;
    const LEFT: f64 = 58.0;
    const BOTTOM: f64 = 40.0;
    let points: Vec<(f64, f64)> = values
        .iter()
        .enumerate()
        .filter(|(_, value)| value.is_finite() && **value > 0.0)
        .map(|(index, value)| (index as f64 + 1.0, value.log10()))
        .collect();
    let low = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    if points.is_empty() {
        return String::new();
    }
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let last = (values.len() as f64).max(2.0);
    let x = |at: f64| LEFT + (at - 1.0) / (last - 1.0) * (WIDTH - LEFT - 10.0);
    let y = |at: f64| 10.0 + (high - at) / (high - low) * (HEIGHT - BOTTOM - 10.0);
    let mut inner = String::new();
    for power in low as i32..=high as i32 {
        let at = y(f64::from(power));
        let _ = writeln!(
            inner,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{WIDTH}\" y2=\"{at:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            10f64.powi(power)
        );
    }
    let place = |&(at, value): &(f64, f64)| format!("{:.1},{:.1}", x(at), y(value));
    let path: Vec<String> = points.iter().map(place).collect();
    let _ = writeln!(
        inner,
        "<polyline points=\"{}\" class=\"curve\"/>",
        path.join(" ")
    );
    for (at, value) in &points {
        let (at, value) = (x(*at), y(*value));
        let _ = writeln!(
            inner,
            "<circle cx=\"{at:.1}\" cy=\"{value:.1}\" r=\"3\" class=\"dot\"/>"
        );
    }
    for at in marks(values.len()) {
        let _ = writeln!(
            inner,
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"middle\">{at}</text>",
            x(at as f64),
            HEIGHT - 22.0
        );
    }
    let _ = writeln!(
        inner,
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"middle\">{}</text>",
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 4.0,
        escape(x_label)
    );
    let shown = values.iter().map(|value| format!("{value:.2e}"));
    let description = shown.collect::<Vec<_>>().join(", ");
    drawing(title, &description, HEIGHT, &inner)
}

/// Up to six whole numbers from 1 to `last`.
fn marks(last: usize) -> Vec<usize> {
    let step = last.div_ceil(6).max(1);
    (1..=last).step_by(step).collect()
}

fn drawing(title: &str, description: &str, height: f64, inner: &str) -> String {
    let (title, description) = (escape(title), escape(description));
    format!(
        "<figure><figcaption>{title}</figcaption>\n<svg role=\"img\" viewBox=\"0 0 {WIDTH} \
         {height:.0}\" aria-label=\"{title}\"><title>{title}</title><desc>{description}</desc>\n\
         {inner}</svg></figure>\n"
    )
}

/// Names end before they would run into the value.
fn shortened(label: &str) -> String {
    const MOST: usize = 40;
    if label.chars().count() <= MOST {
        return label.to_owned();
    }
    label.chars().take(MOST - 1).chain(['…']).collect()
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64) -> Bar {
        Bar {
            label: label.into(),
            value,
            shown: format!("{value}"),
            class: "good",
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let drawn = bars("t", &[bar("a", 1.0), bar("b", 0.5)], None);
        assert!(drawn.contains("width=\"400.0\"") && drawn.contains("width=\"200.0\""));
        let signed = bars("t", &[bar("a", -1.0), bar("b", 1.0)], None);
        assert!(signed.contains("<rect x=\"0.0\"") && signed.contains("<rect x=\"200.0\""));
        let odd = bars("<t>", &[bar("<b>", f64::NAN), bar("c", 9.0)], Some(1.0));
        assert!(odd.contains("&lt;b&gt;: NaN") && !odd.contains("<b>"));
        assert!(odd.contains("width=\"0.0\"") && odd.contains("width=\"400.0\""));
    }

    #[test]
    fn a_decay_has_a_dot_a_value_and_survives_odd_ones() {
        let drawn = decay("norm", "iteration", &[1.0, 0.1, 0.01]);
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert!(drawn.contains(">0.01</text>") && drawn.contains(">3</text>"));
        assert_eq!(decay("norm", "i", &[]), "");
        let one = decay("norm", "i", &[f64::NAN, 0.0, 0.5]);
        assert_eq!(one.matches("<circle").count(), 1);
        assert!(!one.contains("cx=\"NaN"));
    }

    #[test]
    fn long_names_are_shortened_in_the_drawing_only() {
        let long = "x".repeat(60);
        let drawn = bars("t", &[bar(&long, 1.0)], None);
        assert!(drawn.contains(&format!("{}…<", "x".repeat(39))));
        assert!(drawn.contains(&format!("{long}: 1")));
    }
}
