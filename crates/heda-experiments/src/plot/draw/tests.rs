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
fn png_has_twice_the_size_and_ink() {
    let bytes = png(&figure()).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let (width, height) = size(&figure());
    assert_eq!((info.width, info.height), (2 * width, 2 * height));
    let inked = |colour: RGBColor| {
        let wanted = [colour.0, colour.1, colour.2];
        pixels
            .chunks_exact(3)
            .filter(|pixel| **pixel == wanted)
            .count()
    };
    assert!(inked(COLOURS[0]) > 1000 && inked(COLOURS[1]) > 1000 && inked(BLACK) > 100);
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
