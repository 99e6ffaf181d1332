//! Checkpoints: what they hold, that nothing done to the log afterwards changes them, and every way in which making one ends early.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log/model/mod.rs"]
mod log_model;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use engine::disk::{Disk, Operation, RealDisk, SimDisk};
use engine::log::{
    Budget, CheckpointReport, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, Result, tools,
};
use log_model::{Driver, Generator, History, Seen, observe, small_options};
use rand::SeedableRng;
use rand::rngs::StdRng;

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 32 << 10, align_bytes: 512, ..small_options() }
}

/// Batches, and purge after each if that is wanted.
fn work_with(driver: &mut Driver, rng: &mut StdRng, steps: u64, purge: bool) {
    let generator = Generator { groups: 4, max_entry: 4000, removes: false };
    for step in 0..steps {
        let changes = generator.batch(rng, &driver.history[driver.history.len() - 1]);
        let durability = if step % 2 == 0 { Durability::Synced } else { Durability::Buffered };
        driver.submit(changes, durability);
        driver.turn();
        if purge {
            // A dying disk may refuse; what matters is what that leaves behind.
            let _ = driver.engine.purge(Budget::default());
            driver.turn();
        }
    }
}

fn work(driver: &mut Driver, rng: &mut StdRng, steps: u64) {
    work_with(driver, rng, steps, true);
}

/// A log of several files, of which some hold nothing live any more.
fn prepared() -> (Driver, StdRng) {
    let (mut driver, mut rng) = (Driver::new(LogOptions { cache_bytes: 0, ..options() }), StdRng::seed_from_u64(23));
    work_with(&mut driver, &mut rng, 60, false);
    (driver, rng)
}

/// A checkpoint named `copy`; `between` happens after the writer has answered.
fn checkpoint(driver: &mut Driver, between: impl FnOnce(&mut Driver)) -> Result<CheckpointReport> {
    let checkpoint = driver.engine.begin_checkpoint("copy")?;
    driver.turn();
    between(driver);
    checkpoint.finish()
}

/// What a log in the directory `copy` holds, every byte of it verified; `None` where there is no such directory.
fn copied(disk: &SimDisk) -> Option<BTreeMap<u64, Seen>> {
    let copy = disk.beside("copy")?;
    let (engine, _writer, report) =
        LogEngine::open_driven(copy.session(), LogOptions { verify: true, ..options() }).unwrap();
    assert_eq!(report.truncated_bytes, 0);
    let checked = tools::check(copy.session().as_ref(), &mut |_| ()).unwrap();
    assert!(checked.is_sound() && checked.torn_tail.is_none(), "{checked:?}");
    Some(observe(&engine).unwrap())
}

fn partial(disk: &SimDisk) -> bool {
    disk.beside("copy.partial").is_some()
}

#[test]
fn a_checkpoint_holds_the_state_in_which_it_was_asked_for() {
    let (mut driver, mut rng) = prepared();
    let mut most = 0;
    for round in 0..20 {
        work_with(&mut driver, &mut rng, 15, round % 5 == 4);
        let asked = driver.history[driver.history.current].seen();
        let report = checkpoint(&mut driver, |driver| work_with(driver, &mut rng, 3, false)).unwrap();
        assert!(report.copied_bytes > 0 && report.copied_bytes < 3 * options().file_bytes, "{report:?}");
        assert_eq!(copied(&driver.disk).unwrap(), asked);
        let copy = driver.disk.beside("copy").unwrap();
        let names = Disk::list(copy.as_ref()).unwrap();
        most = most.max(report.linked_files);
        names.iter().for_each(|name| copy.remove(name).unwrap());
    }
    assert!(most > 5, "{most}");
    driver.check_live();
    driver.crash(5).unwrap();
}

/// What was queued before is in it, synced or not; what was queued after is not.
#[test]
fn a_checkpoint_ends_where_it_was_queued() {
    let mut driver = Driver::new(options());
    let put = |value: u8| log_model::Change::Put { group: 1, key: b"k".to_vec(), value: vec![value] };
    driver.submit(vec![put(1)], Durability::Buffered);
    let checkpoint = driver.engine.begin_checkpoint("copy").unwrap();
    driver.submit(vec![put(2)], Durability::Synced);
    driver.turn();
    let report = checkpoint.finish().unwrap();
    assert_eq!((report.lsn.0, report.linked_files), (1, 0));
    assert_eq!(copied(&driver.disk).unwrap(), driver.history[1].seen());
    driver.check_live();
}

/// Its end vouches for all of it: what is damaged in it is not taken for a torn tail.
#[test]
fn damage_to_the_end_of_a_checkpoint_is_no_torn_tail() {
    let mut driver = Driver::new(options());
    driver.submit(vec![log_model::Change::Put { group: 1, key: vec![1], value: vec![1; 100] }], Durability::Synced);
    driver.turn();
    checkpoint(&mut driver, |_| ()).unwrap();
    let copy = driver.disk.beside("copy").unwrap();
    let name = "0000000000000001.log";
    let whole = copy.content(name).unwrap();
    for at in (4096..4096 + 160).step_by(8) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        copy.set_content(name, damaged);
        let outcome = LogEngine::open_driven(copy.session(), options());
        assert!(matches!(outcome, Err(LogError::Corrupt { offset: 4096, .. })), "damage at {at} is overlooked");
    }
}

#[test]
fn a_log_without_anything_can_be_copied() {
    let mut driver = Driver::new(options());
    assert_eq!(checkpoint(&mut driver, |_| ()).unwrap().lsn.0, 0);
    assert!(copied(&driver.disk).unwrap().is_empty());
}

/// Files that a checkpoint shares are not used again for others, also not after a restart, and the checkpoint
/// stays when the log is gone.
#[test]
fn nothing_done_to_the_log_changes_a_checkpoint() {
    for restart in [false, true] {
        let (mut driver, mut rng) = prepared();
        let asked = driver.history[driver.history.current].seen();
        let report = checkpoint(&mut driver, |_| ()).unwrap();
        assert!(report.linked_files > 1, "{report:?}");
        if restart {
            driver.crash(1).unwrap();
        }
        let shared = Disk::list(driver.disk.as_ref()).unwrap();
        let mut spares = BTreeSet::new();
        for _ in 0..200 {
            work(&mut driver, &mut rng, 1);
            let names = Disk::list(driver.disk.as_ref()).unwrap();
            spares.extend(names.into_iter().filter(|name| name.ends_with(".spare")));
        }
        assert!(spares.len() > 3, "space is used again: {spares:?}");
        driver.check_live();
        let names = Disk::list(driver.disk.as_ref()).unwrap();
        assert!(names.iter().all(|name| !shared.contains(name) || spares.contains(name)), "all are new: {names:?}");
        assert_eq!(copied(&driver.disk).unwrap(), asked);
        driver.crash(2).unwrap();
        assert_eq!(copied(&driver.disk).unwrap(), asked);
        Disk::list(driver.disk.as_ref()).unwrap().iter().for_each(|name| driver.disk.lose(name));
        assert_eq!(copied(&driver.disk).unwrap(), asked);
    }
}

/// A checkpoint is a log: it goes on, purges files that it shares, and does nothing to the log it was made of.
#[test]
fn a_checkpoint_goes_on_as_a_log_of_its_own() {
    let (mut driver, mut rng) = prepared();
    checkpoint(&mut driver, |_| ()).unwrap();
    let asked = driver.history[driver.history.current].clone();
    let mut other = Driver::on(driver.disk.beside("copy").unwrap(), options());
    assert_eq!(observe(&other.engine).unwrap(), asked.seen());
    other.history = History::from_state(asked);
    work(&mut other, &mut StdRng::seed_from_u64(77), 200);
    other.check_live();
    driver.check_live();
    driver.reopen().unwrap();
    driver.check_live();
    work(&mut driver, &mut rng, 100);
    driver.check_live();
    other.reopen().unwrap();
    other.check_live();
    driver.crash(9).unwrap();
    driver.check_live();
}

/// Purge gives up files between the answer of the writer and the links: they are copied from what is held open.
#[test]
fn files_that_purge_deletes_meanwhile_are_in_the_checkpoint() {
    let (mut driver, mut rng) = prepared();
    let asked = driver.history[driver.history.current].seen();
    let before: Vec<String> = Disk::list(driver.disk.as_ref()).unwrap();
    let report = checkpoint(&mut driver, |driver| work(driver, &mut rng, 200)).unwrap();
    let after: Vec<String> = Disk::list(driver.disk.as_ref()).unwrap();
    assert!(before.iter().filter(|name| name.ends_with(".log")).all(|name| !after.contains(name)), "all were purged");
    assert_eq!(report.linked_files, 0);
    assert!(report.copied_bytes > options().file_bytes);
    assert_eq!(copied(&driver.disk).unwrap(), asked);
    driver.check_live();
}

#[test]
fn a_place_that_is_taken_is_refused() {
    let mut driver = Driver::new(options());
    work(&mut driver, &mut StdRng::seed_from_u64(23), 5);
    checkpoint(&mut driver, |_| ()).unwrap();
    let asked = copied(&driver.disk).unwrap();
    assert!(matches!(driver.engine.begin_checkpoint("copy").err().unwrap(), LogError::NotEmpty(_)));
    assert!(matches!(driver.engine.begin_checkpoint("a/b").err().unwrap(), LogError::Io(_)), "not a name");
    assert!(!partial(&driver.disk));
    assert_eq!(copied(&driver.disk).unwrap(), asked);
    // Nobody finishes it: nothing is left.
    drop(driver.engine.begin_checkpoint("other").unwrap());
    driver.turn();
    assert!(driver.disk.beside("other").is_none() && driver.disk.beside("other.partial").is_none());
    // The writer is gone.
    let unanswered = driver.engine.begin_checkpoint("other").unwrap();
    driver.engine.close();
    assert!(matches!(driver.engine.begin_checkpoint("third").err().unwrap(), LogError::Closed));
    let Driver { writer, disk, .. } = driver;
    drop(writer);
    assert!(matches!(unanswered.finish().unwrap_err(), LogError::Closed));
    assert!(disk.beside("other").is_none() && disk.beside("other.partial").is_none());
}

#[test]
fn a_poisoned_log_is_not_copied() {
    let mut driver = Driver::new(options());
    work(&mut driver, &mut StdRng::seed_from_u64(23), 5);
    driver.submit(vec![log_model::Change::Put { group: 1, key: vec![1], value: vec![1] }], Durability::Buffered);
    driver.disk.fail_nth(Operation::Sync, 1, ErrorKind::Other);
    let refused = checkpoint(&mut driver, |_| ());
    assert!(matches!(refused, Err(LogError::Poisoned(_))), "its own sync failed: {refused:?}");
    assert!(matches!(driver.engine.begin_checkpoint("copy").err().unwrap(), LogError::Poisoned(_)));
    assert!(driver.disk.beside("copy").is_none() && !partial(&driver.disk));
}

/// The power goes at each change: there is no checkpoint or a whole one, and the log itself is sound.
#[test]
fn the_power_goes_at_each_change_of_a_checkpoint() {
    let (mut driver, mut rng) = prepared();
    let before = driver.disk.changes();
    checkpoint(&mut driver, |driver| work(driver, &mut rng, 2)).unwrap();
    let changes = driver.disk.changes() - before;
    let (mut none, mut whole) = (0, 0);
    for stop in 0..=changes + 3 {
        for seed in 0..8 {
            let context = format!("power gone after {stop}, crash {seed}");
            let (mut driver, mut rng) = prepared();
            let asked = driver.history[driver.history.current].seen();
            driver.disk.halt_after(stop);
            let made = checkpoint(&mut driver, |driver| work(driver, &mut rng, 2));
            assert_eq!(made.is_ok(), stop >= changes, "{context}");
            driver.crash(seed).unwrap_or_else(|what| panic!("{context}: {what}"));
            match copied(&driver.disk) {
                Some(found) => {
                    assert_eq!(found, asked, "{context}");
                    whole += 1;
                }
                None => {
                    assert!(made.is_err(), "{context}: a finished checkpoint is lost");
                    // What is left of it is not in the way of another.
                    work(&mut driver, &mut rng, 2);
                    let asked = driver.history[driver.history.current].seen();
                    checkpoint(&mut driver, |_| ()).unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert_eq!(copied(&driver.disk).unwrap(), asked, "{context}");
                    none += 1;
                }
            }
            assert!(!partial(&driver.disk), "{context}");
            work(&mut driver, &mut rng, 10);
            driver.check_live();
        }
    }
    assert!(none > 50 && whole > 20, "{none} without, {whole} with a checkpoint");
}

#[test]
fn a_disk_that_lies_about_syncing_loses_checkpoints() {
    let lost = (0..40).filter(|seed| {
        let (mut driver, _) = prepared();
        driver.disk.set_lying_sync(true);
        checkpoint(&mut driver, |_| ()).unwrap();
        driver.disk.crash(*seed);
        let Some(copy) = driver.disk.beside("copy") else { return true };
        let Ok((engine, ..)) = LogEngine::open_driven(copy.session(), options()) else { return true };
        observe(&engine).ok() != Some(driver.history[driver.history.current].seen())
    });
    assert!(lost.count() > 20);
}

/// Each call of each kind fails once, after the writer has answered: the checkpoint fails, the log does not notice.
#[test]
fn a_failure_is_the_checkpoints_alone() {
    let operations = [
        Operation::Create,
        Operation::Link,
        Operation::Write,
        Operation::Sync,
        Operation::SyncDir,
        Operation::Rename,
        Operation::Read,
    ];
    for operation in operations {
        let mut failed = 0;
        for nth in 1.. {
            let (mut driver, mut rng) = prepared();
            let asked = driver.history[driver.history.current].seen();
            let made = checkpoint(&mut driver, |driver| driver.disk.fail_nth(operation, nth, ErrorKind::Other));
            if driver.disk.failures_left() > 0 {
                made.unwrap();
                break;
            }
            failed += 1;
            assert!(made.is_err(), "{operation:?} {nth}");
            assert!(driver.engine.poisoned().is_none() && !partial(&driver.disk));
            if driver.disk.beside("copy").is_some() {
                // Its name is not durable, perhaps, but all of it is there.
                assert_eq!(operation, Operation::SyncDir);
                assert_eq!(copied(&driver.disk).unwrap(), asked);
            }
            work(&mut driver, &mut rng, 5);
            driver.check_live();
            driver.crash(nth).unwrap();
        }
        assert!(failed > 0, "{operation:?}");
    }
}

#[test]
fn a_full_disk_fails_the_checkpoint_and_not_the_log() {
    let mut refused = 0;
    for room in (0..60u64 << 10).step_by(700) {
        let (mut driver, mut rng) = prepared();
        let asked = driver.history[driver.history.current].seen();
        let used = driver.disk.used();
        let made = checkpoint(&mut driver, |driver| driver.disk.set_capacity(Some(used + room)));
        match made {
            Ok(_) => assert_eq!(copied(&driver.disk).unwrap(), asked),
            Err(LogError::NoSpace(_)) => {
                refused += 1;
                assert!(driver.disk.beside("copy").is_none() && !partial(&driver.disk));
                assert_eq!(driver.disk.used(), used, "nothing is left of it");
            }
            Err(other) => panic!("{other}"),
        }
        assert!(driver.engine.poisoned().is_none());
        driver.disk.set_capacity(None);
        work(&mut driver, &mut rng, 5);
        driver.check_live();
        driver.crash(room).unwrap();
    }
    assert!(refused > 5, "{refused}");
}

fn start(dir: &std::path::Path, options: LogOptions) -> LogEngine {
    LogEngine::open(RealDisk::open(dir).unwrap(), options).unwrap().0
}

/// Bytes that hardly compress, from group and index.
fn entry(group: u64, index: u64) -> Bytes {
    let mut state = (group << 40) + index;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..200 + index % 5 * 100).map(|_| next()).collect()
}

/// Writers, compactions and purge on a real disk while checkpoints are made: each holds whole logs, and all that was acknowledged.
#[test]
fn checkpoints_are_made_while_others_write() {
    const GROUPS: u64 = 3;
    let dir = tempfile::tempdir().unwrap();
    let options =
        || LogOptions { file_bytes: 256 << 10, prefill_bytes: 64 << 10, purge_threshold: 0, ..LogOptions::default() };
    let engine = start(&dir.path().join("log"), options());
    // Files that stay.
    for first in (1..=3000).step_by(100) {
        let mut batch = LogBatch::new();
        batch.append(GroupId(GROUPS), first, (first..first + 100).map(|index| entry(GROUPS, index)).collect());
        engine.write(batch, Durability::Buffered).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..GROUPS).map(|_| AtomicU64::new(0)).collect());
    let writers: Vec<_> = (0..GROUPS)
        .map(|group| {
            let (engine, stop, acknowledged) = (engine.clone(), stop.clone(), acknowledged.clone());
            std::thread::spawn(move || {
                for index in (1..).take_while(|_| !stop.load(Ordering::Acquire)) {
                    let mut batch = LogBatch::new();
                    batch.append(GroupId(group), index, vec![entry(group, index)]);
                    batch.put(GroupId(group), b"last", &index.to_le_bytes());
                    if index % 64 == 0 {
                        batch.compact(GroupId(group), index - index % 50);
                    }
                    engine.write(batch, Durability::Synced).unwrap();
                    acknowledged[group as usize].store(index, Ordering::Release);
                    engine.purge(Budget::default()).unwrap();
                }
            })
        })
        .collect();
    let mut seen = 0;
    let checkpoints: Vec<_> = (0..6)
        .map(|number| {
            // Each is of another age.
            while acknowledged.iter().map(|last| last.load(Ordering::Acquire)).sum::<u64>() < seen + 300 {
                std::thread::yield_now();
            }
            let before: Vec<u64> = acknowledged.iter().map(|last| last.load(Ordering::Acquire)).collect();
            seen = before.iter().sum();
            let path = dir.path().join("some/where").join(number.to_string());
            let report = engine.checkpoint(&path).unwrap();
            (path, before, report)
        })
        .collect();
    stop.store(true, Ordering::Release);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    engine.close();
    drop(engine);
    std::fs::remove_dir_all(dir.path().join("log")).unwrap();
    for (path, before, _) in &checkpoints {
        let names: Vec<_> =
            std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), checkpoints.len(), "nothing half made is left: {names:?}");
        let disk = RealDisk::open(path).unwrap();
        let (engine, _writer, report) = LogEngine::open_driven(disk, LogOptions { verify: true, ..options() }).unwrap();
        assert_eq!(report.truncated_bytes, 0);
        for group in 0..=GROUPS {
            let bounds = engine.bounds(GroupId(group)).unwrap();
            let least = before.get(group as usize).copied().unwrap_or(3000);
            assert!(bounds.last >= least);
            let last = engine.get(GroupId(group), b"last").unwrap();
            assert!(group == GROUPS || last.unwrap() == bounds.last.to_le_bytes().as_slice());
            for index in bounds.first..=bounds.last {
                assert_eq!(engine.entry(GroupId(group), index).unwrap(), entry(group, index));
            }
        }
    }
    assert!(checkpoints.iter().all(|(.., report)| report.linked_files >= 3));
}

#[test]
fn a_real_directory_that_is_taken_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = start(&dir.path().join("log"), LogOptions::default());
    let mut batch = LogBatch::new();
    batch.put(GroupId(1), b"k", b"v");
    engine.write(batch, Durability::Synced).unwrap();
    let path = dir.path().join("copy");
    let refused = |path: &std::path::Path| engine.checkpoint(path).unwrap_err();

    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("precious"), b"data").unwrap();
    assert!(matches!(refused(&path), LogError::NotEmpty(what) if what.contains("copy")));
    assert!(matches!(refused(&path.join("precious")), LogError::NotEmpty(_)), "a file");
    assert!(matches!(refused(&dir.path().join("log")), LogError::NotEmpty(_)), "its own directory");
    assert!(matches!(refused(std::path::Path::new("/")), LogError::Io(_)), "no name");
    assert_eq!(std::fs::read(path.join("precious")).unwrap(), b"data");

    // A directory of that name that no checkpoint left, and one that another is at work in.
    let partial = dir.path().join("other.partial");
    std::fs::create_dir(&partial).unwrap();
    std::fs::write(partial.join("precious"), b"data").unwrap();
    assert!(matches!(refused(&dir.path().join("other")), LogError::NotEmpty(what) if what.contains("other.partial")));
    std::fs::remove_dir_all(&partial).unwrap();
    let held = RealDisk::open(&partial).unwrap();
    held.create("0000000000000001.log").unwrap();
    assert!(matches!(refused(&dir.path().join("other")), LogError::Io(error) if error.kind() == ErrorKind::WouldBlock));
    drop(held);

    // What a crash left is taken over, and an empty directory is as good as none.
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let report = engine.checkpoint(dir.path().join("other")).unwrap();
    assert!(!partial.exists());
    let (copy, _writer, _) =
        LogEngine::open_driven(RealDisk::open(dir.path().join("other")).unwrap(), LogOptions::default()).unwrap();
    assert_eq!((report.linked_files, copy.get(GroupId(1), b"k").unwrap().unwrap()), (0, Bytes::from_static(b"v")));
    engine.close();
}

/// A spare that has a second name is never written over: whoever gave it that name keeps what it holds.
#[test]
fn a_spare_with_a_second_name_is_let_go_of_at_open() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let options = || LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, ..LogOptions::default() };
    start(&log, options()).close();
    let spare = |number: u64| log.join(format!("{number:016}.spare"));
    for number in [1, 2, 3] {
        std::fs::write(spare(number), vec![number as u8; 64 << 10]).unwrap();
    }
    std::fs::hard_link(spare(1), dir.path().join("kept")).unwrap();
    let engine = start(&log, options());
    assert!(!spare(1).exists());
    assert_eq!(engine.stats().spare_files, 2);
    let mut index = 1;
    while engine.stats().files < 4 {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![entry(1, index)]);
        engine.write(batch, Durability::Buffered).unwrap();
        index += 1;
    }
    engine.close();
    assert!(!spare(2).exists() || !spare(3).exists(), "one is in use");
    assert_eq!(std::fs::read(dir.path().join("kept")).unwrap(), vec![1; 64 << 10]);
}
