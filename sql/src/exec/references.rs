//! Foreign keys, when the changes of a statement are done.
//!
//! A row that refers needs the row that it refers to: that one is locked FOR KEY SHARE, in its newest state. So nobody
//! deletes it, or changes its key, before this transaction ends. A row that is deleted, or whose key has changed, is
//! locked more strongly: that waits for all who have it FOR KEY SHARE. Only then the rows that refer to it are looked
//! for, in a snapshot of their own. So of two transactions that delete a row and refer to it, one sees the other. The
//! lock is in the memory of a leader, and who refers leaves no trace on the row. So the commit depends on the lock: it
//! is a conflict if that was lost since the look.
//!
//! This holds because statements over such tables lock rows before they write them
//! ([`ExecContext::locks_rows`](super::ExecContext)).
//!
//! A row that refers, and that another transaction has moved to another primary key meanwhile, is gone where it was
//! seen. Then it is looked for again: it refers as before, and moving it locks no row that it refers to.
//!
//! A transaction with one snapshot for all its statements does not see rows that others have committed since. It looks
//! for them beside its snapshot, and fails with a conflict if there are some.

use kv::Key;
use kv::api::LockMode;
use txn::TxnError;

use super::context::ExecContext;
use super::foreign_key::{ForeignKeyOf, are_equal, still_referenced};
use super::modify::{self, Target};
use super::parents::{check_parents, existing};
use super::reference_queue::{Changed, ReferenceQueue};
use super::rows::Row;
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::plan::{ChildAction, DeletePlan, References, Referring, TableAccess, UpdatePlan};
use pgtypes::Datum;

/// The work for a row, in units of [`crate::coop::Turn`].
const ROW_UNITS: usize = 20;
/// The work of a look for rows that refer.
const LOOK_UNITS: usize = 200;
/// Old keys that nothing may refer to at the end: the table, the place of the foreign key among those that refer to it,
/// and the values.
type Pending<'r> = Vec<(&'r TableAccess, &'r Referring, Vec<Datum>)>;

/// Does what foreign keys say of the changes that a statement has made.
pub(super) async fn settle(references: &References, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    let (mut pending, mut turn): (Pending<'_>, Turn) = (Vec::new(), Turn::new());
    while !ctx.references.is_empty() || !pending.is_empty() {
        renew_snapshot(ctx);
        turn.spend(LOOK_UNITS).await;
        if let Some(changed) = ctx.references.next_change() {
            change(references, changed, &mut pending, ctx).await?;
            continue;
        }
        let checks = ctx.references.take_checks(|_| true);
        check_parents(references, checks, ctx).await?;
        for (parent, referring, values) in std::mem::take(&mut pending) {
            turn.spend(LOOK_UNITS).await;
            check_children(references, (parent, referring), &values, true, ctx).await?;
        }
    }
    Ok(())
}

/// What others have committed by now counts.
fn renew_snapshot(ctx: &mut ExecContext<'_>) {
    if ctx.txn.has_statements() {
        ctx.txn.begin_statement();
    }
}

/// Acts on a row that is gone, or has changed.
async fn change<'r>(
    references: &'r References,
    changed: Changed,
    pending: &mut Pending<'r>,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    let Changed { table, old, new } = changed;
    let Some(parent) = references.parents.get(&table) else {
        return Err(SqlError::internal("a table that others refer to is missing"));
    };
    for referring in references.children.get(&table).into_iter().flatten() {
        let values =
            |row: &Row| -> Vec<Datum> { referring.columns.iter().filter_map(|at| row.get(*at).cloned()).collect() };
        let mut params = values(&old);
        // What is NULL is not referred to.
        if params.iter().any(Datum::is_null) || new.as_ref().is_some_and(|new| are_equal(&referring.columns, &old, new))
        {
            continue;
        }
        let action = if new.is_some() { &referring.on_update } else { &referring.on_delete };
        match action {
            ChildAction::NoAction => pending.push((parent, referring, params)),
            ChildAction::Restrict => check_children(references, (parent, referring), &params, false, ctx).await?,
            ChildAction::Delete(plan) => {
                refuse_unseen(referring, &params, ctx).await?;
                Look::Delete(plan).until_none_moves(&params, ctx).await?;
            }
            ChildAction::Update(plan) => {
                refuse_unseen(referring, &params, ctx).await?;
                let old = params.clone();
                params.extend(new.as_ref().map_or_else(Vec::new, values));
                Look::Update(plan).until_none_moves(&params, ctx).await?;
                // Default values may be those of the row that is gone. Then nothing has changed.
                pending.push((parent, referring, old));
            }
        }
        renew_snapshot(ctx);
    }
    Ok(())
}

/// A look for the rows that refer to some values, and what is done with them.
#[derive(Clone, Copy)]
enum Look<'r> {
    Delete(&'r DeletePlan),
    Update(&'r UpdatePlan),
    /// Is there one?
    Find(&'r Referring),
}

impl Look<'_> {
    /// Looks, and looks again while a row is gone where the look has seen it: another transaction may have moved it.
    /// Whether [`Look::Find`] has found a row.
    async fn until_none_moves(self, values: &[Datum], ctx: &mut ExecContext<'_>) -> Result<bool, SqlError> {
        ctx.references.take_gone();
        loop {
            let is_found = match self {
                Look::Delete(plan) => modify::delete(plan, ROW_UNITS, ctx, values).await.map(|_| false)?,
                Look::Update(plan) => modify::update(plan, ROW_UNITS, ctx, values).await.map(|_| false)?,
                Look::Find(referring) => refers(referring, values, ctx).await?,
            };
            if is_found || !ctx.references.take_gone() {
                return Ok(is_found);
            }
            renew_snapshot(ctx);
        }
    }
}

/// 23503 if rows refer to these values. `is_late`: unless another row has got them.
async fn check_children(
    references: &References,
    (parent, referring): (&TableAccess, &Referring),
    values: &[Datum],
    is_late: bool,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    let Some(key) = referring.child.foreign_keys.get(referring.position) else {
        return Err(SqlError::internal("a foreign key is missing"));
    };
    refuse_unseen(referring, values, ctx).await?;
    if !Look::Find(referring).until_none_moves(values, ctx).await? {
        return Ok(());
    }
    if is_late {
        let mut row: Row = vec![Datum::Null; parent.table.columns.len()];
        for (at, value) in referring.columns.iter().zip(values) {
            row[*at] = value.clone();
        }
        let it = ForeignKeyOf { key, child: &referring.child, parent: &parent.table };
        let found = existing(references, it, vec![it.key_of_row(&row)?], ctx).await?;
        if !found.is_empty() {
            return Ok(());
        }
    }
    Err(still_referenced((&parent.table, &referring.columns), (&referring.child, key), values, &ctx.io))
}

/// Whether a row refers to these values.
async fn refers(referring: &Referring, values: &[Datum], ctx: &mut ExecContext<'_>) -> Result<bool, SqlError> {
    let (access, filter) = (&referring.access, referring.filter.as_ref());
    let mut rows = Target::new(access, filter, LockMode::KeyShare, ROW_UNITS, (ctx, values)).await?;
    while let Some(page) = rows.next(ctx, values).await? {
        if !page.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Of a transaction with one snapshot: a conflict if rows refer to these values that it does not see, or not as they
/// are: they may refer to others there.
async fn refuse_unseen(referring: &Referring, values: &[Datum], ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    if ctx.txn.has_statements() {
        return Ok(());
    }
    let mut newest = ctx.txn.newest().await?;
    let mut beside = ExecContext {
        txn: &mut newest,
        schema: None,
        io: ctx.io,
        user: ctx.user,
        database: ctx.database,
        current_schema: ctx.current_schema,
        session: ctx.session,
        commit_follows: false,
        locks_rows: false,
        uses_sequences: false,
        lock_timeout: ctx.lock_timeout,
        advisory: None,
        params: ctx.params,
        statement: None,
        references: ReferenceQueue::default(),
    };
    let keys = all_keys(referring, values, &mut beside).await?;
    for key in keys.into_iter().filter(|key| !ctx.txn.has_written(key)) {
        let (now, seen) = (newest.get(&key).await.map_err(storage_error)?, ctx.txn.get(&key).await);
        if now != seen.map_err(storage_error)? {
            let what = "a row has come to refer to another one meanwhile";
            return Err(TxnError::Conflict(what.to_owned()).into());
        }
    }
    Ok(())
}

async fn all_keys(referring: &Referring, values: &[Datum], ctx: &mut ExecContext<'_>) -> Result<Vec<Key>, SqlError> {
    let (access, filter) = (&referring.access, referring.filter.as_ref());
    let mut rows = Target::new(access, filter, LockMode::KeyShare, ROW_UNITS, (ctx, values)).await?;
    let mut keys = Vec::new();
    while let Some(page) = rows.read(ctx, values).await? {
        keys.extend(page.into_iter().map(|(key, _)| key));
    }
    Ok(keys)
}
