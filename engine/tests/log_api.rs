//! What the calls of the log promise, one by one.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a test binary")]

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::SimDisk;
use engine::log::{Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, Lsn};
use parking_lot::Mutex;

const GROUP: GroupId = GroupId(7);

fn options() -> LogOptions {
    LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, spare_files: 0, identity: Some(1), ..LogOptions::default() }
}

fn append(index: u64, entry: Vec<u8>) -> LogBatch {
    let mut batch = LogBatch::new();
    batch.append(GROUP, index, vec![entry.into()]);
    batch
}

/// `compress_from` is about blocks: one that is shorter is stored as it is, however well it would compress.
#[test]
fn a_block_is_compressed_from_the_length_that_is_set() {
    let stored = |compress_from: usize, len: usize| {
        let (log, _writer, _) =
            LogEngine::open_driven(SimDisk::new(), LogOptions { compress_from, ..options() }).unwrap();
        log.write(append(1, vec![b'x'; len]), Durability::Synced).unwrap();
        assert_eq!(log.entry(GROUP, 1).unwrap(), vec![b'x'; len]);
        log.group_stats(GROUP).stored_bytes
    };
    assert!(stored(2000, 1900) > 1900, "below: raw");
    assert!(stored(2000, 2100) < 300, "above: compressed");
    let (all, none) = (stored(0, 300), stored(usize::MAX, 30_000));
    // The index knows long blocks by about their length.
    assert!(all < 100 && none > 25_000, "all, and none: {all}, {none}");
}

#[test]
fn keys_are_scanned_from_one_bound_to_before_the_other() {
    let disk = SimDisk::new();
    let (log, writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    let mut batch = LogBatch::new();
    for key in ["b", "a", "c", "ba", "", "d"] {
        batch.put(GROUP, key.as_bytes(), format!("of {key}").as_bytes());
    }
    batch.delete(GROUP, b"d");
    batch.put(GroupId(8), b"bb", b"another's");
    log.write(batch, Durability::Synced).unwrap();
    let check = |log: &LogEngine| {
        let scan = |from: &[u8], to: Option<&[u8]>| {
            let pairs = log.scan_range(GROUP, from, to).unwrap();
            assert!(pairs.iter().all(|(key, value)| *value == [b"of ", &key[..]].concat()));
            pairs.into_iter().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(scan(b"", None), ["", "a", "b", "ba", "c"]);
        assert_eq!(scan(b"b", None), ["b", "ba", "c"], "the first is within");
        assert_eq!(scan(b"", Some(b"b")), ["", "a"], "the last is not");
        assert_eq!(scan(b"b", Some(b"c")), ["b", "ba"]);
        assert_eq!(scan(b"aa", Some(b"bb")), ["b", "ba"], "bounds need not be there");
        assert!(scan(b"b", Some(b"b")).is_empty() && scan(b"c", Some(b"a")).is_empty() && scan(b"cc", None).is_empty());
        assert!(scan(b"", Some(b"")).is_empty());
    };
    check(&log);
    drop((log, writer));
    check(&LogEngine::open_driven(disk.session(), options()).unwrap().0);
}

/// The fate of a batch is one, however it is asked for: told to a callback, looked at, or waited for.
#[test]
fn a_callback_and_a_ticket_say_the_same() {
    type Told = Arc<Mutex<Vec<Result<Lsn, LogError>>>>;
    let (log, mut writer, _) = LogEngine::open_driven(SimDisk::new(), options()).unwrap();
    let told = Told::default();
    let tell = |told: &Told| {
        let told = Arc::clone(told);
        Box::new(move |outcome| told.lock().push(outcome))
    };
    let looked_at = log.submit(append(1, b"one".to_vec()), Durability::Synced).unwrap();
    log.submit_with(append(2, b"two".to_vec()), Durability::Synced, tell(&told)).unwrap();
    let waited_for = log.submit(append(3, b"three".to_vec()), Durability::Synced).unwrap();
    assert!(
        looked_at.poll().is_none() && waited_for.poll().is_none() && told.lock().is_empty(),
        "nothing has a fate yet"
    );
    assert!(matches!(log.entry(GROUP, 1), Err(LogError::NotFound { .. })), "and is not read");
    assert_eq!(writer.turn(), 3);
    let one = looked_at.poll().unwrap().unwrap();
    assert_eq!(looked_at.poll().unwrap().unwrap(), one, "as often as one looks");
    assert_eq!(told.lock().drain(..).map(Result::unwrap).collect::<Vec<_>>(), [one], "once, and one commit group");
    assert_eq!(waited_for.wait().unwrap(), one);
    assert_eq!(log.entry(GROUP, 2).unwrap(), Bytes::from_static(b"two"));
    // A batch that is refused.
    let looked_at = log.submit(append(9, Vec::new()), Durability::Synced).unwrap();
    log.submit_with(append(9, Vec::new()), Durability::Synced, tell(&told)).unwrap();
    let waited_for = log.submit(append(9, Vec::new()), Durability::Synced).unwrap();
    writer.turn();
    let gap = |outcome: Result<Lsn, LogError>| matches!(outcome, Err(LogError::Gap { expected: 4 }));
    assert!(gap(looked_at.poll().unwrap()) && gap(waited_for.wait()));
    assert!(told.lock().drain(..).all(gap));
    // A ticket that nobody keeps changes nothing.
    drop(log.submit(append(4, b"four".to_vec()), Durability::Synced).unwrap());
    writer.turn();
    assert_eq!(log.bounds(GROUP).unwrap().last, 4);
}
