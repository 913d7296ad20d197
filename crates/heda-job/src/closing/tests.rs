//! What a permit lets out, and what nothing does.

use super::*;
use crate::guard::AgreedPlan;
use crate::negotiation::tests::masks;
use heda_crypto::random::Randomness;
use heda_dp::gdp::Cost;

const JOB: JobId = JobId([3; 16]);

fn gradient(number: u32, cost: Option<u64>) -> Step {
    let cost = cost.map(Cost::from_parts);
    Step::Gradient { number, cost }
}

/// Masks of two providers, of a private job or of an exact one.
fn two(private: bool) -> Vec<JobMasks> {
    let mut masks = masks(2, 1);
    if private {
        masks.iter_mut().for_each(|masks| {
            masks.set_aside(AgreedPlan {
                cost: Cost::from_parts(9),
                persons: false,
            });
        });
    }
    masks
}

fn noise() -> NoiseShare {
    NoiseShare {
        variance: Variance::new(1_000_000).unwrap(),
        rng: Randomness::seeded(5).fork("noise", 0).unwrap(),
    }
}

fn sum_of(step: Step) -> OpenSum {
    let mut sum = OpenSum::new(JOB, step, 3);
    sum.add(&[5, 70, 900]);
    sum
}

#[test]
fn numbers_leave_under_masks_that_cancel_and_with_noise_in_a_private_job() {
    for private in [false, true] {
        let step = gradient(2, private.then_some(1));
        let closed: Vec<Vec<u64>> = two(private)
            .iter_mut()
            .map(|masks| {
                let noise = private.then(noise);
                let closed = sum_of(step).close(Permit::of(JOB, step), masks, "sum", noise);
                closed.unwrap()
            })
            .collect();
        let drawn = match private {
            true => noise().draw(3).to_vec(),
            false => vec![0; 3],
        };
        for (place, own) in [5u64, 70, 900].into_iter().enumerate() {
            assert_ne!(closed[0][place], own);
            let all = closed[0][place].wrapping_add(closed[1][place]);
            let expected = own.wrapping_add(drawn[place]).wrapping_mul(2);
            assert_eq!(all << 16, expected << 16, "modulo 2^48");
        }
    }
}

#[test]
fn a_permit_lets_its_own_answer_leave_and_no_other() {
    let own = gradient(4, None);
    let others = [
        (JOB, gradient(5, None)),
        (JOB, gradient(4, Some(1))),
        (JOB, Step::Scores),
        (JobId([4; 16]), own),
    ];
    for (job, step) in others {
        let closed = sum_of(own).close(Permit::of(job, step), &mut two(false)[0], "sum", None);
        assert!(matches!(closed, Err(ClosingError::Permit(_))), "{step:?}");
    }
    let closed = sum_of(own).close(Permit::of(JOB, own), &mut two(false)[0], "sum", None);
    assert!(closed.is_ok());
}

#[test]
fn nothing_leaves_a_private_job_without_noise_and_a_cost() {
    for (private, cost, noisy) in [
        (true, None, false),
        (true, Some(1), false),
        (true, None, true),
        (false, Some(1), true),
        (false, None, true),
        (false, Some(1), false),
    ] {
        let step = gradient(0, cost);
        let noise = noisy.then(noise);
        let permit = Permit::of(JOB, step);
        let closed = sum_of(step).close(permit, &mut two(private)[0], "sum", noise);
        assert!(matches!(closed, Err(ClosingError::Noise)));
    }
}

#[test]
fn masks_are_not_used_twice() {
    let (mut masks, step) = (two(false), gradient(0, None));
    let mut close = || sum_of(step).close(Permit::of(JOB, step), &mut masks[0], "sum", None);
    assert!(close().is_ok());
    assert!(matches!(close(), Err(ClosingError::Masking(_))));
}
