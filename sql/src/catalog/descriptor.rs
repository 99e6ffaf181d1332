//! The encoding of table descriptors: a version byte, a length, then fields ([`super::tagged`]) of that length.
//!
//! A later release adds fields without a new version. It is for what every reader must know: one that meets a tag that
//! it does not know refuses the descriptor.
//!
//! | table | column | primary key | index | index column |
//! |---|---|---|---|---|
//! | 1 id | 1 id | 1 id of its index | 1 id | 1 position of the column |
//! | 2 storage | 2 type OID | 2 name | 2 storage | 2 SQL text of an expression |
//! | 3 name | 3 type modifier plus one | 3 positions | 3 name | 3 type OID of it |
//! | 4 columns | 4 name | | 4 columns | 4 its type modifier plus one |
//! | 5 primary key | 5 NOT NULL | | 5 unique | 5 DESC |
//! | 6 indexes | 6 SQL text of DEFAULT | | 6 of a constraint | 6 NULLS FIRST |
//! | 7 schema, if it is not the first one | 7 identity: 1 ALWAYS, 2 BY DEFAULT | | 7 SQL text of the predicate | |
//! | | | | 8 positions of included columns | |
//!
//! Free for what comes: 8 checks, 9 foreign keys of a table; 8 generated of a column.

use bytes::Bytes;

use super::tagged::{self, Fields, Writer, get_type, position, put_type};
use crate::codec::CodecError;
use crate::object::{FIRST_SCHEMA, SchemaId};
use crate::table::{Column, ColumnId, Identity, Index, IndexColumn, IndexId, IndexedValue, StorageId, Table, TableId};
use pgtypes::codec::key::KeyOrder;

const WHAT: &str = "table descriptor";
/// Rows of tables whose descriptor has this version have format 2.
const VERSION: u8 = 3;

/// Encodes a table.
pub fn encode(table: &Table) -> Bytes {
    let mut out = Writer::default();
    out.number(1, table.id.0.into());
    out.number(2, table.storage.0.into());
    out.text(3, &table.name);
    out.list(4, &table.columns, put_column);
    if !table.primary_key.is_empty() {
        let mut key = Writer::default();
        key.number(1, table.key_id.0.into());
        key.text(2, &table.key_name);
        key.positions(3, &table.primary_key);
        out.body(5, &key.out);
    }
    out.list(6, &table.indexes, put_index);
    if table.schema != FIRST_SCHEMA {
        out.number(7, table.schema.0.into());
    }
    tagged::record(VERSION, &out).into()
}

fn put_column(column: &Column, out: &mut Writer) {
    out.number(1, column.id.0.into());
    put_type(column.ty, 2, out);
    out.text(4, &column.name);
    out.flag(5, column.not_null);
    if let Some(default) = &column.default {
        out.body(6, default.as_bytes());
    }
    match column.identity {
        None => {}
        Some(Identity::Always) => out.number(7, 1),
        Some(Identity::ByDefault) => out.number(7, 2),
    }
}

fn put_index(index: &Index, out: &mut Writer) {
    out.number(1, index.id.0.into());
    out.number(2, index.storage.0.into());
    out.text(3, &index.name);
    out.list(4, &index.columns, |column, out| {
        match &column.value {
            IndexedValue::Column(at) => out.number(1, *at as u64),
            IndexedValue::Expression { text, ty } => {
                out.text(2, text);
                put_type(*ty, 3, out);
            }
        }
        out.flag(5, column.order.descends);
        out.flag(6, column.order.nulls_first);
    });
    out.flag(5, index.unique);
    out.flag(6, index.is_constraint);
    if let Some(predicate) = &index.predicate {
        out.body(7, predicate.as_bytes());
    }
    out.positions(8, &index.included);
}

/// Decodes a table and checks its invariants.
pub fn decode(bytes: &[u8]) -> Result<Table, CodecError> {
    let fields = Fields::read(tagged::of_record(VERSION, bytes)?, 7)?;
    let key = Fields::read(fields.body(5).unwrap_or_default(), 3)?;
    let table = Table {
        id: TableId(fields.u32(1)?),
        storage: StorageId(fields.u32(2)?),
        name: fields.text(3)?,
        columns: fields.list(4, get_column)?,
        primary_key: key.positions(3)?,
        key_name: key.text(2)?,
        key_id: IndexId(key.u32(1)?),
        indexes: fields.list(6, get_index)?,
        schema: match fields.u32(7)? {
            0 => FIRST_SCHEMA,
            schema => SchemaId(schema),
        },
    };
    table.check().map_err(|_| CodecError::new(WHAT, "invariants do not hold"))?;
    Ok(table)
}

fn get_column(bytes: &[u8]) -> Result<Column, CodecError> {
    let fields = Fields::read(bytes, 7)?;
    let id = u16::try_from(fields.number(1)?).map_err(|_| CodecError::new(WHAT, "column id too large"))?;
    Ok(Column {
        id: ColumnId(id),
        name: fields.text(4)?,
        ty: get_type(&fields, 2)?,
        not_null: fields.flag(5),
        default: fields.optional_text(6)?,
        identity: match fields.number(7)? {
            0 => None,
            1 => Some(Identity::Always),
            2 => Some(Identity::ByDefault),
            _ => return Err(CodecError::new(WHAT, "unknown identity")),
        },
    })
}

fn get_index(bytes: &[u8]) -> Result<Index, CodecError> {
    let fields = Fields::read(bytes, 8)?;
    Ok(Index {
        id: IndexId(fields.u32(1)?),
        storage: StorageId(fields.u32(2)?),
        name: fields.text(3)?,
        columns: fields.list(4, get_index_column)?,
        unique: fields.flag(5),
        is_constraint: fields.flag(6),
        predicate: fields.optional_text(7)?,
        included: fields.positions(8)?,
    })
}

fn get_index_column(bytes: &[u8]) -> Result<IndexColumn, CodecError> {
    let fields = Fields::read(bytes, 6)?;
    let value = match fields.optional_text(2)? {
        Some(text) => IndexedValue::Expression { text, ty: get_type(&fields, 3)? },
        None => IndexedValue::Column(position(fields.number(1)?)?),
    };
    Ok(IndexColumn { value, order: KeyOrder { descends: fields.flag(5), nulls_first: fields.flag(6) } })
}
