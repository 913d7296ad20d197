//! An empirical check of a claimed ε: what do the results themselves prove?
//!
//! A mechanism is run very many times on two neighbouring data sets. If it were ε-differentially
//! private, no event could be more than e^ε times as likely on one as on the other. The audit
//! looks for the event that differs most in the first half of the runs, and measures it in the
//! second half, so that the search cannot flatter the result. Binomial bounds then give a lower
//! bound on ε that holds with the stated confidence.
//!
//! An audit can refute a claim; it can never prove one.
//!
//! Bounds: if a share p̂ of n runs hits an event of probability p < p̂, that has probability at
//! most exp(−n·KL(p̂‖p)) (Chernoff), and alike for p > p̂. Each of the two bounds gets half of the
//! error that the confidence allows, split again over the two directions that are tried.

mod gaussian;

pub use gaussian::{GaussianFinding, audit_gaussian};

use crate::epsilon::Epsilon;
use std::fmt;

/// Which of the two neighbouring data sets a run works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// The one data set.
    Left,
    /// Its neighbour: one row differs.
    Right,
}

/// How thorough an audit is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Audit {
    runs: usize,
    outcomes: usize,
    confidence: f64,
}

/// Why an audit makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Too few runs to say anything.
    #[error("{0} runs prove nothing; an audit needs at least 100")]
    TooFewRuns(usize),
    /// One outcome tells nothing.
    #[error("{0} outcomes; an audit needs at least two to tell data sets apart")]
    TooFewOutcomes(usize),
    /// Not a probability.
    #[error("confidence {0} does not lie between 0 and 1")]
    Confidence(f64),
    /// The mechanism reported an outcome that was not announced.
    #[error("a run reported outcome {outcome} of {outcomes}")]
    Outcome {
        /// What was reported.
        outcome: usize,
        /// How many were announced.
        outcomes: usize,
    },
}

/// What an audit found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditFinding {
    /// What the mechanism claims.
    pub claimed: Epsilon,
    /// ε is at least this, with the stated confidence.
    pub at_least: f64,
    /// The probability that the bound is right.
    pub confidence: f64,
    /// Runs on each data set.
    pub runs: usize,
}

impl AuditFinding {
    /// Whether the claim is refuted.
    pub fn is_refuted(&self) -> bool {
        self.at_least > self.claimed.to_f64()
    }
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_refuted() {
            true => write!(
                f,
                "claimed {}, refuted: at least {:.2}",
                self.claimed, self.at_least
            )?,
            false => write!(f, "claimed {}, could not refute", self.claimed)?,
        }
        let percent = 100.0 * self.confidence;
        write!(
            f,
            " ({} runs on each side, confidence {percent} %",
            self.runs
        )?;
        match self.is_refuted() {
            true => f.write_str(")"),
            false => write!(f, "; the runs prove at least {:.2})", self.at_least),
        }
    }
}

impl Audit {
    /// `runs` on each data set; a run yields one of `outcomes` numbered outcomes.
    pub fn new(runs: usize, outcomes: usize, confidence: f64) -> Result<Self, AuditError> {
        if runs < 100 {
            return Err(AuditError::TooFewRuns(runs));
        }
        if outcomes < 2 {
            return Err(AuditError::TooFewOutcomes(outcomes));
        }
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(AuditError::Confidence(confidence));
        }
        Ok(Self {
            runs,
            outcomes,
            confidence,
        })
    }

    /// Runs the mechanism and judges the claim.
    pub fn run(
        &self,
        claimed: Epsilon,
        mut mechanism: impl FnMut(World) -> usize,
    ) -> Result<AuditFinding, AuditError> {
        let search = self.runs / 2;
        let judged = self.runs - search;
        let mut count = |world, runs| self.histogram(world, runs, &mut mechanism);
        let found = (count(World::Left, search)?, count(World::Right, search)?);
        let fresh = (count(World::Left, judged)?, count(World::Right, judged)?);
        let one_way = self.bound(&found.0, &found.1, &fresh.0, &fresh.1);
        let other_way = self.bound(&found.1, &found.0, &fresh.1, &fresh.0);
        let at_least = one_way.max(other_way).max(0.0);
        let Self {
            runs, confidence, ..
        } = *self;
        Ok(AuditFinding {
            claimed,
            at_least,
            confidence,
            runs,
        })
    }

    fn histogram(
        &self,
        world: World,
        runs: usize,
        mechanism: &mut impl FnMut(World) -> usize,
    ) -> Result<Vec<usize>, AuditError> {
        let mut counts = vec![0; self.outcomes];
        for _ in 0..runs {
            let outcome = mechanism(world);
            let outcomes = self.outcomes;
            *counts
                .get_mut(outcome)
                .ok_or(AuditError::Outcome { outcome, outcomes })? += 1;
        }
        Ok(counts)
    }

    /// Searches for an event likely by `likely` and rare by `rare`, and bounds ε on fresh runs.
    fn bound(
        &self,
        likely: &[usize],
        rare: &[usize],
        fresh_likely: &[usize],
        fresh_rare: &[usize],
    ) -> f64 {
        let event = self.best_event(likely, rare);
        let hits = |counts: &[usize]| event.iter().map(|&outcome| counts[outcome]).sum();
        let runs = fresh_likely.iter().sum();
        self.log_ratio(hits(fresh_likely), hits(fresh_rare), runs)
    }

    /// Outcomes by their observed ratio, most telling first; the best beginning of that list.
    fn best_event(&self, likely: &[usize], rare: &[usize]) -> Vec<usize> {
        let runs = likely.iter().sum();
        let ratio = |outcome: usize| (likely[outcome] as f64 + 0.5) / (rare[outcome] as f64 + 0.5);
        let mut order: Vec<usize> = (0..self.outcomes).collect();
        order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
        let (mut hits, mut rare_hits) = (0, 0);
        let (mut best, mut length) = (f64::NEG_INFINITY, 1);
        for (index, &outcome) in order.iter().enumerate() {
            hits += likely[outcome];
            rare_hits += rare[outcome];
            let bound = self.log_ratio(hits, rare_hits, runs);
            if bound > best {
                (best, length) = (bound, index + 1);
            }
        }
        order.truncate(length);
        order
    }

    /// ln of (lower bound of the likely side / upper bound of the rare side).
    fn log_ratio(&self, hits: usize, rare_hits: usize, runs: usize) -> f64 {
        let error = (1.0 - self.confidence) / 4.0;
        let (lower, _) = bounds(hits, runs, error);
        let (_, upper) = bounds(rare_hits, runs, error);
        (lower / upper).ln()
    }
}

/// Below and above what a probability is not, each but for a chance of `error`.
fn bounds(hits: usize, runs: usize, error: f64) -> (f64, f64) {
    let share = hits as f64 / runs as f64;
    let enough = -error.ln() / runs as f64;
    let excluded = |p: f64| divergence(share, p) >= enough;
    // Both searches end on the excluded side, which is the safe one.
    let (mut low, mut inner) = (0.0, share);
    let (mut outer, mut high) = (share, 1.0);
    for _ in 0..100 {
        let middle = (low + inner) / 2.0;
        *(if excluded(middle) {
            &mut low
        } else {
            &mut inner
        }) = middle;
        let middle = (outer + high) / 2.0;
        *(if excluded(middle) {
            &mut high
        } else {
            &mut outer
        }) = middle;
    }
    (low, high)
}

/// Kullback–Leibler divergence of two coins.
fn divergence(p: f64, q: f64) -> f64 {
    let term = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * (p / q).ln() };
    term(p, q) + term(1.0 - p, 1.0 - q)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(text: &str) -> Epsilon {
        text.parse().unwrap()
    }

    #[test]
    fn bounds_enclose_the_share_and_know_the_exact_case() {
        for hits in [0, 1, 500, 999, 1000] {
            let (low, high) = bounds(hits, 1000, 0.01);
            let share = hits as f64 / 1000.0;
            assert!(
                low <= share && share <= high && low < high,
                "{hits}: {low} to {high}"
            );
        }
        // Without a hit the exact bound is 1 − error^(1/n), and Chernoff's is the same.
        let (low, high) = bounds(0, 1000, 0.01);
        assert!(low == 0.0 && (high - (1.0 - 0.01f64.powf(1e-3))).abs() < 1e-9);
        // 500 of 1000 at one per cent: about 500 ± 48 by Chernoff, ± 37 exactly.
        let (low, high) = bounds(500, 1000, 0.01);
        assert!((0.44..0.4634).contains(&low) && (0.5366..0.56).contains(&high));
    }

    #[test]
    fn a_mechanism_without_noise_is_refuted_and_a_blind_one_is_not() {
        let audit = Audit::new(10_000, 2, 0.99).unwrap();
        let open = audit
            .run(epsilon("1"), |world| usize::from(world == World::Left))
            .unwrap();
        assert!(open.is_refuted() && open.at_least > 6.0, "{open}");
        assert!(
            open.to_string()
                .starts_with("claimed 1, refuted: at least 6."),
            "{open}"
        );
        let blind = audit.run(epsilon("0.1"), |_| 0).unwrap();
        assert!(!blind.is_refuted() && blind.at_least < 0.01, "{blind}");
        assert!(
            blind
                .to_string()
                .starts_with("claimed 0.1, could not refute"),
            "{blind}"
        );
    }

    #[test]
    fn bad_audits_have_their_own_errors() {
        assert_eq!(Audit::new(99, 2, 0.9), Err(AuditError::TooFewRuns(99)));
        assert_eq!(Audit::new(100, 1, 0.9), Err(AuditError::TooFewOutcomes(1)));
        assert_eq!(Audit::new(100, 2, 1.0), Err(AuditError::Confidence(1.0)));
        assert!(matches!(
            Audit::new(100, 2, f64::NAN),
            Err(AuditError::Confidence(_))
        ));
        let outcome = Audit::new(100, 2, 0.9).unwrap().run(epsilon("1"), |_| 2);
        assert_eq!(
            outcome,
            Err(AuditError::Outcome {
                outcome: 2,
                outcomes: 2
            })
        );
    }
}
