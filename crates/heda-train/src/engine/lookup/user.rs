//! The data user's role.

use super::tag;
use crate::engine::{Columns, GradientAsk, Part, UserEngine};
use crate::error::{Blame, JobError};
use crate::histogram::Histogram;
use crate::message::{Command, Message};
use crate::parallel::{Party, RemoteError, ask_all};
use heda_blocks::channel::Channel;
use heda_blocks::lookup::TableOwner;
use heda_crypto::lattice::{EncryptedMatrix, ZeroPool};
use heda_crypto::random::Randomness;
use heda_learn::data::Feature;
use heda_learn::fixed::{Domain, Layout, LinkTable, Precision, RING, Scaled};
use heda_learn::gradient::Gradient;
use heda_learn::loss::LossKind;
use rand_core::Rng;
use zeroize::Zeroizing;

/// What the data user holds of one provider's batch.
#[derive(Debug)]
pub(crate) struct BatchRows {
    /// How many rows.
    pub(crate) rows: usize,
    /// The encrypted columns; `None` when there are none.
    pub(crate) matrix: Option<EncryptedMatrix>,
    /// The published columns on the grid, row by row.
    pub(crate) open: Vec<u32>,
}

/// The held-out rows of one provider.
#[derive(Debug)]
pub(crate) struct HeldOut {
    /// All columns, encrypted.
    pub(crate) matrix: EncryptedMatrix,
    /// For every class of the job, one encrypted column: whether the row belongs to it.
    pub(crate) labels: Vec<EncryptedMatrix>,
}

/// One provider, seen from the data user.
pub(crate) struct Remote {
    pub(crate) name: String,
    pub(crate) channel: Channel,
    pub(crate) part: Part,
    /// Empty when another engine trains.
    pub(crate) batches: Vec<BatchRows>,
    pub(crate) held_out: Option<HeldOut>,
    /// Protects what goes back to the holder of the key.
    pub(crate) zeros: ZeroPool,
    pub(crate) tables: TableOwner,
    pub(crate) randomness: Randomness,
}

/// What all providers are asked in one iteration.
#[derive(Debug, Clone, Copy)]
struct Round<'a> {
    command: Command,
    iteration: u32,
    batch: usize,
    scaled: &'a Scaled,
    table: &'a LinkTable,
    columns: &'a Columns,
    precision: Precision,
}

/// Uniform elements of Z_{2^48}.
pub(crate) fn uniform_words(rng: &mut impl Rng, count: usize) -> Zeroizing<Vec<u64>> {
    Zeroizing::new((0..count).map(|_| RING.reduce(rng.next_u64())).collect())
}

impl Remote {
    /// Steps G2 to G7 but for the sum over providers.
    fn gradient(&mut self, ask: Round<'_>) -> Result<Vec<u64>, RemoteError> {
        let mut rng = self.randomness.fork("lookup masks", ask.iteration.into())?;
        let batch = &self.batches[ask.batch];
        // G2: scores under the mask r, plus what is known in clear.
        let r = uniform_words(&mut rng, batch.rows);
        let mask = masked_clear_part(batch, ask.scaled, ask.columns, &r);
        let scores = match &batch.matrix {
            Some(matrix) => {
                let weights: Vec<u64> = ask
                    .columns
                    .hidden
                    .iter()
                    .map(|&j| weight(ask.scaled, j))
                    .collect();
                matrix.scores(&weights, &mask, &mut self.zeros)?
            }
            None => RING.encode(&mask),
        };
        ask.command.send(&mut self.channel)?;
        self.channel.send(tag::SCORES, &scores)?;
        // G3: while the provider decrypts.
        let s = uniform_words(&mut rng, batch.rows);
        let c = uniform_words(&mut rng, ask.columns.hidden.len());
        let sums = match &batch.matrix {
            Some(matrix) => matrix.weighted_sums(&s, &c, &mut self.zeros)?,
            None => Vec::new(),
        };
        // G4, G5: every row's table, turned by its own mask.
        let bits = ask.table.layout().index_bits(ask.precision);
        let fill = |row: usize, entries: &mut [u64]| {
            let turned = ask.table.entries_for_mask(r[row]);
            entries.iter_mut().zip(turned).for_each(|(entry, value)| {
                *entry = s[row].wrapping_add(value as u64);
            });
        };
        self.tables
            .serve(&mut self.channel, batch.rows, bits, fill)?;
        self.channel.send(tag::SUMS, &sums)?;
        // G7: what the provider could not know is taken off while it adds up.
        let mut own = known_cross_terms(batch, ask.columns, ask.precision, &s);
        ask.columns.hidden.iter().zip(c.iter()).for_each(|(&j, c)| {
            own[j + 1] = own[j + 1].wrapping_sub(*c);
        });
        let limit = RING.encoded_length(own.len());
        let reply = self.channel.receive(tag::GRADIENT, limit)?;
        let mut gradient = RING.decode(&reply, own.len()).blame("gradient")?;
        gradient
            .iter_mut()
            .zip(&own)
            .for_each(|(g, o)| *g = RING.subtract(*g, *o));
        Ok(gradient)
    }
}

/// A weight as an element of the ring.
pub(super) fn weight(scaled: &Scaled, column: usize) -> u64 {
    RING.from_signed(scaled.weights[column])
}

/// s_i + r_i: bias and published columns, under the mask.
fn masked_clear_part(
    batch: &BatchRows,
    scaled: &Scaled,
    columns: &Columns,
    r: &[u64],
) -> Zeroizing<Vec<u64>> {
    let weights: Vec<u64> = columns.open.iter().map(|&j| weight(scaled, j)).collect();
    let width = weights.len();
    let clear = |row: usize| {
        let cells = &batch.open[row * width..][..width];
        cells
            .iter()
            .zip(&weights)
            .fold(scaled.constant as u64, |z, (&x, w)| {
                z.wrapping_add(w.wrapping_mul(u64::from(x)))
            })
    };
    let masked = r
        .iter()
        .enumerate()
        .map(|(row, r)| RING.add(clear(row), *r));
    Zeroizing::new(masked.collect())
}

/// Σ_i x_ij s'_i for the bias and the published columns; zero for the encrypted ones.
fn known_cross_terms(
    batch: &BatchRows,
    columns: &Columns,
    precision: Precision,
    s: &[u64],
) -> Vec<u64> {
    let mut terms = vec![0u64; columns.width + 1];
    let total = s.iter().fold(0u64, |sum, s| sum.wrapping_add(*s));
    terms[0] = total << precision.value_bits();
    let width = columns.open.len();
    for (row, s) in s.iter().enumerate() {
        let cells = &batch.open[row * width..][..width];
        for (&j, &x) in columns.open.iter().zip(cells) {
            terms[j + 1] = terms[j + 1].wrapping_add(s.wrapping_mul(u64::from(x)));
        }
    }
    terms
}

impl Party for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// The data user's role with all providers.
pub(crate) struct LookupUser {
    pub(crate) remotes: Vec<Remote>,
    pub(super) features: Vec<Feature>,
    pub(super) columns: Columns,
    pub(super) loss: LossKind,
    pub(super) precision: Precision,
    /// What the rows may hold.
    pub(super) domain: Domain,
}

impl UserEngine for LookupUser {
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError> {
        // G1
        let batch = ask.batch.index();
        let rows = self.remotes.iter().map(|remote| remote.batches[batch].rows);
        let rows = rows.sum();
        let diverged = |e: &dyn std::fmt::Display| JobError::Diverged(e.to_string());
        let scaled =
            Scaled::new(ask.beta, &self.domain, self.precision).map_err(|e| diverged(&e))?;
        let largest = self.domain.largest(self.precision);
        let table = LinkTable::of_loss(self.loss, &scaled, self.precision, rows, largest)
            .map_err(|e| diverged(&e))?;
        let command = Command::Gradient {
            iteration: ask.iteration,
            class: ask.class,
            batch: batch as u32,
            fraction_bits: match table.layout() {
                Layout::ByScore => table.fraction_bits(),
                Layout::ByScoreAndLabel => 0,
            },
        };
        let question = Round {
            command,
            iteration: ask.iteration,
            batch,
            scaled: &scaled,
            table: &table,
            columns: &self.columns,
            precision: self.precision,
        };
        let parts = ask_all(&mut self.remotes, |remote| remote.gradient(question))?;
        // G7: the aggregation masks cancel in the sum.
        let mut sum = vec![0u64; self.columns.width + 1];
        for part in &parts {
            sum.iter_mut()
                .zip(part)
                .for_each(|(s, p)| *s = RING.add(*s, *p));
        }
        Ok(table.gradient(&sum, rows))
    }

    fn histogram(&mut self, class: u32, beta: &[f64]) -> Result<Histogram, JobError> {
        let bits = self.precision.value_bits();
        super::evaluate::histogram(&mut self.remotes, beta, &self.features, bits, class)
    }

    fn channels(&mut self) -> Vec<&mut Channel> {
        let remotes = self.remotes.iter_mut();
        remotes.map(|remote| &mut remote.channel).collect()
    }
}
