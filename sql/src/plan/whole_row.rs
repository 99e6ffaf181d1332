//! Whole rows of tables: as values (`t`, `t.*`), and as lists of columns (`SELECT t.*`, `ROW(t.*)`, `(row).*`).
//!
//! The row of a function in FROM that returns a scalar is that scalar. Where an outer join has no row of a table, its
//! row is NULL, not a row of NULLs.

use sqlparser::ast::{AccessExpr, Expr as Ast, Ident};
use sqlparser::tokenizer::Location;

use super::bind_expr::fields_of;
use super::binder::{Binder, Qualifier, Scope, ScopeTable, Typed};
use super::names::{fold_ident, idents};
use super::view_text::Edit;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::fold::fold;
use crate::parse::{is_star, start_of};
use crate::table::quote_identifier;
use pgtypes::{Datum, SqlType};

/// What a star is behind.
pub(super) enum Star<'a> {
    /// The name of a table.
    Table(Vec<Ident>),
    /// A row: an expression, and the accesses between it and the star.
    Row(&'a Ast, &'a [AccessExpr]),
}

/// The star that an expression is.
pub(super) fn star_of(ast: &Ast) -> Option<Star<'_>> {
    match ast {
        Ast::Nested(inner) => star_of(inner),
        Ast::CompoundIdentifier(parts) => {
            let (last, table) = parts.split_last()?;
            is_star(last).then(|| Star::Table(table.to_vec()))
        }
        Ast::QualifiedWildcard(name, _) => Some(Star::Table(idents(name))),
        Ast::CompoundFieldAccess { root, access_chain } => match access_chain.split_last() {
            Some((AccessExpr::Dot(Ast::Identifier(name)), rest)) if is_star(name) => Some(Star::Row(root, rest)),
            _ => None,
        },
        _ => None,
    }
}

/// What the star of a table becomes in the text of a view.
pub(super) fn edit_of(table: &str, columns: &[(String, Typed)]) -> Edit {
    let shown = |(name, _): &(String, Typed)| format!("{}.{}", quote_identifier(table), quote_identifier(name));
    Edit::Star(columns.iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// A table in reach.
struct Reached {
    table: ScopeTable,
    /// The query around that has it; `None` for the one that is being bound.
    depth: Option<usize>,
}

impl Binder<'_> {
    /// The row of the table that has this name: `SELECT t FROM t`.
    pub(super) fn whole_row(&mut self, name: &str, scope: &Scope, at: Location) -> Option<Typed> {
        let reached = self.reached(Qualifier { schema: None, table: name }, scope)?;
        Some(self.row_of(&reached, at))
    }

    /// `t.*` as one value.
    pub(super) fn starred_row(&mut self, parts: &[Ident], scope: &Scope) -> Result<Typed, SqlError> {
        let (reached, at) = self.starred(parts, scope)?;
        Ok(self.row_of(&reached, at))
    }

    /// The columns that `t.*` stands for, with their names.
    pub(super) fn starred_columns(&mut self, parts: &[Ident], scope: &Scope) -> Result<Vec<(String, Typed)>, SqlError> {
        let (reached, at) = self.starred(parts, scope)?;
        let columns = reached.table.columns.iter().map(|column| column.name.clone());
        Ok(columns.zip(self.reached_columns(&reached, at)).collect())
    }

    /// The fields of a row, with their names: `(row).*`.
    pub(super) fn fields(
        &mut self,
        (root, accesses): (&Ast, &[AccessExpr]),
        scope: &Scope,
    ) -> Result<Vec<(String, Typed)>, SqlError> {
        let record = match accesses {
            [] => self.expr(root, scope)?,
            accesses => self.subscripted(root, accesses, scope)?,
        };
        let Some(fields) = fields_of(&record) else {
            let message = format!("type {} is not composite", self.type_text(record.ty));
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        };
        if fields.is_empty() {
            return Err(self.unsupported("the fields of a row that comes from elsewhere are", record.at));
        }
        let field = |(at, (name, ty)): (usize, (String, SqlType))| {
            let expr = fold(Expr::Field { record: Box::new(record.expr.clone()), at });
            (name, Typed::new(expr, ty, record.at))
        };
        Ok(fields.into_iter().enumerate().map(field).collect())
    }

    /// Binds the items of a row. A star stands for several.
    pub(super) fn row_items<'e>(
        &mut self,
        asts: impl IntoIterator<Item = &'e Ast>,
        scope: &Scope,
    ) -> Result<Vec<Typed>, SqlError> {
        let mut items = Vec::new();
        for ast in asts {
            let several = match star_of(ast) {
                Some(Star::Table(parts)) => {
                    let columns = self.starred_columns(&parts, scope)?;
                    let table = parts.last().map(fold_ident).unwrap_or_default();
                    self.note_edit(start_of(ast), || edit_of(&table, &columns));
                    columns
                }
                Some(Star::Row(root, accesses)) => self.fields((root, accesses), scope)?,
                None => {
                    items.push(self.expr(ast, scope)?);
                    continue;
                }
            };
            items.extend(several.into_iter().map(|(_, value)| value));
        }
        Ok(items)
    }

    /// 0A000 for `(row).*` where one value is wanted.
    pub(super) fn refuse_row_star(&self, accesses: &[AccessExpr], root: &Ast) -> Result<(), SqlError> {
        match accesses.last() {
            Some(AccessExpr::Dot(Ast::Identifier(name))) if is_star(name) => {
                let message = "row expansion via \"*\" is not supported here";
                Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, start_of(root)))
            }
            _ => Ok(()),
        }
    }

    /// The table before a star, and where its name is.
    fn starred(&self, parts: &[Ident], scope: &Scope) -> Result<(Reached, Location), SqlError> {
        let at = parts.first().map_or(crate::parse::NO_LOCATION, |ident| ident.span.start);
        let mut names = parts.iter().map(|part| self.alias(part)).collect::<Result<Vec<String>, SqlError>>()?;
        if names.len() == 3 && self.catalog.is_own_database(&names[0]) {
            names.remove(0);
        }
        let qualifier = match names.as_slice() {
            [table] => Qualifier { schema: None, table },
            [schema, table] => Qualifier { schema: Some(schema), table },
            _ => {
                names.push("*".to_owned());
                return Err(SqlError::far_name(&names, 4).at(self.position(at)));
            }
        };
        if let Some(reached) = self.reached(qualifier, scope) {
            return Ok((reached, at));
        }
        self.check_table_in_scope(qualifier, scope, at)?;
        let message = format!("missing FROM-clause entry for table \"{}\"", qualifier.table);
        Err(self.error(SqlState::UNDEFINED_TABLE, message, at))
    }

    /// The table of a name in the query or in one around it, the nearest first.
    fn reached(&self, qualifier: Qualifier<'_>, scope: &Scope) -> Option<Reached> {
        let find = |scope: &Scope| scope.tables.iter().find(|table| table.is_named(qualifier, self.catalog)).cloned();
        if let Some(table) = find(scope) {
            return Some(Reached { table, depth: None });
        }
        let mut around = self.frames.iter().enumerate().rev();
        around.find_map(|(depth, frame)| Some(Reached { table: find(&frame.scope)?, depth: Some(depth) }))
    }

    fn reached_columns(&mut self, reached: &Reached, at: Location) -> Vec<Typed> {
        let table = &reached.table;
        let places = table.columns.iter().enumerate().map(|(at, column)| (table.offset + at, column.ty));
        let values = places.map(|(place, ty)| {
            let value = Typed::new(Expr::Column(place), ty, at);
            match reached.depth {
                Some(depth) => self.outer_value(depth, value),
                None => {
                    self.note_reference(&value);
                    value
                }
            }
        });
        values.collect()
    }

    fn row_of(&mut self, reached: &Reached, at: Location) -> Typed {
        let table = &reached.table;
        let mut values = self.reached_columns(reached, at);
        if table.is_scalar
            && values.len() == 1
            && let Some(value) = values.pop()
        {
            return value;
        }
        let types = values.iter().map(|value| value.ty).collect();
        let items: Vec<Expr> = values.into_iter().map(|value| value.expr).collect();
        let names = table.columns.iter().map(|column| column.name.as_str().into()).collect();
        let presence = presence(table, &items);
        let row = Expr::Row { types, items, names: Some(names) };
        let expr = match presence {
            Some(is_there) => {
                Expr::Case { branches: vec![(is_there, row)], otherwise: Box::new(Expr::Const(Datum::Null)) }
            }
            None => row,
        };
        Typed::new(expr, SqlType::RECORD, at)
    }
}

/// Whether an outer join has a row of a table, if it may have none. A column that is never NULL tells; without one, a
/// row of NULLs counts as none.
fn presence(table: &ScopeTable, items: &[Expr]) -> Option<Expr> {
    let is_there = |item: &Expr| Expr::IsNull { expr: Box::new(item.clone()), negated: true };
    if !table.may_be_missing || items.is_empty() {
        return None;
    }
    let columns = table.relation.iter().flat_map(|relation| &relation.columns);
    match columns.zip(items).find(|(column, _)| column.not_null) {
        Some((_, item)) => Some(is_there(item)),
        None => Some(Expr::Or(items.iter().map(is_there).collect())),
    }
}
