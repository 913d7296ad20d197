//! The engine's two roles over channels in memory, from seeds, and all that they heard: shared by tests of
//! known answers, of randomness and of plans that differ.

use super::ask::ResidentUser;
use super::serve::ResidentProvider;
use crate::agreement::JobMasks;
use crate::closing::Closing;
use crate::engine::label_encoding::LabelEncoding;
use crate::engine::testing::{dataset, nearest, schema};
use crate::engine::{
    Columns, EvaluationAsk, GradientAsk, GradientQuestion, Joined, Part, ProviderEngine,
    ProviderRows, Terms, UserEngine,
};
use crate::error::{JobError, ServeError};
use crate::guard::{AgreedPlan, Guard, LocalGuard, MemoryLedger, Step};
use crate::message::{Command, Message};
use crate::plan::JobPlan;
use crate::proposal::testing::{proposal_of, raw};
use crate::proposal::{Privacy, Proposal};
use ed25519_dalek::SigningKey;
use heda_blocks::channel::{Channel, Recorded};
use heda_crypto::masking::{MaskSetup, Masks, Origin, Roster};
use heda_crypto::random::Randomness;
use heda_dp::gdp::{Cost, Delta};
use heda_learn::data::{Dataset, Feature};
use heda_learn::gradient::Batch;
use heda_learn::optimise::Method;
use heda_learn::private::PrivateRows;
use heda_learn::resident::Resolution;
use heda_learn::scaling::Scaling;
use heda_learn::target::TargetScale;
use std::sync::Arc;
use std::time::Duration;

/// Encoded columns of the shaped rows.
pub(super) const WIDTH: usize = 6;
/// Rows of a provider, and how many of them are held out.
pub(super) const ROWS: usize = 60;
pub(super) const HELD_OUT: usize = 20;
/// Coefficients that are asked about.
const BETA: [f64; WIDTH + 1] = [0.2, 1.0, -0.5, 0.25, 0.1, -0.1, 0.3];
pub(super) const SEED: u64 = 21;

/// What a job is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Exact sums, nothing published; places of ten bits, read by two transfers.
    Exact,
    /// Everything published: no column is hidden.
    Published,
    /// With noise.
    Private,
    /// A numeric label.
    Numeric,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Exact, Self::Published, Self::Private, Self::Numeric];

    /// What all parties are told.
    pub(super) fn proposal(self) -> Proposal {
        let mut raw = raw();
        raw.training.settings.max_iterations = 2;
        raw.training.resolution = Resolution::new(10, 2, 9, 3, 5).unwrap();
        match self {
            Self::Exact | Self::Published => {}
            Self::Private => raw.privacy = Some(promise("1")),
            Self::Numeric => {
                raw.numeric = true;
                raw.training.settings.method = Method::Lbfgs { memory: 5 };
            }
        }
        let mut proposal = proposal_of(raw);
        proposal.parties.identities = vec!["00".repeat(32), "11".repeat(32)];
        proposal.seeded = true;
        proposal
    }

    fn labels_as(self, labels: &[u32]) -> LabelEncoding {
        match self {
            Self::Numeric => LabelEncoding::Number(TargetScale::of(labels).unwrap()),
            _ => LabelEncoding::default(),
        }
    }

    fn columns(self) -> Columns {
        let all: Vec<usize> = (0..WIDTH).collect();
        let (hidden, open) = match self {
            Self::Published => (Vec::new(), all),
            _ => (all, Vec::new()),
        };
        Columns {
            width: WIDTH,
            hidden,
            open,
        }
    }
}

/// A promise about the rows of both providers.
pub(super) fn promise(epsilon: &str) -> Privacy {
    let delta = Delta::new(1e-5).unwrap();
    Privacy::new(
        epsilon.parse().unwrap(),
        delta,
        2 * (ROWS - HELD_OUT) as u64,
    )
}

/// One conversation of a data user with two providers: two gradients and all evaluations.
pub(super) struct Conversation {
    pub(super) kind: Kind,
    /// What the data user goes by.
    pub(super) told: Proposal,
    /// What each provider goes by.
    pub(super) providers: [Proposal; 2],
    pub(super) user: Randomness,
    /// Of both providers.
    pub(super) provider: Randomness,
    /// Commands that the data user adds to its own, to the first provider.
    pub(super) command: Option<fn(u32) -> Command>,
    /// Rows in a block, if fewer than usual.
    pub(super) block_rows: Option<usize>,
}

/// What came of it.
pub(super) struct Heard {
    /// The sums of both gradients.
    pub(super) gradients: Vec<Vec<f64>>,
    /// Counts, or sums of errors.
    pub(super) counts: Vec<f64>,
    /// By the first provider.
    pub(super) by_provider: Vec<Recorded>,
    /// By the data user from the first provider.
    pub(super) by_user: Vec<Recorded>,
    /// How the first provider ended.
    pub(super) served: Result<(), ServeError>,
}

fn labels(kind: Kind, data: &Dataset) -> Vec<u32> {
    let number = |(row, label): (usize, &u32)| match kind {
        Kind::Numeric => 500_000 + 40_000 * label + (row as u32 * 7919) % 30_000,
        _ => *label,
    };
    data.labels().iter().enumerate().map(number).collect()
}

/// Rows as a private job has them, any that are short enough.
fn private_rows(values: &[u32], labels: &[u32]) -> PrivateRows {
    let mut rows = PrivateRows::empty(WIDTH + 1);
    for (values, label) in values.chunks_exact(WIDTH).zip(labels) {
        let mut row = vec![200];
        row.extend(values.iter().map(|value| (*value / 8) as i32));
        rows.push(&row, &row, *label == 1).unwrap();
    }
    rows
}

fn rows_of(kind: Kind, number: u64) -> (ProviderRows, Vec<Feature>) {
    let data = dataset(ROWS, number);
    let labels = labels(kind, &data);
    let grid = nearest(data.values(), 10);
    let (held_out_grid, grid) = grid.split_at(HELD_OUT * WIDTH);
    let (held_out_labels, labels) = labels.split_at(HELD_OUT);
    let private = kind == Kind::Private;
    let rows = ProviderRows {
        labels_as: kind.labels_as(labels),
        private: private.then(|| private_rows(grid, labels)),
        private_held_out: private.then(|| private_rows(held_out_grid, held_out_labels)),
        grid: grid.to_vec(),
        labels: labels.to_vec(),
        held_out_grid: held_out_grid.to_vec(),
        held_out_labels: held_out_labels.to_vec(),
        place: 0,
    };
    (rows, data.features().to_vec())
}

/// Masks of two providers that are members of the same roster.
fn masks() -> [Masks; 2] {
    let keys = [1, 2].map(|byte| SigningKey::from_bytes(&[byte; 32]));
    let roster = Roster::new(
        b"conversation",
        &keys.each_ref().map(SigningKey::verifying_key),
    );
    let roster = roster.unwrap();
    let announced = [0, 1].map(|n| {
        let mut rng = Randomness::seeded(SEED).fork("masks", n).unwrap();
        let key = &keys[n as usize];
        MaskSetup::announce(roster.clone(), key, Origin::Seed, &mut rng).unwrap()
    });
    let all: Vec<u8> = announced
        .iter()
        .flat_map(|(_, bytes)| bytes.clone())
        .collect();
    announced.map(|(setup, _)| setup.finish(&all).unwrap())
}

/// The number of the answer that a command asks for.
fn numbered(command: Command) -> u32 {
    match command {
        Command::Gradient { step, .. } | Command::Evaluate { step, .. } => step,
        Command::Finish => 0,
    }
}

/// Rules that let everything leave once.
fn guard() -> LocalGuard {
    let data = Arc::new(dataset(9, 1));
    LocalGuard::new(data, schema(), [0; 32].into(), MemoryLedger::default())
}

/// What the data user decoded, gradients and counts, and what it heard from the first provider.
type Asked = (Vec<Vec<f64>>, Vec<f64>, Vec<Recorded>);

impl Conversation {
    /// An honest one.
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            told: kind.proposal(),
            providers: [kind.proposal(), kind.proposal()],
            user: Randomness::seeded(SEED).party("user"),
            provider: Randomness::seeded(SEED).party("provider"),
            command: None,
            block_rows: None,
        }
    }

    /// Holds it.
    pub(super) fn hold(&self) -> Result<Heard, JobError> {
        let pairs = [(); 2].map(|()| Channel::pair(Duration::from_secs(60)));
        let (mut ends, mut channels) = (Vec::new(), Vec::new());
        for (end, mut channel) in pairs {
            channel.record();
            ends.push(end);
            channels.push(channel);
        }
        let served = |number: usize, masks: Masks, mut end: Channel| {
            end.record();
            let done = self.serve(number, masks, &mut end);
            (done, end.transcript().to_vec())
        };
        std::thread::scope(|scope| {
            let both = masks().into_iter().zip(ends).enumerate();
            let threads: Vec<_> = both
                .map(|(number, (masks, end))| scope.spawn(move || served(number, masks, end)))
                .collect();
            let asked = self.ask(channels);
            let mut served = threads.into_iter().map(|thread| thread.join().unwrap());
            let (first, by_provider) = served.next().unwrap();
            for (other, _) in served {
                other.unwrap();
            }
            asked.map(|(gradients, counts, by_user)| Heard {
                gradients,
                counts,
                by_provider,
                by_user,
                served: first,
            })
        })
    }

    /// A provider's side, command by command.
    fn serve(&self, number: usize, masks: Masks, channel: &mut Channel) -> Result<(), ServeError> {
        let (rows, features) = rows_of(self.kind, number as u64);
        let (proposal, columns) = (&self.providers[number], self.kind.columns());
        let plan = JobPlan::of(proposal, columns.width).unwrap();
        let terms = Terms {
            proposal,
            features: &features,
            columns: &columns,
            plan: plan.as_ref(),
        };
        let randomness = self.provider.party(&number.to_string());
        let mut provider = ResidentProvider::set_up(channel, &terms, rows, &randomness)?;
        provider.shape.block_rows = self.block_rows.unwrap_or(provider.shape.block_rows);
        let rounds = terms.rounds();
        // Providers that have another proposal have agreed to something else.
        let mut masks = JobMasks::new(masks, &proposal.encode().unwrap());
        let guard = guard();
        let private = proposal.job.privacy().is_some();
        if private {
            let plan = AgreedPlan {
                cost: Cost::from_parts(100),
                persons: false,
            };
            guard.reserve(proposal.id, plan).unwrap();
            masks.set_aside(plan);
        }
        loop {
            let command: Command = masks.hear(channel, ())?;
            let closing = Closing {
                guard: &guard,
                job: proposal.id,
                step: Step::Gradient {
                    number: numbered(command),
                    cost: private.then(|| Cost::from_parts(1)),
                },
                masks: &mut masks,
            };
            match command {
                Command::Gradient {
                    iteration,
                    class,
                    batch,
                    row_bits,
                    ..
                } => provider.gradient(
                    channel,
                    GradientQuestion {
                        iteration,
                        class,
                        positive: 1,
                        batch: Batch::new(batch as usize, 1),
                        row_bits,
                    },
                    closing,
                )?,
                Command::Evaluate { number, .. } => {
                    let ask = rounds.evaluation(number).unwrap();
                    provider.count(channel, (ask, 1), closing)?;
                }
                Command::Finish => return Ok(()),
            }
        }
    }

    /// The data user's side; what it decoded, and what it heard from the first provider.
    fn ask(&self, channels: Vec<Channel>) -> Result<Asked, JobError> {
        let columns = self.kind.columns();
        let (rows, features) = rows_of(self.kind, 0);
        let plan = JobPlan::of(&self.told, columns.width).unwrap();
        let terms = Terms {
            proposal: &self.told,
            features: &features,
            columns: &columns,
            plan: plan.as_ref(),
        };
        let joined = channels
            .into_iter()
            .zip(0..)
            .map(|(channel, number)| Joined {
                name: format!("provider {number}"),
                channel,
                part: Part {
                    rows: ROWS - HELD_OUT,
                    held_out: HELD_OUT,
                },
                seeded: true,
                charge: None,
                open: match self.kind {
                    Kind::Published => rows_of(self.kind, number).0.grid,
                    _ => Vec::new(),
                },
            });
        let scaling = Scaling::none(WIDTH);
        let parties = joined.collect();
        let mut user =
            ResidentUser::set_up(&terms, parties, &scaling, &rows.labels_as, &self.user)?;
        user.shape.block_rows = self.block_rows.unwrap_or(user.shape.block_rows);
        let mut gradients = Vec::new();
        for iteration in 0..2 {
            let gradient = user.gradient(GradientAsk {
                beta: &BETA,
                class: 0,
                batch: Batch::FULL,
                iteration,
                step: iteration,
            })?;
            gradients.push(gradient.sum);
        }
        let row_bits = crate::engine::row_bits(1, [ROWS - HELD_OUT; 2].into_iter());
        if let Some(command) = self.command {
            command(row_bits).send(user.channels()[0]).unwrap();
        }
        let counts = match self.command {
            Some(_) => Vec::new(),
            None => evaluated(&mut user, &terms)?,
        };
        for channel in user.channels() {
            // A provider that refused has gone.
            let _ = Command::Finish.send(channel);
        }
        let heard = user.channels()[0].transcript().to_vec();
        Ok((gradients, counts, heard))
    }
}

/// All evaluations of the job.
fn evaluated(user: &mut ResidentUser, terms: &Terms<'_>) -> Result<Vec<f64>, JobError> {
    let rounds = terms.rounds();
    let mut counts = Vec::new();
    for number in 0..rounds.evaluations() {
        let ask = EvaluationAsk {
            evaluation: rounds.evaluation(number).unwrap(),
            beta: &BETA,
            step: 2 + number,
        };
        if terms.proposal.job.is_numeric() {
            let sum = user.errors(ask)?;
            counts.push(sum.errors);
            counts.extend(sum.labels.into_iter().flatten());
        } else if terms.proposal.job.privacy().is_some() {
            counts.extend(user.noisy_counts(ask)?.counts);
        } else {
            let histogram = user.histogram(ask)?;
            let all = histogram.negatives.iter().chain(&histogram.positives);
            counts.extend(all.map(|count| *count as f64));
        }
    }
    Ok(counts)
}
