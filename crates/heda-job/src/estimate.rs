//! How accurate a split would be, estimated in clear on rows that the data user may use: public
//! ones, or a sample of its own. What would be published gets the noise of a real release, what
//! would be encrypted stays exact, and the oracle trains on both.

use crate::engine::Columns;
use crate::proposal::Spending;
use crate::release::{Offer, ReleaseError, overwrite};
use crate::rows::on_grid;
use heda_crypto::random::{NoRandomness, Randomness};
use heda_learn::data::{Dataset, Feature, RowsError};
use heda_learn::metrics::Confusion;
use heda_learn::optimise::TrainError;
use heda_learn::oracle::{TrainConfig, score, train, train_one_vs_rest};
use heda_learn::split::Split;

/// Splits into training and test rows that an estimate is the mean of.
const REPEATS: u64 = 5;
/// More rows than this make an estimate slower and hardly better.
const ROWS: usize = 8192;
const HELD_OUT: f64 = 0.2;
/// Standard errors beyond which a gain is no chance.
const SURE: f64 = 2.0;

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// The sample is too small.
    #[error("there are too few rows for an estimate; at least five are needed")]
    TooFewRows,
    /// What would be published cannot be.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// The rows with noise are no rows.
    #[error(transparent)]
    Data(#[from] RowsError),
    /// The oracle cannot learn from these rows.
    #[error(transparent)]
    Training(#[from] TrainError),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

/// Rows to estimate with, and what would be spent on publishing.
#[derive(Debug, Clone)]
pub struct Estimator {
    data: Dataset,
    spending: Option<Spending>,
    value_bits: u32,
    randomness: Randomness,
}

/// What publishing is worth beside leaving them out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// Accuracy when features that are not encrypted are left out.
    pub dropped: f64,
    /// And when they are published; none if nothing is to be spent on that.
    pub published: Option<f64>,
    /// Whether publishing gains more than twice its standard error from split to split.
    pub pays: bool,
}

impl Worth {
    fn of(dropped: &[f64], published: &[f64]) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let gains: Vec<f64> = published.iter().zip(dropped).map(|(p, d)| p - d).collect();
        let gain = mean(&gains);
        let squares: Vec<f64> = gains.iter().map(|g| (g - gain).powi(2)).collect();
        let freedom = gains.len().saturating_sub(1).max(1) as f64;
        let error = (squares.iter().sum::<f64>() / freedom / gains.len().max(1) as f64).sqrt();
        Self {
            dropped: mean(dropped),
            published: (!published.is_empty()).then(|| mean(published)),
            pays: gain > SURE * error,
        }
    }

    /// Accuracy of the better of the two.
    pub fn best(&self) -> f64 {
        self.published.filter(|_| self.pays).unwrap_or(self.dropped)
    }
}

impl Estimator {
    /// An estimator on these rows. Without spending, what is not encrypted is dropped.
    pub fn new(
        data: &Dataset,
        spending: Option<Spending>,
        value_bits: u32,
        randomness: Randomness,
    ) -> Self {
        let sample = Split::seeded(data.rows(), 0.0, 0, 0).train;
        let sample = &sample[..sample.len().min(ROWS)];
        Self {
            data: data.select_rows(sample),
            spending,
            value_bits,
            randomness,
        }
    }

    /// What to do with the features that are not encrypted: accuracy when they are left out and when
    /// they are published. Publishing pays if it gains more than chance does.
    pub fn worth(&self, encrypted: &[usize]) -> Result<Worth, EstimateError> {
        let without = Self {
            spending: None,
            ..self.clone()
        };
        let (mut dropped, mut published) = (Vec::new(), Vec::new());
        for repeat in 0..REPEATS {
            let split = Split::seeded(self.data.rows(), HELD_OUT, 0, repeat);
            dropped.push(without.one(&split, encrypted, repeat)?);
            if self.spending.is_some() {
                published.push(self.one(&split, encrypted, repeat)?);
            }
        }
        Ok(Worth::of(&dropped, &published))
    }

    /// Accuracy on rows that were not trained on, when these features are encrypted.
    pub fn accuracy(&self, encrypted: &[usize]) -> Result<f64, EstimateError> {
        let mut sum = 0.0;
        for repeat in 0..REPEATS {
            let split = Split::seeded(self.data.rows(), HELD_OUT, 0, repeat);
            sum += self.one(&split, encrypted, repeat)?;
        }
        Ok(sum / REPEATS as f64)
    }

    fn one(&self, split: &Split, encrypted: &[usize], repeat: u64) -> Result<f64, EstimateError> {
        let all = 0..self.data.features().len();
        let kept: Vec<usize> = match &self.spending {
            Some(_) => all.collect(),
            None => all.filter(|feature| encrypted.contains(feature)).collect(),
        };
        let data = self.data.select_features(&kept);
        let published: Vec<bool> = kept.iter().map(|f| !encrypted.contains(f)).collect();
        let test = data.select_rows(&split.test);
        let Some(spending) = self.spending.as_ref().filter(|_| published.contains(&true)) else {
            return held_out_accuracy(&data.select_rows(&split.train), &test);
        };
        let training = data.select_rows(&split.train);
        let mut grid = on_grid(training.values(), self.value_bits);
        self.publish(&data, &published, spending, &mut grid, repeat)?;
        let step = f64::from(1u32 << self.value_bits);
        let noisy = Dataset::new(
            training.features().to_vec(),
            grid.iter().map(|&value| f64::from(value) / step).collect(),
            training.labels().to_vec(),
            training.classes().to_vec(),
        );
        held_out_accuracy(&noisy?, &test)
    }

    fn publish(
        &self,
        data: &Dataset,
        published: &[bool],
        spending: &Spending,
        grid: &mut [u32],
        repeat: u64,
    ) -> Result<(), EstimateError> {
        let open = data.features().iter().zip(published);
        let open: Vec<&Feature> = open.filter(|(_, open)| **open).map(|(f, _)| f).collect();
        let offer = Offer::new(open, grid, data.width(), self.value_bits, spending)?;
        let mut rng = self.randomness.fork("estimate", repeat)?;
        // Nothing leaves: the noise is drawn to see what it does.
        let noisy = offer.preview(grid.len() / data.width(), &mut rng)?;
        let columns = Columns::new(data.features(), published).open;
        overwrite(grid, data.width(), &columns, &noisy);
        Ok(())
    }
}

fn held_out_accuracy(training: &Dataset, test: &Dataset) -> Result<f64, EstimateError> {
    let config = TrainConfig::logistic();
    let betas: Vec<Vec<f64>> = match training.classes().len() {
        2 => vec![train(training, 1, &config)?.beta],
        _ => train_one_vs_rest(training, &config)?
            .into_iter()
            .map(|fit| fit.beta)
            .collect(),
    };
    let predict = |row: &[f64]| match betas.as_slice() {
        [beta] => u32::from(score(beta, row) > 0.0),
        many => {
            let scores = many.iter().map(|beta| score(beta, row)).enumerate();
            let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
            best.map_or(0, |(class, _)| class as u32)
        }
    };
    let labels = test.labels().iter().enumerate();
    let pairs = labels.map(|(row, &label)| (label, predict(test.row(row))));
    Confusion::new(test.classes().len(), pairs)
        .accuracy()
        .ok_or(EstimateError::TooFewRows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_learn::bundled::{Bundle, Coding};

    fn estimator(spending: Option<&str>) -> Estimator {
        let (data, _) = Bundle::Bcwd.table(Coding::Paper).unwrap();
        let spending = spending.map(|e| Spending::Total(e.parse().unwrap()));
        Estimator::new(&data, spending, 8, Randomness::seeded(4))
    }

    #[test]
    fn encrypting_everything_is_the_oracle_and_noise_costs() {
        let all: Vec<usize> = (0..9).collect();
        let full = estimator(Some("1")).accuracy(&all).unwrap();
        assert_eq!(full, estimator(None).accuracy(&all).unwrap());
        assert!(full > 0.94, "{full}");
        let noisy = estimator(Some("0.01")).accuracy(&[]).unwrap();
        let mild = estimator(Some("100")).accuracy(&[]).unwrap();
        assert!(noisy < 0.8 && mild > 0.93, "{noisy} {mild}");
    }

    #[test]
    fn publishing_pays_only_where_it_gains_more_than_chance() {
        // One feature encrypted: with hardly any noise the others help, with much they do not.
        let mild = estimator(Some("1000")).worth(&[0]).unwrap();
        assert!(mild.pays && mild.best() > mild.dropped, "{mild:?}");
        let noisy = estimator(Some("0.01")).worth(&[0]).unwrap();
        assert!(!noisy.pays && noisy.best() == noisy.dropped, "{noisy:?}");
        // Nothing to be spent, nothing to be published.
        let none = estimator(None).worth(&[0]).unwrap();
        assert_eq!((none.published, none.pays), (None, false));
        assert_eq!(none.dropped, mild.dropped);
        // A gain that is there in every split is no chance, however small.
        let sure = Worth::of(&[0.5, 0.6, 0.7], &[0.51, 0.61, 0.71]);
        assert!(sure.pays);
        let chance = Worth::of(&[0.5, 0.6, 0.7], &[0.55, 0.57, 0.71]);
        assert!(!chance.pays);
    }

    #[test]
    fn dropping_leaves_what_is_encrypted() {
        let one = estimator(None).accuracy(&[1]).unwrap();
        assert!((0.7..0.95).contains(&one), "{one}");
        // Nothing left: the more frequent class, 65.5 % of all rows.
        let none = estimator(None).accuracy(&[]).unwrap();
        assert!((0.6..0.7).contains(&none), "{none}");
    }
}
