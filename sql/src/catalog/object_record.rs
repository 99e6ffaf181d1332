//! The encoding of objects that are no tables: a version byte, a length, then fields ([`super::tagged`]) of that
//! length.
//!
//! | field | database | schema | view | sequence | enum |
//! |---|---|---|---|---|---|
//! | 1 | 1 | 2 | 3 | 4 | 5 |
//! | 2 | id | id | id | id | id |
//! | 3 | name | name | name | name | name |
//! | 4 | | database | schema | schema | schema |
//! | 5 | | the node of its session | names of the columns | type OID | its labels |
//! | 6 | | | types of the columns: OID, type modifier plus one | type modifier plus one |
//! | 7 | | | SQL text of the query | start |
//! | 8 | | | its search path | increment |
//! | 9 | | | what it uses | least value |
//! | 10 | | | | greatest value |
//! | 11 | | | | values taken at once |
//! | 12 | | | | cycles |
//! | 13 | | | | the owner |
//! | 14 | | | | the number of the owner's column |
//! | 15 | | | | the epoch |
//! | 16 | | | | the first value of the epoch |
//!
//! A domain has the kind 6, and the fields 4 schema, 20 OID of the base type, 21 its modifier plus one, 22 the domain
//! that it is made of, 23 NOT NULL, 24 SQL text of DEFAULT, 25 its checks: 1 id, 2 name, 3 SQL text.
//!
//! A label has the fields 1, its text, 2, its order, and 3, its OID. The values of a sequence and the orders of labels
//! are in zigzag form: the sign is the lowest bit.

use bytes::Bytes;

use super::tagged::{self, Fields, Writer, get_check, get_type, put_check, put_type};
use crate::codec::CodecError;
use crate::object::{Database, DatabaseId, Domain, EnumType, Object, ObjectId, Schema, SchemaId, Sequence, View};
use pgtypes::{Label, SqlType};

const WHAT: &str = "object of the catalog";
const VERSION: u8 = 1;
/// The highest tag.
const LAST: u64 = 25;

/// Encodes an object.
pub(super) fn encode(object: &Object) -> Bytes {
    let mut out = Writer::default();
    let kind = match object {
        Object::Database(_) => 1,
        Object::Schema(_) => 2,
        Object::View(_) => 3,
        Object::Sequence(_) => 4,
        Object::Enum(_) => 5,
        Object::Domain(_) => 6,
    };
    out.number(1, kind);
    out.number(2, object.id().0.into());
    out.text(3, object.name());
    match object {
        Object::Database(_) => {}
        Object::Schema(schema) => {
            out.number(4, schema.database.0.into());
            if let Some(node) = schema.session_node {
                out.number(5, node);
            }
        }
        Object::View(view) => put_view(view, &mut out),
        Object::Sequence(sequence) => put_sequence(sequence, &mut out),
        Object::Enum(ty) => put_enum(ty, &mut out),
        Object::Domain(domain) => put_domain(domain, &mut out),
    }
    tagged::record(VERSION, &out).into()
}

fn put_view(view: &View, out: &mut Writer) {
    out.number(4, view.schema.0.into());
    out.list(5, &view.columns, |(name, _), out| out.text(1, name));
    out.list(6, &view.columns, |(_, ty), out| put_type(*ty, 1, out));
    out.text(7, &view.query);
    out.list(8, &view.path, |schema, out| out.number(1, schema.0.into()));
    out.list(9, &view.uses, |id, out| out.number(1, id.0.into()));
}

fn put_sequence(sequence: &Sequence, out: &mut Writer) {
    out.number(4, sequence.schema.0.into());
    put_type(sequence.ty, 5, out);
    out.number(7, zigzag(sequence.start));
    out.number(8, zigzag(sequence.increment));
    out.number(9, zigzag(sequence.min));
    out.number(10, zigzag(sequence.max));
    out.number(11, zigzag(sequence.cache));
    out.flag(12, sequence.cycles);
    if let Some((owner, column)) = sequence.owner {
        out.number(13, owner.0.into());
        out.number(14, column.into());
    }
    out.number(15, sequence.epoch);
    out.number(16, zigzag(sequence.restart));
}

fn put_enum(ty: &EnumType, out: &mut Writer) {
    out.number(4, ty.schema.0.into());
    let labels: Vec<(&Label, u32)> = ty.labels.iter().zip(ty.label_oids.iter().copied()).collect();
    out.list(5, &labels, |(label, oid), out| {
        out.text(1, &label.name);
        out.number(2, zigzag(label.order));
        out.number(3, (*oid).into());
    });
}

fn put_domain(domain: &Domain, out: &mut Writer) {
    out.number(4, domain.schema.0.into());
    put_type(domain.base, 20, out);
    out.number(22, domain.parent.map_or(0, |parent| parent.0.into()));
    out.flag(23, domain.not_null);
    if let Some(default) = &domain.default {
        out.body(24, default.as_bytes());
    }
    out.list(25, &domain.checks, put_check);
}

/// Decodes an object.
pub(super) fn decode(bytes: &[u8]) -> Result<Object, CodecError> {
    let fields = Fields::read(tagged::of_record(VERSION, bytes)?, LAST)?;
    let (id, name) = (fields.u32(2)?, fields.text(3)?);
    if id == 0 || name.is_empty() {
        return Err(CodecError::new(WHAT, "without id or name"));
    }
    Ok(match fields.number(1)? {
        1 => Object::Database(Database { id: DatabaseId(id), name }),
        2 => {
            let session_node = fields.body(5).map(|_| fields.number(5)).transpose()?;
            Object::Schema(Schema { id: SchemaId(id), database: DatabaseId(fields.u32(4)?), name, session_node })
        }
        3 => Object::View(get_view(ObjectId(id), name, &fields)?),
        4 => Object::Sequence(get_sequence(ObjectId(id), name, &fields)?),
        5 => Object::Enum(get_enum(ObjectId(id), name, &fields)?),
        6 => Object::Domain(get_domain(ObjectId(id), name, &fields)?),
        _ => return Err(CodecError::new(WHAT, "unknown kind")),
    })
}

fn get_view(id: ObjectId, name: String, fields: &Fields<'_>) -> Result<View, CodecError> {
    let names: Vec<String> = fields.list(5, |bytes| Fields::read(bytes, 1)?.text(1))?;
    let types: Vec<SqlType> = fields.list(6, |bytes| get_type(&Fields::read(bytes, 2)?, 1))?;
    if names.len() != types.len() {
        return Err(CodecError::new(WHAT, "columns without a type"));
    }
    Ok(View {
        id,
        schema: SchemaId(fields.u32(4)?),
        name,
        columns: names.into_iter().zip(types).collect(),
        query: fields.text(7)?,
        path: fields.list(8, |bytes| Fields::read(bytes, 1)?.u32(1).map(SchemaId))?,
        uses: fields.list(9, |bytes| Fields::read(bytes, 1)?.u32(1).map(ObjectId))?,
    })
}

fn get_enum(id: ObjectId, name: String, fields: &Fields<'_>) -> Result<EnumType, CodecError> {
    let labels: Vec<(Label, u32)> = fields.list(5, |bytes| {
        let fields = Fields::read(bytes, 3)?;
        let label = Label { order: unzigzag(fields.number(2)?), name: fields.text(1)?.into() };
        Ok((label, fields.u32(3)?))
    })?;
    let is_sorted = labels.windows(2).all(|pair| matches!(pair, [(a, _), (b, _)] if a.order < b.order));
    if !id.0.is_multiple_of(2) || !is_sorted {
        return Err(CodecError::new(WHAT, "an enum with an odd OID, or labels out of order"));
    }
    let (labels, label_oids) = labels.into_iter().unzip();
    Ok(EnumType { id, schema: SchemaId(fields.u32(4)?), name, labels, label_oids })
}

fn get_domain(id: ObjectId, name: String, fields: &Fields<'_>) -> Result<Domain, CodecError> {
    if !id.0.is_multiple_of(2) {
        return Err(CodecError::new(WHAT, "a domain with an odd OID"));
    }
    Ok(Domain {
        id,
        schema: SchemaId(fields.u32(4)?),
        name,
        base: get_type(fields, 20)?,
        parent: Some(ObjectId(fields.u32(22)?)).filter(|parent| parent.0 != 0),
        not_null: fields.flag(23),
        default: fields.optional_text(24)?,
        checks: fields.list(25, get_check)?,
    })
}

fn get_sequence(id: ObjectId, name: String, fields: &Fields<'_>) -> Result<Sequence, CodecError> {
    let column = u16::try_from(fields.number(14)?).map_err(|_| CodecError::new(WHAT, "column id too large"))?;
    let owner = fields.u32(13)?;
    let sequence = Sequence {
        id,
        schema: SchemaId(fields.u32(4)?),
        name,
        ty: get_type(fields, 5)?,
        start: unzigzag(fields.number(7)?),
        increment: unzigzag(fields.number(8)?),
        min: unzigzag(fields.number(9)?),
        max: unzigzag(fields.number(10)?),
        cache: unzigzag(fields.number(11)?),
        cycles: fields.flag(12),
        epoch: fields.number(15)?,
        restart: unzigzag(fields.number(16)?),
        owner: (owner != 0).then_some((ObjectId(owner), column)),
    };
    let is_sound = sequence.increment != 0
        && sequence.cache > 0
        && sequence.min <= sequence.max
        && (sequence.min..=sequence.max).contains(&sequence.start);
    if is_sound { Ok(sequence) } else { Err(CodecError::new(WHAT, "invariants do not hold")) }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Check, ConstraintId};

    #[test]
    fn objects_are_read_as_they_were_written() {
        let (id, columns) = (ConstraintId(16_400), Vec::new());
        let check = Check { id, name: "c".into(), text: "VALUE <> ''".into(), columns };
        let objects = [
            Object::Database(Database { id: DatabaseId(16_390), name: "app".into() }),
            Object::Schema(Schema {
                id: SchemaId(16_391),
                database: DatabaseId(16_390),
                name: "public".into(),
                session_node: None,
            }),
            Object::View(View {
                id: ObjectId(16_392),
                schema: SchemaId(16_391),
                name: "v".into(),
                columns: vec![("a".into(), SqlType::INT4), ("b c".into(), SqlType::varchar(5))],
                query: "SELECT 1, 'x'".into(),
                path: vec![SchemaId(2200), SchemaId(16_391)],
                uses: vec![ObjectId(16_384)],
            }),
            Object::Sequence(Sequence {
                id: ObjectId(16_393),
                schema: SchemaId(16_391),
                name: "s".into(),
                ty: SqlType::INT8,
                start: -5,
                increment: -1,
                min: i64::MIN,
                max: i64::MAX,
                cache: 20,
                cycles: true,
                epoch: 3,
                restart: -7,
                owner: Some((ObjectId(16_384), 3)),
            }),
            Object::Enum(EnumType {
                id: ObjectId(16_394),
                schema: SchemaId(16_391),
                name: "mood".into(),
                labels: vec![Label { order: -5, name: "sad".into() }, Label { order: 7, name: "".into() }],
                label_oids: vec![16_396, 16_397],
            }),
            Object::Domain(Domain {
                id: ObjectId(16_398),
                schema: SchemaId(16_391),
                name: "short".into(),
                base: SqlType { typmod: 9, ..SqlType::VARCHAR },
                parent: Some(ObjectId(16_384)),
                not_null: true,
                default: Some("'a'".into()),
                checks: vec![check],
            }),
            Object::Domain(Domain {
                id: ObjectId(16_402),
                schema: SchemaId(2200),
                name: "any".into(),
                base: SqlType::INT4,
                parent: None,
                not_null: false,
                default: None,
                checks: Vec::new(),
            }),
        ];
        for object in objects {
            let bytes = encode(&object);
            assert_eq!(decode(&bytes).unwrap(), object);
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err());
            }
        }
    }

    #[test]
    fn a_sequence_without_step_is_refused() {
        let mut out = Writer::default();
        out.number(1, 4);
        out.number(2, 16_400);
        out.text(3, "s");
        put_type(SqlType::INT8, 5, &mut out);
        assert!(decode(&tagged::record(VERSION, &out)).is_err());
    }
}
