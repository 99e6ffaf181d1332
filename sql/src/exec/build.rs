//! Fills the storages that a change of a table adds: entries of new indexes, and rows under new keys.
//!
//! The table is closed: nobody else writes to it or reads it. So its rows do not change, and each page of them is read
//! and written in a transaction of its own, at a snapshot of its own. Memory and the size of a transaction are bounded
//! by a page, whatever the table's size. Until the schema change commits, no descriptor names what is written, and if
//! it does not commit, the reclaimer removes it ([`crate::catalog::SchemaChange::begin_build`]).
//!
//! Rows that the transaction of the schema change has written itself are in no snapshot but its own. If there are some,
//! all is read and written in that transaction, and its limits apply.
//!
//! What is filled apart is committed behind the snapshot of a REPEATABLE READ transaction, and follows from rows that
//! may be newer than that too. So the transaction sees the table, with all its indexes, as it is after the fill, and
//! all else in its snapshot. Until it ends, nobody else has access to the table.
//!
//! A new column that draws from a sequence numbers the rows in the order of their keys. Nobody else draws from the
//! sequence yet: it is created with the number that follows.
//!
//! Foreign keys to rows that are only just filled are checked at the end ([`super::stored_references`]).
//!
//! A unique key is inserted as one that must be absent. Two rows with the same key meet in one transaction, or the
//! later transaction finds the key of the earlier one.

use std::sync::Arc;

use bytes::Bytes;
use kv::Key;
use kv::client::ScanRange;
use pgtypes::{Datum, IoEnv};
use tso::Timestamp;
use txn::{Database, Transaction, TxnError};

use super::changes::{STORE_UNITS, rehearse};
use super::constraints::{complete, of_constraint, violated};
use super::context::ExecContext;
use super::cursor;
use super::foreign_key::ForeignKeyOf;
use super::ranges::{PAGE_ROWS, ranges_of, rows_of};
use super::rows::Row;
use super::stored_references;
use super::writer::{entry_of, values_of};
use crate::catalog::{Catalog, SchemaChange, duplicate_rows, schema_name};
use crate::codec::{CodecError, key, row};
use crate::coop::Turn;
use crate::error::{ConstraintFields, SqlError, SqlState, storage_error};
use crate::expr::eval::{Env, check_domain, eval};
use crate::expr::{Expr, NoSession};
use crate::object::Sequence;
use crate::plan::{Alteration, TableWrite};
use crate::table::{Column, ColumnId, ForeignKey, StorageId, Table};

/// How often a page is tried. Nobody writes to the same keys; but the locks of a transaction may expire.
const ATTEMPTS: u32 = 8;

/// Fills what `new` has and the old table has not, and checks the rows for what is new. Returns how many rows there
/// are, if a new column numbers them.
pub(super) async fn fill(
    change: &Alteration,
    new: &Table,
    schema: &SchemaChange,
    ctx: &mut ExecContext<'_>,
) -> Result<u64, SqlError> {
    let old = &*change.old;
    let storages: Vec<StorageId> =
        new.storages().filter(|storage| old.storages().all(|known| known != *storage)).collect();
    if storages.is_empty() && change.validates.is_empty() {
        return Ok(0);
    }
    let write = TableWrite::bind(Arc::new(new.clone()), schema.catalog())?;
    let numbered = numbered(change, new);
    let mut builder = Builder { change, old, write, numbered, parents: Vec::new(), io: ctx.io };
    let range = rows_of(old.storage);
    let mut has_own_rows = ctx.txn.has_written_in(&range);
    let mut late = Vec::new();
    for name in &change.validates.foreign_keys {
        let Some(key) = new.foreign_keys.iter().find(|key| key.name == *name) else { continue };
        match builder.parent(key, schema.catalog())? {
            Some(parent) => {
                has_own_rows |= ctx.txn.has_written_in(&rows_of(parent.storage));
                builder.parents.push((key.clone(), parent));
            }
            None => late.push((Arc::clone(&builder.write.table), key.clone())),
        }
    }
    for (child, name) in &change.validates.referring {
        let child = schema.catalog().by_id(*child);
        let key = child.and_then(|child| child.foreign_keys.iter().find(|key| key.name == *name));
        late.extend(child.cloned().zip(key.cloned()));
    }
    let rows = if schema.is_fresh(old) {
        if has_own_rows { builder.fill_within(range, ctx).await? } else { 0 }
    } else if has_own_rows {
        // The snapshot lacks what was committed before others were excluded.
        let parents = builder.parents.iter().map(|(_, parent)| &**parent);
        let read = ranges_of(std::iter::once(old).chain(parents));
        ctx.txn.renew_snapshot_of(read).await?;
        if ctx.txn.has_statements() {
            ctx.txn.begin_statement();
        }
        builder.fill_within(range, ctx).await?
    } else {
        let db = if storages.is_empty() { schema.database() } else { schema.begin_build(&storages).await? };
        builder.fill_apart(range, &db, ctx).await?
    };
    if !storages.is_empty() && !schema.is_fresh(old) {
        ctx.txn.renew_snapshot_of(ranges_of(std::iter::once(new))).await?;
    }
    stored_references::check(&late, &builder.write.table, ctx).await?;
    Ok(rows)
}

/// The places of new columns that draw from sequences.
fn numbered<'c>(change: &'c Alteration, new: &Table) -> Vec<(usize, &'c Sequence)> {
    let is_new = |id: &ColumnId| change.old.position_of(*id).is_none();
    let sequences = change.sequences.iter().filter(|(column, _)| is_new(column));
    sequences.filter_map(|(column, sequence)| Some((new.position_of(*column)?, sequence))).collect()
}

/// What a new sequence yields after `count` values. 2200H if it has no more.
pub(super) fn drawn(sequence: &Sequence, count: u64) -> Result<i64, SqlError> {
    let (min, max, step) = (i128::from(sequence.min), i128::from(sequence.max), i128::from(sequence.increment));
    let (first, bound) = if step > 0 { (sequence.min, "maximum") } else { (sequence.max, "minimum") };
    let start = i128::from(sequence.restart);
    let value = i128::from(count).checked_mul(step).and_then(|way| way.checked_add(start));
    if let Some(value) = value.filter(|value| (min..=max).contains(value)) {
        return i64::try_from(value).map_err(|_| SqlError::internal("a sequence is out of range"));
    }
    if !sequence.cycles {
        let limit = if step > 0 { max } else { min };
        let message = format!("nextval: reached {bound} value of sequence \"{}\" ({limit})", sequence.name);
        return Err(SqlError::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message));
    }
    // It has yielded all values up to its end, and then begins again at the other one.
    let before_end = if step > 0 { (max - start) / step } else { (start - min) / -step };
    let (per_round, rest) = ((max - min) / step.abs() + 1, i128::from(count) - before_end - 1);
    let value = i128::from(first) + (rest % per_round) * step;
    i64::try_from(value).map_err(|_| SqlError::internal("a sequence is out of range"))
}

/// Writes the rows of a table for another descriptor of it.
struct Builder<'b> {
    change: &'b Alteration,
    old: &'b Table,
    write: TableWrite,
    /// New columns that draw from sequences.
    numbered: Vec<(usize, &'b Sequence)>,
    /// Foreign keys to check, and the tables that they refer to.
    parents: Vec<(ForeignKey, Arc<Table>)>,
    io: IoEnv<'b>,
}

/// A key to write.
struct NewKey {
    key: Key,
    value: Bytes,
    /// The row's place in its page, and the index, if no other row may have the key.
    unique: Option<(usize, Option<usize>)>,
}

impl Builder<'_> {
    /// The table that a foreign key refers to. Its rows are read as they are stored. `None` for this table, if the key
    /// is not stored yet or changes.
    fn parent(&self, key: &ForeignKey, catalog: &Catalog) -> Result<Option<Arc<Table>>, SqlError> {
        if key.parent != self.old.id {
            let parent = catalog.by_id(key.parent).cloned();
            return parent.map(Some).ok_or_else(|| SqlError::internal("a foreign key refers to no table"));
        }
        let places: Option<Vec<usize>> = key.parent_columns.iter().map(|id| self.old.position_of(*id)).collect();
        let is_stored = places.as_ref().is_some_and(|places| {
            let same = |at: &usize| {
                let (column, new) = (&self.old.columns[*at], &self.write.table);
                new.position_of(column.id).is_some_and(|place| {
                    let row = self.change.row.as_ref();
                    let keeps = row.is_none_or(|row| row.get(place) == Some(&Expr::Column(*at)));
                    keeps && column.generated.is_none() && new.columns[place].ty == column.ty
                })
            };
            self.old.key_of(places).is_some() && places.iter().all(same)
        });
        Ok(is_stored.then(|| Arc::clone(&self.change.old)))
    }

    /// The new row. `number`: how many are before it.
    async fn new_row(&self, old: Row, number: u64, ctx: &mut ExecContext<'_>) -> Result<Row, SqlError> {
        if let Some(columns) = &self.change.row {
            rehearse(columns, &old, ctx, &[]).await?;
        }
        let env = ctx.env(&[]);
        let mut row = match &self.change.row {
            None => old,
            Some(columns) => columns
                .iter()
                .map(|expr| Ok(eval(expr, &old, &env)?.into_owned()))
                .collect::<Result<Row, SqlError>>()?,
        };
        for (place, sequence) in &self.numbered {
            row[*place] = Datum::Int(drawn(sequence, number)?);
        }
        if self.change.rewrites {
            complete(&self.write, &mut row, &env)?;
        }
        self.validate(&row, &env)?;
        Ok(row)
    }

    /// 23502 or 23514 for a row that is not what the table demands now.
    fn validate(&self, row: &Row, env: &Env<'_>) -> Result<(), SqlError> {
        let (table, validates) = (&*self.write.table, &self.change.validates);
        for at in validates.not_null.iter().filter_map(|id| table.position_of(*id)) {
            if row.get(at).is_none_or(Datum::is_null) {
                return Err(contains_nulls(table, &table.columns[at], &self.io));
            }
        }
        for at in validates.domains.iter().filter_map(|id| table.position_of(*id)) {
            self.validate_domain(at, row, env)?;
        }
        if validates.checks.is_empty() {
            return Ok(());
        }
        match violated(&self.write, row, env)? {
            Some(check) => {
                let message = format!(
                    "check constraint \"{}\" of relation \"{}\" is violated by some row",
                    check.name, table.name
                );
                let error = SqlError::new(SqlState::CHECK_VIOLATION, message);
                Err(of_constraint(error, (table, &check.name), &self.io))
            }
            None => Ok(()),
        }
    }

    /// 23502 or 23514 for a value that is not one of the column's domain any more.
    fn validate_domain(&self, at: usize, row: &Row, env: &Env<'_>) -> Result<(), SqlError> {
        let (table, domains) = (&*self.write.table, &self.write.domains);
        let check = domains.iter().find(|(place, _)| *place == at).map(|(_, check)| check);
        let (Some(check), Some(value), Some(column)) = (check, row.get(at), table.columns.get(at)) else {
            return Ok(());
        };
        check_domain(check, value, env).map_err(|error| {
            let fault = match error.code {
                SqlState::NOT_NULL_VIOLATION => "null values",
                SqlState::CHECK_VIOLATION => "values that violate the new constraint",
                _ => return error,
            };
            let message = format!("column \"{}\" of table \"{}\" contains {fault}", column.name, table.name);
            of_column(SqlError::new(error.code, message), (table, column), &self.io)
        })
    }

    /// Fills in transactions of their own.
    async fn fill_apart(
        &self,
        mut range: ScanRange,
        db: &Database,
        ctx: &mut ExecContext<'_>,
    ) -> Result<u64, SqlError> {
        let (mut attempts, mut before) = (0, 0);
        loop {
            let mut txn = db.begin().await?;
            let (rows, resume) = self.page(&range, before, Some(&mut txn), ctx).await?;
            match txn.commit().await {
                Ok(_) => {
                    attempts = 0;
                    before += rows.len() as u64;
                }
                Err(TxnError::AlreadyExists { key }) => return Err(self.duplicate(&rows, &key)?),
                Err(TxnError::Conflict(_)) if attempts < ATTEMPTS => {
                    attempts += 1;
                    continue;
                }
                Err(TxnError::Undetermined { .. }) => {
                    let message = "could not build an index because the outcome of a write is unknown";
                    return Err(SqlError::new(SqlState::SERIALIZATION_FAILURE, message));
                }
                Err(error) => return Err(error.into()),
            }
            match resume {
                Some(resume) => range.start = resume,
                None => return Ok(before),
            }
        }
    }

    /// Fills in the transaction of the schema change.
    async fn fill_within(&self, mut range: ScanRange, ctx: &mut ExecContext<'_>) -> Result<u64, SqlError> {
        let mut before = 0;
        loop {
            let (rows, resume) = self.page(&range, before, None, ctx).await?;
            before += rows.len() as u64;
            match resume {
                Some(resume) => range.start = resume,
                None => return Ok(before),
            }
        }
    }

    /// Reads the page at the start of a range and writes what follows from it. Returns the rows, and where the next
    /// page starts. `before`: the rows of earlier pages. `apart`: the transaction of the page, if it has its own.
    async fn page(
        &self,
        range: &ScanRange,
        before: u64,
        mut apart: Option<&mut Transaction>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<(Vec<Row>, Option<Key>), SqlError> {
        let txn = transaction_of(&mut apart, ctx);
        let page = txn.scan(range, PAGE_ROWS).await.map_err(storage_error)?;
        if page.resume.as_ref().is_some_and(|resume| *resume <= range.start) {
            return Err(CodecError::new("page of a table", "does not advance").into());
        }
        let start_ts = txn.take_start_ts().await.map_err(storage_error)?;
        let first_id = txn.changes() as u64;
        let (mut rows, mut keys, mut turn) = (Vec::with_capacity(page.pairs.len()), Vec::new(), Turn::new());
        for (at, (key, value)) in page.pairs.into_iter().enumerate() {
            let row = cursor::decode(self.old, &key, &value, &vec![true; self.old.columns.len()])?;
            let row = self.new_row(row, before + at as u64, ctx).await?;
            self.put_row((at, key, &row), (start_ts, first_id + at as u64), &mut keys)?;
            rows.push(row);
            turn.spend(STORE_UNITS * (1 + self.write.indexes.len())).await;
        }
        let txn = transaction_of(&mut apart, ctx);
        for (key, parent) in &self.parents {
            let it = ForeignKeyOf { key, child: &self.write.table, parent };
            stored_references::check_rows(it, &rows, txn, &self.io).await?;
        }
        for NewKey { key, value, unique } in keys {
            let written = if unique.is_some() { txn.insert(key, value) } else { txn.put(key, value) };
            match written {
                Ok(()) => {}
                Err(TxnError::AlreadyExists { key }) => return Err(self.duplicate(&rows, &key)?),
                Err(error) => return Err(storage_error(error)),
            }
        }
        Ok((rows, page.resume))
    }

    /// Adds what a row becomes. `id`: what makes its hidden row id, if it gets one.
    fn put_row(
        &self,
        (at, old_key, row): (usize, Key, &Row),
        id: (Timestamp, u64),
        out: &mut Vec<NewKey>,
    ) -> Result<(), SqlError> {
        let new = &*self.write.table;
        let is_rewritten = new.storage != self.old.storage;
        let key = match is_rewritten {
            false => old_key,
            true => self.new_key(row, id)?,
        };
        if is_rewritten {
            let unique = (!new.has_hidden_key()).then_some((at, None));
            out.push(NewKey { key: key.clone(), value: row::encode(new, row), unique });
        }
        for (place, (index, bound)) in new.indexes.iter().zip(&self.write.indexes).enumerate() {
            if self.old.indexes.iter().any(|known| known.storage == index.storage) {
                continue;
            }
            if let Some(entry) = entry_of(&self.write, (index, bound), (&key, row), &self.env())? {
                let unique = entry.is_unique.then_some((at, Some(place)));
                out.push(NewKey { key: entry.key, value: entry.value, unique });
            }
        }
        Ok(())
    }

    fn new_key(&self, row: &Row, (start_ts, number): (Timestamp, u64)) -> Result<Key, SqlError> {
        let new = &*self.write.table;
        if new.has_hidden_key() {
            return Ok(key::hidden_key(new.storage, start_ts, number));
        }
        let null = new.primary_key.iter().find(|at| row.get(**at).is_none_or(Datum::is_null));
        if let Some(column) = null.and_then(|at| new.columns.get(*at)) {
            return Err(contains_nulls(new, column, &self.io));
        }
        Ok(key::row_key(new, row).ok_or(CodecError::new("row", "its key is not complete"))?)
    }

    /// The error of two rows with the same key. One of them is in `rows`.
    fn duplicate(&self, rows: &[Row], taken: &Key) -> Result<SqlError, SqlError> {
        let table = &*self.write.table;
        let env = self.env();
        for row in rows {
            if !table.has_hidden_key() && key::row_key(table, row).as_ref() == Some(taken) {
                return Ok(duplicate_rows(table, (&table.key_name, None), row, &self.io));
            }
            for (index, bound) in table.indexes.iter().zip(&self.write.indexes) {
                // The key of a unique entry does not tell the row.
                let entry = entry_of(&self.write, (index, bound), (taken, row), &env)?;
                if entry.is_some_and(|entry| entry.is_unique && entry.key == *taken) {
                    let values: Vec<Datum> = values_of(bound, row, &env)?;
                    return Ok(duplicate_rows(table, (&index.name, Some(index)), &values, &self.io));
                }
            }
        }
        Ok(TxnError::AlreadyExists { key: taken.clone() }.into())
    }

    /// The environment of the expressions of indexes, which depend on nothing but the row.
    fn env(&self) -> Env<'_> {
        Env {
            params: &[],
            io: self.io,
            user: "",
            database: "",
            current_schema: None,
            session: &NoSession,
            first_outer: 0,
            subqueries: None,
            locals: &[],
        }
    }
}

/// The transaction of a page: one of its own, or that of the schema change.
fn transaction_of<'t>(apart: &'t mut Option<&mut Transaction>, ctx: &'t mut ExecContext<'_>) -> &'t mut Transaction {
    match apart.as_deref_mut() {
        Some(txn) => txn,
        None => &mut *ctx.txn,
    }
}

/// 23502 for NULL in a column that must not have it any more.
fn contains_nulls(table: &Table, column: &Column, io: &IoEnv<'_>) -> SqlError {
    let message = format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name);
    of_column(SqlError::new(SqlState::NOT_NULL_VIOLATION, message), (table, column), io)
}

/// Names a column in an error.
fn of_column(mut error: SqlError, (table, column): (&Table, &Column), io: &IoEnv<'_>) -> SqlError {
    error.constraint = Some(Box::new(ConstraintFields {
        schema: schema_name(table, io),
        table: Some(table.name.clone()),
        data_type: None,
        column: Some(column.name.clone()),
        constraint: None,
    }));
    error
}
