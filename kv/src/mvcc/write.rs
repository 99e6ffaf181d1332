//! The write record: what a committed transaction did to a key. It is at the transaction's commit_ts.
//!
//! A transaction may commit a key without changing it: it only locked the key. Its record names the newest record below
//! that did change the key, so that a reader goes there directly. No commit ever comes between the two: from prewrite
//! to commit the lock keeps others out, and a transaction that prewrites later has a start_ts, and so a commit_ts,
//! above this record (invariant 4 of `percolator`).

use tso::Timestamp;

use crate::error::{MvccError, Result};
use crate::size::SHORT_VALUE_MAX;

/// The format version that this program writes and reads.
const VERSION: u8 = 2;
/// Bytes before the position or the short value: version, kind, flags, start_ts.
const HEADER: usize = 3 + 8;
/// Bytes of the position in the record of a `Lock`.
const POSITION: usize = 8;
/// Flag: the rest of the record is a short value.
const SHORT_VALUE: u8 = 1;

/// What a transaction did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// It set the value.
    Put,
    /// It deleted the key.
    Delete,
    /// It committed without a change; the record conflicts with other writers.
    Lock {
        /// The commit_ts of the newest `Put` or `Delete` below; `None` if there is none.
        last_data: Option<Timestamp>,
    },
}

/// What a transaction did to a key. Borrows the value from the stored bytes.
///
/// Invariants:
/// 1. A short value has at most [`SHORT_VALUE_MAX`] bytes and belongs to a `Put`.
/// 2. The `last_data` of a `Lock` is above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRecord<'a> {
    /// What the transaction did.
    pub kind: WriteKind,
    /// The transaction.
    pub start_ts: Timestamp,
    /// The value of a `Put`; `None` if it is long and therefore in `Cf::Default`.
    pub short_value: Option<&'a [u8]>,
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
            WriteKind::Lock { .. } => 3,
        }
    }
}

impl<'a> WriteRecord<'a> {
    /// The stored form. Panics if an invariant does not hold.
    pub fn encode(&self) -> Vec<u8> {
        let short = self.short_value;
        assert!(
            short.is_none_or(|v| v.len() <= SHORT_VALUE_MAX && self.kind == WriteKind::Put),
            "invariant 1: {self:?}"
        );
        let value = short.unwrap_or_default();
        let mut out = Vec::with_capacity(HEADER + POSITION + value.len());
        out.extend_from_slice(&[VERSION, self.kind.code(), if short.is_some() { SHORT_VALUE } else { 0 }]);
        out.extend_from_slice(&self.start_ts.raw().to_be_bytes());
        if let WriteKind::Lock { last_data } = self.kind {
            assert!(last_data != Some(Timestamp::ZERO), "invariant 2: {self:?}");
            out.extend_from_slice(&last_data.unwrap_or(Timestamp::ZERO).raw().to_be_bytes());
        }
        out.extend_from_slice(value);
        out
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    ///
    /// [`MvccError::Record`] if it is malformed or of an unknown version.
    pub fn decode(bytes: &'a [u8]) -> Result<WriteRecord<'a>> {
        let Some(([version, kind, flags, start_ts @ ..], rest)) = bytes.split_first_chunk::<HEADER>() else {
            let newer = bytes.first().is_some_and(|v| *v != VERSION);
            return Err(malformed(if newer { "unknown version" } else { "too short" }));
        };
        if *version != VERSION {
            return Err(malformed("unknown version"));
        }
        if flags & !SHORT_VALUE != 0 {
            return Err(malformed("unknown flags"));
        }
        let start_ts = Timestamp::from_raw(u64::from_be_bytes(*start_ts));
        let has_value = flags & SHORT_VALUE != 0;
        let kind = match (*kind, has_value) {
            (1, _) => WriteKind::Put,
            (2, false) => WriteKind::Delete,
            (3, false) => {
                let last_data = decode_position(rest)?;
                return Ok(WriteRecord { kind: WriteKind::Lock { last_data }, start_ts, short_value: None });
            }
            (2 | 3, true) => return Err(malformed("short value does not fit the header")),
            _ => return Err(malformed("unknown kind")),
        };
        if rest.len() > SHORT_VALUE_MAX || (!rest.is_empty() && !has_value) {
            return Err(malformed("short value does not fit the header"));
        }
        Ok(WriteRecord { kind, start_ts, short_value: has_value.then_some(rest) })
    }
}

/// Decodes the position of the last data record: the rest of the record of a `Lock`.
fn decode_position(rest: &[u8]) -> Result<Option<Timestamp>> {
    let Some((position, [])) = rest.split_first_chunk::<POSITION>() else {
        return Err(malformed("position of the last data record has a wrong length"));
    };
    let position = Timestamp::from_raw(u64::from_be_bytes(*position));
    Ok((position != Timestamp::ZERO).then_some(position))
}

const fn malformed(what: &'static str) -> MvccError {
    MvccError::Record { record: "write", what }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TS: Timestamp = Timestamp::from_raw(0x0102_0304_0506_0708);

    fn lock(last_data: Option<Timestamp>) -> WriteRecord<'static> {
        WriteRecord { kind: WriteKind::Lock { last_data }, start_ts: TS, short_value: None }
    }

    #[test]
    fn golden_bytes() {
        let put = WriteRecord { kind: WriteKind::Put, start_ts: TS, short_value: Some(b"val") };
        let delete = WriteRecord { kind: WriteKind::Delete, start_ts: TS, short_value: None };
        let records: [(WriteRecord<'_>, &[u8]); 4] = [
            (put, b"\x02\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08val"),
            (delete, b"\x02\x02\0\x01\x02\x03\x04\x05\x06\x07\x08"),
            (lock(None), b"\x02\x03\0\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\0"),
            (
                lock(Some(Timestamp::from_raw(0x0102_0304_0506_0701))),
                b"\x02\x03\0\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x01",
            ),
        ];
        for (record, expected) in records {
            assert_eq!(record.encode(), expected, "{record:?}");
            assert_eq!(WriteRecord::decode(expected).unwrap(), record);
        }
    }

    #[test]
    fn malformed_records_are_errors() {
        let good = WriteRecord { kind: WriteKind::Delete, start_ts: TS, short_value: None }.encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            WriteRecord::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(with(0, 1), "write record: unknown version");
        assert_eq!(with(1, 0), "write record: unknown kind");
        assert_eq!(with(1, 4), "write record: unknown kind");
        assert_eq!(with(2, 2), "write record: unknown flags");
        assert_eq!(with(2, 1), "write record: short value does not fit the header");
        assert_eq!(with(1, 3), "write record: position of the last data record has a wrong length");
        assert_eq!(WriteRecord::decode(&[9]).unwrap_err().to_string(), "write record: unknown version");
        assert_eq!(WriteRecord::decode(b"").unwrap_err().to_string(), "write record: too short");
        assert!(WriteRecord::decode(&[good.as_slice(), b"v"].concat()).is_err());
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
