//! What a crash leaves of what was pending: of each file's content. (Of names: `names.rs`.)
//!
//! One piece of code says what is possible; who decides among it is a [`Fate`]: a seed, or a caller that goes through all of it.

use std::collections::BTreeMap;

use rand::Rng;
use rand::rngs::StdRng;

use super::file::{Pending, SimFile, write_into};

/// What a disk writes in one piece.
const SECTOR: u64 = 512;

/// Who decides what a crash leaves.
pub(super) enum Fate<'a> {
    /// A seeded generator.
    Drawn(Box<StdRng>),
    /// A caller: given `n`, it says which of `0..n`.
    Chosen(&'a mut dyn FnMut(usize) -> usize),
}

impl Fate<'_> {
    /// One of `0..of`; `of` is at least 1.
    pub(super) fn pick(&mut self, of: usize) -> usize {
        match self {
            Fate::Drawn(rng) => rng.random_range(0..of),
            Fate::Chosen(choose) => choose(of).min(of - 1),
        }
    }

    /// Yes or no.
    pub(super) fn flip(&mut self, probability: f64) -> bool {
        match self {
            Fate::Drawn(rng) => rng.random_bool(probability),
            Fate::Chosen(choose) => choose(2) == 1,
        }
    }
}

impl SimFile {
    /// Power loss: nothing, everything, a torn prefix, or any mixture of sectors of what was pending is durable.
    pub(super) fn crash(&mut self, fate: &mut Fate<'_>) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            match fate.pick(4) {
                0 => {}
                1 => pending.iter().for_each(|change| change.apply(&mut self.durable)),
                2 => self.crash_to_prefix(&pending, fate),
                _ => self.crash_to_sectors(&pending, fate),
            }
        }
        self.live = self.durable.clone();
    }

    /// Keeps a prefix of the changes, and a prefix of the bytes of the one after it.
    fn crash_to_prefix(&mut self, pending: &[Pending], fate: &mut Fate<'_>) {
        let kept = fate.pick(pending.len());
        pending[..kept].iter().for_each(|change| change.apply(&mut self.durable));
        if let Pending::Write(offset, data) = &pending[kept] {
            let bytes = fate.pick(data.len() + 1);
            write_into(&mut self.durable, *offset as usize, &data[..bytes]);
        }
    }

    /// Keeps of each sector one of the versions written to it, and of the length one of those it had.
    fn crash_to_sectors(&mut self, pending: &[Pending], fate: &mut Fate<'_>) {
        let mut versions: BTreeMap<u64, Vec<(u64, &[u8])>> = BTreeMap::new();
        let mut lengths = vec![self.durable.len() as u64];
        for change in pending {
            lengths.push(change.len_after(lengths[lengths.len() - 1]));
            for (offset, piece) in change.sectors() {
                versions.entry(offset / SECTOR).or_default().push((offset, piece));
            }
        }
        for writes in versions.values() {
            let kept = fate.pick(writes.len() + 1);
            for (offset, piece) in &writes[..kept] {
                write_into(&mut self.durable, *offset as usize, piece);
            }
        }
        // The inode is written by itself: any of the lengths may be the durable one.
        let len = lengths[fate.pick(lengths.len())];
        self.durable.resize(len as usize, 0);
    }

    /// How many sequences of choices [`SimFile::crash`] knows.
    pub(super) fn crashes(&self) -> u64 {
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

    /// Makes every other sector of what is pending durable, and the length.
    pub(super) fn sync_half(&mut self) {
        for change in &self.pending {
            let len = change.len_after(self.durable.len() as u64);
            self.durable.resize(len as usize, 0);
            for (offset, piece) in change.sectors().filter(|(offset, _)| (offset / SECTOR).is_multiple_of(2)) {
                write_into(&mut self.durable, offset as usize, piece);
            }
        }
    }
}

impl Pending {
    /// The pieces of a write that lie in one sector each, with their offsets; nothing for a change of length.
    fn sectors(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let (mut at, mut rest) = match self {
            Pending::Write(offset, data) => (*offset, data.as_slice()),
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
