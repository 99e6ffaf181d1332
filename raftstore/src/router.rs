//! Which regions a store has, for readers on any thread.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::delegate::Delegate;
use crate::region::RegionId;

/// The delegates of a store. The table is replaced as a whole when a region is added, removed or changed.
#[derive(Default)]
pub(crate) struct Router {
    table: ArcSwap<Table>,
}

#[derive(Default)]
struct Table {
    by_id: BTreeMap<RegionId, Arc<Delegate>>,
    by_start: BTreeMap<Vec<u8>, Arc<Delegate>>,
}

impl Router {
    /// Replaces all delegates. Store thread only.
    pub(crate) fn replace(&self, delegates: impl Iterator<Item = (RegionId, Arc<Delegate>)>) {
        let by_id: BTreeMap<_, _> = delegates.collect();
        let by_start = by_id.values().map(|d| (d.region().start.clone(), Arc::clone(d))).collect();
        self.table.store(Arc::new(Table { by_id, by_start }));
    }

    pub(crate) fn get(&self, region: RegionId) -> Option<Arc<Delegate>> {
        self.table.load().by_id.get(&region).cloned()
    }

    /// The region whose range holds `key`.
    pub(crate) fn locate(&self, key: &[u8]) -> Option<Arc<Delegate>> {
        let table = self.table.load();
        let (_, delegate) = table.by_start.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        delegate.region().contains(key).then(|| Arc::clone(delegate))
    }

    /// All delegates, in the order of their ranges.
    pub(crate) fn all(&self) -> Vec<Arc<Delegate>> {
        self.table.load().by_start.values().cloned().collect()
    }
}
