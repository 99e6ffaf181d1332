//! The bounded queue of messages to one store.
//!
//! The store's thread pushes and never waits; the connection's task takes all that is there, up to a frame. Both bounds,
//! messages and bytes, are checked on push, so a slow receiver costs a fixed amount of memory.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::ports::RaftMessage;

/// Bytes that the numbers of a message and its envelope take at most, and those of an entry: ten bytes and a tag for each.
const MESSAGE_BYTES: usize = 320;
const ENTRY_BYTES: usize = 56;
/// The same for a member of a snapshot's metadata.
const MEMBER_BYTES: usize = 12;

/// Bytes that a message takes in a frame at most; found without encoding it.
pub(super) fn cost(message: &RaftMessage) -> usize {
    let inner = &message.message;
    let entries: usize =
        inner.get_entries().iter().map(|entry| entry.data.len() + entry.context.len() + ENTRY_BYTES).sum();
    let snapshot = inner.get_snapshot();
    let state = snapshot.get_metadata().get_conf_state();
    let members = state.voters.len() + state.learners.len() + state.voters_outgoing.len() + state.learners_next.len();
    MESSAGE_BYTES + entries + snapshot.data.len() + members * MEMBER_BYTES + inner.context.len()
}

/// Why a message was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushError {
    /// A bound is reached.
    Full,
    /// The connection is down.
    Closed,
}

/// See the module documentation.
///
/// Invariants: (1) `bytes` is the sum of the costs of `messages`. (2) A closed queue is empty and takes nothing.
pub(super) struct Queue {
    inner: Mutex<Inner>,
    filled: Notify,
    max_messages: usize,
    max_bytes: usize,
}

#[derive(Default)]
struct Inner {
    messages: VecDeque<RaftMessage>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    /// An empty, open queue.
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Queue {
        Queue { inner: Mutex::new(Inner::default()), filled: Notify::new(), max_messages, max_bytes }
    }

    /// Takes a message in, unless that would break a bound or the queue is closed. A message above the bound in bytes
    /// is let into an empty queue: the frame limit is what decides about it.
    pub(super) fn push(&self, message: RaftMessage) -> Result<(), PushError> {
        let cost = cost(&message);
        let mut inner = self.inner.lock();
        let full = inner.messages.len() >= self.max_messages
            || (!inner.messages.is_empty() && inner.bytes + cost > self.max_bytes);
        if inner.closed {
            return Err(PushError::Closed);
        }
        if full {
            return Err(PushError::Full);
        }
        inner.messages.push_back(message);
        inner.bytes += cost;
        drop(inner);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits until there is something; takes nothing.
    pub(super) async fn wait(&self) {
        while self.inner.lock().messages.is_empty() {
            self.filled.notified().await;
        }
    }

    /// Takes messages from the front: at least one if there is any, then as many as stay within `max_bytes`.
    pub(super) fn take(&self, max_bytes: usize) -> Vec<RaftMessage> {
        let mut inner = self.inner.lock();
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(message) = inner.messages.front() {
            let cost = cost(message);
            if !taken.is_empty() && bytes + cost > max_bytes {
                break;
            }
            bytes += cost;
            taken.extend(inner.messages.pop_front());
        }
        inner.bytes -= bytes;
        taken
    }

    /// Drops what is queued and refuses what comes; returns how many were dropped.
    pub(super) fn close(&self) -> usize {
        let mut inner = self.inner.lock();
        let dropped = inner.messages.len();
        *inner = Inner { closed: true, ..Inner::default() };
        dropped
    }

    /// Takes messages again.
    pub(super) fn reopen(&self) {
        self.inner.lock().closed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tests::message;

    #[test]
    fn bounds_messages_and_bytes() {
        let queue = Queue::new(3, 2000);
        for _ in 0..3 {
            assert!(queue.push(message(1, 2, 10)).is_ok());
        }
        assert!(queue.push(message(1, 2, 10)).is_err(), "a fourth message");
        assert_eq!(queue.take(usize::MAX).len(), 3);
        assert!(queue.push(message(1, 2, 5000)).is_ok(), "large, but the queue is empty");
        assert!(queue.push(message(1, 2, 10)).is_err(), "over the bound in bytes");
        assert_eq!(queue.take(100).len(), 1, "at least one");
        assert_eq!(queue.inner.lock().bytes, 0);
    }

    /// The frame limit is checked on it, so it must not be too low.
    #[test]
    fn cost_is_never_below_what_is_encoded() {
        use prost::Message as _;
        for number in [0, 1, u64::MAX] {
            let mut message = message(1, 2, 100);
            let inner = &mut message.message;
            (inner.term, inner.log_term, inner.index, inner.commit) = (number, number, number, number);
            (inner.commit_term, inner.request_snapshot, inner.reject_hint) = (number, number, number);
            (inner.reject, inner.context) = (true, vec![1; 20]);
            inner.entries = vec![inner.entries[0].clone(); 5];
            for entry in &mut inner.entries {
                (entry.term, entry.index, entry.context) = (number, number, vec![2; 30]);
            }
            inner.mut_snapshot().data = vec![3; 40];
            let metadata = inner.mut_snapshot().mut_metadata();
            (metadata.index, metadata.term) = (number, number);
            metadata.mut_conf_state().voters = vec![number; 9];
            metadata.mut_conf_state().learners = vec![number; 9];
            let encoded = crate::transport::proto::encode_message(&message).encoded_len() + 6;
            assert!(cost(&message) >= encoded, "{} for {encoded}", cost(&message));
        }
    }

    #[test]
    fn takes_up_to_a_frame() {
        let queue = Queue::new(10, 10_000);
        for _ in 0..5 {
            assert!(queue.push(message(1, 2, 100)).is_ok());
        }
        let each = cost(&message(1, 2, 100));
        assert_eq!(queue.take(each * 2 + 1).len(), 2);
        assert_eq!(queue.take(usize::MAX).len(), 3);
        assert!(queue.take(usize::MAX).is_empty());
    }

    #[test]
    fn closed_is_empty_and_refuses() {
        let queue = Queue::new(10, 10_000);
        assert!(queue.push(message(1, 2, 1)).is_ok());
        assert_eq!(queue.close(), 1);
        assert!(queue.push(message(1, 2, 1)).is_err());
        assert!(queue.take(usize::MAX).is_empty());
        queue.reopen();
        assert!(queue.push(message(1, 2, 1)).is_ok());
    }
}
