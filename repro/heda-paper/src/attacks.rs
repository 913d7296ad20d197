//! What a curious party computes from its own transcript of Algorithm 5, as code: experiments
//! measure it and tests keep it honest.
//!
//! | attack | who | what it reads |
//! | --- | --- | --- |
//! | [`cells_from_dictionaries`] | data user | every encrypted cell |
//! | [`Recording::coefficients_by_ratios`] | provider | the model, if blinding is common |
//! | [`Recording::coefficients_by_divisors`] | provider | the model |
//! | [`row_from_gradient`] | data user | a batch of one row is the row, so every engine refuses it |

use crate::algorithm5::dictionary::{Dictionary, factors};
use crate::algorithm5::{
    PaperDefect, PaperError, PaperRows, PaperSource, Plan, ProviderKeys, local, tag,
};
use crate::blocks::power::{FACTORS, PowerGrid};
use crate::hazmat_rsa::RsaPublicKey;
use crate::integer::{Integer, Natural};
use heda_blocks::channel::Recorded;
use heda_crypto::random::Randomness;
use heda_learn::gradient::{Batch, GradientSource};

/// Tag of the message in which exchange 1 carries blinded products.
pub(crate) const BLINDED: u8 = 0x45;

/// Why an attack could not even be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttackError {
    /// The transcript lacks a message.
    #[error("the transcript has no message {0:#04x}; was it recorded?")]
    Absent(u8),
    /// Engine `paper` did not run, or its messages cannot be read.
    #[error(transparent)]
    Paper(#[from] PaperError),
}

fn messages(view: &[Recorded], tag: u8) -> impl Iterator<Item = &[u8]> {
    let wanted = view.iter().filter(move |message| message.tag == tag);
    wanted.map(|message| message.body.as_slice())
}

fn first(view: &[Recorded], tag: u8) -> Result<&[u8], AttackError> {
    messages(view, tag).next().ok_or(AttackError::Absent(tag))
}

fn unreadable(error: impl Into<PaperDefect>) -> AttackError {
    AttackError::Paper(PaperError::Bug(error.into()))
}

/// The data user against engine `paper`: textbook RSA maps a value always to the same ciphertext,
/// so encrypting all 101 values of a cell and comparing reads it.
///
/// Needs nothing but what the data user received. For each encrypted column, the cell of each row
/// in hundredths, if a guess matched.
pub fn cells_from_dictionaries(
    view: &[Recorded],
    rows: usize,
    grid: PowerGrid,
) -> Result<Vec<Vec<Option<u32>>>, AttackError> {
    let key = first(view, tag::RSA_KEY)?;
    let key = RsaPublicKey::from_bytes_insecure_for_tests(key).map_err(unreadable)?;
    let guess =
        |cell| -> Result<_, PaperError> { Ok(key.encrypt(&factors(cell, grid)?[FACTORS - 1])?) };
    let guesses = (0..=100).map(guess).collect::<Result<Vec<_>, _>>()?;
    let read = |message: &[u8]| -> Result<Vec<Option<u32>>, AttackError> {
        let column = Dictionary::decode(message, rows, &key)?;
        let cell = |row| {
            let seen = &column.factors_of(column.value_of(row))[FACTORS - 1];
            let found = guesses.iter().position(|guess| guess == seen);
            found.map(|cell| cell as u32)
        };
        Ok((0..rows).map(cell).collect())
    };
    messages(view, tag::DICTIONARY).map(read).collect()
}

/// One iteration of engine `paper` with one provider: what both sides saw, and the provider's
/// keys.
#[derive(Debug)]
pub struct Recording {
    rows: PaperRows,
    users_view: Vec<Recorded>,
    providers_view: Vec<Recorded>,
    keys: ProviderKeys,
    plan: Plan,
}

impl Recording {
    /// Runs the iteration. With `common_blinding` all rows of the batch share one factor, as the
    /// paper prints it.
    pub fn new(
        rows: &PaperRows,
        beta: &[f64],
        settings: &local::Settings,
        randomness: &Randomness,
        common_blinding: bool,
    ) -> Result<Self, PaperError> {
        let parts = [rows.clone()];
        let mut run = local::run(&parts, settings, randomness, |remotes| {
            remotes[0].remote.common_blinding = common_blinding;
            PaperSource::new(remotes, 0, &mut 0).gradient(beta, Batch::FULL)?;
            let view = remotes[0].channel().transcript().to_vec();
            Ok((view, remotes[0].plan().clone()))
        })?;
        // A seeded run lets the same keys be made again.
        let mut rng = randomness.party("provider-1").fork("paper keys", 0)?;
        let keys = ProviderKeys::generate(&settings.shape(rows), &mut rng)?;
        let (users_view, plan) = run.result;
        Ok(Self {
            rows: rows.clone(),
            users_view,
            providers_view: run.views.remove(0),
            keys,
            plan,
        })
    }

    /// What the data user received.
    pub fn users_view(&self) -> &[Recorded] {
        &self.users_view
    }

    /// The plan of the iteration.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the provider decrypts in exchange 1: one blinded product a row.
    fn blinded_products(&self) -> Result<Vec<Natural>, AttackError> {
        let rsa = &self.keys.rsa;
        let message = first(&self.providers_view, BLINDED)?;
        let blinded = rsa.public().decode(message, self.rows.len());
        let blinded = blinded.map_err(unreadable)?;
        rsa.decrypt_batch(&blinded).map_err(unreadable)
    }

    /// The provider solves log(product_i) = c − β·x_i from its first d + 1 rows. Right if all
    /// rows share one blinding factor, nonsense if each has its own.
    pub fn coefficients_by_ratios(&self) -> Result<Vec<f64>, AttackError> {
        let width = self.rows.columns().len();
        let products = self.blinded_products()?;
        let equation = |(row, product): (usize, &Natural)| {
            let x = self.rows.values(row).map(|x| -x);
            let cells = std::iter::once(1.0).chain(x);
            cells.chain([logarithm(product)]).collect::<Vec<f64>>()
        };
        let equations = products.iter().take(width + 1).enumerate().map(equation);
        Ok(solve(equations.collect()).split_off(1))
    }

    /// The provider looks which of the factors that it made itself divide every row's product:
    /// they spell the digits of the coefficients, whatever the blinding. For each column, the
    /// numbers of the factors.
    pub fn coefficients_by_divisors(&self) -> Result<Vec<Vec<usize>>, AttackError> {
        let products = self.blinded_products()?;
        let suspects = |column: usize| -> Result<Vec<usize>, AttackError> {
            let mut suspects: Vec<usize> = (0..FACTORS).collect();
            for (row, product) in products.iter().enumerate() {
                let own = factors(self.rows.row(row)[column], self.plan.grid)?;
                let divides = |factor: &Natural| {
                    let rest = product.div_rem(factor).map(|(_, rest)| rest);
                    rest.is_some_and(|rest| rest.is_zero())
                };
                suspects.retain(|at| divides(&own[*at]));
            }
            Ok(suspects)
        };
        (0..self.rows.columns().len()).map(suspects).collect()
    }
}

/// The features of the only row of a batch, from its gradient (σ − y)·(1, x).
pub fn row_from_gradient(gradient: &[f64]) -> Option<Vec<f64>> {
    let (bias, rest) = gradient.split_first()?;
    (*bias != 0.0).then(|| rest.iter().map(|part| part / bias).collect())
}

fn logarithm(number: &Natural) -> f64 {
    let excess = number.bit_length().saturating_sub(64);
    let head = Integer::from(number >> excess).to_f64();
    head.ln() + excess as f64 * std::f64::consts::LN_2
}

/// Gauss with pivoting; the last column is the right-hand side.
fn solve(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    let size = system.len();
    for column in 0..size {
        let by_size = |a: &usize, b: &usize| {
            system[*a][column]
                .abs()
                .total_cmp(&system[*b][column].abs())
        };
        let pivot = (column..size).max_by(by_size).unwrap_or(column);
        system.swap(column, pivot);
        let lead = system[column].clone();
        for row in (0..size).filter(|row| *row != column) {
            let factor = system[row][column] / lead[column];
            let cells = system[row].iter_mut().zip(&lead);
            cells.for_each(|(cell, lead)| *cell -= factor * lead);
        }
    }
    (0..size)
        .map(|row| system[row][size] / system[row][row])
        .collect()
}
