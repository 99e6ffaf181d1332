//! Applies the outcome of recovery to the disk: truncates the torn tail, syncs the rest, deletes unneeded files.
//!
//! Runs after everything is verified, needs no space, and may be interrupted by a crash anywhere.

use std::collections::BTreeSet;

use crate::disk::Disk;

use super::newest::Newest;
use super::report::{RecoveryReport, Uncertain};
use crate::log::commit::{is_reusable, is_unfinished, parse_spare_name};
use crate::log::error::Result;
use crate::log::format::{FileHeader, parse_file_name};
use crate::log::options::LogOptions;
use crate::log::read::{LogFile, Scan, temporary_number};
use crate::log::types::Lsn;

/// Applies the outcome to the disk, and reports what was truncated.
pub(super) fn finalize(
    disk: &dyn Disk,
    names: &[String],
    newest: &Newest,
    older: &BTreeSet<u64>,
    report: &mut RecoveryReport,
) -> Result<()> {
    let (file, scan) = (&newest.file, &newest.scan);
    if newest.cut_bytes() > 0 {
        report.truncated_bytes = newest.cut_bytes();
        report.truncated_at = Some((file.name.clone(), scan.end));
        report.uncertain = Some(Uncertain { lsn: Lsn(scan.last_lsn.saturating_add(1)), groups: newest.cut_groups() });
        report.cut_file = newest.cut_file.clone();
        overwrite(file, scan.end, scan.garbage_end, |bytes, _| {
            bytes.fill(0);
            Ok(())
        })?;
    }
    if let Some(full) = &newest.full {
        rewrite_unproven(&full.file, &full.header, &full.scan)?;
    }
    rewrite_unproven(file, &newest.header, scan)?;
    if let Some((sealed, footer)) = &newest.fresh_seal {
        overwrite(sealed, footer.index_offset, sealed.len(), |bytes, offset| sealed.read(bytes, offset))?;
        sealed.file.sync()?;
    }
    let is_ours = |seq: u64| seq == newest.file.place.seq || older.contains(&seq);
    let surplus = |name: &&String| {
        newest.surplus.as_ref() == Some(*name)
            || temporary_number(name).is_some()
            || is_unfinished(name)
            || parse_file_name(name).is_some_and(|seq| seq < newest.file.place.seq && !is_ours(seq))
    };
    for name in names.iter().filter(surplus) {
        disk.remove_if_there(name)?;
    }
    // An earlier process may have left names that are not durable.
    Ok(disk.sync_dir()?)
}

/// Writes the groups that are not proven to be synced again, and syncs them. After a failed sync of an earlier process
/// the kernel may hold pages that are marked clean and are not on disk. (The padding of the last group may be missing:
/// the group then ends with the file.)
fn rewrite_unproven(file: &LogFile, header: &FileHeader, scan: &Scan) -> Result<()> {
    // Without a proven group the header may not be durable either.
    let from = if scan.unproven_from == u64::from(header.data_offset) { 0 } else { scan.unproven_from };
    overwrite(file, from, scan.end.min(file.len()), |bytes, offset| file.read(bytes, offset))?;
    Ok(file.file.sync()?)
}

/// The spare files. Deletes surplus ones, and those of the wrong size or with a second name.
pub(super) fn find_spares(disk: &dyn Disk, names: &[String], options: &LogOptions) -> Result<BTreeSet<u64>> {
    let mut spares = BTreeSet::new();
    for (number, name) in names.iter().filter_map(|name| Some((parse_spare_name(name)?, name))) {
        let file = disk.open(name)?;
        let keeps = is_reusable(file.len()?, options.file_bytes) && file.links()? == 1;
        if keeps && spares.len() < options.spare_files {
            spares.insert(number);
        } else {
            disk.remove_if_there(name)?;
        }
    }
    Ok(spares)
}

/// Writes `from..to` of a file chunk by chunk, each filled by `fill`.
fn overwrite(file: &LogFile, from: u64, to: u64, fill: impl Fn(&mut [u8], u64) -> Result<()>) -> Result<()> {
    for_each_chunk(from, to, |piece, at| {
        fill(piece, at)?;
        Ok(file.write_at(piece, at)?)
    })
}

/// Size of a chunk, in bytes.
const CHUNK: u64 = 256 << 10;

/// Calls `each` for every chunk of `from` to before `to`, with a part of one buffer and the chunk's offset. Ends at the
/// first error.
fn for_each_chunk<E>(
    from: u64,
    to: u64,
    mut each: impl FnMut(&mut [u8], u64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut buffer = vec![0; to.saturating_sub(from).min(CHUNK) as usize];
    let mut at = from;
    while at < to {
        let step = (to - at).min(CHUNK);
        each(&mut buffer[..step as usize], at)?;
        at += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, for_each_chunk};

    #[test]
    fn chunks_cover_the_range_in_order() {
        for (from, to) in [(0, 0), (5, 5), (9, 3), (7, 8), (3, CHUNK + 3), (3, CHUNK + 4), (0, 3 * CHUNK)] {
            let mut next = from;
            let walked: Result<(), ()> = for_each_chunk(from, to, |chunk, at| {
                assert!(at == next && !chunk.is_empty() && chunk.len() as u64 <= CHUNK, "{from} to {to}");
                next += chunk.len() as u64;
                Ok(())
            });
            assert_eq!((walked, next), (Ok(()), to.max(from)), "{from} to {to}");
        }
        let mut calls = 0;
        let failed = for_each_chunk(0, 3 * CHUNK, |_, _| {
            calls += 1;
            Err("full")
        });
        assert_eq!((failed, calls), (Err("full"), 1));
    }
}
