//! Where values lie on an axis, and which of them get a label.

use super::{Axis, Content, Panel, Scale};

/// An axis with its ends and labels fixed.
pub(super) struct Ruler {
    scale: Scale,
    /// Ends in the coordinates of the drawing, which are logarithms on a logarithmic axis.
    pub(super) start: f64,
    pub(super) end: f64,
    /// Place in the drawing, and text.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Ruler {
    /// Fits an axis to values; `margin` is added on both sides as a share of the range.
    pub(super) fn fit(axis: &Axis, values: impl Iterator<Item = f64>, margin: f64) -> Self {
        let mut ruler = Self {
            scale: axis.scale,
            start: f64::INFINITY,
            end: f64::NEG_INFINITY,
            ticks: vec![],
        };
        if let Some((start, end)) = axis.range {
            ruler.start = ruler.place(start).unwrap_or(0.0);
            ruler.end = ruler.place(end).unwrap_or(1.0);
        } else {
            for place in values
                .filter_map(|value| ruler.place(value))
                .collect::<Vec<_>>()
            {
                ruler.start = ruler.start.min(place);
                ruler.end = ruler.end.max(place);
            }
            if !ruler.start.is_finite() {
                (ruler.start, ruler.end) = (0.0, 1.0);
            }
            let range = ruler.end - ruler.start;
            let extra = if range > 0.0 { range * margin } else { 0.5 };
            ruler.start -= extra;
            ruler.end += extra;
        }
        ruler.ticks = match axis.scale {
            Scale::Linear => linear_ticks(ruler.start, ruler.end),
            Scale::Logarithmic => logarithmic_ticks(ruler.start, ruler.end),
        };
        ruler
    }

    /// Where a value lies; nothing if it cannot be shown.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic if value > 0.0 => value.log10(),
            Scale::Logarithmic => return None,
        };
        place.is_finite().then_some(place)
    }
}

/// The rulers of a panel.
pub(super) fn rulers(panel: &Panel) -> (Ruler, Ruler) {
    let points = || panel.content.series().iter().flat_map(|s| &s.points);
    let heights = points().flat_map(|p| [p.y - p.spread, p.y + p.spread]);
    match &panel.content {
        Content::Lines(_) => (
            Ruler::fit(&panel.x, points().map(|p| p.x), 0.03),
            Ruler::fit(&panel.y, heights, 0.05),
        ),
        Content::Stacked { categories, series } => {
            let whole = |x: usize| series.iter().map(|s| s.height(x as f64)).sum::<f64>();
            let heights = (0..categories.len()).map(whole).chain([0.0]);
            let mut y = Ruler::fit(&panel.y, heights, 0.05);
            if panel.y.range.is_none() {
                y.start = 0.0;
            }
            let ends = [-0.5, categories.len() as f64 - 0.5];
            let mut x = Ruler::fit(&panel.x, ends.into_iter(), 0.0);
            x.ticks = (0..)
                .map(f64::from)
                .zip(categories.iter().cloned())
                .collect();
            (x, y)
        }
    }
}

/// Four to eight round numbers.
fn linear_ticks(start: f64, end: f64) -> Vec<(f64, String)> {
    let rough = (end - start) / 7.5;
    // Nothing to measure: an axis without numbers.
    if !(rough.is_finite() && rough > f64::MIN_POSITIVE) {
        return Vec::new();
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(power);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let first = (start / step).ceil() as i64;
    let last = (end / step).floor() as i64;
    (first..=last)
        .map(|count| count as f64 * step)
        .map(|value| (value, format!("{value:.decimals$}").replace('-', "−")))
        .collect()
}

/// Powers of ten; with 2 and 5 in between where there are few of them.
fn logarithmic_ticks(start: f64, end: f64) -> Vec<(f64, String)> {
    let factors: &[f64] = if end - start < 2.5 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers = start.floor() as i32..=end.ceil() as i32;
    let stride = ((end - start) / 8.0).ceil().max(1.0) as usize;
    powers
        .step_by(stride)
        .flat_map(|power| factors.iter().map(move |factor| (power, *factor)))
        .map(|(power, factor)| {
            let value = factor * 10f64.powi(power);
            (value.log10(), power_text(factor, power))
        })
        .filter(|(place, _)| (start..=end).contains(place))
        .collect()
}

fn power_text(factor: f64, power: i32) -> String {
    match power {
        0..=4 => format!("{:.0}", factor * 10f64.powi(power)),
        -3..=-1 => format!(
            "{:.*}",
            power.unsigned_abs() as usize,
            factor * 10f64.powi(power)
        ),
        _ if factor == 1.0 => format!("10{}", superscript(power)),
        _ => format!("{factor}·10{}", superscript(power)),
    }
}

fn superscript(number: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => char::from_u32(0x2070 + u32::from(other) - u32::from('0')).unwrap_or(other),
    };
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn labels_are_round_and_few() {
        assert_eq!(
            texts(linear_ticks(0.5, 8.0)),
            ["1", "2", "3", "4", "5", "6", "7", "8"]
        );
        assert_eq!(
            texts(linear_ticks(-0.2, 0.2)),
            ["−0.2", "−0.1", "0.0", "0.1", "0.2"]
        );
        assert_eq!(texts(linear_ticks(75.5, 83.1)), ["76", "78", "80", "82"]);
        assert_eq!(
            texts(logarithmic_ticks(-1.0, 2.0)),
            ["0.1", "1", "10", "100"]
        );
        assert_eq!(
            texts(logarithmic_ticks(5.0, 6.0)),
            ["10⁵", "2·10⁵", "5·10⁵", "10⁶"]
        );
        assert_eq!(
            texts(logarithmic_ticks(-12.0, -8.0)).first().unwrap(),
            "10⁻¹²"
        );
    }

    #[test]
    fn an_axis_without_values_or_with_one_still_has_a_range() {
        let axis = Axis::linear("x");
        for values in [vec![], vec![3.0], vec![f64::NAN]] {
            let ruler = Ruler::fit(&axis, values.into_iter(), 0.1);
            assert!(ruler.end > ruler.start);
            assert!(!ruler.ticks.is_empty());
        }
        let axis = Axis {
            scale: Scale::Logarithmic,
            ..axis
        };
        let ruler = Ruler::fit(&axis, [0.0, -1.0, 10.0, 1000.0].into_iter(), 0.0);
        assert_eq!((ruler.start, ruler.end), (1.0, 3.0));
    }
}
