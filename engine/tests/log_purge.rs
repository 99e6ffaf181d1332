//! Purge takes a file from the middle: what it undoes of older files is not forgotten with it.
//!
//! Each test lets file 1 say something, a later file undo it, and the later file go while file 1 stays. Then the log is opened
//! again, and the model says what must be there.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use engine::disk::Disk;
use engine::log::{Budget, Durability, LogOptions};
use log_model::{Change, Driver, small_options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Dense files: so that a file can be mostly live.
fn options() -> LogOptions {
    LogOptions { align_bytes: 512, ..small_options() }
}

fn noise(rng: &mut StdRng, count: usize) -> Vec<bytes::Bytes> {
    (0..count).map(|_| (0..3305).map(|_| rng.random::<u8>()).collect()).collect()
}

fn entries(text: &str, count: usize) -> Vec<bytes::Bytes> {
    (0..count).map(|at| format!("{text} {at}").into_bytes().into()).collect()
}

fn does(driver: &mut Driver, changes: Vec<Change>) {
    driver.submit(changes, Durability::Synced);
    driver.turn();
}

fn files(driver: &Driver) -> Vec<String> {
    let names = Disk::list(driver.disk.as_ref()).unwrap();
    names.into_iter().filter(|name| name.ends_with(".log")).collect()
}

/// Appends and compacts until the active file is another one.
fn next_file(driver: &mut Driver, rng: &mut StdRng) {
    let before = files(driver).len();
    for round in 0.. {
        let first = 1 + round;
        let group = 1000 + before as u64;
        does(driver, vec![Change::Append { group, first, entries: noise(rng, 1) }]);
        does(driver, vec![Change::Compact { group, first_kept: first + 1 }]);
        if files(driver).len() > before {
            return;
        }
    }
}

/// `said` in file 1, `undone` in file 2; file 2 goes, file 1 stays.
fn survives(said: Vec<Change>, undone: Vec<Vec<Change>>, later: Vec<Change>) {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(options());
    does(&mut driver, said);
    does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
    next_file(&mut driver, &mut rng);
    undone.into_iter().for_each(|changes| does(&mut driver, changes));
    next_file(&mut driver, &mut rng);
    does(&mut driver, later);
    next_file(&mut driver, &mut rng);
    for _ in 0..20 {
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    let left = files(&driver);
    let has = |seq: u64| left.contains(&format!("{seq:016}.log"));
    assert!(has(1) && !has(2), "{left:?}");
    driver.check_live();
    driver.crash(1).unwrap();
    driver.check_live();
}

#[test]
fn a_deleted_key_stays_deleted() {
    let put = |value: &[u8]| Change::Put { group: 1, key: b"k".to_vec(), value: value.to_vec() };
    let delete = Change::Delete { group: 1, key: b"k".to_vec() };
    survives(vec![put(b"old")], vec![vec![delete.clone()]], vec![]);
    survives(vec![put(b"old")], vec![vec![delete]], vec![put(b"new")]);
    survives(vec![put(b"old")], vec![vec![put(b"live")]], vec![]);
}

#[test]
fn a_removed_group_stays_removed() {
    let said = vec![
        Change::Append { group: 1, first: 1, entries: entries("old", 5) },
        Change::Put { group: 1, key: b"k".to_vec(), value: b"old".to_vec() },
    ];
    survives(said, vec![vec![Change::Remove { group: 1 }]], vec![]);
}

#[test]
fn a_cut_end_stays_cut() {
    let append =
        |first: u64, text: &str, count: usize| Change::Append { group: 1, first, entries: entries(text, count) };
    // Nothing of the cut is left but the cut itself: the compaction is in a later file.
    survives(
        vec![append(1, "old", 10)],
        vec![vec![append(5, "new", 1)]],
        vec![Change::Compact { group: 1, first_kept: 6 }],
    );
    // Its entries live on.
    survives(vec![append(1, "old", 10)], vec![vec![append(5, "new", 1)]], vec![]);
    // They are replaced later.
    survives(vec![append(1, "old", 10)], vec![vec![append(5, "new", 4)]], vec![append(3, "newest", 1)]);
}

#[test]
fn a_compaction_stays_done() {
    let append = Change::Append { group: 1, first: 1, entries: entries("old", 10) };
    survives(vec![append.clone()], vec![vec![Change::Compact { group: 1, first_kept: 8 }]], vec![]);
    survives(vec![append], vec![vec![Change::Compact { group: 1, first_kept: 30 }]], vec![]);
}

/// A group that was removed and is there again: its file waits for the older ones.
#[test]
fn a_group_that_is_there_again_keeps_its_file() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(options());
    let put = |key: &[u8]| Change::Put { group: 1, key: key.to_vec(), value: b"v".to_vec() };
    does(&mut driver, vec![put(b"a"), put(b"b")]);
    does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
    next_file(&mut driver, &mut rng);
    does(&mut driver, vec![Change::Remove { group: 1 }]);
    does(&mut driver, vec![put(b"c")]);
    next_file(&mut driver, &mut rng);
    next_file(&mut driver, &mut rng);
    let purge = |driver: &mut Driver| {
        for _ in 0..20 {
            driver.engine.purge(Budget::default()).unwrap();
            driver.turn();
        }
    };
    purge(&mut driver);
    assert!(files(&driver).contains(&"0000000000000002.log".to_owned()));
    does(&mut driver, vec![Change::Remove { group: 99 }]);
    purge(&mut driver);
    let left = files(&driver);
    assert!(left[0].as_str() > "0000000000000002.log", "{left:?}");
    driver.crash(3).unwrap();
    driver.check_live();
}

/// A group is removed, and made again just when what its file undoes is being said again: in the queue before that, but not yet written
/// when it was looked at. Its old keys and entries must not come back with the file gone.
#[test]
fn a_group_that_is_made_again_while_its_file_is_rewritten() {
    for calls in 0..8 {
        let mut rng = StdRng::seed_from_u64(5);
        let mut driver = Driver::new(options());
        let put = |key: &[u8]| Change::Put { group: 1, key: key.to_vec(), value: b"v".to_vec() };
        let append = |first, count| Change::Append { group: 1, first, entries: entries("old", count) };
        does(&mut driver, vec![put(b"a"), put(b"b"), Change::Compact { group: 1, first_kept: 8 }, append(8, 4)]);
        does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
        next_file(&mut driver, &mut rng);
        does(&mut driver, vec![Change::Remove { group: 1 }]);
        next_file(&mut driver, &mut rng);
        next_file(&mut driver, &mut rng);
        let purge = |driver: &mut Driver| {
            driver.engine.purge(Budget::default()).unwrap();
            driver.turn();
        };
        (0..calls).for_each(|_| purge(&mut driver));
        driver.submit(vec![put(b"c"), append(1, 3)], Durability::Synced);
        (0..20).for_each(|_| purge(&mut driver));
        driver.check_live();
        driver.crash(3).unwrap_or_else(|what| panic!("after {calls} calls: {what}"));
        assert!(files(&driver).contains(&"0000000000000001.log".to_owned()));
        does(&mut driver, vec![Change::Remove { group: 99 }]);
        (0..20).for_each(|_| purge(&mut driver));
        assert!(files(&driver)[0].as_str() > "0000000000000002.log", "{:?}", files(&driver));
        driver.crash(4).unwrap();
    }
}

/// Groups that keep old files alive are named, with where to compact them to; once they are, the files go.
#[test]
fn laggards_are_named_with_what_they_pin() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: 500 << 10, ..options() });
    does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
    for _ in 0..8 {
        next_file(&mut driver, &mut rng);
    }
    let report = driver.engine.purge(Budget::default()).unwrap();
    let [lag] = report.lagging.as_slice() else { panic!("{report:?}") };
    assert_eq!((lag.group.0, lag.compact_to), (99, 18));
    assert!((17 * 3200..17 * 3400).contains(&lag.pinned_bytes), "{lag:?}");
    does(&mut driver, vec![Change::Compact { group: 99, first_kept: lag.compact_to }]);
    for _ in 0..30 {
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    assert!(driver.engine.purge(Budget::default()).unwrap().lagging.is_empty());
    assert!(files(&driver)[0].as_str() > "0000000000000001.log");
}
