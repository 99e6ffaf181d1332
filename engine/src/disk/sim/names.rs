//! The names of a simulated directory: as a reader sees them, as a crash leaves them, and the changes in between.
//!
//! What a name stands for is a file, or, in the directory of all directories, a directory.

use std::collections::BTreeMap;

use rand::Rng;
use rand::rngs::StdRng;

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

    /// Makes all changes durable.
    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// Keeps or loses the pending changes, as `rng` decides.
    pub(super) fn crash(&mut self, rng: &mut StdRng) {
        let changes = std::mem::take(&mut self.pending);
        // A journal keeps a prefix; a file system without one keeps anything.
        let prefix = rng.random_bool(0.75).then(|| rng.random_range(0..=changes.len()));
        for (at, change) in changes.into_iter().enumerate() {
            let kept = prefix.map_or_else(|| rng.random_bool(0.5), |prefix| at < prefix);
            if kept {
                change.apply(&mut self.durable);
            }
        }
        self.live = self.durable.clone();
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

impl<T> Change<T> {
    /// Applies the change where it still makes sense: what it builds on may be lost.
    fn apply(self, names: &mut BTreeMap<String, T>) {
        match self {
            Change::Create(name, what) => {
                names.insert(name, what);
            }
            Change::Rename(from, to) => {
                if let Some(what) = names.remove(&from) {
                    names.insert(to, what);
                }
            }
            Change::Remove(name) => {
                names.remove(&name);
            }
        }
    }
}
