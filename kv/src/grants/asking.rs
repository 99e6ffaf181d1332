//! Who waits for the grants of one leader store, and what the next request asks for. Pure.
//!
//! A request asks for all regions that are wanted when it leaves. What is wanted while it is on its way joins the next
//! one, never itself: its answer may be older than the wish. With one request in flight at a time, their rate is
//! bounded by one for each round trip, however many reads there are.

use std::collections::BTreeMap;
use std::time::Duration;

use raftstore::RegionId;
use tokio::time::Instant;
use tso::Timestamp;

/// The wishes to one store, from waiters `W`.
///
/// Invariant: at most `limit` requests are in flight.
#[derive(Debug)]
pub(super) struct AskQueue<W> {
    limit: usize,
    in_flight: usize,
    next: Batch<W>,
}

/// What one request asks for, and for whom.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch<W> {
    /// The greatest timestamp that is wanted.
    pub(super) ts: Timestamp,
    /// Whether somebody wants a fresh one.
    pub(super) fresh: bool,
    /// By region.
    pub(super) waiters: BTreeMap<RegionId, Vec<W>>,
}

impl<W> Batch<W> {
    fn new() -> Batch<W> {
        Batch { ts: Timestamp::ZERO, fresh: false, waiters: BTreeMap::new() }
    }
}

impl<W> AskQueue<W> {
    /// A queue of which at most `limit` requests are in flight.
    pub(super) fn new(limit: usize) -> AskQueue<W> {
        AskQueue { limit, in_flight: 0, next: Batch::new() }
    }

    /// Somebody wants a grant of `region` that covers `ts`; `None`: one that covers a fresh timestamp.
    pub(super) fn want(&mut self, region: RegionId, ts: Option<Timestamp>, waiter: W) {
        match ts {
            Some(ts) => self.next.ts = self.next.ts.max(ts),
            None => self.next.fresh = true,
        }
        self.next.waiters.entry(region).or_default().push(waiter);
    }

    /// The request to send now, if there is one. Those for whom `is_gone` holds are left out.
    pub(super) fn send(&mut self, is_gone: impl Fn(&W) -> bool) -> Option<Batch<W>> {
        if self.in_flight >= self.limit {
            return None;
        }
        let mut batch = std::mem::replace(&mut self.next, Batch::new());
        batch.waiters.retain(|_, waiters| {
            waiters.retain(|waiter| !is_gone(waiter));
            !waiters.is_empty()
        });
        if batch.waiters.is_empty() {
            return None;
        }
        self.in_flight += 1;
        Some(batch)
    }

    /// Those who wait for the next request and want something of `region`.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn take_next(&mut self, region: RegionId) -> Vec<W> {
        self.next.waiters.remove(&region).unwrap_or_default()
    }

    /// A request has ended, with an answer or without.
    pub(super) fn ended(&mut self) {
        assert!(self.in_flight > 0, "no request is in flight");
        self.in_flight -= 1;
    }
}

/// How long requests to one store take.
///
/// It is near the least of the last ones: one that waited longer raises it by an eighth at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    estimate: Duration,
    measured: Instant,
}

impl RoundTrip {
    /// After so long a request is worth a try again, however slow they were.
    const VALID_FOR: Duration = Duration::from_secs(10);

    /// The first request took so long.
    pub(super) fn new(took: Duration, now: Instant) -> RoundTrip {
        RoundTrip { estimate: took, measured: now }
    }

    /// A further request took so long.
    pub(super) fn add(&mut self, took: Duration, now: Instant) {
        let is_outdated = self.is_outdated(now);
        self.estimate = if is_outdated { took } else { took.min(self.estimate + self.estimate / 8) };
        self.measured = now;
    }

    /// Whether requests are known to take longer than this.
    pub(super) fn is_above(&self, limit: Duration, now: Instant) -> bool {
        !self.is_outdated(now) && self.estimate > limit
    }

    fn is_outdated(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.measured) > Self::VALID_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RegionId = RegionId::new(2);
    const B: RegionId = RegionId::new(3);

    fn ts(ms: u64) -> Option<Timestamp> {
        Some(Timestamp::new(ms, 0))
    }

    fn waiters(batch: &Batch<u32>) -> Vec<(RegionId, Vec<u32>)> {
        batch.waiters.iter().map(|(region, waiters)| (*region, waiters.clone())).collect()
    }

    /// tikv#7971, tikv#17018: a wish never joins a request that has left.
    #[test]
    fn what_is_wanted_while_a_request_is_on_its_way_joins_the_next() {
        let mut queue = AskQueue::new(1);
        queue.want(A, ts(10), 1);
        let first = queue.send(|_| false).unwrap();
        assert_eq!((first.ts, first.fresh, waiters(&first)), (ts(10).unwrap(), false, vec![(A, vec![1])]));
        queue.want(A, ts(5), 2);
        queue.want(B, None, 3);
        queue.want(A, ts(20), 4);
        assert_eq!(queue.send(|_| false), None, "one at a time");
        queue.ended();
        let second = queue.send(|_| false).unwrap();
        assert_eq!((second.ts, second.fresh), (ts(20).unwrap(), true));
        assert_eq!(waiters(&second), vec![(A, vec![2, 4]), (B, vec![3])]);
        queue.ended();
        assert_eq!(queue.send(|_| false), None, "nothing is wanted");
    }

    #[test]
    fn one_slow_request_does_not_make_a_leader_far() {
        let ms = Duration::from_millis;
        let start = crate::grants::hub::now();
        let mut near = RoundTrip::new(Duration::from_micros(200), start);
        near.add(ms(60), start);
        assert!(!near.is_above(ms(2), start), "an eighth more");
        (0..40).for_each(|_| near.add(ms(60), start));
        assert!(near.is_above(ms(2), start), "it stays slow");
        near.add(Duration::from_micros(300), start);
        assert!(!near.is_above(ms(2), start));
        let far = RoundTrip::new(ms(28), start);
        assert!(far.is_above(ms(2), start));
        assert!(!far.is_above(ms(2), start + ms(10_001)), "it is measured again");
    }

    /// tikv#17422, tikv#16960: however many read, the requests in flight are bounded, and nobody asks for those who
    /// have gone.
    #[test]
    fn requests_in_flight_are_bounded_and_the_gone_are_left_out() {
        let mut queue = AskQueue::new(2);
        let mut sent = 0;
        for waiter in 0..1_000u32 {
            queue.want(A, ts(u64::from(waiter)), waiter);
            sent += usize::from(queue.send(|_| false).is_some());
        }
        assert_eq!(sent, 2);
        queue.ended();
        let third = queue.send(|waiter| waiter % 2 == 0).unwrap();
        assert_eq!(third.waiters[&A].len(), 499);
        queue.ended();
        queue.want(B, None, 7);
        assert_eq!(queue.send(|_| true), None);
    }
}
