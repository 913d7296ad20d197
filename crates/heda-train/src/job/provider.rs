//! A provider's side of a job.

use super::asked::Asked;
use super::bought::private_rows;
use super::scale::given;
use crate::codec::{hex, unhex};
use crate::engine::columns::{columns_of, taking_part};
use crate::engine::reading::Reading;
use crate::engine::{Columns, GradientQuestion, ProviderEngine, ProviderRows, Terms};
use crate::error::{OwnFault, PeerProblem, ServeError, Unfit};
use crate::house::{Admission, Bought, House, LedgerHead, Refusal, SMALLEST_BATCH};
use crate::message::{
    Acceptance, Announcement, Announcements, Command, Contribution, Message, Release, Sums,
};
use crate::moments::{self, MomentsError, OfLabels, Scale};
use crate::negotiation;
use crate::proposal::{ClassWeight, Proposal, Ranking, Spending, Split};
use crate::release::{Offer, overwrite};
use crate::rounds::HeldOut;
use crate::rows::{RowOrder, on_grid};
use crate::weighing::Weighing;
use ed25519_dalek::{SigningKey, VerifyingKey};
use heda_blocks::channel::Channel;
use heda_crypto::masking::{MaskSetup, Masks, Origin, Roster};
use heda_crypto::random::Randomness;
use heda_learn::data::{Dataset, Feature};
use heda_learn::gradient::Batch;
use heda_learn::private::PrivatePlan;
use heda_learn::scaling::Centre;
use heda_learn::score::Method;
use heda_learn::target::TargetScale;

/// A provider that serves one job over one channel.
pub struct Provider<'a> {
    /// Its rules and its data.
    pub house: &'a dyn House,
    /// Its identity key.
    pub identity: &'a SigningKey,
    /// Its randomness.
    pub randomness: Randomness,
}

/// What a provider did for a job that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Gradients answered.
    pub iterations: u32,
    /// Training rows.
    pub rows: usize,
}

impl Provider<'_> {
    /// Serves one job; whatever goes wrong is told to the data user before the channel closes.
    pub fn serve(&self, channel: &mut Channel) -> Result<Served, ServeError> {
        let served = self.serve_or_fail(channel);
        if let Some(stop) = served.as_ref().err().and_then(ServeError::stop) {
            channel.stop(&stop);
        }
        served
    }

    fn serve_or_fail(&self, channel: &mut Channel) -> Result<Served, ServeError> {
        // J1
        channel.enter_phase("agree");
        let proposal = Proposal::receive(channel, ())?;
        proposal
            .check()
            .map_err(|e| PeerProblem::message("proposal", e))?;
        let engine = proposal.engine.implementation()?;
        let admission = self.house.admit(&proposal)?;
        check_fit(&proposal, &admission)?;
        let data = &admission.data;
        let order = RowOrder::draw(data.rows(), proposal.holdout_permille, &admission.row_seed);
        check_rows(&proposal, &admission, &order)?;
        // J2, J3
        let masks = self.agree(channel, &proposal, &order, admission.ledger.as_ref())?;
        // J4, J5
        let (mut masks, split) = self.rank(channel, &proposal, &admission, &order, masks)?;
        let (features, columns) = columns_of(data.features(), &split);
        let terms = Terms {
            proposal: &proposal,
            features: &features,
            columns: &columns,
        };
        engine.check(&terms, order.part())?;
        let data = data.select_features(&taking_part(&split).0);
        let (data, reading) = match proposal.standardise {
            true => self.scale(channel, &terms, &data, &order, &mut masks)?,
            false => (data, Reading::Classes(given(&proposal))),
        };
        let kept = (&order, &mut masks);
        let centres = self.sell_moments(channel, &terms, &admission, &data, kept)?;
        // J6
        channel.enter_phase("publish");
        let mut rows = self.prepare(
            channel,
            &terms,
            (&admission, centres.as_deref()),
            &data,
            &order,
            &split,
        )?;
        rows.reading = reading;
        // J7, J8
        channel.enter_phase("encrypt");
        let mut session = engine.set_up_provider(channel, &terms, rows, masks, &self.randomness)?;
        // J9 to J11
        channel.enter_phase("train");
        let rows = order.training.len();
        let plan = terms.plan().map_err(ServeError::defect)?;
        self.answer_commands(channel, &proposal, plan.as_ref(), session.as_mut(), rows)
    }

    fn agree(
        &self,
        channel: &mut Channel,
        proposal: &Proposal,
        order: &RowOrder,
        ledger: Option<&LedgerHead>,
    ) -> Result<Masks, ServeError> {
        let mut rng = self.randomness.fork("masking keys", 0)?;
        let roster = roster(proposal)?;
        let origin = Origin::of_seeded(self.randomness.is_seeded());
        let (pending, announcement) = MaskSetup::announce(roster, self.identity, origin, &mut rng)
            .map_err(|e| PeerProblem::message("proposal", e))?;
        let acceptance = Acceptance {
            rows: order.training.len(),
            held_out: order.held_out.len(),
            announcement: Announcement(announcement),
            ledger: ledger.cloned(),
        };
        acceptance.send(channel)?;
        let all = Announcements::receive(channel, proposal.identities.len())?;
        pending
            .finish(&all.0)
            .map_err(|e| PeerProblem::message("announcements", e).into())
    }

    fn rank(
        &self,
        channel: &mut Channel,
        proposal: &Proposal,
        admission: &Admission,
        order: &RowOrder,
        mut masks: Masks,
    ) -> Result<(Masks, Split), ServeError> {
        channel.enter_phase("score");
        if let Some((method, alone)) = self.ranking_part(proposal, &masks) {
            self.house.begin_ranking(proposal.job)?;
            let training = admission.data.select_rows(&order.training);
            let schema = &admission.schema;
            let question = negotiation::Question::new(schema, method, proposal.job.seed());
            let provider = negotiation::Provider::new(question);
            let message = match alone {
                true => provider.choose(&training),
                false => provider.contribute(&training, &mut masks),
            };
            let message = message.map_err(Unfit::Scores)?;
            Contribution(message).send(channel)?;
        }
        let split = Split::receive(channel, ())?;
        if !split.covers(admission.data.features().len()) {
            let reason = "it does not hold every feature once";
            return Err(PeerProblem::message("split", reason).into());
        }
        if !split.published.is_empty() && proposal.spending.is_none() {
            let reason = "it publishes features, but the proposal spends nothing";
            return Err(PeerProblem::message("split", reason).into());
        }
        if proposal.privacy.is_some() && split.encrypted.len() != admission.data.features().len() {
            let reason = "a private job encrypts every feature";
            return Err(PeerProblem::message("split", reason).into());
        }
        let agreed = self.house.agree_split(proposal.job, &split);
        agreed?;
        Ok((masks, split))
    }

    /// Step J4: the method by which this provider scores, and whether it sends its order alone
    /// because it chooses for all or has nobody to hide among.
    fn ranking_part(&self, proposal: &Proposal, masks: &Masks) -> Option<(Method, bool)> {
        match proposal.ranking {
            Ranking::Given { .. } => None,
            Ranking::Agreed { method } => Some((method, masks.is_alone())),
            Ranking::Chosen { method, chooser } => {
                let own = hex(self.identity.verifying_key().as_bytes());
                (proposal.identities.get(chooser) == Some(&own)).then_some((method, true))
            }
        }
    }

    /// Between J5 and J6: the rows in the windows that follow from everybody's sums, or that the
    /// schema or an earlier session gave.
    fn scale(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        data: &Dataset,
        order: &RowOrder,
        masks: &mut Masks,
    ) -> Result<(Dataset, Reading), ServeError> {
        let labels = OfLabels::asked(terms.proposal, data.classes().len());
        let encrypted = moments::encrypted(terms.features, terms.columns);
        let bad = |e| PeerProblem::message(Scale::NAME, e);
        let mut scale = Scale::receive(channel, ())?;
        if let Scale::Ask { fraction_bits } = scale {
            let numbers = moments::numbers(&encrypted, labels) as u64;
            self.house.begin_sums(terms.proposal.job, numbers)?;
            let training = data.select_rows(&order.training);
            let sums = moments::contribution(&training, &encrypted, labels, fraction_bits, masks);
            Sums(sums.map_err(bad)?).send(channel)?;
            scale = Scale::receive(channel, ())?;
        }
        let Scale::Told {
            windows,
            label,
            weights,
        } = scale
        else {
            return Err(PeerProblem::message(Scale::NAME, "it asks for sums twice").into());
        };
        let windows = moments::by_column(&encrypted, &windows, data.width()).map_err(bad)?;
        let reading = told_reading(terms.proposal, label, weights).map_err(bad)?;
        Ok((data.in_windows(&windows), reading))
    }

    /// Step J6: the rows that take part, with the published columns as they were published.
    fn prepare(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        (
            Admission {
                schema, persons, ..
            },
            centres,
        ): (&Admission, Option<&[Centre]>),
        data: &Dataset,
        order: &RowOrder,
        split: &Split,
    ) -> Result<ProviderRows, ServeError> {
        let (_, published) = taking_part(split);
        let (training, held_out) = order.cut(data);
        let bits = terms.proposal.resolution.value_bits();
        let mut rows = ProviderRows {
            grid: on_grid(training.values(), bits),
            labels: training.labels().to_vec(),
            held_out_grid: on_grid(held_out.values(), bits),
            held_out_labels: held_out.labels().to_vec(),
            reading: Reading::default(),
            private: match terms.proposal.privacy {
                Some(_) => {
                    let persons = persons.as_deref();
                    let persons = persons.map(|persons| (persons, &order.training[..]));
                    Some(private_rows(schema, centres, &training, persons)?)
                }
                None => None,
            },
            private_held_out: match terms.proposal.privacy {
                Some(_) => Some(private_rows(schema, centres, &held_out, None)?),
                None => None,
            },
            #[cfg(feature = "paper")]
            exact: training,
        };
        if let (Some(spending), true) = (&terms.proposal.spending, published.contains(&true)) {
            let features = terms.features.iter().zip(published);
            let open = features.filter(|(_, published)| *published);
            let open = open.map(|(feature, _)| feature).collect();
            self.publish(channel, terms, spending, open, &mut rows)?;
        }
        Ok(rows)
    }

    fn publish(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        spending: &Spending,
        open: Vec<&Feature>,
        rows: &mut ProviderRows,
    ) -> Result<(), ServeError> {
        let Columns {
            width,
            open: columns,
            ..
        } = terms.columns;
        let job = terms.proposal.job;
        let offer = Offer::new(
            open,
            &rows.grid,
            *width,
            terms.proposal.resolution.value_bits(),
            spending,
        )
        .map_err(Unfit::Release)?;
        let mut rng = self.randomness.fork("release noise", 0)?;
        let mut make = |receipt| {
            let bytes = offer.release(receipt, &mut rng);
            bytes.map_err(Refusal::Release)
        };
        let charge = offer.charge();
        let bytes = self.house.release(job, charge.clone(), &mut make)?;
        let noisy = offer
            .read(&bytes, rows.labels.len())
            .map_err(OwnFault::StoredRelease)?;
        charge.send(channel)?;
        channel.send(Release::TAG, &bytes)?;
        overwrite(&mut rows.grid, *width, columns, &noisy);
        Ok(())
    }

    /// Asks the house, and lets it pay for what a private gradient reveals, before anything of it is
    /// computed.
    fn begin_iteration(
        &self,
        proposal: &Proposal,
        plan: Option<&PrivatePlan>,
        iteration: u32,
    ) -> Result<(), ServeError> {
        self.house.begin_iteration(proposal.job, iteration)?;
        let Some(plan) = plan else {
            return Ok(());
        };
        if iteration >= plan.all_gradients() {
            let reason = format!("the plan has {} gradients", plan.all_gradients());
            return Err(PeerProblem::message("command", reason).into());
        }
        let cost = plan.cost_of_gradient();
        let gradient = Bought::Gradient { iteration };
        Ok(self.house.pay(proposal.job, gradient, cost)?)
    }

    fn answer_commands(
        &self,
        channel: &mut Channel,
        proposal: &Proposal,
        plan: Option<&PrivatePlan>,
        engine: &mut dyn ProviderEngine,
        rows: usize,
    ) -> Result<Served, ServeError> {
        let mut iterations = 0;
        let mut asked = Asked::default();
        loop {
            match Command::receive(channel, ())? {
                Command::Gradient {
                    iteration,
                    class,
                    batch,
                    row_bits,
                } => {
                    let positive = asked.gradient(proposal, iteration, class, batch)?;
                    self.begin_iteration(proposal, plan, iteration)?;
                    let batch = Batch::new(batch as usize, proposal.batches as usize);
                    let question = GradientQuestion {
                        iteration,
                        class,
                        positive,
                        batch,
                        row_bits,
                    };
                    engine.gradient(channel, question)?;
                    iterations += 1;
                }
                Command::Evaluate { number } => {
                    let (evaluation, positive) = asked.evaluation(proposal, number)?;
                    channel.enter_phase("evaluate");
                    self.house.begin_evaluation(proposal.job, number)?;
                    if let Some(plan) = plan {
                        let counts = Bought::Counts {
                            class: evaluation.class,
                        };
                        let cost = plan.cost_of_counts();
                        self.house.pay(proposal.job, counts, cost)?;
                    }
                    engine.count(channel, evaluation, positive)?;
                    channel.enter_phase("train");
                }
                Command::Finish => return Ok(Served { iterations, rows }),
            }
        }
    }
}

/// What the labels are, by what the data user said.
fn told_reading(
    proposal: &Proposal,
    label: Option<TargetScale>,
    weights: Vec<[f64; 2]>,
) -> Result<Reading, MomentsError> {
    if proposal.numeric {
        let scale = label.filter(|scale| scale.is_sound());
        return scale.map(Reading::Number).ok_or(MomentsError::Label);
    }
    Ok(Reading::Classes(match proposal.class_weight {
        Some(ClassWeight::Balanced) => Weighing::of_pairs(weights, proposal.positives.len())?,
        _ => given(proposal),
    }))
}

/// The providers of the job as the proposal names them.
fn roster(proposal: &Proposal) -> Result<Roster, ServeError> {
    let bad = |reason: String| PeerProblem::message("proposal", reason);
    let mut keys = Vec::with_capacity(proposal.identities.len());
    for identity in &proposal.identities {
        let bytes = unhex::<32>(identity).map_err(|e| bad(format!("an identity: {e}")))?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|e| bad(format!("an identity: {e}")))?;
        keys.push(key);
    }
    Ok(Roster::new(&proposal.job.0, &keys).map_err(|e| bad(e.to_string()))?)
}

fn check_fit(proposal: &Proposal, admission: &Admission) -> Result<(), ServeError> {
    let ours = admission.schema.fingerprint().to_string();
    if proposal.schema != ours {
        let theirs = proposal.schema.clone();
        return Err(Unfit::Schema { theirs, ours }.into());
    }
    let numeric = admission.data.is_numeric();
    if proposal.numeric != numeric {
        let reason = match numeric {
            true => "the label is a number, and a class is to be learned",
            false => "the label is a class, and a number is to be learned",
        };
        return Err(PeerProblem::message("proposal", reason).into());
    }
    if numeric {
        return Ok(());
    }
    let classes = admission.data.classes().len() as u32;
    if let Some(weight) = &proposal.class_weight {
        let checked = weight.check(classes as usize);
        checked.map_err(|e| PeerProblem::message("proposal", e))?;
    }
    if let Some(class) = proposal.positives.iter().find(|class| **class >= classes) {
        let reason = format!("class {class} of {classes}");
        return Err(PeerProblem::message("proposal", reason).into());
    }
    Ok(())
}

fn check_rows(
    proposal: &Proposal,
    admission: &Admission,
    order: &RowOrder,
) -> Result<(), ServeError> {
    let minimum = admission.minimum_batch.max(SMALLEST_BATCH);
    let smallest = order.training.len() / proposal.batches as usize;
    if smallest < minimum {
        let (rows, least) = (smallest, minimum);
        return Err(Unfit::Batch { rows, least }.into());
    }
    // A few held-out rows are as telling as a small batch: their histogram, and the difference
    // between gradients with and without them.
    let held_out = order.held_out.len();
    if proposal.privacy.is_some() && admission.persons.is_some() && held_out > 0 {
        return Err(Unfit::HeldOutPersons.into());
    }
    let minimum = admission.minimum_held_out.max(SMALLEST_BATCH);
    if proposal.holdout_permille > 0 && held_out < minimum {
        let (rows, least) = (held_out, minimum);
        return Err(Unfit::HeldOut { rows, least }.into());
    }
    let choosing = HeldOut::Choosing.of(held_out).len();
    if proposal.path.is_some() && choosing < minimum {
        let (rows, least) = (choosing, minimum);
        return Err(Unfit::Choosing { rows, least }.into());
    }
    if proposal.privacy.is_some() || proposal.numeric {
        // Nothing is said about labels without noise, not even that they are all alike.
        return Ok(());
    }
    let labels = admission.data.labels();
    for positive in &proposal.positives {
        let found = order
            .training
            .iter()
            .filter(|row| labels[**row] == *positive)
            .count();
        if found == 0 || found == order.training.len() {
            let class = admission.data.classes()[*positive as usize].clone();
            return Err(Unfit::OneSided { class }.into());
        }
    }
    Ok(())
}
