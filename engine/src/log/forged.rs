//! Tests with forged bytes: group headers in content of clients, and file names and numbers that the log never writes.
//!
//! A planted header never passes a checksum, because clients do not know the log's identity. It costs a bounded time
//! and changes nothing. Impossible values with correct checksums are damage, and their cost is bounded as well.

use std::sync::Arc;

use bytes::Bytes;

use super::format::{
    Codec, FOOTER, FileHeader, Footer, GROUP_HEADER, GroupHeader, Identity, Item, PAGE, Place, REUSED, UNIT, align,
    decode_meta, decompress, encode_blocks, encode_items, file_name,
};
use super::read::{LogFile, Scan, scan};
use super::tools::{DumpOptions, Record, check, dump, stats};
use super::*;
use crate::disk::{Disk, SimDisk};

const IDENTITY: u128 = 42;
const ENTRIES: u64 = 5;

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 0,
        align_bytes: 8,
        compression: Compression::Off,
        recovery_threads: 1,
        identity: Some(IDENTITY),
        ..LogOptions::default()
    }
}

fn place(seq: u64) -> Place {
    Place { identity: Identity(IDENTITY), seq }
}

/// A log of one file with some synced groups, as a crash leaves it.
fn small_log() -> Arc<SimDisk> {
    let disk = SimDisk::new();
    let (engine, _writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    for index in 1..=ENTRIES {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![Bytes::from(vec![index as u8; 100])]);
        engine.write(batch, Durability::Synced).unwrap();
    }
    disk
}

/// Position and checksum of the last group of file 1.
fn last_group(disk: &SimDisk) -> (u64, u32) {
    let (file, header) = LogFile::load(disk, 1, None).unwrap();
    let scanned = scan(&file, &header).unwrap();
    (scanned.last_lsn, scanned.chain)
}

/// A header as a client may plant it: correct except for the identity, which the client does not know.
fn planted(seq: u64, lsn: u64, synced: u64, meta: u32) -> [u8; GROUP_HEADER] {
    let header = GroupHeader {
        lsn,
        synced,
        chain: 0x0bad_cafe,
        pad: 0,
        meta_stored: meta,
        meta_raw: meta,
        body: 0,
        blocks: 0,
        batches: 1,
        meta_codec: Codec::Raw,
    };
    header.encode(Place { identity: Identity(0), seq }, 0, &[]).0
}

/// Adds an unused file 2, made from a spare with `content`; file 1 is not sealed yet.
fn add_unused_file(disk: &SimDisk, content: &[u8]) {
    let (last, chain) = last_group(disk);
    let mut header = FileHeader {
        place: place(2),
        prev_seq: 1,
        first_lsn: last + 1,
        chain,
        data_offset: 0,
        flags: REUSED,
        live: vec![(1, 1)],
        changed: None,
    };
    disk.set_content(&file_name(2), [&header.encode(), content].concat());
}

/// A crash between the creation of a file from a spare and the seal of the one before. Headers that a client planted in
/// the spare are not groups of the new file, at any offset.
#[test]
fn planted_header_does_not_make_an_unused_file_used() {
    for (at, ahead, synced) in [(0, 0, 0), (0, 0, 3), (8, 0, 0), (8, 0, 3), (4096, 2, 5), (20_000, 300, 5)] {
        let disk = small_log();
        let lsn = last_group(&disk).0 + 1 + ahead;
        let mut content = vec![0xa5; 40_000];
        content[at..at + GROUP_HEADER].copy_from_slice(&planted(2, lsn, synced, 64));
        add_unused_file(&disk, &content);
        for recovery in [RecoveryMode::Strict, RecoveryMode::TruncateTail] {
            let disk = disk.fork();
            let opened = LogEngine::open_driven(disk.session(), LogOptions { recovery, ..options() });
            let (engine, _writer, report) = opened.unwrap_or_else(|error| panic!("at {at}: {error}"));
            assert_eq!((engine.bounds(GroupId(1)).unwrap().last, report.truncated_bytes), (ENTRIES, 0), "at {at}");
            assert_eq!(disk.list().unwrap(), [file_name(1)], "the unused file is deleted");
        }
    }
}

/// A new file was written to if one of its groups passes its checksum, or if the header of its first group continues
/// the chain. Both files are then in use, and the file before is sealed later. The offline check agrees.
#[test]
fn written_file_is_in_use() {
    let disk = small_log();
    let (last, chain) = last_group(&disk);
    let header = GroupHeader {
        lsn: last + 1,
        synced: last,
        chain,
        pad: 0,
        meta_stored: 0,
        meta_raw: 0,
        body: 0,
        blocks: 0,
        batches: 0,
        meta_codec: Codec::Raw,
    };
    let sound = header.encode(place(2), PAGE, &[]).0;
    let mut torn = sound;
    torn[4] ^= 1;
    for first in [sound, torn] {
        let disk = disk.fork();
        add_unused_file(&disk, &[&first[..], &[0xa5; 9000]].concat());
        let report = check(disk.session().as_ref(), &mut |_| ()).unwrap();
        assert_eq!((report.findings, report.surplus, report.files.len()), (vec![], vec![], 2));
        let (_engine, mut writer, report) = LogEngine::open_driven(disk.session(), options()).unwrap();
        assert_eq!((report.files, report.files_by_index), (2, 0));
        writer.turn();
        let (file, _) = LogFile::load(disk.session().as_ref(), 1, None).unwrap();
        assert!(file.footer().unwrap().is_some(), "the file before is sealed");
    }
}

/// Reused space full of headers with long metas, each of which would cost a checksum over half of the file. The work is
/// bounded, and groups proven to be synced are still found.
#[test]
fn planted_headers_cost_bounded_time() {
    const LEN: usize = 1 << 20;
    let disk = small_log();
    let (last, _) = last_group(&disk);
    let (file, mut header) = LogFile::load(disk.as_ref(), 1, None).unwrap();
    let end = scan(&file, &header).unwrap().end;
    header.flags |= REUSED;
    let mut content = disk.content(&file_name(1)).unwrap();
    content[..PAGE as usize].copy_from_slice(&header.encode());
    content.truncate(end as usize);
    while content.len() < LEN {
        let ahead = (content.len() as u64 / 64) % 7;
        content.extend(planted(1, last + 1 + ahead, last + ahead, LEN as u32 / 2));
    }
    disk.set_content(&file_name(1), content.clone());
    let (_, _, report) = LogEngine::open_driven(disk.fork().session(), options()).unwrap();
    assert!(report.bytes_read < 8 * LEN as u64, "{} bytes read", report.bytes_read);
    let salvage = LogOptions { recovery: RecoveryMode::Salvage, ..options() };
    let (_, _, report) = LogEngine::open_driven(disk.fork().session(), salvage).unwrap();
    assert!(report.bytes_read < 8 * LEN as u64, "{} bytes read", report.bytes_read);

    let proof = GroupHeader {
        lsn: last + 2,
        synced: last + 1,
        chain: 1,
        pad: 0,
        meta_stored: 8,
        meta_raw: 8,
        body: 0,
        blocks: 0,
        batches: 1,
        meta_codec: Codec::Raw,
    };
    let at = align(end, UNIT) as usize + 64 * 1000;
    let meta = content[at + GROUP_HEADER..at + GROUP_HEADER + 8].to_vec();
    content[at..at + GROUP_HEADER].copy_from_slice(&proof.encode(place(1), at as u64, &meta).0);
    disk.set_content(&file_name(1), content);
    let error = LogEngine::open_driven(disk.session(), options()).err().unwrap();
    assert!(matches!(&error, LogError::Corrupt { offset, .. } if *offset == end), "{error}");
}

/// A planted header with an impossible position, or with a synced position beyond its own, is skipped.
#[test]
fn impossible_planted_header_is_no_torn_tail() {
    let disk = small_log();
    let (last, _) = last_group(&disk);
    let (_, mut header) = LogFile::load(disk.as_ref(), 1, None).unwrap();
    header.flags |= REUSED;
    let mut content = disk.content(&file_name(1)).unwrap();
    content[..PAGE as usize].copy_from_slice(&header.encode());
    let end = content.len();
    for (lsn, synced, meta) in
        [(last, 0, 8), (last + 9, 0, 8), (last + 1, last + 1, 8), (last + 1, 0, 4), (last + 1, 0, 1 << 20)]
    {
        let mut content = content.clone();
        content.resize(end + 4096, 0xa5);
        content[end + 8..end + 8 + GROUP_HEADER].copy_from_slice(&planted(1, lsn, synced, meta));
        let disk = disk.fork();
        disk.set_content(&file_name(1), content);
        let strict = LogOptions { recovery: RecoveryMode::Strict, ..options() };
        let opened = LogEngine::open_driven(disk.session(), strict);
        assert!(opened.is_ok(), "{lsn} synced {synced} meta {meta}: {:?}", opened.err());
    }
}

/// A file with the highest number and a seal with a correct checksum: the files before it are not reported as missing.
#[test]
fn file_with_a_huge_number_adds_no_missing_files() {
    const HUGE: u64 = (1 << 35) - 1;
    let disk = small_log();
    let footer = Footer {
        index_checksum: 0,
        index_offset: PAGE,
        index_stored: 0,
        index_raw: 0,
        last_lsn: 9,
        chain: 0,
        codec: Codec::Raw,
    };
    let offset = PAGE + FOOTER as u64;
    let content = [&vec![0; offset as usize][..], &footer.encode(place(HUGE), offset)].concat();
    disk.set_content(&file_name(HUGE), content.clone());
    for name in ["18446744073709551615.log", "0000034359738368.log"] {
        disk.set_content(name, content.clone());
    }
    let report = check(disk.as_ref(), &mut |_| ()).unwrap();
    assert_eq!((report.entries, report.surplus), (ENTRIES, vec![file_name(HUGE)]));
    let salvage = LogOptions { recovery: RecoveryMode::Salvage, ..options() };
    let (engine, _writer, _) = LogEngine::open_driven(disk.session(), salvage).unwrap();
    assert_eq!(engine.bounds(GroupId(1)).unwrap().last, ENTRIES);
    assert!(
        LogEngine::open_driven(disk.session(), options()).is_err(),
        "the log does not open for writes with a surplus sealed file"
    );
}

/// Adds a commit group without entries at the end of file `seq`.
fn add_group(disk: &SimDisk, seq: u64, items: &[Item]) {
    let (file, header) = LogFile::load(disk, seq, None).unwrap();
    let Scan { end, last_lsn, chain, .. } = scan(&file, &header).unwrap();
    let meta = encode_items(items);
    let taken = (GROUP_HEADER + meta.len()) as u64;
    let pad = (align(taken, UNIT) - taken) as u32;
    let header = GroupHeader {
        lsn: last_lsn + 1,
        synced: last_lsn,
        chain,
        pad,
        meta_stored: meta.len() as u32,
        meta_raw: meta.len() as u32,
        body: 0,
        blocks: 0,
        batches: 1,
        meta_codec: Codec::Raw,
    };
    let mut content = disk.content(&file.name).unwrap();
    content.truncate(end as usize);
    content.extend([&header.encode(place(seq), end, &meta).0[..], &meta, &vec![0; pad as usize]].concat());
    disk.set_content(&file.name, content);
}

/// Earlier versions dropped files in any order. Before, they repeated in a newer file what the dropped file overrode in
/// older ones: deletions, truncations (as rewrites of no entries), removals. Such a log opens.
#[test]
fn log_without_a_file_in_the_middle_opens() {
    let disk = SimDisk::new();
    let (engine, _writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    let write = |fill: &dyn Fn(&mut LogBatch)| {
        let mut batch = LogBatch::new();
        fill(&mut batch);
        engine.write(batch, Durability::Synced).unwrap();
    };
    let entries = |byte: u8, count: usize| vec![Bytes::from(vec![byte; 50]); count];
    let fill_file = |batch: &mut LogBatch, index| batch.append(GroupId(9), index, vec![Bytes::from(vec![9; 60_000])]);
    write(&|batch| {
        batch.append(GroupId(1), 1, entries(1, 5));
        batch.put(GroupId(1), b"k", b"old");
        batch.append(GroupId(2), 1, entries(2, 5));
        fill_file(batch, 1);
    });
    write(&|batch| fill_file(batch, 2));
    write(&|batch| {
        batch.append(GroupId(1), 3, entries(3, 1));
        batch.delete(GroupId(1), b"k");
        batch.remove(GroupId(2));
    });
    write(&|batch| fill_file(batch, 3));
    write(&|batch| {
        batch.compact(GroupId(9), 3);
        batch.append(GroupId(1), 3, entries(4, 1));
    });
    drop(engine);
    let items = [
        Item::Delete { group: GroupId(1), key: Bytes::from_static(b"k") },
        Item::Rewrite { group: GroupId(1), floor: 0, last: 3, first: 4, count: 0 },
        Item::Remove { group: GroupId(2) },
        Item::Drop { file: 2 },
    ];
    add_group(&disk, 3, &items);
    let seen = |engine: &LogEngine| {
        let bounds = [1, 2].map(|group| engine.bounds(GroupId(group)).map(|bounds| (bounds.first, bounds.last)));
        (bounds, engine.entries(GroupId(1), 1, 4, usize::MAX).unwrap(), engine.get(GroupId(1), b"k").unwrap())
    };
    let expected = ([Some((1, 3)), None], [entries(1, 2), entries(4, 1)].concat(), None);
    // Before the file is deleted, and after.
    for _ in 0..2 {
        for recovery in [RecoveryMode::Salvage, RecoveryMode::Strict] {
            let report = check(disk.as_ref(), &mut |_| ()).unwrap();
            assert_eq!(report.findings, []);
            let options = LogOptions { recovery, verify: true, ..options() };
            let (engine, _writer, report) = LogEngine::open_driven(disk.session(), options).unwrap();
            assert_eq!(seen(&engine), expected, "{recovery:?}");
            assert!(report.losses.is_empty() && report.lost.is_empty(), "{report:?}");
        }
        assert_eq!(disk.list().unwrap(), [file_name(1), file_name(3)]);
    }
}

/// A spare with the highest number has no successor, so the log ignores it.
#[test]
fn spare_with_a_huge_number_is_left_alone() {
    let disk = small_log();
    let huge = format!("{:016}.spare", u64::MAX);
    disk.set_content(&huge, vec![0; 64 << 10]);
    let purged = LogOptions { purge_threshold: 0, ..options() };
    let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), purged).unwrap();
    for index in ENTRIES + 1..ENTRIES + 30 {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![Bytes::from(vec![1; 9000])]);
        batch.compact(GroupId(1), index);
        engine.write(batch, Durability::Synced).unwrap();
        engine.purge(Budget::default()).unwrap();
        writer.turn();
    }
    let names = disk.list().unwrap();
    let spares = names.iter().filter(|name| name.ends_with(".spare")).count();
    assert!(names.contains(&huge) && spares > 1, "{names:?}");
}

/// A commit group with correct checksums whose item names more entries than exist, up to beyond the highest index.
#[test]
fn dump_shows_no_more_entries_than_exist() {
    let disk = small_log();
    let name = file_name(1);
    let mut content = disk.content(&name).unwrap();
    let at = PAGE as usize;
    let head = content[at..].first_chunk::<GROUP_HEADER>().unwrap();
    let header = GroupHeader::decode(head, place(1)).unwrap();
    let body = content[at + GROUP_HEADER..][..header.body as usize].to_vec();
    let meta = &content[at + GROUP_HEADER + body.len()..][..header.meta_stored as usize];
    let meta = decompress(header.meta_codec, meta, header.meta_raw as usize).unwrap();
    let (blocks, _) = decode_meta(&meta, header.blocks, PAGE + GROUP_HEADER as u64).unwrap();
    for first in [1, u64::MAX - 1, u64::MAX] {
        let item = Item::Append { group: GroupId(1), first, count: u64::MAX };
        let forged = [encode_blocks(&blocks), encode_items(&[item])].concat();
        let taken = (GROUP_HEADER + body.len() + forged.len()) as u64;
        let pad = (align(taken, UNIT) - taken) as u32;
        let (meta_stored, meta_raw) = (forged.len() as u32, forged.len() as u32);
        let header = GroupHeader { meta_stored, meta_raw, pad, meta_codec: Codec::Raw, ..header };
        let group = [&header.encode(place(1), PAGE, &forged).0[..], &body, &forged, &vec![0; pad as usize]].concat();
        content.truncate(at);
        content.extend(group);
        disk.set_content(&name, content.clone());
        let mut entries = 0;
        let mut show = |record: &Record| {
            entries += u64::from(matches!(record, Record::Entry(_)));
            Ok(())
        };
        let wanted = DumpOptions { entries: Some(0), ..DumpOptions::default() };
        dump(disk.as_ref(), &wanted, &mut show, &mut |_| ()).unwrap();
        assert_eq!(entries, 1, "from {first}");
        stats(disk.as_ref(), &mut |_| ()).unwrap();
    }
}
