//! The arguments of a call.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::datetime::{Date, Interval, TimeTz};
use crate::datum::{Array, Datum, Record, compare_same};
use crate::error::ValueError;
use crate::json::Jsonb;
use crate::numeric::Numeric;
use crate::row::IoEnv;
use crate::sql_type::SqlType;
use crate::uuid::Uuid;
use crate::wire;

/// The values of a call's arguments, their types, and what the function may ask of the session.
///
/// The accessors are given the place of an argument, from 0. They fail with XX000 for a value of another kind than the
/// function's row says: the binder has converted the arguments. They fail for NULL too, which strict functions never
/// get.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    values: &'a [Cow<'a, Datum>],
    types: &'a [SqlType],
    result: SqlType,
    env: &'a IoEnv<'a>,
}

impl<'a> Args<'a> {
    /// The arguments of a call. `types` are their types, with what polymorphic ones stand for; `result` that of the
    /// result.
    pub fn new(values: &'a [Cow<'a, Datum>], types: &'a [SqlType], result: SqlType, env: &'a IoEnv<'a>) -> Args<'a> {
        Args { values, types, result, env }
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no argument.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What the function may ask of the session.
    pub fn env(&self) -> &'a IoEnv<'a> {
        self.env
    }

    /// The type of the result.
    pub fn result(&self) -> SqlType {
        self.result
    }

    /// The type of an argument.
    pub fn ty(&self, at: usize) -> SqlType {
        self.types.get(at).copied().unwrap_or(SqlType::UNKNOWN)
    }

    /// An argument. NULL if it is missing.
    pub fn get(&self, at: usize) -> &'a Datum {
        self.values.get(at).map_or(&Datum::Null, |value| &**value)
    }

    /// Whether an argument is NULL.
    pub fn is_null(&self, at: usize) -> bool {
        self.get(at).is_null()
    }

    /// Whether any argument is NULL.
    pub fn any_null(&self) -> bool {
        self.values.iter().any(|value| value.is_null())
    }

    fn wrong(at: usize) -> ValueError {
        ValueError::internal(&format!("argument {} of a function is of another kind", at + 1))
    }

    /// A boolean.
    pub fn bool(&self, at: usize) -> Result<bool, ValueError> {
        if let Datum::Bool(value) = self.get(at) { Ok(*value) } else { Err(Args::wrong(at)) }
    }

    /// An integer, an OID, or a count of microseconds.
    pub fn int(&self, at: usize) -> Result<i64, ValueError> {
        if let Datum::Int(value) = self.get(at) { Ok(*value) } else { Err(Args::wrong(at)) }
    }

    /// An `integer` or `smallint`.
    pub fn i32(&self, at: usize) -> Result<i32, ValueError> {
        i32::try_from(self.int(at)?).map_err(|_| Args::wrong(at))
    }

    /// A `date`.
    pub fn date(&self, at: usize) -> Result<Date, ValueError> {
        self.i32(at).map(Date)
    }

    /// A `double precision` or `real`.
    pub fn float(&self, at: usize) -> Result<f64, ValueError> {
        if let Datum::Float(value) = self.get(at) { Ok(*value) } else { Err(Args::wrong(at)) }
    }

    /// A text, or a `character` with its blanks.
    pub fn text(&self, at: usize) -> Result<&'a str, ValueError> {
        match self.get(at) {
            Datum::Text(text) | Datum::Padded(text) => Ok(text),
            _ => Err(Args::wrong(at)),
        }
    }

    /// A `bytea`.
    pub fn bytes(&self, at: usize) -> Result<&'a [u8], ValueError> {
        if let Datum::Bytes(bytes) = self.get(at) { Ok(bytes) } else { Err(Args::wrong(at)) }
    }

    /// A `numeric`.
    pub fn numeric(&self, at: usize) -> Result<&'a Numeric, ValueError> {
        if let Datum::Numeric(value) = self.get(at) { Ok(value) } else { Err(Args::wrong(at)) }
    }

    /// An `interval`.
    pub fn interval(&self, at: usize) -> Result<Interval, ValueError> {
        if let Datum::Interval(value) = self.get(at) { Ok(*value) } else { Err(Args::wrong(at)) }
    }

    /// A `timetz`.
    pub fn timetz(&self, at: usize) -> Result<TimeTz, ValueError> {
        if let Datum::TimeTz(value) = self.get(at) { Ok(*value) } else { Err(Args::wrong(at)) }
    }

    /// A `uuid`.
    pub fn uuid(&self, at: usize) -> Result<Uuid, ValueError> {
        if let Datum::Uuid(value) = self.get(at) { Ok(*value) } else { Err(Args::wrong(at)) }
    }

    /// A `jsonb`.
    pub fn jsonb(&self, at: usize) -> Result<&'a Jsonb, ValueError> {
        if let Datum::Jsonb(value) = self.get(at) { Ok(value) } else { Err(Args::wrong(at)) }
    }

    /// An array.
    pub fn array(&self, at: usize) -> Result<&'a Array, ValueError> {
        if let Datum::Array(value) = self.get(at) { Ok(value) } else { Err(Args::wrong(at)) }
    }

    /// A row.
    pub fn record(&self, at: usize) -> Result<&'a Record, ValueError> {
        if let Datum::Record(value) = self.get(at) { Ok(value) } else { Err(Args::wrong(at)) }
    }

    /// The order of two arguments of one kind that are not NULL.
    pub fn compare(&self, left: usize, right: usize) -> Result<Ordering, ValueError> {
        compare_same(self.get(left), self.get(right)).ok_or_else(|| Args::wrong(right))
    }

    /// The text form of an argument, as its type prints it; `None` for NULL.
    pub fn show(&self, at: usize) -> Option<String> {
        let value = self.get(at);
        (!value.is_null()).then(|| wire::show(value, self.ty(at), self.env))
    }
}
