//! The paper's figure 6: how good are the six ways to score features?
//!
//! The features are ranked on the training rows. Then the lowest-ranked one is removed, again and
//! again until one is left, and the clear-text oracle is trained and tested each time. A good
//! ranking keeps the accuracy high for long. Mean and standard deviation over random 80/20 splits,
//! paper coding.

use crate::failure::Failure;
use crate::output::{print_text, write_whole};
use crate::plot::{Axis, Content, Figure, Panel, Point, Series};
use clap::Args;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::metrics::{Confusion, Summary};
use heda_learn::oracle::{self, TrainConfig};
use heda_learn::score::{Method, Scorable, Scores};
use heda_learn::split::Split;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

/// Figure 6.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Folder for figure6.csv, figure6.svg and figure6.png.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Two splits instead of ten, and 4,000 rows of Adult: a look, not a result.
    #[arg(long)]
    quick: bool,
    /// Fixes the splits and the forest.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const DATASETS: [Bundle; 2] = [Bundle::Adult, Bundle::Car];
/// Share of rows to test on.
const HELD_OUT: f64 = 0.2;
const QUICK_ROWS: usize = 4000;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let splits = if arguments.quick { 2 } else { 10 };
    let mut curves = Vec::new();
    for bundle in DATASETS {
        let (mut data, _) = bundle.table(Coding::Paper).map_err(Failure::input)?;
        if arguments.quick && data.rows() > QUICK_ROWS {
            let share = QUICK_ROWS as f64 / data.rows() as f64;
            let few = Split::seeded(data.rows(), share, arguments.seed, u64::MAX);
            data = data.select_rows(&few.test);
        }
        let mut runs = Vec::with_capacity(splits);
        for split in 0..splits as u64 {
            eprintln!("heda: {bundle}, split {} of {splits}", split + 1);
            runs.push(one_split(&data, arguments.seed, split)?);
        }
        curves.extend(average(bundle, &data, &runs));
    }
    let out = &arguments.out;
    write_whole(&out.join("figure6.csv"), csv(&curves).as_bytes())?;
    figure(&curves, splits).write(out, "figure6")?;
    print_text(&summary(&curves, splits, arguments.quick))?;
    print_text(&format!(
        "written: {}",
        out.join("figure6.{csv,svg,png}").display()
    ))
}

/// One method on one split: what was removed before each step, and the accuracy after it.
#[derive(Clone)]
struct Removal {
    order: Vec<usize>,
    accuracies: Vec<f64>,
}

/// Accuracy against the number of removed features.
struct Curve {
    bundle: Bundle,
    method: Method,
    /// From no feature removed to all but one removed.
    steps: Vec<Step>,
}

struct Step {
    /// The feature that most splits removed in this step.
    removed: String,
    mean: f64,
    deviation: f64,
    splits: usize,
}

/// All methods on one split. Prefixes that several methods share are trained once.
fn one_split(data: &Dataset, seed: u64, split: u64) -> Result<Vec<Removal>, Failure> {
    let split = Split::seeded(data.rows(), HELD_OUT, seed, split);
    let (train, test) = (
        data.select_rows(&split.train),
        data.select_rows(&split.test),
    );
    let scorable = Scorable::new(&train).map_err(Failure::input)?;
    let orders = Method::ALL.map(|method| {
        let ranking = Scores::of(&scorable, method, seed).ranking();
        ranking.order().to_vec()
    });
    let kept = |order: &Vec<usize>, removed: usize| -> BTreeSet<usize> {
        order[..order.len() - removed].iter().copied().collect()
    };
    let wanted: BTreeSet<BTreeSet<usize>> = orders
        .iter()
        .flat_map(|order| (0..order.len()).map(|removed| kept(order, removed)))
        .collect();
    let accuracies: BTreeMap<BTreeSet<usize>, f64> = wanted
        .into_par_iter()
        .map(|features| accuracy(&train, &test, &features).map(|accuracy| (features, accuracy)))
        .collect::<Result<_, _>>()?;
    let removal = |order: &Vec<usize>| Removal {
        order: order.clone(),
        accuracies: (0..order.len())
            .map(|removed| accuracies[&kept(order, removed)])
            .collect(),
    };
    Ok(orders.iter().map(removal).collect())
}

/// Share of test rows that the oracle gets right with these features only.
fn accuracy(train: &Dataset, test: &Dataset, features: &BTreeSet<usize>) -> Result<f64, Failure> {
    let chosen: Vec<usize> = features.iter().copied().collect();
    let (train, test) = (
        train.select_features(&chosen),
        test.select_features(&chosen),
    );
    let config = TrainConfig::logistic(train.rows());
    let fit = oracle::train(&train, 1, &config).map_err(Failure::input)?;
    let pairs = (0..test.rows()).map(|row| {
        let positive = oracle::score(&fit.beta, test.row(row)) > 0.0;
        (test.labels()[row], u32::from(positive))
    });
    Confusion::new(test.classes().len(), pairs)
        .accuracy()
        .ok_or_else(|| Failure::input("no rows are held out"))
}

fn average(bundle: Bundle, data: &Dataset, runs: &[Vec<Removal>]) -> Vec<Curve> {
    let curve = |(index, method): (usize, Method)| Curve {
        bundle,
        method,
        steps: (0..data.features().len())
            .map(|removed| {
                let of_method: Vec<&Removal> = runs.iter().map(|run| &run[index]).collect();
                step(data, &of_method, removed)
            })
            .collect(),
    };
    Method::ALL.into_iter().enumerate().map(curve).collect()
}

fn step(data: &Dataset, runs: &[&Removal], removed: usize) -> Step {
    let values: Vec<f64> = runs.iter().map(|run| run.accuracies[removed]).collect();
    let summary = Summary::new(&values);
    Step {
        removed: most_often_removed(data, runs, removed),
        mean: summary.map_or(f64::NAN, |summary| summary.mean),
        deviation: summary.map_or(f64::NAN, |summary| summary.deviation),
        splits: values.len(),
    }
}

fn most_often_removed(data: &Dataset, runs: &[&Removal], removed: usize) -> String {
    if removed == 0 {
        return String::new();
    }
    let mut times = vec![0; data.features().len()];
    for run in runs {
        times[run.order[run.order.len() - removed]] += 1;
    }
    let most = (0..times.len()).rev().max_by_key(|&feature| times[feature]);
    most.map_or(String::new(), |feature| {
        data.features()[feature].name.clone()
    })
}

fn csv(curves: &[Curve]) -> String {
    let header = "dataset,method,features_removed,features_left,removed_most_often,accuracy_mean,accuracy_sd,splits\n";
    let mut text = String::from(header);
    for curve in curves {
        for (removed, step) in curve.steps.iter().enumerate() {
            let left = curve.steps.len() - removed;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{},{},{removed},{left},{},{:.6},{:.6},{}",
                curve.bundle, curve.method, step.removed, step.mean, step.deviation, step.splits
            );
        }
    }
    text
}

fn figure(curves: &[Curve], splits: usize) -> Figure {
    let series = |curve: &Curve| Series {
        name: curve.method.title().into(),
        points: (0..)
            .zip(&curve.steps)
            .map(|(removed, step)| Point {
                x: f64::from(removed),
                y: 100.0 * step.mean,
                spread: 0.0,
            })
            .collect(),
    };
    let panel = |(letter, bundle): (char, Bundle)| Panel {
        title: format!("({letter}) {}", bundle.title()),
        x: Axis::linear("features removed, lowest score first"),
        y: Axis::linear("accuracy, %"),
        content: Content::Lines(
            curves
                .iter()
                .filter(|curve| curve.bundle == bundle)
                .map(series)
                .collect(),
        ),
        dodge: 4,
    };
    Figure {
        title: format!("Accuracy as features are removed, mean of {splits} splits"),
        panels: ['a', 'b'].into_iter().zip(DATASETS).map(panel).collect(),
    }
}

/// The curve in one number: its mean accuracy over all steps.
fn summary(curves: &[Curve], splits: usize, quick: bool) -> String {
    let mut text = format!("accuracy in %, mean of {splits} splits");
    text.push_str(if quick {
        " (quick: not a result)\n"
    } else {
        "\n"
    });
    text.push_str("dataset  method    all features  half of them  one  mean over all steps\n");
    for curve in curves {
        let of = |removed: usize| 100.0 * curve.steps[removed].mean;
        let last = curve.steps.len() - 1;
        let mean = (0..=last).map(of).sum::<f64>() / (last + 1) as f64;
        let _ = writeln!(
            text,
            "{:<8} {:<9} {:>12.2} {:>13.2} {:>6.2} {:>12.2}",
            curve.bundle.name(),
            curve.method.name(),
            of(0),
            of(curve.steps.len() / 2),
            of(last),
            mean
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_features_of_car_gives_a_curve_a_method() {
        let (data, _) = Bundle::Car.table(Coding::Paper).unwrap();
        let runs = vec![
            one_split(&data, 1, 0).unwrap(),
            one_split(&data, 1, 1).unwrap(),
        ];
        let curves = average(Bundle::Car, &data, &runs);
        assert_eq!(curves.len(), 6);
        for curve in &curves {
            assert_eq!(curve.steps.len(), 6);
            assert_eq!(curve.steps[0].mean, curves[0].steps[0].mean);
            assert!(curve.steps[0].removed.is_empty() && !curve.steps[5].removed.is_empty());
        }
        assert_eq!(csv(&curves).lines().count(), 1 + 6 * 6);
    }
}
