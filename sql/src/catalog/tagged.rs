//! Records of tagged fields: `tag, length, body` each.
//!
//! Tags grow, and each occurs once. A field that is left out has its default: 0, empty, false or nothing. Numbers are
//! varints, texts are UTF-8. A flag has no body. A list is its elements, each behind its length; positions are elements
//! of varints.

use super::keys;
use crate::codec::{CodecError, get_varint, put_varint, take};
use crate::table::{Check, ColumnId, ConstraintId, MAX_COLUMNS};
use pgtypes::{Category, Oid, SqlType};

const WHAT: &str = "descriptor";

/// A version byte, a length, then fields of that length.
pub(super) fn record(version: u8, fields: &Writer) -> Vec<u8> {
    let mut record = vec![version];
    put_varint(fields.out.len() as u64, &mut record);
    record.extend_from_slice(&fields.out);
    record
}

/// The bytes of the fields in a [`record`].
pub(super) fn of_record(version: u8, bytes: &[u8]) -> Result<&[u8], CodecError> {
    let mut rest = keys::of_version(version, bytes, WHAT)?;
    let length = usize::try_from(get_varint(&mut rest, WHAT)?).unwrap_or(usize::MAX);
    let body = take(&mut rest, length, WHAT)?;
    if rest.is_empty() { Ok(body) } else { Err(CodecError::new(WHAT, "bytes left over")) }
}

/// The type in one field, its modifier in the next one.
pub(super) fn put_type(ty: SqlType, tag: u64, out: &mut Writer) {
    out.number(tag, ty.oid.0.into());
    // -1 becomes 0.
    out.number(tag + 1, u64::try_from(i64::from(ty.typmod) + 1).unwrap_or(0));
}

/// The type in two fields, one that a column can have.
pub(super) fn get_type(fields: &Fields<'_>, tag: u64) -> Result<SqlType, CodecError> {
    let modifier = i64::from(fields.u32(tag + 1)?) - 1;
    let typmod = i32::try_from(modifier).map_err(|_| CodecError::new(WHAT, "modifier too large"))?;
    let oid = Oid(fields.u32(tag)?);
    let is_known = !oid.is_builtin() || pgtypes::find(oid).is_some();
    let ty = SqlType { oid, typmod };
    if is_known && !matches!(ty.row().category, Category::Pseudo | Category::Unknown) {
        return Ok(ty);
    }
    Err(CodecError::new(WHAT, "unknown type"))
}

/// A CHECK: 1 id, 2 name, 3 SQL text, 4 ids of the columns that it reads.
pub(super) fn put_check(check: &Check, out: &mut Writer) {
    out.number(1, check.id.0.into());
    out.text(2, &check.name);
    out.text(3, &check.text);
    out.positions(4, &check.columns.iter().map(|id| usize::from(id.0)).collect::<Vec<_>>());
}

/// The CHECK that [`put_check`] has written.
pub(super) fn get_check(bytes: &[u8]) -> Result<Check, CodecError> {
    let fields = Fields::read(bytes, 4)?;
    let columns = fields.numbers(4)?.into_iter().map(column_id).collect::<Result<_, _>>()?;
    Ok(Check { id: ConstraintId(fields.u32(1)?), name: fields.text(2)?, text: fields.text(3)?, columns })
}

/// The id of a column.
pub(super) fn column_id(number: u64) -> Result<ColumnId, CodecError> {
    u16::try_from(number).map(ColumnId).map_err(|_| CodecError::new(WHAT, "column id too large"))
}

/// A position in a list.
pub(super) fn position(number: u64) -> Result<usize, CodecError> {
    match usize::try_from(number) {
        Ok(at) if at < MAX_COLUMNS => Ok(at),
        _ => Err(CodecError::new(WHAT, "too many columns")),
    }
}

/// Writes tagged fields.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) out: Vec<u8>,
}

impl Writer {
    pub(super) fn body(&mut self, tag: u64, body: &[u8]) {
        put_varint(tag, &mut self.out);
        put_varint(body.len() as u64, &mut self.out);
        self.out.extend_from_slice(body);
    }

    pub(super) fn number(&mut self, tag: u64, number: u64) {
        if number != 0 {
            let mut body = Vec::new();
            put_varint(number, &mut body);
            self.body(tag, &body);
        }
    }

    pub(super) fn text(&mut self, tag: u64, text: &str) {
        if !text.is_empty() {
            self.body(tag, text.as_bytes());
        }
    }

    pub(super) fn flag(&mut self, tag: u64, is_set: bool) {
        if is_set {
            self.body(tag, &[]);
        }
    }

    pub(super) fn list<T>(&mut self, tag: u64, items: &[T], put: impl Fn(&T, &mut Writer)) {
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

    pub(super) fn positions(&mut self, tag: u64, positions: &[usize]) {
        let mut body = Vec::new();
        positions.iter().for_each(|at| put_varint(*at as u64, &mut body));
        if !positions.is_empty() {
            self.body(tag, &body);
        }
    }
}

/// The tagged fields of a record.
pub(super) struct Fields<'b>(Vec<(u64, &'b [u8])>);

impl<'b> Fields<'b> {
    /// `known`: the highest tag that has a meaning here.
    pub(super) fn read(mut input: &'b [u8], known: u64) -> Result<Fields<'b>, CodecError> {
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

    pub(super) fn body(&self, tag: u64) -> Option<&'b [u8]> {
        self.0.iter().find(|(found, _)| *found == tag).map(|(_, body)| *body)
    }

    pub(super) fn number(&self, tag: u64) -> Result<u64, CodecError> {
        let Some(mut body) = self.body(tag) else { return Ok(0) };
        let number = get_varint(&mut body, WHAT)?;
        if body.is_empty() { Ok(number) } else { Err(CodecError::new(WHAT, "bytes left over")) }
    }

    pub(super) fn u32(&self, tag: u64) -> Result<u32, CodecError> {
        u32::try_from(self.number(tag)?).map_err(|_| CodecError::new(WHAT, "number too large"))
    }

    pub(super) fn flag(&self, tag: u64) -> bool {
        self.body(tag).is_some()
    }

    pub(super) fn optional_text(&self, tag: u64) -> Result<Option<String>, CodecError> {
        let text = self.body(tag).map(|body| String::from_utf8(body.to_vec()));
        text.transpose().map_err(|_| CodecError::new(WHAT, "text is not UTF-8"))
    }

    pub(super) fn text(&self, tag: u64) -> Result<String, CodecError> {
        self.optional_text(tag).map(Option::unwrap_or_default)
    }

    pub(super) fn list<T>(&self, tag: u64, get: impl Fn(&[u8]) -> Result<T, CodecError>) -> Result<Vec<T>, CodecError> {
        let mut rest = self.body(tag).unwrap_or_default();
        let mut items = Vec::new();
        while !rest.is_empty() {
            let length = usize::try_from(get_varint(&mut rest, WHAT)?).unwrap_or(usize::MAX);
            items.push(get(take(&mut rest, length, WHAT)?)?);
        }
        Ok(items)
    }

    pub(super) fn positions(&self, tag: u64) -> Result<Vec<usize>, CodecError> {
        self.numbers(tag)?.into_iter().map(position).collect()
    }

    pub(super) fn numbers(&self, tag: u64) -> Result<Vec<u64>, CodecError> {
        let mut rest = self.body(tag).unwrap_or_default();
        let mut numbers = Vec::new();
        while !rest.is_empty() {
            numbers.push(get_varint(&mut rest, WHAT)?);
        }
        Ok(numbers)
    }
}
