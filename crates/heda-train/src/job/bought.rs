//! Between J5 and J6 of a private job: moments of columns, if they are bought, and the rows that are
//! written by them. See [`crate::moments`].

use super::provider::Provider;
use super::spec::Checkpoint;
use super::user::Running;
use crate::engine::{Joined, Terms};
use crate::error::{BadJob, JobError, PeerProblem, ServeError};
use crate::house::{Admission, Bought};
use crate::message::{Message, Sums};
use crate::moments::{Scale, noisy_bytes, noisy_contribution, noisy_sums};
use crate::parallel::{Party, ask_all};
use crate::proposal::Privacy;
use crate::rows::RowOrder;
use heda_blocks::channel::Channel;
use heda_crypto::masking::Masks;
use heda_dp::gaussian::Variance;
use heda_learn::data::Dataset;
use heda_learn::private::{PrivateEncoding, PrivateRows, bought_centres, moment_sums, unstated};
use heda_learn::reach::Reach;
use heda_learn::scaling::Centre;
use heda_learn::schema::Schema;

/// Rows in the coordinates of a private job: by its moments where it has bought them.
pub(super) fn private_encoding(
    schema: &Schema,
    centres: Option<&[Centre]>,
) -> Result<PrivateEncoding, heda_learn::private::RowsError> {
    match centres {
        Some(centres) => PrivateEncoding::with_moments(schema, centres),
        None => Ok(PrivateEncoding::new(schema)),
    }
}

impl Running<'_> {
    /// Between which values the columns of a private model count.
    pub(super) fn reach(&self, state: &Checkpoint) -> Result<Option<Reach>, JobError> {
        if self.spec.privacy.is_none() {
            return Ok(None);
        }
        let encoding = private_encoding(&self.spec.schema, state.bought.as_deref());
        Ok(Some(encoding.map_err(BadJob::from)?.reach()))
    }

    /// Buys the moments, or takes those that were bought before, and tells them to everybody.
    pub(super) fn buy_moments(
        &mut self,
        joined: &mut [Joined],
        width: usize,
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        let Some(privacy) = self.spec.privacy.filter(|privacy| privacy.moments > 0) else {
            return Ok(());
        };
        let centres = match state.bought.clone() {
            Some(centres) => centres,
            None => {
                let plan = self.spec.plan(width)?;
                let needed = plan.and_then(|plan| plan.moments_variance());
                ask(joined, &privacy, needed)?
            }
        };
        private_encoding(&self.spec.schema, Some(&centres)).map_err(BadJob::from)?;
        state.bought = Some(centres.clone());
        self.keep(state)?;
        let told = Scale::Centres { centres };
        ask_all(joined, |party| Ok(told.send(party.channel())?))?;
        Ok(())
    }
}

fn ask(
    joined: &mut [Joined],
    privacy: &Privacy,
    needed: Option<Variance>,
) -> Result<Vec<Centre>, JobError> {
    let rows = joined.iter().map(|party| party.part.rows).sum();
    let providers = joined.len();
    let share = needed.map_or(0, |needed| privacy.share(needed, providers).get());
    let columns = privacy.moments as usize;
    let contributions = ask_all(joined, |party| {
        let channel = party.channel();
        Scale::AskNoisy.send(channel)?;
        Ok(Sums::receive(channel, noisy_bytes(columns))?.0)
    })?;
    let sums = noisy_sums(&contributions, columns).map_err(BadJob::from)?;
    Ok(bought_centres(&sums, rows, share as f64 * providers as f64))
}

impl Provider<'_> {
    /// Sells the moments if they are asked for, and takes the centres by which rows are written.
    pub(super) fn sell_moments(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        admission: &Admission,
        data: &Dataset,
        (order, masks): (&RowOrder, &mut Masks),
    ) -> Result<Option<Vec<Centre>>, ServeError> {
        let bought = terms.proposal.privacy.filter(|p| p.moments > 0);
        let Some(privacy) = bought else {
            return Ok(None);
        };
        let bad = |reason: &str| PeerProblem::message(Scale::NAME, reason);
        if privacy.moments as usize != unstated(&admission.schema).len() {
            return Err(bad("it buys moments of other columns than have none stated").into());
        }
        let mut scale = Scale::receive(channel, ())?;
        if scale == Scale::AskNoisy {
            let plan = terms.plan().map_err(ServeError::defect)?;
            let noise =
                plan.and_then(|plan| Some((plan.moments_variance()?, plan.cost_of_moments())));
            let (needed, cost) =
                noise.ok_or_else(|| bad("it asks for what it does not pay for"))?;
            self.house.pay(terms.proposal.job, Bought::Moments, cost)?;
            let training = data.select_rows(&order.training);
            let persons = admission.persons.as_deref();
            let persons = persons.map(|persons| named(persons, &order.training));
            let sums = moment_sums(&admission.schema, &training, persons.as_deref());
            let sums = zeroize::Zeroizing::new(sums.map_err(ServeError::defect)?);
            let share = privacy.share(needed, terms.proposal.identities.len());
            let mut rng = self.randomness.fork("moment noise", 0)?;
            let message = noisy_contribution(&sums, share, &mut rng, masks);
            Sums(message.map_err(ServeError::defect)?).send(channel)?;
            scale = Scale::receive(channel, ())?;
        }
        let Scale::Centres { centres } = scale else {
            return Err(bad("it tells no centres").into());
        };
        let fits = PrivateEncoding::with_moments(&admission.schema, &centres);
        fits.map_err(|e| PeerProblem::message(Scale::NAME, e))?;
        Ok(Some(centres))
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
