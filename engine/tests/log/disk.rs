//! The disks: both meet the contract of `Disk`, and the simulated one loses only what its contract allows.

use std::collections::BTreeSet;
use std::io::{ErrorKind, IoSlice};
use std::sync::Arc;

use engine::disk::{Applied, Disk, DiskFile, Lie, Operation, RealDisk, SimDisk};

use crate::model::{each_crash, fingerprint};

fn read(file: &dyn DiskFile) -> Vec<u8> {
    let mut out = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut out, 0).unwrap();
    out
}

/// Checks the contract that every disk meets.
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
    file.prefill(5).unwrap();
    file.prefill(2).unwrap();
    file.reserve(6).unwrap();
    file.reserve(2).unwrap();
    assert_eq!(read(file.as_ref()), b"\0\0\0h\0\0");
    file.sync().unwrap();
    for (offset, len) in [(0, 0), (1, 2), (0, u64::MAX), (u64::MAX, 1)] {
        file.drop_cached(offset, len);
        assert_eq!(read(file.as_ref()), b"\0\0\0h\0\0", "a dropped page is read from the disk");
    }
    disk.create("b").unwrap().write_at(b"b", 0).unwrap();
    assert_eq!(disk.list().unwrap(), ["a", "b"]);
    disk.rename("a", "b").unwrap();
    assert_eq!(disk.list().unwrap(), ["b"]);
    assert_eq!(read(disk.open("b").unwrap().as_ref()), b"\0\0\0h\0\0");
    assert_eq!(file.links().unwrap(), 1);
    disk.remove("b").unwrap();
    assert_eq!(file.links().unwrap(), 0);
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

/// Slices of all lengths, more than the kernel takes at once and some of them empty; and their concatenation.
fn many_slices() -> (Vec<Vec<u8>>, Vec<u8>) {
    let pieces: Vec<Vec<u8>> = (0..2500usize).map(|at| vec![(at % 251) as u8 + 1; at % 37]).collect();
    let whole = pieces.concat();
    (pieces, whole)
}

fn write_slices(file: &dyn DiskFile, pieces: &[Vec<u8>], offset: u64) -> std::io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    file.write_vectored_at(&mut slices, offset)
}

#[test]
fn more_slices_than_the_kernel_takes_are_written_in_order() {
    let (pieces, whole) = many_slices();
    let dir = tempfile::tempdir().unwrap();
    let real = RealDisk::open(dir.path()).unwrap();
    for disk in [real.as_ref() as &dyn Disk, SimDisk::new().as_ref()] {
        let file = disk.create("f").unwrap();
        write_slices(file.as_ref(), &pieces, 5).unwrap();
        let content = read(file.as_ref());
        assert_eq!((&content[..5], &content[5..]), (&[0; 5][..], &whole[..]));
        write_slices(file.as_ref(), &[], 0).unwrap();
        write_slices(file.as_ref(), &[vec![], vec![]], 0).unwrap();
    }
}

/// The working directory of the child process of this test.
const LIMITED: &str = "CORTADO_LIMITED_DIR";
/// The file size limit of the child process, in blocks of 512 bytes.
const LIMIT_BLOCKS: usize = 20;

/// The kernel writes a part and refuses the rest: the written part is correct, and the call returns the error. Runs in
/// a child process with a file size limit.
#[test]
fn a_short_write_returns_an_error_and_keeps_what_fits() {
    let (pieces, whole) = many_slices();
    if let Some(dir) = std::env::var_os(LIMITED) {
        let disk = RealDisk::open(dir).unwrap();
        let refused = |outcome: std::io::Result<()>| assert_eq!(outcome.unwrap_err().kind(), ErrorKind::FileTooLarge);
        refused(write_slices(disk.create("pieces").unwrap().as_ref(), &pieces, 7));
        refused(disk.create("whole").unwrap().write_at(&whole, 7));
        refused(disk.create("zeros").unwrap().prefill(1 << 20));
        refused(disk.create("reserved").unwrap().reserve(1 << 20));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let script = format!("trap '' XFSZ; ulimit -f {LIMIT_BLOCKS}; exec \"$0\" --exact \"$1\"");
    let test = "disk::a_short_write_returns_an_error_and_keeps_what_fits";
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(this)
        .arg(test)
        .env(LIMITED, dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let limit = LIMIT_BLOCKS * 512;
    assert!(whole.len() > 2 * limit);
    for name in ["pieces", "whole"] {
        let content = std::fs::read(dir.path().join(name)).unwrap();
        assert_eq!((content.len(), &content[..7], &content[7..]), (limit, &[0; 7][..], &whole[..limit - 7]), "{name}");
    }
    assert_eq!(std::fs::read(dir.path().join("zeros")).unwrap(), vec![0; limit], "a step that fails is half done");
}

#[test]
fn a_real_disk_opened_read_only_changes_nothing() {
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

/// A file with two synced sectors of 1s, overwritten with 2s and then 3s, and extended.
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

/// Enumerating all crashes finds every seeded one and nothing impossible.
#[test]
fn all_crashes_are_enumerated() {
    let content = |disk: &SimDisk| disk.content("f").unwrap();
    let mut all = BTreeSet::new();
    assert!(each_crash(&half_synced(), usize::MAX, |disk| assert!(all.insert(content(disk)), "met twice")));
    for seed in 0..2000 {
        let disk = half_synced();
        disk.crash(seed);
        assert!(all.contains(&content(&disk)), "seed {seed}");
    }
    // Two sectors of three versions, a third of two, and three lengths for each; one length cuts the third off.
    // Besides, the contents torn at a byte.
    let torn = |content: &Vec<u8>| content.chunks(512).any(|sector| sector.windows(2).any(|pair| pair[0] > pair[1]));
    let whole = all.iter().filter(|content| !torn(content)).count();
    let third = |content: &&Vec<u8>| content.len() > 1024 && content[1024..].iter().all(|byte| *byte == 0);
    assert!(all.iter().any(|content| third(&content)), "a length without its bytes");
    assert!(whole >= 9 * 3 && all.len() - whole > 1000, "{whole} of {}", all.len());
}

#[test]
fn too_many_crashes_are_sampled() {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    file.write_at(&[1; 1 << 20], 0).unwrap();
    disk.sync_dir().unwrap();
    assert_eq!(disk.possible_crashes(), u64::MAX);
    let mut met = BTreeSet::new();
    assert!(!each_crash(&disk, 50, |disk| assert!(met.insert(fingerprint(disk)))));
    assert_eq!(met.len(), 50);
    disk.open("f").unwrap().sync().unwrap();
    let mut left = 0;
    assert!(each_crash(&disk, 50, |_| left += 1));
    assert_eq!((left, disk.possible_crashes()), (1, 2), "nothing is pending");
}

#[test]
fn a_crash_loses_names_without_a_directory_sync() {
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
fn synced_data_survives() {
    for seed in 0..100 {
        let disk = half_synced();
        disk.open("f").unwrap().sync().unwrap();
        disk.crash(seed);
        assert_eq!(disk.content("f").unwrap(), [3; 1200]);
    }
}

#[test]
fn a_failed_sync_drops_its_data() {
    let disk = half_synced();
    let file = disk.open("f").unwrap();
    disk.fail_nth(Operation::Sync, 1, ErrorKind::Other);
    file.sync().unwrap_err();
    assert_eq!(read(file.as_ref()), [3; 1200], "the page cache still holds it");
    file.sync().unwrap();
    for seed in 0..20 {
        let disk = disk.fork();
        disk.crash(seed);
        assert_eq!(disk.content("f").unwrap(), [1; 1024], "although a later sync succeeded");
    }
}

#[test]
fn dropped_pages_show_the_disk_content() {
    let disk = half_synced();
    let file = disk.open("f").unwrap();
    disk.drop_clean_pages();
    assert_eq!(read(file.as_ref()), [3; 1200], "no page is clean");
    disk.fail_nth(Operation::Sync, 1, ErrorKind::Other);
    file.sync().unwrap_err();
    file.write_at(&[4; 10], 0).unwrap();
    disk.drop_clean_pages();
    let content = read(file.as_ref());
    assert_eq!((&content[..10], &content[10..1024], &content[1024..]), (&[4; 10][..], &[1; 1014][..], &[0; 176][..]));
    assert_eq!(disk.failed_syncs(), 1);
}

#[test]
fn a_failed_call_may_take_effect() {
    for (left, written) in [(Applied::Nothing, 0), (Applied::Half, 600), (Applied::All, 1200)] {
        let disk = half_synced();
        let file = disk.open("f").unwrap();
        disk.fail_nth_applying(Operation::Write, 1, ErrorKind::Other, left);
        file.write_at(&[5; 1200], 0).unwrap_err();
        assert_eq!(read(file.as_ref()).iter().filter(|byte| **byte == 5).count(), written);
    }
    for (left, durable) in [(Applied::Nothing, [1, 1]), (Applied::Half, [3, 1]), (Applied::All, [3, 3])] {
        let disk = half_synced();
        disk.fail_nth_applying(Operation::Sync, 1, ErrorKind::Other, left);
        disk.open("f").unwrap().sync().unwrap_err();
        disk.crash(0);
        let content = disk.content("f").unwrap();
        assert_eq!([content[0], content[512]], durable, "{left:?}");
    }
    for (left, there) in [(Applied::Nothing, false), (Applied::Half, false), (Applied::All, true)] {
        let disk = SimDisk::new();
        disk.fail_nth_applying(Operation::Create, 1, ErrorKind::Other, left);
        assert!(disk.create("f").is_err());
        assert_eq!(disk.list().unwrap().len() == 1, there);
    }
    let disk = SimDisk::new();
    disk.create("a").unwrap();
    disk.create("b").unwrap();
    disk.fail_nth_applying(Operation::SyncDir, 1, ErrorKind::Other, Applied::Half);
    disk.sync_dir().unwrap_err();
    assert!((0..50).all(|seed| {
        let disk = disk.fork();
        disk.crash(seed);
        disk.list().unwrap().contains(&"a".to_owned())
    }));
}

/// The disk reserves space in pieces: a call that fails or runs out of space leaves a part reserved.
#[test]
fn space_may_be_reserved_in_part() {
    type Take = fn(&dyn DiskFile) -> std::io::Result<()>;
    let takes: [Take; 2] = [|file| file.prefill(1100), |file| file.reserve(1100)];
    for take in takes {
        for (left, len) in [(Applied::Nothing, 100), (Applied::Half, 600), (Applied::All, 1100)] {
            let disk = SimDisk::new();
            let file = disk.create("f").unwrap();
            file.write_at(&[1; 100], 0).unwrap();
            disk.fail_nth_applying(Operation::Write, 1, ErrorKind::Other, left);
            take(file.as_ref()).unwrap_err();
            let content = read(file.as_ref());
            assert_eq!((content.len(), content[100..].iter().any(|byte| *byte != 0)), (len, false), "{left:?}");
        }
        let disk = SimDisk::new();
        let file = disk.create("f").unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        file.sync().unwrap();
        disk.sync_dir().unwrap();
        disk.set_capacity(Some(900));
        assert_eq!(take(file.as_ref()).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.len().unwrap(), 900, "the rest of the space is taken");
        let mut lengths = BTreeSet::new();
        each_crash(&disk, usize::MAX, |disk| assert!(lengths.insert(disk.content("f").unwrap().len())));
        assert_eq!(lengths, BTreeSet::from([100, 900]), "and a crash may release it");
        disk.set_capacity(None);
        take(file.as_ref()).unwrap();
        assert_eq!(file.len().unwrap(), 1100);
    }
}

#[test]
fn a_skipped_call_reports_success() {
    let disk = half_synced();
    let file = disk.open("f").unwrap();
    disk.skip_nth(Operation::Write, 2);
    file.write_at(&[4; 1200], 0).unwrap();
    file.write_at(&[5; 1200], 0).unwrap();
    assert_eq!(read(file.as_ref()), [4; 1200]);
    disk.skip_nth(Operation::Sync, 1);
    file.sync().unwrap();
    disk.crash_with(&mut |_| 0);
    assert_eq!(disk.content("f").unwrap(), [1; 1024]);
}

#[test]
fn the_end_of_a_process_loses_nothing() {
    let disk = half_synced();
    let session = disk.session();
    let file = session.open("f").unwrap();
    disk.halt_after(0);
    disk.kill();
    assert!(file.len().is_err() && session.list().is_err());
    assert_eq!(disk.content("f").unwrap(), [3; 1200]);
    disk.create("g").unwrap();
    let mut outcomes = BTreeSet::new();
    each_crash(&disk, usize::MAX, |disk| outcomes.extend(disk.content("f")));
    assert!(outcomes.len() > 1, "and makes nothing durable");
}

#[test]
fn each_lie_takes_effect() {
    let disk = half_synced();
    disk.set_lies(&[Lie::StaleOverwrites]);
    disk.open("f").unwrap().sync().unwrap();
    disk.crash(0);
    let content = disk.content("f").unwrap();
    assert_eq!((content.len(), content[0], content[1023], content[1199]), (1200, 1, 1, 3));

    let named = |lie: Lie| {
        let disk = SimDisk::new();
        disk.create("old").unwrap();
        disk.create("gone").unwrap();
        disk.sync_dir().unwrap();
        disk.set_lies(&[lie]);
        disk.rename("old", "new").unwrap();
        disk.remove("gone").unwrap();
        disk.sync_dir().unwrap();
        disk.crash_with(&mut |_| 0);
        disk.list().unwrap()
    };
    assert_eq!(named(Lie::OldNames), ["gone", "new", "old"]);
    assert_eq!(named(Lie::DirSync), ["gone", "old"]);
    assert_eq!(named(Lie::FileSync), ["new"]);
}

#[test]
fn a_lying_disk_loses_acknowledged_data() {
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
fn capacity_power_and_planned_failures() {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    disk.set_capacity(Some(10));
    file.write_at(&[1; 10], 0).unwrap();
    assert_eq!(file.write_at(&[7; 4], 9).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(read(file.as_ref()), [1, 1, 1, 1, 1, 1, 1, 1, 1, 7], "the part that fits is written");
    file.write_at(&[2; 10], 0).unwrap();
    disk.remove("f").unwrap();
    disk.create("g").unwrap().write_at(&[1; 10], 0).unwrap();
    disk.set_capacity(None);

    let file = disk.open("g").unwrap();
    disk.fail_nth(Operation::Write, 2, ErrorKind::Other);
    file.write_at(&[3; 4], 0).unwrap();
    file.write_at(&[4; 4], 0).unwrap_err();
    assert_eq!(read(file.as_ref())[..4], [4, 4, 3, 3], "half of it is written");
    file.write_at(&[5; 4], 0).unwrap();

    for operation in [Operation::Open, Operation::List, Operation::Len, Operation::Links] {
        disk.fail_nth(operation, 1, ErrorKind::Other);
    }
    assert!(disk.open("g").is_err() && disk.list().is_err() && file.len().is_err() && file.links().is_err());
    assert!(disk.open("g").is_ok() && disk.list().is_ok() && file.len().is_ok() && file.links().is_ok());

    disk.halt_after(1);
    file.write_at(&[6; 4], 0).unwrap();
    assert!(file.write_at(&[7; 4], 0).is_err() && file.sync().is_err() && disk.create("h").is_err());
    assert_eq!(read(file.as_ref())[..4], [6; 4]);
    disk.crash(1);
    disk.create("h").unwrap();
}
