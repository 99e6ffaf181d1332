//! Tests of the decision: each rule, and that no read at or above the safe point changes, whatever part is collected.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use engine::store::memory::MemoryStore;
use engine::store::{NewestReader, Reader, Store};
use engine::{Cf, WriteBatch};
use proptest::prelude::*;
use tso::Timestamp;

use super::*;
use crate::api::ScanRequest;
use crate::error::MvccError;
use crate::key::versioned;
use crate::mvcc::mark::put_mark;
use crate::mvcc::point::{PointRead, get_newest};
use crate::mvcc::reader;
use crate::mvcc::scanner::{PageLimits, Scanner};
use crate::mvcc::versions::Versions;
use crate::size::SHORT_VALUE_MAX;

const fn ts(raw: u64) -> Timestamp {
    Timestamp::from_raw(raw)
}

fn storage(name: &'static [u8]) -> Vec<u8> {
    Key::from_static(name).to_storage()
}

const fn put(start: u64) -> WriteRecord<'static> {
    WriteRecord { kind: WriteKind::Put, start_ts: ts(start), short_value: Some(b"v") }
}

const fn long_put(start: u64) -> WriteRecord<'static> {
    WriteRecord { kind: WriteKind::Put, start_ts: ts(start), short_value: None }
}

const fn delete(start: u64) -> WriteRecord<'static> {
    WriteRecord { kind: WriteKind::Delete, start_ts: ts(start), short_value: None }
}

const fn lock(start: u64, last_data: u64) -> WriteRecord<'static> {
    let last_data = if last_data == 0 { None } else { Some(ts(last_data)) };
    WriteRecord { kind: WriteKind::Lock { last_data }, start_ts: ts(start), short_value: None }
}

/// The commit_ts of the records that stay, and the start_ts of the values that go.
fn kept(safe_point: u64, records: &[(u64, WriteRecord<'_>)], has_older: bool) -> (Vec<u64>, Vec<u64>) {
    let mut collector = Collector::new(ts(safe_point));
    let (mut stay, mut values) = (Vec::new(), Vec::new());
    for (commit_ts, record) in records {
        let key = versioned(&storage(b"k"), ts(*commit_ts));
        match collector.next(&key, &record.encode(), || has_older).unwrap() {
            Verdict::Keep => stay.push(*commit_ts),
            Verdict::Drop { value } => values.extend(value.map(Timestamp::raw)),
        }
    }
    (stay, values)
}

#[test]
fn the_newest_put_stays_and_everything_older_goes() {
    let records = [
        (140, put(139)),
        (135, lock(134, 120)),
        (125, lock(124, 120)),
        (120, long_put(119)),
        (115, lock(114, 110)),
        (110, delete(109)),
        (100, long_put(99)),
        (90, put(89)),
    ];
    assert_eq!(kept(130, &records, true), (vec![140, 135, 120], vec![99]));
    // A read at the safe point itself is allowed.
    assert_eq!(kept(140, &records, true), (vec![140], vec![119, 99]));
    assert_eq!(kept(139, &records, true), (vec![140, 120], vec![99]));
    assert_eq!(kept(0, &records, true).0.len(), records.len());
    assert_eq!(kept(89, &records, true).0.len(), records.len());
}

#[test]
fn a_delete_goes_once_nothing_older_is_left() {
    let records = [(120, delete(119)), (110, put(109)), (100, delete(99))];
    assert_eq!(kept(130, &records, true).0, [120]);
    assert!(kept(130, &records, false).0.is_empty());
    assert_eq!(kept(115, &records, false).0, [120, 110]);
}

#[test]
fn a_lock_without_data_goes() {
    assert!(kept(130, &[(120, lock(119, 0))], true).0.is_empty());
    assert_eq!(kept(119, &[(120, lock(119, 0))], true).0, [120]);
}

#[test]
fn the_next_key_starts_anew() {
    let mut collector = Collector::new(ts(100));
    for name in [&b"a"[..], b"b"] {
        let mut next = |at: u64| collector.next(&versioned(&storage_of(name), ts(at)), &put(at - 1).encode(), || true);
        assert_eq!(next(50).unwrap(), Verdict::Keep);
        assert_eq!(next(40).unwrap(), Verdict::Drop { value: None });
    }
}

fn storage_of(name: &[u8]) -> Vec<u8> {
    Key::new(name.to_vec()).to_storage()
}

#[test]
fn malformed_records_stay() {
    let mut collector = Collector::new(ts(100));
    let key = versioned(&storage(b"k"), ts(50));
    assert!(collector.next(&key, b"\x09", || false).is_err());
    assert!(collector.next(b"k", &put(1).encode(), || false).is_err());
    assert_eq!(collector.next(&versioned(&storage(b"k"), ts(40)), &put(39).encode(), || true).unwrap(), Verdict::Keep);
}

#[test]
fn rows_go_by_their_start_ts() {
    let key = versioned(&storage(b"k"), ts(50));
    let long = [7; SHORT_VALUE_MAX + 1];
    let never = |_: &[u8], _: Timestamp| -> Result<bool> { panic!("not asked") };
    assert!(is_garbage_row(ts(50), &key, b"\x01", never).unwrap());
    assert!(!is_garbage_row(ts(49), &key, b"\x01", never).unwrap());
    assert!(!is_garbage_row(ts(49), &key, &long, never).unwrap());
    assert!(!is_garbage_row(ts(50), &key, &long, |_, _| Ok(true)).unwrap());
    let asked = |of: &[u8], at: Timestamp| {
        assert_eq!((of, at), (storage(b"k").as_slice(), ts(50)));
        Ok(false)
    };
    assert!(is_garbage_row(ts(50), &key, &long, asked).unwrap());
    assert!(is_garbage_row(ts(50), &key, b"\x02", never).is_err());
    // A record of the system region is no version of a key, whatever it holds.
    for raw in [&b"s:store:\0\0\0\0\0\0\0\x01"[..], b"s:tso-mark", b"s:next-id", b"s"] {
        assert!(!is_garbage_row(Timestamp::MAX, raw, b"\x01", never).unwrap());
    }
}

/// A change of one key. Its place in the list gives its start_ts and commit_ts.
#[derive(Clone, Debug)]
enum Change {
    Short,
    Long,
    Delete,
    Lock,
    RolledBack,
}

fn changes() -> impl Strategy<Value = Vec<(u8, Change)>> {
    let change = prop_oneof![
        Just(Change::Short),
        Just(Change::Long),
        Just(Change::Delete),
        Just(Change::Delete),
        Just(Change::Lock),
        Just(Change::RolledBack)
    ];
    proptest::collection::vec((0u8..3, change), 0..40)
}

fn long_value(number: u64) -> Vec<u8> {
    format!("{number:0>width$}", width = SHORT_VALUE_MAX + 1).into_bytes()
}

/// Applies the changes: the nth starts at 10n + 1 and commits at 10n + 5.
fn load(store: &MemoryStore, changes: &[(u8, Change)]) {
    let mut last_data: BTreeMap<u8, Timestamp> = BTreeMap::new();
    for (number, (key, change)) in (1u64..).zip(changes) {
        let (start_ts, commit_ts) = (ts(10 * number + 1), ts(10 * number + 5));
        let storage = storage_of(&[*key]);
        let mut batch = WriteBatch::new();
        let text = number.to_string();
        let (kind, short_value) = match change {
            Change::Short => (WriteKind::Put, Some(text.as_bytes())),
            Change::Long => {
                batch.put(Cf::Default, &versioned(&storage, start_ts), &long_value(number));
                (WriteKind::Put, None)
            }
            Change::Delete => (WriteKind::Delete, None),
            Change::Lock => (WriteKind::Lock { last_data: last_data.get(key).copied() }, None),
            Change::RolledBack => {
                put_mark(&mut batch, &storage, start_ts);
                store.write(&batch).unwrap();
                continue;
            }
        };
        if kind.is_data() {
            last_data.insert(*key, commit_ts);
        }
        let record = WriteRecord { kind, start_ts, short_value }.encode();
        batch.put(Cf::Write, &versioned(&storage, commit_ts), &record);
        store.write(&batch).unwrap();
    }
}

/// All rows of a family.
fn rows(store: &MemoryStore, cf: Cf) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let mut cursor = store.snapshot().cursor(cf, b"", b"").unwrap();
    let mut valid = cursor.seek_to_first().unwrap();
    while valid {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        valid = cursor.next().unwrap();
    }
    rows
}

/// Collects the records of which `part` says that the compaction meets them, as a filter does: it looks older records
/// up in the store as it was before.
fn compact(store: &MemoryStore, safe_point: Timestamp, mut part: impl FnMut() -> bool) {
    let view = store.snapshot();
    let mut collector = Collector::new(safe_point);
    let mut batch = WriteBatch::new();
    for (key, record) in rows(store, Cf::Write).into_iter().filter(|_| part()) {
        let has_older = || {
            let (storage, commit_ts) = split_ts(&key).unwrap();
            let mut found = false;
            let visit = &mut |_: &[u8], _: &[u8]| {
                found = true;
                ControlFlow::Break(())
            };
            store.visit_versions(Cf::Write, storage, &versioned(storage, commit_ts.prev()), visit).unwrap();
            found
        };
        if collector.next(&key, &record, has_older).unwrap() != Verdict::Keep {
            batch.delete(Cf::Write, &key);
        }
    }
    for (key, row) in rows(store, Cf::Default).into_iter().filter(|_| part()) {
        let is_named = |storage: &[u8], start_ts| -> Result<bool, MvccError> {
            let mut versions = Versions::of_key(&view, storage)?;
            Ok(versions.seek_oldest(storage, start_ts)? && versions.current()?.1.start_ts == start_ts)
        };
        if is_garbage_row(safe_point, &key, &row, is_named).unwrap() {
            batch.delete(Cf::Default, &key);
        }
    }
    store.write(&batch).unwrap();
}

/// The values of all keys, by the reads of one key.
fn read(store: &MemoryStore, at: Timestamp) -> Vec<(Key, Bytes)> {
    let mut pairs = Vec::new();
    for key in (0..3).map(|key: u8| Key::new(vec![key])) {
        let value = reader::get(&store.snapshot(), &key, at, &[]).unwrap();
        assert_eq!(get_newest(store, &key, &key.to_storage(), at).unwrap(), PointRead::Value(value.clone()));
        pairs.extend(value.map(|value| (key, value)));
    }
    pairs
}

/// The same, by a scan.
fn scan(store: &MemoryStore, at: Timestamp, reverse: bool) -> Vec<(Key, Bytes)> {
    let (start, end) = (Key::default(), Key::default());
    let (limit, max_bytes) = (10, u32::MAX);
    let request =
        ScanRequest { start, end, start_ts: at, limit, max_bytes, reverse, keys_only: false, pass: Vec::new() };
    let limits = PageLimits { pairs: 10, bytes: u32::MAX, steps: usize::MAX };
    let view = store.snapshot();
    let mut pairs = Scanner::open(&view, &request).unwrap().next_page(&view, limits).unwrap().pairs;
    if reverse {
        pairs.reverse();
    }
    pairs
}

proptest! {
    /// Several compactions that meet some of the records each, at rising safe points.
    #[test]
    fn no_read_at_or_above_the_safe_point_changes(
        changes in changes(),
        safe_points in proptest::collection::vec(0u64..420, 1..4),
        parts in proptest::collection::vec(any::<bool>(), 1..200),
    ) {
        let (before, store) = (MemoryStore::new(), MemoryStore::new());
        load(&before, &changes);
        load(&store, &changes);
        let mut safe_points = safe_points;
        safe_points.sort_unstable();
        let mut parts = parts.iter().copied().cycle();
        for safe_point in safe_points {
            compact(&store, ts(safe_point), || parts.next().unwrap());
            for at in (safe_point..420).map(ts) {
                let expected = read(&before, at);
                prop_assert_eq!(&read(&store, at), &expected, "at {}", at);
                prop_assert_eq!(&scan(&store, at, false), &expected, "at {}", at);
                prop_assert_eq!(&scan(&store, at, true), &expected, "at {}", at);
            }
        }
    }

    /// What two whole compactions leave: per key one put at or below the safe point at most, and its value.
    #[test]
    fn whole_compactions_leave_no_garbage(changes in changes(), safe_point in 0u64..420) {
        let store = MemoryStore::new();
        load(&store, &changes);
        // The second one drops the deletes whose older records the first one has dropped, the third their values.
        for _ in 0..3 {
            compact(&store, ts(safe_point), || true);
        }
        let mut below = BTreeMap::new();
        for (key, record) in rows(&store, Cf::Write) {
            let (storage, commit_ts) = split_ts(&key).unwrap();
            if commit_ts <= ts(safe_point) {
                let write = WriteRecord::decode(&record).unwrap();
                prop_assert_eq!(write.kind, WriteKind::Put);
                let is_new = below.insert(storage.to_vec(), write.short_value.is_none().then_some(write.start_ts));
                prop_assert!(is_new.is_none());
            }
        }
        for (key, _) in rows(&store, Cf::Default) {
            let (storage, start_ts) = split_ts(&key).unwrap();
            if start_ts.next().raw() + 4 <= safe_point {
                prop_assert_eq!(below.get(storage), Some(&Some(start_ts)));
            }
        }
    }
}
