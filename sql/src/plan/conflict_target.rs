//! Targets of ON CONFLICT that have expressions or a predicate: the unique indexes that they mean.

use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, Ident, Select, SelectItem, SetExpr, Statement};

use super::binder::{Binder, Scope};
use super::bound_index::BoundIndex;
use super::conditions::conjuncts;
use super::index::bind_indexes;
use super::index_path::implied;
use super::node::Arbiters;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{Parsed, conflict_target};
use crate::table::Table;

impl Binder<'_> {
    /// The unique keys that a target means. An index with a predicate is one if the target's implies it.
    pub(super) fn arbiters_of_target(
        &mut self,
        (table, alias): (&Arc<Table>, Option<&str>),
        place: &Ident,
    ) -> Result<Arbiters, SqlError> {
        let read = conflict_target(&self.statement.text, place.span.start);
        let parsed = read.unwrap_or_else(|| Err(SqlError::internal("ON CONFLICT has no target")))?;
        let Some((keys, predicate)) = parts(&parsed) else {
            return Err(self.unsupported("this target of ON CONFLICT is", place.span.start));
        };
        let scope = Scope::of(table, alias);
        self.clause = "index expressions";
        let mut wanted: Vec<Expr> = Vec::with_capacity(keys.len());
        for key in keys {
            let value = self.expr(key, &scope)?;
            let value = self.resolve_unknown(value)?;
            wanted.push(value.expr);
        }
        let mut conditions = Vec::new();
        if let Some(ast) = predicate {
            self.clause = "index predicates";
            conjuncts(self.condition(ast, &scope, "WHERE")?, &mut conditions);
        }
        let is_same =
            |key: &[Expr]| key.iter().all(|part| wanted.contains(part)) && wanted.iter().all(|part| key.contains(part));
        let is_meant = |bound: &BoundIndex| {
            let mut used = vec![false; conditions.len()];
            let is_implied = |predicate| implied(predicate, &conditions, &mut used).is_some();
            is_same(&bound.columns) && bound.predicate.as_ref().is_none_or(is_implied)
        };
        let primary_key: Vec<Expr> = table.primary_key.iter().map(|at| Expr::Column(*at)).collect();
        let bound = bind_indexes(table, self.catalog)?;
        let arbiters = Arbiters {
            primary_key: !table.has_hidden_key() && is_same(&primary_key),
            indexes: table.indexes.iter().zip(&bound).map(|(index, bound)| index.unique && is_meant(bound)).collect(),
        };
        if arbiters.is_empty() {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        Ok(arbiters)
    }
}

/// The keys and the predicate of a target.
fn parts(parsed: &Parsed) -> Option<(&[Ast], Option<&Ast>)> {
    let Statement::Query(query) = &parsed.tree else { return None };
    let SetExpr::Select(select) = &*query.body else { return None };
    let Select { projection, selection, from, .. } = &**select;
    let keys = match projection.as_slice() {
        [SelectItem::UnnamedExpr(Ast::Nested(key))] => std::slice::from_ref(&**key),
        [SelectItem::UnnamedExpr(Ast::Tuple(keys))] => keys.as_slice(),
        _ => return None,
    };
    from.is_empty().then_some((keys, selection.as_ref()))
}
