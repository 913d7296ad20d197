//! What the three mechanisms of the paper share: a noisy centroid for every cluster.
//!
//! One draw a centroid and attribute, given to all rows of the cluster. The noise is discrete
//! Laplace on a grid of 2⁻²⁰ to 2⁻²¹ of its scale, the scale rounded up to the grid and the
//! centroid to the nearest point: as good as continuous, without the leak of floating-point noise.

use crate::bounds::{Bounds, BoundsError};
use crate::cluster::{ClusterError, Clusters, Corners};
use crate::points::Points;
use heda_dp::account::{Charge, Mechanism, Receipt, ReceiptMismatch};
use heda_dp::sample::DiscreteLaplace;
use rand_core::CryptoRng;
use std::num::NonZeroU64;

/// Where corners and sensitivities come from.
#[derive(Debug, Clone, Copy)]
pub enum Reference<'a> {
    /// As printed: read from the data, Δf = max(A_j). Not private by itself.
    Data,
    /// Public bounds, one a column: Δf is upper minus lower bound.
    Public(&'a [Option<Bounds>]),
}

/// Why rows cannot be released by a mechanism of the paper.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The rows cannot be clustered.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A column without public bounds.
    #[error("column {column} has no public bounds; give them in the schema")]
    MissingBounds {
        /// Column, from 0.
        column: usize,
    },
    /// Nothing to release.
    #[error("a release needs at least one row")]
    NoRows,
    /// Δf = max(A_j) ≤ 0.
    #[error(
        "column {column}: the largest value is not positive, so the paper's sensitivity is not \
         either; scale the column to [0, 1] or use public bounds"
    )]
    NotPositive {
        /// Column, from 0.
        column: usize,
    },
    /// The data give no corners.
    #[error("column {column}: {error}")]
    Range {
        /// Column, from 0.
        column: usize,
        /// What is wrong with smallest and largest value.
        error: BoundsError,
    },
}

/// Why a prepared release did not happen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The receipt pays for something else.
    #[error(transparent)]
    Receipt(#[from] ReceiptMismatch),
    /// A scale too small or too large to compute with.
    #[error("column {column}: noise of scale {scale} cannot be drawn; scale the column to [0, 1]")]
    Scale {
        /// Column, from 0.
        column: usize,
        /// The scale, Δf'/ε.
        scale: f64,
    },
}

/// Clusters and sensitivities, ready to be released once they are paid for.
#[derive(Debug, Clone)]
#[must_use = "prepared rows are released with a receipt"]
pub struct Prepared<'a> {
    pub(crate) mechanism: Mechanism,
    pub(crate) points: &'a Points,
    pub(crate) clusters: Clusters,
    pub(crate) sensitivities: Vec<f64>,
}

/// Noisy rows, and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleasedPoints {
    points: Points,
    charge: Charge,
}

impl ReleasedPoints {
    /// The noisy rows, in the order of the original ones. They are not clipped.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// What was paid, by the mechanism's own claim.
    pub fn charge(&self) -> &Charge {
        &self.charge
    }
}

impl Prepared<'_> {
    /// By which mechanism.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The partition that will be visible in the release.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Δf' of every column: by how much one row is said to change the list of centroids.
    pub fn sensitivities(&self) -> &[f64] {
        &self.sensitivities
    }

    /// Draws the noise that the receipt pays for.
    pub fn release<R: CryptoRng>(
        self,
        receipt: Receipt,
        rng: &mut R,
    ) -> Result<ReleasedPoints, ReleaseError> {
        let charge = receipt.redeem(self.mechanism, self.points.width())?;
        let paid = self.sensitivities.iter().zip(charge.columns()).enumerate();
        let noises = paid
            .map(|(column, (sensitivity, paid))| {
                let scale = sensitivity / paid.epsilon.to_f64();
                FineNoise::new(scale).ok_or(ReleaseError::Scale { column, scale })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let points = self.noisy_rows(&noises, rng);
        Ok(ReleasedPoints { points, charge })
    }

    fn noisy_rows<R: CryptoRng>(&self, noises: &[FineNoise], rng: &mut R) -> Points {
        let width = self.points.width();
        let mut values = vec![0.0; self.points.values().len()];
        let centroids = self.clusters.centroids(self.points);
        for (members, mut centroid) in self.clusters.members().iter().zip(centroids) {
            centroid
                .iter_mut()
                .zip(noises)
                .for_each(|(x, noise)| *x = noise.around(*x, rng));
            for &row in members {
                values[row * width..][..width].copy_from_slice(&centroid);
            }
        }
        Points::from_checked(width, values)
    }
}

/// Laplace noise on a fine grid.
struct FineNoise {
    resolution: f64,
    noise: DiscreteLaplace,
}

impl FineNoise {
    fn new(scale: f64) -> Option<Self> {
        let resolution = (scale.log2().floor() - 20.0).exp2();
        let steps = (scale / resolution).ceil();
        let usable = resolution.is_normal() && (1.0..=f64::from(1 << 22)).contains(&steps);
        let steps = NonZeroU64::new(steps as u64).filter(|_| usable)?;
        Some(Self {
            resolution,
            noise: DiscreteLaplace::with_scale(steps),
        })
    }

    fn around<R: CryptoRng>(&self, value: f64, rng: &mut R) -> f64 {
        ((value / self.resolution).round() + self.noise.sample(rng) as f64) * self.resolution
    }
}

/// Public bounds of every column, none missing.
pub(crate) fn complete(bounds: &[Option<Bounds>]) -> Result<Vec<Bounds>, PrepareError> {
    let complete = bounds.iter().enumerate();
    complete
        .map(|(column, b)| b.ok_or(PrepareError::MissingBounds { column }))
        .collect()
}

/// Smallest and largest value of every column as bounds.
pub(crate) fn observed(points: &Points) -> Result<Vec<Bounds>, PrepareError> {
    let bounds = |column| {
        let (low, high) = points.extremes(column).ok_or(PrepareError::NoRows)?;
        Bounds::new(low, high).map_err(|error| PrepareError::Range { column, error })
    };
    (0..points.width()).map(bounds).collect()
}

/// Δf of every column: max(A_j) as in the paper, or the range of the public bounds.
pub(crate) fn sensitivities(
    points: &Points,
    reference: Reference<'_>,
) -> Result<Vec<f64>, PrepareError> {
    let largest = |column| match points.extremes(column) {
        None => Err(PrepareError::NoRows),
        Some((_, high)) if high <= 0.0 => Err(PrepareError::NotPositive { column }),
        Some((_, high)) => Ok(high),
    };
    match reference {
        Reference::Data => (0..points.width()).map(largest).collect(),
        Reference::Public(bounds) => Ok(complete(bounds)?.iter().map(Bounds::range).collect()),
    }
}

/// Clusters from the corners of `bounds`, which never move.
pub(crate) fn fixed_clusters(
    points: &Points,
    size: usize,
    bounds: &[Bounds],
) -> Result<Clusters, PrepareError> {
    Ok(Clusters::form(points, size, Corners::Fixed(bounds))?)
}
