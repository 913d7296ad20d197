//! Agreement of the providers on one ranking of the features.
//!
//! Each provider scores the features on its own rows, turns the scores into shares of their sum
//! and weights them with its number of rows. The ranking follows the sum over all providers; equal
//! sums keep the order of the schema. Scores are data, so the sum is all that anyone sees:
//! contributions carry masks modulo 2^48 that cancel ([`heda_crypto::masking`]).
//!
//! Who learns what. Data user: the summed shares (it knows all numbers of rows already). Provider:
//! the ranking, not the sums: with two providers the sums would show each the other's scores. The
//! data user together with all other providers learns the remaining one's scores. With a single
//! provider there is nothing to hide behind, so it sends its ranking and no scores.
//!
//! Message (J4; the [`ScoresQuestion`] follows from the proposal, the answer is the split): provider →
//! data user: the schema's fingerprint and 6 bytes a feature, or, when one provider chooses, the
//! fingerprint and its ranking, 2 bytes a feature.
//!
//! A ranking may also stand in the job file ([`Ranking::from_names`]): then no message is sent and
//! nothing is read from data.

use crate::agreement::JobMasks;
use crate::closing::OpenSum;
use crate::codec::hex;
use heda_crypto::bits::{pack, packed_bytes, unpack};
use heda_crypto::masking::MASK_BITS;
use heda_learn::data::Dataset;
use heda_learn::schema::{Schema, SchemaFingerprint};
use heda_learn::score::{Ranking, RankingError, Scores, ScoringMethod};
use zeroize::Zeroizing;

/// The masks of this protocol are drawn for this purpose, once a session.
pub(crate) const PURPOSE: &str = "scores";
/// A share of 1 is this integer.
const SHARE_ONE: u64 = 1 << 20;
/// More rows than this, over all providers, could overflow the sum.
pub const MAX_ROWS: usize = 1 << (MASK_BITS - 20);
/// Shares are added up modulo 2^48, like the masks.
const MODULUS_MASK: u64 = (1 << MASK_BITS) - 1;
const FINGERPRINT_BYTES: usize = 32;

/// Why no ranking was agreed on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NegotiationError {
    /// A provider works with another schema than the data user.
    #[error(
        "{provider} uses schema {theirs}, the data user's job uses schema {ours}: all parties must \
         have the same schema file"
    )]
    ProviderSchema {
        /// Which provider.
        provider: String,
        /// Its schema.
        theirs: String,
        /// The job's schema.
        ours: String,
    },
    /// A message of the wrong length.
    #[error("{what} has {found} bytes where {expected} are due")]
    Length {
        /// Which message.
        what: String,
        /// Bytes due.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// The rows are of another schema.
    #[error("the rows have {found} features, the schema has {expected}")]
    Features {
        /// Features of the schema.
        expected: usize,
        /// Features of the rows.
        found: usize,
    },
    /// More rows than the sum can hold.
    #[error("{0} rows are too many for one agreement; at most {MAX_ROWS} over all providers")]
    Rows(usize),
    /// Not one contribution from each provider.
    #[error("{found} contributions from {expected} providers")]
    Contributions {
        /// Number of providers.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// The sum cannot have come from masks that cancel.
    #[error(
        "the contributions do not add up to shares: a provider used other masks or rows than \
         announced; start the job again"
    )]
    Sum,
    /// One provider cannot hide its scores.
    #[error(
        "with a single provider its scores would be seen: let that provider choose the ranking, or \
         give the ranking in the job file"
    )]
    Alone,
    /// What should be a ranking is none.
    #[error("{0} sent no order of the features")]
    Ranking(String),
    /// The rows cannot be scored.
    #[error(transparent)]
    Score(#[from] RankingError),
}

/// What the data user wants scored, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoresQuestion {
    fingerprint: SchemaFingerprint,
    features: usize,
    method: ScoringMethod,
    seed: u64,
}

impl ScoresQuestion {
    /// A question about the features of a schema; `seed` matters to the forest only.
    pub fn new(schema: &Schema, method: ScoringMethod, seed: u64) -> Self {
        Self {
            fingerprint: schema.fingerprint(),
            features: schema.columns().len(),
            method,
            seed,
        }
    }

    pub(crate) fn contribution_bytes(&self) -> usize {
        FINGERPRINT_BYTES + packed_bytes(self.features, MASK_BITS)
    }
}

/// A provider that has the schema of the question.
#[derive(Debug)]
pub struct RankingProvider {
    question: ScoresQuestion,
}

impl RankingProvider {
    /// Answers this question.
    pub fn new(question: ScoresQuestion) -> Self {
        Self { question }
    }

    /// Numbers of the sum of all shares.
    pub(crate) fn numbers(&self) -> usize {
        self.question.features
    }

    /// Adds our weighted shares to the sum over all providers: zeros where all rows have one class.
    pub(crate) fn add_shares(
        &self,
        data: &Dataset,
        masks: &JobMasks,
        sum: &mut OpenSum,
    ) -> Result<(), NegotiationError> {
        if masks.is_alone() {
            return Err(NegotiationError::Alone);
        }
        let shares = match self.scores(data) {
            // Rows of one class tell no feature from another. To refuse would tell everybody so.
            Err(NegotiationError::Score(RankingError::OneClass { .. })) => {
                Zeroizing::new(vec![0; self.question.features])
            }
            scores => weighted_shares(&scores?, data.rows())?,
        };
        sum.add(&shares);
        Ok(())
    }

    /// The message of a sum that may leave.
    pub(crate) fn message(&self, closed: &[u64]) -> Vec<u8> {
        let mut message = self.question.fingerprint.as_bytes().to_vec();
        message.extend(pack(closed, MASK_BITS));
        message
    }

    /// The message when this provider chooses alone: its ranking, and no scores.
    pub fn choose(&self, data: &Dataset) -> Result<Vec<u8>, NegotiationError> {
        let mut message = self.question.fingerprint.as_bytes().to_vec();
        message.extend(ranking_to_bytes(&self.scores(data)?.ranking()));
        Ok(message)
    }

    fn scores(&self, data: &Dataset) -> Result<Scores, NegotiationError> {
        let (expected, found) = (self.question.features, data.features().len());
        if expected != found {
            return Err(NegotiationError::Features { expected, found });
        }
        let ScoresQuestion { method, seed, .. } = self.question;
        Ok(Scores::compute(data, method, seed)?)
    }
}

/// What a provider adds to the sum: its shares of the scores times its rows, in fixed point.
/// Scores that are all zero have shares of zero.
///
/// The product is rounded, not the share: a sum of whole shares times known numbers of rows could
/// be solved for the shares, by arithmetic modulo one of the numbers.
pub fn weighted_shares(
    scores: &Scores,
    rows: usize,
) -> Result<Zeroizing<Vec<u64>>, NegotiationError> {
    if rows > MAX_ROWS {
        return Err(NegotiationError::Rows(rows));
    }
    let total: f64 = scores.values().iter().sum();
    let share = |score: &f64| {
        let share = if total > 0.0 { score / total } else { 0.0 };
        (share * rows as f64 * SHARE_ONE as f64).round() as u64
    };
    Ok(Zeroizing::new(scores.values().iter().map(share).collect()))
}

/// A provider as the data user knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name in the job file.
    pub name: String,
    /// How many rows it takes part with.
    pub rows: usize,
}

/// The data user, waiting for the providers.
#[derive(Debug)]
pub struct RankingUser {
    question: ScoresQuestion,
    members: Vec<Member>,
}

/// What was agreed.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreedRanking {
    /// The features from best to worst.
    pub ranking: Ranking,
    /// Each feature's mean share of the scores, weighted by rows, in schema order.
    pub shares: Vec<f64>,
}

impl RankingUser {
    /// Prepares to hear the providers.
    pub fn new(question: ScoresQuestion, members: Vec<Member>) -> Result<Self, NegotiationError> {
        let total = members
            .iter()
            .fold(0usize, |sum, member| sum.saturating_add(member.rows));
        if total > MAX_ROWS {
            return Err(NegotiationError::Rows(total));
        }
        Ok(Self { question, members })
    }

    /// Reads the message of every provider, in the order of the members, and adds them up.
    pub fn combine(self, contributions: &[Vec<u8>]) -> Result<AgreedRanking, NegotiationError> {
        let (expected, found) = (self.members.len(), contributions.len());
        if expected != found {
            return Err(NegotiationError::Contributions { expected, found });
        }
        if expected < 2 {
            return Err(NegotiationError::Alone);
        }
        let mut sum = vec![0u64; self.question.features];
        for (member, bytes) in self.members.iter().zip(contributions) {
            let numbers = self.checked(member, bytes, self.question.contribution_bytes())?;
            let numbers = unpack(numbers, self.question.features, MASK_BITS);
            let numbers = numbers.map_err(|_| NegotiationError::Sum)?;
            for (sum, number) in sum.iter_mut().zip(numbers) {
                *sum = sum.wrapping_add(number) & MODULUS_MASK;
            }
        }
        self.agreement(&sum)
    }

    /// Reads the message of the one provider that chooses.
    pub fn chosen_by(self, member: usize, choice: &[u8]) -> Result<Ranking, NegotiationError> {
        let (expected, found) = (self.members.len(), member.saturating_add(1));
        let member = self
            .members
            .get(member)
            .ok_or(NegotiationError::Contributions { expected, found })?;
        let length = FINGERPRINT_BYTES + 2 * self.question.features;
        let ranking = self.checked(member, choice, length)?;
        ranking_from_bytes(&member.name, ranking, self.question.features)
    }

    /// Length and schema of a provider's message; what follows the fingerprint.
    fn checked<'b>(
        &self,
        member: &Member,
        bytes: &'b [u8],
        length: usize,
    ) -> Result<&'b [u8], NegotiationError> {
        // The schema first: another schema often has another number of features.
        if let Some((theirs, _)) = bytes.split_at_checked(FINGERPRINT_BYTES)
            && theirs != self.question.fingerprint.as_bytes()
        {
            return Err(NegotiationError::ProviderSchema {
                provider: member.name.clone(),
                theirs: hex(theirs),
                ours: self.question.fingerprint.to_string(),
            });
        }
        check_length(&format!("the message of {}", member.name), bytes, length)?;
        Ok(&bytes[FINGERPRINT_BYTES..])
    }

    fn agreement(&self, sum: &[u64]) -> Result<AgreedRanking, NegotiationError> {
        let rows: usize = self.members.iter().map(|member| member.rows).sum();
        let one = rows as u64 * SHARE_ONE;
        // A share is at most 1, and each is rounded. What is more cannot be a sum of shares, and
        // masks that do not cancel leave it so almost surely.
        let most = one + self.members.len() as u64;
        if sum.iter().any(|&sum| sum > most) {
            return Err(NegotiationError::Sum);
        }
        let shares: Vec<f64> = sum
            .iter()
            .map(|&sum| sum as f64 / one.max(1) as f64)
            .collect();
        // Integers below 2^48 are exact in f64, and division keeps their order and ties.
        let ranking = Ranking::by_score(&shares);
        Ok(AgreedRanking { ranking, shares })
    }
}

fn ranking_to_bytes(ranking: &Ranking) -> Vec<u8> {
    let two_bytes = |&feature: &usize| (feature as u16).to_le_bytes();
    ranking.order().iter().flat_map(two_bytes).collect()
}

fn ranking_from_bytes(
    sender: &str,
    bytes: &[u8],
    features: usize,
) -> Result<Ranking, NegotiationError> {
    check_length(&format!("the ranking of {sender}"), bytes, 2 * features)?;
    let order = bytes
        .chunks_exact(2)
        .map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])))
        .collect();
    Ranking::from_order(order).map_err(|_| NegotiationError::Ranking(sender.into()))
}

fn check_length(what: &str, bytes: &[u8], expected: usize) -> Result<(), NegotiationError> {
    if bytes.len() == expected {
        return Ok(());
    }
    Err(NegotiationError::Length {
        what: what.into(),
        expected,
        found: bytes.len(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
