//! A map of prepared statements or portals by name, bounded in number and in bytes, because a client may create any
//! number of them.

use std::collections::HashMap;

use crate::error::{SqlError, SqlState};

/// The limits of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The kind of entries, for error messages.
    pub(crate) what: &'static str,
    /// Limit of named entries. One more is refused with 53400.
    pub(crate) count: usize,
    /// Limit of bytes, refused with 53200. An only entry is always accepted: its message was admitted at its size.
    pub(crate) bytes: usize,
}

/// Entries by name. The unnamed entry has the empty name.
#[derive(Debug)]
pub(crate) struct BoundedMap<T> {
    entries: HashMap<String, Entry<T>>,
    bytes: usize,
    limits: Limits,
}

/// A value and its accounted bytes.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) value: T,
    bytes: usize,
}

impl<T> BoundedMap<T> {
    /// An empty map.
    pub(crate) fn new(limits: Limits) -> BoundedMap<T> {
        BoundedMap { entries: HashMap::new(), bytes: 0, limits }
    }

    /// The value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|entry| &entry.value)
    }

    /// Mutable access. The accounted bytes do not change.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.entries.get_mut(name).map(|entry| &mut entry.value)
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), &entry.value))
    }

    /// Mutable access to all values. The accounted bytes do not change.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.values_mut().map(|entry| &mut entry.value)
    }

    /// Fails if an entry of this size does not fit.
    pub(crate) fn check_capacity(&self, name: &str, bytes: usize) -> Result<(), SqlError> {
        let Limits { what, count, bytes: most } = self.limits;
        let replaced = self.entries.get(name);
        if replaced.is_none() && self.entries.len() > count {
            let message = format!("too many {what} in one session");
            return Err(SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message));
        }
        let others = self.bytes - replaced.map_or(0, |entry| entry.bytes);
        if others > 0 && others.saturating_add(bytes) > most {
            let message = format!("the {what} of this session take more than {} MiB", most >> 20);
            return Err(
                SqlError::new(SqlState::OUT_OF_MEMORY, message).hint("Close those that are not needed any more.")
            );
        }
        Ok(())
    }

    /// Inserts a value, replacing an entry of the same name.
    pub(crate) fn insert(&mut self, name: String, value: T, bytes: usize) {
        self.put_back(name, Entry { value, bytes });
    }

    /// Removes an entry that the caller will put back.
    pub(crate) fn take(&mut self, name: &str) -> Option<Entry<T>> {
        let entry = self.entries.remove(name)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Puts back an entry from [`BoundedMap::take`].
    pub(crate) fn put_back(&mut self, name: String, entry: Entry<T>) {
        self.bytes += entry.bytes;
        if let Some(old) = self.entries.insert(name, entry) {
            self.bytes -= old.bytes;
        }
    }

    /// Removes an entry. Returns whether it existed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.take(name).is_some()
    }

    /// Removes all but the unnamed entry.
    pub(crate) fn clear_named(&mut self) {
        let unnamed = self.take("");
        self.clear();
        if let Some(entry) = unnamed {
            self.put_back(String::new(), entry);
        }
    }

    /// Removes the entries for which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let Self { entries, bytes, .. } = self;
        entries.retain(|_, entry| {
            let kept = keep(&entry.value);
            *bytes -= if kept { 0 } else { entry.bytes };
            kept
        });
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        if !self.entries.is_empty() {
            self.entries = HashMap::new();
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_bytes_are_bounded_and_replacing_frees_space() {
        let mut map = BoundedMap::new(Limits { what: "portals", count: 2, bytes: 100 });
        assert_eq!(map.check_capacity("a", 1000), Ok(()), "an only entry is accepted at any size");
        map.insert("a".into(), 1, 60);
        assert_eq!(map.check_capacity("b", 41).unwrap_err().code.0, "53200");
        assert_eq!(map.check_capacity("a", 100), Ok(()));
        map.insert("a".into(), 2, 10);
        map.insert(String::new(), 3, 10);
        let taken = map.take("a").unwrap();
        assert_eq!((taken.value, map.bytes), (2, 10));
        map.put_back("a".into(), taken);
        map.insert("b".into(), 4, 0);
        assert_eq!(map.check_capacity("c", 0).unwrap_err().code.0, "53400");
        assert_eq!(map.check_capacity("b", 0), Ok(()));
        map.clear_named();
        assert_eq!((map.get(""), map.get("a"), map.bytes), (Some(&3), None, 10));
        assert!(map.remove("") && !map.remove(""));
        map.clear();
        assert_eq!(map.bytes, 0);
    }
}
