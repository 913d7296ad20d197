//! One test for each kind of bad input, and random tables there and back.

use super::*;
use proptest::prelude::*;
use std::io::{Cursor, repeat};

const SCHEMA: &str = r#"
format = 1
name = "test"
missing_markers = ["", "?"]
ignore = ["id"]

[label]
column = "class"
classes = ["no", "yes"]
positive = "yes"

[[column]]
name = "age"
kind = "numeric"
bounds = [20, 60]

[[column]]
name = "colour"
kind = "categorical"
levels = ["red", "green", "blue"]
"#;

const GOOD: &str = "id,age,colour,class\n1,20,red,no\n2,60,blue,yes\n3,30,green,no\n";

fn schema() -> Schema {
    Schema::parse(SCHEMA, "test.toml").unwrap()
}

fn schema_with(from: &str, to: &str) -> Schema {
    assert!(SCHEMA.contains(from), "{from}");
    Schema::parse(&SCHEMA.replacen(from, to, 1), "test.toml").unwrap()
}

fn read(text: impl AsRef<[u8]>) -> Result<(Dataset, ReadReport), ReadError> {
    TableReader::new(&schema()).read_csv(Cursor::new(text.as_ref()), "data.csv")
}

/// The fault in a text; its message must begin with the place.
fn fault(text: impl AsRef<[u8]>, place: &str) -> ReadFault {
    let error = read(text).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("data.csv: {place}")),
        "{message}"
    );
    error.fault().clone()
}

#[test]
fn encodes_by_the_schema() {
    let (data, report) = read(GOOD).unwrap();
    assert_eq!(data.row(0), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(data.row(1), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(data.row(2), [0.25, 0.0, 1.0, 0.0]);
    assert_eq!(data.labels(), [0, 1, 0]);
    assert_eq!(data.classes(), ["no", "yes"]);
    assert_eq!(report.rows_read, 3);
    assert!(report.warnings().is_empty());
}

#[test]
fn columns_come_in_any_order_with_spaces_quotes_and_crlf() {
    let text = "\u{feff}class , colour,age\r\nno, red , 20\r\n\"yes\",\"blue\",60\r\n";
    let (data, _) = read(text).unwrap();
    assert_eq!(data.row(1), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(data.labels(), [0, 1]);
}

#[test]
fn missing_column() {
    let found = fault("age,class\n20,no\n30,yes\n", "line 1, column `colour`: ");
    assert_eq!(found, ReadFault::MissingColumn);
}

#[test]
fn unknown_column() {
    let found = fault(GOOD.replace("id,", "name,"), "line 1, column `name`: ");
    assert_eq!(found, ReadFault::UnknownColumn);
}

#[test]
fn unknown_level() {
    let found = fault(GOOD.replace("blue", "pink"), "line 3, column `colour`: ");
    assert_eq!(found, ReadFault::UnknownLevel("pink".into()));
}

#[test]
fn unknown_class() {
    let found = fault(GOOD.replace("yes", "maybe"), "line 3, column `class`: ");
    assert_eq!(found, ReadFault::UnknownClass("maybe".into()));
}

#[test]
fn text_in_a_numeric_column() {
    let found = fault(GOOD.replace(",30,", ",thirty,"), "line 4, column `age`: ");
    assert_eq!(found, ReadFault::NotANumber("thirty".into()));
}

#[test]
fn empty_file() {
    assert_eq!(fault("", "no rows"), ReadFault::Empty);
    assert_eq!(fault("\n\n", "no rows"), ReadFault::Empty);
    assert_eq!(fault("id,age,colour,class\n", "no rows"), ReadFault::Empty);
}

#[test]
fn one_class_only() {
    let found = fault(GOOD.replace("yes", "no"), "column `class`: ");
    assert_eq!(found, ReadFault::OneClass("no".into()));
}

#[test]
fn not_a_number_and_infinity() {
    for text in ["NaN", "nan", "inf", "-Infinity", "1e999"] {
        let found = fault(
            GOOD.replace(",30,", &format!(",{text},")),
            "line 4, column `age`: ",
        );
        assert_eq!(found, ReadFault::NotFinite(text.into()));
    }
}

#[test]
fn duplicated_header() {
    let found = fault(GOOD.replace("id,", "age,"), "line 1, column `age`: ");
    assert_eq!(found, ReadFault::DuplicateColumn);
}

#[test]
fn a_line_without_end() {
    let endless = |start: &'static str, byte| Cursor::new(start).chain(repeat(byte).take(1 << 30));
    let head = "id,age,colour,class\n1,20,red,no\n2,60,\"";
    for (start, byte, line) in [("", b'x', 1), (head, b'x', 3), (head, b'\n', 3)] {
        let error = TableReader::new(&schema())
            .read_csv(endless(start, byte), "data.csv")
            .unwrap_err();
        assert_eq!(error.fault(), &ReadFault::RecordTooLong(4 << 20));
        assert_eq!(error.place(), Some(TablePlace::Line(line)));
    }
}

#[test]
fn the_reader_stops_at_the_limit_of_a_line() {
    let mut endless = repeat(b'x').take(1 << 30);
    let limits = ReadLimits {
        record_bytes: 1000,
        ..ReadLimits::default()
    };
    let schema = schema();
    let reader = TableReader::new(&schema).with_limits(limits);
    assert!(reader.read_csv(&mut endless, "data.csv").is_err());
    assert_eq!(endless.limit(), (1 << 30) - 1000);
    // A record at the limit, line by line: the limit is on records and not on the file.
    assert_eq!(
        reader
            .read_csv(
                Cursor::new(GOOD.to_owned() + &"4,20,red,no\n".repeat(500)),
                "x"
            )
            .unwrap()
            .0
            .rows(),
        503
    );
}

#[test]
fn wrong_utf8() {
    let garbled = |from: &str| {
        let at = GOOD.find(from).unwrap();
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes[at] = 0xff;
        bytes
    };
    assert_eq!(
        fault(garbled("blue"), "line 3, column `colour`: "),
        ReadFault::Utf8
    );
    assert_eq!(
        fault(garbled("age"), "line 1, column `2`: "),
        ReadFault::Utf8
    );
}

#[test]
fn rows_of_another_length() {
    let found = fault(GOOD.replace("3,30,", "30,"), "line 4: ");
    let wanted = ReadFault::FieldCount {
        expected: 4,
        found: 3,
    };
    assert_eq!(found, wanted);
}

#[test]
fn numbers_outside_the_bounds() {
    let text = GOOD.replace(",30,", ",61,");
    let found = fault(&text, "line 4, column `age`: ");
    assert!(matches!(
        found,
        ReadFault::OutsideBounds { value, .. } if value == "61"
    ));
    let clip = schema_with("[20, 60]", "[20, 60]\noutside = \"clip\"");
    let (data, report) = TableReader::new(&clip)
        .read_csv(text.as_bytes(), "x")
        .unwrap();
    assert_eq!(data.row(2)[0], 1.0);
    assert_eq!(
        report.warnings(),
        ["column `age`: 1 of 3 values clipped to the bounds"]
    );
}

#[test]
fn missing_values_follow_the_rule() {
    let text = GOOD.replace(",30,", ",?,");
    assert_eq!(fault(&text, "line 4, column `age`: "), ReadFault::Missing);
    let rule = |rule: &str| {
        let schema = schema_with("[20, 60]", &format!("[20, 60]\nmissing = {rule}"));
        TableReader::new(&schema)
            .read_csv(text.as_bytes(), "x")
            .unwrap()
    };
    let (replaced, report) = rule("{ value = 50 }");
    assert_eq!(replaced.row(2)[0], 0.75);
    assert_eq!((report.columns[0].missing, report.rows_dropped), (1, 0));
    let (dropped, report) = rule("\"drop\"");
    assert_eq!((dropped.rows(), report.rows_dropped), (2, 1));
    assert_eq!(dropped.labels(), [0, 1]);
}

#[test]
fn a_missing_level_is_a_level_or_replaced() {
    let text = GOOD.replace("blue", "");
    let own = schema_with("\"blue\"]", "\"blue\", \"?\"]\nmissing = { level = \"?\" }");
    let (data, _) = TableReader::new(&own)
        .read_csv(text.as_bytes(), "x")
        .unwrap();
    assert_eq!(data.row(1), [1.0, 0.0, 0.0, 0.0, 1.0]);
    let mode = schema_with("\"blue\"]", "\"blue\"]\nmissing = { value = \"red\" }");
    let (data, _) = TableReader::new(&mode)
        .read_csv(text.as_bytes(), "x")
        .unwrap();
    assert_eq!(data.row(1), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn missing_labels_are_refused_or_dropped() {
    let text = GOOD.to_owned() + "4,40,red,?\n";
    assert_eq!(fault(&text, "line 5, column `class`: "), ReadFault::Missing);
    let drop = schema_with("positive =", "missing = \"drop\"\npositive =");
    let (data, report) = TableReader::new(&drop)
        .read_csv(text.as_bytes(), "x")
        .unwrap();
    assert_eq!(
        (data.rows(), report.labels_missing, report.rows_dropped),
        (3, 1, 1)
    );
}

#[test]
fn a_table_of_dropped_rows_is_refused() {
    let schema = schema_with("[20, 60]", "[20, 60]\nmissing = \"drop\"");
    let text = "age,colour,class\n?,red,no\n?,red,yes\n";
    let error = TableReader::new(&schema)
        .read_csv(text.as_bytes(), "x")
        .unwrap_err();
    assert_eq!(error.fault(), &ReadFault::AllDropped(2));
}

#[test]
fn memory_is_bounded() {
    let limits = ReadLimits {
        values: 8,
        ..ReadLimits::default()
    };
    let schema = schema();
    let reader = TableReader::new(&schema).with_limits(limits);
    let error = reader.read_csv(GOOD.as_bytes(), "x").unwrap_err();
    assert_eq!(error.fault(), &ReadFault::TooLarge(8));
    assert_eq!(error.place(), Some(TablePlace::Line(4)));
}

#[test]
fn rows_for_prediction_need_no_label() {
    let schema = schema_with("[20, 60]", "[20, 60]\nmissing = \"drop\"");
    let reader = TableReader::new(&schema);
    let text = "colour,age\nred,20\nred,?\nblue,60\n";
    let (rows, report) = reader.read_rows_csv(text.as_bytes(), "x", None).unwrap();
    assert_eq!(rows.numbers(), [1, 3]);
    assert_eq!(rows.iter().nth(1).unwrap(), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(report.rows_dropped, 1);
    // A label is passed over, whatever it says.
    let text = GOOD.replace("yes", "maybe");
    assert_eq!(
        reader
            .read_rows_csv(text.as_bytes(), "x", None)
            .unwrap()
            .0
            .iter()
            .len(),
        3
    );
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema();
    let reader = TableReader::new(&schema);
    let absent = reader
        .read_file(&folder.path().join("absent.csv"))
        .unwrap_err();
    assert!(matches!(absent.fault(), ReadFault::File(_)));
    let directory = reader.read_file(folder.path()).unwrap_err();
    assert!(matches!(directory.fault(), ReadFault::File(_)));
    let path = folder.path().join("good.csv");
    std::fs::write(&path, GOOD).unwrap();
    assert_eq!(reader.read_file(&path).unwrap().0, read(GOOD).unwrap().0);
}

fn row() -> impl Strategy<Value = (f64, usize, bool)> {
    (20.0..=60.0f64, 0..3usize, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_tables_come_back(rows in prop::collection::vec(row(), 1..40)) {
        let mut rows = rows;
        rows.push((20.0, 0, false));
        rows.push((60.0, 2, true));
        let levels = ["red", "green", "blue"];
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.write_record(["class", "age", "colour"]).unwrap();
        for (age, level, class) in &rows {
            let class = if *class { "yes" } else { "no" };
            writer.write_record([class, &age.to_string(), levels[*level]]).unwrap();
        }
        let schema = schema();
        let (data, _) = read(writer.into_inner().unwrap()).unwrap();
        let encoded = schema.encoded_columns();
        prop_assert_eq!(data.rows(), rows.len());
        for (index, (age, level, class)) in rows.into_iter().enumerate() {
            let found = data.row(index);
            let original = encoded[0].offset + encoded[0].scale * found[0];
            prop_assert!((original - age).abs() < 1e-12 * 60.0);
            let hot: Vec<_> = (0..3).filter(|&code| found[1 + code] == 1.0).collect();
            prop_assert_eq!(hot, vec![level]);
            prop_assert_eq!(found[1..].iter().sum::<f64>(), 1.0);
            prop_assert_eq!(data.labels()[index], u32::from(class));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut text = b"age,colour,class\n".to_vec();
        text.extend(&bytes);
        let _ = read(&bytes);
        let _ = read(&text);
    }
}

#[test]
fn unknown_columns_are_passed_over_in_prediction_and_rows_keep_their_names() {
    let schema = schema_with("[20, 60]", "[20, 60]\nmissing = \"refuse\"");
    let reader = TableReader::new(&schema);
    let text = "id,colour,age,note\nA7,red,20,x\nA8,red,?,y\nA9,blue,60,z\n";
    let read = reader.read_rows_csv(text.as_bytes(), "x", Some("id"));
    let (rows, _) = read.unwrap();
    assert_eq!(rows.ids(), ["A7", "A9"]);
    assert_eq!(rows.left_out(), [(2, Some("A8".to_owned()))]);
    let read = reader.read_rows_csv(text.as_bytes(), "x", Some("number"));
    let error = read.unwrap_err();
    assert_eq!(error.fault(), &ReadFault::MissingColumn);
    assert_eq!(error.column_name(), Some("number"));
}

/// The good rows, written in another way.
fn read_bytes(name: &str, bytes: &[u8], format: CsvFormat) -> Result<Dataset, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let schema = schema();
    let reader = TableReader::new(&schema).with_format(format);
    reader.read_file(&path).map(|(data, _)| data)
}

#[test]
fn packed_and_marked_files_hold_the_same_rows() {
    use std::io::Write;
    let wanted = read_bytes("x.csv", GOOD.as_bytes(), CsvFormat::default()).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(GOOD.as_bytes()).unwrap();
    let mut forms = vec![
        gzip.finish().unwrap(),
        [b"\xef\xbb\xbf", GOOD.as_bytes()].concat(),
        GOOD.replace(',', ";").into_bytes(),
        GOOD.replace(',', "\t").into_bytes(),
        GOOD.replace('\n', "\r\n").into_bytes(),
    ];
    #[cfg(feature = "parquet")]
    forms.push(zstd::encode_all(GOOD.as_bytes(), 3).unwrap());
    for (index, form) in forms.iter().enumerate() {
        let found = read_bytes("x", form, CsvFormat::default()).unwrap();
        assert_eq!(found, wanted, "form {index}");
    }
    let cut = &forms[0][..forms[0].len() / 2];
    let error = read_bytes("x.gz", cut, CsvFormat::default()).unwrap_err();
    assert!(matches!(error.fault(), ReadFault::File(_)), "{error}");
}

#[test]
fn latin_1_is_read_when_it_is_stated_and_hinted_at_when_not() {
    let schema_text = schema().to_toml().replace("\"red\"", "\"gr\u{fc}n\"");
    let schema = Schema::parse(&schema_text, "x").unwrap();
    let text = GOOD.replace("red", "gr\u{fc}n");
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let error = TableReader::new(&schema)
        .read_csv(&latin[..], "x")
        .unwrap_err();
    assert!(error.to_string().contains("another encoding"), "{error}");
    let format = CsvFormat {
        encoding: TextEncoding::Latin1,
        ..CsvFormat::default()
    };
    let reader = TableReader::new(&schema);
    let wanted = reader.read_csv(text.as_bytes(), "x").unwrap();
    let found = reader.with_format(format).read_csv(&latin[..], "x");
    assert_eq!(found.unwrap(), wanted);
}

/// Rows of one person have one number, whatever else is read or dropped.
#[test]
fn persons_are_numbered_row_by_row_and_never_missing() {
    let folder = std::env::temp_dir().join(format!("heda-persons-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("rows.csv");
    let schema = schema_with("bounds = [20, 60]", "bounds = [20, 60]\nmissing = \"drop\"");
    let read = |text: &str, person: &str| {
        std::fs::write(&path, text).unwrap();
        TableReader::new(&schema).read_persons(&path, person)
    };
    let rows = "id,age,colour,class\nP1,20,red,no\nP2,?,red,no\nP3,60,blue,yes\nP1,30,green,no\n";
    let (data, persons, _) = read(rows, "id").unwrap();
    assert_eq!((data.rows(), persons), (3, vec![0, 1, 0]));
    let error = read(rows, "patient").unwrap_err();
    assert_eq!(*error.fault(), ReadFault::NoPersonColumn);
    assert!(error.to_string().contains("patient"), "{error}");
    for hole in ["", "?", "  "] {
        let text = rows.replacen("P3", hole, 1);
        let error = read(&text, "id").unwrap_err();
        assert_eq!(*error.fault(), ReadFault::NoPerson, "{hole:?}");
        assert!(error.to_string().contains("line 4"), "{error}");
    }
    // A row that is dropped needs no name; one of another kind may be named by an attribute.
    assert!(read(&rows.replacen("P2", "", 1), "id").is_ok());
    assert_eq!(read(rows, "colour").unwrap().1, [0, 1, 2]);
    std::fs::remove_dir_all(&folder).unwrap();
}
