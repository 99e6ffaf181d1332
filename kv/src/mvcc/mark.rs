//! The rollback mark: a transaction was rolled back on a key, so a late prewrite of it must fail.
//!
//! A mark is in `Cf::Default` under the start_ts of its transaction, where the transaction's long value would be. A
//! transaction never has both on one key: a rollback replaces the staged value by the mark, and a prewrite fails once
//! the mark is there. So a mark never shares a row with data, and no reader of committed data passes one, however many
//! there are. A long value has more than [`SHORT_VALUE_MAX`] bytes and a mark has one, which tells them apart.

use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use crate::error::{MvccError, Result};
use crate::key::versioned;
use crate::size::SHORT_VALUE_MAX;

/// The stored form: the format version.
const MARK: [u8; 1] = [1];

/// Adds the mark of the transaction `start_ts` on a key, given in storage form, to the batch.
pub fn put_mark(batch: &mut WriteBatch, storage: &[u8], start_ts: Timestamp) {
    batch.put(Cf::Default, &versioned(storage, start_ts), &MARK);
}

/// Whether the transaction `start_ts` has a mark on a key, given in storage form.
///
/// # Errors
///
/// [`MvccError::Record`] if the row is neither a mark nor a long value; [`MvccError::Store`] if the store fails.
pub fn has_mark<R: Reader + ?Sized>(reader: &R, storage: &[u8], start_ts: Timestamp) -> Result<bool> {
    reader.get(Cf::Default, &versioned(storage, start_ts))?.map_or(Ok(false), |row| is_mark(&row))
}

/// Whether a row of `Cf::Default` is a mark. Otherwise it is a long value.
///
/// # Errors
///
/// [`MvccError::Record`] if it is neither.
pub fn is_mark(row: &[u8]) -> Result<bool> {
    if row.len() > SHORT_VALUE_MAX {
        Ok(false)
    } else if row == MARK {
        Ok(true)
    } else {
        Err(MvccError::Record { record: "rollback mark", what: "unknown version or length" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let mut batch = WriteBatch::new();
        put_mark(&mut batch, b"k", Timestamp::from_raw(0x0102_0304_0506_0708));
        let key = b"k\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7";
        let rows: Vec<_> = batch.iter().collect();
        assert_eq!(rows, [engine::Op::Put { cf: Cf::Default, key, value: b"\x01" }]);
    }

    #[test]
    fn a_row_is_a_mark_or_a_long_value_or_malformed() {
        assert!(is_mark(&MARK).unwrap());
        assert!(!is_mark(&[1; SHORT_VALUE_MAX + 1]).unwrap());
        for row in [&b""[..], b"\x02", b"\x01\x01", &[1; SHORT_VALUE_MAX]] {
            assert_eq!(is_mark(row).unwrap_err().to_string(), "rollback mark record: unknown version or length");
        }
    }
}
