//! Reads the indexes of sealed files with several threads and applies them in the order of the log.
//!
//! 1. All files are opened, and their headers and footers read: one file per thread at a time.
//! 2. Files are processed in windows. Each thread reads, verifies and decompresses one index of the window at a time. It
//!    walks through the index and records the offsets of the groups, by shard of the engine's index.
//! 3. Each thread takes one shard at a time and applies the changes of its groups in the files of the window, oldest
//!    file first. No two threads change the same group, so the outcome does not depend on their number.
//!
//! # Memory
//!
//! A file of a window takes memory for its stored index while it is read, for its raw index, and four bytes per group.
//! A raw index has at most one group per five bytes, and the lists of offsets double as they grow. The footers record
//! both lengths, so a window ends where [`cost`] adds up to [`WINDOW`] per thread. A window has at least one file, and
//! exceeds the limit only if the index of that file alone does. Groups are decoded one at a time. So recovery takes the
//! memory of the engine's index, and [`WINDOW`] per thread. `verify` adds one summary of a file per thread. The newest
//! file is read before all others, one commit group at a time; its summary is kept until the others are applied, and
//! takes about as much as the same groups in the index (`read/scan.rs`).
//!
//! # Errors
//!
//! The error is that of the first damaged file, as if files were read one after another. (The newest file and the one
//! before it are read before all others.)

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::Disk;

use super::parallel::parallel_map;
use crate::log::error::{Damage, LogError, Result};
use crate::log::format::{Cursor, FOOTER, FileHeader, Footer, Identity, IndexGroup, IndexReader};
use crate::log::index::{FileSummary, Index, SHARDS, shard_of};
use crate::log::options::LogOptions;
use crate::log::read::{LogFile, scan};

/// Maximum size of a window per thread, in bytes.
pub(super) const WINDOW: u64 = 32 << 20;
/// Size of the lists of offsets of a file without groups, in bytes.
const SHARD_LISTS: u64 = 4 << 10;

/// An open sealed file.
pub(super) struct SealedFile {
    pub(super) file: Arc<LogFile>,
    pub(super) header: FileHeader,
    pub(super) footer: Footer,
}

/// Sealed files up to the first damaged one.
pub(super) struct OpenedFiles {
    pub(super) files: Vec<SealedFile>,
    pub(super) failed: Option<LogError>,
}

/// The raw index of a file.
struct RawIndex {
    raw: Vec<u8>,
    /// The offsets of its groups, by shard.
    shards: Vec<Vec<u32>>,
    /// Bytes read besides the index.
    scanned: u64,
}

/// Opens the files `seqs` of the log `identity`.
pub(super) fn open(disk: &dyn Disk, seqs: &BTreeSet<u64>, identity: Identity, threads: usize) -> OpenedFiles {
    let seqs: Vec<u64> = seqs.iter().copied().collect();
    let loaded = parallel_map(threads, &seqs, |seq| {
        let (file, mut header) = LogFile::load(disk, *seq, Some(identity))?;
        // Used only after damage, and may be long.
        header.changed = None;
        let footer = file.footer();
        Ok((file, header, footer))
    });
    let mut opened = OpenedFiles { files: Vec::with_capacity(seqs.len()), failed: None };
    for outcome in loaded {
        let sealed = outcome.and_then(|(file, header, footer)| {
            check_chain(&file, &header, opened.files.last())?;
            let unsealed = || Damage("file has no seal, though a later one is in use").at(&file.name, file.len());
            let footer = footer?.ok_or_else(unsealed)?;
            Ok(SealedFile { file: Arc::new(file), header, footer })
        });
        match sealed {
            Ok(sealed) => opened.files.push(sealed),
            Err(error) => {
                opened.failed = Some(error);
                break;
            }
        }
    }
    opened
}

/// Checks that a file continues the one before it, if that one exists.
pub(super) fn check_chain(file: &LogFile, header: &FileHeader, before: Option<&SealedFile>) -> Result<()> {
    let Some(before) = before else { return Ok(()) };
    let footer = &before.footer;
    let continues = footer.last_lsn.checked_add(1) == Some(header.first_lsn) && footer.chain == header.chain;
    let later = footer.last_lsn < header.first_lsn;
    if (header.prev_seq == before.file.place.seq && !continues) || !later {
        let what = format!("it does not continue {}", before.file.name);
        return Err(LogError::misplaced(&file.name, what));
    }
    Ok(())
}

/// Applies the indexes of `files` to `index`, with windows of `share` bytes per thread. Returns the bytes read.
pub(super) fn apply(index: &Index, files: &[SealedFile], options: &LogOptions, share: u64) -> Result<u64> {
    let mut bytes_read = 0;
    let mut rest = files;
    while !rest.is_empty() {
        let (window, after) = rest.split_at(window_len(rest, share * options.recovery_threads as u64));
        bytes_read += apply_window(index, window, options)?;
        rest = after;
    }
    Ok(bytes_read)
}

/// How many of `files` fit into `max_bytes`; at least one.
pub(super) fn window_len(files: &[SealedFile], max_bytes: u64) -> usize {
    let mut bytes = 0u64;
    let fits = files.iter().take_while(|sealed| {
        bytes = bytes.saturating_add(cost(&sealed.footer));
        bytes <= max_bytes
    });
    fits.count().max(1)
}

/// Approximate memory of a file in a window, in bytes.
pub(super) fn cost(footer: &Footer) -> u64 {
    SHARD_LISTS + u64::from(footer.index_stored) + 3 * u64::from(footer.index_raw)
}

fn apply_window(index: &Index, window: &[SealedFile], options: &LogOptions) -> Result<u64> {
    let threads = options.recovery_threads;
    let mut indexes = Vec::with_capacity(window.len());
    let mut failed = None;
    for raw_index in parallel_map(threads, window, |sealed| read_raw_index(sealed, options.verify)) {
        match raw_index {
            Ok(raw_index) => indexes.push(raw_index),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let shards: Vec<usize> = (0..SHARDS).collect();
    let applied = parallel_map(threads, &shards, |shard| apply_shard(index, window, &indexes, *shard));
    let first = applied.into_iter().filter_map(std::result::Result::err).min_by_key(|(at, _)| *at);
    if let Some(error) = first.map(|(_, error)| error).or(failed) {
        return Err(error);
    }
    let read = |(sealed, raw_index): (&SealedFile, &RawIndex)| {
        u64::from(sealed.header.data_offset) + u64::from(sealed.footer.index_stored) + FOOTER as u64 + raw_index.scanned
    };
    Ok(window.iter().zip(&indexes).map(read).sum())
}

/// Reads and verifies a file's index.
fn read_raw_index(sealed: &SealedFile, verify: bool) -> Result<RawIndex> {
    let (file, footer) = (sealed.file.as_ref(), &sealed.footer);
    let raw = file.raw_index(footer)?;
    let damage = |damage: Damage| damage.at(&file.name, footer.index_offset);
    let mut raw_index = RawIndex { raw: Vec::new(), shards: vec![Vec::new(); SHARDS], scanned: 0 };
    let mut reader = IndexReader::new(&raw, file.place.seq).map_err(damage)?;
    loop {
        let at = reader.offset() as u32;
        let Some(read) = reader.read().map_err(damage)? else { break };
        if let Some(shard) = raw_index.shards.get_mut(shard_of(read.head.group)) {
            shard.push(at);
        }
    }
    if verify {
        raw_index.scanned = verify_groups(sealed, &raw)?;
    }
    raw_index.raw = raw;
    Ok(raw_index)
}

/// Reads every byte of a sealed file, and compares its groups with its index. Returns the bytes read.
fn verify_groups(sealed: &SealedFile, raw: &[u8]) -> Result<u64> {
    let SealedFile { file, header, footer } = sealed;
    let summary = FileSummary::decode(raw, file.place.seq).map_err(|d| d.at(&file.name, footer.index_offset))?;
    let compare = || {
        let found = scan(file, header)?;
        if found.end != footer.index_offset || found.last_lsn != footer.last_lsn || found.chain != footer.chain {
            return Err(Damage("commit group cannot be read").at(&file.name, found.end));
        }
        if found.summary.encode() != summary.encode() {
            return Err(Damage("index does not say what the file holds").at(&file.name, footer.index_offset));
        }
        Ok(found.bytes_read)
    };
    compare().map_err(|error| error.concerning(|| summary.groups().map(|(group, _)| group).collect()))
}

/// Applies the changes of the groups of one shard in the files of a window. An error comes with the position of its file
/// in the window.
fn apply_shard(
    index: &Index,
    window: &[SealedFile],
    indexes: &[RawIndex],
    shard: usize,
) -> std::result::Result<(), (usize, LogError)> {
    for (at, (sealed, raw_index)) in window.iter().zip(indexes).enumerate() {
        let (file, footer) = (&sealed.file, &sealed.footer);
        let mut editor = index.editor();
        for offset in raw_index.shards.get(shard).into_iter().flatten() {
            let mut cursor = Cursor(raw_index.raw.get(*offset as usize..).unwrap_or_default());
            let applied = IndexGroup::decode(&mut cursor, file.place.seq)
                .and_then(|group| group.apply(file.place.seq, &mut editor));
            applied.map_err(|damage| (at, damage.at(&file.name, footer.index_offset)))?;
        }
    }
    Ok(())
}
