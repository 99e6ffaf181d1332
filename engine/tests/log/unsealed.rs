//! The newest two files after a power loss: each state that the order of writes and syncs leaves is recovered and
//! reported, each other one is refused as damage.
//!
//! The order is: groups of the full file, header of the next file, seal of the full file (`read/unsealed.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::disk::{Disk, SimDisk};
use engine::log::tools::check;
use engine::log::{Durability, GroupId, LogEngine, LogError, LogOptions, Lsn, RecoveryMode, RecoveryReport};

use crate::model::cases::append;
use crate::model::{Change, Driver, Seen, contents, file, observe, small_options};

/// The group whose entry fills file 1.
const FILLER: u64 = 9;

/// Bytes of a footer; the offset of the index in it.
const FOOTER: usize = 64;
const INDEX_OFFSET: usize = 16;

type Observed = BTreeMap<u64, Seen>;

fn options() -> LogOptions {
    LogOptions { prefill_bytes: 0, align_bytes: 8, compress_from: usize::MAX, spare_files: 0, ..small_options() }
}

/// Writes a commit group and publishes it. A full file stays unsealed.
fn submit(driver: &mut Driver, changes: Vec<Change>, durability: Durability) {
    driver.submit(changes, durability);
    driver.submit(Vec::new(), Durability::Buffered);
    driver.lag();
}

/// A log with two files, of which the first is full. Nothing after the first group is synced, and file 2 has `groups`
/// commit groups, which change groups 11, 12 and so on.
struct TwoFiles {
    /// The state after the groups of file 1 but the last one, after all of them, and after all groups.
    states: [Observed; 3],
    /// The first and the second file without a seal, and the seal of the first with its offset.
    first: Vec<u8>,
    second: Vec<u8>,
    seal: (usize, Vec<u8>),
}

fn two_files(groups: u64) -> TwoFiles {
    let mut driver = Driver::new(options());
    submit(&mut driver, vec![append(1, 1, &[50]), append(FILLER, 1, &[58_000])], Durability::Synced);
    submit(&mut driver, vec![append(1, 2, &[40])], Durability::Buffered);
    let without_last = driver.history.latest().seen();
    submit(&mut driver, vec![append(1, 3, &[1000]), append(2, 1, &[900])], Durability::Buffered);
    let full = driver.history.latest().seen();
    let first = driver.disk.content(&file(1)).unwrap();
    for group in 0..groups {
        submit(&mut driver, vec![append(11 + group, 1, &[3000])], Durability::Buffered);
    }
    let all = driver.history.latest().seen();
    let second = driver.disk.content(&file(2)).unwrap_or_default();
    assert_eq!(second.is_empty(), groups == 0);
    driver.turn();
    driver.writer.tend_files();
    let sealed = driver.disk.content(&file(1)).unwrap();
    let footer = sealed.len() - FOOTER;
    let end = footer + INDEX_OFFSET;
    let seal_at = u64::from_le_bytes(sealed[end..end + 8].try_into().unwrap()) as usize;
    if groups > 0 {
        assert_eq!(&sealed[..seal_at], &first[..seal_at], "the seal follows the groups");
    }
    let first = first[..seal_at.min(first.len())].to_vec();
    let seal = (seal_at, sealed[seal_at..].to_vec());
    TwoFiles { states: [without_last, full, all], first, second, seal }
}

/// What of the seal of file 1 is on the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seal {
    None,
    /// Half of the index, and no footer.
    HalfIndex,
    /// The footer, and an index with a lost byte.
    FooterOnly,
    All,
}

impl TwoFiles {
    /// The disk with these two files.
    fn disk(&self, first: Vec<u8>, seal: Seal, second: Option<Vec<u8>>) -> Arc<SimDisk> {
        let disk = SimDisk::new();
        let mut first = first;
        let (at, mut bytes) = self.seal.clone();
        assert_eq!(first.len(), at);
        let index = bytes.len() - FOOTER;
        match seal {
            Seal::None => bytes.clear(),
            Seal::HalfIndex => bytes[index / 2..].fill(0),
            Seal::FooterOnly => bytes[index / 2] ^= 0x10,
            Seal::All => {}
        }
        first.extend(bytes);
        disk.set_content(&file(1), first);
        if let Some(second) = second {
            disk.set_content(&file(2), second);
        }
        disk
    }

    /// File 1 with a flipped bit in its last group.
    fn damaged(&self) -> Vec<u8> {
        let mut first = self.first.clone();
        let last = first.windows(4).rposition(|window| window == b"CGRP").unwrap();
        first[last + 64 + 16 + 5] ^= 1;
        first
    }

    /// File 1 without its last group, as if none of its sectors had reached the disk.
    fn shorter(&self) -> Vec<u8> {
        let mut first = self.first.clone();
        let last = first.windows(4).rposition(|window| window == b"CGRP").unwrap();
        first[last..].fill(0);
        first
    }

    /// File 2 with only its header.
    fn header(&self) -> Vec<u8> {
        self.second[..4096].to_vec()
    }

    /// File 2 without a header: it was not synced.
    fn headless(&self) -> Vec<u8> {
        [vec![0; 4096], self.second[4096..].to_vec()].concat()
    }
}

/// Opens the log in each mode that writes. The modes agree, unless there is something to cut; a refusal changes
/// nothing. `check` agrees as well.
fn open(disk: &SimDisk) -> Result<(Observed, RecoveryReport), LogError> {
    let before = contents(disk);
    let strict = LogOptions { recovery: RecoveryMode::Strict, ..options() };
    let strictly = LogEngine::open_driven(disk.fork().session(), strict).map(|(.., report)| report);
    let checked = check(disk.session().as_ref(), &mut |_| ()).unwrap();
    match LogEngine::open_driven(disk.session(), options()) {
        Ok((engine, mut writer, report)) => {
            assert!(checked.is_sound(), "{:?}", checked.findings);
            assert_eq!(checked.cut_file, report.cut_file);
            match strictly {
                Ok(strictly) => assert_eq!(strictly, report),
                Err(LogError::TornTail { bytes, groups, .. }) => {
                    let reported = report.uncertain.clone().unwrap().groups;
                    assert_eq!(bytes, report.truncated_bytes);
                    // An error names all groups of the file if those of the tail are not readable.
                    assert!(groups == reported || reported.is_empty(), "{groups:?}, {reported:?}");
                }
                Err(other) => panic!("{other}"),
            }
            // The files are sealed, and it opens once more.
            writer.tend_files();
            let (again, _writer, second) = LogEngine::open_driven(disk.fork().session(), options()).unwrap();
            assert_eq!((observe(&again)?, second.truncated_bytes), (observe(&engine)?, 0));
            Ok((observe(&engine)?, report))
        }
        Err(error) => {
            assert_eq!(strictly.unwrap_err().to_string(), error.to_string());
            assert!(!checked.is_sound(), "{error}");
            assert_eq!(contents(disk), before, "a refusal changes nothing");
            let salvage = LogOptions { recovery: RecoveryMode::Salvage, verify: true, ..options() };
            let (.., salvaged) = LogEngine::open_driven(disk.session(), salvage).unwrap();
            assert!(!salvaged.losses.is_empty() || !salvaged.lost.is_empty(), "{error}: salvage names a loss");
            assert_eq!(contents(disk), before, "salvage changes nothing");
            Err(error)
        }
    }
}

/// Nothing is missing, so nothing is cut, wherever the seal is torn.
#[test]
fn a_torn_seal_cuts_nothing() {
    let log = two_files(2);
    for seal in [Seal::None, Seal::HalfIndex, Seal::FooterOnly, Seal::All] {
        let disk = log.disk(log.first.clone(), seal, Some(log.second.clone()));
        let (seen, report) = open(&disk).unwrap();
        assert_eq!((seen, report.truncated_bytes, report.uncertain), (log.states[2].clone(), 0, None), "{seal:?}");
    }
}

/// The header of the next file is on the disk, and none of its groups.
#[test]
fn a_next_file_without_groups_loses_nothing() {
    let log = two_files(1);
    for seal in [Seal::None, Seal::FooterOnly, Seal::All] {
        let disk = log.disk(log.first.clone(), seal, Some(log.header()));
        let (seen, report) = open(&disk).unwrap();
        assert_eq!((seen, report.truncated_bytes, report.uncertain), (log.states[1].clone(), 0, None), "{seal:?}");
        // The footer is written after the header of the next file is durable.
        assert_eq!(report.files, if seal == Seal::None { 1 } else { 2 }, "{seal:?}");
    }
}

/// The footer records the last group of its file as synced. Without it that group is a torn tail.
#[test]
fn a_group_that_a_footer_proves_synced_is_not_cut() {
    let log = two_files(1);
    for first in [log.damaged(), log.shorter()] {
        for second in [log.second.clone(), log.header()] {
            let disk = log.disk(first.clone(), Seal::FooterOnly, Some(second.clone()));
            let error = open(&disk).unwrap_err();
            let LogError::Corrupt { file: name, groups, .. } = &error else { panic!("{error}") };
            // The next file lists the groups that this one changes.
            assert_eq!((name, &groups[..]), (&file(1), &[1, 2, FILLER].map(GroupId)[..]), "{error}");
            let disk = log.disk(first.clone(), Seal::None, Some(second));
            assert_eq!(open(&disk).unwrap().0, log.states[0]);
        }
    }
}

/// A torn tail in the full file takes the groups of the next one with it. The report names them all, and the file.
#[test]
fn a_cut_file_is_reported_with_its_groups() {
    let log = two_files(3);
    let disk = log.disk(log.damaged(), Seal::None, Some(log.second.clone()));
    let salvage = LogOptions { recovery: RecoveryMode::Salvage, ..options() };
    let (.., salvaged) = LogEngine::open_driven(disk.session(), salvage).unwrap();
    let (seen, report) = open(&disk).unwrap();
    assert_eq!(seen, log.states[0]);
    let uncertain = report.uncertain.clone().unwrap();
    assert_eq!((uncertain.lsn, uncertain.groups), (Lsn(3), [1, 2, 11, 12, 13].map(GroupId).to_vec()));
    let cut = report.cut_file.clone().unwrap();
    assert_eq!((cut.name, cut.bytes), (file(2), log.second.len() as u64));
    assert_eq!(cut.groups, [11, 12, 13].map(GroupId));
    assert!(report.truncated_bytes > cut.bytes, "with the tail of file 1");
    assert_eq!(Disk::list(disk.as_ref()).unwrap(), [file(1)]);
    // Salvage leaves the file, and names it.
    assert_eq!((salvaged.cut_file, salvaged.truncated_bytes), (report.cut_file, report.truncated_bytes));
    assert_eq!(salvaged.truncated_at, report.truncated_at);
    assert_eq!(salvaged.uncertain.unwrap().groups, [11, 12, 13].map(GroupId), "the tail is not read");
    // The same without a trace of the last group: the header of file 2 says that there was one.
    for second in [log.second.clone(), log.header()] {
        let (seen, report) = open(&log.disk(log.shorter(), Seal::None, Some(second.clone()))).unwrap();
        assert_eq!((seen, report.truncated_bytes), (log.states[0].clone(), second.len() as u64));
        assert!(report.uncertain.is_some_and(|uncertain| uncertain.lsn == Lsn(3)));
    }
}

/// The header of the next file was never synced: it is cut with its groups, and the report names them.
#[test]
fn a_next_file_without_header_is_cut_and_reported() {
    let log = two_files(2);
    let (seen, report) = open(&log.disk(log.first.clone(), Seal::None, Some(log.headless()))).unwrap();
    assert_eq!(seen, log.states[1]);
    let cut = report.cut_file.unwrap();
    assert_eq!(
        (cut.name, cut.bytes, cut.groups),
        (file(2), log.second.len() as u64 - 4096, [11, 12].map(GroupId).to_vec())
    );
    let (seen, report) = open(&log.disk(log.first.clone(), Seal::None, Some(vec![0; 9000]))).unwrap();
    assert_eq!((seen, report.truncated_bytes, report.cut_file), (log.states[1].clone(), 0, None), "only prepared");
}

/// A footer is written after the header of the next file is durable.
#[test]
fn a_next_file_without_header_after_a_footer_is_damage() {
    let log = two_files(2);
    for seal in [Seal::FooterOnly, Seal::All] {
        for (second, groups) in [(log.headless(), vec![GroupId(11), GroupId(12)]), (vec![0; 9000], vec![])] {
            let error = open(&log.disk(log.first.clone(), seal, Some(second))).unwrap_err();
            assert!(matches!(&error, LogError::Corrupt { file: name, offset: 0, .. } if *name == file(2)), "{error}");
            assert_eq!(error.groups(), groups, "{seal:?}: {error}");
        }
        let error = open(&log.disk(log.first.clone(), seal, None)).unwrap_err();
        assert!(matches!(&error, LogError::Missing { file: name, .. } if *name == file(2)), "{seal:?}: {error}");
    }
}

/// A header that does not continue the groups before it is not that of the next file.
#[test]
fn a_next_file_of_another_history_is_refused() {
    let log = two_files(1);
    // The same log with another first group.
    let mut driver = Driver::new(options());
    submit(&mut driver, vec![append(1, 1, &[51]), append(FILLER, 1, &[58_000])], Durability::Synced);
    submit(&mut driver, vec![append(1, 2, &[40])], Durability::Buffered);
    submit(&mut driver, vec![append(1, 3, &[1000]), append(2, 1, &[900])], Durability::Buffered);
    submit(&mut driver, vec![append(11, 1, &[3000])], Durability::Buffered);
    let other = driver.disk.content(&file(2)).unwrap();
    for seal in [Seal::None, Seal::FooterOnly, Seal::All] {
        for second in [other.clone(), other[..4096].to_vec()] {
            let disk = log.disk(log.first.clone(), seal, Some(second));
            let refused = LogEngine::open_driven(disk.session(), options()).map(drop).unwrap_err();
            assert!(matches!(&refused, LogError::Misplaced { file: name, .. } if *name == file(2)), "{refused}");
        }
    }
}
