//! Oblivious transfer on one core, both parties together, through messages in memory.

use super::timing::milliseconds;
use crate::error::Error;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{Chooser, ChooserSetup, FieldBits, Sender, SenderSetup, TransferError};
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use std::fmt;
use std::hint::black_box;

const BITS: usize = 1 << 18;
const INDICES: usize = 1 << 16;
const FIELD_BITS: u32 = 6;

/// What both parties together do in a second on one core.
#[derive(Debug, Serialize)]
pub struct TransferSection {
    base_setup_ms: f64,
    one_of_two_per_second: f64,
    /// One of 64 entries of one bit.
    one_of_64_per_second: f64,
}

fn bug(error: impl fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Measures setup and both kinds of transfers.
///
/// # Errors
/// If something cannot be run, which is a defect.
pub fn measure() -> Result<TransferSection, Error> {
    let one_core = ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(bug)?;
    one_core.install(section)
}

fn section() -> Result<TransferSection, Error> {
    let (mut chooser, mut sender) = pair()?;
    let bits = milliseconds(|| {
        black_box(bits(&mut chooser, &mut sender).is_ok());
    });
    let indices = milliseconds(|| {
        black_box(indices(&mut chooser, &mut sender).is_ok());
    });
    Ok(TransferSection {
        base_setup_ms: milliseconds(|| {
            black_box(pair().is_ok());
        }),
        one_of_two_per_second: 1000.0 * BITS as f64 / bits,
        one_of_64_per_second: 1000.0 * INDICES as f64 / indices,
    })
}

fn pair() -> Result<(Chooser, Sender), Error> {
    let field = FieldBits::new(FIELD_BITS).map_err(bug)?;
    let mut rng = Randomness::from_os().fork("bench", 2).map_err(bug)?;
    let (chooser, first) = ChooserSetup::start(field, b"bench", &mut rng);
    let (sender, second) = SenderSetup::answer(field, b"bench", &first, &mut rng);
    let (chooser, third) = chooser.finish(&second, &mut rng).map_err(bug)?;
    Ok((chooser, sender.finish(&third).map_err(bug)?))
}

fn bits(chooser: &mut Chooser, sender: &mut Sender) -> Result<(), TransferError> {
    let (request, random) = chooser.extend_bits(BITS)?;
    let keys = sender.accept_bits(&request)?;
    let (corrections, chosen) = random.correct(&vec![true; BITS])?;
    keys.pads(&corrections, 16, |_, zero, one| {
        black_box((zero, one));
    })?;
    chosen.pads(16, |_, pad| {
        black_box(pad);
    })
}

fn indices(chooser: &mut Chooser, sender: &mut Sender) -> Result<(), TransferError> {
    let (request, random) = chooser.extend_indices(INDICES)?;
    let keys = sender.accept_indices(&request)?;
    let (corrections, chosen) = random.correct(&vec![33; INDICES])?;
    keys.pads(&corrections, FIELD_BITS, 1, |_, pads| {
        black_box(pads);
    })?;
    black_box(chosen.pads(1)?);
    Ok(())
}

impl fmt::Display for TransferSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "oblivious transfer, both parties on one core")?;
        writeln!(f, "  base setup     {:>9.2} ms", self.base_setup_ms)?;
        writeln!(
            f,
            "  one of two     {:>9.0} a second",
            self.one_of_two_per_second
        )?;
        write!(
            f,
            "  one of 64      {:>9.0} a second",
            self.one_of_64_per_second
        )
    }
}
