//! Algorithm 2 of the paper: two-sided microaggregation.
//!
//! Rows are taken in clusters of k: the k nearest to the corner of the largest values, then the k
//! nearest to the corner of the smallest ones, and so on until fewer than 2k rows are left, which
//! make the last cluster. The distance is Euclidean, every attribute divided by the distance of
//! the corners; an attribute in which the corners agree counts nothing.
//!
//! Rows at the same distance are ordered by their values, then by position. The order is thus a
//! function of the rows alone (rows equal in all values are interchangeable), as insensitive
//! microaggregation demands, and every way to compute it gives the same clusters.
//!
//! [`Corners::Remaining`] is the algorithm as printed: the corners are found again from the rows
//! that remain, so each round is a pass over them (minimum and maximum, distances, and a linear
//! selection of the k nearest instead of sorting): m²/(4k) row visits in all, which is m^1.5 at
//! the default k. [`Corners::Fixed`] never changes the order, so one sort from either corner and
//! two cursors that skip what is taken do: m log m.

use crate::bounds::Bounds;
use crate::points::Points;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Where the corner points come from.
#[derive(Debug, Clone, Copy)]
pub enum Corners<'a> {
    /// As printed: the largest and smallest values of the rows that remain, in every round.
    Remaining,
    /// Fixed points, one pair of bounds a column; every row lies within.
    Fixed(&'a [Bounds]),
}

/// A partition of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    rows: usize,
    members: Vec<Vec<usize>>,
}

/// Why rows cannot be clustered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// k = 0.
    #[error("the cluster size is zero; clusters need at least one row")]
    ZeroSize,
    /// m < 2.
    #[error("{rows} rows cannot make two clusters; microaggregation needs at least two rows")]
    TooFewRows {
        /// How many rows there are.
        rows: usize,
    },
    /// m < 2k.
    #[error("clusters of {size} need {} rows, there are {rows}; the largest size is {}", .size.saturating_mul(2), .rows / 2)]
    SizeTooLarge {
        /// The cluster size asked for.
        size: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// Not one pair of bounds a column.
    #[error("bounds are given for {bounds} columns of {columns}")]
    BoundsCount {
        /// How many bounds.
        bounds: usize,
        /// How many columns.
        columns: usize,
    },
    /// A value outside its bounds.
    #[error("row {row}, column {column}: a value outside its public bounds; nothing was released")]
    Outside {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
    },
}

/// The paper's best cluster size, √(m/2), rounded down and at least 1.
pub fn default_size(rows: usize) -> usize {
    (rows / 2).isqrt().max(1)
}

impl Clusters {
    /// Runs Algorithm 2 with clusters of `size` rows.
    pub fn form(points: &Points, size: usize, corners: Corners<'_>) -> Result<Self, ClusterError> {
        let rows = points.rows();
        if size == 0 {
            return Err(ClusterError::ZeroSize);
        }
        if rows < 2 {
            return Err(ClusterError::TooFewRows { rows });
        }
        if rows / 2 < size {
            return Err(ClusterError::SizeTooLarge { size, rows });
        }
        let mut members = match corners {
            Corners::Remaining => from_moving_corners(points, size),
            Corners::Fixed(bounds) => {
                check_bounds(points, bounds)?;
                from_fixed_corners(points, size, bounds)
            }
        };
        // Sums over members must not depend on the order in which they were found.
        members
            .iter_mut()
            .for_each(|cluster| cluster.sort_unstable());
        Ok(Self { rows, members })
    }

    /// Every row a cluster of its own.
    pub(crate) fn singletons(rows: usize) -> Self {
        Self {
            rows,
            members: (0..rows).map(|row| vec![row]).collect(),
        }
    }

    /// The rows of every cluster in ascending order; clusters in the order of their making.
    pub fn members(&self) -> &[Vec<usize>] {
        &self.members
    }

    /// The cluster of every row.
    pub fn assignment(&self) -> Vec<usize> {
        let mut assignment = vec![0; self.rows];
        for (cluster, members) in self.members.iter().enumerate() {
            members.iter().for_each(|&row| assignment[row] = cluster);
        }
        assignment
    }

    /// The mean of every cluster.
    pub(crate) fn centroids(&self, points: &Points) -> Vec<Vec<f64>> {
        self.members
            .iter()
            .map(|members| mean(points, members))
            .collect()
    }
}

fn mean(points: &Points, members: &[usize]) -> Vec<f64> {
    let mut sum = vec![0.0; points.width()];
    for &row in members {
        sum.iter_mut()
            .zip(points.row(row))
            .for_each(|(s, x)| *s += x);
    }
    sum.iter_mut().for_each(|s| *s /= members.len() as f64);
    sum
}

pub(crate) fn check_bounds(points: &Points, bounds: &[Bounds]) -> Result<(), ClusterError> {
    if bounds.len() != points.width() {
        let (bounds, columns) = (bounds.len(), points.width());
        return Err(ClusterError::BoundsCount { bounds, columns });
    }
    for (row, values) in points.iter().enumerate() {
        let outside = |(x, bounds): (&f64, &Bounds)| !bounds.contains(*x);
        if let Some(column) = values.iter().zip(bounds).position(outside) {
            return Err(ClusterError::Outside { row, column });
        }
    }
    Ok(())
}

/// Two corner points and the weight of every attribute in the distance.
struct CornerPair {
    low: Vec<f64>,
    high: Vec<f64>,
    weights: Vec<f64>,
}

impl CornerPair {
    fn new(low: Vec<f64>, high: Vec<f64>) -> Self {
        let weight = |(low, high): (&f64, &f64)| match high - low {
            0.0 => 0.0,
            range => 1.0 / (range * range),
        };
        let weights = low.iter().zip(&high).map(weight).collect();
        Self { low, high, weights }
    }

    fn around(points: &Points, rows: &[Ranked]) -> Self {
        let mut low = vec![f64::INFINITY; points.width()];
        let mut high = vec![f64::NEG_INFINITY; points.width()];
        for ranked in rows {
            let corners = low.iter_mut().zip(&mut high);
            for ((low, high), &x) in corners.zip(points.row(ranked.row)) {
                *low = if x < *low { x } else { *low };
                *high = if x > *high { x } else { *high };
            }
        }
        Self::new(low, high)
    }

    /// The squared distance, whose order is that of the distance.
    fn distance(&self, corner: &[f64], row: &[f64]) -> f64 {
        let terms = row.iter().zip(corner).zip(&self.weights);
        terms
            .map(|((x, c), weight)| (x - c) * (x - c) * weight)
            .sum()
    }
}

/// A row and its distance from a corner.
#[derive(Clone, Copy)]
struct Ranked {
    distance: f64,
    row: usize,
}

/// The total order: distance, values, position.
fn order(points: &Points, a: &Ranked, b: &Ranked) -> Ordering {
    a.distance.total_cmp(&b.distance).then_with(|| {
        let pairs = points.row(a.row).iter().zip(points.row(b.row));
        let by_values = pairs.map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne());
        by_values.unwrap_or_else(|| a.row.cmp(&b.row))
    })
}

fn from_moving_corners(points: &Points, size: usize) -> Vec<Vec<usize>> {
    let mut remaining: Vec<Ranked> = (0..points.rows())
        .map(|row| Ranked { distance: 0.0, row })
        .collect();
    let mut members = Vec::with_capacity(points.rows() / size + 1);
    while remaining.len() >= 2 * size {
        let corners = CornerPair::around(points, &remaining);
        for corner in [&corners.high, &corners.low] {
            for ranked in &mut remaining {
                ranked.distance = corners.distance(corner, points.row(ranked.row));
            }
            members.push(take_nearest(points, &mut remaining, size));
        }
    }
    if !remaining.is_empty() {
        members.push(remaining.iter().map(|ranked| ranked.row).collect());
    }
    members
}

fn take_nearest(points: &Points, remaining: &mut Vec<Ranked>, size: usize) -> Vec<usize> {
    remaining.select_nth_unstable_by(size - 1, |a, b| order(points, a, b));
    remaining.drain(..size).map(|ranked| ranked.row).collect()
}

fn from_fixed_corners(points: &Points, size: usize, bounds: &[Bounds]) -> Vec<Vec<usize>> {
    let low = bounds.iter().map(Bounds::low).collect();
    let high = bounds.iter().map(Bounds::high).collect();
    let corners = CornerPair::new(low, high);
    let sorted =
        [&corners.high, &corners.low].map(|corner| rows_by_distance(points, &corners, corner));
    let [mut from_high, mut from_low] = sorted.map(Vec::into_iter);
    let mut taken = vec![false; points.rows()];
    let mut left = points.rows();
    let mut members = Vec::with_capacity(points.rows() / size + 1);
    while left >= 2 * size {
        for side in [&mut from_high, &mut from_low] {
            members.push(take_untaken(side, &mut taken, size));
        }
        left -= 2 * size;
    }
    let rest: Vec<usize> = (0..points.rows()).filter(|&row| !taken[row]).collect();
    if !rest.is_empty() {
        members.push(rest);
    }
    members
}

fn rows_by_distance(points: &Points, corners: &CornerPair, corner: &[f64]) -> Vec<usize> {
    let rank = |row| Ranked {
        distance: corners.distance(corner, points.row(row)),
        row,
    };
    let mut ranked: Vec<Ranked> = (0..points.rows()).map(rank).collect();
    ranked.par_sort_unstable_by(|a, b| order(points, a, b));
    ranked.into_iter().map(|ranked| ranked.row).collect()
}

fn take_untaken(
    side: &mut impl Iterator<Item = usize>,
    taken: &mut [bool],
    size: usize,
) -> Vec<usize> {
    let fresh = side.filter(|&row| !std::mem::replace(&mut taken[row], true));
    fresh.take(size).collect()
}

#[cfg(test)]
mod tests;
