//! Casts between types: PostgreSQL's `pg_cast`, casts through text, and what a modifier does to a value.
//!
//! # Layers
//!
//! 1. `row`: what a row of the table has
//! 2. `numbers`, `strings`, `times`: casts by kind of value
//! 3. `documents`: casts of JSON
//! 4. `rows`: the table

mod documents;
mod numbers;
mod row;
mod rows;
mod strings;
mod times;

use crate::datum::{Datum, Repr};
use crate::error::ValueError;
use crate::row::{Category, IoEnv};
use crate::sql_type::SqlType;
use crate::wire;
pub use numbers::{int_to_float, to_int};
pub use row::{CastContext, CastRow};
use row::{Method, mismatch};

/// A cast between two types, with their modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// The type of the value.
    pub from: SqlType,
    /// The type that it gets, with the modifier that is applied.
    pub to: SqlType,
    /// Whether it was written by the user. It truncates what an assignment refuses.
    pub is_explicit: bool,
    method: Method,
}

impl PartialEq for Cast {
    /// The types determine the rest.
    fn eq(&self, other: &Cast) -> bool {
        (self.from, self.to, self.is_explicit) == (other.from, other.to, other.is_explicit)
    }
}

/// The rows of `pg_cast`.
pub fn rows() -> &'static [CastRow] {
    rows::ROWS
}

/// The weakest context in which `from` casts to `to`; `None` if it never does. Ignores type modifiers.
pub fn cast_context(from: SqlType, to: SqlType) -> Option<CastContext> {
    method(from, to).map(|(context, _)| context)
}

/// Whether a cast leaves the value as it is. Ignores type modifiers.
pub fn is_relabel(from: SqlType, to: SqlType) -> bool {
    matches!(method(from, to), Some((_, Method::Relabel)))
}

fn method(from: SqlType, to: SqlType) -> Option<(CastContext, Method)> {
    if from.oid == to.oid {
        return Some((CastContext::Implicit, Method::Relabel));
    }
    let place = rows::ROWS.binary_search_by_key(&(from.oid, to.oid), |row| (row.from, row.to));
    if let Some(row) = place.ok().and_then(|at| rows::ROWS.get(at)) {
        return Some((row.context, row.method));
    }
    let is_string = |ty: SqlType| ty.row().category == Category::String;
    let has_values = |ty: SqlType| ty.row().repr != Repr::None;
    if to == SqlType::UNKNOWN || !has_values(from) || to.row().category == Category::Pseudo {
        return None;
    }
    // Every type has a text form.
    match () {
        () if from == SqlType::UNKNOWN => Some((CastContext::Implicit, Method::Text)),
        // Vectors of the catalog are arrays too.
        () if (from.is_array() || is_vector(from)) && to.is_array() => {
            let (context, _) = method(from.element()?, to.element()?)?;
            Some((context, Method::Elements))
        }
        () if is_string(to) => Some((CastContext::Assignment, Method::Text)),
        () if is_string(from) => Some((CastContext::Explicit, Method::Text)),
        () => None,
    }
}

impl Cast {
    /// Whether the result depends on the session: on its time zone, its styles, or names of its catalog.
    pub fn is_stable(&self) -> bool {
        let zoned = |ty: SqlType| matches!(ty.base(), SqlType::TIMESTAMPTZ | SqlType::TIMETZ);
        let by_session = |ty: SqlType| {
            let category = ty.row().category;
            matches!(category, Category::DateTime | Category::Timespan) || ty.is_enum() || is_name(ty)
        };
        match self.method {
            Method::Relabel => false,
            Method::Function(_) => zoned(self.from) || zoned(self.to),
            // PostgreSQL calls the text forms of all arrays and rows so.
            Method::Text => {
                let is_stable = |ty: SqlType| ty.is_array() || ty.oid == SqlType::RECORD.oid || by_session(ty);
                is_stable(self.from) || is_stable(self.to)
            }
            Method::Elements => match (self.from.element(), self.to.element()) {
                (Some(from), Some(to)) => Cast::find(from, to, self.is_explicit).is_some_and(|cast| cast.is_stable()),
                _ => false,
            },
        }
    }

    /// Whether the result has the form of floats or of bytes that the session chooses. Indexes may hold it all the
    /// same, as in PostgreSQL.
    pub fn is_styled(&self) -> bool {
        let from = self.from.scalar();
        matches!(self.method, Method::Text) && matches!(from.base(), SqlType::FLOAT4 | SqlType::FLOAT8 | SqlType::BYTEA)
    }

    /// The cast from a type to another one, in any context; `None` if there is none.
    pub fn find(from: SqlType, to: SqlType, is_explicit: bool) -> Option<Cast> {
        method(from, to).map(|(_, method)| Cast { from, to, is_explicit, method })
    }

    /// Converts a value.
    ///
    /// # Errors
    /// Those of the types. Text too long for a length is truncated by an explicit cast and is 22001 in an assignment.
    pub fn apply(&self, value: Datum, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
        if value.is_null() {
            return Ok(value);
        }
        let value = match self.method {
            Method::Relabel => value,
            Method::Function(function) => function(value, self.to, env)?,
            Method::Elements => return self.apply_to_elements(value, env),
            Method::Text => match value {
                // The text of an unknown literal is its value.
                Datum::Text(text) if self.from.row().category == Category::String || self.from == SqlType::UNKNOWN => {
                    wire::parse(self.to, &text, env)?
                }
                Datum::Padded(text) => wire::parse(self.to, &text, env)?,
                value => wire::parse(self.to, &wire::show(&value, self.from, env), env)?,
            },
        };
        modify(value, self.to, self.is_explicit)
    }

    /// Converts an array, element by element.
    fn apply_to_elements(&self, value: Datum, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
        let (Datum::Array(array), Some(from), Some(to)) = (value, self.from.element(), self.to.element()) else {
            return Err(mismatch());
        };
        let cast = Cast::find(from, to, self.is_explicit).ok_or_else(mismatch)?;
        let array = array.try_map(to.oid, |element| cast.apply(element.clone(), env))?;
        Ok(Datum::Array(Box::new(array)))
    }
}

/// Applies the modifier of a type.
///
/// # Errors
/// Those of PostgreSQL for a value that does not fit (22001, 22003).
pub fn modify(value: Datum, ty: SqlType, is_explicit: bool) -> Result<Datum, ValueError> {
    match ty.row().modifier {
        Some(modifier) if ty.typmod >= 0 && !value.is_null() => (modifier.apply)(value, ty, is_explicit),
        _ => Ok(value),
    }
}

fn is_vector(ty: SqlType) -> bool {
    matches!(ty.base(), SqlType::INT2VECTOR | SqlType::OIDVECTOR)
}

/// Whether the text form of a type is the name of an object.
fn is_name(ty: SqlType) -> bool {
    matches!(
        ty.base(),
        SqlType::REGPROC
            | SqlType::REGPROCEDURE
            | SqlType::REGOPER
            | SqlType::REGOPERATOR
            | SqlType::REGCLASS
            | SqlType::REGTYPE
            | SqlType::REGNAMESPACE
            | SqlType::REGROLE
            | SqlType::REGCOLLATION
    )
}
