//! How far a replica has applied its log, and who waits for it.
//!
//! The apply thread publishes the position after the write that it describes. A reader that needs an entry waits here;
//! if nobody waits, publishing costs two stores and a load. A waiter is also woken when the replica's data changes in
//! another way, so it looks again what it waits for.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::records::LogPosition;
use crate::region::{LogIndex, Term};

/// No waiter.
const NOBODY: u64 = u64::MAX;

/// See the module documentation.
///
/// Invariants:
/// 1. `index` and `term` are stored after the write they describe.
/// 2. `least` is at or below every index in `waiters`, as long as nobody holds its lock.
pub(crate) struct Applied {
    index: AtomicU64,
    term: AtomicU64,
    /// The least index that somebody waits for; [`NOBODY`] if nobody does.
    least: AtomicU64,
    waiters: Mutex<Vec<(LogIndex, oneshot::Sender<()>)>>,
}

impl Applied {
    pub(crate) fn new(position: LogPosition) -> Applied {
        Applied {
            index: AtomicU64::new(position.index.get()),
            term: AtomicU64::new(position.term.get()),
            least: AtomicU64::new(NOBODY),
            waiters: Mutex::default(),
        }
    }

    pub(crate) fn index(&self) -> LogIndex {
        LogIndex::new(self.index.load(SeqCst))
    }

    pub(crate) fn term(&self) -> Term {
        Term::new(self.term.load(SeqCst))
    }

    /// Publishes a position, and wakes those who wait for it.
    pub(crate) fn publish(&self, position: LogPosition) {
        self.index.store(position.index.get(), SeqCst);
        self.term.store(position.term.get(), SeqCst);
        if self.least.load(SeqCst) <= position.index.get() {
            self.wake(|index| index <= position.index);
        }
    }

    /// Wakes all waiters, because the data has changed in another way.
    pub(crate) fn wake_all(&self) {
        self.wake(|_| true);
    }

    /// Ends once `index` is applied, or somebody calls [`Applied::wake_all`].
    pub(crate) async fn wait(&self, index: LogIndex) {
        let woken = {
            let mut waiters = self.waiters.lock();
            // Before the position is read: whoever publishes later sees it.
            self.least.fetch_min(index.get(), SeqCst);
            if self.index() >= index {
                return;
            }
            waiters.retain(|(_, sender)| !sender.is_closed());
            let (sender, woken) = oneshot::channel();
            waiters.push((index, sender));
            woken
        };
        // It is never dropped without a wake-up that we do not want to hear of.
        let _ = woken.await;
    }

    fn wake(&self, is_due: impl Fn(LogIndex) -> bool) {
        let mut waiters = self.waiters.lock();
        let due: Vec<_> = waiters.extract_if(.., |(index, sender)| is_due(*index) || sender.is_closed()).collect();
        let least = waiters.iter().map(|(index, _)| index.get()).min().unwrap_or(NOBODY);
        self.least.store(least, SeqCst);
        drop(waiters);
        for (_, sender) in due {
            // The waiter may be gone.
            let _ = sender.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;

    fn has_ended(future: Pin<&mut impl Future<Output = ()>>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn position(index: u64) -> LogPosition {
        LogPosition { index: LogIndex::new(index), term: Term::new(1) }
    }

    #[test]
    fn a_waiter_is_woken_by_its_index_and_not_before() {
        let applied = Applied::new(position(4));
        assert!(has_ended(pin!(applied.wait(LogIndex::new(4)))));
        let (mut five, mut seven) = (pin!(applied.wait(LogIndex::new(5))), pin!(applied.wait(LogIndex::new(7))));
        assert!(!has_ended(five.as_mut()) && !has_ended(seven.as_mut()));
        applied.publish(position(6));
        assert!(has_ended(five) && !has_ended(seven.as_mut()));
        applied.publish(position(8));
        assert!(has_ended(seven));
        assert_eq!(applied.least.load(SeqCst), NOBODY, "nobody is left");
    }

    #[test]
    fn a_change_of_the_data_wakes_all() {
        let applied = Applied::new(position(4));
        let mut waiter = pin!(applied.wait(LogIndex::new(9)));
        assert!(!has_ended(waiter.as_mut()));
        applied.wake_all();
        assert!(has_ended(waiter));
    }

    #[test]
    fn waiters_that_are_gone_leave_nothing_behind() {
        let applied = Applied::new(position(4));
        for index in 5..50 {
            assert!(!has_ended(pin!(applied.wait(LogIndex::new(index)))));
        }
        assert_eq!(applied.waiters.lock().len(), 1, "the next waiter removes those before it");
        applied.publish(position(5));
        assert!(applied.waiters.lock().is_empty());
    }
}
