//! The moments of a private job: sums with noise inside the masks, paid for like a gradient.
//!
//! Only numbers for which the schema states nothing typical are summed
//! ([`heda_learn::private::moment_sums`]), and only if the job says so. Each provider adds its share of
//! the noise to its sums and masks them; the data user makes centres of the total and tells them to
//! everybody, for rows are written by them. It may tell anything: however a row is written, it is
//! no longer than the noise allows for.
//!
//! They come in two answers about all rows, each for half of what they may cost, so that one that is
//! lost does not cost all; the data user takes the mean of what arrived. Where a provider protects persons,
//! their number is bought with them: sums over persons are not divided by rows.
//!
//! Messages (between J5 and J6), for each answer that is not lost: 1. data user → provider:
//! `Scale::AskNoisy` with its number. 2. provider → data user: 6 bytes a sum. Then 3. data user → provider:
//! `Scale::Centres`. An answer is given once in the life of a job; a job that is resumed tells what it
//! knows.

use super::MomentsError;
use heda_crypto::bits::{packed_bytes, unpack};
use heda_crypto::masking::MASK_BITS;

/// The masks of this protocol are drawn for this purpose.
pub(crate) const NOISY_PURPOSE: &str = "noisy moments";

/// Bytes of so many of a provider's sums.
pub(crate) fn noisy_bytes(numbers: usize) -> usize {
    packed_bytes(numbers, MASK_BITS)
}

/// Everybody's sums together, noise included.
pub(crate) fn noisy_sums(
    contributions: &[Vec<u8>],
    numbers: usize,
) -> Result<Vec<i64>, MomentsError> {
    let mut sums = vec![0u64; numbers];
    for bytes in contributions {
        let decoded = unpack(bytes, sums.len(), MASK_BITS).map_err(|_| MomentsError::Sum)?;
        for (sum, number) in sums.iter_mut().zip(decoded) {
            *sum = sum.wrapping_add(number);
        }
    }
    // The top bit is the sign.
    let signed = |sum: u64| ((sum << (64 - MASK_BITS)) as i64) >> (64 - MASK_BITS);
    Ok(sums.into_iter().map(signed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closing::{NoiseShare, OpenSum};
    use crate::guard::{AgreedPlan, Permit, Step};
    use crate::negotiation::tests::masks;
    use crate::proposal::JobId;
    use heda_crypto::bits::pack;
    use heda_crypto::random::Randomness;
    use heda_dp::gaussian::{Variance, sample};
    use heda_dp::gdp::Cost;

    /// To the last bit: what comes out are the sums and everybody's noise, below nought as well.
    #[test]
    fn masks_cancel_and_the_noise_of_all_stays() {
        let own = [
            [-7_000_000i64, 3, 0, 41],
            [5, -900, 1_000_000_000, 0],
            [1, 2, 3, -4],
        ];
        let share = Variance::new(1_000_000).unwrap();
        let rng = |place: usize| Randomness::seeded(3).fork("noise", place as u64).unwrap();
        let (job, cost) = (JobId([0; 16]), Cost::from_parts(1));
        let step = Step::Moments { number: 0, cost };
        let mut expected = [0i64; 4];
        let mut messages = Vec::new();
        for (place, mut masks) in masks(3, 1).into_iter().enumerate() {
            masks.set_aside(AgreedPlan {
                cost,
                persons: false,
            });
            let mut sum = OpenSum::new(job, step, 4);
            sum.add(&own[place].map(|number| number as u64));
            let noise = NoiseShare {
                variance: share,
                rng: rng(place),
            };
            let permit = Permit::of(job, step);
            let closed = sum.close(permit, &mut masks, NOISY_PURPOSE, Some(noise));
            let message = pack(&closed.unwrap(), MASK_BITS);
            assert_eq!(message.len(), noisy_bytes(4));
            messages.push(message);
            let mut again = rng(place);
            for (sum, own) in expected.iter_mut().zip(own[place]) {
                *sum += own + sample(share, &mut again);
            }
        }
        assert_eq!(noisy_sums(&messages, 4).unwrap(), expected);
        assert_ne!(expected[1], -895, "there is noise");
        // Two of three tell nothing: the third's masks are missing.
        assert_ne!(noisy_sums(&messages[..2], 4).unwrap(), expected);
        assert!(noisy_sums(&[vec![0; 5]], 4).is_err());
    }
}
