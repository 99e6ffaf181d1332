//! The names of a simulated directory: as a reader sees them, as a crash leaves them, and the changes in between.
//!
//! What a name stands for is a file, or, in the directory of all directories, a directory.

use std::collections::BTreeMap;

use super::crash::Fate;

/// Names, and what they stand for.
pub(super) struct Names<T> {
    /// What a reader sees.
    live: BTreeMap<String, T>,
    /// What a crash leaves if no pending change survives.
    durable: BTreeMap<String, T>,
    pending: Vec<Change<T>>,
}

enum Change<T> {
    Create(String, T),
    Rename(String, String),
    Remove(String),
}

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names { live: BTreeMap::new(), durable: BTreeMap::new(), pending: Vec::new() }
    }
}

impl<T: Clone> Names<T> {
    /// What `name` stands for.
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.live.get(name)
    }

    /// All names and what they stand for, sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.live.iter()
    }

    /// A new name, lost by a crash before the next sync, perhaps.
    pub(super) fn create(&mut self, name: &str, what: T) {
        self.live.insert(name.to_owned(), what.clone());
        self.pending.push(Change::Create(name.to_owned(), what));
    }

    /// Renames over whatever `to` was; `false` where there is no `from`.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(what) = self.live.remove(from) else { return false };
        self.live.insert(to.to_owned(), what);
        self.pending.push(Change::Rename(from.to_owned(), to.to_owned()));
        true
    }

    /// Removes a name; `false` where there is none.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let removed = self.live.remove(name).is_some();
        if removed {
            self.pending.push(Change::Remove(name.to_owned()));
        }
        removed
    }

    /// Number of changes that are not durable.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The names that these changes concern.
    pub(super) fn changed(&self) -> Vec<String> {
        self.pending.iter().map(|change| change.name().to_owned()).collect()
    }

    /// Makes the first `count` changes durable; `keeps_old` leaves the names that should go.
    pub(super) fn sync(&mut self, count: usize, keeps_old: bool) {
        for change in self.pending.drain(..count) {
            change.apply(&mut self.durable, keeps_old);
        }
    }

    /// Keeps or loses the pending changes: a journal keeps a prefix of them, a file system without one keeps anything.
    pub(super) fn crash(&mut self, keeps_old: bool, fate: &mut Fate<'_>) {
        let changes = std::mem::take(&mut self.pending);
        let prefix = fate.flip(0.75).then(|| fate.pick(changes.len() + 1));
        for (at, change) in changes.into_iter().enumerate() {
            let kept = prefix.map_or_else(|| fate.flip(0.5), |prefix| at < prefix);
            if kept {
                change.apply(&mut self.durable, keeps_old);
            }
        }
        self.live = self.durable.clone();
    }

    /// How many sequences of choices [`Names::crash`] knows.
    pub(super) fn crashes(&self) -> u64 {
        let changes = self.pending.len() as u64;
        1u64.checked_shl(changes as u32).map_or(u64::MAX, |subsets| subsets.saturating_add(changes + 1))
    }

    /// What the names stand for, as a reader sees them and as a crash may show them.
    pub(super) fn all(&self) -> Vec<T> {
        let created = self.pending.iter().filter_map(|change| match change {
            Change::Create(_, what) => Some(what),
            Change::Rename(..) | Change::Remove(_) => None,
        });
        self.live.values().chain(self.durable.values()).chain(created).cloned().collect()
    }

    /// Whether a crash could change something.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Sets a name durably, past all that is pending.
    pub(super) fn plant(&mut self, name: &str, what: T) {
        self.live.insert(name.to_owned(), what.clone());
        self.durable.insert(name.to_owned(), what);
    }

    /// Removes a name durably, past all that is pending.
    pub(super) fn lose(&mut self, name: &str) {
        self.live.remove(name);
        self.durable.remove(name);
    }

    /// The same names for what `twin` makes of each thing.
    pub(super) fn copy(&self, mut twin: impl FnMut(&T) -> T) -> Names<T> {
        let mut twins = |names: &BTreeMap<String, T>| -> BTreeMap<String, T> {
            names.iter().map(|(name, what)| (name.clone(), twin(what))).collect()
        };
        let (live, durable) = (twins(&self.live), twins(&self.durable));
        let pending = self.pending.iter().map(|change| match change {
            Change::Create(name, what) => Change::Create(name.clone(), twin(what)),
            Change::Rename(from, to) => Change::Rename(from.clone(), to.clone()),
            Change::Remove(name) => Change::Remove(name.clone()),
        });
        Names { live, durable, pending: pending.collect() }
    }
}

impl<T: Clone> Change<T> {
    /// The name that is there after the change, or is not any more.
    fn name(&self) -> &str {
        match self {
            Change::Create(name, _) | Change::Rename(_, name) | Change::Remove(name) => name,
        }
    }

    /// Applies the change where it still makes sense: what it builds on may be lost. `keeps_old` leaves the names that should go.
    fn apply(self, names: &mut BTreeMap<String, T>, keeps_old: bool) {
        let mut take = |name: &str| if keeps_old { names.get(name).cloned() } else { names.remove(name) };
        match self {
            Change::Create(name, what) => {
                names.insert(name, what);
            }
            Change::Rename(from, to) => {
                if let Some(what) = take(&from) {
                    names.insert(to, what);
                }
            }
            Change::Remove(name) => drop(take(&name)),
        }
    }
}
