//! The gateway check on rows that replace a range: both stores refuse the same input for the same reason.

use super::{Result, StoreError};
use crate::cf::Cf;

/// Checks rows one after another: data families only, strictly ascending by (cf code, key), within the range.
pub(super) struct RowCheck<'a> {
    start: &'a [u8],
    end: &'a [u8],
    last: Option<(Cf, Vec<u8>)>,
}

impl<'a> RowCheck<'a> {
    /// A check for rows of `[start, end)`; an empty `end` means no upper bound.
    pub(super) fn new(start: &'a [u8], end: &'a [u8]) -> RowCheck<'a> {
        RowCheck { start, end, last: None }
    }

    /// Accepts or refuses the next row.
    pub(super) fn accept(&mut self, cf: Cf, key: &[u8]) -> Result<()> {
        if !Cf::DATA.contains(&cf) {
            return Err(refusal(cf, key, "not a data family"));
        }
        if key < self.start || (!self.end.is_empty() && key >= self.end) {
            return Err(refusal(cf, key, "outside of the range"));
        }
        match &mut self.last {
            Some((last_cf, last_key)) => {
                if (last_cf.code(), last_key.as_slice()) >= (cf.code(), key) {
                    return Err(refusal(cf, key, "not above the row before it"));
                }
                *last_cf = cf;
                last_key.clear();
                last_key.extend_from_slice(key);
            }
            None => self.last = Some((cf, key.to_vec())),
        }
        Ok(())
    }
}

fn refusal(cf: Cf, key: &[u8], what: &str) -> StoreError {
    StoreError::InvalidRows(format!("{} \"{}\": {what}", cf.name(), key.escape_ascii()))
}
