//! The oracle: what timestamps may be issued when. Pure: the clock, the disk and the lease are its caller's.
//!
//! Timestamps follow the wall clock but never go back with it, nor do they stand still until it has caught up: locks
//! expire by the physical part. When the wall clock was set back, or a node whose clock is slow took over, time goes on
//! from the last timestamp, or from the mark, at the pace of the monotonic clock. What makes them unique across leaders is the *mark*,
//! kept by the system region: a timestamp is issued only below a mark that is already durable, and a new leader issues
//! only at or above the mark it finds. The mark is raised three seconds ahead, and again when half of that is used, so
//! that issuing never waits for the disk.
//!
//! ```text
//!      floor           last                          mark
//! ───────┼───────────────┼─────────────────────────────┼──────────▶ timestamps
//!  other │    issued     │  may be issued              │ may not be
//! leaders│               │  ◀── at least 1.5 s ──▶     │ issued yet
//! ```

use crate::client::TsRange;
use crate::timestamp::Timestamp;
use crate::window::LeaderTerm;

/// How far ahead of the newest timestamp, or the clock, the mark is raised; in milliseconds.
pub const WINDOW_MS: u64 = 3000;
/// The mark is raised again when less than this is left of the window; in milliseconds.
const EXTEND_BELOW_MS: u64 = WINDOW_MS / 2;
/// The most timestamps that one call may ask for.
pub const MAX_COUNT: u32 = 1 << 17;
/// The largest value of a physical part, kept one window away from overflow.
const MAX_PHYSICAL_MS: u64 = (1 << (u64::BITS - Timestamp::COUNTER_BITS)) - 1 - WINDOW_MS;

/// What a node's clocks say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The wall clock, in milliseconds since the Unix epoch. It may jump either way.
    pub wall_ms: u64,
    /// The monotonic clock, in milliseconds since any moment that stays the same. It never goes back.
    pub mono_ms: u64,
}

/// Why no timestamp was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This node does not lead.
    #[error("not the leader")]
    NotLeader,
    /// The window is used up, or a new leader's first one is not durable yet: ask again once it was raised.
    #[error("the window is used up")]
    WindowUsedUp,
    /// A count of 0 or above [`MAX_COUNT`].
    #[error("count out of range")]
    InvalidCount,
}

/// The state of one node's oracle.
///
/// Invariants:
/// 1. `last` never decreases: no timestamp is issued twice by this node, whatever the clock does.
/// 2. Every issued timestamp is below a mark that was durable when it was issued.
/// 3. Every issued timestamp is at or above the mark that the leadership started from.
/// 4. Nothing is issued without leadership, nor before the leadership raised the mark itself.
/// 5. A mark under way is above the durable one, and there is at most one.
/// 6. Between two issues physical time moves at least as far as the monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// Nothing at or below it is issued any more.
    last: Timestamp,
    leadership: Option<Leadership>,
    issue: Option<Issue>,
}

/// When the last timestamp was issued. Its physical part may be later: the counter of a burst carries over into it.
#[derive(Clone, Copy, Debug)]
struct Issue {
    time_ms: u64,
    /// The monotonic clock then.
    mono_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Leadership {
    term: LeaderTerm,
    /// The mark found at the start.
    floor: Timestamp,
    /// The durable mark; equal to the floor until this leadership has raised it.
    mark: Timestamp,
    /// The mark being made durable.
    raising: Option<Timestamp>,
}

impl Oracle {
    /// An oracle without leadership.
    pub fn new() -> Oracle {
        Oracle::default()
    }

    /// Takes up the leadership of `term`, given the durable `mark`. Serves nothing until the first window is durable:
    /// the caller goes on with [`Oracle::extend`].
    pub fn start(&mut self, term: LeaderTerm, mark: Timestamp) {
        // Below the mark another leader may have issued anything; at or below `last` this node has.
        let floor = mark.max(self.last.next());
        self.last = floor.prev();
        self.leadership = Some(Leadership { term, floor, mark: floor, raising: None });
        self.check();
    }

    /// Gives the leadership up: nothing is issued until the next start.
    pub fn stop(&mut self) {
        self.leadership = None;
        self.check();
    }

    /// The term of the leadership, be it serving or still starting.
    pub fn term(&self) -> Option<LeaderTerm> {
        self.leadership.map(|leadership| leadership.term)
    }

    /// Whether timestamps can be had: there is a leadership with a window of its own.
    pub fn is_serving(&self) -> bool {
        self.leadership.is_some_and(|leadership| leadership.mark > leadership.floor)
    }

    /// The mark to make durable now, if it is time to. Answered by [`Oracle::raised`] or [`Oracle::raise_failed`];
    /// until then no other is asked for.
    pub fn extend(&mut self, now: Now) -> Option<Timestamp> {
        let newest_ms = self.last.physical_ms().max(self.time(now)).min(MAX_PHYSICAL_MS);
        let leadership = self.leadership.as_mut()?;
        let left_ms = leadership.mark.physical_ms().saturating_sub(newest_ms);
        let is_first = leadership.mark == leadership.floor;
        if leadership.raising.is_some() || (!is_first && left_ms >= EXTEND_BELOW_MS) {
            return None;
        }
        let mark = Timestamp::new(newest_ms + WINDOW_MS, 0);
        // At the end of time there is nothing left to raise to.
        leadership.raising = (mark > leadership.mark).then_some(mark);
        let raising = leadership.raising;
        self.check();
        raising
    }

    /// `mark` has become durable under the leadership of `term`. A word about another leadership is ignored.
    pub fn raised(&mut self, term: LeaderTerm, mark: Timestamp) {
        if let Some(leadership) = self.leadership.as_mut().filter(|leadership| leadership.term == term) {
            leadership.raising = None;
            leadership.mark = leadership.mark.max(mark);
        }
        self.check();
    }

    /// The mark under way did not become durable, or it is not known whether it did: the next extension may be asked
    /// for. A word about another leadership is ignored.
    pub fn raise_failed(&mut self, term: LeaderTerm) {
        if let Some(leadership) = self.leadership.as_mut().filter(|leadership| leadership.term == term) {
            leadership.raising = None;
        }
        self.check();
    }

    /// Issues `count` consecutive timestamps, at the present time or after everything issued before, whichever is
    /// later. They may be handed out only if the lease of [`Oracle::term`] still holds *after* this call.
    pub fn allocate(&mut self, now: Now, count: u32) -> Result<TsRange, Refusal> {
        if count == 0 || count > MAX_COUNT {
            return Err(Refusal::InvalidCount);
        }
        let leadership = self.leadership.ok_or(Refusal::NotLeader)?;
        let issue = Issue { time_ms: self.time(now), mono_ms: now.mono_ms };
        // The counter carries over into the milliseconds, so a burst or a clock that stands still costs no waiting.
        let first = self.last.next().max(Timestamp::new(issue.time_ms, 0));
        let last = Timestamp::from_raw(first.raw().saturating_add(u64::from(count) - 1));
        if last >= leadership.mark {
            return Err(Refusal::WindowUsedUp);
        }
        let before = self.last;
        self.last = last;
        self.issue = Some(issue);
        assert!(before < first && leadership.floor <= first, "invariants 1 and 3: {first} after {before}");
        assert!(leadership.mark > leadership.floor, "invariant 4: the leadership has raised the mark");
        self.check();
        Ok(TsRange { last, count })
    }

    /// The physical time: that of the wall clock, or of the last timestamp's issue and what has passed since, whichever
    /// is later. Never before the floor of the leadership.
    fn time(&self, now: Now) -> u64 {
        let floor_ms = self.leadership.map_or(0, |leadership| leadership.floor.physical_ms());
        let steady_ms = self.issue.map_or(0, |issue| {
            let passed_ms = now.mono_ms.saturating_sub(issue.mono_ms);
            issue.time_ms.saturating_add(passed_ms)
        });
        now.wall_ms.max(steady_ms).max(floor_ms).min(MAX_PHYSICAL_MS)
    }

    /// Asserts what can be seen of the invariants between two calls.
    fn check(&self) {
        let Some(leadership) = self.leadership else { return };
        assert!(self.last < leadership.mark, "invariant 2: {} below {}", self.last, leadership.mark);
        assert!(self.last.next() >= leadership.floor, "invariant 3: {} from {}", self.last, leadership.floor);
        assert!(leadership.raising.is_none_or(|mark| mark > leadership.mark), "invariant 5: {leadership:?}");
    }
}
