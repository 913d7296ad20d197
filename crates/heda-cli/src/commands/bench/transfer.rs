//! Oblivious transfer on one core, both parties together, through messages in memory.

use super::timing::milliseconds;
use heda::failure::{Failure, Kind};
use heda_crypto::ot::{ChooserSetup, LookupChooser, LookupSender};
use heda_crypto::random::Randomness;
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use std::fmt;
use std::hint::black_box;

const RANDOM_TRANSFERS: usize = 1 << 20;
const LOOKUPS: usize = 100_000;
const INDEX_BITS: u32 = 8;

/// What both parties together do in a second on one core.
#[derive(Serialize)]
pub(super) struct Section {
    base_setup_ms: f64,
    random_transfers_per_second: f64,
    /// One of 256 entries of six bytes.
    lookups_per_second: f64,
}

fn bug(error: impl fmt::Display) -> Failure {
    Failure::new(Kind::Bug, error)
}

/// Measures setup, random transfers and lookups.
pub(super) fn measure() -> Result<Section, Failure> {
    let one_core = ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(bug)?;
    one_core.install(section)
}

fn section() -> Result<Section, Failure> {
    let (mut chooser, mut sender) = pair()?;
    let choices: Vec<bool> = (0..RANDOM_TRANSFERS).map(|i| i % 3 == 0).collect();
    let indices: Vec<u16> = (0..LOOKUPS).map(|i| (i % 256) as u16).collect();
    let random = milliseconds(|| {
        black_box(random_transfers(&mut chooser, &mut sender, &choices).is_ok());
    });
    let lookups = milliseconds(|| {
        black_box(lookup(&mut chooser, &mut sender, &indices).is_ok());
    });
    Ok(Section {
        base_setup_ms: milliseconds(|| {
            black_box(pair().is_ok());
        }),
        random_transfers_per_second: 1000.0 * RANDOM_TRANSFERS as f64 / random,
        lookups_per_second: 1000.0 * LOOKUPS as f64 / lookups,
    })
}

fn pair() -> Result<(LookupChooser, LookupSender), Failure> {
    let mut rng = Randomness::from_os().fork("bench", 2).map_err(bug)?;
    let (setup, first) = ChooserSetup::start(&mut rng);
    let (sender, second) = LookupSender::setup(&first, &mut rng).map_err(bug)?;
    Ok((setup.finish(&second).map_err(bug)?, sender))
}

fn random_transfers(
    chooser: &mut LookupChooser,
    sender: &mut LookupSender,
    choices: &[bool],
) -> Result<(), Failure> {
    let (request, keys) = chooser.random(choices).map_err(bug)?;
    let pairs = sender.random(&request, choices.len()).map_err(bug)?;
    black_box((keys, pairs));
    Ok(())
}

fn lookup(
    chooser: &mut LookupChooser,
    sender: &mut LookupSender,
    indices: &[u16],
) -> Result<(), Failure> {
    let (request, pending) = chooser.request(indices, INDEX_BITS).map_err(bug)?;
    let fill = |row: usize, table: &mut [u64]| {
        table
            .iter_mut()
            .zip(row as u64..)
            .for_each(|(entry, value)| *entry = value);
    };
    let answer = sender
        .answer_u48(&request, indices.len(), INDEX_BITS, fill)
        .map_err(bug)?;
    black_box(pending.finish_u48(&answer).map_err(bug)?);
    Ok(())
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "oblivious transfer, both parties on one core")?;
        writeln!(f, "  base setup       {:>9.2} ms", self.base_setup_ms)?;
        writeln!(
            f,
            "  random transfers {:>9.0} a second",
            self.random_transfers_per_second
        )?;
        write!(
            f,
            "  1-of-256 lookups {:>9.0} a second",
            self.lookups_per_second
        )
    }
}
