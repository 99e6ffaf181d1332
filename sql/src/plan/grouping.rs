//! GROUP BY: the keys of the groups, and expressions over them.
//!
//! Expressions of the select list, HAVING and ORDER BY are bound over the source's row, with placeholders for
//! aggregates. Then they are rewritten over the aggregation's row: what equals a key becomes its column. A column that
//! is left is not grouped, unless the primary key of its table is: then it is a key too.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, GroupByExpr, Spanned};

use super::aggregation::AggregateCall;
use super::binder::{Binder, Scope};
use super::found::WindowState;
use super::names::fold_ident;
use super::projection::Output;
use super::set_call::SetCall;
use super::view_text::Edit;
use crate::error::{SqlError, SqlState};
use crate::expr::{Expr, are_identical};
use crate::parse::{NO_LOCATION, start_of};
use crate::table::Table;

/// The keys of an item of GROUP BY: parentheses there do nothing but enclose.
fn without_parentheses<'e>(ast: &'e Ast, out: &mut Vec<&'e Ast>) {
    match ast {
        Ast::Nested(inner) => without_parentheses(inner, out),
        Ast::Tuple(items) => items.iter().for_each(|item| without_parentheses(item, out)),
        ast => out.push(ast),
    }
}

/// The place of the key that an expression is.
fn place_of(keys: &[Expr], expr: &Expr) -> Option<usize> {
    let constants = |expr: &Expr| {
        let mut constants = Vec::new();
        expr.collect_constants(&mut constants);
        constants
    };
    keys.iter().position(|key| key == expr && are_identical(&constants(key), &constants(expr)))
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
            if place_of(&keys, &key).is_none() {
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
            Ast::Identifier(ident) if scope.has_column(&fold_ident(ident)) => None,
            ast => {
                let found = self.order_target(ast, output, output.columns.len(), "GROUP BY")?;
                if let (Some(column), Ast::Identifier(ident)) = (found, ast) {
                    self.note_edit(at, || Edit::Number { name: fold_ident(ident), number: column + 1 });
                }
                found
            }
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

    /// 42803 for a column that is not grouped. `reads`: which references the expression has that reads it.
    fn ungrouped(&self, missing: &Missing, reads: Range<usize>, scope: &Scope) -> SqlError {
        let place = missing.place;
        let of_expr = self.aggregates.references.iter().take(reads.end).skip(reads.start);
        let mentions = of_expr.filter(|((at, _), _)| *at == place);
        // Those before it are within what is grouped.
        let mention = mentions.take(missing.before + 1).last();
        let ((_, at), is_inner) = mention.copied().unwrap_or(((place, NO_LOCATION), false));
        let name = scope.column_label(place);
        if is_inner {
            let message = format!("subquery uses ungrouped column \"{name}\" from outer query");
            return self.error(SqlState::GROUPING_ERROR, message, at);
        }
        let message =
            format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
        let error = self.error(SqlState::GROUPING_ERROR, message, at);
        match missing.is_direct {
            true => error.detail("Direct arguments of an ordered-set aggregate must use only grouped columns."),
            false => error,
        }
    }

    /// Rewrites expressions over the aggregation's row, and the arguments of the functions in them that return sets.
    /// What equals a key becomes its column. 42803 for a column that is neither grouped nor follows from the keys.
    pub(super) fn over_groups(
        &self,
        keys: &mut Vec<Expr>,
        (above, calls): (&mut OverGroups<'_>, &mut [AggregateCall]),
        (tables, scope): (&[(usize, Arc<Table>)], &Scope),
    ) -> Result<(), SqlError> {
        let grouped = Grouped { keys, calls, above, tables };
        let used = grouped.check().map_err(|(missing, reads)| self.ungrouped(&missing, reads, scope))?;
        let used = above.sets.iter_mut().zip(used).filter(|(_, is_used)| *is_used);
        let having = above.having.iter_mut().map(|(having, _)| &mut **having);
        let mut exprs: Vec<&mut Expr> =
            above.output.exprs.iter_mut().chain(having).chain(above.windows.exprs_mut()).collect();
        exprs.extend(used.flat_map(|(call, _)| call.args_mut()));
        exprs.extend(calls.iter_mut().flat_map(|call| &mut call.direct).map(|(expr, _)| expr));
        for expr in &mut exprs {
            expr.replace_with(&mut |part| match (place_of(keys, part), part) {
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

/// Whether a query has GROUP BY. `GROUP BY ()` has no keys: the only group is there without rows, too.
pub(super) fn has_groups(group_by: &GroupByExpr) -> bool {
    !matches!(group_by, GroupByExpr::Expressions(asts, _) if asts.is_empty())
}

/// What is computed over the groups of a query.
pub(super) struct OverGroups<'e> {
    pub(super) output: &'e mut Output,
    /// HAVING, and how many references had been bound before it.
    pub(super) having: Option<(&'e mut Expr, usize)>,
    pub(super) windows: &'e mut WindowState,
    pub(super) sets: &'e mut [SetCall],
}

/// What the groups of a query know.
struct Grouped<'e> {
    keys: &'e [Expr],
    calls: &'e [AggregateCall],
    above: &'e OverGroups<'e>,
    /// The tables, with the places of their first columns.
    tables: &'e [(usize, Arc<Table>)],
}

/// A column that is not grouped.
struct Missing {
    place: usize,
    /// How often what is grouped mentions the column before.
    before: usize,
    /// Whether it is in a direct argument of an aggregate.
    is_direct: bool,
}

/// What was seen of an expression.
struct Seen {
    /// The functions that return sets that run over groups.
    used: Vec<bool>,
    /// The columns of what is grouped.
    columns: Vec<usize>,
}

impl Grouped<'_> {
    /// Checks all expressions. Returns which functions that return sets run over groups; fails with the first column
    /// that is not known, and the references that its expression has.
    fn check(&self) -> Result<Vec<bool>, (Missing, Range<usize>)> {
        let OverGroups { output, having, windows, sets } = self.above;
        let mut seen = Seen { used: vec![false; sets.len()], columns: Vec::new() };
        let all = 0..usize::MAX;
        let outputs = output.exprs.iter().enumerate();
        let outputs = outputs.map(|(at, expr)| (expr, output.reads.get(at).cloned().unwrap_or(all.clone())));
        let having = having.iter().map(|(expr, before)| (&**expr, *before..usize::MAX));
        let direct = self.calls.iter().flat_map(|call| &call.direct).map(|(expr, _)| expr);
        let others = windows.keys().chain(direct).map(|expr| (expr, all.clone()));
        for (expr, reads) in outputs.chain(having).chain(others) {
            seen.columns.clear();
            if let Some(missing) = self.missing(expr, &mut seen) {
                return Err((missing, reads));
            }
        }
        Ok(seen.used)
    }

    /// The first column of an expression that is not known.
    fn missing(&self, expr: &Expr, seen: &mut Seen) -> Option<Missing> {
        if place_of(self.keys, expr).is_some() {
            expr.collect_columns(&mut seen.columns);
            return None;
        }
        match expr {
            Expr::Column(place) if self.is_determined(*place) => {
                seen.columns.push(*place);
                None
            }
            Expr::Column(place) => {
                let before = seen.columns.iter().filter(|column| *column == place).count();
                Some(Missing { place: *place, before, is_direct: false })
            }
            Expr::SetValue(at) => {
                if let Some(used) = seen.used.get_mut(*at) {
                    *used = true;
                }
                self.above.sets.get(*at)?.args().iter().find_map(|arg| self.missing(arg, seen))
            }
            Expr::Aggregate(at) => {
                let missing = self.calls.get(*at)?.direct.iter().find_map(|(expr, _)| self.missing(expr, seen));
                missing.map(|missing| Missing { is_direct: true, ..missing })
            }
            Expr::WindowValue(at) => {
                self.above.windows.calls.get(*at)?.exprs().find_map(|expr| self.missing(expr, seen))
            }
            expr => expr.children().into_iter().find_map(|child| self.missing(child, seen)),
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
