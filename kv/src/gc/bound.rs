//! The timestamp up to which a store may collect.
//!
//! The protocol side raises it, the storage side reads it. The protocol side calls [`CollectBound::raise`] with the
//! least safe point that the replicas of this store have published, once they have applied it. The storage side
//! collects up to [`CollectBound::get`], which follows when the publication is on disk ([`CollectBound::settle`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tso::Timestamp;

/// The safe point of a store. Clones share it. [`Timestamp::ZERO`] means that nothing is collected.
///
/// Invariants: (1) neither part ever falls; (2) `settled` is at or below `published`.
#[derive(Clone, Debug, Default)]
pub struct CollectBound {
    parts: Arc<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    /// The least safe point that all replicas of the store have published and applied.
    published: AtomicU64,
    /// A value of `published` that was flushed to disk.
    settled: AtomicU64,
}

impl CollectBound {
    /// A bound at zero.
    pub fn new() -> CollectBound {
        CollectBound::default()
    }

    /// All replicas of the store have published `safe_point`, and have applied the publication. A lower value than that
    /// of an earlier call has no effect.
    pub fn raise(&self, safe_point: Timestamp) {
        self.parts.published.fetch_max(safe_point.raw(), Ordering::AcqRel);
    }

    /// The greatest value that was raised.
    pub fn published(&self) -> Timestamp {
        Timestamp::from_raw(self.parts.published.load(Ordering::Acquire))
    }

    /// Up to where records may be collected.
    pub fn get(&self) -> Timestamp {
        Timestamp::from_raw(self.parts.settled.load(Ordering::Acquire))
    }

    /// Lets [`get`](CollectBound::get) follow what was published before the call, once `flush` has made everything
    /// written before it durable.
    ///
    /// # Errors
    ///
    /// That of `flush`. Nothing changes then.
    pub fn settle<E>(&self, flush: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let published = self.published();
        if published > self.get() {
            flush()?;
            self.parts.settled.fetch_max(published.raw(), Ordering::AcqRel);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ts(raw: u64) -> Timestamp {
        Timestamp::from_raw(raw)
    }

    #[test]
    fn what_was_published_counts_once_it_is_flushed_and_never_falls() {
        let bound = CollectBound::new();
        let other = bound.clone();
        bound.raise(ts(5));
        assert_eq!((other.published(), other.get()), (ts(5), ts(0)));
        assert_eq!(bound.settle(|| Err("full disk")), Err("full disk"));
        assert_eq!(other.get(), ts(0));
        // What is published while the flush runs is not part of it.
        let settled = bound.settle(|| {
            other.raise(ts(9));
            Ok::<_, ()>(())
        });
        assert_eq!(settled, Ok(()));
        assert_eq!(other.get(), ts(5));
        bound.raise(ts(7));
        assert_eq!(bound.published(), ts(9));
        assert_eq!(bound.settle(|| Ok::<_, ()>(())), Ok(()));
        assert_eq!(other.get(), ts(9));
        assert_eq!(bound.settle(|| Err("not called")), Ok(()));
    }
}
