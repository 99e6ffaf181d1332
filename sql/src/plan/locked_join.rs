//! What a join needs that locks its rows: their keys, and how a row that has changed is joined again.

use std::sync::Arc;

use sqlparser::tokenizer::Location;

use super::kinds::{JoinKind, RowLock};
use crate::expr::Expr;
use crate::table::Table;

/// The locks of the rows of a join.
#[derive(Debug, PartialEq)]
pub(crate) struct LockedJoin {
    /// In the order in which they are locked.
    pub(crate) tables: Vec<LockedTable>,
    pub(crate) joined: JoinTree,
    /// WHERE, over the joined row.
    pub(crate) filter: Option<Expr>,
}

impl LockedJoin {
    /// Marks the columns of the joined row that a second look reads.
    pub(super) fn mark_columns(&self, used: &mut [bool]) {
        for table in &self.tables {
            used.get_mut(table.key).into_iter().for_each(|used| *used = true);
        }
        self.filter.iter().for_each(|filter| filter.mark_columns(used));
        self.joined.mark_columns(used);
    }
}

/// A table of a join whose rows are locked.
#[derive(Debug, PartialEq)]
pub(crate) struct LockedTable {
    pub(crate) table: Arc<Table>,
    /// The place of the row's key in the joined row. The columns of the table are right before it.
    pub(crate) key: usize,
    pub(crate) lock: RowLock,
}

/// How items of FROM were joined.
#[derive(Debug, PartialEq)]
pub(crate) enum JoinTree {
    /// An item by itself.
    Item,
    /// The join of a left side, of so many columns, with a right side.
    Sides { kind: JoinKind, left: Box<(usize, JoinTree)>, right: Box<(usize, JoinTree)>, on: Vec<Expr> },
}

impl JoinTree {
    fn mark_columns(&self, used: &mut [bool]) {
        let JoinTree::Sides { left, right, on, .. } = self else { return };
        on.iter().for_each(|condition| condition.mark_columns(used));
        left.1.mark_columns(used);
        right.1.mark_columns(used.get_mut(left.0..).unwrap_or_default());
    }

    /// Whether an outer join may have no row for a column.
    pub(super) fn is_nullable(&self, at: usize) -> bool {
        let JoinTree::Sides { kind, left, right, .. } = self else { return false };
        match at < left.0 {
            true => kind.keeps_right() || left.1.is_nullable(at),
            false => kind.keeps_left() || right.1.is_nullable(at - left.0),
        }
    }

    /// Gives the values that the conditions take from further out.
    pub(super) fn replace_outer(&mut self, args: &[Expr]) {
        let JoinTree::Sides { left, right, on, .. } = self else { return };
        for condition in on {
            condition.replace_with(&mut |part| match part {
                Expr::Outer(at) => args.get(*at).cloned(),
                _ => None,
            });
        }
        left.1.replace_outer(args);
        right.1.replace_outer(args);
    }
}

/// A clause that locks rows.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    /// The name of the table; `None` for all.
    pub(super) of: Option<(String, Location)>,
    pub(super) lock: RowLock,
}

/// The clauses of the query whose FROM is being bound.
#[derive(Debug)]
pub(super) struct Locking {
    pub(super) clauses: Vec<Clause>,
    /// Where the query begins.
    pub(super) at: Location,
    /// How the items of FROM are joined, once they are.
    pub(super) joined: JoinTree,
}

impl Locking {
    /// The lock of a table. Of several clauses the strongest lock counts, and NOWAIT before SKIP LOCKED.
    pub(super) fn of_table(&self, name: &str) -> Option<RowLock> {
        let is_meant = |clause: &&Clause| clause.of.as_ref().is_none_or(|(of, _)| of == name);
        strongest(self.clauses.iter().filter(is_meant))
    }
}

/// The lock that several clauses ask for.
pub(super) fn strongest<'c>(clauses: impl Iterator<Item = &'c Clause>) -> Option<RowLock> {
    let locks = clauses.map(|clause| clause.lock);
    locks.reduce(|a, b| RowLock { mode: a.mode.max(b.mode), wait: a.wait.max(b.wait) })
}
