//! The oracle: which timestamps may be issued when. Pure: the caller supplies the clock, the disk and the lease.
//!
//! Timestamps follow the wall clock. They never go back with it, and they do not stand still until it has caught up,
//! because locks expire by the physical part. After the wall clock was set back, or after a node with a slow clock took
//! over, physical time advances from the last timestamp, or from the mark, at the pace of the monotonic clock.
//!
//! The *mark*, a record of the system region, makes timestamps unique across leaders. A timestamp is issued only below
//! a durable mark, and a new leader issues only at or above the mark that it finds. The mark is raised three seconds
//! ahead, and again when half of that is used, so that issuing does not wait for the disk.
//!
//! ```text
//!      floor           last                          mark
//! ───────┼───────────────┼─────────────────────────────┼──────────▶ timestamps
//!  other │    issued     │  may be issued              │ may not be
//! leaders│               │  ◀── at least 1.5 s ──▶     │ issued yet
//! ```

use crate::timestamp::{MAX_COUNT, Timestamp, TsRange};
use crate::window::LeaderTerm;

/// How far the mark is raised ahead of the newest timestamp or the clock, in milliseconds.
pub const WINDOW_MS: u64 = 3000;
/// The mark is raised again when less than this is left of the window, in milliseconds.
const EXTEND_BELOW_MS: u64 = WINDOW_MS / 2;
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
/// 6. Between two allocations physical time advances at least as far as the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// The newest issued timestamp, or the one before the floor: nothing at or below it is issued again.
    last: Timestamp,
    leadership: Option<Leadership>,
    last_allocation: Option<AllocationTime>,
}

/// The time of an allocation. The physical part of its timestamps may be later: the counter of a burst carries over
/// into it.
#[derive(Clone, Copy, Debug)]
struct AllocationTime {
    time_ms: u64,
    /// The monotonic clock at that time.
    mono_ms: u64,
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
}

impl Oracle {
    /// An oracle without leadership.
    pub fn new() -> Oracle {
        Oracle::default()
    }

    /// Starts the leadership of `term`, given the durable `mark`. Issues nothing until the first window is durable: the
    /// caller continues with [`Oracle::extend`].
    pub fn start(&mut self, term: LeaderTerm, mark: Timestamp) {
        // Another leader may have issued any timestamp below the mark; this node has issued those up to `last`.
        let floor = mark.max(self.last.next());
        self.last = floor.prev();
        self.leadership = Some(Leadership { term, floor, mark: floor, raising: None });
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

    /// Returns the mark to make durable now, if the window is due. The caller answers with [`Oracle::raised`] or
    /// [`Oracle::raise_failed`]; until then no other mark is returned.
    pub fn extend(&mut self, now: ClockReading) -> Option<Timestamp> {
        let newest_ms = self.last.physical_ms().max(self.time(now)).min(MAX_PHYSICAL_MS);
        let leadership = self.leadership.as_mut()?;
        let left_ms = leadership.mark.physical_ms().saturating_sub(newest_ms);
        let is_first = leadership.mark == leadership.floor;
        if leadership.raising.is_some() || (!is_first && left_ms >= EXTEND_BELOW_MS) {
            return None;
        }
        let mark = Timestamp::new(newest_ms + WINDOW_MS, 0);
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
        let leadership = self.leadership.ok_or(OracleError::NotLeader)?;
        let allocation = AllocationTime { time_ms: self.time(now), mono_ms: now.mono_ms };
        // The counter carries over into the milliseconds: neither a burst nor a clock that stands still has to wait.
        let first = self.last.next().max(Timestamp::new(allocation.time_ms, 0));
        let last = Timestamp::from_raw(first.raw().saturating_add(u64::from(count) - 1));
        if last >= leadership.mark {
            return Err(OracleError::WindowUsedUp);
        }
        let before = self.last;
        self.last = last;
        self.last_allocation = Some(allocation);
        assert!(before < first && leadership.floor <= first, "invariants 1 and 3: {first} after {before}");
        assert!(leadership.mark > leadership.floor, "invariant 4: the leadership has raised the mark");
        self.check();
        Ok(TsRange { last, count })
    }

    /// The physical time: the wall clock, or the time of the last allocation plus the monotonic time since, whichever
    /// is later. Never below the floor of the leadership.
    fn time(&self, now: ClockReading) -> u64 {
        let floor_ms = self.leadership.map_or(0, |leadership| leadership.floor.physical_ms());
        let steady_ms = self.last_allocation.map_or(0, |last| {
            let passed_ms = now.mono_ms.saturating_sub(last.mono_ms);
            last.time_ms.saturating_add(passed_ms)
        });
        now.wall_ms.max(steady_ms).max(floor_ms).min(MAX_PHYSICAL_MS)
    }

    /// Asserts the invariants that can be checked between two calls.
    fn check(&self) {
        let Some(leadership) = self.leadership else { return };
        assert!(self.last < leadership.mark, "invariant 2: {} below {}", self.last, leadership.mark);
        assert!(self.last.next() >= leadership.floor, "invariant 3: {} from {}", self.last, leadership.floor);
        assert!(leadership.raising.is_none_or(|mark| mark > leadership.mark), "invariant 5: {leadership:?}");
    }
}
