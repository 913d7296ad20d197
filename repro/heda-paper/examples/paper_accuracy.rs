//! Accuracy and time of engine `paper` beside its oracle, on three bundled data sets.
//!
//! `cargo run --release --example paper_accuracy -p heda-paper -- [bcwd|crx|car|all] [splits]
//! [iterations] [key bits]` prints one CSV line a split: 80 % of the rows at three providers, all
//! columns encrypted, mini-batches of about 32 rows, one model a class. The paper's table 3
//! counts 63, 391 and 374 iterations. Randomness is seeded: nothing here is protected.

use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::gradient::GradientSource;
use heda_learn::optimise::{Method, Optimiser, Settings};
use heda_learn::oracle::score;
use heda_learn::split::shuffle;
use heda_paper::algorithm5::{ClearPaper, Column, Limits, PaperRows, PaperSource, leaks, local};
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

const PROVIDERS: usize = 3;
const BATCH_ROWS: usize = 32;

struct Choice {
    splits: u64,
    iterations: Option<u32>,
    key_bits: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| {
        arguments
            .get(at)
            .map(|text| text.parse::<u32>())
            .transpose()
    };
    let choice = Choice {
        splits: number(1)?.unwrap_or(1).into(),
        iterations: number(2)?,
        key_bits: number(3)?.unwrap_or(2048) as usize,
    };
    let chosen = match arguments.first().map(String::as_str) {
        None | Some("all") => vec![Bundle::Bcwd, Bundle::Crx, Bundle::Car],
        Some(name) => vec![name.parse()?],
    };
    eprintln!("Engine paper leaks:");
    leaks().iter().for_each(|leak| eprintln!("- {leak}"));
    println!("dataset,split,rows,columns,iterations,accuracy,oracle_accuracy,seconds,round_trips");
    for bundle in chosen {
        for split in 0..choice.splits {
            measure(bundle, split, &choice)?;
        }
    }
    Ok(())
}

fn measure(bundle: Bundle, split: u64, choice: &Choice) -> Result<(), Box<dyn Error>> {
    let (data, _) = bundle.table(Coding::Paper)?;
    let randomness = Randomness::seeded(split);
    let mut order: Vec<usize> = (0..data.rows()).collect();
    shuffle(&mut order, &mut randomness.fork("split", 0)?);
    let (training, held_out) = order.split_at(data.rows() * 4 / 5);
    let parts = parts(&data, training)?;
    let batches = training.len() / BATCH_ROWS;
    let iterations = choice.iterations.unwrap_or(match bundle {
        Bundle::Bcwd => 63,
        Bundle::Crx => 391,
        _ => 374,
    });
    let method = Method::Descent {
        rate: 10.0,
        minimum_rate: 0.0,
        decay: 0.03,
        batches,
    };
    let optimise = Settings {
        method,
        c: None,
        tolerance: 0.0,
        max_iterations: iterations,
    };
    let positives: Vec<u32> = match data.classes().len() {
        2 => vec![1],
        classes => (0..classes as u32).collect(),
    };
    let settings = local::Settings {
        batches,
        positives: positives.clone(),
        key_bits: choice.key_bits,
        limits: Limits::default(),
        record: false,
        insecure_test_keys: choice.key_bits < 2048,
    };
    let run = local::run(&parts, &settings, &randomness, |remotes| {
        // Keys and dictionaries are made once a job; what is timed is the training.
        let began = Instant::now();
        let mut asked = 0;
        let mut models = Vec::new();
        for class in 0..positives.len() {
            let mut source = PaperSource::new(remotes, class, &mut asked);
            models.push(train(&optimise, &mut source));
        }
        let trips = remotes[0].channel().traffic()["train"].round_trips;
        Ok((models, began.elapsed(), trips))
    })?;
    let (models, took, trips) = run.result;
    let models = models.into_iter().collect::<Result<Vec<_>, _>>()?;
    let oracle = positives
        .iter()
        .map(|&p| train(&optimise, &mut ClearPaper::new(&parts, p)));
    let oracle = oracle.collect::<Result<Vec<_>, _>>()?;
    println!(
        "{bundle},{split},{},{},{iterations},{:.3},{:.3},{:.2},{trips}",
        training.len(),
        data.width(),
        100.0 * accuracy(&models, &data, held_out),
        100.0 * accuracy(&oracle, &data, held_out),
        took.as_secs_f64(),
    );
    Ok(())
}

/// Rows dealt out to the providers.
fn parts(data: &Dataset, rows: &[usize]) -> Result<Vec<PaperRows>, Box<dyn Error>> {
    let part = |first: usize| {
        let own: Vec<usize> = rows
            .iter()
            .skip(first)
            .step_by(PROVIDERS)
            .copied()
            .collect();
        let values: Vec<f64> = own.iter().flat_map(|row| data.row(*row).to_vec()).collect();
        let labels = own.iter().map(|row| data.labels()[*row]).collect();
        Ok(PaperRows::new(
            vec![Column::Encrypted; data.width()],
            &values,
            labels,
        )?)
    };
    (0..PROVIDERS).map(part).collect()
}

fn train<S: GradientSource>(
    settings: &Settings,
    source: &mut S,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut optimiser = Optimiser::new(settings.clone(), source.dimension())?;
    optimiser.run(source, |_| ControlFlow::Continue(()))?;
    Ok(optimiser.beta().to_vec())
}

/// Share of rows whose class is found: by sign for two classes, by the largest score for more.
fn accuracy(models: &[Vec<f64>], data: &Dataset, rows: &[usize]) -> f64 {
    let predict = |row: usize| -> u32 {
        let scores: Vec<f64> = models
            .iter()
            .map(|beta| score(beta, data.row(row)))
            .collect();
        match scores[..] {
            [one] => u32::from(one > 0.0),
            _ => (0..scores.len())
                .max_by(|a, b| scores[*a].total_cmp(&scores[*b]))
                .unwrap_or(0) as u32,
        }
    };
    let right = rows
        .iter()
        .filter(|row| predict(**row) == data.labels()[**row])
        .count();
    right as f64 / rows.len() as f64
}
