//! Which of the links to a node a thread uses.
//!
//! The links to one node are its *lanes*. Lane 0 is shared: a task of the node's runtime for the network serves it. A
//! thread that has a runtime of its own, such as a thread of sessions, has a lane of its own, which its runtime serves.
//! The answer to its request is then read on the thread that waits for it: no other thread is woken for it, and none
//! has to wake this one.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::{Handle, RuntimeFlavor};

/// The most lanes to one node. Further threads share those from 1 on.
const LANES_MAX: usize = 65;

/// The number of a lane, below [`LANES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(usize);

impl Lane {
    const SHARED: Lane = Lane(0);
}

/// The lane of the caller's thread. It stays the same for the life of the thread.
///
/// # Panics
///
/// At its first call on a thread, outside of a tokio runtime.
pub(crate) fn of_this_thread() -> Lane {
    thread_local! {
        static OWN: Cell<Option<Lane>> = const { Cell::new(None) };
    }
    OWN.get().unwrap_or_else(|| {
        let lane = match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => next(),
            _ => Lane::SHARED,
        };
        OWN.set(Some(lane));
        lane
    })
}

/// A lane that no other thread has, as long as there are any.
fn next() -> Lane {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    Lane(1 + LAST.fetch_add(1, Ordering::Relaxed) % (LANES_MAX - 1))
}

/// The lanes to one node, each opened at its first use.
pub(crate) struct Lanes<L> {
    links: Box<[OnceLock<Arc<L>>]>,
    open: Box<dyn Fn() -> Arc<L> + Send + Sync>,
    close: fn(&L),
    is_closed: AtomicBool,
}

impl<L> Lanes<L> {
    /// Lanes that `open` makes and `close` ends.
    pub(crate) fn new(open: Box<dyn Fn() -> Arc<L> + Send + Sync>, close: fn(&L)) -> Lanes<L> {
        let links = (0..LANES_MAX).map(|_| OnceLock::new()).collect();
        Lanes { links, open, close, is_closed: AtomicBool::new(false) }
    }

    /// The shared lane.
    pub(crate) fn shared(&self) -> &Arc<L> {
        self.link(Lane::SHARED)
    }

    /// A lane.
    pub(crate) fn link(&self, lane: Lane) -> &Arc<L> {
        let link = &self.links[lane.0];
        link.get().unwrap_or_else(|| {
            let made = link.get_or_init(|| (self.open)());
            // Either this sees the flag, or the one who closes sees the lane.
            if self.is_closed.load(Ordering::SeqCst) {
                (self.close)(made);
            }
            made
        })
    }

    /// The lanes that were used.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<L>> {
        self.links.iter().filter_map(OnceLock::get)
    }

    /// Ends all lanes, also those that are used later.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.iter().for_each(|link| (self.close)(link));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane_of_new_thread(runtime: &tokio::runtime::Runtime) -> Lane {
        std::thread::scope(|scope| scope.spawn(|| runtime.block_on(async { of_this_thread() })).join().unwrap())
    }

    #[test]
    fn a_thread_with_its_own_runtime_has_its_own_lane() {
        let own = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (one, other) = (lane_of_new_thread(&own()), lane_of_new_thread(&own()));
        assert!(one != other && one != Lane::SHARED && other != Lane::SHARED);
        let shared = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        assert_eq!(lane_of_new_thread(&shared), Lane::SHARED);
    }

    #[test]
    fn lanes_are_closed_whenever_they_are_used() {
        let open = Box::new(|| Arc::new(AtomicBool::new(true)));
        let lanes = Lanes::new(open, |link| link.store(false, Ordering::SeqCst));
        let before = Arc::clone(lanes.shared());
        assert!(before.load(Ordering::SeqCst));
        lanes.close();
        let after = lanes.link(Lane(3));
        assert!(!before.load(Ordering::SeqCst) && !after.load(Ordering::SeqCst));
        assert_eq!(lanes.iter().count(), 2);
    }
}
