//! The contracts of the calls of the log.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::SimDisk;
use engine::log::tools::stats;
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

/// `compress_from` applies to blocks: a shorter block is stored raw, however well it compresses.
#[test]
fn a_block_is_compressed_from_the_configured_length() {
    let stored = |compress_from: usize, len: usize| {
        let disk = SimDisk::new();
        let (log, _writer, _) =
            LogEngine::open_driven(disk.session(), LogOptions { compress_from, ..options() }).unwrap();
        log.write(append(1, vec![b'x'; len]), Durability::Synced).unwrap();
        assert_eq!(log.entry(GROUP, 1).unwrap(), vec![b'x'; len]);
        stats(disk.as_ref(), &mut |_| ()).unwrap().groups[0].bytes
    };
    assert!(stored(2000, 1900) > 1900, "below: raw");
    assert!(stored(2000, 2100) < 300, "above: compressed");
    let (all, none) = (stored(0, 300), stored(usize::MAX, 30_000));
    // The index stores the length of long blocks approximately.
    assert!(all < 100 && none > 25_000, "all, and none: {all}, {none}");
}

#[test]
fn keys_are_scanned_in_a_half_open_range() {
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
        assert_eq!(scan(b"b", None), ["b", "ba", "c"], "the lower bound is inclusive");
        assert_eq!(scan(b"", Some(b"b")), ["", "a"], "the upper bound is exclusive");
        assert_eq!(scan(b"b", Some(b"c")), ["b", "ba"]);
        assert_eq!(scan(b"aa", Some(b"bb")), ["b", "ba"], "bounds need not exist");
        assert!(scan(b"b", Some(b"b")).is_empty() && scan(b"c", Some(b"a")).is_empty() && scan(b"cc", None).is_empty());
        assert!(scan(b"", Some(b"")).is_empty());
    };
    check(&log);
    drop((log, writer));
    check(&LogEngine::open_driven(disk.session(), options()).unwrap().0);
}

/// A batch has one outcome, whether a callback receives it, or a ticket polls or waits for it.
#[test]
fn a_callback_and_a_ticket_get_the_same_outcome() {
    type Outcomes = Arc<Mutex<Vec<Result<Lsn, LogError>>>>;
    let (log, mut writer, _) = LogEngine::open_driven(SimDisk::new(), options()).unwrap();
    let outcomes = Outcomes::default();
    let callback = |outcomes: &Outcomes| {
        let outcomes = Arc::clone(outcomes);
        Box::new(move |outcome| outcomes.lock().push(outcome))
    };
    let polled = log.submit(append(1, b"one".to_vec()), Durability::Synced).unwrap();
    log.submit_with(append(2, b"two".to_vec()), Durability::Synced, callback(&outcomes)).unwrap();
    let waited = log.submit(append(3, b"three".to_vec()), Durability::Synced).unwrap();
    assert!(
        polled.poll().is_none() && waited.poll().is_none() && outcomes.lock().is_empty(),
        "nothing is completed yet"
    );
    assert!(matches!(log.entry(GROUP, 1), Err(LogError::NotFound { .. })), "and is not visible");
    assert_eq!(writer.turn(), 3);
    let one = polled.poll().unwrap().unwrap();
    assert_eq!(polled.poll().unwrap().unwrap(), one, "any number of times");
    assert_eq!(outcomes.lock().drain(..).map(Result::unwrap).collect::<Vec<_>>(), [one], "once, and one commit group");
    assert_eq!(waited.wait().unwrap(), one);
    assert_eq!(log.entry(GROUP, 2).unwrap(), Bytes::from_static(b"two"));
    // A refused batch.
    let polled = log.submit(append(9, Vec::new()), Durability::Synced).unwrap();
    log.submit_with(append(9, Vec::new()), Durability::Synced, callback(&outcomes)).unwrap();
    let waited = log.submit(append(9, Vec::new()), Durability::Synced).unwrap();
    writer.turn();
    let gap = |outcome: Result<Lsn, LogError>| matches!(outcome, Err(LogError::Gap { expected: 4 }));
    assert!(gap(polled.poll().unwrap()) && gap(waited.wait()));
    assert!(outcomes.lock().drain(..).all(gap));
    // Dropping a ticket has no effect.
    drop(log.submit(append(4, b"four".to_vec()), Durability::Synced).unwrap());
    writer.turn();
    assert_eq!(log.bounds(GROUP).unwrap().last, 4);
}
