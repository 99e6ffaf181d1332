//! The file that is prepared while the active one fills: it has its zeros and the space for its seal before it takes
//! groups, whatever it is made from, and one sync makes them durable.

use engine::disk::{Disk, Operation, SimDisk};
use engine::log::{Durability, LogOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::cases::append;
use crate::model::{Driver, file, small_options};

const FILE: u64 = 256 << 10;
/// Groups of the log, with one entry of a few hundred bytes in each commit group.
const GROUPS: usize = 40;

fn options(spare_files: usize) -> LogOptions {
    LogOptions { file_bytes: FILE, compress_from: usize::MAX, spare_files, ..small_options() }
}

fn len(disk: &SimDisk, seq: u64) -> Option<u64> {
    Disk::open(disk, &file(seq)).ok().map(|file| file.len().unwrap())
}

/// Whether the file has a header, and so takes groups.
fn is_in_use(disk: &SimDisk, seq: u64) -> bool {
    let mut start = [0; 8];
    Disk::open(disk, &file(seq)).is_ok_and(|file| file.read_at(&mut start, 0).is_ok()) && start != [0; 8]
}

/// The length of all log files, the prepared one included, without spares.
fn disk_bytes(disk: &SimDisk) -> u64 {
    (1..10).filter_map(|seq| len(disk, seq)).sum()
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Life {
    /// Syncs while it was prepared.
    syncs: u64,
    /// Its length when it got its header, and after its seal.
    prepared: u64,
    sealed: u64,
    /// Commit groups that changed its length.
    grown: u64,
}

/// Writes small synced commit groups until file 4 is in use. The files are tended after each, as by the thread of the
/// log. Returns the lives of files 2 and 3.
fn lives(driver: &mut Driver) -> [Life; 2] {
    let mut rng = StdRng::seed_from_u64(1);
    let mut next = [1; GROUPS];
    let mut lives = [Life::default(); 5];
    let (mut active, mut tended) = (1, 0);
    while active < 4 {
        let group = rng.random_range(0..GROUPS);
        let before = [active, active + 1].map(|seq| len(&driver.disk, seq));
        driver.submit(vec![append(group as u64, next[group], &[rng.random_range(100..600)])], Durability::Synced);
        next[group] += 1;
        driver.turn();
        let at = active as usize;
        if is_in_use(&driver.disk, active + 1) {
            lives[at].sealed = len(&driver.disk, active).unwrap();
            active += 1;
            lives[active as usize] = Life { syncs: tended, prepared: before[1].unwrap(), ..Life::default() };
            tended = 0;
        } else {
            lives[at].grown += u64::from(len(&driver.disk, active) != before[0]);
        }
        let syncs = driver.disk.calls(Operation::Sync);
        assert_eq!(driver.engine.stats().disk_bytes, disk_bytes(&driver.disk), "before the files are tended");
        driver.writer.tend_files();
        assert_eq!(driver.engine.stats().disk_bytes, disk_bytes(&driver.disk), "with the prepared file");
        tended += driver.disk.calls(Operation::Sync) - syncs;
    }
    driver.check_live();
    driver.crash(1).unwrap();
    [lives[2], lives[3]]
}

/// The file has its length, seal included, before its first group. No commit group waits for the metadata of a file
/// that grew.
fn assert_complete(life: Life, what: &str) {
    assert_eq!((life.grown, life.sealed), (0, life.prepared), "{what}: {life:?}");
    assert!(life.prepared > FILE, "{what}: {life:?}");
}

#[test]
fn a_new_file_has_its_space_before_it_takes_groups() {
    for life in lives(&mut Driver::new(options(0))) {
        assert_complete(life, "new");
        assert_eq!(life.syncs, 1, "{life:?}");
    }
}

/// A spare may be shorter than a file with its seal: the reserve has exactly the size of a file.
#[test]
fn a_reused_file_has_its_space_before_it_takes_groups() {
    // The empty page at the beginning is synced before the spare gets its name.
    for (bytes, syncs) in [(FILE / 2, 2), (FILE, 2), (FILE + FILE / 2, 1)] {
        let mut driver = Driver::new(options(4));
        for number in 1..=4 {
            driver.disk.set_content(&format!("{number:016}.spare"), vec![0xa5; bytes as usize]);
        }
        driver.reopen().unwrap();
        assert_eq!(driver.engine.stats().spare_files, 4);
        for life in lives(&mut driver) {
            assert_complete(life, &format!("{bytes} bytes"));
            assert_eq!(life.syncs, syncs, "{bytes} bytes: {life:?}");
        }
        assert!(driver.engine.stats().spare_files < 3, "the spares are used");
    }
}
