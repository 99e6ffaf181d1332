//! The catalogs of the past that a node has loaded: for each of the last few versions, a span of time in which it was
//! the newest. Pure. [`super::past`] reads the others.
//!
//! A version that was found at two timestamps is that of all timestamps between them.

use std::sync::Arc;

use parking_lot::Mutex;
use tso::Timestamp;

use super::snapshot::Catalog;

/// The most versions of the past that a node remembers.
const SPANS: usize = 8;

/// Catalogs of the past that the node has loaded, the newest version first.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<Vec<Span>>);

/// A catalog, and two timestamps at which its version was the newest.
#[derive(Debug)]
struct Span {
    catalog: Arc<Catalog>,
    first: Timestamp,
    last: Timestamp,
}

impl Versions {
    /// The catalog at a timestamp, if it is known.
    pub(super) fn at(&self, ts: Timestamp) -> Option<Arc<Catalog>> {
        let spans = self.0.lock();
        spans.iter().find(|span| (span.first..=span.last).contains(&ts)).map(|span| span.catalog.clone())
    }

    /// The catalog of a version that was found at `ts`, if it is known. It is then known at `ts` too.
    pub(super) fn extend(&self, version: u64, ts: Timestamp) -> Option<Arc<Catalog>> {
        let mut spans = self.0.lock();
        let span = spans.iter_mut().find(|span| span.catalog.version == version)?;
        (span.first, span.last) = (span.first.min(ts), span.last.max(ts));
        Some(span.catalog.clone())
    }

    /// Remembers the catalog that was found at `ts`. The oldest version of too many is forgotten.
    pub(super) fn remember(&self, catalog: Arc<Catalog>, ts: Timestamp) {
        let mut spans = self.0.lock();
        if spans.iter().all(|span| span.catalog.version != catalog.version) {
            spans.push(Span { catalog, first: ts, last: ts });
            spans.sort_by_key(|span| std::cmp::Reverse(span.catalog.version));
            spans.truncate(SPANS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::new(ms, 0)
    }

    #[test]
    fn a_version_is_known_between_the_timestamps_at_which_it_was_found() {
        let versions = Versions::default();
        let newest = |ms| versions.at(at(ms)).map(|catalog| catalog.version);
        versions.remember(Arc::new(Catalog::new(7, [])), at(10));
        assert_eq!((newest(9), newest(10), newest(11)), (None, Some(7), None));
        assert!(versions.extend(7, at(20)).is_some() && versions.extend(8, at(30)).is_none());
        versions.remember(Arc::new(Catalog::new(8, [])), at(30));
        assert_eq!([15, 20, 25, 30].map(newest), [Some(7), Some(7), None, Some(8)]);
        for more in 9..9 + SPANS as u64 {
            versions.remember(Arc::new(Catalog::new(more, [])), at(more * 10));
        }
        assert_eq!((newest(15), newest(30), newest(90)), (None, None, Some(9)), "the oldest are forgotten");
    }
}
