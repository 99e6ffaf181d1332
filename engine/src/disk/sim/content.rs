//! The content of a simulated file: what is durable, what readers see, and the changes in between.
//!
//! A crash keeps nothing of the pending changes, all of them, a prefix whose last write is torn at a byte, or any
//! mixture of 512-byte sectors. [`Choices`] picks among these.
//!
//! Copies of a disk share the bytes of a file until one of them changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::choice::Choices;

/// The unit in which a disk writes.
const SECTOR: u64 = 512;

/// A file, under any number of names.
pub(super) type FileRef = Arc<Mutex<SimFile>>;

/// The content of a file.
#[derive(Clone, Default)]
pub(super) struct SimFile {
    /// What a crash leaves if no pending change survives.
    pub(super) durable: Arc<Vec<u8>>,
    /// What a reader sees.
    pub(super) live: Arc<Vec<u8>>,
    /// Changes since the last sync.
    pub(super) pending: Vec<Pending>,
}

/// A change that a crash may lose.
#[derive(Clone)]
pub(super) enum Pending {
    /// Bytes at an offset.
    Write(u64, Bytes),
    SetLen(u64),
}

impl Pending {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Pending::Write(offset, data) => write_into(content, *offset as usize, data),
            Pending::SetLen(len) => content.resize(*len as usize, 0),
        }
    }

    /// The length of a file of `len` bytes after this change.
    fn len_after(&self, len: u64) -> u64 {
        match self {
            Pending::Write(offset, data) => len.max(offset + data.len() as u64),
            Pending::SetLen(len) => *len,
        }
    }
}

impl SimFile {
    /// A file with this content, all of it durable.
    pub(super) fn durable(content: Vec<u8>) -> SimFile {
        let content = Arc::new(content);
        SimFile { durable: content.clone(), live: content, pending: Vec::new() }
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        if !data.is_empty() {
            self.change(Pending::Write(offset, Bytes::copy_from_slice(data)));
        }
    }

    /// Makes a change that readers see and that is not durable yet.
    pub(super) fn change(&mut self, change: Pending) {
        change.apply(Arc::make_mut(&mut self.live));
        self.pending.push(change);
    }

    /// Makes the pending changes durable.
    pub(super) fn sync(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        self.pending.iter().for_each(|change| change.apply(durable));
    }

    /// Makes durable only what the pending changes write past the end of the durable content.
    pub(super) fn sync_extension(&mut self) {
        let len = self.durable.len();
        let old = self.durable.clone();
        self.sync();
        let kept = len.min(self.durable.len());
        Arc::make_mut(&mut self.durable)[..kept].copy_from_slice(&old[..kept]);
    }

    /// Power loss: nothing of the pending changes is kept, everything, a torn prefix, or any mixture of sectors.
    pub(super) fn crash(&mut self, choices: &mut Choices<'_>) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            match choices.pick(4) {
                0 => {}
                1 => {
                    let durable = Arc::make_mut(&mut self.durable);
                    pending.iter().for_each(|change| change.apply(durable));
                }
                2 => self.crash_to_prefix(&pending, choices),
                _ => self.crash_to_sectors(&pending, choices),
            }
        }
        self.live = self.durable.clone();
    }

    /// Keeps a prefix of the changes, and a prefix of the bytes of the next one.
    fn crash_to_prefix(&mut self, pending: &[Pending], choices: &mut Choices<'_>) {
        let kept = choices.pick(pending.len());
        let durable = Arc::make_mut(&mut self.durable);
        pending[..kept].iter().for_each(|change| change.apply(durable));
        if let Pending::Write(offset, data) = &pending[kept] {
            let bytes = choices.pick(data.len() + 1);
            write_into(durable, *offset as usize, &data[..bytes]);
        }
    }

    /// Keeps, for each sector, one of the versions written to it; for the file, one of its lengths.
    fn crash_to_sectors(&mut self, pending: &[Pending], choices: &mut Choices<'_>) {
        let mut versions: BTreeMap<u64, Vec<(u64, &[u8])>> = BTreeMap::new();
        let mut lengths = vec![self.durable.len() as u64];
        for change in pending {
            lengths.push(change.len_after(lengths[lengths.len() - 1]));
            for (offset, piece) in change.sectors() {
                versions.entry(offset / SECTOR).or_default().push((offset, piece));
            }
        }
        let durable = Arc::make_mut(&mut self.durable);
        for writes in versions.values() {
            let kept = choices.pick(writes.len() + 1);
            for (offset, piece) in &writes[..kept] {
                write_into(durable, *offset as usize, piece);
            }
        }
        // The inode is written separately: any of the lengths may be the durable one.
        let len = lengths[choices.pick(lengths.len())];
        durable.resize(len as usize, 0);
    }

    /// The number of sequences of choices that [`SimFile::crash`] can take.
    pub(super) fn possible_crashes(&self) -> u64 {
        if self.pending.is_empty() {
            return 1;
        }
        let mut versions: BTreeMap<u64, u64> = BTreeMap::new();
        let mut torn = 0;
        for change in &self.pending {
            torn += if let Pending::Write(_, data) = change { data.len() as u64 + 1 } else { 1 };
            change.sectors().for_each(|(offset, _)| *versions.entry(offset / SECTOR).or_insert(1) += 1);
        }
        let mixtures = versions.values().fold(self.pending.len() as u64 + 1, |product, of| product.saturating_mul(*of));
        mixtures.saturating_add(torn + 2)
    }

    /// Makes every other sector of the pending writes durable, and the length.
    pub(super) fn sync_half(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        for change in &self.pending {
            let len = change.len_after(durable.len() as u64);
            durable.resize(len as usize, 0);
            for (offset, piece) in change.sectors().filter(|(offset, _)| (offset / SECTOR).is_multiple_of(2)) {
                write_into(durable, offset as usize, piece);
            }
        }
    }
}

impl Pending {
    /// A write cut at sector boundaries, with offsets. Empty for a change of length.
    fn sectors(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let (mut at, mut rest) = match self {
            Pending::Write(offset, data) => (*offset, data.as_ref()),
            Pending::SetLen(_) => (0, [].as_slice()),
        };
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let step = (SECTOR - at % SECTOR).min(rest.len() as u64);
            let (piece, after) = rest.split_at(step as usize);
            let found = (at, piece);
            (at, rest) = (at + step, after);
            Some(found)
        })
    }
}

fn write_into(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}
