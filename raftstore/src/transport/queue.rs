//! The bounded queue of one lane to a store.
//!
//! Messages and bytes are bounded on push, so a slow receiver costs bounded memory. A frame's worth is taken at a time.

use std::collections::VecDeque;

use crate::ports::RaftMessage;

/// Upper bound of the encoded size of a message's numbers and envelope, and of an entry's numbers: ten bytes and a tag
/// each.
const MESSAGE_BYTES: usize = 320;
const ENTRY_BYTES: usize = 56;
/// The same for a member in a snapshot's metadata.
const MEMBER_BYTES: usize = 12;

/// Upper bound of a message's size in a frame. Does not encode it.
pub fn frame_bytes(message: &RaftMessage) -> usize {
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
/// Invariants:
/// 1. `bytes` is the sum of [`frame_bytes`] over `messages`.
/// 2. A closed queue is empty and refuses messages.
pub(super) struct Queue {
    messages: VecDeque<RaftMessage>,
    bytes: usize,
    closed: bool,
    max_messages: usize,
    max_bytes: usize,
}

impl Queue {
    /// An empty, open queue.
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Queue {
        Queue { messages: VecDeque::new(), bytes: 0, closed: false, max_messages, max_bytes }
    }

    /// Whether no message waits.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Queues a message, unless a bound is reached or the queue is closed. An empty queue accepts a message above the
    /// byte bound: the frame limit decides about it.
    pub(super) fn push(&mut self, message: RaftMessage) -> Result<(), PushError> {
        let size = frame_bytes(&message);
        let full = self.messages.len() >= self.max_messages
            || (!self.messages.is_empty() && self.bytes + size > self.max_bytes);
        if self.closed {
            return Err(PushError::Closed);
        }
        if full {
            return Err(PushError::Full);
        }
        self.messages.push_back(message);
        self.bytes += size;
        Ok(())
    }

    /// Moves messages from the front to `into`: at least one if there is any, then as many as fit in `max_bytes`.
    pub(super) fn take(&mut self, max_bytes: usize, into: &mut Vec<RaftMessage>) {
        let mut bytes = 0;
        while let Some(message) = self.messages.front() {
            let size = frame_bytes(message);
            if bytes > 0 && bytes + size > max_bytes {
                break;
            }
            bytes += size;
            into.extend(self.messages.pop_front());
        }
        self.bytes -= bytes;
    }

    /// Refuses messages from now on. Returns those that were queued.
    pub(super) fn close(&mut self) -> VecDeque<RaftMessage> {
        (self.bytes, self.closed) = (0, true);
        std::mem::take(&mut self.messages)
    }

    /// Accepts messages again.
    pub(super) fn reopen(&mut self) {
        self.closed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tests::message;

    fn take(queue: &mut Queue, max_bytes: usize) -> usize {
        let mut taken = Vec::new();
        queue.take(max_bytes, &mut taken);
        taken.len()
    }

    #[test]
    fn bounds_messages_and_bytes() {
        let mut queue = Queue::new(3, 2000);
        for _ in 0..3 {
            assert!(queue.push(message(1, 2, 10)).is_ok());
        }
        assert!(queue.push(message(1, 2, 10)).is_err(), "a fourth message");
        assert_eq!(take(&mut queue, usize::MAX), 3);
        assert!(queue.push(message(1, 2, 5000)).is_ok(), "large, but the queue is empty");
        assert!(queue.push(message(1, 2, 10)).is_err(), "over the bound in bytes");
        assert_eq!(take(&mut queue, 100), 1, "at least one");
        assert_eq!(queue.bytes, 0);
    }

    /// The frame limit is checked against this bound.
    #[test]
    fn frame_bytes_bound_the_encoded_size() {
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
            assert!(frame_bytes(&message) >= encoded, "{} for {encoded}", frame_bytes(&message));
        }
    }

    #[test]
    fn takes_up_to_a_frame() {
        let mut queue = Queue::new(10, 10_000);
        for _ in 0..5 {
            assert!(queue.push(message(1, 2, 100)).is_ok());
        }
        let each = frame_bytes(&message(1, 2, 100));
        assert_eq!(take(&mut queue, each * 2 + 1), 2);
        assert_eq!(take(&mut queue, usize::MAX), 3);
        assert!(take(&mut queue, usize::MAX) == 0);
    }

    #[test]
    fn closed_is_empty_and_refuses() {
        let mut queue = Queue::new(10, 10_000);
        assert!(queue.push(message(1, 2, 1)).is_ok());
        assert_eq!(queue.close().len(), 1);
        assert!(queue.push(message(1, 2, 1)).is_err());
        assert!(take(&mut queue, usize::MAX) == 0);
        queue.reopen();
        assert!(queue.push(message(1, 2, 1)).is_ok());
    }
}
