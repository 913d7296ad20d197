//! `docs/reproduction.md`, written from the files of the experiments alone: every number in it is
//! computed here, and every verdict as well.

mod dial;
mod markdown;
mod privacy;
mod rate;
mod table3a;
mod training;

pub(super) use markdown::table;

use super::release::Measure;
use super::sheet::{Rows, Sheet, SheetLayout};
use super::{attacks, audit, blocks, charts, features, growth, release};
use heda::Error;
use heda::files::write_whole;
use std::path::{Path, PathBuf};

/// Pictures and the page, from the files of the experiments.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder with the files that the experiments have written
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The page to write
    #[arg(long, value_name = "FILE")]
    page: PathBuf,
    /// A page with a place for the table of accuracy and time
    #[arg(long, value_name = "FILE")]
    readme: Option<PathBuf>,
}

/// Where what was measured begins and ends in a page that people wrote.
const PLACE: [&str; 2] = ["<!-- measured -->\n", "<!-- end of measured -->\n"];

pub(super) fn run(arguments: &Arguments) -> Result<String, Error> {
    let folder = arguments
        .from
        .file_name()
        .map_or(".".into(), |name| name.to_string_lossy().into_owned());
    // The page first: nothing is drawn where nothing was measured.
    let text = page(&arguments.from, &folder)?;
    draw(&arguments.from)?;
    write_whole(&arguments.page, text.as_bytes())?;
    if let Some(readme) = &arguments.readme {
        let old = std::fs::read_to_string(readme).map_err(Error::input)?;
        write_whole(readme, with_table(&old, &arguments.from)?.as_bytes())?;
    }
    Ok(format!("written: {}", arguments.page.display()))
}

/// The text with the table of accuracy and time in its place.
fn with_table(text: &str, from: &Path) -> Result<String, Error> {
    let sheet = Sheet::open(from, &super::training::RUNS)?;
    in_place(text, &training::against_the_paper(&sheet.rows()))
}

/// The text with what was measured in its place.
pub(super) fn in_place(text: &str, measured: &str) -> Result<String, Error> {
    in_marked_place(text, PLACE, measured)
}

/// The text with what was measured between two lines.
pub(super) fn in_marked_place(
    text: &str,
    [start, end]: [&str; 2],
    measured: &str,
) -> Result<String, Error> {
    let absent = || Error::input(format!("no place for what was measured: {start}{end}"));
    let (before, rest) = text.split_once(start).ok_or_else(absent)?;
    let (_, after) = rest.split_once(end).ok_or_else(absent)?;
    Ok(format!("{before}{start}{measured}\n{end}{after}"))
}

/// A section of the page, from its file; pictures are looked for in a folder.
type Part = fn(&Rows<'_>, &str) -> String;

/// The sections in order.
const PARTS: [(&SheetLayout, Part); 11] = [
    (&blocks::LAYOUT, table3a::page),
    (&super::training::RUNS, training::table_3b),
    (&super::rate::LAYOUT, rate::chosen),
    (&release::SSE, privacy::figure_4),
    (&release::LINKAGE, privacy::figure_5),
    (&features::LAYOUT, training::figure_6),
    (&super::training::RUNS, dial::figure_7),
    (&growth::LAYOUT, training::grown),
    (&attacks::LAYOUT, privacy::attacked),
    (&audit::LAYOUT, privacy::audited),
    (&super::training::RUNS, training::limits),
];

/// All pictures.
fn draw(folder: &Path) -> Result<(), Error> {
    release::draw(folder, Measure::SquaredErrors)?;
    release::draw(folder, Measure::Linkage)?;
    features::draw(folder)?;
    charts::draw(folder)?;
    growth::draw(folder)
}

/// The page; pictures are looked for in `folder` beside it.
fn page(from: &Path, folder: &str) -> Result<String, Error> {
    let mut sheets = Vec::new();
    for (layout, part) in PARTS {
        sheets.push((Sheet::open(from, layout)?, part));
    }
    if sheets.iter().all(|(sheet, _)| sheet.is_empty()) {
        return Err(Error::input(format!(
            "{0} has no measurements; make them with `heda-repro experiment all --out {0}`",
            from.display()
        )));
    }
    let mut text = opening(sheets.iter().map(|(sheet, _)| sheet));
    for (sheet, part) in sheets.iter().filter(|(sheet, _)| !sheet.is_empty()) {
        text += &part(&sheet.rows(), folder);
    }
    Ok(text)
}

fn opening<'a>(sheets: impl Iterator<Item = &'a Sheet>) -> String {
    let (mut versions, mut seeds, mut machines) = (vec![], vec![], vec![]);
    let mut busiest: f64 = 0.0;
    for sheet in sheets {
        let rows = sheet.rows();
        for (column, seen) in [
            ("version", &mut versions),
            ("seed", &mut seeds),
            ("machine", &mut machines),
        ] {
            for cell in rows.distinct(column) {
                if !seen.contains(&cell.to_owned()) {
                    seen.push(cell.to_owned());
                }
            }
        }
        let times = [
            "seconds_processor",
            "processor_milliseconds_batch",
            "processor_gradient",
        ];
        if times.into_iter().any(|column| rows.has(column)) {
            busiest = rows.numbers("load").into_iter().fold(busiest, f64::max);
        }
    }
    format!(
        "# The paper again, measured\n\n\
         This page is written by `heda-repro experiment document` from the CSV files beside the pictures; \
         a test fails when it is out of date. `heda-repro experiment all --out DIR` makes the files (add \
         `--quick` for a look in minutes), version {}, seed {}, on: {}. Where time was \
         measured, the load average of the machine, to which the measured parties themselves add a \
         thread each, was at most {busiest:.1} when a measurement began; the CSV files say how much \
         for each row.\n\n\
         All runs are seeded, so that they can be repeated; seeded runs protect nothing, and the \
         data sets are public. Accuracies are on held-out rows, mean and standard deviation over \
         random 80/20 splits; the paper's coding of categories is used but in the \
         lines of table 3b that say otherwise. Numbers of the \
         paper were measured on one i7-3770 at 3.4 GHz in Java: times compare by their order of \
         magnitude. Its figures have no numbers to read off, so what it says about them in words \
         stands beside them.\n",
        versions.join(", "),
        seeds.join(", "),
        machines.join("; "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_paper::engine::{DECAY, RATE};

    fn docs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    /// As the other documents: `UPDATE_DOCUMENTS=1` puts things right.
    fn update(file: &str, text: &str) {
        if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
            std::fs::write(docs().join(file), text).unwrap();
        }
    }

    #[test]
    fn the_page_is_up_to_date_with_its_files() {
        let expected = page(&docs().join("reproduction"), "reproduction").unwrap();
        update("reproduction.md", &expected);
        if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
            draw(&docs().join("reproduction")).unwrap();
        }
        let found = std::fs::read_to_string(docs().join("reproduction.md")).unwrap();
        assert!(
            found == expected,
            "run: heda-repro experiment document --from docs/reproduction --page docs/reproduction.md \
             --readme README.md"
        );
        assert!(!found.contains("NaN") && !found.contains("inf"));
        assert_eq!(found.matches("\n## ").count(), PARTS.len());
    }

    #[test]
    fn engine_paper_descends_at_the_rate_that_was_chosen() {
        let sheet = Sheet::open(&docs().join("reproduction"), &crate::rate::LAYOUT).unwrap();
        let rows = sheet.rows();
        let (rate, decay) = crate::rate::best(&rows).unwrap();
        assert_eq!(rate.parse(), Ok(RATE));
        assert_eq!(decay.parse(), Ok(DECAY));
        assert_eq!(rows.distinct("dataset").len(), 4);
    }

    #[test]
    fn the_table_of_the_readme_is_up_to_date() {
        let readme = std::fs::read_to_string(docs().join("../README.md")).unwrap();
        let expected = with_table(&readme, &docs().join("reproduction")).unwrap();
        update("../README.md", &expected);
        let readme = std::fs::read_to_string(docs().join("../README.md")).unwrap();
        assert!(readme == expected, "as above");
        assert!(with_table("no place", &docs().join("reproduction")).is_err());
    }

    #[test]
    fn a_folder_without_measurements_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("empty");
        let arguments = Arguments {
            from: from.clone(),
            page: folder.path().join("page.md"),
            readme: None,
        };
        let refused = run(&arguments).unwrap_err();
        assert!(
            refused.to_string().contains("has no measurements"),
            "{refused}"
        );
        assert!(!from.exists() && !arguments.page.exists());
        // A panel without points is drawn without numbers.
        draw(folder.path()).unwrap();
    }

    #[test]
    fn pictures_of_the_page_exist() {
        let text = page(&docs().join("reproduction"), "reproduction").unwrap();
        let pictures: Vec<&str> = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')').map(|(path, _)| path))
            .filter(|path| path.ends_with(".svg"))
            .collect();
        assert!(pictures.len() >= 7);
        for path in pictures {
            assert!(docs().join(path).is_file(), "{path}");
        }
    }
}
