//! The recovery modes: the damage that each refuses, cuts or keeps. No mode cuts provably synced data.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::disk::SimDisk;
use engine::log::{Durability, GroupId, LogEngine, LogError, LogOptions, Lsn, RecoveryMode, RecoveryReport, Uncertain};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::model::{Change, Driver, Generator, Seen, contents, file, observe, small_options};

type Observed = BTreeMap<u64, Seen>;

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 8, ..small_options() }
}

fn strict() -> LogOptions {
    LogOptions { recovery: RecoveryMode::Strict, ..options() }
}

fn open(disk: &SimDisk, options: LogOptions) -> Result<(Observed, RecoveryReport), LogError> {
    let (engine, _writer, report) = LogEngine::open_driven(disk.session(), options)?;
    Ok((observe(&engine)?, report))
}

fn append(group: u64, first: u64, len: usize) -> Change {
    let text = format!("{group}.{first} ").into_bytes();
    Change::Append { group, first, entries: vec![text.iter().cycle().take(len).copied().collect()] }
}

/// Some synced batches in one file, without the mark of a clean stop.
fn small_log() -> Driver {
    let mut driver = Driver::new(options());
    for index in 1..=4 {
        driver.submit(vec![append(1, index, 60), append(2, index, 30)], Durability::Synced);
        driver.turn();
    }
    driver
}

#[test]
fn a_torn_tail_is_refused_or_cut() {
    let driver = small_log();
    let whole = driver.disk.content(&file(1)).unwrap();
    let latest = driver.history[driver.history.current].seen();
    driver.disk.set_content(&file(1), whole[..whole.len() - 20].to_vec());
    let before = contents(&driver.disk);
    let error = open(&driver.disk, strict()).unwrap_err();
    let LogError::TornTail { file: name, offset, bytes, groups } = &error else { panic!("{error}") };
    assert_eq!((name, offset + bytes), (&file(1), whole.len() as u64 - 20));
    assert_eq!(error.to_string(), format!("log ends in a torn tail: {bytes} bytes of {name} from {offset} on"));
    assert!(groups.is_empty(), "its meta is missing");
    assert_eq!(contents(&driver.disk), before, "a refusal changes nothing");

    let (seen, report) = open(&driver.disk, options()).unwrap();
    assert_eq!(seen[&1].last, 3);
    assert_eq!((report.truncated_bytes, report.truncated_at), (*bytes, Some((name.clone(), *offset))));
    assert_eq!(report.uncertain, Some(Uncertain { lsn: Lsn(4), groups: Vec::new() }));
    let (again, report) = open(&driver.disk, strict()).unwrap();
    assert_eq!((again, report.truncated_bytes), (seen, 0), "nothing to cut the second time");
    assert_eq!(report.uncertain, None);
    assert_ne!(latest[&1].last, 3);
}

/// `Strict` opens only a log without any damage.
#[test]
fn strict_refuses_any_flipped_bit_that_is_not_harmless() {
    let driver = small_log();
    let latest = driver.history[driver.history.current].seen();
    let whole = driver.disk.content(&file(1)).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        for bit in [0, 6] {
            let flipped = driver.disk.fork();
            let mut content = whole.clone();
            content[at] ^= 1 << bit;
            flipped.set_content(&file(1), content);
            let before = contents(&flipped);
            match open(&flipped, strict()) {
                Ok((seen, report)) => {
                    assert_eq!((seen, report.truncated_bytes), (latest.clone(), 0), "bit {bit} of {at}");
                }
                Err(error) => {
                    assert_eq!(error.file(), Some(file(1).as_str()), "bit {bit} of {at}: {error}");
                    assert_eq!(contents(&flipped), before, "bit {bit} of {at}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// After any crash, `Strict` opens a log that needs no cut, and refuses exactly those that the default mode would cut.
#[test]
fn strict_refuses_after_a_crash_what_the_default_cuts() {
    let (mut refused, mut opened) = (0, 0);
    for seed in 0..80 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut driver = Driver::new(options());
        let generator = Generator { groups: 4, max_entry: 900, removes: false };
        for step in 0..40 {
            let changes = generator.batch(&mut rng, &driver.history[driver.history.len() - 1]);
            driver.submit(changes, if step % 4 == 0 { Durability::Synced } else { Durability::Buffered });
            driver.turn();
        }
        driver.disk.crash(seed);
        let outcome = open(&driver.disk.fork(), strict());
        let (seen, report) = open(&driver.disk, options()).unwrap();
        match outcome {
            Ok((strictly, _)) => {
                assert_eq!((strictly, report.truncated_bytes), (seen, 0), "seed {seed}");
                opened += 1;
            }
            Err(error) => {
                assert!(matches!(error, LogError::TornTail { .. }), "seed {seed}: {error}");
                assert!(report.truncated_bytes > 0, "seed {seed}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10 && opened > 10, "refused {refused}, opened {opened}");
}

/// Three files and the state. File 3 has one group. With `sealed` false, file 2 is as a crash before its seal leaves
/// it.
fn with_a_third_file(sealed: bool) -> (Arc<SimDisk>, Observed, usize) {
    let mut driver = Driver::new(options());
    let mut index = 0;
    while driver.disk.content(&file(3)).is_none() {
        index += 1;
        driver.submit(vec![append(1, index, 3000), append(2, index, 10)], Durability::Synced);
        driver.turn();
    }
    let mut second = driver.disk.content(&file(2)).unwrap();
    let footer = second.len() - 64;
    let end = u64::from_le_bytes(second[footer + 16..footer + 24].try_into().unwrap()) as usize;
    if !sealed {
        second.truncate(end);
        driver.disk.set_content(&file(2), second);
    }
    (driver.disk.clone(), driver.history.latest().seen(), end)
}

/// A crash before the seal. A group of the later file records the groups of this one as synced: none of them may be cut
/// as a torn tail.
#[test]
fn a_group_that_a_later_file_proves_synced_is_not_cut() {
    let (disk, latest, end) = with_a_third_file(false);
    assert_eq!(open(&disk.fork(), strict()).unwrap().0, latest, "nothing is torn");
    let whole = disk.content(&file(2)).unwrap();
    let mut found = 0;
    for at in (4096..whole.len()).filter(|at| at + 700 > end || at.is_multiple_of(97)) {
        for options in [options(), strict()] {
            let flipped = disk.fork();
            let mut content = whole.clone();
            content[at] ^= 2;
            flipped.set_content(&file(2), content);
            let before = contents(&flipped);
            match open(&flipped, options) {
                Ok((seen, report)) => assert_eq!((seen, report.truncated_bytes), (latest.clone(), 0), "byte {at}"),
                Err(error) => {
                    assert!(
                        matches!(&error, LogError::Corrupt { file: name, .. } if *name == file(2)),
                        "{at}: {error}"
                    );
                    assert_eq!(contents(&flipped), before, "byte {at}");
                    found += 1;
                }
            }
        }
    }
    assert!(found > 100, "{found}");
}

/// The same with a seal: its index is damaged, so recovery reads the groups, and all of them must exist.
#[test]
fn a_damaged_seal_before_the_active_file_cuts_no_group() {
    let (disk, latest, end) = with_a_third_file(true);
    let mut content = disk.content(&file(2)).unwrap();
    content[end + 3] ^= 1;
    disk.set_content(&file(2), content.clone());
    for options in [options(), strict()] {
        let (seen, report) = open(&disk.fork(), options).unwrap();
        assert_eq!((seen, report.truncated_bytes), (latest.clone(), 0), "the groups are whole");
    }
    content[end - 40] ^= 1;
    disk.set_content(&file(2), content);
    assert!(matches!(open(&disk, options()), Err(LogError::Corrupt { file: name, .. }) if name == file(2)));
}

/// The header of the active file is damaged, and the file before it is not sealed. A group of the active file that
/// records an earlier one of it as synced proves that the header was synced.
#[test]
fn a_damaged_header_after_an_unsealed_file_cuts_no_synced_group() {
    let (disk, latest, _) = with_a_third_file(false);
    let damage = |disk: &SimDisk| {
        let mut content = disk.content(&file(3)).unwrap();
        content[50] ^= 1;
        disk.set_content(&file(3), content);
    };
    let one = disk.fork();
    damage(&one);
    let (seen, report) = open(&one, options()).unwrap();
    assert!(seen != latest && report.truncated_bytes > 0 && report.uncertain.is_some(), "{report:?}");
    let mut driver = Driver::on(disk, options());
    // The first group of file 3 is recorded as synced by the second.
    driver.submit(vec![append(7, 1, 10)], Durability::Synced);
    driver.writer.begin(1);
    driver.submit(vec![append(7, 2, 10)], Durability::Synced);
    driver.writer.begin(1);
    let two = driver.disk.fork();
    damage(&two);
    assert!(matches!(open(&two, options()), Err(LogError::Corrupt { file: name, .. }) if name == file(3)));
}

/// Errors of damage name the affected groups if they are known.
#[test]
fn damage_names_the_affected_groups() {
    let mut driver = Driver::new(options());
    let mut rng = StdRng::seed_from_u64(1);
    let mut noise = |len: usize| -> bytes::Bytes { (0..len).map(|_| rand::Rng::random::<u8>(&mut rng)).collect() };
    for group in 1..=12 {
        let entries = (0..4).map(|_| noise(2000)).collect();
        driver.submit(vec![Change::Append { group, first: 1, entries }], Durability::Synced);
        driver.turn();
    }
    let mut content = driver.disk.content(&file(1)).unwrap();
    content[4096 + 64 + 16 + 500] ^= 1;
    driver.disk.set_content(&file(1), content);
    let (engine, _writer, _) = LogEngine::open_driven(driver.disk.session(), options()).unwrap();
    let error = engine.entry(GroupId(1), 1).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { groups, .. } if *groups == [GroupId(1)]), "{error}");
    assert!(error.to_string().ends_with("block fails its checksum (group 1)"), "{error}");
    drop(engine);
    // `verify` reads everything: the same groups, those with entries in the block.
    let verify = || LogOptions { verify: true, ..options() };
    let error = open(&driver.disk, verify()).unwrap_err();
    assert_eq!((error.file(), error.groups()), (Some(file(1).as_str()), &[GroupId(1)][..]), "{error}");
    // A whole commit group: all groups in the index of the file.
    let mut content = driver.disk.content(&file(1)).unwrap();
    content[4096 + 20] ^= 1;
    driver.disk.set_content(&file(1), content);
    let error = open(&driver.disk, verify()).unwrap_err();
    let LogError::Corrupt { groups, .. } = &error else { panic!("{error}") };
    assert!(groups.len() >= 6 && groups.windows(2).all(|pair| pair[0] < pair[1]), "{error}");
    assert_eq!(error.file(), Some(file(1).as_str()));
    assert!(error.to_string().contains("(groups 1, 2, 3, 4, 5, 6"), "{error}");
}

/// A block of the last commit group is damaged. Whether that group was synced cannot be known. Recovery cuts it off and
/// reports it with its Raft groups.
#[test]
fn an_unreadable_last_group_is_reported_as_uncertain() {
    let driver = small_log();
    let mut content = driver.disk.content(&file(1)).unwrap();
    let last = content.windows(4).rposition(|window| window == b"CGRP").unwrap();
    content[last + 64 + 16 + 3] ^= 1;
    driver.disk.set_content(&file(1), content);
    let changed = vec![GroupId(1), GroupId(2)];
    let error = open(&driver.disk, strict()).unwrap_err();
    assert!(matches!(&error, LogError::TornTail { groups, .. } if *groups == changed), "{error}");
    assert!(error.to_string().ends_with(" on (groups 1, 2)"), "{error}");
    let salvage = LogOptions { recovery: RecoveryMode::Salvage, ..options() };
    let (_, report) = open(&driver.disk, salvage).unwrap();
    assert_eq!(report.uncertain.map(|uncertain| uncertain.lsn), Some(Lsn(4)));
    let (seen, report) = open(&driver.disk, options()).unwrap();
    assert_eq!((seen[&1].last, report.uncertain), (3, Some(Uncertain { lsn: Lsn(4), groups: changed })));
}

/// Errors of damage to the newest file also name groups, taken from its commit groups.
#[test]
fn damage_to_the_newest_file_names_the_groups_in_the_block() {
    let driver = small_log();
    let mut content = driver.disk.content(&file(1)).unwrap();
    content[4096 + 64 + 16 + 3] ^= 1;
    driver.disk.set_content(&file(1), content);
    let error = open(&driver.disk, options()).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { offset: 4096, .. }), "{error}");
    assert_eq!(error.groups(), [GroupId(1), GroupId(2)], "{error}");
}

/// Errors about a whole file name the groups that it changes, as the header of the next file records them: a few of
/// them in the text.
#[test]
fn missing_misplaced_and_newer_files_name_their_groups() {
    let mut driver = Driver::new(options());
    for step in 0..2 {
        let change = |group: u64| append(group + 20 * step, 1, 3000);
        driver.submit((1..=12).map(change).collect(), Durability::Synced);
        driver.turn();
        driver.submit(
            vec![Change::Append { group: 99, first: step + 1, entries: vec![noise(50_000, step)] }],
            Durability::Synced,
        );
        driver.turn();
    }
    let other = Driver::new(LogOptions { identity: Some(8), ..options() }).disk.content(&file(1)).unwrap();
    let newer = {
        let mut content = driver.disk.content(&file(1)).unwrap();
        content[8] = 9;
        content
    };
    assert!(driver.disk.content(&file(2)).is_some(), "two files");
    let with = |content: Option<Vec<u8>>| {
        let disk = driver.disk.fork();
        match content {
            Some(content) => disk.set_content(&file(1), content),
            None => disk.lose(&file(1)),
        }
        open(&disk, options()).unwrap_err()
    };
    let (missing, misplaced, newer) = (with(None), with(Some(other)), with(Some(newer)));
    assert!(matches!(missing, LogError::Missing { .. }), "{missing}");
    assert!(matches!(misplaced, LogError::Misplaced { .. }), "{misplaced}");
    assert!(matches!(newer, LogError::Version { .. }), "{newer}");
    for error in [missing, misplaced, newer] {
        assert!(
            error.groups().starts_with(&(1..=12).map(GroupId).collect::<Vec<_>>()),
            "{error}: {:?}",
            error.groups()
        );
        assert!(error.to_string().contains("(groups 1, 2, 3, 4, 5, 6, 7, 8 and "), "{error}");
    }
}

/// Bytes that do not compress.
fn noise(len: usize, seed: u64) -> bytes::Bytes {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len).map(|_| rand::Rng::random::<u8>(&mut rng)).collect()
}
