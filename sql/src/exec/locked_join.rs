//! Locks of the rows of a join.
//!
//! A row of the join counts when all its rows are locked, table by table. One that has changed since it was read is
//! joined again with the rows that it was joined with: with those of other tables as they were read, or as they are if
//! they are locked too (PostgreSQL's EvalPlanQual).

use std::collections::{HashMap, HashSet};

use kv::Key;
use kv::api::LockMode;

use super::budget::Budget;
use super::context::ExecContext;
use super::cursor;
use super::locking::{Found, Lock, confirm, lock_found};
use super::pipeline::output_again;
use super::rows::{Row, row_bytes};
use crate::error::SqlError;
use crate::expr::eval::{Env, qualifies};
use crate::plan::{JoinTree, LockedJoin, LockedTable, SelectPlan};
use pgtypes::Datum;

/// About the memory of a key that is remembered, beside its bytes.
const KEY_BYTES: usize = 64;

/// The rows that a query has locked.
#[derive(Default)]
pub(super) struct JoinLocks {
    found: HashMap<Key, (LockMode, Found<Row>)>,
    budget: Option<Budget>,
}

impl JoinLocks {
    /// Locks rows: outputs with the joined rows that they are of. Returns the outputs that count, as they are now.
    pub(super) async fn lock(
        &mut self,
        (plan, join): (&SelectPlan, &LockedJoin),
        rows: Vec<(Row, Row)>,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Vec<Row>, SqlError> {
        let mut rows = rows;
        for table in &join.tables {
            self.lock_table(table, &rows, ctx).await?;
            let found = &self.found;
            rows.retain(|(_, row)| {
                let key = key_of(table, row);
                key.is_some_and(|key| !matches!(found.get(&key), None | Some((_, Found::Nothing))))
            });
        }
        let mut counted = Vec::with_capacity(rows.len());
        for (output, mut row) in rows {
            let output = match self.renew(join, &mut row) {
                false => Some(output),
                true if ctx.rehearses() => ctx.rehearse(params, |env| again((plan, join), row.clone(), env)).await?,
                true => again((plan, join), row.clone(), &ctx.env(params))?,
            };
            let Some(output) = output else { continue };
            for table in &join.tables {
                if let Some(key) = key_of(table, &row) {
                    confirm(key, table.lock.mode, ctx)?;
                }
            }
            counted.push(output);
        }
        Ok(counted)
    }

    /// Locks the rows of a table that are not locked yet.
    async fn lock_table(
        &mut self,
        locked: &LockedTable,
        rows: &[(Row, Row)],
        ctx: &mut ExecContext<'_>,
    ) -> Result<(), SqlError> {
        let lock = Lock::of(locked.lock, ctx);
        let mut seen = HashSet::new();
        let keys = rows.iter().filter_map(|(_, row)| key_of(locked, row));
        let is_new = |key: &Key| self.found.get(key).is_none_or(|(mode, _)| *mode < lock.mode);
        let keys: Vec<Key> = keys.filter(|key| is_new(key) && seen.insert(key.clone())).collect();
        let found = lock_found(&locked.table, keys.clone(), lock, ctx).await?;
        for (key, found) in keys.into_iter().zip(found) {
            let found = match found {
                Found::Unchanged => Found::Unchanged,
                Found::Newest(value) => {
                    let all = vec![true; locked.table.columns.len()];
                    Found::Newest(cursor::decode(&locked.table, &key, &value, &all)?)
                }
                Found::Nothing => Found::Nothing,
            };
            self.note(key, lock.mode, found, ctx)?;
        }
        Ok(())
    }

    fn note(&mut self, key: Key, mode: LockMode, found: Found<Row>, ctx: &ExecContext<'_>) -> Result<(), SqlError> {
        let bytes = if let Found::Newest(row) = &found { row_bytes(row) } else { 0 };
        let budget = self.budget.get_or_insert_with(|| Budget::of_work(ctx.session));
        budget.charge(KEY_BYTES + key.as_bytes().len() + bytes)?;
        self.found.insert(key, (mode, found));
        Ok(())
    }

    /// Puts the newest rows of the tables into a joined row. Returns whether one is another than was read.
    fn renew(&self, join: &LockedJoin, row: &mut Row) -> bool {
        let mut is_new = false;
        for table in &join.tables {
            let Some((_, Found::Newest(newest))) = key_of(table, row).and_then(|key| self.found.get(&key)) else {
                continue;
            };
            let columns = table.key.saturating_sub(newest.len())..table.key;
            if let Some(old) = row.get_mut(columns).filter(|old| old.len() == newest.len()) {
                old.clone_from_slice(newest);
                is_new = true;
            }
        }
        is_new
    }
}

/// The key of a table's row in a joined row.
fn key_of(table: &LockedTable, row: &Row) -> Option<Key> {
    match row.get(table.key) {
        Some(Datum::Bytes(bytes)) => Some(Key::new(bytes.to_vec())),
        _ => None,
    }
}

/// The output of a joined row whose parts have changed; `None` if it is no row of the query any more.
fn again((plan, join): (&SelectPlan, &LockedJoin), mut row: Row, env: &Env<'_>) -> Result<Option<Row>, SqlError> {
    let passes = join_again(&join.joined, &mut row, env)?
        && join.filter.as_ref().map_or(Ok(true), |filter| qualifies(filter, &row, env))?;
    if passes { output_again(plan, &row, env) } else { Ok(None) }
}

/// Joins the parts of a row again. Returns whether it is one. A part that an outer join has no partner in becomes NULL.
fn join_again(tree: &JoinTree, row: &mut [Datum], env: &Env<'_>) -> Result<bool, SqlError> {
    let JoinTree::Sides { kind, left, right, on } = tree else { return Ok(true) };
    let (left_row, right_row) = row.split_at_mut(left.0.min(row.len()));
    let has_left = join_again(&left.1, left_row, env)?;
    let has_right = join_again(&right.1, right_row.get_mut(..right.0).unwrap_or_default(), env)?;
    let mut holds = has_left && has_right;
    for condition in on {
        holds = holds && qualifies(condition, row, env)?;
    }
    if holds {
        return Ok(true);
    }
    let (left_row, right_row) = row.split_at_mut(left.0.min(row.len()));
    if has_left && kind.keeps_left() {
        right_row.iter_mut().take(right.0).for_each(|value| *value = Datum::Null);
        return Ok(true);
    }
    if has_right && kind.keeps_right() {
        left_row.fill(Datum::Null);
        return Ok(true);
    }
    Ok(false)
}
