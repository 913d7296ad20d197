//! The provider's role.

use super::capacity::Plan;
use super::error::{PaperDefect, PaperError};
use super::rows::{PaperRows, Shape};
use super::{dictionary, tag};
use crate::blocks::{exchange_keys, exchange_rsa_to_paillier};
use crate::hazmat_rsa::RsaPrivateKey;
use crate::integer::{Integer, Natural};
use crate::packing::{PackedCiphertext, SlotLayout};
use crate::paillier::{Ciphertext, KeySize, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use rand_core::CryptoRng;
use rayon::prelude::*;

/// A provider's keys.
#[derive(Debug)]
pub struct ProviderKeys {
    pub(super) paillier: PrivateKey,
    pub(crate) rsa: RsaPrivateKey,
}

impl ProviderKeys {
    /// Makes both keys in the size that the shape asks for.
    pub fn generate<R: CryptoRng + ?Sized>(shape: &Shape, rng: &mut R) -> Result<Self, PaperError> {
        let rsa = match KeySize::from_bits(shape.key_bits) {
            Some(size) => RsaPrivateKey::generate(size, rng),
            None => RsaPrivateKey::generate_insecure_for_tests(shape.key_bits, rng),
        };
        Ok(Self {
            paillier: paillier_key(shape, rng)?,
            rsa: rsa?,
        })
    }
}

/// A Paillier key in the size that the shape asks for.
pub(super) fn paillier_key<R: CryptoRng + ?Sized>(
    shape: &Shape,
    rng: &mut R,
) -> Result<PrivateKey, PaperError> {
    let key = match KeySize::from_bits(shape.key_bits) {
        Some(size) => PrivateKey::generate(size, rng),
        None => PrivateKey::generate_insecure_for_tests(shape.key_bits, rng),
    };
    Ok(key.map_err(PaperDefect::from)?)
}

/// The peer's Paillier key, if it has the agreed length.
pub(super) fn read_paillier_key(bytes: &[u8], shape: &Shape) -> Result<PublicKey, PaperError> {
    let key = match shape.insecure_test_keys {
        true => PublicKey::from_bytes_insecure_for_tests(bytes),
        false => PublicKey::from_bytes(bytes),
    };
    let key = key.map_err(|e| PaperError::peer("public key", e))?;
    match key.bits() == shape.key_bits {
        true => Ok(key),
        false => Err(PaperError::peer(
            "public key",
            "it has another length than agreed",
        )),
    }
}

/// Bytes of a public key in the agreed length, with its header.
pub(super) fn key_limit(shape: &Shape) -> usize {
    shape.key_bits.div_ceil(8) + 2
}

/// What a provider holds while a job runs.
pub struct PaperProvider {
    keys: ProviderKeys,
    users: PublicKey,
    shape: Shape,
    plan: Plan,
    rows: PaperRows,
    randomness: Randomness,
}

impl PaperProvider {
    /// Plans, then steps S1 to S4.
    pub fn set_up(
        channel: &mut Channel,
        shape: Shape,
        rows: PaperRows,
        keys: ProviderKeys,
        randomness: Randomness,
    ) -> Result<Self, PaperError> {
        let plan = Plan::new(&shape)?;
        if rows.columns() != shape.columns || rows.len() != shape.rows {
            return Err(PaperDefect::Rows.into());
        }
        // S1, S2
        channel.send(tag::PAILLIER_KEY, &keys.paillier.public().to_bytes())?;
        channel.send(tag::RSA_KEY, &keys.rsa.public().to_bytes())?;
        let users = channel.receive(tag::USER_KEY, key_limit(&shape))?;
        let users = read_paillier_key(&users, &shape)?;
        // S3
        for column in shape.hidden() {
            let cells = (0..rows.len()).map(|row| rows.row(row)[column]);
            let message = dictionary::encode(cells, plan.grid, keys.rsa.public())?;
            channel.send(tag::DICTIONARY, &message)?;
        }
        let provider = Self {
            keys,
            users,
            shape,
            plan,
            rows,
            randomness,
        };
        provider.send_labels(channel)?;
        Ok(provider)
    }

    /// Step S4: Σ x·y of every class and batch, packed like the quotients.
    fn send_labels(&self, channel: &mut Channel) -> Result<(), PaperError> {
        let mut rng = self.randomness.fork("paper labels", 0)?;
        let mut sums = Vec::new();
        for &positive in &self.shape.positives {
            for index in 0..self.shape.batches {
                let mut slots = vec![0u64; self.shape.columns.len() + 1];
                let share = self.shape.batch(index).share(self.rows.len());
                for row in share.filter(|row| self.rows.labels()[*row] == positive) {
                    slots
                        .iter_mut()
                        .zip(self.cells(row))
                        .for_each(|(sum, x)| *sum += x);
                }
                let slots = slots
                    .iter()
                    .map(|sum| Integer::from(&Natural::from(*sum) << self.plan.quotient_bits));
                let slots: Vec<Integer> = slots.collect();
                sums.extend(self.pack(&slots, self.plan.sum_bits, &mut rng)?);
            }
        }
        let message = self.keys.paillier.public().encode(&sums)?;
        Ok(channel.send(tag::LABELS, &message)?)
    }

    /// A row with its bias, in steps of the grids.
    fn cells(&self, row: usize) -> impl Iterator<Item = u64> + '_ {
        let cells = self.rows.row(row).iter().map(|cell| u64::from(*cell));
        std::iter::once(1).chain(cells)
    }

    /// Encrypts one number a column, bias first, in as many ciphertexts as planned.
    fn pack<R: CryptoRng + ?Sized>(
        &self,
        slots: &[Integer],
        bound_bits: usize,
        rng: &mut R,
    ) -> Result<Vec<Ciphertext>, PaperError> {
        let public = self.keys.paillier.public();
        let mut rest = slots;
        let mut packed = Vec::with_capacity(self.plan.chunks.len());
        for &count in &self.plan.chunks {
            let (chunk, after) = rest.split_at(count);
            rest = after;
            let layout = SlotLayout::new(public, count, self.plan.slot_bits)?;
            let plain = layout.pack(chunk, Natural::power_of_two(bound_bits))?;
            let encrypted: PackedCiphertext = plain.encrypt_as_owner(&self.keys.paillier, rng)?;
            packed.push(encrypted.ciphertext().clone());
        }
        Ok(packed)
    }

    /// Answers questions until the data user is done; says how many.
    pub fn serve(&self, channel: &mut Channel) -> Result<u32, PaperError> {
        let mut answered = 0;
        loop {
            let question = channel.receive(tag::QUESTION, 4)?;
            if question.is_empty() {
                return Ok(answered);
            }
            let index = question.try_into().map(u32::from_le_bytes);
            let index = index.map_err(|_| PaperError::peer("question", "it is no batch"))?;
            self.gradient(channel, index as usize, u64::from(answered))?;
            answered += 1;
        }
    }

    /// Steps R3, R5 and R7 for one batch. `iteration` must not repeat.
    pub fn gradient(
        &self,
        channel: &mut Channel,
        batch: usize,
        iteration: u64,
    ) -> Result<(), PaperError> {
        if batch >= self.shape.batches {
            return Err(PaperError::peer("question", "there is no such batch"));
        }
        let share = self.shape.batch(batch).share(self.rows.len());
        let mut rng = self.randomness.fork("paper answers", iteration)?;
        let ProviderKeys { paillier, rsa } = &self.keys;
        // R3: exchange 1.
        let exchange = exchange_rsa_to_paillier::Alice::new(rsa, paillier, self.plan.terms)?;
        exchange.answer(channel, share.len(), &mut rng)?;
        // R5: divide.
        let denominators = self.receive_denominators(channel, share.len())?;
        let quotients = self.quotients(share.start, &denominators, iteration)?;
        channel.send(tag::QUOTIENTS, &paillier.public().encode(&quotients)?)?;
        // R7: exchange 2.
        let bits = self.plan.packed_bits();
        let exchange = exchange_keys::Alice::new(paillier, &self.users, bits)?;
        exchange.answer(channel, self.plan.chunks.len(), &mut rng)?;
        Ok(())
    }

    fn receive_denominators(
        &self,
        channel: &mut Channel,
        rows: usize,
    ) -> Result<Vec<Natural>, PaperError> {
        let public = self.keys.paillier.public();
        let limit = public.encoded_length(rows).unwrap_or(usize::MAX);
        let message = channel.receive(tag::DENOMINATORS, limit)?;
        let bad = |e: &dyn std::fmt::Display| PaperError::peer("denominators", e);
        let ciphertexts = public.decode(&message, rows).map_err(|e| bad(&e))?;
        let numbers = self.keys.paillier.decrypt_batch(&ciphertexts)?;
        let allowed = self.plan.smallest_denominator()..=self.plan.largest_denominator();
        let check = |number: Integer| {
            let bits = number.magnitude().bit_length();
            match !number.is_negative() && allowed.contains(&bits) {
                true => Ok(number.magnitude().clone()),
                false => Err(bad(&"one is outside the agreed bounds")),
            }
        };
        numbers
            .into_iter()
            .map(|n| check(n.into_integer()))
            .collect()
    }

    /// x_ij·⌊2^G/V_i⌋ for every row and column.
    fn quotients(
        &self,
        first: usize,
        denominators: &[Natural],
        iteration: u64,
    ) -> Result<Vec<Ciphertext>, PaperError> {
        let one = Natural::power_of_two(self.plan.quotient_bits + self.plan.denominator_bits);
        let row = |(at, denominator): (usize, &Natural)| {
            let quotient = one.div_rem(denominator);
            let (quotient, _) = quotient.ok_or(PaperDefect::ZeroDenominator)?;
            let slots = self
                .cells(first + at)
                .map(|x| Integer::from(&quotient * &x.into()));
            let slots: Vec<Integer> = slots.collect();
            // Rows are encrypted in parallel: each has randomness of its own.
            let purpose = format!("paper quotients {iteration}");
            let mut rng = self.randomness.fork(&purpose, at as u64)?;
            self.pack(&slots, self.plan.sum_bits, &mut rng)
        };
        let rows: Vec<Vec<Ciphertext>> = denominators
            .par_iter()
            .enumerate()
            .map(row)
            .collect::<Result<_, PaperError>>()?;
        Ok(rows.concat())
    }
}

impl std::fmt::Debug for PaperProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PaperProvider")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
