//! Steps J7 and J8: what a provider sends under encryption, and what both need for the iterations.

use super::user::{BatchRows, HeldOut, LookupUser, Remote};
use super::{LookupProvider, tag};
use crate::engine::{Columns, Joined, ProviderRows, Terms};
use crate::error::{BadJob, JobError, PeerProblem, ServeError};
use crate::parallel::{Party, RemoteError, ask_all};
use heda_blocks::channel::Channel;
use heda_blocks::lookup::{TableOwner, TableReader};
use heda_crypto::lattice::{EncryptedMatrix, PublicKey, SecretKey, ZeroPool};
use heda_crypto::masking::Masks;
use heda_crypto::random::Randomness;
use heda_learn::fixed::Domain;
use heda_learn::gradient::Batch;
use rand_core::CryptoRng;
use std::sync::Arc;

/// At most so many encryptions of zero lie ready for a provider: about 38 MB.
const ZEROS_AHEAD: usize = 64;

/// Which rows are sent under encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encrypted {
    /// Training rows and held-out rows.
    All,
    /// Held-out rows only, for an engine that trains in another way and counts in this one.
    HeldOut,
}

/// What a provider sent.
struct Protected {
    batches: Vec<BatchRows>,
    held_out: Option<HeldOut>,
    zeros: ZeroPool,
    tables: TableOwner,
}

impl LookupUser {
    /// The data user's side, with all providers at once.
    pub(crate) fn set_up(
        terms: &Terms<'_>,
        mut parties: Vec<Joined>,
        encrypted: Encrypted,
        randomness: &Randomness,
    ) -> Result<Self, JobError> {
        let precision = terms.precision().map_err(BadJob::from)?;
        let domain = Domain::of_features(terms.features, precision).map_err(BadJob::from)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.div_ceil(parties.len().max(1));
        let received = ask_all(&mut parties, |party| {
            let randomness = randomness.party(party.name());
            receive(terms, party, encrypted, &randomness, threads)
        })?;
        let remotes = parties.into_iter().zip(received);
        let remotes = remotes.map(|(party, protected)| Remote {
            randomness: randomness.party(&party.name),
            name: party.name,
            channel: party.channel,
            part: party.part,
            batches: protected.batches,
            held_out: protected.held_out,
            zeros: protected.zeros,
            tables: protected.tables,
        });
        Ok(Self {
            remotes: remotes.collect(),
            features: terms.features.to_vec(),
            columns: terms.columns.clone(),
            loss: terms.proposal.loss,
            precision,
            domain,
        })
    }
}

fn receive(
    terms: &Terms<'_>,
    party: &mut Joined,
    encrypted: Encrypted,
    randomness: &Randomness,
    threads: usize,
) -> Result<Protected, RemoteError> {
    let part = party.part;
    let open = std::mem::take(&mut party.open);
    let channel = party.channel();
    let key = channel.receive(tag::PUBLIC_KEY, PublicKey::byte_length())?;
    let key = PublicKey::from_bytes(&key).map_err(|e| PeerProblem::message("public key", e))?;
    let matrix = |channel: &mut Channel, rows: usize, columns: usize| {
        let bytes = channel.receive(tag::MATRIX, EncryptedMatrix::byte_length(rows, columns)?)?;
        let read = EncryptedMatrix::from_bytes(&bytes, rows, columns, &key);
        read.map_err(|e| RemoteError::Peer(PeerProblem::message("encrypted matrix", e)))
    };
    let Columns {
        width,
        hidden,
        open: known,
    } = terms.columns;
    let mut batches = Vec::new();
    if encrypted == Encrypted::All {
        for index in 0..terms.batches() {
            let share = Batch::new(index, terms.batches()).share(part.rows);
            let sent = (!hidden.is_empty()).then(|| matrix(channel, share.len(), hidden.len()));
            batches.push(BatchRows {
                rows: share.len(),
                matrix: sent.transpose()?,
                open: open[share.start * known.len()..share.end * known.len()].to_vec(),
            });
        }
    }
    let mut held_out = None;
    if part.held_out > 0 {
        let all = matrix(channel, part.held_out, *width)?;
        let classes = terms.proposal.positives.iter();
        let labels = classes.map(|_| matrix(channel, part.held_out, 1));
        held_out = Some(HeldOut {
            matrix: all,
            labels: labels.collect::<Result<_, _>>()?,
        });
    }
    // J8
    let tables = TableOwner::set_up(channel, &mut randomness.fork("transfer keys", 0)?)?;
    let zeros = zero_pool(key, &batches, threads, randomness)?;
    Ok(Protected {
        batches,
        held_out,
        zeros,
        tables,
    })
}

/// Zeros for one iteration are made ahead by threads of their own, while the provider works.
fn zero_pool(
    key: PublicKey,
    batches: &[BatchRows],
    threads: usize,
    randomness: &Randomness,
) -> Result<ZeroPool, RemoteError> {
    let mut rng = randomness.fork("zeros", 0)?;
    let matrices = batches.iter().filter_map(|batch| batch.matrix.as_ref());
    let needed = matrices.map(|matrix| matrix.zeros_per_scores() + matrix.zeros_per_sums());
    Ok(match needed.max() {
        Some(needed) => {
            let ahead = needed.min(ZEROS_AHEAD);
            ZeroPool::with_workers(Arc::new(key), threads, ahead, &mut rng)
        }
        None => ZeroPool::on_demand(Arc::new(key), &mut rng),
    })
}

impl LookupProvider {
    /// A provider's side.
    pub(crate) fn set_up(
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: ProviderRows,
        masks: Masks,
        encrypted: Encrypted,
        randomness: &Randomness,
    ) -> Result<Self, ServeError> {
        let precision = terms.precision();
        let precision = precision.map_err(|e| PeerProblem::message("proposal", e))?;
        let mut rng = randomness.fork("lattice keys", 0)?;
        let key = SecretKey::generate(&mut rng).map_err(internal)?;
        channel.send(tag::PUBLIC_KEY, &key.public_key().to_bytes())?;
        if encrypted == Encrypted::All && !terms.columns.hidden.is_empty() {
            send_training(channel, terms, &rows, &key, &mut rng)?;
        }
        if !rows.held_out_labels.is_empty() {
            send_held_out(channel, terms, &rows, &key, &mut rng)?;
        }
        // J8
        let tables = TableReader::set_up(channel, &mut randomness.fork("transfer keys", 0)?)?;
        Ok(Self {
            key,
            tables,
            masks,
            columns: terms.columns.clone(),
            loss: terms.proposal.loss,
            precision,
            grid: rows.grid,
            labels: rows.labels,
            held_out_labels: rows.held_out_labels,
        })
    }
}

fn internal(error: heda_crypto::lattice::LatticeError) -> ServeError {
    ServeError::defect(error)
}

/// The hidden columns, a batch at a time.
fn send_training(
    channel: &mut Channel,
    terms: &Terms<'_>,
    rows: &ProviderRows,
    key: &SecretKey,
    rng: &mut impl CryptoRng,
) -> Result<(), ServeError> {
    let Columns { width, hidden, .. } = terms.columns;
    for index in 0..terms.batches() {
        let share = Batch::new(index, terms.batches()).share(rows.labels.len());
        let cells = rows.grid.chunks_exact(*width);
        let cells: Vec<u32> = cells
            .skip(share.start)
            .take(share.len())
            .flat_map(|row| hidden.iter().map(|&j| row[j]))
            .collect();
        let matrix = key.encrypt_matrix(&cells, share.len(), hidden.len(), rng);
        channel.send(tag::MATRIX, &matrix.map_err(internal)?.to_bytes())?;
    }
    Ok(())
}

/// All columns of the held-out rows, then for every class whether a row belongs to it.
fn send_held_out(
    channel: &mut Channel,
    terms: &Terms<'_>,
    rows: &ProviderRows,
    key: &SecretKey,
    rng: &mut impl CryptoRng,
) -> Result<(), ServeError> {
    let count = rows.held_out_labels.len();
    let matrix = key.encrypt_matrix(&rows.held_out_grid, count, terms.columns.width, rng);
    channel.send(tag::MATRIX, &matrix.map_err(internal)?.to_bytes())?;
    for positive in &terms.proposal.positives {
        let labels = rows.held_out_labels.iter();
        let labels: Vec<u32> = labels.map(|label| u32::from(label == positive)).collect();
        let matrix = key.encrypt_matrix(&labels, count, 1, rng);
        channel.send(tag::MATRIX, &matrix.map_err(internal)?.to_bytes())?;
    }
    Ok(())
}
