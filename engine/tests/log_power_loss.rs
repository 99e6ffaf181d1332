//! Real power loss: a process writes through the engine to an ext4 file system, which is shut down during the work.
//! Data that never left the page cache is lost, as in a power cut. After each cut the file system is mounted again, and
//! the log is opened and compared: nothing acknowledged as synced is lost, and no batch is incomplete.
//!
//! `power` has the file system, and what it needs.
//!
//! On a disk whose sync does nothing the same work must lose data: that proves the test effective.
//!
//! A binary of its own: it starts processes all the time, and each holds the locks and mounts of its parent until it
//! executes its program.

#![expect(clippy::unwrap_used, reason = "a test says what must hold")]

#[path = "log/model/mod.rs"]
mod log_model;
mod power;

use std::io::BufRead;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::Receiver;
use engine::disk::{Disk, DiskFile, RealDisk};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogOptions};
use log_model::cases::{entry, put};
use log_model::{Change, State, batch_of, observe, small_options};
use power::{Cutter, Process, Volume, now, path, setup};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Size of the volume, in bytes.
const VOLUME_BYTES: u64 = 64 << 20;
/// The default number of cuts.
const CUTS: u64 = 5;
/// A disk that does not sync loses something within this many cuts.
const NO_SYNC_CUTS: u64 = 10;
/// The timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

// The work ------------------------------------------------------------------------------------------------------------

/// Batch number `number` of the history, as written in life `life`. Four groups grow, are overwritten and compacted;
/// one is removed and recreated; one counts.
fn batch(life: u64, number: u64) -> Vec<Change> {
    let (group, turn) = (1 + number % 4, number / 4);
    let entries = |group: u64, first: u64, count: u64| {
        let len = |index: u64| 200 + (index * 37 + number * 101) as usize % 1500;
        let entries = (first..first + count).map(|index| entry(group + 100 * life, index, len(index)));
        Change::Append { group, first, entries: entries.collect() }
    };
    let overwrites = turn % 5 == 4;
    let mut changes = vec![
        put(10, "count", &number.to_string()),
        put(group, "life", &life.to_string()),
        if overwrites { entries(group, turn * 2, 3) } else { entries(group, turn * 2 + 1, 2) },
    ];
    if turn % 3 == 2 && turn > 10 {
        changes.push(Change::Compact { group, first_kept: turn * 2 - 20 });
    }
    if number.is_multiple_of(49) {
        changes.push(Change::Remove { group: 5 });
    }
    if number.is_multiple_of(7) {
        changes.push(entries(5, number % 49 / 7 + 1, 1));
    }
    changes
}

/// Small files, so that they are sealed, purged and reused all the time.
fn options(life: u64) -> LogOptions {
    let prefill_bytes = if life.is_multiple_of(2) { 16 << 10 } else { 0 };
    LogOptions { prefill_bytes, purge_threshold: 192 << 10, ..small_options() }
}

/// A disk without fdatasync.
struct NoSyncDisk(Arc<RealDisk>);

struct NoSyncFile(Arc<dyn DiskFile>);

impl Disk for NoSyncDisk {
    fn open(&self, name: &str) -> std::io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(NoSyncFile(self.0.open(name)?)))
    }
    fn create(&self, name: &str) -> std::io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(NoSyncFile(self.0.create(name)?)))
    }
    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }
    fn list(&self) -> std::io::Result<Vec<String>> {
        self.0.list()
    }
    fn sync_dir(&self) -> std::io::Result<()> {
        self.0.sync_dir()
    }
}

impl DiskFile for NoSyncFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> std::io::Result<()> {
        self.0.write_at(data, offset)
    }
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }
    fn links(&self) -> std::io::Result<u64> {
        self.0.links()
    }
}

/// The environment variables of the writing process.
const WORK: [&str; 4] = ["CORTADO_POWER_DIR", "CORTADO_POWER_LIFE", "CORTADO_POWER_FROM", "CORTADO_POWER_NO_SYNC"];

/// The writing process: this binary, run for this test alone. Without a directory there is nothing to do.
#[test]
fn writing_process() {
    let env = WORK.map(|name| std::env::var(name).ok());
    let [Some(dir), Some(life), Some(from), Some(no_sync)] = env else { return };
    let (life, from) = (life.parse().unwrap(), from.parse().unwrap());
    let real = RealDisk::open(dir).unwrap();
    let disk: Arc<dyn Disk> = if no_sync == "1" { Arc::new(NoSyncDisk(real)) } else { real };
    let (engine, _) = LogEngine::open(disk, options(life)).unwrap();
    // A failed write alone does not poison the log: without this, the process would go on for ever after some cuts.
    let failed = Arc::new(AtomicBool::new(false));
    for number in from.. {
        let synced = number % 3 == 0;
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let has_failed = failed.clone();
        let report = move |outcome: engine::log::Result<engine::log::Lsn>| {
            if outcome.is_err() {
                has_failed.store(true, Ordering::Release);
            } else if synced {
                println!("synced {number} {}", now());
            }
        };
        if failed.load(Ordering::Acquire) {
            return;
        }
        if engine.submit_with(batch_of(&batch(life, number)), durability, Box::new(report)).is_err() {
            return;
        }
        // Bounds the number of batches in flight.
        if number % 8 == 0 && engine.write(LogBatch::new(), Durability::Buffered).is_err() {
            return;
        }
        if number % 4 == 0 {
            // Purge may fail once the power is off.
            let _ = engine.purge(Budget::default());
        }
    }
}

// The cuts ------------------------------------------------------------------------------------------------------------

/// A batch acknowledged as synced, and the time, by [`now`].
struct Acknowledged {
    number: u64,
    at: u64,
}

/// What a cut took.
#[derive(Debug)]
enum Loss {
    /// Batches that were acknowledged as synced. The log itself is sound.
    Synced { acknowledged: u64, found: u64 },
    /// Anything else: the log does not open, or shows a state that it never had.
    Other(String),
}

/// A log on a volume, and its known content.
struct Trial {
    volume: Volume,
    state: State,
    count: u64,
    no_sync: bool,
}

impl Trial {
    fn new(volume: Volume, no_sync: bool) -> Trial {
        Trial { volume, state: State::default(), count: 0, no_sync }
    }

    /// Starts the writing process. The channel carries its acknowledgements until it ends.
    fn start(&self, life: u64) -> (Process, Receiver<Acknowledged>) {
        let env = [
            path(&self.log()).to_owned(),
            life.to_string(),
            (self.count + 1).to_string(),
            u8::from(self.no_sync).to_string(),
        ];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "writing_process", "--nocapture"]).envs(WORK.iter().zip(&env));
        let mut process = Process::spawn(&mut command);
        let (_, output) = process.pipes();
        let (sender, receiver) = crossbeam_channel::bounded(64);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((number, at)) = line.strip_prefix("synced ").and_then(|line| line.split_once(' ')) {
                    let known = Acknowledged { number: number.parse().unwrap(), at: at.parse().unwrap() };
                    if sender.send(known).is_err() {
                        return;
                    }
                }
            }
        });
        (process, receiver)
    }

    /// One life: work, cut, check. The error says what was lost.
    fn cut(&mut self, life: u64, acknowledgements: u64) -> Result<(), Loss> {
        let cutter = Cutter::new(&self.volume);
        let (process, receiver) = self.start(life);
        let mut synced = self.count;
        for _ in 0..acknowledgements {
            synced = receiver.recv_timeout(TIMEOUT).unwrap().number;
        }
        let cut_at = cutter.cut();
        // Acknowledgements from before the cut may be read after it. Later ones do not count: the sync in progress when
        // ext4 is shut down may succeed with nothing on the disk, for any program.
        while let Ok(later) = receiver.recv_timeout(TIMEOUT) {
            synced = if later.at < cut_at { later.number } else { synced };
        }
        drop(process);
        self.volume.unmount().unwrap();
        self.volume.mount().unwrap();
        self.check(life, synced)
    }

    fn log(&self) -> PathBuf {
        self.volume.mount.join("log")
    }

    /// Opens the log and compares it with the written batches.
    fn check(&mut self, life: u64, synced: u64) -> Result<(), Loss> {
        let disk = RealDisk::open(self.log()).unwrap();
        let (engine, ..) =
            LogEngine::open_driven(disk, options(life)).map_err(|error| Loss::Other(format!("open: {error}")))?;
        let seen = observe(&engine).map_err(|error| Loss::Other(format!("read: {error}")))?;
        let count = engine.get(GroupId(10), b"count").unwrap();
        let count = count.map_or(0, |count| String::from_utf8_lossy(&count).parse().unwrap());
        if count < synced {
            return Err(Loss::Synced { acknowledged: synced, found: count });
        }
        for number in self.count + 1..=count {
            self.state = self.state.after(&batch(life, number)).unwrap();
        }
        if self.state.seen() != seen {
            return Err(Loss::Other(format!("not what {count} batches leave")));
        }
        self.count = count;
        Ok(())
    }

    /// The numbers of the log files, and whether one of them reuses a spare.
    fn files(&self) -> (Vec<u64>, bool) {
        let mut recycled = false;
        let mut numbers = Vec::new();
        for file in std::fs::read_dir(self.log()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                numbers.push(path.file_stem().unwrap().to_str().unwrap().parse().unwrap());
                recycled |= std::fs::read(&path).unwrap()[68] & 1 == 1;
            }
        }
        numbers.sort_unstable();
        (numbers, recycled)
    }
}

#[test]
fn nothing_synced_is_lost_when_the_power_is_cut() {
    let Some((cuts, volume)) = setup(CUTS, VOLUME_BYTES) else { return };
    let mut trial = Trial::new(volume, false);
    let mut rng = StdRng::seed_from_u64(1);
    let (mut recycled, mut dropped) = (false, 0);
    for life in 1..=cuts {
        let acknowledgements = rng.random_range(1..200);
        trial.cut(life, acknowledgements).unwrap_or_else(|what| panic!("cut {life}: {what:?}"));
        let (files, reused) = trial.files();
        recycled |= reused;
        dropped = files[0] - 1;
    }
    assert!(recycled && dropped > 2, "files must be sealed, purged and reused: {recycled}, {dropped}");
    println!("{cuts} cuts, {} batches, {dropped} files purged", trial.count);
}

/// Each log lives once with syncs and once without, up to its first acknowledgements. Some logs do not open afterwards,
/// because the files in use are not what the names say. At least one opens and lacks batches that it acknowledged as
/// synced: that is the loss which the other test would find.
#[test]
fn a_disk_without_fdatasync_is_detected() {
    let (mut lost, mut others) = (None, Vec::new());
    for life in 1..=NO_SYNC_CUTS {
        let Some((_, volume)) = setup(CUTS, VOLUME_BYTES) else { return };
        let mut trial = Trial::new(volume, false);
        trial.cut(life, 1 + life * 3).unwrap_or_else(|what| panic!("with syncs, cut {life}: {what:?}"));
        trial.no_sync = true;
        match trial.cut(life + 1, 2) {
            Err(Loss::Synced { acknowledged, found }) => {
                lost = Some((acknowledged, found));
                break;
            }
            Err(Loss::Other(what)) => others.push(what),
            Ok(()) => {}
        }
    }
    let (acknowledged, found) = lost.unwrap_or_else(|| panic!("no batch was lost without a sync; {others:?}"));
    println!("lost: batch {acknowledged} was acknowledged as synced, {found} are there; before that {others:?}");
}
