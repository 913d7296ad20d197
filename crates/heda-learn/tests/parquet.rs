//! Parquet files: the same rows as CSV, every supported type, and files that are wrong.

#![allow(clippy::unwrap_used)]

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float32Array, Float64Array, Int8Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt64Array,
};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::infer;
use heda_learn::schema::Schema;
use heda_learn::table::{CsvFormat, ReadError, ReadFault, TablePlace, TableReader};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

const SCHEMA: &str = r#"
format = 1
name = "test"
missing_markers = ["-9"]

[label]
column = "class"
classes = ["no", "yes"]
positive = "yes"

[[column]]
name = "age"
kind = "numeric"
bounds = [20, 60]
missing = { value = 30 }

[[column]]
name = "code"
kind = "categorical"
levels = ["1", "2", "true", "false", "red"]
coding = "ordinal"
missing = { value = "red" }
"#;

/// Columns in a Parquet file of a folder that lives as long as the value.
fn written(columns: Vec<(&str, ArrayRef)>) -> (TempDir, PathBuf) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    (folder, path)
}

fn text(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn labels() -> ArrayRef {
    text(&["no", "yes", "no"])
}

fn ages() -> ArrayRef {
    Arc::new(Float64Array::from(vec![20.0, 60.0, 40.0]))
}

/// Reads the three rows: the encoded values row by row.
fn read(age: ArrayRef, code: ArrayRef, class: ArrayRef) -> Result<Vec<f64>, ReadError> {
    // The order of the file is not the order of the schema.
    let (_folder, path) = written(vec![("class", class), ("code", code), ("age", age)]);
    let schema = Schema::parse(SCHEMA, "test.toml").unwrap();
    let (data, _) = TableReader::new(&schema).read_file(&path)?;
    assert_eq!(data.labels(), [0, 1, 0]);
    Ok(data.values().to_vec())
}

#[test]
fn reads_every_kind_of_number() {
    let wanted = [0.0, 0.0, 1.0, 0.25, 0.5, 0.0];
    let arrays: [ArrayRef; 6] = [
        ages(),
        Arc::new(Float32Array::from(vec![20.0, 60.0, 40.0])),
        Arc::new(Int8Array::from(vec![20, 60, 40])),
        Arc::new(Int64Array::from(vec![20, 60, 40])),
        Arc::new(UInt64Array::from(vec![20, 60, 40])),
        text(&["20", " 60", "40.0"]),
    ];
    for age in arrays {
        let code = text(&["1", "2", "1"]);
        assert_eq!(read(age, code, labels()).unwrap(), wanted);
    }
}

#[test]
fn reads_every_kind_of_level() {
    let dictionary: DictionaryArray<Int32Type> = vec!["1", "2", "1"].into_iter().collect();
    let arrays: [ArrayRef; 6] = [
        Arc::new(LargeStringArray::from(vec!["1", "2", "1"])),
        Arc::new(StringViewArray::from(vec!["1", "2", "1"])),
        Arc::new(Int64Array::from(vec![1, 2, 1])),
        Arc::new(UInt64Array::from(vec![1, 2, 1])),
        Arc::new(Float64Array::from(vec![1.0, 2.0, 1.0])),
        Arc::new(dictionary),
    ];
    for code in arrays {
        let kind = code.data_type().clone();
        let found = read(ages(), code, labels()).unwrap();
        assert_eq!(found, [0.0, 0.0, 1.0, 0.25, 0.5, 0.0], "{kind}");
    }
    let flags = Arc::new(BooleanArray::from(vec![true, false, true]));
    assert_eq!(read(ages(), flags, labels()).unwrap()[1], 0.5);
}

#[test]
fn nulls_and_markers_are_missing() {
    let age = Arc::new(Int64Array::from(vec![None, Some(-9), Some(40)]));
    let code: DictionaryArray<Int32Type> = vec![Some("1"), None, Some("1")].into_iter().collect();
    let found = read(age, Arc::new(code), labels()).unwrap();
    assert_eq!(found, [0.25, 0.0, 0.25, 1.0, 0.5, 0.0]);
}

/// The fault and the message of a file.
fn fault(age: ArrayRef, code: ArrayRef, class: ArrayRef) -> (ReadFault, String) {
    let error = read(age, code, class).unwrap_err();
    (error.fault().clone(), error.to_string())
}

#[test]
fn bad_values_are_named_by_row_and_column() {
    let codes = || text(&["1", "2", "1"]);
    let nan = Arc::new(Float64Array::from(vec![20.0, f64::NAN, 30.0]));
    let (found, message) = fault(nan, codes(), labels());
    assert_eq!(found, ReadFault::NotFinite("NaN".into()));
    assert!(
        message.contains("data.parquet: row 2, column `age`: "),
        "{message}"
    );
    let infinite = Arc::new(Float64Array::from(vec![20.0, 30.0, f64::INFINITY]));
    assert!(matches!(
        fault(infinite, codes(), labels()).0,
        ReadFault::NotFinite(_)
    ));
    let (found, message) = fault(text(&["20", "x", "30"]), codes(), labels());
    assert_eq!(found, ReadFault::NotANumber("x".into()));
    assert!(message.contains("row 2, column `age`"), "{message}");
    let (found, _) = fault(ages(), text(&["1", "2", "3"]), labels());
    assert_eq!(found, ReadFault::UnknownLevel("3".into()));
    let (found, _) = fault(ages(), codes(), text(&["no", "no", "no"]));
    assert_eq!(found, ReadFault::OneClass("no".into()));
}

#[test]
fn unsupported_types_are_refused() {
    let bytes = Arc::new(BinaryArray::from_vec(vec![b"a", b"b", b"c"]));
    let (found, message) = fault(bytes, text(&["1", "2", "1"]), labels());
    assert!(matches!(found, ReadFault::UnsupportedType(_)), "{found:?}");
    assert!(message.contains("column `age`"), "{message}");
    let dates = Arc::new(Date32Array::from(vec![1, 2, 3]));
    let (found, _) = fault(dates, text(&["1", "2", "1"]), labels());
    assert_eq!(found, ReadFault::NotANumber("1970-01-02".into()));
}

#[test]
fn decimals_are_numbers() {
    let decimals = |values: Vec<i128>, precision| {
        let array = Decimal128Array::from(values);
        let array = array.with_precision_and_scale(precision, 2).unwrap();
        read(Arc::new(array), text(&["1", "2", "1"]), labels()).unwrap()
    };
    // Stored as 32-bit, 64-bit and longer numbers.
    for precision in [8, 16, 30] {
        let found = decimals(vec![2000, 3050, 6000], precision);
        assert_eq!(found, [0.0, 0.0, 0.2625, 0.25, 1.0, 0.0], "{precision}");
    }
    let negative = Decimal128Array::from(vec![-150, 0, 99]);
    let negative = negative.with_precision_and_scale(30, 2).unwrap();
    let (found, _) = fault(Arc::new(negative), text(&["1", "2", "1"]), labels());
    let ReadFault::OutsideBounds { value, .. } = found else {
        panic!("{found:?}");
    };
    assert_eq!(value, "-1.5");
}

#[test]
fn dates_and_timestamps_are_days() {
    let (day, nanosecond) = (86_400_000, 1_000_000);
    let arrays: [ArrayRef; 4] = [
        Arc::new(Date32Array::from(vec![0, 5, 10])),
        Arc::new(TimestampMillisecondArray::from(vec![0, 5 * day, 10 * day])),
        Arc::new(TimestampMicrosecondArray::from(vec![
            0,
            5_000 * day,
            10_000 * day,
        ])),
        Arc::new(TimestampNanosecondArray::from(vec![
            0,
            5 * day * nanosecond,
            10 * day * nanosecond,
        ])),
    ];
    for array in arrays {
        let kind = array.data_type().clone();
        let (_folder, path) = written(vec![("seen", array), ("class", labels())]);
        let proposal = infer::propose(&path, None, CsvFormat::default()).unwrap();
        assert!(
            proposal.text.contains("\"1970-01-11\""),
            "{kind}: {}",
            proposal.text
        );
        let (data, _) = proposal
            .reader(CsvFormat::default())
            .read_file(&path)
            .unwrap();
        assert_eq!(data.values(), [0.0, 0.5, 1.0], "{kind}");
    }
}

#[test]
fn columns_of_other_types_are_passed_over_in_a_proposal() {
    let bytes = Arc::new(BinaryArray::from_vec(vec![b"a", b"b", b"c"]));
    let (_folder, path) = written(vec![("raw", bytes), ("age", ages()), ("class", labels())]);
    let proposal = infer::propose(&path, None, CsvFormat::default()).unwrap();
    assert_eq!(proposal.schema.ignore(), ["raw"]);
    assert!(
        proposal
            .reader(CsvFormat::default())
            .read_file(&path)
            .is_ok()
    );
}

#[test]
fn every_common_codec_is_unpacked_and_others_are_named() {
    let write = |codec| {
        let columns = [
            ("age", ages()),
            ("code", text(&["1", "2", "1"])),
            ("class", labels()),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.parquet");
        let file = std::fs::File::create(&path).unwrap();
        let properties = WriterProperties::builder().set_compression(codec).build();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let schema = Schema::parse(SCHEMA, "test.toml").unwrap();
        TableReader::new(&schema).read_file(&path)
    };
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        assert_eq!(write(codec).unwrap().0.rows(), 3, "{codec}");
    }
}

#[test]
fn columns_must_match_the_schema() {
    let schema = Schema::parse(SCHEMA, "test.toml").unwrap();
    let (_folder, path) = written(vec![("age", ages()), ("class", labels())]);
    let error = TableReader::new(&schema).read_file(&path).unwrap_err();
    assert_eq!(error.fault(), &ReadFault::MissingColumn);
    let codes = text(&["1", "2", "1"]);
    let (_folder, path) = written(vec![
        ("age", ages()),
        ("code", codes),
        ("class", labels()),
        ("other", ages()),
    ]);
    let error = TableReader::new(&schema).read_file(&path).unwrap_err();
    assert_eq!(error.fault(), &ReadFault::UnknownColumn);
    assert_eq!(error.column_name(), Some("other"));
}

#[test]
fn empty_tables_are_refused() {
    let none = || Arc::new(StringArray::from(Vec::<&str>::new())) as ArrayRef;
    let (found, _) = fault(none(), none(), none());
    assert_eq!(found, ReadFault::Empty);
}

/// A bundled data set as strings in Parquet.
fn as_parquet(bundle: Bundle) -> (TempDir, PathBuf) {
    let mut reader = csv::Reader::from_reader(bundle.csv());
    let header = reader.headers().unwrap().clone();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let column = |at: usize| {
        rows.iter()
            .map(|row| Some(&row[at]))
            .collect::<StringArray>()
    };
    let columns = header.iter().enumerate();
    written(
        columns
            .map(|(at, name)| (name, Arc::new(column(at)) as ArrayRef))
            .collect(),
    )
}

#[test]
fn gives_the_same_rows_as_csv() {
    for bundle in [Bundle::Crx, Bundle::Car] {
        let (_folder, path) = as_parquet(bundle);
        let schema = bundle.schema(Coding::Natural);
        let (found, report) = TableReader::new(&schema).read_file(&path).unwrap();
        let (wanted, wanted_report) = bundle.table(Coding::Natural).unwrap();
        assert_eq!(found, wanted);
        assert_eq!(report, wanted_report);
        let (rows, _) = TableReader::new(&schema)
            .read_rows_file(&path, None)
            .unwrap();
        assert_eq!(rows.values(), wanted.values());
    }
}

#[test]
fn schemas_are_proposed_from_parquet_too() {
    let (_folder, path) = as_parquet(Bundle::Crx);
    let proposal = infer::propose(&path, None, CsvFormat::default()).unwrap();
    assert_eq!(proposal.schema.name(), "data");
    let (data, _) = proposal
        .reader(CsvFormat::default())
        .read_file(&path)
        .unwrap();
    assert_eq!(data.rows(), 690);
}

#[test]
fn damaged_files_give_errors() {
    let (_folder, path) = as_parquet(Bundle::Car);
    let sound = std::fs::read(&path).unwrap();
    let schema = Bundle::Car.schema(Coding::Paper);
    let reader = TableReader::new(&schema);
    std::fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    let error = reader.read_file(&path).unwrap_err();
    assert!(matches!(error.fault(), ReadFault::Parquet(_)), "{error}");
    for at in (4..sound.len()).step_by(sound.len() / 400) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, damaged).unwrap();
        // Some damage is harmless or undetectable; none may bring the program down.
        let _ = reader.read_file(&path);
    }
}

#[test]
fn places_read_well() {
    assert_eq!(TablePlace::Row(3).to_string(), "row 3");
    assert_eq!(TablePlace::Line(3).to_string(), "line 3");
}
