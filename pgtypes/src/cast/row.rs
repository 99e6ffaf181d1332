//! What a row of `pg_cast` has: the types, where the cast applies, how the value is converted.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::oid::Oid;
use crate::row::IoEnv;
use crate::sql_type::SqlType;

/// The context in which a cast may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere in an expression.
    Implicit,
    /// Storing a value into a column.
    Assignment,
    /// Only with CAST or `::`.
    Explicit,
}

impl CastContext {
    /// The letter in `pg_cast`.
    pub fn letter(self) -> char {
        match self {
            CastContext::Implicit => 'i',
            CastContext::Assignment => 'a',
            CastContext::Explicit => 'e',
        }
    }
}

/// Converts a value that is not NULL.
pub(super) type CastFn = fn(Datum, SqlType, &IoEnv<'_>) -> Result<Datum, ValueError>;

/// How a value becomes one of another type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Method {
    /// The value is the same.
    Relabel,
    /// By the text form of both types.
    Text,
    /// By a function.
    Function(CastFn),
    /// By the cast of the elements of an array.
    Elements,
}

/// A row of `pg_cast`.
#[derive(Clone, Copy, Debug)]
pub struct CastRow {
    /// The type of the value.
    pub from: Oid,
    /// The type that it gets.
    pub to: Oid,
    /// Where the cast is applied.
    pub context: CastContext,
    /// The function of `pg_proc` that it is; [`Oid::NONE`] for none.
    pub function: Oid,
    pub(super) method: Method,
}

/// A defect: the value is not of the type that the row tells.
pub(super) fn mismatch() -> ValueError {
    ValueError::internal("a cast got a value of another type")
}
