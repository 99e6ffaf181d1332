//! One-shot replies to futures.

use std::fmt;

use tokio::sync::oneshot;

use crate::region::LogIndex;

/// Hears of a request's progress from the threads that know it, whether its future is polled or not. What it does is
/// short and waits for nothing. Dropped without an answer if there is none.
pub trait Observer<T>: Send {
    /// The request has an entry in this leader's log at `index`, which may yet be lost.
    fn appended(&self, _index: LogIndex) {}
    /// The answer is known, and the future does not have it yet.
    fn answered(self: Box<Self>, answer: &T);
}

/// Takes one answer. If it is dropped unanswered, the future sees a closed channel.
pub(crate) struct Reply<T> {
    sender: oneshot::Sender<T>,
    observer: Option<Box<dyn Observer<T>>>,
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl<T> Reply<T> {
    /// A reply and the receiver of its answer.
    pub(crate) fn new() -> (Reply<T>, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Reply { sender, observer: None }, receiver)
    }

    /// As [`Reply::new`], with an observer, which is told also if there is no receiver any more.
    pub(crate) fn observed(observer: Box<dyn Observer<T>>) -> (Reply<T>, oneshot::Receiver<T>) {
        let (reply, receiver) = Reply::new();
        (Reply { observer: Some(observer), ..reply }, receiver)
    }

    /// The request has an entry in the log.
    pub(crate) fn appended(&self, index: LogIndex) {
        if let Some(observer) = &self.observer {
            observer.appended(index);
        }
    }

    /// Sends the answer. A dropped receiver is not an error.
    pub(crate) fn send(self, answer: T) {
        if let Some(observer) = self.observer {
            observer.answered(&answer);
        }
        // The receiver was dropped: the caller no longer wants the answer.
        let _ = self.sender.send(answer);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Access to answers without waiting, for tests.

    use std::cell::RefCell;

    use super::*;

    /// The receiver of an answer.
    pub(crate) struct Probe<T> {
        receiver: RefCell<oneshot::Receiver<T>>,
        seen: RefCell<Option<T>>,
    }

    impl<T: Clone> Probe<T> {
        /// The answer, if there is one yet.
        pub(crate) fn try_get(&self) -> Option<T> {
            if let Ok(answer) = self.receiver.borrow_mut().try_recv() {
                *self.seen.borrow_mut() = Some(answer);
            }
            self.seen.borrow().clone()
        }
    }

    /// A reply and its probe.
    pub(crate) fn probe<T>() -> (Reply<T>, Probe<T>) {
        let (reply, receiver) = Reply::new();
        (reply, Probe { receiver: RefCell::new(receiver), seen: RefCell::new(None) })
    }
}
