//! The writer of rows. INSERT, UPDATE, DELETE and what else changes rows goes through it, and nothing else writes them.
//!
//! A change of a row is a change of its record and of its entries in the table's indexes ([`crate::codec::index`]), all
//! in one transaction. So at every snapshot the indexes say the same as the rows. This rests on three rules:
//!
//! 1. Who changes the entries of a row changes the row too. So whatever was seen of the row was seen of its entries,
//!    and they need no locks of their own ([`txn::Transaction::put_owned`]).
//! 2. A key that must not exist twice is a key of the store: that of a row, and that of an entry of a unique index
//!    without NULL. It is inserted as one that must be absent. A statement that locks rows locks it before, waits for
//!    others that have it, and reports the duplicate itself; otherwise the commit does.
//! 3. A statement that locks rows also locks the entries of unique indexes that it removes. So another one that wants
//!    to insert such a key waits, as in PostgreSQL, and does not find the old entry.
//!
//! Rows are checked one after the other: what an earlier change of the statement has removed is free for a later one,
//! and nothing else is. So two rows that exchange their keys are duplicates.

use std::collections::HashSet;

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, Presence};
use tso::Timestamp;
use txn::TxnError;

use super::changes::STORE_UNITS;
use super::constraints::{check_row, complete};
use super::context::ExecContext;
use super::foreign_key::{self, are_equal};
use super::locking::{Lock, lock_absent, lock_keys};
use super::parents::check_early;
use super::reference_queue::Changed;
use super::rows::Row;
use crate::catalog::{duplicate_entry, duplicate_key};
use crate::codec::index::{Entry, entry};
use crate::codec::{CodecError, key, row};
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::expr::eval::{Env, eval, is_true};
use crate::plan::{Arbiters, BoundIndex, TableWrite};
use crate::table::Index;
use pgtypes::Datum;

/// Keys that are locked together.
const LOCKED_AT_ONCE: usize = 512;
/// The work of locking one of them, in units of [`Turn`].
const LOCK_UNITS: usize = 20;

/// A change of a row.
#[derive(Debug)]
pub(super) enum RowChange {
    /// A new row.
    Insert(Row),
    /// Another row in place of one, whose key may change with it.
    Update { key: Key, old: Row, new: Row },
    /// No row in place of one.
    Delete { key: Key, old: Row },
}

/// A change, ready to be written.
#[derive(Debug)]
pub(super) struct PreparedChange {
    old_key: Option<Key>,
    new_key: Option<Key>,
    /// The new row, or the one that is deleted.
    row: Row,
    /// The record of the new row.
    value: Bytes,
    /// Entries that go, with whether they are the only ones of their key.
    removed: Vec<(Key, bool)>,
    /// Entries that stay with another value.
    changed: Vec<(Key, Bytes)>,
    /// New entries, with the positions of their indexes.
    added: Vec<(usize, Entry)>,
    /// The row before, of a table with foreign keys from it or to it.
    old_row: Option<Row>,
}

/// An error of writing rows.
#[derive(Debug)]
pub(super) struct WriteError {
    pub(super) error: SqlError,
    /// The position of the row among those that were to be written, if the error is of one.
    pub(super) row: Option<usize>,
}

/// What is known of the unique keys of a new row.
#[derive(Clone, Copy)]
pub(super) enum Uniqueness<'a> {
    /// They must not exist.
    Required,
    /// Those of these are known not to exist, at the snapshot of the statement. The others must not.
    Known(&'a Arbiters),
}

/// The writer of a table's rows, for one statement.
pub(crate) struct RowWriter<'p> {
    write: &'p TableWrite,
    /// The number of the next hidden row id.
    next_id: u64,
    turn: Turn,
}

impl WriteError {
    /// An error of the row at a position.
    fn of_row(row: usize) -> impl FnOnce(SqlError) -> WriteError {
        move |error| WriteError { error, row: Some(row) }
    }
}

impl From<SqlError> for WriteError {
    fn from(error: SqlError) -> WriteError {
        WriteError { error, row: None }
    }
}

impl From<WriteError> for SqlError {
    fn from(error: WriteError) -> SqlError {
        error.error
    }
}

impl PreparedChange {
    /// The new row, or the one that is deleted.
    pub(super) fn into_row(self) -> Row {
        self.row
    }

    /// The key of the new row.
    pub(super) fn new_key(&self) -> Option<&Key> {
        self.new_key.as_ref()
    }

    /// The new entries that must be the only ones of their keys, with the positions of their indexes.
    pub(super) fn unique_entries(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.added.iter().filter(|(_, entry)| entry.is_unique).map(|(at, entry)| (*at, &entry.key))
    }

    /// Whether the row gets a key that it did not have.
    fn is_placed(&self) -> bool {
        self.new_key.is_some() && self.new_key != self.old_key
    }
}

impl<'p> RowWriter<'p> {
    /// A writer for a statement of the transaction.
    pub(crate) fn new(write: &'p TableWrite, ctx: &ExecContext<'_>) -> RowWriter<'p> {
        // The undo log grows with every new key, so row ids are unique within a transaction.
        RowWriter { write, next_id: ctx.txn.changes() as u64, turn: Turn::new() }
    }

    /// Writes new rows. Returns them. For INSERT, and for COPY.
    pub(crate) async fn insert_rows(
        &mut self,
        rows: Vec<Row>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Vec<Row>, WriteError> {
        self.write(rows.into_iter().map(RowChange::Insert).collect(), ctx).await
    }

    /// Writes new rows, and passes the positions and the keys of those that must be the only ones to `note`.
    pub(crate) async fn insert_noting(
        &mut self,
        rows: Vec<Row>,
        note: impl FnMut(usize, &Key) + Send,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Vec<Row>, WriteError> {
        self.write_noting(rows.into_iter().map(RowChange::Insert).collect(), note, ctx).await
    }

    /// Writes changes, in their order. Returns the new rows, and the deleted ones.
    pub(super) async fn write(
        &mut self,
        changes: Vec<RowChange>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Vec<Row>, WriteError> {
        self.write_noting(changes, |_, _| {}, ctx).await
    }

    async fn write_noting(
        &mut self,
        changes: Vec<RowChange>,
        mut note: impl FnMut(usize, &Key) + Send,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Vec<Row>, WriteError> {
        let is_hidden = self.write.table.has_hidden_key();
        let prepared = self.prepare(changes, ctx).await?;
        self.lock(&prepared, ctx).await?;
        let mut rows = Vec::with_capacity(prepared.len());
        for (at, change) in prepared.into_iter().enumerate() {
            self.apply(&change, Uniqueness::Required, ctx).map_err(WriteError::of_row(at))?;
            let placed = change.new_key().filter(|_| !is_hidden);
            placed.into_iter().chain(change.unique_entries().map(|(_, key)| key)).for_each(|key| note(at, key));
            rows.push(change.into_row());
        }
        check_early(ctx).await?;
        Ok(rows)
    }

    /// Computes what changes write.
    pub(super) async fn prepare(
        &mut self,
        changes: Vec<RowChange>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Vec<PreparedChange>, WriteError> {
        let table = &*self.write.table;
        let hidden =
            if table.has_hidden_key() { Some(ctx.txn.take_start_ts().await.map_err(storage_error)?) } else { None };
        let units = STORE_UNITS * (1 + table.indexes.len()) + table.columns.len();
        let mut prepared = Vec::with_capacity(changes.len());
        for (at, change) in changes.into_iter().enumerate() {
            prepared.push(self.prepare_one(change, hidden, &ctx.env(&[])).map_err(WriteError::of_row(at))?);
            self.turn.spend(units).await;
        }
        Ok(prepared)
    }

    fn prepare_one(
        &mut self,
        change: RowChange,
        hidden: Option<Timestamp>,
        env: &Env<'_>,
    ) -> Result<PreparedChange, SqlError> {
        let (old, new) = match change {
            RowChange::Insert(new) => (None, Some((None, new))),
            RowChange::Update { key, old, new } => (Some((key.clone(), old)), Some((Some(key), new))),
            RowChange::Delete { key, old } => (Some((key, old)), None),
        };
        let old_entries = match &old {
            Some((key, old)) => self.entries(key, old, env)?,
            None => Vec::new(),
        };
        let Some((known, new)) = new else {
            let (key, row) = old.ok_or_else(|| SqlError::internal("a change of no row"))?;
            let removed = old_entries.into_iter().map(|(_, entry)| (entry.key, entry.is_unique)).collect();
            let (changed, added) = (Vec::new(), Vec::new());
            let old_row = self.write.table.has_references().then(|| row.clone());
            return Ok(PreparedChange {
                old_key: Some(key),
                new_key: None,
                row,
                value: Bytes::new(),
                removed,
                changed,
                added,
                old_row,
            });
        };
        let table = &*self.write.table;
        let mut new = new;
        complete(self.write, &mut new, env)?;
        check_row(self.write, &new, env)?;
        let key = match (hidden, known) {
            (Some(_), Some(key)) => key,
            (Some(start_ts), None) => {
                self.next_id += 1;
                key::hidden_key(table.storage, start_ts, self.next_id - 1)
            }
            (None, _) => key::row_key(table, &new).ok_or(CodecError::new("row", "its key is not complete"))?,
        };
        let new_entries = self.entries(&key, &new, env)?;
        let value = row::encode(table, &new);
        let (mut removed, mut changed, mut added) = (Vec::new(), Vec::new(), Vec::new());
        // Each index has at most one entry of a row.
        let of_index = |entries: &[(usize, Entry)], at: usize| entries.iter().position(|(index, _)| *index == at);
        for (at, entry) in &old_entries {
            let same = of_index(&new_entries, *at).and_then(|found| new_entries.get(found));
            if same.is_none_or(|(_, new)| new.key != entry.key) {
                removed.push((entry.key.clone(), entry.is_unique));
            }
        }
        for (at, entry) in new_entries {
            let same = of_index(&old_entries, at).and_then(|found| old_entries.get(found));
            match same.filter(|(_, old)| old.key == entry.key) {
                Some((_, old)) if old.value == entry.value => {}
                Some(_) => changed.push((entry.key, entry.value)),
                None => added.push((at, entry)),
            }
        }
        let (old_key, old_row) = old.unzip();
        let old_row = old_row.filter(|_| self.write.table.has_references());
        Ok(PreparedChange { old_key, new_key: Some(key), row: new, value, removed, changed, added, old_row })
    }

    /// The entries of a row, with the positions of their indexes.
    fn entries(&self, key: &Key, row: &Row, env: &Env<'_>) -> Result<Vec<(usize, Entry)>, SqlError> {
        let mut entries = Vec::with_capacity(self.write.indexes.len());
        for (at, (index, bound)) in self.write.table.indexes.iter().zip(&self.write.indexes).enumerate() {
            if let Some(entry) = entry_of(self.write, (index, bound), (key, row), env)? {
                entries.push((at, entry));
            }
        }
        Ok(entries)
    }

    /// Locks the unique keys that changes give and take away, if the statement locks rows. 23505 if one of those that
    /// must not exist does.
    pub(super) async fn lock(
        &mut self,
        changes: &[PreparedChange],
        ctx: &mut ExecContext<'_>,
    ) -> Result<(), WriteError> {
        if !ctx.locks_rows {
            return Ok(());
        }
        let (gone, absent) = self.keys_to_lock(changes, ctx);
        let lock = Lock::to_change(LockMode::Update, ctx);
        for keys in gone.chunks(LOCKED_AT_ONCE) {
            self.turn.spend(keys.len() * LOCK_UNITS).await;
            lock_keys(&self.write.table, keys.to_vec(), (lock, Presence::Any, false), ctx).await?;
        }
        for keys in absent.chunks(LOCKED_AT_ONCE) {
            self.turn.spend(keys.len() * LOCK_UNITS).await;
            if let Some(taken) = lock_absent(&self.write.table, keys.to_vec(), ctx).await? {
                let owner = changes.iter().enumerate().find(|(_, change)| {
                    change.new_key() == Some(&taken) || change.unique_entries().any(|(_, key)| *key == taken)
                });
                return Err(owner.map_or_else(
                    || SqlError::from(TxnError::AlreadyExists { key: taken.clone() }).into(),
                    |(at, change)| WriteError::of_row(at)(self.duplicate(change, &taken, ctx)),
                ));
            }
        }
        Ok(())
    }

    /// The unique entries that changes remove, and the keys that must be absent before the first of them. A key that
    /// the transaction has written is its own. One that the statement gives twice fails when it is applied.
    fn keys_to_lock(&self, changes: &[PreparedChange], ctx: &ExecContext<'_>) -> (Vec<Key>, Vec<Key>) {
        let (mut gone, mut absent) = (Vec::new(), Vec::new());
        let (mut free, mut seen): (HashSet<&Key>, HashSet<&Key>) = (HashSet::new(), HashSet::new());
        let is_hidden = self.write.table.has_hidden_key();
        for change in changes {
            for (key, _) in change.removed.iter().filter(|(_, is_unique)| *is_unique) {
                if free.insert(key) && !seen.contains(key) && !ctx.txn.has_written(key) {
                    gone.push(key.clone());
                }
            }
            if change.new_key != change.old_key {
                free.extend(&change.old_key);
            }
            let placed = change.new_key.iter().filter(|_| change.is_placed() && !is_hidden);
            for key in placed.chain(change.unique_entries().map(|(_, key)| key)) {
                if !free.contains(key) && seen.insert(key) && !ctx.txn.has_written(key) {
                    absent.push(key.clone());
                }
            }
        }
        (gone, absent)
    }

    /// Buffers the writes of a change, and notes what foreign keys ask for.
    pub(super) fn apply(
        &self,
        change: &PreparedChange,
        uniqueness: Uniqueness<'_>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<(), SqlError> {
        self.buffer(change, uniqueness, ctx)?;
        ctx.note_changed(change.old_key.iter().chain(&change.new_key))?;
        if self.write.table.has_references() {
            self.note_references(change, ctx)?;
        }
        Ok(())
    }

    fn note_references(&self, change: &PreparedChange, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
        let table = &*self.write.table;
        let new = change.new_key.is_some().then_some(&change.row);
        for (at, key) in table.foreign_keys.iter().enumerate() {
            let Some(new) = new else { break };
            let is_same = change.old_row.as_ref().is_some_and(|old| are_equal(&key.columns, old, new));
            if !is_same && let Some(values) = foreign_key::values_of(table, key, new, &ctx.io)? {
                ctx.references.check((table.id, at), values)?;
            }
        }
        let referenced = &self.write.referenced;
        match (&change.old_row, new) {
            (Some(old), Some(new)) if are_equal(referenced, old, new) => Ok(()),
            (Some(old), new) if !referenced.is_empty() => {
                // Who may refer to the row is looked for when the statement is done, and not again at the commit.
                change.old_key.iter().for_each(|key| ctx.txn.rely_on_lock(key));
                ctx.references.change(Changed { table: table.id, old: old.clone(), new: new.cloned() })
            }
            _ => Ok(()),
        }
    }

    fn buffer(
        &self,
        change: &PreparedChange,
        uniqueness: Uniqueness<'_>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<(), SqlError> {
        let known = match uniqueness {
            Uniqueness::Required => None,
            Uniqueness::Known(arbiters) => Some(arbiters),
        };
        if let Some(old) = &change.old_key {
            for (key, _) in &change.removed {
                ctx.txn.delete_owned(key.clone(), old).map_err(storage_error)?;
            }
            if change.new_key.as_ref() != Some(old) {
                ctx.txn.delete(old.clone()).map_err(storage_error)?;
            }
        }
        let Some(new) = &change.new_key else { return Ok(()) };
        let is_hidden = self.write.table.has_hidden_key();
        let is_known = is_hidden || !change.is_placed() || known.is_some_and(|known| known.primary_key);
        self.put(change, (new, &change.value), is_known, ctx)?;
        let owner = change.old_key.as_ref().unwrap_or(new);
        for (key, value) in &change.changed {
            ctx.txn.put_owned(key.clone(), value.clone(), owner).map_err(storage_error)?;
        }
        for (at, entry) in &change.added {
            if entry.is_unique {
                let is_known = known.is_some_and(|known| known.indexes.get(*at) == Some(&true));
                self.put(change, (&entry.key, &entry.value), is_known, ctx)?;
            } else {
                ctx.txn.put_owned(entry.key.clone(), entry.value.clone(), new).map_err(storage_error)?;
            }
        }
        Ok(())
    }

    /// Buffers a key. Unless it is known whether it exists, it must not.
    fn put(
        &self,
        change: &PreparedChange,
        (key, value): (&Key, &Bytes),
        is_known: bool,
        ctx: &mut ExecContext<'_>,
    ) -> Result<(), SqlError> {
        let buffered =
            if is_known { ctx.txn.put(key.clone(), value.clone()) } else { ctx.txn.insert(key.clone(), value.clone()) };
        buffered.map_err(|error| match error {
            TxnError::AlreadyExists { key } => self.duplicate(change, &key, ctx),
            other => storage_error(other),
        })
    }

    /// 23505 for a key that a change wants and that exists.
    pub(super) fn duplicate(&self, change: &PreparedChange, key: &Key, ctx: &ExecContext<'_>) -> SqlError {
        let table = &*self.write.table;
        let found = change.unique_entries().find(|(_, unique)| *unique == key).map(|(at, _)| at);
        let index = found.and_then(|at| Some((table.indexes.get(at)?, self.write.indexes.get(at)?)));
        let Some((index, bound)) = index else { return duplicate_key(table, &change.row, &ctx.io) };
        match values_of(bound, &change.row, &ctx.env(&[])) {
            Ok(values) => duplicate_entry(table, index, &values, &ctx.io),
            Err(error) => error,
        }
    }
}

/// The entry of a row in an index; `None` if the row does not satisfy the index's predicate.
pub(super) fn entry_of(
    write: &TableWrite,
    (index, bound): (&Index, &BoundIndex),
    (key, row): (&Key, &Row),
    env: &Env<'_>,
) -> Result<Option<Entry>, SqlError> {
    if let Some(predicate) = &bound.predicate
        && !is_true(predicate, row, env)?
    {
        return Ok(None);
    }
    let values = values_of(bound, row, env)?;
    Ok(Some(entry(&write.table, index, &values, key, row)))
}

/// The values of an index's columns.
pub(super) fn values_of(bound: &BoundIndex, row: &Row, env: &Env<'_>) -> Result<Vec<Datum>, SqlError> {
    bound.columns.iter().map(|column| Ok(eval(column, row, env)?.into_owned())).collect()
}
