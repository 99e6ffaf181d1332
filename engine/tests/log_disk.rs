//! The disks: both do what `Disk` says, and the simulated one loses what it may and nothing else.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use engine::disk::{Disk, DiskFile, Operation, RealDisk, SimDisk};

fn read(file: &dyn DiskFile) -> Vec<u8> {
    let mut out = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut out, 0).unwrap();
    out
}

/// What holds for every disk.
fn conforms(disk: &dyn Disk) {
    assert_eq!(disk.open("a").err().unwrap().kind(), ErrorKind::NotFound);
    let file = disk.create("a").unwrap();
    assert_eq!(disk.create("a").err().unwrap().kind(), ErrorKind::AlreadyExists);
    assert!(file.is_empty().unwrap());
    file.write_at(b"hello", 3).unwrap();
    assert_eq!(read(file.as_ref()), b"\0\0\0hello");
    let mut three = [0; 3];
    file.read_at(&mut three, 5).unwrap();
    assert_eq!(&three, b"llo");
    assert_eq!(file.read_at(&mut three, 6).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    file.set_len(4).unwrap();
    file.prefill(6).unwrap();
    file.prefill(2).unwrap();
    assert_eq!(read(file.as_ref()), b"\0\0\0h\0\0");
    file.sync().unwrap();
    disk.create("b").unwrap().write_at(b"b", 0).unwrap();
    assert_eq!(disk.list().unwrap(), ["a", "b"]);
    disk.rename("a", "b").unwrap();
    assert_eq!(disk.list().unwrap(), ["b"]);
    assert_eq!(read(disk.open("b").unwrap().as_ref()), b"\0\0\0h\0\0");
    disk.remove("b").unwrap();
    assert_eq!(disk.remove("b").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(read(file.as_ref()).len(), 6, "an open file stays readable");
    disk.sync_dir().unwrap();
    for name in ["", ".", "..", "a/b", "LOCK"] {
        assert_eq!(disk.create(name).err().unwrap().kind(), ErrorKind::InvalidInput, "{name:?}");
    }
}

#[test]
fn the_real_disk_conforms() {
    let dir = tempfile::tempdir().unwrap();
    conforms(RealDisk::open(dir.path().join("made/for/it")).unwrap().as_ref());
}

#[test]
fn a_real_disk_that_is_opened_to_be_read_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let missing = RealDisk::open_existing(dir.path().join("nowhere")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    assert!(!dir.path().join("nowhere").exists());
    std::fs::write(dir.path().join("a"), b"hello").unwrap();
    assert_eq!(RealDisk::open_existing(dir.path().join("a")).unwrap_err().kind(), ErrorKind::NotADirectory);

    let disk = RealDisk::open_existing(dir.path()).unwrap();
    assert_eq!(disk.list().unwrap(), ["a"]);
    assert!(!dir.path().join("LOCK").exists(), "a copy without a lock file gets none");
    let file = disk.open("a").unwrap();
    assert_eq!(read(file.as_ref()), b"hello");
    assert!(file.write_at(b"x", 0).is_err() && file.set_len(0).is_err());
    for refused in [disk.create("b").map(drop), disk.rename("a", "b"), disk.remove("a")] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"hello");
    drop(disk);

    let held = RealDisk::open(dir.path()).unwrap();
    assert_eq!(RealDisk::open_existing(dir.path()).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(held);
    let held = RealDisk::open_existing(dir.path()).unwrap();
    assert_eq!(RealDisk::open(dir.path()).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(held);
}

#[test]
fn the_simulated_disk_conforms() {
    conforms(SimDisk::new().as_ref());
    conforms(SimDisk::new().session().as_ref());
}

/// A file of two synced sectors of 1s, over which 2s and then 3s were written, and which was made longer.
fn half_synced() -> Arc<SimDisk> {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    file.write_at(&[1; 1024], 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir().unwrap();
    file.write_at(&[2; 1024], 0).unwrap();
    file.write_at(&[3; 1200], 0).unwrap();
    disk
}

#[test]
fn a_crash_keeps_any_mixture_of_sectors_and_any_prefix() {
    let outcomes: BTreeSet<Vec<u8>> = (0..500)
        .map(|seed| {
            let disk = half_synced();
            disk.crash(seed);
            disk.content("f").unwrap()
        })
        .collect();
    let shapes: BTreeSet<(u8, u8)> = outcomes.iter().map(|content| (content[0], content[512])).collect();
    assert_eq!(shapes.len(), 9, "each sector at each of its versions: {shapes:?}");
    assert!(outcomes.iter().any(|content| content[..512].windows(2).any(|pair| pair == [3, 2])), "torn within a write");
    let lengths: BTreeSet<usize> = outcomes.iter().map(Vec::len).collect();
    assert!(lengths.contains(&1024) && lengths.contains(&1200) && lengths.iter().all(|len| *len >= 1024));
    let seeds_repeat = |seed| {
        let run = || {
            let disk = half_synced();
            disk.crash(seed);
            disk.content("f")
        };
        run() == run()
    };
    assert!((0..20).all(seeds_repeat));
}

#[test]
fn a_crash_loses_names_that_no_sync_of_the_directory_followed() {
    let outcomes: BTreeSet<Vec<String>> = (0..300)
        .map(|seed| {
            let disk = SimDisk::new();
            disk.create("old").unwrap().sync().unwrap();
            disk.create("doomed").unwrap();
            disk.sync_dir().unwrap();
            disk.create("new").unwrap().sync().unwrap();
            disk.rename("old", "renamed").unwrap();
            disk.remove("doomed").unwrap();
            disk.crash(seed);
            disk.list().unwrap()
        })
        .collect();
    assert_eq!(outcomes.len(), 8, "{outcomes:?}");
}

#[test]
fn what_is_synced_stays() {
    for seed in 0..100 {
        let disk = half_synced();
        disk.open("f").unwrap().sync().unwrap();
        disk.crash(seed);
        assert_eq!(disk.content("f").unwrap(), [3; 1200]);
    }
}

#[test]
fn a_failed_sync_drops_what_it_was_to_make_durable() {
    let disk = half_synced();
    let file = disk.open("f").unwrap();
    disk.fail_nth(Operation::Sync, 1, ErrorKind::Other);
    file.sync().unwrap_err();
    assert_eq!(read(file.as_ref()), [3; 1200], "the page cache still has it");
    file.sync().unwrap();
    for seed in 0..20 {
        let disk = disk.fork();
        disk.crash(seed);
        assert_eq!(disk.content("f").unwrap(), [1; 1024], "though a later sync succeeded");
    }
}

#[test]
fn a_lying_disk_loses_what_it_said_was_durable() {
    let lost = (0..50).filter(|seed| {
        let disk = half_synced();
        disk.set_lying_sync(true);
        disk.open("f").unwrap().sync().unwrap();
        disk.crash(*seed);
        disk.content("f").unwrap() != [3; 1200]
    });
    assert!(lost.count() > 10);
}

#[test]
fn a_dead_node_cannot_touch_the_disk() {
    let disk = SimDisk::new();
    let session = disk.session();
    let file = session.create("f").unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync().unwrap();
    session.sync_dir().unwrap();
    disk.crash(0);
    assert!(file.write_at(b"y", 0).is_err() && file.sync().is_err() && file.len().is_err());
    assert!(file.read_at(&mut [0], 0).is_err() && file.set_len(0).is_err());
    assert!(session.create("g").is_err() && session.list().is_err() && session.sync_dir().is_err());
    assert!(session.open("f").is_err() && session.remove("f").is_err() && session.rename("f", "g").is_err());
    assert_eq!(disk.content("f").unwrap(), b"x");
    assert_eq!(disk.session().list().unwrap(), ["f"]);
}

#[test]
fn space_power_and_planned_failures() {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    disk.set_capacity(Some(10));
    file.write_at(&[1; 10], 0).unwrap();
    assert_eq!(file.write_at(&[7; 4], 9).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(read(file.as_ref()), [1, 1, 1, 1, 1, 1, 1, 1, 1, 7], "what fits is there");
    file.write_at(&[2; 10], 0).unwrap();
    disk.remove("f").unwrap();
    disk.create("g").unwrap().write_at(&[1; 10], 0).unwrap();
    disk.set_capacity(None);

    let file = disk.open("g").unwrap();
    disk.fail_nth(Operation::Write, 2, ErrorKind::Other);
    file.write_at(&[3; 4], 0).unwrap();
    file.write_at(&[4; 4], 0).unwrap_err();
    assert_eq!(read(file.as_ref())[..4], [4, 4, 3, 3], "half of it is there");
    file.write_at(&[5; 4], 0).unwrap();

    disk.halt_after(1);
    file.write_at(&[6; 4], 0).unwrap();
    assert!(file.write_at(&[7; 4], 0).is_err() && file.sync().is_err() && disk.create("h").is_err());
    assert_eq!(read(file.as_ref())[..4], [6; 4]);
    disk.crash(1);
    disk.create("h").unwrap();
}
