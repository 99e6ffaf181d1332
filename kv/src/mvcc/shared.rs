//! Shared locks: transactions confirm, when they commit, row locks that others may hold beside them.
//!
//! A transaction that commits in two phases leaves one on each row that it has locked and not changed. It keeps those
//! out that would break what the transaction relies on, also when the leader that has the row locks in memory is lost.
//! It is a record of its own beside the lock of the key: each holder has one, under its start_ts, and a key may have
//! any number of them. One more row counts them. So whoever writes a key that nobody shares, which is the rule, pays
//! for one look at a row that is not there; a holder comes and goes at the same cost, however many others there are.
//! Nobody who reads looks at any of these rows.
//!
//! ```text
//! storage key                  the lock, if there is one (`lock.rs`)
//! storage key, 0               the number of shared locks; no row if there is none
//! storage key, !start_ts       a shared lock
//! ```
//!
//! The length tells the rows apart: that of a storage key is a multiple of nine.
//!
//! A shared lock leaves no record behind when its transaction ends: that changes nothing that a later writer would have
//! to see.

use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use super::lock::LockRecord;
use super::versions::after_versions;
use crate::api::{LockInfo, LockMode};
use crate::error::{MvccError, Result};
use crate::key::{GROUP, Key, TS_LEN, split_ts, versioned};

/// The format version that this program writes and reads.
const VERSION: u8 = 1;
/// Bytes before the primary key: version, mode, ttl_ms.
const HEADER: usize = 2 + 8;
/// The byte that follows the storage key in the key of the counter.
const COUNTER: u8 = 0;

/// A shared lock.
///
/// Invariant: the mode is not [`LockMode::Update`], which nobody shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLock {
    /// What it keeps out.
    pub mode: LockMode,
    /// The key whose record decides the status of the transaction.
    pub primary: Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// Life of the lock, in milliseconds from the physical part of `start_ts`.
    pub ttl_ms: u64,
}

/// What a row of `Cf::Lock` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRow<'a> {
    /// The lock of this storage key.
    Lock(&'a [u8]),
    /// The number of its shared locks.
    Counter(&'a [u8]),
    /// The shared lock of this transaction.
    Shared(&'a [u8], Timestamp),
}

impl<'a> LockRow<'a> {
    /// What the row of this key is.
    ///
    /// # Errors
    ///
    /// [`MvccError::Key`] if it is none.
    pub fn of(row: &'a [u8]) -> Result<LockRow<'a>> {
        match (row.len() % (GROUP + 1), row.split_last()) {
            (0, _) => Ok(LockRow::Lock(row)),
            (1, Some((&COUNTER, storage))) => Ok(LockRow::Counter(storage)),
            (TS_LEN, _) => {
                split_ts(row).map(|(storage, start_ts)| LockRow::Shared(storage, start_ts)).map_err(Into::into)
            }
            _ => Err(malformed("a row of no kind")),
        }
    }
}

const fn code(mode: LockMode) -> u8 {
    match mode {
        LockMode::KeyShare => 1,
        LockMode::Share => 2,
        LockMode::NoKeyUpdate => 3,
        LockMode::Update => 4,
    }
}

impl SharedLock {
    /// The lock as responses report it.
    pub fn info(&self, key: Key) -> LockInfo {
        LockInfo { key, primary: self.primary.clone(), start_ts: self.start_ts, ttl_ms: self.ttl_ms }
    }

    /// The stored form, but for start_ts, which is in the key. Panics if the invariant does not hold.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.mode != LockMode::Update, "nobody shares {self:?}");
        let mut out = Vec::with_capacity(HEADER + self.primary.as_bytes().len());
        out.extend_from_slice(&[VERSION, code(self.mode)]);
        out.extend_from_slice(&self.ttl_ms.to_be_bytes());
        out.extend_from_slice(self.primary.as_bytes());
        out
    }

    /// Decodes the stored form of the lock of `start_ts`.
    ///
    /// # Errors
    ///
    /// [`MvccError::Record`] if it is malformed or of an unknown version.
    pub fn decode(start_ts: Timestamp, bytes: &[u8]) -> Result<SharedLock> {
        if bytes.first().is_some_and(|version| *version != VERSION) {
            return Err(malformed("unknown version"));
        }
        let Some(([_, mode, ttl_ms @ ..], primary)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(malformed("too short"));
        };
        let mode = match mode {
            1 => LockMode::KeyShare,
            2 => LockMode::Share,
            3 => LockMode::NoKeyUpdate,
            _ => return Err(malformed("unknown mode")),
        };
        Ok(SharedLock { mode, primary: Key::new(primary.to_vec()), start_ts, ttl_ms: u64::from_be_bytes(*ttl_ms) })
    }
}

/// The lock that a row of `Cf::Lock` is, of one transaction or of several; `None` for a counter.
///
/// # Errors
///
/// [`MvccError::Key`] or [`MvccError::Record`] if the row is malformed.
pub fn lock_of_row(row: &[u8], value: &[u8]) -> Result<Option<LockInfo>> {
    Ok(match LockRow::of(row)? {
        LockRow::Lock(storage) => Some(LockRecord::decode(value)?.info(Key::from_storage(storage)?)),
        LockRow::Shared(storage, start_ts) => {
            Some(SharedLock::decode(start_ts, value)?.info(Key::from_storage(storage)?))
        }
        LockRow::Counter(_) => None,
    })
}

/// The number of shared locks of a key, given in storage form.
///
/// # Errors
///
/// [`MvccError::Record`] if the counter is malformed; [`MvccError::Store`] if the store fails.
pub fn count_shared<R: Reader + ?Sized>(reader: &R, storage: &[u8]) -> Result<u32> {
    match reader.get(Cf::Lock, &counter_row(storage))?.as_deref() {
        None => Ok(0),
        Some([VERSION, a, b, c, d]) => Ok(u32::from_be_bytes([*a, *b, *c, *d])),
        Some(_) => Err(malformed("unknown version or length of a counter")),
    }
}

/// The shared lock of a transaction on a key, given in storage form.
///
/// # Errors
///
/// As [`count_shared`].
pub fn load_shared<R: Reader + ?Sized>(reader: &R, storage: &[u8], start_ts: Timestamp) -> Result<Option<SharedLock>> {
    let row = reader.get(Cf::Lock, &versioned(storage, start_ts))?;
    row.map(|bytes| SharedLock::decode(start_ts, &bytes)).transpose()
}

/// The shared locks of a key, given in storage form, that `is_wanted` picks: the newest transactions first, at most
/// `limit`.
///
/// # Errors
///
/// As [`count_shared`].
pub fn shared_locks<R: Reader + ?Sized>(
    reader: &R,
    storage: &[u8],
    limit: usize,
    is_wanted: impl Fn(&SharedLock) -> bool,
) -> Result<Vec<SharedLock>> {
    let mut found = Vec::new();
    if count_shared(reader, storage)? == 0 {
        return Ok(found);
    }
    let mut cursor = reader.cursor(Cf::Lock, &versioned(storage, Timestamp::MAX), &after_versions(storage))?;
    let mut is_valid = cursor.seek_to_first()?;
    while is_valid && found.len() < limit {
        let (_, start_ts) = split_ts(cursor.key())?;
        let lock = SharedLock::decode(start_ts, cursor.value())?;
        if is_wanted(&lock) {
            found.push(lock);
        }
        is_valid = cursor.next()?;
    }
    Ok(found)
}

/// Adds a shared lock to the batch, on a key, given in storage form, where its transaction has none.
///
/// # Errors
///
/// As [`count_shared`].
pub fn put_shared<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    lock: &SharedLock,
) -> Result<()> {
    let count = count_shared(reader, storage)?;
    batch.put(Cf::Lock, &versioned(storage, lock.start_ts), &lock.encode());
    put_count(batch, storage, count.saturating_add(1));
    Ok(())
}

/// Removes the shared lock that a transaction has on a key, given in storage form.
///
/// # Errors
///
/// [`MvccError::Inconsistent`] if the counter knows of none; otherwise as [`count_shared`].
pub fn remove_shared<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<()> {
    let Some(left) = count_shared(reader, storage)?.checked_sub(1) else {
        let key = storage.escape_ascii();
        return Err(MvccError::Inconsistent(format!("key {key} has an uncounted shared lock of {start_ts}")));
    };
    batch.delete(Cf::Lock, &versioned(storage, start_ts));
    put_count(batch, storage, left);
    Ok(())
}

fn put_count(batch: &mut WriteBatch, storage: &[u8], count: u32) {
    let row = counter_row(storage);
    if count == 0 {
        return batch.delete(Cf::Lock, &row);
    }
    let [a, b, c, d] = count.to_be_bytes();
    batch.put(Cf::Lock, &row, &[VERSION, a, b, c, d]);
}

/// Whether a batch removes a shared lock.
pub fn removes_shared(batch: &WriteBatch) -> bool {
    batch.iter().any(|op| match op {
        engine::Op::Delete { cf: Cf::Lock, key } => matches!(LockRow::of(key), Ok(LockRow::Shared(..))),
        _ => false,
    })
}

fn counter_row(storage: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(storage.len() + 1);
    row.extend_from_slice(storage);
    row.push(COUNTER);
    row
}

const fn malformed(what: &'static str) -> MvccError {
    MvccError::Record { record: "shared lock", what }
}

// A row of another kind has another length.
const _: () = assert!(TS_LEN % (GROUP + 1) > 1);

#[cfg(test)]
mod tests {
    use engine::store::Store;
    use engine::store::memory::MemoryStore;
    use proptest::prelude::*;

    use super::*;

    const TS: Timestamp = Timestamp::from_raw(0x0102_0304_0506_0708);

    fn lock(mode: LockMode, start_ts: Timestamp) -> SharedLock {
        SharedLock { mode, primary: Key::from_static(b"pk"), start_ts, ttl_ms: 3_000 }
    }

    #[test]
    fn golden_bytes() {
        let mut batch = WriteBatch::new();
        put_shared(&MemoryStore::new().snapshot(), &mut batch, b"k", &lock(LockMode::KeyShare, TS)).unwrap();
        let put = |key, value| engine::Op::Put { cf: Cf::Lock, key, value };
        let expected = [
            put(b"k\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7".as_slice(), b"\x01\x01\0\0\0\0\0\0\x0b\xb8pk".as_slice()),
            put(b"k\0", b"\x01\0\0\0\x01"),
        ];
        assert_eq!(batch.iter().collect::<Vec<_>>(), expected);
        assert_eq!(lock(LockMode::Share, TS).encode(), b"\x01\x02\0\0\0\0\0\0\x0b\xb8pk");
        assert_eq!(lock(LockMode::NoKeyUpdate, TS).encode(), b"\x01\x03\0\0\0\0\0\0\x0b\xb8pk");
    }

    #[test]
    fn malformed_records_are_errors() {
        let error = |bytes: &[u8]| SharedLock::decode(TS, bytes).unwrap_err().to_string();
        let good = lock(LockMode::Share, TS).encode();
        assert_eq!(SharedLock::decode(TS, &good).unwrap(), lock(LockMode::Share, TS));
        assert_eq!(error(&[&[2], &good[1..]].concat()), "shared lock record: unknown version");
        assert_eq!(error(&[&[1, 4], &good[2..]].concat()), "shared lock record: unknown mode");
        assert_eq!(error(&good[..9]), "shared lock record: too short");
        assert_eq!(error(b""), "shared lock record: too short");
        let store = MemoryStore::new();
        let mut batch = WriteBatch::new();
        batch.put(Cf::Lock, b"k\0", b"\x02\0\0\0\x01");
        store.write(&batch).unwrap();
        let counted = count_shared(&store.snapshot(), b"k").unwrap_err().to_string();
        assert_eq!(counted, "shared lock record: unknown version or length of a counter");
    }

    #[test]
    fn the_length_of_a_key_says_what_the_row_is() {
        let storage = Key::from_static(b"some key").to_storage();
        assert_eq!(LockRow::of(&storage).unwrap(), LockRow::Lock(&storage));
        assert_eq!(LockRow::of(&counter_row(&storage)).unwrap(), LockRow::Counter(&storage));
        assert_eq!(LockRow::of(&versioned(&storage, TS)).unwrap(), LockRow::Shared(&storage, TS));
        assert!(LockRow::of(&[storage.as_slice(), b"\x01"].concat()).is_err());
        assert!(LockRow::of(&[storage.as_slice(), b"\0\0"].concat()).is_err());
    }

    #[test]
    fn holders_come_and_go() {
        let store = MemoryStore::new();
        let write = |change: &dyn Fn(&mut WriteBatch) -> Result<()>| {
            let mut batch = WriteBatch::new();
            change(&mut batch).unwrap();
            store.write(&batch).unwrap();
            batch
        };
        let storage = Key::from_static(b"k").to_storage();
        let held = |limit| {
            let found = shared_locks(&store.snapshot(), &storage, limit, |lock| lock.ttl_ms > 0).unwrap();
            found.into_iter().map(|lock| lock.start_ts.physical_ms()).collect::<Vec<_>>()
        };
        for n in [5, 9, 7] {
            let lock = lock(LockMode::Share, Timestamp::new(n, 0));
            let batch = write(&|batch| put_shared(&store.snapshot(), batch, &storage, &lock));
            assert!(!removes_shared(&batch));
        }
        // A neighbour, and the lock of the key itself.
        let other = Key::from_static(b"k\0").to_storage();
        write(&|batch| put_shared(&store.snapshot(), batch, &other, &lock(LockMode::Share, TS)));
        write(&|batch| {
            batch.put(Cf::Lock, &storage, b"of no interest");
            Ok(())
        });
        assert_eq!((held(9), held(2)), (vec![9, 7, 5], vec![9, 7]));
        for (n, left) in [(7, vec![9, 5]), (9, vec![5]), (5, vec![])] {
            let batch = write(&|batch| remove_shared(&store.snapshot(), batch, &storage, Timestamp::new(n, 0)));
            assert!(removes_shared(&batch));
            assert_eq!(held(9), left);
        }
        assert_eq!(count_shared(&store.snapshot(), &storage).unwrap(), 0);
        let gone = remove_shared(&store.snapshot(), &mut WriteBatch::new(), &storage, TS);
        assert!(gone.unwrap_err().to_string().contains("uncounted"));
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding_or_fails(bytes in proptest::collection::vec(any::<u8>(), 0..40), mode in 0u8..6) {
            let mut bytes = bytes;
            if let [a, b, ..] = bytes.as_mut_slice() {
                (*a, *b) = (VERSION, mode);
            }
            if let Ok(lock) = SharedLock::decode(TS, &bytes) {
                prop_assert_eq!(lock.encode(), bytes);
            }
        }
    }
}
