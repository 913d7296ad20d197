//! The data user's role.

use super::capacity::Plan;
use super::dictionary::Dictionary;
use super::error::{PaperDefect, PaperError};
use super::provider::{key_limit, paillier_key, read_paillier_key};
use super::rows::Shape;
use super::tag;
use crate::blocks::exchange_keys;
use crate::blocks::exchange_rsa_to_paillier::{self, Exchanged, draw_blinding};
use crate::blocks::power::{self, Exponents};
use crate::hazmat_rsa::{RsaCiphertext, RsaPublicKey};
use crate::integer::{Integer, Natural};
use crate::packing::{PackedCiphertext, PackingError, SlotLayout};
use crate::paillier::{Ciphertext, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_learn::gradient::{Batch, Gradient, GradientSource};
use rand_core::CryptoRng;
use rayon::prelude::*;
use std::sync::Arc;

/// One provider, seen from the data user.
pub struct PaperRemote {
    shape: Shape,
    plan: Plan,
    own: Arc<PrivateKey>,
    paillier: PublicKey,
    rsa: RsaPublicKey,
    pub(super) dictionaries: Vec<Dictionary>,
    /// The published columns, row by row.
    open: Vec<f64>,
    /// Encrypted label sums of every class and batch.
    labels: Vec<Ciphertext>,
    randomness: Randomness,
    /// Uses one blinding factor for all rows of a batch. Only [`crate::attacks`] sets it, to show
    /// what that gives away.
    pub(crate) common_blinding: bool,
}

impl PaperRemote {
    /// A key for the data user, in the size that the shape asks for.
    pub fn user_key<R: CryptoRng + ?Sized>(
        shape: &Shape,
        rng: &mut R,
    ) -> Result<Arc<PrivateKey>, PaperError> {
        Plan::new(shape)?;
        Ok(Arc::new(paillier_key(shape, rng)?))
    }

    /// Plans, then steps S1 to S4. `open` holds the published columns, row by row.
    pub fn set_up(
        channel: &mut Channel,
        shape: Shape,
        own: Arc<PrivateKey>,
        open: Vec<f64>,
        randomness: Randomness,
    ) -> Result<Self, PaperError> {
        let plan = Plan::new(&shape)?;
        if open.len() != shape.rows * shape.open().count() {
            return Err(PaperDefect::Published.into());
        }
        // S1, S2
        let limit = key_limit(&shape);
        let paillier = read_paillier_key(&channel.receive(tag::PAILLIER_KEY, limit)?, &shape)?;
        let rsa = read_rsa_key(&channel.receive(tag::RSA_KEY, limit)?, &shape)?;
        channel.send(tag::USER_KEY, &own.public().to_bytes())?;
        // S3
        let mut dictionaries = Vec::new();
        for _ in shape.hidden() {
            let message = channel.receive(tag::DICTIONARY, Dictionary::limit(shape.rows, &rsa))?;
            dictionaries.push(Dictionary::decode(&message, shape.rows, &rsa)?);
        }
        // S4
        let count = shape.positives.len() * shape.batches * plan.chunks.len();
        let labels = receive(channel, tag::LABELS, &paillier, count, "label sums")?;
        Ok(Self {
            shape,
            plan,
            own,
            paillier,
            rsa,
            dictionaries,
            open,
            labels,
            randomness,
            common_blinding: false,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Step R1's check, before anything is sent.
    pub fn check(&self, beta: &[f64]) -> Result<(), PaperError> {
        self.write_exponents(beta).map(drop)
    }

    /// β in digits, if it is within what was planned for.
    fn write_exponents(&self, beta: &[f64]) -> Result<Exponents, PaperError> {
        let limits = self.plan.limits;
        let score: f64 = beta.iter().map(|b| b.abs()).sum();
        check_limit("sum of all coefficients", score, limits.score)?;
        let hidden: Vec<f64> = self.shape.hidden().map(|j| -beta[j + 1]).collect();
        let exponents = Exponents::new(self.plan.grid, &hidden)?;
        check_limit(
            "spread of encrypted coefficients",
            exponents.spread(),
            limits.spread,
        )?;
        Ok(exponents)
    }

    /// Steps R2 to R7 for one batch that the provider knows of: its gradient, bias first.
    pub fn gradient(
        &self,
        channel: &mut Channel,
        beta: &[f64],
        class: usize,
        batch: usize,
        iteration: u64,
    ) -> Result<Vec<f64>, PaperError> {
        let exponents = self.write_exponents(beta)?;
        let mut rng = self.randomness.fork("paper blinding", iteration)?;
        // R2, R3
        let exchanged = self.exchange(channel, &exponents, batch, &mut rng)?;
        // R4
        let (denominators, blindings) =
            self.denominators(beta, &exponents, batch, exchanged, &mut rng)?;
        channel.send(tag::DENOMINATORS, &self.paillier.encode(&denominators)?)?;
        // R6
        let count = denominators.len() * self.plan.chunks.len();
        let quotients = receive(channel, tag::QUOTIENTS, &self.paillier, count, "quotients")?;
        let sums = self.sums(&quotients, &blindings, class, batch)?;
        // R7
        let bits = self.plan.packed_bits();
        let bob = exchange_keys::Bob::new(&self.paillier, self.own.public(), bits)?;
        let waiting = bob.send(channel, &sums, &mut rng)?;
        let exchanged = waiting.finish(channel)?;
        self.read_sums(exchanged)
    }

    /// R2, R3: [e^{−β_H·x − o}·ρ] for every row.
    fn exchange<R: CryptoRng + ?Sized>(
        &self,
        channel: &mut Channel,
        exponents: &Exponents,
        batch: usize,
        rng: &mut R,
    ) -> Result<Vec<Exchanged>, PaperError> {
        let powers = self.powers(exponents, batch)?;
        let (rsa, paillier) = (&self.rsa, &self.paillier);
        let bob = exchange_rsa_to_paillier::Bob::new(rsa, paillier, self.plan.terms)?;
        if self.common_blinding {
            let common = draw_blinding(self.plan.terms.blinding_bits, rng);
            let all = vec![common; powers.len()];
            let waiting = bob.send_with_given_blindings(channel, &powers, all)?;
            return Ok(waiting.receive(channel)?);
        }
        let waiting = bob.send(channel, &powers, rng)?;
        Ok(waiting.receive(channel)?)
    }

    /// R2: the power function, once for every value of a column, then one product a row.
    fn powers(
        &self,
        exponents: &Exponents,
        batch: usize,
    ) -> Result<Vec<RsaCiphertext>, PaperError> {
        let (rsa, dictionaries) = (&self.rsa, &self.dictionaries);
        let columns = dictionaries.par_iter().enumerate();
        let powers = columns.map(|(index, column)| column.powers(exponents, index, rsa));
        let powers: Vec<Vec<RsaCiphertext>> = powers.collect::<Result<_, _>>()?;
        let filling = power::Bob::new(rsa, self.plan.grid).filling(exponents.missing())?;
        let share = self.shape.batch(batch).share(self.shape.rows);
        let product = |row: usize| {
            let columns = dictionaries.iter().zip(&powers);
            let factors = columns.map(|(column, powers)| &powers[column.value_of(row)]);
            Ok(rsa.product(factors.chain(std::iter::once(&filling)))?)
        };
        share.into_par_iter().map(product).collect()
    }

    /// R4: [(e^{−z}·2^s + 2^s)·ρ'] for every row, and every ρ'.
    fn denominators<R: CryptoRng + ?Sized>(
        &self,
        beta: &[f64],
        exponents: &Exponents,
        batch: usize,
        exchanged: Vec<Exchanged>,
        rng: &mut R,
    ) -> Result<(Vec<Ciphertext>, Vec<Integer>), PaperError> {
        let plan = &self.plan;
        let share = self.shape.batch(batch).share(self.shape.rows);
        let mut draw = || draw_blinding(plan.division_blinding, rng);
        let blindings: Vec<Natural> = exchanged.iter().map(|_| draw()).collect();
        let blindings = match (self.common_blinding, blindings.first()) {
            (true, Some(common)) => vec![common.clone(); blindings.len()],
            _ => blindings,
        };
        let known = share.map(|row| (exponents.offset() - self.known_score(beta, row)).exp());
        let rows: Vec<_> = known.zip(exchanged).zip(&blindings).collect();
        let paillier = &self.paillier;
        let row = |((known, exchanged), blinding): ((f64, Exchanged), &Natural)| {
            let (ciphertext, first_blinding) = exchanged.into_parts();
            let weight = shifted(known, plan.unblinding_bits).div_round(&first_blinding);
            let weight = weight.ok_or(PaperDefect::ZeroBlinding)?;
            let weight = Integer::from(&weight * blinding);
            let scaled = paillier.scale(&ciphertext, &weight, plan.weight_bits())?;
            let one = paillier.plaintext(blinding << plan.denominator_bits)?;
            Ok(paillier.add_plaintext(&scaled, &one)?)
        };
        let rows = rows.into_par_iter().map(row);
        let made = rows.collect::<Result<Vec<_>, PaperError>>()?;
        // Otherwise the provider could see how they were made from its own ciphertexts.
        let fresh = self.paillier.rerandomise_batch(&made, rng)?;
        Ok((fresh, blindings.into_iter().map(Integer::from).collect()))
    }

    /// Bias and published columns of a row.
    fn known_score(&self, beta: &[f64], row: usize) -> f64 {
        let width = self.open.len() / self.shape.rows.max(1);
        let cells = &self.open[row * width..][..width];
        let terms = self.shape.open().zip(cells).map(|(j, x)| beta[j + 1] * x);
        beta[0] + terms.sum::<f64>()
    }

    /// R6: [Σ x·σ − Σ x·y], packed.
    fn sums(
        &self,
        quotients: &[Ciphertext],
        blindings: &[Integer],
        class: usize,
        batch: usize,
    ) -> Result<Vec<Ciphertext>, PaperError> {
        let chunks = self.plan.chunks.len();
        let at = (class * self.shape.batches + batch) * chunks;
        let labels = self.labels.get(at..at + chunks);
        let labels = labels.ok_or(PaperDefect::NoSuchBatch)?;
        let sum = |(chunk, labels): (usize, &Ciphertext)| {
            let rows = quotients.iter().skip(chunk).step_by(chunks);
            let terms: Vec<_> = rows.zip(blindings).collect();
            let key = &self.paillier;
            let sum = key.linear_combination(&terms, self.plan.division_blinding)?;
            Ok(key.subtract(&sum, labels)?)
        };
        labels.iter().enumerate().map(sum).collect()
    }

    /// R7: decrypts the sums under the own key.
    fn read_sums(&self, exchanged: Vec<Ciphertext>) -> Result<Vec<f64>, PaperError> {
        let mut slots = Vec::with_capacity(self.shape.columns.len() + 1);
        for (ciphertext, &count) in exchanged.into_iter().zip(&self.plan.chunks) {
            let layout = SlotLayout::new(self.own.public(), count, self.plan.slot_bits)?;
            let bound = Natural::power_of_two(self.plan.sum_bits);
            let packed = PackedCiphertext::from_parts(ciphertext, layout, bound)?;
            let chunk = packed.decrypt(&self.own).map_err(|error| match error {
                PackingError::BrokenBound => PaperError::peer("exchanged sums", error),
                other => other.into(),
            })?;
            slots.extend(chunk);
        }
        let one = 2f64.powi(-(self.plan.quotient_bits as i32));
        let units = self.shape.units();
        let values = slots.iter().zip(&units);
        Ok(values
            .map(|(slot, unit)| slot.to_f64() * one * unit)
            .collect())
    }
}

impl std::fmt::Debug for PaperRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PaperRemote")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

fn check_limit(what: &'static str, found: f64, limit: f64) -> Result<(), PaperError> {
    match found <= limit {
        true => Ok(()),
        false => Err(PaperError::Range { what, found, limit }),
    }
}

/// round(value·2^bits) for a positive, normal float.
fn shifted(value: f64, bits: usize) -> Natural {
    let raw = value.to_bits();
    let mantissa = Natural::from((raw & ((1 << 52) - 1)) | (1 << 52));
    let exponent = (raw >> 52) as i64 - 1075 + bits as i64;
    match usize::try_from(exponent) {
        Ok(left) => &mantissa << left,
        Err(_) => &mantissa >> exponent.unsigned_abs() as usize,
    }
}

fn receive(
    channel: &mut Channel,
    tag: u8,
    key: &PublicKey,
    count: usize,
    message: &'static str,
) -> Result<Vec<Ciphertext>, PaperError> {
    let limit = key.encoded_length(count).unwrap_or(usize::MAX);
    let body = channel.receive(tag, limit)?;
    key.decode(&body, count)
        .map_err(|e| PaperError::peer(message, e))
}

fn read_rsa_key(bytes: &[u8], shape: &Shape) -> Result<RsaPublicKey, PaperError> {
    let key = match shape.insecure_test_keys {
        true => RsaPublicKey::from_bytes_insecure_for_tests(bytes),
        false => RsaPublicKey::from_bytes(bytes),
    };
    let key = key.map_err(|e| PaperError::peer("RSA key", e))?;
    match key.bits() == shape.key_bits {
        true => Ok(key),
        false => Err(PaperError::peer(
            "RSA key",
            "it has another length than agreed",
        )),
    }
}

/// A provider with a channel of its own.
#[derive(Debug)]
pub struct PaperLink {
    channel: Channel,
    pub(crate) remote: PaperRemote,
}

impl PaperLink {
    /// As [`PaperRemote::set_up`], over a channel that carries nothing else.
    pub fn set_up(
        mut channel: Channel,
        shape: Shape,
        own: Arc<PrivateKey>,
        open: Vec<f64>,
        randomness: Randomness,
    ) -> Result<Self, PaperError> {
        channel.enter_phase("setup");
        let remote = PaperRemote::set_up(&mut channel, shape, own, open, randomness)?;
        channel.enter_phase("train");
        Ok(Self { channel, remote })
    }

    /// The channel, for its counts and its transcript.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        self.remote.plan()
    }

    /// Steps R1 to R7.
    fn gradient(
        &mut self,
        beta: &[f64],
        class: usize,
        batch: usize,
        iteration: u64,
    ) -> Result<Vec<f64>, PaperError> {
        let question = (batch as u32).to_le_bytes();
        self.channel.send(tag::QUESTION, &question)?;
        let Self { channel, remote } = self;
        remote.gradient(channel, beta, class, batch, iteration)
    }

    /// Tells the provider that no further question comes.
    pub fn finish(&mut self) -> Result<(), PaperError> {
        Ok(self.channel.send(tag::QUESTION, &[])?)
    }
}

/// Gradients of one binary problem over all providers.
#[derive(Debug)]
pub struct PaperSource<'a> {
    remotes: &'a mut [PaperLink],
    class: usize,
    iteration: &'a mut u64,
}

impl<'a> PaperSource<'a> {
    /// Gradients for one class of the shape. `iteration` counts on over all classes of a job.
    pub fn new(remotes: &'a mut [PaperLink], class: usize, iteration: &'a mut u64) -> Self {
        Self {
            remotes,
            class,
            iteration,
        }
    }
}

impl GradientSource for PaperSource<'_> {
    type Error = PaperError;

    fn dimension(&self) -> usize {
        self.remotes
            .first()
            .map_or(0, |remote| remote.remote.shape.columns.len())
            + 1
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, PaperError> {
        let iteration = *self.iteration;
        *self.iteration += 1;
        let (class, index) = (self.class, batch.index());
        let shares = self
            .remotes
            .iter()
            .map(|remote| batch.share(remote.remote.shape.rows).len());
        let rows = shares.sum();
        // All are checked before the first one is asked.
        for remote in self.remotes.iter() {
            remote.remote.check(beta)?;
        }
        let parts: Vec<Result<Vec<f64>, PaperError>> = std::thread::scope(|scope| {
            let ask = |remote: &'_ mut PaperLink| remote.gradient(beta, class, index, iteration);
            let threads: Vec<_> = self
                .remotes
                .iter_mut()
                .map(|remote| scope.spawn(move || ask(remote)))
                .collect();
            let panicked = |_| Err(PaperDefect::Panicked.into());
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(panicked))
                .collect()
        });
        let mut sum = vec![0.0; self.dimension()];
        for part in parts {
            sum.iter_mut()
                .zip(part?)
                .for_each(|(sum, value)| *sum += value);
        }
        Ok(Gradient { sum, rows })
    }
}
