//! What the owner of a store adds to it: a filter of the records that compactions rewrite, and an observer of writes.
//!
//! The store knows nothing about versions. The owner does: it says of each record whether it stays.

use std::fmt;
use std::sync::Arc;

use super::Reader;
use crate::batch::Op;
use crate::cf::Cf;

/// Extensions of a store. The default has none.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Makes the filter of each compaction.
    pub new_filter: Option<NewFilter>,
    /// Sees each write.
    pub observer: Option<WriteObserver>,
}

/// Makes the filter of a compaction that begins; `None`: every record stays. Must not panic.
pub type NewFilter = Arc<dyn Fn(&Compaction<'_>) -> Option<RecordFilter> + Send + Sync>;

/// Gets the key and the value of a record and says whether it stays. The records of one compaction come in key order,
/// on one thread. A compaction sees flushed records only, and not all of them. A record that goes is also gone for open
/// snapshots; whoever reads an old snapshot must know that. Must not panic.
pub type RecordFilter = Box<dyn FnMut(&[u8], &[u8]) -> bool + Send>;

/// Gets the operations of a write that was applied, in order, on the thread that wrote. The rows of a range replacement
/// come as puts. Must not block, and must not call the store.
pub type WriteObserver = Arc<dyn Fn(&mut dyn Iterator<Item = Op<'_>>) + Send + Sync>;

/// A compaction that begins.
pub struct Compaction<'a> {
    /// The column family.
    pub cf: Cf,
    /// Whether [`Store::compact_range`](super::Store::compact_range) asked for it. The others are the store's own.
    pub is_requested: bool,
    /// Takes a view. Only a requested compaction has one.
    view: &'a dyn Fn() -> Option<Box<dyn Reader + Send>>,
}

impl<'a> Compaction<'a> {
    pub(super) fn new(
        cf: Cf,
        is_requested: bool,
        view: &'a dyn Fn() -> Option<Box<dyn Reader + Send>>,
    ) -> Compaction<'a> {
        Compaction { cf, is_requested, view }
    }

    /// A snapshot of the store at this moment, for a filter that looks at other records than it gets. `None` in a
    /// compaction that the store started on its own: such a view could outlive the store.
    pub fn view(&self) -> Option<Box<dyn Reader + Send>> {
        if self.is_requested { (self.view)() } else { None }
    }
}

impl Hooks {
    /// Tells the observer of the operations of a write.
    pub(super) fn observe(&self, ops: &mut dyn Iterator<Item = Op<'_>>) {
        if let Some(observer) = &self.observer {
            observer(ops);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (filter, observer) = (self.new_filter.is_some(), self.observer.is_some());
        f.debug_struct("Hooks").field("new_filter", &filter).field("observer", &observer).finish()
    }
}
