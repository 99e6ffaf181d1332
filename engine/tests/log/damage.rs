//! Damage to the files from outside: truncation at every length, bit flips in every byte, missing, swapped and copied
//! files.
//!
//! Damage gives an error that names the file, or is harmless. No read returns data that was not written, and recovery
//! cuts nothing that is provably synced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::disk::{Disk, SimDisk};
use engine::log::{Budget, Durability, LogEngine, LogError, LogOptions, RecoveryMode, RecoveryReport};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::model::{Change, Driver, Generator, Seen, file, observe, small_options};

type Observed = BTreeMap<u64, Seen>;

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 8, ..small_options() }
}

fn entry(group: u64, index: u64, len: usize) -> Change {
    let text = format!("{group}.{index} ").into_bytes();
    Change::Append { group, first: index, entries: vec![text.iter().cycle().take(len).copied().collect()] }
}

/// A small log of one file, and its state after each batch. All batches are synced.
fn small_log() -> (Arc<SimDisk>, Vec<Observed>) {
    let mut driver = Driver::new(options());
    let mut states = vec![observe(&driver.engine).unwrap()];
    let batches = [
        vec![entry(1, 1, 20), entry(2, 5, 300)],
        vec![Change::Put { group: 1, key: b"hard".to_vec(), value: b"state".to_vec() }, entry(1, 2, 5)],
        vec![entry(1, 2, 40), Change::Compact { group: 2, first_kept: 6 }],
        vec![Change::Delete { group: 1, key: b"hard".to_vec() }, entry(2, 9, 7)],
        vec![entry(1, 3, 2000)],
    ];
    for batch in batches {
        driver.submit(batch, Durability::Synced);
        driver.turn();
        states.push(observe(&driver.engine).unwrap());
    }
    (driver.disk, states)
}

/// A log with sealed files. With `finish` it ends with the mark of a clean stop.
fn sealed_log(finish: bool) -> (Arc<SimDisk>, Observed) {
    let mut driver = Driver::new(options());
    let mut rng = StdRng::seed_from_u64(5);
    let generator = Generator { groups: 3, max_entry: 9000, removes: false };
    for _ in 0..40 {
        let changes = generator.batch(&mut rng, driver.history.latest());
        driver.submit(changes, Durability::Synced);
        driver.turn();
    }
    if finish {
        driver.writer.finish();
    }
    let seen = observe(&driver.engine).unwrap();
    assert!(driver.disk.content(&file(3)).is_some(), "three files at least");
    (driver.disk, seen)
}

fn open(disk: &SimDisk) -> Result<(Observed, RecoveryReport), LogError> {
    let (engine, _writer, report) = LogEngine::open_driven(disk.session(), options())?;
    Ok((observe(&engine)?, report))
}

/// Whether the error names a file and an offset.
fn names(error: &LogError, seq: u64) -> bool {
    matches!(error, LogError::Corrupt { file: name, .. } | LogError::Version { file: name, .. }
        | LogError::Misplaced { file: name, .. } | LogError::Missing { file: name, .. } if *name == file(seq))
}

#[test]
fn a_log_cut_at_any_length_is_a_prefix_or_an_error() {
    let (disk, states) = small_log();
    let whole = disk.content(&file(1)).unwrap();
    let mut longest = 0;
    for len in 0..whole.len() {
        let cut = disk.fork();
        cut.set_content(&file(1), whole[..len].to_vec());
        match open(&cut) {
            Ok((seen, _)) => {
                let at =
                    states.iter().rposition(|state| *state == seen).unwrap_or_else(|| panic!("cut at {len}: {seen:?}"));
                assert!(at >= longest, "cut at {len}: an older state than with a shorter file");
                longest = at;
                // A second open finds the same, with nothing to report: the tail is cut.
                let (again, report) = open(&cut).unwrap();
                assert_eq!((again, report.truncated_bytes), (seen, 0));
            }
            Err(error) => assert!(len < 4096 && names(&error, 1), "cut at {len}: {error}"),
        }
    }
    assert_eq!(longest, states.len() - 1, "the longest file lacks only padding");
}

/// Two histories of one log that diverge after the first batch: a later group of one does not continue the other.
#[test]
fn a_group_continues_only_its_own_history() {
    let history = |first: &str| {
        let mut driver = Driver::new(LogOptions { align_bytes: 512, ..options() });
        for (index, text) in [(1, first), (2, "second")] {
            let append = Change::Append { group: 1, first: index, entries: vec![text.as_bytes().to_vec().into()] };
            driver.submit(vec![append], Durability::Synced);
            driver.turn();
        }
        driver.disk.content(&file(1)).unwrap()
    };
    let (mut one, other) = (history("this"), history("that"));
    one[4608..].copy_from_slice(&other[4608..]);
    let disk = SimDisk::new();
    disk.set_content(&file(1), one);
    let (seen, report) = open(&disk).unwrap();
    assert_eq!((seen[&1].last, report.truncated_bytes > 0), (1, true));
}

/// The next file is prepared or has no group, and the file before it is not sealed. The last group of that one is
/// damaged. As at the end of any log, nothing proves that it was synced: it is cut, and the report says so.
#[test]
fn a_damaged_last_group_before_an_empty_file_is_reported_as_uncertain() {
    let case = crate::model::cases::case("rotate");
    let prepared = case.prepared();
    let mut tried = 0;
    for stop in 0..=case.changes(&prepared) {
        let mut driver = prepared.fork();
        driver.disk.halt_after(stop);
        case.run(&mut driver);
        driver.disk.kill();
        let Some(next) = driver.disk.content(&file(2)) else { continue };
        if next.len() > 4096 {
            break;
        }
        let mut content = driver.disk.content(&file(1)).unwrap();
        let last = content.windows(4).rposition(|window| window == b"CGRP").unwrap();
        content[last + 9] ^= 1;
        driver.disk.set_content(&file(1), content);
        let (_engine, _writer, report) = crate::model::open(&driver.disk, &case.options).unwrap();
        assert!(report.uncertain.is_some(), "power off after {stop}: {report:?}");
        assert_eq!(report.truncated_at.map(|(name, _)| name), Some(file(1)), "power off after {stop}");
        tried += 1;
    }
    assert!(tried > 2, "met an empty newest file only {tried} times");
}

/// Any subset of the unsynced sectors may be on the disk: recovery always finds a prefix.
#[test]
fn any_subset_of_unsynced_sectors_is_a_prefix() {
    let (disk, mut states) = small_log();
    let raw = LogOptions { compress_from: usize::MAX, ..options() };
    let mut driver = Driver::on(disk.fork(), raw);
    let synced = disk.content(&file(1)).unwrap();
    for batch in [vec![entry(1, 4, 700)], vec![entry(2, 10, 1500)], vec![entry(3, 1, 900), entry(1, 4, 1)]] {
        driver.submit(batch, Durability::Buffered);
        driver.writer.turn();
        states.push(observe(&driver.engine).unwrap());
    }
    let written = driver.disk.content(&file(1)).unwrap();
    let sectors: Vec<usize> = (synced.len() / 512..written.len().div_ceil(512)).collect();
    assert!((6..14).contains(&sectors.len()), "{} sectors", sectors.len());
    for subset in 0..1u32 << sectors.len() {
        // The file has its new length, with zeros or the synced bytes in place of a lost sector.
        let mut content = synced.clone();
        content.resize(written.len(), 0);
        for (_, sector) in sectors.iter().enumerate().filter(|(bit, _)| subset & (1 << bit) != 0) {
            let range = sector * 512..written.len().min((sector + 1) * 512);
            content[range.clone()].copy_from_slice(&written[range]);
        }
        let torn = disk.fork();
        torn.set_content(&file(1), content);
        let (seen, report) = open(&torn).unwrap_or_else(|error| panic!("sectors {subset:b}: {error}"));
        let at =
            states.iter().rposition(|state| *state == seen).unwrap_or_else(|| panic!("sectors {subset:b}: {seen:?}"));
        assert!(at >= states.len() - 4, "sectors {subset:b}: lost what was synced");
        let all = subset + 1 == 1 << sectors.len();
        assert_eq!(at == states.len() - 1, all, "sectors {subset:b}");
        assert!(all || subset == 0 || report.truncated_bytes > 0 || at > states.len() - 4);
    }
}

#[test]
fn any_flipped_bit_of_a_log_is_detected_or_harmless() {
    for (name, finish) in [("after a crash", false), ("after a clean stop", true)] {
        let (disk, states) = small_log();
        if finish {
            let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
            drop(engine);
            // Write the mark of a clean stop: opening alone writes nothing.
            writer.finish();
        }
        let latest = &states[states.len() - 1];
        let whole = disk.content(&file(1)).unwrap();
        let mut found = 0;
        for at in 0..whole.len() {
            for bit in [0, 3, 7] {
                let flipped = disk.fork();
                let mut content = whole.clone();
                content[at] ^= 1 << bit;
                flipped.set_content(&file(1), content);
                match open(&flipped) {
                    Ok((seen, report)) => {
                        let state = states.iter().rposition(|state| *state == seen);
                        let state = state.unwrap_or_else(|| panic!("{name}: bit {bit} of {at}: returned {seen:?}"));
                        let lost = states.len() - 1 - state;
                        // Without a clean stop, nothing proves that the last group was synced. Recovery may cut it as a
                        // torn tail, and then reports it.
                        assert!(lost <= usize::from(!finish), "{name}: bit {bit} of {at}: lost {lost}");
                        assert!(lost == 0 || report.truncated_bytes > 0, "{name}: bit {bit} of {at}: lost silently");
                    }
                    Err(error) => {
                        assert!(names(&error, 1), "{name}: bit {bit} of {at}: {error}");
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 0);
        assert_eq!(open(&disk).unwrap().0, *latest, "{name}: undamaged");
    }
}

/// A small sealed file, a large one, and a small last one with three commit groups: the last proves that the two before
/// it are synced. Also the states before and after that last group.
fn small_files() -> (Arc<SimDisk>, Observed, Observed) {
    let mut driver = Driver::new(options());
    let mut write = |batch: Vec<Change>| {
        driver.submit(batch, Durability::Synced);
        driver.turn();
        observe(&driver.engine).unwrap()
    };
    write(vec![
        entry(1, 1, 20),
        entry(2, 5, 200),
        Change::Put { group: 1, key: b"k".to_vec(), value: b"old".to_vec() },
    ]);
    write(vec![entry(1, 2, 30), Change::Compact { group: 2, first_kept: 6 }]);
    write(vec![Change::Append { group: 9, first: 1, entries: vec![crate::model::cases::entry(9, 1, 62_000)] }]);
    write(vec![entry(1, 2, 40), Change::Delete { group: 1, key: b"k".to_vec() }]);
    let proven = write(vec![entry(2, 7, 300)]);
    let latest = write(vec![entry(3, 1, 50)]);
    let len = |seq| driver.disk.content(&file(seq)).unwrap().len();
    assert!(len(1) < 6000 && len(2) > 60_000 && len(3) < 6000 && driver.disk.content(&file(4)).is_none());
    (driver.disk, proven, latest)
}

/// Every byte of an old file and of the last one, before and after the position that is proven to be synced.
#[test]
fn any_flipped_byte_of_an_old_and_of_the_last_file_is_detected_or_harmless() {
    let (disk, proven, latest) = small_files();
    assert_eq!(open(&disk).unwrap().0, latest);
    for seq in [1, 3] {
        let whole = disk.content(&file(seq)).unwrap();
        let (mut found, mut cut) = (0, 0);
        for (at, bit) in (0..whole.len()).flat_map(|at| [(at, at % 8), (at, (at + 3) % 8)]) {
            let flipped = disk.fork();
            let mut content = whole.clone();
            content[at] ^= 1 << bit;
            flipped.set_content(&file(seq), content);
            let context = format!("bit {bit} of byte {at} of file {seq}");
            match open(&flipped) {
                Ok((seen, _)) if seen == latest => {}
                Ok((seen, report)) => {
                    assert_eq!(seen, proven, "{context}");
                    assert!(seq == 3 && report.truncated_bytes > 0, "{context}: lost silently");
                    cut += 1;
                }
                Err(error) => {
                    assert!(names(&error, seq), "{context}: {error}");
                    let inside = !matches!(error, LogError::Corrupt { offset, .. } if offset > whole.len() as u64);
                    assert!(inside, "{context}: {error}");
                    found += 1;
                }
            }
        }
        assert!(found > 400 && (cut > 0) == (seq == 3), "file {seq}: {found} found, {cut} cut");
    }
}

/// The bytes of a sealed file that the format does not use: the zeros after its header, after blocks, after the metas
/// of commit groups, and after the index.
fn padding(content: &[u8]) -> BTreeSet<usize> {
    let u32_at = |at: usize| u32::from_le_bytes(content[at..at + 4].try_into().unwrap()) as usize;
    let footer = content.len() - 64;
    let (index, stored) = (u32_at(footer + 16), u32_at(footer + 24));
    let mut out: BTreeSet<usize> = (u32_at(12)..u32_at(60)).chain(index + stored..footer).collect();
    let mut at = u32_at(60);
    while at < index {
        assert!(content[at..].starts_with(b"CGRP"), "no commit group at {at}");
        let (pad, meta, body) = (u32_at(at + 28), u32_at(at + 32), u32_at(at + 40));
        let blocks_end = at + 64 + body;
        let mut block = at + 64;
        while block < blocks_end {
            let end = block + 16 + u32_at(block + 4);
            block = end.next_multiple_of(8);
            out.extend(end..block);
        }
        at = blocks_end + meta + pad;
        out.extend(at - pad..at);
    }
    out
}

#[test]
fn any_flipped_byte_of_sealed_files_is_detected_or_harmless() {
    for finish in [false, true] {
        let (disk, latest) = sealed_log(finish);
        for seq in 1..=2 {
            let whole = disk.content(&file(seq)).unwrap();
            let (mut found, mut harmless) = (0, 0);
            let padding = padding(&whole);
            // Every byte of the structures, and a sample of the rest.
            let interesting = |at: &usize| at.is_multiple_of(37) || *at < 80 || *at + 600 > whole.len();
            for at in (0..whole.len()).filter(interesting) {
                let flipped = disk.fork();
                let mut content = whole.clone();
                content[at] ^= 0x41;
                flipped.set_content(&file(seq), content.clone());
                match open(&flipped) {
                    Ok((seen, _)) => assert_eq!(seen, latest, "byte {at} of file {seq}"),
                    Err(error) => {
                        assert!(names(&error, seq), "byte {at} of file {seq}: {error}");
                        found += 1;
                    }
                }
                // With `verify`, opening finds damage to every byte in use.
                flipped.set_content(&file(seq), content);
                let verified = LogEngine::open_driven(flipped.session(), LogOptions { verify: true, ..options() });
                match verified {
                    Err(error) => assert!(names(&error, seq), "byte {at} of file {seq}: {error}"),
                    Ok(_) => {
                        assert!(padding.contains(&at), "byte {at} of file {seq} is not verified");
                        harmless += 1;
                    }
                }
            }
            assert!(found > 100, "{found} found in file {seq}");
            assert!(harmless > 0 && harmless < 300, "{harmless} of file {seq} are padding");
        }
    }
}

#[test]
fn files_missing_swapped_copied_or_empty_are_typed_errors() {
    let (disk, _) = sealed_log(true);
    let last = (1..).take_while(|seq| disk.content(&file(*seq)).is_some()).last().unwrap();
    for seq in 1..=last {
        let lost = disk.fork();
        lost.lose(&file(seq));
        let error = open(&lost).unwrap_err();
        assert!(matches!(&error, LogError::Missing { file: name, .. } if *name == file(seq)), "{error}");

        let empty = disk.fork();
        empty.set_content(&file(seq), Vec::new());
        let error = open(&empty).unwrap_err();
        assert!(matches!(&error, LogError::Corrupt { file: name, offset: 0, .. } if *name == file(seq)), "{error}");

        let zeros = disk.fork();
        zeros.set_content(&file(seq), vec![0; 64 << 10]);
        assert!(names(&open(&zeros).unwrap_err(), seq));
    }
    let swapped = disk.fork();
    swapped.set_content(&file(1), disk.content(&file(2)).unwrap());
    swapped.set_content(&file(2), disk.content(&file(1)).unwrap());
    assert!(matches!(open(&swapped).unwrap_err(), LogError::Misplaced { file: name, .. } if name == file(1)));

    let copied = disk.fork();
    copied.set_content(&file(last + 1), disk.content(&file(1)).unwrap());
    assert!(matches!(open(&copied).unwrap_err(), LogError::Misplaced { file: name, .. } if name == file(last + 1)));

    let stranger = disk.fork();
    let mut other = Driver::new(LogOptions { identity: Some(8), ..options() });
    other.submit(vec![entry(1, 1, 10)], Durability::Synced);
    other.turn();
    stranger.set_content(&file(1), other.disk.content(&file(1)).unwrap());
    assert!(matches!(open(&stranger).unwrap_err(), LogError::Misplaced { file: name, .. } if name == file(1)));
}

/// A log that lost its only file is not recreated as an empty one: neither if the directory has remains of it, nor if
/// the caller requires an existing log.
#[test]
fn a_log_without_any_file_is_not_recreated() {
    let modes = [RecoveryMode::TruncateTail, RecoveryMode::Strict];
    let open_mode = |disk: &SimDisk, recovery, create| {
        LogEngine::open_driven(disk.session(), LogOptions { recovery, create, ..options() }).map(drop)
    };
    for remains in
        ["0000000000000001.spare", "0000000000000012.spare", "0000000000000001.spare.tmp", "0000000000000002.tmp"]
    {
        let (disk, _) = small_log();
        disk.lose(&file(1));
        disk.set_content(remains, vec![0; 64 << 10]);
        for recovery in modes {
            for create in [false, true] {
                let error = open_mode(&disk, recovery, create).unwrap_err();
                let missing = matches!(&error, LogError::Missing { file, .. } if file == "*.log");
                assert!(missing, "{remains}, {recovery:?}: {error}");
            }
        }
        assert_eq!(Disk::list(disk.as_ref()).unwrap(), [remains], "a refusal changes nothing");
    }
    let (disk, states) = small_log();
    let existing = open_mode(&disk, RecoveryMode::Strict, false);
    assert!(existing.is_ok(), "an existing log is opened: {existing:?}");
    assert_eq!(open(&disk).unwrap().0, states[states.len() - 1]);
    disk.lose(&file(1));
    for recovery in modes {
        assert!(matches!(open_mode(&disk, recovery, false), Err(LogError::NoLog)), "{recovery:?}");
    }
    assert!(Disk::list(disk.as_ref()).unwrap().is_empty(), "a refusal changes nothing");
    // A first file in preparation is not a log that existed.
    disk.set_content("0000000000000001.tmp", b"half a header".to_vec());
    assert!(open(&disk).unwrap().0.is_empty());
}

/// The same with spares that purge made.
#[test]
fn spares_of_a_log_without_its_files_are_not_reused() {
    let mut driver = Driver::new(LogOptions { spare_files: 2, ..options() });
    for index in 1..60 {
        driver.submit(vec![entry(1, index, 9000), Change::Compact { group: 1, first_kept: index }], Durability::Synced);
        driver.turn();
        driver.engine.purge(Budget::default()).unwrap();
        driver.turn();
    }
    let (logs, spares): (Vec<_>, Vec<_>) =
        Disk::list(driver.disk.as_ref()).unwrap().into_iter().partition(|name| name.ends_with(".log"));
    assert!(!spares.is_empty() && open(&driver.disk.fork()).is_ok());
    logs.iter().for_each(|name| driver.disk.lose(name));
    assert!(matches!(open(&driver.disk), Err(LogError::Missing { .. })));
    assert_eq!(Disk::list(driver.disk.as_ref()).unwrap(), spares);
}

#[test]
fn a_newer_version_is_a_typed_error() {
    let (disk, _) = small_log();
    let mut content = disk.content(&file(1)).unwrap();
    content[8] = 2;
    disk.set_content(&file(1), content);
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, LogError::Version { found: 2, supported: 1, .. }), "{error}");
}

#[test]
fn a_clean_stop_writes_one_mark() {
    let (disk, states) = small_log();
    let len = || disk.content(&file(1)).unwrap().len();
    let before = len();
    let stop = || {
        let (_engine, mut writer, report) = LogEngine::open_driven(disk.session(), options()).unwrap();
        writer.finish();
        report
    };
    stop();
    let marked = len();
    assert!(marked > before);
    assert_eq!(stop().truncated_bytes, 0);
    assert_eq!(len(), marked, "nothing new to mark");
    assert_eq!(open(&disk).unwrap().0, states[states.len() - 1]);
}

/// Recovery leaves files with similar names alone.
#[test]
fn other_files_in_the_directory_are_left_alone() {
    let (disk, states) = small_log();
    for name in ["1.log", "snapshot.tmp", "0000000000000001.logx", "000000000000000x.log"] {
        disk.set_content(name, b"mine".to_vec());
    }
    disk.set_content("0000000000000002.tmp", b"half a header".to_vec());
    assert_eq!(open(&disk).unwrap().0, states[states.len() - 1]);
    assert_eq!(disk.content("snapshot.tmp").unwrap(), b"mine");
    assert!(disk.content("0000000000000002.tmp").is_none(), "the unfinished file belongs to the log");
}
