//! A provider's side of a job.

use super::fit::{check_fit, check_rows, row_order};
use super::purchase::private_rows;
use super::request_order::{RequestOrder, StepAnswer};
use super::scale::given;
use crate::agreement::JobMasks;
use crate::class_weights::ClassWeights;
use crate::closing::Closing;
use crate::codec::{hex, unhex};
use crate::description::Job;
use crate::engine::columns::{columns_of, taking_part};
use crate::engine::label_encoding::LabelEncoding;
use crate::engine::{Columns, ProviderEngine, ProviderRows, Terms};
use crate::error::{PeerProblem, ServeError, Unfit};
use crate::guard::{Admission, Guard, Refusal, Step};
use crate::message::{
    Acceptance, Account, Agreement, Announcement, Announcements, Command, Contribution, Message,
    Release, Reserved, Sums,
};
use crate::moments::{self, MomentsError, OfLabels, Scale};
use crate::negotiation;
use crate::plan::JobPlan;
use crate::proposal::{ClassWeight, JobId, Proposal, Scoring, Spending, Split};
use crate::release::{Offer, overwrite};
use crate::rows::{RowOrder, on_grid};
use ed25519_dalek::{SigningKey, VerifyingKey};
use heda_blocks::channel::Channel;
use heda_crypto::bits::pack;
use heda_crypto::masking::{MASK_BITS, MaskSetup, Origin, Roster};
use heda_crypto::random::Randomness;
use heda_learn::data::{Dataset, Feature};
use heda_learn::scaling::Centre;
use heda_learn::score::ScoringMethod;
use heda_learn::target::TargetScale;

/// A provider that serves one job over one channel.
pub struct Provider<'a> {
    /// Its rules and its data.
    pub guard: &'a dyn Guard,
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
        let (proposal, signed) = Proposal::receive(channel)?;
        proposal
            .check()
            .map_err(|e| PeerProblem::message("proposal", e))?;
        let served = self.serve_proposal(channel, proposal.clone(), &signed);
        if served.as_ref().is_err_and(ServeError::is_cheating) {
            self.guard.end_cheating(proposal.id)?;
        }
        served
    }

    fn serve_proposal(
        &self,
        channel: &mut Channel,
        proposal: Proposal,
        signed: &[u8],
    ) -> Result<Served, ServeError> {
        let engine = proposal.job.engine().implementation();
        let admission = self.guard.admit(&proposal)?;
        check_fit(&proposal.job, &admission)?;
        let data = &admission.data;
        let order = row_order(&proposal.job, &admission);
        check_rows(&proposal.job, &admission, &order)?;
        // J2, J3, J3a
        let mut masks = self.join(channel, (&proposal, signed), &admission, &order)?;
        let (proposal, plan) = self.agree(channel, proposal, &admission, &mut masks)?;
        // J4, J5
        let split = self.rank(channel, &proposal, &admission, &order, &mut masks)?;
        let (features, columns) = columns_of(data.features(), &split);
        let terms = Terms {
            proposal: &proposal,
            features: &features,
            columns: &columns,
            plan: plan.as_ref(),
        };
        engine.check(&terms, order.part())?;
        let data = data.select_features(&taking_part(&split).0);
        let (data, labels_as) = match proposal.job.standardises() {
            true => self.scale(channel, &terms, data, &order, &mut masks)?,
            false => (data, LabelEncoding::Classes(given(&proposal.job))),
        };
        let kept = (&order, &mut masks);
        let centres = self.sell_moments(channel, &terms, &admission, &data, kept)?;
        let rounds_itself = engine.rounds_itself();
        let unrounded = rounds_itself.then(|| data.select_rows(&order.training));
        // J6
        channel.enter_phase("publish");
        let mut rows = self.prepare(
            channel,
            &terms,
            (&admission, centres.as_deref()),
            data,
            &order,
            &split,
        )?;
        rows.labels_as = labels_as;
        // J7, J8
        channel.enter_phase("encrypt");
        let rows = (rows, unrounded);
        let mut session = engine.set_up_provider(channel, &terms, rows, &self.randomness)?;
        // J9 to J11
        channel.enter_phase("train");
        let rows = order.training.len();
        let asked = RequestOrder::new(&terms, admission.next_step);
        self.answer_commands(channel, &proposal, asked, (session.as_mut(), masks), rows)
    }

    /// Steps J2 and J3: masks with everybody who signed the same proposal.
    fn join(
        &self,
        channel: &mut Channel,
        (proposal, signed): (&Proposal, &[u8]),
        admission: &Admission,
        order: &RowOrder,
    ) -> Result<JobMasks, ServeError> {
        let mut rng = self.randomness.fork("masking keys", 0)?;
        let roster = roster(proposal, signed)?;
        let origin = Origin::of_seeded(self.randomness.is_seeded());
        let (pending, announcement) = MaskSetup::announce(roster, self.identity, origin, &mut rng)
            .map_err(|e| PeerProblem::message("proposal", e))?;
        let acceptance = Acceptance {
            rows: order.training.len(),
            held_out: order.held_out.len(),
            announcement: Announcement(announcement),
            ledger: admission.ledger.clone(),
            next_step: admission.next_step,
            trusted_most: admission.trusted_most,
            persons: proposal.job.privacy().is_some() && admission.persons.is_some(),
        };
        acceptance.send(channel)?;
        let all = Announcements::receive(channel, proposal.parties.identities.len())?;
        let masks = pending.finish(&all.0);
        let masks = masks.map_err(|e| PeerProblem::message("announcements", e))?;
        Ok(JobMasks::new(masks, &all.0))
    }

    /// Step J3a: the proposal with what was agreed since. What a private job costs is set aside.
    fn agree(
        &self,
        channel: &mut Channel,
        proposal: Proposal,
        admission: &Admission,
        masks: &mut JobMasks,
    ) -> Result<(Proposal, Option<JobPlan>), ServeError> {
        let agreement: Agreement = masks.hear(channel, ())?;
        let bad = |reason: &str| PeerProblem::message(Agreement::NAME, reason);
        if agreement.first_step < admission.next_step {
            return Err(bad("it goes back to an answer that was given before").into());
        }
        let proposal = proposal.agreed(&agreement);
        // Every feature of a private job takes part.
        let plan = JobPlan::of(&proposal, admission.data.width());
        let Some(plan) = plan.map_err(|e| PeerProblem::message("proposal", e))? else {
            return Ok((proposal, None));
        };
        if agreement.trusted > admission.trusted_most {
            return Err(bad("it counts on more providers' noise than this one does").into());
        }
        if admission.persons.is_some() && !agreement.persons {
            return Err(bad("this provider protects persons, and it counts rows").into());
        }
        self.guard.reserve(proposal.id, plan.agreed())?;
        masks.set_aside(plan.agreed());
        Reserved {}.send(channel)?;
        Ok((proposal, Some(plan)))
    }

    /// Begins an answer, if the guard lets it be computed.
    pub(super) fn begin<'b>(
        &'b self,
        job: JobId,
        step: Step,
        masks: &'b mut JobMasks,
    ) -> Result<Closing<'b>, Refusal> {
        self.guard.begin(job, &step)?;
        Ok(Closing {
            guard: self.guard,
            job,
            step,
            masks,
        })
    }

    fn rank(
        &self,
        channel: &mut Channel,
        proposal: &Proposal,
        admission: &Admission,
        order: &RowOrder,
        masks: &mut JobMasks,
    ) -> Result<Split, ServeError> {
        channel.enter_phase("score");
        if let Some((method, alone)) = self.ranking_part(proposal, masks) {
            let closing = self.begin(proposal.id, Step::Scores, masks)?;
            let training = admission.data.select_rows(&order.training);
            let schema = &admission.schema;
            let question = negotiation::ScoresQuestion::new(schema, method, proposal.id.seed());
            let provider = negotiation::RankingProvider::new(question);
            let message = match alone {
                true => closing.unmasked(provider.choose(&training).map_err(Unfit::Scores)?)?,
                false => {
                    let mut sum = closing.sum(provider.numbers());
                    let added = provider.add_shares(&training, closing.masks, &mut sum);
                    added.map_err(Unfit::Scores)?;
                    provider.message(&closing.close(sum, negotiation::PURPOSE, None)?)
                }
            };
            Contribution(message).send(channel)?;
        }
        let split: Split = masks.hear(channel, ())?;
        if !split.covers(admission.data.features().len()) {
            let reason = "it does not hold every feature once";
            return Err(PeerProblem::message("split", reason).into());
        }
        if !split.published.is_empty() && proposal.job.spending().is_none() {
            let reason = "it publishes features, but the proposal spends nothing";
            return Err(PeerProblem::message("split", reason).into());
        }
        if proposal.job.privacy().is_some()
            && split.encrypted.len() != admission.data.features().len()
        {
            let reason = "a private job encrypts every feature";
            return Err(PeerProblem::message("split", reason).into());
        }
        let agreed = self.guard.agree_split(proposal.id, &split);
        agreed?;
        Ok(split)
    }

    /// Step J4: the method by which this provider scores, and whether it sends its order alone
    /// because it chooses for all or has nobody to hide among.
    fn ranking_part(&self, proposal: &Proposal, masks: &JobMasks) -> Option<(ScoringMethod, bool)> {
        match proposal.scoring() {
            Scoring::Nobody => None,
            Scoring::Everybody(method) => Some((method, masks.is_alone())),
            Scoring::One(method, chooser) => {
                let own = hex(self.identity.verifying_key().as_bytes());
                let chosen = proposal.parties.identities.get(chooser) == Some(&own);
                chosen.then_some((method, true))
            }
        }
    }

    /// Between J5 and J6: the rows in the windows that follow from everybody's sums, or that the
    /// schema or an earlier session gave.
    fn scale(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        data: Dataset,
        order: &RowOrder,
        masks: &mut JobMasks,
    ) -> Result<(Dataset, LabelEncoding), ServeError> {
        let labels = OfLabels::asked(&terms.proposal.job, data.classes().len());
        let encrypted = moments::encrypted(terms.features, terms.columns);
        let bad = |e| PeerProblem::message(Scale::NAME, e);
        let mut scale: Scale = masks.hear(channel, ())?;
        if let Scale::Ask { fraction_bits } = scale {
            let numbers = moments::numbers(&encrypted, labels);
            let step = Step::Sums {
                numbers: numbers as u64,
            };
            let closing = self.begin(terms.proposal.id, step, masks)?;
            let training = data.select_rows(&order.training);
            let mut sum = closing.sum(numbers);
            moments::add_rows(&training, &encrypted, labels, fraction_bits, &mut sum)
                .map_err(bad)?;
            let sums = closing.close(sum, moments::PURPOSE, None)?;
            Sums(pack(&sums, MASK_BITS)).send(channel)?;
            scale = masks.hear(channel, ())?;
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
        let labels_as = told_encoding(&terms.proposal.job, label, weights).map_err(bad)?;
        Ok((data.in_windows(&windows), labels_as))
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
        data: Dataset,
        order: &RowOrder,
        split: &Split,
    ) -> Result<ProviderRows, ServeError> {
        let (_, published) = taking_part(split);
        let (training, held_out) = order.cut(&data);
        drop(data);
        let bits = terms.proposal.job.resolution().value_bits();
        let mut rows = ProviderRows {
            grid: on_grid(training.values(), bits),
            labels: training.labels().to_vec(),
            held_out_grid: on_grid(held_out.values(), bits),
            held_out_labels: held_out.labels().to_vec(),
            labels_as: LabelEncoding::default(),
            place: {
                let own = hex(self.identity.verifying_key().as_bytes());
                terms.proposal.parties.place(&own)
            },
            private: match terms.proposal.job.privacy() {
                Some(_) => {
                    let persons = persons.as_deref();
                    let persons = persons.map(|persons| (persons, &order.training[..]));
                    Some(private_rows(schema, centres, &training, persons)?)
                }
                None => None,
            },
            private_held_out: match terms.proposal.job.privacy() {
                Some(_) => Some(private_rows(schema, centres, &held_out, None)?),
                None => None,
            },
        };
        if let (Some(spending), true) = (terms.proposal.job.spending(), published.contains(&true)) {
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
        let job = terms.proposal.id;
        let offer = Offer::new(
            open,
            &rows.grid,
            *width,
            terms.proposal.job.resolution().value_bits(),
            spending,
        )
        .map_err(Unfit::Release)?;
        let mut rng = self.randomness.fork("release noise", 0)?;
        let mut make = |receipt| {
            let bytes = offer.release(receipt, &mut rng);
            bytes.map_err(Refusal::Release)
        };
        let charge = offer.charge();
        let bytes = self.guard.release(job, charge.clone(), &mut make)?;
        let noisy = offer
            .read(&bytes, rows.labels.len())
            .map_err(ServeError::StoredRelease)?;
        charge.send(channel)?;
        channel.send(Release::TAG, &bytes)?;
        overwrite(&mut rows.grid, *width, columns, &noisy);
        Ok(())
    }

    fn answer_commands(
        &self,
        channel: &mut Channel,
        proposal: &Proposal,
        mut asked: RequestOrder,
        (engine, mut masks): (&mut dyn ProviderEngine, JobMasks),
        rows: usize,
    ) -> Result<Served, ServeError> {
        let mut iterations = 0;
        loop {
            let command: Command = masks.hear(channel, ())?;
            let (step, answer) = match asked.answer(&proposal.job, command)? {
                Some(due) => due,
                None => break,
            };
            let closing = self.begin(proposal.id, step, &mut masks)?;
            match answer {
                StepAnswer::Gradient(question) => {
                    engine.gradient(channel, question, closing)?;
                    iterations += 1;
                }
                StepAnswer::Evaluation(evaluation, positive) => {
                    channel.enter_phase("evaluate");
                    engine.count(channel, (evaluation, positive), closing)?;
                    channel.enter_phase("train");
                }
            }
        }
        if proposal.job.privacy().is_some() {
            let charged = self.guard.charged(proposal.id)?;
            let account = Account {
                charged: charged.job.parts(),
                left: charged.left,
            };
            // A data user that has left knows what it came for.
            let _ = account.send(channel);
        }
        Ok(Served { iterations, rows })
    }
}

/// What the labels are, by what the data user said.
fn told_encoding(
    job: &Job,
    label: Option<TargetScale>,
    weights: Vec<[f64; 2]>,
) -> Result<LabelEncoding, MomentsError> {
    if job.is_numeric() {
        let scale = label.filter(|scale| scale.is_sound());
        return scale.map(LabelEncoding::Number).ok_or(MomentsError::Label);
    }
    Ok(LabelEncoding::Classes(match job.class_weight() {
        Some(ClassWeight::Balanced) => ClassWeights::of_pairs(weights, job.positives().len())?,
        _ => given(job),
    }))
}

/// The providers of the job as the proposal names them, who sign the whole of it.
fn roster(proposal: &Proposal, signed: &[u8]) -> Result<Roster, ServeError> {
    let bad = |reason: String| PeerProblem::message("proposal", reason);
    let mut keys = Vec::with_capacity(proposal.parties.identities.len());
    for identity in &proposal.parties.identities {
        let bytes = unhex::<32>(identity).map_err(|e| bad(format!("an identity: {e}")))?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|e| bad(format!("an identity: {e}")))?;
        keys.push(key);
    }
    Ok(Roster::new(signed, &keys).map_err(|e| bad(e.to_string()))?)
}
