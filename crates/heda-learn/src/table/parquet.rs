//! Parquet: columns of integers, floats, strings, booleans, and dictionaries of them. Read in
//! batches; columns that are not wanted stay on the disk.

use super::error::{Place, ReadError, ReadFault};
use super::source::{Cell, RowSource, Visit};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 1024;

/// Rows of a Parquet file.
pub(crate) struct ParquetSource {
    builder: ParquetRecordBatchReaderBuilder<File>,
    file: String,
    header: Vec<String>,
}

impl ParquetSource {
    /// Reads the description at the end of the file.
    pub(crate) fn open(input: File, file: &str) -> Result<Self, ReadError> {
        let builder = contained(file, || ParquetRecordBatchReaderBuilder::try_new(input))?;
        let header = builder.schema().fields().iter();
        let header = header.map(|field| field.name().trim().to_owned()).collect();
        Ok(Self {
            builder,
            file: file.to_owned(),
            header,
        })
    }

    fn check_types(&self, wanted: &[usize]) -> Result<(), ReadError> {
        for &index in wanted {
            let kind = self.builder.schema().field(index).data_type();
            if !is_supported(kind) {
                let fault = ReadFault::UnsupportedType(kind.to_string());
                return Err(ReadError::new(&self.file, fault).column(&self.header[index]));
            }
        }
        Ok(())
    }
}

/// Decodes a part of the file. The decoder returns errors for most damage but panics on some of
/// it; a damaged file must never bring down a program that serves others.
fn contained<T, E: std::error::Error>(
    file: &str,
    decode: impl FnOnce() -> Result<T, E>,
) -> Result<T, ReadError> {
    let broken = |reason: String| ReadError::new(file, ReadFault::Parquet(reason));
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| broken(error.to_string())),
        Err(_) => Err(broken("its parts contradict each other".to_owned())),
    }
}

impl RowSource for ParquetSource {
    fn file(&self) -> &str {
        &self.file
    }

    fn header(&self) -> &[String] {
        &self.header
    }

    fn header_place(&self) -> Option<Place> {
        None
    }

    fn visit(self, wanted: &[usize], visit: &mut Visit<'_>) -> Result<(), ReadError> {
        self.check_types(wanted)?;
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), wanted.iter().copied());
        let builder = self
            .builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS);
        let mut batches = contained(&self.file, || builder.build())?;
        let order = places_after_projection(wanted);
        let mut row_number = 0;
        while let Some(batch) = contained(&self.file, || batches.next().transpose())? {
            for row in 0..batch.num_rows() {
                row_number += 1;
                visit(Place::Row(row_number), &cells(&batch, &order, row))?;
            }
        }
        Ok(())
    }
}

/// Projection keeps the columns in the order of the file: where each wanted one then is.
fn places_after_projection(wanted: &[usize]) -> Vec<usize> {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable();
    wanted
        .iter()
        .map(|index| sorted.partition_point(|other| other < index))
        .collect()
}

fn cells<'b>(batch: &'b RecordBatch, order: &[usize], row: usize) -> Vec<Cell<'b>> {
    order
        .iter()
        .map(|&place| cell(batch.column(place).as_ref(), row))
        .collect()
}

fn is_supported(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => {
            is_supported(values) && !matches!(**values, DataType::Dictionary(..))
        }
        DataType::Float16 => false,
        DataType::Null | DataType::Boolean => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        other => other.is_integer() || other.is_floating(),
    }
}

/// The value of a supported type at `row`.
fn cell(array: &dyn Array, row: usize) -> Cell<'_> {
    if array.is_null(row) {
        return Cell::Null;
    }
    macro_rules! integer {
        ($kind:ty) => {
            Cell::Integer(array.as_primitive::<$kind>().value(row).into())
        };
    }
    match array.data_type() {
        DataType::Boolean => Cell::Text(if array.as_boolean().value(row) {
            "true"
        } else {
            "false"
        }),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Float32 => Cell::Number(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Cell::Number(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).trim()),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).trim()),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row).trim()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            match cell(dictionary.keys(), row) {
                Cell::Integer(key) if (0..dictionary.values().len() as i128).contains(&key) => {
                    cell(dictionary.values().as_ref(), key as usize)
                }
                _ => Cell::Null,
            }
        }
        // `is_supported` lets only the null type through to here.
        _ => Cell::Null,
    }
}
