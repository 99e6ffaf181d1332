//! Repair: the new log opens, is sound, and has only correct records; the report names the losses.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::{Disk, SimDisk};
use engine::log::tools::{Progress, RepairOptions, RepairReport, repair};
use engine::log::{Durability, EntryRange, GroupId, LogEngine, LogError, LogOptions, RecoveryMode, RecoveryReport};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{busy_log, checked, logs, options};
use crate::model::cases::entry;
use crate::model::{Change, Driver, State, check_salvaged, contents, file, observe};

fn repaired(disk: &SimDisk, keep_doubtful: bool) -> (Arc<SimDisk>, RepairReport) {
    let before = contents(disk);
    let to = SimDisk::new();
    let repair_options = RepairOptions { keep_doubtful, log: options() };
    let report = repair(disk, || Ok(to.clone()), &repair_options, &mut |_| ()).unwrap();
    assert_eq!(contents(disk), before, "the damaged log is not changed");
    (to, report)
}

#[test]
fn a_repaired_sound_log_has_the_same_content() {
    for seed in 0..6 {
        let driver = busy_log(seed, options(), true);
        let (to, report) = repaired(&driver.disk, false);
        assert!(report.losses.is_empty() && report.groups.iter().all(|group| group.is_whole), "{report:?}");
        let strict = LogOptions { recovery: RecoveryMode::Strict, verify: true, ..options() };
        let (engine, _writer, _) = LogEngine::open_driven(to.session(), strict).unwrap();
        assert_eq!(observe(&engine).unwrap(), driver.history[driver.history.current].seen(), "seed {seed}");
        assert!(checked(&to).is_sound());
    }
}

/// Random damage: the new log opens strictly, is sound, has only correct entries, and the report lists its content.
#[test]
fn a_repaired_damaged_log_has_only_correct_entries() {
    let (mut whole, mut partly) = (0, 0);
    for seed in 0..60 {
        let driver = busy_log(seed, options(), true);
        let names = logs(&driver.disk);
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..rng.random_range(1..3) {
            // Not the newest file: its end may be a torn tail.
            let name = &names[rng.random_range(0..names.len().max(2) - 1)];
            let Some(mut content) = driver.disk.content(name).filter(|_| names.len() > 1) else { continue };
            let at = rng.random_range(0..content.len());
            if rng.random_bool(0.3) {
                driver.disk.lose(name);
                continue;
            }
            let upto = content.len().min(at + 600);
            content[at..upto].fill(0);
            driver.disk.set_content(name, content);
        }
        let latest = &driver.history[driver.history.current];
        let (to, report) = repaired(&driver.disk, false);
        let strict = LogOptions { recovery: RecoveryMode::Strict, verify: true, ..options() };
        let (engine, _writer, opened) = LogEngine::open_driven(to.session(), strict).unwrap();
        assert!(checked(&to).is_sound());
        check_kept(&engine, &report, latest).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        assert_eq!(
            opened.entries,
            report.groups.iter().filter_map(|group| group.kept).map(|r| r.last - r.first + 1).sum::<u64>()
        );
        whole += report.groups.iter().filter(|group| group.is_whole).count();
        partly += report.groups.iter().filter(|group| !group.is_whole).count();
    }
    assert!(whole > 50 && partly > 50, "{whole} whole, {partly} not");
}

/// The repaired log has the reported records of each group, and all of them are correct.
fn check_kept(engine: &LogEngine, report: &RepairReport, state: &State) -> Result<(), String> {
    for group in engine.groups() {
        let Some(reported) = report.groups.iter().find(|reported| reported.group == group) else {
            return Err(format!("{group:?} is not in the report"));
        };
        let bounds = engine.bounds(group).unwrap();
        let kept = reported.kept.unwrap_or(EntryRange { first: bounds.first, last: bounds.last });
        if (kept.first, kept.last) != (bounds.first, bounds.last) {
            return Err(format!("{group:?} has {bounds:?}, reported was {reported:?}"));
        }
        let known = state.0.get(&group.0).cloned().unwrap_or_default();
        for index in bounds.first..=bounds.last {
            if known.entries.get(&index) != Some(&engine.entry(group, index).unwrap()) {
                return Err(format!("entry {index} of {group:?} is not correct"));
            }
        }
        for (key, value) in engine.scan(group).unwrap() {
            if known.keys.get(key.as_ref()).map(Vec::as_slice) != Some(value.as_ref()) {
                return Err(format!("key {key:?} of {group:?} is not correct"));
            }
        }
    }
    for reported in report.groups.iter().filter(|reported| reported.is_whole) {
        let seen = state.seen().remove(&reported.group.0);
        let found = observe(engine).unwrap().remove(&reported.group.0);
        if seen != found {
            return Err(format!("{:?} is called whole and is {found:?}, not {seen:?}", reported.group));
        }
    }
    Ok(())
}

/// Of a group with a hole repair keeps the newest consecutive entries, and reports what it drops.
#[test]
fn a_group_with_a_hole_keeps_its_newest_entries() {
    let mut driver = Driver::new(options());
    let mut rng = StdRng::seed_from_u64(1);
    for index in 1..=30 {
        let entry: Bytes = (0..3000).map(|_| rng.random::<u8>()).collect();
        let append = Change::Append { group: 1, first: index, entries: vec![entry] };
        let put = Change::Put { group: 1, key: b"hard".to_vec(), value: vec![index as u8] };
        driver.submit(vec![append, put], Durability::Synced);
        driver.turn();
    }
    driver.writer.finish();
    // The blocks of some entries.
    let name = file(1);
    let mut content = driver.disk.content(&name).unwrap();
    content[30_000] ^= 1;
    driver.disk.set_content(&name, content);
    let (to, report) = repaired(&driver.disk, false);
    let [group] = report.groups.as_slice() else { panic!("{report:?}") };
    let kept = group.kept.unwrap();
    assert_eq!((kept.last, group.lost.len(), group.lost[0].first), (30, 1, 1));
    assert_eq!(group.lost[0].last + 1, kept.first);
    assert!(!group.is_whole && kept.first > 5 && kept.first < 15);
    let (engine, _writer, _) = LogEngine::open_driven(to.session(), options()).unwrap();
    assert!(matches!(engine.entry(GroupId(1), 1), Err(LogError::Compacted { first }) if first == kept.first));
    assert_eq!(engine.get(GroupId(1), b"hard").unwrap().unwrap(), &[30][..]);
    assert!(check_salvaged(&engine, &RecoveryReport::default(), &driver.history[driver.history.current]).is_err());

    // With a lost file, doubtful entries are kept only on request.
    driver.disk.lose(&file(1));
    let (_, strictly) = repaired(&driver.disk, false);
    assert_eq!(strictly.losses.len(), 1);
    assert!(strictly.groups[0].lost.is_empty() && !strictly.groups[0].is_whole, "{strictly:?}");
    let error = repair(driver.disk.as_ref(), || Ok(to), &RepairOptions::default(), &mut |_| ()).unwrap_err();
    assert!(matches!(error, LogError::Invalid(_)), "{error}");
}

#[test]
fn doubtful_entries_are_kept_only_on_request() {
    let mut driver = Driver::new(options());
    let mut rng = StdRng::seed_from_u64(1);
    let mut noise = || -> Vec<Bytes> { (0..19).map(|_| (0..3000).map(|_| rng.random::<u8>()).collect()).collect() };
    for group in 1..=3 {
        let again = Change::Append { group: 1, first: 5 + group, entries: vec![Bytes::from_static(b"again")] };
        driver.submit(vec![Change::Append { group, first: 1, entries: noise() }, again], Durability::Synced);
        driver.turn();
    }
    driver.writer.finish();
    assert_eq!(logs(&driver.disk).len(), 3);
    driver.disk.lose(&file(2));
    let (_, strictly) = repaired(&driver.disk, false);
    let ids = |report: &RepairReport| {
        report.groups.iter().map(|group| (group.group.0, group.kept.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(ids(&strictly), [(1, true), (2, false), (3, true)]);
    let one = &strictly.groups[0];
    assert_eq!(one.kept, Some(EntryRange { first: 8, last: 8 }));
    assert_eq!(
        (one.doubtful.as_slice(), one.lost.as_slice()),
        (&[EntryRange { first: 1, last: 6 }][..], &[EntryRange { first: 1, last: 7 }][..])
    );
    assert!(strictly.groups[2].is_whole, "the lost file did not change it");
    let (to, doubtful) = repaired(&driver.disk, true);
    assert_eq!(ids(&doubtful), [(1, true), (2, false), (3, true)]);
    // Entry 7 is lost in any case: the newest consecutive entries start after it.
    assert_eq!(doubtful.groups[0].kept, Some(EntryRange { first: 8, last: 8 }));
    let (engine, _writer, _) = LogEngine::open_driven(to.session(), options()).unwrap();
    assert_eq!(engine.bounds(GroupId(1)).unwrap().last, 8);
}

/// A repair reports progress from the first file it reads, and writes only into an empty directory.
#[test]
fn a_repair_reports_progress_and_needs_an_empty_directory() {
    let mut driver = Driver::new(options());
    for index in 1..=100 {
        let append = Change::Append { group: 1, first: index, entries: vec![entry(1, index, 8000)] };
        driver.submit(vec![append], Durability::Synced);
        driver.turn();
    }
    driver.writer.finish();
    for keep_doubtful in [false, true] {
        let reported = std::cell::RefCell::new(Vec::new());
        let mut read_before = 0;
        let mut open = || {
            read_before = reported.borrow().last().map_or(0, |progress: &Progress| progress.done);
            Ok(SimDisk::new() as Arc<dyn Disk>)
        };
        let repair_options = RepairOptions { keep_doubtful, log: options() };
        repair(driver.disk.as_ref(), &mut open, &repair_options, &mut |progress| reported.borrow_mut().push(progress))
            .unwrap();
        let reported = reported.into_inner();
        assert!(read_before > 0, "no progress while the log was read: {reported:?}");
        assert!(
            reported.windows(2).all(|pair| pair[0].done <= pair[1].done && pair[0].total <= pair[1].total),
            "{reported:?}"
        );
        assert!(reported.iter().all(|progress| progress.done <= progress.total), "{reported:?}");
        assert_eq!(reported.last().map(|progress| progress.done), reported.last().map(|progress| progress.total));
    }
    let taken = SimDisk::new();
    taken.set_content("IDENT", b"a node's".to_vec());
    let before = contents(&taken);
    let to = || Ok(taken.clone() as Arc<dyn Disk>);
    let error = repair(driver.disk.as_ref(), to, &RepairOptions::default(), &mut |_| ()).unwrap_err();
    assert!(matches!(&error, LogError::Invalid(what) if what.ends_with("it has IDENT")), "{error}");
    assert_eq!(contents(&taken), before);
}
