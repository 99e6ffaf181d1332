//! How a thread lets others run before its turn, so that what they are about to send shares the turn.
//!
//! A turn costs the same for one proposal as for ten: a batch for the log, a sync, a frame to each follower, a write to
//! the store, and a wake-up of another thread for each of them. While processors are idle, a turn begins at once and
//! nothing is gained by waiting. While they are busy, the threads that are ready to run are those that send: sessions,
//! links, the log. So the thread offers its processor before a turn, with no timer: if nobody wants it, it goes on at
//! once. It offers twice: what ran first has often woken another sender.
//!
//! A thread that computes for long keeps the processor for a slice of the scheduler, which is milliseconds. Such an
//! offer delays heartbeats and answers and brings little. After one, the thread makes none for a hundred times as long
//! ([`Pace`]), so that at most a hundredth of its time is lost.
//!
//! Measured with pgbench's TPC-B-like script, 16 clients on two cores: with links on the sessions' threads, 6 to 9 %
//! less processor time per transaction (`docs/benchmarks.md`).

use std::time::Duration;

use crate::mailbox::Mailbox;
use crate::time::{Clock, MonoTime};

/// The offers before a turn.
const OFFERS: usize = 2;

/// An offer that took longer than this met a thread that computes.
const LONG: Duration = Duration::from_millis(1);

/// For how many times as long no offer follows it.
const REST: u32 = 100;

/// When offers are made (pure).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// None before.
    next: MonoTime,
}

impl Pace {
    fn is_due(self, now: MonoTime) -> bool {
        now >= self.next
    }

    /// An offer was made at `began` and ended at `now`. Returns whether to make another one.
    fn ended(&mut self, began: MonoTime, now: MonoTime) -> bool {
        let took = now.since(began);
        if took > LONG {
            self.next = now.plus(took.saturating_mul(REST));
        }
        took <= LONG
    }
}

/// Waits for messages, for `timeout` at most, and offers the processor before it returns.
pub(crate) fn wait<T>(mailbox: &Mailbox<T>, timeout: Duration, pace: &mut Pace, clock: &dyn Clock) {
    mailbox.wait(timeout);
    let mut now = clock.now();
    if !pace.is_due(now) {
        return;
    }
    for _ in 0..OFFERS {
        std::thread::yield_now();
        let began = std::mem::replace(&mut now, clock.now());
        if !pace.ended(began, now) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_offer_is_followed_by_a_rest() {
        let mut pace = Pace::default();
        let at = |micros: u64| MonoTime::from_nanos(micros * 1_000);
        assert!(pace.is_due(at(0)));
        assert!(pace.ended(at(0), at(900)) && pace.is_due(at(900)));
        assert!(!pace.ended(at(1_000), at(4_000)));
        assert!(!pace.is_due(at(4_000 + 299_999)) && pace.is_due(at(4_000 + 300_000)));
    }
}
