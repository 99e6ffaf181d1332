//! Tests of the RocksDB store alone: files, locks, dying processes, and the lifetimes of handles and snapshots.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use engine::store::rocks::{RocksOptions, RocksStore, StoreMetrics, check_format};
use engine::store::{NewestReader, Reader, Result, Snapshot, Store, StoreError};
use engine::{Cf, WriteBatch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

use crate::common::{dump, open, options, put, rows};

/// The environment variable with the store directory of a child process of this binary.
const CHILD_DIR: &str = "CORTADO_STORE_TEST_DIR";

/// Runs the test `name` of this binary, with its module, as a child process on the store in `dir`.
fn child(name: &str, dir: &Path) -> std::process::Output {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD_DIR, dir)
        .output()
        .unwrap()
}

fn child_dir() -> Option<PathBuf> {
    env::var_os(CHILD_DIR).map(PathBuf::from)
}

/// Every file below `dir` with its content.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn child_dies_with_unflushed_writes() {
    let Some(dir) = child_dir() else { return };
    let store = open(&dir);
    store.write(&put(Cf::Default, b"flushed", b"1")).unwrap();
    store.write(&put(Cf::Meta, b"applied", b"1")).unwrap();
    store.flush().unwrap();
    store.write(&put(Cf::Lock, b"unflushed", b"2")).unwrap();
    store.write(&put(Cf::Meta, b"applied", b"2")).unwrap();
    assert_eq!(store.snapshot().get(Cf::Meta, b"applied").unwrap().unwrap(), b"2");
    assert_eq!(store.get_flushed(Cf::Meta, b"applied").unwrap().unwrap(), b"1");
    println!("ready to die");
    std::process::abort();
}

#[test]
fn a_killed_process_keeps_flushed_data() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let output = child("rocks::child_dies_with_unflushed_writes", &dir);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("ready to die"), "{output:?}");
    assert_eq!(dump(&open(&dir).snapshot()), "default/flushed=1\nmeta/applied=1\n");
}

#[test]
fn child_finds_the_lock_taken() {
    let Some(dir) = child_dir() else { return };
    assert!(matches!(RocksStore::open(&dir, &options()), Err(StoreError::Locked { .. })));
    println!("refused");
}

#[test]
fn a_directory_in_use_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let store = open(&dir);
    let output = child("rocks::child_finds_the_lock_taken", &dir);
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused"), "{output:?}");
    assert!(matches!(RocksStore::open(&dir, &options()), Err(StoreError::Locked { dir: locked }) if locked == dir));
    store.write(&put(Cf::Default, b"a", b"1")).unwrap();
    drop(store);
    open(&dir);
}

#[test]
fn another_format_is_refused_and_left_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    assert!(check_format(&dir).is_ok() && !dir.exists(), "there is no store yet");
    open(&dir);
    assert!(check_format(&dir).is_ok());
    assert_eq!(fs::read(dir.join("FORMAT")).unwrap(), b"cortado-store 4\n");
    fs::write(dir.join("ingest").join("left"), "by the other release").unwrap();
    for other in [3, 5] {
        fs::write(dir.join("FORMAT"), format!("cortado-store {other}\n")).unwrap();
        let before = files(&dir);
        for refused in [check_format(&dir), RocksStore::open(&dir, &options()).map(drop)] {
            match refused {
                Err(StoreError::OlderFormat { found: 3, supported: 4, .. }) if other == 3 => {}
                Err(StoreError::NewerFormat { found: 5, supported: 4, .. }) if other == 5 => {}
                outcome => panic!("format {other}: {outcome:?}"),
            }
        }
        assert_eq!(files(&dir), before);
    }
}

#[test]
fn a_directory_without_a_readable_marker_is_damaged() {
    for marker in ["", "cortado-store", "cortado-store 0\n", "cortado-store 1", "cortado-store x\n", "raft 1\n"] {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("store");
        open(&dir);
        fs::write(dir.join("FORMAT"), marker).unwrap();
        assert!(matches!(RocksStore::open(&dir, &options()), Err(StoreError::Corrupt(_))), "{marker:?}");
        fs::remove_file(dir.join("FORMAT")).unwrap();
        assert!(matches!(RocksStore::open(&dir, &options()), Err(StoreError::Corrupt(_))));
    }
}

#[test]
fn a_damaged_file_is_reported_as_damage() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let store = open(&dir);
    let mut value = vec![0; 20_000];
    StdRng::seed_from_u64(1).fill(value.as_mut_slice());
    store.write(&put(Cf::Default, b"a", &value)).unwrap();
    store.flush().unwrap();
    drop(store);
    // Tables that hold the value; the small ones belong to the store.
    let is_table = |path: &Path| path.extension().is_some_and(|name| name == "sst");
    let tables = files(&dir).into_iter().filter(|(path, bytes)| is_table(path) && bytes.len() > 20_000);
    for (path, mut bytes) in tables {
        bytes[5] ^= 0xff;
        fs::write(path, bytes).unwrap();
    }
    let store = open(&dir);
    assert!(matches!(store.snapshot().get(Cf::Default, b"a"), Err(StoreError::Corrupt(_))));
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Cf::Default, b"", b"").unwrap();
    assert!(matches!(cursor.seek_to_first(), Err(StoreError::Corrupt(_))));
    // Errors are sticky.
    assert!(matches!(cursor.seek(b"zzz"), Err(StoreError::Corrupt(_))));
}

#[test]
fn leftovers_of_a_replacement_are_cleaned_on_open() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    open(&dir);
    fs::create_dir(dir.join("ingest/0")).unwrap();
    fs::write(dir.join("ingest/0/0.sst"), "half a file").unwrap();
    let store = open(&dir);
    assert_eq!(fs::read_dir(dir.join("ingest")).unwrap().count(), 0);
    let rows = [Ok((Cf::Default, b"a".to_vec(), b"1".to_vec()))];
    store.replace_range(b"", b"", &mut rows.into_iter(), &put(Cf::Meta, b"m", b"1")).unwrap();
    assert_eq!(fs::read_dir(dir.join("ingest")).unwrap().count(), 0);
    let failing = [Ok((Cf::Default, b"b".to_vec(), b"1".to_vec())), Err(StoreError::Corrupt("source".into()))];
    store.replace_range(b"", b"", &mut failing.into_iter(), &put(Cf::Meta, b"m", b"2")).unwrap_err();
    assert_eq!(fs::read_dir(dir.join("ingest")).unwrap().count(), 0);
    // The source failed before the store was changed.
    assert_eq!(dump(&store.snapshot()), "default/a=1\nmeta/m=1\n");
}

#[test]
fn a_snapshot_outlives_its_store() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let store = open(&dir);
    store.write(&put(Cf::Default, b"a", b"1")).unwrap();
    let snapshot = store.snapshot();
    let clone = snapshot.clone();
    store.write(&put(Cf::Default, b"a", b"2")).unwrap();
    drop(store);
    drop(snapshot);
    // The database stays open until the last snapshot is dropped; then the directory is free.
    assert!(matches!(RocksStore::open(&dir, &options()), Err(StoreError::Locked { .. })));
    let read = std::thread::spawn(move || {
        let mut cursor = clone.cursor(Cf::Default, b"", b"").unwrap();
        assert!(cursor.seek_to_first().unwrap());
        cursor.value().to_vec()
    });
    assert_eq!(read.join().unwrap(), b"1");
    open(&dir);
}

#[test]
fn a_cursor_outlives_its_snapshot_and_its_store() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let store = open(&dir);
    store.write(&put(Cf::Default, b"a", b"1")).unwrap();
    let mut cursor = store.snapshot().cursor(Cf::Default, b"", b"").unwrap();
    store.write(&put(Cf::Default, b"a", b"2")).unwrap();
    store.write(&put(Cf::Default, b"b", b"2")).unwrap();
    store.flush().unwrap();
    drop(store);
    // The database stays open until the cursor is dropped.
    assert!(matches!(RocksStore::open(&dir, &options()), Err(StoreError::Locked { .. })));
    let read = std::thread::spawn(move || {
        assert!(cursor.seek_to_first().unwrap());
        let value = cursor.value().to_vec();
        assert!(!cursor.next().unwrap());
        value
    });
    assert_eq!(read.join().unwrap(), b"1");
    open(&dir);
}

/// The deleted records that a cursor over all locks walks.
/// A read of the newest state never reads a file, so it never waits for a disk.
#[test]
fn what_is_not_in_memory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (key, row) = (b"key", b"key\0\0\0\0\0\0\0\x01");
    let store = open(dir.path());
    let mut batch = WriteBatch::new();
    batch.put(Cf::Lock, key, b"lock");
    batch.put(Cf::Write, row, b"write");
    store.write(&batch).unwrap();
    assert_eq!(store.cached().get(Cf::Lock, key).unwrap(), Some(b"lock".to_vec()), "in the memtable");
    store.flush().unwrap();
    drop(store);

    let store = open(dir.path());
    let refused = |found: Result<bool>| assert!(matches!(found, Err(StoreError::NotCached)), "{found:?}");
    let seek = || store.cached().version_cursor(key, b"").and_then(|mut cursor| cursor.seek(row));
    let visit = || store.visit_versions(Cf::Write, key, row, &mut |_, _| ControlFlow::Break(()));
    refused(store.cached().get(Cf::Lock, key).map(|_| true));
    refused(store.get_newest(Cf::Lock, key).map(|_| true));
    refused(seek());
    refused(visit().map(|()| true));
    let snapshot = store.snapshot();
    let cached = snapshot.cached();
    refused(cached.get(Cf::Lock, key).map(|_| true));
    refused(cached.cursor(Cf::Write, b"", b"").and_then(|mut cursor| cursor.seek_to_first()));
    refused(cached.limited_cursor(Cf::Write, b"", b"", 1).and_then(|mut cursor| cursor.seek_to_last()));
    rows(&snapshot);
    assert_eq!(rows(&cached), rows(&snapshot));
    assert_eq!(store.cached().get(Cf::Lock, key).unwrap(), Some(b"lock".to_vec()), "in the block cache");
    assert!(seek().unwrap());
    visit().unwrap();
}

fn deleted_locks(store: &RocksStore) -> u64 {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut counters = PerfContext::default();
    counters.reset();
    let snapshot = store.snapshot();
    assert!(!snapshot.cursor(Cf::Lock, b"", b"").unwrap().seek_to_first().unwrap());
    counters.metric(PerfMetric::InternalDeleteSkippedCount)
}

/// Every transaction leaves a deleted lock for each of its keys. They leave the files soon after a flush, without
/// waiting for other files to compact with.
#[test]
fn a_file_of_deletions_is_compacted_soon() {
    for flush_between in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let store = RocksStore::open(&temporary.path().join("store"), &RocksOptions::default()).unwrap();
        let (mut puts, mut deletes) = (WriteBatch::new(), WriteBatch::new());
        for n in 0u32..10_000 {
            puts.put(Cf::Lock, &n.to_be_bytes(), b"lock");
            deletes.delete(Cf::Lock, &n.to_be_bytes());
        }
        store.write(&puts).unwrap();
        if flush_between {
            store.flush().unwrap();
        }
        store.write(&deletes).unwrap();
        assert_eq!(deleted_locks(&store), 10_000);
        store.flush().unwrap();
        let polls = (0..10_000).take_while(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
            deleted_locks(&store) > 0
        });
        assert!(polls.count() < 10_000, "the deletions are still there, flush between {flush_between}");
    }
}

/// RocksDB's atomic flush can return before its memtables are on disk (see `store::rocks::flush`); a flush of the store
/// must not. It takes families whose memtable numbers differ, and a running flush of other families.
#[test]
fn a_flush_returns_when_it_is_on_disk() {
    let temporary = tempfile::tempdir().unwrap();
    let store = open(&temporary.path().join("store"));
    for round in 0u8..5 {
        store.write(&put(Cf::Lock, b"drift", &[round])).unwrap();
        store.flush().unwrap();
    }
    let mut value = vec![0; 16 << 20];
    StdRng::seed_from_u64(2).fill(value.as_mut_slice());
    let mut batch = put(Cf::Write, b"more than the memtables may hold", &value);
    batch.put(Cf::Meta, b"applied", b"1");
    store.write(&batch).unwrap();
    // This write starts the earlier flush, which takes a while.
    store.write(&put(Cf::Lock, b"last", b"")).unwrap();
    store.flush().unwrap();
    assert!(store.get_flushed(Cf::Lock, b"last").unwrap().is_some());
}

/// The files disappear under the store: the first failure is reported as it is, later ones as poisoned.
#[test]
fn a_failed_flush_poisons() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let store = open(&dir);
    store.write(&put(Cf::Default, b"a", b"1")).unwrap();
    store.flush().unwrap();
    store.write(&put(Cf::Default, b"a", b"2")).unwrap();
    fs::rename(dir.join("db"), dir.join("elsewhere")).unwrap();
    assert!(matches!(store.flush(), Err(StoreError::Backend(_))));
    assert!(matches!(store.flush(), Err(StoreError::Poisoned(_))));
    assert!(matches!(store.write(&put(Cf::Default, b"a", b"3")), Err(StoreError::Poisoned(_))));
    let replaced = store.replace_range(b"", b"", &mut std::iter::empty(), &put(Cf::Meta, b"m", b"1"));
    assert!(matches!(replaced, Err(StoreError::Poisoned(_))));
    // Reads still work, and reopening restores the flushed data.
    assert_eq!(store.snapshot().get(Cf::Default, b"a").unwrap().unwrap(), b"2");
    fs::rename(dir.join("elsewhere"), dir.join("db")).unwrap();
    drop(store);
    assert_eq!(open(&dir).snapshot().get(Cf::Default, b"a").unwrap().unwrap(), b"1");
}

#[test]
fn metrics_are_read_from_the_store() {
    let temporary = tempfile::tempdir().unwrap();
    let store = open(&temporary.path().join("store"));
    // Bytes that do not compress.
    let mut rng = StdRng::seed_from_u64(1);
    for key in 0u8..100 {
        let mut value = vec![0; 2000];
        rng.fill(value.as_mut_slice());
        store.write(&put(Cf::Default, &[key], &value)).unwrap();
    }
    store.flush().unwrap();
    assert_eq!(store.property(Cf::Default, "rocksdb.no-such-property"), None);

    let registry = prometheus::Registry::new();
    let metrics = StoreMetrics::new(&registry).unwrap();
    let _held = store.snapshot();
    metrics.observe(&store);
    let gauge = |name: &str| {
        let families = registry.gather();
        let family = families.iter().find(|family| family.name() == name).unwrap();
        family.get_metric().iter().map(|metric| metric.get_gauge().get_value()).sum::<f64>()
    };
    assert!(gauge("store_sst_bytes") > 0.0);
    assert!(gauge("store_memtable_bytes") > 0.0);
    assert!((gauge("store_snapshots") - 1.0).abs() < f64::EPSILON);
    assert!(StoreMetrics::new(&registry).is_err());
}
