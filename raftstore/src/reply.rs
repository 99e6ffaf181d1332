//! One-shot replies to futures.

use std::fmt;

use tokio::sync::oneshot;

/// What the thread that answers runs right before the answer leaves.
type Before<T> = Box<dyn FnOnce(&T) + Send>;

/// Takes one answer. If it is dropped unanswered, the future sees a closed channel.
pub(crate) struct Reply<T> {
    sender: oneshot::Sender<T>,
    before: Option<Before<T>>,
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
        (Reply { sender, before: None }, receiver)
    }

    /// As [`Reply::new`]. `before` is called with the answer before the receiver has it, also if there is no receiver
    /// any more, and dropped if there is no answer.
    pub(crate) fn with(before: Before<T>) -> (Reply<T>, oneshot::Receiver<T>) {
        let (reply, receiver) = Reply::new();
        (Reply { before: Some(before), ..reply }, receiver)
    }

    /// Sends the answer. A dropped receiver is not an error.
    pub(crate) fn send(self, answer: T) {
        if let Some(before) = self.before {
            before(&answer);
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
