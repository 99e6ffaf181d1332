//! Old entries for lagging followers, read by another thread.
//!
//! raft-rs asks for the entries that a follower lacks. If the cache has dropped them, reading them may wait for a cold
//! disk, and with it every region of the store. So the request is noted here and handed to the log reader, and raft-rs
//! is told to wait. Once the entries are here, raft-rs is called again and finds them. One read fetches several
//! messages. What is lost (a full queue, an overwritten log) raft-rs asks for again with the follower's next answer.

use std::collections::{BTreeMap, VecDeque};

use raft::GetEntriesContext;
use raft::eraftpb::Entry;

use super::cache::size;

/// Bytes of a read, unless a message may hold more.
const FETCH_BYTES: u64 = 1 << 20;
/// Most reads in flight or waiting, and most chunks kept: one for each follower and some.
const MOST: usize = 8;
/// Most callers of raft-rs that wait for the same entries.
const MOST_CALLERS: usize = 8;
/// Ticks for which an unused chunk is kept: longer than between two answers of a follower.
const KEPT_TICKS: u32 = 10;

/// Entries to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// Tells reads from before and after an overwrite of the log apart.
    pub(crate) generation: u64,
    /// The first entry.
    pub(crate) low: u64,
    /// The entry after the last one.
    pub(crate) high: u64,
    /// About the most bytes.
    pub(crate) max_bytes: u64,
}

/// Entries that raft-rs waits for.
struct Wanted {
    fetch: Fetch,
    requested: bool,
    callers: Vec<GetEntriesContext>,
}

/// Consecutive entries that were read; not empty.
struct Chunk {
    entries: Vec<Entry>,
    unused_ticks: u32,
}

/// See the module documentation.
///
/// Invariant: all chunks are of the log as it is; an overwrite forgets them.
#[derive(Default)]
pub(super) struct Fetches {
    generation: u64,
    /// By first entry.
    wanted: BTreeMap<u64, Wanted>,
    chunks: VecDeque<Chunk>,
}

impl Fetches {
    /// Entries from `low` to before `high`, about `max` bytes and at least one, if they were read. Otherwise notes that
    /// `caller` waits for them.
    pub(super) fn get(&mut self, low: u64, high: u64, max: u64, caller: GetEntriesContext) -> Option<Vec<Entry>> {
        let holds =
            |chunk: &Chunk| chunk.entries.first().is_some_and(|e| e.index <= low && low - e.index < chunk.len());
        let Some(at) = self.chunks.iter().position(holds) else {
            self.want(low, high, max, caller);
            return None;
        };
        let chunk = self.chunks.get_mut(at)?;
        chunk.unused_ticks = 0;
        let first = chunk.entries.first().map_or(low, |e| e.index);
        let mut used = 0;
        let wanted = chunk.entries.iter().skip((low - first) as usize).take_while(|entry| {
            used += size(entry);
            entry.index < high && (used <= max || entry.index == low)
        });
        let taken: Vec<Entry> = wanted.cloned().collect();
        let end = first + chunk.len();
        if low + taken.len() as u64 >= end {
            self.chunks.remove(at);
        }
        Some(taken)
    }

    fn want(&mut self, low: u64, high: u64, max: u64, caller: GetEntriesContext) {
        if self.wanted.len() >= MOST && !self.wanted.contains_key(&low) {
            return;
        }
        let fetch = Fetch { generation: self.generation, low, high, max_bytes: max.max(FETCH_BYTES) };
        let wanted = self.wanted.entry(low).or_insert_with(|| Wanted { fetch, requested: false, callers: Vec::new() });
        if wanted.callers.len() < MOST_CALLERS {
            wanted.callers.push(caller);
        }
    }

    /// The reads to start now.
    pub(super) fn take_requests(&mut self) -> Vec<Fetch> {
        let mark = |wanted: &mut Wanted| (!std::mem::replace(&mut wanted.requested, true)).then_some(wanted.fetch);
        self.wanted.values_mut().filter_map(mark).collect()
    }

    /// A read could not be started; `take_requests` returns it again.
    pub(super) fn refused(&mut self, fetch: Fetch) {
        if let Some(wanted) = self.wanted.get_mut(&fetch.low).filter(|_| fetch.generation == self.generation) {
            wanted.requested = false;
        }
    }

    /// Whether the log was not overwritten since the read was requested.
    pub(super) fn is_current(&self, fetch: Fetch) -> bool {
        fetch.generation == self.generation
    }

    /// A read has ended. Returns the callers to be called again; none if the log was overwritten meanwhile.
    pub(super) fn finish(&mut self, fetch: Fetch, entries: Vec<Entry>) -> Vec<GetEntriesContext> {
        if !self.is_current(fetch) {
            return Vec::new();
        }
        let Some(wanted) = self.wanted.remove(&fetch.low) else { return Vec::new() };
        if !entries.is_empty() {
            self.chunks.truncate(MOST - 1);
            self.chunks.push_front(Chunk { entries, unused_ticks: 0 });
        }
        wanted.callers
    }

    /// Forgets everything: the log was overwritten, or nobody is to be sent entries.
    pub(super) fn clear(&mut self) {
        self.generation += 1;
        self.wanted.clear();
        self.chunks.clear();
    }

    /// A tick has passed: drops what nobody has used for a while.
    pub(super) fn tick(&mut self) {
        self.chunks.retain_mut(|chunk| {
            chunk.unused_ticks += 1;
            chunk.unused_ticks <= KEPT_TICKS
        });
    }
}

impl Chunk {
    fn len(&self) -> u64 {
        self.entries.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(range: std::ops::Range<u64>) -> Vec<Entry> {
        range.map(|index| Entry { index, term: 1, data: vec![0; 76], ..Entry::default() }).collect()
    }

    fn get(fetches: &mut Fetches, low: u64, high: u64, max: u64) -> Option<(u64, usize)> {
        let got = fetches.get(low, high, max, GetEntriesContext::empty(true))?;
        Some((got[0].index, got.len()))
    }

    #[test]
    fn entries_are_read_once_and_served_in_messages() {
        let mut fetches = Fetches::default();
        assert_eq!(get(&mut fetches, 5, 90, 200), None);
        assert_eq!(get(&mut fetches, 5, 90, 200), None);
        let requests = fetches.take_requests();
        assert_eq!(requests, [Fetch { generation: 0, low: 5, high: 90, max_bytes: FETCH_BYTES }]);
        assert_eq!(fetches.take_requests(), []);
        assert_eq!(fetches.finish(requests[0], entries(5..10)).len(), 2);
        assert_eq!(get(&mut fetches, 5, 90, 200), Some((5, 2)));
        assert_eq!(get(&mut fetches, 7, 90, 1), Some((7, 1)), "at least one");
        assert_eq!(get(&mut fetches, 7, 9, 1000), Some((7, 2)));
        assert_eq!(get(&mut fetches, 8, 90, 1000), Some((8, 2)), "the end of the chunk");
        assert_eq!(get(&mut fetches, 8, 90, 1000), None, "it is used up");
    }

    #[test]
    fn overwritten_entries_are_forgotten() {
        let mut fetches = Fetches::default();
        get(&mut fetches, 5, 90, 200);
        get(&mut fetches, 30, 90, 200);
        let requests = fetches.take_requests();
        fetches.finish(requests[0], entries(5..10));
        fetches.clear();
        assert_eq!(fetches.finish(requests[1], entries(30..40)).len(), 0);
        assert_eq!(get(&mut fetches, 5, 90, 200), None);
        fetches.refused(requests[0]);
        assert_eq!(fetches.take_requests().len(), 1);
        fetches.refused(Fetch { generation: 1, ..requests[0] });
        assert_eq!(fetches.take_requests().len(), 1, "again");
    }

    #[test]
    fn everything_is_bounded() {
        let mut fetches = Fetches::default();
        for low in 1..100 {
            for _ in 0..100 {
                get(&mut fetches, low * 10, 2000, 200);
            }
        }
        let requests = fetches.take_requests();
        assert_eq!(requests.len(), MOST);
        for fetch in requests {
            assert_eq!(fetches.finish(fetch, entries(fetch.low..fetch.low + 2)).len(), MOST_CALLERS);
        }
        (0..=KEPT_TICKS).for_each(|_| fetches.tick());
        assert!(fetches.chunks.is_empty());
    }
}
