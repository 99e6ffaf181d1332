//! Flow control towards busy stores: the writes that a client sends to a store at one of its limits take turns.
//!
//! Such a store refuses writes with `ServerBusy`. If all of them only back off, the luckiest come through: some are
//! refused until their time is up, and the rollbacks of their transactions add to the load. So from the first refusal
//! on, the client bounds its writes in flight at that store, and the others wait in the order of their arrival. A
//! refusal halves the bound, and a row of answers raises it again, so it stays near what the store takes. A write that
//! is refused keeps its place: it is sent again after a pause (`retry.rs`), or goes back in line, before those that
//! came later, if the bound has fallen below the writes in flight.
//!
//! The wait of a line that moves does not count towards the deadlines of those in it. The line is given up, and the
//! wait counts, if a write in front runs out of time or the store is gone or leads no more: then each write tries its
//! luck. So all end in bounded time. Reads and heartbeats do not wait. While no store is busy, a write costs two atomic
//! loads here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use raftstore::{RegionError, StoreId};
use tokio::sync::oneshot;

use super::endpoint::CallError;
use crate::api::{Response, ServerError};

/// The bound after the first refusal, before it is halved for it.
const FIRST_LIMIT: usize = 32;
/// After so many answers without a refusal, each further one raises the bound by one. Few writes are refused then at a
/// store that takes one at a time.
const ROW: u32 = 8;
/// A bound that has grown above this is lifted.
const LIMIT_MAX: usize = 1_024;
/// The most writes that wait for one store. Further ones are sent at once, for the store to refuse.
const WAITING_MAX: usize = 65_536;

/// What became of a write, as far as the bound of its store is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The store took it, whatever it answered.
    Taken,
    /// The store was at one of its limits.
    Refused,
    /// The store did not answer, or does not serve the region.
    Gone,
}

impl Outcome {
    fn of(result: &Result<Response, CallError>) -> Outcome {
        match result {
            Err(CallError::Server(ServerError::Region(RegionError::ServerBusy { .. }))) => Outcome::Refused,
            Err(CallError::Unreachable { .. } | CallError::Lost { .. } | CallError::Server(ServerError::Region(_))) => {
                Outcome::Gone
            }
            Ok(_) | Err(CallError::Server(_)) => Outcome::Taken,
        }
    }
}

/// The congestion windows of all busy stores.
#[derive(Default)]
pub(super) struct Windows {
    stores: Mutex<Stores>,
    /// The number of busy stores, read without the lock.
    busy: AtomicUsize,
}

#[derive(Default)]
struct Stores {
    windows: BTreeMap<StoreId, Window>,
    /// The last number that a window or a turn got.
    last: u64,
}

/// The congestion window of one store: the bound of its writes in flight.
///
/// Invariants:
/// 1. `limit` is at least 1.
/// 2. Writes wait only while `limit` are in flight. So whenever one leaves, the next one enters.
/// 3. Those that wait are in the order of their numbers.
struct Window {
    id: u64,
    limit: usize,
    in_flight: usize,
    /// Answers since the last refusal.
    answers: u32,
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl Window {
    /// Lets writes enter while there is room.
    fn admit(&mut self) {
        while self.in_flight < self.limit
            && let Some((_, waiter)) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            // If the waiter is gone, its turn ends and admits the next one.
            let _ = waiter.send(());
        }
    }
}

/// A write's place at a busy store: in flight, or waiting. Dropping it makes room for the next one.
pub(super) struct Turn<'a> {
    windows: &'a Windows,
    store: StoreId,
    window: u64,
    id: u64,
}

impl Windows {
    /// Whether a store has a bound.
    pub(super) fn has_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    /// Waits until a write to `store` may leave. `None` if the store has no bound, or lost it meanwhile. `waits` is
    /// called before a wait.
    pub(super) async fn enter(&self, store: StoreId, waits: impl FnOnce()) -> Option<Turn<'_>> {
        let (turn, wait) = self.enqueue(store)?;
        if let Some(wait) = wait {
            waits();
            wait.await.ok()?;
        }
        Some(turn)
    }

    /// The turn of a write, and what it waits for unless there is room.
    fn enqueue(&self, store: StoreId) -> Option<(Turn<'_>, Option<oneshot::Receiver<()>>)> {
        let mut stores = self.stores.lock();
        stores.last += 1;
        let id = stores.last;
        let window = stores.windows.get_mut(&store).filter(|window| window.waiting.len() < WAITING_MAX)?;
        let turn = Turn { windows: self, store, window: window.id, id };
        if window.in_flight < window.limit {
            window.in_flight += 1;
            return Some((turn, None));
        }
        let (sender, receiver) = oneshot::channel();
        window.waiting.push_back((id, sender));
        Some((turn, Some(receiver)))
    }

    /// Learns from the result of a write to `store`.
    pub(super) fn learn(&self, store: StoreId, result: &Result<Response, CallError>) -> Outcome {
        let outcome = Outcome::of(result);
        if outcome == Outcome::Refused || self.has_busy() {
            drop(self.change(store, outcome));
        }
        outcome
    }

    /// Lifts the bound of a store, because a write ran out of time there. Those that wait are sent.
    pub(super) fn lift(&self, store: StoreId) {
        drop(self.change(store, Outcome::Gone));
    }

    /// Returns the bound if it is lifted: dropping it wakes its waiters, which need the lock.
    fn change(&self, store: StoreId, outcome: Outcome) -> Option<Window> {
        let mut stores = self.stores.lock();
        let Stores { windows, last } = &mut *stores;
        let lifted = match outcome {
            Outcome::Refused => {
                let window = windows.entry(store).or_insert_with(|| {
                    *last += 1;
                    Window { id: *last, limit: FIRST_LIMIT, in_flight: 0, answers: 0, waiting: VecDeque::new() }
                });
                window.limit = (window.limit / 2).max(1);
                window.answers = 0;
                None
            }
            Outcome::Taken => {
                let window = windows.get_mut(&store)?;
                window.answers = window.answers.saturating_add(1);
                if window.answers <= ROW {
                    return None;
                }
                window.limit += 1;
                window.admit();
                if window.limit > LIMIT_MAX { windows.remove(&store) } else { None }
            }
            Outcome::Gone => windows.remove(&store),
        };
        self.busy.store(windows.len(), Ordering::Relaxed);
        lifted
    }
}

impl Turn<'_> {
    /// Goes back in line if the bound has fallen below the writes in flight. Returns what to wait for then, which fails
    /// if the bound is lifted.
    pub(super) fn step_back(&self) -> Option<oneshot::Receiver<()>> {
        let mut stores = self.windows.stores.lock();
        let window = stores.windows.get_mut(&self.store).filter(|window| window.id == self.window)?;
        if window.in_flight <= window.limit {
            return None;
        }
        window.in_flight -= 1;
        let (sender, receiver) = oneshot::channel();
        let at = window.waiting.partition_point(|(id, _)| *id < self.id);
        window.waiting.insert(at, (self.id, sender));
        Some(receiver)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut stores = self.windows.stores.lock();
        // A lifted bound, or the one after it, knows nothing of this turn.
        let Some(window) = stores.windows.get_mut(&self.store).filter(|window| window.id == self.window) else {
            return;
        };
        if let Ok(at) = window.waiting.binary_search_by_key(&self.id, |(id, _)| *id) {
            window.waiting.remove(at);
        } else {
            assert!(window.in_flight > 0, "a turn that does not wait is in flight");
            window.in_flight -= 1;
        }
        window.admit();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const STORE: StoreId = StoreId::new(1);

    fn busy() -> Result<Response, CallError> {
        Err(ServerError::from(RegionError::ServerBusy { store: STORE, what: "latches".to_owned() }).into())
    }

    fn lost() -> Result<Response, CallError> {
        Err(CallError::Lost { store: STORE, why: "timeout".to_owned() })
    }

    fn learn(windows: &Windows, result: Result<Response, CallError>) {
        windows.learn(STORE, &result);
    }

    /// Windows after so many refusals that one write may be in flight.
    fn narrow() -> Windows {
        let windows = Windows::default();
        (0..8).for_each(|_| learn(&windows, busy()));
        windows
    }

    #[test]
    fn writes_to_a_store_that_refuses_none_do_not_wait() {
        let windows = Windows::default();
        learn(&windows, Ok(Response::Done));
        learn(&windows, lost());
        assert!(!windows.has_busy());
        learn(&windows, busy());
        assert!(windows.enter(StoreId::new(2), || ()).now_or_never().expect("another store").is_none());
    }

    #[test]
    fn writes_to_a_busy_store_take_turns() {
        let windows = narrow();
        let first = windows.enter(STORE, || ()).now_or_never().expect("room for one");
        let mut waits = 0;
        let mut second = Box::pin(windows.enter(STORE, || waits += 1));
        let mut third = Box::pin(windows.enter(STORE, || ()));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "no overtaking");
        let second = second.now_or_never().expect("its turn");
        assert_eq!(waits, 1);
        // A row of answers makes room for one more.
        (0..ROW).for_each(|_| learn(&windows, Ok(Response::Done)));
        assert!((&mut third).now_or_never().is_none(), "one is in flight");
        learn(&windows, Ok(Response::Done));
        assert!(third.now_or_never().expect("its turn").is_some());
        drop(second);
    }

    /// Two were in flight when the bound fell to one. The refused one comes before a write that arrived later.
    #[test]
    fn a_refused_write_goes_back_in_line_when_the_bound_falls() {
        let windows = Windows::default();
        (0..4).for_each(|_| learn(&windows, busy()));
        let first = windows.enter(STORE, || ()).now_or_never().expect("room for two").expect("a bound");
        let second = windows.enter(STORE, || ()).now_or_never().expect("room for two").expect("a bound");
        let mut third = Box::pin(windows.enter(STORE, || ()));
        assert!((&mut third).now_or_never().is_none());
        assert!(second.step_back().is_none(), "the bound is two");
        learn(&windows, busy());
        let mut line = second.step_back().expect("the bound is one");
        assert!(first.step_back().is_none() && line.try_recv().is_err());
        drop(first);
        assert!(line.try_recv().is_ok() && (&mut third).now_or_never().is_none());
        drop(second);
        assert!(third.now_or_never().expect("its turn").is_some());
    }

    /// One that waits, and one that was let in and does not know yet.
    #[test]
    fn a_write_that_is_given_up_makes_room() {
        for is_admitted in [false, true] {
            let windows = narrow();
            let first = windows.enter(STORE, || ()).now_or_never().expect("room for one");
            let mut given_up = Box::pin(windows.enter(STORE, || ()));
            let mut last = Box::pin(windows.enter(STORE, || ()));
            assert!((&mut given_up).now_or_never().is_none() && (&mut last).now_or_never().is_none());
            if is_admitted {
                drop(first);
                drop(given_up);
            } else {
                drop(given_up);
                drop(first);
            }
            assert!(last.now_or_never().expect("its turn").is_some());
        }
    }

    #[test]
    fn a_store_that_is_gone_keeps_nothing_waiting() {
        let windows = narrow();
        let first = windows.enter(STORE, || ()).now_or_never().expect("room for one");
        let mut second = Box::pin(windows.enter(STORE, || ()));
        assert!((&mut second).now_or_never().is_none());
        learn(&windows, lost());
        assert!(second.now_or_never().expect("sent without a turn").is_none());
        // A turn of the bound that was lifted is none of the next one.
        learn(&windows, busy());
        drop(first);
        assert_eq!(windows.stores.lock().windows[&STORE].in_flight, 0);
    }

    #[test]
    fn a_bound_that_has_grown_is_lifted() {
        let windows = narrow();
        (0..LIMIT_MAX + ROW as usize).for_each(|_| learn(&windows, Ok(Response::Done)));
        assert!(!windows.has_busy());
    }
}
