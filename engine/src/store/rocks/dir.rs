//! The directory of a store: its lock and its format version.
//!
//! ```text
//! FORMAT    "cortado-store 4\n": the version of everything in the directory
//! LOCK      empty; locked while a process has the store open
//! db/       the files of RocksDB
//! ingest/   files to be ingested into RocksDB; emptied on open
//! ```

use std::cmp::Ordering;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::store::{Result, StoreError};

/// The subfolder of RocksDB.
pub(super) const DB: &str = "db";
/// The subfolder of files to be ingested.
pub(super) const INGEST: &str = "ingest";

const FORMAT: &str = "FORMAT";
const FORMAT_TEMPORARY: &str = "FORMAT.tmp";
const FORMAT_PREFIX: &str = "cortado-store ";
/// The version of everything in the directory, also of the records that kv writes. 2: write records of version 2. 3:
/// lock records of version 2. 4: shared locks.
const FORMAT_VERSION: u32 = 4;
const LOCK: &str = "LOCK";

/// The lock on the directory of a store. Released when dropped.
pub(super) struct DirLock(#[expect(dead_code, reason = "held for the lock on it")] File);

/// Prepares `dir` for opening: checks its format, locks it, removes the leftovers of a crash.
pub(super) fn prepare(dir: &Path) -> Result<DirLock> {
    // Before any change: the directory of another release stays as it is.
    read_format(dir)?;
    fs::create_dir_all(dir)?;
    let lock = lock(dir)?;
    // Again, under the lock: another process may have created the store since.
    if read_format(dir)?.is_none() {
        if dir.join(DB).exists() {
            return Err(StoreError::Corrupt(format!("{} has data but no {FORMAT} file", dir.display())));
        }
        write_format(dir)?;
    }
    let ingest = dir.join(INGEST);
    if ingest.exists() {
        fs::remove_dir_all(&ingest)?;
    }
    fs::create_dir(&ingest)?;
    Ok(lock)
}

fn lock(dir: &Path) -> Result<DirLock> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join(LOCK))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(DirLock(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Locked { dir: dir.to_owned() }),
        Err(error) => Err(StoreError::Io(error.into())),
    }
}

/// Whether this release can open the store in `dir`, if there is one. Changes nothing. Called before the Raft log
/// beside it is opened, which may be of another release as well.
pub fn check_format(dir: &Path) -> Result<()> {
    read_format(dir).map(drop)
}

/// The format version of the directory, if it has one. Fails if this release cannot read it.
fn read_format(dir: &Path) -> Result<Option<u32>> {
    let text = match fs::read(dir.join(FORMAT)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.strip_prefix(FORMAT_PREFIX)?.strip_suffix('\n')?.parse::<u32>().ok())
        .filter(|found| *found >= 1)
        .ok_or_else(|| StoreError::Corrupt(format!("{} is not a format marker", dir.join(FORMAT).display())))?;
    let (dir, supported) = (dir.to_owned(), FORMAT_VERSION);
    match found.cmp(&FORMAT_VERSION) {
        Ordering::Equal => Ok(Some(found)),
        Ordering::Greater => Err(StoreError::NewerFormat { dir, found, supported }),
        Ordering::Less => Err(StoreError::OlderFormat { dir, found, supported }),
    }
}

/// Writes the format marker atomically.
fn write_format(dir: &Path) -> Result<()> {
    let temporary = dir.join(FORMAT_TEMPORARY);
    let mut file = File::create(&temporary)?;
    file.write_all(format!("{FORMAT_PREFIX}{FORMAT_VERSION}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(FORMAT))?;
    File::open(dir)?.sync_all()?;
    Ok(())
}
