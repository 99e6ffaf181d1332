//! Type conversion: casts that a context allows, types of literals and parameters from their context, and the common
//! type of several values.

use sqlparser::tokenizer::Location;

use super::binder::{Binder, Typed};
use crate::catalog::{FIXED_RELATION, fixed_id};
use crate::error::{SqlError, SqlState};
use crate::expr::fold::fold;
use crate::expr::{Expr, Position};
use pgtypes::cast::{Cast, CastContext, cast_context, is_relabel};
use pgtypes::datetime::{
    Date, DateOrder, Interval, IntervalTypmod, Session, Time, TimeTz, Timestamp, TimestampTz, Uses,
};
use pgtypes::functions::common_type;
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, SqlType, TimeZone, wire};

/// Values of their common type.
pub(super) struct Unified {
    pub(super) exprs: Vec<Expr>,
    pub(super) ty: SqlType,
}

/// Casts a value, if there is such a cast.
fn cast_to(value: Typed, to: SqlType, is_explicit: bool) -> Typed {
    match Cast::find(value.ty, to, is_explicit) {
        Some(cast) => Typed::new(fold(Expr::Cast { expr: Box::new(value.expr), cast }), to, value.at),
        None => value,
    }
}

/// What the reading of a text as a type takes from the session.
fn uses(ty: SqlType, text: &str) -> Uses {
    let zone = TimeZone::utc();
    let session = Session::new(&zone, Now(0));
    match ty.base() {
        SqlType::DATE => Date::read(text, &session).uses,
        SqlType::TIME => Time::read(text, &session).uses,
        SqlType::TIMETZ => TimeTz::read(text, &session).uses,
        SqlType::TIMESTAMP => Timestamp::read(text, &session).uses,
        SqlType::TIMESTAMPTZ => TimestampTz::read(text, &session).uses,
        SqlType::INTERVAL => Interval::read(text, IntervalTypmod::NONE, &session).uses,
        // The name may mean another table by then.
        SqlType::REGCLASS => Uses { zone: true, ..Uses::default() },
        // Arrays are read at execution if their elements might be.
        ty => match ty.element().map(SqlType::base) {
            Some(SqlType::DATE | SqlType::TIME | SqlType::TIMETZ | SqlType::TIMESTAMP | SqlType::TIMESTAMPTZ) => {
                Uses { zone: true, ..Uses::default() }
            }
            _ => Uses::default(),
        },
    }
}

/// Whether values of a type name relations or types.
fn is_name(ty: SqlType) -> bool {
    [SqlType::REGCLASS, SqlType::REGTYPE].contains(&ty.base())
}

/// The error of a text that no session reads as the type: PostgreSQL reports it while it analyzes the statement.
fn certain_error(ty: SqlType, text: &str) -> Option<SqlError> {
    if ty.base() == SqlType::REGCLASS {
        return None;
    }
    let zone = TimeZone::utc();
    let read = |order| wire::parse(ty, text, &IoEnv { order, ..IoEnv::new(&zone, Now(0)) }).err();
    let error = read(DateOrder::Mdy)?;
    read(DateOrder::Dmy).and(read(DateOrder::Ymd))?;
    // In another time zone it may be in range.
    let is_certain = !error.message().contains("timestamp out of range");
    is_certain.then(|| SqlError::from(error))
}

impl Binder<'_> {
    /// Converts a value to a type; `None` if the context does not allow it. Parses a literal of unknown type as the
    /// type, and gives it to an untyped parameter.
    pub(super) fn coerce(
        &mut self,
        value: Typed,
        to: SqlType,
        context: CastContext,
    ) -> Result<Option<Typed>, SqlError> {
        let explicit = context == CastContext::Explicit;
        if value.ty == SqlType::UNKNOWN {
            return if to.oid == SqlType::ANY.oid || to == SqlType::UNKNOWN {
                Ok(Some(value))
            } else {
                self.coerce_unknown(value, to, explicit).map(Some)
            };
        }
        if to.oid == SqlType::ANY.oid {
            return Ok(Some(value));
        }
        let Some(needed) = cast_context(value.ty, to) else { return Ok(None) };
        if needed > context {
            return Ok(None);
        }
        let keeps_modifier = to.typmod < 0 || (value.ty.oid == to.oid && value.ty.typmod == to.typmod);
        if keeps_modifier && is_relabel(value.ty, to) {
            return Ok(Some(Typed { ty: to, ..value }));
        }
        Ok(Some(cast_to(value, to, explicit)))
    }

    fn coerce_unknown(&mut self, value: Typed, to: SqlType, explicit: bool) -> Result<Typed, SqlError> {
        let at = value.at;
        let expr = match value.expr {
            Expr::Const(Datum::Text(text)) => self.literal(&text, to, at)?,
            Expr::Param(number) => {
                self.set_param(number, to.base(), at)?;
                Expr::Param(number)
            }
            other => other,
        };
        let limited = to.typmod >= 0 && expr != Expr::Const(Datum::Null);
        let value = Typed::new(expr, to.base(), at);
        Ok(if limited { cast_to(value, to, explicit) } else { Typed { ty: to, ..value } })
    }

    /// Gives a type to a parameter that had none where it was bound. 42P08 if it has got another one since.
    fn set_param(&mut self, number: usize, ty: SqlType, at: Location) -> Result<(), SqlError> {
        let slot = self.params[number];
        if slot == SqlType::UNKNOWN || slot == ty {
            self.params[number] = ty;
            return Ok(());
        }
        let detail = format!("{} versus {}", self.type_text(slot), self.type_text(ty));
        let message = format!("inconsistent types deduced for parameter ${}", number + 1);
        Err(self.error(SqlState::AMBIGUOUS_PARAMETER, message, at).detail(detail))
    }

    /// Parses a literal as a type. What depends on the session stays text until execution.
    fn literal(&self, text: &str, ty: SqlType, at: Location) -> Result<Expr, SqlError> {
        let position = self.position(at);
        if self.is_stored && (ty.scalar().is_enum() || is_name(ty)) {
            self.literals.borrow_mut().push((ty, at));
        }
        if uses(ty, text).any() {
            if let Some(error) = certain_error(ty, text) {
                return Err(error.at(position));
            }
            let mut text: Box<str> = text.into();
            if ty.base() == SqlType::REGCLASS {
                if let Some(id) = fixed_id(&text, FIXED_RELATION).filter(|_| self.is_stored) {
                    // What names a relation that is dropped has no meaning then.
                    if !self.catalog.has_relation(id) {
                        let message = format!("relation with OID {} does not exist", id.0);
                        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                    }
                    text = id.0.to_string().into();
                }
                self.note_constant(&text);
                self.note_relation_name(&text, at)?;
            }
            return Ok(Expr::Input { ty, text, position: Position(position) });
        }
        self.note_enum(ty);
        let zone = TimeZone::utc();
        let env = IoEnv { names: self.names(), ..IoEnv::new(&zone, Now(0)) };
        let value = wire::parse(ty, text, &env).map_err(|error| SqlError::from(error).at(position))?;
        Ok(Expr::Const(value))
    }

    /// Converts a condition to boolean. 42804 names `construct` if it cannot.
    pub(super) fn boolean(&mut self, value: Typed, construct: &str) -> Result<Expr, SqlError> {
        let (ty, at) = (value.ty, value.at);
        match self.coerce(value, SqlType::BOOL, CastContext::Implicit)? {
            Some(value) => {
                self.refuse_set(&value.expr, construct, at)?;
                Ok(value.expr)
            }
            None => {
                let ty = self.type_text(ty);
                let message = format!("argument of {construct} must be type boolean, not type {ty}");
                Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
            }
        }
    }

    /// 42804 if a condition returns a set.
    pub(super) fn refuse_set(&self, condition: &Expr, construct: &str, at: Location) -> Result<(), SqlError> {
        if !condition.returns_set() {
            return Ok(());
        }
        let message = format!("argument of {construct} must not return a set");
        Err(self.error(SqlState::DATATYPE_MISMATCH, message, at))
    }

    /// Makes a value of unknown type `text`.
    pub(super) fn resolve_unknown(&mut self, value: Typed) -> Result<Typed, SqlError> {
        if value.ty == SqlType::UNKNOWN { self.coerce_unknown(value, SqlType::TEXT, false) } else { Ok(value) }
    }

    /// The common type of values. 42804 names `construct` if they have none.
    pub(super) fn common_type(&self, values: &[Typed], construct: &str) -> Result<SqlType, SqlError> {
        let types: Vec<SqlType> = values.iter().map(|value| value.ty).collect();
        common_type(&types).map_err(|at| {
            let known = values[..at].iter().filter(|value| value.ty != SqlType::UNKNOWN);
            let before = common_type(&types[..at]).ok().map_or("unknown", SqlType::base_name);
            let before = if known.count() == 0 { "unknown" } else { before };
            let message = format!("{construct} types {before} and {} cannot be matched", self.type_text(values[at].ty));
            self.error(SqlState::DATATYPE_MISMATCH, message, values[at].at)
        })
    }

    /// Converts all values to their common type. The first one of CASE is that of ELSE.
    pub(super) fn unify(&mut self, values: Vec<Typed>, construct: &str) -> Result<Unified, SqlError> {
        let ty = self.common_type(&values, construct)?;
        let mut exprs = Vec::with_capacity(values.len());
        for value in values {
            let construct = match (construct, exprs.len()) {
                ("CASE", 0) => "CASE/ELSE",
                ("CASE", _) => "CASE/WHEN",
                _ => construct,
            };
            let (from, at) = (self.type_text(value.ty), value.at);
            match self.coerce(value, ty, CastContext::Implicit)? {
                Some(value) => exprs.push(value.expr),
                None => {
                    let message = format!("{construct} could not convert type {from} to {}", self.type_text(ty));
                    return Err(self.error(SqlState::CANNOT_COERCE, message, at));
                }
            }
        }
        Ok(Unified { exprs, ty })
    }
}
