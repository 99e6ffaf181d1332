//! One-shot replies to futures.

use tokio::sync::oneshot;

/// Takes one answer. If it is dropped unanswered, the future sees a closed channel.
#[derive(Debug)]
pub(crate) struct Reply<T>(oneshot::Sender<T>);

impl<T> Reply<T> {
    /// A reply and the receiver of its answer.
    pub(crate) fn new() -> (Reply<T>, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), receiver)
    }

    /// Sends the answer. A dropped receiver is not an error.
    pub(crate) fn send(self, answer: T) {
        // The receiver was dropped: the caller no longer wants the answer.
        let _ = self.0.send(answer);
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
