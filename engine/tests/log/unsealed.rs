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

/// The group whose entry fills a file.
const FILLER: u64 = 9;

/// Bytes of a header; of a footer; the offset in the footer of offset and length of the index.
const HEADER: usize = 4096;
const FOOTER: usize = 64;
const INDEX: usize = 16;

type Observed = BTreeMap<u64, Seen>;

/// What is in the files behind what was written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Space {
    /// They end there.
    None,
    /// Zeros. A footer follows a gap of zeros.
    Zeros,
    /// Bytes of an earlier file of the same log.
    Reused,
}

const SPACES: [Space; 3] = [Space::None, Space::Zeros, Space::Reused];

fn options(space: Space) -> LogOptions {
    LogOptions {
        prefill_bytes: if space == Space::None { 0 } else { 16 << 10 },
        align_bytes: 8,
        compress_from: usize::MAX,
        spare_files: if space == Space::Reused { 4 } else { 0 },
        ..small_options()
    }
}

/// Writes a commit group and publishes it. A full file stays unsealed.
fn submit(driver: &mut Driver, changes: Vec<Change>, durability: Durability) {
    driver.submit(changes, durability);
    driver.submit(Vec::new(), Durability::Buffered);
    driver.lag();
}

/// A log whose newest two files are in use, of which the older one is full. Nothing after its first group is synced,
/// and the newer one has `groups` commit groups, which change groups 11, 12 and so on.
struct TwoFiles {
    space: Space,
    /// The number of the full file: 1, or 2 after a sealed file with `sealed_content`, because file 1 is never reused.
    full: u64,
    sealed_content: Option<Vec<u8>>,
    /// The state after the groups of the full file but the last one, after all of them, and after all groups.
    states: [Observed; 3],
    /// The full file before its seal and after it, and the newer file.
    first: Vec<u8>,
    sealed: Vec<u8>,
    second: Vec<u8>,
    /// Where the groups of the full file end and its index begins; where the index ends.
    index: std::ops::Range<usize>,
    /// Where the groups of the newer file end.
    second_end: usize,
}

fn two_files(space: Space, groups: u64) -> TwoFiles {
    two_files_from(space, groups, 50)
}

/// `start` is the length of the first entry of group 1.
fn two_files_from(space: Space, groups: u64, start: usize) -> TwoFiles {
    let mut driver = Driver::new(options(space));
    let mut full = 1;
    if space == Space::Reused {
        full = 2;
        for spare in 1..=4 {
            driver.disk.set_content(&format!("{spare:016}.spare"), stale());
        }
        driver.reopen().unwrap();
        submit(&mut driver, vec![append(FILLER, 1, &[58_000])], Durability::Synced);
    }
    submit(&mut driver, vec![append(1, 1, &[start]), append(FILLER, full, &[58_000])], Durability::Synced);
    submit(&mut driver, vec![append(1, 2, &[40])], Durability::Buffered);
    let without_last = driver.history.latest().seen();
    submit(&mut driver, vec![append(1, 3, &[1000]), append(2, 1, &[900])], Durability::Buffered);
    let all_of_first = driver.history.latest().seen();
    let first = driver.disk.content(&file(full)).unwrap();
    for group in 0..groups {
        submit(&mut driver, vec![append(11 + group, 1, &[3000])], Durability::Buffered);
    }
    let all = driver.history.latest().seen();
    let second = driver.disk.content(&file(full + 1)).unwrap();
    driver.turn();
    driver.writer.tend_files();
    let sealed = driver.disk.content(&file(full)).unwrap();
    let number = |at: usize, bytes: usize| {
        let field = &sealed[sealed.len() - FOOTER + at..][..bytes];
        field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let at = number(INDEX, 8);
    let index = at..at + number(INDEX + 8, 4);
    assert_eq!(&sealed[..at], &first[..at], "the seal follows the groups");
    let second_end = match space {
        Space::None => second.len(),
        // The same groups.
        _ => two_files_from(Space::None, groups, start).second.len(),
    };
    match space {
        Space::None => assert_eq!(first.len(), at),
        Space::Zeros => assert!(sealed.len() > index.end + FOOTER + 8 && second.len() > second_end, "gaps"),
        Space::Reused => assert!(second[second_end..].windows(4).any(|window| window == b"CGRP"), "stale groups"),
    }
    let sealed_content = (full > 1).then(|| driver.disk.content(&file(1)).unwrap());
    let states = [without_last, all_of_first, all];
    TwoFiles { space, full, sealed_content, states, first, sealed, second, index, second_end }
}

/// An earlier file of the same log, with many groups.
fn stale() -> Vec<u8> {
    let mut driver = Driver::new(options(Space::None));
    for index in 1..70 {
        submit(&mut driver, vec![append(3, index, &[800])], Durability::Synced);
    }
    let mut stale = driver.disk.content(&file(1)).unwrap();
    stale.resize(72 << 10, 0xa5);
    stale
}

/// What of the seal of the full file is on the disk.
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
        assert_eq!(first.len(), self.first.len());
        let (index, footer) = (self.index.clone(), self.sealed.len() - FOOTER);
        let middle = index.start + index.len() / 2;
        if seal != Seal::None {
            first.resize(self.sealed.len(), 0);
            first[index.start..middle].copy_from_slice(&self.sealed[index.start..middle]);
        }
        if matches!(seal, Seal::FooterOnly | Seal::All) {
            first[middle..index.end].copy_from_slice(&self.sealed[middle..index.end]);
            first[footer..].copy_from_slice(&self.sealed[footer..]);
        }
        if seal == Seal::FooterOnly {
            first[middle] ^= 0x10;
        }
        disk.set_content(&file(self.full), first);
        if let Some(sealed) = &self.sealed_content {
            disk.set_content(&file(1), sealed.clone());
        }
        if let Some(second) = second {
            disk.set_content(&self.next(), second);
        }
        disk
    }

    /// The name of the newer file.
    fn next(&self) -> String {
        file(self.full + 1)
    }

    /// `bytes`, whose part from `from` to `to` never reached the disk.
    fn without(&self, bytes: &[u8], from: usize, to: usize) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        match self.space {
            Space::Reused => bytes[from..to].copy_from_slice(&stale()[from..to]),
            _ => bytes[from..to].fill(0),
        }
        bytes
    }

    /// Where the last group of the full file begins.
    fn last_group(&self) -> usize {
        self.first[..self.index.start].windows(4).rposition(|window| window == b"CGRP").unwrap()
    }

    /// The full file with a flipped bit in its last group.
    fn damaged(&self) -> Vec<u8> {
        let mut first = self.first.clone();
        first[self.last_group() + 64 + 16 + 5] ^= 1;
        first
    }

    /// The full file without its last group, as if none of its sectors had reached the disk.
    fn shorter(&self) -> Vec<u8> {
        self.without(&self.first, self.last_group(), self.index.start)
    }

    /// The newer file with only its header.
    fn header(&self) -> Vec<u8> {
        match self.space {
            Space::None => self.second[..HEADER].to_vec(),
            _ => self.without(&self.second, HEADER, self.second_end),
        }
    }

    /// The newer file without a header: it was not synced.
    fn headless(&self) -> Vec<u8> {
        [vec![0; HEADER], self.second[HEADER..].to_vec()].concat()
    }

    /// The newer file before it was in use.
    fn prepared(&self) -> Vec<u8> {
        match self.space {
            Space::None => vec![0; 9000],
            _ => [vec![0; HEADER], self.header()[HEADER..].to_vec()].concat(),
        }
    }
}

/// Opens the log in each mode that writes. The modes agree, unless there is something to cut; a refusal changes
/// nothing. `check` agrees as well.
fn open(log: &TwoFiles, disk: &SimDisk) -> Result<(Observed, RecoveryReport), LogError> {
    let options = || options(log.space);
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
    for log in SPACES.map(|space| two_files(space, 2)) {
        for seal in [Seal::None, Seal::HalfIndex, Seal::FooterOnly, Seal::All] {
            let disk = log.disk(log.first.clone(), seal, Some(log.second.clone()));
            let (seen, report) = open(&log, &disk).unwrap();
            let expected = (log.states[2].clone(), 0, None);
            assert_eq!((seen, report.truncated_bytes, report.uncertain), expected, "{:?}, {seal:?}", log.space);
        }
    }
}

/// The header of the next file is on the disk, and none of its groups.
#[test]
fn a_next_file_without_groups_loses_nothing() {
    for log in SPACES.map(|space| two_files(space, 1)) {
        for seal in [Seal::None, Seal::FooterOnly, Seal::All] {
            let disk = log.disk(log.first.clone(), seal, Some(log.header()));
            let (seen, report) = open(&log, &disk).unwrap();
            let expected = (log.states[1].clone(), 0, None);
            assert_eq!((seen, report.truncated_bytes, report.uncertain), expected, "{:?}, {seal:?}", log.space);
            // The footer is written after the header of the next file is durable.
            let files = log.full + u64::from(seal != Seal::None);
            assert_eq!(report.files as u64, files, "{:?}, {seal:?}", log.space);
        }
    }
}

/// The footer records the last group of its file as synced. Without it that group is a torn tail.
#[test]
fn a_group_that_a_footer_proves_synced_is_not_cut() {
    for log in SPACES.map(|space| two_files(space, 1)) {
        for first in [log.damaged(), log.shorter()] {
            for second in [log.second.clone(), log.header()] {
                let disk = log.disk(first.clone(), Seal::FooterOnly, Some(second.clone()));
                let error = open(&log, &disk).unwrap_err();
                let LogError::Corrupt { file: name, groups, .. } = &error else { panic!("{error}") };
                // The next file lists the groups that this one changes.
                assert_eq!((name, &groups[..]), (&file(log.full), &[1, 2, FILLER].map(GroupId)[..]), "{error}");
                let disk = log.disk(first.clone(), Seal::None, Some(second));
                assert_eq!(open(&log, &disk).unwrap().0, log.states[0]);
            }
        }
    }
}

/// A torn tail in the full file takes the groups of the next one with it. The report names them all, and the file.
#[test]
fn a_cut_file_is_reported_with_its_groups() {
    for log in SPACES.map(|space| two_files(space, 3)) {
        let disk = log.disk(log.damaged(), Seal::None, Some(log.second.clone()));
        let salvage = LogOptions { recovery: RecoveryMode::Salvage, ..options(log.space) };
        let (.., salvaged) = LogEngine::open_driven(disk.session(), salvage).unwrap();
        let (seen, report) = open(&log, &disk).unwrap();
        assert_eq!(seen, log.states[0]);
        let lost = Lsn(log.full + 2);
        let uncertain = report.uncertain.clone().unwrap();
        assert_eq!((uncertain.lsn, uncertain.groups), (lost, [1, 2, 11, 12, 13].map(GroupId).to_vec()));
        let cut = report.cut_file.clone().unwrap();
        assert_eq!((cut.name, cut.bytes), (log.next(), log.second_end as u64), "{:?}", log.space);
        assert_eq!(cut.groups, [11, 12, 13].map(GroupId));
        // With the tail of the full file. Zeros at its end are not told from those behind it.
        let tail = log.damaged()[log.last_group()..log.index.start].to_vec();
        let ends = tail.iter().rposition(|byte| *byte != 0 || log.space == Space::Reused);
        let tail = ends.map_or(0, |last| last as u64 + 1);
        assert_eq!(report.truncated_bytes, cut.bytes + tail, "{:?}", log.space);
        assert!(Disk::list(disk.as_ref()).unwrap().iter().all(|name| *name != log.next()));
        // Salvage leaves the file, and names it.
        assert_eq!((salvaged.cut_file, salvaged.truncated_bytes), (report.cut_file, report.truncated_bytes));
        assert_eq!(salvaged.truncated_at, report.truncated_at);
        assert_eq!(salvaged.uncertain.unwrap().groups, [11, 12, 13].map(GroupId), "the tail is not read");
        // The same without a trace of the last group: the header of the next file says that there was one.
        for (second, bytes) in [(log.second.clone(), log.second_end), (log.header(), HEADER)] {
            let (seen, report) = open(&log, &log.disk(log.shorter(), Seal::None, Some(second))).unwrap();
            assert_eq!((seen, report.truncated_bytes), (log.states[0].clone(), bytes as u64), "{:?}", log.space);
            assert!(report.uncertain.is_some_and(|uncertain| uncertain.lsn == lost));
        }
    }
}

/// The header of the next file was never synced: it is cut with its groups, and the report names them.
#[test]
fn a_next_file_without_header_is_cut_and_reported() {
    for log in SPACES.map(|space| two_files(space, 2)) {
        let disk = log.disk(log.first.clone(), Seal::None, Some(log.headless()));
        let (seen, report) = open(&log, &disk).unwrap();
        assert_eq!(seen, log.states[1]);
        let cut = report.cut_file.unwrap();
        let expected = (log.next(), (log.second_end - HEADER) as u64, [11, 12].map(GroupId).to_vec());
        assert_eq!((cut.name, cut.bytes, cut.groups), expected, "{:?}", log.space);
        assert_eq!(report.truncated_bytes, cut.bytes, "{:?}", log.space);
        let (seen, report) = open(&log, &log.disk(log.first.clone(), Seal::None, Some(log.prepared()))).unwrap();
        let expected = (log.states[1].clone(), 0, None);
        assert_eq!((seen, report.truncated_bytes, report.cut_file), expected, "only prepared, {:?}", log.space);
    }
}

/// A footer is written after the header of the next file is durable.
#[test]
fn a_next_file_without_header_after_a_footer_is_damage() {
    for log in SPACES.map(|space| two_files(space, 2)) {
        let what = log.space;
        for seal in [Seal::FooterOnly, Seal::All] {
            for (second, groups) in [(log.headless(), vec![GroupId(11), GroupId(12)]), (log.prepared(), vec![])] {
                let error = open(&log, &log.disk(log.first.clone(), seal, Some(second))).unwrap_err();
                let is_headless = matches!(&error, LogError::Corrupt { file, offset: 0, .. } if *file == log.next());
                assert!(is_headless, "{what:?}: {error}");
                assert_eq!(error.groups(), groups, "{what:?}, {seal:?}: {error}");
            }
            let error = open(&log, &log.disk(log.first.clone(), seal, None)).unwrap_err();
            let is_missing = matches!(&error, LogError::Missing { file, .. } if *file == log.next());
            assert!(is_missing, "{what:?}, {seal:?}: {error}");
        }
    }
}

/// A header that does not continue the groups before it is not that of the next file.
#[test]
fn a_next_file_of_another_history_is_refused() {
    for space in SPACES {
        let log = two_files(space, 1);
        // The same log with another first group.
        let other = two_files_from(space, 1, 51);
        for seal in [Seal::None, Seal::FooterOnly, Seal::All] {
            for second in [other.second.clone(), other.header()] {
                let disk = log.disk(log.first.clone(), seal, Some(second));
                let refused = LogEngine::open_driven(disk.session(), options(space)).map(drop).unwrap_err();
                assert!(matches!(&refused, LogError::Misplaced { file, .. } if *file == log.next()), "{refused}");
            }
        }
    }
}
