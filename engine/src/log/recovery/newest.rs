//! Finds the newest file in use. It lists the files that the log consists of.
//!
//! The newest two files may be unsealed, because a full file is sealed while the next one takes groups. Both are then
//! read group by group ([`Succession`]). If the newer one was not used, or if it follows a torn tail, the older one is
//! the newest in use and the newer one is deleted.

use std::collections::BTreeSet;

use crate::disk::Disk;

use crate::log::error::{Damage, LogError, Result};
use crate::log::format::{FOOTER, FileHeader, Footer, Place, file_name};
use crate::log::read::{LogFile, Scan, Succession, scan, valid_seal};

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
    /// A file after it: unused, or cut.
    pub(super) surplus: Option<Surplus>,
    /// The file before it, with a seal that is not known to be durable.
    pub(super) fresh_seal: Option<(LogFile, Footer)>,
    /// Bytes read to find it.
    pub(super) bytes_read: u64,
}

/// A file after the newest one in use.
pub(super) struct Surplus {
    pub(super) name: String,
    /// Bytes of its groups, which follow a torn tail; 0 for an unused file.
    pub(super) cut: u64,
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
        return Ok(found.newest(None, bytes_read));
    }
    let (before, before_header) = LogFile::load(disk, found.header.prev_seq, Some(found.header.place.identity))?;
    match valid_seal(&before)? {
        Some(footer) => Ok(Newest { fresh_seal: Some((before, footer)), ..found.newest(None, bytes_read) }),
        None => {
            let scan = scan(&before, &before_header)?;
            after_unsealed(ScannedFile { file: before, header: before_header, scan }, found, bytes_read)
        }
    }
}

/// The newest file in use of two that are not sealed.
fn after_unsealed(before: ScannedFile, found: ScannedFile, bytes_read: u64) -> Result<Newest> {
    let bytes_read = bytes_read + before.bytes_read();
    match Succession::of(&before.scan, &found.header, &found.scan) {
        Succession::InUse => Ok(Newest { full: Some(before), ..found.newest(None, bytes_read) }),
        Succession::Surplus(cut) => {
            before.newest(Some(Surplus { name: found.file.name, cut }), bytes_read).without_partial_seal()
        }
        Succession::ProvesDamage => {
            let damage = Damage("commit group cannot be read, though a later file says that it is synced");
            Err(damage.at(&before.file.name, before.scan.end))
        }
        Succession::Misplaced => {
            Err(LogError::misplaced(&found.file.name, format!("it does not continue {}", before.file.name)))
        }
    }
}

/// The newest file in use, if `last` has no readable header because of `error`. That is damage, unless the file before
/// it is not sealed: then `last` was prepared and not used, or its header was never synced.
fn before_headless(disk: &dyn Disk, existing: &BTreeSet<u64>, last: u64, error: LogError) -> Result<Newest> {
    let before = last.saturating_sub(1);
    if !matches!(error, LogError::Corrupt { .. }) || !existing.contains(&before) {
        return Err(error);
    }
    let (file, header) = LogFile::load(disk, before, None)?;
    if valid_seal(&file)?.is_some() {
        return Err(error);
    }
    let before = ScannedFile { scan: scan(&file, &header)?, file, header };
    let headless = disk.open(&file_name(last))?;
    let len = headless.len()?;
    let place = Place { seq: last, ..before.header.place };
    let headless = LogFile::new(place, file_name(last), headless, len);
    let Succession::Surplus(cut) = Succession::of_headless(&before.scan, &headless)? else { return Err(error) };
    let bytes_read = before.bytes_read() + len;
    before.newest(Some(Surplus { name: headless.name, cut }), bytes_read).without_partial_seal()
}

impl ScannedFile {
    fn start(&self) -> u64 {
        u64::from(self.header.data_offset)
    }

    fn bytes_read(&self) -> u64 {
        self.start() + FOOTER as u64 + self.scan.bytes_read
    }

    fn newest(self, surplus: Option<Surplus>, bytes_read: u64) -> Newest {
        let ScannedFile { file, header, scan } = self;
        Newest { file, header, scan, full: None, surplus, fresh_seal: None, bytes_read }
    }
}

impl Newest {
    /// Marks a seal that is not complete as garbage, to be overwritten with zeros before the next group.
    fn without_partial_seal(mut self) -> Result<Newest> {
        if self.file.footer()?.is_some() {
            self.scan.garbage_end = self.file.len();
        }
        Ok(self)
    }

    /// Bytes that are cut: the torn tail, and the groups of a later file behind it.
    pub(super) fn cut_bytes(&self) -> u64 {
        self.scan.garbage_end - self.scan.end + self.surplus.as_ref().map_or(0, |surplus| surplus.cut)
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
