//! Files that people write or that come from elsewhere: schemas, models, tables, configurations.

use super::in_file::InFile;
use crate::driver::{Target, Verdict};
use heda_learn::infer;
use heda_learn::model::Model;
use heda_learn::schema::Schema;
use heda_learn::table::{Columns, ReadLimits, TableReader, Values};

/// What the tables of the corpus are read by.
const SCHEMA: &str = include_str!("../../corpus/schema/patients.toml");
/// A small file must not ask for more than this.
const LIMITS: ReadLimits = ReadLimits {
    record_bytes: 1 << 16,
    values: 1 << 16,
};

/// A decoder of text: what is no text is refused before.
pub(super) fn of_text(decode: impl Fn(&str) -> Verdict + 'static) -> Target {
    Target::new(Vec::new(), move |input| match std::str::from_utf8(input) {
        Ok(text) => decode(text),
        Err(_) => Verdict::Rejected,
    })
}

/// Whatever is accepted is written and read again as the same schema.
pub(super) fn schema() -> Target {
    of_text(|text| {
        let read = Schema::parse(text, "schema.toml");
        if let Ok(schema) = &read {
            let again = Schema::parse(&schema.to_toml(), "again.toml");
            assert!(again.is_ok_and(|again| again == *schema));
        }
        Verdict::from(read)
    })
}

/// The same from a file, which need not be text.
pub(super) fn schema_file() -> Target {
    let file = InFile::named("schema.toml");
    Target::new(vec![SCHEMA.into()], move |input| {
        Verdict::from(Schema::read(file.put(input)))
    })
    .short_run(500)
}

/// Whatever is accepted is written and read again.
pub(super) fn model() -> Target {
    of_text(|text| {
        let read = Model::from_json(text, "model.json");
        if let Ok(model) = &read {
            assert!(Model::from_json(&model.to_json(), "again.json").is_ok());
        }
        Verdict::from(read)
    })
}

/// The same from a file, which need not be text.
pub(super) fn model_file() -> Target {
    let file = InFile::named("model.json");
    let seed = include_bytes!("../../corpus/model/patients.json").to_vec();
    let decode = move |input: &[u8]| Verdict::from(Model::read(file.put(input)));
    Target::new(vec![seed], decode).short_run(500)
}

fn patients() -> Schema {
    Schema::parse(SCHEMA, "patients.toml").expect("a schema of the corpus")
}

/// Rows with labels and without, read by a schema.
pub(super) fn csv() -> Target {
    let schema = patients();
    Target::new(Vec::new(), move |input| {
        let reader = TableReader::new(&schema).with_limits(LIMITS);
        let _ = reader.read_rows_csv(input, "rows.csv", None);
        let read = reader.read_csv(input, "rows.csv");
        if let Ok((data, _)) = &read {
            assert!(
                data.values()
                    .iter()
                    .all(|value| (0.0..=1.0).contains(value))
            );
        }
        Verdict::from(read)
    })
}

/// A CSV file in which a column says whose row it is: a number for every row.
pub(super) fn persons() -> Target {
    let schema = patients();
    let file = InFile::named("rows.csv");
    let seed = b"age,code,ward,class,patient\n20,red,a,no,x\n60,blue,c,yes,y\n30,red,b,no,x\n";
    Target::new(vec![seed.to_vec()], move |input| {
        let reader = TableReader::new(&schema).with_limits(LIMITS);
        let read = reader.read_persons(file.put(input), "patient");
        if let Ok((data, persons, _)) = &read {
            assert_eq!(data.rows(), persons.len());
        }
        Verdict::from(read)
    })
}

/// A proposal for a schema; what comes out is one.
pub(super) fn csv_proposal() -> Target {
    Target::new(Vec::new(), |input| {
        Verdict::from(infer::propose_csv(input, "rows", None))
    })
}

/// Columns in memory from a text with a column a line; those of numbers begin with `#`.
fn columns(text: &str) -> Columns {
    text.lines().fold(Columns::new(), |columns, line| {
        let mut cells = line.split(',');
        let name = cells.next().unwrap_or_default();
        let values = match name.strip_prefix('#') {
            Some(_) => {
                Values::Numbers(cells.map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
            }
            None => {
                let present = |cell: &str| (!cell.is_empty()).then(|| cell.to_owned());
                Values::Texts(cells.map(present).collect())
            }
        };
        columns.with(name.trim_start_matches('#'), values)
    })
}

/// Columns of another program: read by a schema, and a proposal for one.
pub(super) fn columns_in_memory() -> Target {
    let schema = patients();
    of_text(move |text| {
        let columns = columns(text);
        let _ = infer::propose_columns(&columns, "rows", None);
        let _ = TableReader::new(&schema).read_rows_columns(&columns, "rows");
        let read = TableReader::new(&schema).read_columns(&columns, "rows");
        if let Ok((data, _)) = &read {
            let mut values = data.values().iter();
            assert!(values.all(|value| (0.0..=1.0).contains(value)));
        }
        Verdict::from(read)
    })
}

/// Rows with labels, without, and a proposal for a schema, from a Parquet file.
pub(super) fn parquet() -> Target {
    let (schema, file) = (patients(), InFile::named("rows.parquet"));
    Target::new(Vec::new(), move |input| {
        let path = file.put(input);
        let reader = TableReader::new(&schema).with_limits(LIMITS);
        let _ = reader.read_rows_file(path, None);
        let _ = infer::propose(path, None, Default::default());
        Verdict::from(reader.read_file(path))
    })
    .short_run(1000)
}
