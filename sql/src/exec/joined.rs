//! The rows of UPDATE ... FROM and DELETE ... USING: those of the target, joined with others.
//!
//! The join reads the transaction as it was at the start of the statement. A row of the target that has several
//! partners counts with the first one. A statement that locks its rows looks at a row again that has changed meanwhile:
//! with the same partner, as it was read.

use std::collections::{HashMap, HashSet};

use kv::Key;
use kv::api::LockMode;

use super::budget::Budget;
use super::context::ExecContext;
use super::locking::{Lock, lock_read, passes};
use super::query::QueryRun;
use super::rows::Row;
use crate::coop::Turn;
use crate::error::SqlError;
use crate::plan::{Joined, TableAccess};
use pgtypes::Datum;

/// Rows of the join that are taken at a time.
const BATCH_ROWS: usize = 256;
/// About the memory of a key that is remembered, beside its bytes.
const KEY_BYTES: usize = 64;

/// The rows of the target with what they are joined with.
pub(super) struct JoinedRows<'p> {
    joined: &'p Joined,
    access: &'p TableAccess,
    mode: LockMode,
    run: QueryRun,
    /// The target's rows that were given.
    seen: HashSet<Key>,
    budget: Budget,
    row_units: usize,
    turn: Turn,
}

impl<'p> JoinedRows<'p> {
    /// `access`: the target.
    pub(super) async fn new(
        (joined, access): (&'p Joined, &'p TableAccess),
        mode: LockMode,
        row_units: usize,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<JoinedRows<'p>, SqlError> {
        let mut run = QueryRun::new(&joined.source, row_units, ctx, params).await?;
        run.freeze(|| ctx.start_view());
        let (seen, budget, turn) = (HashSet::new(), Budget::of_statement(), Turn::new());
        Ok(JoinedRows { joined, access, mode, run, seen, budget, row_units, turn })
    }

    /// The next rows, with the keys of the target's.
    pub(super) async fn next(
        &mut self,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        let read = self.run.next(&self.joined.source, ctx, params, BATCH_ROWS).await?;
        if read.is_empty() {
            return Ok(None);
        }
        let width = self.access.table.columns.len();
        let mut rows: Vec<(Key, Row)> = Vec::with_capacity(read.len());
        for row in read {
            let Some(Datum::Bytes(bytes)) = row.get(width) else {
                return Err(SqlError::internal("a row of the target has no key"));
            };
            let key = Key::new(bytes.to_vec());
            if !self.seen.contains(&key) && !ctx.has_changed(&key) {
                self.budget.charge(KEY_BYTES + key.as_bytes().len())?;
                self.seen.insert(key.clone());
                rows.push((key, row));
            }
            self.turn.spend(self.row_units).await;
        }
        if !ctx.locks_rows || rows.is_empty() {
            return Ok(Some(rows));
        }
        let others: HashMap<Key, Row> =
            rows.iter().map(|(key, row)| (key.clone(), row.get(width..).unwrap_or_default().to_vec())).collect();
        let condition = self.joined.condition.as_ref();
        let again = |key: &Key, newest: Row, ctx: &ExecContext<'_>| {
            let row: Row = newest.into_iter().chain(others.get(key).cloned().unwrap_or_default()).collect();
            Ok(passes(condition, &row, ctx, params)?.then_some(row))
        };
        lock_read(self.access, rows, (Lock::to_change(self.mode, ctx), params), ctx, again).await.map(Some)
    }

    /// Counts the change of a row.
    pub(super) async fn spend(&mut self, units: usize) {
        self.turn.spend(self.row_units + units).await;
    }
}
