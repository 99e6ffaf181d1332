//! Opens a log: finds its files, reads their indexes, scans the last one, and cuts a torn tail.
//!
//! Which files there must be is in the log itself: the newest file's header lists the older ones, and records in the newest
//! file drop some of them ([`newest`]). A file that is not there is an error, a file that is there too many was dropped and is
//! deleted. Sealed files are believed by their index, which several threads read ([`sealed`]); of the newest, every byte is
//! verified.
//!
//! Recovery changes nothing before it has read and believed everything ([`mod@settle`]), needs no space, and when it is cut off by a
//! crash the next one comes to the same end.

mod create;
mod newest;
mod sealed;
mod settle;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::Disk;

use self::create::create;
use self::newest::{Newest, find_newest, older_files};
use self::settle::{settle, spares};
use self::threads::over;
use super::active::Active;
use super::error::{LogError, Result};
use super::file::{FileTable, LogFile};
use super::format::{file_name, parse_file_name};
use super::index::{Index, SHARDS, ShardSurvey};
use super::options::RecoveryMode;
use super::salvage::{Doubts, salvage};
use super::touched::Touched;
use super::{GroupId, LogOptions, RecoveryReport};

/// What recovery hands over.
pub(super) struct Recovered {
    pub(super) index: Index,
    pub(super) files: FileTable,
    pub(super) active: Active,
    pub(super) report: RecoveryReport,
    /// Spare files, by number.
    pub(super) spares: BTreeSet<u64>,
    /// What is not certain of a log that was salvaged; `None` of any other.
    pub(super) doubts: Option<Doubts>,
}

/// Opens the log on `disk` as the options say, and names the groups that damage concerns where something tells.
pub(super) fn recover(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    open(disk, options).map_err(|error| {
        let seq = error.file().and_then(parse_file_name);
        error.concerning(|| seq.and_then(|seq| changed_in(disk, seq)).unwrap_or_default())
    })
}

/// The groups that a file changes, as the file after it says.
pub(super) fn changed_in(disk: &dyn Disk, seq: u64) -> Option<Vec<GroupId>> {
    let (_, after) = LogFile::load(disk, seq.checked_add(1)?, None).ok()?;
    after.changed.filter(|_| after.prev_seq == seq)
}

/// Opens the log on `disk` as the options say; where there is none it is created, unless it is to be salvaged or must be there.
fn open(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    if options.recovery == RecoveryMode::Salvage {
        return salvage(disk, options);
    }
    let names = disk.list()?;
    let there: BTreeSet<u64> = names.iter().filter_map(|name| parse_file_name(name)).collect();
    let Some(last) = there.last() else {
        return create(disk, &names, options);
    };
    let newest = find_newest(disk, *last)?;
    let identity = newest.header.place.identity;
    let older = older_files(&newest, &there);
    let index = Index::new();
    let opened = sealed::open(disk, &older.files, identity, options.recovery_threads);
    let bytes_read = sealed::apply(&index, &opened.files, options, sealed::WINDOW)? + newest.bytes_read;
    let missing = || older.missing.map(|seq| LogError::missing(file_name(seq)));
    if let Some(error) = opened.failed.or_else(missing) {
        return Err(error);
    }
    sealed::check_chain(&newest.file, &newest.header, opened.files.last())?;
    let end = newest.scan.end;
    let mut editor = index.editor();
    let applied = newest.scan.effects.apply(newest.file.place.seq, &mut editor);
    drop(editor);
    applied.map_err(|damage| damage.at(&newest.file.name, end))?;
    let held = survey_index(&index, options.recovery_threads);
    if let Some((group, missing)) = held.gap {
        let what = format!("group {} lacks entry {missing}", group.0);
        return Err(LogError::Corrupt { file: newest.file.name.clone(), offset: end, what, groups: vec![group] });
    }
    if options.recovery == RecoveryMode::Strict && newest.scan.garbage_end > end {
        let (file, bytes) = (newest.file.name.clone(), newest.scan.garbage_end - end);
        return Err(LogError::TornTail { file, offset: end, bytes, groups: newest.scan.torn_groups });
    }
    let mut report = RecoveryReport {
        files: older.files.len() + 1,
        files_by_index: older.files.len(),
        files_scanned: 1 + if options.verify { older.files.len() } else { 0 },
        bytes_read,
        groups: held.groups,
        entries: held.entries,
        ..RecoveryReport::default()
    };
    settle(disk, &names, &newest, &older.files, &mut report)?;
    let active = activate(newest, older.files);
    let files = FileTable::default();
    opened.files.into_iter().for_each(|sealed| files.insert(sealed.file));
    files.insert(active.file.clone());
    let spares = spares(disk, &names, options)?;
    Ok(Recovered { index, files, active, report, spares, doubts: None })
}

/// What the whole index holds.
pub(super) fn survey_index(index: &Index, threads: usize) -> ShardSurvey {
    let shards: Vec<usize> = (0..SHARDS).collect();
    let surveys = over(threads, &shards, |shard| index.survey(*shard));
    surveys.into_iter().fold(ShardSurvey::default(), |sum, shard| ShardSurvey {
        groups: sum.groups + shard.groups,
        entries: sum.entries + shard.entries,
        gap: [sum.gap, shard.gap].into_iter().flatten().min(),
    })
}

fn activate(newest: Newest, older: BTreeSet<u64>) -> Active {
    let Newest { file, scan, .. } = newest;
    Active {
        touched: Touched::of(&scan.effects),
        used: scan.groups > 0,
        vouched: if scan.stopped_cleanly { scan.last_lsn } else { scan.vouched },
        older,
        ..Active::new(Arc::new(file), scan.end, scan.last_lsn, scan.chain)
    }
}
