//! The encoding of table descriptors: a version byte, a length, then tagged fields of that length.
//!
//! A field is `tag, length, body`. Tags grow, and each occurs once. A field that is left out has its default: 0, empty,
//! false or nothing. So a later release adds fields without a new version. It is for what every reader must know: one
//! that meets a tag that it does not know refuses the descriptor.
//!
//! | table | column | primary key | index | index column |
//! |---|---|---|---|---|
//! | 1 id | 1 id | 1 id of its index | 1 id | 1 position of the column |
//! | 2 storage | 2 type OID | 2 name | 2 storage | 2 SQL text of an expression |
//! | 3 name | 3 type modifier plus one | 3 positions | 3 name | 3 type OID of it |
//! | 4 columns | 4 name | | 4 columns | 4 its type modifier plus one |
//! | 5 primary key | 5 NOT NULL | | 5 unique | 5 DESC |
//! | 6 indexes | 6 SQL text of DEFAULT | | 6 of a constraint | 6 NULLS FIRST |
//! | | | | 7 SQL text of the predicate | |
//! | 8 checks | 8 SQL text of GENERATED | | 8 positions of included columns | |
//! | 9 foreign keys | | | | |
//! | 10 tables that refer to it | | | | |
//! | 11 last column id | | | | |
//!
//! A check: 1 id, 2 name, 3 SQL text. A foreign key: 1 id, 2 name, 3 positions of its columns, 4 table, 5 column ids
//! there, 6 ON DELETE, 7 ON UPDATE (each the place of the action in `ACTIONS`), 8 MATCH FULL, 9 DEFERRABLE.
//!
//! Numbers are varints, texts are UTF-8. A flag has no body. A list is its elements, each behind its length; positions
//! are elements of varints. Free for what comes: 7 schema of a table, 7 identity of a column.

use bytes::Bytes;

use super::keys;
use crate::codec::{CodecError, get_varint, put_varint, take};
use crate::table::{
    Check, Column, ColumnId, ConstraintId, ForeignKey, Index, IndexColumn, IndexId, IndexedValue, MAX_COLUMNS,
    ReferenceAction, StorageId, Table, TableId,
};
use pgtypes::codec::key::KeyOrder;
use pgtypes::{Category, SqlType};

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
    out.list(8, &table.checks, |check, out| {
        out.number(1, check.id.0.into());
        out.text(2, &check.name);
        out.text(3, &check.text);
    });
    out.list(9, &table.foreign_keys, put_foreign_key);
    out.list(10, &table.referenced_by, |table, out| out.number(1, table.0.into()));
    if table.last_column != Table::last_of(&table.columns) {
        out.number(11, table.last_column.0.into());
    }
    let mut record = vec![VERSION];
    put_varint(out.out.len() as u64, &mut record);
    record.extend_from_slice(&out.out);
    record.into()
}

fn put_column(column: &Column, out: &mut Writer) {
    out.number(1, column.id.0.into());
    put_type(column.ty, 2, out);
    out.text(4, &column.name);
    out.flag(5, column.not_null);
    if let Some(default) = &column.default {
        out.body(6, default.as_bytes());
    }
    if let Some(generated) = &column.generated {
        out.body(8, generated.as_bytes());
    }
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

/// The type in one field, its modifier in the next one.
fn put_type(ty: SqlType, tag: u64, out: &mut Writer) {
    out.number(tag, ty.oid.0.into());
    // -1 becomes 0.
    out.number(tag + 1, u64::try_from(i64::from(ty.typmod) + 1).unwrap_or(0));
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
    let mut rest = keys::of_version(VERSION, bytes, WHAT)?;
    let length = usize::try_from(get_varint(&mut rest, WHAT)?).unwrap_or(usize::MAX);
    let body = take(&mut rest, length, WHAT)?;
    if !rest.is_empty() {
        return Err(CodecError::new(WHAT, "bytes left over"));
    }
    let fields = Fields::read(body, 11)?;
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
        checks: fields.list(8, get_check)?,
        foreign_keys: fields.list(9, get_foreign_key)?,
        referenced_by: fields.list(10, |bytes| Ok(TableId(Fields::read(bytes, 1)?.u32(1)?)))?,
        last_column,
    };
    table.check().map_err(|_| CodecError::new(WHAT, "invariants do not hold"))?;
    Ok(table)
}

fn get_column(bytes: &[u8]) -> Result<Column, CodecError> {
    let fields = Fields::read(bytes, 8)?;
    Ok(Column {
        id: column_id(fields.number(1)?)?,
        name: fields.text(4)?,
        ty: get_type(&fields, 2)?,
        not_null: fields.flag(5),
        default: fields.optional_text(6)?,
        generated: fields.optional_text(8)?,
    })
}

fn column_id(number: u64) -> Result<ColumnId, CodecError> {
    u16::try_from(number).map(ColumnId).map_err(|_| CodecError::new(WHAT, "column id too large"))
}

fn get_check(bytes: &[u8]) -> Result<Check, CodecError> {
    let fields = Fields::read(bytes, 3)?;
    Ok(Check { id: ConstraintId(fields.u32(1)?), name: fields.text(2)?, text: fields.text(3)? })
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

fn get_type(fields: &Fields<'_>, tag: u64) -> Result<SqlType, CodecError> {
    let modifier = i64::from(fields.u32(tag + 1)?) - 1;
    let typmod = i32::try_from(modifier).map_err(|_| CodecError::new(WHAT, "modifier too large"))?;
    match SqlType::from_oid(fields.u32(tag)?).map(|ty| (ty, ty.row().category)) {
        Some((ty, category)) if !matches!(category, Category::Pseudo | Category::Unknown) => {
            Ok(SqlType { typmod, ..ty })
        }
        _ => Err(CodecError::new(WHAT, "unknown type")),
    }
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

fn position(number: u64) -> Result<usize, CodecError> {
    match usize::try_from(number) {
        Ok(at) if at < MAX_COLUMNS => Ok(at),
        _ => Err(CodecError::new(WHAT, "too many columns")),
    }
}

/// Writes tagged fields.
#[derive(Default)]
struct Writer {
    out: Vec<u8>,
}

impl Writer {
    fn body(&mut self, tag: u64, body: &[u8]) {
        put_varint(tag, &mut self.out);
        put_varint(body.len() as u64, &mut self.out);
        self.out.extend_from_slice(body);
    }

    fn number(&mut self, tag: u64, number: u64) {
        if number != 0 {
            let mut body = Vec::new();
            put_varint(number, &mut body);
            self.body(tag, &body);
        }
    }

    fn text(&mut self, tag: u64, text: &str) {
        if !text.is_empty() {
            self.body(tag, text.as_bytes());
        }
    }

    fn flag(&mut self, tag: u64, is_set: bool) {
        if is_set {
            self.body(tag, &[]);
        }
    }

    fn list<T>(&mut self, tag: u64, items: &[T], put: impl Fn(&T, &mut Writer)) {
        let mut body = Vec::new();
        for item in items {
            let mut element = Writer::default();
            put(item, &mut element);
            put_varint(element.out.len() as u64, &mut body);
            body.extend_from_slice(&element.out);
        }
        if !items.is_empty() {
            self.body(tag, &body);
        }
    }

    fn positions(&mut self, tag: u64, positions: &[usize]) {
        let mut body = Vec::new();
        positions.iter().for_each(|at| put_varint(*at as u64, &mut body));
        if !positions.is_empty() {
            self.body(tag, &body);
        }
    }
}

/// The tagged fields of a record.
struct Fields<'b>(Vec<(u64, &'b [u8])>);

impl<'b> Fields<'b> {
    /// `known`: the highest tag that has a meaning here.
    fn read(mut input: &'b [u8], known: u64) -> Result<Fields<'b>, CodecError> {
        let mut fields: Vec<(u64, &[u8])> = Vec::new();
        while !input.is_empty() {
            let tag = get_varint(&mut input, WHAT)?;
            if tag == 0 || tag > known || fields.last().is_some_and(|(last, _)| *last >= tag) {
                return Err(CodecError::new(WHAT, "unknown field"));
            }
            let length = usize::try_from(get_varint(&mut input, WHAT)?).unwrap_or(usize::MAX);
            fields.push((tag, take(&mut input, length, WHAT)?));
        }
        Ok(Fields(fields))
    }

    fn body(&self, tag: u64) -> Option<&'b [u8]> {
        self.0.iter().find(|(found, _)| *found == tag).map(|(_, body)| *body)
    }

    fn number(&self, tag: u64) -> Result<u64, CodecError> {
        let Some(mut body) = self.body(tag) else { return Ok(0) };
        let number = get_varint(&mut body, WHAT)?;
        if body.is_empty() { Ok(number) } else { Err(CodecError::new(WHAT, "bytes left over")) }
    }

    fn u32(&self, tag: u64) -> Result<u32, CodecError> {
        u32::try_from(self.number(tag)?).map_err(|_| CodecError::new(WHAT, "number too large"))
    }

    fn flag(&self, tag: u64) -> bool {
        self.body(tag).is_some()
    }

    fn optional_text(&self, tag: u64) -> Result<Option<String>, CodecError> {
        let text = self.body(tag).map(|body| String::from_utf8(body.to_vec()));
        text.transpose().map_err(|_| CodecError::new(WHAT, "text is not UTF-8"))
    }

    fn text(&self, tag: u64) -> Result<String, CodecError> {
        self.optional_text(tag).map(Option::unwrap_or_default)
    }

    fn list<T>(&self, tag: u64, get: impl Fn(&[u8]) -> Result<T, CodecError>) -> Result<Vec<T>, CodecError> {
        let mut rest = self.body(tag).unwrap_or_default();
        let mut items = Vec::new();
        while !rest.is_empty() {
            let length = usize::try_from(get_varint(&mut rest, WHAT)?).unwrap_or(usize::MAX);
            items.push(get(take(&mut rest, length, WHAT)?)?);
        }
        Ok(items)
    }

    fn positions(&self, tag: u64) -> Result<Vec<usize>, CodecError> {
        self.numbers(tag)?.into_iter().map(position).collect()
    }

    fn numbers(&self, tag: u64) -> Result<Vec<u64>, CodecError> {
        let mut rest = self.body(tag).unwrap_or_default();
        let mut numbers = Vec::new();
        while !rest.is_empty() {
            numbers.push(get_varint(&mut rest, WHAT)?);
        }
        Ok(numbers)
    }
}
