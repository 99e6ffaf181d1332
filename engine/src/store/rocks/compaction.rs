//! Requested compactions, and the owner's filter in all of them.
//!
//! A requested compaction runs on RocksDB's thread for compactions of low priority while the caller waits. It excludes
//! no other compaction and no flush. RocksDB first flushes what is in the range, then moves it down level by level and
//! rewrites the lowest level last, so that also data that has been there for long meets the filter.
//!
//! A record that the filter removes becomes a deletion of its key. It ends at the lowest level, so a requested
//! compaction leaves none.

use std::ffi::{CStr, CString};
use std::sync::{Arc, OnceLock, Weak};

use rocksdb::compaction_filter::{CompactionFilter, Decision};
use rocksdb::compaction_filter_factory::{CompactionFilterContext, CompactionFilterFactory};
use rocksdb::{BottommostLevelCompaction, CompactOptions, Options, Range};

use super::database::Database;
use super::errors::on_read;
use super::options;
use super::snapshot::RocksSnapshot;
use crate::cf::Cf;
use crate::store::hooks::{Compaction, NewFilter, RecordFilter};
use crate::store::{Reader, Result};

/// Where filters find the database, once it is open.
pub(super) type Opened = Arc<OnceLock<Weak<Database>>>;

/// Installs the owner's filter into the options of a family.
pub(super) fn install(options: &mut Options, cf: Cf, new_filter: &NewFilter, opened: &Opened) {
    let name = CString::from(c"cortado.filter");
    let (new_filter, opened) = (Arc::clone(new_filter), Arc::clone(opened));
    options.set_compaction_filter_factory(Factory { cf, new_filter, opened, name });
}

struct Factory {
    cf: Cf,
    new_filter: NewFilter,
    opened: Opened,
    name: CString,
}

/// The filter of one compaction; without a function it keeps everything.
struct Filter {
    stays: Option<RecordFilter>,
    name: CString,
}

impl CompactionFilterFactory for Factory {
    type Filter = Filter;

    fn create(&mut self, context: CompactionFilterContext) -> Filter {
        let view = || {
            // The caller of the requested compaction holds the database until the filter is gone, so the view is never
            // what closes it. RocksDB must not be closed on one of its own threads.
            let database = self.opened.get()?.upgrade()?;
            Some(Box::new(RocksSnapshot::take(&database)) as Box<dyn Reader + Send>)
        };
        let compaction = Compaction::new(self.cf, context.is_manual_compaction, &view);
        Filter { stays: (self.new_filter)(&compaction), name: self.name.clone() }
    }

    fn name(&self) -> &CStr {
        &self.name
    }
}

impl CompactionFilter for Filter {
    fn filter(&mut self, _level: u32, key: &[u8], value: &[u8]) -> Decision {
        let stays = self.stays.as_mut().is_none_or(|stays| stays(key, value));
        if stays { Decision::Keep } else { Decision::Remove }
    }

    fn name(&self) -> &CStr {
        &self.name
    }
}

/// See [`Store::compact_range`](crate::store::Store::compact_range). RocksDB's binding does not say whether a
/// compaction failed. If the disk is at fault, the next write or flush fails and poisons the store.
pub(super) fn compact_range(database: &Database, cf: Cf, start: &[u8], end: &[u8]) -> Result<()> {
    database.check_poisoned()?;
    let mut options = CompactOptions::default();
    options.set_exclusive_manual_compaction(false);
    // What this compaction has written to the lowest level itself is not rewritten once more.
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    let end = (!end.is_empty()).then_some(end);
    database.db.compact_range_cf_opt(database.family(cf)?, Some(start), end, &options);
    // They pin the files that were compacted.
    database.cursors.clear();
    Ok(())
}

/// See [`Store::divide`](crate::store::Store::divide). The lowest level holds most of the data.
pub(super) fn divide(database: &Database, cf: Cf, (start, end): (&[u8], &[u8]), bytes: u64) -> Result<Vec<Vec<u8>>> {
    let files = database.db.live_files().map_err(on_read)?;
    let mut files: Vec<_> = files.into_iter().filter(|file| file.column_family_name == cf.name()).collect();
    let lowest = files.iter().map(|file| file.level).max();
    files.retain(|file| Some(file.level) == lowest);
    files.sort_by(|a, b| a.start_key.cmp(&b.start_key));
    let (mut cuts, mut since) = (Vec::new(), 0_u64);
    for file in files {
        let Some(key) = file.start_key else { continue };
        if since >= bytes && key.as_slice() > start && (end.is_empty() || key.as_slice() < end) {
            cuts.push(key);
            since = 0;
        }
        if file.end_key.is_some_and(|last| last.as_slice() >= start) {
            since = since.saturating_add(u64::try_from(file.size).unwrap_or(u64::MAX));
        }
    }
    Ok(cuts)
}

/// Bytes of a range in which [`key_at`] looks no further: a few blocks.
const CLOSE_ENOUGH: u64 = 32 << 10;
/// The most halvings of [`key_at`].
const HALVINGS: usize = 96;

/// See [`Store::key_at`](crate::store::Store::key_at). Halves the range of keys until the place is found by the sizes
/// that RocksDB estimates from the indexes of its files.
pub(super) fn key_at(database: &Database, cf: Cf, (start, end): (&[u8], &[u8]), part: f64) -> Result<Vec<u8>> {
    let (mut low, mut high) = (start.to_vec(), end_of(database, cf, end)?);
    let mut left = size(database, cf, &low, &high)?;
    let mut wanted = (left as f64 * part.clamp(0.0, 1.0)) as u64;
    for _ in 0..HALVINGS {
        let Some(middle) = middle(&low, &high).filter(|_| left > CLOSE_ENOUGH) else { break };
        let below = size(database, cf, &low, &middle)?.min(left);
        if wanted < below {
            (high, left) = (middle, below);
        } else {
            (low, left, wanted) = (middle, left - below, wanted - below);
        }
    }
    Ok(low)
}

/// See [`Store::bytes_on_disk`](crate::store::Store::bytes_on_disk).
pub(super) fn bytes_on_disk(database: &Database, cf: Cf, (start, end): (&[u8], &[u8])) -> Result<u64> {
    size(database, cf, start, &end_of(database, cf, end)?)
}

fn size(database: &Database, cf: Cf, start: &[u8], end: &[u8]) -> Result<u64> {
    let sizes = database.db.get_approximate_sizes_cf(database.family(cf)?, &[Range::new(start, end)]);
    Ok(if start < end { sizes.first().copied().unwrap_or_default() } else { 0 })
}

/// The end of a range; if it has none, a key just above the last one of the family.
fn end_of(database: &Database, cf: Cf, end: &[u8]) -> Result<Vec<u8>> {
    if !end.is_empty() {
        return Ok(end.to_vec());
    }
    let mut last = database.db.raw_iterator_cf_opt(database.family(cf)?, options::ordered_reads());
    last.seek_to_last();
    last.status().map_err(on_read)?;
    Ok(last.key().map_or_else(Vec::new, |key| [key, &[0]].concat()))
}

/// A byte string about half way between two others; `None` if they are too close.
fn middle(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let window = |key: &[u8]| {
        let mut bytes = [0; 16];
        let rest = key.get(common..).unwrap_or_default();
        bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        u128::from_be_bytes(bytes)
    };
    let (from, to) = (window(low), window(high));
    let half = from + to.checked_sub(from)? / 2;
    let middle = [low.get(..common)?, &half.to_be_bytes()].concat();
    (half != from && middle.as_slice() > low && middle.as_slice() < high).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::middle;

    #[test]
    fn the_middle_is_between() {
        let cases: [(&[u8], &[u8]); 5] =
            [(b"", b"\xff"), (b"abc", b"abd"), (b"a", b"a\0\0\0\0\0\0\0\x02"), (b"k\x01\xff", b"k\x02"), (b"", b"a")];
        for (low, high) in cases {
            let found = middle(low, high).unwrap();
            assert!(low < found.as_slice() && found.as_slice() < high, "{}", found.escape_ascii());
        }
        for (low, high) in [(&b"a"[..], &b"a"[..]), (b"b", b"a"), (b"a", b"a\0")] {
            assert_eq!(middle(low, high), None);
        }
    }
}
