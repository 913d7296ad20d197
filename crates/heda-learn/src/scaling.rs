//! Deviations from the mean: the coordinates in which training works.
//!
//! A column x becomes (x − mean)/deviation. Then no column counts more than another, the penalty
//! means the same for all of them, and the result does not depend on how wide the bounds of a
//! schema are. A model β on x and its model on deviations predict the same.

use crate::data::Dataset;
use serde::{Deserialize, Serialize};

/// Columns whose deviation is a smaller part of their range than this count as constant.
const LEAST_DEVIATION: f64 = 1e-7;

/// How many deviations on both sides of the mean the grid covers.
pub const WINDOW_DEVIATIONS: f64 = 8.0;

/// Where a column lies and how far its values spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Centre {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 1 for a column that does not vary.
    pub deviation: f64,
}

impl Centre {
    /// A column that stays as it is.
    pub const NONE: Self = Self {
        mean: 0.0,
        deviation: 1.0,
    };

    /// From the means of values and of their squares. A column that does not vary keeps its
    /// unit, as scikit-learn's `StandardScaler` does it.
    pub fn of_moments(mean: f64, mean_square: f64) -> Self {
        let variance = (mean_square - mean * mean).max(0.0);
        match variance.sqrt() {
            deviation if deviation > LEAST_DEVIATION => Self { mean, deviation },
            _ => Self {
                mean,
                deviation: 1.0,
            },
        }
    }

    /// A column that is 1 in this share of the rows and 0 elsewhere.
    pub fn of_share(share: f64) -> Self {
        Self::of_moments(share, share)
    }

    /// Whether the column varies: values in [0, 1] never deviate by as much as 1.
    pub fn varies(self) -> bool {
        self.deviation < 1.0
    }

    /// The value in deviations from the mean.
    pub fn apply(self, value: f64) -> f64 {
        (value - self.mean) / self.deviation
    }
}

/// The part of a column's range that the grid covers, as a part of [0, 1]. What lies beyond moves
/// to the nearer end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The value that becomes 0.
    pub low: f64,
    /// The value that becomes 1.
    pub high: f64,
}

impl Window {
    /// The whole range.
    pub const WHOLE: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// [`WINDOW_DEVIATIONS`] on both sides of the mean, as far as the bounds go. Wide bounds then
    /// cost no precision. A column that does not vary keeps its range.
    ///
    /// Providers hear the windows. So both ends are rounded outwards to a multiple of the power of
    /// two next to the deviation: who knows its own rows must not find the mean of the others'.
    pub fn around(centre: Centre) -> Self {
        if !centre.varies() {
            return Self::WHOLE;
        }
        let reach = WINDOW_DEVIATIONS * centre.deviation;
        let unit = centre.deviation.log2().ceil().exp2();
        let window = Self {
            low: (((centre.mean - reach) / unit).floor() * unit).max(0.0),
            high: (((centre.mean + reach) / unit).ceil() * unit).min(1.0),
        };
        match window.is_sound() {
            true => window,
            false => Self::WHOLE,
        }
    }

    /// Whether it is a part of the range, and not an empty one.
    pub fn is_sound(self) -> bool {
        (0.0..=1.0).contains(&self.low)
            && (0.0..=1.0).contains(&self.high)
            && self.high - self.low >= LEAST_DEVIATION
    }

    /// The place of a value in the window.
    pub fn apply(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Where a column lies that was moved into the window.
    pub fn moved(self, centre: Centre) -> Centre {
        let range = self.high - self.low;
        match centre.varies() {
            true => Centre {
                mean: (centre.mean - self.low) / range,
                deviation: centre.deviation / range,
            },
            false => centre,
        }
    }

    /// The window as a change of coordinates: see [`Scaling::to_values`].
    pub fn centre(self) -> Centre {
        Centre {
            mean: self.low,
            deviation: self.high - self.low,
        }
    }
}

/// One centre a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scaling {
    centres: Vec<Centre>,
}

impl Scaling {
    /// These centres.
    pub fn new(centres: Vec<Centre>) -> Self {
        Self { centres }
    }

    /// Columns that stay as they are.
    pub fn none(width: usize) -> Self {
        Self::new(vec![Centre::NONE; width])
    }

    /// Means and deviations of all columns of these rows.
    pub fn of(data: &Dataset) -> Self {
        let rows = data.rows().max(1) as f64;
        let mut sums = vec![[0.0; 2]; data.width()];
        // Around the first row, so that little is lost when a column hardly varies.
        let first = (data.rows() > 0).then(|| data.row(0).to_vec());
        let first = first.unwrap_or_else(|| vec![0.0; data.width()]);
        for row in 0..data.rows() {
            for ((sums, x), first) in sums.iter_mut().zip(data.row(row)).zip(&first) {
                let x = x - first;
                sums[0] += x;
                sums[1] += x * x;
            }
        }
        let centre = |([sum, squares], first): ([f64; 2], &f64)| {
            let centre = Centre::of_moments(sum / rows, squares / rows);
            Centre {
                mean: centre.mean + first,
                ..centre
            }
        };
        Self::new(sums.into_iter().zip(&first).map(centre).collect())
    }

    /// The centres, one a column.
    pub fn centres(&self) -> &[Centre] {
        &self.centres
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.centres.len()
    }

    /// Whether all numbers are usable.
    pub fn is_sound(&self) -> bool {
        let sound = |c: &Centre| c.mean.is_finite() && c.deviation.is_finite() && c.deviation > 0.0;
        self.centres.iter().all(sound)
    }

    /// The model on deviations, bias first, as a model on values.
    pub fn to_values(&self, beta: &[f64]) -> Vec<f64> {
        let columns = beta[1..].iter().zip(&self.centres);
        let columns: Vec<f64> = columns.map(|(b, c)| b / c.deviation).collect();
        let shift = columns.iter().zip(&self.centres);
        let shift: f64 = shift.map(|(b, c)| b * c.mean).sum();
        std::iter::once(beta[0] - shift).chain(columns).collect()
    }

    /// The model on values, bias first, as a model on deviations.
    pub fn to_deviations(&self, beta: &[f64]) -> Vec<f64> {
        let columns = beta[1..].iter().zip(&self.centres);
        let shift: f64 = columns.clone().map(|(b, c)| b * c.mean).sum();
        let columns = columns.map(|(b, c)| b * c.deviation);
        std::iter::once(beta[0] + shift).chain(columns).collect()
    }

    /// The gradient by the model on values as the gradient by the model on deviations.
    pub fn gradient(&self, gradient: &[f64]) -> Vec<f64> {
        let bias = gradient[0];
        let columns = gradient[1..].iter().zip(&self.centres);
        let columns = columns.map(|(g, c)| (g - bias * c.mean) / c.deviation);
        std::iter::once(bias).chain(columns).collect()
    }
}

/// The windows of a job on these rows, and where its columns lie in them: single numbers get one,
/// columns of levels keep their range.
pub fn placed(data: &Dataset) -> (Vec<Window>, Scaling) {
    let mut centres = Scaling::of(data).centres;
    let mut windows = vec![Window::WHOLE; centres.len()];
    for feature in data.features().iter().filter(|f| f.columns.len() == 1) {
        let column = feature.columns.start;
        windows[column] = Window::around(centres[column]);
        centres[column] = windows[column].moved(centres[column]);
    }
    (windows, Scaling::new(centres))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::score;
    use crate::samples;

    #[test]
    fn both_models_predict_the_same() {
        let data = samples::noisy_line(40, 3, 1);
        let scaling = Scaling::of(&data);
        let beta = [0.3, -1.0, 2.0, 0.1];
        let scaled = scaling.to_deviations(&beta);
        for row in 0..data.rows() {
            let values = data.row(row);
            let centres = scaling.centres().iter().zip(values);
            let deviations: Vec<f64> = centres.map(|(c, &x)| c.apply(x)).collect();
            assert!((score(&beta, values) - score(&scaled, &deviations)).abs() < 1e-12);
        }
        let back = scaling.to_values(&scaled);
        assert!(beta.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn deviations_have_mean_nought_and_deviation_one() {
        let data = samples::noisy_line(200, 2, 2);
        for (column, centre) in Scaling::of(&data).centres().iter().enumerate() {
            let values: Vec<f64> = (0..200)
                .map(|r| centre.apply(data.row(r)[column]))
                .collect();
            let mean = values.iter().sum::<f64>() / 200.0;
            let square = values.iter().map(|v| v * v).sum::<f64>() / 200.0;
            assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_window_is_a_part_of_the_range_and_a_change_of_coordinates() {
        let centre = Centre {
            mean: 0.02,
            deviation: 0.01,
        };
        let window = Window::around(centre);
        // 0.1, rounded outwards to sixty-fourths.
        assert_eq!((window.low, window.high), (0.0, 7.0 / 64.0));
        assert_eq!((window.apply(3.5 / 64.0), window.apply(0.7)), (0.5, 1.0));
        let moved = window.moved(centre);
        let parts = 64.0 / 7.0;
        assert!((moved.mean - 0.02 * parts).abs() < 1e-12);
        assert!((moved.deviation - 0.01 * parts).abs() < 1e-12);
        let scaling = Scaling::new(vec![window.centre()]);
        let outside = scaling.to_values(&[1.0, 3.0]);
        let by_window = score(&[1.0, 3.0], &[window.apply(0.07)]);
        assert!((score(&outside, &[0.07]) - by_window).abs() < 1e-12);
        assert_eq!(Window::around(Centre::of_share(0.0)), Window::WHOLE);
        let nan = Centre {
            mean: f64::NAN,
            deviation: 0.1,
        };
        assert_eq!(Window::around(nan), Window::WHOLE);
    }

    #[test]
    fn a_window_tells_mean_and_deviation_roughly() {
        let around = |mean: f64, deviation: f64| Window::around(Centre { mean, deviation });
        let told = around(0.5, 0.006);
        for (mean, deviation) in [(0.501, 0.006), (0.4995, 0.0061), (0.5, 0.0059)] {
            assert_eq!(around(mean, deviation), told, "{mean} {deviation}");
        }
        assert_ne!(around(0.52, 0.006), told);
    }

    #[test]
    fn a_constant_column_keeps_its_unit() {
        assert_eq!(Centre::of_moments(0.25, 0.0625).deviation, 1.0);
        assert_eq!(Centre::of_share(0.0).deviation, 1.0);
        assert_eq!(Centre::of_share(0.5).deviation, 0.5);
        // Rounding may leave a negative variance.
        assert_eq!(Centre::of_moments(0.3, 0.09 - 1e-18).deviation, 1.0);
    }
}
