//! Foreign keys over rows that are stored already: a change of a table checks them.
//!
//! The tables are closed: the rows do not change meanwhile. They are read by pages.

use std::collections::HashSet;
use std::sync::Arc;

use kv::Key;
use pgtypes::IoEnv;
use txn::Transaction;

use super::context::ExecContext;
use super::cursor;
use super::foreign_key::{ForeignKeyOf, values_of};
use super::ranges::{PAGE_ROWS, Pages, ranges_of};
use super::rows::Row;
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::table::{ForeignKey, Table};

/// The work for a row, in units of [`crate::coop::Turn`].
const ROW_UNITS: usize = 20;

/// 23503 for a stored row that refers to one of `parent` that does not exist. `keys`: the tables that refer to it, as
/// they are to be, and their foreign keys.
pub(super) async fn check(
    keys: &[(Arc<Table>, ForeignKey)],
    parent: &Arc<Table>,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    if keys.is_empty() {
        return Ok(());
    }
    // The snapshot may lack what has been filled, and what others committed before they were excluded.
    ctx.txn.renew_snapshot_of(ranges_of(keys.iter().map(|(child, _)| &**child).chain([&**parent]))).await?;
    if ctx.txn.has_statements() {
        ctx.txn.begin_statement();
    }
    for (child, key) in keys {
        check_table(ForeignKeyOf { key, child, parent }, ctx).await?;
    }
    Ok(())
}

async fn check_table(it: ForeignKeyOf<'_>, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    let (mut pages, mut turn) = (Pages::of(it.child.storage, PAGE_ROWS), Turn::new());
    let wanted: Vec<bool> = (0..it.child.columns.len()).map(|at| it.key.columns.contains(&at)).collect();
    while let Some(page) = pages.next(ctx.txn).await? {
        let mut rows = Vec::with_capacity(page.len());
        for (key, value) in &page {
            rows.push(cursor::decode(it.child, key, value, &wanted)?);
            turn.spend(ROW_UNITS).await;
        }
        check_rows(it, &rows, ctx.txn, &ctx.io).await?;
    }
    Ok(())
}

/// 23503 for one of these rows that refers to one that does not exist.
pub(super) async fn check_rows(
    it: ForeignKeyOf<'_>,
    rows: &[Row],
    txn: &Transaction,
    io: &IoEnv<'_>,
) -> Result<(), SqlError> {
    let mut wanted = Vec::new();
    for row in rows {
        let Some(values) = values_of(it.child, it.key, row, io)? else { continue };
        let found = it.store_key(&values, io)?;
        wanted.push((found.ok_or_else(|| it.missing(&values, io))?, values));
    }
    let keys: Vec<Key> = wanted.iter().map(|(key, _)| key.clone()).collect();
    let found: HashSet<Key> =
        txn.batch_get(&keys).await.map_err(storage_error)?.into_iter().map(|(key, _)| key).collect();
    match wanted.iter().find(|(key, _)| !found.contains(key)) {
        Some((_, values)) => Err(it.missing(values, io)),
        None => Ok(()),
    }
}
