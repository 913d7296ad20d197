//! How the time of one gradient grows with encrypted features and with rows, for both engines.
//!
//! Rows are a random part of Adult at a single provider; a job makes a few gradients on all of
//! them, and what is timed is the training alone. What is not encrypted is published.
//!
//! Processor time of both parties together is what is fitted: it does not depend on what else the
//! machine does.

use super::clock::PhaseClock;
use super::sheet::{Rows, Sheet, SheetLayout};
use super::training::DEFAULT_ENGINE;
use super::{Options, data_set};
use crate::plot::{Axis, Content, Figure, Panel, Point, Series};
use heda::Error;
use heda::local_job::{LocalJob, Rest};
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::proposal::{Engine, Spending};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::optimise::{self, Settings};
use heda_learn::score::ScoringMethod;
use heda_paper::engine::paper;
use std::path::Path;

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "growth",
    columns: &[
        "engine",
        "over",
        "rows",
        "iota",
        "repeat",
        "training_rows",
        "iterations",
        "processor_gradient",
        "processor_setup",
        "seconds_gradient",
        "seconds_setup",
        "kilobytes_gradient",
    ],
};

const FEATURES: usize = 14;

/// What grows, and at which sizes.
struct Sweep {
    engine: Engine,
    over: &'static str,
    /// Rows and ι.
    sizes: Vec<(usize, usize)>,
    iterations: u32,
}

fn sweeps(quick: bool) -> Vec<Sweep> {
    let iotas: &[usize] = if quick {
        &[1, 7, 14]
    } else {
        &[1, 4, 7, 10, 14]
    };
    let (few, many): (&[usize], &[usize]) = match quick {
        true => (&[20, 40, 60], &[1000, 2000, 4000]),
        false => (&[40, 80, 120, 160, 200], &[2000, 4000, 8000, 16000, 30000]),
    };
    let at = |rows: usize| move |&iota: &usize| (rows, iota);
    let half = |&rows: &usize| (rows, FEATURES / 2);
    let sweep = |engine, over, sizes, iterations| Sweep {
        engine,
        over,
        sizes,
        iterations,
    };
    vec![
        sweep(paper(), "iota", iotas.iter().map(at(few[2])).collect(), 3),
        sweep(paper(), "rows", few.iter().map(half).collect(), 3),
        sweep(
            Engine::RESIDENT,
            "iota",
            iotas.iter().map(at(many[2])).collect(),
            20,
        ),
        sweep(
            Engine::RESIDENT,
            "rows",
            many.iter().map(half).collect(),
            20,
        ),
    ]
}

/// Measures what is missing and draws the figure.
pub(super) fn run(options: &Options) -> Result<(), Error> {
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    let repeats = if options.quick { 1 } else { 3 };
    for repeat in 0..repeats {
        for sweep in sweeps(options.quick) {
            for &(rows, iota) in &sweep.sizes {
                measure(&mut sheet, options.seed, &sweep, rows, iota, repeat)?;
            }
        }
    }
    draw(&options.out)
}

fn measure(
    sheet: &mut Sheet,
    seed: u64,
    sweep: &Sweep,
    rows: usize,
    iota: usize,
    repeat: u64,
) -> Result<(), Error> {
    let key = [
        sweep.engine.to_string(),
        sweep.over.to_owned(),
        rows.to_string(),
        iota.to_string(),
        repeat.to_string(),
    ];
    sheet.complete(seed, &key, || {
        let data = data_set(Bundle::Adult, Coding::Paper, Some(rows), seed)?;
        // The automatic rule refuses columns of so few rows; how much does not matter here.
        let epsilon = Epsilon::from_billionths(1_000_000_000).map_err(Error::input)?;
        let job = LocalJob {
            private: None,
            balanced: false,
            bundle: Bundle::Adult,
            coding: Coding::Paper,
            providers: 1,
            iota: Some(iota),
            goal: None,
            engine: sweep.engine,
            method: ScoringMethod::KruskalWallis,
            rest: Rest::Publish(Spending::Total(epsilon)),
            settings: Some(Settings {
                method: optimise::Method::Descent {
                    rate: 0.5,
                    minimum_rate: 0.0,
                    decay: 0.0,
                    batches: 1,
                },
                c: None,
                tolerance: 0.0,
                max_iterations: sweep.iterations,
            }),
            // The same keys whatever grows: finding primes takes longer or shorter by chance.
            randomness: Randomness::seeded(seed).party(&format!("growth {repeat}")),
        };
        let mut clock = PhaseClock::default();
        let done = job.run_on(&data, &mut |progress| clock.hear(progress))?;
        let done = done.summary;
        let each = f64::from(done.iterations.max(1));
        let seconds = |spent: Option<f64>| spent.map_or("-".into(), |s| format!("{s:.6}"));
        let training = done.phases.iter().filter(|phase| phase.name == "train");
        let bytes = training.map(|p| p.bytes.user_to_provider + p.bytes.provider_to_user);
        Ok(vec![
            done.rows.to_string(),
            done.iterations.to_string(),
            seconds(clock.spent_in("train").map(|spent| spent / each)),
            seconds(clock.spent_in("encrypt")),
            format!("{:.6}", done.seconds.training / each),
            format!("{:.3}", done.seconds.setup),
            format!("{:.3}", bytes.sum::<u64>() as f64 / 1e3 / each),
        ])
    })
}

/// The figure, from the file alone.
pub(super) fn draw(folder: &Path) -> Result<(), Error> {
    let sheet = Sheet::open(folder, &LAYOUT)?;
    figure(&sheet.rows()).write(folder, LAYOUT.name)
}

/// What is shown: which engine, over what, and of which part of the work.
pub(super) fn shown(default: &'static str) -> [(&'static str, &'static str, &'static str); 5] {
    [
        ("paper", "iota", "gradient"),
        ("paper", "rows", "gradient"),
        (default, "iota", "gradient"),
        (default, "rows", "gradient"),
        ("paper", "iota", "setup"),
    ]
}

/// The fastest repeat at each size: what slows a run down is always something else.
pub(super) fn points(rows: &Rows<'_>, (engine, over, part): (&str, &str, &str)) -> Vec<Point> {
    let rows = rows.with("engine", engine).with("over", over);
    let column = if over == "iota" {
        "iota"
    } else {
        "training_rows"
    };
    let point = |text: &str| {
        let rows = rows.with(column, text);
        let known = ["processor", "seconds"].map(|kind| rows.numbers(&format!("{kind}_{part}")));
        let seconds = known.into_iter().find(|seconds| !seconds.is_empty())?;
        let fastest = seconds.into_iter().reduce(f64::min)?;
        Some(Point {
            x: text.parse().ok()?,
            y: fastest,
            spread: 0.0,
        })
    };
    rows.distinct(column)
        .into_iter()
        .filter_map(point)
        .collect()
}

/// The straight line of least squares: height at 0, slope, and the share of variance that it
/// explains.
pub(super) fn line(points: &[Point]) -> Option<(f64, f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.x), mean(|p| p.y));
    let sum = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, xy) = (sum(&|p| (p.x - x).powi(2)), sum(&|p| (p.x - x) * (p.y - y)));
    let yy = sum(&|p| (p.y - y).powi(2));
    let slope = xy / xx;
    (points.len() > 2 && xx > 0.0 && yy > 0.0).then(|| (y - slope * x, slope, slope * xy / yy))
}

fn figure(rows: &Rows<'_>) -> Figure {
    let panel = |(engine, over, part): (&str, &str, &str)| {
        let points = points(rows, (engine, over, part));
        let fitted = line(&points).map_or(vec![], |(start, slope, _)| {
            let at = |point: &Point| Point {
                y: start + slope * point.x,
                ..*point
            };
            points.iter().map(at).collect()
        });
        let fixed = match over {
            "iota" => format!("{} rows", fixed(rows, engine, over, "training_rows")),
            _ => format!("ι = {}", fixed(rows, engine, over, "iota")),
        };
        Panel {
            title: format!("{part} with engine {engine}, {fixed}"),
            x: Axis::linear(match over {
                "iota" => "encrypted features ι",
                _ => "rows",
            }),
            y: Axis {
                range: Some((0.0, 1.08 * points.iter().map(|p| p.y).fold(0.0, f64::max))),
                ..Axis::linear("processor seconds")
            },
            content: Content::Lines(vec![
                Series {
                    name: "measured".into(),
                    points,
                },
                Series {
                    name: "straight line of least squares".into(),
                    points: fitted,
                },
            ]),
            dodge: 0,
        }
    };
    Figure {
        title: "Time of one gradient, and of the setup: both parties, rows of Adult".into(),
        panels: shown(DEFAULT_ENGINE).map(panel).to_vec(),
    }
}

/// What a sweep leaves as it is.
pub(super) fn fixed<'a>(rows: &Rows<'a>, engine: &str, over: &str, column: &str) -> &'a str {
    let rows = rows.with("engine", engine).with("over", over);
    rows.text(column).unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_is_found() {
        let point = |x: f64, y: f64| Point { x, y, spread: 0.0 };
        let exact = [point(1.0, 5.0), point(2.0, 7.0), point(4.0, 11.0)];
        let (start, slope, explained) = line(&exact).unwrap();
        assert!((start - 3.0).abs() < 1e-12 && (slope - 2.0).abs() < 1e-12);
        assert!((explained - 1.0).abs() < 1e-12);
        let bent = [point(0.0, 0.0), point(1.0, 0.0), point(2.0, 9.0)];
        assert!(line(&bent).unwrap().2 < 0.8);
        assert!(line(&exact[..2]).is_none() && line(&[exact[0]; 3]).is_none());
    }

    #[test]
    fn a_job_gives_a_point() {
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &LAYOUT).unwrap();
        let sweep = &sweeps(true)[2];
        assert_eq!((sweep.engine, sweep.over), (Engine::RESIDENT, "iota"));
        measure(&mut sheet, 1, sweep, 100, 2, 0).unwrap();
        let points = points(&sheet.rows(), ("resident", "iota", "gradient"));
        assert!(points.len() == 1 && points[0].x == 2.0 && points[0].y > 0.0);
        assert_eq!(
            fixed(&sheet.rows(), "resident", "iota", "training_rows"),
            "80"
        );
        assert_eq!(figure(&sheet.rows()).panels.len(), 5);
    }
}
