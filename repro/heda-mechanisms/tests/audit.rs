//! What the audit finds: much against linked clusters.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use chacha20::ChaCha20Rng;
use common::pay;
use heda_dp::account::Mechanism;
use heda_dp::audit::{Audit, AuditFinding, World};
use heda_dp::epsilon::Epsilon;
use heda_mechanisms::centroid::Reference;
use heda_mechanisms::ima;
use heda_mechanisms::points::Points;
use rand_core::SeedableRng;

fn epsilon(text: &str) -> Epsilon {
    text.parse().unwrap()
}

/// Rows 0 and 1 are in one cluster if row 3 is small, and in two clusters if it is large. The
/// adversary only looks whether rows 0 and 1 got the same noisy value.
fn audit_linked_clusters(claimed: &str) -> AuditFinding {
    let mut rng = ChaCha20Rng::from_seed([12; 32]);
    let left = Points::new(1, vec![0.9, 0.8, 0.1, 0.0]).unwrap();
    let right = Points::new(1, vec![0.9, 0.8, 0.1, 1.0]).unwrap();
    let paid = [epsilon(claimed)];
    let audit = Audit::new(100_000, 2, 0.999).unwrap();
    let run = |world| {
        let points = match world {
            World::Left => &left,
            World::Right => &right,
        };
        let prepared = ima::prepare(points, 2, Reference::Data).unwrap();
        let released = prepared
            .release(pay(Mechanism::Ima, &paid), &mut rng)
            .unwrap();
        usize::from(released.points().row(0) == released.points().row(1))
    };
    audit.run(epsilon(claimed), run).unwrap()
}

#[test]
fn linked_rows_of_ima_are_refuted_at_any_claim_that_the_runs_can_reach() {
    for claimed in ["0.5", "1", "8"] {
        let finding = audit_linked_clusters(claimed);
        assert!(finding.is_refuted() && finding.at_least > 8.5, "{finding}");
    }
}
