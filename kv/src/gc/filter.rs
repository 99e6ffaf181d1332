//! The filter of a compaction: the decisions of [`collect`](super::collect) on the records that pass by.
//!
//! The same filter runs in compactions of RocksDB and of the store in memory. It reads the bound first and takes its
//! view of the store after that: what the bound allows to collect is decided in the view. In a compaction that the
//! store started on its own it has no view; then deletes and long values stay.
//!
//! A record that cannot be read stays, and is counted. A filter reports no errors: the reads of the record do.

use engine::Cf;
use engine::store::hooks::{Compaction, NewFilter, RecordFilter};
use engine::store::{Cursor, Reader, is_version_of};
use tso::Timestamp;

use super::bound::CollectBound;
use super::collect::{Collector, Verdict, is_garbage_row};
use super::metrics::GcMetrics;
use crate::error::Result;
use crate::key::{split_ts, versioned};
use crate::mvcc::WriteRecord;
use crate::mvcc::reader::load_lock;

/// Makes the filters of a store's compactions.
pub fn new_filter(bound: CollectBound, metrics: GcMetrics) -> NewFilter {
    std::sync::Arc::new(move |compaction: &Compaction<'_>| make(&bound, &metrics, compaction))
}

fn make(bound: &CollectBound, metrics: &GcMetrics, compaction: &Compaction<'_>) -> Option<RecordFilter> {
    let safe_point = bound.get();
    if safe_point == Timestamp::ZERO {
        return None;
    }
    let records = || Records::new(compaction.view());
    match compaction.cf {
        Cf::Write => {
            let (mut collector, mut records, mut tally) = (Collector::new(safe_point), records(), Tally::new(metrics));
            Some(Box::new(move |key, record| {
                let verdict = collector.next(key, record, || records.has_older(key));
                tally.version(verdict)
            }))
        }
        Cf::Default => {
            let (mut records, mut tally) = (records(), Tally::new(metrics));
            Some(Box::new(move |key, row| {
                let is_named = |storage: &[u8], start_ts| records.is_named(storage, start_ts);
                tally.row(is_garbage_row(safe_point, key, row, is_named))
            }))
        }
        Cf::Lock | Cf::Meta => None,
    }
}

/// The write records of a view, where a filter looks other records up. Without a view it knows nothing, and answers so
/// that records stay.
pub(super) struct Records {
    view: Option<Box<dyn Reader + Send>>,
    /// Over all write records. Opened when it is needed: most compactions look nothing up.
    cursor: Option<Box<dyn Cursor>>,
}

impl Records {
    pub(super) fn new(view: Option<Box<dyn Reader + Send>>) -> Records {
        Records { view, cursor: None }
    }

    fn cursor(&mut self) -> Result<Option<&mut Box<dyn Cursor>>> {
        if let (None, Some(view)) = (&self.cursor, &self.view) {
            self.cursor = Some(view.cursor(Cf::Write, b"", b"")?);
        }
        Ok(self.cursor.as_mut())
    }

    /// Whether there may be an older record of the same key.
    fn has_older(&mut self, versioned: &[u8]) -> bool {
        self.find_older(versioned).unwrap_or(true)
    }

    fn find_older(&mut self, key: &[u8]) -> Result<bool> {
        let (storage, commit_ts) = split_ts(key)?;
        let Some(cursor) = self.cursor()? else { return Ok(true) };
        let older = versioned(storage, commit_ts.prev());
        Ok(commit_ts > Timestamp::ZERO && cursor.seek(&older)? && is_version_of(cursor.key(), storage))
    }

    /// Whether a write record or a lock of the key names the long value of the transaction `start_ts`. The commit of a
    /// transaction is the oldest record above its start_ts, whatever is collected (invariant 4 of `percolator`).
    pub(super) fn is_named(&mut self, storage: &[u8], start_ts: Timestamp) -> Result<bool> {
        let Some(cursor) = self.cursor()? else { return Ok(true) };
        if cursor.seek_for_prev(&versioned(storage, start_ts.next()))?
            && is_version_of(cursor.key(), storage)
            && WriteRecord::decode(cursor.value())?.start_ts == start_ts
        {
            return Ok(true);
        }
        // No lock is left at or below the safe point. A value without a lock is looked up twice, one with a lock is
        // kept.
        let Some(view) = &self.view else { return Ok(true) };
        Ok(load_lock(view.as_ref(), storage)?.is_some_and(|lock| lock.start_ts == start_ts))
    }
}

/// What a filter has done, added to the metrics when it ends.
struct Tally {
    metrics: GcMetrics,
    versions: u64,
    rows: u64,
    unreadable: u64,
}

impl Tally {
    fn new(metrics: &GcMetrics) -> Tally {
        Tally { metrics: metrics.clone(), versions: 0, rows: 0, unreadable: 0 }
    }

    /// Counts a verdict on a write record. Returns whether the record stays.
    fn version(&mut self, verdict: Result<Verdict>) -> bool {
        match verdict {
            Ok(Verdict::Keep) => true,
            Ok(Verdict::Drop { .. }) => {
                self.versions += 1;
                false
            }
            Err(_) => {
                self.unreadable += 1;
                true
            }
        }
    }

    /// The same for a row of `Cf::Default`.
    fn row(&mut self, is_garbage: Result<bool>) -> bool {
        match is_garbage {
            Ok(true) => self.rows += 1,
            Ok(false) => {}
            Err(_) => self.unreadable += 1,
        }
        !matches!(is_garbage, Ok(true))
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.metrics.versions.inc_by(self.versions);
        self.metrics.rows.inc_by(self.rows);
        self.metrics.unreadable.inc_by(self.unreadable);
    }
}
