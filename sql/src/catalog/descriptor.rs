//! The encoding of table descriptors: a version byte, then varints and length-prefixed strings.
//!
//! Table: `version, id, storage, name, key name, number of columns, columns, number of key columns, positions`. Column:
//! `id, type, type modifier, flags (1 NOT NULL, 2 has default), name[, default]`. The type is its PostgreSQL OID. The
//! modifier is that of `atttypmod` plus one.

use bytes::Bytes;

use super::keys;
use crate::codec::{CodecError, get_varint, put_varint, take};
use crate::table::{Column, ColumnId, MAX_COLUMNS, StorageId, Table, TableId};
use pgtypes::{Category, SqlType};

const WHAT: &str = "table descriptor";
/// Rows of tables whose descriptor has this version have format 2.
const VERSION: u8 = 2;
const NOT_NULL: u64 = 1;
const HAS_DEFAULT: u64 = 2;

/// Encodes a table.
pub fn encode(table: &Table) -> Bytes {
    let mut out = vec![VERSION];
    put_varint(table.id.0.into(), &mut out);
    put_varint(table.storage.0.into(), &mut out);
    put_string(&table.name, &mut out);
    put_string(&table.key_name, &mut out);
    put_varint(table.columns.len() as u64, &mut out);
    for column in &table.columns {
        put_varint(column.id.0.into(), &mut out);
        put_varint(column.ty.oid.0.into(), &mut out);
        // -1 becomes 0.
        put_varint(u64::try_from(i64::from(column.ty.typmod) + 1).unwrap_or(0), &mut out);
        let flags = if column.not_null { NOT_NULL } else { 0 } | if column.default.is_some() { HAS_DEFAULT } else { 0 };
        put_varint(flags, &mut out);
        put_string(&column.name, &mut out);
        if let Some(default) = &column.default {
            put_string(default, &mut out);
        }
    }
    put_varint(table.primary_key.len() as u64, &mut out);
    for at in &table.primary_key {
        put_varint(*at as u64, &mut out);
    }
    out.into()
}

/// Decodes a table and checks its invariants.
pub fn decode(bytes: &[u8]) -> Result<Table, CodecError> {
    let mut input = keys::of_version(VERSION, bytes, WHAT)?;
    let input = &mut input;
    let id = TableId(get_u32(input)?);
    let storage = StorageId(get_u32(input)?);
    let name = get_string(input)?;
    let key_name = get_string(input)?;
    let mut columns = Vec::new();
    for _ in 0..get_count(input)? {
        columns.push(get_column(input)?);
    }
    let mut primary_key = Vec::new();
    for _ in 0..get_count(input)? {
        primary_key.push(get_count(input)?);
    }
    let table = Table { id, storage, name, columns, primary_key, key_name };
    table.check().map_err(|_| CodecError::new(WHAT, "invariants do not hold"))?;
    Ok(table)
}

fn get_column(input: &mut &[u8]) -> Result<Column, CodecError> {
    let id = u16::try_from(get_varint(input, WHAT)?).map_err(|_| CodecError::new(WHAT, "column id too large"))?;
    let oid = get_u32(input)?;
    let modifier = get_u32(input)?;
    let flags = get_varint(input, WHAT)?;
    let typmod = i32::try_from(i64::from(modifier) - 1).map_err(|_| CodecError::new(WHAT, "modifier too large"))?;
    let ty = match SqlType::from_oid(oid).map(|ty| (ty, ty.row().category)) {
        Some((ty, category)) if !matches!(category, Category::Pseudo | Category::Unknown) => SqlType { typmod, ..ty },
        _ => return Err(CodecError::new(WHAT, "unknown type")),
    };
    let name = get_string(input)?;
    let default = if flags & HAS_DEFAULT != 0 { Some(get_string(input)?) } else { None };
    Ok(Column { id: ColumnId(id), name, ty, not_null: flags & NOT_NULL != 0, default })
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    put_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn get_string(input: &mut &[u8]) -> Result<String, CodecError> {
    let length = usize::try_from(get_varint(input, WHAT)?).unwrap_or(usize::MAX);
    let bytes = take(input, length, WHAT)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| CodecError::new(WHAT, "text is not UTF-8"))
}

fn get_u32(input: &mut &[u8]) -> Result<u32, CodecError> {
    u32::try_from(get_varint(input, WHAT)?).map_err(|_| CodecError::new(WHAT, "number too large"))
}

/// A number of columns, or a position among them.
fn get_count(input: &mut &[u8]) -> Result<usize, CodecError> {
    match usize::try_from(get_varint(input, WHAT)?) {
        Ok(count) if count <= MAX_COLUMNS => Ok(count),
        _ => Err(CodecError::new(WHAT, "too many columns")),
    }
}
