//! Makes the disk what was recovered: cuts the torn tail, makes what is kept durable, deletes what is not needed.
//!
//! Runs after everything was read and believed, needs no space, and may be cut off by a crash anywhere.

use std::collections::BTreeSet;

use crate::disk::Disk;

use super::super::error::Result;
use super::super::file::{LogFile, temporary_number};
use super::super::format::parse_file_name;
use super::super::spare::{fits, is_unfinished, parse_spare_name};
use super::super::stretch::in_pieces;
use super::super::{LogOptions, RecoveryReport};
use super::newest::Newest;

/// Makes the disk what was recovered, and reports what was cut.
pub(super) fn settle(
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
        report.uncertain = Some(scan.uncertain());
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
            || temporary_number(name).is_some()
            || is_unfinished(name)
            || parse_file_name(name).is_some_and(|seq| seq < newest.file.place.seq && !is_ours(seq))
    };
    for name in names.iter().filter(surplus) {
        disk.remove_if_there(name)?;
    }
    // Names that were found here may not be durable either: a process that ended left them so.
    Ok(disk.sync_dir()?)
}

/// The spare files, without those that are too many, that a crash left half made, or that have a second name: these are deleted.
pub(super) fn spares(disk: &dyn Disk, names: &[String], options: &LogOptions) -> Result<BTreeSet<u64>> {
    let mut spares = BTreeSet::new();
    for (number, name) in names.iter().filter_map(|name| Some((parse_spare_name(name)?, name))) {
        let file = disk.open(name)?;
        let keeps = fits(file.len()?, options.file_bytes) && file.links()? == 1;
        if keeps && spares.len() < options.spare_files {
            spares.insert(number);
        } else {
            disk.remove_if_there(name)?;
        }
    }
    Ok(spares)
}

/// Writes `from..to` of a file piece by piece, each filled by `fill`.
fn overwrite(file: &LogFile, from: u64, to: u64, fill: impl Fn(&mut [u8], u64) -> Result<()>) -> Result<()> {
    in_pieces(from, to, |piece, at| {
        fill(piece, at)?;
        Ok(file.write_at(piece, at)?)
    })
}
