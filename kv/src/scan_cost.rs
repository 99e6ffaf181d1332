//! What statements have cost so far, from one request to the next.
//!
//! A statement reads a range in pages, one request each, and many keys in several requests. After each the server notes
//! the cost, and the next one starts at the level that the statement has fallen to. A page is known by its snapshot and
//! by where it begins, which is where the one before ended, also at the border of a region. A read of many keys is
//! known by its snapshot alone. So clients need not say what they have cost, and cannot begin anew by asking again: a
//! page that is refused, lost or repeated finds the same note. The notes are bounded in number. Who finds none counts
//! as new.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tso::Timestamp;

use crate::api::ScanRequest;
use crate::key::Key;
use crate::read_pool::Cost;

/// The most notes.
const NOTES_MAX: usize = 4_096;
/// A statement that has cost less is not noted: it is most often over.
const NOTED_MIN: Duration = Duration::from_micros(100);

/// What a note is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NoteKey {
    start_ts: Timestamp,
    /// A hash of the place where a scan goes on; 0 for reads of many keys. Two scans that are taken for one share what
    /// they cost, and nothing else.
    place: u64,
}

impl NoteKey {
    fn of_page(start_ts: Timestamp, reverse: bool, bound: &Key) -> NoteKey {
        let mut hasher = DefaultHasher::new();
        (reverse, bound).hash(&mut hasher);
        NoteKey { start_ts, place: hasher.finish() }
    }

    fn of_batches(start_ts: Timestamp) -> NoteKey {
        NoteKey { start_ts, place: 0 }
    }
}

/// The notes of a store. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ScanCosts {
    notes: Arc<Mutex<Notes>>,
}

/// Invariant: every key of `costs` is in `order`, which holds at most [`NOTES_MAX`].
#[derive(Debug, Default)]
struct Notes {
    costs: HashMap<NoteKey, Cost>,
    /// In the order in which they were first noted.
    order: VecDeque<NoteKey>,
}

impl ScanCosts {
    /// What the statement has cost before this page.
    pub fn before_page(&self, request: &ScanRequest) -> Cost {
        let bound = if request.reverse { &request.end } else { &request.start };
        self.notes.lock().cost(NoteKey::of_page(request.start_ts, request.reverse, bound))
    }

    /// Notes what the statement has cost with this page. `resume`: where its next page begins, if it has one here.
    /// Without one the statement may go on in the next region.
    pub fn after_page(&self, request: &ScanRequest, resume: Option<&Key>, cost: Cost) {
        let bound = resume.unwrap_or(if request.reverse { &request.start } else { &request.end });
        self.note(NoteKey::of_page(request.start_ts, request.reverse, bound), cost);
    }

    /// What reads of many keys at a snapshot have cost.
    pub fn before_batch(&self, start_ts: Timestamp) -> Cost {
        self.notes.lock().cost(NoteKey::of_batches(start_ts))
    }

    /// Notes what reads of many keys at a snapshot have cost with this one.
    pub fn after_batch(&self, start_ts: Timestamp, cost: Cost) {
        self.note(NoteKey::of_batches(start_ts), cost);
    }

    fn note(&self, key: NoteKey, cost: Cost) {
        if cost.spent() >= NOTED_MIN {
            self.notes.lock().note(key, cost);
        }
    }
}

impl Notes {
    fn cost(&self, key: NoteKey) -> Cost {
        self.costs.get(&key).copied().unwrap_or_default()
    }

    /// Notes a cost, unless a greater one is noted: batches of one statement run at the same time.
    fn note(&mut self, key: NoteKey, cost: Cost) {
        if let Some(noted) = self.costs.get_mut(&key) {
            if noted.spent() < cost.spent() {
                *noted = cost;
            }
            return;
        }
        if self.order.len() >= NOTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.costs.remove(&oldest);
        }
        self.order.push_back(key);
        self.costs.insert(key, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(start: &str, end: &str, start_ts: u64, reverse: bool) -> ScanRequest {
        ScanRequest {
            start: Key::new(start.to_owned()),
            end: Key::new(end.to_owned()),
            start_ts: Timestamp::new(start_ts, 0),
            limit: 1,
            max_bytes: 1,
            reverse,
            keys_only: false,
            pass: Vec::new(),
        }
    }

    fn cost(ms: u64) -> Cost {
        let mut cost = Cost::default();
        cost.add(1, Duration::from_millis(ms), true);
        cost
    }

    #[test]
    fn a_page_finds_the_cost_of_those_before_it() {
        for reverse in [false, true] {
            let costs = ScanCosts::default();
            let first = request("c", "x", 10, reverse);
            assert_eq!(costs.before_page(&first), Cost::default());
            let resume = Key::from_static(b"m");
            costs.after_page(&first, Some(&resume), cost(7));
            let next = if reverse { request("c", "m", 10, true) } else { request("m", "x", 10, false) };
            // Also if it is sent again.
            assert_eq!([costs.before_page(&next), costs.before_page(&next)], [cost(7), cost(7)]);
            for other in [
                ScanRequest { start_ts: Timestamp::new(11, 0), ..next.clone() },
                ScanRequest { reverse: !reverse, ..next.clone() },
                request("n", "n", 10, reverse),
            ] {
                assert_eq!(costs.before_page(&other), Cost::default(), "{other:?}");
            }
        }
    }

    #[test]
    fn a_scan_goes_on_in_the_next_region() {
        let costs = ScanCosts::default();
        costs.after_page(&request("c", "g", 10, false), None, cost(7));
        assert_eq!(costs.before_page(&request("g", "x", 10, false)), cost(7));
        costs.after_page(&request("p", "x", 10, true), None, cost(9));
        assert_eq!(costs.before_page(&request("c", "p", 10, true)), cost(9));
    }

    #[test]
    fn batches_of_a_snapshot_share_the_greatest_cost() {
        let (costs, ts) = (ScanCosts::default(), Timestamp::new(10, 0));
        [7, 3].into_iter().for_each(|ms| costs.after_batch(ts, cost(ms)));
        assert_eq!(costs.before_batch(ts), cost(7));
        assert_eq!(costs.before_batch(Timestamp::new(11, 0)), Cost::default());
    }

    #[test]
    fn notes_are_bounded_and_small_costs_are_not_noted() {
        let costs = ScanCosts::default();
        costs.after_batch(Timestamp::new(1, 0), Cost::default());
        assert!(costs.notes.lock().costs.is_empty());
        (0..2 * NOTES_MAX as u64).for_each(|ts| costs.after_batch(Timestamp::new(ts + 1, 0), cost(1)));
        let notes = costs.notes.lock();
        assert_eq!((notes.costs.len(), notes.order.len()), (NOTES_MAX, NOTES_MAX));
        drop(notes);
        assert_eq!(costs.before_batch(Timestamp::new(1, 0)), Cost::default(), "the oldest left first");
    }
}
