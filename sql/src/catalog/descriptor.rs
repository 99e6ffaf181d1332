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
//! | 8 checks | 8 SQL text of GENERATED | | 8 positions of included columns | |
//! | 9 foreign keys | | | 9 NULLS NOT DISTINCT | |
//! | 10 tables that refer to it | | | | |
//! | 11 last column id | | | | |
//!
//! A column of a domain has the field 20, its OID. A check: 1 id, 2 name, 3 SQL text, 4 column ids. A foreign key: 1
//! id, 2 name, 3 positions of its columns, 4 table, 5 column ids there, 6 ON DELETE, 7 ON UPDATE (each the place of the
//! action in `ACTIONS`), 8 MATCH FULL, 9 DEFERRABLE.

use bytes::Bytes;

use super::tagged::{self, Fields, Writer, column_id, get_check, get_type, position, put_check, put_type};
use crate::codec::CodecError;
use crate::object::{FIRST_SCHEMA, ObjectId, SchemaId};
use crate::table::{
    Column, ColumnId, ConstraintId, ForeignKey, Identity, Index, IndexColumn, IndexId, IndexedValue, ReferenceAction,
    StorageId, Table, TableId,
};
use pgtypes::codec::key::KeyOrder;

const WHAT: &str = "table descriptor";
/// Rows of tables whose descriptor has this version have format 2.
const VERSION: u8 = 3;

/// The actions of foreign keys. A record has the place of one here.
const ACTIONS: [ReferenceAction; 5] = [
    ReferenceAction::NoAction,
    ReferenceAction::Restrict,
    ReferenceAction::Cascade,
    ReferenceAction::SetNull,
    ReferenceAction::SetDefault,
];

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
    out.list(8, &table.checks, put_check);
    out.list(9, &table.foreign_keys, put_foreign_key);
    out.list(10, &table.referenced_by, |table, out| out.number(1, table.0.into()));
    if table.last_column != Table::last_of(&table.columns) {
        out.number(11, table.last_column.0.into());
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
    if let Some(generated) = &column.generated {
        out.body(8, generated.as_bytes());
    }
    out.number(20, column.domain.map_or(0, |domain| domain.0.into()));
}

fn put_foreign_key(key: &ForeignKey, out: &mut Writer) {
    let action = |action| ACTIONS.iter().position(|known| *known == action).unwrap_or(0) as u64;
    let ids: Vec<usize> = key.parent_columns.iter().map(|id| usize::from(id.0)).collect();
    out.number(1, key.id.0.into());
    out.text(2, &key.name);
    out.positions(3, &key.columns);
    out.number(4, key.parent.0.into());
    out.positions(5, &ids);
    out.number(6, action(key.on_delete));
    out.number(7, action(key.on_update));
    out.flag(8, key.is_full);
    out.flag(9, key.is_deferrable);
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
    out.flag(9, index.nulls_not_distinct);
}

/// Decodes a table and checks its invariants.
pub fn decode(bytes: &[u8]) -> Result<Table, CodecError> {
    let fields = Fields::read(tagged::of_record(VERSION, bytes)?, 11)?;
    let columns = fields.list(4, get_column)?;
    let last_column = match fields.number(11)? {
        0 => Table::last_of(&columns),
        last => column_id(last)?,
    };
    let key = Fields::read(fields.body(5).unwrap_or_default(), 3)?;
    let table = Table {
        id: TableId(fields.u32(1)?),
        storage: StorageId(fields.u32(2)?),
        name: fields.text(3)?,
        columns,
        primary_key: key.positions(3)?,
        key_name: key.text(2)?,
        key_id: IndexId(key.u32(1)?),
        indexes: fields.list(6, get_index)?,
        schema: match fields.u32(7)? {
            0 => FIRST_SCHEMA,
            schema => SchemaId(schema),
        },
        checks: fields.list(8, get_check)?,
        foreign_keys: fields.list(9, get_foreign_key)?,
        referenced_by: fields.list(10, |bytes| Ok(TableId(Fields::read(bytes, 1)?.u32(1)?)))?,
        last_column,
    };
    table.check().map_err(|_| CodecError::new(WHAT, "invariants do not hold"))?;
    Ok(table)
}

fn get_column(bytes: &[u8]) -> Result<Column, CodecError> {
    let fields = Fields::read(bytes, 20)?;
    Ok(Column {
        id: column_id(fields.number(1)?)?,
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
        generated: fields.optional_text(8)?,
        domain: Some(ObjectId(fields.u32(20)?)).filter(|domain| domain.0 != 0),
    })
}

fn get_foreign_key(bytes: &[u8]) -> Result<ForeignKey, CodecError> {
    let fields = Fields::read(bytes, 9)?;
    let action = |tag| {
        let place = usize::try_from(fields.number(tag)?).unwrap_or(usize::MAX);
        ACTIONS.get(place).copied().ok_or(CodecError::new(WHAT, "unknown action"))
    };
    let ids = fields.numbers(5)?.into_iter().map(column_id);
    Ok(ForeignKey {
        id: ConstraintId(fields.u32(1)?),
        name: fields.text(2)?,
        columns: fields.positions(3)?,
        parent: TableId(fields.u32(4)?),
        parent_columns: ids.collect::<Result<Vec<ColumnId>, CodecError>>()?,
        on_delete: action(6)?,
        on_update: action(7)?,
        is_full: fields.flag(8),
        is_deferrable: fields.flag(9),
    })
}

fn get_index(bytes: &[u8]) -> Result<Index, CodecError> {
    let fields = Fields::read(bytes, 9)?;
    Ok(Index {
        id: IndexId(fields.u32(1)?),
        storage: StorageId(fields.u32(2)?),
        name: fields.text(3)?,
        columns: fields.list(4, get_index_column)?,
        unique: fields.flag(5),
        is_constraint: fields.flag(6),
        predicate: fields.optional_text(7)?,
        included: fields.positions(8)?,
        nulls_not_distinct: fields.flag(9),
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
