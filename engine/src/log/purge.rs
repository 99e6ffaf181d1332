//! Gives space back: files without anything live are dropped, and the live rest of an old file is written again.
//!
//! The oldest file always goes first. So whatever a file says about older records (that they are truncated, compacted,
//! removed) may go with it: there are no older records left for it to be said of.
//!
//! Steps, each of which may be the last one before a crash:
//! 1. Live entries, keys and floors of the oldest file are written again, and synced. Nothing refers to the file now.
//! 2. A record that drops the file is written and synced. Recovery no longer asks for it, and deletes it.
//! 3. The file is deleted, and the directory synced.
//!
//! Steps 1 and 2 are commit groups like any other; [`Shared::purge`] only queues them, so it never waits for the writer and
//! a single thread may drive both.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::GroupId;
use super::block::BlockBuilder;
use super::error::Result;
use super::index::Index;
use super::items::Item;
use super::read::{Shared, entry_of};
use super::runs::Span;
use super::writer::Work;

/// Bytes of entries written again by one commit group: a bound on how long others wait for it.
const REWRITE_BYTES: usize = 1 << 20;
/// The oldest file is rewritten when at most one in so many of its bytes is live.
const LIVE_SHARE: u64 = 4;
/// With at least so many files, the oldest is rewritten also when at most half of all bytes are live.
const MANY_FILES: usize = 8;

/// What is live in an old file, as it was when looked at.
#[derive(Debug, Default)]
pub(crate) struct Rewrite {
    file: u64,
    entries: Vec<(GroupId, u64, Vec<Bytes>)>,
    keys: Vec<(GroupId, Bytes)>,
    floors: Vec<GroupId>,
}

/// What of one group stands in a file.
#[derive(Default)]
struct Live {
    spans: Vec<Span>,
    keys: Vec<Bytes>,
    floor: bool,
}

impl Rewrite {
    /// Bytes it will take, about.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.iter().flat_map(|(_, _, entries)| entries.iter().map(|entry| entry.len() + 8));
        entries.sum::<usize>() + (self.keys.len() + self.floors.len()) * 32
    }

    /// Adds what is still live, and still in that file, to a commit group that holds nothing else; returns the bytes of its
    /// entries. What was overwritten, compacted or removed since the look is left out.
    pub(crate) fn add(self, index: &Index, items: &mut Vec<Item>, builder: &mut BlockBuilder) -> u64 {
        let mut bytes = 0;
        for (id, first, entries) in &self.entries {
            let end = first + entries.len() as u64;
            let live = index.with(*id, |group| {
                let spans = group.runs.iter_from(*first).take_while(|span| span.first < end);
                let spans: Vec<Span> = spans.filter(|span| span.file == self.file).collect();
                (group.floor, group.bounds().last, spans)
            });
            let Some((floor, last, spans)) = live else { continue };
            for span in spans {
                let (from, to) = (span.first.max(*first), span.end().min(end));
                let entries = &entries[(from - first) as usize..(to - first) as usize];
                entries.iter().for_each(|entry| builder.push(entry));
                bytes += entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
                items.push(Item::Rewrite { group: *id, floor, last, first: from, count: to - from });
            }
        }
        for (id, key) in self.keys {
            let live =
                index.with(id, |group| group.get(&key).filter(|kv| kv.file == self.file).map(|kv| kv.value.clone()));
            if let Some(value) = live.flatten() {
                items.push(Item::Put { group: id, key, value });
            }
        }
        for id in self.floors {
            let floor = index.with(id, |group| (group.floor_file == self.file).then_some(group.floor)).flatten();
            if let Some(first_kept) = floor.filter(|floor| *floor > 0) {
                items.push(Item::Compact { group: id, first_kept });
            }
        }
        bytes
    }
}

impl Shared {
    /// Deletes what was released, and says what to write next, if anything. Returns the bytes freed by now.
    pub(crate) fn purge(&self) -> Result<(u64, Option<Work>)> {
        let freed = self.delete_released()?;
        if self.poisoned().is_some() || self.purging.load(Ordering::Acquire) || !self.released.lock().is_empty() {
            return Ok((freed, None));
        }
        let mut files = self.files.lengths();
        files.pop();
        let dead = |seq: &u64| self.index.usage(*seq).refs == 0;
        let prefix: Vec<u64> = files.iter().map(|(seq, _)| *seq).take_while(dead).collect();
        if !prefix.is_empty() {
            return Ok((freed, Some(Work::Drop(prefix))));
        }
        let Some((oldest, len)) = files.first().copied() else { return Ok((freed, None)) };
        let live = |seq: u64| self.index.usage(seq).bytes;
        let all: u64 = files.iter().map(|(_, len)| len).sum();
        let all_live: u64 = files.iter().map(|(seq, _)| live(*seq)).sum();
        let mostly_dead = live(oldest) * LIVE_SHARE <= len;
        let mostly_garbage = files.len() >= MANY_FILES && all_live * 2 <= all;
        if mostly_dead || mostly_garbage {
            return Ok((freed, Some(Work::Rewrite(self.look(oldest)?))));
        }
        Ok((freed, None))
    }

    fn delete_released(&self) -> Result<u64> {
        let released = std::mem::take(&mut *self.released.lock());
        let mut freed = 0;
        for (at, seq) in released.iter().enumerate() {
            let Some(file) = self.files.remove(*seq) else { continue };
            match self.disk.remove(&file.name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    // Nothing is lost: it is tried again, and recovery deletes it too.
                    self.files.insert(file);
                    self.released.lock().extend_from_slice(&released[at..]);
                    return Err(error.into());
                }
                _ => freed += file.len(),
            }
        }
        if freed > 0 {
            self.disk.sync_dir()?;
        }
        Ok(freed)
    }

    /// Collects what is live in `file`, as much as one commit group takes.
    fn look(&self, file: u64) -> Result<Rewrite> {
        let mut rewrite = Rewrite { file, ..Rewrite::default() };
        let mut bytes = 0;
        for id in self.index.groups() {
            let live = self.index.with(id, |group| Live {
                spans: group.runs.iter().filter(|span| span.file == file).collect(),
                keys: group
                    .keys
                    .iter()
                    .filter(|kv| kv.file == file)
                    .map(|kv| Bytes::copy_from_slice(&kv.key))
                    .collect(),
                floor: group.floor > 0 && group.floor_file == file,
            });
            let Some(live) = live else { continue };
            for span in live.spans {
                let Some(block) = self.block(&span)? else { continue };
                let entries = (span.first..span.end()).map(|index| entry_of(&block, &span, index));
                let entries = entries.collect::<Result<Vec<Bytes>>>()?;
                bytes += entries.iter().map(|entry| entry.len() + 8).sum::<usize>();
                rewrite.entries.push((id, span.first, entries));
                if bytes >= REWRITE_BYTES {
                    return Ok(rewrite);
                }
            }
            bytes += live.keys.len() * 64 + 16;
            rewrite.keys.extend(live.keys.into_iter().map(|key| (id, key)));
            if live.floor {
                rewrite.floors.push(id);
            }
            if bytes >= REWRITE_BYTES {
                break;
            }
        }
        Ok(rewrite)
    }
}
