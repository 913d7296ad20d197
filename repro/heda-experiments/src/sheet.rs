//! The file behind an experiment: one row a measurement, written as soon as it is known, so that an
//! interrupted run goes on where it stopped. Every row says which seed, version and machine.

use heda::Error;
use heda::files::write_whole;
use heda_learn::metrics::Summary;
use std::path::{Path, PathBuf};

/// Columns that every file ends with: what repeats the measurement, and how busy the machine was
/// with anything at all when it began (Linux's load average over a minute).
const PROVENANCE: [&str; 4] = ["seed", "version", "machine", "load"];

/// The name and columns of a file. What was measured comes first, then the results.
pub(super) struct SheetLayout {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
}

/// A file of measurements.
pub(super) struct Sheet {
    layout: &'static SheetLayout,
    path: PathBuf,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Reads what is there, or begins an empty file.
    pub(super) fn open(folder: &Path, layout: &'static SheetLayout) -> Result<Self, Error> {
        let path = folder.join(format!("{}.csv", layout.name));
        let mut sheet = Self {
            layout,
            path,
            rows: Vec::new(),
        };
        match std::fs::read_to_string(&sheet.path) {
            Ok(text) => sheet.rows = sheet.parse(&text)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(sheet.failure(&e.to_string())),
        }
        Ok(sheet)
    }

    fn failure(&self, what: &str) -> Error {
        let path = self.path.display();
        Error::input(format!(
            "{path}: {what}; move the file away or choose another folder"
        ))
    }

    fn header(&self) -> Vec<&'static str> {
        self.layout
            .columns
            .iter()
            .chain(&PROVENANCE)
            .copied()
            .collect()
    }

    fn parse(&self, text: &str) -> Result<Vec<Vec<String>>, Error> {
        let mut lines = text.lines();
        let header = self.header();
        if lines.next() != Some(header.join(",").as_str()) {
            return Err(self.failure("its columns are not those of this version"));
        }
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = lines.map(cells).collect();
        if rows.iter().any(|row| row.len() != header.len()) {
            return Err(self.failure("a row has too many or too few cells"));
        }
        Ok(rows)
    }

    /// Whether this was measured.
    pub(super) fn has(&self, seed: u64, key: &[String]) -> bool {
        let seed = seed.to_string();
        let place = self.layout.columns.len();
        let known = |row: &Vec<String>| row.starts_with(key) && row[place] == seed;
        self.rows.iter().any(known)
    }

    /// Measures and writes a row, unless it is there. `key` and the measured cells are the
    /// layout's columns in order.
    pub(super) fn complete(
        &mut self,
        seed: u64,
        key: &[String],
        measure: impl FnOnce() -> Result<Vec<String>, Error>,
    ) -> Result<(), Error> {
        if self.has(seed, key) {
            return Ok(());
        }
        heda::note(format_args!(
            "heda: {}: {}",
            self.layout.name,
            key.join(", ")
        ));
        let load = load();
        let mut row = key.to_vec();
        row.extend(measure()?);
        self.add(seed, &load, vec![row])
    }

    /// Writes rows that were measured together: the layout's columns in order.
    pub(super) fn add(
        &mut self,
        seed: u64,
        load: &str,
        rows: Vec<Vec<String>>,
    ) -> Result<(), Error> {
        for mut row in rows {
            if row.len() != self.layout.columns.len() {
                let what = format!("{}: a row of {} cells", self.layout.name, row.len());
                return Err(Error::bug(what.to_string()));
            }
            let version = env!("CARGO_PKG_VERSION").to_owned();
            row.extend([seed.to_string(), version, machine(), load.to_owned()]);
            self.rows.push(row.iter().map(|cell| plain(cell)).collect());
        }
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        let mut text = self.header().join(",") + "\n";
        for row in &self.rows {
            text += &(row.join(",") + "\n");
        }
        write_whole(&self.path, text.as_bytes())
    }

    /// Whether nothing has been measured.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows.
    pub(super) fn rows(&self) -> Rows<'_> {
        Rows {
            header: self.header(),
            rows: self.rows.iter().collect(),
        }
    }
}

/// Some rows of a sheet.
#[derive(Clone)]
pub(super) struct Rows<'a> {
    header: Vec<&'static str>,
    rows: Vec<&'a Vec<String>>,
}

impl<'a> Rows<'a> {
    fn place(&self, column: &str) -> usize {
        let found = self.header.iter().position(|name| *name == column);
        // A column that no layout has is our mistake; tests read every column that is used.
        found.unwrap_or(usize::MAX)
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.header.contains(&column)
    }

    /// Rows with this text in that column.
    pub(super) fn with(&self, column: &str, text: &str) -> Self {
        let place = self.place(column);
        let rows = self.rows.iter().copied();
        Self {
            header: self.header.clone(),
            rows: rows
                .filter(|row| row.get(place).is_some_and(|cell| cell == text))
                .collect(),
        }
    }

    /// Rows with one of these texts in that column.
    pub(super) fn with_any(&self, column: &str, texts: &[&str]) -> Self {
        let place = self.place(column);
        let rows = self.rows.iter().copied();
        Self {
            header: self.header.clone(),
            rows: rows
                .filter(|row| {
                    row.get(place)
                        .is_some_and(|cell| texts.contains(&cell.as_str()))
                })
                .collect(),
        }
    }

    /// The texts of a column, each once, in order of appearance.
    pub(super) fn distinct(&self, column: &str) -> Vec<&'a str> {
        let place = self.place(column);
        let mut seen: Vec<&str> = Vec::new();
        for cell in self.rows.iter().filter_map(|row| row.get(place)) {
            if !seen.contains(&cell.as_str()) {
                seen.push(cell);
            }
        }
        seen
    }

    /// The numbers of a column; cells without a number are left out.
    pub(super) fn numbers(&self, column: &str) -> Vec<f64> {
        let place = self.place(column);
        let cells = self.rows.iter().filter_map(|row| row.get(place));
        cells.filter_map(|cell| cell.parse().ok()).collect()
    }

    /// Mean and standard deviation of a column; none without numbers.
    pub(super) fn summary(&self, column: &str) -> Option<Summary> {
        Summary::new(&self.numbers(column))
    }

    /// The mean of a column.
    pub(super) fn mean(&self, column: &str) -> Option<f64> {
        self.summary(column).map(|summary| summary.mean)
    }

    /// The first row's text in a column.
    pub(super) fn text(&self, column: &str) -> Option<&'a str> {
        self.distinct(column).first().copied()
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Row by row.
    pub(super) fn each(&self) -> impl Iterator<Item = Self> + '_ {
        self.rows.iter().map(|row| Self {
            header: self.header.clone(),
            rows: vec![row],
        })
    }
}

/// A cell that needs no quotes.
fn plain(cell: &str) -> String {
    let odd = |c: char| c == ',' || c == '"' || c.is_control();
    cell.replace(odd, ";")
}

/// Processor and system, without the name of the host.
fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (system, kind) = (std::env::consts::OS, std::env::consts::ARCH);
    let profile = if cfg!(debug_assertions) {
        "development build"
    } else {
        "release build"
    };
    format!("{model}; {cores} cores; {system} {kind}; {profile}")
}

/// How busy the machine is.
pub(super) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    static LAYOUT: SheetLayout = SheetLayout {
        name: "test",
        columns: &["dataset", "k", "sse"],
    };

    fn key(k: usize) -> Vec<String> {
        vec!["bcwd".into(), k.to_string()]
    }

    #[test]
    fn a_run_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &LAYOUT).unwrap();
        assert!(sheet.is_empty());
        for (k, value) in [(1, "1.5"), (2, "2,\"5"), (1, "9")] {
            sheet
                .complete(7, &key(k), || Ok(vec![value.to_owned()]))
                .unwrap();
        }
        let failed = sheet.complete(8, &key(3), || Err(Error::input("stopped")));
        assert!(failed.is_err());
        let mut again = Sheet::open(folder.path(), &LAYOUT).unwrap();
        assert_eq!(again.rows().len(), 2);
        again
            .complete(7, &key(2), || panic!("measured twice"))
            .unwrap();
        again
            .complete(8, &key(2), || Ok(vec!["4".to_owned()]))
            .unwrap();
        let rows = again.rows();
        assert_eq!(rows.distinct("k"), ["1", "2"]);
        assert_eq!(rows.numbers("sse"), [1.5, 4.0]);
        assert_eq!(rows.with("k", "1").mean("sse"), Some(1.5));
        assert_eq!(rows.with("seed", "8").text("sse"), Some("4"));
        assert!(rows.mean("version").is_none() && rows.text("nothing").is_none());
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.csv");
        for text in ["a,b\n", "dataset,k,sse,seed,version,machine,load\n1,2\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(Sheet::open(folder.path(), &LAYOUT).is_err(), "{text}");
        }
    }
}
