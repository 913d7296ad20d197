//! Algorithm 3 of the paper: microaggregated rows with Laplace noise (IMA ε-DP).
//!
//! Clusters of k rows by Algorithm 2, one noisy centroid a cluster, scale Δf'/ε_j with
//! Δf' = Δf/k · m/(2k) (proposition 2 of the paper).
//!
//! What that is worth: Δf' bounds the L1 change of the *list of centroids*, so it justifies one
//! draw a centroid, as here, and not one a row. It assumes that a change of one row moves the
//! clusters of one side only, which two corners do not guarantee in more than one dimension, nor
//! when m crosses a multiple of 2k. With [`Reference::Data`] Δf and the corners are read from the
//! data. And when rows can be told apart, because row i of the release stands beside row i of
//! something else, the partition itself is published exactly: no ε covers that.

use crate::centroid::{PrepareError, Prepared, Reference, complete, fixed_clusters, sensitivities};
use crate::cluster::{Clusters, Corners};
use crate::points::Points;
use heda_dp::account::Mechanism;

/// Clusters the rows. [`Reference::Data`] is the paper's algorithm as printed, with corners found
/// again in every round; [`Reference::Public`] keeps the corners at the public bounds.
pub fn prepare<'a>(
    points: &'a Points,
    size: usize,
    reference: Reference<'_>,
) -> Result<Prepared<'a>, PrepareError> {
    let clusters = match reference {
        Reference::Data => Clusters::form(points, size, Corners::Remaining)?,
        Reference::Public(bounds) => fixed_clusters(points, size, &complete(bounds)?)?,
    };
    let (m, k) = (points.rows() as f64, size as f64);
    let mut sensitivities = sensitivities(points, reference)?;
    sensitivities
        .iter_mut()
        .for_each(|delta| *delta = *delta / k * (m / (2.0 * k)));
    Ok(Prepared {
        mechanism: Mechanism::Ima,
        points,
        clusters,
        sensitivities,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::{Bounds, BoundsError};
    use crate::centroid::ReleaseError;
    use crate::cluster::ClusterError;
    use crate::{imdav, standard};
    use chacha20::ChaCha20Rng;
    use heda_dp::account::{Accountant, Charge, ColumnCharge, Receipt, Spend};
    use rand_core::SeedableRng;

    fn receipt(mechanism: Mechanism, epsilons: &[&str]) -> Receipt {
        let columns = epsilons.iter().enumerate().map(|(j, e)| ColumnCharge {
            name: format!("c{j}"),
            epsilon: e.parse().unwrap(),
        });
        let charge = Charge::new(mechanism, columns.collect()).unwrap();
        Accountant::new("1000".parse().unwrap())
            .spend(charge)
            .unwrap()
    }

    fn points() -> Points {
        Points::new(1, vec![1.0, 9.0, 2.0, 8.0, 5.0]).unwrap()
    }

    #[test]
    fn sensitivities_are_those_of_the_paper() {
        let (points, reference) = (points(), Reference::Data);
        // Δf = max = 9, m = 5, k = 2.
        assert_eq!(
            prepare(&points, 2, reference).unwrap().sensitivities(),
            [9.0 / 2.0 * 5.0 / 4.0]
        );
        let control = imdav::prepare(&points, 2, reference).unwrap();
        assert_eq!(control.sensitivities(), [9.0 / 2.0 * 5.0 / 2.0]);
        assert_eq!(
            standard::prepare(&points, reference)
                .unwrap()
                .sensitivities(),
            [9.0]
        );
        let bounds = [Some(Bounds::new(0.0, 10.0).unwrap())];
        let public = prepare(&points, 2, Reference::Public(&bounds)).unwrap();
        assert_eq!(public.sensitivities(), [10.0 / 2.0 * 5.0 / 4.0]);
    }

    #[test]
    fn rows_of_a_cluster_share_one_noisy_centroid() {
        let points = points();
        let prepared = prepare(&points, 2, Reference::Data).unwrap();
        let mut rng = ChaCha20Rng::from_seed([5; 32]);
        let released = prepared
            .release(receipt(Mechanism::Ima, &["1000"]), &mut rng)
            .unwrap();
        let noisy: Vec<f64> = released.points().column(0).collect();
        assert_eq!((noisy[0], noisy[1]), (noisy[2], noisy[3]));
        assert!(noisy[0] != noisy[1] && noisy[1] != noisy[4]);
        // At ε = 1000 the scale is 0.006: the centroids are 1.5, 8.5 and 5.
        let near = |x: f64, centroid: f64| (x - centroid).abs() < 0.1;
        assert!(near(noisy[0], 1.5) && near(noisy[1], 8.5) && near(noisy[4], 5.0));
        assert!(!released.charge().mechanism().is_proven());
    }

    #[test]
    fn the_noise_has_the_scale_it_is_given() {
        let points = Points::new(1, (0..100_000).map(|i| f64::from(i % 2)).collect()).unwrap();
        let mut rng = ChaCha20Rng::from_seed([6; 32]);
        let prepared = standard::prepare(&points, Reference::Data).unwrap();
        let released = prepared
            .release(receipt(Mechanism::Standard, &["0.5"]), &mut rng)
            .unwrap();
        let pairs = released.points().column(0).zip(points.column(0));
        let mean_size = pairs.map(|(y, x)| (y - x).abs()).sum::<f64>() / 100_000.0;
        // The mean absolute value of Laplace noise is its scale, here 1/0.5.
        assert!(
            (mean_size / 2.0 - 1.0).abs() < 4.0 / 100_000f64.sqrt(),
            "{mean_size}"
        );
    }

    #[test]
    fn bad_input_has_its_own_errors() {
        let points = points();
        let missing = prepare(&points, 2, Reference::Public(&[None])).unwrap_err();
        assert_eq!(missing, PrepareError::MissingBounds { column: 0 });
        let zero = prepare(&points, 0, Reference::Data).unwrap_err();
        assert_eq!(zero, ClusterError::ZeroSize.into());
        let large = imdav::prepare(&points, 3, Reference::Data).unwrap_err();
        assert_eq!(
            large,
            ClusterError::SizeTooLarge { size: 3, rows: 5 }.into()
        );
        let narrow = [Some(Bounds::UNIT)];
        let outside = standard::prepare(&points, Reference::Public(&narrow)).unwrap_err();
        assert_eq!(outside, ClusterError::Outside { row: 1, column: 0 }.into());
        let negative = Points::new(1, vec![-1.0, -2.0]).unwrap();
        let error = standard::prepare(&negative, Reference::Data).unwrap_err();
        assert_eq!(error, PrepareError::NotPositive { column: 0 });
        let constant = Points::new(1, vec![2.0, 2.0]).unwrap();
        let error = imdav::prepare(&constant, 1, Reference::Data).unwrap_err();
        assert_eq!(
            error,
            PrepareError::Range {
                column: 0,
                error: BoundsError::Empty(2.0)
            }
        );
        let none = Points::new(1, vec![]).unwrap();
        let error = standard::prepare(&none, Reference::Data).unwrap_err();
        assert_eq!(error, PrepareError::NoRows);
    }

    #[test]
    fn nothing_is_released_for_a_foreign_receipt_or_an_impossible_scale() {
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        let points = points();
        let prepared = prepare(&points, 2, Reference::Data).unwrap();
        let foreign = prepared.release(receipt(Mechanism::Laplace, &["1"]), &mut rng);
        assert!(matches!(foreign, Err(ReleaseError::Receipt(_))));
        let tiny = Points::new(1, vec![0.0, 1e-305]).unwrap();
        let prepared = standard::prepare(&tiny, Reference::Data).unwrap();
        let refused = prepared.release(receipt(Mechanism::Standard, &["1"]), &mut rng);
        assert!(matches!(
            refused,
            Err(ReleaseError::Scale { column: 0, .. })
        ));
    }
}
