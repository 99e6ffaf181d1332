//! Binding of FOR UPDATE and the like.
//!
//! A query of one table locks the rows that it reads by itself. A join carries the keys of the rows to lock behind the
//! columns of their tables ([`LockedJoin`]). What it joins is kept as well: a row that has changed meanwhile is joined
//! again with the same partners.

use std::sync::Arc;

use kv::api::LockMode;
use sqlparser::ast::{LockClause, LockType, NonBlock, Query, TableFactor};

use super::binder::{Binder, Scope};
use super::joins::rel_width;
use super::locked_join::{Clause, JoinTree, LockedJoin, LockedTable, Locking, strongest};
use super::names::fold_ident;
use super::rel::{JoinKind, Rel, RowLock, RowWait, SelectPlan, Source};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{KEY_LOCK, query_start};
use crate::system;
use crate::table::Table;

/// How a query locks rows, if it does.
pub(super) fn locking(query: &Query) -> Option<Locking> {
    let clauses = clauses(query);
    let at = query_start(query);
    (!clauses.is_empty()).then_some(Locking { clauses, at, joined: JoinTree::Item })
}

fn clauses(query: &Query) -> Vec<Clause> {
    let mut is_of_key = false;
    let mut found = Vec::new();
    for clause in &query.locks {
        if is_key_lock(clause) {
            is_of_key = true;
            continue;
        }
        let of = clause.of.as_ref().and_then(|name| name.0.last()?.as_ident());
        let wait = match clause.nonblock {
            None => RowWait::Queue,
            Some(NonBlock::SkipLocked) => RowWait::Skip,
            Some(NonBlock::Nowait) => RowWait::NoWait,
        };
        let mode = lock_mode(clause.lock_type, std::mem::take(&mut is_of_key));
        let of = of.map(|of| (fold_ident(of), of.span.start));
        found.push(Clause { of, lock: RowLock { mode, wait } });
    }
    found
}

impl Binder<'_> {
    /// How to lock the rows.
    pub(super) fn locks(
        &self,
        query: &Query,
        (collapsed, has_windows, has_sets): (bool, bool, bool),
        scope: &Scope,
    ) -> Result<Option<RowLock>, SqlError> {
        let clauses = clauses(query);
        for Clause { of, lock } in &clauses {
            let name = lock_name(lock.mode);
            if collapsed {
                let message = format!("{name} is not allowed with DISTINCT or aggregate functions");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            if has_windows {
                let message = format!("{name} is not allowed with window functions");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            if has_sets {
                let message = format!("{name} is not allowed with set-returning functions in the target list");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            let of = of.as_ref().filter(|(of, _)| !scope.tables.iter().any(|table| table.name == *of));
            if let Some((of, at)) = of {
                let message = format!("relation \"{of}\" in {name} clause not found in FROM clause");
                return Err(self.error(SqlState::UNDEFINED_TABLE, message, *at));
            }
        }
        Ok(strongest(clauses.iter()))
    }

    /// Refuses to lock what an item of FROM is made of, unless that has no rows to lock.
    pub(super) fn check_lockable(&self, factor: &TableFactor, rel: &Rel, scope: &Scope) -> Result<(), SqlError> {
        let Some(locking) = &self.locking else { return Ok(()) };
        let Some(item) = scope.tables.first().filter(|item| !item.has_key) else { return Ok(()) };
        let is_meant = |clause: &&Clause| clause.of.as_ref().is_none_or(|(of, _)| *of == item.name);
        let Some(clause) = locking.clauses.iter().find(is_meant) else { return Ok(()) };
        let refused = match (factor, rel) {
            (TableFactor::NestedJoin { alias: None, .. }, _) => return Ok(()),
            (TableFactor::NestedJoin { .. }, _) if clause.of.is_some() => Some("a join"),
            (_, Rel::With(_)) => Some("a WITH query"),
            (_, Rel::Function(_) | Rel::SetValues(_)) => Some("a function"),
            (TableFactor::Derived { .. }, Rel::Query(plan)) if reads_nothing(plan) => None,
            _ => {
                let at = clause.of.as_ref().map_or(locking.at, |(_, at)| *at);
                return Err(self.unsupported("row locks of a view, a sub-query or a system catalog here are", at));
            }
        };
        match (refused, &clause.of) {
            (Some(what), Some((_, at))) => {
                let message = format!("{} cannot be applied to {what}", lock_name(clause.lock.mode));
                Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, *at))
            }
            _ => Ok(()),
        }
    }

    /// The locks of a join, if it has tables to lock.
    pub(super) fn locked_join(
        &self,
        (locking, scope): (Locking, &Scope),
        filter: Option<&Expr>,
    ) -> Result<Option<LockedJoin>, SqlError> {
        let mut tables = Vec::new();
        for item in scope.tables.iter().filter(|item| item.has_key) {
            let (Some(table), Some(lock)) = (&item.relation, locking.of_table(&item.name)) else { continue };
            let key = item.offset + item.columns.len();
            if locking.joined.is_nullable(key) {
                let name = lock_name(lock.mode);
                let message = format!("{name} cannot be applied to the nullable side of an outer join");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            tables.push(LockedTable { table: Arc::clone(table), key, lock });
        }
        let join = LockedJoin { tables, joined: locking.joined, filter: filter.cloned() };
        Ok((!join.tables.is_empty()).then_some(join))
    }

    /// Whether the rows of a table in FROM carry their keys, to be locked.
    pub(super) fn carries_key(&self, table: &Table, name: &str) -> bool {
        let is_locked = || self.locking.as_ref().is_some_and(|locking| locking.of_table(name).is_some());
        system::of_table(table).is_none() && is_locked()
    }

    /// Notes how two sides of a join are joined, if their rows are to be locked.
    pub(super) fn sides(
        &self,
        kind: JoinKind,
        left: (&Rel, JoinTree),
        right: (&Rel, JoinTree),
        on: &[Expr],
    ) -> JoinTree {
        if self.locking.is_none() {
            return JoinTree::Item;
        }
        let [left, right] = [left, right].map(|(rel, joined)| Box::new((rel_width(rel), joined)));
        JoinTree::Sides { kind, left, right, on: on.to_vec() }
    }
}

/// Whether a query reads no rows of others.
fn reads_nothing(plan: &SelectPlan) -> bool {
    match &plan.source {
        Source::Single | Source::Values(_) => true,
        Source::Rel(rel) => match &**rel {
            Rel::Query(plan) => reads_nothing(plan),
            Rel::Function(_) => true,
            _ => false,
        },
        Source::Table(_) | Source::System(_) => false,
    }
}

/// Whether a clause only says that the next one is FOR NO KEY UPDATE or FOR KEY SHARE.
pub(super) fn is_key_lock(clause: &LockClause) -> bool {
    clause.of.as_ref().and_then(|name| name.0.last()?.as_ident()).is_some_and(|of| of.value == KEY_LOCK)
}

pub(super) fn lock_mode(clause: LockType, is_of_key: bool) -> LockMode {
    match (clause, is_of_key) {
        (LockType::Update, false) => LockMode::Update,
        (LockType::Update, true) => LockMode::NoKeyUpdate,
        (LockType::Share, false) => LockMode::Share,
        (LockType::Share, true) => LockMode::KeyShare,
    }
}

/// The name of a clause that locks rows.
pub(super) const fn lock_name(mode: LockMode) -> &'static str {
    match mode {
        LockMode::KeyShare => "FOR KEY SHARE",
        LockMode::Share => "FOR SHARE",
        LockMode::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockMode::Update => "FOR UPDATE",
    }
}
