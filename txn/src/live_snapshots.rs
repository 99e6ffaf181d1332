//! The transactions of a node, and how far each of them looks back: what garbage collection has to leave.
//!
//! Every transaction enters with a *bound*, at or below every timestamp that it reads at or has as a name. It enters
//! before it takes its first timestamp, with the newest timestamp that this node has received: the oracle issues only
//! greater ones. So it need not enter again for each statement. A snapshot that lies further back lowers the bound.
//!
//! [`LiveSnapshots::oldest`] is exact: no transaction of this node is, or will be, below what it returns, unless it
//! asks for a snapshot in the past. It reads the newest timestamp and the names fetched ahead first, and then looks at
//! the bounds. A transaction that it does not see there takes its timestamp later, and gets a greater one.
//!
//! A place costs a transaction two atomic writes, and no lock as long as there are few of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use parking_lot::Mutex;
use tso::{Timestamp, TsoClient};

/// The transactions that need no lock to enter.
const SLOTS: usize = 4_096;
/// The slots that a transaction looks at before it takes a place under the lock.
const PROBES: usize = 8;

/// The transaction of a node that looks back furthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// No transaction of the node reads below it, or has a smaller name, now or later.
    pub bound: Timestamp,
    /// The session of the transaction that it is the bound of. `None` if there is none, or it has no session.
    pub session: Option<u32>,
}

/// The bounds and sessions of those that have found no slot, by number.
type More = BTreeMap<u64, (Timestamp, u32)>;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct LiveSnapshots {
    slots: Box<[Slot]>,
    next: AtomicUsize,
    /// The last number, and those that have found no slot.
    more: Mutex<(u64, More)>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The bound; 0 if the slot is free.
    bound: AtomicU64,
    session: AtomicU32,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Slot(usize),
    More(u64),
}

/// The place of a transaction. Dropping it says that the transaction is over.
#[derive(Debug)]
pub(crate) struct LiveSnapshot {
    live: Arc<LiveSnapshots>,
    place: Place,
}

impl Default for LiveSnapshots {
    fn default() -> LiveSnapshots {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        LiveSnapshots { slots, next: AtomicUsize::new(0), more: Mutex::default() }
    }
}

impl LiveSnapshots {
    /// Enters a transaction that has no timestamp yet.
    pub(crate) fn enter(self: &Arc<LiveSnapshots>, tso: &TsoClient) -> LiveSnapshot {
        self.enter_at(tso.newest_timestamp())
    }

    fn enter_at(self: &Arc<LiveSnapshots>, bound: Timestamp) -> LiveSnapshot {
        // 0 means free. Nothing is collected below 1.
        let bound = bound.raw().max(1);
        let first = self.next.fetch_add(1, SeqCst);
        for probe in 0..PROBES {
            let at = first.wrapping_add(probe) % self.slots.len();
            if self.slots[at].bound.compare_exchange(0, bound, SeqCst, SeqCst).is_ok() {
                self.slots[at].session.store(0, SeqCst);
                return LiveSnapshot { live: Arc::clone(self), place: Place::Slot(at) };
            }
        }
        let mut more = self.more.lock();
        more.0 += 1;
        let number = more.0;
        more.1.insert(number, (Timestamp::from_raw(bound), 0));
        LiveSnapshot { live: Arc::clone(self), place: Place::More(number) }
    }

    /// The transaction that looks back furthest. `None` if this node has never had a timestamp.
    pub(crate) fn oldest(&self, tso: &TsoClient) -> Option<OldestSnapshot> {
        // In this order: see the module documentation.
        let newest = tso.newest_timestamp();
        let ahead = tso.oldest_ahead().unwrap_or(newest);
        let idle = OldestSnapshot { bound: newest.min(ahead), session: None };
        (newest > Timestamp::ZERO).then(|| self.look(idle))
    }

    fn look(&self, idle: OldestSnapshot) -> OldestSnapshot {
        let of_slot = |slot: &Slot| {
            let bound = slot.bound.load(SeqCst);
            (bound > 0).then(|| (Timestamp::from_raw(bound), slot.session.load(SeqCst)))
        };
        let more: Vec<(Timestamp, u32)> = self.more.lock().1.values().copied().collect();
        let oldest = self.slots.iter().filter_map(of_slot).chain(more).min_by_key(|(bound, _)| *bound);
        match oldest {
            Some((bound, session)) if bound < idle.bound => {
                OldestSnapshot { bound, session: (session > 0).then_some(session) }
            }
            _ => idle,
        }
    }
}

impl LiveSnapshot {
    /// Lowers the bound to a snapshot or a name that lies further back. Before that is used, if it can be.
    pub(crate) fn lower(&self, to: Timestamp) {
        match self.place {
            Place::Slot(at) => {
                if self.live.slots[at].bound.load(SeqCst) > to.raw() {
                    self.live.slots[at].bound.fetch_min(to.raw().max(1), SeqCst);
                }
            }
            Place::More(number) => {
                self.live.more.lock().1.entry(number).and_modify(|(bound, _)| *bound = (*bound).min(to));
            }
        }
    }

    /// Says whose transaction it is.
    pub(crate) fn set_session(&self, session: u32) {
        match self.place {
            Place::Slot(at) => self.live.slots[at].session.store(session, SeqCst),
            Place::More(number) => {
                self.live.more.lock().1.entry(number).and_modify(|entry| entry.1 = session);
            }
        }
    }
}

impl Drop for LiveSnapshot {
    fn drop(&mut self) {
        match self.place {
            Place::Slot(at) => self.live.slots[at].bound.store(0, SeqCst),
            Place::More(number) => {
                self.live.more.lock().1.remove(&number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ts(raw: u64) -> Timestamp {
        Timestamp::from_raw(raw)
    }

    fn oldest(live: &LiveSnapshots) -> (u64, Option<u32>) {
        let OldestSnapshot { bound, session } = live.look(OldestSnapshot { bound: ts(1_000_000), session: None });
        (bound.raw(), session)
    }

    #[test]
    fn the_transaction_that_looks_back_furthest_counts_until_it_is_over() {
        let live = Arc::new(LiveSnapshots::default());
        assert_eq!(oldest(&live), (1_000_000, None));
        let (old, new) = (live.enter_at(ts(50)), live.enter_at(ts(90)));
        old.set_session(7);
        assert_eq!(oldest(&live), (50, Some(7)));
        new.lower(ts(95));
        new.lower(ts(40));
        assert_eq!(oldest(&live), (40, None));
        drop(new);
        assert_eq!(oldest(&live), (50, Some(7)));
        drop(old);
        assert_eq!(oldest(&live), (1_000_000, None));
        let early = live.enter_at(Timestamp::ZERO);
        assert_eq!(oldest(&live), (1, None), "before the first timestamp of the node");
        drop(early);
    }

    #[test]
    fn transactions_beyond_the_slots_count_as_well() {
        let live = Arc::new(LiveSnapshots::default());
        let many: Vec<LiveSnapshot> = (0..2 * SLOTS as u64).map(|at| live.enter_at(ts(10 + at))).collect();
        assert_eq!(oldest(&live).0, 10);
        let last = live.enter_at(ts(5));
        assert!(matches!(last.place, Place::More(_)));
        last.set_session(3);
        assert_eq!(oldest(&live), (5, Some(3)));
        last.lower(ts(4));
        assert_eq!(oldest(&live), (4, Some(3)));
        drop(last);
        drop(many);
        assert_eq!(oldest(&live), (1_000_000, None));
        assert!(live.more.lock().1.is_empty());
    }
}
