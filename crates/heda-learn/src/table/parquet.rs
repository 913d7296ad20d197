//! Parquet: columns of numbers, dates, times, strings and booleans. Read row by row; columns that
//! are not wanted stay on the disk.
//!
//! The rows come from the format's own record reader and not through Arrow, whose crates take long
//! to build.

use super::error::{ReadError, ReadFault, TablePlace};
use super::source::{Cell, RowSource, Visit};
use parquet::basic::Type as Physical;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::data_type::Decimal;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 1024;

/// Rows of a Parquet file.
pub(crate) struct ParquetSource {
    reader: SerializedFileReader<File>,
    file: String,
    header: Vec<String>,
}

impl ParquetSource {
    /// Reads the description at the end of the file.
    pub(crate) fn open(input: File, file: &str) -> Result<Self, ReadError> {
        let opened = contained(file, || SerializedFileReader::new(input))?;
        let reader = opened.map_err(|e| broken(file, &e.to_string()))?;
        let header = fields(&reader).iter();
        let header = header.map(|field| field.name().trim().to_owned()).collect();
        Ok(Self {
            reader,
            file: file.to_owned(),
            header,
        })
    }

    fn check_types(&self, wanted: &[usize]) -> Result<(), ReadError> {
        for &index in wanted {
            let field = &fields(&self.reader)[index];
            if !is_supported(field) {
                let fault = ReadFault::UnsupportedType(type_name(field));
                return Err(ReadError::new(&self.file, fault).column(&self.header[index]));
            }
        }
        Ok(())
    }

    /// Names a codec that this build cannot unpack, instead of failing somewhere within.
    fn check_codecs(&self, wanted: &[usize]) -> Result<(), ReadError> {
        for &index in wanted {
            let name = fields(&self.reader)[index].name();
            let groups = self.reader.metadata().row_groups().iter();
            let mut chunks = groups.flat_map(|group| group.columns());
            let unread = chunks.find(|chunk| {
                let path = chunk.column_path().parts();
                path.first().is_some_and(|part| part == name) && !is_unpacked(chunk.compression())
            });
            if let Some(chunk) = unread {
                let fault = ReadFault::UnsupportedCodec(chunk.compression().to_string());
                return Err(ReadError::new(&self.file, fault).column(&self.header[index]));
            }
        }
        Ok(())
    }

    /// The wanted columns, in the order of the file.
    fn projection(&self, wanted: &[usize]) -> Result<Type, ParquetError> {
        let all = fields(&self.reader).iter().enumerate();
        let kept = all.filter(|(index, _)| wanted.contains(index));
        let schema = self.reader.metadata().file_metadata().schema();
        Type::group_type_builder(schema.name())
            .with_fields(kept.map(|(_, field)| Arc::clone(field)).collect())
            .build()
    }
}

fn fields(reader: &SerializedFileReader<File>) -> &[TypePtr] {
    reader.metadata().file_metadata().schema().get_fields()
}

fn broken(file: &str, reason: &str) -> ReadError {
    ReadError::new(file, ReadFault::Parquet(reason.to_owned()))
}

/// Decodes a part of the file. The decoder returns errors for most damage but panics on some of
/// it; a damaged file must never bring down a program that serves others.
fn contained<T>(file: &str, decode: impl FnOnce() -> T) -> Result<T, ReadError> {
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    decoded.map_err(|_| broken(file, "its parts contradict each other"))
}

impl RowSource for ParquetSource {
    fn file(&self) -> &str {
        &self.file
    }

    fn header(&self) -> &[String] {
        &self.header
    }

    fn header_place(&self) -> Option<TablePlace> {
        None
    }

    fn readable(&self) -> Vec<bool> {
        let all = fields(&self.reader).iter();
        all.map(|field| is_supported(field)).collect()
    }

    fn visit(self, wanted: &[usize], visit: &mut Visit<'_>) -> Result<(), ReadError> {
        self.check_types(wanted)?;
        self.check_codecs(wanted)?;
        let all = fields(&self.reader);
        let nanoseconds: Vec<bool> = wanted.iter().map(|&w| is_nanoseconds(&all[w])).collect();
        let file = self.file.clone();
        // The decoder's words would show values.
        let damaged = |_| broken(&file, "some rows cannot be decoded");
        let projection = self.projection(wanted).map_err(damaged)?;
        let rows = RowIter::from_file_into(Box::new(self.reader)).project(Some(projection));
        let mut rows = rows.map_err(damaged)?.with_batch_size(BATCH_ROWS);
        let order = places_after_projection(wanted);
        let mut row_number = 0;
        while let Some(row) = contained(&file, || rows.next())? {
            let row = row.map_err(damaged)?;
            row_number += 1;
            let place = TablePlace::Row(row_number);
            let found: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
            let cells = order.iter().zip(&nanoseconds).map(|(&at, &nanoseconds)| {
                let field = found.get(at);
                field.map_or(Ok(Cell::Null), |field| cell(field, nanoseconds))
            });
            let cells = cells.collect::<Result<Vec<_>, _>>();
            let cells = cells.map_err(|fault| ReadError::new(&file, fault).at(place))?;
            visit(place, &cells)?;
        }
        Ok(())
    }
}

/// Projection keeps the columns in the order of the file: where each wanted one then is.
fn places_after_projection(wanted: &[usize]) -> Vec<usize> {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    wanted
        .iter()
        .map(|index| sorted.partition_point(|other| other < index))
        .collect()
}

fn is_supported(field: &Type) -> bool {
    let info = field.get_basic_info();
    let repeated = info.has_repetition() && info.repetition() == Repetition::REPEATED;
    if !field.is_primitive() || repeated {
        return false;
    }
    let (converted, logical) = (info.converted_type(), info.logical_type_ref());
    match field.get_physical_type() {
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => true,
        Physical::INT32 | Physical::INT64 => match converted {
            // Without this name unsigned numbers would be read as signed ones.
            ConvertedType::NONE => match logical {
                None | Some(LogicalType::Unknown) => true,
                _ => is_nanoseconds(field),
            },
            ConvertedType::INT_8 | ConvertedType::INT_16 => true,
            ConvertedType::INT_32 | ConvertedType::INT_64 => true,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 => true,
            ConvertedType::UINT_32 | ConvertedType::UINT_64 => true,
            ConvertedType::DATE | ConvertedType::DECIMAL => true,
            ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS => true,
            _ => false,
        },
        Physical::BYTE_ARRAY => {
            let texts = matches!(logical, Some(LogicalType::String | LogicalType::Enum));
            let named = [
                ConvertedType::UTF8,
                ConvertedType::ENUM,
                ConvertedType::DECIMAL,
            ];
            texts || named.contains(&converted)
        }
        // The timestamps of older writers.
        Physical::INT96 => true,
        Physical::FIXED_LEN_BYTE_ARRAY => {
            converted == ConvertedType::DECIMAL || matches!(logical, Some(LogicalType::Float16))
        }
    }
}

/// Whether whole numbers of this column are nanoseconds since 1970, which have no older name.
fn is_nanoseconds(field: &Type) -> bool {
    let logical = field.get_basic_info().logical_type_ref();
    matches!(logical, Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS)
}

/// Whether this build unpacks a codec.
fn is_unpacked(codec: Compression) -> bool {
    !matches!(codec, Compression::LZO | Compression::BROTLI(_))
}

/// What to call a type that is not supported.
fn type_name(field: &Type) -> String {
    let info = field.get_basic_info();
    match (field.is_primitive(), info.converted_type()) {
        (false, _) => "GROUP".to_owned(),
        (true, ConvertedType::NONE) => field.get_physical_type().to_string(),
        (true, converted) => converted.to_string(),
    }
}

/// Milliseconds of a day.
const DAY_MILLISECONDS: f64 = 86_400_000.0;

/// A decimal as a number.
fn decimal(value: &Decimal) -> Result<f64, ReadFault> {
    let bytes = value.data();
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    // Sign first, then more and more precisely.
    let begin = if negative { -1.0 } else { 0.0 };
    let whole = bytes
        .iter()
        .fold(begin, |sum, &byte| sum * 256.0 + f64::from(byte));
    let number = whole / 10f64.powi(value.scale());
    let finite = number.is_finite().then_some(number);
    finite.ok_or_else(|| ReadFault::NotFinite("a decimal of so many digits".into()))
}

/// A value of a supported type.
fn cell(field: &Field, nanoseconds: bool) -> Result<Cell<'_>, ReadFault> {
    Ok(match field {
        Field::Long(value) if nanoseconds => Cell::Days(*value as f64 / 1e6 / DAY_MILLISECONDS),
        Field::Date(days) => Cell::Days(f64::from(*days)),
        Field::TimestampMillis(value) => Cell::Days(*value as f64 / DAY_MILLISECONDS),
        Field::TimestampMicros(value) => Cell::Days(*value as f64 / 1e3 / DAY_MILLISECONDS),
        Field::Decimal(value) => Cell::Number(decimal(value)?),
        Field::Float16(value) => Cell::Number(value.to_f64()),
        Field::Bool(true) => Cell::Text("true"),
        Field::Bool(false) => Cell::Text("false"),
        Field::Byte(value) => Cell::Integer((*value).into()),
        Field::Short(value) => Cell::Integer((*value).into()),
        Field::Int(value) => Cell::Integer((*value).into()),
        Field::Long(value) => Cell::Integer((*value).into()),
        Field::UByte(value) => Cell::Integer((*value).into()),
        Field::UShort(value) => Cell::Integer((*value).into()),
        Field::UInt(value) => Cell::Integer((*value).into()),
        Field::ULong(value) => Cell::Integer((*value).into()),
        Field::Float(value) => Cell::Number((*value).into()),
        Field::Double(value) => Cell::Number(*value),
        Field::Str(text) => Cell::Text(text.trim()),
        // A string by its logical type alone.
        Field::Bytes(bytes) => Cell::Text(bytes.as_utf8().map_err(|_| ReadFault::Utf8)?.trim()),
        // `is_supported` lets nothing else through to here.
        _ => Cell::Null,
    })
}
