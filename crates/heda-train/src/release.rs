//! What a provider publishes of its rows: price, noise, and how both sides read it (J6).

use crate::codec::Malformed;
use crate::proposal::Spending;
use crate::rows::{domain, release_from_bytes, release_to_bytes, to_publish};
use heda_dp::account::{Charge, ColumnCharge, Mechanism, Receipt};
use heda_dp::auto::automatic_epsilon;
use heda_dp::epsilon::Epsilon;
use heda_dp::points::Points;
use heda_dp::{budget, laplace};
use heda_learn::data::Feature;
use rand_core::CryptoRng;

/// Columns with a price: nothing leaves before it is paid.
pub(crate) struct Offer<'a> {
    features: Vec<&'a Feature>,
    values: Vec<Vec<u32>>,
    charge: Charge,
    bits: u32,
}

impl<'a> Offer<'a> {
    /// These features of a grid of so many columns, at this price.
    pub(crate) fn new(
        features: Vec<&'a Feature>,
        grid: &[u32],
        width: usize,
        bits: u32,
        spending: &Spending,
    ) -> Result<Self, String> {
        let columns = features.iter().map(|feature| &feature.columns);
        let values: Vec<Vec<u32>> = columns
            .map(|columns| to_publish(grid, width, columns))
            .collect();
        let charge = charge(spending, &features, &values)?;
        Ok(Self {
            features,
            values,
            charge,
            bits,
        })
    }

    /// The price, column by column.
    pub(crate) fn charge(&self) -> &Charge {
        &self.charge
    }

    fn prepare(&self) -> Result<laplace::Prepared<'_>, String> {
        let features = self.features.iter();
        let specs: Vec<_> = features.map(|feature| domain(feature, self.bits)).collect();
        laplace::prepare(&specs, &self.values).map_err(|e| e.to_string())
    }

    /// The noisy columns on the wire.
    pub(crate) fn release<R: CryptoRng>(
        &self,
        receipt: Receipt,
        rng: &mut R,
    ) -> Result<Vec<u8>, String> {
        let released = self.prepare()?.release(receipt, rng);
        let released = released.map_err(|e| e.to_string())?;
        Ok(release_to_bytes(released.columns()))
    }

    /// What the release would look like, on the grid. Nothing is paid and nothing may leave.
    pub(crate) fn preview<R: CryptoRng>(
        &self,
        rows: usize,
        rng: &mut R,
    ) -> Result<Vec<u32>, String> {
        let previewed = self.prepare()?.preview(&self.charge, rng);
        let previewed = previewed.map_err(|e| e.to_string())?;
        let bytes = release_to_bytes(previewed.columns());
        self.read(&bytes, rows).map_err(|e| e.to_string())
    }

    /// Reads a release of this offer: for every row the published columns, on the grid.
    pub(crate) fn read(&self, bytes: &[u8], rows: usize) -> Result<Vec<u32>, Malformed> {
        release_from_bytes(bytes, &self.features, rows, self.bits)
    }
}

/// Puts what was published in place of what it was made from.
pub(crate) fn overwrite(grid: &mut [u32], width: usize, columns: &[usize], noisy: &[u32]) {
    for (row, cells) in grid.chunks_exact_mut(width).enumerate() {
        let released = &noisy[row * columns.len()..][..columns.len()];
        for (&column, &value) in columns.iter().zip(released) {
            cells[column] = value;
        }
    }
}

/// The paper's Algorithm 1 on the values to be published. A column for which it gives no ε (all
/// values distinct or all equal) is an error that names the column by number.
fn automatic(values: &[Vec<u32>]) -> Result<Vec<Epsilon>, String> {
    let rows = values.first().map_or(0, Vec::len);
    let by_row = (0..rows).flat_map(|row| values.iter().map(move |column| f64::from(column[row])));
    let points = Points::new(values.len(), by_row.collect()).map_err(|e| e.to_string())?;
    Ok(automatic_epsilon(&points)
        .map_err(|e| e.to_string())?
        .columns()
        .to_vec())
}

/// ε column by column.
fn charge(
    spending: &Spending,
    features: &[&Feature],
    values: &[Vec<u32>],
) -> Result<Charge, String> {
    let epsilons = match spending {
        Spending::Total(total) => {
            budget::split_equally(*total, features.len()).map_err(|e| e.to_string())?
        }
        Spending::Automatic => automatic(values)?,
    };
    let columns = features
        .iter()
        .zip(epsilons)
        .map(|(feature, epsilon)| ColumnCharge {
            name: feature.name.clone(),
            epsilon,
        });
    Charge::new(Mechanism::Laplace, columns.collect()).map_err(|e| e.to_string())
}
