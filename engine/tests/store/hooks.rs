//! Tests of the hooks of both stores: filters of compactions, and observers of writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::store::hooks::{Compaction, NewFilter, RecordFilter};
use engine::store::memory::MemoryStore;
use engine::store::rocks::RocksStore;
use engine::store::{Hooks, Reader, Store};
use engine::{Cf, Op, WriteBatch};
use parking_lot::Mutex;

use crate::common::{open, options, put};

/// Removes the records of `Cf::Write` whose value is that of the key `bound` in `Cf::Meta`, as the view of the
/// compaction shows it. Without a view it removes nothing.
fn filter(views: &Arc<AtomicUsize>) -> NewFilter {
    let views = Arc::clone(views);
    Arc::new(move |compaction: &Compaction<'_>| {
        let view = compaction.view()?;
        assert!(compaction.is_requested);
        views.fetch_add(1, Ordering::SeqCst);
        let doomed = view.get(Cf::Meta, b"bound").unwrap()?;
        (compaction.cf == Cf::Write).then(|| Box::new(move |_: &[u8], value: &[u8]| value != doomed) as RecordFilter)
    })
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

fn load(store: &impl Store) {
    for n in 0..1_000_u32 {
        store.write(&put(Cf::Write, &key(n), if n.is_multiple_of(2) { b"even" } else { b"odd" })).unwrap();
    }
    store.write(&put(Cf::Meta, b"bound", b"odd")).unwrap();
}

fn count(store: &impl Store) -> usize {
    let mut cursor = store.snapshot().cursor(Cf::Write, b"", b"").unwrap();
    let (mut records, mut valid) = (0, cursor.seek_to_first().unwrap());
    while valid {
        records += 1;
        valid = cursor.next().unwrap();
    }
    records
}

#[test]
fn a_requested_compaction_of_rocksdb_passes_all_records_through_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let views = Arc::new(AtomicUsize::new(0));
    let hooks = Hooks { new_filter: Some(filter(&views)), observer: None };
    let store = RocksStore::open_with(dir.path(), &options(), hooks).unwrap();
    load(&store);
    let before = store.snapshot();
    store.compact_range(Cf::Write, b"", &key(500)).unwrap();
    assert!((500..=750).contains(&count(&store)), "the compaction may take neighbours along");
    store.compact_range(Cf::Write, b"", b"").unwrap();
    assert_eq!(count(&store), 500);
    assert!(views.load(Ordering::SeqCst) > 0);
    // A snapshot does not keep what the filter removes.
    assert_eq!(before.get(Cf::Write, &key(1)).unwrap(), None);
    assert_eq!(before.get(Cf::Write, &key(2)).unwrap().unwrap(), b"even");
    // Nothing is left of the rest either: no tombstones, no files.
    store.write(&put(Cf::Meta, b"bound", b"even")).unwrap();
    store.compact_range(Cf::Write, b"", b"").unwrap();
    assert_eq!((count(&store), store.property(Cf::Write, "rocksdb.live-sst-files-size")), (0, Some(0)));
    // What is gone is gone after a crash as well.
    drop((before, store));
    assert_eq!(count(&open(dir.path())), 0);
}

#[test]
fn places_of_a_range_divide_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let store = RocksStore::open(dir.path(), &options()).unwrap();
    assert!(store.key_at(Cf::Write, b"", b"", 0.5).unwrap().is_empty());
    // The second half of the keys has nine tenths of the bytes.
    for n in 0..2_000_u32 {
        let value: Vec<u8> =
            (0..2_000_u32).map(|at| (n.wrapping_mul(at + 7).wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        store.write(&put(Cf::Write, &key(n), if n < 1_000 { &value[..222] } else { &value })).unwrap();
    }
    store.flush().unwrap();
    store.compact_range(Cf::Write, b"", b"").unwrap();
    let at = |part| store.key_at(Cf::Write, b"", b"", part).unwrap();
    assert!(at(0.0) <= key(10), "{}", at(0.0).escape_ascii());
    assert!((key(1_300)..key(1_600)).contains(&at(0.5)), "{}", at(0.5).escape_ascii());
    let all = store.bytes_on_disk(Cf::Write, b"", b"").unwrap();
    let half = store.bytes_on_disk(Cf::Write, b"", &at(0.5)).unwrap();
    assert!((all * 4 / 10..all * 6 / 10).contains(&half), "{half} of {all}");
}

#[test]
fn a_compaction_in_memory_flushes_and_removes_for_good() {
    let views = Arc::new(AtomicUsize::new(0));
    let store = MemoryStore::with_hooks(Hooks { new_filter: Some(filter(&views)), observer: None });
    load(&store);
    store.compact_range(Cf::Write, &key(500), b"").unwrap();
    assert_eq!((count(&store), views.load(Ordering::SeqCst)), (750, 1));
    store.write(&put(Cf::Write, b"unflushed", b"odd")).unwrap();
    store.crash();
    assert_eq!(count(&store), 750);
}

#[test]
fn an_observer_sees_every_operation() {
    let dir = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let observer = {
        let seen = Arc::clone(&seen);
        Arc::new(move |ops: &mut dyn Iterator<Item = Op<'_>>| {
            let names = ops.map(|op| match op {
                Op::Put { cf, key, .. } => format!("put {} {}", cf.name(), key.escape_ascii()),
                Op::Delete { cf, key } => format!("delete {} {}", cf.name(), key.escape_ascii()),
                Op::DeleteRange { cf, .. } => format!("delete range {}", cf.name()),
            });
            seen.lock().extend(names);
        })
    };
    let hooks = Hooks { new_filter: None, observer: Some(observer) };
    let rocks = RocksStore::open_with(dir.path(), &options(), hooks.clone()).unwrap();
    watch(&rocks);
    let of_rocks = std::mem::take(&mut *seen.lock());
    watch(&MemoryStore::with_hooks(hooks));
    assert_eq!(of_rocks, ["put write a", "delete lock a", "put default r", "put write r", "put meta last"]);
    assert_eq!(seen.lock()[..4], of_rocks[..4]);
}

fn watch(store: &impl Store) {
    let mut batch = WriteBatch::new();
    batch.put(Cf::Write, b"a", b"1");
    batch.delete(Cf::Lock, b"a");
    store.write(&batch).unwrap();
    let rows = [Cf::Default, Cf::Write].map(|cf| Ok((cf, b"r".to_vec(), b"2".to_vec())));
    store.replace_range(b"q", b"s", &mut rows.into_iter(), &put(Cf::Meta, b"last", b"3")).unwrap();
}
