//! Steps over batches of a private job: what both halves open together.

use super::payload::write_sums;
use super::serve::mask_purpose;
use super::shape::Shape;
use super::tests::pair;
use super::user::{OpenedChain, UserSum, whole_sums};
use crate::closing::{Chain, OpenSum};
use heda_crypto::random::Randomness;
use heda_learn::private::{Passes, PrivatePlan};
use heda_learn::resident::Resolution;
use rand_core::Rng;

/// Four passes over 16 batches.
fn passes() -> Passes {
    let delta = "1e-6".parse().unwrap();
    let plan = PrivatePlan::new(20_000, 16, "1".parse().unwrap(), delta).unwrap();
    assert_eq!((plan.passes().passes(), plan.passes().batches()), (4, 16));
    plan.passes().clone()
}

fn shape(passes: &Passes) -> Shape {
    let pair = pair(Resolution::PRIVATE, (0..6).collect(), 8, 1);
    Shape {
        bands_total: passes.bands_total(),
        ..pair.shape
    }
}

/// Exact sums of every step, cut at random into what the data user opened and what the provider owes.
struct Steps {
    sums: Vec<Vec<i64>>,
    halves: Vec<[Vec<u64>; 2]>,
}

impl Steps {
    /// A batch has fewer than 2^12 rows here. The first sums are the largest that there can be.
    fn draw(count: usize) -> Self {
        let largest = shape(&passes()).largest;
        let width = largest.len();
        let mut rng = Randomness::seeded(3).fork("steps", 0).unwrap();
        let mut sums = Vec::new();
        let mut halves = Vec::new();
        for step in 0..count {
            let sum: Vec<i64> = (largest.iter())
                .map(|largest| {
                    let most = 4095 * i64::from(*largest);
                    match step {
                        0..32 => most,
                        32..48 => -most,
                        _ => i64::from(rng.next_u32()) % (2 * most) - most,
                    }
                })
                .collect();
            let opened: Vec<u64> = (0..width).map(|_| rng.next_u64()).collect();
            let owed = sum.iter().zip(&opened);
            let owed = owed.map(|(sum, opened)| (*sum as u64).wrapping_sub(*opened));
            halves.push([owed.collect(), opened]);
            sums.push(sum);
        }
        Self { sums, halves }
    }

    /// What a session opens that asks for these steps in turn.
    fn opened(&self, passes: &Passes, asked: impl Iterator<Item = u32>) -> Vec<Vec<i64>> {
        let shape = shape(passes);
        let (mut provider, mut user) =
            (Chain::new(passes.clone()), OpenedChain::new(passes.clone()));
        asked
            .map(|step| {
                let [owed, opened] = &self.halves[step as usize];
                let mut own = OpenSum::of_test(owed.len());
                own.add(owed);
                let (sum, _) = provider.banded(step, own);
                let message = write_sums(&shape, &sum.under(&vec![0; owed.len()]));
                let mut own = UserSum::new(&shape);
                own.add(opened);
                let sum = user.banded(step, own);
                whole_sums(&shape, &[sum.close(&shape, &message).unwrap()])
            })
            .collect()
    }

    fn expected(&self, passes: &Passes, step: u32, among: &[u32]) -> Vec<i64> {
        let first = passes.first_of_chain(step);
        let terms = among.iter().filter(|s| (first..=step).contains(*s));
        let mut sum = vec![0; self.sums[0].len()];
        for earlier in terms {
            let band = i64::from(passes.band(step - earlier));
            let own = &self.sums[*earlier as usize];
            sum.iter_mut()
                .zip(own)
                .for_each(|(sum, own)| *sum += band * own);
        }
        sum
    }
}

/// The largest sums there are, banded, fit into words of the widths that both sides derive.
#[test]
fn both_halves_open_banded_sums_and_nothing_is_cut_off() {
    let passes = passes();
    let steps = Steps::draw(64);
    let all: Vec<u32> = (0..64).collect();
    let found = steps.opened(&passes, 0..64);
    for step in all.clone() {
        let expected = steps.expected(&passes, step, &all);
        assert_eq!(found[step as usize], expected, "step {step}");
    }
    assert_ne!(found[1], steps.sums[1]);
}

/// Steps that a session did not ask for, before it or within it, are in nothing that it opens.
#[test]
fn a_session_opens_its_own_steps_only() {
    let passes = passes();
    let steps = Steps::draw(64);
    for asked in [(21..64).collect::<Vec<u32>>(), vec![3, 4, 9, 30, 31, 63]] {
        let found = steps.opened(&passes, asked.iter().copied());
        for (step, found) in asked.iter().zip(found) {
            let expected = steps.expected(&passes, *step, &asked);
            assert_eq!(found, expected, "step {step} of {asked:?}");
        }
    }
}

/// Providers that open other steps together do not share masks: the purpose says how many.
#[test]
fn a_chain_says_which_steps_it_opens_together() {
    let mut chain = Chain::new(passes());
    let earliest = |chain: &mut Chain, step| chain.banded(step, OpenSum::of_test(1)).1;
    assert_eq!(earliest(&mut chain, 5), 5);
    assert_eq!(earliest(&mut chain, 7), 5);
    assert_eq!(earliest(&mut chain, 21), 7);
    assert_eq!(earliest(&mut chain, 64), 64);
}

#[test]
fn masks_cancel_only_between_providers_that_open_the_same_steps() {
    let purposes =
        [(5, 5), (6, 5), (7, 5), (8, 5), (8, 6)].map(|(at, from)| mask_purpose(at, from));
    assert_eq!(purposes[2], purposes[4], "as many steps");
    assert!((1..4).all(|n| purposes[n] != purposes[n - 1]));
    // With one batch it is what it was.
    assert_eq!(purposes[0], "resident gradient");
}
