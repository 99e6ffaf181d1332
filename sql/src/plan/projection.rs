//! Binding of output columns: select lists and RETURNING.

use sqlparser::ast::{
    AccessExpr, Expr as Ast, ObjectNamePart, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned,
    TrimWhereField,
};
use sqlparser::tokenizer::Location;

use super::bind_expr::fields_of;
use super::binder::{Binder, Scope, ScopeColumn, ScopeTable, Typed};
use super::names::fold_ident;
use super::node::ResultColumn;
use super::type_name;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::fold::fold;
use crate::parse::is_empty_list;
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
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(ast), _) => {
                    self.fields(ast, scope, &mut output)?;
                }
                other => return Err(self.unsupported("this form of output column is", other.span().start)),
            }
        }
        Ok(output)
    }

    /// `(row).*`
    fn fields(&mut self, ast: &Ast, scope: &Scope, output: &mut Output) -> Result<(), SqlError> {
        let record = self.expr(ast, scope)?;
        let Some(fields) = fields_of(&record) else {
            let message = format!("type {} is not composite", self.type_text(record.ty));
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        };
        if fields.is_empty() {
            return Err(self.unsupported("the fields of a row that comes from elsewhere are", record.at));
        }
        for (at, (name, ty)) in fields.into_iter().enumerate() {
            output.exprs.push(fold(Expr::Field { record: Box::new(record.expr.clone()), at }));
            output.columns.push(ResultColumn { name, ty, origin: (0, 0) });
        }
        Ok(())
    }

    fn push(&self, output: &mut Output, (value, name): (Typed, String), scope: &Scope) {
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
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                return Err(self.error(SqlState::UNDEFINED_TABLE, message, at));
            }
            _ => {}
        }
        if table.is_none() {
            for merged in &scope.merged {
                output.exprs.push(merged.expr.clone());
                output.columns.push(ResultColumn { name: merged.name.clone(), ty: merged.ty, origin: (0, 0) });
            }
        }
        let places: Vec<(usize, &ScopeTable, &ScopeColumn)> = match table {
            None => scope.separate_columns().collect(),
            Some(table) => scope.columns().filter(|(_, owner, _)| owner.name == table).collect(),
        };
        if let Some(stars) = &mut self.stars {
            let merged = scope.merged.iter().filter(|_| table.is_none()).map(|merged| quote_identifier(&merged.name));
            let separate = places.iter().map(|(_, owner, column)| match owner.name.as_str() {
                "" => quote_identifier(&column.name),
                owner => format!("{}.{}", quote_identifier(owner), quote_identifier(&column.name)),
            });
            stars.push((at, merged.chain(separate).collect::<Vec<_>>().join(", ")));
        }
        for (place, owner, column) in places {
            self.columns_used.borrow_mut().insert((owner.oid, column.number));
            self.aggregates.references.push((place, format!("{}.{}", owner.name, column.name), at));
            output.exprs.push(Expr::Column(place));
            output.columns.push(ResultColumn {
                name: column.name.clone(),
                ty: column.ty,
                origin: (owner.oid, column.number),
            });
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
        Ast::CompoundIdentifier(parts) => parts.last().map(|ident| (fold_ident(ident), true)),
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
        Ast::Exists { .. } => strong("exists"),
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
