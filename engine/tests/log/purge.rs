//! Purge: files go oldest first, overrides of older files stay in effect, and purge terminates.

use engine::disk::{Disk, Operation, SimDisk};
use engine::log::{Budget, Compression, Durability, GroupId, LogOptions, PurgeOutcome, PurgeReport};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::{Change, Driver, flip, small_options};

/// Dense files, so that a file can be mostly live.
fn options() -> LogOptions {
    LogOptions { align_bytes: 512, ..small_options() }
}

fn noise(rng: &mut StdRng, count: usize) -> Vec<bytes::Bytes> {
    (0..count).map(|_| (0..3305).map(|_| rng.random::<u8>()).collect()).collect()
}

fn entries(text: &str, count: usize) -> Vec<bytes::Bytes> {
    (0..count).map(|at| format!("{text} {at}").into_bytes().into()).collect()
}

fn write(driver: &mut Driver, changes: Vec<Change>) {
    driver.submit(changes, Durability::Synced);
    driver.turn();
}

fn files(driver: &Driver) -> Vec<String> {
    let names = Disk::list(driver.disk.as_ref()).unwrap();
    names.into_iter().filter(|name| name.ends_with(".log")).collect()
}

/// Appends and compacts until the log has a new active file.
fn next_file(driver: &mut Driver, rng: &mut StdRng) {
    let before = files(driver).len();
    for round in 0.. {
        let first = 1 + round;
        let group = 1000 + before as u64;
        write(driver, vec![Change::Append { group, first, entries: noise(rng, 1) }]);
        write(driver, vec![Change::Compact { group, first_kept: first + 1 }]);
        if files(driver).len() > before {
            return;
        }
    }
}

/// One call of purge, and a turn of the writer.
fn purge(driver: &mut Driver) -> PurgeReport {
    let report = driver.engine.purge(Budget::default()).unwrap();
    driver.turn();
    report
}

/// Whether file `seq` exists.
fn has(driver: &Driver, seq: u64) -> bool {
    files(driver).contains(&format!("{seq:016}.log"))
}

/// `recorded` in file 1, `overrides` of it in file 2. Purge drops both, and never file 2 before file 1. After each
/// step, also after a crash, the log agrees with the model.
fn survives(recorded: Vec<Change>, overrides: Vec<Vec<Change>>, later: Vec<Change>) {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(options());
    write(&mut driver, recorded);
    write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
    next_file(&mut driver, &mut rng);
    overrides.into_iter().for_each(|changes| write(&mut driver, changes));
    next_file(&mut driver, &mut rng);
    write(&mut driver, later);
    next_file(&mut driver, &mut rng);
    let mut together = 0;
    for step in 0..20 {
        purge(&mut driver);
        assert!(has(&driver, 2) || !has(&driver, 1), "step {step}: {:?}", files(&driver));
        together += u32::from(has(&driver, 1));
        driver.check_live();
        let mut other = driver.fork();
        other.crash(step).unwrap_or_else(|what| panic!("after {step} steps: {what}"));
    }
    assert!(together > 0 && !has(&driver, 2), "{:?}", files(&driver));
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
fn replaced_entries_stay_replaced() {
    let append =
        |first: u64, text: &str, count: usize| Change::Append { group: 1, first, entries: entries(text, count) };
    // Only the cut itself is left of it: the compaction is in a later file.
    survives(
        vec![append(1, "old", 10)],
        vec![vec![append(5, "new", 1)]],
        vec![Change::Compact { group: 1, first_kept: 6 }],
    );
    // Its entries stay live.
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

/// A group is removed and exists again in the same file. Its old keys do not come back.
#[test]
fn a_recreated_group_lacks_its_old_keys() {
    let put = |key: &[u8]| Change::Put { group: 1, key: key.to_vec(), value: b"v".to_vec() };
    survives(vec![put(b"a"), put(b"b")], vec![vec![Change::Remove { group: 1 }], vec![put(b"c")]], vec![]);
}

/// A group is removed, and recreated while purge rewrites the file of its old records: the batch is queued before the
/// rewrite, but not yet written when purge looks at it. Old keys and entries of the group must not reappear when the
/// file is gone.
#[test]
fn a_group_recreated_while_its_file_is_rewritten() {
    for calls in 0..8 {
        let mut rng = StdRng::seed_from_u64(5);
        let mut driver = Driver::new(options());
        let put = |key: &[u8]| Change::Put { group: 1, key: key.to_vec(), value: b"v".to_vec() };
        let append = |first, count| Change::Append { group: 1, first, entries: entries("old", count) };
        write(&mut driver, vec![put(b"a"), put(b"b"), Change::Compact { group: 1, first_kept: 8 }, append(8, 4)]);
        write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
        next_file(&mut driver, &mut rng);
        write(&mut driver, vec![Change::Remove { group: 1 }]);
        next_file(&mut driver, &mut rng);
        next_file(&mut driver, &mut rng);
        (0..calls).for_each(|_| drop(purge(&mut driver)));
        driver.submit(vec![put(b"c"), append(1, 3)], Durability::Synced);
        (0..20).for_each(|_| drop(purge(&mut driver)));
        driver.check_live();
        driver.crash(3).unwrap_or_else(|what| panic!("after {calls} calls: {what}"));
        write(&mut driver, vec![Change::Remove { group: 99 }]);
        (0..20).for_each(|_| drop(purge(&mut driver)));
        assert!(files(&driver)[0].as_str() > "0000000000000002.log", "{:?}", files(&driver));
        driver.crash(4).unwrap();
    }
}

/// Purge names groups that keep old files alive, with the index to compact them to. Once they are compacted, the files
/// are removed.
#[test]
fn pinning_groups_are_named_with_what_they_pin() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: 500 << 10, ..options() });
    write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
    for _ in 0..8 {
        next_file(&mut driver, &mut rng);
    }
    let report = driver.engine.purge(Budget::default()).unwrap();
    let [pinning] = report.pinning.as_slice() else { panic!("{report:?}") };
    assert_eq!((pinning.group.0, pinning.compact_to), (99, 18));
    assert!((17 * 3200..17 * 3400).contains(&pinning.pinned_bytes), "{pinning:?}");
    write(&mut driver, vec![Change::Compact { group: 99, first_kept: pinning.compact_to }]);
    for _ in 0..30 {
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    assert!(driver.engine.purge(Budget::default()).unwrap().pinning.is_empty());
    assert!(files(&driver)[0].as_str() > "0000000000000001.log");
}

/// A log under pressure. Group 99 pins file 1; group 50 has one entry there, which is returned.
fn pinned(rng: &mut StdRng) -> (Driver, bytes::Bytes) {
    let mut driver = Driver::new(LogOptions { purge_threshold: 300 << 10, cache_bytes: 0, ..options() });
    write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(rng, 16) }]);
    let entries = noise(rng, 1);
    write(&mut driver, vec![Change::Append { group: 50, first: 1, entries: entries.clone() }]);
    (0..8).for_each(|_| next_file(&mut driver, rng));
    (driver, entries[0].clone())
}

/// The oldest file cannot be read: it is reported once, and purge stops. It still names pinning groups. Once their
/// owners have compacted what is live in the file, it is dropped, and purge continues.
#[test]
fn purge_stops_at_damage_until_nothing_there_is_live() {
    const FIRST: &str = "0000000000000001.log";
    type Harm = fn(&Driver, &bytes::Bytes);
    let block: Harm = |driver, entry| {
        let content = driver.disk.content(FIRST).unwrap();
        let at = content.windows(entry.len()).position(|bytes| bytes == entry).unwrap();
        flip(&driver.disk, FIRST, at + 7);
    };
    let seal: Harm = |driver, _| {
        let content = driver.disk.content(FIRST).unwrap();
        flip(&driver.disk, FIRST, content.len() - 5);
    };
    let failing: Harm = |driver, _| driver.disk.fail_nth(Operation::Read, 1, std::io::ErrorKind::Other);
    // Damage to the seal names the groups that the header of the next file records.
    let changed = [50, 99, 1001].map(GroupId).to_vec();
    for (harm, groups) in [(block, vec![GroupId(50)]), (seal, changed.clone()), (failing, changed)] {
        let mut rng = StdRng::seed_from_u64(5);
        let (mut driver, entry) = pinned(&mut rng);
        let before = files(&driver);
        harm(&driver, &entry);
        let mut damage = Vec::new();
        for round in 0..40 {
            let report = purge(&mut driver);
            assert_eq!(
                report.pinning.first().map(|pinning| pinning.group),
                Some(GroupId(99)),
                "round {round}: {report:?}"
            );
            assert_eq!((report.freed, report.rewritten), (0, 0), "round {round}: {report:?}");
            assert!(round == 0 || report.outcome == PurgeOutcome::Idle, "round {round}: {report:?}");
            damage.extend(report.damage);
        }
        let [found] = damage.as_slice() else { panic!("{damage:?}") };
        assert_eq!((found.file.as_str(), &found.groups), (FIRST, &groups), "{found}");
        assert_eq!(files(&driver), before);
        write(&mut driver, [50, 99, 1001].map(|group| Change::Remove { group }).to_vec());
        let freed: u64 = (0..40).map(|_| purge(&mut driver).freed).sum();
        assert!(freed >= 3 * (60 << 10), "{freed}");
        assert!(files(&driver)[0].as_str() > "0000000000000002.log", "{:?}", files(&driver));
        driver.check_live();
        driver.crash(1).unwrap();
    }
}

/// After a failed sync the state of the log is not trusted: files whose live data was rewritten stay.
#[test]
fn a_poisoned_log_deletes_nothing() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(options());
    (0..3).for_each(|_| next_file(&mut driver, &mut rng));
    // The record that drops the dead files is written; the files are not deleted yet.
    driver.engine.purge(Budget::default()).unwrap();
    driver.turn();
    driver.disk.fail_nth(Operation::Sync, 1, std::io::ErrorKind::Other);
    write(&mut driver, vec![Change::Put { group: 1, key: b"k".to_vec(), value: b"v".to_vec() }]);
    assert!(driver.engine.poisoned().is_some());
    let (before, changes) = (files(&driver), driver.disk.changes());
    assert!(before.contains(&"0000000000000001.log".to_owned()), "{before:?}");
    let report = driver.engine.purge(Budget::default()).unwrap();
    assert_eq!(
        (report.freed, report.outcome, files(&driver), driver.disk.changes()),
        (0, PurgeOutcome::Idle, before, changes)
    );
    // After reopening, its state is known, and the files are removed.
    driver.crash(1).unwrap();
    assert!(!files(&driver).contains(&"0000000000000001.log".to_owned()));
}

/// Many idle groups, each too small to report: together they exceed the limit of the log. Purge names them all the
/// same. When their owner compacts as asked, the log shrinks below its threshold.
#[test]
fn many_small_pinning_groups_are_named_under_pressure() {
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
        for pinning in report.pinning {
            driver.submit(
                vec![Change::Compact { group: pinning.group.0, first_kept: pinning.compact_to }],
                Durability::Buffered,
            );
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

/// The same groups stay below the limit, in files that are nearly all live. Purge frees what others write meanwhile,
/// and the log stays bounded without help.
#[test]
fn many_idle_groups_are_rewritten_and_the_log_stays_bounded() {
    const THRESHOLD: u64 = 1 << 20;
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: THRESHOLD, ..options() });
    let mut most = 0;
    for round in 0..400u64 {
        // Every fourth commit group adds a new idle group, up to 60 % of the threshold.
        if round < 250 {
            write(
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
            write(&mut driver, vec![Change::Append { group: 1, first: index, entries: noise(&mut rng, 1) }]);
        }
        write(&mut driver, vec![Change::Compact { group: 1, first_kept: round * 3 + 1 }]);
        driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        driver.turn();
        most = most.max(driver.engine.stats().disk_bytes);
    }
    assert!(most <= THRESHOLD + THRESHOLD / 2 + 2 * (64 << 10), "{most}");
    driver.check_live();
    driver.crash(1).unwrap();
}

/// A step exceeds its budget by at most one key or block, also if a group has many large keys.
#[test]
fn a_step_writes_no_more_than_its_budget() {
    const BUDGET: usize = 8 << 10;
    const LARGEST: usize = 3400;
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { prefill_bytes: 0, ..options() });
    let key = |number: u64| [number.to_be_bytes().as_slice(), &[7; 50]].concat();
    // File 1 holds what file 2 deletes.
    for number in 0..300 {
        let put = Change::Put { group: 1, key: key(number), value: vec![1; 10] };
        driver.submit(vec![put], Durability::Buffered);
    }
    driver.turn();
    write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 10) }]);
    next_file(&mut driver, &mut rng);
    for number in 0..300 {
        driver.submit(vec![Change::Delete { group: 1, key: key(number) }], Durability::Buffered);
    }
    for number in 0..4 {
        let value = noise(&mut rng, 1)[0].to_vec();
        driver.submit(vec![Change::Put { group: 3, key: vec![number], value }], Durability::Buffered);
    }
    driver.turn();
    write(&mut driver, vec![Change::Append { group: 4, first: 1, entries: noise(&mut rng, 3) }]);
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
        assert!(steps < 100, "purge does not finish");
    }
    assert!(steps > 6, "{steps}");
    driver.crash(1).unwrap();
    driver.check_live();
}

/// Files are dropped oldest first, whatever is live in them.
#[test]
fn files_are_dropped_oldest_first() {
    for counts in [[2, 2, 2], [7, 1, 1], [7, 7, 1], [1, 7, 17], [0, 0, 17]] {
        let mut rng = StdRng::seed_from_u64(5);
        let mut driver = Driver::new(options());
        write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 17) }]);
        for (at, count) in counts.into_iter().enumerate() {
            next_file(&mut driver, &mut rng);
            if count > 0 {
                let group = 50 + at as u64;
                write(&mut driver, vec![Change::Append { group, first: 1, entries: noise(&mut rng, count) }]);
            }
        }
        (0..6).for_each(|_| next_file(&mut driver, &mut rng));
        let mut before = files(&driver);
        for step in 0..60 {
            purge(&mut driver);
            let left = files(&driver);
            let dropped = before.iter().take_while(|name| !left.contains(name)).count();
            assert!(before[dropped..].iter().all(|name| left.contains(name)), "step {step}: {before:?}, {left:?}");
            before = left;
        }
        assert!(before[0].as_str() > "0000000000000003.log", "{counts:?}: {before:?}");
        driver.check_live();
        driver.crash(1).unwrap();
    }
}

/// Idle groups, each too small to report without pressure. Together they fill `count` files.
fn write_idle_groups(driver: &mut Driver, rng: &mut StdRng, count: usize) {
    let last = files(driver).len() + count;
    for group in 10_000 * last as u64.. {
        let entries = vec![noise(rng, 1)[0].slice(..2500)];
        driver.submit(vec![Change::Append { group, first: 1, entries }], Durability::Buffered);
        driver.turn();
        if files(driver).len() >= last {
            return;
        }
    }
}

/// The oldest files are nearly all live, and the files behind them are dead. Each live record is rewritten once, and
/// the dead files go. What is left is nearly all live: no more is rewritten, though the log exceeds its threshold.
#[test]
fn live_files_are_rewritten_once_to_free_the_dead_files_behind_them() {
    for (threshold, live_files, dead_files) in
        [(100 << 10, 6, 10), (100 << 10, 6, 6), (600 << 10, 6, 10), (700 << 10, 6, 10)]
    {
        let mut rng = StdRng::seed_from_u64(5);
        let mut driver = Driver::new(LogOptions { purge_threshold: threshold, spare_files: 0, ..options() });
        write_idle_groups(&mut driver, &mut rng, live_files);
        let live = driver.engine.stats().live_bytes;
        assert!(live > live_files as u64 * (52 << 10), "{live}");
        (0..dead_files).for_each(|_| next_file(&mut driver, &mut rng));
        let mut rewritten = 0;
        for _ in 0..200 {
            let report = driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
            driver.turn();
            rewritten += report.rewritten;
            if report.outcome == PurgeOutcome::Idle {
                break;
            }
        }
        let disk = driver.engine.stats().disk_bytes;
        assert!(disk <= threshold.max((live_files as u64 + 3) * (64 << 10)), "{disk} bytes left of {live} live");
        assert!((live * 9 / 10..live * 11 / 10).contains(&rewritten), "{rewritten} of {live} live bytes rewritten");
        assert_eq!(purge_until_done(&mut driver, 1), 1);
        driver.check_live();
        driver.crash(1).unwrap();
        purge_until_done(&mut driver, 10);
    }
}

/// A few dead files behind many live ones do not pay for the rewrite of these.
#[test]
fn live_files_are_not_rewritten_for_little() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: 100 << 10, spare_files: 0, ..options() });
    write_idle_groups(&mut driver, &mut rng, 25);
    next_file(&mut driver, &mut rng);
    let before = files(&driver);
    for _ in 0..10 {
        let report = driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        driver.turn();
        assert_eq!((report.rewritten, report.freed, report.outcome), (0, 0, PurgeOutcome::Idle));
    }
    assert_eq!(files(&driver), before);
}

/// Purges, without other work, until nothing is left to do. Returns the number of calls.
fn purge_until_done(driver: &mut Driver, most: usize) -> usize {
    for calls in 1..=most {
        let report = driver.engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        driver.turn();
        if report.outcome == PurgeOutcome::Idle {
            return calls;
        }
    }
    panic!("purge does not finish: {:?}", driver.engine.stats());
}

/// Keys and values are stored twice in a sealed file. So a file full of live keys looks half dead, as does every
/// rewrite of it. The live data exceeds the limit of the log: a rewrite gains nothing, and purge recognizes that.
#[test]
fn files_full_of_live_keys_are_not_rewritten_endlessly() {
    let (lz4, off) = (Compression::Lz4, Compression::Off);
    let noisy = [(100, 0, lz4, 1), (1000, 0, lz4, 1), (4096, 0, lz4, 1), (4096, 32 << 10, lz4, 1)];
    // Half of the bytes compress: always in the index, elsewhere with compression only.
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
        purge_until_done(&mut driver, 100);
        let before = driver.engine.stats();
        assert!(before.disk_bytes > 600_000, "{before:?}");
        assert_eq!(purge_until_done(&mut driver, 1), 1, "values of {len} bytes, {compression:?}");
        assert_eq!(driver.engine.stats().disk_bytes, before.disk_bytes);
        // Most of them die: now a rewrite gains space.
        for group in 1..10 {
            write(&mut driver, vec![Change::Remove { group }]);
        }
        purge_until_done(&mut driver, 100);
        let after = driver.engine.stats();
        assert!(after.disk_bytes <= 384 << 10, "{after:?}");
        driver.check_live();
        driver.crash(1).unwrap();
        purge_until_done(&mut driver, 10);
    }
}

/// Each commit group of purge has a header and ends at an aligned offset. In files of two aligned groups, a rewrite of
/// a few bytes takes as much as it frees.
#[test]
fn small_files_with_a_large_alignment_are_not_rewritten_endlessly() {
    for align_bytes in [16 << 10, 32 << 10, 64 << 10] {
        let options = LogOptions { file_bytes: 128 << 10, align_bytes, purge_threshold: 64 << 10, ..options() };
        let mut driver = Driver::new(options);
        for group in 0..12 {
            write(&mut driver, vec![Change::Put { group, key: b"key".to_vec(), value: b"value".to_vec() }]);
        }
        let before = driver.engine.stats().disk_bytes;
        purge_until_done(&mut driver, 100);
        assert!(driver.engine.stats().disk_bytes <= before, "purge makes the log larger");
        assert_eq!(purge_until_done(&mut driver, 1), 1, "aligned to {align_bytes} bytes");
        driver.check_live();
    }
}

/// A file made of a spare keeps the length of the spare, which may come from a larger `file_bytes`. Rewriting the file
/// does not free the excess: the next file reuses it.
#[test]
fn files_made_of_longer_spares_are_not_rewritten_endlessly() {
    let mut rng = StdRng::seed_from_u64(5);
    let longer = LogOptions { file_bytes: 120 << 10, spare_files: 4, purge_threshold: 0, ..options() };
    let mut driver = Driver::new(longer.clone());
    let append = |first, entries| vec![Change::Append { group: 1, first, entries }];
    for round in 0..20 {
        write(&mut driver, append(1 + round * 10, noise(&mut rng, 10)));
    }
    write(&mut driver, vec![Change::Compact { group: 1, first_kept: 201 }]);
    purge_until_done(&mut driver, 100);
    assert_eq!(driver.engine.stats().spare_files, 4);
    driver.options = LogOptions { file_bytes: 64 << 10, purge_threshold: 128 << 10, ..longer };
    driver.reopen().unwrap();
    assert_eq!(driver.engine.stats().spare_files, 4, "they are not too long to keep");
    for round in 20..40 {
        write(&mut driver, append(1 + round * 10, noise(&mut rng, 10)));
    }
    purge_until_done(&mut driver, 100);
    driver.crash(1).unwrap();
}

/// The same for many groups with few live bytes in each file: their index entries are larger than their data.
#[test]
fn files_full_of_tiny_entries_are_not_rewritten_endlessly() {
    let mut rng = StdRng::seed_from_u64(5);
    let options = LogOptions { purge_threshold: 256 << 10, spare_files: 0, ..options() };
    let (engine, mut writer, _) = crate::model::open(&SimDisk::new(), &options).unwrap();
    for number in 0..20_000u64 {
        let entry: bytes::Bytes = (0..12).map(|_| rng.random::<u8>()).collect();
        let group = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let change = Change::Append { group, first: 1, entries: vec![entry] };
        drop(engine.submit(crate::model::batch_of(&[change]), Durability::Buffered).unwrap());
        if number % 1000 == 999 {
            writer.turn();
        }
    }
    let mut more = || {
        let report = engine.purge(Budget { find_pinning: false, ..Budget::default() }).unwrap();
        writer.turn();
        report.outcome != PurgeOutcome::Idle
    };
    assert!((0..200).any(|_| !more()), "purge does not finish: {:?}", engine.stats());
    assert!(!more() && engine.stats().disk_bytes > 384 << 10, "{:?}", engine.stats());
}

/// Deletions are not rewritten. Files of only deletions go with the files before them.
#[test]
fn files_full_of_deletions_are_not_rewritten() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut driver = Driver::new(LogOptions { purge_threshold: 0, spare_files: 0, ..options() });
    write(&mut driver, vec![Change::Append { group: 99, first: 1, entries: noise(&mut rng, 18) }]);
    let key = |rng: &mut StdRng| (0..500).map(|_| rng.random()).collect::<Vec<u8>>();
    for _ in 0..400 {
        let key = key(&mut rng);
        driver.submit(vec![Change::Put { group: 1, key: key.clone(), value: Vec::new() }], Durability::Buffered);
        driver.submit(vec![Change::Delete { group: 1, key }], Durability::Buffered);
        driver.turn();
    }
    assert!(driver.engine.stats().disk_bytes > 400 << 10);
    purge_until_done(&mut driver, 200);
    assert_eq!(purge_until_done(&mut driver, 1), 1);
    assert!(driver.engine.stats().disk_bytes <= 3 * (64 << 10), "{:?}", driver.engine.stats());
    driver.check_live();
    driver.crash(1).unwrap();
}
