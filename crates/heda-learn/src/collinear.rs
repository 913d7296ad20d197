//! How much of a column is its own: what the other columns leave unexplained of it.
//!
//! Columns that nearly follow from others have coefficients that hardly anything determines: a
//! little noise in a gradient moves them far, in opposite directions, while predictions stay the
//! same. Gradients do not show that, for along such a direction there is next to nothing to be
//! seen. The rows do: a column is regressed on the others, and the deviation of the rest says how
//! much of it is its own (its square is the *tolerance*, one divided by the variance inflation
//! factor of Marquardt, 1970).

use crate::data::{Dataset, Feature};

/// Rows that are looked at: beyond, more of them change nothing.
const MOST_ROWS: usize = 4096;
/// Fewer rows for each column say nothing about columns that follow from others.
const ROWS_PER_COLUMN: usize = 2;
/// Added to the diagonal of the correlations, so that columns may follow from others exactly.
const RIDGE: f64 = 1e-8;

/// The deviation of what the other columns leave unexplained, for each feature that is one number,
/// in the order of `features`. Of too few rows the whole deviation: nothing is known then.
pub fn unexplained(data: &Dataset, features: &[Feature]) -> Vec<f64> {
    let columns = regressors(features);
    let rows = data.rows().min(MOST_ROWS);
    let deviations = deviations(data, rows, &columns);
    let numbers = features.iter().filter(|f| f.columns.len() == 1);
    let numbers: Vec<usize> = numbers.map(|feature| feature.columns.start).collect();
    let place = |column: &usize| columns.iter().position(|c| c == column);
    let own = |tolerance: &dyn Fn(usize) -> f64| {
        let places = numbers.iter().filter_map(place);
        places
            .map(|at| deviations[at] * tolerance(at).sqrt())
            .collect()
    };
    if rows <= ROWS_PER_COLUMN * columns.len() {
        return own(&|_| 1.0);
    }
    let inverse = inverted(correlations(data, rows, &columns, &deviations));
    // Every column that explains takes one degree of freedom.
    let freedom = rows as f64 / (rows - columns.len()) as f64;
    own(&|at| (freedom / inverse[at][at]).clamp(0.0, 1.0))
}

/// The columns that explain each other: of a category all levels but the last, which follows.
fn regressors(features: &[Feature]) -> Vec<usize> {
    let columns = |feature: &Feature| match feature.columns.len() {
        1 => feature.columns.clone(),
        levels => feature.columns.start..feature.columns.start + levels.saturating_sub(1),
    };
    features.iter().flat_map(columns).collect()
}

fn means(data: &Dataset, rows: usize, columns: &[usize]) -> Vec<f64> {
    let mean = |&column: &usize| {
        let values = (0..rows).map(|row| data.row(row)[column]);
        values.sum::<f64>() / rows.max(1) as f64
    };
    columns.iter().map(mean).collect()
}

fn deviations(data: &Dataset, rows: usize, columns: &[usize]) -> Vec<f64> {
    let means = means(data, rows, columns);
    let deviation = |(&column, mean): (&usize, &f64)| {
        let squares = (0..rows).map(|row| (data.row(row)[column] - mean).powi(2));
        (squares.sum::<f64>() / rows.max(1) as f64).sqrt()
    };
    columns.iter().zip(&means).map(deviation).collect()
}

/// The correlations of the columns, with the ridge. A column that does not vary follows nothing.
fn correlations(
    data: &Dataset,
    rows: usize,
    columns: &[usize],
    deviations: &[f64],
) -> Vec<Vec<f64>> {
    let width = columns.len();
    let means = means(data, rows, columns);
    let mut sums = vec![vec![0.0; width]; width];
    let mut place = vec![0.0; width];
    for row in 0..rows {
        let values = data.row(row);
        for (at, place) in place.iter_mut().enumerate() {
            let varies = deviations[at] > 0.0;
            let centred = values[columns[at]] - means[at];
            *place = if varies {
                centred / deviations[at]
            } else {
                0.0
            };
        }
        for (line, own) in sums.iter_mut().zip(&place) {
            line.iter_mut()
                .zip(&place)
                .for_each(|(sum, other)| *sum += own * other);
        }
    }
    for (at, line) in sums.iter_mut().enumerate() {
        line.iter_mut().for_each(|sum| *sum /= rows as f64);
        line[at] = 1.0 + RIDGE;
    }
    sums
}

/// The inverse of a symmetric positive matrix, by Gauss and Jordan.
fn inverted(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let width = matrix.len();
    for at in 0..width {
        let pivot = matrix[at][at];
        let mut line: Vec<f64> = matrix[at].iter().map(|value| value / pivot).collect();
        line[at] = 1.0 / pivot;
        for (other, row) in matrix.iter_mut().enumerate() {
            if other == at {
                continue;
            }
            let part = std::mem::replace(&mut row[at], 0.0);
            row.iter_mut()
                .zip(&line)
                .for_each(|(value, l)| *value -= part * l);
        }
        matrix[at] = line;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::unit;
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;

    fn feature(name: &str, columns: std::ops::Range<usize>) -> Feature {
        Feature {
            name: name.into(),
            levels: (columns.len() > 1).then_some(columns.len()),
            columns,
        }
    }

    /// Two numbers, their mean with a little of its own, a constant, a category, and a number that
    /// is the category's first level.
    fn rows(count: usize) -> (Dataset, Vec<Feature>) {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut values = Vec::new();
        for row in 0..count {
            let (a, b, own) = (unit(&mut rng), unit(&mut rng), unit(&mut rng));
            let mean = 0.45 * a + 0.45 * b + 0.02 * own;
            let level = row % 3;
            values.extend([a, b, mean, 0.5]);
            values.extend((0..3).map(|l| f64::from(u8::from(l == level))));
            values.push(0.1 + 0.3 * f64::from(u8::from(level == 0)));
        }
        let features = vec![
            feature("a", 0..1),
            feature("b", 1..2),
            feature("mean", 2..3),
            feature("constant", 3..4),
            feature("kind", 4..7),
            feature("first", 7..8),
        ];
        let labels = (0..count as u32).map(|row| row % 2).collect();
        let classes = vec!["no".into(), "yes".into()];
        let data = Dataset::new(features.clone(), values, labels, classes).unwrap();
        (data, features)
    }

    #[test]
    fn what_is_left_is_the_deviation_of_the_columns_own_part() {
        let (data, features) = rows(3000);
        let left = unexplained(&data, &features);
        let uniform = 1.0 / 12f64.sqrt();
        // The mean's own part is a uniform number of 0.02; a is (mean − 0.45·b − own)/0.45.
        for (found, exact) in left
            .iter()
            .zip([uniform * 0.02 / 0.45, uniform * 0.02 / 0.45])
        {
            assert!((found / exact - 1.0).abs() < 0.05, "{left:?}");
        }
        assert!((left[2] / (uniform * 0.02) - 1.0).abs() < 0.05, "{left:?}");
        assert_eq!(left[3], 0.0, "it does not vary");
        assert!(left[4] < 1e-3 * 0.14, "it follows from a level: {left:?}");
        // Without the mean both are their own.
        let apart = unexplained(&data, &features[..2]);
        assert!(apart.iter().all(|left| (left / uniform - 1.0).abs() < 0.05));
    }

    #[test]
    fn of_few_rows_nothing_is_known() {
        let (data, features) = rows(14);
        let left = unexplained(&data, &features);
        assert!(left[0] > 0.15 && left[2] > 0.1, "{left:?}");
        assert!(
            unexplained(&data.select_rows(&[]), &features)
                .iter()
                .all(|left| *left == 0.0)
        );
    }
}
