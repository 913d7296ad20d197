//! The paper's baseline: Laplace noise of scale Δf/ε_j on every value ("standard DP").
//!
//! With [`Reference::Data`] Δf = max(A_j) as in the paper. For real releases use
//! [`heda_dp::laplace`].

use crate::centroid::{PrepareError, Prepared, Reference, complete, sensitivities};
use crate::cluster::{Clusters, check_bounds};
use crate::points::Points;
use heda_dp::account::Mechanism;

/// Every row by itself.
pub fn prepare<'a>(
    points: &'a Points,
    reference: Reference<'_>,
) -> Result<Prepared<'a>, PrepareError> {
    let sensitivities = sensitivities(points, reference)?;
    if let Reference::Public(bounds) = reference {
        check_bounds(points, &complete(bounds)?)?;
    }
    let clusters = Clusters::singletons(points.rows());
    Ok(Prepared {
        mechanism: Mechanism::Standard,
        points,
        clusters,
        sensitivities,
    })
}
