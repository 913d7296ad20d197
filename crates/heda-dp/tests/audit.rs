//! What the audit finds: nothing against `laplace`, much against less noise.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use chacha20::ChaCha20Rng;
use common::pay;
use heda_dp::account::Mechanism;
use heda_dp::audit::{Audit, AuditFinding, World};
use heda_dp::column::ColumnSpec;
use heda_dp::epsilon::Epsilon;
use heda_dp::laplace;
use rand_core::SeedableRng;

const RUNS: usize = 100_000;

fn epsilon(text: &str) -> Epsilon {
    text.parse().unwrap()
}

/// Releases one value that is `left` or `right`, truly at `drawn`, and audits the claim.
fn audit_column(spec: ColumnSpec, values: (u32, u32), claimed: &str, drawn: &str) -> AuditFinding {
    let mut rng = ChaCha20Rng::from_seed([11; 32]);
    let (left, right) = ([vec![values.0]], [vec![values.1]]);
    let drawn = [epsilon(drawn)];
    let audit = Audit::new(RUNS, spec.largest() as usize + 1, 0.999).unwrap();
    let run = |world| {
        let value = match world {
            World::Left => &left,
            World::Right => &right,
        };
        let prepared = laplace::prepare(&[spec], value).unwrap();
        let receipt = pay(Mechanism::Laplace, &drawn);
        prepared.release(receipt, &mut rng).unwrap().columns()[0][0] as usize
    };
    audit.run(epsilon(claimed), run).unwrap()
}

#[test]
fn laplace_cannot_be_refuted() {
    let grid = ColumnSpec::Grid { steps: 64 };
    let levels = ColumnSpec::Levels { count: 5 };
    for claimed in ["0.5", "1", "2"] {
        for (spec, values) in [(grid, (20, 40)), (levels, (1, 3))] {
            let finding = audit_column(spec, values, claimed, claimed);
            assert!(!finding.is_refuted(), "{spec:?}: {finding}");
        }
        // Between the ends nearly all of the claim can be proven, but no more: the audit is sharp.
        let finding = audit_column(grid, (0, 64), claimed, claimed);
        assert!(!finding.is_refuted(), "{finding}");
        assert!(
            finding.at_least > 0.8 * epsilon(claimed).to_f64(),
            "{finding}"
        );
    }
}

#[test]
fn noise_of_half_the_scale_is_refuted() {
    for spec in [
        ColumnSpec::Grid { steps: 64 },
        ColumnSpec::Levels { count: 5 },
    ] {
        for (claimed, drawn) in [("0.5", "1"), ("1", "2"), ("2", "4")] {
            let finding = audit_column(spec, (0, spec.largest()), claimed, drawn);
            assert!(finding.is_refuted(), "{spec:?}: {finding}");
        }
    }
}
