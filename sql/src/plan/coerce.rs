//! Type conversion: casts that a context allows, types of literals and parameters from their context, and the common
//! type of several values.

use sqlparser::tokenizer::Location;

use super::binder::{Binder, Typed};
use super::decimal::Decimal;
use crate::error::{SqlError, SqlState};
use crate::expr::eval::fold;
use crate::expr::{Expr, Position};
use crate::lexer::is_space;
use pgtypes::cast::{Cast, CastContext, cast_context};
use pgtypes::float::parse_float;
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, SqlType, TimeZone, wire};

/// Values of their common type.
pub(super) struct Unified {
    pub(super) exprs: Vec<Expr>,
    pub(super) ty: SqlType,
    /// Whether the common type is `numeric` in PostgreSQL.
    pub(super) numeric: bool,
}

/// Casts a value, if there is such a cast.
fn cast_to(value: Typed, to: SqlType, is_explicit: bool) -> Typed {
    match Cast::find(value.ty, to, is_explicit) {
        Some(cast) => Typed::new(fold(Expr::Cast { expr: Box::new(value.expr), cast }), to, value.at),
        None => value,
    }
}

impl Binder<'_> {
    /// The value with its current type: another part of the expression may have fixed a parameter's type after it was
    /// bound.
    pub(super) fn refresh_type(&self, value: Typed) -> Typed {
        match value.expr {
            Expr::Param(number) if value.ty == SqlType::UNKNOWN => Typed { ty: self.params[number], ..value },
            _ => value,
        }
    }

    /// Converts a value to a type; `None` if the context does not allow it. Parses a literal of unknown type as the
    /// type, and gives it to an untyped parameter.
    pub(super) fn coerce(
        &mut self,
        value: Typed,
        to: SqlType,
        context: CastContext,
    ) -> Result<Option<Typed>, SqlError> {
        let value = self.refresh_type(value);
        let at = value.at;
        let explicit = context == CastContext::Explicit;
        if value.ty == SqlType::UNKNOWN {
            return self.coerce_unknown(value, to, explicit).map(Some);
        }
        let Some(needed) = cast_context(value.ty, to) else { return Ok(None) };
        if needed > context {
            return Ok(None);
        }
        if value.numeric && !self.is_exact(&value, to) {
            return Err(self.needs_numeric(&format!("a cast to {} of a value", to.base_name()), at));
        }
        let same_values = match (value.ty, to) {
            (SqlType::INT2, SqlType::INT4 | SqlType::INT8) | (SqlType::INT4, SqlType::INT8) => true,
            (from, SqlType::TEXT | SqlType::VARCHAR) => from.is_text(),
            (from, to) => from == to,
        };
        if same_values {
            return Ok(Some(Typed { ty: to, ..value }));
        }
        if let Some(decimal) = value.decimal.filter(|_| to.is_integer())
            && let Some(rounded) = decimal.rounded()
        {
            let number = Typed::new(Expr::Const(Datum::Int(rounded)), SqlType::INT8, at);
            return Ok(Some(cast_to(number, to, explicit)));
        }
        Ok(Some(cast_to(value, to, explicit)))
    }

    /// Whether a value that is `numeric` in PostgreSQL converts to the same value from here.
    fn is_exact(&self, value: &Typed, to: SqlType) -> bool {
        match value.decimal {
            Some(decimal) if to.is_text() => decimal.prints_as_written(),
            // An integer of a literal is computed from its digits.
            Some(_) => true,
            None if value.ty.is_integer() => true,
            None => !to.is_integer() && !to.is_text(),
        }
    }

    /// A decimal literal, or an integer beyond bigint. 0A000 beyond the range of a float.
    pub(super) fn decimal_literal(&self, text: &str, at: Location) -> Result<Typed, SqlError> {
        let value = parse_float(text).map_err(|error| match error.code() {
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE => self.unsupported("numbers beyond double precision are", at),
            _ => SqlError::from(error).at(self.position(at)),
        })?;
        // There is no negative zero in `numeric`.
        let expr = Expr::Const(Datum::Float(value + 0.0));
        Ok(Typed { decimal: Decimal::parse(text), ..Typed::new(expr, SqlType::FLOAT8, at).numeric(true) })
    }

    /// Reads a literal of unknown type next to a `numeric` value as such a number. Other values are unchanged.
    pub(super) fn numeric_text(&self, value: Typed) -> Result<Typed, SqlError> {
        let Expr::Const(Datum::Text(text)) = &value.expr else { return Ok(value) };
        if value.ty != SqlType::UNKNOWN {
            return Ok(value);
        }
        let body = text.trim_matches(is_space);
        let body = body.strip_prefix('+').unwrap_or(body);
        self.decimal_literal(body, value.at).map_err(|mut error| {
            if error.code == SqlState::INVALID_TEXT_REPRESENTATION {
                error.message = format!("invalid input syntax for type numeric: \"{text}\"");
            }
            error
        })
    }

    fn coerce_unknown(&mut self, value: Typed, to: SqlType, explicit: bool) -> Result<Typed, SqlError> {
        let at = value.at;
        let expr = match value.expr {
            Expr::Const(Datum::Text(text)) => self.literal(&text, to, at)?,
            Expr::Param(number) => {
                self.params[number] = to.base();
                Expr::Param(number)
            }
            other => other,
        };
        let limited = to.typmod >= 0 && expr != Expr::Const(Datum::Null);
        let value = Typed::new(expr, to.base(), at);
        Ok(if limited { cast_to(value, to, explicit) } else { Typed { ty: to, ..value } })
    }

    /// Parses a literal as a type. A time that depends on the session stays text until execution.
    fn literal(&self, text: &str, ty: SqlType, at: Location) -> Result<Expr, SqlError> {
        let position = self.position(at);
        let read = |zone: &TimeZone| {
            wire::parse(ty, text, &IoEnv::new(zone, Now(0))).map_err(|e| SqlError::from(e).at(position))
        };
        let value = read(&TimeZone::utc())?;
        if ty != SqlType::TIMESTAMPTZ {
            return Ok(Expr::Const(value));
        }
        let in_other_zone = read(&TimeZone::new(jiff::tz::TimeZone::fixed(jiff::tz::offset(5))))?;
        let word = text.trim_matches(is_space).to_ascii_lowercase();
        let relative = ["now", "today", "tomorrow", "yesterday"].contains(&word.as_str());
        if value == in_other_zone && !relative {
            return Ok(Expr::Const(value));
        }
        Ok(Expr::Input { ty, text: text.into(), position: Position(position) })
    }

    /// Converts a condition to boolean. 42804 names `construct` if it cannot.
    pub(super) fn boolean(&mut self, value: Typed, construct: &str) -> Result<Expr, SqlError> {
        let value = self.refresh_type(value);
        let (ty, at) = (value.type_name(), value.at);
        match self.coerce(value, SqlType::BOOL, CastContext::Implicit)? {
            Some(value) => Ok(value.expr),
            None => {
                let message = format!("argument of {construct} must be type boolean, not type {ty}");
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    /// Makes a value of unknown type `text`.
    pub(super) fn resolve_unknown(&mut self, value: Typed) -> Result<Typed, SqlError> {
        let value = self.refresh_type(value);
        if value.ty == SqlType::UNKNOWN { self.coerce_unknown(value, SqlType::TEXT, false) } else { Ok(value) }
    }

    /// The type that all values can take implicitly, by PostgreSQL's rules for CASE, COALESCE, VALUES and the like.
    pub(super) fn common_type<'t>(
        &self,
        values: impl IntoIterator<Item = &'t Typed>,
        construct: &str,
    ) -> Result<SqlType, SqlError> {
        let (mut chosen, mut name) = (SqlType::UNKNOWN, "");
        for value in values {
            let ty = value.ty.base();
            if ty == SqlType::UNKNOWN || (ty == chosen && !value.is_float()) {
                continue;
            }
            if chosen == SqlType::UNKNOWN || ty == chosen {
                (chosen, name) = (ty, value.type_name());
                continue;
            }
            let same_category = (chosen.is_number() && ty.is_number()) || (chosen.is_text() && ty.is_text());
            if !same_category {
                let message = format!("{construct} types {name} and {} cannot be matched", value.type_name());
                return Err(self.error(SqlState::DATATYPE_MISMATCH, message, value.at));
            }
            let widens = cast_context(chosen, ty) == Some(CastContext::Implicit);
            let back = cast_context(ty, chosen) == Some(CastContext::Implicit);
            if widens && !back {
                (chosen, name) = (ty, value.type_name());
            }
        }
        Ok(if chosen == SqlType::UNKNOWN { SqlType::TEXT } else { chosen })
    }

    /// Converts all values to their common type.
    pub(super) fn unify(&mut self, values: Vec<Typed>, construct: &str) -> Result<Unified, SqlError> {
        let values: Vec<Typed> = values.into_iter().map(|value| self.refresh_type(value)).collect();
        let ty = self.common_type(&values, construct)?;
        let numeric = values.iter().any(|value| value.numeric) && !values.iter().any(Typed::is_float);
        let mut out = Vec::with_capacity(values.len());
        for mut value in values {
            if numeric && ty == SqlType::FLOAT8 {
                if value.ty == SqlType::INT8 {
                    return Err(self.needs_numeric(&format!("{construct} over bigint and a value"), value.at));
                }
                value = self.numeric_text(value)?;
                self.keeps_digits(&value, construct)?;
            }
            let (from, at) = (value.type_name(), value.at);
            match self.coerce(value, ty, CastContext::Implicit)? {
                Some(value) => out.push(value.expr),
                None => {
                    let message = format!("{construct} could not convert type {from} to {}", ty.base_name());
                    return Err(self.error(SqlState::CANNOT_COERCE, message, at));
                }
            }
        }
        Ok(Unified { exprs: out, ty, numeric })
    }
}
