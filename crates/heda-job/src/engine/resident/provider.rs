//! The provider's role, step by step and without I/O. Each state is consumed by the next step, so
//! nothing is answered twice.

use super::rows::Batch;
use super::scores::SentColumns;
use super::shape::{Shape, TreeNumbers};
use super::symbols::RowSecrets;
use super::{StepError, exactly, parts, payload, symbols};
use crate::closing::OpenSum;
use heda_crypto::transfer::{
    BitCorrections, BitKeys, BitRequest, IndexCorrections, IndexKeys, IndexRequest, Sender, Tree,
};
use heda_learn::resident::CodeTable;
use rand_core::{CryptoRng, Rng};
use zeroize::Zeroizing;

/// What a provider keeps from gradient to gradient.
pub(super) struct ProviderSession {
    sender: Sender,
}

/// Before β is known: trees offered, columns sent.
pub(super) struct ProviderReady {
    pub(super) columns: SentColumns,
    pub(super) indices: IndexKeys,
    pub(super) payload: BitKeys,
}

/// After R4.
pub(super) struct ProviderAnswered {
    payload: BitKeys,
    pads: Zeroizing<Vec<u16>>,
    /// What was drawn for the rows, for the oracle.
    #[cfg(test)]
    pub(super) drawn: Vec<heda_learn::resident::RowCoins>,
}

impl ProviderSession {
    /// After the setup S of the transfers.
    pub(super) fn new(sender: Sender) -> Self {
        Self { sender }
    }

    /// R1 and R2: checks U's requests, offers trees, and sends the columns under them. A request
    /// that fails its check ends the session for good.
    pub(super) fn ready<R: CryptoRng + ?Sized>(
        &mut self,
        shape: &Shape,
        batch: Batch<'_>,
        preprocess: &[u8],
        trees: TreeNumbers,
        rng: &mut R,
    ) -> Result<(Vec<u8>, ProviderReady), StepError> {
        let rows = batch.count();
        let field = shape.field;
        let [bits, indices, choices] =
            parts("the request", preprocess, shape.preprocess_bytes(rows)?)?;
        let (tree_bits, payload_bits) = shape.bit_transfers(rows);
        let bits = BitRequest::from_bytes(field, tree_bits + payload_bits, bits)?;
        let indices = IndexRequest::from_bytes(field, shape.index_transfers(rows)?, indices)?;
        let choices = BitCorrections::from_bytes(tree_bits, choices)?;
        // Both are checked before anything keyed by either leaves.
        let bits = self.sender.accept_bits(&bits)?;
        let indices = self.sender.accept_indices(&indices)?;
        let (for_trees, payload) = bits.split(tree_bits)?;
        let heights = shape.heights().into_iter().zip(trees.first()..);
        let grown: Vec<Tree> = heights
            .map(|(height, number)| {
                let label = self.sender.tree_label(number);
                let seed = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                Tree::grow(&label, seed, height)
            })
            .collect();
        let mut message = for_trees.offer_trees(&choices, &grown)?.to_bytes();
        let columns = SentColumns::send(shape, &grown, batch, &mut message);
        Ok((
            message,
            ProviderReady {
                columns,
                indices,
                payload,
            },
        ))
    }
}

impl ProviderReady {
    /// R4: the symbols for U's question.
    pub(super) fn answer(
        self,
        shape: &Shape,
        table: &CodeTable,
        batch: Batch<'_>,
        question: &[u8],
        rng: &mut impl Rng,
    ) -> Result<(Vec<u8>, ProviderAnswered), StepError> {
        let rows = batch.count();
        let lengths = shape.question_bytes(rows)?;
        let [digit_corrections, indices] = parts("the question", question, lengths)?;
        let transfers = rows * shape.index()?.transfers();
        let corrections = IndexCorrections::from_bytes(shape.field, transfers, indices)?;
        let masks = self.columns.masks(shape, batch, digit_corrections)?;
        let secrets = RowSecrets::draw(rows, shape.resolution.code_bits(), rng);
        let keys = self.indices;
        let message = symbols::write(shape, table, batch, &masks, &secrets, keys, &corrections)?;
        let answered = ProviderAnswered {
            payload: self.payload,
            #[cfg(test)]
            drawn: masks
                .iter()
                .zip(secrets.coins.iter())
                .map(|(&mask, &coin)| heda_learn::resident::RowCoins { mask, coin })
                .collect(),
            pads: secrets.pads,
        };
        Ok((message, answered))
    }
}

impl ProviderAnswered {
    /// R6 for U's choices in one block; what belongs into Q is added to `sum`.
    pub(super) fn pay(
        self,
        shape: &Shape,
        table: &CodeTable,
        batch: Batch<'_>,
        choices: &[u8],
        sum: &mut OpenSum,
    ) -> Result<Vec<u8>, StepError> {
        let choices = exactly("the choices", choices, shape.choice_bytes(batch.count()))?;
        let count = batch.count() * shape.levels();
        let corrections = BitCorrections::from_bytes(count, choices)?;
        let payload::Payload {
            message,
            provider_share,
        } = payload::write(shape, table, batch, &self.pads, self.payload, &corrections)?;
        sum.add(&provider_share);
        Ok(message)
    }
}
