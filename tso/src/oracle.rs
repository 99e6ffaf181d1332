//! The oracle: which timestamps may be issued when. Pure: the caller supplies the clocks, the disk and the lease.
//!
//! # Time
//!
//! Locks expire by the physical part of timestamps, so physical time neither stands still nor leaps. It follows the
//! wall clock within bounds that the monotonic clock sets: in one second of monotonic time it advances by half a second
//! to one and a half. If it leads the wall clock, it runs at half speed until the lead is gone. If it lags, it runs at
//! one and a half times the speed. A jump of the wall clock by an hour, either way, is followed over two hours.
//!
//! A leadership starts at the mark that it finds, not at its wall clock: a leap would end all locks and every grace
//! period at once, and could not be undone, because timestamps never go back. It leaps only if no node
//! that answers has received a timestamp for long, and only to what a majority of clocks has reached: [`crate::leap`].
//!
//! The counter carries over into the milliseconds, so the pace of time limits no request. At half speed a millisecond
//! of real time has 131,072 timestamps. Only a caller that takes more moves timestamps ahead of the time, and the
//! window with them.
//!
//! # Marks
//!
//! The *mark*, a record of the system region, makes timestamps unique across leaders. A timestamp is issued only below
//! a durable mark, and a new leader issues only at or above the mark that it finds. The mark is raised one second
//! ahead, and again when half of that is used, so that issuing does not wait for the disk.
//!
//! So each handover moves the time forward by what was left of the window, a second at most, and shortens the life of
//! every lock by as much. A longer window would take more of a lock's life; a shorter one costs more writes, and gives
//! each of them less time: a second means two writes of region 1 in a second, with half a second each. While physical
//! time leads the wall clock, the window is shorter by the lead, down to half a second. So handovers in a row add at
//! most half a second each to the lead, and half of the time between them is given back.
//!
//! ```text
//!      floor           last                          mark
//! ───────┼───────────────┼─────────────────────────────┼──────────▶ timestamps
//!  other │    issued     │  may be issued              │ may not be
//! leaders│               │  ◀─ at least half of it ─▶  │ issued yet
//! ```

use std::time::Duration;

use crate::timestamp::{MAX_COUNT, Timestamp, TsRange};
use crate::window::LeaderTerm;

/// How far the mark is raised ahead of the newest timestamp or the time, in milliseconds, unless the time leads the
/// wall clock. The mark is raised again when less than half of it is left. It is also the furthest that one handover
/// moves the time forward: `txn` asserts that this is a small part of a lock's life.
pub const WINDOW_MS: u64 = 1000;
/// The same, at least, if the time leads the wall clock. At half speed it lasts a second.
pub const WINDOW_MIN_MS: u64 = 500;
/// The least and the most microseconds by which the time advances in a millisecond of the monotonic clock.
const PACE_US: (u32, u32) = (500, 1500);
/// The largest physical part, one window below overflow.
const MAX_PHYSICAL_MS: u64 = (1 << (u64::BITS - Timestamp::COUNTER_BITS)) - 1 - WINDOW_MS;

/// One reading of a node's two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock, in milliseconds since the Unix epoch. It may jump either way.
    pub wall_ms: u64,
    /// The monotonic clock, in milliseconds since a fixed moment. It never goes back.
    pub mono_ms: u64,
}

/// Why no timestamp was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// This node does not lead.
    #[error("not the leader")]
    NotLeader,
    /// The window is used up, or the first window of a new leader is not durable yet. Retry after the next raise.
    #[error("the window is used up")]
    WindowUsedUp,
    /// A count of 0 or above [`crate::timestamp::MAX_COUNT`].
    #[error("count out of range")]
    InvalidCount,
}

/// The state of one node's oracle.
///
/// Invariants:
/// 1. `last` never decreases: no timestamp is issued twice by this node, whatever the clock does.
/// 2. Every issued timestamp is below a mark that was durable when it was issued.
/// 3. Every issued timestamp is at or above the mark that its leadership started from.
/// 4. Nothing is issued without leadership, nor before the leadership has raised the mark itself.
/// 5. At most one raise is in flight, and its mark is above the durable one.
/// 6. During a leadership physical time advances at least half and at most one and a half times as far as the monotonic
///    clock. Timestamps are ahead of it only while the counter of a burst carries over.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// The newest issued timestamp, or the one before the floor: nothing at or below it is issued again.
    last: Timestamp,
    leadership: Option<Leadership>,
}

/// The furthest that the time of one leadership advances while `real` passes.
pub fn advance_max(real: Duration) -> Duration {
    let (_, most_us) = PACE_US;
    (real / 1000).saturating_mul(most_us)
}

/// The physical time of a leadership at one reading of the clocks.
#[derive(Clone, Copy, Debug)]
struct PhysicalTime {
    /// Microseconds, so that half of a millisecond is not lost.
    time_us: u64,
    mono_ms: u64,
}

impl PhysicalTime {
    /// The time at a later reading: the wall clock, within the bounds of invariant 6.
    fn at(self, now: ClockReading) -> PhysicalTime {
        let passed_ms = now.mono_ms.saturating_sub(self.mono_ms);
        let after = |pace_us: u32| self.time_us.saturating_add(passed_ms.saturating_mul(u64::from(pace_us)));
        let (least, most) = PACE_US;
        let time_us = now.wall_ms.saturating_mul(1000).clamp(after(least), after(most));
        PhysicalTime { time_us: time_us.min(MAX_PHYSICAL_MS * 1000), mono_ms: now.mono_ms.max(self.mono_ms) }
    }

    fn as_ms(self) -> u64 {
        self.time_us / 1000
    }
}

#[derive(Clone, Copy, Debug)]
struct Leadership {
    term: LeaderTerm,
    /// The durable mark at the start of the leadership.
    floor: Timestamp,
    /// The durable mark; equal to the floor until this leadership has raised it.
    mark: Timestamp,
    /// The mark of the raise in flight.
    raising: Option<Timestamp>,
    /// The physical time at the last reading of the clocks.
    time: PhysicalTime,
}

impl Oracle {
    /// An oracle without leadership.
    pub fn new() -> Oracle {
        Oracle::default()
    }

    /// Starts the leadership of `term`, given the durable `mark`. Issues nothing until the first window is durable: the
    /// caller continues with [`Oracle::extend`]. The time starts at the mark, or at `leap_ms` if that is later: a time
    /// in milliseconds since the Unix epoch, which [`crate::leap`] decides. Without a mark ([`Timestamp::ZERO`]) the
    /// cluster is new, and the time starts at the wall clock.
    pub fn start(&mut self, term: LeaderTerm, mark: Timestamp, now: ClockReading, leap_ms: Option<u64>) {
        // Another leader may have issued any timestamp below the mark; this node has issued those up to `last`.
        let floor = mark.max(self.last.next());
        let wall_ms = (mark == Timestamp::ZERO).then_some(now.wall_ms);
        let leap_ms = wall_ms.or(leap_ms).unwrap_or(0).min(MAX_PHYSICAL_MS);
        let time = PhysicalTime { time_us: floor.physical_ms().max(leap_ms) * 1000, mono_ms: now.mono_ms };
        self.last = floor.prev();
        self.leadership = Some(Leadership { term, floor, mark: floor, raising: None, time });
        self.check();
    }

    /// Ends the leadership: nothing is issued until the next start.
    pub fn stop(&mut self) {
        self.leadership = None;
        self.check();
    }

    /// The term of the current leadership, serving or still starting.
    pub fn term(&self) -> Option<LeaderTerm> {
        self.leadership.map(|leadership| leadership.term)
    }

    /// Whether the oracle can issue timestamps: its leadership has a window of its own.
    pub fn is_serving(&self) -> bool {
        self.leadership.is_some_and(|leadership| leadership.mark > leadership.floor)
    }

    /// How far the time is ahead of the wall clock, in milliseconds; negative if it is behind. `None` without
    /// leadership.
    pub fn offset_ms(&self, now: ClockReading) -> Option<i64> {
        let time_ms = self.leadership?.time.at(now).as_ms();
        let distance = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        Some(distance(time_ms.saturating_sub(now.wall_ms)) - distance(now.wall_ms.saturating_sub(time_ms)))
    }

    /// Returns the mark to make durable now, if the window is due. The caller answers with [`Oracle::raised`] or
    /// [`Oracle::raise_failed`]; until then no other mark is returned.
    ///
    /// The caller calls it several times a second, also without a need for timestamps: between two calls physical time
    /// follows the wall clock only within the bounds of invariant 6.
    pub fn extend(&mut self, now: ClockReading) -> Option<Timestamp> {
        let leadership = self.leadership.as_mut()?;
        leadership.time = leadership.time.at(now);
        let newest_ms = self.last.physical_ms().max(leadership.time.as_ms()).min(MAX_PHYSICAL_MS);
        let lead_ms = newest_ms.saturating_sub(now.wall_ms);
        let window_ms = WINDOW_MS.saturating_sub(lead_ms).max(WINDOW_MIN_MS);
        let left_ms = leadership.mark.physical_ms().saturating_sub(newest_ms);
        let is_first = leadership.mark == leadership.floor;
        if leadership.raising.is_some() || (!is_first && left_ms >= window_ms / 2) {
            return None;
        }
        let mark = Timestamp::new(newest_ms + window_ms, 0);
        // At the largest physical part no higher mark exists.
        leadership.raising = (mark > leadership.mark).then_some(mark);
        let raising = leadership.raising;
        self.check();
        raising
    }

    /// `mark` has become durable under the leadership of `term`. Ignored if the term is not the current one.
    pub fn raised(&mut self, term: LeaderTerm, mark: Timestamp) {
        if let Some(leadership) = self.leadership.as_mut().filter(|leadership| leadership.term == term) {
            leadership.raising = None;
            leadership.mark = leadership.mark.max(mark);
        }
        self.check();
    }

    /// The raise in flight failed, or its outcome is unknown: [`Oracle::extend`] may return the next mark. Ignored if
    /// the term is not the current one.
    pub fn raise_failed(&mut self, term: LeaderTerm) {
        if let Some(leadership) = self.leadership.as_mut().filter(|leadership| leadership.term == term) {
            leadership.raising = None;
        }
        self.check();
    }

    /// Issues `count` (1 to [`MAX_COUNT`]) consecutive timestamps, at the current time or above all issued before,
    /// whichever is later. The caller may hand them out only if the lease of [`Oracle::term`] still holds *after* this
    /// call.
    ///
    /// # Errors
    /// [`OracleError::InvalidCount`], [`OracleError::NotLeader`] without leadership, [`OracleError::WindowUsedUp`] if
    /// the range would reach the durable mark.
    pub fn allocate(&mut self, now: ClockReading, count: u32) -> Result<TsRange, OracleError> {
        if count == 0 || count > MAX_COUNT {
            return Err(OracleError::InvalidCount);
        }
        let leadership = self.leadership.as_mut().ok_or(OracleError::NotLeader)?;
        leadership.time = leadership.time.at(now);
        let (floor, mark, time_ms) = (leadership.floor, leadership.mark, leadership.time.as_ms());
        // The counter carries over into the milliseconds: a burst does not have to wait.
        let first = self.last.next().max(Timestamp::new(time_ms, 0));
        let last = Timestamp::from_raw(first.raw().saturating_add(u64::from(count) - 1));
        if last >= mark {
            return Err(OracleError::WindowUsedUp);
        }
        let before = self.last;
        self.last = last;
        assert!(before < first && floor <= first, "invariants 1 and 3: {first} after {before}");
        assert!(mark > floor, "invariant 4: the leadership has raised the mark");
        self.check();
        Ok(TsRange { last, count })
    }

    /// Asserts the invariants that can be checked between two calls.
    fn check(&self) {
        let Some(leadership) = self.leadership else { return };
        assert!(self.last < leadership.mark, "invariant 2: {} below {}", self.last, leadership.mark);
        assert!(self.last.next() >= leadership.floor, "invariant 3: {} from {}", self.last, leadership.floor);
        assert!(leadership.raising.is_none_or(|mark| mark > leadership.mark), "invariant 5: {leadership:?}");
    }
}
