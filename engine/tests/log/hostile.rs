//! Defects that fuzzing found (`engine/fuzz`, docs/testing.md), or a search prompted by it, each with a test.
//!
//! Files with valid checksums and arbitrary content: nothing panics, and no work is done in proportion to a claimed
//! size. Damage: every loss is reported.

use engine::disk::SimDisk;
use engine::log::tools::{DumpOptions, check, dump, stats};
use engine::log::{LogEngine, LogError, LogOptions, LogWriter, RecoveryMode, RecoveryReport};

use crate::model::cases::case;
use crate::model::{State, check_salvaged, observe, small_options};

/// The identity of the logs here.
const IDENTITY: u128 = 7;

/// The checksum of bytes at `offset` of file `seq`: docs/formats.md.
fn checksum(seq: u64, offset: u64, bytes: &[u8]) -> [u8; 4] {
    let seed = [&IDENTITY.to_le_bytes()[..], &seq.to_le_bytes(), &offset.to_le_bytes(), bytes].concat();
    crc32fast::hash(&seed).to_le_bytes()
}

/// The first page of file `seq`, which lists the other files of the log as ranges.
fn header(seq: u64, ranges: &[(u64, u64)]) -> Vec<u8> {
    let len = 76 + 16 * ranges.len();
    let mut out = b"CORTALOG".to_vec();
    out.extend([1, len as u32].iter().flat_map(|number| number.to_le_bytes()));
    out.extend(IDENTITY.to_le_bytes());
    out.extend([seq, seq - 1, 1].iter().flat_map(|number| number.to_le_bytes()));
    out.extend([0, 4096, ranges.len() as u32, 0].iter().flat_map(|number| number.to_le_bytes()));
    out.extend(ranges.iter().flat_map(|(first, last)| [first.to_le_bytes(), last.to_le_bytes()]).flatten());
    let checksum = checksum(seq, 0, &out);
    out.extend(checksum);
    out.resize(4096, 0);
    out
}

/// A disk with one file of this content.
fn disk(seq: u64, content: Vec<u8>) -> std::sync::Arc<SimDisk> {
    let disk = SimDisk::new();
    disk.set_content(&format!("{seq:016}.log"), content);
    disk
}

fn open(disk: &SimDisk, recovery: RecoveryMode) -> Result<(), LogError> {
    LogEngine::open_driven(disk.session(), LogOptions { recovery, ..small_options() }).map(drop)
}

/// A header that lists billions of files is invalid: recovery neither looks for each of them nor keeps a list of the
/// missing ones.
#[test]
fn a_header_that_lists_an_impossible_number_of_files() {
    let sound = disk(2, header(2, &[(1, 1)]));
    assert!(matches!(open(&sound, RecoveryMode::Strict), Err(LogError::Missing { .. })), "a valid header");
    let seq = (1 << 35) - 1;
    for ranges in [vec![(1, seq - 1)], vec![(1, 1 << 19), (1 << 20, (1 << 20) + (1 << 19))]] {
        let disk = disk(seq, header(seq, &ranges));
        for recovery in [RecoveryMode::TruncateTail, RecoveryMode::Strict, RecoveryMode::Salvage] {
            let error = open(&disk, recovery).unwrap_err();
            assert!(error.to_string().contains("lists impossible files"), "{recovery:?}: {error}");
        }
        let outcomes = [
            check(disk.as_ref(), &mut |_| ()).map(drop),
            dump(disk.as_ref(), &DumpOptions::default(), &mut |_| Ok(()), &mut |_| ()).map(drop),
            stats(disk.as_ref(), &mut |_| ()).map(drop),
        ];
        outcomes
            .into_iter()
            .for_each(|outcome| assert!(matches!(outcome, Err(LogError::Corrupt { .. })), "{outcome:?}"));
    }
}

/// Many missing files: each is reported, in reasonable time.
#[test]
fn a_header_that_lists_many_missing_files() {
    const FILES: u64 = 1 << 16;
    let disk = disk(FILES + 1, header(FILES + 1, &[(1, FILES)]));
    assert!(matches!(open(&disk, RecoveryMode::TruncateTail), Err(LogError::Missing { .. })));
    let report = check(disk.as_ref(), &mut |_| ()).unwrap();
    assert_eq!(report.findings.len() as u64, FILES);
    open(&disk, RecoveryMode::Salvage).unwrap();
}

/// Applies `damage` to the first file of a log that has no second file, and opens the log for salvage.
fn first_file_damaged(damage: impl Fn(&mut Vec<u8>)) -> (State, Salvaged) {
    let driver = case("purge a file with a gap after it").prepared();
    let name = "0000000000000001.log";
    let mut content = driver.disk.content(name).unwrap();
    damage(&mut content);
    driver.disk.set_content(name, content);
    let options = LogOptions { recovery: RecoveryMode::Salvage, ..driver.options.clone() };
    (driver.history.latest().clone(), LogEngine::open_driven(driver.disk.session(), options).unwrap())
}

type Salvaged = (LogEngine, LogWriter, RecoveryReport);

/// A file is truncated within its only commit group. The next file, which records the last group of this one, was
/// purged. Salvage took the file for empty and reported no loss; found by fuzzing.
#[test]
fn the_missing_end_of_a_file_without_a_successor_is_reported() {
    for len in [4096, 19_968] {
        let (latest, (engine, _writer, report)) = first_file_damaged(|content| content.truncate(len));
        check_salvaged(&engine, &report, &latest).unwrap_or_else(|what| panic!("{what}: {report:?}"));
        assert_eq!((report.losses.len(), &report.losses[0].concerns), (1, &None), "{report:?}");
    }
    let (latest, (engine, _writer, report)) = first_file_damaged(|content| content[4096..].fill(0));
    check_salvaged(&engine, &report, &latest).unwrap_or_else(|what| panic!("{what}: {report:?}"));
    assert_eq!(report.losses.len(), 1, "{report:?}");
}

/// If the index follows these groups, none of them is missing, even with a damaged footer.
#[test]
fn a_damaged_footer_without_a_successor_loses_nothing() {
    let (latest, (engine, _writer, report)) = first_file_damaged(|content| {
        let footer = content.len() - 64;
        content[footer..].fill(0);
    });
    assert_eq!((report.losses.len(), report.salvaged.len()), (0, 1), "{report:?}");
    assert_eq!(observe(&engine).unwrap(), latest.seen());
}
