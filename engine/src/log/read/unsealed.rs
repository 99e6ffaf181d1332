//! The newest two files of a log, if the older one is not sealed: whether the newer one belongs to the log.
//!
//! A file is sealed while the next one takes groups, so a crash may leave both unsealed. Then both are read group by
//! group, as if they were one. If groups of the older file are missing at its end, a group of the newer one decides: if
//! it records them as synced, they are damaged. Otherwise they are a torn tail, and the newer file is cut with them.

use super::group_reader::GroupReader;
use super::log_file::LogFile;
use super::scan::Scan;
use crate::log::error::Result;
use crate::log::format::{FileHeader, Footer};

/// How a file relates to an unsealed one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Succession {
    /// It continues the file before.
    InUse,
    /// It was never used, or its groups follow a torn tail. The number of bytes of these groups; 0 for an unused file.
    Surplus(u64),
    /// It proves that unreadable groups of the file before, or its own header, were synced.
    ProvesDamage,
    /// It belongs elsewhere.
    Misplaced,
}

impl Succession {
    /// Of a file with `header` and the groups that `after` found, after the unsealed file that `before` found.
    pub(crate) fn of(before: &Scan, header: &FileHeader, after: &Scan) -> Succession {
        let expected = before.last_lsn.saturating_add(1);
        if after.in_use && expected == header.first_lsn && before.chain == header.chain {
            Succession::InUse
        } else if after.recorded_synced >= expected {
            Succession::ProvesDamage
        } else if after.groups > 0 && expected >= header.first_lsn {
            Succession::Misplaced
        } else if after.in_use {
            Succession::Surplus(after.garbage_end.max(after.end) - u64::from(header.data_offset))
        } else {
            Succession::Surplus(0)
        }
    }

    /// Of `file`, which has no readable header. It was prepared and not used, or its header was never synced, unless a
    /// group in it records more as synced than the file before holds.
    pub(crate) fn of_headless(before: &Scan, file: &LogFile) -> Result<Succession> {
        let heads = GroupReader::new(file).scan_rest(0, true, None)?.heads;
        Ok(match heads.first() {
            _ if heads.iter().any(|head| head.synced > before.last_lsn) => Succession::ProvesDamage,
            Some(first) => Succession::Surplus(file.len().saturating_sub(first.offset)),
            None => Succession::Surplus(0),
        })
    }
}

/// The footer of a file that is sealed with a readable index.
pub(crate) fn valid_seal(file: &LogFile) -> Result<Option<Footer>> {
    let Some(footer) = file.footer()? else { return Ok(None) };
    Ok(file.stored_index(&footer)?.map(|_| footer))
}
