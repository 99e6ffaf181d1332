//! Opening a damaged log for salvage: all returned records are correct, and the disk is not changed.
//!
//! The model has the content of the sound log. The tests damage copies of its files in every way. A salvaged log must
//! return the content of the sound log or a typed error.

use std::sync::Arc;

use engine::disk::{Disk, Operation, SimDisk};
use engine::log::{
    Budget, Durability, EntryRange, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter, RecoveryMode,
    RecoveryReport,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::{Change, Driver, Generator, State, check_salvaged, contents, file, small_options};

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 8, ..small_options() }
}

fn salvage_options() -> LogOptions {
    LogOptions { recovery: RecoveryMode::Salvage, ..options() }
}

/// Opens for salvage and checks that no call changes the disk.
fn salvage(disk: &SimDisk, options: LogOptions) -> Result<(LogEngine, LogWriter, RecoveryReport), LogError> {
    let (before, changes) = (contents(disk), disk.changes());
    let opened = LogEngine::open_driven(disk.session(), options);
    assert_eq!(disk.changes(), changes, "no call changes the disk");
    assert_eq!(contents(disk), before);
    opened
}

/// Several files with overwrites across them, compactions, keys, removed groups and purged files.
fn random_log(seed: u64, options: LogOptions) -> (Arc<SimDisk>, Vec<State>) {
    let mut rng = StdRng::seed_from_u64(seed);
    // Every other log is purged early; the others have many files.
    let purge_threshold = if seed.is_multiple_of(2) { 600 << 10 } else { 0 };
    let mut driver = Driver::new(LogOptions { purge_threshold, ..options });
    let generator = Generator { groups: 6, max_entry: 3000, removes: false };
    for _ in 0..60 {
        let changes = generator.batch(&mut rng, &driver.history[driver.history.len() - 1]);
        driver.submit(changes, Durability::Synced);
        driver.turn();
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    driver.writer.finish();
    (driver.disk, driver.history.to_vec())
}

fn logs(disk: &SimDisk) -> Vec<String> {
    Disk::list(disk).unwrap().into_iter().filter(|name| name.ends_with(".log")).collect()
}

/// Damages one file or two. Returns which.
fn damage(disk: &SimDisk, rng: &mut StdRng) -> Vec<String> {
    let names = logs(disk);
    let Some(name) = names.get(rng.random_range(0..names.len().max(1))).cloned() else { return Vec::new() };
    let mut content = disk.content(&name).unwrap();
    let len = content.len();
    if len < 100 {
        return Vec::new();
    }
    let at = rng.random_range(0..len);
    match rng.random_range(0..12) {
        0..4 => content[at] ^= 1 << rng.random_range(0..8),
        4..6 => content[at / 512 * 512..len.min((at / 512 + 1) * 512)].fill(0),
        6 => content[at..len.min(at + 3000)].iter_mut().for_each(|byte| *byte = rng.random()),
        7 => content.truncate(at),
        8 => content[len - 1 - rng.random_range(0..len.min(2000))] ^= 1,
        9 => content.clear(),
        10 => {
            disk.lose(&name);
            return vec![name];
        }
        _ => {
            let other = names[rng.random_range(0..names.len())].clone();
            disk.set_content(&name, disk.content(&other).unwrap());
            disk.set_content(&other, content);
            return vec![name, other];
        }
    }
    disk.set_content(&name, content);
    vec![name]
}

#[test]
fn a_sound_log_is_shown_completely() {
    for seed in 0..10 {
        let (disk, history) = random_log(seed, options());
        let latest = &history[history.len() - 1];
        let verified = LogOptions { verify: true, ..salvage_options() };
        for options in [salvage_options(), verified, LogOptions { keep_doubtful: true, ..salvage_options() }] {
            let (engine, _writer, report) = salvage(&disk, options).unwrap();
            assert_eq!(crate::model::observe(&engine).unwrap(), latest.seen());
            assert!(report.losses.is_empty() && report.lost.is_empty() && report.salvaged.is_empty(), "{report:?}");
        }
    }
}

/// Random damage: all returned records are correct.
#[test]
fn salvage_shows_only_what_a_sound_log_shows() {
    let (mut shown, mut opened, mut stale) = (0, 0, 0);
    for seed in 0..200 {
        let (disk, history) = random_log(seed, options());
        let newest = logs(&disk).pop().unwrap();
        let mut rng = StdRng::seed_from_u64(seed);
        let damaged: Vec<String> = (0..rng.random_range(1..4)).flat_map(|_| damage(&disk, &mut rng)).collect();
        // After damage to the newest file its end is unknown: any earlier state is allowed.
        let truths = if damaged.contains(&newest) { &history[..] } else { &history[history.len() - 1..] };
        let is_true = |engine: &LogEngine, report: &RecoveryReport| {
            truths.iter().rev().map(|state| check_salvaged(engine, report, state)).reduce(|a, b| a.or(b)).unwrap()
        };
        let options = LogOptions { verify: seed % 3 == 0, ..salvage_options() };
        match salvage(&disk, options.clone()) {
            Ok((engine, _writer, report)) => {
                let read = is_true(&engine, &report);
                shown += read.unwrap_or_else(|what| panic!("seed {seed}: {damaged:?}: {what}\n{report:?}"));
                opened += 1;
                // The check is effective: with doubtful entries, some records are not correct.
                let doubtful = LogOptions { keep_doubtful: true, ..options };
                let (engine, _writer, report) = salvage(&disk, doubtful).unwrap();
                stale += u64::from(is_true(&engine, &report).is_err());
                was_written(&engine, &history);
            }
            Err(error) => {
                let named = error.file().is_some() || matches!(error, LogError::NoLog);
                assert!(named, "seed {seed}: {damaged:?}: {error}");
            }
        }
    }
    assert!(opened > 180 && shown > 2000 && stale > 5, "opened {opened}, shown {shown}, stale {stale}");
}

/// Every readable entry was written there once.
fn was_written(engine: &LogEngine, history: &[State]) {
    for group in engine.groups() {
        let bounds = engine.bounds(group).unwrap();
        for index in bounds.first..=bounds.last {
            let Ok(entry) = engine.entry(group, index) else { continue };
            let ever =
                |state: &State| state.0.get(&group.0).is_some_and(|known| known.entries.get(&index) == Some(&entry));
            assert!(history.iter().any(ever), "{group:?}/{index} was never {entry:?}");
        }
    }
}

fn entry(group: u64, index: u64, len: usize) -> Change {
    let text = format!("{group}.{index} ").into_bytes();
    Change::Append { group, first: index, entries: vec![text.iter().cycle().take(len).copied().collect()] }
}

/// A small log of one file, fully synced.
fn small_log(finish: bool) -> (Arc<SimDisk>, Vec<State>) {
    let mut driver = Driver::new(options());
    for batch in [
        vec![entry(1, 1, 20), entry(2, 5, 300)],
        vec![Change::Put { group: 1, key: b"hard".to_vec(), value: b"state".to_vec() }, entry(1, 2, 5)],
        vec![entry(1, 2, 40), Change::Compact { group: 2, first_kept: 6 }],
        vec![Change::Delete { group: 1, key: b"hard".to_vec() }, entry(2, 9, 7)],
        vec![entry(1, 3, 2000)],
    ] {
        driver.submit(batch, Durability::Synced);
        driver.turn();
    }
    if finish {
        driver.writer.finish();
    }
    (driver.disk, driver.history.to_vec())
}

#[test]
fn any_flipped_bit_of_a_small_log() {
    for finish in [false, true] {
        let (disk, history) = small_log(finish);
        let whole = disk.content(&file(1)).unwrap();
        let latest = &history[history.len() - 1];
        for at in 0..whole.len() {
            for bit in [0, 5] {
                let flipped = disk.fork();
                let mut content = whole.clone();
                content[at] ^= 1 << bit;
                flipped.set_content(&file(1), content);
                let opened = salvage(&flipped, salvage_options());
                if let Err(error) = &opened {
                    // The only header has the identity: without it no checksum can be verified.
                    assert!((16..32).contains(&at), "bit {bit} of {at}: {error}");
                    continue;
                }
                let (engine, _writer, report) = opened.unwrap();
                // Without a clean stop, nothing proves that the last group was synced: it may count as a torn tail.
                let torn = !finish && report.truncated_bytes > 0;
                let states = &history[history.len() - 1 - usize::from(torn)..];
                let truths: Vec<_> = states.iter().map(|state| check_salvaged(&engine, &report, state)).collect();
                assert!(truths.iter().any(Result::is_ok), "bit {bit} of {at}: {truths:?}\n{report:?}");
                // A damaged header alone loses nothing.
                assert!(at >= 4096 || crate::model::observe(&engine).unwrap() == latest.seen(), "bit {bit} of {at}");
            }
        }
    }
}

#[test]
fn any_flipped_byte_of_a_sealed_file_and_the_newest() {
    let (disk, history) = random_log(4, options());
    let latest = &history[history.len() - 1];
    for name in logs(&disk) {
        let content = disk.content(&name).unwrap();
        let len = content.len();
        for at in (0..len).filter(|at| at.is_multiple_of(61) || *at < 80 || *at + 200 > len) {
            let flipped = disk.fork();
            let mut content = content.clone();
            content[at] ^= 0x41;
            flipped.set_content(&name, content);
            let (engine, _writer, report) = salvage(&flipped, salvage_options()).unwrap();
            check_salvaged(&engine, &report, latest)
                .unwrap_or_else(|what| panic!("byte {at} of {name}: {what}\n{report:?}"));
        }
    }
}

/// A file with a damaged index is read group by group, and nothing is lost.
#[test]
fn a_damaged_index_loses_nothing() {
    let (disk, history) = random_log(8, options());
    let latest = &history[history.len() - 1];
    let names = logs(&disk);
    for name in &names[..names.len() - 1] {
        for back in [1, 30, 64, 70] {
            let flipped = disk.fork();
            let mut content = disk.content(name).unwrap();
            let at = content.len() - back;
            content[at] ^= 0x10;
            flipped.set_content(name, content);
            let (engine, _writer, report) = salvage(&flipped, salvage_options()).unwrap();
            assert_eq!(crate::model::observe(&engine).unwrap(), latest.seen(), "{name}, {back} before its end");
            assert!(report.losses.is_empty() && report.lost.is_empty());
            assert!(report.salvaged.is_empty() || report.salvaged == [name.clone()], "{report:?}");
        }
    }
}

/// Files with swapped names are identified by their headers; a copy under another name is ignored.
#[test]
fn swapped_and_copied_files_lose_nothing() {
    let (disk, history) = random_log(8, options());
    let latest = &history[history.len() - 1];
    let names = logs(&disk);
    let [first, second, .., last] = names.as_slice() else { panic!("{names:?}") };
    let swapped = disk.fork();
    swapped.set_content(first, disk.content(second).unwrap());
    swapped.set_content(second, disk.content(first).unwrap());
    let (engine, _writer, report) = salvage(&swapped, salvage_options()).unwrap();
    assert_eq!(crate::model::observe(&engine).unwrap(), latest.seen());
    assert!(report.losses.is_empty());
    let copied = disk.fork();
    let beyond: u64 = last.trim_end_matches(".log").parse().unwrap();
    copied.set_content(&file(beyond + 1), disk.content(first).unwrap());
    let (engine, _writer, _) = salvage(&copied, salvage_options()).unwrap();
    assert_eq!(crate::model::observe(&engine).unwrap(), latest.seen());
}

/// Three files, each with entries of one shared group and of a group of its own.
fn three_files() -> (Arc<SimDisk>, Driver) {
    let mut driver = Driver::new(options());
    let mut rng = StdRng::seed_from_u64(1);
    let mut noise = |len: usize| -> bytes::Bytes { (0..len).map(|_| rng.random::<u8>()).collect() };
    for number in 1..=3u64 {
        let first = (number - 1) * 10 + 1;
        let entries = (0..10).map(|_| noise(3000)).collect();
        driver.submit(vec![Change::Append { group: 1, first, entries }], Durability::Synced);
        let entries = (0..10).map(|_| noise(3000)).collect();
        let key = Change::Put { group: 10 + number, key: b"hard".to_vec(), value: vec![number as u8] };
        driver.submit(vec![Change::Append { group: 10 + number, first: 1, entries }, key], Durability::Synced);
        driver.turn();
    }
    driver.writer.finish();
    let disk = driver.disk.clone();
    assert_eq!(logs(&disk).len(), 3);
    (disk, driver)
}

/// A missing file loses only groups that it may have changed: the next file records them.
#[test]
fn a_missing_file_loses_only_its_own_groups() {
    let (disk, driver) = three_files();
    let latest = &driver.history[driver.history.current];
    disk.lose(&file(2));
    let (engine, _writer, report) = salvage(&disk, salvage_options()).unwrap();
    check_salvaged(&engine, &report, latest).unwrap();
    assert_eq!(report.losses.len(), 1, "{report:?}");
    assert_eq!((report.losses[0].file.as_str(), report.losses[0].what.as_str()), (file(2).as_str(), "file is missing"));
    assert_eq!(report.losses[0].concerns.as_deref(), Some(&[GroupId(1), GroupId(12)][..]));
    let lsns = (report.losses[0].first_lsn, report.losses[0].last_lsn);
    assert!(matches!(lsns, (Some(first), Some(last)) if first <= last), "{lsns:?}");
    assert_eq!(report.lost.iter().map(|loss| loss.group.0).collect::<Vec<_>>(), [1, 12]);
    assert_eq!(report.lost[0].doubtful, [EntryRange { first: 1, last: 10 }]);
    assert_eq!(report.lost[0].missing, [EntryRange { first: 11, last: 20 }]);
    assert!(matches!(engine.entry(GroupId(1), 5), Err(LogError::Lost { .. })));
    assert!(matches!(engine.entry(GroupId(1), 15), Err(LogError::Lost { .. })));
    assert!(engine.entry(GroupId(1), 25).is_ok());
    assert!(matches!(engine.entry(GroupId(1), 31), Err(LogError::NotFound { last: 30 })));
    assert!(matches!(engine.get(GroupId(12), b"hard"), Err(LogError::Lost { .. })));
    let error = engine.entry(GroupId(1), 15).unwrap_err().to_string();
    assert_eq!(error, "entry 15 of group 1 is lost, or may have been changed by what is lost");
    // Groups of other files are complete.
    for (group, key) in [(11, 1), (13, 3)] {
        assert_eq!(engine.get(GroupId(group), b"hard").unwrap().unwrap(), &[key][..]);
        assert_eq!(engine.entries(GroupId(group), 1, 11, usize::MAX).unwrap().len(), 10);
    }
    assert!(
        matches!(engine.entry(GroupId(99), 1), Err(LogError::NotFound { .. })),
        "nor is a group that never existed"
    );

    let doubtful = LogOptions { keep_doubtful: true, ..salvage_options() };
    let (engine, _writer, again) = salvage(&disk, doubtful).unwrap();
    assert!(engine.entry(GroupId(1), 5).is_ok() && engine.entry(GroupId(1), 25).is_ok());
    assert!(matches!(engine.entry(GroupId(1), 15), Err(LogError::Lost { .. })));
    assert!(matches!(engine.entries(GroupId(1), 8, 23, usize::MAX), Err(LogError::Lost { .. })));
    assert_eq!(engine.entries(GroupId(1), 5, 11, usize::MAX).unwrap().len(), 6);
    assert!(matches!(engine.entry(GroupId(12), 3), Err(LogError::Lost { .. })), "only the lost file had it");
    assert_eq!(again.lost, report.lost);
}

/// If its groups are unknown, a lost part may concern any group: earlier records are not returned, later ones are.
#[test]
fn a_loss_that_may_concern_any_group_is_reported() {
    let (disk, driver) = three_files();
    let latest = &driver.history[driver.history.current];
    // The header of the first commit group of the newest file. The second group proves that the first was synced.
    let mut content = disk.content(&file(3)).unwrap();
    content[4096 + 10] ^= 1;
    disk.set_content(&file(3), content);
    let (engine, _writer, report) = salvage(&disk, salvage_options()).unwrap();
    check_salvaged(&engine, &report, latest).unwrap();
    let [loss] = report.losses.as_slice() else { panic!("{report:?}") };
    assert_eq!((loss.from, loss.concerns.as_ref()), (4096, None));
    assert_eq!(loss.first_lsn, loss.last_lsn);
    let one = report.lost.iter().find(|loss| loss.group == GroupId(1)).unwrap();
    assert_eq!(one.doubtful, [EntryRange { first: 1, last: 20 }]);
    assert!(matches!(engine.get(GroupId(11), b"hard"), Err(LogError::Lost { .. })));
    assert!(matches!(engine.entry(GroupId(99), 1), Err(LogError::Lost { .. })), "the lost part may have had it");
}

/// A damaged block loses only its own entries. The error names their groups.
#[test]
fn a_damaged_block_loses_its_own_entries() {
    let (disk, driver) = three_files();
    let mut content = disk.content(&file(1)).unwrap();
    content[20_000] ^= 1;
    disk.set_content(&file(1), content);
    let (engine, _writer, report) = salvage(&disk, LogOptions { verify: true, ..salvage_options() }).unwrap();
    check_salvaged(&engine, &report, &driver.history[driver.history.current]).unwrap();
    let [loss] = report.lost.as_slice() else { panic!("{report:?}") };
    let [range] = loss.unreadable.as_slice() else { panic!("{report:?}") };
    let error = engine.entry(loss.group, range.first).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { groups, .. } if *groups == [loss.group]), "{error}");
    assert!(error.to_string().ends_with(&format!("(group {})", loss.group.0)), "{error}");
}

#[test]
fn a_salvaged_log_refuses_writes_and_changes_nothing() {
    let (disk, driver) = three_files();
    // Includes the mark of the clean stop.
    let last_lsn = driver.engine.stats().published.0;
    disk.set_content("0000000000000009.tmp", b"half a header".to_vec());
    disk.set_content("0000000000000007.spare", vec![0; 64 << 10]);
    // Dropped and not deleted, as after a crash.
    disk.set_content(&file(4711), disk.content(&file(1)).unwrap());
    let (before, changes) = (contents(&disk), disk.changes());
    {
        let (engine, mut writer, _) = salvage(&disk, salvage_options()).unwrap();
        let mut batch = LogBatch::new();
        batch.put(GroupId(1), b"k", b"v");
        let refused = |outcome: engine::log::Result<engine::log::Lsn>| panic!("called with {outcome:?}");
        let error = engine.submit_with(batch, Durability::Synced, Box::new(refused)).unwrap_err();
        assert!(matches!(error, LogError::ReadOnly), "{error}");
        assert!(matches!(engine.submit(LogBatch::new(), Durability::Buffered), Err(LogError::ReadOnly)));
        assert!(matches!(engine.sequence().submit(LogBatch::new(), Durability::Synced), Err(LogError::ReadOnly)));
        assert!(matches!(engine.write(LogBatch::new(), Durability::Synced), Err(LogError::ReadOnly)));
        assert!(matches!(engine.purge(Budget::default()), Err(LogError::ReadOnly)));
        assert_eq!(writer.turn(), 0);
        writer.finish();
        assert!(engine.poisoned().is_none());
        assert_eq!(crate::model::observe(&engine).unwrap(), driver.history[driver.history.current].seen());
        assert_eq!((engine.stats().published.0, engine.stats().synced.0), (last_lsn, last_lsn));
        engine.close();
        // The same with the threads of the log.
        let (engine, _) = LogEngine::open(disk.session(), salvage_options()).unwrap();
        assert!(matches!(engine.write(LogBatch::new(), Durability::Synced), Err(LogError::ReadOnly)));
    }
    assert_eq!((contents(&disk), disk.changes()), (before, changes));
}

#[test]
fn salvage_refuses_an_empty_directory() {
    let disk = SimDisk::new();
    assert!(matches!(salvage(&disk, salvage_options()), Err(LogError::NoLog)));
    disk.set_content(&file(1), vec![7; 9000]);
    assert!(matches!(salvage(&disk, salvage_options()), Err(LogError::Corrupt { file: name, .. }) if name == file(1)));
}

/// A torn tail after a crash is not damage: salvage shows the synced data and leaves the tail alone.
#[test]
fn a_torn_tail_is_not_shown() {
    let mut torn = 0;
    for seed in 0..60 {
        let mut driver = Driver::new(options());
        let mut rng = StdRng::seed_from_u64(seed);
        let generator = Generator { groups: 4, max_entry: 800, removes: false };
        for step in 0..30 {
            let changes = generator.batch(&mut rng, &driver.history[driver.history.len() - 1]);
            let durability = if step < 15 { Durability::Synced } else { Durability::Buffered };
            driver.submit(changes, durability);
            driver.turn();
        }
        driver.disk.crash(seed);
        let (engine, _writer, report) = salvage(&driver.disk, salvage_options()).unwrap();
        assert!(report.losses.is_empty() && report.lost.is_empty(), "seed {seed}: {report:?}");
        let salvaged = crate::model::observe(&engine).unwrap();
        torn += u64::from(report.truncated_bytes > 0);
        // The default mode shows the same, and cuts as much.
        let (engine, _writer, cut) = LogEngine::open_driven(driver.disk.session(), options()).unwrap();
        assert_eq!(crate::model::observe(&engine).unwrap(), salvaged, "seed {seed}");
        assert_eq!((cut.truncated_bytes, cut.truncated_at), (report.truncated_bytes, report.truncated_at));
    }
    assert!(torn > 10, "{torn}");
}

/// Unreadable sectors are lost, not the whole file.
#[test]
fn a_failed_read_is_damage_at_its_offset() {
    let (disk, driver) = three_files();
    let mut content = disk.content(&file(2)).unwrap();
    let len = content.len();
    content[len - 40] ^= 1;
    disk.set_content(&file(2), content);
    for nth in 1..200 {
        let failing = disk.fork();
        failing.fail_nth(Operation::Read, nth, std::io::ErrorKind::Other);
        let (engine, _writer, report) = salvage(&failing, salvage_options()).unwrap();
        if failing.failures_left() > 0 {
            assert!(nth > 10, "only {nth} reads");
            return;
        }
        check_salvaged(&engine, &report, &driver.history[driver.history.current])
            .unwrap_or_else(|what| panic!("read {nth}: {what}"));
    }
    panic!("more reads than expected");
}
