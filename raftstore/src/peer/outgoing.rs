//! The snapshots that a leader gives to its followers: when one may be built and sent, and how long it holds the log.
//!
//! A snapshot helps only if the follower can continue from it. So its index **holds** the log, from the start of the
//! build until the follower has appended past it and caught up to within the usual lag. A large region takes minutes to
//! build, to send and to install, and millions of entries may follow meanwhile; no limit in entries ends the hold. It
//! ends without success only
//!
//! - if the disk of the log has less free space than `log_hold_free_bytes`, or is full (then the limits for other
//!   lagging followers apply),
//! - if the follower has been silent for [`SILENCE`] election timeouts, or
//! - with the leadership.
//!
//! The follower then needs another snapshot. Builds that failed or became useless (a built snapshot from before the
//! start of the log, or one whose hold was given up) are repeated after a back-off that doubles up to a bound. It
//! starts over once a follower has **caught up** from a snapshot: only that shows that a snapshot helps. Deliveries are
//! repeated after such a back-off as well, from the same file: a receiver that is busy, slow or away says nothing
//! against it. Only after [`TRIES`] deliveries that found the file missing or damaged it is given up and built anew.
//!
//! A replica that installs a snapshot says so in its answers to heartbeats (`ready`). Its leader, even a new one, then
//! holds the log for it, sends it no entries, and does not choose it as successor.
//!
//! Pure: the time comes in with each call.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ports::Delivery;
use crate::time::MonoTime;

/// Election timeouts after which a silent follower no longer holds the log.
pub(super) const SILENCE: u32 = 60;
/// Longest back-off in election timeouts.
const LONGEST: u32 = 16;
/// Deliveries that found a file damaged, to whichever follower, after which it is given up. More than one, because the
/// damage may have happened on the way or at the receiver.
const TRIES: u32 = 3;

/// A follower that is sent a snapshot, installs it, or catches up from it.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// The index of the snapshot.
    index: u64,
    /// Whether the follower says that it installs it.
    installing: bool,
}

/// Whether a hold has ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldEnd {
    /// It goes on.
    None,
    /// The follower has caught up to within the usual lag, and continues from the log.
    CaughtUp,
    /// The follower was silent for too long.
    Silent,
}

/// Repeated failures, and when to try again.
#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    failures: u32,
    until: MonoTime,
}

impl Backoff {
    fn failed(&mut self, now: MonoTime, unit: Duration) {
        let factor = 1 << self.failures.min(LONGEST.ilog2());
        self.failures = self.failures.saturating_add(1);
        self.until = now.plus(unit * factor);
    }
}

/// See the module documentation.
///
/// Invariants:
/// 1. At most one build is in progress.
/// 2. Every follower that was sent a snapshot, or says that it installs one, has a hold until it has caught up, or the
///    hold ends without success (see the module documentation).
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// The applied index when the build in progress was requested; the snapshot's index is not below it.
    building: Option<u64>,
    /// Builds since a follower last caught up from a snapshot that failed or helped nobody.
    builds: Backoff,
    holds: BTreeMap<u64, Hold>,
    deliveries: BTreeMap<u64, Backoff>,
    /// The index of the snapshot last found damaged, and how often it was.
    damaged: (u64, u32),
}

impl Outgoing {
    /// Forgets everything but a build in progress: the leadership ended.
    pub(super) fn clear(&mut self) {
        *self = Outgoing { building: self.building, ..Outgoing::default() };
    }

    /// Whether a build may begin.
    pub(super) fn may_build(&self, now: MonoTime) -> bool {
        self.building.is_none() && now >= self.builds.until
    }

    /// A build is requested while `applied` is applied.
    pub(super) fn build_started(&mut self, applied: u64) {
        assert!(self.building.is_none(), "one build at a time");
        self.building = Some(applied);
    }

    /// The build has ended: with a snapshot that followers can continue from, or not. `unit` is the election timeout.
    pub(super) fn build_ended(&mut self, usable: bool, now: MonoTime, unit: Duration) {
        self.building = None;
        if !usable {
            self.builds.failed(now, unit);
        }
    }

    /// A snapshot of this index is sent to `follower`.
    pub(super) fn sent(&mut self, follower: u64, index: u64) {
        self.holds.insert(follower, Hold { index, installing: false });
    }

    /// A delivery of the snapshot of this index to `follower` has ended. Returns whether its file is to be given up,
    /// because it was found damaged too often.
    #[must_use]
    pub(super) fn delivery_ended(
        &mut self,
        (follower, index): (u64, u64),
        delivery: Delivery,
        now: MonoTime,
        unit: Duration,
    ) -> bool {
        if delivery == Delivery::Delivered {
            self.deliveries.remove(&follower);
            return false;
        }
        self.deliveries.entry(follower).or_default().failed(now, unit);
        if delivery == Delivery::Busy {
            return false;
        }
        let before = if self.damaged.0 == index { self.damaged.1 } else { 0 };
        let gives_up = before + 1 == TRIES;
        self.damaged = if gives_up { (0, 0) } else { (index, before + 1) };
        gives_up
    }

    /// Followers to which no snapshot is sent for now.
    pub(super) fn deferred(&self, now: MonoTime) -> impl Iterator<Item = u64> {
        self.deliveries.iter().filter(move |(_, backoff)| now < backoff.until).map(|(follower, _)| *follower)
    }

    /// `follower` has answered a heartbeat: it installs the snapshot of this index, or none (0).
    pub(super) fn answered(&mut self, follower: u64, installing: u64) {
        if installing > 0 {
            self.holds.insert(follower, Hold { index: installing, installing: true });
        } else if let Some(hold) = self.holds.get_mut(&follower) {
            hold.installing = false;
        }
    }

    /// `follower` has appended up to `matched`: it no longer installs what is below.
    pub(super) fn appended(&mut self, follower: u64, matched: u64) {
        if let Some(hold) = self.holds.get_mut(&follower).filter(|hold| hold.index <= matched) {
            (hold.index, hold.installing) = (matched, false);
        }
    }

    /// The index of the snapshot that `follower` was sent or installs; 0 for none.
    pub(super) fn index(&self, follower: u64) -> u64 {
        self.holds.get(&follower).map_or(0, |hold| hold.index)
    }

    /// Whether `follower` says that it installs a snapshot.
    pub(super) fn is_installing(&self, follower: u64) -> bool {
        self.holds.get(&follower).is_some_and(|hold| hold.installing)
    }

    /// Whether `follower` was sent a snapshot or installs one, and has not appended past it.
    pub(super) fn is_behind(&self, follower: u64, matched: u64) -> bool {
        self.holds.get(&follower).is_some_and(|hold| matched < hold.index)
    }

    /// Drops the holds that have ended. The arguments of `end` are the follower and its index.
    pub(super) fn release(&mut self, end: impl Fn(u64, u64) -> HoldEnd) {
        let mut helped = false;
        self.holds.retain(|follower, hold| {
            let ended = end(*follower, hold.index);
            helped |= ended == HoldEnd::CaughtUp;
            ended == HoldEnd::None
        });
        if helped {
            self.builds = Backoff::default();
        }
    }

    /// The last index that may be truncated; `None` if nothing is held. `kept` is the snapshot kept for followers.
    /// Nobody can continue from a snapshot from before `start`, the start of the log.
    pub(super) fn held(&self, kept: Option<u64>, start: u64) -> Option<u64> {
        let holds = self.holds.values().map(|hold| hold.index);
        holds.chain(self.building).chain(kept).filter(|index| *index >= start).min()
    }

    /// The log is truncated to `start`, although snapshots hold it: the space ran out. Gives up the holds before
    /// `start`. If a built snapshot is lost by that, the next build waits; one in progress is judged at its end.
    pub(super) fn give_up(&mut self, kept: Option<u64>, start: u64, now: MonoTime, unit: Duration) {
        let before = self.holds.len();
        self.holds.retain(|_, hold| hold.index >= start);
        if self.holds.len() < before || kept.is_some_and(|index| index < start) {
            self.builds.failed(now, unit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> MonoTime {
        MonoTime::from_millis(millis)
    }

    #[test]
    fn index_is_held_from_the_start_of_the_build_until_the_follower_is_past_it() {
        let mut outgoing = Outgoing::default();
        assert_eq!(outgoing.held(None, 0), None);
        outgoing.build_started(100);
        assert_eq!(outgoing.held(None, 0), Some(100));
        outgoing.build_ended(true, at(0), UNIT);
        outgoing.sent(2, 120);
        assert_eq!((outgoing.held(None, 0), outgoing.is_behind(2, 7), outgoing.index(2)), (Some(120), true, 120));
        outgoing.answered(2, 120);
        assert!(outgoing.is_installing(2));
        outgoing.appended(2, 90);
        assert!(outgoing.is_installing(2), "an answer from before the snapshot");
        outgoing.appended(2, 120);
        assert!(!outgoing.is_installing(2) && !outgoing.is_behind(2, 120));
        outgoing.appended(2, 5000);
        assert_eq!(outgoing.held(None, 0), Some(5000), "it still catches up");
        outgoing.release(|_, _| HoldEnd::None);
        assert_eq!(outgoing.held(None, 0), Some(5000));
        outgoing
            .release(|follower, index| if (follower, index) == (2, 5000) { HoldEnd::CaughtUp } else { HoldEnd::None });
        assert_eq!(outgoing.held(None, 0), None);
    }

    #[test]
    fn slowest_follower_holds() {
        let mut outgoing = Outgoing::default();
        outgoing.sent(2, 120);
        outgoing.answered(3, 90);
        outgoing.answered(4, 0);
        assert_eq!(
            (outgoing.held(None, 0), outgoing.is_installing(3), outgoing.is_installing(4)),
            (Some(90), true, false)
        );
        assert_eq!(outgoing.held(None, 100), Some(120), "the log of this leader starts behind the other");
        outgoing.answered(3, 0);
        assert!(!outgoing.is_installing(3) && outgoing.is_behind(3, 0));
    }

    #[test]
    fn failed_builds_back_off_up_to_a_bound() {
        let mut outgoing = Outgoing::default();
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..7 {
            assert!(outgoing.may_build(now));
            outgoing.build_started(1);
            assert!(!outgoing.may_build(now));
            outgoing.build_ended(false, now, UNIT);
            let wait = outgoing.builds.until.since(now);
            assert!(!outgoing.may_build(now.plus(wait - Duration::from_nanos(1))));
            waits.push(wait.as_secs());
            now = now.plus(wait);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 16, 16]);
    }

    /// Regression: a build that ended reset the back-off. With little space its log was given up, and the region was
    /// built again at once.
    #[test]
    fn only_a_follower_that_caught_up_resets_the_back_off() {
        let mut outgoing = Outgoing::default();
        let build = |outgoing: &mut Outgoing, now| {
            outgoing.build_started(10);
            outgoing.build_ended(true, now, UNIT);
            outgoing.sent(2, 10);
        };
        build(&mut outgoing, at(0));
        outgoing.give_up(None, 20, at(0), UNIT);
        assert!(!outgoing.may_build(at(999)) && outgoing.may_build(at(1000)));
        assert_eq!(outgoing.held(Some(10), 20), None, "nobody can continue from it");
        build(&mut outgoing, at(1000));
        outgoing.appended(2, 10);
        outgoing.release(|_, _| HoldEnd::Silent);
        assert!(outgoing.may_build(at(1000)), "it may still help another");
        outgoing.sent(2, 10);
        outgoing.give_up(None, 20, at(1000), UNIT);
        assert!(!outgoing.may_build(at(2999)) && outgoing.may_build(at(3000)), "longer");
        build(&mut outgoing, at(3000));
        outgoing.release(|_, _| HoldEnd::CaughtUp);
        outgoing.sent(3, 10);
        outgoing.sent(4, 20);
        outgoing.give_up(None, 20, at(3000), UNIT);
        assert!(!outgoing.may_build(at(3999)) && outgoing.may_build(at(4000)), "from the beginning");
        assert_eq!((outgoing.index(3), outgoing.index(4)), (0, 20), "the newer one still holds");
        outgoing.build_started(15);
        outgoing.give_up(Some(20), 20, at(4000), UNIT);
        outgoing.build_ended(true, at(4000), UNIT);
        assert!(outgoing.may_build(at(4000)), "its snapshot was newer than expected");
        outgoing.give_up(Some(20), 30, at(4000), UNIT);
        assert!(!outgoing.may_build(at(5999)), "one kept for followers");
    }

    /// Regression: a receiver that was busy three times counted as three failures of the file.
    #[test]
    fn failed_deliveries_back_off_and_only_damage_gives_the_file_up() {
        let mut outgoing = Outgoing::default();
        let mut ended = |follower, delivery, millis| {
            let gives_up = outgoing.delivery_ended((follower, 10), delivery, at(millis), UNIT);
            (outgoing.deferred(at(millis + 999)).count(), gives_up)
        };
        assert_eq!(ended(2, Delivery::Busy, 0), (1, false));
        for minute in 1..10 {
            assert_eq!(ended(2, Delivery::Busy, minute * 60_000), (1, false), "it is sent again, later and later");
        }
        assert_eq!(ended(2, Delivery::Damaged, 600_000), (1, false));
        assert_eq!(ended(2, Delivery::Delivered, 700_000), (0, false));
        assert_eq!(ended(3, Delivery::Damaged, 800_000), (1, false), "for another receiver");
        assert_eq!(ended(2, Delivery::Damaged, 801_000), (1, true));
        assert_eq!(outgoing.deferred(at(802_000)).count(), 0);
        for index in [10, 10, 11, 10, 10] {
            assert!(!outgoing.delivery_ended((2, index), Delivery::Damaged, at(803_000), UNIT), "each file for itself");
        }
    }
}
