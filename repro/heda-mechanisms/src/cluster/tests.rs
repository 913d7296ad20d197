//! Small cases by hand, and both algorithms against the slow reading of the paper.

use super::*;
use proptest::prelude::*;

fn line(values: &[f64]) -> Points {
    Points::new(1, values.to_vec()).unwrap()
}

#[test]
fn a_line_is_taken_from_both_ends() {
    let points = line(&[3.0, 9.0, 1.0, 5.0, 4.0, 8.0, 2.0]);
    let expected = [vec![1, 5], vec![2, 6], vec![0, 3, 4]];
    let printed = Clusters::form(&points, 2, Corners::Remaining).unwrap();
    assert_eq!(printed.members(), expected);
    let bounds = [Bounds::new(0.0, 10.0).unwrap()];
    let fixed = Clusters::form(&points, 2, Corners::Fixed(&bounds)).unwrap();
    assert_eq!(fixed.members(), expected);
    assert_eq!(fixed.assignment(), [2, 0, 1, 2, 2, 0, 1]);
}

#[test]
fn no_last_cluster_when_nothing_is_left() {
    let clusters = Clusters::form(&line(&[1.0, 2.0, 3.0, 4.0]), 2, Corners::Remaining).unwrap();
    assert_eq!(clusters.members(), [vec![2, 3], vec![0, 1]]);
}

#[test]
fn equal_distances_are_decided_by_values_not_by_position() {
    // Rows (0,1) and (1,0) are equally far from the corner (1,1).
    let first = Points::new(2, vec![0.0, 1.0, 1.0, 0.0]).unwrap();
    let second = Points::new(2, vec![1.0, 0.0, 0.0, 1.0]).unwrap();
    let taken_first = |points: &Points| {
        let clusters = Clusters::form(points, 1, Corners::Remaining).unwrap();
        points.row(clusters.members()[0][0]).to_vec()
    };
    assert_eq!(taken_first(&first), taken_first(&second));
}

#[test]
fn default_sizes() {
    // The paper's 16 for BCWD belongs to 569 rows, not to the 699 of its own table.
    let sizes = [569, 699, 690, 1728, 32_561].map(default_size);
    assert_eq!(sizes, [16, 18, 18, 29, 127]);
    assert_eq!([0, 1, 2].map(default_size), [1, 1, 1]);
}

#[test]
fn bad_input_has_its_own_errors() {
    let points = line(&[0.0, 1.0, 2.0]);
    let form = |size| Clusters::form(&points, size, Corners::Remaining).unwrap_err();
    assert_eq!(form(0), ClusterError::ZeroSize);
    assert_eq!(form(2), ClusterError::SizeTooLarge { size: 2, rows: 3 });
    assert_eq!(
        form(usize::MAX),
        ClusterError::SizeTooLarge {
            size: usize::MAX,
            rows: 3
        }
    );
    let one = Clusters::form(&line(&[1.0]), 1, Corners::Remaining).unwrap_err();
    assert_eq!(one, ClusterError::TooFewRows { rows: 1 });
    let fixed = |bounds: &[Bounds]| Clusters::form(&points, 1, Corners::Fixed(bounds)).unwrap_err();
    assert_eq!(
        fixed(&[]),
        ClusterError::BoundsCount {
            bounds: 0,
            columns: 1
        }
    );
    assert_eq!(
        fixed(&[Bounds::UNIT]),
        ClusterError::Outside { row: 2, column: 0 }
    );
    let too_large = form(2).to_string();
    assert_eq!(
        too_large,
        "clusters of 2 need 4 rows, there are 3; the largest size is 1"
    );
}

/// The algorithm read line by line: everything computed again in every step, by full sorts.
fn slow(points: &Points, size: usize, fixed: Option<&[Bounds]>) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..points.rows()).collect();
    let mut members = Vec::new();
    let extreme = |left: &[usize], j: usize, pick: fn(f64, f64) -> f64| {
        left.iter().map(|&i| points.row(i)[j]).reduce(pick).unwrap()
    };
    while left.len() >= 2 * size {
        let columns = 0..points.width();
        let low: Vec<f64> = columns
            .clone()
            .map(|j| fixed.map_or_else(|| extreme(&left, j, f64::min), |b| b[j].low()))
            .collect();
        let high: Vec<f64> = columns
            .map(|j| fixed.map_or_else(|| extreme(&left, j, f64::max), |b| b[j].high()))
            .collect();
        for corner in [&high, &low] {
            let distance = |i: usize| -> f64 {
                let term = |j: usize| match high[j] - low[j] {
                    0.0 => 0.0,
                    r => (points.row(i)[j] - corner[j]).powi(2) * (1.0 / (r * r)),
                };
                (0..points.width()).map(term).sum()
            };
            left.sort_by(|&a, &b| {
                let values = points.row(a).partial_cmp(points.row(b)).unwrap();
                distance(a)
                    .total_cmp(&distance(b))
                    .then(values)
                    .then(a.cmp(&b))
            });
            let mut cluster: Vec<usize> = left.drain(..size).collect();
            cluster.sort_unstable();
            members.push(cluster);
        }
    }
    left.sort_unstable();
    if !left.is_empty() {
        members.push(left);
    }
    members
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn fast_and_slow_find_the_same_clusters(
        width in 1usize..4,
        cells in proptest::collection::vec(0u8..6, 12..150),
        size in 1usize..5,
    ) {
        // Few distinct values: many ties, and columns that become constant on the way.
        let rows = cells.len() / width;
        prop_assume!(rows >= 2 * size);
        let values = cells[..rows * width].iter().map(|&c| f64::from(c)).collect();
        let points = Points::new(width, values).unwrap();
        let printed = Clusters::form(&points, size, Corners::Remaining).unwrap();
        prop_assert_eq!(printed.members(), slow(&points, size, None));
        let bounds = vec![Bounds::new(0.0, 5.0).unwrap(); width];
        let fixed = Clusters::form(&points, size, Corners::Fixed(&bounds)).unwrap();
        prop_assert_eq!(fixed.members(), slow(&points, size, Some(&bounds)));
        let mut all: Vec<usize> = fixed.members().concat();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..rows));
    }
}
