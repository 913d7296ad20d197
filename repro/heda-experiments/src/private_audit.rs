//! The audit of whole private jobs, in the integer oracle: two tables that differ in one row,
//! placed where it does most harm, and a data user that knows everything else.
//!
//! A job buys the moments of its column, writes rows by them, and takes its gradients. The row that
//! differs has the least value in one table and the greatest in the other, and the same label: its
//! moments and its payload both move as far as they can. The data user sees every noisy sum, knows
//! what either table would have contributed, and adds up the evidence (the logarithm of the
//! likelihood ratio). An honest one tells the moments as they came and follows the training; a
//! cheating one tells moments by which the row becomes as long as it may be, and asks for the sum at
//! coefficients of zero again and again, where rows pull with all their weight. Jobs whose plan is made for many rows go
//! over batches, and what a step opens has earlier sums in it.
//!
//! A row that is held out is seen in noisy counts instead; it moves from one to another.

use heda::Error;
use heda_crypto::random::Randomness;
use heda_dp::audit::{GaussianFinding, World, audit_gaussian};
use heda_dp::epsilon::Epsilon;
use heda_dp::gaussian::{Variance, sample};
use heda_dp::gdp::Delta;
use heda_learn::data::Dataset;
use heda_learn::gradient::Gradient;
use heda_learn::optimise::Optimiser;
use heda_learn::private::evaluation::ROW_UNITS;
use heda_learn::private::{
    Extent, MOMENT_ANSWERS, ONE, Passes, PrivateEncoding, PrivatePlan, PrivateRows, PrivateSource,
    Unbanded, bought_centres, moment_sums, unstated,
};
use heda_learn::resident::{Position, RowCoins};
use heda_learn::scaling::Centre;
use heda_learn::schema::Schema;
use rand_core::CryptoRng;
use std::num::NonZeroU32;

/// Of every claim.
pub(super) const DELTA: f64 = 1e-5;
const ROWS: usize = 20;
/// Rows that plans are made for: as many as there are, and as many as make four passes over 16 batches.
const FEW: u64 = ROWS as u64;
const MANY: u64 = 9_000;
/// A number without anything typical.
const SCHEMA: &str = r#"
format = 1
name = "audit"
[label]
column = "class"
classes = ["no", "yes"]
positive = "yes"
[[column]]
name = "x"
kind = "numeric"
bounds = [0, 1]
"#;
/// What a cheating data user says of the column: every other value is far out.
const NARROW: Centre = Centre {
    mean: 0.5,
    deviation: 1e-3,
};
/// Counts of the table: two classes, four ranges of the score.
const COUNTS: usize = 8;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// What is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) words: &'static str,
    user: User,
    /// For how many rows the plan is made; whoever proposes a job may say anything.
    rows: u64,
    /// How many times less noise there is than the claim needs.
    weaker: u32,
}

/// Who looks, and at which row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Honest,
    Cheating,
    /// At a held-out row, of which any data user sees the counts.
    Counting,
}

pub(super) const CASES: [Case; 10] = [
    Case::of("honest data user", User::Honest, FEW, 1),
    Case::of("cheating data user", User::Cheating, FEW, 1),
    Case::of("honest data user, batches", User::Honest, MANY, 1),
    Case::of("cheating data user, batches", User::Cheating, MANY, 1),
    Case::of("counts of held-out rows", User::Counting, FEW, 1),
    Case::of(
        "honest data user; half of the noise (control)",
        User::Honest,
        FEW,
        2,
    ),
    Case::of(
        "cheating data user; half of the noise (control)",
        User::Cheating,
        FEW,
        2,
    ),
    Case::of(
        "honest data user, batches; half of the noise (control)",
        User::Honest,
        MANY,
        2,
    ),
    Case::of(
        "cheating data user, batches; half of the noise (control)",
        User::Cheating,
        MANY,
        2,
    ),
    Case::of(
        "counts of held-out rows; half of the noise (control)",
        User::Counting,
        FEW,
        2,
    ),
];

impl Case {
    const fn of(words: &'static str, user: User, rows: u64, weaker: u32) -> Self {
        Self {
            words,
            user,
            rows,
            weaker,
        }
    }

    /// Runs whole jobs on both tables.
    pub(super) fn audit(
        self,
        claimed: Epsilon,
        runs: usize,
        confidence: f64,
        randomness: &Randomness,
    ) -> Result<GaussianFinding, Error> {
        let part = |name: &str| randomness.party(self.words).fork(name, 0).map_err(bug);
        let mut job = AuditedJob::new(self, claimed, part("noise")?, part("coins")?)?;
        let mut failed = None;
        let finding = audit_gaussian(job.plan.cost(), runs, confidence, |world| {
            job.evidence(world).unwrap_or_else(|e| {
                failed = Some(e);
                0.0
            })
        });
        failed.map_or_else(|| finding.map_err(bug), Err)
    }
}

/// A job that is run again and again, on either table.
struct AuditedJob<R> {
    user: User,
    plan: PrivatePlan,
    schema: Schema,
    /// Left and right.
    tables: [Dataset; 2],
    /// Of the moments, of a gradient and of both counts, as they are really drawn.
    moments: Variance,
    gradients: Variance,
    right: Variance,
    table: Variance,
    noise: R,
    coins: R,
}

impl<R: CryptoRng> AuditedJob<R> {
    fn new(case: Case, claimed: Epsilon, noise: R, coins: R) -> Result<Self, Error> {
        let delta = Delta::new(DELTA).map_err(bug)?;
        let schema = Schema::parse(SCHEMA, "audit").map_err(bug)?;
        let extent = Extent {
            rows: case.rows,
            width: schema.width() + 1,
            models: NonZeroU32::MIN,
            moments: unstated(&schema).len() as u32,
            persons: false,
        };
        let plan = PrivatePlan::of(extent, claimed, delta).map_err(bug)?;
        let weaker = |whole: Variance| {
            Variance::new(whole.get() / u64::from(case.weaker).pow(2)).map_err(bug)
        };
        let moments = plan.moments_variance();
        let moments = moments.ok_or_else(|| bug("the audited job buys no moments"))?;
        Ok(Self {
            user: case.user,
            tables: [table(&schema, 0.0)?, table(&schema, 1.0)?],
            moments: weaker(moments)?,
            gradients: weaker(plan.variance())?,
            right: weaker(plan.right_variance())?,
            table: weaker(plan.table_variance())?,
            plan,
            schema,
            noise,
            coins,
        })
    }

    /// One job, and what it says for the right table.
    fn evidence(&mut self, world: World) -> Result<f64, Error> {
        if self.user == User::Counting {
            return Ok(self.counted(world));
        }
        let (sums, evidence) = self.moments_of(world)?;
        let centres = match self.user {
            User::Cheating => vec![NARROW],
            _ => {
                let noise = self.moments.get() as f64 / f64::from(MOMENT_ANSWERS);
                bought_centres(&sums, ROWS as f64, noise)
            }
        };
        let encoding = PrivateEncoding::with_moments(&self.schema, &centres).map_err(bug)?;
        let rows = |table: &Dataset| encoding.rows(table, 1).map_err(bug);
        let both = [rows(&self.tables[0])?, rows(&self.tables[1])?];
        Ok(evidence + self.training(world, &both)?)
    }

    /// The sums for the moments, and what they say.
    fn moments_of(&mut self, world: World) -> Result<(Vec<f64>, f64), Error> {
        let sums = |table: &Dataset| moment_sums(&self.schema, table, None).map_err(bug);
        let both = [sums(&self.tables[0])?, sums(&self.tables[1])?];
        let mut means = vec![0.0; both[0].len()];
        let mut evidence = 0.0;
        let expected = both.each_ref().map(|sums| {
            let sums = sums.iter().map(|sum| *sum as f64);
            sums.collect::<Vec<f64>>()
        });
        for _ in 0..MOMENT_ANSWERS {
            let seen = noisy(&both[side(world)], self.moments, &mut self.noise);
            evidence += likelihood_ratio(&expected, &seen, self.moments);
            let parts = means.iter_mut().zip(&seen);
            parts.for_each(|(mean, sum)| *mean += *sum as f64 / f64::from(MOMENT_ANSWERS));
        }
        Ok((means, evidence))
    }

    /// All gradients, and what they say.
    fn training(&mut self, world: World, both: &[PrivateRows; 2]) -> Result<f64, Error> {
        let width = both[0].width();
        let (plan, variance) = (&self.plan, self.gradients);
        let (noise, coins) = (&mut self.noise, &mut self.coins);
        let toss = |_: Position| RowCoins {
            mask: coins.next_u32(),
            coin: coins.next_u32(),
        };
        let draw = |_: u32, width: usize| noisy(&vec![0; width], variance, noise);
        let table = std::slice::from_ref(&both[side(world)]);
        let mut source = PrivateSource::new(plan, table, toss, draw);
        let mut optimiser = Optimiser::new(plan.settings(), width).map_err(bug)?;
        let mut evidence = 0.0;
        let mut chains = [Vec::new(), Vec::new()];
        let mut estimates = Unbanded::default();
        for step in 0..plan.gradients() {
            let beta = match (self.user, optimiser.ask()) {
                (User::Honest, Some(ask)) => ask.beta.to_vec(),
                _ => vec![0.0; width],
            };
            let sums = source.whole_sums(&beta);
            let expected = [0, 1].map(|side| {
                chains[side].push(expected(plan, &both[side], step, &beta));
                banded(plan.passes(), &chains[side])
            });
            evidence += likelihood_ratio(&expected, &sums, variance);
            if self.user == User::Honest {
                let opened = source.real(&sums);
                let mut sum = estimates.estimate(plan.passes(), step, opened);
                let batches = f64::from(plan.passes().batches());
                sum.iter_mut().for_each(|sum| *sum *= batches);
                optimiser.tell(&Gradient { sum, rows: ROWS }).map_err(bug)?;
            }
        }
        Ok(evidence)
    }

    /// Both answers about held-out rows: the row is predicted right or wrong, and is among the first of the
    /// table or among the last. What they say together.
    fn counted(&mut self, world: World) -> f64 {
        let unit = i64::from(ROW_UNITS);
        let one_at = |place: usize| {
            let mut counts = vec![0; COUNTS];
            counts[place] = unit;
            counts
        };
        let mut said = |both: [Vec<i64>; 2], variance: Variance| {
            let seen = noisy(&both[side(world)], variance, &mut self.noise);
            let expected =
                both.map(|counts| counts.into_iter().map(|count| count as f64).collect());
            likelihood_ratio(&expected, &seen, variance)
        };
        let right = said([vec![0], vec![unit]], self.right);
        right + said([one_at(0), one_at(COUNTS - 1)], self.table)
    }
}

fn side(world: World) -> usize {
    match world {
        World::Left => 0,
        World::Right => 1,
    }
}

/// One row of this value, and others in the middle; labels are the same in every table.
fn table(schema: &Schema, value: f64) -> Result<Dataset, Error> {
    let mut values = vec![0.5; ROWS];
    values[0] = value;
    let labels = (0..ROWS as u32).map(|row| (row + 1) % 2).collect();
    let classes = schema.label().classes();
    Dataset::new(schema.features(), values, labels, classes).map_err(bug)
}

fn noisy<R: CryptoRng>(sums: &[i64], variance: Variance, rng: &mut R) -> Vec<i64> {
    let numbers = sums.iter();
    numbers.map(|sum| sum + sample(variance, rng)).collect()
}

/// What is expected to be opened at the last step, by what all steps are expected to sum up to.
fn banded(passes: &Passes, sums: &[Vec<f64>]) -> Vec<f64> {
    let last = sums.len() as u32 - 1;
    let mut opened = vec![0.0; sums[0].len()];
    for step in passes.first_of_chain(last)..=last {
        let band = f64::from(passes.band(last - step));
        let both = opened.iter_mut().zip(&sums[step as usize]);
        both.for_each(|(opened, sum)| *opened += band * sum);
    }
    opened
}

/// What the rows of a step's batch together are expected to contribute to a sum of codes and payloads.
fn expected(plan: &PrivatePlan, rows: &PrivateRows, step: u32, beta: &[f64]) -> Vec<f64> {
    let loss = plan.loss().loss();
    let mut sum = vec![0.0; beta.len()];
    for row in plan.passes().batch(step).share(rows.rows()) {
        let terms = rows.score(row).iter().zip(beta);
        let z: f64 = terms.map(|(&x, b)| f64::from(x) * b).sum::<f64>() / f64::from(ONE);
        // A code is worth half a derivative.
        let weight = 2.0 * loss.derivative(z, rows.is_positive(row));
        let payload = sum.iter_mut().zip(rows.payload(row));
        payload.for_each(|(sum, &x)| *sum += weight * f64::from(x));
    }
    sum
}

/// ln of how much likelier sums are in the right table, by what is expected in both.
fn likelihood_ratio(expected: &[Vec<f64>; 2], sums: &[i64], variance: Variance) -> f64 {
    let pairs = expected[0].iter().zip(&expected[1]);
    let terms = pairs.zip(sums);
    let each = |((left, right), &sum): ((&f64, &f64), &i64)| {
        (right - left) * (sum as f64 - 0.5 * (left + right))
    };
    terms.map(each).sum::<f64>() / variance.get() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_noise_is_refuted_and_the_whole_is_not() {
        for case in CASES {
            let randomness = Randomness::seeded(4);
            let finding = case.audit("1".parse().unwrap(), 20_000, 0.99, &randomness);
            let finding = finding.unwrap();
            assert_eq!(
                finding.is_refuted(),
                case.weaker > 1,
                "{finding:?} {case:?}"
            );
            if case.user != User::Honest && case.weaker == 1 {
                let sharp = finding.mu_at_least > 0.4 * finding.claimed.mu();
                assert!(sharp, "{finding:?} {case:?}");
            }
        }
    }
}
