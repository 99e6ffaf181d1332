//! Checks: an undamaged log is sound, also after a crash, and any damage is found.

use bytes::Bytes;
use engine::disk::Disk;
use engine::log::{Durability, GroupId, LogEngine, LogOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{busy_log, checked, logs, options};
use crate::model::{Change, Driver, file, small_options};

/// A crash leaves a sound log, apart from a torn tail of the length that opening cuts.
#[test]
fn a_log_after_a_crash_is_sound() {
    let (mut torn, mut reused) = (0, 0);
    for seed in 0..60 {
        let prefill_bytes = [0, 16 << 10][seed as usize % 2];
        let mut driver = busy_log(seed, LogOptions { prefill_bytes, align_bytes: 8, ..small_options() }, false);
        if seed % 3 == 0 {
            // Writes on in reused files.
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

/// Any flipped bit is found, and its file named. In the last group it may count as a torn tail.
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
