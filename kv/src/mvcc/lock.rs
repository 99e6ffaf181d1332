//! The lock record: a transaction intends to change a key, and stages the new value.
//!
//! Prewrite writes it, commit and rollback remove it. Reads and other writes of the key check it.

use bytes::Bytes;
use tso::Timestamp;

use crate::api::LockInfo;
use crate::error::{MvccError, Result};
use crate::key::Key;
use crate::size::SHORT_VALUE_MAX;

/// The format version that this program writes and reads.
const VERSION: u8 = 2;
/// Bytes before the primary key: version, kind, flags, start_ts, ttl_ms, min_commit_ts, length of the primary.
const HEADER: usize = 3 + 3 * 8 + 4;
/// Flag: a short value follows the primary key.
const SHORT_VALUE: u8 = 1;
/// Flag: a lock of an async commit. Its secondaries follow the primary key.
const ASYNC: u8 = 2;
/// Bytes of a count, and of the length of a key.
const COUNT: usize = 4;

/// The change that the commit of a lock makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Sets the value.
    Put,
    /// Deletes the key.
    Delete,
    /// Changes nothing; it only conflicts with other writers.
    Lock,
}

/// The lock of one key.
///
/// Invariants:
/// 1. `min_commit_ts > start_ts`.
/// 2. A short value has at most [`SHORT_VALUE_MAX`] bytes and belongs to a `Put`.
/// 3. `min_commit_ts` of an async lock never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRecord {
    /// The change that the commit makes.
    pub kind: LockKind,
    /// The key whose record decides the status of the transaction.
    pub primary: Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// Life of the lock, in milliseconds from the physical part of `start_ts`.
    pub ttl_ms: u64,
    /// The lowest commit_ts at which the lock can be committed.
    pub min_commit_ts: Timestamp,
    /// The staged value of a `Put`; `None` if it is long and therefore in `Cf::Default`.
    pub short_value: Option<Bytes>,
    /// Set for a lock of an async commit: the other keys of the transaction if this is its primary, otherwise empty.
    pub async_secondaries: Option<Vec<Key>>,
}

impl LockKind {
    const fn code(self) -> u8 {
        match self {
            LockKind::Put => 1,
            LockKind::Delete => 2,
            LockKind::Lock => 3,
        }
    }

    const fn from_code(code: u8) -> Option<LockKind> {
        match code {
            1 => Some(LockKind::Put),
            2 => Some(LockKind::Delete),
            3 => Some(LockKind::Lock),
            _ => None,
        }
    }
}

impl LockRecord {
    /// Whether a read at `ts` must wait for the transaction, because it may still commit a change at or below `ts`. It
    /// passes the transactions in `pass`, which certainly do not.
    pub fn blocks_read_at(&self, ts: Timestamp, pass: &[Timestamp]) -> bool {
        self.kind != LockKind::Lock && self.min_commit_ts <= ts && !pass.contains(&self.start_ts)
    }

    /// Whether the ttl ended before `now`.
    pub fn is_expired_at(&self, now: Timestamp) -> bool {
        self.start_ts.physical_ms().saturating_add(self.ttl_ms) < now.physical_ms()
    }

    /// The lock as responses report it.
    pub fn info(&self, key: Key) -> LockInfo {
        LockInfo { key, primary: self.primary.clone(), start_ts: self.start_ts, ttl_ms: self.ttl_ms }
    }

    /// The stored form. Panics if an invariant does not hold.
    pub fn encode(&self) -> Vec<u8> {
        self.check();
        let primary = self.primary.as_bytes();
        let value = self.short_value.as_deref().unwrap_or_default();
        let mut out = Vec::with_capacity(HEADER + primary.len() + value.len());
        let flags = if self.short_value.is_some() { SHORT_VALUE } else { 0 };
        let flags = if self.async_secondaries.is_some() { flags | ASYNC } else { flags };
        out.extend_from_slice(&[VERSION, self.kind.code(), flags]);
        out.extend_from_slice(&self.start_ts.raw().to_be_bytes());
        out.extend_from_slice(&self.ttl_ms.to_be_bytes());
        out.extend_from_slice(&self.min_commit_ts.raw().to_be_bytes());
        push_key(&mut out, primary);
        if let Some(secondaries) = &self.async_secondaries {
            push_count(&mut out, secondaries.len());
            secondaries.iter().for_each(|key| push_key(&mut out, key.as_bytes()));
        }
        out.extend_from_slice(value);
        out
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    ///
    /// [`MvccError::Record`] if it is malformed or of an unknown version.
    pub fn decode(bytes: &[u8]) -> Result<LockRecord> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(version_or(bytes, "too short"));
        };
        let [version, kind, flags, fields @ ..] = header;
        if *version != VERSION {
            return Err(malformed("unknown version"));
        }
        let kind = LockKind::from_code(*kind).ok_or(malformed("unknown kind"))?;
        if flags & !(SHORT_VALUE | ASYNC) != 0 {
            return Err(malformed("unknown flags"));
        }
        let (numbers, tail) = fields.as_chunks::<8>();
        let [start_ts, ttl_ms, min_commit_ts] = numbers else { return Err(malformed("too short")) };
        let mut primary_len = [0; 4];
        primary_len.copy_from_slice(tail);
        let Some((primary, value)) = rest.split_at_checked(u32::from_be_bytes(primary_len) as usize) else {
            return Err(malformed("primary key is cut off"));
        };
        let (async_secondaries, value) = if flags & ASYNC != 0 {
            let (secondaries, value) = split_keys(value).ok_or(malformed("secondaries are cut off"))?;
            (Some(secondaries), value)
        } else {
            (None, value)
        };
        let has_value = flags & SHORT_VALUE != 0;
        if value.len() > SHORT_VALUE_MAX || (!value.is_empty() && !has_value) || (has_value && kind != LockKind::Put) {
            return Err(malformed("short value does not fit the header"));
        }
        let lock = LockRecord {
            kind,
            primary: Key::new(primary.to_vec()),
            start_ts: Timestamp::from_raw(u64::from_be_bytes(*start_ts)),
            ttl_ms: u64::from_be_bytes(*ttl_ms),
            min_commit_ts: Timestamp::from_raw(u64::from_be_bytes(*min_commit_ts)),
            short_value: has_value.then(|| Bytes::copy_from_slice(value)),
            async_secondaries,
        };
        if lock.min_commit_ts <= lock.start_ts {
            return Err(malformed("min_commit_ts is not above start_ts"));
        }
        Ok(lock)
    }

    fn check(&self) {
        assert!(self.min_commit_ts > self.start_ts, "invariant 1: {self:?}");
        let short = self.short_value.as_ref();
        assert!(
            short.is_none_or(|v| v.len() <= SHORT_VALUE_MAX && self.kind == LockKind::Put),
            "invariant 2: {self:?}"
        );
    }
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    let short = u32::try_from(count).unwrap_or(u32::MAX);
    assert_eq!(short as usize, count, "a key and a transaction are far below 4 GiB");
    out.extend_from_slice(&short.to_be_bytes());
}

fn push_key(out: &mut Vec<u8>, key: &[u8]) {
    push_count(out, key.len());
    out.extend_from_slice(key);
}

fn split_count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<COUNT>()?;
    Some((u32::from_be_bytes(*count) as usize, rest))
}

/// Splits a count and as many keys from the rest.
fn split_keys(bytes: &[u8]) -> Option<(Vec<Key>, &[u8])> {
    let (count, mut rest) = split_count(bytes)?;
    let mut keys = Vec::new();
    for _ in 0..count {
        let (len, tail) = split_count(rest)?;
        let (key, tail) = tail.split_at_checked(len)?;
        keys.push(Key::new(key.to_vec()));
        rest = tail;
    }
    Some((keys, rest))
}

const fn malformed(what: &'static str) -> MvccError {
    MvccError::Record { record: "lock", what }
}

/// The error of a record whose length is wrong. A newer format may be shorter, so an unknown version is reported first.
fn version_or(bytes: &[u8], what: &'static str) -> MvccError {
    malformed(if bytes.first().is_some_and(|v| *v != VERSION) { "unknown version" } else { what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lock(kind: LockKind, short_value: Option<&'static [u8]>) -> LockRecord {
        LockRecord {
            kind,
            primary: Key::from_static(b"pk"),
            start_ts: Timestamp::from_raw(0x0102_0304_0506_0708),
            ttl_ms: 3_000,
            min_commit_ts: Timestamp::from_raw(0x0102_0304_0506_0709),
            short_value: short_value.map(Bytes::from_static),
            async_secondaries: None,
        }
    }

    #[test]
    fn golden_bytes() {
        let put = lock(LockKind::Put, Some(b"val"));
        let expected = b"\x02\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\x0b\xb8\
            \x01\x02\x03\x04\x05\x06\x07\x09\0\0\0\x02pkval";
        assert_eq!(put.encode(), expected);
        assert_eq!(LockRecord::decode(expected).unwrap(), put);

        let delete = lock(LockKind::Delete, None);
        let expected = b"\x02\x02\0\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\x0b\xb8\
            \x01\x02\x03\x04\x05\x06\x07\x09\0\0\0\x02pk";
        assert_eq!(delete.encode(), expected);

        let secondaries = [Key::from_static(b"s"), Key::from_static(b"tt")];
        let primary = LockRecord { async_secondaries: Some(secondaries.into()), ..put };
        let expected = b"\x02\x01\x03\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\x0b\xb8\
            \x01\x02\x03\x04\x05\x06\x07\x09\0\0\0\x02pk\0\0\0\x02\0\0\0\x01s\0\0\0\x02ttval";
        assert_eq!(primary.encode(), expected);
        assert_eq!(LockRecord::decode(expected).unwrap(), primary);
    }

    #[test]
    fn records_round_trip() {
        let long_value = lock(LockKind::Put, None);
        let empty_value = lock(LockKind::Put, Some(b""));
        let secondary = LockRecord { async_secondaries: Some(Vec::new()), ..lock(LockKind::Put, Some(b"v")) };
        for record in
            [secondary, long_value, empty_value, lock(LockKind::Lock, None), lock(LockKind::Put, Some(&[7; 255]))]
        {
            assert_eq!(LockRecord::decode(&record.encode()).unwrap(), record);
        }
    }

    #[test]
    fn malformed_records_are_errors() {
        let good = lock(LockKind::Delete, None).encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            LockRecord::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(with(0, 3), "lock record: unknown version");
        assert_eq!(with(0, 1), "lock record: unknown version");
        assert_eq!(with(1, 9), "lock record: unknown kind");
        assert_eq!(with(2, 4), "lock record: unknown flags");
        assert_eq!(with(2, 2), "lock record: secondaries are cut off");
        assert_eq!(with(2, 1), "lock record: short value does not fit the header");
        assert_eq!(with(30, 3), "lock record: primary key is cut off");
        assert_eq!(with(30, 1), "lock record: short value does not fit the header");
        assert_eq!(with(26, 0), "lock record: min_commit_ts is not above start_ts");
        assert_eq!(LockRecord::decode(&[3]).unwrap_err().to_string(), "lock record: unknown version");
        assert_eq!(LockRecord::decode(&[2, 1]).unwrap_err().to_string(), "lock record: too short");
    }

    #[test]
    fn a_lock_blocks_only_reads_that_its_commit_could_change() {
        let put = lock(LockKind::Put, None);
        assert!(!put.blocks_read_at(put.start_ts, &[]));
        assert!(put.blocks_read_at(put.start_ts.next(), &[put.start_ts.next()]));
        assert!(!put.blocks_read_at(put.start_ts.next(), &[put.start_ts]));
        assert!(!lock(LockKind::Lock, None).blocks_read_at(Timestamp::MAX, &[]));
        let pushed = LockRecord { min_commit_ts: put.start_ts.next().next(), ..put };
        assert!(!pushed.blocks_read_at(pushed.start_ts.next(), &[]));
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding_or_fails(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = bytes;
            if let Some(version) = bytes.first_mut() {
                *version = VERSION;
            }
            if let Ok(lock) = LockRecord::decode(&bytes) {
                prop_assert_eq!(lock.encode(), bytes);
            }
        }
    }
}
