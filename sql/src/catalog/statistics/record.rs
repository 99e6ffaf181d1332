//! The record of a table's statistics.
//!
//! | key | value |
//! |---|---|
//! | `ma` | version byte, the number of ANALYZEs so far |
//! | `ma{table id}` | version byte, length, tagged fields |
//!
//! Fractions are the eight bytes of a double, big-endian. Values are in the form of stored rows.

use crate::catalog::tagged::{Fields, Writer, get_type, of_record, put_type, record};
use crate::codec::CodecError;
use crate::table::{ColumnId, StorageId, Table};
use pgtypes::codec::stored;
use pgtypes::{Datum, SqlType};

const VERSION: u8 = 1;
const WHAT: &str = "statistics";
/// Limit of the rows in an estimate.
const MAX_ROWS: u64 = 1 << 53;

/// Tags of a table's record.
mod table_tag {
    pub(super) const STORAGE: u64 = 1;
    pub(super) const ROWS: u64 = 2;
    pub(super) const COLUMNS: u64 = 3;
}

/// Tags of a column.
mod column_tag {
    pub(super) const ID: u64 = 1;
    /// And the next one for the modifier.
    pub(super) const TYPE: u64 = 2;
    pub(super) const NULLS: u64 = 4;
    pub(super) const WIDTH: u64 = 5;
    pub(super) const DISTINCT: u64 = 6;
    pub(super) const COMMON: u64 = 7;
    pub(super) const HISTOGRAM: u64 = 8;
}

/// The statistics of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableStatistics {
    /// The rows that were counted. After TRUNCATE the table has another one.
    pub(crate) storage: StorageId,
    /// The number of rows.
    pub(crate) rows: u64,
    /// The columns that were analyzed, in any order.
    pub(crate) columns: Vec<ColumnStatistics>,
}

/// The statistics of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnStatistics {
    pub(crate) column: ColumnId,
    /// The type of the values. ALTER TABLE may have given the column another one.
    pub(crate) ty: SqlType,
    /// The fraction of NULLs, from 0 to 1.
    pub(crate) null_fraction: f64,
    /// The bytes of a stored value that is not NULL, on average.
    pub(crate) width: u32,
    /// As in PostgreSQL: if positive the number of distinct values; if negative that number divided by the rows,
    /// negated. 0: unknown.
    pub(crate) distinct: f64,
    /// The most common values, the most frequent first.
    pub(crate) common: Vec<CommonValue>,
    /// Values that divide the others, but NULL, into parts of the same size; in order. Empty or two at least.
    pub(crate) histogram: Vec<Datum>,
}

/// A common value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommonValue {
    pub(crate) value: Datum,
    /// The fraction of all rows that have it.
    pub(crate) frequency: f64,
}

impl TableStatistics {
    /// The number of rows; `None` if the table was emptied since.
    pub(crate) fn rows_of(&self, table: &Table) -> Option<f64> {
        (self.storage == table.storage).then_some(self.rows as f64)
    }

    /// The statistics of a column of a table, if they are of its type.
    pub(crate) fn column(&self, table: &Table, at: usize) -> Option<&ColumnStatistics> {
        let column = table.columns.get(at)?;
        self.columns.iter().find(|found| found.column == column.id && found.ty == column.ty)
    }

    /// As a record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(table_tag::STORAGE, self.storage.0.into());
        out.number(table_tag::ROWS, self.rows);
        out.list(table_tag::COLUMNS, &self.columns, put_column);
        record(VERSION, &out)
    }

    /// Reads a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<TableStatistics, CodecError> {
        let fields = Fields::read(of_record(VERSION, bytes)?, table_tag::COLUMNS)?;
        Ok(TableStatistics {
            storage: StorageId(fields.u32(table_tag::STORAGE)?),
            rows: fields.number(table_tag::ROWS)?.min(MAX_ROWS),
            columns: fields.list(table_tag::COLUMNS, get_column)?,
        })
    }
}

impl ColumnStatistics {
    /// The number of distinct values of a table with so many rows; `None` if it is not known.
    pub(crate) fn distinct_of(&self, rows: f64) -> Option<f64> {
        match self.distinct {
            0.0 => None,
            share if share < 0.0 => Some((-share * rows).max(1.0)),
            number => Some(number),
        }
    }
}

fn put_column(column: &ColumnStatistics, out: &mut Writer) {
    out.number(column_tag::ID, column.column.0.into());
    put_type(column.ty, column_tag::TYPE, out);
    out.body(column_tag::NULLS, &column.null_fraction.to_be_bytes());
    out.number(column_tag::WIDTH, column.width.into());
    out.body(column_tag::DISTINCT, &column.distinct.to_be_bytes());
    out.list(column_tag::COMMON, &column.common, |common, out| {
        out.out.extend_from_slice(&common.frequency.to_be_bytes());
        stored::put(&common.value, &mut out.out);
    });
    out.list(column_tag::HISTOGRAM, &column.histogram, |value, out| stored::put(value, &mut out.out));
}

fn get_column(bytes: &[u8]) -> Result<ColumnStatistics, CodecError> {
    let fields = Fields::read(bytes, column_tag::HISTOGRAM)?;
    let ty = get_type(&fields, column_tag::TYPE)?;
    let malformed = || CodecError::new(WHAT, "malformed value");
    let value = |bytes: &[u8]| stored::get_datum(ty, bytes).map_err(|_| malformed());
    let common = |bytes: &[u8]| {
        let (frequency, rest) = bytes.split_first_chunk::<8>().ok_or_else(malformed)?;
        Ok(CommonValue { frequency: fraction(frequency)?, value: value(rest)? })
    };
    let double = |tag| fields.body(tag).and_then(|body| body.try_into().ok()).ok_or_else(malformed);
    let distinct = f64::from_be_bytes(double(column_tag::DISTINCT)?);
    Ok(ColumnStatistics {
        column: ColumnId(u16::try_from(fields.number(column_tag::ID)?).map_err(|_| malformed())?),
        ty,
        null_fraction: fraction(&double(column_tag::NULLS)?)?,
        width: fields.u32(column_tag::WIDTH)?,
        distinct: if distinct.is_finite() { distinct } else { return Err(malformed()) },
        common: fields.list(column_tag::COMMON, common)?,
        histogram: fields.list(column_tag::HISTOGRAM, value)?,
    })
}

/// A number from 0 to 1.
fn fraction(bytes: &[u8; 8]) -> Result<f64, CodecError> {
    let found = f64::from_be_bytes(*bytes);
    if (0.0..=1.0).contains(&found) { Ok(found) } else { Err(CodecError::new(WHAT, "no fraction")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let column = |id, ty| ColumnStatistics {
            column: ColumnId(id),
            ty,
            null_fraction: 0.25,
            width: 4,
            distinct: -0.5,
            common: vec![CommonValue { value: Datum::Int(7), frequency: 0.125 }],
            histogram: vec![Datum::Int(-1), Datum::Int(0), Datum::Int(9)],
        };
        let text = ColumnStatistics {
            common: vec![CommonValue { value: Datum::text(""), frequency: 1.0 }],
            histogram: Vec::new(),
            ..column(2, SqlType::TEXT)
        };
        let written =
            TableStatistics { storage: StorageId(16_385), rows: 12, columns: vec![column(1, SqlType::INT4), text] };
        let bytes = written.encode();
        assert_eq!(TableStatistics::decode(&bytes), Ok(written));
        for end in 0..bytes.len() {
            assert!(TableStatistics::decode(&bytes[..end]).is_err());
        }
        let mut newer = bytes.clone();
        newer[0] += 1;
        assert!(TableStatistics::decode(&newer).is_err());
    }

    #[test]
    fn a_negative_number_of_distinct_values_grows_with_the_rows() {
        let of = |distinct| ColumnStatistics {
            column: ColumnId(1),
            ty: SqlType::INT4,
            null_fraction: 0.0,
            width: 4,
            distinct,
            common: Vec::new(),
            histogram: Vec::new(),
        };
        assert_eq!(of(0.0).distinct_of(10.0), None);
        assert_eq!(of(5.0).distinct_of(10.0), Some(5.0));
        assert_eq!(of(-0.5).distinct_of(10.0), Some(5.0));
        assert_eq!(of(-1.0).distinct_of(0.0), Some(1.0));
    }
}
