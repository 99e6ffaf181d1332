//! Opens a log: finds its files, reads their indexes, scans the newest, and truncates a torn tail.
//!
//! The file set is recorded in the log: the header of the newest file lists the older ones, and records in the newest
//! file drop some of them ([`newest`]). A missing file is an error. A file that is not listed was dropped and is
//! deleted. Of sealed files only the index is read, by several threads ([`sealed`]). Every byte of the newest file is
//! verified.
//!
//! Recovery changes nothing on disk before it has verified everything ([`mod@finalize`]), and needs no space. If a
//! crash interrupts it, the next recovery has the same outcome.
//!
//! If there is no log, recovery creates one. An empty log in place of a lost one would lack votes and entries that the
//! node has acknowledged. So creation fails if the directory has remains of a log ([`is_remains`]), or if the caller
//! requires an existing log ([`LogOptions::create`]).
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `newest`, `parallel`: the newest file, and threads
//! 2. `report`, `sealed`: the output of recovery, and sealed files
//! 3. `finalize`, `salvaged`: the final changes on disk, and damaged logs

mod finalize;
mod newest;
mod parallel;
mod report;
mod salvaged;
mod sealed;
#[cfg(test)]
mod tests;

pub use self::report::{RecoveryReport, Uncertain};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::disk::Disk;

use self::finalize::{finalize, find_spares};
use self::newest::{ScannedFile, find_newest, older_files};
use self::report::{Recovered, survey_index};
use self::salvaged::salvage;
use crate::log::commit::{ActiveFile, FullFile, is_unfinished, parse_spare_name};
use crate::log::error::{LogError, Result};
use crate::log::format::{FileHeader, Identity, Place, file_name, parse_file_name};
use crate::log::index::Index;
use crate::log::options::{LogOptions, RecoveryMode};
use crate::log::read::{FileTable, LogFile, Seal, changed_in, temporary_number};

/// Opens the log on `disk`. Errors name the groups that the damage concerns, if known.
pub(super) fn recover(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    open(disk, options).map_err(|error| {
        let seq = error.file().and_then(parse_file_name);
        error.concerning(|| seq.and_then(|seq| changed_in(disk, seq)).unwrap_or_default())
    })
}

/// Opens the log on `disk`. Creates it if there is none, unless it is opened for salvage or must exist.
fn open(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    if options.recovery == RecoveryMode::Salvage {
        return salvage(disk, options);
    }
    let names = disk.list()?;
    let existing: BTreeSet<u64> = names.iter().filter_map(|name| parse_file_name(name)).collect();
    let Some(newest) = find_newest(disk, &existing)? else {
        return create(disk, &names, options);
    };
    let identity = newest.header.place.identity;
    let mut older = older_files(&newest, &existing);
    let index = Index::new();
    let opened = sealed::open(disk, &older.files, identity, options.recovery_threads);
    let bytes_read = sealed::apply(&index, &opened.files, options, sealed::WINDOW)? + newest.bytes_read;
    let missing = || older.missing.map(|seq| LogError::missing(file_name(seq)));
    if let Some(error) = opened.failed.or_else(missing) {
        return Err(error);
    }
    let oldest = newest.full.as_ref().map_or((&newest.file, &newest.header), |full| (&full.file, &full.header));
    sealed::check_chain(oldest.0, oldest.1, opened.files.last())?;
    for (file, scan) in newest.full.iter().map(|full| (&full.file, &full.scan)).chain([(&newest.file, &newest.scan)]) {
        let mut editor = index.editor();
        scan.summary.apply(file.place.seq, &mut editor).map_err(|damage| damage.at(&file.name, scan.end))?;
    }
    let totals = survey_index(&index, options.recovery_threads);
    let end = newest.scan.end;
    if let Some((group, missing)) = totals.gap {
        let what = format!("group {} lacks entry {missing}", group.0);
        return Err(LogError::Corrupt { file: newest.file.name.clone(), offset: end, what, groups: vec![group] });
    }
    if options.recovery == RecoveryMode::Strict && newest.cut_bytes() > 0 {
        let (file, bytes) = (newest.file.name.clone(), newest.cut_bytes());
        return Err(LogError::TornTail { file, offset: end, bytes, groups: newest.cut_groups() });
    }
    let unsealed = 1 + usize::from(newest.full.is_some());
    let mut report = RecoveryReport {
        files: older.files.len() + unsealed,
        files_by_index: older.files.len(),
        files_scanned: unsealed + if options.verify { older.files.len() } else { 0 },
        bytes_read,
        groups: totals.groups,
        entries: totals.entries,
        ..RecoveryReport::default()
    };
    older.files.extend(newest.full.iter().map(|full| full.file.place.seq));
    finalize(disk, &names, &newest, &older.files, &mut report)?;
    let files = FileTable::default();
    opened.files.into_iter().for_each(|sealed| files.insert(sealed.file));
    let active = ActiveFile::recovered(Arc::new(newest.file), &newest.scan, older.files);
    let full = newest.full.map(|full| full_file(full, active.file()));
    full.iter().for_each(|full| files.insert(full.file.clone()));
    files.insert(active.file());
    let spares = find_spares(disk, &names, options)?;
    Ok(Recovered { index, files, active, full, report, spares, doubts: None })
}

/// The file before the active one, ready to be sealed.
fn full_file(full: ScannedFile, next: Arc<LogFile>) -> FullFile {
    let ScannedFile { file, scan, .. } = full;
    let (end, last_lsn, chain) = (scan.end, scan.last_lsn, scan.chain);
    file.last_lsn.store(last_lsn, Ordering::Release);
    let seal = Some(Seal::new(&file, end, scan.summary.encode(), last_lsn, chain));
    FullFile { file: Arc::new(file), next, end, last_lsn, chain, seal }
}

/// The number of the first file of a log.
const FIRST: u64 = 1;

/// Creates a log of one empty file. `names` are the files of the directory, none of which is a log file.
fn create(disk: &dyn Disk, names: &[String], options: &LogOptions) -> Result<Recovered> {
    if names.iter().any(|name| is_remains(name)) {
        // The missing files are unknown.
        return Err(LogError::missing("*.log"));
    }
    if !options.create {
        return Err(LogError::NoLog);
    }
    #[expect(clippy::disallowed_methods, reason = "the identity of a new log is drawn once, here at the edge")]
    let identity = options.identity.unwrap_or_else(rand::random);
    let place = Place { identity: Identity(identity), seq: FIRST };
    let mut header = FileHeader {
        place,
        prev_seq: 0,
        first_lsn: 1,
        chain: 0,
        data_offset: 0,
        flags: 0,
        live: Vec::new(),
        changed: None,
    };
    let start = header.encode();
    let file = Arc::new(LogFile::create(disk, place, &start)?);
    let files = FileTable::default();
    files.insert(file.clone());
    let offset = file.len();
    let active = ActiveFile::new(file, offset, 0, 0);
    let report = RecoveryReport { files: 1, ..RecoveryReport::default() };
    let spares = BTreeSet::new();
    Ok(Recovered { index: Index::new(), files, active, full: None, report, spares, doubts: None })
}

/// Whether a file of this name proves that there was a log: a spare, also an unfinished one, or a temporary file after
/// the first. All of them are created only after the first file is durable. (A crash during creation leaves the first
/// temporary file.)
fn is_remains(name: &str) -> bool {
    let is_spare = parse_spare_name(name).is_some() || is_unfinished(name);
    is_spare || temporary_number(name).is_some_and(|seq| seq > FIRST)
}
