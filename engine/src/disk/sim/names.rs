//! The names in a simulated directory: those that readers see, those that are durable, and the changes in between.

use std::collections::BTreeMap;

use super::choice::Choices;
use super::content::FileRef;

/// The names of a directory and their files.
#[derive(Default)]
pub(super) struct Names {
    /// What a reader sees.
    live: BTreeMap<String, FileRef>,
    /// What a crash leaves if no pending change survives.
    durable: BTreeMap<String, FileRef>,
    pending: Vec<Change>,
}

enum Change {
    Create(String, FileRef),
    Rename(String, String),
    Remove(String),
}

impl Names {
    /// The file `name`.
    pub(super) fn get(&self, name: &str) -> Option<&FileRef> {
        self.live.get(name)
    }

    /// All names and their files, sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &FileRef)> {
        self.live.iter()
    }

    /// Adds a name. A crash before the next sync may lose it.
    pub(super) fn create(&mut self, name: &str, file: FileRef) {
        self.live.insert(name.to_owned(), file.clone());
        self.pending.push(Change::Create(name.to_owned(), file));
    }

    /// Renames, replacing `to`. Returns `false` if there is no `from`.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(file) = self.live.remove(from) else { return false };
        self.live.insert(to.to_owned(), file);
        self.pending.push(Change::Rename(from.to_owned(), to.to_owned()));
        true
    }

    /// Removes a name. Returns `false` if there is none.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let removed = self.live.remove(name).is_some();
        if removed {
            self.pending.push(Change::Remove(name.to_owned()));
        }
        removed
    }

    /// The number of changes that are not durable.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The names that the pending changes affect.
    pub(super) fn changed(&self) -> Vec<String> {
        self.pending.iter().map(|change| change.name().to_owned()).collect()
    }

    /// Makes the first `count` pending changes durable. `keeps_old` keeps removed and renamed names.
    pub(super) fn sync(&mut self, count: usize, keeps_old: bool) {
        for change in self.pending.drain(..count) {
            change.apply(&mut self.durable, keeps_old);
        }
    }

    /// Power loss. A journal keeps a prefix of the pending changes; a file system without one keeps any subset.
    pub(super) fn crash(&mut self, keeps_old: bool, choices: &mut Choices<'_>) {
        let changes = std::mem::take(&mut self.pending);
        let prefix = choices.flip(0.75).then(|| choices.pick(changes.len() + 1));
        for (at, change) in changes.into_iter().enumerate() {
            let kept = prefix.map_or_else(|| choices.flip(0.5), |prefix| at < prefix);
            if kept {
                change.apply(&mut self.durable, keeps_old);
            }
        }
        self.live = self.durable.clone();
    }

    /// The number of sequences of choices that [`Names::crash`] can take.
    pub(super) fn possible_crashes(&self) -> u64 {
        let changes = self.pending.len() as u64;
        1u64.checked_shl(changes as u32).map_or(u64::MAX, |subsets| subsets.saturating_add(changes + 1))
    }

    /// Every file that a reader sees or that a crash may bring back; files may repeat.
    pub(super) fn all_files(&self) -> Vec<FileRef> {
        let created = self.pending.iter().filter_map(|change| match change {
            Change::Create(_, file) => Some(file),
            Change::Rename(..) | Change::Remove(_) => None,
        });
        self.live.values().chain(self.durable.values()).chain(created).cloned().collect()
    }

    /// Adds or replaces a name durably, whatever is pending.
    pub(super) fn insert_durable(&mut self, name: &str, file: FileRef) {
        self.live.insert(name.to_owned(), file.clone());
        self.durable.insert(name.to_owned(), file);
    }

    /// Removes a name durably, whatever is pending.
    pub(super) fn remove_durable(&mut self, name: &str) {
        self.live.remove(name);
        self.durable.remove(name);
    }

    /// The same names, with `twin` applied to each file.
    pub(super) fn map(&self, mut twin: impl FnMut(&FileRef) -> FileRef) -> Names {
        let mut twins = |names: &BTreeMap<String, FileRef>| -> BTreeMap<String, FileRef> {
            names.iter().map(|(name, file)| (name.clone(), twin(file))).collect()
        };
        let (live, durable) = (twins(&self.live), twins(&self.durable));
        let pending = self.pending.iter().map(|change| match change {
            Change::Create(name, file) => Change::Create(name.clone(), twin(file)),
            Change::Rename(from, to) => Change::Rename(from.clone(), to.clone()),
            Change::Remove(name) => Change::Remove(name.clone()),
        });
        Names { live, durable, pending: pending.collect() }
    }
}

impl Change {
    /// The name that the change adds or removes.
    fn name(&self) -> &str {
        match self {
            Change::Create(name, _) | Change::Rename(_, name) | Change::Remove(name) => name,
        }
    }

    /// Applies the change unless the change that it depends on is lost. `keeps_old` keeps removed and renamed names.
    fn apply(self, names: &mut BTreeMap<String, FileRef>, keeps_old: bool) {
        let mut take = |name: &str| if keeps_old { names.get(name).cloned() } else { names.remove(name) };
        match self {
            Change::Create(name, file) => {
                names.insert(name, file);
            }
            Change::Rename(from, to) => {
                if let Some(file) = take(&from) {
                    names.insert(to, file);
                }
            }
            Change::Remove(name) => drop(take(&name)),
        }
    }
}
