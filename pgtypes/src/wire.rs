//! The forms of values on the wire, by their types.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::row::IoEnv;
use crate::sql_type::SqlType;
use crate::utf8::utf8;

/// Wire formats of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Human-readable
    Text,
    /// PostgreSQL's binary form
    Binary,
}

/// Reads the text form of a type. Does not apply its modifier, which is left to the cast or assignment.
///
/// # Errors
/// Those of PostgreSQL's input functions.
pub fn parse(ty: SqlType, text: &str, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    (ty.row().io.input)(text, ty, env)
}

/// The text form as a string.
pub fn show(value: &Datum, ty: SqlType, env: &IoEnv<'_>) -> String {
    let mut out = BytesMut::new();
    value.borrow().encode(ty, Format::Text, env, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

impl Datum {
    /// Decodes a value from its wire form. Errors are those of PostgreSQL's input functions (22P02, 22003, 22007,
    /// 22008, 22021, 22P03, ...).
    pub fn decode(ty: SqlType, format: Format, bytes: &[u8], env: &IoEnv<'_>) -> Result<Datum, ValueError> {
        match format {
            Format::Text => parse(ty, utf8(bytes)?, env),
            Format::Binary => (ty.row().io.receive)(bytes, ty, env),
        }
    }
}

impl DatumRef<'_> {
    /// Appends the wire form without its length; nothing for NULL.
    pub fn encode(&self, ty: SqlType, format: Format, env: &IoEnv<'_>, out: &mut BytesMut) {
        if *self == DatumRef::Null {
            return;
        }
        let io = &ty.row().io;
        match format {
            Format::Text => (io.output)(self, ty, env, out),
            Format::Binary => (io.send)(self, ty, env, out),
        }
    }
}
