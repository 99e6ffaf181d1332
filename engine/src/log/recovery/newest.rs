//! Finds the newest file in use. It lists the files that the log consists of.

use std::collections::BTreeSet;

use crate::disk::Disk;

use crate::log::error::{Damage, LogError, Result};
use crate::log::format::{FOOTER, FileHeader, Footer, file_name};
use crate::log::read::{LogFile, Scan, scan};

/// The newest file in use.
pub(super) struct Newest {
    pub(super) file: LogFile,
    pub(super) header: FileHeader,
    pub(super) scan: Scan,
    /// An unused file after it.
    pub(super) unused: Option<String>,
    /// The file before it, with a seal that is not known to be durable.
    pub(super) fresh_seal: Option<(LogFile, Footer)>,
    /// Bytes read to find it.
    pub(super) bytes_read: u64,
}

/// The older files of a log.
pub(super) struct OlderFiles {
    /// Their numbers, ascending, up to the first missing one.
    pub(super) files: BTreeSet<u64>,
    /// The first missing one.
    pub(super) missing: Option<u64>,
}

/// The newest file in use: `last`, or the one before it if a crash happened after the creation of `last` and before that
/// one was sealed.
pub(super) fn find_newest(disk: &dyn Disk, last: u64) -> Result<Newest> {
    let (file, header) = LogFile::load(disk, last, None)?;
    if file.footer()?.is_some() {
        // A file is sealed only after its successor is durable.
        return Err(LogError::missing(file_name(last.saturating_add(1))));
    }
    let found = scan(&file, &header)?;
    let bytes_read = u64::from(header.data_offset) + FOOTER as u64 + found.bytes_read;
    let dropped = found.summary.dropped.contains(&header.prev_seq);
    if header.prev_seq == 0 || dropped {
        return Ok(Newest { file, header, scan: found, unused: None, fresh_seal: None, bytes_read });
    }
    let identity = header.place.identity;
    let (before, before_header) = LogFile::load(disk, header.prev_seq, Some(identity))?;
    let seal = match before.footer()? {
        Some(footer) => before.stored_index(&footer)?.map(|_| footer),
        None => None,
    };
    match seal {
        Some(footer) => {
            let fresh_seal = (found.groups == 0).then_some((before, footer));
            Ok(Newest { file, header, scan: found, unused: None, fresh_seal, bytes_read })
        }
        None if !found.in_use => {
            let mut scan = scan(&before, &before_header)?;
            // The later file was created after every group of this one was synced, and records the last one. So a
            // missing group is damage, not a torn tail.
            if scan.last_lsn.saturating_add(1) != header.first_lsn || scan.chain != header.chain {
                let damage = Damage("commit group cannot be read, though a later file says that it is synced");
                return Err(damage.at(&before.name, scan.end));
            }
            if before.footer()?.is_some() {
                // A seal that is not known to be complete is overwritten with zeros before the next group.
                scan.garbage_end = before.len();
            }
            let bytes_read = bytes_read + u64::from(before_header.data_offset) + FOOTER as u64 + scan.bytes_read;
            let unused = Some(file.name);
            Ok(Newest { file: before, header: before_header, scan, unused, fresh_seal: None, bytes_read })
        }
        None => Err(Damage("file has no seal, though a later one is in use").at(&before.name, before.len())),
    }
}

/// The older files of the log. Stops at the first missing one.
pub(super) fn older_files(newest: &Newest, existing: &BTreeSet<u64>) -> OlderFiles {
    let mut older = OlderFiles { files: BTreeSet::new(), missing: None };
    let listed = newest.header.live.iter().flat_map(|(first, last)| *first..=*last);
    for seq in listed.filter(|seq| !newest.scan.summary.dropped.contains(seq)) {
        if !existing.contains(&seq) {
            older.missing = Some(seq);
            break;
        }
        older.files.insert(seq);
    }
    older
}
