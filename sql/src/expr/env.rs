//! The environment of an expression, and the values that evaluation passes on.

use std::borrow::Cow;

use super::session::{NoSession, SessionAccess};
use crate::error::SqlError;
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, TimeZone};

/// The environment of an expression.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    /// The parameter values, of the plan's types.
    pub(crate) params: &'a [Datum],
    /// Time zone, styles, names, and `now()`: the start of the transaction.
    pub(crate) io: IoEnv<'a>,
    /// The session's user.
    pub(crate) user: &'a str,
    /// The session's database.
    pub(crate) database: &'a str,
    /// The session itself.
    pub(crate) session: &'a dyn SessionAccess,
    /// Values of the innermost `Let`.
    pub(crate) locals: &'a [Datum],
}

impl<'a> Env<'a> {
    /// That of an expression which depends on its parameters only.
    pub(crate) fn of_params(params: &'a [Datum], zone: &'a TimeZone) -> Env<'a> {
        Env { params, io: IoEnv::new(zone, Now(0)), user: "", database: "", session: &NoSession, locals: &[] }
    }
}

pub(super) type Value<'a> = Result<Cow<'a, Datum>, SqlError>;

pub(super) fn owned<'a>(value: Datum) -> Value<'a> {
    Ok(Cow::Owned(value))
}

pub(super) fn boolean<'a>(value: Option<bool>) -> Value<'a> {
    owned(value.map_or(Datum::Null, Datum::Bool))
}

pub(super) fn as_bool(value: &Datum) -> Option<bool> {
    match value {
        Datum::Bool(value) => Some(*value),
        _ => None,
    }
}
