//! Repairs a damaged log: writes the readable part to a new log that opens.
//!
//! Never in place. The ordinary engine writes the surviving records into an empty directory and syncs them; the damaged
//! log is not changed. A group's entries must be consecutive. So of a group with gaps only the entries after the last
//! gap are kept, as if all earlier ones had been compacted.
//!
//! **A replica that lost records of a group must not take part in that group.** It may have lost entries that it
//! acknowledged, or its vote, and the other replicas count on them. The report names such groups. Remove these replicas
//! from their groups, and add new ones by snapshot.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::Disk;

use super::progress::{Meter, Progress};
use crate::log::commit::LogBatch;
use crate::log::engine::{LogEngine, LogWriter};
use crate::log::error::{LogError, Result};
use crate::log::format::{Block, Span, file_name};
use crate::log::index::{EntryRange, Group, GroupLoss, Index, normalize, subtract};
use crate::log::options::LogOptions;
use crate::log::read::{BlockCache, CutFile, entries_of};
use crate::log::salvage::{ExistingFile, Loss, Replay, Survey};
use crate::log::types::{Durability, GroupId};

/// Options of a repair.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {
    /// Also keeps records from before a lost part that may have changed them; see [`LogOptions::keep_doubtful`].
    pub keep_doubtful: bool,
    /// Settings of the new log.
    pub log: LogOptions,
}

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// All known groups, ascending.
    pub groups: Vec<RepairedGroup>,
    /// Parts of the log that cannot be read.
    pub losses: Vec<Loss>,
    /// Bytes of a torn tail, which is omitted, with those of `cut_file`. It is not proven to be synced.
    pub torn_bytes: u64,
    /// A file whose commit groups follow the torn tail, and are omitted with it.
    pub cut_file: Option<CutFile>,
    /// Entries written to the new log.
    pub entries: u64,
    /// Bytes of entries written to the new log, before compression.
    pub bytes: u64,
}

/// The result for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedGroup {
    /// The group.
    pub group: GroupId,
    /// The entries that were kept; `None` if there are none.
    pub kept: Option<EntryRange>,
    /// Number of keys that were kept.
    pub keys: u64,
    /// Known entries that were not kept.
    pub lost: Vec<EntryRange>,
    /// Entries, kept or not, that a lost part of the log may have changed.
    pub doubtful: Vec<EntryRange>,
    /// Keys whose newest readable value is from before a lost part.
    pub doubtful_keys: Vec<Bytes>,
    /// Whether no record is lost or doubtful. Otherwise the replica must no longer take part in its Raft group.
    pub is_whole: bool,
}

/// Approximate size of a batch, in bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Size of the block cache for the damaged log, in bytes: a block may hold entries of many groups.
const CACHE_BYTES: usize = 64 << 20;

/// Writes the readable part of the log on `from` to the empty disk that `to` opens. `to` is called after the log is
/// read. After a failure, delete the new files.
pub fn repair(
    from: &dyn Disk,
    to: impl FnOnce() -> io::Result<Arc<dyn Disk>>,
    options: &RepairOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<RepairReport> {
    let survey = Survey::new(from)?;
    let passes = if options.keep_doubtful { 2 } else { 1 };
    let mut meter = Meter::new(survey.bytes().saturating_mul(passes), progress);
    let certain = Replay::run(&survey, false, &mut |bytes| meter.add(bytes))?;
    let losses = certain.doubts.losses(&certain.index);
    let index = match options.keep_doubtful && !certain.losses.is_empty() {
        true => Replay::run(&survey, true, &mut |bytes| meter.add(bytes))?.index,
        false => certain.index,
    };
    let to_copy: u64 = index.groups().iter().filter_map(|group| index.with(*group, bytes_of)).sum();
    let source = Source { survey: &survey, index: &index, cache: BlockCache::new(CACHE_BYTES) };
    let to = to()?;
    if let Some(name) = to.list()?.first() {
        return Err(LogError::Invalid(format!("the directory to write to is not empty: it has {name}")));
    }
    let mut target = Target::open(to, options.log.clone())?;
    meter.add_total(to_copy);
    let mut report = RepairReport {
        losses: certain.losses,
        torn_bytes: certain.tail.map_or(0, |(_, _, bytes)| bytes) + survey.cut_file.as_ref().map_or(0, |cut| cut.bytes),
        cut_file: survey.cut_file.clone(),
        ..RepairReport::default()
    };
    let mut ids = index.groups();
    ids.extend(losses.iter().map(|loss| loss.group));
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        let loss = losses.iter().find(|loss| loss.group == id);
        report.groups.push(copy_group(&source, &mut target, id, loss, &mut meter)?);
    }
    (report.entries, report.bytes) = (target.entries, target.bytes);
    target.finish()?;
    meter.end();
    Ok(report)
}

fn bytes_of(group: &Group) -> u64 {
    group.runs.iter().map(|span| span.bytes).sum()
}

/// Copies the known records of one group.
fn copy_group(
    source: &Source<'_>,
    target: &mut Target,
    id: GroupId,
    loss: Option<&GroupLoss>,
    meter: &mut Meter<'_>,
) -> Result<RepairedGroup> {
    let known = source.index.with(id, |group| {
        let keys: Vec<(Bytes, Bytes)> = group
            .keys
            .iter()
            .map(|kv| (Bytes::copy_from_slice(kv.key()), Bytes::copy_from_slice(kv.value())))
            .collect();
        (group.floor, group.runs.iter().collect::<Vec<Span>>(), keys)
    });
    let (floor, spans, keys) = known.unwrap_or_default();
    if floor > 0 {
        target.batch.compact(id, floor);
    }
    let mut kept: Option<EntryRange> = None;
    for span in &spans {
        // An unreadable block becomes a gap in the kept entries.
        if let Ok(block) = source.block(span)
            && let Ok(entries) = entries_of(&block, span, span.first).collect::<Result<Vec<Bytes>>>()
        {
            let follows = kept.filter(|kept| kept.last.checked_add(1) == Some(span.first));
            if kept.is_some() && follows.is_none() {
                target.batch.compact(id, span.first);
            }
            target.append(id, span.first, entries)?;
            let first = follows.map_or(span.first, |kept| kept.first);
            kept = Some(EntryRange { first, last: span.end().saturating_sub(1) });
        }
        meter.add(span.bytes);
    }
    keys.iter().for_each(|(key, value)| target.batch.put(id, key, value));
    target.flush_if_full()?;
    let all = spans.iter().map(|span| EntryRange { first: span.first, last: span.end().saturating_sub(1) });
    let (missing, doubtful) = loss.map_or((&[][..], &[][..]), |loss| (&loss.missing, &loss.doubtful));
    let all = normalize(all.chain(missing.iter().copied()).chain(doubtful.iter().copied()).collect());
    let lost = subtract(&all, &kept.into_iter().collect::<Vec<_>>());
    Ok(RepairedGroup {
        group: id,
        kept,
        keys: keys.len() as u64,
        is_whole: loss.is_none() && lost.is_empty(),
        lost,
        doubtful: doubtful.to_vec(),
        doubtful_keys: loss.map_or_else(Vec::new, |loss| loss.keys.clone()),
    })
}

/// The damaged log.
struct Source<'a> {
    survey: &'a Survey,
    index: &'a Index,
    cache: BlockCache,
}

impl Source<'_> {
    fn block(&self, span: &Span) -> Result<Arc<Block>> {
        let read = || {
            let at = self.survey.files.binary_search_by_key(&span.file, |file| file.seq).ok();
            let found: Option<&ExistingFile> = at.and_then(|at| self.survey.files.get(at)?.found.as_ref());
            found.map(|found| found.file.read_block(span.offset, span.bytes, || {})).transpose()
        };
        let block = self.cache.get_or_read((span.file, span.offset), read)?;
        block.ok_or_else(|| LogError::missing(file_name(span.file)))
    }
}

/// The new log.
struct Target {
    engine: LogEngine,
    writer: LogWriter,
    batch: LogBatch,
    entries: u64,
    bytes: u64,
}

impl Target {
    fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<Target> {
        let (engine, writer, _) = LogEngine::open_driven(disk, options)?;
        Ok(Target { engine, writer, batch: LogBatch::new(), entries: 0, bytes: 0 })
    }

    fn append(&mut self, group: GroupId, first: u64, entries: Vec<Bytes>) -> Result<()> {
        self.entries += entries.len() as u64;
        self.bytes += entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
        self.batch.append(group, first, entries);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.batch.bytes() < BATCH_BYTES { Ok(()) } else { self.flush(Durability::Buffered) }
    }

    /// Writes the collected batch.
    fn flush(&mut self, durability: Durability) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.engine.write(batch, durability).map(drop)
    }

    /// Makes everything durable, and marks a clean stop.
    fn finish(mut self) -> Result<()> {
        self.flush(Durability::Synced)?;
        self.writer.finish();
        self.engine.poisoned().map_or(Ok(()), Err)
    }
}
