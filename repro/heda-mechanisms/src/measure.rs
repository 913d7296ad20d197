//! What a release loses and what it gives away: SSE and record linkage, as the paper defines them.

use crate::points::Points;
use rayon::prelude::*;

/// Original and released rows do not correspond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} x {} original values and {} x {} released ones do not correspond", .original.0, .original.1, .released.0, .released.1)]
pub struct ShapeMismatch {
    /// Rows and columns of the original.
    pub original: (usize, usize),
    /// Rows and columns of the release.
    pub released: (usize, usize),
}

fn same_shape(original: &Points, released: &Points) -> Result<(), ShapeMismatch> {
    let shape = |points: &Points| (points.rows(), points.width());
    let (original, released) = (shape(original), shape(released));
    if original != released {
        return Err(ShapeMismatch { original, released });
    }
    Ok(())
}

/// Sum of squared errors over all values: how much is lost.
pub fn squared_errors(original: &Points, released: &Points) -> Result<f64, ShapeMismatch> {
    same_shape(original, released)?;
    Ok(squared_distance(original.values(), released.values()))
}

/// Sum of squared errors of every column.
pub fn squared_errors_by_column(
    original: &Points,
    released: &Points,
) -> Result<Vec<f64>, ShapeMismatch> {
    same_shape(original, released)?;
    let mut sums = vec![0.0; original.width()];
    for (x, y) in original.iter().zip(released.iter()) {
        let terms = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y));
        sums.iter_mut()
            .zip(terms)
            .for_each(|(sum, term)| *sum += term);
    }
    Ok(sums)
}

/// Record linkage: the share of rows found again by an adversary who holds the original rows and
/// looks for the one nearest to each released row, guessing among equals. Between 0 and 1.
///
/// For released row i let R be the original rows nearest to it; it counts 1/|R| if its own
/// original is in R and nothing otherwise (the paper's formula prints "∈" for both cases).
///
/// Exact, without a search for the nearest: one original strictly nearer than the row's own one
/// settles that it counts nothing, and in a release worth its name such a row soon turns up.
pub fn record_linkage(original: &Points, released: &Points) -> Result<f64, ShapeMismatch> {
    same_shape(original, released)?;
    if original.rows() == 0 {
        return Ok(0.0);
    }
    let found = (0..original.rows())
        .into_par_iter()
        .map(|row| found_again(original, released, row));
    // Summed in order: the result must not depend on the threads.
    let found: Vec<f64> = found.collect();
    Ok(found.iter().sum::<f64>() / original.rows() as f64)
}

fn found_again(original: &Points, released: &Points, row: usize) -> f64 {
    let noisy = released.row(row);
    let own = squared_distance(original.row(row), noisy);
    let mut equally_near = 0u32;
    for candidate in original.iter() {
        let distance = distance_up_to(candidate, noisy, own);
        if distance < own {
            return 0.0;
        }
        equally_near += u32::from(distance == own);
    }
    1.0 / f64::from(equally_near)
}

/// The squared distance, or some number above `limit` if it is above.
fn distance_up_to(a: &[f64], b: &[f64], limit: f64) -> f64 {
    let mut sum = 0.0;
    for (x, y) in a.iter().zip(b) {
        sum += (x - y) * (x - y);
        if sum > limit {
            break;
        }
    }
    sum
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    distance_up_to(a, b, f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(width: usize, values: &[f64]) -> Points {
        Points::new(width, values.to_vec()).unwrap()
    }

    #[test]
    fn errors_are_summed_over_values() {
        let (x, y) = (
            points(2, &[0.0, 1.0, 2.0, 3.0]),
            points(2, &[1.0, 1.0, 2.0, 1.0]),
        );
        assert_eq!(squared_errors(&x, &y), Ok(5.0));
        assert_eq!(squared_errors_by_column(&x, &y), Ok(vec![1.0, 4.0]));
        assert_eq!(squared_errors(&x, &x), Ok(0.0));
    }

    #[test]
    fn linkage_by_hand() {
        let x = points(1, &[0.0, 1.0, 2.0, 2.0]);
        // Unchanged: two rows are unique, two are guessed with probability one half.
        assert_eq!(record_linkage(&x, &x), Ok(0.75));
        // All released as 1: only the row that was 1 is nearest to itself.
        assert_eq!(record_linkage(&x, &points(1, &[1.0; 4])), Ok(0.25));
        // Moved past its neighbour.
        assert_eq!(
            record_linkage(&points(1, &[0.0, 1.0]), &points(1, &[0.9, 0.2])),
            Ok(0.0)
        );
        // Halfway between both: a coin for each.
        assert_eq!(
            record_linkage(&points(1, &[0.0, 1.0]), &points(1, &[0.5, 0.5])),
            Ok(0.5)
        );
        assert_eq!(record_linkage(&points(1, &[]), &points(1, &[])), Ok(0.0));
    }

    #[test]
    fn rows_that_do_not_correspond_are_refused() {
        let (x, y) = (points(1, &[0.0, 1.0]), points(2, &[0.0, 1.0]));
        assert!(record_linkage(&x, &y).is_err() && squared_errors(&x, &y).is_err());
        let message = squared_errors(&x, &y).unwrap_err().to_string();
        assert_eq!(
            message,
            "2 x 1 original values and 1 x 2 released ones do not correspond"
        );
    }

    /// The definition, word by word.
    fn slow_linkage(original: &Points, released: &Points) -> f64 {
        let score = |row: usize| {
            let distance = |i: usize| squared_distance(original.row(i), released.row(row));
            let nearest = (0..original.rows())
                .map(distance)
                .fold(f64::INFINITY, f64::min);
            let r: Vec<usize> = (0..original.rows())
                .filter(|&i| distance(i) == nearest)
                .collect();
            if r.contains(&row) {
                1.0 / r.len() as f64
            } else {
                0.0
            }
        };
        (0..original.rows()).map(score).sum::<f64>() / original.rows() as f64
    }

    proptest! {
        #[test]
        fn linkage_equals_its_definition(cells in proptest::collection::vec((0u8..4, 0u8..7), 2..80)) {
            let half = |x: &u8| f64::from(*x) / 2.0;
            let cells = &cells[..cells.len() / 2 * 2];
            let x = points(2, &cells.iter().map(|c| f64::from(c.0)).collect::<Vec<_>>());
            let y = points(2, &cells.iter().map(|c| half(&c.1)).collect::<Vec<_>>());
            let fast = record_linkage(&x, &y).unwrap();
            prop_assert!((fast - slow_linkage(&x, &y)).abs() < 1e-12);
        }
    }
}
