//! A session's cache of bound statements by text and declared parameter types. A hit skips parsing and binding. An
//! entry is valid for one catalog version; the caller checks that.

use std::collections::HashMap;
use std::sync::Arc;

use pgtypes::SqlType;

/// Limit of entries. An insertion beyond it evicts the least recently used quarter.
const MAX_ENTRIES: usize = 128;

/// Longer texts are not cached: bulk inserts run once. A plan takes a few tens of times the memory of its text.
const MAX_TEXT_BYTES: usize = 4 << 10;

struct Entry<V> {
    declared: Arc<[SqlType]>,
    value: V,
    used: u64,
}

/// The cache.
pub(crate) struct PlanCache<V> {
    /// By text. Few texts have more than one list of declared types.
    entries: HashMap<Arc<str>, Vec<Entry<V>>>,
    count: usize,
    clock: u64,
}

impl<V> PlanCache<V> {
    /// An empty cache.
    pub(crate) fn new() -> PlanCache<V> {
        PlanCache { entries: HashMap::new(), count: 0, clock: 0 }
    }

    /// The value of a text and types.
    pub(crate) fn get(&mut self, text: &str, declared: &[SqlType]) -> Option<&V> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        self.clock += 1;
        let entry = self.entries.get_mut(text)?.iter_mut().find(|e| *e.declared == *declared)?;
        entry.used = self.clock;
        Some(&entry.value)
    }

    /// Inserts or replaces a value.
    pub(crate) fn put(&mut self, text: &Arc<str>, declared: &Arc<[SqlType]>, value: V) {
        if text.len() > MAX_TEXT_BYTES {
            return;
        }
        if self.count >= MAX_ENTRIES {
            self.shrink();
        }
        self.clock += 1;
        let entry = Entry { declared: declared.clone(), value, used: self.clock };
        let entries = self.entries.entry(text.clone()).or_default();
        match entries.iter_mut().find(|e| e.declared == *declared) {
            Some(old) => *old = entry,
            None => {
                entries.push(entry);
                self.count += 1;
            }
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        *self = PlanCache::new();
    }

    fn shrink(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().flatten().map(|e| e.used).collect();
        uses.sort_unstable();
        let limit = uses.get(uses.len() / 4).copied().unwrap_or(0);
        self.entries.retain(|_, entries| {
            entries.retain(|e| e.used > limit);
            !entries.is_empty()
        });
        self.count = self.entries.values().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_by_declared_types_and_evicts_the_oldest() {
        let mut cache = PlanCache::new();
        let none: Arc<[SqlType]> = Arc::new([]);
        let int: Arc<[SqlType]> = Arc::new([SqlType::INT4]);
        for n in 0..MAX_ENTRIES {
            cache.put(&format!("s{n}").into(), &none, n);
            assert_eq!(cache.get("s0", &none), Some(&0));
        }
        assert_eq!(cache.get("s0", &int), None);
        cache.put(&"s0".into(), &int, 1000);
        assert_eq!(cache.get("s1", &none), None, "the least recently used are gone");
        assert_eq!((cache.get("s0", &none).copied(), cache.get("s0", &int).copied()), (Some(0), Some(1000)));
        cache.put(&"s0".into(), &int, 1001);
        assert_eq!(cache.get("s0", &int), Some(&1001));
        assert_eq!(cache.count, cache.entries.values().flatten().count());
        let long: Arc<str> = "x".repeat(MAX_TEXT_BYTES + 1).into();
        cache.put(&long, &none, 1);
        assert_eq!(cache.get(&long, &none), None);
        cache.clear();
        assert_eq!(cache.get("s0", &none), None);
    }
}
