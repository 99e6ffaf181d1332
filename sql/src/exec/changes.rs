//! Changes of rows: their number, the rows of RETURNING, and the locks of new keys. Common to INSERT, UPDATE and
//! DELETE.

use std::collections::{HashSet, VecDeque};

use futures::future::{BoxFuture, Either, Ready, ready};
use kv::Key;
use txn::TxnError;

use super::budget::Budget;
use super::context::ExecContext;
use super::locking::lock_absent;
use super::rows::{Row, row_bytes};
use crate::catalog::duplicate_key;
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::plan::RowCounts;
use crate::table::Table;
use pgtypes::Datum;

/// The work of encoding and buffering a row, in units of [`Turn`].
pub(super) const STORE_UNITS: usize = 10;

/// Keys that are looked up together.
const CHECKED_AT_ONCE: usize = 512;

/// The work of looking up one of them, in units of [`Turn`].
const CHECK_UNITS: usize = 20;

/// Work that is mostly done at once, without a future of its own.
type MostlyReady<'f> = Either<Ready<Result<(), SqlError>>, BoxFuture<'f, Result<(), SqlError>>>;

/// Takes the advisory locks that expressions take which are about to be evaluated over a row.
pub(super) fn rehearse<'f>(
    exprs: impl IntoIterator<Item = &'f Expr>,
    row: &'f Row,
    ctx: &'f mut ExecContext<'_>,
    params: &'f [Datum],
) -> MostlyReady<'f> {
    if !ctx.rehearses() {
        return Either::Left(ready(Ok(())));
    }
    let exprs: Vec<&Expr> = exprs.into_iter().collect();
    let evaluate = move |env: &Env<'_>| exprs.iter().try_for_each(|expr| eval(expr, row, env).map(drop));
    Either::Right(ctx.rehearse(params, evaluate))
}

/// The result of a change of rows.
#[derive(Default)]
pub(super) struct Changes {
    /// Number of changed rows.
    pub(super) count: u64,
    /// The rows of RETURNING.
    pub(super) returned: VecDeque<Row>,
    /// The rows that its query or scan has read.
    pub(super) read: RowCounts,
}

impl Changes {
    /// Counts a changed row and evaluates RETURNING.
    pub(super) fn record(
        &mut self,
        returning: Option<&Vec<Expr>>,
        row: &Row,
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<(), SqlError> {
        self.count += 1;
        if let Some(returning) = returning {
            let returned = returning
                .iter()
                .map(|expr| Ok(eval(expr, row, env)?.into_owned()))
                .collect::<Result<Row, SqlError>>()?;
            budget.charge(row_bytes(&returned))?;
            self.returned.push_back(returned);
        }
        Ok(())
    }
}

/// Locks the keys of new rows, so that no other transaction inserts them. Waits for one that does. 23505 if one of them
/// exists.
pub(super) async fn lock_unused(table: &Table, rows: &[(Key, Row)], ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    match find_used(table, rows, ctx).await? {
        Some(at) => Err(rows.get(at).map_or_else(
            || SqlError::internal("a duplicate key is of no row"),
            |(_, row)| duplicate_key(table, row, &ctx.io),
        )),
        None => Ok(()),
    }
}

/// As [`lock_unused`]; the first row whose key exists is returned.
pub(super) async fn find_used(
    table: &Table,
    rows: &[(Key, Row)],
    ctx: &mut ExecContext<'_>,
) -> Result<Option<usize>, SqlError> {
    if table.has_hidden_key() {
        return Ok(None);
    }
    let mut turn = Turn::new();
    for (chunk, rows) in rows.chunks(CHECKED_AT_ONCE).enumerate() {
        // A key that the transaction has written is its own. One that it inserts twice fails when it is stored.
        let mut seen = HashSet::with_capacity(rows.len());
        let new = rows.iter().map(|(key, _)| key).filter(|key| !ctx.txn.has_written(key) && seen.insert(*key));
        let keys: Vec<Key> = new.cloned().collect();
        turn.spend(keys.len() * CHECK_UNITS).await;
        if keys.is_empty() {
            continue;
        }
        if let Some(taken) = lock_absent(table, keys, ctx).await? {
            let at = rows.iter().position(|(key, _)| *key == taken);
            let at = at.ok_or_else(|| SqlError::from(TxnError::AlreadyExists { key: taken }))?;
            return Ok(Some(chunk * CHECKED_AT_ONCE + at));
        }
    }
    Ok(None)
}

/// The error of storing a row whose key must not exist.
pub(super) fn store_error(table: &Table, row: &Row, error: TxnError, ctx: &ExecContext<'_>) -> SqlError {
    match error {
        TxnError::AlreadyExists { .. } => duplicate_key(table, row, &ctx.io),
        other => storage_error(other),
    }
}
