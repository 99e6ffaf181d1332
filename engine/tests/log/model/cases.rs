//! Small histories, one for each operation of the log with all its steps: append, seal and rotate, recycle, purge,
//! stop.
//!
//! A case prepares a log and then runs its steps; a test interrupts the steps anywhere. Written groups stay within a
//! few sectors, so that every crash between two syncs can be enumerated. Each new operation of the log gets a case
//! here, and with it every crash, failing call and planted bug of the tests.

use bytes::Bytes;
use engine::disk::Disk;
use engine::log::{Durability, LogOptions, PurgeOutcome};

use super::{Change, Driver, small_options};

/// A small history.
pub struct Case {
    pub name: &'static str,
    pub options: LogOptions,
    /// Makes the log for the steps. All of it is durable.
    pub prepare: fn(&mut Driver),
    pub steps: &'static [fn(&mut Driver)],
    /// Whether one commit group is written while the previous one is in flight.
    pub overlapping: bool,
    /// Whether the steps did what the case is for.
    pub did: fn(&Driver) -> bool,
}

impl Case {
    /// The log before the steps.
    pub fn prepared(&self) -> Driver {
        let mut driver = Driver::new(self.options.clone());
        (self.prepare)(&mut driver);
        driver
    }

    /// Runs the steps.
    pub fn run(&self, driver: &mut Driver) {
        driver.overlapping = self.overlapping;
        self.steps.iter().for_each(|step| step(driver));
    }

    /// The number of disk changes in the undisturbed steps. Also checks that the steps did what the case is for.
    pub fn changes(&self, prepared: &Driver) -> u64 {
        let mut driver = prepared.fork();
        let before = driver.disk.changes();
        self.run(&mut driver);
        driver.check_live();
        assert!((self.did)(&driver), "{}: {:?}", self.name, names(&driver));
        driver.disk.changes() - before
    }
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let plain = options(512);
    let case = |name, options: &LogOptions, prepare, steps, did| {
        let options = options.clone();
        Case { name, options, prepare, steps, overlapping: false, did }
    };
    let overlapping = |case| Case { overlapping: true, ..case };
    let packed = options(8);
    let paged = options(4096);
    let zeros = LogOptions { prefill_bytes: 16 << 10, ..options(512) };
    let zeros_and_spares = |count| LogOptions { spare_files: count, ..zeros.clone() };
    let spares = |count| LogOptions { spare_files: count, ..options(512) };
    let recycling = |align| LogOptions { spare_files: 3, ..options(align) };
    vec![
        case("append, packed", &packed, nothing, APPENDS, appended),
        case("append into new space", &plain, nothing, APPENDS, appended),
        case("append into zeros", &zeros, nothing, APPENDS, appended),
        case("append, by pages", &paged, nothing, APPENDS, appended),
        overlapping(case("append, overlapping", &packed, nothing, APPENDS_AT_ONCE, appended)),
        overlapping(case("rotate, overlapping", &zeros, nearly_full, ROTATION_AT_ONCE, |driver| has(driver, 2))),
        overlapping(case("purge, overlapping", &spares(1), pinned_file, PURGES_BEHIND, |driver| {
            !has(driver, 1) && !has(driver, 2)
        })),
        case("rotate", &plain, nearly_full, ROTATION, |driver| has(driver, 2)),
        case("rotate with zeros", &zeros, nearly_full, ROTATION, |driver| has(driver, 2)),
        case("recycle, packed", &recycling(8), spares_of_old_files, ROTATION, |driver| has(driver, 7)),
        case("recycle", &recycling(512), spares_of_old_files, ROTATION, |driver| has(driver, 7)),
        case("recycle, by pages", &recycling(4096), spares_of_old_files, ROTATION, |driver| has(driver, 7)),
        case("rotate, sealed late", &zeros, nearly_full_for_two, ROTATION_SEALED_LATE, |driver| has(driver, 2)),
        case("recycle, sealed late", &recycling(512), spares_of_old_files, ROTATION_SEALED_LATE, |driver| {
            has(driver, 7)
        }),
        case("seal before a third file", &zeros, two_unsealed, ROTATION, |driver| has(driver, 3)),
        case("purge", &spares(0), old_files, PURGES, |driver| !has(driver, 1) && !has(driver, 2)),
        case("purge, keeping spares", &spares(2), old_files, PURGES, |driver| {
            !has(driver, 1) && spare_count(driver) == 2
        }),
        case("purge a file with a gap after it", &spares(1), file_and_gap, PURGES, |driver| {
            !has(driver, 1) && !has(driver, 3)
        }),
        case("purge behind batches", &spares(1), pinned_file, PURGES_BEHIND, |driver| {
            !has(driver, 1) && !has(driver, 2)
        }),
        case("purge on a full disk", &zeros_and_spares(1), reserved_and_nearly_full, FULL_DISK, reserve_was_spent),
        case("refit on a full disk", &zeros_and_spares(1), reserved_and_empty, FULL_DISK, reserve_was_spent),
        case("make a reserve", &LogOptions { file_bytes: 640 << 10, ..spares(1) }, nothing, RESERVE, |driver| {
            spare_count(driver) == 1
        }),
        case("stop", &plain, nothing, STOP, appended),
    ]
}

/// The case with this name.
pub fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

/// No cache: reads go to the disk. No compression: bytes keep their offsets.
fn options(align_bytes: u64) -> LogOptions {
    LogOptions {
        align_bytes,
        prefill_bytes: 0,
        compress_from: usize::MAX,
        cache_bytes: 0,
        spare_files: 0,
        ..small_options()
    }
}

/// Submits a batch and runs the writer.
pub fn write(driver: &mut Driver, changes: Vec<Change>, durability: Durability) {
    driver.submit(changes, durability);
    driver.turn();
}

/// Bytes that depend only on group, index and length, and do not repeat.
pub fn entry(group: u64, index: u64, len: usize) -> Bytes {
    let mut state = (group << 40) + (index << 20) + len as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

pub fn append(group: u64, first: u64, lens: &[usize]) -> Change {
    let entries = (first..).zip(lens).map(|(index, len)| entry(group, index, *len)).collect();
    Change::Append { group, first, entries }
}

pub fn put(group: u64, key: &str, value: &str) -> Change {
    Change::Put { group, key: key.as_bytes().to_vec(), value: value.as_bytes().to_vec() }
}

fn delete(group: u64, key: &str) -> Change {
    Change::Delete { group, key: key.as_bytes().to_vec() }
}

fn compact(group: u64, first_kept: u64) -> Change {
    Change::Compact { group, first_kept }
}

fn names(driver: &Driver) -> Vec<String> {
    Disk::list(driver.disk.as_ref()).unwrap_or_default()
}

fn has(driver: &Driver, seq: u64) -> bool {
    names(driver).contains(&format!("{seq:016}.log"))
}

fn spare_count(driver: &Driver) -> usize {
    names(driver).iter().filter(|name| name.ends_with(".spare")).count()
}

fn appended(driver: &Driver) -> bool {
    driver.history.len() > 1
}

/// The log continues in the former first spare, and the second spare is a former log file.
fn reserve_was_spent(driver: &Driver) -> bool {
    has(driver, 2) && !has(driver, 1) && names(driver).contains(&"0000000000000002.spare".to_owned())
}

fn nothing(_: &mut Driver) {}

use Durability::{Buffered, Synced};

/// Group 9 fills the rest of a file, and has `count` entries then.
fn fill(driver: &mut Driver, count: u64) {
    write(driver, vec![append(9, count, &[60_000])], Synced);
}

/// A file with room for one more small commit group.
fn nearly_full(driver: &mut Driver) {
    write(driver, vec![append(1, 1, &[50]), put(1, "k", "old")], Synced);
    fill(driver, 1);
}

/// A file with room for one more commit group, but not for the one after it.
fn nearly_full_for_two(driver: &mut Driver) {
    write(driver, vec![append(1, 1, &[50]), put(1, "k", "old"), append(9, 1, &[59_300])], Synced);
}

/// A full file that is not sealed, and a nearly full one after it.
fn two_unsealed(driver: &mut Driver) {
    nearly_full(driver);
    for changes in [vec![append(1, 2, &[4000])], vec![append(9, 2, &[54_700])], vec![put(1, "k", "old")]] {
        driver.submit(changes, Synced);
        driver.lag();
    }
    // Publishes the last group, and does not seal.
    driver.submit(Vec::new(), Synced);
    driver.lag();
    assert!(has(driver, 2) && !has(driver, 3), "{:?}", names(driver));
    driver.reopen().unwrap();
}

/// Purges until nothing is left to do.
fn purge_all(driver: &mut Driver) {
    for _ in 0..60 {
        let report = driver.purge().unwrap();
        if report.outcome == PurgeOutcome::Idle && report.freed == 0 {
            return;
        }
    }
    panic!("purge does not finish");
}

/// A sealed file with little live data, and an active one.
fn sealed_and_active(driver: &mut Driver) {
    nearly_full(driver);
    write(driver, vec![append(1, 2, &[3000])], Synced);
}

/// A reserve, and a file with room only for its seal.
fn reserved_and_nearly_full(driver: &mut Driver) {
    purge_all(driver);
    nearly_full(driver);
    assert!(spare_count(driver) == 1 && !has(driver, 2), "{:?}", names(driver));
}

/// A reserve, and an active file with only a header.
fn reserved_and_empty(driver: &mut Driver) {
    purge_all(driver);
    nearly_full(driver);
    driver.disk.set_capacity(Some(driver.disk.used() + 4096 + 200));
    write(driver, vec![append(9, 2, &[30_000])], Synced);
    driver.disk.set_capacity(None);
    assert!(spare_count(driver) == 1 && has(driver, 2), "{:?}", names(driver));
}

/// Spares full of old commit groups, and a nearly full file 6.
fn spares_of_old_files(driver: &mut Driver) {
    let mut last = 0;
    while !has(driver, 4) {
        last += 1;
        write(driver, vec![append(9, last, &[300])], Synced);
    }
    write(driver, vec![compact(9, last + 1)], Synced);
    purge_all(driver);
    assert_eq!(spare_count(driver), 3, "{:?}", names(driver));
    while !has(driver, 5) {
        last += 1;
        write(driver, vec![append(9, last, &[9000])], Synced);
    }
    write(driver, vec![compact(9, last + 1), append(1, 1, &[50]), put(1, "k", "old")], Synced);
    purge_all(driver);
    write(driver, vec![append(9, last + 1, &[60_900])], Synced);
    assert!(has(driver, 6) && !has(driver, 7) && spare_count(driver) > 1, "{:?}", names(driver));
}

/// Three files: the first has little live data, the second overrides some of its records.
fn old_files(driver: &mut Driver) {
    write(
        driver,
        vec![append(1, 1, &[40, 50, 60]), put(1, "k", "old"), append(2, 1, &[30]), put(3, "k", "live")],
        Synced,
    );
    fill(driver, 1);
    fill(driver, 2);
    write(driver, vec![delete(1, "k"), compact(1, 2), Change::Remove { group: 2 }, append(4, 7, &[20])], Synced);
    fill(driver, 3);
    write(driver, vec![compact(9, 4), append(5, 1, &[10])], Synced);
}

/// The same, but most of the first file is live, and `last` follows.
fn pinned_file_and(driver: &mut Driver, last: Vec<Change>) {
    let old = vec![append(1, 1, &[40, 50, 60]), put(1, "k", "old"), put(3, "k", "old"), append(8, 1, &[60_000])];
    write(driver, old, Synced);
    fill(driver, 1);
    write(driver, vec![delete(1, "k"), append(1, 2, &[20]), append(4, 7, &[20]), Change::Remove { group: 3 }], Synced);
    fill(driver, 2);
    write(driver, [vec![compact(9, 3), append(1, 2, &[33])], last].concat(), Synced);
}

fn pinned_file(driver: &mut Driver) {
    pinned_file_and(driver, Vec::new());
}

/// The same as earlier versions left it, which dropped files in any order: file 2 is not part of the log. A later file
/// repeats what file 2 overrode.
fn file_and_gap(driver: &mut Driver) {
    pinned_file_and(driver, vec![delete(1, "k"), append(4, 7, &[20]), Change::Remove { group: 3 }]);
    fill(driver, 3);
    driver.stop();
    // The newest file's header lists the files of the log as ranges: docs/formats.md.
    const LEN: usize = 12;
    const RANGES: usize = 64;
    const FIRST_RANGE: usize = 72;
    let name = "0000000000000004.log";
    let mut content = driver.disk.content(name).unwrap();
    let number = |content: &[u8], at: usize| u32::from_le_bytes(content[at..at + 4].try_into().unwrap());
    assert_eq!(number(&content, RANGES), 1, "files 1 to 3");
    let len = number(&content, LEN) as usize + 16;
    let ranges: Vec<u8> = [1u64, 1, 3, 3].into_iter().flat_map(u64::to_le_bytes).collect();
    let rest = content[FIRST_RANGE + 16..len - 16 - 4].to_vec();
    content[LEN..LEN + 4].copy_from_slice(&(len as u32).to_le_bytes());
    content[RANGES..RANGES + 4].copy_from_slice(&2u32.to_le_bytes());
    content[FIRST_RANGE..len - 4].copy_from_slice(&[ranges, rest].concat());
    let identity = driver.options.identity.unwrap();
    let seed = [&identity.to_le_bytes()[..], &4u64.to_le_bytes(), &0u64.to_le_bytes(), &content[..len - 4]].concat();
    content[len - 4..len].copy_from_slice(&crc32fast::hash(&seed).to_le_bytes());
    driver.disk.set_content(name, content);
    driver.reopen().unwrap();
    assert!(has(driver, 1) && !has(driver, 2) && has(driver, 3), "{:?}", names(driver));
}

/// Two batches between syncs, with overwritten entries, a compaction, and a group that is removed and recreated.
const APPENDS: &[fn(&mut Driver)] = &[
    |driver| write(driver, vec![append(1, 1, &[120, 90]), put(1, "k", "one")], Buffered),
    |driver| write(driver, vec![append(1, 2, &[200]), append(2, 5, &[50])], Buffered),
    |driver| write(driver, vec![compact(1, 2), delete(1, "k")], Synced),
    |driver| write(driver, vec![append(2, 6, &[300, 10]), Change::Remove { group: 1 }], Buffered),
    |driver| write(driver, vec![append(1, 1, &[77]), put(1, "k", "two")], Buffered),
    |driver| write(driver, vec![compact(2, 7)], Synced),
];

/// All are queued before the first is written.
const APPENDS_AT_ONCE: &[fn(&mut Driver)] = &[
    |driver| driver.submit(vec![append(1, 1, &[120]), put(1, "k", "one")], Synced),
    |driver| driver.submit(vec![append(1, 2, &[20]), append(2, 5, &[450])], Buffered),
    |driver| driver.submit(vec![append(1, 2, &[90, 10]), Change::Remove { group: 2 }], Synced),
    |driver| driver.submit(vec![compact(1, 2), delete(1, "k")], Synced),
    |driver| write(driver, vec![append(2, 1, &[30])], Buffered),
];

/// The file is full after the first or second batch.
const ROTATION_AT_ONCE: &[fn(&mut Driver)] = &[
    |driver| driver.submit(vec![append(1, 2, &[150]), put(1, "k", "new")], Synced),
    |driver| driver.submit(vec![append(1, 3, &[160]), delete(1, "k")], Buffered),
    |driver| driver.submit(vec![append(1, 3, &[170, 20]), put(2, "k", "new")], Synced),
    |driver| write(driver, vec![append(1, 5, &[180]), compact(1, 2)], Synced),
];

/// The file is full after the first batch; the next file is used at once.
const ROTATION: &[fn(&mut Driver)] = &[
    |driver| write(driver, vec![append(1, 2, &[150]), put(1, "k", "new")], Buffered),
    |driver| write(driver, vec![append(1, 2, &[160]), delete(1, "k")], Buffered),
    |driver| write(driver, vec![append(1, 3, &[170, 20]), put(2, "k", "new")], Synced),
    |driver| write(driver, vec![append(1, 4, &[180]), compact(1, 2)], Buffered),
    |driver| write(driver, vec![put(2, "k", "newest")], Synced),
];

fn write_late(driver: &mut Driver, changes: Vec<Change>, durability: Durability) {
    driver.submit(changes, durability);
    driver.lag();
}

/// The next file is prepared ahead. It takes synced groups before the full file is sealed, and one before the last
/// group of the full file is published.
const ROTATION_SEALED_LATE: &[fn(&mut Driver)] = &[
    |driver| write_late(driver, vec![append(1, 2, &[150]), put(1, "k", "new")], Buffered),
    |driver| driver.writer.tend_files(),
    |driver| write_late(driver, vec![append(1, 2, &[160]), delete(1, "k")], Buffered),
    |driver| write_late(driver, vec![append(1, 3, &[170, 20]), put(2, "k", "new")], Synced),
    |driver| write_late(driver, vec![append(1, 4, &[180]), compact(1, 2)], Buffered),
    |driver| driver.writer.tend_files(),
    |driver| write_late(driver, vec![append(1, 5, &[30])], Synced),
    |driver| write(driver, vec![put(2, "k", "newest")], Synced),
];

fn purge(driver: &mut Driver) {
    // Errors of purge come from the disk; the tests check their consequences.
    let _ = driver.purge();
}

/// Purge until it is done, with a batch in between that changes moved data.
const PURGES: &[fn(&mut Driver)] = &[
    purge,
    purge,
    |driver| write(driver, vec![append(1, 4, &[25]), put(3, "k", "newer")], Buffered),
    purge,
    purge,
    purge,
    |driver| write(driver, vec![compact(1, 3), append(2, 1, &[15])], Synced),
    purge,
    purge,
    purge,
    purge,
    purge,
];

/// Queued batches change what purge looks at: live records are overwritten, and a removed group is recreated.
const PURGES_BEHIND: &[fn(&mut Driver)] = &[
    |driver| driver.submit(vec![put(3, "n", "new"), append(1, 1, &[35, 36])], Buffered),
    purge,
    purge,
    |driver| driver.submit(vec![append(3, 4, &[45]), append(4, 7, &[46])], Synced),
    purge,
    purge,
    purge,
    purge,
    purge,
    purge,
    purge,
];

/// Others fill the disk: truncations and the records of purge are written all the same, and old files are removed. Once
/// there is space, the log continues.
const FULL_DISK: &[fn(&mut Driver)] = &[
    |driver| driver.disk.set_capacity(Some(driver.disk.used())),
    |driver| write(driver, vec![append(1, 2, &[20_000])], Synced),
    |driver| write(driver, vec![compact(9, 2), compact(1, 2)], Synced),
    purge,
    purge,
    |driver| driver.disk.set_capacity(None),
    |driver| write(driver, vec![append(2, 1, &[80]), put(2, "k", "new")], Synced),
    purge,
    purge,
];

/// The reserve is made in steps, with a batch in between.
const RESERVE: &[fn(&mut Driver)] =
    &[purge, |driver| write(driver, vec![append(1, 1, &[60]), put(1, "k", "one")], Synced), purge, purge, purge];

const STOP: &[fn(&mut Driver)] =
    &[|driver| write(driver, vec![append(1, 1, &[900]), put(1, "k", "one")], Buffered), Driver::stop];
