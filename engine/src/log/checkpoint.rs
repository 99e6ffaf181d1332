//! Checkpoints: a second log, in another directory, that holds what this one held when it was asked for.
//!
//! Steps, each of which may be the last one before a crash:
//! 1. The directory is begun beside its place, under another name ([`Disk::begin_copy`]).
//! 2. The writer says where the log stands ([`Standing`]): a barrier in its queue, so everything acknowledged before is below,
//!    and all of it is synced. It goes on at once; what follows needs nothing of it.
//! 3. Sealed files are linked: they never change. The active file is copied up to where it stood, which does not change
//!    either, and the copy ends with a group that vouches for all before it, as after a clean stop. It is synced.
//! 4. The names are synced, and the directory gets its name. Before, there is no checkpoint; now it is complete.
//!
//! A linked file must never be overwritten. Purge makes spares only of files that nobody holds and that have no second name
//! (`spare.rs`); from step 2 to the end the checkpoint holds all of them. One that purge deletes in between is copied from
//! the handle.
//!
//! Whatever fails here fails the checkpoint alone: only the sync of step 2 can poison the log.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use crate::disk::{Disk, DiskCopy, DiskFile, is_full};

use super::error::{LogError, Result};
use super::file::LogFile;
use super::stretch::in_pieces;
use super::writer::Work;
use super::{Lsn, OnDone};

/// Where the log stands: everything up to here is synced, and stays as it is.
pub(crate) struct Standing {
    /// Position of the last group.
    pub(crate) lsn: u64,
    pub(crate) active: Arc<LogFile>,
    /// Where the next group goes in it.
    pub(crate) end: u64,
    /// The group that would go there if the log stopped now.
    pub(crate) mark: Vec<u8>,
    /// The older files of the log.
    pub(crate) sealed: Vec<Arc<LogFile>>,
}

/// A checkpoint that waits for the writer's turn. Dropped before [`Checkpoint::finish`] it leaves nothing behind.
#[must_use = "nothing is copied before `finish`"]
pub struct Checkpoint {
    copy: Box<dyn DiskCopy>,
    standing: Receiver<Result<Standing>>,
}

/// What a checkpoint consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The position up to which it holds the log.
    pub lsn: Lsn,
    /// Files that it shares with the log: they take no space as long as both have them.
    pub linked_files: usize,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

impl Checkpoint {
    /// Begins a checkpoint of the log on `disk` at `dir`. What is to be queued comes with it.
    pub(crate) fn begin(disk: &dyn Disk, dir: &Path) -> Result<(Checkpoint, Work, OnDone)> {
        let copy = disk.begin_copy(dir).map_err(failure)?;
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let reply: Sender<Result<Standing>> = sender.clone();
        let done: OnDone = Box::new(move |outcome| {
            if let Err(error) = outcome {
                // Nobody may be waiting any more, or the standing may have been told: there is one answer.
                drop(sender.try_send(Err(error)));
            }
        });
        Ok((Checkpoint { copy, standing: receiver }, Work::Stand(reply), done))
    }

    /// Waits until the writer has had its turn, and makes the checkpoint, on this thread. When it returns, the checkpoint is
    /// durable. `NotEmpty`: something else took its place; `NoSpace`: the disk is full, and nothing is left of it.
    pub fn finish(mut self) -> Result<CheckpointReport> {
        let standing = self.standing.recv().unwrap_or(Err(LogError::Closed))?;
        let mut report = CheckpointReport { lsn: Lsn(standing.lsn), linked_files: 0, copied_bytes: 0 };
        for file in &standing.sealed {
            match self.copy.link(&file.name) {
                Ok(()) => report.linked_files += 1,
                Err(error) if needs_copy(&error) => {
                    report.copied_bytes += self.copy_file(file, file.len(), &[])?;
                }
                Err(error) => return Err(failure(error)),
            }
        }
        report.copied_bytes += self.copy_file(&standing.active, standing.end, &standing.mark)?;
        self.copy.publish().map_err(failure)?;
        Ok(report)
    }

    /// Copies `len` bytes of `file`, followed by `mark`; returns how many bytes that is, all of them synced.
    fn copy_file(&self, file: &LogFile, len: u64, mark: &[u8]) -> Result<u64> {
        let target: Arc<dyn DiskFile> = self.copy.create(&file.name).map_err(failure)?;
        // The padding of the last group may be missing: then the file ends before it.
        let there = len.min(file.len());
        in_pieces(0, there, |piece, at| {
            file.read(piece, at)?;
            target.write_at(piece, at).map_err(failure)
        })?;
        target.write_at(mark, len).map_err(failure)?;
        target.sync().map_err(failure)?;
        Ok(len + mark.len() as u64)
    }
}

/// Whether a file that cannot be linked can be copied all the same: purge deleted it, or the directory is on another file system
/// or one without links.
fn needs_copy(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, NotFound, TooManyLinks, Unsupported};
    matches!(error.kind(), NotFound | CrossesDevices | TooManyLinks | Unsupported)
}

fn failure(error: io::Error) -> LogError {
    match error.kind() {
        _ if is_full(&error) => LogError::NoSpace(format!("checkpoint: {error}")),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => LogError::NotEmpty(error.to_string()),
        _ => error.into(),
    }
}
