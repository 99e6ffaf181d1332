//! Lookup of entries and keys.
//!
//! A reader looks up the location under the lock of the group's shard, then reads without a lock. Purge may rewrite the
//! entry in between and delete its old file. Then the file table has no such file, and the reader repeats the lookup. A
//! file that a reader holds open stays readable after it is deleted.

use std::sync::Arc;

use bytes::Bytes;

use super::cache::BlockKey;
use super::state::LogState;
use crate::log::error::{Damage, LogError, Result};
use crate::log::format::{Block, Span, file_name};
use crate::log::index::Group;
use crate::log::types::GroupId;

/// Maximum number of blocks of a range that are cached. Blocks of longer ranges would evict hot blocks, and the page
/// cache has the file's pages as well.
const MAX_CACHED_BLOCKS: usize = 16;

/// Maximum number of lookups of one entry. Each retry means that purge rewrote the entry in between.
const ATTEMPTS: usize = 8;

/// Reads entries and keys of a log.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a>(pub(crate) &'a LogState);

impl Lookup<'_> {
    /// In a salvaged log: the error for an entry that is not in the index, if the group is not whole.
    fn absent_error(&self, group: GroupId, index: u64) -> Option<LogError> {
        let doubts = self.0.doubts.as_ref()?;
        let floor = self.0.index.with(group, |group| group.floor).unwrap_or(0);
        doubts.absence_error(group, floor, index)
    }

    /// In a salvaged log: the error that `what` is uncertain, if the group is not whole.
    fn lost_error(&self, group: GroupId, what: impl FnOnce() -> String) -> Option<LogError> {
        let doubted = self.0.doubts.as_ref()?.is_doubted(group);
        doubted.then(|| LogError::Lost { group, what: what() })
    }

    /// The value of a small key. In a salvaged log an absent key may be lost.
    pub(crate) fn key(&self, group: GroupId, key: &[u8]) -> Result<Option<Bytes>> {
        let find = |group: &Group| group.get(key).map(|found| Bytes::copy_from_slice(found.value()));
        let value = self.0.index.with(group, find).flatten();
        let lost = || self.lost_error(group, || format!("key {}", key.escape_ascii()));
        if value.is_none() { lost().map_or(Ok(None), Err) } else { Ok(value) }
    }

    /// The small keys from `from` to before `to`, sorted. In a salvaged log: an error if keys of the group may be lost,
    /// unless `keep_doubtful` is set.
    pub(crate) fn keys(&self, group: GroupId, from: &[u8], to: Option<&[u8]>) -> Result<Vec<(Bytes, Bytes)>> {
        let lost = self.lost_error(group, || "list of keys".to_owned());
        if let Some(error) = lost.filter(|_| !self.0.options.keep_doubtful) {
            return Err(error);
        }
        let pairs = self.0.index.with(group, |group| {
            let within = group.keys.iter().filter(|kv| kv.key() >= from && to.is_none_or(|to| kv.key() < to));
            within.map(|kv| (Bytes::copy_from_slice(kv.key()), Bytes::copy_from_slice(kv.value()))).collect::<Vec<_>>()
        });
        Ok(pairs.unwrap_or_default())
    }

    /// One entry.
    pub(crate) fn entry(&self, group: GroupId, index: u64) -> Result<Bytes> {
        let mut missing = None;
        for _ in 0..ATTEMPTS {
            let located =
                self.0.index.with(group, |group| locate(group, index)).unwrap_or(Err(LogError::NotFound { last: 0 }));
            let span = located.map_err(|error| self.absent_error(group, index).unwrap_or(error))?;
            if let Some(block) = self.block(&span)? {
                return block.entry(span.ordinal_of(index)).ok_or_else(|| too_few(&span));
            }
            missing = Some(span);
        }
        Err(missing_file(missing))
    }

    /// Entries from `first` to before `end`: at most `max_bytes`, but at least one entry.
    pub(crate) fn entries(&self, group: GroupId, first: u64, end: u64, max_bytes: usize) -> Result<Vec<Bytes>> {
        let mut out = Vec::new();
        let mut bytes = 0usize;
        let mut next = first;
        // Number of consecutive lookups whose file was deleted.
        let mut retries = 0;
        // The last block: consecutive runs may share it, and it may not be cached.
        let mut last_block: Option<(BlockKey, Arc<Block>)> = None;
        while next < end {
            let spans = self.0.index.with(group, |group| {
                locate(group, next).map_err(|error| (next, error))?;
                let last = group.bounds().last;
                if end > last + 1 {
                    return Err((last + 1, LogError::NotFound { last }));
                }
                // Many blocks per lookup, but bounded: the shard is locked meanwhile.
                Ok(group.runs.iter_from(next).take_while(|span| span.first < end).take(256).collect::<Vec<Span>>())
            });
            let spans = spans.unwrap_or(Err((next, LogError::NotFound { last: 0 })));
            let spans = spans.map_err(|(index, error)| self.absent_error(group, index).unwrap_or(error))?;
            let mut prefetched = false;
            for (at, span) in spans.iter().enumerate() {
                if span.first > next {
                    // Only a salvaged log has gaps. The next lookup returns the error.
                    break;
                }
                let key = (span.file, span.offset);
                let block = match last_block.take_if(|(of, _)| *of == key) {
                    Some((_, block)) => Some(block),
                    None if spans.len() <= MAX_CACHED_BLOCKS => self.block(span)?,
                    None => self.block_uncached(span, || {
                        if !std::mem::replace(&mut prefetched, true) {
                            self.prefetch(&spans[at + 1..], max_bytes.saturating_sub(bytes));
                        }
                    })?,
                };
                let Some(block) = block else {
                    retries += 1;
                    if retries == ATTEMPTS {
                        return Err(missing_file(Some(*span)));
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
                last_block = Some((key, block));
                retries = 0;
            }
        }
        Ok(out)
    }

    /// The block of a span, from the cache or the file; `None` if the file was deleted.
    fn block(&self, span: &Span) -> Result<Option<Arc<Block>>> {
        self.0.cache.get_or_read((span.file, span.offset), || self.read_block(span, || {}))
    }

    /// As `block`, without caching it, for callers that read a large part of the log. `before_wait` is called before the
    /// read waits for the disk.
    pub(crate) fn block_uncached(&self, span: &Span, before_wait: impl FnOnce()) -> Result<Option<Arc<Block>>> {
        match self.0.cache.get((span.file, span.offset)) {
            Some(block) => Ok(Some(block)),
            None => Ok(self.read_block(span, before_wait)?.map(Arc::new)),
        }
    }

    fn read_block(&self, span: &Span, before_wait: impl FnOnce()) -> Result<Option<Block>> {
        let Some(file) = self.0.files.get(span.file) else { return Ok(None) };
        let damaged = |error: LogError| error.concerning(|| self.0.index.groups_at(span.file, span.offset));
        file.read_block(span.offset, span.bytes, before_wait).map(Some).map_err(damaged)
    }

    /// Starts background reads of the next blocks, of about `bytes` in all, so that the disk serves many requests at
    /// once.
    fn prefetch(&self, spans: &[Span], bytes: usize) {
        let mut left = bytes as u64;
        for span in spans {
            let Some(file) = self.0.files.get(span.file).filter(|_| left > 0) else { return };
            file.file.prefetch(span.offset, span.bytes);
            left = left.saturating_sub(span.bytes);
        }
    }
}

/// The location of an entry, or the error for an absent one.
fn locate(group: &Group, index: u64) -> Result<Span> {
    let bounds = group.bounds();
    if index < bounds.first {
        return Err(LogError::Compacted { first: bounds.first });
    }
    group.runs.locate(index).ok_or(LogError::NotFound { last: bounds.last })
}

/// The error if each of [`ATTEMPTS`] lookups returned a file that is missing.
fn missing_file(span: Option<Span>) -> LogError {
    LogError::missing(file_name(span.map_or(0, |span| span.file)))
}

/// The entries of a run from `index` on, from its verified block. An error if the block has too few: then the index on
/// disk is damaged.
pub(crate) fn entries_of(block: &Block, span: &Span, index: u64) -> impl Iterator<Item = Result<Bytes>> {
    let count = span.end() - index;
    let entries = block.entries(span.ordinal_of(index)).map(Ok);
    let missing = std::iter::repeat_with(move || Err(too_few(span)));
    entries.chain(missing).take(count as usize)
}

fn too_few(span: &Span) -> LogError {
    Damage("block has fewer entries than the index says").at(&file_name(span.file), span.offset)
}
