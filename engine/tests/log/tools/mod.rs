//! The tools: a check finds exactly the damage, a dump shows the content of the log, a repaired log opens.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::{Disk, SimDisk};
use engine::log::tools::{
    CheckReport, DumpOptions, Progress, Record, RepairOptions, RepairReport, check, dump, repair, stats,
};
use engine::log::{Budget, Durability, EntryRange, GroupId, LogBatch, LogEngine, LogError, LogOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::{Change, Driver, Generator, State, check_salvaged, contents, file, observe, small_options};

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 512, ..small_options() }
}

fn logs(disk: &SimDisk) -> Vec<String> {
    Disk::list(disk).unwrap().into_iter().filter(|name| name.ends_with(".log")).collect()
}

/// Checks the log. Changes nothing, and reports progress up to the end.
fn checked(disk: &SimDisk) -> CheckReport {
    let (before, changes) = (contents(disk), disk.changes());
    let mut reported: Vec<Progress> = Vec::new();
    let report = check(disk, &mut |progress| reported.push(progress)).unwrap();
    assert_eq!((contents(disk), disk.changes()), (before, changes));
    let last = reported[reported.len() - 1];
    assert_eq!((last.done, last.total), (report.bytes, report.bytes));
    assert!(reported.windows(2).all(|pair| pair[0].done <= pair[1].done));
    report
}

/// A log of several files with records of every kind.
fn busy_log(seed: u64, options: LogOptions, finish: bool) -> Driver {
    let mut rng = StdRng::seed_from_u64(seed);
    // Every other log is purged early; the others have many files.
    let purge_threshold = if seed.is_multiple_of(2) { 1 << 20 } else { 0 };
    let mut driver = Driver::new(LogOptions { purge_threshold, ..options });
    let generator = Generator { groups: 6, max_entry: 2500, removes: false };
    for step in 0..90 {
        let changes = generator.batch(&mut rng, &driver.history[driver.history.len() - 1]);
        driver.submit(changes, if step % 3 == 0 { Durability::Synced } else { Durability::Buffered });
        driver.turn();
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    if finish {
        driver.writer.finish();
    }
    driver
}

/// A crash leaves a sound log, apart from a torn tail of the length that opening cuts.
#[test]
fn a_log_after_a_crash_is_sound() {
    let (mut torn, mut reused) = (0, 0);
    for seed in 0..60 {
        let prefill_bytes = [0, 16 << 10][seed as usize % 2];
        let mut driver = busy_log(seed, LogOptions { prefill_bytes, align_bytes: 8, ..small_options() }, false);
        if seed % 3 == 0 {
            // Once more, in reused files.
            driver.disk.halt_after(seed * 7);
            for index in 0..20 {
                let entries = vec![Bytes::from(vec![seed as u8; 4000])];
                driver.submit(vec![Change::Append { group: 900 + index, first: 1, entries }], Durability::Synced);
                driver.turn();
            }
        }
        for index in 0..4 {
            let entries = vec![Bytes::from(vec![index as u8; 700])];
            driver.submit(vec![Change::Append { group: 800 + index, first: 1, entries }], Durability::Buffered);
            driver.turn();
        }
        driver.disk.crash(seed);
        let report = checked(&driver.disk);
        assert!(report.is_sound(), "seed {seed}: {:?}", report.findings);
        reused += u64::from(Disk::list(driver.disk.as_ref()).unwrap().iter().any(|name| name.ends_with(".spare")));
        let (engine, _writer, opened) = LogEngine::open_driven(driver.disk.session(), options()).unwrap();
        let tail = report.torn_tail.as_ref().map(|tail| (tail.file.clone(), tail.offset));
        assert_eq!(tail, opened.truncated_at, "seed {seed}");
        assert_eq!((report.groups, report.entries), (opened.groups, opened.entries), "seed {seed}");
        assert_eq!(engine.groups().len(), report.groups);
        torn += u64::from(tail.is_some());
    }
    assert!(torn > 10 && reused > 10, "{torn} torn, {reused} with spares");
}

/// Any flipped bit is found, and its file named. In the last group it may be taken for a torn tail.
#[test]
fn any_flipped_bit_is_found() {
    let driver = busy_log(2, options(), true);
    let mut rng = StdRng::seed_from_u64(7);
    let names = logs(&driver.disk);
    assert!(names.len() >= 3 && checked(&driver.disk).is_sound());
    for name in &names {
        let content = driver.disk.content(name).unwrap();
        let len = content.len();
        let sample = (0..len).filter(|at| *at < 90 || at + 300 > len || rng.random_bool(0.01));
        for at in sample.collect::<Vec<_>>() {
            let flipped = driver.disk.fork();
            let mut content = content.clone();
            content[at] ^= 1 << (at % 8);
            flipped.set_content(name, content);
            let report = checked(&flipped);
            let named = report.findings.iter().any(|finding| finding.file == *name);
            let torn = report.torn_tail.as_ref().is_some_and(|tail| tail.file == *name);
            assert!(named || torn, "byte {at} of {name}: {report:?}");
        }
    }
}

/// Not only the first: every damaged file is named, each with its groups.
#[test]
fn all_damage_is_found() {
    let mut driver = Driver::new(options());
    let mut rng = StdRng::seed_from_u64(4);
    for group in 1..=60 {
        let entries = (0..3).map(|_| (0..2000).map(|_| rng.random::<u8>()).collect()).collect();
        driver.submit(vec![Change::Append { group, first: 1, entries }], Durability::Synced);
        driver.turn();
    }
    driver.writer.finish();
    let names = logs(&driver.disk);
    assert!(names.len() >= 5, "{names:?}");
    let flip = |name: &String, at: usize| {
        let mut content = driver.disk.content(name).unwrap();
        content[at] ^= 1;
        driver.disk.set_content(name, content);
    };
    // A block, a header, an index, and a missing file.
    flip(&names[0], 4096 + 64 + 16 + 100);
    flip(&names[1], 50);
    let footer = driver.disk.content(&names[2]).unwrap().len() - 64;
    let content = driver.disk.content(&names[2]).unwrap();
    let index = u64::from_le_bytes(content[footer + 16..footer + 24].try_into().unwrap()) as usize;
    flip(&names[2], index + 1);
    driver.disk.lose(&names[3]);
    let report = checked(&driver.disk);
    let what = |name: &String| -> Vec<&str> {
        let of_file = report.findings.iter().filter(|finding| finding.file == *name);
        of_file.map(|finding| finding.what.as_str()).collect()
    };
    assert_eq!(what(&names[0]), ["block fails its checksum"]);
    assert_eq!(what(&names[1]), ["file header fails its checksum"]);
    assert_eq!(what(&names[2]), ["index fails its checksum"]);
    assert!(what(&names[3]).contains(&"file is missing"), "{report:?}");
    let block = report.findings.iter().find(|finding| finding.what == "block fails its checksum").unwrap();
    assert!(!block.groups.is_empty() && block.offset == 4096 + 64);
    // The next file records the groups of a missing one.
    let missing = report.findings.iter().find(|finding| finding.what == "file is missing").unwrap();
    assert!(missing.groups.len() > 5, "{missing:?}");
    let index = report.findings.iter().find(|finding| finding.what == "index fails its checksum").unwrap();
    assert!(index.groups.is_empty(), "the file that records them is missing");
    assert!(report.findings.windows(2).all(|pair| (&pair[0].file, pair[0].offset) <= (&pair[1].file, pair[1].offset)));
}

#[test]
fn a_wrong_index_is_found_with_its_groups() {
    // Two logs of one identity that differ only in group 2: the index of one does not match the groups of the other.
    let log = |key: &[u8]| {
        let mut driver = Driver::new(LogOptions { compress_from: usize::MAX, ..options() });
        let put = Change::Put { group: 2, key: key.to_vec(), value: b"v".to_vec() };
        driver.submit(vec![put], Durability::Synced);
        for index in 1..40 {
            let entries = vec![Bytes::from(vec![7; 3000])];
            driver.submit(vec![Change::Append { group: 1, first: index, entries }], Durability::Synced);
            driver.turn();
        }
        driver.writer.finish();
        driver.disk
    };
    let (one, other) = (log(b"abc"), log(b"abd"));
    let (mut content, lie) = (one.content(&file(1)).unwrap(), other.content(&file(1)).unwrap());
    let footer = content.len() - 64;
    let index = u64::from_le_bytes(content[footer + 16..footer + 24].try_into().unwrap()) as usize;
    assert_eq!(content.len(), lie.len());
    // Everything except the checksum of the last commit group, which the footer repeats, has the same size and offset.
    content[index..].copy_from_slice(&lie[index..]);
    one.set_content(&file(1), content);
    let report = checked(&one);
    let lies: Vec<_> =
        report.findings.iter().filter(|finding| finding.what.starts_with("index does not say")).collect();
    assert_eq!(lies.len(), 1, "{report:?}");
    assert_eq!(lies[0].groups, [GroupId(2)]);
    assert!(report.findings.iter().any(|finding| finding.what == "commit groups do not end where the seal says"));
}

#[test]
fn tools_refuse_an_empty_directory() {
    let disk = SimDisk::new();
    disk.set_content("notes.txt", b"mine".to_vec());
    assert!(matches!(check(disk.as_ref(), &mut |_| ()), Err(LogError::NoLog)));
    assert!(matches!(stats(disk.as_ref(), &mut |_| ()), Err(LogError::NoLog)));
    let shown = dump(disk.as_ref(), &DumpOptions::default(), &mut |_| Ok(()), &mut |_| ());
    assert!(matches!(shown, Err(LogError::NoLog)));
    let repaired = repair(disk.as_ref(), || panic!("nothing to write"), &RepairOptions::default(), &mut |_| ());
    assert!(matches!(repaired, Err(LogError::NoLog)));
}

#[test]
fn stats_match_the_engine() {
    for seed in 0..6 {
        let driver = busy_log(seed, options(), true);
        let counted = stats(driver.disk.as_ref(), &mut |_| ()).unwrap();
        assert!(counted.damage.is_empty());
        let seen = observe(&driver.engine).unwrap();
        assert_eq!(counted.groups.len(), seen.len());
        for group in &counted.groups {
            let known = &seen[&group.group.0];
            assert_eq!((group.first, group.last, group.keys), (known.first, known.last, known.keys.len() as u64));
            assert_eq!(group.entries, known.entries.len() as u64);
        }
        assert_eq!(counted.entries, seen.values().map(|group| group.entries.len() as u64).sum::<u64>());
        // The engine may keep files that are dropped and not deleted yet.
        assert!(counted.bytes <= driver.engine.stats().disk_bytes);
        assert_eq!(counted.bytes, counted.files.iter().map(|file| file.bytes).sum::<u64>());
        assert!(counted.live_bytes > 0 && counted.live_bytes <= counted.bytes);
        assert!(counted.files.iter().all(|file| file.live_bytes <= file.bytes));
        let sealed = counted.files.iter().filter(|file| file.sealed).count();
        assert_eq!(sealed, counted.files.len() - 1);
        assert!(counted.compression().unwrap() > 1.0, "half of the entries are one letter");
    }
}

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
        let strict = LogOptions { recovery: engine::log::RecoveryMode::Strict, verify: true, ..options() };
        let (engine, _writer, _) = LogEngine::open_driven(to.session(), strict).unwrap();
        assert_eq!(observe(&engine).unwrap(), driver.history[driver.history.current].seen(), "seed {seed}");
        assert!(checked(&to).is_sound());
    }
}

/// Random damage: the new log opens strictly, is sound, holds only true entries, and the report lists its content.
#[test]
fn a_repaired_damaged_log_holds_only_true_entries() {
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
        let strict = LogOptions { recovery: engine::log::RecoveryMode::Strict, verify: true, ..options() };
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

/// The repaired log holds what the report says of each group, and all of it is true.
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
                return Err(format!("entry {index} of {group:?} is not true"));
            }
        }
        for (key, value) in engine.scan(group).unwrap() {
            if known.keys.get(key.as_ref()).map(Vec::as_slice) != Some(value.as_ref()) {
                return Err(format!("key {key:?} of {group:?} is not true"));
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
    assert!(
        check_salvaged(&engine, &engine::log::RecoveryReport::default(), &driver.history[driver.history.current])
            .is_err()
    );

    // With a lost file, older entries are kept only on request.
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
    assert!(strictly.groups[2].is_whole, "the lost file did not have it");
    let (to, doubtful) = repaired(&driver.disk, true);
    assert_eq!(ids(&doubtful), [(1, true), (2, false), (3, true)]);
    // Entry 7 is lost in any case: the newest consecutive entries start after it.
    assert_eq!(doubtful.groups[0].kept, Some(EntryRange { first: 8, last: 8 }));
    let (engine, _writer, _) = LogEngine::open_driven(to.session(), options()).unwrap();
    assert_eq!(engine.bounds(GroupId(1)).unwrap().last, 8);
}

/// A log with one record of each kind and fixed bytes. With `purged`, its first file is dropped.
fn fixed_log(purged: bool) -> Arc<SimDisk> {
    let disk = SimDisk::new();
    let options = LogOptions { spare_files: 0, ..options() };
    let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
    let mut write = |fill: &dyn Fn(&mut LogBatch)| {
        let mut batch = LogBatch::new();
        fill(&mut batch);
        let written = engine.submit(batch, Durability::Synced).unwrap();
        writer.turn();
        written.wait().unwrap();
    };
    let noise = |seed: u64| -> Bytes {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(3000).collect()
    };
    write(&|batch| {
        batch.append(GroupId(1), 1, vec![Bytes::from_static(b"hello"), Bytes::from_static(b"world")]);
        batch.put(GroupId(1), b"hard", b"state");
    });
    write(&|batch| {
        batch.append(GroupId(1), 2, vec![Bytes::from_static(b"again")]);
        batch.append(GroupId(2), 7, vec![noise(1)]);
        batch.delete(GroupId(1), b"hard");
    });
    for index in 8..26 {
        write(&|batch| batch.append(GroupId(2), index, vec![noise(index)]));
    }
    write(&|batch| {
        batch.compact(GroupId(2), 26);
        batch.remove(GroupId(3));
    });
    for _ in 0..if purged { 6 } else { 0 } {
        engine.purge(Budget::default()).unwrap();
        writer.turn();
    }
    writer.finish();
    disk
}

#[test]
fn a_dump_has_the_golden_format() {
    let shown = |disk: &SimDisk, options: DumpOptions| {
        let mut text = String::new();
        let mut show = |record: &Record| {
            text.push_str(&format!("{record}\n"));
            Ok(())
        };
        dump(disk, &options, &mut show, &mut |_| ()).unwrap();
        text
    };
    let (whole, purged) = (fixed_log(false), fixed_log(true));
    let text = format!(
        "a log of two files, with entries\n\n{}\nof it group 1\n\n{}\npurged\n\n{}",
        shown(&whole, DumpOptions { entries: Some(8), ..DumpOptions::default() }),
        shown(&whole, DumpOptions { group: Some(GroupId(1)), entries: None }),
        shown(&purged, DumpOptions::default()),
    );
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/dump.txt");
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden).unwrap(), "UPDATE_GOLDENFILES=1 rewrites it");
}

/// A dump shows what can be read around damage, and the damage in its place. The caller can end it.
#[test]
fn a_dump_shows_damage_in_its_place() {
    let disk = fixed_log(false);
    let mut content = disk.content(&file(1)).unwrap();
    // A block, and the header of a commit group.
    content[4096 + 90] ^= 1;
    content[20_000 / 512 * 512 + 9] ^= 1;
    disk.set_content(&file(1), content);
    let mut records = Vec::new();
    let mut show = |record: &Record| {
        records.push(record.clone());
        Ok(())
    };
    let with_entries = DumpOptions { entries: Some(0), ..DumpOptions::default() };
    let damaged = dump(disk.as_ref(), &with_entries, &mut show, &mut |_| ()).unwrap();
    let reported = records.iter().filter(|record| matches!(record, Record::Damage(_))).count();
    assert_eq!((damaged, reported), (2, 2), "{records:?}");
    let block =
        records.iter().position(|record| matches!(record, Record::Damage(finding) if finding.offset == 4096 + 64));
    let before = block.and_then(|at| records.get(at - 1));
    assert!(matches!(before, Some(Record::Group(group)) if group.offset == 4096), "in its place: {before:?}");
    let lost = records.iter().filter(|record| matches!(record, Record::Entry(entry) if entry.bytes.is_none())).count();
    assert!(lost > 0, "entries of a damaged block are named");
    assert!(records.iter().any(|record| matches!(record, Record::Seal(seal) if seal.groups.is_some())));
    let mut seen = 0;
    let stopped = dump(
        disk.as_ref(),
        &with_entries,
        &mut |_| {
            seen += 1;
            if seen == 3 { Err(std::io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        },
        &mut |_| (),
    );
    assert!(matches!(stopped, Err(LogError::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe));
    assert_eq!(seen, 3);
}

/// Stats read and verify everything: damage to a block, an index or a commit group is reported once, with its groups.
#[test]
fn stats_of_a_damaged_log_report_the_damage() {
    let damaged = |at: &dyn Fn(&[u8]) -> usize| {
        let disk = fixed_log(false);
        let mut content = disk.content(&file(1)).unwrap();
        let at = at(&content);
        content[at] ^= 1;
        disk.set_content(&file(1), content);
        stats(disk.as_ref(), &mut |_| ()).unwrap().damage
    };
    assert!(stats(fixed_log(false).as_ref(), &mut |_| ()).unwrap().damage.is_empty());
    let block = damaged(&|_| 4096 + 90);
    assert_eq!(block, [format!("{} at 4160: block fails its checksum (group 1)", file(1))]);
    let group = damaged(&|_| 4096 + 9);
    assert!(group.len() == 1 && group[0].starts_with(&format!("{} at 4096: commit group fails", file(1))), "{group:?}");
    let index = damaged(&|content| content.len() - 64 - 40);
    assert!(index.len() == 1 && index[0].contains("index fails its checksum (groups 1, 2)"), "{index:?}");
}

/// A repair reports progress from the first file it reads, and writes only into an empty directory.
#[test]
fn a_repair_reports_progress_and_needs_an_empty_directory() {
    let mut driver = Driver::new(options());
    for index in 1..=100 {
        let append =
            Change::Append { group: 1, first: index, entries: vec![crate::model::cases::entry(1, index, 8000)] };
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
