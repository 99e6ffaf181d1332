//! The net change of one file. A sealed file ends with it, encoded as the file's index (`format/file_index.rs`).
//!
//! It contains for each group: the entries that were not replaced within the file, the lowest index appended at, the
//! highest compaction, the final value of each changed key. Applied to the state before the file, it gives the state
//! after it, as a replay of every commit group would. The writer encodes it at the seal from the index and
//! `active_changes.rs`. Recovery decodes it and does not read the commit groups. This type is built from commit groups
//! that are read, or from the index of a sealed file.
//!
//! The changes of one group apply in this order:
//! 1. `reset`: all earlier records are dropped (the group was removed in this file).
//! 2. Entries below `floor` are dropped.
//! 3. Entries at or after `end` are dropped.
//! 4. The runs are placed. Those below `end` are rewritten entries, which replace the same indexes.
//! 5. Keys are set and removed.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::runs::Runs;
use super::usage::UsageDelta;
use crate::log::error::Damage;
use crate::log::format::{GroupHead, IndexKey, IndexReader, Sink, Span, apply_group, encode_group, put_varint};
use crate::log::types::GroupId;

/// The changes of a file, by group.
#[derive(Debug, Default)]
pub(crate) struct FileSummary {
    groups: BTreeMap<GroupId, GroupSummary>,
    /// Files that it drops. Not part of the encoded index: the next file's header lists the remaining files.
    pub(crate) dropped: Vec<u64>,
    delta: UsageDelta,
}

/// The changes of one group.
#[derive(Debug, Default)]
pub(crate) struct GroupSummary {
    /// The group was removed in this file: all its records in older files are dead.
    pub(crate) reset: bool,
    /// Entries of older files at or after this index are dead.
    pub(crate) end: Option<u64>,
    /// 0 means none.
    pub(crate) floor: u64,
    runs: Runs,
    /// Keys set, and keys removed.
    pub(crate) keys: BTreeMap<Bytes, Option<Bytes>>,
}

impl Sink for FileSummary {
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage> {
        let summary = self.groups.entry(group).or_default();
        summary.end = Some(summary.end.map_or(end, |known| known.min(end)));
        summary.runs.cut_from(end, &mut self.delta);
        for span in spans {
            summary.runs.place(span, &mut self.delta)?;
        }
        self.delta.drain().for_each(drop);
        Ok(())
    }

    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, _file: u64) {
        self.groups.entry(group).or_default().keys.insert(key.clone(), Some(value.clone()));
    }

    fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.groups.entry(group).or_default().keys.insert(Bytes::copy_from_slice(key), None);
    }

    fn compact(&mut self, group: GroupId, first_kept: u64, _file: u64) {
        let summary = self.groups.entry(group).or_default();
        summary.floor = summary.floor.max(first_kept);
        summary.runs.cut_below(first_kept, &mut self.delta);
        self.delta.drain().for_each(drop);
    }

    fn remove(&mut self, group: GroupId) {
        self.groups.insert(group, GroupSummary { reset: true, ..GroupSummary::default() });
    }

    fn drop_file(&mut self, dropped: u64) {
        self.dropped.push(dropped);
    }
}

impl FileSummary {
    /// The changed groups, ascending.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (GroupId, &GroupSummary)> {
        self.groups.iter().map(|(group, summary)| (*group, summary))
    }

    /// Applies the changes to the state before the file.
    pub(crate) fn apply(&self, file: u64, sink: &mut dyn Sink) -> Result<(), Damage> {
        for (group, summary) in &self.groups {
            let keys = summary.keys.iter().map(|(key, value)| (key.clone(), value.clone()));
            apply_group(&summary.head(*group), file, summary.runs.iter(), keys, sink)?;
        }
        Ok(())
    }

    /// The groups with entries in blocks from offset `from` to before `to`.
    pub(crate) fn groups_in(&self, from: u64, to: u64) -> Vec<GroupId> {
        let is_within = |summary: &GroupSummary| summary.runs.iter().any(|span| (from..to).contains(&span.offset));
        self.groups.iter().filter(|(_, summary)| is_within(summary)).map(|(group, _)| *group).collect()
    }

    /// The groups whose changes differ.
    pub(crate) fn differences(&self, other: &FileSummary) -> Vec<GroupId> {
        let form = |summary: &FileSummary, group: GroupId| {
            let mut out = Vec::new();
            summary.groups.get(&group).into_iter().for_each(|summary| summary.encode(group, &mut out));
            out
        };
        let mut groups: Vec<GroupId> = self.groups.keys().chain(other.groups.keys()).copied().collect();
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|group| form(self, *group) != form(other, *group));
        groups
    }

    /// The index of a sealed file, before compression.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.groups.len() as u64);
        self.groups.iter().for_each(|(group, summary)| summary.encode(*group, &mut out));
        out
    }

    /// Decodes what [`FileSummary::encode`] wrote for `file`.
    pub(crate) fn decode(bytes: &[u8], file: u64) -> Result<FileSummary, Damage> {
        let mut reader = IndexReader::new(bytes, file)?;
        let mut out = FileSummary::default();
        while let Some(read) = reader.read()? {
            let GroupHead { group, reset, end, floor } = read.head;
            let mut summary = GroupSummary { reset, end, floor, ..GroupSummary::default() };
            for span in read.spans() {
                summary.runs.place(&span, &mut out.delta)?;
            }
            let owned =
                |(key, value): (&[u8], Option<&[u8]>)| (Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice));
            summary.keys.extend(read.keys().map(owned));
            out.delta.drain().for_each(drop);
            out.groups.insert(group, summary);
        }
        Ok(out)
    }
}

impl GroupSummary {
    /// The runs of entries in this file that it does not replace itself.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.runs.iter()
    }

    fn head(&self, group: GroupId) -> GroupHead {
        GroupHead { group, reset: self.reset, end: self.end, floor: self.floor }
    }

    fn encode(&self, group: GroupId, out: &mut Vec<u8>) {
        let head = self.head(group);
        let keys: Vec<IndexKey<'_>> = self.keys.iter().map(|(key, value)| (key.as_ref(), value.as_deref())).collect();
        encode_group(&head, self.runs.len(), self.runs.iter(), &keys, out);
    }
}
