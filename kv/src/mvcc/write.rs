//! The write record: what a transaction did to a key.
//!
//! A commit's record is at its commit_ts, a rollback's at the start_ts of the transaction. If one transaction commits a
//! key at exactly the start_ts of another that is rolled back there, both share one record: the commit, with the flag
//! `overlapped_rollback`.

use tso::Timestamp;

use crate::error::{MvccError, Result};
use crate::size::SHORT_VALUE_MAX;

/// The format version that this program writes and reads.
const VERSION: u8 = 1;
/// Bytes before the short value: version, kind, flags, start_ts.
const HEADER: usize = 3 + 8;
/// Flag: the rest of the record is a short value.
const SHORT_VALUE: u8 = 1;
/// Flag: the transaction whose start_ts is this record's timestamp is rolled back.
const OVERLAPPED_ROLLBACK: u8 = 2;

/// What a transaction did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// It set the value.
    Put,
    /// It deleted the key.
    Delete,
    /// It committed without a change; the record conflicts with other writers.
    Lock,
    /// It was rolled back. A later prewrite of it must fail.
    Rollback,
}

/// What a transaction did to a key. Borrows the value from the stored bytes.
///
/// Invariants:
/// 1. A short value has at most [`SHORT_VALUE_MAX`] bytes and belongs to a `Put`.
/// 2. A rollback has no flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRecord<'a> {
    /// What the transaction did.
    pub kind: WriteKind,
    /// The transaction.
    pub start_ts: Timestamp,
    /// The value of a `Put`; `None` if it is long and therefore in `Cf::Default`.
    pub short_value: Option<&'a [u8]>,
    /// The transaction whose start_ts is the timestamp of this record is rolled back.
    pub overlapped_rollback: bool,
}

impl WriteKind {
    /// Whether a read stops at this record: it sets or deletes the key.
    pub const fn is_data(self) -> bool {
        matches!(self, WriteKind::Put | WriteKind::Delete)
    }

    const fn code(self) -> u8 {
        match self {
            WriteKind::Put => 1,
            WriteKind::Delete => 2,
            WriteKind::Lock => 3,
            WriteKind::Rollback => 4,
        }
    }

    const fn from_code(code: u8) -> Option<WriteKind> {
        match code {
            1 => Some(WriteKind::Put),
            2 => Some(WriteKind::Delete),
            3 => Some(WriteKind::Lock),
            4 => Some(WriteKind::Rollback),
            _ => None,
        }
    }
}

impl<'a> WriteRecord<'a> {
    /// The record of a rollback.
    pub const fn rollback(start_ts: Timestamp) -> WriteRecord<'static> {
        WriteRecord { kind: WriteKind::Rollback, start_ts, short_value: None, overlapped_rollback: false }
    }

    /// The stored form. Panics if an invariant does not hold.
    pub fn encode(&self) -> Vec<u8> {
        let short = self.short_value;
        assert!(
            short.is_none_or(|v| v.len() <= SHORT_VALUE_MAX && self.kind == WriteKind::Put),
            "invariant 1: {self:?}"
        );
        assert!(self.kind != WriteKind::Rollback || !self.overlapped_rollback, "invariant 2: {self:?}");
        let mut flags = 0;
        if short.is_some() {
            flags |= SHORT_VALUE;
        }
        if self.overlapped_rollback {
            flags |= OVERLAPPED_ROLLBACK;
        }
        let value = short.unwrap_or_default();
        let mut out = Vec::with_capacity(HEADER + value.len());
        out.extend_from_slice(&[VERSION, self.kind.code(), flags]);
        out.extend_from_slice(&self.start_ts.raw().to_be_bytes());
        out.extend_from_slice(value);
        out
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    ///
    /// [`MvccError::Record`] if it is malformed or of an unknown version.
    pub fn decode(bytes: &'a [u8]) -> Result<WriteRecord<'a>> {
        let Some(([version, kind, flags, start_ts @ ..], value)) = bytes.split_first_chunk::<HEADER>() else {
            let newer = bytes.first().is_some_and(|v| *v != VERSION);
            return Err(malformed(if newer { "unknown version" } else { "too short" }));
        };
        if *version != VERSION {
            return Err(malformed("unknown version"));
        }
        let kind = WriteKind::from_code(*kind).ok_or(malformed("unknown kind"))?;
        if flags & !(SHORT_VALUE | OVERLAPPED_ROLLBACK) != 0 || (kind == WriteKind::Rollback && *flags != 0) {
            return Err(malformed("unknown flags"));
        }
        let has_value = flags & SHORT_VALUE != 0;
        if value.len() > SHORT_VALUE_MAX || (!value.is_empty() && !has_value) || (has_value && kind != WriteKind::Put) {
            return Err(malformed("short value does not fit the header"));
        }
        Ok(WriteRecord {
            kind,
            start_ts: Timestamp::from_raw(u64::from_be_bytes(*start_ts)),
            short_value: has_value.then_some(value),
            overlapped_rollback: flags & OVERLAPPED_ROLLBACK != 0,
        })
    }
}

const fn malformed(what: &'static str) -> MvccError {
    MvccError::Record { record: "write", what }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TS: Timestamp = Timestamp::from_raw(0x0102_0304_0506_0708);

    #[test]
    fn golden_bytes() {
        let put =
            WriteRecord { kind: WriteKind::Put, start_ts: TS, short_value: Some(b"val"), overlapped_rollback: false };
        let expected = b"\x01\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08val";
        assert_eq!(put.encode(), expected);
        assert_eq!(WriteRecord::decode(expected).unwrap(), put);
        assert_eq!(expected[HEADER..], *b"val");

        let delete =
            WriteRecord { kind: WriteKind::Delete, start_ts: TS, short_value: None, overlapped_rollback: true };
        let expected = b"\x01\x02\x02\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(delete.encode(), expected);
        assert_eq!(WriteRecord::decode(expected).unwrap(), delete);

        let expected = b"\x01\x04\0\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(WriteRecord::rollback(TS).encode(), expected);
    }

    #[test]
    fn malformed_records_are_errors() {
        let good = WriteRecord::rollback(TS).encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            WriteRecord::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(with(0, 2), "write record: unknown version");
        assert_eq!(with(1, 0), "write record: unknown kind");
        assert_eq!(with(2, 4), "write record: unknown flags");
        assert_eq!(with(2, 2), "write record: unknown flags");
        assert_eq!(WriteRecord::decode(&[9]).unwrap_err().to_string(), "write record: unknown version");
        assert_eq!(WriteRecord::decode(b"").unwrap_err().to_string(), "write record: too short");
        let delete =
            WriteRecord { kind: WriteKind::Delete, start_ts: TS, short_value: None, overlapped_rollback: false };
        let mut with_value = delete.encode();
        with_value.push(0);
        assert!(WriteRecord::decode(&with_value).is_err());
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding_or_fails(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            kind in 0u8..6,
            flags in 0u8..5,
        ) {
            let mut bytes = bytes;
            if let [a, b, c, ..] = bytes.as_mut_slice() {
                (*a, *b, *c) = (VERSION, kind, flags);
            }
            if let Ok(write) = WriteRecord::decode(&bytes) {
                prop_assert_eq!(write.encode(), bytes);
            }
        }
    }
}
