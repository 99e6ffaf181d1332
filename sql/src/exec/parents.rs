//! Foreign keys at the side of the row that refers: looks up the rows that it refers to, and locks them FOR KEY SHARE.
//!
//! Values wait until the statement is done, because it may add the rows itself ([`super::references`]). If many wait,
//! those are looked up before that refer to tables which the statement does not change.

use std::collections::HashMap;

use bytes::Bytes;
use kv::Key;
use kv::api::LockMode;

use super::context::ExecContext;
use super::cursor;
use super::foreign_key::ForeignKeyOf;
use super::locking::{Lock, lock_newest};
use super::reference_queue::KeyPlace;
use super::rows::Row;
use crate::codec::index::row_key;
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::plan::References;
use crate::table::{ForeignKey, KeyOf, Table};
use pgtypes::Datum;

/// Keys that are looked up together.
const CHUNK: usize = 512;
/// The work of looking one of them up, in units of [`Turn`].
const LOOK_UNITS: usize = 20;

/// Looks up what can be before the end of the statement, if much waits.
pub(super) async fn check_early(ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    let Some(plan) = ctx.references.overfull() else { return Ok(()) };
    let Some(references) = &plan.references else { return Ok(()) };
    let is_stable = |place: KeyPlace| {
        foreign_key(references, place).is_ok_and(|(_, key)| !references.children.contains_key(&key.parent))
    };
    let checks = ctx.references.take_checks(is_stable);
    check_parents(references, checks, ctx).await
}

fn foreign_key(references: &References, (child, at): KeyPlace) -> Result<(&Table, &ForeignKey), SqlError> {
    let child = references.tables.get(&child).ok_or_else(|| SqlError::internal("a table is missing"))?;
    let key = child.foreign_keys.get(at).ok_or_else(|| SqlError::internal("a foreign key is missing"))?;
    Ok((child, key))
}

/// 23503 for the first values that do not exist.
pub(super) async fn check_parents(
    references: &References,
    checks: Vec<(KeyPlace, Vec<Datum>)>,
    ctx: &mut ExecContext<'_>,
) -> Result<(), SqlError> {
    let mut by_key: Vec<(KeyPlace, Vec<Vec<Datum>>)> = Vec::new();
    for (place, values) in checks {
        match by_key.iter_mut().find(|(known, _)| *known == place) {
            Some((_, listed)) => listed.push(values),
            None => by_key.push((place, vec![values])),
        }
    }
    let mut turn = Turn::new();
    for (place, listed) in by_key {
        let (child, key) = foreign_key(references, place)?;
        let parent = references.parents.get(&key.parent).ok_or_else(|| SqlError::internal("a table is missing"))?;
        let it = ForeignKeyOf { key, child, parent: &parent.table };
        for chunk in listed.chunks(CHUNK) {
            turn.spend(chunk.len() * LOOK_UNITS).await;
            let mut keys = Vec::with_capacity(chunk.len());
            for values in chunk {
                match it.store_key(values, &ctx.io)? {
                    Some(key) => keys.push(key),
                    None => return Err(it.missing(values, &ctx.io)),
                }
            }
            let found = existing(references, it, keys.clone(), ctx).await?;
            if let Some((values, _)) = chunk.iter().zip(&keys).find(|(_, key)| !found.contains(key)) {
                return Err(it.missing(values, &ctx.io));
            }
        }
    }
    Ok(())
}

/// Those of some keys of the parent that exist. Their rows are locked FOR KEY SHARE.
pub(super) async fn existing(
    references: &References,
    it: ForeignKeyOf<'_>,
    mut keys: Vec<Key>,
    ctx: &mut ExecContext<'_>,
) -> Result<Vec<Key>, SqlError> {
    let access = references.parents.get(&it.parent.id).ok_or_else(|| SqlError::internal("a table is missing"))?;
    keys.sort_unstable();
    keys.dedup();
    let lock = Lock::to_change(LockMode::KeyShare, ctx);
    let index = match it.key_of()? {
        KeyOf::Primary => None,
        KeyOf::Index(at) => it.parent.indexes.get(at),
    };
    let rows: Vec<Key> = match index {
        None if ctx.txn.has_statements() => keys,
        // A row that the transaction does not see does not exist for it.
        None => ctx.txn.batch_get(&keys).await.map_err(storage_error)?.into_iter().map(|(key, _)| key).collect(),
        Some(index) => {
            let entries = ctx.txn.batch_get(&keys).await.map_err(storage_error)?;
            let rows = entries.iter().map(|(key, value)| Ok(row_key(it.parent, index, (key, value))?));
            rows.collect::<Result<Vec<Key>, SqlError>>()?
        }
    };
    let locked: HashMap<Key, Bytes> = lock_newest(access, &rows, lock, ctx).await?.into_iter().collect();
    let Some(_) = index else { return Ok(locked.into_keys().collect()) };
    let mut found = Vec::with_capacity(locked.len());
    for (key, value) in &locked {
        found.push(it.key_of_row(&decode(it.parent, key, value)?)?);
    }
    Ok(found)
}

fn decode(table: &Table, key: &Key, value: &[u8]) -> Result<Row, SqlError> {
    Ok(cursor::decode(table, key, value, &vec![true; table.columns.len()])?)
}
