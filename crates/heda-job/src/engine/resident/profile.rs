//! One gradient with one provider, one step after the other: where time and bytes go.

use super::provider::ProviderSession;
use super::rows::Rows;
use super::shape::{BLOCK_ROWS, Shape, TreeNumbers};
use super::user::{UserSession, UserSum};
use super::{StepError, bits_of, training_field};
use crate::closing::OpenSum;
use crate::engine::Impossible;
use crate::guard::Step;
use crate::proposal::JobId;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{ChooserSetup, SenderSetup};
use heda_learn::data::Feature;
use heda_learn::loss::LossKind;
use heda_learn::resident::{CodeTable, Encoding, Resolution, Weights};
use rand_core::{CryptoRng, Rng};
use serde::Serialize;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// One step of one party.
#[derive(Debug, Clone, Serialize)]
pub struct StepCost {
    /// Which step.
    pub step: &'static str,
    /// Whether the data user does it, or the provider.
    pub data_user: bool,
    /// How long it took.
    pub took: Duration,
    /// Bytes of the message that it makes.
    pub bytes: usize,
}

/// What both parties do for one gradient over random rows, all columns hidden, each step by itself.
///
/// # Errors
/// If the engine cannot do such a job.
pub fn profile(
    features: &[Feature],
    rows: usize,
    resolution: Resolution,
    randomness: &Randomness,
) -> Result<Vec<StepCost>, Impossible> {
    let encoding = Encoding::of_features(features, resolution.value_bits());
    let encoding = encoding.map_err(Impossible::job)?;
    let field = training_field(resolution).map_err(Impossible::job)?;
    let hidden = (0..encoding.width()).collect();
    let shape = Shape::new(&encoding, resolution, hidden, field).of_rows(bits_of(rows));
    let own = random_rows(features, &encoding, rows.min(BLOCK_ROWS), randomness);
    let own = own.map_err(Impossible::job)?;
    let rng = randomness.fork("profile", 0).map_err(Impossible::job)?;
    measure(&shape, &encoding, &own, rng).map_err(Impossible::job)
}

fn random_rows(
    features: &[Feature],
    encoding: &Encoding,
    rows: usize,
    randomness: &Randomness,
) -> Result<Rows, heda_crypto::random::NoRandomness> {
    let mut rng = randomness.fork("profile rows", 0)?;
    let one = 1i32 << encoding.value_bits();
    let mut values = Vec::with_capacity(rows * encoding.width());
    for _ in 0..rows {
        for feature in features {
            match feature.columns.len() {
                1 => values.push((rng.next_u32() % (one as u32 + 1)) as i32),
                levels => {
                    let hot = rng.next_u32() as usize % levels;
                    values.extend((0..levels).map(|level| if level == hot { one } else { 0 }));
                }
            }
        }
    }
    let labels = (0..rows).map(|_| rng.next_u32() % 2).collect();
    Ok(Rows::plain(encoding, values, labels))
}

/// Adds up the steps as they are done.
struct Watch {
    costs: Vec<StepCost>,
}

impl Watch {
    fn step<T>(
        &mut self,
        step: &'static str,
        data_user: bool,
        work: impl FnOnce() -> Result<(Vec<u8>, T), StepError>,
    ) -> Result<(Vec<u8>, T), StepError> {
        let began = Instant::now();
        let (message, next) = work()?;
        self.costs.push(StepCost {
            step,
            data_user,
            took: began.elapsed(),
            bytes: message.len(),
        });
        Ok((message, next))
    }
}

fn measure(
    shape: &Shape,
    encoding: &Encoding,
    own: &Rows,
    mut rng: impl CryptoRng,
) -> Result<Vec<StepCost>, StepError> {
    let (chooser, first) = ChooserSetup::start(shape.field, b"profile", &mut rng);
    let (sender, second) = SenderSetup::answer(shape.field, b"profile", &first, &mut rng);
    let (chooser, third) = chooser.finish(&second, &mut rng)?;
    let mut provider = ProviderSession::new(sender.finish(&third)?);
    let mut user = UserSession::new(chooser);
    let table = CodeTable::new(LossKind::Logistic, shape.resolution);
    let beta = vec![0.1; encoding.width() + 1];
    let (batch, rows) = (own.batch(0..own.count(), 1), own.count());
    let mut watch = Watch { costs: Vec::new() };
    let numbers = TreeNumbers::gradient(0, 0, false);
    let (preprocess, user) = watch.step("request transfers", true, || {
        user.preprocess(shape, rows, numbers, &mut rng)
    })?;
    let (columns, provider) = watch.step("check requests, make columns", false, || {
        provider.ready(shape, batch, &preprocess, numbers, &mut rng)
    })?;
    let (question, user) = watch.step("shares of scores, question", true, || {
        let Ok(weights) = Weights::new(&beta, encoding, shape.resolution) else {
            return Err(StepError::Length {
                what: "the coefficients",
                got: beta.len(),
                expected: encoding.width() + 1,
            });
        };
        let known = Zeroizing::new(vec![weights.constant as u32; rows]);
        user.open(shape, rows, &columns)?
            .ask(shape, &weights, known)
    })?;
    let (symbols, provider) = watch.step("shares of scores, symbols", false, || {
        provider.answer(shape, &table, batch, &question, &mut rng)
    })?;
    let (choices, user) = watch.step("read symbols, choose", true, || {
        user.choose(shape, &symbols)
    })?;
    let step = Step::Gradient {
        number: 0,
        cost: None,
    };
    let mut provider_share = OpenSum::new(JobId([0; 16]), step, shape.largest.len());
    let (payload, ()) = watch.step("payload", false, || {
        let payload = provider.pay(shape, &table, batch, &choices, &mut provider_share)?;
        Ok((payload, ()))
    })?;
    let mut sum = UserSum::new(shape);
    watch.step("open payload, add up", true, || {
        user.open(shape, &payload, &mut sum)?;
        Ok((Vec::new(), ()))
    })?;
    Ok(watch.costs)
}
