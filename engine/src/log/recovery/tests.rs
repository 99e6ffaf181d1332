//! Recovery by several threads is recovery by one: the same index to the last reference, the same report, the same
//! error.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::newest::{find_newest, older_files};
use super::*;
use crate::disk::SimDisk;
use crate::log::format::{IndexReader, Sink, Span, file_name};
use crate::log::index::{FileSummary, Group};
use crate::log::{Budget, Durability, GroupId, LogBatch, LogEngine};

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 0,
        align_bytes: 8,
        block_bytes: 1 << 10,
        purge_threshold: 300 << 10,
        recovery_threads: 1,
        identity: Some(3),
        ..LogOptions::default()
    }
}

/// A log of several files: appends, overwrites of entries in older files, compactions, keys, removals, and purges.
fn random_log(seed: u64) -> Arc<SimDisk> {
    let mut rng = StdRng::seed_from_u64(seed);
    let disk = SimDisk::new();
    let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    for _ in 0..160 {
        let mut batch = LogBatch::new();
        let group = GroupId(rng.random_range(1..200));
        let (first, last) = engine.bounds(group).map_or((1, 0), |bounds| (bounds.first, bounds.last));
        match rng.random_range(0..12) {
            0..7 => {
                let at = if rng.random_bool(0.6) { last + 1 } else { rng.random_range(first..=last + 1) };
                let entry = |rng: &mut StdRng| (0..rng.random_range(0..900)).map(|_| rng.random::<u8>()).collect();
                batch.append(group, at, (0..rng.random_range(1..12)).map(|_| entry(&mut rng)).collect());
            }
            7..9 => batch.compact(group, rng.random_range(first..=last + 2)),
            9 => batch.put(group, &[rng.random_range(0..5)], &[rng.random(); 20]),
            10 => batch.delete(group, &[rng.random_range(0..5)]),
            _ => batch.remove(group),
        }
        let written = engine.submit(batch, Durability::Buffered).unwrap();
        writer.turn();
        assert!(matches!(written.poll(), Some(Ok(_))));
        engine.purge(Budget::default()).unwrap();
        writer.turn();
    }
    writer.finish();
    disk
}

type Held = (u64, u64, Vec<Span>, Vec<(Vec<u8>, Vec<u8>, u64)>);

/// All that an index holds.
fn all_of(index: &Index) -> (BTreeMap<GroupId, Held>, BTreeMap<u64, (u64, u64)>) {
    let held = |group: &Group| {
        let keys = group.keys.iter().map(|kv| (kv.key().to_vec(), kv.value().to_vec(), kv.file)).collect();
        (group.floor, group.floor_file, group.runs.iter().collect(), keys)
    };
    let groups: BTreeMap<_, _> =
        index.groups().into_iter().map(|group| (group, index.with(group, held).unwrap())).collect();
    let usage = |file: u64| (file, (index.usage(file).refs, index.usage(file).bytes));
    (groups, (1..100).map(usage).collect())
}

#[test]
fn outcome_does_not_depend_on_threads() {
    for seed in 0..12 {
        let disk = random_log(seed);
        let alone = recover(disk.fork().session().as_ref(), &options()).unwrap();
        assert!(alone.report.files_by_index >= 3, "seed {seed}: {:?}", alone.report);
        for threads in [2, 3, 8] {
            let options = LogOptions { recovery_threads: threads, ..options() };
            let together = recover(disk.fork().session().as_ref(), &options).unwrap();
            assert_eq!(all_of(&together.index), all_of(&alone.index), "seed {seed}, {threads} threads");
            assert_eq!(together.report, alone.report, "seed {seed}, {threads} threads");
            let verified = recover(disk.fork().session().as_ref(), &LogOptions { verify: true, ..options }).unwrap();
            assert_eq!(all_of(&verified.index), all_of(&alone.index), "seed {seed}, {threads} threads, verified");
            assert_eq!(verified.report.files_scanned, alone.report.files);
            assert!(verified.report.bytes_read > alone.report.bytes_read);
        }
    }
}

#[test]
fn outcome_does_not_depend_on_windows() {
    let disk = random_log(77);
    let names = disk.list().unwrap();
    let existing = names.iter().filter_map(|name| parse_file_name(name)).collect();
    let newest = find_newest(disk.as_ref(), &existing).unwrap().unwrap();
    let older = older_files(&newest, &existing);
    let opened = sealed::open(disk.as_ref(), &older.files, newest.header.place.identity, 2);
    assert!(opened.failed.is_none() && opened.files.len() >= 3);
    let mut seen = Vec::new();
    for share in [0, 10 << 10, 40 << 10, sealed::WINDOW] {
        for threads in [1, 3] {
            let index = Index::new();
            let options = LogOptions { recovery_threads: threads, ..options() };
            let read = sealed::apply(&index, &opened.files, &options, share).unwrap();
            seen.push((all_of(&index), read));
        }
    }
    assert!(!seen[0].0.0.is_empty());
    assert!(seen.iter().all(|other| *other == seen[0]));
    // The order of the files matters: another order would show.
    let mut reversed = opened.files;
    reversed.reverse();
    let index = Index::new();
    sealed::apply(&index, &reversed, &options(), sealed::WINDOW).unwrap();
    assert_ne!(all_of(&index), seen[0].0);
}

/// An index applied in pieces has the same outcome as all of it at once: the group's entries from before the file are
/// truncated once, and entries below are replaced.
#[test]
fn group_with_many_runs_is_applied_in_pieces() {
    let runs = |file: u64, range: std::ops::Range<u64>| -> Vec<Span> {
        let span = |first| Span { first, count: 1, file, offset: (first + 1) * 4096, ordinal: 0, bytes: 100 };
        range.map(span).collect()
    };
    let group = GroupId(7);
    let mut summary = FileSummary::default();
    summary.place(group, 9000, &runs(2, 9000..10_000)).unwrap();
    summary.place(group, 10_000, &runs(2, 3000..8000)).unwrap();
    summary.put(group, &Bytes::from_static(b"k"), &Bytes::from_static(b"v"), 2);
    let raw = summary.encode();
    let before = || {
        let index = Index::new();
        index.editor().place(group, 1, &runs(1, 1..12_000)).unwrap();
        index
    };
    let (at_once, for_each_chunk) = (before(), before());
    summary.apply(2, &mut at_once.editor()).unwrap();
    let mut reader = IndexReader::new(&raw, 2).unwrap();
    let read = reader.read().unwrap().unwrap();
    assert_eq!((read.spans().count(), read.keys().count()), (6000, 1));
    assert!(reader.read().unwrap().is_none());
    read.apply(2, &mut for_each_chunk.editor()).unwrap();
    assert_eq!(all_of(&for_each_chunk), all_of(&at_once));
    assert_eq!(at_once.bounds(group).unwrap().last, 9999);
    assert_eq!(FileSummary::decode(&raw, 2).unwrap().encode(), raw);
}

/// Whatever is damaged, the error names the first damaged file. (The newest file and the one before it are read before
/// others.)
#[test]
fn error_names_the_first_damaged_file() {
    let disk = random_log(5);
    let existing: Vec<u64> = disk.list().unwrap().iter().filter_map(|name| parse_file_name(name)).collect();
    assert!(existing.len() > 4, "{existing:?}");
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..60 {
        let damaged = disk.fork();
        let mut first = None;
        for seq in &existing[..existing.len() - 2] {
            if rng.random_bool(0.5) {
                continue;
            }
            let name = file_name(*seq);
            let mut content = damaged.content(&name).unwrap();
            let footer = content.len() - 64;
            let number = |at: usize| u32::from_le_bytes(content[at..at + 4].try_into().unwrap()) as usize;
            let (index, stored) = (number(footer + 16), number(footer + 24));
            // Damages the header, the index or the footer; or empties or removes the file.
            match rng.random_range(0..5) {
                0 => content[rng.random_range(0..76)] ^= 4,
                1 => content[rng.random_range(index..index + stored)] ^= 4,
                2 => content[rng.random_range(footer..footer + 64)] ^= 4,
                3 => content.clear(),
                _ => damaged.lose(&name),
            }
            if damaged.content(&name).is_some() {
                damaged.set_content(&name, content);
            }
            first = first.or(Some(name));
        }
        for threads in [1, 2, 5] {
            let options = LogOptions { recovery_threads: threads, ..options() };
            let error = recover(damaged.session().as_ref(), &options).err();
            let named = error.as_ref().and_then(|error| error.file().map(str::to_owned));
            assert_eq!(named, first, "round {round}, {threads} threads: {error:?}");
        }
    }
}

/// A window is bounded by what the footers say, and has at least one file.
#[test]
fn windows_are_bounded_by_the_footers() {
    let disk = random_log(5);
    let last = disk.list().unwrap().iter().filter_map(|name| parse_file_name(name)).max().unwrap();
    let existing = (1..=last).collect();
    let newest = find_newest(disk.as_ref(), &existing).unwrap().unwrap();
    let older = older_files(&newest, &existing);
    let opened = sealed::open(disk.as_ref(), &older.files, newest.header.place.identity, 1);
    let costs: Vec<u64> = opened.files.iter().map(|sealed| sealed::cost(&sealed.footer)).collect();
    assert!(costs.len() > 2);
    assert_eq!(sealed::window_len(&opened.files, 0), 1);
    assert_eq!(sealed::window_len(&opened.files, costs[0] + costs[1] - 1), 1);
    assert_eq!(sealed::window_len(&opened.files, costs[0] + costs[1]), 2);
    assert_eq!(sealed::window_len(&opened.files, u64::MAX), costs.len());
}
