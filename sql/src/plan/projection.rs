//! Binding of output columns: select lists and RETURNING.

use std::ops::Range;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr as Ast, Ident, ObjectNamePart, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, Spanned, TrimWhereField, Value, ValueWithSpan,
};
use sqlparser::tokenizer::{Location, Span};

use super::binder::{Binder, MergedColumn, Scope, Typed, Visible};
use super::names::fold_ident;
use super::node::ResultColumn;
use super::type_name;
use super::view_text::Edit;
use super::whole_row::{Star, edit_of, star_of};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{is_empty_list, is_star, start_of};
use crate::table::quote_identifier;
use pgtypes::SqlType;
use pgtypes::cast::CastContext;

/// The output of a query: expressions with names, types and origins.
#[derive(Default)]
pub(super) struct Output {
    pub(super) exprs: Vec<Expr>,
    pub(super) columns: Vec<ResultColumn>,
    /// The columns whose type is not known yet, and where their expressions are: literals, NULL, parameters.
    pub(super) untyped: Vec<(usize, Location)>,
    /// Which of the query's references to columns each expression has.
    pub(super) reads: Vec<Range<usize>>,
}

/// RETURNING: expressions and result columns.
type Returning = (Option<Vec<Expr>>, Option<Vec<ResultColumn>>);

impl Binder<'_> {
    /// Binds a select list or RETURNING. Columns without a type are left so: other clauses may give one to a parameter.
    pub(super) fn projection(&mut self, items: &[SelectItem], scope: &Scope) -> Result<Output, SqlError> {
        let mut output = Output::default();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(ast) if is_empty_list(ast) => {}
                SelectItem::UnnamedExpr(ast) => {
                    if let Some(star) = star_of(ast) {
                        self.star(ast, &star, scope, &mut output)?;
                        continue;
                    }
                    let value = self.expr(ast, scope)?;
                    self.push(&mut output, (value, column_name(ast)), scope);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let value = self.expr(expr, scope)?;
                    let name = self.alias(alias)?;
                    self.push(&mut output, (value, name), scope);
                }
                SelectItem::Wildcard(_) => self.wildcard(None, item.span().start, scope, &mut output)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let mut parts = self.name_parts(name)?;
                    if parts.len() > 2 {
                        parts.push("*".to_owned());
                        return Err(SqlError::far_name(&parts, 4).at(self.position(name.span().start)));
                    }
                    let table = parts.pop().unwrap_or_default();
                    self.wildcard(Some(&table), name.span().start, scope, &mut output)?;
                }
                other => return Err(self.unsupported("this form of output column is", other.span().start)),
            }
        }
        Ok(output)
    }

    /// `(row).*`, and `(t.*)`, which is `t.*`.
    fn star(&mut self, ast: &Ast, star: &Star<'_>, scope: &Scope, output: &mut Output) -> Result<(), SqlError> {
        if self.rewrites.is_some() {
            // The text of a view has the columns in the place of a star.
            return Err(self.unsupported("this form of * in a view is", start_of(ast)));
        }
        let columns = match star {
            Star::Table(parts) => self.starred_columns(parts, scope)?,
            Star::Row(root, accesses) => self.fields((root, accesses), scope)?,
        };
        for (name, value) in columns {
            self.push(output, (value, name), scope);
        }
        Ok(())
    }

    fn push(&self, output: &mut Output, (value, name): (Typed, String), scope: &Scope) {
        let before = output.reads.last().map_or(0, |reads| reads.end);
        output.reads.push(before..self.aggregates.references.len());
        let origin = match &value.expr {
            Expr::Column(place) => scope
                .columns()
                .find(|(at, _, _)| at == place)
                .map_or((0, 0), |(_, table, column)| (table.oid, column.number)),
            _ => (0, 0),
        };
        if value.ty == SqlType::UNKNOWN {
            output.untyped.push((output.exprs.len(), value.at));
        }
        output.exprs.push(value.expr);
        output.columns.push(ResultColumn { name, ty: value.ty, origin });
    }

    /// Gives a type to an output column that has none: `text`.
    pub(super) fn settle(&mut self, output: &mut Output, column: usize) -> Result<(), SqlError> {
        let Some(found) = output.untyped.iter().position(|(at, _)| *at == column) else { return Ok(()) };
        let (_, at) = output.untyped.swap_remove(found);
        self.settle_as(output, (column, at), SqlType::TEXT, CastContext::Implicit)
    }

    /// Gives types to all output columns that have none: those of the target columns of INSERT, else `text`.
    pub(super) fn settle_all(&mut self, output: &mut Output) -> Result<(), SqlError> {
        for (column, at) in std::mem::take(&mut output.untyped) {
            match self.targets.get(column) {
                Some(target) => self.settle_as(output, (column, at), target.base(), CastContext::Assignment)?,
                None => self.settle_as(output, (column, at), SqlType::TEXT, CastContext::Implicit)?,
            }
        }
        Ok(())
    }

    fn settle_as(
        &mut self,
        output: &mut Output,
        (column, at): (usize, Location),
        ty: SqlType,
        context: CastContext,
    ) -> Result<(), SqlError> {
        let expr = output.exprs[column].clone();
        let value = self.coerce(Typed::new(expr, SqlType::UNKNOWN, at), ty, context)?;
        let value = value.ok_or_else(|| self.unsupported("this expression is", at))?;
        (output.exprs[column], output.columns[column].ty) = (value.expr, value.ty);
        Ok(())
    }

    /// `*` and `t.*`.
    fn wildcard(
        &mut self,
        table: Option<&str>,
        at: Location,
        scope: &Scope,
        output: &mut Output,
    ) -> Result<(), SqlError> {
        match table {
            None if scope.tables.is_empty() => {
                return Err(self.error(SqlState::SYNTAX_ERROR, "SELECT * with no tables specified is not valid", at));
            }
            Some(table) if !scope.tables.iter().any(|t| t.name == table) => {
                return self.outer_wildcard(table, at, scope, output);
            }
            _ => {}
        }
        let visible: Vec<Visible<'_>> = match table {
            None => scope.visible(),
            Some(table) => {
                let columns = scope.columns().filter(|(_, owner, _)| owner.name == table);
                columns.map(|(place, owner, column)| Visible::Separate(place, owner, column)).collect()
            }
        };
        self.note_edit(at, || {
            let texts: Vec<String> = visible.iter().map(|column| starred(column, scope)).collect();
            Edit::Star(texts.join(", "))
        });
        for column in visible {
            let value = column.typed(at);
            self.note_columns(&value.expr, scope);
            self.note_reference(&value);
            self.push(output, (value, column.name().to_owned()), scope);
        }
        Ok(())
    }

    /// `t.*` of a table of a query around.
    fn outer_wildcard(
        &mut self,
        table: &str,
        at: Location,
        scope: &Scope,
        output: &mut Output,
    ) -> Result<(), SqlError> {
        let name = Ident { value: table.to_owned(), quote_style: Some('"'), span: Span::new(at, at) };
        let columns = self.starred_columns(&[name], scope)?;
        self.note_edit(at, || edit_of(table, &columns));
        for (name, value) in columns {
            self.push(output, (value, name), scope);
        }
        Ok(())
    }

    /// Binds RETURNING.
    pub(super) fn returning(&mut self, items: Option<&[SelectItem]>, scope: &Scope) -> Result<Returning, SqlError> {
        let Some(items) = items else { return Ok((None, None)) };
        self.clause = "RETURNING";
        let mut output = self.projection(items, scope)?;
        self.settle_all(&mut output)?;
        Ok((Some(output.exprs), Some(output.columns)))
    }
}

/// A column of a star in the text of a view: its table is named where it is of one, so that it is never ambiguous.
fn starred(column: &Visible<'_>, scope: &Scope) -> String {
    let place = match column {
        Visible::Separate(place, _, _) => Some(*place),
        // Bare, it may be of another type than the column.
        Visible::Merged(MergedColumn { expr: Expr::Column(place), ty, .. }) => {
            scope.columns().find(|(at, _, column)| at == place && column.ty == *ty).map(|(at, ..)| at)
        }
        Visible::Merged(_) => None,
    };
    let owner = place.and_then(|place| scope.columns().find(|(at, _, _)| *at == place));
    match owner.map_or("", |(_, owner, _)| owner.name.as_str()) {
        "" => quote_identifier(column.name()),
        owner => format!("{}.{}", quote_identifier(owner), quote_identifier(column.name())),
    }
}

/// The name that PostgreSQL gives an output column without an alias.
fn column_name(ast: &Ast) -> String {
    name_of(ast).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// What an expression contributes to the name of an index.
pub(super) fn index_column_name(ast: &Ast) -> String {
    name_of(ast).map_or_else(|| "expr".to_owned(), |(name, _)| name)
}

/// A name for an expression. The flag is false for a fallback (the name of a type or construct).
fn name_of(ast: &Ast) -> Option<(String, bool)> {
    let strong = |name: &str| Some((name.to_owned(), true));
    match ast {
        Ast::Identifier(ident) => Some((fold_ident(ident), true)),
        Ast::CompoundIdentifier(parts) => {
            parts.iter().rfind(|ident| !is_star(ident)).map(|ident| (fold_ident(ident), true))
        }
        Ast::Nested(inner) => name_of(inner),
        Ast::Collate { expr, .. } => name_of(expr),
        Ast::Function(call) => match call.name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => Some((fold_ident(ident), true)),
            _ => None,
        },
        Ast::Cast { expr, data_type, .. } => match name_of(expr) {
            Some((name, true)) => Some((name, true)),
            _ => type_name::column_name(data_type).map(|name| (name, false)),
        },
        Ast::Value(ValueWithSpan { value: Value::NationalStringLiteral(_), .. }) => Some(("bpchar".to_owned(), false)),
        Ast::BinaryOp { op: BinaryOperator::Overlaps, .. } => strong("overlaps"),
        Ast::TypedString(typed) => type_name::column_name(&typed.data_type).map(|name| (name, false)),
        Ast::Case { else_result, .. } => match else_result.as_deref().and_then(name_of) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        Ast::Array(_) => strong("array"),
        Ast::CompoundFieldAccess { root, access_chain } => {
            let fields = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(field) => Some(field),
                AccessExpr::Subscript(_) => None,
            });
            name_of(fields.unwrap_or(root))
        }
        Ast::AtTimeZone { .. } => strong("timezone"),
        Ast::Extract { .. } => strong("extract"),
        Ast::Overlay { .. } => strong("overlay"),
        Ast::Interval(_) => Some(("interval".to_owned(), false)),
        Ast::Ceil { .. } => strong("ceil"),
        Ast::Floor { .. } => strong("floor"),
        Ast::Position { .. } => strong("position"),
        Ast::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Ast::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Ast::Tuple(_) => strong("row"),
        Ast::Exists { negated: false, .. } => strong("exists"),
        Ast::Subquery(query) => match &*query.body {
            // The name of its only column.
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(ast)] => name_of(ast),
                [SelectItem::ExprWithAlias { alias, .. }] => Some((fold_ident(alias), true)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
