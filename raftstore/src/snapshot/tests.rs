//! Snapshot files: round trips, pinned bytes, and all kinds of damage.

use std::io;
use std::sync::Arc;

use engine::disk::{Disk, Operation, SimDisk};
use engine::store::memory::MemoryStore;
use engine::store::{Store, StoreError};
use engine::{Cf, WriteBatch};

use super::format::{self, Footer, Header};
use super::{Row, SnapshotFiles, SnapshotKey};
use crate::region::{Epoch, Floor, Floors, LogIndex, Region, RegionId, Term};

pub(crate) fn key(region: u64, term: u64, index: u64) -> SnapshotKey {
    SnapshotKey { region: RegionId::new(region), term: Term::new(term), index: LogIndex::new(index) }
}

pub(crate) fn region(start: &[u8], end: &[u8]) -> Region {
    let epoch = Epoch { conf_ver: 1, version: 1 };
    Region { id: RegionId::new(7), start: start.to_vec(), end: end.to_vec(), epoch, peers: Vec::new() }
}

/// A store with about `bytes` incompressible bytes.
pub(crate) fn noise(bytes: usize) -> MemoryStore {
    let (store, mut batch, mut state) = (MemoryStore::new(), WriteBatch::new(), 1u64);
    for row in 0..bytes / 4096 {
        let value: Vec<u8> = (0..4096)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        batch.put(Cf::Default, format!("k{row:06}").as_bytes(), &value);
    }
    store.write(&batch).unwrap();
    store
}

/// A store with `rows` rows in each family, some outside `k..l`.
pub(crate) fn store(rows: usize, value: usize) -> MemoryStore {
    let store = MemoryStore::new();
    let mut batch = WriteBatch::new();
    for cf in Cf::DATA {
        for row in 0..rows {
            let value: Vec<u8> = (0..value).map(|at| (at * row % 251) as u8).collect();
            batch.put(cf, format!("k{row:06}").as_bytes(), &value);
        }
        batch.put(cf, b"a", b"before the range");
        batch.put(cf, b"l", b"after the range");
    }
    batch.put(Cf::Meta, b"k0", b"never in a snapshot");
    store.write(&batch).unwrap();
    store
}

fn all(files: &SnapshotFiles, key: SnapshotKey) -> Result<Vec<Row>, StoreError> {
    files.rows(key)?.collect()
}

fn built(rows: usize, value: usize) -> (Arc<SimDisk>, SnapshotFiles, SnapshotKey) {
    let disk = SimDisk::new();
    let files = SnapshotFiles::open(disk.clone()).unwrap();
    files
        .build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(rows, value).snapshot(), &|| true)
        .unwrap();
    (disk, files, key(7, 2, 9))
}

fn transfer(from: &SnapshotFiles, to: &SnapshotFiles, key: SnapshotKey, chunk: usize) -> Result<(), StoreError> {
    let mut writer = to.receive(key)?;
    let mut offset = 0;
    loop {
        let bytes = from.read(key, offset, chunk)?;
        if bytes.is_empty() {
            return writer.finish();
        }
        assert!(bytes.len() <= chunk);
        writer.write(&bytes)?;
        offset += bytes.len() as u64;
    }
}

#[test]
fn builds_lists_reads_and_removes() {
    let (_, files, key7) = built(2000, 100);
    assert!(files.contains(key7) && !files.contains(key(7, 2, 10)));
    assert_eq!(files.list().unwrap(), vec![key7]);
    let rows = all(&files, key7).unwrap();
    assert_eq!(rows.len(), 6000);
    assert!(rows.windows(2).all(|pair| (pair[0].0.code(), &pair[0].1) < (pair[1].0.code(), &pair[1].1)));
    assert!(rows.iter().all(|(_, key, _)| key.starts_with(b"k")));
    files.remove(key7).unwrap();
    files.remove(key7).unwrap();
    assert!(!files.contains(key7) && files.rows(key7).is_err());
}

#[test]
fn empty_region_is_a_valid_file() {
    let (_, files, key) = built(0, 0);
    assert!(files.contains(key));
    assert!(all(&files, key).unwrap().is_empty());
}

#[test]
fn row_larger_than_a_block_is_its_own_block() {
    let (_, files, key) = built(3, 3 * format::BLOCK_TARGET);
    assert_eq!(all(&files, key).unwrap().len(), 9);
}

#[test]
fn transfer_is_complete() {
    let (_, files, key) = built(500, 300);
    let other = SnapshotFiles::open(SimDisk::new()).unwrap();
    for chunk in [1, 1000, 1 << 20] {
        transfer(&files, &other, key, chunk).unwrap();
        assert_eq!(all(&files, key).unwrap(), all(&other, key).unwrap());
    }
}

#[test]
fn unfinished_file_is_removed() {
    let disk = SimDisk::new();
    let files = SnapshotFiles::open(disk.clone()).unwrap();
    let mut writer = files.receive(key(1, 1, 1)).unwrap();
    writer.write(b"some").unwrap();
    drop(writer);
    assert!(disk.list().unwrap().is_empty());
    // A crash keeps the temporary file; the next open removes it.
    let mut writer = files.receive(key(1, 1, 1)).unwrap();
    writer.write(b"some").unwrap();
    std::mem::forget(writer);
    assert_eq!(disk.list().unwrap().len(), 1);
    let files = SnapshotFiles::open(disk.clone()).unwrap();
    assert!(disk.list().unwrap().is_empty() && files.list().unwrap().is_empty());
}

#[test]
fn failed_sync_publishes_nothing() {
    let disk = SimDisk::new();
    let files = SnapshotFiles::open(disk.clone()).unwrap();
    disk.fail_nth(Operation::Sync, 1, io::ErrorKind::Other);
    let failed = files.build(key(7, 2, 9), (&region(b"k", b"l"), Floors::default()), &store(5, 5).snapshot(), &|| true);
    assert!(matches!(failed, Err(StoreError::Io(_))));
    assert!(disk.list().unwrap().is_empty());
}

/// Cuts the power after each change of a transfer, with several outcomes for unsynced data.
#[test]
fn crash_leaves_a_complete_file_or_none() {
    let (_, files, key) = built(300, 300);
    let (mut whole, mut none) = (0, 0);
    for (changes, seed) in (0..12).flat_map(|changes| (0..10).map(move |seed| (changes, seed))) {
        let disk = SimDisk::new();
        disk.halt_after(changes);
        let finished =
            SnapshotFiles::open(disk.session()).and_then(|other| transfer(&files, &other, key, 10_000)).is_ok();
        disk.crash(seed);
        let other = SnapshotFiles::open(disk.session()).unwrap();
        assert!(other.list().unwrap().len() <= 1 && disk.list().unwrap().len() == other.list().unwrap().len());
        if other.contains(key) {
            assert_eq!(all(&files, key).unwrap(), all(&other, key).unwrap(), "after {changes} changes, seed {seed}");
            whole += 1;
        } else {
            assert!(!finished, "a finished file is lost after {changes} changes, seed {seed}");
            assert!(other.list().unwrap().is_empty(), "an incomplete file after {changes} changes, seed {seed}");
            none += 1;
        }
    }
    assert!(whole > 10 && none > 10, "{whole} whole, {none} none");
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let (disk, files, key) = built(40, 40);
    let whole = disk.content("7-2-9.snap").unwrap();
    let expect_corrupt = |bytes: Vec<u8>, what: String| {
        disk.set_content("7-2-9.snap", bytes.clone());
        let result = all(&files, key);
        assert!(matches!(result, Err(StoreError::Corrupt(_))), "{what}: {result:?}");
        // The receiving side refuses it before the rename.
        let receiver = SimDisk::new();
        let other = SnapshotFiles::open(receiver.clone()).unwrap();
        let mut writer = other.receive(key).unwrap();
        writer.write(&bytes).unwrap();
        assert!(matches!(writer.finish(), Err(StoreError::Corrupt(_))), "{what}, received");
        assert!(receiver.list().unwrap().is_empty(), "{what}");
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        expect_corrupt(bytes, format!("bit flipped in byte {at}"));
        expect_corrupt(whole[..at].to_vec(), format!("cut at {at}"));
    }
    let mut longer = whole.clone();
    longer.push(0);
    expect_corrupt(longer, "one byte appended".to_owned());
}

#[test]
fn rows_before_a_damaged_block_are_returned() {
    let (disk, files, key) = built(3000, 100);
    let mut content = disk.content("7-2-9.snap").unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    disk.set_content("7-2-9.snap", content);
    let rows: Vec<_> = files.rows(key).unwrap().collect();
    assert!(rows.len() > 1000, "{} rows", rows.len());
    let (last, before) = rows.split_last().unwrap();
    assert!(last.is_err() && before.iter().all(Result::is_ok));
}

#[test]
fn swapped_and_missing_blocks_are_found() {
    // Two blocks of equal length with one row each: only order and the total checksum distinguish them.
    let header = Header { key: key(7, 2, 9), start: b"k".to_vec(), end: b"l".to_vec(), floors: Floors::default() };
    let header = header.encode().unwrap();
    let block = |row: &[u8]| {
        let (mut raw, mut out) = (Vec::new(), Vec::new());
        format::encode_row(Cf::Write, row, b"value", &mut raw);
        format::encode_block(&raw, &mut out);
        out
    };
    let blocks = [block(b"k1"), block(b"k2"), block(b"k3")];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[header.clone(), blocks.concat()].concat());
    let footer = Footer { rows: 3, blocks: 3, total: hasher.finalize() }.encode();
    let disk = SimDisk::new();
    let files = SnapshotFiles::open(disk.clone()).unwrap();
    let read = |order: &[usize]| {
        let blocks: Vec<u8> = order.iter().flat_map(|&at| blocks[at].clone()).collect();
        let bytes = [header.clone(), blocks, footer.to_vec()].concat();
        disk.set_content("7-2-9.snap", bytes);
        all(&files, key(7, 2, 9))
    };
    assert_eq!(read(&[0, 1, 2]).unwrap().len(), 3);
    for order in [&[0, 2, 1][..], &[0, 1], &[0, 2], &[0, 1, 1, 2], &[1, 2, 0]] {
        assert!(matches!(read(order), Err(StoreError::Corrupt(_))), "{order:?}");
    }
}

#[test]
fn file_under_another_name_is_refused() {
    let (disk, files, _) = built(10, 10);
    disk.rename("7-2-9.snap", "7-2-10.snap").unwrap();
    assert!(!files.contains(key(7, 2, 10)));
    assert!(matches!(files.rows(key(7, 2, 10)).map(|_| ()), Err(StoreError::Corrupt(_))));
    for name in ["7-2-9", "7-2.snap", "7-2-9-1.snap", "07-2-9.snap", "x-2-9.snap", "7-2-9.snap.0.tmp"] {
        assert_eq!(SnapshotKey::from_file_name(name), None, "{name}");
    }
}

#[test]
fn golden_bytes() {
    let disk = SimDisk::new();
    let files = SnapshotFiles::open(disk.clone()).unwrap();
    let store = MemoryStore::new();
    let mut batch = WriteBatch::new();
    batch.put(Cf::Default, b"k1", b"v");
    batch.put(Cf::Write, b"k2", &[b'x'; 100]);
    store.write(&batch).unwrap();
    let floors = Floors { writes: Floor::new(0x0201), reads: Floor::new(3) };
    files.build(key(7, 2, 9), (&region(b"k", b""), floors), &store.snapshot(), &|| true).unwrap();
    let bytes = disk.content("7-2-9.snap").unwrap();
    let hex: Vec<String> =
        bytes.chunks(16).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    assert_eq!(hex, GOLDEN, "the format changed: raise its version");
    assert_eq!(all(&files, key(7, 2, 9)).unwrap().len(), 2);
    assert_eq!(files.floors(key(7, 2, 9)).unwrap(), floors);
    let first: Vec<u8> = GOLDEN_1
        .concat()
        .as_bytes()
        .chunks(2)
        .map(|hex| u8::from_str_radix(str::from_utf8(hex).unwrap(), 16).unwrap())
        .collect();
    disk.set_content("7-2-9.snap", first);
    assert_eq!(all(&files, key(7, 2, 9)).unwrap().len(), 2, "version 1");
    assert_eq!(files.floors(key(7, 2, 9)).unwrap(), Floors::default());
}

/// Header of 61 bytes, the rest as in version 1.
const GOLDEN: &[&str] = &[
    "4354444f534e41500200000007000000",
    "00000000020000000000000009000000",
    "0000000001000000000000006b010200",
    "00000000000300000000000000d4daea",
    "5001200000007b00000012da0cf6d000",
    "02000000010000006b3176020c001064",
    "0c002f327801004b5078787878780200",
    "000000000000010000000000000006b6",
    "363ecef07bf24354444f53454e44",
];

/// Version 1. Header of 45 bytes, one compressed block of 13 + 32, footer of 32.
const GOLDEN_1: &[&str] = &[
    "4354444f534e41500100000007000000",
    "00000000020000000000000009000000",
    "0000000001000000000000006bede88b",
    "9401200000007b00000012da0cf6d000",
    "02000000010000006b3176020c001064",
    "0c002f327801004b5078787878780200",
    "000000000000010000000000000006b6",
    "363ecef07bf24354444f53454e44",
];
