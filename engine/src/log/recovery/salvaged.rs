//! Opens the readable part of a damaged log, read-only. Changes nothing on the disk.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{Recovered, RecoveryReport, Uncertain, survey_index};
use crate::disk::Disk;
use crate::log::commit::ActiveFile;
use crate::log::error::{LogError, Result};
use crate::log::index::{EntryRange, GroupLoss, Index, normalize};
use crate::log::options::LogOptions;
use crate::log::read::FileTable;
use crate::log::salvage::{Replay, Survey};
use crate::log::types::{GroupId, Lsn};

/// Opens the readable part of the log on `disk`.
pub(super) fn salvage(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    let survey = Survey::new(disk)?;
    let certain = Replay::run(&survey, false, &mut |_| ())?;
    let mut lost = certain.doubts.losses(&certain.index);
    let mut index = certain.index;
    if options.keep_doubtful && !certain.losses.is_empty() {
        index = Replay::run(&survey, true, &mut |_| ())?.index;
    }
    let files = FileTable::default();
    let found = || survey.files.iter().filter_map(|file| file.found.as_ref());
    found().for_each(|found| files.insert(found.file.clone()));
    if options.verify {
        add_unreadable(&mut lost, unreadable(&index, &files));
    }
    let newest = found().next_back().ok_or(LogError::NoLog)?.file.clone();
    let totals = survey_index(&index, options.recovery_threads);
    // The tail is not read, so its groups are unknown, except for those of a file behind it.
    let cut_file = survey.cut_file.clone();
    let behind = || cut_file.as_ref().map_or_else(Vec::new, |cut| cut.groups.clone());
    let uncertain = |lsn| Uncertain { lsn: Lsn(lsn), groups: behind() };
    let next = certain.at.map(|at| at.lsn.saturating_add(1)).filter(|_| certain.tail.is_some());
    let report = RecoveryReport {
        uncertain: next.map(uncertain),
        truncated_bytes: certain.tail.as_ref().map_or(0, |(_, _, bytes)| *bytes)
            + cut_file.as_ref().map_or(0, |cut| cut.bytes),
        truncated_at: certain.tail.map(|(file, offset, _)| (file, offset)),
        cut_file,
        files: files.lengths().len(),
        files_by_index: certain.files_by_index,
        files_scanned: certain.files_scanned,
        bytes_read: certain.bytes_read,
        groups: totals.groups,
        entries: totals.entries,
        salvaged: certain.salvaged,
        losses: certain.losses,
        lost,
    };
    // Nothing is appended, so everything counts as synced.
    let end = newest.len();
    let active = ActiveFile::new(newest, end, certain.at.map_or(0, |at| at.lsn), 0);
    let doubts = Some(certain.doubts);
    Ok(Recovered { index, files, active, full: None, report, spares: BTreeSet::new(), doubts })
}

/// Entries in damaged blocks, by group. Reads every block in use.
fn unreadable(index: &Index, files: &FileTable) -> BTreeMap<GroupId, Vec<EntryRange>> {
    let mut blocks: BTreeMap<(u64, u64), bool> = BTreeMap::new();
    let mut out: BTreeMap<GroupId, Vec<EntryRange>> = BTreeMap::new();
    for group in index.groups() {
        let spans = index.with(group, |group| group.runs.iter().collect::<Vec<_>>()).unwrap_or_default();
        for span in spans {
            let is_sound = *blocks.entry((span.file, span.offset)).or_insert_with(|| {
                files.get(span.file).is_some_and(|file| file.read_block(span.offset, span.bytes, || {}).is_ok())
            });
            if !is_sound {
                out.entry(group)
                    .or_default()
                    .push(EntryRange { first: span.first, last: span.end().saturating_sub(1) });
            }
        }
    }
    out
}

/// Adds unreadable entries to the losses.
fn add_unreadable(lost: &mut Vec<GroupLoss>, unreadable: BTreeMap<GroupId, Vec<EntryRange>>) {
    for (group, ranges) in unreadable {
        let ranges = normalize(ranges);
        match lost.iter_mut().find(|loss| loss.group == group) {
            Some(loss) => loss.unreadable = ranges,
            None => lost.push(GroupLoss {
                group,
                missing: Vec::new(),
                doubtful: Vec::new(),
                unreadable: ranges,
                keys: Vec::new(),
            }),
        }
    }
    lost.sort_by_key(|loss| loss.group);
}
