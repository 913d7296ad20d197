use super::*;
use crate::plot::{Axis, Point, Scale};

fn series(name: &str, factor: f64) -> Series {
    let point = |x: i32| Point {
        x: f64::from(x),
        y: factor * f64::from(x + 1),
        spread: 0.5,
    };
    Series {
        name: name.into(),
        points: (0..4).map(point).collect(),
    }
}

fn figure() -> Figure {
    let log = Axis {
        label: "seconds".into(),
        scale: Scale::Logarithmic,
        range: None,
    };
    let both = vec![series("Heda & co", 1.0), series("paper <2018>", 70.0)];
    let panel = |content, y| Panel {
        title: "a panel".into(),
        x: Axis::linear("features"),
        y,
        content,
        dodge: 2,
    };
    let bars = Content::Stacked {
        categories: ["a", "b", "c", "d"].map(String::from).to_vec(),
        series: both.clone(),
    };
    Figure {
        title: "√(m/2) of ε, 95 % ± 1".into(),
        panels: vec![
            panel(Content::Lines(both), log),
            panel(bars, Axis::linear("points")),
        ],
    }
}

#[test]
fn svg_has_all_words_escaped_and_the_same_bytes_every_time() {
    let text = svg(&figure()).unwrap();
    for word in [
        "√(m/2) of ε",
        "Heda &amp; co",
        "paper &lt;2018&gt;",
        "seconds",
    ] {
        assert!(text.contains(word), "{word}");
    }
    assert_eq!(text, svg(&figure()).unwrap());
}

#[test]
fn every_series_has_ink_in_its_own_colour() {
    let text = svg(&figure()).unwrap();
    let inked = |colour: RGBColor| {
        let wanted = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        text.matches(&wanted).count()
    };
    // Four markers, a line and error bars in one panel, four bars in the other, and the legend.
    let counts = [COLOURS[0], COLOURS[1], BLACK].map(inked);
    assert!(counts[0] > 9 && counts[1] > 9, "{counts:?}");
    assert!(counts[2] > 4, "two axes a panel: {counts:?}");
}

#[test]
fn draws_what_is_empty_or_cannot_be_placed() {
    let mut odd = figure();
    odd.panels[0].content = Content::Lines(vec![]);
    assert!(svg(&odd).is_ok());
    let mut zero = series("zero", 0.0);
    zero.points[0].y = f64::NAN;
    odd.panels[0].content = Content::Lines(vec![zero]);
    assert!(svg(&odd).is_ok());
    odd.panels.clear();
    assert!(svg(&odd).is_ok());
}
