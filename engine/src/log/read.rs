//! Reads: what is shared between readers and the writer, and how an entry is found.
//!
//! A reader looks a place up under the group's lock, then reads without any lock. Purge may move the entry in between
//! and take its old file away; the reader then finds no such file and looks again. A file that a reader holds stays
//! readable when it is deleted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::disk::Disk;

use super::active::Failure;
use super::batch::{LogBatch, PACKED_FROM};
use super::block::Block;
use super::cache::{BlockCache, BlockKey};
use super::compress::Compressor;
use super::error::{Damage, LogError, Result};
use super::file::{FileTable, LogFile};
use super::format::file_name;
use super::group::Group;
use super::index::Index;
use super::landing::Landing;
use super::metrics::LogMetrics;
use super::purge::Victims;
use super::runs::Span;
use super::salvage::Doubts;
use super::scrub::Round;
use super::spare::Reserve;
use super::told::Told;
use super::writer::Work;
use super::{GroupId, LogOptions};

/// What readers, the writer and purge share.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: LogOptions,
    pub(crate) index: Index,
    pub(crate) files: FileTable,
    pub(crate) cache: BlockCache,
    pub(crate) metrics: Option<LogMetrics>,
    /// What is not certain, where the log was opened to be salvaged: then nothing is ever written.
    pub(crate) doubts: Option<Doubts>,
    /// Why nothing is written any more.
    pub(crate) poison: Mutex<Option<String>>,
    pub(crate) landing: Landing,
    /// Held while an active file is synced.
    pub(crate) syncing: Mutex<()>,
    /// The position up to which all is written.
    pub(crate) written: AtomicU64,
    /// The position up to which all is durable.
    pub(crate) synced: AtomicU64,
    /// The position up to which all is in the index.
    pub(crate) landed: AtomicU64,
    /// Whether the disk had no room for a commit group, of whatever kind, and none was written since that may not take the reserve, nor has purge, with
    /// nothing left to do, seen space again.
    pub(crate) full: AtomicBool,
    /// Files that are recorded as dropped and can be deleted.
    pub(crate) released: Mutex<Vec<u64>>,
    /// Whether work of purge is queued.
    pub(crate) purging: AtomicBool,
    /// The file that purge writes again, and those that it cannot.
    pub(crate) victims: Mutex<Victims>,
    /// The round of scrub that is under way.
    pub(crate) scrub: Mutex<Option<Round>>,
    /// What is damaged and was told.
    pub(crate) told: Mutex<Told>,
    /// Files of which nothing is needed any more, also not what they undo of older ones.
    pub(crate) settled: Mutex<BTreeSet<u64>>,
    /// Those of callers that compress, when not in use.
    pub(crate) compressors: Mutex<Vec<Compressor>>,
    /// Numbers of the spare files, and the next one to give.
    pub(crate) spares: Mutex<BTreeSet<u64>>,
    pub(crate) next_spare: AtomicU64,
    /// The reserve that is being made where there is no spare.
    pub(crate) reserve: Mutex<Reserve>,
}

/// A range of more blocks is not kept in the cache: it would push out what is used again, and the system keeps the file's pages as well.
const KEPT_BLOCKS: usize = 16;

/// How often a reader looks again for an entry that purge moved: each time needs another purge in between.
const ATTEMPTS: usize = 8;

impl Shared {
    /// The error of a log that takes no writes.
    pub(crate) fn read_only(&self) -> Option<LogError> {
        self.doubts.as_ref().map(|_| LogError::ReadOnly)
    }

    /// In a log that was salvaged: why an entry that the index does not have is not there, if the group is not whole.
    fn absent(&self, group: GroupId, index: u64) -> Option<LogError> {
        let doubts = self.doubts.as_ref()?;
        let floor = self.index.with(group, |group| group.floor).unwrap_or(0);
        doubts.absent(group, floor, index)
    }

    /// In a log that was salvaged: that `what` cannot be told of the group, if it is not whole.
    pub(crate) fn lost(&self, group: GroupId, what: impl FnOnce() -> String) -> Option<LogError> {
        let doubted = self.doubts.as_ref()?.is_doubted(group);
        doubted.then(|| LogError::Lost { group, what: what() })
    }

    /// The value of a small key. In a log that was salvaged an absent one may be lost.
    pub(crate) fn key(&self, group: GroupId, key: &[u8]) -> Result<Option<Bytes>> {
        let find = |group: &Group| group.get(key).map(|found| Bytes::copy_from_slice(found.value()));
        let value = self.index.with(group, find).flatten();
        let lost = || self.lost(group, || format!("key {}", key.escape_ascii()));
        if value.is_none() { lost().map_or(Ok(None), Err) } else { Ok(value) }
    }

    /// The small keys from `from` to before `to`, sorted. In a log that was salvaged: an error where keys of the group may be lost, unless
    /// those that are left are wanted all the same.
    pub(crate) fn keys(&self, group: GroupId, from: &[u8], to: Option<&[u8]>) -> Result<Vec<(Bytes, Bytes)>> {
        let lost = self.lost(group, || "list of keys".to_owned());
        if let Some(error) = lost.filter(|_| !self.options.keep_doubtful) {
            return Err(error);
        }
        let pairs = self.index.with(group, |group| {
            let within = group.keys.iter().filter(|kv| kv.key() >= from && to.is_none_or(|to| kv.key() < to));
            within.map(|kv| (Bytes::copy_from_slice(kv.key()), Bytes::copy_from_slice(kv.value()))).collect::<Vec<_>>()
        });
        Ok(pairs.unwrap_or_default())
    }

    /// The error of a poisoned log.
    pub(crate) fn poisoned(&self) -> Option<LogError> {
        self.poison.lock().clone().map(LogError::Poisoned)
    }

    /// Nothing is written from now on; the error that says why, which is that of the first failure.
    pub(crate) fn poison(&self, why: String) -> LogError {
        let mut poison = self.poison.lock();
        let why = poison.get_or_insert_with(|| {
            tracing::error!(why, "log is poisoned");
            why
        });
        LogError::Poisoned(why.clone())
    }

    /// What `batch` is queued as.
    pub(crate) fn pack(&self, mut batch: LogBatch) -> Result<Work> {
        if batch.bytes() >= PACKED_FROM {
            let spare = self.compressors.lock().pop();
            let options = &self.options;
            let mut compressor =
                spare.map_or_else(|| Compressor::new(options.compression, options.compress_from), Ok)?;
            batch.pack(options.block_bytes, &mut compressor);
            self.compressors.lock().push(compressor);
        }
        Ok(Work::Batch(batch))
    }

    /// What a failure to write means for the caller; poisons the log where it must be, and notes that the disk is full.
    pub(crate) fn survive<T>(&self, outcome: std::result::Result<T, Failure>) -> Result<T> {
        outcome.map_err(|failure| match failure {
            Failure::Refused(error) => {
                if matches!(error, LogError::NoSpace(_)) {
                    self.full.store(true, Ordering::Release);
                    self.metrics.iter().for_each(|metrics| metrics.no_space.inc());
                }
                error
            }
            Failure::Fatal(why) => self.poison(why),
        })
    }

    /// Makes everything in `file` durable, which holds what is written up to `lsn`, and older files are durable already. What was written before
    /// this begins is durable with it: there is no newer file before all of this one has landed.
    pub(crate) fn sync(&self, file: &LogFile, lsn: u64) -> std::result::Result<(), Failure> {
        if self.synced.load(Ordering::Acquire) < lsn {
            let written = self.written.load(Ordering::Acquire).max(lsn);
            self.sync_file(file)?;
            self.synced.fetch_max(written, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Makes everything in `file` durable. One sync at a time: the kernel tells of a failed write to one caller only, and whoever syncs after that
    /// one must not take the next answer for good.
    pub(crate) fn sync_file(&self, file: &LogFile) -> std::result::Result<(), Failure> {
        let _one = self.syncing.lock();
        if let Some(LogError::Poisoned(why)) = self.poisoned() {
            return Err(Failure::Fatal(why));
        }
        let timer = self.metrics.as_ref().map(|metrics| metrics.sync_seconds.start_timer());
        let outcome = file.file.sync();
        drop(timer);
        outcome.map_err(|error| {
            let why = format!("sync: {error}");
            self.poison(why.clone());
            Failure::Fatal(why)
        })
    }

    /// One entry.
    pub(crate) fn entry(&self, group: GroupId, index: u64) -> Result<Bytes> {
        let mut lost = None;
        for _ in 0..ATTEMPTS {
            let located =
                self.index.with(group, |group| locate(group, index)).unwrap_or(Err(LogError::NotFound { last: 0 }));
            let span = located.map_err(|error| self.absent(group, index).unwrap_or(error))?;
            if let Some(block) = self.block(&span)? {
                return block.entry(span.ordinal_of(index)).ok_or_else(|| too_few(&span));
            }
            lost = Some(span);
        }
        Err(lost_file(lost))
    }

    /// Entries from `first` to before `end`; at least one, and no more than fit into `max_bytes`.
    pub(crate) fn entries(&self, group: GroupId, first: u64, end: u64, max_bytes: usize) -> Result<Vec<Bytes>> {
        let mut out = Vec::new();
        let mut bytes = 0usize;
        let mut next = first;
        // How often in a row, without any progress, the file of an entry was gone.
        let mut moved = 0;
        // Runs that follow each other may share a block, and the cache need not have kept it.
        let mut held: Option<(BlockKey, Arc<Block>)> = None;
        while next < end {
            let spans = self.index.with(group, |group| {
                locate(group, next).map_err(|error| (next, error))?;
                let last = group.bounds().last;
                if end > last + 1 {
                    return Err((last + 1, LogError::NotFound { last }));
                }
                // One lock for many blocks, but not for a log of millions.
                Ok(group.runs.iter_from(next).take_while(|span| span.first < end).take(256).collect::<Vec<Span>>())
            });
            let spans = spans.unwrap_or(Err((next, LogError::NotFound { last: 0 })));
            let spans = spans.map_err(|(index, error)| self.absent(group, index).unwrap_or(error))?;
            let mut told = false;
            for (at, span) in spans.iter().enumerate() {
                if span.first > next {
                    // Only a salvaged log has gaps: asked again from here, it says so.
                    break;
                }
                let key = (span.file, span.offset);
                let block = match held.take_if(|(of, _)| *of == key) {
                    Some((_, block)) => Some(block),
                    None if spans.len() <= KEPT_BLOCKS => self.block(span)?,
                    None => self.block_in_passing(span, || {
                        if !std::mem::replace(&mut told, true) {
                            self.will_read(&spans[at + 1..], max_bytes.saturating_sub(bytes));
                        }
                    })?,
                };
                let Some(block) = block else {
                    moved += 1;
                    if moved == ATTEMPTS {
                        return Err(lost_file(Some(*span)));
                    }
                    break;
                };
                for entry in entries_of(&block, span, next).take((span.end().min(end) - next) as usize) {
                    let entry = entry?;
                    bytes = bytes.saturating_add(entry.len());
                    if bytes > max_bytes && !out.is_empty() {
                        return Ok(out);
                    }
                    out.push(entry);
                    next += 1;
                }
                if next >= end || bytes >= max_bytes {
                    return Ok(out);
                }
                held = Some((key, block));
                moved = 0;
            }
        }
        Ok(out)
    }

    /// The block of a span, from the cache or the file; `None` where the file is gone.
    fn block(&self, span: &Span) -> Result<Option<Arc<Block>>> {
        self.cache.get_or_read((span.file, span.offset), || self.read_block(span, || {}))
    }

    /// The same for who passes over much of the log: that leaves the cache to those who come back. `waits` is called before it waits
    /// for the disk.
    pub(crate) fn block_in_passing(&self, span: &Span, waits: impl FnOnce()) -> Result<Option<Arc<Block>>> {
        match self.cache.get((span.file, span.offset)) {
            Some(block) => Ok(Some(block)),
            None => Ok(self.read_block(span, waits)?.map(Arc::new)),
        }
    }

    fn read_block(&self, span: &Span, waits: impl FnOnce()) -> Result<Option<Block>> {
        let Some(file) = self.files.get(span.file) else { return Ok(None) };
        let damaged = |error: LogError| error.concerning(|| self.index.groups_at(span.file, span.offset));
        file.read_block(span.offset, span.bytes, waits).map(Some).map_err(damaged)
    }

    /// Lets the disk begin with the blocks that will be read next, about `bytes` of them at most: so it has many to do at once.
    fn will_read(&self, spans: &[Span], bytes: usize) {
        let mut left = bytes as u64;
        for span in spans {
            let Some(file) = self.files.get(span.file).filter(|_| left > 0) else { return };
            file.file.prefetch(span.offset, span.bytes);
            left = left.saturating_sub(span.bytes);
        }
    }
}

/// The place of an entry, or why there is none.
fn locate(group: &Group, index: u64) -> Result<Span> {
    let bounds = group.bounds();
    if index < bounds.first {
        return Err(LogError::Compacted { first: bounds.first });
    }
    group.runs.locate(index).ok_or(LogError::NotFound { last: bounds.last })
}

/// The index names a file that is not there, however often it is asked.
fn lost_file(span: Option<Span>) -> LogError {
    LogError::missing(file_name(span.map_or(0, |span| span.file)))
}

/// The entries of a run from `index` on, out of its block, which was verified: too few of them mean that the index on disk is damaged.
pub(crate) fn entries_of(block: &Block, span: &Span, index: u64) -> impl Iterator<Item = Result<Bytes>> {
    let count = span.end() - index;
    let entries = block.entries(span.ordinal_of(index)).map(Ok);
    let missing = std::iter::repeat_with(move || Err(too_few(span)));
    entries.chain(missing).take(count as usize)
}

fn too_few(span: &Span) -> LogError {
    Damage("block has fewer entries than the index says").at(&file_name(span.file), span.offset)
}
