//! Charts as inline SVG. The words are also in the title and the description, for those who do not
//! see the drawing. Widths are chosen so that text stays readable on a phone.

use maud::{Markup, html};

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
    /// Between what the value lies, drawn as a line into the bar.
    pub(super) interval: Option<[f64; 2]>,
}

/// Horizontal bars from zero. With negative values zero lies in the middle.
pub(super) fn bars(title: &str, bars: &[Bar], largest: Option<f64>) -> Markup {
    let ends = |bar: &Bar| {
        bar.interval
            .into_iter()
            .flatten()
            .map(f64::abs)
            .collect::<Vec<_>>()
    };
    let sizes = bars
        .iter()
        .flat_map(|bar| ends(bar).into_iter().chain([bar.value.abs()]))
        .map(finite);
    let largest = largest
        .unwrap_or_else(|| sizes.fold(0.0, f64::max))
        .max(f64::MIN_POSITIVE);
    let negative = |bar: &Bar| bar.value < 0.0 || bar.interval.is_some_and(|[low, _]| low < 0.0);
    let signed = bars.iter().any(negative);
    let (zero, room) = if signed {
        (WIDTH / 2.0, WIDTH / 2.0)
    } else {
        (0.0, WIDTH)
    };
    let height = bars.len() as f64 * STEP;
    let inner = html! {
        @for (index, bar) in bars.iter().enumerate() {
            @let top = index as f64 * STEP;
            @let length = (finite(bar.value).abs() / largest).min(1.0) * room;
            @let left = if bar.value < 0.0 { zero - length } else { zero };
            text x="0" y=(tenth(top + 13.0)) { (shortened(&bar.label)) }
            text x=(WIDTH) y=(tenth(top + 13.0)) class="end" { (bar.shown) }
            rect x="0" y=(tenth(top + 18.0)) width=(WIDTH) height=(BAR) class="back" {}
            rect x=(tenth(left)) y=(tenth(top + 18.0)) width=(tenth(length)) height=(BAR)
                class=(bar.class) {}
            @if let Some(interval) = bar.interval {
                (whisker(interval.map(|end| {
                    zero + (finite(end) / largest).clamp(-1.0, 1.0) * room
                }), top + 18.0))
            }
        }
        @if signed {
            line x1=(zero) y1="0" x2=(zero) y2=(tenth(height)) class="axis" {}
        }
    };
    let between = |bar: &Bar| match bar.interval {
        Some([low, high]) => format!(" ({low:.3} to {high:.3})"),
        None => String::new(),
    };
    let words = bars
        .iter()
        .map(|bar| format!("{}: {}{}", bar.label, bar.shown, between(bar)));
    let description = words.collect::<Vec<_>>().join("; ");
    drawing(title, &description, height, &inner)
}

/// A line between two places across a bar, with a mark at both ends.
fn whisker([from, to]: [f64; 2], top: f64) -> Markup {
    let middle = tenth(top + BAR / 2.0);
    let (upper, lower) = (tenth(top), tenth(top + BAR));
    // The marks stay inside the drawing.
    let [from, to] = [from, to].map(|x| tenth(x.clamp(1.0, WIDTH - 1.0)));
    html! {
        line x1=(from) y1=(middle) x2=(to) y2=(middle) class="whisker" {}
        @for end in [&from, &to] {
            line x1=(end) y1=(upper) x2=(end) y2=(lower) class="whisker" {}
        }
    }
}

/// Positive values one after the other on a logarithmic axis.
pub(super) fn decay(title: &str, x_label: &str, values: &[f64]) -> Markup {
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
        return Markup::default();
    }
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let last = (values.len() as f64).max(2.0);
    let x = |at: f64| LEFT + (at - 1.0) / (last - 1.0) * (WIDTH - LEFT - 10.0);
    let y = |at: f64| 10.0 + (high - at) / (high - low) * (HEIGHT - BOTTOM - 10.0);
    let place = |&(at, value): &(f64, f64)| format!("{:.1},{:.1}", x(at), y(value));
    let path: Vec<String> = points.iter().map(place).collect();
    let inner = html! {
        @for power in low as i32..=high as i32 {
            @let at = y(f64::from(power));
            line x1=(LEFT) y1=(tenth(at)) x2=(WIDTH) y2=(tenth(at)) class="grid" {}
            text x=(tenth(LEFT - 6.0)) y=(tenth(at + 4.0)) class="end" { (10f64.powi(power)) }
        }
        polyline points=(path.join(" ")) class="curve" {}
        @for &(at, value) in &points {
            circle cx=(tenth(x(at))) cy=(tenth(y(value))) r="3" class="dot" {}
        }
        @for at in marks(values.len()) {
            text x=(tenth(x(at as f64))) y=(tenth(HEIGHT - 22.0)) class="middle" { (at) }
        }
        text x=(tenth((LEFT + WIDTH) / 2.0)) y=(tenth(HEIGHT - 4.0)) class="middle" { (x_label) }
    };
    let shown = values.iter().map(|value| format!("{value:.2e}"));
    let description = shown.collect::<Vec<_>>().join(", ");
    drawing(title, &description, HEIGHT, &inner)
}

/// A coordinate; finer ones nobody sees.
fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

/// Up to six whole numbers from 1 to `last`.
fn marks(last: usize) -> Vec<usize> {
    let step = last.div_ceil(6).max(1);
    (1..=last).step_by(step).collect()
}

fn drawing(title: &str, description: &str, height: f64, inner: &Markup) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            svg role="img" viewBox={ "0 0 " (WIDTH) " " (format!("{height:.0}")) } aria-label=(title) {
                title { (title) }
                desc { (description) }
                (inner)
            }
        }
    }
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
            interval: None,
        }
    }

    #[test]
    fn an_interval_is_drawn_into_its_bar_and_stays_inside() {
        let sure = |low, high| Bar {
            interval: Some([low, high]),
            ..bar("a", 0.5)
        };
        let drawn = bars("t", &[sure(0.25, 0.75)], Some(1.0)).into_string();
        assert_eq!(drawn.matches("class=\"whisker\"").count(), 3);
        assert!(drawn.contains("x1=\"100.0\"") && drawn.contains("x2=\"300.0\""));
        assert!(drawn.contains("a: 0.5 (0.250 to 0.750)"));
        let wide = bars("t", &[sure(0.0, 7.0)], Some(1.0)).into_string();
        assert!(wide.contains("x2=\"399.0\"") && wide.contains("x1=\"1.0\""));
        // Across nought the whole drawing has two sides.
        let across = bars("t", &[sure(-1.0, 1.0)], None).into_string();
        assert!(across.contains("class=\"axis\""));
        assert!(
            !bars("t", &[bar("a", 0.5)], None)
                .into_string()
                .contains("whisker")
        );
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let drawn = bars("t", &[bar("a", 1.0), bar("b", 0.5)], None).into_string();
        assert!(drawn.contains("width=\"400.0\"") && drawn.contains("width=\"200.0\""));
        let signed = bars("t", &[bar("a", -1.0), bar("b", 1.0)], None).into_string();
        assert!(signed.contains("<rect x=\"0.0\"") && signed.contains("<rect x=\"200.0\""));
        let odd = bars("<t>", &[bar("<b>", f64::NAN), bar("c", 9.0)], Some(1.0)).into_string();
        assert!(odd.contains("&lt;b&gt;: NaN") && !odd.contains("<b>"));
        assert!(odd.contains("width=\"0.0\"") && odd.contains("width=\"400.0\""));
    }

    #[test]
    fn a_decay_has_a_dot_a_value_and_survives_odd_ones() {
        let drawn = decay("norm", "iteration", &[1.0, 0.1, 0.01]).into_string();
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert!(drawn.contains(">0.01</text>") && drawn.contains(">3</text>"));
        assert_eq!(decay("norm", "i", &[]).into_string(), "");
        let one = decay("norm", "i", &[f64::NAN, 0.0, 0.5]).into_string();
        assert_eq!(one.matches("<circle").count(), 1);
        assert!(!one.contains("cx=\"NaN"));
    }

    #[test]
    fn long_names_are_shortened_in_the_drawing_only() {
        let long = "x".repeat(60);
        let drawn = bars("t", &[bar(&long, 1.0)], None).into_string();
        assert!(drawn.contains(&format!("{}…<", "x".repeat(39))));
        assert!(drawn.contains(&format!("{long}: 1")));
    }
}
