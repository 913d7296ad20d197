//! The paper's control: insensitive microaggregation by Soria-Comas, Domingo-Ferrer, Sánchez and
//! Martínez (*Enhancing data utility in differential privacy via microaggregation-based
//! k-anonymity*, 2014), as the paper reads it.
//!
//! The corners never move, and a change of one row may change every cluster:
//! Δf' = Δf/k · m/k. What is said about [`crate::ima`] and linked rows holds here as well.

use crate::centroid::{
    PrepareError, Prepared, Reference, complete, fixed_clusters, observed, sensitivities,
};
use crate::points::Points;
use heda_dp::account::Mechanism;

/// Clusters the rows from fixed corners: the extremes of the data, or the public bounds.
pub fn prepare<'a>(
    points: &'a Points,
    size: usize,
    reference: Reference<'_>,
) -> Result<Prepared<'a>, PrepareError> {
    let corners = match reference {
        Reference::Data => observed(points)?,
        Reference::Public(bounds) => complete(bounds)?,
    };
    let clusters = fixed_clusters(points, size, &corners)?;
    let (m, k) = (points.rows() as f64, size as f64);
    let mut sensitivities = sensitivities(points, reference)?;
    sensitivities
        .iter_mut()
        .for_each(|delta| *delta = *delta / k * (m / k));
    Ok(Prepared {
        mechanism: Mechanism::Imdav,
        points,
        clusters,
        sensitivities,
    })
}
