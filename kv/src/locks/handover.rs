//! The row locks of a region as the message carries them with which a leader hands over: holders, and waiters in order.
//!
//! ```text
//! version u8: 2
//! keys u32, then for each: length u32 and the key;
//!     holders u32, then start_ts u64, mode u8 and number u64 each;
//!     waiters u32, then start_ts u64, mode u8, waited u32 each
//! names u32, then start_ts u64 and the name of its locks u64 each
//! ```
//!
//! Integers are big-endian. A mode is 1 KEY SHARE, 2 SHARE, 3 NO KEY UPDATE, 4 UPDATE; a wait is in milliseconds.

use bytes::Bytes;
use tso::Timestamp;

use super::queue::Holder;
use crate::api::{LockId, LockMode};
use crate::key::Key;

/// The format version that this program writes and reads.
const VERSION: u8 = 2;
/// The most bytes that are handed over. More would hold up the message, and the election with it.
pub(super) const BYTES_MAX: usize = 256 << 10;

/// The holders and waiters of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedKey {
    pub(super) key: Key,
    pub(super) holders: Vec<Holder>,
    /// In their order, with the milliseconds for which they have waited.
    pub(super) waiting: Vec<(Timestamp, LockMode, u32)>,
}

/// The row locks of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    /// In the order of the keys.
    pub(super) keys: Vec<PackedKey>,
    /// The names under which transactions commit, with those under which they have locks.
    pub(super) names: Vec<(Timestamp, Timestamp)>,
}

/// Bytes that are no row locks of a region, or of a newer version of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed row locks of a leader: {0}")]
pub(super) struct Malformed(&'static str);

const fn code(mode: LockMode) -> u8 {
    match mode {
        LockMode::KeyShare => 1,
        LockMode::Share => 2,
        LockMode::NoKeyUpdate => 3,
        LockMode::Update => 4,
    }
}

impl Packed {
    /// The form in a message; `None` if it has more than [`BYTES_MAX`].
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![VERSION];
        let count = |out: &mut Vec<u8>, count: usize| out.extend_from_slice(&(count as u32).to_be_bytes());
        count(&mut out, self.keys.len());
        for PackedKey { key, holders, waiting } in &self.keys {
            count(&mut out, key.as_bytes().len());
            out.extend_from_slice(key.as_bytes());
            count(&mut out, holders.len());
            for Holder { start_ts, mode, lock } in holders {
                out.extend_from_slice(&start_ts.raw().to_be_bytes());
                out.push(code(*mode));
                out.extend_from_slice(&lock.raw().to_be_bytes());
            }
            count(&mut out, waiting.len());
            for (start_ts, mode, waited) in waiting {
                out.extend_from_slice(&start_ts.raw().to_be_bytes());
                out.push(code(*mode));
                out.extend_from_slice(&waited.to_be_bytes());
            }
            if out.len() > BYTES_MAX {
                return None;
            }
        }
        count(&mut out, self.names.len());
        for (start_ts, locker) in &self.names {
            out.extend_from_slice(&start_ts.raw().to_be_bytes());
            out.extend_from_slice(&locker.raw().to_be_bytes());
        }
        (out.len() <= BYTES_MAX).then_some(out)
    }

    /// Reads what [`Packed::encode`] writes.
    ///
    /// # Errors
    ///
    /// [`Malformed`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Packed, Malformed> {
        let mut rest = bytes;
        if take::<1>(&mut rest)? != [VERSION] {
            return Err(Malformed("unknown version"));
        }
        let mut packed = Packed::default();
        for _ in 0..take_u32(&mut rest)? {
            let len = take_u32(&mut rest)? as usize;
            let (key, tail) = rest.split_at_checked(len).ok_or(Malformed("cut off"))?;
            rest = tail;
            let mut entry = PackedKey { key: Key::new(Bytes::copy_from_slice(key)), ..PackedKey::default() };
            for _ in 0..take_u32(&mut rest)? {
                let (start_ts, mode) = (take_ts(&mut rest)?, take_mode(&mut rest)?);
                let lock = LockId::from_raw(take(&mut rest).map(u64::from_be_bytes)?);
                entry.holders.push(Holder { start_ts, mode, lock });
            }
            for _ in 0..take_u32(&mut rest)? {
                entry.waiting.push((take_ts(&mut rest)?, take_mode(&mut rest)?, take_u32(&mut rest)?));
            }
            packed.keys.push(entry);
        }
        for _ in 0..take_u32(&mut rest)? {
            packed.names.push((take_ts(&mut rest)?, take_ts(&mut rest)?));
        }
        if rest.is_empty() { Ok(packed) } else { Err(Malformed("something follows")) }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (taken, tail) = rest.split_first_chunk::<N>().ok_or(Malformed("cut off"))?;
    *rest = tail;
    Ok(*taken)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, Malformed> {
    take(rest).map(u32::from_be_bytes)
}

fn take_ts(rest: &mut &[u8]) -> Result<Timestamp, Malformed> {
    take(rest).map(u64::from_be_bytes).map(Timestamp::from_raw)
}

fn take_mode(rest: &mut &[u8]) -> Result<LockMode, Malformed> {
    match take(rest)? {
        [1] => Ok(LockMode::KeyShare),
        [2] => Ok(LockMode::Share),
        [3] => Ok(LockMode::NoKeyUpdate),
        [4] => Ok(LockMode::Update),
        _ => Err(Malformed("unknown mode")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ts(raw: u64) -> Timestamp {
        Timestamp::from_raw(raw)
    }

    #[test]
    fn golden_bytes() {
        let held = PackedKey {
            key: Key::from_static(b"k"),
            holders: vec![
                Holder { start_ts: ts(1), mode: LockMode::KeyShare, lock: LockId::from_raw(6) },
                Holder { start_ts: ts(2), mode: LockMode::NoKeyUpdate, lock: LockId::from_raw(7) },
            ],
            waiting: vec![(ts(3), LockMode::Update, 250)],
        };
        let packed = Packed { keys: vec![held], names: vec![(ts(5), ts(2))] };
        let expected = b"\x02\0\0\0\x01\0\0\0\x01k\0\0\0\x02\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\0\0\x06\
            \0\0\0\0\0\0\0\x02\x03\0\0\0\0\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\x03\x04\0\0\0\xfa\
            \0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x02";
        let bytes = packed.encode().unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
        assert_eq!(Packed::decode(&bytes), Ok(packed));
        for end in 0..bytes.len() {
            assert!(Packed::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
        assert_eq!(Packed::decode(&[&bytes[..], b"x"].concat()), Err(Malformed("something follows")));
        assert_eq!(Packed::decode(b"\x03"), Err(Malformed("unknown version")));
    }

    #[test]
    fn what_is_too_large_is_not_handed_over() {
        let key = |n: u32| PackedKey { key: Key::new(n.to_be_bytes().repeat(16)), ..PackedKey::default() };
        let packed = |count| Packed { keys: (0..count).map(key).collect(), names: Vec::new() };
        let fitting = (BYTES_MAX / 76) as u32 - 1;
        assert!(packed(fitting).encode().is_some_and(|bytes| bytes.len() <= BYTES_MAX));
        assert_eq!(packed(fitting + 2).encode(), None);
    }

    proptest! {
        #[test]
        fn random_bytes_are_refused_or_read(bytes in proptest::collection::vec(0u8..5, 0..80)) {
            let mut bytes = bytes;
            if let Some(version) = bytes.first_mut() {
                *version = VERSION;
            }
            if let Ok(packed) = Packed::decode(&bytes) {
                prop_assert_eq!(packed.encode(), Some(bytes));
            }
        }
    }
}
