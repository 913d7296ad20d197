//! The paper's figures 4 and 5: what a release loses (sum of squared errors) and what it gives away
//! (record linkage), over the cluster size k, for the paper's mechanism, IMDAV and standard noise.
//!
//! Paper coding, values scaled to [0, 1], ε by the paper's automatic rule, parameters read from the
//! data as the paper does. Standard noise knows no k: its line is flat.

use super::sheet::{Rows, Sheet, SheetLayout};
use super::{Options, data_set};
use crate::plot::{Axis, Content, Figure, Panel, Point, Scale, Series};
use heda::Error;
use heda_crypto::random::Randomness;
use heda_dp::account::{Accountant, Charge, ColumnCharge, Mechanism, Receipt, Spend};
use heda_dp::epsilon::Epsilon;
use heda_learn::bundled::{Bundle, Coding};
use heda_mechanisms::auto::automatic_epsilon;
use heda_mechanisms::centroid::{Prepared, Reference};
use heda_mechanisms::cluster::default_size;
use heda_mechanisms::points::Points;
use heda_mechanisms::{ima, imdav, measure, standard};
use std::path::Path;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Figure 4.
    SquaredErrors,
    /// Figure 5.
    Linkage,
}

pub(super) static SSE: SheetLayout = SheetLayout {
    name: "figure4",
    columns: &["dataset", "rows", "mechanism", "k", "repeat", "sse"],
};
pub(super) static LINKAGE: SheetLayout = SheetLayout {
    name: "figure5",
    columns: &["dataset", "rows", "mechanism", "k", "repeat", "linkage"],
};

/// Cluster sizes as multiples of √(m/2), in quarters.
const QUARTERS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
const QUICK_ROWS: usize = 2000;

impl Measure {
    pub(super) fn layout(self) -> &'static SheetLayout {
        match self {
            Self::SquaredErrors => &SSE,
            Self::Linkage => &LINKAGE,
        }
    }

    fn of(self, original: &Points, released: &Points) -> Result<f64, Error> {
        match self {
            Self::SquaredErrors => measure::squared_errors(original, released),
            Self::Linkage => measure::record_linkage(original, released),
        }
        .map_err(bug)
    }
}

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Measures what is missing and draws the figure.
pub(super) fn run(options: &Options, measure: Measure) -> Result<(), Error> {
    let mut sheet = Sheet::open(&options.out, measure.layout())?;
    for bundle in Bundle::ALL {
        let most = options.quick.then_some(QUICK_ROWS);
        let data = data_set(bundle, Coding::Paper, most, options.seed)?;
        let points = Points::new(data.width(), data.values().to_vec()).map_err(bug)?;
        let repeats = match (options.quick, data.rows() > 10_000) {
            (true, _) => 2,
            (false, true) => 3,
            (false, false) => 10,
        };
        let best = default_size(points.rows());
        let sizes = QUARTERS.map(|quarters| Some((best * quarters / 4).max(2)));
        let clustered = |mechanism| sizes.map(|size| (mechanism, size));
        let settings = [clustered(Mechanism::Ima), clustered(Mechanism::Imdav)].concat();
        for setting in settings.into_iter().chain([(Mechanism::Standard, None)]) {
            let set = PublicSet {
                bundle,
                points: &points,
                repeats,
            };
            set.measure(&mut sheet, options.seed, measure, setting)?;
        }
    }
    draw(&options.out, measure)
}

/// A data set and how often it is released in each setting.
struct PublicSet<'a> {
    bundle: Bundle,
    points: &'a Points,
    repeats: usize,
}

impl PublicSet<'_> {
    /// All repeats of a mechanism at a cluster size; clusters are formed once.
    fn measure(
        &self,
        sheet: &mut Sheet,
        seed: u64,
        measure: Measure,
        (mechanism, size): (Mechanism, Option<usize>),
    ) -> Result<(), Error> {
        let mut prepared = None;
        for repeat in 0..self.repeats {
            let key = [
                self.bundle.name().to_owned(),
                self.points.rows().to_string(),
                mechanism.to_string(),
                size.map_or("-".into(), |size| size.to_string()),
                repeat.to_string(),
            ];
            sheet.complete(seed, &key, || {
                let clusters = match prepared.take() {
                    Some(known) => known,
                    None => prepare(mechanism, self.points, size.unwrap_or(1))?,
                };
                prepared = Some(clusters.clone());
                let noise = Randomness::seeded(seed).fork(&key.join(" "), 0);
                let epsilons = automatic_epsilon(self.points).map_err(bug)?;
                let receipt = pay(mechanism, epsilons.columns())?;
                let released = clusters
                    .release(receipt, &mut noise.map_err(bug)?)
                    .map_err(bug)?;
                let value = measure.of(self.points, released.points())?;
                Ok(vec![format!("{value:.6}")])
            })?;
        }
        Ok(())
    }
}

fn prepare(mechanism: Mechanism, points: &Points, size: usize) -> Result<Prepared<'_>, Error> {
    match mechanism {
        Mechanism::Ima => ima::prepare(points, size, Reference::Data),
        Mechanism::Imdav => imdav::prepare(points, size, Reference::Data),
        _ => standard::prepare(points, Reference::Data),
    }
    .map_err(bug)
}

/// A receipt from a budget that is just large enough: the data are public.
pub(super) fn pay(mechanism: Mechanism, epsilons: &[Epsilon]) -> Result<Receipt, Error> {
    let column = |(index, &epsilon): (usize, &Epsilon)| ColumnCharge {
        name: format!("column {index}"),
        epsilon,
    };
    let columns = epsilons.iter().enumerate().map(column).collect();
    let charge = Charge::new(mechanism, columns).map_err(bug)?;
    Accountant::new(charge.total()).spend(charge).map_err(bug)
}

/// The figure, from the file alone.
pub(super) fn draw(folder: &Path, measure: Measure) -> Result<(), Error> {
    let sheet = Sheet::open(folder, measure.layout())?;
    figure(&sheet.rows(), measure).write(folder, measure.layout().name)
}

fn figure(rows: &Rows<'_>, measure: Measure) -> Figure {
    let (title, label, column, factor) = match measure {
        Measure::SquaredErrors => (
            "Figure 4: information lost, sum of squared errors",
            "sum of squared errors",
            "sse",
            1.0,
        ),
        Measure::Linkage => (
            "Figure 5: rows found again, record linkage",
            "rows found again, %",
            "linkage",
            100.0,
        ),
    };
    let panel = |bundle: Bundle| {
        let rows = rows.with("dataset", bundle.name());
        let series = [
            ("ima", "the paper's mechanism (IMA)"),
            ("imdav", "IMDAV"),
            ("standard", "standard noise"),
        ];
        let series = series.map(|(mechanism, name)| Series {
            name: name.into(),
            points: curve(&rows, mechanism, column, factor),
        });
        Panel {
            title: format!(
                "{}, {} rows",
                bundle.title(),
                rows.text("rows").unwrap_or("0")
            ),
            x: Axis {
                scale: Scale::Logarithmic,
                ..Axis::linear("cluster size k")
            },
            y: Axis {
                scale: Scale::Logarithmic,
                ..Axis::linear(label)
            },
            content: Content::Lines(series.to_vec()),
            dodge: 0,
        }
    };
    Figure {
        title: title.into(),
        panels: Bundle::ALL.map(panel).to_vec(),
    }
}

/// A point for each cluster size; what knows no size is drawn at all of them.
fn curve(rows: &Rows<'_>, mechanism: &str, column: &str, factor: f64) -> Vec<Point> {
    let sizes = rows.with("mechanism", "ima").distinct("k");
    let rows = rows.with("mechanism", mechanism);
    let flat = rows.with("k", "-").mean(column);
    let point = |size: &str| {
        Some(Point {
            x: size.parse().ok()?,
            y: factor * flat.or_else(|| rows.with("k", size).mean(column))?,
            spread: 0.0,
        })
    };
    sizes.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_a_curve_and_standard_noise_is_flat() {
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &SSE).unwrap();
        let data = data_set(Bundle::Car, Coding::Paper, Some(200), 1).unwrap();
        let points = Points::new(data.width(), data.values().to_vec()).unwrap();
        let set = PublicSet {
            bundle: Bundle::Car,
            points: &points,
            repeats: 2,
        };
        for size in [5, 10] {
            for mechanism in [Mechanism::Ima, Mechanism::Imdav] {
                let setting = (mechanism, Some(size));
                set.measure(&mut sheet, 1, Measure::SquaredErrors, setting)
                    .unwrap();
            }
        }
        set.measure(
            &mut sheet,
            1,
            Measure::SquaredErrors,
            (Mechanism::Standard, None),
        )
        .unwrap();
        assert_eq!(sheet.rows().len(), 10);
        let rows = sheet.rows().with("dataset", "car");
        let heights = |mechanism: &str| {
            let curve = curve(&rows, mechanism, "sse", 1.0);
            assert_eq!((curve.len(), curve[1].x), (2, 10.0));
            (curve[0].y, curve[1].y)
        };
        assert_eq!(heights("standard").0, heights("standard").1);
        assert!(heights("ima").0 < heights("imdav").0);
        assert_eq!(
            figure(&sheet.rows(), Measure::SquaredErrors).panels.len(),
            4
        );
    }
}
