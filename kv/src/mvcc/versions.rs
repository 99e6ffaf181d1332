//! A cursor over the versions of keys in `Cf::Write`, newest first, and the long values that they refer to.

use bytes::Bytes;
use engine::Cf;
use engine::store::{Cursor, Reader, is_version_of};
use tso::Timestamp;

use super::mark::is_mark;
use super::write::{WriteKind, WriteRecord};
use crate::error::{MvccError, Result};
use crate::key::{TS_LEN, push_ts, split_ts, versioned};

/// A cursor over the write records of one key at a time. Each call names the key in storage form.
pub struct Versions {
    cursor: Box<dyn Cursor>,
    /// Buffer for the target of a seek.
    target: Vec<u8>,
}

impl Versions {
    /// A cursor over the versions of one key, given in storage form.
    pub fn of_key<R: Reader + ?Sized>(reader: &R, storage: &[u8]) -> Result<Versions> {
        Versions::of_range(reader, storage, &after_versions(storage))
    }

    /// A cursor over the versions of the keys from `first` to `last`, both included, given in storage form.
    pub fn of_keys<R: Reader + ?Sized>(reader: &R, first: &[u8], last: &[u8]) -> Result<Versions> {
        Versions::of_range(reader, first, &after_versions(last))
    }

    fn of_range<R: Reader + ?Sized>(reader: &R, lower: &[u8], upper: &[u8]) -> Result<Versions> {
        Ok(Versions { cursor: reader.version_cursor(lower, upper)?, target: Vec::new() })
    }

    /// Moves to the newest record of the key at or below `ts`. Returns whether there is one.
    pub fn seek(&mut self, storage: &[u8], ts: Timestamp) -> Result<bool> {
        self.target.clear();
        self.target.extend_from_slice(storage);
        push_ts(&mut self.target, ts);
        Ok(self.cursor.seek(&self.target)? && self.is_on(storage))
    }

    /// Moves to the oldest record of the key at or above `ts`. Returns whether there is one.
    pub fn seek_oldest(&mut self, storage: &[u8], ts: Timestamp) -> Result<bool> {
        self.target.clear();
        self.target.extend_from_slice(storage);
        push_ts(&mut self.target, ts);
        Ok(self.cursor.seek_for_prev(&self.target)? && self.is_on(storage))
    }

    /// The timestamp and the record at the cursor. Requires that the last move returned true.
    pub fn current(&self) -> Result<(Timestamp, WriteRecord<'_>)> {
        let (_, ts) = split_ts(self.cursor.key())?;
        Ok((ts, WriteRecord::decode(self.cursor.value())?))
    }

    /// Moves to the newest record at or below `ts` that sets or deletes the key. Returns whether there is one. Takes at
    /// most two seeks and one step.
    pub fn seek_data(&mut self, storage: &[u8], ts: Timestamp) -> Result<bool> {
        let mut found = self.seek(storage, ts)?;
        while found {
            let WriteKind::Lock { last_data } = self.current()?.1.kind else { return Ok(true) };
            let Some(last_data) = last_data else { return Ok(false) };
            // Most often it is the next record, and a step is cheaper than a seek.
            found = self.cursor.next()? && self.is_on(storage);
            if found && self.current()?.0 > last_data {
                found = self.seek(storage, last_data)?;
            }
        }
        Ok(false)
    }

    /// Moves to the next older record of the key. Requires that the last move returned true. Returns whether there is
    /// one.
    pub fn step(&mut self, storage: &[u8]) -> Result<bool> {
        Ok(self.cursor.next()? && self.is_on(storage))
    }

    fn is_on(&self, storage: &[u8]) -> bool {
        is_version_of(self.cursor.key(), storage)
    }
}

/// A bound above every version of the key and below every version of a greater key.
pub(super) fn after_versions(storage: &[u8]) -> Vec<u8> {
    let mut bound = Vec::with_capacity(storage.len() + TS_LEN + 1);
    bound.extend_from_slice(storage);
    bound.extend_from_slice(&[0xff; TS_LEN + 1]);
    bound
}

/// The long value that the transaction `start_ts` wrote to the key.
///
/// # Errors
///
/// [`MvccError::Collected`] if it is missing and the record that named it as well; [`MvccError::Inconsistent`] if only
/// the value is missing, or a rollback mark is in its place; [`MvccError::Store`] if the store fails.
pub fn long_value<R: Reader + ?Sized>(reader: &R, storage: &[u8], start_ts: Timestamp) -> Result<Bytes> {
    match reader.get(Cf::Default, &versioned(storage, start_ts))? {
        Some(value) if !is_mark(&value)? => Ok(Bytes::from(value)),
        found => {
            let key = storage.escape_ascii().to_string();
            // The record goes before the value, also for open snapshots: look whether a new cursor still finds it.
            if found.is_none() && !is_named(reader, storage, start_ts)? {
                return Err(MvccError::Collected { key, start_ts });
            }
            Err(MvccError::Inconsistent(format!("the value of {key} written by {start_ts} is missing")))
        }
    }
}

/// Whether there is a commit record of the transaction: the oldest one above its start_ts.
fn is_named<R: Reader + ?Sized>(reader: &R, storage: &[u8], start_ts: Timestamp) -> Result<bool> {
    let mut versions = Versions::of_key(reader, storage)?;
    Ok(versions.seek_oldest(storage, start_ts.next())? && versions.current()?.1.start_ts == start_ts)
}
