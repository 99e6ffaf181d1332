//! Purge takes a file from the middle: what it undoes of older files is not forgotten with it.
//!
//! Each test lets file 1 say something, a later file undo it, and the later file go while file 1 stays. Then the log is opened
//! again, and the model says what must be there.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log_model/mod.rs"]
mod log_model;

use engine::disk::{Disk, Operation, SimDisk};
use engine::log::{Budget, Compression, Durability, GroupId, LogOptions, PurgeOutcome};
use log_model::{Change, Driver, flip, small_options};
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
    let [lag] = report.pinning.as_slice() else { panic!("{report:?}") };
    assert_eq!((lag.group.0, lag.compact_to), (99, 18));
    assert!((17 * 3200..17 * 3400).contains(&lag.pinned_bytes), "{lag:?}");
    does(&mut driver, vec![Change::Compact { group: 99, first_kept: lag.compact_to }]);
    for _ in 0..30 {
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    assert!(driver.engine.purge(Budget::default()).unwrap().pinning.is_empty());
    assert!(files(&driver)[0].as_str() > "0000000000000001.log");
}

/// A log over its threshold: group 99 pins file 1, group 50 has one entry, which is returned, in file 2 and group 51 one in file 3.
fn pinned(rng: &mut StdRng) -> (Driver, bytes::Bytes) {
    let mut driver = Driver::new(LogOptions { purge_threshold: 300 << 10, cache_bytes: 0, ..options() });
    does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(rng, 17) }]);
    next_file(&mut driver, rng);
    let entries = noise(rng, 1);
    does(&mut driver, vec![Change::Append { group: 50, first: 1, entries: entries.clone() }]);
    next_file(&mut driver, rng);
    does(&mut driver, vec![Change::Append { group: 51, first: 1, entries: noise(rng, 1) }]);
    (0..6).for_each(|_| next_file(&mut driver, rng));
    (driver, entries[0].clone())
}

/// A file that cannot be read is named, once, and stays; the others go, and laggards are named all the same.
#[test]
fn damage_in_one_file_does_not_keep_the_others() {
    type Harm = fn(&Driver, &bytes::Bytes);
    let block: Harm = |driver, entry| {
        let content = driver.disk.content("0000000000000002.log").unwrap();
        let at = content.windows(entry.len()).position(|bytes| bytes == entry).unwrap();
        flip(&driver.disk, "0000000000000002.log", at + 7);
    };
    let seal: Harm = |driver, _| {
        let content = driver.disk.content("0000000000000002.log").unwrap();
        flip(&driver.disk, "0000000000000002.log", content.len() - 5);
    };
    let failing: Harm = |driver, _| driver.disk.fail_nth(Operation::Read, 1, std::io::ErrorKind::Other);
    // Of the seal those that the next file's header names.
    let changed = [50, 1001, 1002].map(GroupId).to_vec();
    for (harm, groups) in [(block, vec![GroupId(50)]), (seal, changed.clone()), (failing, changed)] {
        let mut rng = StdRng::seed_from_u64(5);
        let (mut driver, entry) = pinned(&mut rng);
        harm(&driver, &entry);
        let mut damage = Vec::new();
        let mut freed = 0;
        for round in 0..40 {
            let report = driver.engine.purge(Budget::default()).unwrap();
            if round < 3 {
                assert_eq!(report.pinning.first().map(|lag| lag.group), Some(GroupId(99)), "round {round}: {report:?}");
            }
            damage.extend(report.damage);
            freed += report.freed;
            driver.turn();
        }
        let [found] = damage.as_slice() else { panic!("{damage:?}") };
        assert_eq!((found.file.as_str(), &found.groups), ("0000000000000002.log", &groups), "{found}");
        let left = files(&driver);
        assert!(
            left.contains(&"0000000000000002.log".to_owned()) && !left.contains(&"0000000000000003.log".to_owned())
        );
        assert!(freed >= 3 * (60 << 10), "{freed}");
        // Nothing lives in it any more: it goes with the oldest.
        does(&mut driver, [50, 99, 1001, 1002].map(|group| Change::Remove { group }).to_vec());
        (0..20).for_each(|_| {
            driver.engine.purge(Budget::default()).unwrap();
            driver.turn();
        });
        assert!(files(&driver)[0].as_str() > "0000000000000002.log", "{:?}", files(&driver));
        driver.check_live();
        driver.crash(1).unwrap();
    }
}

/// What a log says that has met a failed sync is not trusted any more: the files that it has written again stay.
#[test]
fn a_poisoned_log_deletes_nothing() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(options());
    (0..3).for_each(|_| next_file(&mut driver, &mut rng));
    // The record that drops the dead files is written; they are not deleted yet.
    driver.engine.purge(Budget::default()).unwrap();
    driver.turn();
    driver.disk.fail_nth(Operation::Sync, 1, std::io::ErrorKind::Other);
    does(&mut driver, vec![Change::Put { group: 1, key: b"k".to_vec(), value: b"v".to_vec() }]);
    assert!(driver.engine.poisoned().is_some());
    let (before, changes) = (files(&driver), driver.disk.changes());
    assert!(before.contains(&"0000000000000001.log".to_owned()), "{before:?}");
    let report = driver.engine.purge(Budget::default()).unwrap();
    assert_eq!(
        (report.freed, report.outcome, files(&driver), driver.disk.changes()),
        (0, PurgeOutcome::Idle, before, changes)
    );
    // Opened again it knows where it stands, and they go.
    driver.crash(1).unwrap();
    assert!(!files(&driver).contains(&"0000000000000001.log".to_owned()));
}

/// Many idle groups, each with less than is worth a report: together they hold more than the log may take. They are named all the same, and
/// when their owner lets go what it is asked to, the log comes back to what it should be.
#[test]
fn many_groups_that_pin_little_each_are_named_when_the_log_is_pressed() {
    const THRESHOLD: u64 = 1 << 20;
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: THRESHOLD, ..options() });
    for group in 1..=1000u64 {
        let entries = vec![noise(&mut rng, 1)[0].slice(..2500)];
        driver.submit(vec![Change::Append { group, first: 1, entries }], Durability::Buffered);
        if group % 20 == 0 {
            driver.turn();
        }
    }
    driver.turn();
    assert!(driver.engine.stats().disk_bytes > 2 * THRESHOLD, "{:?}", driver.engine.stats());
    for _ in 0..200 {
        let report = driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
        if report.pinning.is_empty() && report.outcome == PurgeOutcome::Idle {
            break;
        }
        for lag in report.pinning {
            driver
                .submit(vec![Change::Compact { group: lag.group.0, first_kept: lag.compact_to }], Durability::Buffered);
            driver.turn();
        }
    }
    let stats = driver.engine.stats();
    assert!(stats.disk_bytes <= THRESHOLD + THRESHOLD / 2 + (64 << 10), "{stats:?}");
    assert!(
        driver.engine.groups().iter().any(|group| driver.engine.bounds(*group).unwrap().last == 1),
        "more than was needed"
    );
}

/// The same groups hold less than the log may take, in files that are nearly all live: what others write meanwhile is given back, and the
/// log stays bounded without any help.
#[test]
fn many_idle_groups_are_written_again_and_the_log_stays_bounded() {
    const THRESHOLD: u64 = 1 << 20;
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: THRESHOLD, ..options() });
    let mut most = 0;
    for round in 0..400u64 {
        // Every fourth commit group brings a new idle group, until they take 60 % of the threshold.
        if round < 250 {
            does(
                &mut driver,
                vec![Change::Append {
                    group: 10_000 + round,
                    first: 1,
                    entries: vec![noise(&mut rng, 1)[0].slice(..2500)],
                }],
            );
        }
        for at in 0..3 {
            let index = round * 3 + at + 1;
            does(&mut driver, vec![Change::Append { group: 1, first: index, entries: noise(&mut rng, 1) }]);
        }
        does(&mut driver, vec![Change::Compact { group: 1, first_kept: round * 3 + 1 }]);
        driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        driver.turn();
        most = most.max(driver.engine.stats().disk_bytes);
    }
    assert!(most <= THRESHOLD + THRESHOLD / 2 + 2 * (64 << 10), "{most}");
    driver.check_live();
    driver.crash(1).unwrap();
}

/// No step writes more than it may, by more than one key or block: also where a group has many large keys, or a file undoes much.
#[test]
fn a_step_writes_no_more_than_its_budget() {
    const BUDGET: usize = 8 << 10;
    const LARGEST: usize = 3400;
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    let key = |number: u64| [number.to_be_bytes().as_slice(), &[7; 50]].concat();
    // File 1 stays, and has what file 2 deletes.
    for number in 0..300 {
        let put = Change::Put { group: 1, key: key(number), value: vec![1; 10] };
        driver.submit(vec![put], Durability::Buffered);
    }
    driver.turn();
    does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 10) }]);
    next_file(&mut driver, &mut rng);
    for number in 0..300 {
        driver.submit(vec![Change::Delete { group: 1, key: key(number) }], Durability::Buffered);
    }
    for number in 0..4 {
        let value = noise(&mut rng, 1)[0].to_vec();
        driver.submit(vec![Change::Put { group: 3, key: vec![number], value }], Durability::Buffered);
    }
    driver.turn();
    does(&mut driver, vec![Change::Append { group: 4, first: 1, entries: noise(&mut rng, 3) }]);
    next_file(&mut driver, &mut rng);
    next_file(&mut driver, &mut rng);
    let second = "0000000000000002.log".to_owned();
    let mut steps = 0;
    while files(&driver).contains(&second) {
        let (before, place) = (driver.engine.stats().disk_bytes, files(&driver));
        let report = driver.engine.purge(Budget { bytes: BUDGET, find_pinning: false }).unwrap();
        assert!(report.rewritten <= (BUDGET + LARGEST) as u64, "{report:?}");
        driver.turn();
        if files(&driver) == place {
            let grown = driver.engine.stats().disk_bytes - before;
            assert!(grown <= (BUDGET + LARGEST + 1024) as u64, "{grown} after {steps} steps");
        }
        driver.check_live();
        let mut other = driver.fork();
        other.crash(steps).unwrap_or_else(|what| panic!("after {steps} steps: {what}"));
        steps += 1;
        assert!(steps < 100, "it does not come to an end");
    }
    assert!(steps > 6, "{steps}");
    assert!(files(&driver).contains(&"0000000000000001.log".to_owned()));
    driver.crash(1).unwrap();
    driver.check_live();
}

/// Of two files that are as full, the one goes first that is older; of two that are about as old, the emptier one.
#[test]
fn the_file_that_brings_most_goes_first() {
    let first_gone = |counts: [usize; 3]| {
        let mut rng = StdRng::seed_from_u64(5);
        let mut driver = Driver::new(options());
        does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
        for (at, count) in counts.into_iter().enumerate() {
            next_file(&mut driver, &mut rng);
            does(
                &mut driver,
                vec![Change::Append { group: 50 + at as u64, first: 1, entries: noise(&mut rng, count) }],
            );
        }
        (0..6).for_each(|_| next_file(&mut driver, &mut rng));
        let there = [2, 3, 4].map(|seq| format!("{seq:016}.log"));
        for _ in 0..60 {
            driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
            driver.turn();
            if let Some(gone) = there.iter().position(|name| !files(&driver).contains(name)) {
                return gone;
            }
        }
        panic!("none goes");
    };
    assert_eq!(first_gone([2, 2, 2]), 0);
    assert_eq!(first_gone([7, 1, 1]), 1);
    assert_eq!(first_gone([7, 7, 1]), 2);
}

/// Purges, without anything else, until there is nothing more to do; says after how many calls.
fn purge_to_its_end(driver: &mut Driver, most: usize) -> usize {
    for calls in 1..=most {
        let report = driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        driver.turn();
        if report.outcome == PurgeOutcome::Idle {
            return calls;
        }
    }
    panic!("purge does not come to an end: {:?}", driver.engine.stats());
}

/// Keys and values stand in a sealed file twice, so a file full of them looks half dead by what lives in it, as would each that it is written again to. What
/// lives takes more than the log may: there is nothing to gain, and purge sees it.
#[test]
fn files_full_of_live_keys_are_not_written_again_for_ever() {
    let (lz4, off) = (Compression::Lz4, Compression::Off);
    let noisy = [(100, 0, lz4, 1), (1000, 0, lz4, 1), (4096, 0, lz4, 1), (4096, 32 << 10, lz4, 1)];
    // Half of the bytes compress, in the index, which is compressed always, and elsewhere or not.
    for (len, prefill_bytes, compression, noise) in noisy.into_iter().chain([(1000, 0, lz4, 2), (1000, 0, off, 2)]) {
        let mut rng = StdRng::seed_from_u64(5);
        let options =
            LogOptions { purge_threshold: 256 << 10, spare_files: 0, prefill_bytes, compression, ..options() };
        let mut driver = Driver::new(options);
        let value =
            |rng: &mut StdRng| (0..len).map(|at| if at < len / noise { rng.random() } else { 0 }).collect::<Vec<u8>>();
        let put = |rng: &mut StdRng, number: u64| {
            let key = number.to_be_bytes().to_vec();
            Change::Put { group: number % 10, key, value: value(rng) }
        };
        for number in 0..800_000 / len as u64 {
            driver.submit(vec![put(&mut rng, number)], Durability::Buffered);
            if number % 50 == 0 {
                driver.turn();
            }
        }
        driver.turn();
        purge_to_its_end(&mut driver, 100);
        let before = driver.engine.stats();
        assert!(before.disk_bytes > 600_000, "{before:?}");
        assert_eq!(purge_to_its_end(&mut driver, 1), 1, "values of {len} bytes, {compression:?}");
        assert_eq!(driver.engine.stats().disk_bytes, before.disk_bytes);
        // Most of them die: now there is something to gain.
        for group in 1..10 {
            does(&mut driver, vec![Change::Remove { group }]);
        }
        purge_to_its_end(&mut driver, 100);
        let after = driver.engine.stats();
        assert!(after.disk_bytes <= 384 << 10, "{after:?}");
        driver.check_live();
        driver.crash(1).unwrap();
        purge_to_its_end(&mut driver, 10);
    }
}

/// A file that was made of a spare keeps its length, which may be that of files as they once were to be. What it has beyond the bound of files comes
/// back by no writing again: the next file is made of it.
#[test]
fn files_made_of_longer_spares_are_not_written_again_for_ever() {
    let mut rng = StdRng::seed_from_u64(5);
    let longer = LogOptions { file_bytes: 120 << 10, spare_files: 4, purge_threshold: 0, ..options() };
    let mut driver = Driver::new(longer.clone());
    let append = |first, entries| vec![Change::Append { group: 1, first, entries }];
    for round in 0..20 {
        does(&mut driver, append(1 + round * 10, noise(&mut rng, 10)));
    }
    does(&mut driver, vec![Change::Compact { group: 1, first_kept: 201 }]);
    purge_to_its_end(&mut driver, 100);
    assert_eq!(driver.engine.stats().spare_files, 4);
    driver.options = LogOptions { file_bytes: 64 << 10, purge_threshold: 128 << 10, ..longer };
    driver.reopen().unwrap();
    assert_eq!(driver.engine.stats().spare_files, 4, "they are not too long to be kept");
    for round in 20..40 {
        does(&mut driver, append(1 + round * 10, noise(&mut rng, 10)));
    }
    purge_to_its_end(&mut driver, 100);
    driver.crash(1).unwrap();
}

/// The same for many groups of which little lives in a file each: their places in the index are more than what they hold.
#[test]
fn files_full_of_tiny_entries_are_not_written_again_for_ever() {
    let mut rng = StdRng::seed_from_u64(5);
    let options = LogOptions { purge_threshold: 256 << 10, spare_files: 0, ..options() };
    let (engine, mut writer, _) = log_model::open(&SimDisk::new(), &options).unwrap();
    for number in 0..20_000u64 {
        let entry: bytes::Bytes = (0..12).map(|_| rng.random::<u8>()).collect();
        let group = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let change = Change::Append { group, first: 1, entries: vec![entry] };
        drop(engine.submit(log_model::batch_of(&[change]), Durability::Buffered).unwrap());
        if number % 1000 == 999 {
            writer.turn();
        }
    }
    let mut more = || {
        let report = engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        writer.turn();
        report.outcome != PurgeOutcome::Idle
    };
    assert!((0..200).any(|_| !more()), "purge does not come to an end: {:?}", engine.stats());
    assert!(!more() && engine.stats().disk_bytes > 384 << 10, "{:?}", engine.stats());
}

/// What a file deletes is said again as long as an older one is there: a file of nothing else comes back as large as it was.
#[test]
fn files_full_of_deletions_are_not_written_again_for_ever() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: 0, spare_files: 0, ..options() });
    // It stays.
    does(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 18) }]);
    let key = |rng: &mut StdRng| (0..500).map(|_| rng.random()).collect::<Vec<u8>>();
    for _ in 0..400 {
        let key = key(&mut rng);
        driver.submit(vec![Change::Put { group: 1, key: key.clone(), value: Vec::new() }], Durability::Buffered);
        driver.submit(vec![Change::Delete { group: 1, key }], Durability::Buffered);
        driver.turn();
    }
    purge_to_its_end(&mut driver, 200);
    assert_eq!(purge_to_its_end(&mut driver, 1), 1);
    driver.check_live();
    driver.crash(1).unwrap();
}
