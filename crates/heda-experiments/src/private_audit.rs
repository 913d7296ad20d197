//! The audit of whole private trainings, in the integer oracle: two tables that differ in one row,
//! placed where it does most harm, and a data user that knows everything else.
//!
//! The row is as long as a row may be and the others are empty; in one table it is positive, in the
//! other negative. The data user sees every noisy sum, knows at which coefficients it was taken and
//! what the row would have contributed in either table, and adds up the evidence (the logarithm of
//! the likelihood ratio). An honest one follows the training; a cheating one asks for the sum at
//! coefficients of nought again and again, where both labels pull with all their weight.

use heda::failure::{Failure, Kind};
use heda_crypto::random::Randomness;
use heda_dp::audit::{GaussianFinding, World, audit_gaussian};
use heda_dp::epsilon::Epsilon;
use heda_dp::gaussian::{Variance, sample};
use heda_dp::gdp::Delta;

use heda_learn::gradient::Gradient;
use heda_learn::optimise::Optimiser;
use heda_learn::private::{Noise, ONE, PAYLOAD_LENGTH, PrivatePlan, PrivateRows, PrivateSource};
use heda_learn::resident::{Coins, Position, RowCoins};
use rand_core::Rng;

/// Of every claim.
pub(super) const DELTA: f64 = 1e-5;
const ROWS: usize = 20;
const WIDTH: usize = 2;

fn bug(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Bug, error)
}

/// What is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) words: &'static str,
    cheats: bool,
    /// Part of the deviation that is really drawn: one over this.
    weaker: u64,
}

pub(super) const CASES: [Case; 4] = [
    Case {
        words: "honest data user",
        cheats: false,
        weaker: 1,
    },
    Case {
        words: "cheating data user",
        cheats: true,
        weaker: 1,
    },
    Case {
        words: "honest data user; half of the noise (control)",
        cheats: false,
        weaker: 2,
    },
    Case {
        words: "cheating data user; half of the noise (control)",
        cheats: true,
        weaker: 2,
    },
];

impl Case {
    /// Runs whole trainings on both tables.
    pub(super) fn audit(
        self,
        claimed: Epsilon,
        runs: usize,
        confidence: f64,
        randomness: &Randomness,
    ) -> Result<GaussianFinding, Failure> {
        let delta = Delta::new(DELTA).map_err(bug)?;
        let plan = PrivatePlan::new(ROWS as u64, WIDTH, claimed, delta).map_err(bug)?;
        let variance = plan.variance().get() / (self.weaker * self.weaker);
        let variance = Variance::new(variance).map_err(bug)?;
        let tables = [[table(false)?], [table(true)?]];
        let part = |world: &str| randomness.party(&format!("{} {world}", self.words));
        let mut left = source(&plan, &tables[0], variance, &part("left"))?;
        let mut right = source(&plan, &tables[1], variance, &part("right"))?;
        let mut failed = None;
        let finding = audit_gaussian(plan.cost(), runs, confidence, |world| {
            let evidence = match world {
                World::Left => self.evidence(&plan, &mut left, variance),
                World::Right => self.evidence(&plan, &mut right, variance),
            };
            evidence.unwrap_or_else(|e| {
                failed = Some(e);
                0.0
            })
        });
        failed.map_or_else(|| finding.map_err(bug), Err)
    }

    /// One training, and what it says for a positive row.
    fn evidence<C: Coins, N: Noise>(
        self,
        plan: &PrivatePlan,
        source: &mut PrivateSource<'_, C, N>,
        variance: Variance,
    ) -> Result<f64, Failure> {
        let mut optimiser = Optimiser::new(plan.settings(), WIDTH).map_err(bug)?;
        let mut evidence = 0.0;
        for _ in 0..plan.gradients() {
            let beta = match (self.cheats, optimiser.ask()) {
                (false, Some(ask)) => ask.beta.to_vec(),
                _ => vec![0.0; WIDTH],
            };
            let sums = source.whole_sums(&beta);
            evidence += likelihood_ratio(plan, &beta, &sums, variance);
            if !self.cheats {
                let sum = source.real(&sums);
                optimiser.tell(&Gradient { sum, rows: ROWS }).map_err(bug)?;
            }
        }
        Ok(evidence)
    }
}

/// Sums of a table, with fresh coins and noise for every one of very many.
fn source<'a>(
    plan: &PrivatePlan,
    table: &'a [PrivateRows],
    variance: Variance,
    randomness: &Randomness,
) -> Result<PrivateSource<'a, impl Coins + use<>, impl Noise + use<>>, Failure> {
    let mut noise = randomness.fork("noise", 0).map_err(bug)?;
    let mut coins = randomness.fork("coins", 0).map_err(bug)?;
    let toss = move |_: Position| RowCoins {
        mask: coins.next_u32(),
        coin: coins.next_u32(),
    };
    let draw = move |_: u32, width: usize| -> Vec<i64> {
        (0..width).map(|_| sample(variance, &mut noise)).collect()
    };
    Ok(PrivateSource::new(plan, table, toss, draw))
}

/// One row as long as allowed, and empty ones.
fn table(positive: bool) -> Result<PrivateRows, Failure> {
    let mut rows = PrivateRows::empty(WIDTH);
    let telling = [PAYLOAD_LENGTH, 0];
    rows.push(&telling, &telling, positive).map_err(bug)?;
    for _ in 1..ROWS {
        rows.push(&[0; WIDTH], &[0; WIDTH], false).map_err(bug)?;
    }
    Ok(rows)
}

/// ln of how much likelier sums are if the row is positive, by the contributions to be expected.
fn likelihood_ratio(plan: &PrivatePlan, beta: &[f64], sums: &[i64], variance: Variance) -> f64 {
    let length = f64::from(PAYLOAD_LENGTH);
    let z = beta[0] * length / f64::from(ONE);
    // A code is worth half a derivative.
    let expected = |positive| 2.0 * plan.loss().loss().derivative(z, positive) * length;
    let (with, without): (f64, f64) = (expected(true), expected(false));
    let middle = 0.5 * (with + without);
    (with - without) * (sums[0] as f64 - middle) / variance.get() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_noise_is_refuted_and_the_whole_is_not() {
        for case in CASES {
            let randomness = Randomness::seeded(4);
            let finding = case.audit("1".parse().unwrap(), 8_000, 0.99, &randomness);
            let finding = finding.unwrap();
            assert_eq!(
                finding.is_refuted(),
                case.weaker > 1,
                "{finding:?} {case:?}"
            );
            if case.cheats && case.weaker == 1 {
                assert!(
                    finding.mu_at_least > 0.4 * finding.claimed.mu(),
                    "{finding:?}"
                );
            }
        }
    }
}
