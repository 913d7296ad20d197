//! Controls of a job on a numeric label: what somebody with all rows under one roof would get.

use super::joined;
use crate::job::Job;
use crate::summary::{Controls, NumberControls};
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::model::Errors;
use heda_learn::optimise::Settings;
use heda_learn::oracle::{TrainConfig, score, train};
use heda_learn::schema::LabelNumber;
use heda_learn::target;

pub(super) fn controls(
    number: &LabelNumber,
    job: &Job,
    training: &[Dataset],
    held_out: &[Dataset],
    encrypted: &[usize],
) -> Controls {
    let (Some(training), Some(held_out)) = (joined(training), joined(held_out)) else {
        return Controls::default();
    };
    let all: Vec<usize> = (0..training.features().len()).collect();
    let mut kept = encrypted.to_vec();
    kept.sort_unstable();
    let clear = |features: &[usize]| clear(number, job, &training, &held_out, features);
    let plain = clear(&all);
    let labels = training.labels().iter().map(|label| target::place(*label));
    let mean = labels.sum::<f64>() / training.rows().max(1) as f64;
    Controls {
        number: Some(NumberControls {
            plain,
            dropped: match kept.len() {
                0 => None,
                _ if kept == all => plain,
                _ => clear(&kept),
            },
            mean: errors(number, &held_out, |_| mean),
        }),
        ..Controls::default()
    }
}

/// Errors of predictions, each as a place between the bounds.
fn errors(number: &LabelNumber, rows: &Dataset, predict: impl Fn(&[f64]) -> f64) -> Option<Errors> {
    let unit = |place: f64| number.bounds.lower() + number.bounds.range() * place;
    let labels = rows.labels().iter().enumerate();
    let pairs = labels.map(|(row, label)| {
        let predicted = predict(rows.row(row));
        (unit(predicted), unit(target::place(*label)))
    });
    Errors::of(&pairs.collect::<Vec<_>>())
}

/// Training in clear on some features.
fn clear(
    number: &LabelNumber,
    job: &Job,
    training: &Dataset,
    held_out: &Dataset,
    features: &[usize],
) -> Option<Errors> {
    let training = training.select_features(features);
    let held_out = held_out.select_features(features);
    let config = TrainConfig {
        loss: LossKind::Ridge,
        settings: Settings {
            c: job.penalty(),
            ..Settings::lbfgs()
        },
    };
    let fit = train(&training, 0, &config).ok()?;
    errors(number, &held_out, |row| score(&fit.beta, row))
}
