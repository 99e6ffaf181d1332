//! How much of a range is garbage, judged by a sample: a few dozen seeks, whatever the size of the range.
//!
//! A small range is read as a whole. Of a larger one, some records are read at places that divide its bytes on disk
//! evenly, so a key with a million versions weighs as much as it takes.

use engine::Cf;
use engine::store::{Cursor, Reader, Store, StoreError};
use tso::Timestamp;

use super::collect::{Collector, Verdict, is_garbage_row};
use super::filter::Records;
use super::tracker::StorageRange;
use crate::error::{MvccError, Result};

/// A range with at most so many records is read as a whole.
const WHOLE_MAX: u64 = 1_024;
/// The places of a sample, and the records read at each.
const PLACES: u32 = 16;
const PER_PLACE: u64 = 64;
/// Deleted records that a cursor passes before it gives up. So many deleted records count as garbage: they take space,
/// and every scan passes them.
const SKIPS_MAX: usize = 4_096;
/// A range is worth a compaction if one record in so many is garbage.
const WORTH_ONE_IN: u64 = 10;

/// What a sample says of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The records read.
    pub records: u64,
    /// The garbage among them.
    pub garbage: u64,
}

impl Sample {
    /// Whether so much is garbage that it pays to rewrite the range.
    pub const fn is_worth_a_compaction(self) -> bool {
        self.garbage > 0 && self.garbage.saturating_mul(WORTH_ONE_IN) >= self.records
    }
}

/// Examines a sample of one family of the range. Locks and records without versions are never garbage.
///
/// # Errors
///
/// The store fails.
pub fn examine<S: Store>(store: &S, safe_point: Timestamp, cf: Cf, range: &StorageRange) -> Result<Sample> {
    let view = store.snapshot();
    let mut examiner = Examiner {
        cf,
        safe_point,
        cursor: view.limited_cursor(cf, &range.start, &range.end, SKIPS_MAX)?,
        records: Records::new(Some(Box::new(view.clone()))),
        sample: Sample::default(),
    };
    if examiner.read(&range.start, WHOLE_MAX)? {
        return Ok(examiner.sample);
    }
    for place in 1..PLACES {
        let place = store.key_at(cf, &range.start, &range.end, f64::from(place) / f64::from(PLACES))?;
        // An error is sticky, and the place before may have been full of deleted records.
        examiner.cursor = view.limited_cursor(cf, &range.start, &range.end, SKIPS_MAX)?;
        examiner.read(&place, PER_PLACE)?;
    }
    Ok(examiner.sample)
}

struct Examiner {
    cf: Cf,
    safe_point: Timestamp,
    cursor: Box<dyn Cursor>,
    records: Records,
    sample: Sample,
}

impl Examiner {
    /// Reads up to `most` records from a key on. Returns whether that was the rest of the range.
    fn read(&mut self, from: &[u8], most: u64) -> Result<bool> {
        let mut collector = Collector::new(self.safe_point);
        let mut valid = self.cursor.seek(from);
        for left in (0..most).rev() {
            match valid {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(StoreError::GaveUp) => {
                    self.sample.records += left + 1;
                    self.sample.garbage += left + 1;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
            self.sample.records += 1;
            self.sample.garbage += u64::from(self.is_garbage(&mut collector)?);
            valid = self.cursor.next();
        }
        Ok(false)
    }

    /// Whether the record at the cursor is garbage. A delete without data above it is, together with what is below it.
    fn is_garbage(&mut self, collector: &mut Collector) -> Result<bool> {
        let (key, value) = (self.cursor.key(), self.cursor.value());
        let records = &mut self.records;
        let found = match self.cf {
            Cf::Write => collector.next(key, value, || false).map(|verdict| verdict != Verdict::Keep),
            Cf::Default => is_garbage_row(self.safe_point, key, value, |storage, ts| records.is_named(storage, ts)),
            Cf::Lock | Cf::Meta => Ok(false),
        };
        match found {
            // A malformed record stays, as in a compaction.
            Err(error) if !matches!(error, MvccError::Store(_)) => Ok(false),
            found => found,
        }
    }
}
