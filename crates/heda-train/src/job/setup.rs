//! Steps J7 and J8 at the data user: what a provider sends under encryption, and what both need
//! for the iterations.

use super::paper;
use super::spec::JobSpec;
use super::tag;
use super::user::Joined;
use crate::error::PeerProblem;
use crate::lookup::{BatchRows, Columns, HeldOut};
use crate::paper::PaperRemote;
use crate::parallel::{Party, RemoteError};
use heda_blocks::channel::Channel;
use heda_blocks::lookup::TableOwner;
use heda_crypto::lattice::{EncryptedMatrix, PublicKey, ZeroPool};
use heda_crypto::paillier::PrivateKey;
use heda_crypto::random::Randomness;
use heda_learn::gradient::Batch;
use std::sync::Arc;

/// At most so many encryptions of zero lie ready for a provider: about 38 MB.
const ZEROS_AHEAD: usize = 64;

/// What a provider sent in J7 and J8.
pub(super) struct Protected {
    pub(super) batches: Vec<BatchRows>,
    pub(super) held_out: Option<HeldOut>,
    pub(super) zeros: ZeroPool,
    pub(super) tables: TableOwner,
    pub(super) paper: Option<PaperRemote>,
}

pub(super) fn paper_terms<'a>(
    spec: &'a JobSpec,
    columns: &'a Columns,
    rows: usize,
) -> paper::Terms<'a> {
    paper::Terms {
        columns,
        rows,
        batches: spec.settings.method.batches(),
        positives: &spec.positives,
        key_bits: spec.key_bits,
        value_bits: spec.precision.value_bits(),
        loss: spec.loss,
    }
}

/// Steps J7 and J8. Engine `paper` encrypts training rows in its own way; the lattice is then for
/// the held-out rows only. `own` is the data user's key for that engine.
pub(super) fn receive_protected(
    spec: &JobSpec,
    party: &mut Joined,
    columns: &Columns,
    randomness: &Randomness,
    own: Option<Arc<PrivateKey>>,
    threads: usize,
) -> Result<Protected, RemoteError> {
    let (rows, held) = (party.acceptance.rows, party.acceptance.held_out);
    let open = std::mem::take(&mut party.open);
    let channel = party.channel();
    let key = channel.receive(tag::PUBLIC_KEY, PublicKey::byte_length())?;
    let key = PublicKey::from_bytes(&key).map_err(|e| PeerProblem::message("public key", e))?;
    let matrix = |channel: &mut Channel, rows: usize, columns: usize| {
        let bytes = channel.receive(tag::MATRIX, EncryptedMatrix::byte_length(rows, columns)?)?;
        let read = EncryptedMatrix::from_bytes(&bytes, rows, columns, &key);
        read.map_err(|e| RemoteError::Peer(PeerProblem::message("encrypted matrix", e)))
    };
    let count = spec.settings.method.batches();
    let mut batches = Vec::with_capacity(count);
    for index in 0..count {
        let share = Batch::new(index, count).share(rows);
        let hidden = columns.hidden.len();
        let encrypted = if hidden > 0 && own.is_none() {
            Some(matrix(channel, share.len(), hidden)?)
        } else {
            None
        };
        let width = columns.open.len();
        batches.push(BatchRows {
            rows: share.len(),
            matrix: encrypted,
            open: open[share.start * width..share.end * width].to_vec(),
        });
    }
    let mut held_out = None;
    if held > 0 {
        let all = matrix(channel, held, columns.width)?;
        let labels = spec.positives.iter().map(|_| matrix(channel, held, 1));
        held_out = Some(HeldOut {
            matrix: all,
            labels: labels.collect::<Result<_, _>>()?,
        });
    }
    // J8
    let tables = TableOwner::set_up(channel, &mut randomness.fork("transfer keys", 0)?)?;
    let zeros = zero_pool(key, &batches, threads, randomness)?;
    let mut paper = None;
    if let Some(own) = own {
        let shape = paper_terms(spec, columns, rows).shape();
        let open = paper::values(&open, spec.precision.value_bits());
        let shape = shape.map_err(RemoteError::Bug)?;
        let randomness = randomness.clone();
        paper = Some(PaperRemote::set_up(channel, shape, own, open, randomness)?);
    }
    Ok(Protected {
        batches,
        held_out,
        zeros,
        tables,
        paper,
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
