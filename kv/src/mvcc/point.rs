//! A point read of the newest state, without a snapshot.
//!
//! The order of the steps is the proof. The read looks for the lock *before* it looks for the newest version:
//!
//! 1. A transaction that prewrites after the lock was read gets a commit_ts above `start_ts`: it is fetched from the
//!    oracle after that prewrite, and `start_ts` was issued before this read, or it is computed above `max_ts`, which
//!    the caller has raised to `start_ts` before it looked at the locks in memory. The read does not need it.
//! 2. A transaction that has committed before the lock was read has removed its lock and left its commit record in one
//!    batch. Whoever sees the key without the lock sees the record from then on.
//! 3. Every other transaction that can commit at or below `start_ts` has its lock there, and the read fails with it.
//!
//! The caller proves afterwards that this replica was the leader during all of it. A long value that is missing was
//! removed between two steps, with the record that named it. Then the steps saw different states, and the caller reads
//! on a snapshot.

use std::ops::ControlFlow;

use bytes::Bytes;
use engine::Cf;
use engine::store::NewestReader;
use tso::Timestamp;

use super::lock::LockRecord;
use super::mark::is_mark;
use super::write::{WriteKind, WriteRecord};
use crate::api::LockInfo;
use crate::error::Result;
use crate::key::{Key, split_ts, versioned};

/// The outcome of a point read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointRead {
    /// The value, if there is one.
    Value(Option<Bytes>),
    /// A lock blocks the read.
    Locked(LockInfo),
    /// The steps of the read saw different states.
    Torn,
}

/// What a read finds among the versions of a key.
enum Found {
    Nothing,
    Short(Bytes),
    /// The value of this transaction, which is in `Cf::Default`.
    Long(Timestamp),
    /// A record without data. The data is at or below this timestamp.
    Below(Timestamp),
}

/// Reads the newest value of `key`, whose storage form is `storage`, committed at or before `start_ts`.
///
/// # Errors
///
/// The store fails, or its data is corrupt.
pub fn get_newest(reader: &dyn NewestReader, key: &Key, storage: &[u8], start_ts: Timestamp) -> Result<PointRead> {
    if let Some(bytes) = reader.get_newest(Cf::Lock, storage)? {
        let lock = LockRecord::decode(&bytes)?;
        if lock.blocks_read_at(start_ts, &[]) {
            return Ok(PointRead::Locked(lock.info(key.clone())));
        }
    }
    let mut found = find(reader, storage, start_ts)?;
    if let Found::Below(data) = found {
        found = find(reader, storage, data)?;
    }
    match found {
        Found::Nothing => Ok(PointRead::Value(None)),
        Found::Short(value) => Ok(PointRead::Value(Some(value))),
        Found::Long(writer) => match reader.get_newest(Cf::Default, &versioned(storage, writer))? {
            Some(value) if !is_mark(&value)? => Ok(PointRead::Value(Some(Bytes::from(value)))),
            _ => Ok(PointRead::Torn),
        },
        // The record that the first search was sent to is gone.
        Found::Below(_) => Ok(PointRead::Torn),
    }
}

/// Looks at the newest version at or below `ts`, and at the next one if the first has no data.
fn find(reader: &dyn NewestReader, storage: &[u8], ts: Timestamp) -> Result<Found> {
    let mut found = Ok(Found::Nothing);
    let mut visit = |versioned: &[u8], record: &[u8]| {
        let below = if let Ok(Found::Below(data)) = found { Some(data) } else { None };
        match inspect(versioned, record, below) {
            Ok(None) => ControlFlow::Break(()),
            Ok(Some(next)) => {
                let is_first = below.is_none() && matches!(next, Found::Below(_));
                found = Ok(next);
                // Most often the data is in the next record, and a step is cheaper than a seek.
                if is_first { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            Err(error) => {
                found = Err(error);
                ControlFlow::Break(())
            }
        }
    };
    reader.visit_versions(Cf::Write, storage, &versioned(storage, ts), &mut visit)?;
    found
}

/// What a record says, if it is at or below `below`; `None` if it is above.
fn inspect(versioned: &[u8], record: &[u8], below: Option<Timestamp>) -> Result<Option<Found>> {
    let (_, commit_ts) = split_ts(versioned)?;
    if below.is_some_and(|below| commit_ts > below) {
        return Ok(None);
    }
    let write = WriteRecord::decode(record)?;
    Ok(Some(match (write.kind, write.short_value) {
        (WriteKind::Put, Some(short)) => Found::Short(Bytes::copy_from_slice(short)),
        (WriteKind::Put, None) => Found::Long(write.start_ts),
        (WriteKind::Delete, _) | (WriteKind::Lock { last_data: None }, _) => Found::Nothing,
        (WriteKind::Lock { last_data: Some(data) }, _) => Found::Below(data),
    }))
}
