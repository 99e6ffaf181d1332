//! Where an answer goes: to a future that waits for it.

use tokio::sync::oneshot;

/// Takes one answer. Dropped unanswered, the future sees the channel close.
#[derive(Debug)]
pub(crate) struct Reply<T>(oneshot::Sender<T>);

impl<T> Reply<T> {
    /// A reply, and what to wait on for it.
    pub(crate) fn new() -> (Reply<T>, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), receiver)
    }

    /// Gives the answer. Nobody listening any more is fine.
    pub(crate) fn send(self, answer: T) {
        // A receiver that went away has lost interest in the answer.
        let _ = self.0.send(answer);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Looking at answers without waiting.

    use std::cell::RefCell;

    use super::*;

    /// Sees whether an answer has come.
    pub(crate) struct Probe<T> {
        receiver: RefCell<oneshot::Receiver<T>>,
        seen: RefCell<Option<T>>,
    }

    impl<T: Clone> Probe<T> {
        /// The answer, if it has come.
        pub(crate) fn try_get(&self) -> Option<T> {
            if let Ok(answer) = self.receiver.borrow_mut().try_recv() {
                *self.seen.borrow_mut() = Some(answer);
            }
            self.seen.borrow().clone()
        }
    }

    /// A reply and a probe of it.
    pub(crate) fn probe<T>() -> (Reply<T>, Probe<T>) {
        let (reply, receiver) = Reply::new();
        (reply, Probe { receiver: RefCell::new(receiver), seen: RefCell::new(None) })
    }
}
