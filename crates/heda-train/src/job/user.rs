//! The data user's side of a job.

use super::capacity;
use super::columns::columns_of;
use super::outcome::{ClassFit, Observer, Outcome, PhaseTime, ProviderSummary, Revealed};
use super::paper;
use super::ranking::{self, Ranked};
use super::setup::{paper_terms, receive_protected};
use super::spec::{Checkpoint, JobSpec};
use super::tag;
use crate::codec::{from_json, hex, to_json, unhex};
use crate::error::{Blame, JobError, PeerProblem};
use crate::lookup::{self, Columns, LookupSource, Remote};
use crate::paper::PaperRemote;
use crate::parallel::{Party, ask_all};
use crate::proposal::{Acceptance, CONTROL_LIMIT, Command, Engine, Split};
use crate::rows::{release_from_bytes, release_length};
use ed25519_dalek::VerifyingKey;
use heda_blocks::channel::Channel;
use heda_crypto::masking::ANNOUNCEMENT_BYTES;
use heda_crypto::paillier::PrivateKey;
use heda_crypto::random::Randomness;
use heda_dp::account::Charge;
use heda_learn::data::Feature;
use heda_learn::fixed::Domain;
use heda_learn::gradient::GradientSource;
use heda_learn::optimise::{Ask, Optimiser, Stop};
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

/// A provider after it has accepted.
pub(super) struct Joined {
    pub(super) link: Link,
    pub(super) acceptance: Acceptance,
    charge: Option<Charge>,
    /// Published columns on the grid, row by row.
    pub(super) open: Vec<u32>,
}

impl Party for Link {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

impl Party for Joined {
    fn name(&self) -> &str {
        &self.link.name
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.link.channel
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
    let mut job = Running {
        spec,
        randomness,
        observer,
        phases: Vec::new(),
    };
    let began = Instant::now();
    // J1 to J3
    let mut joined = job.phase("agree", |job| job.agree(links))?;
    // J4, J5
    let Ranked {
        ranking,
        ranked_by,
        split,
        reason,
    } = job.phase("score", |job| {
        let before = resume.as_ref().map(|checkpoint| &checkpoint.split);
        let ranked = ranking::rank(spec, &mut joined, before)?;
        check_resume(spec, &ranked.split, resume.as_ref())?;
        check_capacity(spec, &joined, &ranked.split)?;
        job.keep_split(&ranked, resume.is_some())?;
        ranking::announce(&mut joined, &ranked.split)?;
        Ok(ranked)
    })?;
    // J6
    job.phase("publish", |job| job.collect_releases(&mut joined, &split))?;
    // J7, J8
    let (features, columns) = columns_of(&spec.schema.features(), &split);
    let (mut remotes, summaries) = job.phase("encrypt", |job| job.set_up(joined, &columns))?;
    // J9
    let mut state = resume.unwrap_or_else(|| Checkpoint::begun(spec.job, split.clone()));
    let mut fits = job.phase("train", |job| {
        job.train(&mut remotes, &features, &columns, &mut state)
    })?;
    // J10
    job.phase("evaluate", |job| {
        job.evaluate(&mut remotes, &features, &mut fits, &mut state)
    })?;
    // J11: who is gone by now is no loss to the result.
    let finish = to_json(&Command::Finish).map_err(|e| JobError::Bug(e.to_string()))?;
    for remote in &mut remotes {
        let _ = remote.channel.send(lookup::tag::COMMAND, &finish);
    }
    let providers: Vec<ProviderSummary> = summaries
        .into_iter()
        .zip(&remotes)
        .map(|(summary, remote)| ProviderSummary {
            traffic: remote.channel.traffic().clone(),
            view: remote.channel.transcript().to_vec(),
            ..summary
        })
        .collect();
    let revealed = revealed(spec, &columns, &fits, &providers);
    let waited = remotes
        .iter()
        .map(|r| r.channel.total_traffic().waited)
        .min();
    let user_busy = began
        .elapsed()
        .saturating_sub(waited.unwrap_or(Duration::ZERO));
    let phases = job.phases;
    Ok(Outcome {
        ranking,
        ranked_by,
        split,
        split_reason: reason,
        fits,
        providers,
        phases,
        user_busy,
        revealed,
    })
}

/// What stays the same during a job.
struct Running<'a> {
    spec: &'a JobSpec,
    randomness: &'a Randomness,
    observer: &'a mut dyn Observer,
    phases: Vec<PhaseTime>,
}

impl Running<'_> {
    fn phase<T>(
        &mut self,
        phase: &'static str,
        work: impl FnOnce(&mut Self) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        self.observer.phase(phase);
        let began = Instant::now();
        let done = work(self);
        self.phases.push(PhaseTime {
            phase,
            took: began.elapsed(),
        });
        done
    }

    fn agree(&mut self, mut links: Vec<Link>) -> Result<Vec<Joined>, JobError> {
        let identities: Vec<String> = links
            .iter()
            .map(|link| hex(link.identity.as_bytes()))
            .collect();
        let proposal = self.spec.proposal(identities, self.randomness.is_seeded());
        proposal
            .check()
            .map_err(|e| JobError::Input(e.to_string()))?;
        let proposal = to_json(&proposal).map_err(|e| JobError::Input(e.to_string()))?;
        // J1, J2
        let accepted = ask_all(&mut links, |link| {
            link.channel.enter_phase("agree");
            link.channel.send(tag::PROPOSAL, &proposal)?;
            let reply = link.channel.receive(tag::ACCEPTANCE, CONTROL_LIMIT)?;
            let acceptance: Acceptance = from_json(&reply).blame("acceptance")?;
            check_acceptance(self.spec, &acceptance)?;
            Ok(acceptance)
        })?;
        // J3
        let mut all = Vec::with_capacity(accepted.len() * ANNOUNCEMENT_BYTES);
        for (link, acceptance) in links.iter().zip(&accepted) {
            let announcement = unhex::<ANNOUNCEMENT_BYTES>(&acceptance.announcement);
            let announcement =
                announcement
                    .blame("acceptance")
                    .map_err(|problem| JobError::Provider {
                        name: link.name.clone(),
                        problem,
                    })?;
            all.extend(announcement);
        }
        ask_all(&mut links, |link| {
            Ok(link.channel.send(tag::ANNOUNCEMENTS, &all)?)
        })?;
        let joined = links
            .into_iter()
            .zip(accepted)
            .map(|(link, acceptance)| Joined {
                link,
                acceptance,
                charge: None,
                open: Vec::new(),
            });
        Ok(joined.collect())
    }

    /// What was chosen is kept before anyone hears it: a release belongs to one split for good.
    fn keep_split(&mut self, ranked: &Ranked, resumed: bool) -> Result<(), JobError> {
        if let Some(reason) = &ranked.reason {
            self.observer.split_chosen(reason);
        }
        if resumed {
            return Ok(());
        }
        self.keep(&Checkpoint::begun(self.spec.job, ranked.split.clone()))
    }

    fn keep(&mut self, state: &Checkpoint) -> Result<(), JobError> {
        match self.observer.checkpoint(state) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JobError::Interrupted),
            Err(error) => Err(JobError::Observer(error)),
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
        let bits = self.spec.precision.value_bits();
        ask_all(joined, |party| {
            let rows = party.acceptance.rows;
            let channel = party.channel();
            channel.enter_phase("publish");
            let charge: Charge =
                from_json(&channel.receive(tag::CHARGE, CONTROL_LIMIT)?).blame("charge")?;
            let release = channel.receive(tag::RELEASE, release_length(open.len(), rows))?;
            party.open = release_from_bytes(&release, &open, rows, bits).blame("release")?;
            party.charge = Some(charge);
            Ok(())
        })?;
        Ok(())
    }

    /// Steps J7 and J8.
    fn set_up(
        &mut self,
        mut joined: Vec<Joined>,
        columns: &Columns,
    ) -> Result<(Vec<Remote>, Vec<ProviderSummary>), JobError> {
        let own = self.paper_key(&joined, columns)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.div_ceil(joined.len().max(1));
        let keys = ask_all(&mut joined, |party| {
            let randomness = self.randomness.party(party.name());
            party.channel().enter_phase("encrypt");
            receive_protected(self.spec, party, columns, &randomness, own.clone(), threads)
        })?;
        let mut remotes = Vec::with_capacity(joined.len());
        let mut summaries = Vec::with_capacity(joined.len());
        for (party, protected) in joined.into_iter().zip(keys) {
            summaries.push(ProviderSummary {
                name: party.link.name.clone(),
                rows: party.acceptance.rows,
                held_out: party.acceptance.held_out,
                charge: party.charge,
                traffic: Default::default(),
                view: Vec::new(),
            });
            remotes.push(Remote {
                randomness: self.randomness.party(&party.link.name),
                name: party.link.name,
                channel: party.link.channel,
                batches: protected.batches,
                held_out: protected.held_out,
                zeros: protected.zeros,
                tables: protected.tables,
                paper: protected.paper,
            });
        }
        Ok((remotes, summaries))
    }

    /// The data user's key for engine `paper`, once every provider's part is known to fit.
    fn paper_key(
        &self,
        joined: &[Joined],
        columns: &Columns,
    ) -> Result<Option<Arc<PrivateKey>>, JobError> {
        if self.spec.engine != Engine::Paper {
            return Ok(None);
        }
        let mut key = None;
        for party in joined {
            let terms = paper_terms(self.spec, columns, party.acceptance.rows);
            let shape = terms.shape().map_err(JobError::Input)?;
            if key.is_none() {
                let mut rng = self.randomness.fork("paper keys", 0)?;
                let made = PaperRemote::user_key(&shape, &mut rng);
                key = Some(made.map_err(|e| JobError::Bug(e.to_string()))?);
            }
        }
        Ok(key)
    }

    fn train(
        &mut self,
        remotes: &mut [Remote],
        features: &[Feature],
        columns: &Columns,
        state: &mut Checkpoint,
    ) -> Result<Vec<ClassFit>, JobError> {
        remotes
            .iter_mut()
            .for_each(|remote| remote.channel.enter_phase("train"));
        let spec = self.spec;
        let domain = Domain::of_features(features, spec.precision)
            .map_err(|e| JobError::Input(e.to_string()))?;
        let at_most = spec
            .settings
            .max_iterations
            .saturating_mul(spec.positives.len() as u32);
        let mut fits = Vec::with_capacity(spec.positives.len());
        for (class, &positive) in spec.positives.iter().enumerate() {
            if state.optimisers.len() == class {
                let fresh = Optimiser::new(spec.settings.clone(), columns.width + 1);
                state
                    .optimisers
                    .push(fresh.map_err(|e| JobError::Input(e.to_string()))?);
            }
            let mut norms = Vec::new();
            while let Some(Ask { beta, batch }) = state.optimisers[class].ask() {
                let (class_index, iteration) = (class as u32, &mut state.iteration);
                let gradient = match spec.engine {
                    Engine::Lookup => {
                        let mut source = LookupSource {
                            remotes,
                            columns,
                            loss: spec.loss,
                            precision: spec.precision,
                            domain: &domain,
                            class: class_index,
                            iteration,
                        };
                        source.gradient(beta, batch)?
                    }
                    Engine::Paper => paper::gradient(remotes, beta, class_index, batch, iteration)?,
                };
                let optimiser = &mut state.optimisers[class];
                optimiser
                    .tell(&gradient)
                    .map_err(|e| JobError::Input(e.to_string()))?;
                let norm = optimiser.gradient_norm();
                norms.extend(norm);
                self.observer.iteration(state.iteration, at_most, norm);
                self.keep(state)?;
            }
            let optimiser = &state.optimisers[class];
            fits.push(ClassFit {
                positive,
                beta: optimiser.beta().to_vec(),
                iterations: optimiser.iterations(),
                stop: optimiser.stopped().unwrap_or(Stop::Iterations),
                norms,
                histogram: None,
            });
        }
        Ok(fits)
    }

    fn evaluate(
        &mut self,
        remotes: &mut [Remote],
        features: &[Feature],
        fits: &mut [ClassFit],
        state: &mut Checkpoint,
    ) -> Result<(), JobError> {
        if self.spec.holdout_permille == 0 {
            return Ok(());
        }
        remotes
            .iter_mut()
            .for_each(|remote| remote.channel.enter_phase("evaluate"));
        for (class, fit) in fits.iter_mut().enumerate() {
            if state.histograms.len() == class {
                let mut beta = fit.beta.clone();
                beta[0] -= self.spec.loss.loss().threshold();
                let bits = self.spec.precision.value_bits();
                let counted = lookup::histogram(remotes, &beta, features, bits, class as u32)?;
                state.histograms.push(counted);
                self.keep(state)?;
            }
            fit.histogram = state.histograms.get(class).cloned();
        }
        Ok(())
    }
}

fn check_acceptance(spec: &JobSpec, acceptance: &Acceptance) -> Result<(), PeerProblem> {
    let limit = heda_crypto::lattice::ROW_LIMIT;
    let (rows, held_out) = (acceptance.rows, acceptance.held_out);
    let refused = |reason: &str| {
        let reason = format!("{rows} training and {held_out} held-out rows: {reason}");
        Err(PeerProblem::message("acceptance", reason))
    };
    let total = rows.saturating_add(held_out);
    if rows == 0 || total > limit {
        return refused(&format!("between 1 and {limit} rows are possible"));
    }
    let expected = total as u64 * u64::from(spec.holdout_permille) / 1000;
    if held_out as u64 != expected {
        return refused(&format!("{expected} of them are to be held out"));
    }
    if held_out == 0 && spec.holdout_permille > 0 {
        return refused("too few to hold any out; hold out a larger share, or no rows at all");
    }
    Ok(())
}

/// What some provider could not do with this split is refused before anyone pays for a release.
fn check_capacity(spec: &JobSpec, joined: &[Joined], split: &Split) -> Result<(), JobError> {
    let (_, columns) = columns_of(&spec.schema.features(), split);
    for party in joined {
        let Acceptance { rows, held_out, .. } = party.acceptance;
        let terms = paper_terms(spec, &columns, rows);
        capacity::check(spec.engine, &terms, spec.precision, held_out)
            .map_err(|e| JobError::Input(format!("provider {}: {e}", party.link.name)))?;
    }
    let held_out: usize = joined.iter().map(|party| party.acceptance.held_out).sum();
    if held_out > lookup::HELD_OUT_LIMIT {
        return Err(JobError::Input(format!(
            "{held_out} rows are held out by all providers together, and at most {} can be \
             counted; hold out fewer",
            lookup::HELD_OUT_LIMIT
        )));
    }
    Ok(())
}

fn check_resume(
    spec: &JobSpec,
    split: &Split,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), JobError> {
    let Some(checkpoint) = checkpoint else {
        return Ok(());
    };
    if checkpoint.job != spec.job || checkpoint.split != *split {
        return Err(JobError::Input(
            "the checkpoint belongs to another job or another split of features; start afresh"
                .into(),
        ));
    }
    let (_, columns) = columns_of(&spec.schema.features(), split);
    let fits = |optimiser: &Optimiser| {
        *optimiser.settings() == spec.settings && optimiser.beta().len() == columns.width + 1
    };
    let models = spec.positives.len();
    let counts = checkpoint.optimisers.len() <= models && checkpoint.histograms.len() <= models;
    if !counts || !checkpoint.optimisers.iter().all(fits) {
        return Err(JobError::Input(
            "the checkpoint was made with other settings of the optimiser or another number of \
             classes; put them back, or start afresh"
                .into(),
        ));
    }
    Ok(())
}

fn revealed(
    spec: &JobSpec,
    columns: &Columns,
    fits: &[ClassFit],
    providers: &[ProviderSummary],
) -> Revealed {
    let iterations: u64 = fits.iter().map(|fit| u64::from(fit.iterations)).sum();
    let histograms = fits.iter().filter_map(|fit| fit.histogram.as_ref());
    let rows: u64 = providers.iter().map(|provider| provider.rows as u64).sum();
    Revealed {
        gradient_numbers: iterations * (columns.width as u64 + 1),
        count_numbers: histograms.map(|h| 2 * h.positives.len() as u64).sum(),
        unknown_cells: rows * (columns.hidden.len() as u64 + spec.positives.len().min(1) as u64),
        summed: providers.len() > 1 && spec.engine == Engine::Lookup,
    }
}
