//! GROUP BY: the keys of the groups, and expressions over them.
//!
//! Expressions of the select list, HAVING and ORDER BY are bound over the source's row, with placeholders for
//! aggregates. Then they are rewritten over the aggregation's row: what equals a key becomes its column. A column that
//! is left is not grouped, unless the primary key of its table is: then it is a key too.

use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, GroupByExpr, Spanned};

use super::bind_expr::literal;
use super::binder::{Binder, Scope};
use super::names::fold_ident;
use super::projection::Output;
use super::set_call::SetCall;
use super::view_text::Edit;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{NO_LOCATION, start_of};
use crate::table::Table;

/// The keys of an item of GROUP BY: parentheses there do nothing but enclose.
fn without_parentheses<'e>(ast: &'e Ast, out: &mut Vec<&'e Ast>) {
    match ast {
        Ast::Nested(inner) => without_parentheses(inner, out),
        Ast::Tuple(items) if !items.is_empty() => items.iter().for_each(|item| without_parentheses(item, out)),
        ast => out.push(ast),
    }
}

impl Binder<'_> {
    /// Binds GROUP BY: names of columns, numbers and names of outputs, expressions.
    pub(super) fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        scope: &Scope,
        output: &mut Output,
    ) -> Result<Vec<Expr>, SqlError> {
        let GroupByExpr::Expressions(asts, modifiers) = group_by else {
            return Err(self.unsupported("GROUP BY ALL is", group_by.span().start));
        };
        if !modifiers.is_empty() {
            return Err(self.unsupported("this form of GROUP BY is", group_by.span().start));
        }
        let allowed = std::mem::replace(&mut self.aggregates.allowed, false);
        self.clause = "GROUP BY";
        let mut keys: Vec<Expr> = Vec::with_capacity(asts.len());
        let mut single = Vec::with_capacity(asts.len());
        asts.iter().for_each(|ast| without_parentheses(ast, &mut single));
        for ast in single {
            let key = self.group_key(ast, scope, output)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        self.aggregates.allowed = allowed;
        Ok(keys)
    }

    fn group_key(&mut self, ast: &Ast, scope: &Scope, output: &mut Output) -> Result<Expr, SqlError> {
        let at = start_of(ast);
        let chosen = match ast {
            Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_) => {
                return Err(self.unsupported("GROUPING SETS, CUBE and ROLLUP are", at));
            }
            // A name is one of the input first.
            Ast::Identifier(ident) if !scope.has_column(&fold_ident(ident)) => {
                let name = fold_ident(ident);
                let found = output.columns.iter().position(|column| column.name == name);
                if let Some(column) = found {
                    self.note_edit(at, || Edit::Number { name, number: column + 1 });
                }
                found
            }
            ast => match literal(ast) {
                Some((value, negative)) => {
                    Some(self.order_number(value, negative, output.columns.len(), "GROUP BY")?)
                }
                None => None,
            },
        };
        let (expr, ty) = match chosen {
            Some(column) => {
                self.settle(output, column)?;
                (output.exprs[column].clone(), output.columns[column].ty)
            }
            None => {
                let value = self.expr(ast, scope)?;
                let value = self.resolve_unknown(value)?;
                (value.expr, value.ty)
            }
        };
        let sets = &self.aggregates.sets;
        if sets.any(&expr, &|part| matches!(part, Expr::WindowValue(_))) {
            let message = "window functions are not allowed in GROUP BY";
            return Err(self.error(SqlState::WINDOWING_ERROR, message, self.aggregates.windows.first.unwrap_or(at)));
        }
        self.check_groupable(ty, at)?;
        if sets.any(&expr, &|part| matches!(part, Expr::Aggregate(_))) {
            let message = "aggregate functions are not allowed in GROUP BY";
            return Err(self.error(SqlState::GROUPING_ERROR, message, self.aggregates.first.unwrap_or(at)));
        }
        Ok(expr)
    }

    /// 42803 for a column that is not grouped.
    fn ungrouped(&self, place: usize, scope: &Scope) -> SqlError {
        let own = self.aggregates.references.iter().find(|(at, _)| *at == place);
        let inner = self.aggregates.inner_references.iter().find(|(at, _)| *at == place);
        let name = scope.column_label(place);
        let (message, at) = match (own, inner) {
            (own, Some((_, at))) if own.is_none_or(|(_, own_at)| at < own_at) => {
                (format!("subquery uses ungrouped column \"{name}\" from outer query"), *at)
            }
            (own, _) => {
                let at = own.map_or(NO_LOCATION, |(_, at)| *at);
                let message =
                    format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
                (message, at)
            }
        };
        self.error(SqlState::GROUPING_ERROR, message, at)
    }

    /// Rewrites expressions over the aggregation's row, and the arguments of the functions in them that return sets.
    /// What equals a key becomes its column. 42803 for a column that is neither grouped nor follows from the keys.
    pub(super) fn over_groups<'e>(
        &self,
        keys: &mut Vec<Expr>,
        mut exprs: Vec<&'e mut Expr>,
        sets: &'e mut [SetCall],
        (tables, scope): (&[(usize, Arc<Table>)], &Scope),
    ) -> Result<(), SqlError> {
        let mut used = vec![false; sets.len()];
        for expr in &exprs {
            if let Some(place) = (Grouped { keys, sets, tables }).missing(expr, &mut used) {
                return Err(self.ungrouped(place, scope));
            }
        }
        let used = sets.iter_mut().zip(used).filter(|(_, is_used)| *is_used);
        exprs.extend(used.flat_map(|(call, _)| call.args_mut()));
        for expr in &mut exprs {
            expr.replace_with(&mut |part| match (keys.iter().position(|key| key == part), part) {
                (Some(at), _) => Some(Expr::Column(at)),
                // It follows from the keys.
                (None, Expr::Column(_)) => {
                    keys.push(part.clone());
                    Some(Expr::Column(keys.len() - 1))
                }
                _ => None,
            });
        }
        let first = keys.len();
        for expr in &mut exprs {
            expr.replace_with(&mut |part| match part {
                Expr::Aggregate(at) => Some(Expr::Column(first + at)),
                _ => None,
            });
        }
        Ok(())
    }
}

/// What the groups of a query know.
struct Grouped<'e> {
    keys: &'e [Expr],
    sets: &'e [SetCall],
    /// The tables, with the places of their first columns.
    tables: &'e [(usize, Arc<Table>)],
}

impl Grouped<'_> {
    /// The first column of an expression that is not known. Marks the functions that return sets that run over groups.
    fn missing(&self, expr: &Expr, used: &mut [bool]) -> Option<usize> {
        if self.keys.contains(expr) {
            return None;
        }
        match expr {
            Expr::Column(place) => (!self.is_determined(*place)).then_some(*place),
            Expr::SetValue(at) => {
                if let Some(used) = used.get_mut(*at) {
                    *used = true;
                }
                self.sets.get(*at)?.args().iter().find_map(|arg| self.missing(arg, used))
            }
            expr => expr.children().into_iter().find_map(|child| self.missing(child, used)),
        }
    }

    /// Whether the keys have the primary key of the table of a column.
    fn is_determined(&self, place: usize) -> bool {
        self.tables.iter().any(|(offset, table)| {
            let is_its = (*offset..offset + table.columns.len()).contains(&place);
            let has_key = |at: &usize| self.keys.contains(&Expr::Column(offset + at));
            is_its && !table.primary_key.is_empty() && table.primary_key.iter().all(has_key)
        })
    }
}
