//! `numeric`.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::numeric::{Numeric, Typmod};
use crate::row::{IoEnv, TypeIo, TypeRow};
use crate::sql_type::SqlType;

pub(crate) const IO: TypeIo = TypeIo {
    input: |text, _, _| Numeric::parse(text).map(Datum::Numeric),
    output,
    receive: |bytes, _, _| Numeric::parse_binary(bytes, None).map(Datum::Numeric),
    send,
};

fn output(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Numeric(number) = value.other() {
        out.extend_from_slice(number.to_text().as_bytes());
    }
}

fn send(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Numeric(number) = value.other() {
        number.write_binary(out);
    }
}

/// `numeric(precision,scale)`
pub(crate) fn show_typmod(row: &TypeRow, typmod: i32) -> String {
    Typmod::decode(typmod).map_or_else(|| row.sql_name.to_owned(), |typmod| format!("{}{typmod}", row.sql_name))
}

/// Applies a precision and a scale.
pub(crate) fn modify(value: Datum, ty: SqlType, _: bool) -> Result<Datum, ValueError> {
    match value {
        Datum::Numeric(number) => number.apply_typmod(Typmod::decode(ty.typmod)).map(Datum::Numeric),
        value => Ok(value),
    }
}
