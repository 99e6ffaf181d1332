//! Row values: the columns that the key does not hold, each under its column id.
//!
//! A version byte, then a field per column in the order of ids: a varint of `(id - previous id) << 3 | kind`, then the
//! data of the kind. NULL is stored as one byte: a missing field means that the row was written before the column
//! existed. Readers skip fields of unknown ids.

use bytes::Bytes;

use super::primitives::{CodecError, get_varint, put_varint, take};
use crate::table::Table;
use pgtypes::{Datum, DatumRef};

const WHAT: &str = "row value";
/// The only version so far.
pub const VERSION: u8 = 1;

/// Field kinds: the low three bits of the tag.
const NULL: u64 = 0;
const FALSE: u64 = 1;
const TRUE: u64 = 2;
/// Zigzag varint.
const INT: u64 = 3;
/// Eight bytes, little-endian.
const FLOAT: u64 = 4;
/// Varint length, then UTF-8.
const TEXT: u64 = 5;
/// Varint length, then bytes.
const BYTES: u64 = 6;
/// Eight bytes, little-endian.
const TIMESTAMP: u64 = 7;

/// Encodes the columns of `row` that its key does not hold exactly. Of primary key columns that is only the float -0.
pub fn encode(table: &Table, row: &[Datum]) -> Bytes {
    let mut out = Vec::with_capacity(16 + row.iter().map(size_hint).sum::<usize>());
    out.push(VERSION);
    let mut last_id = 0;
    for (at, (column, value)) in table.columns.iter().zip(row).enumerate() {
        if table.primary_key.contains(&at) && !is_negative_zero(value) {
            continue;
        }
        let id = u64::from(column.id.0);
        put_field((id - last_id) << 3, value, &mut out);
        last_id = id;
    }
    out.into()
}

fn is_negative_zero(value: &Datum) -> bool {
    matches!(value, Datum::Float(f) if *f == 0.0 && f.is_sign_negative())
}

fn size_hint(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len() + 6,
        Datum::Bytes(bytes) => bytes.len() + 6,
        _ => 10,
    }
}

fn put_field(tag: u64, value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null => put_varint(tag | NULL, out),
        Datum::Bool(value) => put_varint(tag | if *value { TRUE } else { FALSE }, out),
        Datum::Int(value) => {
            put_varint(tag | INT, out);
            put_varint((value << 1 ^ value >> 63) as u64, out);
        }
        Datum::Float(value) => {
            put_varint(tag | FLOAT, out);
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        Datum::Text(text) => put_string(tag | TEXT, text.as_bytes(), out),
        Datum::Bytes(bytes) => put_string(tag | BYTES, bytes, out),
        Datum::Timestamp(micros) => {
            put_varint(tag | TIMESTAMP, out);
            out.extend_from_slice(&micros.to_le_bytes());
        }
    }
}

fn put_string(tag: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(tag, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Decodes the columns marked in `needed` into `row`, which has a place for every column. The others keep their values:
/// NULL, or a key column already decoded.
pub fn decode(table: &Table, value: &[u8], needed: &[bool], row: &mut [Datum]) -> Result<(), CodecError> {
    visit(table, value, needed, |at, field| row[at] = field.to_datum())
}

/// Passes the position and the value of each stored column that is marked in `needed` to `found`, in the order of
/// column ids. A column that is not stored is not passed: it is NULL, or in the key.
pub fn visit<'v>(
    table: &Table,
    value: &'v [u8],
    needed: &[bool],
    mut found: impl FnMut(usize, DatumRef<'v>),
) -> Result<(), CodecError> {
    let Some((&version, mut rest)) = value.split_first() else { return Err(CodecError::new(WHAT, "empty")) };
    if version != VERSION {
        return Err(CodecError::new(WHAT, "unknown version"));
    }
    let mut columns = table.columns.iter().enumerate().peekable();
    let mut id = 0u64;
    while !rest.is_empty() {
        let tag = get_varint(&mut rest, WHAT)?;
        let step = tag >> 3;
        id = id.checked_add(step).filter(|_| step > 0).ok_or(CodecError::new(WHAT, "column ids do not grow"))?;
        while columns.next_if(|(_, column)| u64::from(column.id.0) < id).is_some() {}
        let known = columns.next_if(|(_, column)| u64::from(column.id.0) == id);
        let place = known.filter(|(at, _)| needed.get(*at) == Some(&true)).map(|(at, _)| at);
        let value = get_field(tag & 7, place.is_some(), &mut rest)?;
        if let (Some(at), Some(value)) = (place, value) {
            found(at, value);
        }
    }
    Ok(())
}

/// Reads a field. Skips it and returns `None` if not `wanted`.
fn get_field<'v>(kind: u64, wanted: bool, input: &mut &'v [u8]) -> Result<Option<DatumRef<'v>>, CodecError> {
    let eight = |input: &mut &'v [u8]| -> Result<u64, CodecError> {
        let bytes = take(input, 8, WHAT)?;
        Ok(bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)))
    };
    let value = match kind {
        NULL => DatumRef::Null,
        FALSE => DatumRef::Bool(false),
        TRUE => DatumRef::Bool(true),
        INT => {
            let raw = get_varint(input, WHAT)?;
            DatumRef::Int((raw >> 1) as i64 ^ -((raw & 1) as i64))
        }
        FLOAT => DatumRef::Float(f64::from_bits(eight(input)?)),
        TIMESTAMP => DatumRef::Timestamp(eight(input)? as i64),
        _ => {
            let length = usize::try_from(get_varint(input, WHAT)?).unwrap_or(usize::MAX);
            let bytes = take(input, length, WHAT)?;
            if !wanted {
                return Ok(None);
            }
            if kind == TEXT {
                let text = std::str::from_utf8(bytes).map_err(|_| CodecError::new(WHAT, "text is not UTF-8"))?;
                DatumRef::Text(text)
            } else {
                DatumRef::Bytes(bytes)
            }
        }
    };
    Ok(wanted.then_some(value))
}
