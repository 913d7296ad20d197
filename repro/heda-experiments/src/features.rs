//! The paper's figure 6: how good are the six ways to score features?
//!
//! The features are ranked on the training rows. Then the lowest-ranked one is removed, again and
//! again until one is left, and the clear-text oracle is trained and tested each time. A good
//! ranking keeps the accuracy high for long. Random 80/20 splits, paper coding.

use super::clear::oracle_accuracy;
use super::sheet::{Rows, Sheet, SheetLayout, load};
use super::{Options, data_set};
use crate::plot::{Axis, Content, Figure, Panel, Point, Series};
use heda::Error;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::score::{Scorable, Scores, ScoringMethod};
use heda_learn::split::Split;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "figure6",
    columns: &[
        "dataset",
        "rows",
        "split",
        "method",
        "features_removed",
        "features_left",
        "removed_last",
        "accuracy",
    ],
};

pub(super) const DATASETS: [Bundle; 2] = [Bundle::Adult, Bundle::Car];
/// Share of rows to test on.
const HELD_OUT: f64 = 0.2;
const QUICK_ROWS: usize = 4000;

/// Measures what is missing and draws the figure.
pub(super) fn run(options: &Options) -> Result<(), Error> {
    let splits = if options.quick { 2 } else { 10 };
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    for bundle in DATASETS {
        let most = options.quick.then_some(QUICK_ROWS);
        let data = data_set(bundle, Coding::Paper, most, options.seed)?;
        for split in 0..splits {
            let key = [
                bundle.to_string(),
                data.rows().to_string(),
                split.to_string(),
            ];
            if sheet.has(options.seed, &key) {
                continue;
            }
            heda::note(format_args!("heda: {}: {}", LAYOUT.name, key.join(", ")));
            let load = load();
            let removals = one_split(&data, options.seed, split)?;
            sheet.add(options.seed, &load, rows(&data, &key, &removals))?;
        }
    }
    draw(&options.out)
}

/// One method on one split: what was removed before each step, and the accuracy after it.
struct Removal {
    order: Vec<usize>,
    accuracies: Vec<f64>,
}

/// A row a method and step, from no feature removed to all but one removed.
fn rows(data: &Dataset, key: &[String], removals: &[Removal]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (method, removal) in ScoringMethod::ALL.into_iter().zip(removals) {
        let features = removal.order.len();
        for (removed, accuracy) in removal.accuracies.iter().enumerate() {
            let last = match removed {
                0 => "-",
                _ => &data.features()[removal.order[features - removed]].name,
            };
            let mut row = key.to_vec();
            row.extend([
                method.name().to_owned(),
                removed.to_string(),
                (features - removed).to_string(),
                last.to_owned(),
                format!("{accuracy:.6}"),
            ]);
            rows.push(row);
        }
    }
    rows
}

/// All methods on one split. Prefixes that several methods share are trained once.
fn one_split(data: &Dataset, seed: u64, split: u64) -> Result<Vec<Removal>, Error> {
    let split = Split::seeded(data.rows(), HELD_OUT, seed, split);
    let (train, test) = (
        data.select_rows(&split.train),
        data.select_rows(&split.test),
    );
    let scorable = Scorable::new(&train).map_err(Error::input)?;
    let orders = ScoringMethod::ALL.map(|method| {
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
        .map(|features| {
            let accuracy = oracle_accuracy(&train, &test, features.iter().copied())?;
            Ok((features, accuracy))
        })
        .collect::<Result<_, Error>>()?;
    let removal = |order: &Vec<usize>| Removal {
        order: order.clone(),
        accuracies: (0..order.len())
            .map(|removed| accuracies[&kept(order, removed)])
            .collect(),
    };
    Ok(orders.iter().map(removal).collect())
}

/// The figure, from the file alone.
pub(super) fn draw(folder: &Path) -> Result<(), Error> {
    let sheet = Sheet::open(folder, &LAYOUT)?;
    figure(&sheet.rows()).write(folder, LAYOUT.name)
}

fn figure(rows: &Rows<'_>) -> Figure {
    let series = |rows: &Rows<'_>, method: ScoringMethod| {
        let rows = rows.with("method", method.name());
        let point = |removed: &str| {
            let share = rows.with("features_removed", removed).mean("accuracy")?;
            Some(Point {
                x: removed.parse().ok()?,
                y: 100.0 * share,
                spread: 0.0,
            })
        };
        let removed = rows.distinct("features_removed");
        Series {
            name: method.title().into(),
            points: removed.into_iter().filter_map(point).collect(),
        }
    };
    let panel = |(letter, bundle): (char, Bundle)| {
        let rows = rows.with("dataset", bundle.name());
        Panel {
            title: format!("({letter}) {}", bundle.title()),
            x: Axis::linear("features removed, lowest score first"),
            y: Axis::linear("accuracy, %"),
            content: Content::Lines(
                ScoringMethod::ALL
                    .map(|method| series(&rows, method))
                    .to_vec(),
            ),
            dodge: 4,
        }
    };
    let splits = rows.distinct("split").len();
    Figure {
        title: format!("Figure 6: accuracy as features are removed, mean of {splits} splits"),
        panels: ['a', 'b'].into_iter().zip(DATASETS).map(panel).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_features_of_car_gives_a_curve_a_method() {
        let data = data_set(Bundle::Car, Coding::Paper, None, 1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &LAYOUT).unwrap();
        for split in 0..2u64 {
            let key = ["car".to_owned(), "1728".to_owned(), split.to_string()];
            let removals = one_split(&data, 1, split).unwrap();
            sheet.add(1, "-", rows(&data, &key, &removals)).unwrap();
        }
        assert_eq!(sheet.rows().len(), 2 * 6 * 6);
        let all = sheet.rows().with("features_removed", "0");
        let first = all.with("split", "0");
        let accuracies = first.numbers("accuracy");
        assert!(accuracies.iter().all(|accuracy| *accuracy == accuracies[0]));
        assert_eq!(all.distinct("removed_last"), ["-"]);
        assert_eq!(
            sheet
                .rows()
                .with("features_removed", "5")
                .distinct("features_left"),
            ["1"]
        );
        let Content::Lines(lines) = &figure(&sheet.rows()).panels[1].content else {
            panic!("no lines");
        };
        assert!(lines.len() == 6 && lines.iter().all(|line| line.points.len() == 6));
    }
}
