//! The work that purge hands to the writer: rewrite live records of the oldest file, or drop files.
//!
//! Purge collects the records without the writer's lock. Batches may overwrite, compact or remove them before the
//! writer adds the rewrite to a commit group. So the writer looks each record up again and leaves out what is no longer
//! live in the file. An item of a rewrite records what the index already says, at a new location: an entry of the
//! group, the value of a key, the floor of a group.
//!
//! Dropping needs no such choice. A file is dropped with all older ones, and none of them holds anything live. A sealed
//! file gains no references, so it stays dead. The writer asserts both.

use bytes::Bytes;

use crate::log::format::{BlockBuilder, Item, Span};
use crate::log::index::Index;
use crate::log::types::GroupId;

/// A step of purge, as it is queued.
pub(crate) enum PurgeWork {
    /// Rewrites live records of an old file.
    Rewrite(Rewrite),
    /// Drops the oldest files. They hold nothing live.
    Drop(Vec<u64>),
}

/// Live records of one file, as they were when purge looked.
#[derive(Debug, Default)]
pub(crate) struct Rewrite {
    pub(crate) file: u64,
    /// Entries, by group and first index.
    pub(crate) entries: Vec<(GroupId, u64, Vec<Bytes>)>,
    pub(crate) keys: Vec<(GroupId, Bytes)>,
    pub(crate) floors: Vec<GroupId>,
    /// About how many bytes all this takes.
    pub(crate) bytes: usize,
}

impl PurgeWork {
    /// Bytes it counts for in the queue.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            PurgeWork::Rewrite(rewrite) => rewrite.bytes,
            PurgeWork::Drop(_) => 0,
        }
    }

    /// Adds it to a commit group that holds nothing else. Returns the bytes of rewritten entries.
    pub(crate) fn add(self, index: &Index, items: &mut Vec<Item>, builder: &mut BlockBuilder<'_>) -> u64 {
        match self {
            PurgeWork::Rewrite(rewrite) => rewrite.add(index, items, builder),
            PurgeWork::Drop(files) => {
                items.extend(files.into_iter().map(|file| Item::Drop { file }));
                0
            }
        }
    }
}

impl Rewrite {
    /// Adds the records that are still live in the file to a commit group. Returns the bytes of the entries.
    fn add(self, index: &Index, items: &mut Vec<Item>, builder: &mut BlockBuilder<'_>) -> u64 {
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
                builder.append(*id, entries);
                bytes += entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
                items.push(Item::Rewrite { group: *id, floor, last, first: from, count: to - from });
            }
        }
        for (id, key) in self.keys {
            let live = index.with(id, |group| {
                let live = group.get(&key).filter(|kv| kv.file == self.file);
                live.map(|kv| Bytes::copy_from_slice(kv.value()))
            });
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
