//! A job over the network, seen from the data user: connect to everyone, train, and come back
//! after a loss.
//!
//! Sessions hold keys and masks that both sides make for the session, so after a loss every
//! provider is connected anew and the job goes on from the last checkpoint. With a given seed the
//! result is the same as without the loss.

use crate::client::reached::Reached;
use crate::client::state::{StateError, StateFile};
use crate::client::{ConnectError, Connector, RemoteProvider};
use crate::config::OnLoss;
use crate::system::stop::{StopSignal, StopSwitch, stop_on_signals};
use heda_blocks::channel::{Channel, ChannelError, WireError};
use heda_blocks::stop::Stop;
use heda_crypto::random::Randomness;
use heda_job::error::{JobError, PeerProblem};
use heda_job::guard::LedgerHead;
use heda_job::job::{self, Checkpoint, JobSpec, Link, NotKept, Observer, Outcome, Progress};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Hears how a job goes, from any thread.
pub type Listener = Arc<dyn Fn(Progress) + Send + Sync>;

/// A job and the way to its providers.
pub struct NetworkJob {
    /// What is wanted.
    pub spec: JobSpec,
    /// With whom.
    pub providers: Vec<RemoteProvider>,
    /// How to connect.
    pub connector: Connector,
    /// The data user's randomness.
    pub randomness: Randomness,
    /// What to do when a provider is lost.
    pub on_loss: OnLoss,
    /// How long to wait for a provider that is lost.
    pub loss_patience: Duration,
    /// Who hears how it goes.
    pub listener: Listener,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkJobError {
    /// A provider cannot be connected to, and waiting would not help.
    #[error(transparent)]
    Connect(ConnectError),
    /// A provider refused.
    #[error("provider {provider}: {stop}")]
    Refused {
        /// Which.
        provider: String,
        /// Its code and its words.
        stop: Stop,
    },
    /// A provider was lost and did not come back.
    #[error("provider {provider} was lost ({cause}) and did not come back in time; resume later")]
    Lost {
        /// Which.
        provider: String,
        /// What happened last.
        cause: String,
    },
    /// Stopped by wish.
    #[error("stopped {}; resume to go on", .0)]
    Stopped(Reached),
    /// The checkpoint could not be kept.
    #[error(transparent)]
    State(#[from] StateError),
    /// The runtime could not be started.
    #[error("cannot start: {0}")]
    Runtime(std::io::Error),
    /// The job failed.
    #[error(transparent)]
    Job(JobError),
}

/// Pauses before a lost provider is tried again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A provider that failed in a way that may pass.
struct LostProvider {
    provider: String,
    cause: String,
    /// Whether we have waited already as long as we may.
    waited: bool,
}

impl NetworkJob {
    /// Runs the job to its end, or to the next finished iteration or evaluation after `stop` is set;
    /// without one, after SIGTERM or SIGINT.
    pub fn run_until(
        self,
        state: &mut StateFile,
        stop: Option<StopSignal>,
    ) -> Result<Outcome, NetworkJobError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(NetworkJobError::Runtime)?;
        let (switch, signalled) = StopSwitch::new();
        if stop.is_none() {
            let listening = runtime.block_on(async { stop_on_signals(switch) });
            listening.map_err(NetworkJobError::Runtime)?;
        }
        let outcome = self.run(runtime.handle(), state, &stop.unwrap_or(signalled));
        runtime.shutdown_background();
        outcome
    }

    /// Runs the job to its end. Must not be called on a thread of the runtime.
    pub fn run(
        mut self,
        runtime: &Handle,
        state: &mut StateFile,
        stop: &StopSignal,
    ) -> Result<Outcome, NetworkJobError> {
        if !state.state().lost.is_empty() {
            self.keep_order(state.state().checkpoint.as_ref());
        }
        for lost in state.state().lost.clone() {
            self.forget(&lost)?;
        }
        let mut waiting: Option<Instant> = None;
        let mut pause = SHORTEST_PAUSE;
        let mut left_behind = Vec::new();
        loop {
            let before = progress(state);
            let loss = match self.attempt(runtime, state, stop, &left_behind)? {
                Ok(outcome) => return Ok(outcome),
                Err(loss) => loss,
            };
            (self.listener)(Progress::Lost {
                provider: loss.provider.clone(),
                cause: loss.cause.clone(),
            });
            if stop.is_set() {
                return Err(stopped(state));
            }
            // Progress since the last loss starts the wait anew.
            if progress(state) != before {
                waiting = None;
                pause = SHORTEST_PAUSE;
            }
            let since = *waiting.get_or_insert_with(Instant::now);
            if !loss.waited && since.elapsed() < self.loss_patience {
                std::thread::sleep(pause);
                // Every try costs the other providers an iteration.
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            left_behind.push(self.give_up(loss, state)?);
            waiting = None;
        }
    }

    /// The end of waiting: leave the provider behind if that is wished and not too late, or stop.
    fn give_up(
        &mut self,
        loss: LostProvider,
        state: &StateFile,
    ) -> Result<String, NetworkJobError> {
        let alone = self.providers.len() <= 1;
        let checkpoint = state.state().checkpoint.as_ref();
        let late = checkpoint.is_some_and(is_late);
        if self.on_loss == OnLoss::Wait || alone || late {
            return Err(NetworkJobError::Lost {
                provider: loss.provider,
                cause: loss.cause,
            });
        }
        self.keep_order(state.state().checkpoint.as_ref());
        self.forget(&loss.provider)?;
        (self.listener)(Progress::LeftBehind(loss.provider.clone()));
        Ok(loss.provider)
    }

    /// Takes a provider off the list. One that was to rank the features cannot be spared before
    /// it has done so.
    fn forget(&mut self, name: &str) -> Result<(), NetworkJobError> {
        let labels = self.providers.iter().map(|provider| &provider.peer.label);
        let Some(place) = labels.into_iter().position(|label| label == name) else {
            return Ok(());
        };
        if let Some(chooser) = &mut self.spec.chooser {
            match place.cmp(chooser) {
                Ordering::Less => *chooser -= 1,
                Ordering::Greater => {}
                Ordering::Equal => {
                    return Err(NetworkJobError::Lost {
                        provider: name.to_owned(),
                        cause: "it was to rank the features".to_owned(),
                    });
                }
            }
        }
        self.providers.remove(place);
        Ok(())
    }

    /// Fewer providers would rank features differently; a job that has begun keeps its order.
    fn keep_order(&mut self, checkpoint: Option<&Checkpoint>) {
        let Some(checkpoint) = checkpoint else { return };
        let split = &checkpoint.split;
        let order = [&split.encrypted, &split.published, &split.dropped];
        let columns = self.spec.schema.columns();
        let names = order.into_iter().flatten();
        let names = names.filter_map(|feature| columns.get(*feature));
        let features = names.map(|column| column.name().to_owned()).collect();
        self.spec.order = Some(features);
        self.spec.chooser = None;
    }

    /// One try with everyone: a result, a loss that may pass, or an error for good.
    fn attempt(
        &self,
        runtime: &Handle,
        state: &mut StateFile,
        stop: &StopSignal,
        left_behind: &[String],
    ) -> Result<Result<Outcome, LostProvider>, NetworkJobError> {
        let links = match runtime.block_on(self.connect(stop.clone())) {
            Ok(Some(links)) => links,
            Ok(None) => {
                return Err(stopped(state));
            }
            Err(error) if error.is_passing() => {
                return Ok(Err(LostProvider {
                    provider: error.provider().to_owned(),
                    cause: error.to_string(),
                    waited: true,
                }));
            }
            Err(error) => return Err(NetworkJobError::Connect(error)),
        };
        (self.listener)(Progress::Connected);
        let resume = state.state().checkpoint.clone();
        let mut observer = Keeper {
            state,
            stop,
            left_behind,
            listener: &self.listener,
            failed: None,
        };
        let done = job::run(&self.spec, links, &self.randomness, &mut observer, resume);
        if let Some(error) = observer.failed {
            return Err(error.into());
        }
        match done {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(JobError::Interrupted) => Err(stopped(state)),
            Err(JobError::Provider { name, problem }) => judge(name, problem).map(Err),
            Err(error) => Err(NetworkJobError::Job(error)),
        }
    }

    /// Connects to all at once; nothing when the wish to stop came first.
    async fn connect(&self, mut stop: StopSignal) -> Result<Option<Vec<Link>>, ConnectError> {
        let mut attempts = JoinSet::new();
        for (place, provider) in self.providers.iter().cloned().enumerate() {
            let connector = self.connector.clone();
            let listener = Arc::clone(&self.listener);
            let patience = self.loss_patience;
            attempts.spawn(async move {
                let began = Instant::now();
                let retry = |error: &ConnectError, _pause| {
                    listener(Progress::Retry {
                        provider: error.provider().to_owned(),
                        cause: error.to_string(),
                        left: patience.saturating_sub(began.elapsed()),
                    });
                };
                let opened = connector.open_patiently(&provider, patience, retry).await;
                let name = provider.peer.label;
                opened.map(|session| {
                    listener(Progress::Reached(name.clone()));
                    let channel = Channel::new(Box::new(session.wire));
                    let identity = session.identity;
                    (
                        place,
                        Link {
                            name,
                            identity,
                            channel,
                        },
                    )
                })
            });
        }
        let mut links = Vec::with_capacity(self.providers.len());
        loop {
            let joined = tokio::select! {
                joined = attempts.join_next() => joined,
                () = stop.wait() => return Ok(None),
            };
            match joined {
                None => break,
                Some(Ok(link)) => links.push(link?),
                // Only a runtime that shuts down ends a task that did not end itself.
                Some(Err(_)) => return Ok(None),
            }
        }
        links.sort_by_key(|(place, _)| *place);
        Ok(Some(links.into_iter().map(|(_, link)| link).collect()))
    }
}

impl std::fmt::Debug for NetworkJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkJob")
            .field("job", &self.spec.id)
            .field("providers", &self.providers)
            .finish_non_exhaustive()
    }
}

/// Whether something has left that belongs to all providers: sums, which over fewer would show the
/// part of the one that is gone, or releases, whose rows are in an order that goes with all of them.
fn is_late(checkpoint: &Checkpoint) -> bool {
    let published = !checkpoint.split.published.is_empty();
    checkpoint.step > 0 || published
}

/// A job that somebody stopped, and how far it had come.
fn stopped(state: &StateFile) -> NetworkJobError {
    NetworkJobError::Stopped(Reached::of(state.state().checkpoint.as_ref()))
}

/// Answers and evaluations so far: who has more than before has not waited in vain.
fn progress(state: &StateFile) -> (u32, usize) {
    let checkpoint = state.state().checkpoint.as_ref();
    checkpoint.map_or((0, 0), |checkpoint| {
        (
            checkpoint.step,
            checkpoint.histograms.len() + checkpoint.errors.len() + checkpoint.tried.len(),
        )
    })
}

fn loss(provider: String, cause: String) -> LostProvider {
    LostProvider {
        provider,
        cause,
        waited: false,
    }
}

/// Whether what a provider did may pass.
fn judge(provider: String, problem: PeerProblem) -> Result<LostProvider, NetworkJobError> {
    let cause = problem.to_string();
    match problem {
        PeerProblem::Channel(ChannelError::Wire(WireError::Closed(_) | WireError::TimedOut(_))) => {
            Ok(loss(provider, cause))
        }
        PeerProblem::Channel(ChannelError::PeerStopped(stop)) if stop.code.may_pass() => {
            Ok(loss(provider, cause))
        }
        PeerProblem::Channel(ChannelError::PeerStopped(stop)) => {
            Err(NetworkJobError::Refused { provider, stop })
        }
        problem => Err(NetworkJobError::Job(JobError::Provider {
            name: provider,
            problem,
        })),
    }
}

/// Keeps checkpoints and passes progress on.
struct Keeper<'a> {
    state: &'a mut StateFile,
    stop: &'a StopSignal,
    /// Who is not in the job any more. Kept with the first checkpoint that came without them: had
    /// the others refused, whoever resumes would still need everyone.
    left_behind: &'a [String],
    listener: &'a Listener,
    failed: Option<StateError>,
}

impl Keeper<'_> {
    fn keep(&mut self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        for provider in self.left_behind {
            if !self.state.state().lost.contains(provider) {
                self.state.leave_behind(provider)?;
            }
        }
        self.state.keep(checkpoint)
    }
}

impl Observer for Keeper<'_> {
    fn ledger(&mut self, provider: &str, head: &LedgerHead) {
        match self.state.keep_ledger(provider, head) {
            Ok(None) => {}
            Ok(Some(words)) => (self.listener)(Progress::Ledger(words)),
            // The next checkpoint stops the job if it cannot be written either.
            Err(error) => (self.listener)(Progress::Ledger(error.to_string())),
        }
    }

    fn progress(&mut self, progress: Progress) {
        (self.listener)(progress);
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        match self.keep(checkpoint) {
            Ok(()) => Ok(!self.stop.is_set()),
            Err(error) => {
                let told = NotKept::because(error.to_string());
                self.failed = Some(error);
                Err(told)
            }
        }
    }
}

#[cfg(test)]
mod tests;
