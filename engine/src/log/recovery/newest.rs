//! Finds the newest file in use. It lists the files that the log consists of.
//!
//! The newest two files may be unsealed, because a full file is sealed while the next one takes groups. Both are then
//! read group by group; [`Succession`] lists the states that a crash leaves. If the newer one was not used, or if it
//! follows a torn tail, the older one is the newest in use and the newer one is deleted.

use std::collections::BTreeSet;

use crate::disk::Disk;

use crate::log::error::{LogError, Result};
use crate::log::format::{FOOTER, FileHeader, Footer, Place, file_name};
use crate::log::read::{CutFile, LogFile, Scan, Succession, scan};
use crate::log::types::GroupId;

/// A file and its groups.
pub(super) struct ScannedFile {
    pub(super) file: LogFile,
    pub(super) header: FileHeader,
    pub(super) scan: Scan,
}

/// The newest file in use.
pub(super) struct Newest {
    pub(super) file: LogFile,
    pub(super) header: FileHeader,
    pub(super) scan: Scan,
    /// The file before it, if that is not sealed. It has all of its groups.
    pub(super) full: Option<ScannedFile>,
    /// The name of a file after it, to be deleted: unused, or cut.
    pub(super) surplus: Option<String>,
    /// The same file, if it is cut.
    pub(super) cut_file: Option<CutFile>,
    /// The file before it, with a seal that is not known to be durable.
    pub(super) fresh_seal: Option<(LogFile, Footer)>,
    /// Bytes read to find it.
    pub(super) bytes_read: u64,
}

/// The sealed files of a log.
pub(super) struct OlderFiles {
    /// Their numbers, ascending, up to the first missing one.
    pub(super) files: BTreeSet<u64>,
    /// The first missing one.
    pub(super) missing: Option<u64>,
}

/// The newest file in use: the last of `existing`, the numbers of all files, or the one before it if no group of the
/// last continues the log. `None` if there is no file.
pub(super) fn find_newest(disk: &dyn Disk, existing: &BTreeSet<u64>) -> Result<Option<Newest>> {
    existing.last().map(|last| newest_up_to(disk, existing, *last)).transpose()
}

fn newest_up_to(disk: &dyn Disk, existing: &BTreeSet<u64>, last: u64) -> Result<Newest> {
    let (file, header) = match LogFile::load(disk, last, None) {
        Ok(loaded) => loaded,
        Err(error) => return before_headless(disk, existing, last, error),
    };
    if file.footer()?.is_some() {
        // A file is sealed only after its successor is durable.
        return Err(LogError::missing(file_name(last.saturating_add(1))));
    }
    let found = ScannedFile { scan: scan(&file, &header)?, file, header };
    let bytes_read = found.bytes_read();
    let dropped = found.scan.summary.dropped.contains(&found.header.prev_seq);
    if found.header.prev_seq == 0 || dropped {
        return Ok(found.newest(bytes_read));
    }
    let (before, before_header) = LogFile::load(disk, found.header.prev_seq, Some(found.header.place.identity))?;
    let footer = before.footer()?;
    if let Some(footer) = &footer
        && before.stored_index(footer)?.is_some()
    {
        return Ok(Newest { fresh_seal: Some((before, *footer)), ..found.newest(bytes_read) });
    }
    let before = ScannedFile { scan: scan(&before, &before_header)?, file: before, header: before_header };
    let bytes_read = bytes_read + before.bytes_read();
    match Succession::of(&before.scan, footer.as_ref(), &found.file, &found.header, &found.scan) {
        Succession::InUse => Ok(Newest { full: Some(before), ..found.newest(bytes_read) }),
        succession => before.without_next(succession, &found.file, bytes_read),
    }
}

/// The newest file in use, if `last` has no readable header because of `error`. That is damage, unless the file before
/// it has no footer: then `last` was prepared and not used, or its header was never synced.
fn before_headless(disk: &dyn Disk, existing: &BTreeSet<u64>, last: u64, error: LogError) -> Result<Newest> {
    let before = last.saturating_sub(1);
    if !matches!(error, LogError::Corrupt { .. }) || !existing.contains(&before) {
        return Err(error);
    }
    let (file, header) = LogFile::load(disk, before, None)?;
    let headless = disk.open(&file_name(last))?;
    let len = headless.len()?;
    let headless = LogFile::new(Place { seq: last, ..header.place }, file_name(last), headless, len);
    let before = match file.footer()? {
        Some(_) => None,
        None => Some(ScannedFile { scan: scan(&file, &header)?, file, header }),
    };
    let succession = Succession::of_headless(before.as_ref().map(|before| &before.scan), &headless)?;
    match (before, succession) {
        (Some(before), succession @ (Succession::Unused | Succession::Cut(_))) => {
            let bytes_read = before.bytes_read() + len;
            before.without_next(succession, &headless, bytes_read)
        }
        (_, Succession::HeaderDamaged(groups)) => Err(error.concerning(|| groups)),
        _ => Err(error),
    }
}

impl ScannedFile {
    fn start(&self) -> u64 {
        u64::from(self.header.data_offset)
    }

    fn bytes_read(&self) -> u64 {
        self.start() + FOOTER as u64 + self.scan.bytes_read
    }

    fn newest(self, bytes_read: u64) -> Newest {
        let ScannedFile { file, header, scan } = self;
        Newest { file, header, scan, full: None, surplus: None, cut_file: None, fresh_seal: None, bytes_read }
    }

    /// This file as the newest in use. `next` is the file after it, which does not continue it.
    fn without_next(self, succession: Succession, next: &LogFile, bytes_read: u64) -> Result<Newest> {
        let cut_file = match succession {
            Succession::Cut(cut) => Some(cut),
            Succession::Unused => None,
            Succession::GroupsDamaged(damage) => return Err(damage.at(&self.file.name, self.scan.end)),
            Succession::InUse | Succession::HeaderDamaged(_) | Succession::Misplaced => {
                let what = format!("it does not continue {}", self.file.name);
                return Err(LogError::misplaced(&next.name, what));
            }
        };
        Ok(Newest { surplus: Some(next.name.clone()), cut_file, ..self.newest(bytes_read) })
    }
}

impl Newest {
    /// Bytes that are cut: the torn tail, and the later file behind it.
    pub(super) fn cut_bytes(&self) -> u64 {
        self.scan.garbage_end - self.scan.end + self.cut_file.as_ref().map_or(0, |cut| cut.bytes)
    }

    /// The groups that the cut commit groups change, ascending, as far as they are readable.
    pub(super) fn cut_groups(&self) -> Vec<GroupId> {
        let behind = self.cut_file.iter().flat_map(|cut| &cut.groups);
        let mut groups: Vec<GroupId> = self.scan.torn_groups.iter().chain(behind).copied().collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// The sealed files of the log. Stops at the first missing one.
pub(super) fn older_files(newest: &Newest, existing: &BTreeSet<u64>) -> OlderFiles {
    let mut older = OlderFiles { files: BTreeSet::new(), missing: None };
    let listed = newest.header.live.iter().flat_map(|(first, last)| *first..=*last);
    let full = newest.full.as_ref().map(|full| full.file.place.seq);
    for seq in listed.filter(|seq| Some(*seq) != full && !newest.scan.summary.dropped.contains(seq)) {
        if !existing.contains(&seq) {
            older.missing = Some(seq);
            break;
        }
        older.files.insert(seq);
    }
    older
}
