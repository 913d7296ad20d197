use super::*;
use crate::schema::{Kind, Missing, Replacement};

fn counts(data: &Dataset) -> Vec<usize> {
    let of = |class| {
        data.labels()
            .iter()
            .filter(|&&label| label == class)
            .count()
    };
    (0..data.classes().len() as u32).map(of).collect()
}

/// What `datasets/README.md` says: rows, attributes, rows of the negative and positive class.
fn facts(bundle: Bundle) -> (usize, usize, [usize; 2]) {
    match bundle {
        Bundle::Bcwd => (699, 9, [458, 241]),
        Bundle::Adult => (32_561, 14, [24_720, 7_841]),
        Bundle::Crx => (690, 15, [383, 307]),
        Bundle::Car => (1_728, 6, [518, 1_210]),
    }
}

#[test]
fn all_load_in_both_codings() {
    for bundle in Bundle::ALL {
        let (rows, attributes, classes) = facts(bundle);
        for coding in [Coding::Paper, Coding::Natural] {
            let (data, report) = bundle.table(coding).unwrap();
            assert_eq!(data.rows(), rows, "{bundle} {coding}");
            assert_eq!(data.features().len(), attributes, "{bundle} {coding}");
            assert_eq!(counts(&data), classes, "{bundle} {coding}");
            assert_eq!(report.rows_dropped, 0);
            assert!(
                report.columns.iter().all(|column| column.clipped == 0),
                "{report:?}"
            );
        }
    }
}

#[test]
fn widths_follow_the_coding() {
    for bundle in Bundle::ALL {
        assert_eq!(
            bundle.schema(Coding::Paper).width(),
            facts(bundle).1,
            "{bundle}"
        );
    }
    let natural = |bundle: Bundle| bundle.schema(Coding::Natural).width();
    assert_eq!(Bundle::ALL.map(natural), [9, 107, 48, 6]);
}

#[test]
fn missing_values_are_those_of_the_files() {
    let missing = |bundle: Bundle| -> Vec<(String, u64)> {
        let report = bundle.table(Coding::Paper).unwrap().1;
        let columns = report.columns.into_iter().filter(|c| c.missing > 0);
        columns.map(|c| (c.name, c.missing)).collect()
    };
    let named = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs
            .iter()
            .map(|&(name, count)| (name.to_owned(), count))
            .collect()
    };
    assert_eq!(missing(Bundle::Bcwd), named(&[("bare_nuclei", 16)]));
    let adult = [
        ("workclass", 1836),
        ("occupation", 1843),
        ("native-country", 583),
    ];
    assert_eq!(missing(Bundle::Adult), named(&adult));
    let crx = [
        ("A1", 12),
        ("A2", 12),
        ("A4", 6),
        ("A5", 6),
        ("A6", 9),
        ("A7", 9),
        ("A14", 13),
    ];
    assert_eq!(missing(Bundle::Crx), named(&crx));
    assert_eq!(missing(Bundle::Car), []);
}

/// The cells of a column as they stand in the file.
fn raw_column(bundle: Bundle, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(bundle.csv());
    let at = reader
        .headers()
        .unwrap()
        .iter()
        .position(|h| h == name)
        .unwrap();
    reader
        .records()
        .map(|record| record.unwrap()[at].to_owned())
        .collect()
}

#[test]
fn stated_medians_are_the_medians() {
    let mut checked = 0;
    for (bundle, coding) in Bundle::ALL
        .map(|b| [(b, Coding::Paper), (b, Coding::Natural)])
        .concat()
    {
        for column in bundle.schema(coding).columns() {
            let Missing::Value(Replacement::Number(stated)) = *column.missing() else {
                continue;
            };
            let cells = raw_column(bundle, column.name());
            let mut values: Vec<f64> = cells.iter().filter_map(|c| c.parse().ok()).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len() / 2;
            let median = (values[(values.len() - 1) / 2] + values[middle]) / 2.0;
            assert_eq!(stated, median, "{bundle} {}", column.name());
            checked += 1;
        }
    }
    assert_eq!(checked, 6);
}

#[test]
fn paper_levels_are_alphabetical_and_complete() {
    for bundle in Bundle::ALL {
        for column in bundle.schema(Coding::Paper).columns() {
            if let Kind::Levels { levels, .. } = column.kind() {
                let mut found = raw_column(bundle, column.name());
                found.sort();
                found.dedup();
                assert_eq!(levels, &found, "{bundle} {}", column.name());
            }
        }
    }
}

#[test]
fn names_are_read_back() {
    for bundle in Bundle::ALL {
        assert_eq!(bundle.name().parse(), Ok(bundle));
    }
    assert_eq!("natural".parse(), Ok(Coding::Natural));
    assert!(
        "iris"
            .parse::<Bundle>()
            .unwrap_err()
            .to_string()
            .contains("bcwd, adult")
    );
}

/// The copies inside the crate are the files of the repository. `UPDATE_BUNDLED=1` makes them anew.
#[test]
fn copies_are_those_of_the_repository() {
    use flate2::{Compression, write::GzEncoder};
    use std::fs;
    use std::io::Write;
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (copies, originals) = (here.join("bundled"), here.join("../../datasets"));
    if !originals.exists() {
        // A published package has no repository around it.
        return;
    }
    let update = std::env::var_os("UPDATE_BUNDLED").is_some();
    for bundle in Bundle::ALL {
        let name = bundle.name();
        let original = fs::read(originals.join(format!("{name}.csv"))).unwrap();
        if update {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&original).unwrap();
            let packed = packed.finish().unwrap();
            fs::write(copies.join(format!("{name}.csv.gz")), packed).unwrap();
        }
        let mut copy = Vec::new();
        GzDecoder::new(&*fs::read(copies.join(format!("{name}.csv.gz"))).unwrap())
            .read_to_end(&mut copy)
            .unwrap();
        assert!(
            copy == original,
            "{name}.csv differs; run with UPDATE_BUNDLED=1"
        );
        for coding in [Coding::Paper, Coding::Natural] {
            let schema = format!("{name}.{coding}.toml");
            let original = fs::read(originals.join(&schema)).unwrap();
            if update {
                fs::write(copies.join(&schema), &original).unwrap();
            }
            let copy = fs::read(copies.join(&schema)).unwrap();
            assert!(
                copy == original,
                "{schema} differs; run with UPDATE_BUNDLED=1"
            );
        }
    }
}
