//! All parties of engine `paper` in one process, for tests and experiments. The parties are
//! threads that share nothing but channels.

use super::error::{PaperDefect, PaperError};
use super::provider::{PaperProvider, ProviderKeys};
use super::rows::{PaperRows, Shape};
use super::user::{PaperLink, PaperRemote};
use super::{Limits, Plan};
use heda_blocks::channel::{Channel, Recorded};
use heda_crypto::random::Randomness;
use std::time::Duration;

/// How long a party waits for another one before it gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// What all providers have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Batches an epoch.
    pub batches: usize,
    /// Classes to be told from the rest, one model each.
    pub positives: Vec<u32>,
    /// Bits of all keys.
    pub key_bits: usize,
    /// What the coefficients may reach.
    pub limits: Limits,
    /// Whether everything that arrives is kept.
    pub record: bool,
    /// Whether keys may be too short to protect anything. For tests only.
    #[doc(hidden)]
    pub insecure_test_keys: bool,
}

impl Settings {
    /// The shape of one provider's part.
    pub fn shape(&self, rows: &PaperRows) -> Shape {
        Shape {
            columns: rows.columns().to_vec(),
            rows: rows.len(),
            batches: self.batches,
            positives: self.positives.clone(),
            key_bits: self.key_bits,
            limits: self.limits,
            insecure_test_keys: self.insecure_test_keys,
        }
    }
}

/// What is left when all parties are done.
#[derive(Debug)]
pub struct Finished<T> {
    /// What the work returned.
    pub result: T,
    /// What each provider received, if that was recorded.
    pub views: Vec<Vec<Recorded>>,
}

/// Starts a provider for each part and lets `work` ask them.
///
/// Every part is planned before a key is made.
pub fn run<T>(
    parts: &[PaperRows],
    settings: &Settings,
    randomness: &Randomness,
    work: impl FnOnce(&mut [PaperLink]) -> Result<T, PaperError>,
) -> Result<Finished<T>, PaperError> {
    let shapes: Vec<Shape> = parts.iter().map(|rows| settings.shape(rows)).collect();
    shapes
        .iter()
        .try_for_each(|shape| Plan::new(shape).map(drop))?;
    let first = shapes.first().ok_or(PaperDefect::NoProviders)?;
    let user = randomness.party("user");
    let own = PaperRemote::user_key(first, &mut user.fork("paper keys", 0)?)?;
    std::thread::scope(|scope| {
        let mut remotes = Vec::with_capacity(parts.len());
        let mut threads = Vec::with_capacity(parts.len());
        let mut ends = Vec::with_capacity(parts.len());
        for (index, (rows, shape)) in parts.iter().zip(&shapes).enumerate() {
            let (mut users_end, mut providers_end) = Channel::pair(PATIENCE);
            if settings.record {
                users_end.record();
                providers_end.record();
            }
            let randomness = randomness.party(&format!("provider-{}", index + 1));
            let serve = move || serve(providers_end, shape.clone(), rows.clone(), randomness);
            threads.push(scope.spawn(serve));
            ends.push(users_end);
        }
        for (index, (end, (rows, shape))) in
            ends.into_iter().zip(parts.iter().zip(&shapes)).enumerate()
        {
            let randomness = user.party(&format!("for provider-{}", index + 1));
            let (shape, own) = (shape.clone(), own.clone());
            remotes.push(PaperLink::set_up(
                end,
                shape,
                own,
                rows.published(),
                randomness,
            )?);
        }
        let result = work(&mut remotes)?;
        remotes.iter_mut().try_for_each(PaperLink::finish)?;
        let mut views = Vec::with_capacity(threads.len());
        for thread in threads {
            views.push(thread.join().map_err(|_| PaperDefect::Panicked)??);
        }
        Ok(Finished { result, views })
    })
}

fn serve(
    mut channel: Channel,
    shape: Shape,
    rows: PaperRows,
    randomness: Randomness,
) -> Result<Vec<Recorded>, PaperError> {
    let keys = ProviderKeys::generate(&shape, &mut randomness.fork("paper keys", 0)?)?;
    let provider = PaperProvider::set_up(&mut channel, shape, rows, keys, randomness)?;
    provider.serve(&mut channel)?;
    Ok(channel.transcript().to_vec())
}
