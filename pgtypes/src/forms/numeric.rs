//! `numeric`.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::numeric::{Numeric, Typmod};
use crate::row::{IoEnv, Modifier, TypeIo};
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
pub(crate) const MODIFIER: Modifier = Modifier {
    show: |row, typmod| {
        Typmod::decode(typmod).map_or_else(|| row.sql_name.to_owned(), |typmod| format!("{}{typmod}", row.sql_name))
    },
    read: |_, written| Typmod::from_arguments(written).map(Typmod::encode),
    apply: |value, ty, _| match value {
        Datum::Numeric(number) => number.apply_typmod(Typmod::decode(ty.typmod)).map(Datum::Numeric),
        value => Ok(value),
    },
};
