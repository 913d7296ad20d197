//! What an audit finds against claimed ε: many releases of two neighbouring tables, and a lower
//! bound on ε at a stated confidence from how often outcomes differ. A claim below the bound is
//! refuted; a claim above it is not proven.

use super::release::pay;
use super::sheet::{Sheet, SheetLayout};
use super::{Options, private_audit};
use heda::Error;
use heda_crypto::random::Randomness;
use heda_dp::account::Mechanism;
use heda_dp::audit::{Audit, AuditFinding, World};
use heda_dp::column::ColumnSpec;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_dp::laplace;
use heda_mechanisms::centroid::Reference;
use heda_mechanisms::ima;
use heda_mechanisms::points::Points;
use rand_core::CryptoRng;

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "audit",
    columns: &[
        "mechanism",
        "case",
        "claimed",
        "runs",
        "at_least",
        "confidence",
        "refuted",
    ],
};

const CONFIDENCE: f64 = 0.999;
const CLAIMS: [&str; 3] = ["0.5", "1", "2"];

/// A way to release, and two neighbours.
struct Case {
    mechanism: Mechanism,
    words: &'static str,
    kind: Kindred,
}

#[derive(Clone, Copy)]
enum Kindred {
    /// One value at either end of a column; the noise is drawn for this multiple of the claim.
    Value { spec: ColumnSpec, factor: u64 },
    /// Four rows in two clusters; one row decides whether the first two share a cluster. The
    /// adversary only looks whether they got the same value.
    LinkedClusters,
}

const CASES: [Case; 5] = [
    Case {
        mechanism: Mechanism::Laplace,
        words: "number on a grid of 64 steps",
        kind: Kindred::Value {
            spec: ColumnSpec::Grid { steps: 64 },
            factor: 1,
        },
    },
    Case {
        mechanism: Mechanism::Laplace,
        words: "category of 5 levels",
        kind: Kindred::Value {
            spec: ColumnSpec::Levels { count: 5 },
            factor: 1,
        },
    },
    Case {
        mechanism: Mechanism::Laplace,
        words: "number with half of the noise (control)",
        kind: Kindred::Value {
            spec: ColumnSpec::Grid { steps: 64 },
            factor: 2,
        },
    },
    Case {
        mechanism: Mechanism::Laplace,
        words: "category with half of the noise (control)",
        kind: Kindred::Value {
            spec: ColumnSpec::Levels { count: 5 },
            factor: 2,
        },
    },
    Case {
        mechanism: Mechanism::Ima,
        words: "rows that can be linked",
        kind: Kindred::LinkedClusters,
    },
];

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Audits what is missing.
pub(super) fn run(options: &Options) -> Result<(), Error> {
    let runs = if options.quick { 20_000 } else { 200_000 };
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    for case in &CASES {
        for claim in CLAIMS {
            let key = key(&case.mechanism.to_string(), case.words, claim, runs);
            sheet.complete(options.seed, &key, || {
                let randomness = Randomness::seeded(options.seed);
                let mut rng = randomness.fork(&key.join(" "), 0).map_err(bug)?;
                let finding = case
                    .kind
                    .audit(claim.parse().map_err(bug)?, runs, &mut rng)?;
                Ok(cells(finding.at_least, finding.is_refuted()))
            })?;
        }
    }
    whole_jobs(options, &mut sheet, runs)
}

/// Audits private jobs. What the runs prove of μ is shown as the ε of the same δ.
fn whole_jobs(options: &Options, sheet: &mut Sheet, runs: usize) -> Result<(), Error> {
    let randomness = Randomness::seeded(options.seed);
    for case in private_audit::CASES {
        for claim in CLAIMS {
            let key = key("private job", case.words, claim, runs);
            sheet.complete(options.seed, &key, || {
                let claimed = claim.parse().map_err(bug)?;
                let finding = case.audit(claimed, runs, CONFIDENCE, &randomness)?;
                let delta = Delta::new(private_audit::DELTA).map_err(bug)?;
                let proven = finding.cost_at_least().epsilon(delta).map_err(bug)?;
                Ok(cells(proven.to_f64(), finding.is_refuted()))
            })?;
        }
    }
    Ok(())
}

fn key(mechanism: &str, words: &str, claim: &str, runs: usize) -> [String; 4] {
    [mechanism, words, claim, &runs.to_string()].map(str::to_owned)
}

fn cells(at_least: f64, refuted: bool) -> Vec<String> {
    vec![
        format!("{at_least:.4}"),
        CONFIDENCE.to_string(),
        refuted.to_string(),
    ]
}

impl Kindred {
    fn audit<R: CryptoRng>(
        self,
        claimed: Epsilon,
        runs: usize,
        rng: &mut R,
    ) -> Result<AuditFinding, Error> {
        match self {
            Self::Value { spec, factor } => audit_value(spec, claimed, factor, runs, rng),
            Self::LinkedClusters => audit_linked(claimed, runs, rng),
        }
    }
}

fn audit_value<R: CryptoRng>(
    spec: ColumnSpec,
    claimed: Epsilon,
    factor: u64,
    runs: usize,
    rng: &mut R,
) -> Result<AuditFinding, Error> {
    let drawn = Epsilon::from_billionths(claimed.billionths() * factor).map_err(bug)?;
    let audit = Audit::new(runs, spec.largest() as usize + 1, CONFIDENCE).map_err(bug)?;
    let mut failed = None;
    let mut release = |world| -> Result<usize, Error> {
        let value = match world {
            World::Left => 0,
            World::Right => spec.largest(),
        };
        let column = [vec![value]];
        let prepared = laplace::prepare(&[spec], &column).map_err(bug)?;
        let receipt = pay(Mechanism::Laplace, &[drawn])?;
        let released = prepared.release(receipt, rng).map_err(bug)?;
        Ok(released.columns()[0][0] as usize)
    };
    let finding = audit.run(claimed, |world| {
        release(world).unwrap_or_else(|e| {
            failed = Some(e);
            0
        })
    });
    failed.map_or_else(|| finding.map_err(bug), Err)
}

fn audit_linked<R: CryptoRng>(
    claimed: Epsilon,
    runs: usize,
    rng: &mut R,
) -> Result<AuditFinding, Error> {
    let table = |last| Points::new(1, vec![0.9, 0.8, 0.1, last]).map_err(bug);
    let (left, right) = (table(0.0)?, table(1.0)?);
    let audit = Audit::new(runs, 2, CONFIDENCE).map_err(bug)?;
    let mut failed = None;
    let mut release = |world| -> Result<usize, Error> {
        let points = match world {
            World::Left => &left,
            World::Right => &right,
        };
        let prepared = ima::prepare(points, 2, Reference::Data).map_err(bug)?;
        let receipt = pay(Mechanism::Ima, &[claimed])?;
        let released = prepared.release(receipt, rng).map_err(bug)?;
        let rows = released.points();
        Ok(usize::from(rows.row(0) == rows.row(1)))
    };
    let finding = audit.run(claimed, |world| {
        release(world).unwrap_or_else(|e| {
            failed = Some(e);
            0
        })
    });
    failed.map_or_else(|| finding.map_err(bug), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_noise_and_linked_clusters_are_refuted_and_laplace_is_not() {
        for case in &CASES {
            let mut rng = Randomness::seeded(5).fork(case.words, 0).unwrap();
            let finding = case.kind.audit("1".parse().unwrap(), 20_000, &mut rng);
            let honest = matches!(case.kind, Kindred::Value { factor: 1, .. });
            assert_eq!(finding.unwrap().is_refuted(), !honest, "{}", case.words);
        }
    }
}
