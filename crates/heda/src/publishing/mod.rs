//! Columns under differential privacy, and what they give away and buy. Nothing is written and no
//! ledger is kept here: that is up to who asks.

mod grids;
mod report;
mod worth;

pub use grids::{PublicationError, PublishedValues};
pub use report::{ColumnReport, Noise, PublishReport};
pub use worth::Worth;

use crate::error::{Error, ErrorKind};
use grids::Publication;
use heda_crypto::random::Randomness;
use heda_dp::account::{Accountant, Charge, ColumnCharge, Mechanism, Spend};
use heda_dp::budget::{split_by_weights, split_equally};
use heda_dp::epsilon::Epsilon;
use heda_dp::laplace;
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;

/// What is to be published.
#[derive(Debug, Clone)]
pub struct PublishRequest<'a> {
    /// The columns.
    pub features: &'a [String],
    /// What one row pays for all columns together.
    pub epsilon: Epsilon,
    /// How ε is split, a whole number a column; equally if there is none.
    pub weights: &'a [u32],
    /// Numbers are rounded to 2^bits steps between their bounds.
    pub bits: u32,
}

/// What was released.
#[derive(Debug)]
pub struct PublishedColumns {
    publication: Publication,
    grid: Vec<Vec<u32>>,
    /// What it gives away. For the one who holds the rows.
    pub report: PublishReport,
}

impl PublishedColumns {
    /// Names and values of the columns.
    pub fn values(&self) -> impl Iterator<Item = (&str, PublishedValues)> {
        let columns = self.publication.names().zip(&self.grid).enumerate();
        columns.map(move |(column, (name, grid))| (name, self.publication.values(column, grid)))
    }

    /// Names and cells of the columns, as they would stand in a file.
    pub fn columns(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = String>)> {
        let columns = self.publication.names().zip(&self.grid).enumerate();
        columns.map(move |(column, (name, values))| {
            let cell = move |&value: &u32| self.publication.cell(column, value);
            (name, values.iter().map(cell))
        })
    }
}

/// Publishes columns of these rows. Whoever asks keeps account: this ε adds to all that the data set
/// has released before.
///
/// # Errors
/// If the request does not fit the schema, or the operating system gives no randomness.
pub fn publish(
    schema: &Schema,
    data: &Dataset,
    request: &PublishRequest<'_>,
) -> Result<PublishedColumns, Error> {
    let question = Question::new(schema, data, request)?;
    let grid = question.release(&Randomness::from_os(), 0)?;
    let report = question.report();
    Ok(PublishedColumns {
        publication: question.publication,
        grid,
        report,
    })
}

/// What publishing would give away and buy; nothing is released. Computed from the rows: for the
/// one who holds them.
///
/// # Errors
/// As [`publish`], or if there are too few rows to estimate anything.
pub fn preview(
    schema: &Schema,
    data: &Dataset,
    request: &PublishRequest<'_>,
) -> Result<PublishReport, Error> {
    let question = Question::new(schema, data, request)?;
    let mut report = question.report();
    report.accuracy = Some(question.worth(schema)?);
    Ok(report)
}

impl PublishRequest<'_> {
    fn charge(&self) -> Result<Charge, Error> {
        let names = self.features;
        let parts = match self.weights.len() {
            0 => split_equally(self.epsilon, names.len()),
            given if given == names.len() => split_by_weights(self.epsilon, self.weights),
            given => {
                let message = format!("{given} weights for {} columns; give one each", names.len());
                return Err(Error::input(message));
            }
        };
        let parts = parts.map_err(Error::input)?;
        let column = |(name, epsilon): (&String, Epsilon)| ColumnCharge {
            name: name.clone(),
            epsilon,
        };
        let columns = names.iter().zip(parts).map(column).collect();
        Charge::new(Mechanism::Laplace, columns).map_err(Error::input)
    }
}

/// A request with the rows that it is about, on their grids.
struct Question<'a> {
    data: &'a Dataset,
    request: &'a PublishRequest<'a>,
    publication: Publication,
    grid: Vec<Vec<u32>>,
    charge: Charge,
}

impl<'a> Question<'a> {
    fn new(
        schema: &Schema,
        data: &'a Dataset,
        request: &'a PublishRequest<'a>,
    ) -> Result<Self, Error> {
        let publication = Publication::new(schema, request.features, request.bits);
        let publication = publication.map_err(Error::input)?;
        let grid = publication.to_grid(data);
        Ok(Self {
            data,
            request,
            publication,
            grid,
            charge: request.charge()?,
        })
    }

    /// Noisy grid values. The budget here is what was asked for.
    fn release(&self, randomness: &Randomness, draw: u64) -> Result<Vec<Vec<u32>>, Error> {
        let mut rng = randomness.fork("publish", draw).map_err(Error::bug)?;
        let refused = |e| Error::new(ErrorKind::Refused, e);
        let mut accountant = Accountant::new(self.request.epsilon);
        let charge = self.charge.clone();
        let prepared = laplace::prepare(&self.publication.specs(), &self.grid);
        let prepared = prepared.map_err(Error::input)?;
        let receipt = accountant.spend(charge).map_err(refused)?;
        let released = prepared.release(receipt, &mut rng).map_err(Error::bug)?;
        Ok(released.into_columns())
    }

    fn report(&self) -> PublishReport {
        PublishReport::new(self.data.rows(), &self.publication, &self.charge)
    }

    fn worth(&self, schema: &Schema) -> Result<Worth, Error> {
        let published: Vec<&str> = self.publication.names().collect();
        let columns = schema.columns().iter().enumerate();
        let kept: Vec<usize> = columns
            .filter(|(_, column)| !published.contains(&column.name()))
            .map(|(index, _)| index)
            .collect();
        // Nothing of this leaves: with a seed the same question has the same answer.
        let seeded = Randomness::seeded(0);
        let noisy = |draw| {
            let released = self.release(&seeded, draw)?;
            self.publication
                .replace(self.data, &released)
                .map_err(Error::bug)
        };
        Worth::estimate(self.data, noisy, &kept)
    }
}
