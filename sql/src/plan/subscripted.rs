//! Binding of the columns that INSERT and UPDATE assign: whole columns, and elements and slices of arrays.

use sqlparser::ast::{FunctionArg, FunctionArgExpr, ObjectName, ObjectNamePartFunction, Spanned};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope, Typed};
use crate::error::{SqlError, SqlState};
use crate::expr::{Expr, Subscript};
use crate::parse::{is_omitted, subscript};
use crate::table::{Column, Table};
use pgtypes::SqlType;
use pgtypes::cast::CastContext;

/// A column that is assigned, or a part of it.
pub(super) struct Target {
    /// The position of the column.
    pub(super) place: usize,
    /// Where its name is.
    pub(super) at: Location,
    /// None for the whole column.
    subscripts: Vec<Subscript>,
}

impl Target {
    /// A whole column.
    pub(super) fn whole(place: usize, at: Location) -> Target {
        Target { place, at, subscripts: Vec::new() }
    }

    /// Whether only a part of the column is assigned.
    pub(super) fn is_part(&self) -> bool {
        !self.subscripts.is_empty()
    }

    /// The type of what is assigned to a column of a type.
    pub(super) fn type_in(&self, column: SqlType) -> SqlType {
        let is_slice = self.subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice(..)));
        if self.is_part() && !is_slice { column.scalar() } else { column }
    }

    /// The value of the column after an assignment, over the one before it.
    pub(super) fn over(&self, before: Expr, value: Expr, column: &Column) -> Expr {
        if !self.is_part() {
            return value;
        }
        let (array, subscripts) = (Box::new(before), self.subscripts.clone());
        Expr::Assigned { array, subscripts, value: Box::new(value), element: column.ty.scalar() }
    }
}

impl Binder<'_> {
    /// Binds the name of a column in a target list, and its subscripts.
    pub(super) fn assigned(&mut self, table: &Table, name: &ObjectName, scope: &Scope) -> Result<Target, SqlError> {
        let at = name.span().start;
        let (names, accesses) = name.0.split_at(name.0.iter().take_while(|part| part.as_ident().is_some()).count());
        let place = if accesses.is_empty() {
            self.named_column(table, name)?
        } else {
            self.named_column(table, &ObjectName(names.to_vec()))?
        };
        let mut target = Target::whole(place, at);
        let ty = table.columns.get(place).map_or(SqlType::UNKNOWN, |column| column.ty);
        if !accesses.is_empty() && ty.base() == SqlType::JSONB {
            return Err(self.unsupported("assignment to a subscript of jsonb is", at));
        }
        for part in accesses {
            let Some((call, is_slice)) = subscript(part) else {
                return Err(self.unsupported("this kind of subscript is", at));
            };
            target.subscripts.push(self.assigned_subscript(call, is_slice, scope, at)?);
        }
        if !target.is_part() || ty.element().is_some() {
            return Ok(target);
        }
        // PostgreSQL gives no position here.
        let message = format!("cannot subscript type {} because it does not support subscripting", self.type_text(ty));
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
    }

    fn assigned_subscript(
        &mut self,
        call: &ObjectNamePartFunction,
        is_slice: bool,
        scope: &Scope,
        at: Location,
    ) -> Result<Subscript, SqlError> {
        let mut bounds = Vec::with_capacity(2);
        for arg in &call.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(ast)) = arg else {
                return Err(self.unsupported("this kind of subscript is", at));
            };
            bounds.push(if is_omitted(ast) { None } else { Some(self.index(ast, scope)?) });
        }
        let mut bounds = bounds.into_iter();
        match (is_slice, bounds.next().flatten(), bounds.next().flatten()) {
            (true, lower, upper) => Ok(Subscript::Slice(lower, upper)),
            (false, Some(index), None) => Ok(Subscript::Index(index)),
            (false, ..) => {
                // `a[]`
                let position = self.position_after(at, "]");
                Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"]\"").at(position))
            }
        }
    }

    /// Converts a value to the type of an element or a slice.
    pub(super) fn assign_part(&mut self, value: Typed, column: &Column, target: &Target) -> Result<Expr, SqlError> {
        let (from, wanted) = (self.type_text(value.ty), target.type_in(column.ty));
        if let Some(value) = self.coerce(value, wanted, CastContext::Assignment)? {
            return Ok(value.expr);
        }
        let (name, wanted) = (&column.name, self.type_text(wanted));
        let message =
            format!("subscripted assignment to \"{name}\" requires type {wanted} but expression is of type {from}");
        let hint = "You will need to rewrite or cast the expression.";
        Err(self.error(SqlState::DATATYPE_MISMATCH, message, target.at).hint(hint))
    }

    /// 0A000 for DEFAULT in place of a part of a column.
    pub(super) fn refuse_default(&self, target: &Target) -> Result<(), SqlError> {
        if !target.is_part() {
            return Ok(());
        }
        let message = "cannot set an array element to DEFAULT";
        Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, target.at))
    }
}
