//! The directory of a store: who may use it, and which format it has.
//!
//! ```text
//! FORMAT    "cortado-store 1\n": the version of everything in the directory
//! LOCK      empty; locked as long as a process has the store open
//! db/       RocksDB's own files
//! ingest/   files on their way into RocksDB; emptied on open
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::store::{Result, StoreError};

/// RocksDB's subfolder.
pub(super) const DB: &str = "db";
/// The subfolder of files to be ingested.
pub(super) const INGEST: &str = "ingest";

const FORMAT: &str = "FORMAT";
const FORMAT_TEMPORARY: &str = "FORMAT.tmp";
const FORMAT_PREFIX: &str = "cortado-store ";
const FORMAT_VERSION: u32 = 1;
const LOCK: &str = "LOCK";

/// The lock on a store's directory; given up when dropped.
pub(super) struct DirLock(#[expect(dead_code, reason = "held for the lock on it")] File);

/// Makes `dir` ready to be opened: checks its format, locks it, cleans what a crash left.
pub(super) fn prepare(dir: &Path) -> Result<DirLock> {
    // Before anything is created or changed: a newer release's directory stays as it is.
    read_format(dir)?;
    fs::create_dir_all(dir)?;
    let lock = lock(dir)?;
    // Again, under the lock: the first look may have come before another process created the store.
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

/// The format of the directory, if it has one that this release can read.
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
    if found > FORMAT_VERSION {
        return Err(StoreError::NewerFormat { dir: dir.to_owned(), found, supported: FORMAT_VERSION });
    }
    Ok(Some(found))
}

/// Writes the marker so that it is there whole or not at all.
fn write_format(dir: &Path) -> Result<()> {
    let temporary = dir.join(FORMAT_TEMPORARY);
    let mut file = File::create(&temporary)?;
    file.write_all(format!("{FORMAT_PREFIX}{FORMAT_VERSION}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(FORMAT))?;
    File::open(dir)?.sync_all()?;
    Ok(())
}
