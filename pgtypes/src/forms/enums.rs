//! Enums. A value is the place of its label in the order of the type, which the catalog tells.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::form::invalid_value;
use crate::row::{IoEnv, TypeIo};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::utf8::utf8;

pub(crate) const IO: TypeIo =
    TypeIo { input, output, receive: |bytes, ty, env| input(utf8(bytes)?, ty, env), send: output };

fn input(text: &str, ty: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Some(labels) = env.names.labels(ty.oid) else {
        return Err(ValueError::new(SqlState::UNDEFINED_OBJECT, format!("type with OID {} does not exist", ty.oid)));
    };
    match labels.iter().find(|label| &*label.name == text) {
        Some(label) => Ok(Datum::Int(label.order)),
        None => {
            let name = env.names.show(SqlType::REGTYPE, ty.oid).unwrap_or_default();
            Err(invalid_value("enum ", &name, text))
        }
    }
}

fn output(value: &DatumRef<'_>, ty: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    let labels = env.names.labels(ty.oid).unwrap_or_default();
    let place = labels.binary_search_by_key(&value.int(), |label| label.order);
    if let Some(label) = place.ok().and_then(|at| labels.get(at)) {
        out.extend_from_slice(label.name.as_bytes());
    }
}
