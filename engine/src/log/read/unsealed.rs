//! The newest two files of a log, if the older one is not sealed: whether the newer one belongs to the log.
//!
//! A file is sealed while the next one takes groups, so a crash may leave both unsealed. Then both are read group by
//! group, as if they were one. [`Succession`] compares them.
//!
//! # States that a crash leaves
//!
//! The log makes its changes durable in this order: the groups of the full file, the header of the next file, index and
//! footer of the full file. The header and the groups of the next file may reach the disk earlier. So after a crash
//!
//! - the next file has no header: it was prepared, or its header was not synced. The full file has no valid footer, and
//!   may lack groups at its end.
//! - the next file has a header that continues the last group of the full file: nothing is missing in between. The seal
//!   of the full file may be torn anywhere, also within its index although its footer is valid. A next file without a
//!   group is not needed, unless that footer is valid.
//! - the next file has a header, and groups that it continues are missing: a torn tail, which was never synced. The
//!   full file has no valid footer. The next file is cut with the tail.
//!
//! Any other state is damage: missing groups that a footer or a group of the next file proves to be synced, a next file
//! without header after a valid footer, a header that does not continue the groups before.

use super::group_reader::{GroupReader, Rest};
use super::log_file::LogFile;
use super::scan::Scan;
use crate::log::error::{Damage, Result};
use crate::log::format::{FileHeader, Footer};
use crate::log::types::GroupId;

/// How a file relates to an unsealed one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Succession {
    /// It continues the file before, which has all of its groups.
    InUse,
    /// It was prepared and has no group.
    Unused,
    /// It follows a torn tail.
    Cut(CutFile),
    /// Unreadable groups of the file before were synced.
    GroupsDamaged(Damage),
    /// Its own header was synced and is unreadable. The groups that are readable in it.
    HeaderDamaged(Vec<GroupId>),
    /// It belongs elsewhere.
    Misplaced,
}

/// A file that is cut with a torn tail in the file before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutFile {
    /// Its name.
    pub name: String,
    /// Bytes in use: its header, if readable, and its commit groups.
    pub bytes: u64,
    /// The groups that its commit groups change, ascending, as far as they are readable.
    pub groups: Vec<GroupId>,
}

impl Succession {
    /// Of `file` with `header` and the groups that `after` found. It comes after an unsealed file with the groups that
    /// `before` found, and with `footer` if that is valid.
    pub(crate) fn of(
        before: &Scan,
        footer: Option<&Footer>,
        file: &LogFile,
        header: &FileHeader,
        after: &Scan,
    ) -> Succession {
        let expected = before.last_lsn.saturating_add(1);
        if !footer.is_none_or(|footer| ends_at(before, footer)) {
            return Succession::GroupsDamaged(Damage(
                "commit group cannot be read, though the footer says it is synced",
            ));
        }
        if expected == header.first_lsn && before.chain == header.chain {
            // A footer is written after the header of the next file is durable: that one stays.
            return if after.in_use || footer.is_some() { Succession::InUse } else { Succession::Unused };
        }
        if footer.is_some() || expected >= header.first_lsn {
            return Succession::Misplaced;
        }
        if after.recorded_synced >= expected {
            let what = "commit group cannot be read, though a later file says that it is synced";
            return Succession::GroupsDamaged(Damage(what));
        }
        let mut groups: Vec<GroupId> = after.summary.groups().map(|(group, _)| group).collect();
        groups.extend(&after.torn_groups);
        groups.sort_unstable();
        groups.dedup();
        Succession::Cut(CutFile { name: file.name.clone(), bytes: after.garbage_end.max(after.end), groups })
    }

    /// Of `file`, which has no readable header. `before` is `None` if the file before has a valid footer.
    pub(crate) fn of_headless(before: Option<&Scan>, file: &LogFile) -> Result<Succession> {
        let mut reader = GroupReader::new(file);
        let Rest { garbage_end, heads } = reader.scan_rest(0, true, None)?;
        let groups = reader.groups_of(&heads)?;
        // Its header is synced before that footer is written, and with or before the first of its groups.
        let was_synced = before.is_none_or(|before| heads.iter().any(|head| head.synced > before.last_lsn));
        Ok(match heads.first() {
            _ if was_synced => Succession::HeaderDamaged(groups),
            Some(first) => {
                let bytes = garbage_end - first.offset;
                Succession::Cut(CutFile { name: file.name.clone(), bytes, groups })
            }
            None => Succession::Unused,
        })
    }
}

/// Whether the groups of a file end where its footer says.
fn ends_at(scan: &Scan, footer: &Footer) -> bool {
    (footer.last_lsn, footer.chain, footer.index_offset) == (scan.last_lsn, scan.chain, scan.end)
}
