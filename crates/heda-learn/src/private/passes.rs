//! Step 3, few passes over the rows: each row takes part in one *batch* a pass, and the noise of
//! neighbouring steps is tied together so that it cancels where steps add up (DP-FTRL by matrix
//! factorisation: Denisov, McMahan, Rush, Smith and Thakurta 2022; banded, for several passes:
//! Choquette-Choo and others 2023).
//!
//! A step asks for one batch, one after the other, pass after pass. With g_t the sum over the batch of
//! step t, what is opened is y_t = Σ_j a_j·g_{t−j} + noise, with public whole numbers
//! a_0 > a_1 ≥ … ≥ a_{b−1} ≥ 1, the *bands*, b ≤ batches. The data user solves for an estimate of g_t
//! ([`Unbanded`]). Its noise is a difference of neighbouring noises, and most of it is gone in the sum
//! over steps, which is what a model is made of.
//!
//! **Sensitivity.** A replaced row changes g only in the steps of its batch, one a pass. Such a step s
//! moves y_s, …, y_{s+b−1} by a_0, …, a_{b−1} times R at most. As b ≤ batches and steps only grow, the
//! steps of two passes move different sums. So a pass moves all that is opened by ‖a‖·R in Euclidean
//! norm, whatever was chosen before, and E passes cost E·‖a‖²R² beside the noise's variance. A sum that
//! leaves earlier steps out (a chain that begins anew) is moved by less.
//!
//! **Persons** have rows in several batches, each cut so that all together count as one row. A chain
//! that begins anew with each pass has shifts of R in all, in steps of one chain, so by the triangle
//! inequality again ‖a‖·R a pass.

use crate::gradient::Batch;
use std::collections::VecDeque;

/// Bands are rounded to multiples of one part in so many of the first.
const FIRST_BAND: f64 = 8.0;

/// How a private training goes over the rows. Public, from the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passes {
    passes: u32,
    batches: u32,
    bands: Vec<u32>,
    anew: bool,
}

impl Passes {
    /// Every step is about all rows, and its noise is its own.
    pub(super) fn full(steps: u32) -> Self {
        Self {
            passes: steps,
            batches: 1,
            bands: vec![1],
            anew: false,
        }
    }

    /// So many passes over so many batches; `anew` if the chain of noise begins anew with each pass,
    /// as persons need it.
    pub(super) fn of_batches(passes: u32, batches: u32, anew: bool) -> Self {
        Self {
            passes,
            batches,
            bands: bands(batches),
            anew,
        }
    }

    /// Passes over all rows for one model.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// Batches that a pass is cut into.
    pub fn batches(&self) -> u32 {
        self.batches
    }

    /// Steps for one model.
    pub fn steps(&self) -> u32 {
        self.passes.saturating_mul(self.batches)
    }

    /// The batch of a step, counted over all models.
    pub fn batch(&self, step: u32) -> Batch {
        Batch::new((step % self.batches) as usize, self.batches as usize)
    }

    /// The first step of the pass that a step belongs to, both counted over all models.
    pub fn first_of_pass(&self, step: u32) -> u32 {
        step - step % self.batches
    }

    /// The earliest step whose sum may be part of what is opened at `step`.
    pub fn first_of_chain(&self, step: u32) -> u32 {
        let begin = match self.anew {
            true => self.first_of_pass(step),
            false => step - step % self.steps(),
        };
        let longest = self.bands.len() as u32 - 1;
        begin.max(step.saturating_sub(longest))
    }

    /// a_j: how much the sum of j steps before counts.
    pub fn band(&self, before: u32) -> u32 {
        self.bands.get(before as usize).copied().unwrap_or(0)
    }

    /// ‖a‖².
    pub fn norm_squared(&self) -> u64 {
        self.bands.iter().map(|a| u64::from(*a).pow(2)).sum()
    }

    /// Σ a_j: how many times a batch's largest sum may be opened at once.
    pub fn bands_total(&self) -> u32 {
        self.bands.iter().sum()
    }
}

/// The bands for so many batches: 8·c_j, c_0 = 1, c_j = c_{j−1}·(j − 0.45)/j, rounded, and at least 1.
/// A test checks that the noise of estimates dies out.
fn bands(batches: u32) -> Vec<u32> {
    let mut share = 1.0;
    let band = |j: u32| {
        if j > 0 {
            share *= (f64::from(j) - 0.45) / f64::from(j);
        }
        ((FIRST_BAND * share).round() as u32).max(1)
    };
    (0..batches).map(band).collect()
}

/// Estimates of the batches' sums, from what was opened: ĝ_t = (y_t − Σ_{j≥1} a_j·ĝ_{t−j})/a_0.
#[derive(Debug, Clone, Default)]
pub struct Unbanded {
    before: VecDeque<(u32, Vec<f64>)>,
}

impl Unbanded {
    /// The estimate for a step. Steps that were not opened count as zero, with the sums that went into
    /// later ones: nobody knows them.
    pub fn estimate(&mut self, passes: &Passes, step: u32, opened: Vec<f64>) -> Vec<f64> {
        let first = passes.first_of_chain(step);
        self.before.retain(|(earlier, _)| *earlier >= first);
        let mut estimate = opened;
        for (earlier, known) in &self.before {
            let band = f64::from(passes.band(step - earlier));
            estimate
                .iter_mut()
                .zip(known)
                .for_each(|(sum, known)| *sum -= band * known);
        }
        let own = f64::from(passes.band(0));
        estimate.iter_mut().for_each(|sum| *sum /= own);
        self.before.push_back((step, estimate.clone()));
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_those_of_the_document() {
        assert_eq!(bands(7), [8, 4, 3, 3, 3, 2, 2]);
        let norm = |batches| Passes::of_batches(1, batches, false).norm_squared();
        assert_eq!([16, 32, 64].map(norm), [145, 161, 193]);
        let total = |batches| Passes::of_batches(1, batches, false).bands_total();
        assert_eq!([16, 32, 64].map(total), [41, 57, 89]);
        assert_eq!(
            (
                Passes::full(9).norm_squared(),
                Passes::full(9).bands_total()
            ),
            (1, 1)
        );
    }

    /// The noise of estimates follows from the powers of 1/Σ a_j x^j. With all roots outside the unit
    /// circle they die out; with one on it, as of 2 + 2x + x² + x³, they never do.
    #[test]
    fn the_noise_of_a_step_dies_out() {
        let left = |bands: &[u32]| {
            let mut powers = vec![1.0 / f64::from(bands[0])];
            for t in 1..4000usize {
                let terms =
                    (1..bands.len().min(t + 1)).map(|j| f64::from(bands[j]) * powers[t - j]);
                powers.push(-terms.sum::<f64>() / f64::from(bands[0]));
            }
            powers[3000..]
                .iter()
                .fold(0.0, |most: f64, p| most.max(p.abs()))
        };
        for batches in [16, 32, 64] {
            assert!(left(&bands(batches)) < 1e-12, "{batches} batches");
        }
        assert!(left(&[2, 2, 1, 1]) > 0.01);
    }

    #[test]
    fn steps_belong_to_batches_passes_and_chains() {
        let passes = Passes::of_batches(3, 16, false);
        assert_eq!(
            (passes.steps(), passes.passes(), passes.batches()),
            (48, 3, 16)
        );
        // The second model begins at step 48.
        assert_eq!(passes.batch(53), Batch::new(5, 16));
        assert_eq!(passes.first_of_pass(53), 48);
        assert_eq!(passes.first_of_chain(53), 48);
        assert_eq!(passes.first_of_chain(70), 55);
        assert_eq!(passes.first_of_pass(70), 64);
        let persons = Passes::of_batches(3, 16, true);
        assert_eq!(persons.first_of_chain(70), 64);
        let full = Passes::full(10);
        assert_eq!((full.first_of_chain(7), full.first_of_pass(7)), (7, 7));
        assert_eq!(full.batch(7), Batch::FULL);
        assert_eq!((passes.band(0), passes.band(1), passes.band(16)), (8, 4, 0));
    }

    /// What any choice of steps moves, counted directly: no row moves all that is opened by more than
    /// √passes·‖a‖ times what it moves its batch by.
    #[test]
    fn a_row_moves_what_is_opened_by_no_more_than_is_charged() {
        for anew in [false, true] {
            let passes = Passes::of_batches(3, 16, anew);
            let claimed = 3 * passes.norm_squared();
            for asked in [0u64, 1, 0x5555_5555_5555, 0xF0F0_1234_FFFF, u64::MAX] {
                let steps: Vec<u32> = (0..48).filter(|s| asked >> s & 1 == 1).collect();
                for batch in 0..16 {
                    let moved = |at: u32| -> u64 {
                        let first = passes.first_of_chain(at);
                        let own = steps.iter().filter(|s| **s % 16 == batch);
                        let own = own.filter(|s| (first..=at).contains(*s));
                        own.map(|s| u64::from(passes.band(at - s))).sum()
                    };
                    let all: u64 = steps.iter().map(|at| moved(*at).pow(2)).sum();
                    assert!(all <= claimed, "{all} of {claimed}");
                    if asked == u64::MAX && batch == 0 {
                        // The last pass has no step after it.
                        assert_eq!(all, claimed);
                    }
                }
            }
        }
    }

    /// A person whose rows are anywhere, together as much as one row: in one pass no more than ‖a‖.
    #[test]
    fn a_person_moves_a_pass_by_no_more_than_a_row_does() {
        let passes = Passes::of_batches(1, 16, true);
        let claimed = (passes.norm_squared() as f64).sqrt();
        for rows in [
            vec![0, 1],
            vec![0, 1, 2, 3],
            (0..16).collect::<Vec<u32>>(),
            vec![3, 9],
        ] {
            let each = 1.0 / rows.len() as f64;
            let moved = |at: u32| -> f64 {
                let own = rows.iter().filter(|s| **s <= at);
                own.map(|s| each * f64::from(passes.band(at - s))).sum()
            };
            let all: f64 = (0..16).map(|at| moved(at).powi(2)).sum();
            assert!(
                all.sqrt() <= claimed,
                "{rows:?}: {} of {claimed}",
                all.sqrt()
            );
        }
    }

    #[test]
    fn estimates_undo_the_bands_and_begin_anew_after_a_gap() {
        let passes = Passes::of_batches(2, 16, false);
        let sums: Vec<f64> = (0..32).map(|t| f64::from(t * t % 7) - 3.0).collect();
        let opened = |at: u32, from: u32| -> f64 {
            let first = passes.first_of_chain(at).max(from);
            let terms = first..=at;
            terms
                .map(|s| f64::from(passes.band(at - s)) * sums[s as usize])
                .sum()
        };
        let mut unbanded = Unbanded::default();
        for at in 0..32 {
            let found = unbanded.estimate(&passes, at, vec![opened(at, 0)])[0];
            assert!((found - sums[at as usize]).abs() < 1e-6, "{at}: {found}");
        }
        // Providers that lost what was before, and a data user that forgets it too.
        let mut unbanded = Unbanded::default();
        for at in 5..32 {
            let found = unbanded.estimate(&passes, at, vec![opened(at, 5)])[0];
            assert!((found - sums[at as usize]).abs() < 1e-6, "{at}: {found}");
        }
    }
}
