//! Leader-lease arithmetic.
//!
//! A follower that hears from a leader votes for nobody else for one election timeout. So once a quorum has heard a
//! message that the leader *sent* at time `t`, no other leader can exist before `t` plus the election timeout. This
//! leader may answer reads alone until `t + max_lease`, where `max_lease` is shorter than that by at least one tick.
//! The time of the acknowledgement never counts.
//!
//! ```text
//!   sent t          acknowledged by a quorum                    t + max_lease   t + election timeout
//!   |---------------------------|------- lease valid -------------------|---- safety ----|--- others may lead
//! ```
//!
//! A leadership transfer breaks the promise: its target campaigns at once and voters do not wait. So the lease is
//! suspect from before `MsgTimeoutNow` is sent until an entry that was *proposed later* is committed. Any winner of an
//! election must hold that entry, and the target of a late message does not campaign once its log has grown (see
//! `gate`). A confirmed read index does not end the suspicion, because it leaves no trace in the log.

use std::time::Duration;

use crate::time::MonoTime;

/// Proof that a quorum has heard the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// A quorum answered a heartbeat round; the time is that of sending.
    Heartbeat,
    /// An entry of the leader's term was committed; the time is that of proposing.
    Entry,
}

/// The lease of one leader. Invariant: a valid bound never moves back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    /// No lease.
    Expired,
    /// Valid until the bound, exclusive.
    Valid(MonoTime),
    /// Leadership was offered to another replica at this time.
    Suspect(MonoTime),
}

impl Lease {
    /// Extends the lease: a quorum has heard a message sent at `sent`.
    pub(crate) fn renew(&mut self, sent: MonoTime, evidence: Evidence, max_lease: Duration) {
        let bound = sent.plus(max_lease);
        *self = match *self {
            Lease::Expired => Lease::Valid(bound),
            Lease::Valid(known) => Lease::Valid(known.max(bound)),
            Lease::Suspect(since) if evidence == Evidence::Entry && sent > since => Lease::Valid(bound),
            suspect @ Lease::Suspect(_) => suspect,
        };
    }

    /// Suspends the lease before leadership is offered to another replica.
    pub(crate) fn suspect(&mut self, now: MonoTime) {
        *self = Lease::Suspect(now);
    }

    /// Ends the lease with the leadership.
    pub(crate) fn expire(&mut self) {
        *self = Lease::Expired;
    }

    /// The end of a valid lease, exclusive.
    pub(crate) fn bound(self) -> Option<MonoTime> {
        match self {
            Lease::Valid(bound) => Some(bound),
            Lease::Expired | Lease::Suspect(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(800);

    fn at(millis: u64) -> MonoTime {
        MonoTime::from_millis(millis)
    }

    impl Lease {
        fn covers(self, now: MonoTime) -> bool {
            self.bound().is_some_and(|bound| now < bound)
        }
    }

    #[test]
    fn counts_from_the_time_of_sending() {
        let mut lease = Lease::Expired;
        assert!(!lease.covers(at(0)));
        lease.renew(at(100), Evidence::Heartbeat, MAX);
        assert!(lease.covers(at(899)));
        assert!(!lease.covers(at(900)));
    }

    #[test]
    fn bound_never_moves_back() {
        let mut lease = Lease::Expired;
        lease.renew(at(500), Evidence::Entry, MAX);
        lease.renew(at(100), Evidence::Heartbeat, MAX);
        assert_eq!(lease.bound(), Some(at(1300)));
    }

    /// tikv#1593, etcd#12704, openraft#1749: a transfer can elect another leader before the lease ends.
    #[test]
    fn suspicion_ends_only_with_an_entry_proposed_later() {
        let mut lease = Lease::Valid(at(5000));
        lease.suspect(at(1000));
        assert!(!lease.covers(at(1000)));
        lease.renew(at(2000), Evidence::Heartbeat, MAX);
        assert!(!lease.covers(at(2000)), "a read index leaves no trace in the log");
        lease.renew(at(1000), Evidence::Entry, MAX);
        assert!(!lease.covers(at(1001)), "proposed before the suspicion");
        lease.renew(at(1001), Evidence::Entry, MAX);
        assert!(lease.covers(at(1002)));
    }

    #[test]
    fn expiry_is_immediate() {
        let mut lease = Lease::Valid(at(5000));
        lease.expire();
        assert!(!lease.covers(at(1)));
    }
}
