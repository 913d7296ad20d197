//! The data user's side of a job.

use super::checks::{CountedRows, check_acceptance, check_capacity, check_counts, check_resume};
use super::outcome::{ClassFit, Outcome, PhaseTime, ProviderSummary, Revealed, ToldCharge};
use super::progress::{Observer, Progress};
use super::ranking::{self, Ranked};
use super::spec::{Checkpoint, JobSpec};
use super::training::TrainingInput;
use crate::codec::hex;
use crate::engine::columns::columns_of;
use crate::engine::label_encoding::LabelEncoding;
use crate::engine::{Columns, Joined, Terms, UserEngine};
use crate::error::{BadJob, JobError, PeerProblem};
use crate::message::{
    Acceptance, Account, Agreement, Announcements, Command, FromProvider, Message, Published,
    Release, Reserved,
};
use crate::parallel::{Party, ask_all};
use crate::plan::JobPlan;
use crate::proposal::{Proposal, Split};
use crate::regression_metrics;
use crate::rounds::{HeldOut, Rounds};
use ed25519_dalek::VerifyingKey;
use heda_blocks::channel::Channel;
use heda_crypto::masking::{Origin, Roster};
use heda_crypto::random::Randomness;
use heda_dp::account::Charge;
use heda_dp::gdp::Cost;
use heda_learn::data::Feature;
use heda_learn::scaling::Scaling;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The way to one provider.
pub struct Link {
    /// What it is called in messages and reports.
    pub name: String,
    /// Its identity, which signs its mask keys.
    pub identity: VerifyingKey,
    /// The conversation with it.
    pub channel: Channel,
}

impl Party for Link {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// Runs a job to its end, from the beginning or from a checkpoint.
pub fn run(
    spec: &JobSpec,
    links: Vec<Link>,
    randomness: &Randomness,
    observer: &mut dyn Observer,
    resume: Option<Checkpoint>,
) -> Result<Outcome, JobError> {
    let identities = links.iter().map(|link| hex(link.identity.as_bytes()));
    let proposal = spec.proposal(identities.collect(), randomness.is_seeded());
    let mut job = JobRunner::new(spec, &proposal, randomness, observer);
    let began = Instant::now();
    // J1 to J3a
    let (mut joined, proposal) = job.phase("agree", |job| job.agree(proposal, links))?;
    let spec = &*Arc::clone(&job.spec);
    let plan = job.plan.clone();
    let plan = plan.as_ref();
    // J4, J5
    let Ranked {
        ranking,
        ranked_by,
        split,
        reason,
    } = job.phase("score", |job| {
        let before = resume.as_ref().map(|checkpoint| &checkpoint.split);
        let ranked = ranking::rank(spec, &mut joined, before)?;
        check_resume((spec, plan), &ranked.split, resume.as_ref())?;
        check_capacity(spec, (&proposal, plan), &joined, &ranked.split)?;
        job.keep_split(&ranked, resume.is_some())?;
        ranking::announce(&mut joined, &ranked.split)?;
        Ok(ranked)
    })?;
    let (features, columns) = columns_of(&spec.schema.features(), &split);
    let mut state = resume.unwrap_or_else(|| Checkpoint::begun(spec.id, split.clone()));
    let terms = Terms {
        proposal: &proposal,
        features: &features,
        columns: &columns,
        plan,
    };
    let scaled = job.phase("scale", |job| {
        job.buy_moments(&mut joined, plan, &mut state)?;
        job.scale(&mut joined, &terms, &mut state)
    })?;
    // J6
    job.phase("publish", |job| job.collect_releases(&mut joined, &split))?;
    let basis = scaled.basis(spec, &joined, &columns)?;
    job.held_out = joined.iter().map(|party| party.part.held_out).collect();
    job.rows = joined.iter().map(|party| party.part.rows).sum();
    job.rounds = terms.rounds();
    // J7, J8
    let (mut engine, summaries) = job.phase("encrypt", |job| {
        job.set_up(&terms, joined, &basis.scaling, &scaled.labels_as)
    })?;
    let engine = engine.as_mut();
    // J9
    let input = TrainingInput {
        basis: &basis,
        features: &features,
        labels_as: &scaled.labels_as,
        left: &scaled.left,
    };
    let (mut fits, mut chosen) = job.phase("train", |job| job.train(engine, input, &mut state))?;
    // J10
    job.phase("evaluate", |job| {
        job.evaluate(engine, &mut fits, &mut state)
    })?;
    job.set_counting_apart();
    // J11: who is gone by now is no loss to the result.
    let mut channels = engine.channels();
    for channel in &mut channels {
        let _ = Command::Finish.send(channel);
    }
    let charged: Vec<Option<ToldCharge>> = channels
        .iter_mut()
        .map(|channel| spec.job.privacy().and_then(|_| told_charge(channel)))
        .collect();
    if let Some(error) = job.failed.take() {
        return Err(error.into());
    }
    check_counts(&job.counted)?;
    for fit in &mut fits {
        fit.beta = scaled.windows.to_values(&fit.beta);
        if let (LabelEncoding::Number(scale), Some(number)) =
            (&scaled.labels_as, spec.schema.label().number())
        {
            fit.beta = scale.to_places(&fit.beta);
            let unit = scale.unit() * number.bounds.range();
            let rows = match spec.job.penalties() {
                Some(_) => job.announced(HeldOut::Reported),
                None => job.announced(HeldOut::All),
            };
            fit.errors = regression_metrics::of_sums(&state.errors, rows, unit);
            let tried = chosen.iter_mut().flat_map(|chosen| &mut chosen.tried);
            for rmse in tried.filter_map(|tried| tried.rmse.as_mut()) {
                *rmse *= unit;
            }
        }
    }
    let providers: Vec<ProviderSummary> = summaries
        .into_iter()
        .zip(&channels)
        .zip(charged)
        .map(|((summary, channel), charged)| ProviderSummary {
            charged,
            traffic: channel.traffic().clone(),
            view: channel.transcript().to_vec(),
            ..summary
        })
        .collect();
    let summed = providers.len() > 1 && spec.job.engine().implementation().sums_over_providers();
    let mut revealed = revealed(spec, &columns, &state, &fits, &providers, summed);
    let bought: usize = state.sums.iter().map(Vec::len).sum();
    revealed.moment_numbers = scaled.asked + bought as u64;
    revealed.label_numbers = scaled.of_labels;
    let waited = channels.iter().map(|c| c.total_traffic().waited).min();
    let user_busy = began
        .elapsed()
        .saturating_sub(waited.unwrap_or(Duration::ZERO));
    let step = chosen.as_ref().map_or(0, |chosen| chosen.chosen);
    let settings = spec.steps(plan, step, state.bought.as_ref())?;
    let reach = job.reach(&state)?;
    let phases = job.phases;
    Ok(Outcome {
        ranking,
        ranked_by,
        split,
        split_reason: reason,
        settings,
        constant: scaled.constant,
        fits,
        reach,
        chosen,
        providers,
        phases,
        user_busy,
        revealed,
        privacy: spec.job.privacy(),
        lost: state.lost,
        persons: state.bought.and_then(|bought| bought.persons),
    })
}

/// What a provider charged a private job, if it still tells.
fn told_charge(channel: &mut Channel) -> Option<ToldCharge> {
    let account = Account::receive(channel, ()).ok()?;
    Some(ToldCharge {
        cost: Cost::from_parts(account.charged),
        left: account.left.filter(|left| left.is_finite() && *left >= 0.0),
    })
}

/// Tells every provider what was agreed on. What a private job costs is set aside at one after the
/// other, in the order of their identities: of two jobs at once one has it everywhere.
fn tell(links: &mut [Link], agreement: &Agreement, private: bool) -> Result<(), JobError> {
    if !private {
        ask_all(links, |link| agreement.send(&mut link.channel))?;
        return Ok(());
    }
    let mut order: Vec<usize> = (0..links.len()).collect();
    order.sort_by_key(|&place| links[place].identity.to_bytes());
    for place in order {
        ask_all(&mut links[place..=place], |link| {
            agreement.send(&mut link.channel)?;
            Ok(Reserved::receive(&mut link.channel, ())?)
        })?;
    }
    Ok(())
}

/// What stays the same during a job.
pub(super) struct JobRunner<'a> {
    /// As it was agreed on.
    pub(super) spec: Arc<JobSpec>,
    randomness: &'a Randomness,
    pub(super) observer: &'a mut dyn Observer,
    phases: Vec<PhaseTime>,
    /// The plan of a private job, once its parties agreed on it.
    pub(super) plan: Option<JobPlan>,
    /// Why the job will fail when the conversation is over.
    pub(super) failed: Option<BadJob>,
    /// Rows that each provider holds out.
    pub(super) held_out: Vec<usize>,
    /// Training rows of all providers.
    pub(super) rows: usize,
    /// Gradients and evaluations in their order.
    pub(super) rounds: Rounds,
    /// No answer below this number is asked for: some provider has given it before.
    pub(super) first_step: u32,
    /// What evaluations of this run counted.
    pub(super) counted: Vec<CountedRows>,
    /// How long evaluations between gradients took.
    pub(super) counting: Duration,
}

impl<'a> JobRunner<'a> {
    /// Before anyone was asked for anything.
    pub(super) fn new(
        spec: &JobSpec,
        proposal: &Proposal,
        randomness: &'a Randomness,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            spec: Arc::new(spec.clone()),
            randomness,
            observer,
            phases: Vec::new(),
            plan: None,
            failed: None,
            held_out: Vec::new(),
            rows: 0,
            rounds: Rounds::of(&proposal.job),
            first_step: 0,
            counted: Vec::new(),
            counting: Duration::ZERO,
        }
    }
}

impl JobRunner<'_> {
    fn phase<T>(
        &mut self,
        phase: &'static str,
        work: impl FnOnce(&mut Self) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        self.observer.progress(Progress::Phase(phase));
        let began = Instant::now();
        let done = work(self);
        self.phases.push(PhaseTime {
            phase,
            took: began.elapsed(),
        });
        done
    }

    /// Evaluations that came between gradients belong to the evaluation.
    fn set_counting_apart(&mut self) {
        for time in &mut self.phases {
            match time.phase {
                "train" => time.took = time.took.saturating_sub(self.counting),
                "evaluate" => time.took += self.counting,
                _ => {}
            }
        }
    }

    fn agree(
        &mut self,
        proposal: Proposal,
        mut links: Vec<Link>,
    ) -> Result<(Vec<Joined>, Proposal), JobError> {
        proposal.check().map_err(BadJob::from)?;
        let (job, schema) = (&proposal.job, &self.spec.schema);
        job.check_schema(schema).map_err(BadJob::from)?;
        let limit = self.spec.job.engine().implementation().limits().rows;
        let keys: Vec<VerifyingKey> = links.iter().map(|link| link.identity).collect();
        let signed = proposal.encode()?;
        let roster = Roster::new(&signed, &keys).map_err(BadJob::from)?;
        // J1, J2
        let accepted = ask_all(&mut links, |link| {
            link.channel.enter_phase("agree");
            proposal.send(&mut link.channel)?;
            let acceptance = Acceptance::receive(&mut link.channel, ())?;
            let part = check_acceptance(&self.spec, limit, &acceptance)?;
            let origin = roster.announced_origin(&acceptance.announcement.0, &link.identity);
            let origin = origin.map_err(|e| PeerProblem::message("acceptance", e))?;
            Ok((part, origin, acceptance))
        })?;
        for (link, (_, origin, acceptance)) in links.iter().zip(&accepted) {
            if *origin == Origin::Seed {
                let name = link.name.clone();
                self.observer.progress(Progress::Seeded(name));
            }
            if let Some(ledger) = &acceptance.ledger {
                self.observer.ledger(&link.name, ledger);
            }
        }
        // J3
        let all: Vec<&[u8]> = accepted
            .iter()
            .map(|(_, _, one)| &one.announcement.0[..])
            .collect();
        let all = Announcements(all.concat());
        ask_all(&mut links, |link| all.send(&mut link.channel))?;
        // J3a
        let accepted_all: Vec<&Acceptance> = accepted.iter().map(|(_, _, one)| one).collect();
        let agreement = self.settle(&accepted_all);
        let proposal = proposal.agreed(&agreement);
        // Every feature of a private job takes part.
        let plan = JobPlan::of(&proposal, self.spec.schema.width());
        self.plan = plan.map_err(BadJob::from)?;
        tell(&mut links, &agreement, self.plan.is_some())?;
        let spec = JobSpec {
            job: proposal.job.clone(),
            ..JobSpec::clone(&self.spec)
        };
        self.spec = Arc::new(spec);
        let joined = links.into_iter().zip(accepted);
        let joined = joined.map(|(link, (part, origin, _))| Joined {
            name: link.name,
            channel: link.channel,
            part,
            seeded: origin == Origin::Seed,
            charge: None,
            open: Vec::new(),
        });
        Ok((joined.collect(), proposal))
    }

    /// Step J3a: what follows from everybody's acceptance.
    fn settle(&mut self, accepted: &[&Acceptance]) -> Agreement {
        let asked = self
            .spec
            .job
            .privacy()
            .map_or(0, |p| p.counts_on(accepted.len()));
        let allowed = accepted.iter().map(|acceptance| acceptance.trusted_most);
        let agreement = Agreement {
            trusted: allowed.min().map_or(asked, |allowed| allowed.min(asked)),
            persons: accepted.iter().any(|acceptance| acceptance.persons),
            first_step: accepted.iter().map(|a| a.next_step).max().unwrap_or(0),
        };
        self.first_step = agreement.first_step;
        if self.spec.job.privacy().is_some() {
            let agreed = agreement.trusted;
            self.observer.progress(Progress::CountsOn { agreed, asked });
        }
        agreement
    }

    /// What was chosen is kept before anyone hears it: a release belongs to one split for good.
    fn keep_split(&mut self, ranked: &Ranked, resumed: bool) -> Result<(), JobError> {
        if let Some(reason) = &ranked.reason {
            self.observer.progress(Progress::Split(reason.clone()));
        }
        if resumed {
            return Ok(());
        }
        self.keep(&Checkpoint::begun(self.spec.id, ranked.split.clone()))
    }

    pub(super) fn keep(&mut self, state: &Checkpoint) -> Result<(), JobError> {
        match self.observer.checkpoint(state) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JobError::Interrupted),
            Err(error) => Err(error.into()),
        }
    }

    fn collect_releases(&mut self, joined: &mut [Joined], split: &Split) -> Result<(), JobError> {
        if split.published.is_empty() {
            return Ok(());
        }
        let mut published = split.published.clone();
        published.sort_unstable();
        let features = self.spec.schema.features();
        let open: Vec<&Feature> = published.iter().map(|&f| &features[f]).collect();
        let value_bits = self.spec.job.resolution().value_bits();
        ask_all(joined, |party| {
            let rows = party.part.rows;
            let channel = party.channel();
            channel.enter_phase("publish");
            party.charge = Some(Charge::receive(channel, ())?);
            let known = Published {
                features: &open,
                rows,
                value_bits,
            };
            party.open = Release::receive(party.channel(), known)?.cells;
            Ok(())
        })?;
        Ok(())
    }

    /// Steps J7 and J8.
    fn set_up(
        &mut self,
        terms: &Terms<'_>,
        mut joined: Vec<Joined>,
        scaling: &Scaling,
        labels_as: &LabelEncoding,
    ) -> Result<(Box<dyn UserEngine>, Vec<ProviderSummary>), JobError> {
        let parties = joined.iter_mut();
        parties.for_each(|party| party.channel.enter_phase("encrypt"));
        let summaries = joined.iter().map(|party| ProviderSummary {
            name: party.name.clone(),
            rows: party.part.rows,
            held_out: party.part.held_out,
            seeded: party.seeded,
            charge: party.charge.clone(),
            charged: None,
            traffic: Default::default(),
            view: Vec::new(),
        });
        let summaries = summaries.collect();
        let engine = self.spec.job.engine().implementation();
        let engine = engine.set_up_user(terms, joined, scaling, labels_as, self.randomness)?;
        Ok((engine, summaries))
    }
}

fn revealed(
    spec: &JobSpec,
    columns: &Columns,
    state: &Checkpoint,
    fits: &[ClassFit],
    providers: &[ProviderSummary],
    summed: bool,
) -> Revealed {
    let exact = fits.iter().filter(|fit| fit.right.is_none());
    let histograms = exact.filter_map(|fit| fit.histogram.as_ref());
    let histograms = histograms.chain(state.tried.iter().filter_map(|t| t.histogram.as_ref()));
    let tried = state.tried.iter().filter_map(|tried| tried.errors);
    let tried = tried.map(|sum| 1 + sum.labels.map_or(0, |labels| labels.len() as u64));
    let noisy = state.noisy.iter().flatten();
    let noisy: u64 = noisy.map(|answer| answer.counts.len() as u64).sum();
    let rows: u64 = providers.iter().map(|provider| provider.rows as u64).sum();
    Revealed {
        gradient_numbers: u64::from(state.iteration) * (columns.width as u64 + 1),
        moment_numbers: 0,
        label_numbers: 0,
        count_numbers: histograms
            .map(|h| 2 * h.positives.len() as u64)
            .chain(
                fits.iter()
                    .filter_map(|fit| fit.errors)
                    .map(|_| regression_metrics::NUMBERS as u64),
            )
            .chain(tried)
            .chain([noisy])
            .sum(),
        unknown_cells: rows
            * (columns.hidden.len() as u64 + spec.job.positives().len().min(1) as u64),
        summed,
    }
}
