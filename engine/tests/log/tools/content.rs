//! Dump and stats: the content of a log in text and in numbers, with damage in its place.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::SimDisk;
use engine::log::tools::{DumpOptions, Record, dump, stats};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions};

use super::{busy_log, options};
use crate::model::{file, observe};

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

/// A dump shows all readable records, and damage in its place. The caller can end it.
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

#[test]
fn stats_match_the_engine() {
    for seed in 0..6 {
        let driver = busy_log(seed, options(), true);
        let counted = stats(driver.disk.as_ref(), &mut |_| ()).unwrap();
        assert!(counted.damage.is_empty());
        let seen = observe(&driver.engine).unwrap();
        assert_eq!(counted.groups.len(), seen.len());
        for group in &counted.groups {
            let expected = &seen[&group.group.0];
            assert_eq!(
                (group.first, group.last, group.keys),
                (expected.first, expected.last, expected.keys.len() as u64)
            );
            assert_eq!(group.entries, expected.entries.len() as u64);
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
    // The file before the active one may be half sealed: its groups are read.
    let index = damaged(&|content| content.len() - 64 - 40);
    assert!(index.is_empty(), "{index:?}");
}
