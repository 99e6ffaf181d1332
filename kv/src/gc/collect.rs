//! The decision which records of a key are garbage. Pure: one record after the other, and what is known of the rest.
//!
//! With S the safe point, the records of one key, newest first, of `Cf::Write`:
//!
//! ```text
//! commit_ts 140  put      above S: stays
//! ----------------------- S = 130
//! commit_ts 125  lock     goes: no writer that it could conflict with starts at or below S any more
//! commit_ts 120  put      stays: a read at 130 sees it
//! commit_ts 115  lock     goes
//! commit_ts 110  delete   goes: a read at or above S stops at 120
//! commit_ts 100  put      goes, and its long value with it
//! ```
//!
//! If the newest data record at or below S is a delete, it hides what is older. It goes with or after the last older
//! record of its key, never before: whoever calls says whether there is one.
//!
//! The record of a lock above S may name a data record at or below S that is gone: the newest one, a delete. Nothing
//! older is left then, so a reader that looks there finds nothing, as it should.
//!
//! Rows of `Cf::Default` go by their start_ts: a mark at or below S, because no prewrite with this start_ts is accepted
//! any more, and a long value at or below S that no record names. Every transaction at or below S is decided, so a
//! record that is not there does not come later.

use tso::Timestamp;

use crate::error::Result;
use crate::key::{Key, split_ts};
use crate::mvcc::mark::is_mark;
use crate::mvcc::{WriteKind, WriteRecord};

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// It is garbage.
    Drop {
        /// If the record names a long value: its start_ts. No read looks for that value any more.
        value: Option<Timestamp>,
    },
}

/// Decides on the records of `Cf::Write`, fed in key order: of each key the newest first.
///
/// Invariant: `is_covered` is true if and only if a data record of `key` at or below `safe_point` was fed. Everything
/// older of this key is then garbage.
#[derive(Clone, Debug)]
pub struct Collector {
    safe_point: Timestamp,
    /// The key of the last record, in storage form.
    key: Vec<u8>,
    is_covered: bool,
}

impl Collector {
    /// A collector of what no read at or above `safe_point` needs.
    pub const fn new(safe_point: Timestamp) -> Collector {
        Collector { safe_point, key: Vec::new(), is_covered: false }
    }

    /// Decides on the next record. Not all records of a key need to be fed. `has_older` says whether the store may hold
    /// a record of the same key that is older than this one and stays; it is called for a delete that hides nothing but
    /// those.
    ///
    /// # Errors
    ///
    /// [`MvccError`](crate::error::MvccError) if key or record are malformed. The record stays then, and so do the
    /// older ones of its key that no later data record covers.
    pub fn next(&mut self, versioned: &[u8], record: &[u8], has_older: impl FnOnce() -> bool) -> Result<Verdict> {
        let (storage, commit_ts) = split_ts(versioned)?;
        if self.key != storage {
            self.key.clear();
            self.key.extend_from_slice(storage);
            self.is_covered = false;
        }
        if commit_ts > self.safe_point {
            return Ok(Verdict::Keep);
        }
        let write = WriteRecord::decode(record)?;
        let is_long = write.kind == WriteKind::Put && write.short_value.is_none();
        let drop = Verdict::Drop { value: is_long.then_some(write.start_ts) };
        if self.is_covered {
            return Ok(drop);
        }
        self.is_covered = write.kind.is_data();
        Ok(match write.kind {
            WriteKind::Put => Verdict::Keep,
            WriteKind::Delete if has_older() => Verdict::Keep,
            WriteKind::Delete | WriteKind::Lock { .. } => drop,
        })
    }
}

/// Whether a row of `Cf::Default` is garbage. `is_named` says whether a lock or a write record of the key, given in
/// storage form, names the long value of a transaction. Rows that are neither marks nor long values, such as the
/// records of the system region, stay.
///
/// # Errors
///
/// [`MvccError`](crate::error::MvccError) if the row is malformed, or that of `is_named`. The row stays then.
pub fn is_garbage_row(
    safe_point: Timestamp,
    key: &[u8],
    row: &[u8],
    is_named: impl FnOnce(&[u8], Timestamp) -> Result<bool>,
) -> Result<bool> {
    let Ok((storage, start_ts)) = split_ts(key) else { return Ok(false) };
    if start_ts > safe_point || Key::from_storage(storage).is_err() {
        return Ok(false);
    }
    Ok(is_mark(row)? || !is_named(storage, start_ts)?)
}

#[cfg(test)]
mod tests;
