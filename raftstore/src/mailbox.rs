//! Bounded mailboxes.
//!
//! A full mailbox refuses messages. The owner drains it in one go, so a turn takes the lock once at any load. Workers
//! may share a mailbox: one that leaves messages behind wakes the next.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A bounded queue of one owner, or of equal workers.
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    capacity: usize,
}

struct State<T> {
    queue: VecDeque<T>,
    /// Set by every message and wake-up; cleared when a wait ends.
    woken: bool,
    closed: bool,
}

/// A message refused by a full or closed mailbox.
#[derive(Debug)]
pub(crate) struct Refused<T>(pub(crate) T);

impl<T> Mailbox<T> {
    pub(crate) fn new(capacity: usize) -> Mailbox<T> {
        let state = State { queue: VecDeque::new(), woken: false, closed: false };
        Mailbox { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// Queues a message and wakes the owner.
    pub(crate) fn push(&self, message: T) -> Result<(), Refused<T>> {
        self.push_reserving(message, 0)
    }

    /// Like [`Mailbox::push`], but leaves `reserved` places to more urgent messages.
    pub(crate) fn push_reserving(&self, message: T, reserved: usize) -> Result<(), Refused<T>> {
        let mut state = self.state.lock();
        if state.closed || state.queue.len() + reserved >= self.capacity {
            return Err(Refused(message));
        }
        state.queue.push_back(message);
        self.notify(state);
        Ok(())
    }

    /// Queues the first messages, as many as there is room for, and wakes the owner once. Drops the others. Returns how
    /// many were queued.
    pub(crate) fn push_all(&self, messages: impl ExactSizeIterator<Item = T>) -> usize {
        let mut state = self.state.lock();
        let room = if state.closed { 0 } else { self.capacity.saturating_sub(state.queue.len()) };
        let queued = messages.len().min(room);
        state.queue.extend(messages.take(queued));
        if queued > 0 {
            self.notify(state);
        }
        queued
    }

    /// Wakes the owner.
    pub(crate) fn wake(&self) {
        self.notify(self.state.lock());
    }

    fn notify(&self, mut state: parking_lot::MutexGuard<'_, State<T>>) {
        let first = !state.woken;
        state.woken = true;
        drop(state);
        if first {
            self.changed.notify_one();
        }
    }

    /// Takes the oldest messages, at most `max`. Returns whether there were any.
    pub(crate) fn take(&self, max: usize, into: &mut Vec<T>) -> bool {
        let mut state = self.state.lock();
        let count = state.queue.len().min(max);
        into.extend(state.queue.drain(..count));
        count > 0
    }

    /// Whether no message is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().queue.is_empty()
    }

    /// Waits until a message or wake-up since the end of the last wait, or until the timeout. A wake-up during a turn
    /// ends the next wait at once.
    pub(crate) fn wait(&self, timeout: Duration) {
        let mut state = self.state.lock();
        if !state.woken && !state.closed && state.queue.is_empty() {
            self.changed.wait_for(&mut state, timeout);
        }
        state.woken = false;
    }

    /// Whether it refuses messages for good.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Refuses messages from now on. Returns those still queued.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut state = self.state.lock();
        state.closed = true;
        let left = state.queue.drain(..).collect();
        self.notify(state);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_or_closed_mailbox_refuses() {
        let mailbox = Mailbox::new(2);
        mailbox.push(1).unwrap();
        mailbox.push(2).unwrap();
        assert_eq!(mailbox.push(3).unwrap_err().0, 3);
        let mut taken = Vec::new();
        assert!(mailbox.take(1, &mut taken));
        mailbox.push(4).unwrap();
        assert_eq!((taken, mailbox.close()), (vec![1], vec![2, 4]));
        assert!(mailbox.push(5).is_err());
    }

    #[test]
    fn many_messages_are_queued_as_far_as_there_is_room() {
        let mailbox = Mailbox::new(4);
        mailbox.push(1).unwrap();
        assert_eq!(mailbox.push_all([2, 3].into_iter()), 2);
        assert_eq!(mailbox.push_all([4, 5, 6].into_iter()), 1);
        assert_eq!(mailbox.push_all([7].into_iter()), 0);
        assert_eq!(mailbox.close(), [1, 2, 3, 4]);
        assert_eq!(mailbox.push_all([8].into_iter()), 0);
    }

    #[test]
    fn urgent_messages_use_the_reserved_places() {
        let mailbox = Mailbox::new(3);
        mailbox.push_reserving(1, 1).unwrap();
        mailbox.push_reserving(2, 1).unwrap();
        assert_eq!(mailbox.push_reserving(3, 1).unwrap_err().0, 3);
        mailbox.push(4).unwrap();
        assert!(mailbox.push(5).is_err());
    }

    #[test]
    fn wake_before_the_wait_is_not_lost() {
        let mailbox: Mailbox<u8> = Mailbox::new(1);
        mailbox.wake();
        mailbox.wait(Duration::from_secs(3600));
    }
}
