//! How the time of one gradient of engine `paper` grows with encrypted columns and with rows.
//!
//! `cargo run --release --example paper_growth -p heda-train -- [key bits]` prints CSV. Values are
//! random two-decimal numbers; randomness is seeded: nothing here is protected.

use heda_crypto::random::Randomness;
use heda_learn::gradient::{Batch, GradientSource};
use heda_train::paper::{Column, Limits, PaperRows, PaperSource, local};
use rand_core::Rng;
use std::error::Error;
use std::time::Instant;

/// Columns in all; those that are not encrypted are published.
const WIDTH: usize = 16;
const REPEATS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let key_bits = std::env::args()
        .nth(1)
        .map(|text| text.parse())
        .transpose()?
        .unwrap_or(2048);
    println!("iota,rows,setup_seconds,gradient_seconds,user_waited_seconds,bytes_per_gradient");
    for iota in [0, 4, 8, 12, 16] {
        measure(iota, 32, key_bits)?;
    }
    for rows in [16, 64, 128] {
        measure(8, rows, key_bits)?;
    }
    Ok(())
}

fn measure(iota: usize, rows: usize, key_bits: usize) -> Result<(), Box<dyn Error>> {
    let randomness = Randomness::seeded(1);
    let mut columns = vec![Column::Encrypted; iota];
    columns.resize(WIDTH, Column::Published { fraction_bits: 7 });
    let mut rng = randomness.fork("rows", 0)?;
    let values: Vec<f64> = (0..rows * WIDTH)
        .map(|_| f64::from(rng.next_u32() % 101) / 100.0)
        .collect();
    let labels = (0..rows as u32).map(|row| row % 2).collect();
    let parts = [PaperRows::new(columns, &values, labels)?];
    let settings = local::Settings {
        batches: 1,
        positives: vec![1],
        key_bits,
        limits: Limits::default(),
        record: false,
        insecure_test_keys: key_bits < 2048,
    };
    let began = Instant::now();
    local::run(&parts, &settings, &randomness, |remotes| {
        let setup = began.elapsed();
        let beta: Vec<f64> = (0..=WIDTH).map(|j| 2.3 - 0.31 * j as f64).collect();
        let mut asked = 0;
        // The first gradient fills tables of powers that every later one uses.
        PaperSource::new(remotes, 0, &mut asked).gradient(&beta, Batch::FULL)?;
        let before = remotes[0].channel().traffic()["train"];
        let began = Instant::now();
        for _ in 0..REPEATS {
            PaperSource::new(remotes, 0, &mut asked).gradient(&beta, Batch::FULL)?;
        }
        let each = began.elapsed() / REPEATS;
        let after = remotes[0].channel().traffic()["train"];
        let waited = (after.waited - before.waited) / REPEATS;
        let bytes =
            after.bytes_sent + after.bytes_received - before.bytes_sent - before.bytes_received;
        println!(
            "{iota},{rows},{:.2},{:.4},{:.4},{}",
            setup.as_secs_f64(),
            each.as_secs_f64(),
            waited.as_secs_f64(),
            bytes / u64::from(REPEATS)
        );
        Ok(())
    })?;
    Ok(())
}
