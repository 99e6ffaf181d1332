//! Opens a log: finds its files, reads their indexes, scans the last one, and cuts a torn tail.
//!
//! Which files there must be is in the log itself: the newest file's header lists the older ones, and records in the newest
//! file drop some of them. A file that is not there is an error, a file that is there too many was dropped and is
//! deleted. Sealed files are believed by their index; of the newest, every byte is verified.
//!
//! Recovery changes nothing before it has read and believed everything, needs no space, and when it is cut off by a crash
//! the next one comes to the same end.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::Disk;

use super::active::Active;
use super::effects::FileEffects;
use super::error::{Damage, LogError, Result};
use super::file::{FileTable, LogFile, is_temporary};
use super::format::{FileHeader, Footer, Identity, Place, file_name, parse_file_name};
use super::index::Index;
use super::scan::{Scan, scan};
use super::spare::parse_spare_name;
use super::{LogOptions, RecoveryReport};

/// What recovery hands over.
pub(super) struct Recovered {
    pub(super) index: Index,
    pub(super) files: FileTable,
    pub(super) active: Active,
    pub(super) report: RecoveryReport,
    /// Spare files, by number.
    pub(super) spares: BTreeSet<u64>,
}

/// The newest file in use.
struct Newest {
    file: LogFile,
    header: FileHeader,
    scan: Scan,
    /// A file after it that was created and never used.
    unused: Option<String>,
    /// A seal before it of which nothing says that it is durable.
    fresh_seal: Option<(LogFile, Footer)>,
}

/// Opens the log on `disk`, creating it where there is none.
pub(super) fn recover(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    let names = disk.list()?;
    let Some(last) = names.iter().filter_map(|name| parse_file_name(name)).max() else {
        return create(disk, options);
    };
    let newest = find_newest(disk, last)?;
    let identity = newest.header.place.identity;
    let older = older_files(&newest);
    let index = Index::new();
    let files = FileTable::default();
    let mut before: Option<(String, u64, Footer)> = None;
    for seq in &older {
        let (file, header) = LogFile::load(disk, *seq, Some(identity))?;
        check_chain(&file, &header, before.as_ref())?;
        let (footer, effects) = file.sealed()?;
        if options.verify {
            verify(&file, &header, &footer, &effects)?;
        }
        let mut editor = index.editor();
        effects.apply(*seq, &mut editor).map_err(|damage| damage.at(&file.name, footer.index_offset))?;
        before = Some((file.name.clone(), *seq, footer));
        files.insert(Arc::new(file));
    }
    check_chain(&newest.file, &newest.header, before.as_ref())?;
    let end = newest.scan.end;
    let mut editor = index.editor();
    newest
        .scan
        .effects
        .apply(newest.file.place.seq, &mut editor)
        .map_err(|damage| damage.at(&newest.file.name, end))?;
    drop(editor);
    if let Some((group, missing)) = index.first_gap() {
        let what = format!("group {} lacks entry {missing}", group.0);
        return Err(LogError::Corrupt { file: newest.file.name.clone(), offset: end, what });
    }
    let mut report = RecoveryReport { files: older.len() + 1, ..RecoveryReport::default() };
    (report.groups, report.entries) = index.totals();
    settle(disk, &names, &newest, &older, &mut report)?;
    let active = activate(newest, older);
    files.insert(active.file.clone());
    let spares = spares(disk, &names, options)?;
    Ok(Recovered { index, files, active, report, spares })
}

/// A log of one empty file.
fn create(disk: &dyn Disk, options: &LogOptions) -> Result<Recovered> {
    #[expect(clippy::disallowed_methods, reason = "the identity of a new log is drawn once, here at the edge")]
    let identity = options.identity.unwrap_or_else(rand::random);
    let place = Place { identity: Identity(identity), seq: 1 };
    let mut header =
        FileHeader { place, prev_seq: 0, first_lsn: 1, chain: 0, data_offset: 0, flags: 0, live: Vec::new() };
    let file = Arc::new(LogFile::create(disk, &mut header)?);
    let files = FileTable::default();
    files.insert(file.clone());
    let active = Active {
        offset: file.len(),
        file,
        effects: FileEffects::default(),
        used: false,
        lsn: 0,
        chain: 0,
        vouched: 0,
        older: BTreeSet::new(),
    };
    let report = RecoveryReport { files: 1, ..RecoveryReport::default() };
    Ok(Recovered { index: Index::new(), files, active, report, spares: BTreeSet::new() })
}

/// The newest file that is in use: `last`, or the one before it where a crash came between the creation of `last` and the
/// seal of that one.
fn find_newest(disk: &dyn Disk, last: u64) -> Result<Newest> {
    let (file, header) = LogFile::load(disk, last, None)?;
    if file.footer()?.is_some() {
        // A file is sealed only after its successor is durable.
        return Err(LogError::Missing { file: file_name(last + 1) });
    }
    let found = scan(&file, &header)?;
    let dropped = found.effects.dropped.contains(&header.prev_seq);
    if header.prev_seq == 0 || dropped {
        return Ok(Newest { file, header, scan: found, unused: None, fresh_seal: None });
    }
    let identity = header.place.identity;
    let (before, before_header) = LogFile::load(disk, header.prev_seq, Some(identity))?;
    let seal = match before.footer()? {
        Some(footer) => before.stored_index(&footer)?.map(|_| footer),
        None => None,
    };
    let fresh = found.groups == 0;
    match seal {
        Some(footer) => {
            let fresh_seal = fresh.then_some((before, footer));
            Ok(Newest { file, header, scan: found, unused: None, fresh_seal })
        }
        None if fresh && found.garbage_end == found.end => {
            let mut scan = scan(&before, &before_header)?;
            // All of it was synced before the later file was made: nothing of it can be a torn tail.
            if scan.last_lsn.saturating_add(1) != header.first_lsn || scan.chain != header.chain {
                return Err(Damage("commit group cannot be read, and is synced").at(&before.name, scan.end));
            }
            if before.footer()?.is_some() {
                // Half a seal: it is wiped out before the file is written to again.
                scan.garbage_end = before.len();
            }
            Ok(Newest { file: before, header: before_header, scan, unused: Some(file.name), fresh_seal: None })
        }
        None => Err(Damage("file has no seal, though a later one is in use").at(&before.name, before.len())),
    }
}

/// The older files that the log consists of.
fn older_files(newest: &Newest) -> BTreeSet<u64> {
    let listed = newest.header.live.iter().flat_map(|(first, last)| *first..=*last);
    listed.filter(|seq| !newest.scan.effects.dropped.contains(seq)).collect()
}

/// A file continues the one before it, where that one is still there.
fn check_chain(file: &LogFile, header: &FileHeader, before: Option<&(String, u64, Footer)>) -> Result<()> {
    let Some((name, seq, footer)) = before else { return Ok(()) };
    let continues = footer.last_lsn + 1 == header.first_lsn && footer.chain == header.chain;
    let later = footer.last_lsn < header.first_lsn;
    if (header.prev_seq == *seq && !continues) || !later {
        return Err(LogError::Misplaced { file: file.name.clone(), what: format!("it does not continue {name}") });
    }
    Ok(())
}

/// Reads every byte of a sealed file, and compares its groups with its index.
fn verify(file: &LogFile, header: &FileHeader, footer: &Footer, effects: &FileEffects) -> Result<()> {
    let found = scan(file, header)?;
    if found.end != footer.index_offset || found.last_lsn != footer.last_lsn || found.chain != footer.chain {
        return Err(Damage("commit group cannot be read").at(&file.name, found.end));
    }
    if found.effects.encode() != effects.encode() {
        return Err(Damage("index does not say what the file holds").at(&file.name, footer.index_offset));
    }
    Ok(())
}

/// Makes the disk what was recovered: cuts the torn tail, makes what is kept durable, deletes what is not needed.
fn settle(
    disk: &dyn Disk,
    names: &[String],
    newest: &Newest,
    older: &BTreeSet<u64>,
    report: &mut RecoveryReport,
) -> Result<()> {
    let (file, scan) = (&newest.file, &newest.scan);
    if scan.garbage_end > scan.end {
        report.truncated_bytes = scan.garbage_end - scan.end;
        report.truncated_at = Some((file.name.clone(), scan.end));
        overwrite(file, scan.end, scan.garbage_end, |bytes, _| {
            bytes.fill(0);
            Ok(())
        })?;
    }
    // A sync that failed before may have left pages that look clean and are not on disk: they are written again.
    // (The padding of the last group may be missing: it ends with the file then.)
    overwrite(file, scan.unvouched_from, scan.end.min(file.len()), |bytes, offset| file.read(bytes, offset))?;
    file.file.sync()?;
    if let Some((sealed, footer)) = &newest.fresh_seal {
        overwrite(sealed, footer.index_offset, sealed.len(), |bytes, offset| sealed.read(bytes, offset))?;
        sealed.file.sync()?;
    }
    let is_ours = |seq: u64| seq == newest.file.place.seq || older.contains(&seq);
    let surplus = |name: &&String| {
        newest.unused.as_ref() == Some(*name)
            || is_temporary(name)
            || parse_file_name(name).is_some_and(|seq| seq < newest.file.place.seq && !is_ours(seq))
    };
    for name in names.iter().filter(surplus) {
        disk.remove_if_there(name)?;
    }
    // Names that were found here may not be durable either: a process that ended left them so.
    Ok(disk.sync_dir()?)
}

/// The spare files, without those that are too many, that a crash left half made, or that have a second name: these are deleted.
fn spares(disk: &dyn Disk, names: &[String], options: &LogOptions) -> Result<BTreeSet<u64>> {
    let mut spares = BTreeSet::new();
    for (number, name) in names.iter().filter_map(|name| Some((parse_spare_name(name)?, name))) {
        let file = disk.open(name)?;
        let fits = file.len()? >= options.file_bytes / 2 && file.links()? == 1;
        if fits && spares.len() < options.spare_files {
            spares.insert(number);
        } else {
            disk.remove_if_there(name)?;
        }
    }
    Ok(spares)
}

/// Writes `from..to` of a file piece by piece, each filled by `fill`.
fn overwrite(file: &LogFile, from: u64, to: u64, fill: impl Fn(&mut [u8], u64) -> Result<()>) -> Result<()> {
    let mut piece = vec![0; to.saturating_sub(from).min(256 << 10) as usize];
    let mut at = from;
    while at < to {
        let step = (to - at).min(piece.len() as u64) as usize;
        fill(&mut piece[..step], at)?;
        file.write_at(&piece[..step], at)?;
        at += step as u64;
    }
    Ok(())
}

fn activate(newest: Newest, older: BTreeSet<u64>) -> Active {
    let Newest { file, scan, .. } = newest;
    Active {
        offset: scan.end,
        file: Arc::new(file),
        effects: scan.effects,
        used: scan.groups > 0,
        lsn: scan.last_lsn,
        chain: scan.chain,
        vouched: if scan.stopped_cleanly { scan.last_lsn } else { scan.vouched },
        older,
    }
}
