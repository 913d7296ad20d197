//! Between J5 and J6 of a private job: moments of columns, if they are bought, and the rows that are
//! written by them. See [`crate::moments`].

use super::progress::Progress;
use super::provider::Provider;
use super::spec::Checkpoint;
use super::user::JobRunner;
use crate::agreement::JobMasks;
use crate::closing::{Closing, NoiseShare};
use crate::engine::{Joined, Terms};
use crate::error::{BadJob, JobError, PeerProblem, ServeError};
use crate::guard::Admission;
use crate::message::{FromProvider, Message, Sums};
use crate::moments::{NOISY_PURPOSE, Scale, noisy_bytes, noisy_sums};
use crate::parallel::{Party, ask_all};
use crate::plan::JobPlan;
use crate::proposal::Privacy;
use crate::rounds::MOMENT_HALVES;
use crate::rows::RowOrder;
use heda_blocks::channel::Channel;
use heda_crypto::bits::pack;
use heda_crypto::masking::MASK_BITS;
use heda_dp::gaussian::Variance;
use heda_learn::clip_range::ClipRange;
use heda_learn::data::Dataset;
use heda_learn::private::{
    PrivateEncoding, PrivateRows, bought_centres, bought_persons, count_persons, moment_sums,
    unstated,
};
use heda_learn::scaling::Centre;
use heda_learn::schema::Schema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Rows in the coordinates of a private job: by its moments where it has bought them.
pub(super) fn private_encoding(
    schema: &Schema,
    centres: Option<&[Centre]>,
) -> Result<PrivateEncoding, heda_learn::data::RowsError> {
    match centres {
        Some(centres) => PrivateEncoding::with_moments(schema, centres),
        None => Ok(PrivateEncoding::new(schema)),
    }
}

impl JobRunner<'_> {
    /// Between which values the columns of a private model count.
    pub(super) fn reach(&self, state: &Checkpoint) -> Result<Option<ClipRange>, JobError> {
        if self.spec.job.privacy().is_none() {
            return Ok(None);
        }
        let encoding = private_encoding(&self.spec.schema, state.centres());
        Ok(Some(encoding.map_err(BadJob::from)?.reach()))
    }

    /// Buys the moments, or takes those that were bought before, and tells them to everybody.
    pub(super) fn buy_moments(
        &mut self,
        joined: &mut [Joined],
        plan: Option<&JobPlan>,
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        let Some(plan) = plan.filter(|plan| plan.privacy().sums() > 0) else {
            return Ok(());
        };
        let privacy = plan.privacy();
        let numbers = 2 * privacy.moments as usize + usize::from(privacy.persons);
        for step in state.step..MOMENT_HALVES {
            if step < self.first_step {
                self.observer.progress(Progress::LostAnswer(step));
                state.lost += 1;
            } else {
                state.sums.push(ask_half(joined, step, numbers)?);
            }
            state.step = step + 1;
            self.keep(state)?;
        }
        let share = plan.moment_noise().map_or(0, Variance::get);
        let variance = share as f64 * joined.len() as f64;
        let rows = joined.iter().map(|party| party.part.rows).sum();
        let bought = Purchased::of(&state.sums, privacy, rows, variance);
        let told = Scale::Centres {
            centres: bought.centres.clone(),
        };
        state.bought = Some(bought);
        self.keep(state)?;
        ask_all(joined, |party| told.send(party.channel()))?;
        Ok(())
    }
}

/// What a private job has bought before it trains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purchased {
    /// Where the columns lie for which the schema states nothing typical.
    pub centres: Vec<Centre>,
    /// How many persons there are, about, where they and not rows are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persons: Option<f64>,
}

impl Purchased {
    /// The mean of the answers that arrived; if none did, what is to be expected of columns.
    pub(super) fn of(answers: &[Vec<i64>], privacy: &Privacy, rows: usize, variance: f64) -> Self {
        let (columns, arrived) = (2 * privacy.moments as usize, answers.len() as f64);
        let mean = |place: usize| {
            let all = answers.iter().filter_map(|sums| sums.get(place));
            all.map(|sum| *sum as f64).sum::<f64>() / arrived.max(1.0)
        };
        let bought = privacy.persons && !answers.is_empty();
        let persons = bought.then(|| bought_persons(mean(columns)));
        let noise = match answers.is_empty() {
            true => f64::MAX.sqrt(),
            false => variance / arrived,
        };
        let sums: Vec<f64> = (0..columns).map(mean).collect();
        Self {
            centres: bought_centres(&sums, persons.unwrap_or(rows as f64), noise),
            persons,
        }
    }
}

/// One answer: sums over all providers, with noise.
fn ask_half(joined: &mut [Joined], step: u32, numbers: usize) -> Result<Vec<i64>, JobError> {
    let contributions = ask_all(joined, |party| {
        let channel = party.channel();
        Scale::AskNoisy { step }.send(channel)?;
        Ok(Sums::receive(channel, noisy_bytes(numbers))?.0)
    })?;
    Ok(noisy_sums(&contributions, numbers).map_err(BadJob::from)?)
}

impl Provider<'_> {
    /// Sells the moments if they are asked for, and takes the centres by which rows are written.
    pub(super) fn sell_moments(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        admission: &Admission,
        data: &Dataset,
        (order, masks): (&RowOrder, &mut JobMasks),
    ) -> Result<Option<Vec<Centre>>, ServeError> {
        let Some(plan) = terms.plan.filter(|plan| plan.privacy().sums() > 0) else {
            return Ok(None);
        };
        let privacy = plan.privacy();
        let bad = |reason: &str| PeerProblem::message(Scale::NAME, reason);
        if ![0, unstated(&admission.schema).len()].contains(&(privacy.moments as usize)) {
            return Err(bad("it buys moments of other columns than have none stated").into());
        }
        let mut due = 0..MOMENT_HALVES;
        let centres = loop {
            match masks.hear(channel, ())? {
                Scale::AskNoisy { step } if due.contains(&step) => {
                    due.start = step + 1;
                    let closing = self.begin(terms.proposal.id, plan.moments(step), masks)?;
                    let sums = self.moment_sums(privacy, admission, data, order)?;
                    self.send_moments(channel, plan, &sums, closing)?;
                }
                Scale::Centres { centres } => break centres,
                _ => return Err(bad("it asks for what is not due").into()),
            }
        };
        if centres.len() != privacy.moments as usize {
            return Err(bad("it tells centres of other columns than it bought").into());
        }
        if centres.is_empty() {
            return Ok(None);
        }
        let fits = PrivateEncoding::with_moments(&admission.schema, &centres);
        fits.map_err(|e| PeerProblem::message(Scale::NAME, e))?;
        Ok(Some(centres))
    }

    /// This provider's sums over its training rows, and its persons if they are counted.
    fn moment_sums(
        &self,
        privacy: &Privacy,
        admission: &Admission,
        data: &Dataset,
        order: &RowOrder,
    ) -> Result<Zeroizing<Vec<u64>>, ServeError> {
        let training = data.select_rows(&order.training);
        let persons = admission.persons.as_deref();
        let persons = persons.map(|persons| named(persons, &order.training));
        let mut sums = Zeroizing::new(Vec::new());
        if privacy.moments > 0 {
            let of_columns = moment_sums(&admission.schema, &training, persons.as_deref());
            let of_columns = of_columns.map_err(ServeError::defect)?;
            sums.extend(of_columns.into_iter().map(|sum| sum as u64));
        }
        if privacy.persons {
            sums.push(count_persons(training.rows(), persons.as_deref()) as u64);
        }
        Ok(sums)
    }

    fn send_moments(
        &self,
        channel: &mut Channel,
        plan: &JobPlan,
        sums: &[u64],
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        let bad = || PeerProblem::message(Scale::NAME, "it asks for what it does not pay for");
        let variance = plan.moment_noise().ok_or_else(bad)?;
        let number = closing.step.number().unwrap_or(0);
        let noise = NoiseShare {
            variance,
            rng: self.randomness.fork("moment noise", number.into())?,
        };
        let mut sum = closing.sum(sums.len());
        sum.add(sums);
        let closed = closing.close(sum, NOISY_PURPOSE, Some(noise))?;
        Ok(Sums(pack(&closed, MASK_BITS)).send(channel)?)
    }
}

/// Whose these rows are.
fn named(persons: &[u32], places: &[usize]) -> Vec<u32> {
    let named = places.iter().filter_map(|place| persons.get(*place));
    named.copied().collect()
}

/// Rows in the two forms that a private job uses, with their places among all rows; whose class is
/// learned does not matter to them.
pub(super) fn private_rows(
    schema: &Schema,
    centres: Option<&[Centre]>,
    rows: &Dataset,
    persons: Option<(&[u32], &[usize])>,
) -> Result<PrivateRows, ServeError> {
    let encoding = private_encoding(schema, centres).map_err(ServeError::defect)?;
    let encoded = match persons {
        None => encoding.rows(rows, 0),
        Some((persons, places)) => encoding.rows_of_persons(rows, 0, &named(persons, places)),
    };
    encoded.map_err(ServeError::defect)
}
