//! The provider's role.

use super::{GRADIENT_MASK, tag};
use crate::engine::{Columns, GradientQuestion, ProviderEngine};
use crate::error::{Blame, PeerProblem, ServeError};
use heda_blocks::channel::Channel;
use heda_blocks::lookup::TableReader;
use heda_crypto::lattice::{EncryptedMatrix, SecretKey};
use heda_crypto::masking::Masks;
use heda_learn::fixed::{Layout, Precision, RING};
use heda_learn::loss::LossKind;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// What a provider holds while a job runs.
pub(crate) struct LookupProvider {
    /// Decrypts what the data user computed.
    pub(super) key: SecretKey,
    pub(super) tables: TableReader,
    pub(super) masks: Masks,
    pub(super) columns: Columns,
    pub(super) loss: LossKind,
    pub(super) precision: Precision,
    /// Training rows on the grid: encrypted columns as they are, published ones as published.
    pub(super) grid: Vec<u32>,
    /// Class of every training row.
    pub(super) labels: Vec<u32>,
    /// Class of every held-out row.
    pub(super) held_out_labels: Vec<u32>,
}

/// More fraction bits than any table has.
const FRACTION_LIMIT: u32 = 40;

impl ProviderEngine for LookupProvider {
    /// Steps G4 and G6 for one batch.
    fn gradient(&mut self, channel: &mut Channel, ask: GradientQuestion) -> Result<(), ServeError> {
        if ask.fraction_bits > FRACTION_LIMIT {
            return Err(PeerProblem::message("command", "too many fraction bits").into());
        }
        let positive = ask.positive;
        let share = ask.batch.share(self.labels.len());
        let rows = share.len();
        let labels: Vec<bool> = self.labels[share.clone()]
            .iter()
            .map(|&l| l == positive)
            .collect();
        // G4
        let masked = self.receive_scores(channel, rows)?;
        let (precision, layout) = (self.precision, Layout::of(self.loss));
        let bits = layout.index_bits(precision);
        let index =
            |(a, y): (&u64, &bool)| layout.choice(precision.top_bits(*a), *y, precision) as u16;
        let indices: Zeroizing<Vec<u16>> =
            Zeroizing::new(masked.iter().zip(&labels).map(index).collect());
        let read = self.tables.read(channel, &indices, bits)?;
        // G6
        let cross = self.receive_sums(channel, rows)?;
        let one = layout.label_term(ask.fraction_bits) as u64;
        let derivatives: Zeroizing<Vec<u64>> = Zeroizing::new(
            read.iter()
                .zip(&labels)
                .map(|(u, &y)| u.wrapping_sub(u64::from(y) * one))
                .collect(),
        );
        let mut gradient = self.weigh(share.start, &derivatives);
        for (&j, cross) in self.columns.hidden.iter().zip(&cross) {
            gradient[j + 1] = gradient[j + 1].wrapping_sub(*cross);
        }
        let masks = self
            .masks
            .stream(GRADIENT_MASK, ask.iteration.into(), gradient.len())
            .map_err(own_fault)?;
        gradient
            .iter_mut()
            .zip(masks.iter())
            .for_each(|(g, m)| *g = RING.add(*g, *m));
        channel.send(tag::GRADIENT, &RING.encode(&gradient))?;
        Ok(())
    }

    fn count(
        &mut self,
        channel: &mut Channel,
        class: u32,
        positive: u32,
    ) -> Result<(), ServeError> {
        self.count_held_out(channel, class, positive)
    }
}

impl LookupProvider {
    fn receive_scores(
        &self,
        channel: &mut Channel,
        rows: usize,
    ) -> Result<Zeroizing<Vec<u64>>, ServeError> {
        let columns = self.columns.hidden.len();
        if columns > 0 {
            return decrypt_scores(&self.key, channel, rows, columns);
        }
        let plain = channel.receive(tag::SCORES, RING.encoded_length(rows))?;
        Ok(Zeroizing::new(RING.decode(&plain, rows).blame("scores")?))
    }

    fn receive_sums(&self, channel: &mut Channel, rows: usize) -> Result<Vec<u64>, ServeError> {
        let columns = self.columns.hidden.len();
        if columns > 0 {
            return decrypt_sums(&self.key, channel, rows, columns);
        }
        channel.receive(tag::SUMS, 0)?;
        Ok(Vec::new())
    }

    /// Σ_i (1, x_i)·d_i modulo 2^64, the bias on the grid as well.
    fn weigh(&self, first: usize, derivatives: &[u64]) -> Vec<u64> {
        let width = self.columns.width;
        let zero = || vec![0u64; width + 1];
        let add_row = |mut sum: Vec<u64>, (row, d): (usize, &u64)| {
            sum[0] = sum[0].wrapping_add(*d);
            let cells = &self.grid[(first + row) * width..][..width];
            sum[1..].iter_mut().zip(cells).for_each(|(s, &x)| {
                *s = s.wrapping_add(d.wrapping_mul(u64::from(x)));
            });
            sum
        };
        let rows = derivatives.par_iter().enumerate().with_min_len(1024);
        let mut sum = rows.fold(zero, add_row).reduce(zero, |mut a, b| {
            a.iter_mut()
                .zip(&b)
                .for_each(|(a, b)| *a = a.wrapping_add(*b));
            a
        });
        sum[0] <<= self.precision.value_bits();
        sum
    }
}

/// Reads masked scores (G4, E1).
pub(super) fn decrypt_scores(
    key: &SecretKey,
    channel: &mut Channel,
    rows: usize,
    columns: usize,
) -> Result<Zeroizing<Vec<u64>>, ServeError> {
    let limit = EncryptedMatrix::scores_length(rows, columns).map_err(own_fault)?;
    let bytes = channel.receive(tag::SCORES, limit)?;
    let scores = key.decrypt_scores(&bytes, rows, columns);
    Ok(Zeroizing::new(
        scores.map_err(|e| PeerProblem::message("scores", e))?,
    ))
}

/// Reads cross terms (G6, E5).
pub(super) fn decrypt_sums(
    key: &SecretKey,
    channel: &mut Channel,
    rows: usize,
    columns: usize,
) -> Result<Vec<u64>, ServeError> {
    let limit = EncryptedMatrix::sums_length(rows, columns).map_err(own_fault)?;
    let bytes = channel.receive(tag::SUMS, limit)?;
    let sums = key.decrypt_sums(&bytes, rows, columns);
    Ok(sums.map_err(|e| PeerProblem::message("cross terms", e))?)
}

/// A failure that no message of the peer can cause.
pub(super) fn own_fault(error: impl std::error::Error + Send + Sync + 'static) -> ServeError {
    ServeError::defect(error)
}
