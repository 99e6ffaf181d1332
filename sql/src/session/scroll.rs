//! The rows of a cursor that are in memory, its position, and the steps of a FETCH. Pure: who reads the rows of the
//! query decides nothing here.
//!
//! The position is 0 before the first row, the number of a row, or one more than the number of rows behind the last.
//! A cursor with SCROLL keeps all rows that it has read. One with NO SCROLL keeps those that are read and not fetched.
//! One with neither keeps up to [`WINDOW_BYTES`] and goes backward as long as it has dropped none: PostgreSQL promises
//! no more, and a large result needs no memory.

use std::collections::VecDeque;

use crate::coop::{MANY, drop_elsewhere};
use crate::error::{SqlError, SqlState};
use crate::exec::Row;
use crate::session::nested::Direction;
use pgtypes::Datum;

/// Limit of the bytes that the cursors of one session keep.
pub(crate) const KEPT_BYTES: usize = 128 << 20;

/// Rows that are read at a time, at most, and their bytes.
const BATCH_ROWS: u64 = 128;
const BATCH_BYTES: u64 = 1 << 20;

/// Limit of the bytes that a cursor without SCROLL and NO SCROLL keeps.
const WINDOW_BYTES: usize = 1 << 20;

/// Which rows a cursor keeps after they were fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All.
    All,
    /// All, as long as they are small.
    Window,
    /// None.
    Nothing,
}

/// The rows of a cursor that are in memory, and its position.
///
/// Invariants: `dropped` rows were read before those in `rows`. All of them were fetched, and none was dropped unless
/// `keep` is `Nothing`. `bytes` is the size of `rows`, `all_bytes` that of all that were read.
#[derive(Debug)]
pub(crate) struct ScrollRows {
    keep: Keep,
    rows: VecDeque<Row>,
    dropped: u64,
    at: u64,
    bytes: usize,
    all_bytes: u64,
}

/// A step of a FETCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To the position before the first row.
    Rewind,
    /// Forward over so many rows (`None`: all).
    Forward { count: Option<u64>, sent: bool },
    /// Backward over so many rows (`None`: all).
    Backward { count: Option<u64>, sent: bool },
}

impl ScrollRows {
    /// No rows, before the first one.
    pub(crate) fn new(keep: Keep) -> ScrollRows {
        ScrollRows { keep, rows: VecDeque::new(), dropped: 0, at: 0, bytes: 0, all_bytes: 0 }
    }

    /// The bytes of its rows.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it can go backward.
    pub(crate) fn is_scrollable(&self) -> bool {
        self.keep != Keep::Nothing
    }

    /// Adds the next row of the query. 53200 beyond `limit` bytes.
    pub(crate) fn push(&mut self, row: Row, limit: usize) -> Result<(), SqlError> {
        let bytes = row_bytes(&row);
        self.bytes += bytes;
        self.all_bytes += bytes as u64;
        self.rows.push_back(row);
        if self.keep == Keep::Window && self.bytes > WINDOW_BYTES {
            self.keep = Keep::Nothing;
        }
        if self.keep == Keep::Nothing {
            self.drop_fetched(self.at);
        }
        if self.bytes > limit {
            let detail = format!("The cursors of the session keep more than {} MiB of rows.", KEPT_BYTES >> 20);
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(detail));
        }
        Ok(())
    }

    /// How many rows to read at a time: few, if they are large.
    pub(crate) fn batch(&self) -> u64 {
        match self.all_bytes / self.read().max(1) {
            0 => BATCH_ROWS / 8,
            average => (BATCH_BYTES / average).clamp(1, BATCH_ROWS),
        }
    }

    /// The number of rows in memory behind the position.
    pub(crate) fn unread(&self) -> u64 {
        self.read().saturating_sub(self.at)
    }

    /// Goes to the next row, if it is in memory.
    pub(crate) fn forward(&mut self) -> Option<&Row> {
        if self.unread() == 0 {
            return None;
        }
        if self.keep == Keep::Nothing {
            self.drop_fetched(self.at);
        }
        self.at += 1;
        self.current()
    }

    /// Goes behind the last row. All were read.
    pub(crate) fn pass_end(&mut self) {
        self.at = self.read() + 1;
    }

    /// Goes to the row before, or before the first one. [`ScrollRows::check_backward`] has allowed it.
    pub(crate) fn backward(&mut self) -> Option<&Row> {
        self.at = self.at.saturating_sub(1);
        self.current()
    }

    /// Goes before the first row. [`ScrollRows::check_backward`] has allowed it.
    pub(crate) fn rewind(&mut self) {
        self.at = 0;
    }

    /// 55000 if it cannot go backward.
    pub(crate) fn check_backward(&self) -> Result<(), SqlError> {
        if self.is_scrollable() {
            return Ok(());
        }
        Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
            .hint("Declare it with SCROLL option to enable backward scan."))
    }

    /// The steps of a FETCH, or with `moves` of a MOVE. The number of rows of the last one is that of the statement; it
    /// is one without a step: the position is a row, and stays.
    pub(crate) fn steps(&self, direction: Direction, moves: bool) -> Vec<Step> {
        let (forward, backward) = (
            |count, sent| Step::Forward { count, sent: sent && !moves },
            |count, sent| Step::Backward { count, sent: sent && !moves },
        );
        match direction {
            Direction::Forward(Some(0)) | Direction::Backward(Some(0)) | Direction::Relative(0) => {
                match self.is_on_row() {
                    true if moves => Vec::new(),
                    true => vec![backward(Some(1), false), forward(Some(1), true)],
                    false if matches!(direction, Direction::Backward(_)) => vec![backward(Some(0), true)],
                    false => vec![forward(Some(0), true)],
                }
            }
            Direction::Forward(None) => vec![forward(None, true)],
            Direction::Backward(None) => vec![backward(None, true)],
            Direction::Forward(Some(count)) if count > 0 => vec![forward(Some(count.unsigned_abs()), true)],
            Direction::Backward(Some(count)) if count < 0 => vec![forward(Some(count.unsigned_abs()), true)],
            Direction::Forward(Some(count)) | Direction::Backward(Some(count)) => {
                vec![backward(Some(count.unsigned_abs()), true)]
            }
            Direction::Absolute(0) if self.at == 0 => vec![forward(Some(0), true)],
            Direction::Absolute(0) => vec![Step::Rewind],
            Direction::Absolute(row) if row > 0 => {
                let row = row.unsigned_abs();
                match row.checked_sub(self.at + 1) {
                    Some(between) => vec![forward(Some(between), false), forward(Some(1), true)],
                    None => vec![Step::Rewind, forward(Some(row - 1), false), forward(Some(1), true)],
                }
            }
            Direction::Absolute(row) => {
                vec![forward(None, false), backward(Some(row.unsigned_abs() - 1), false), backward(Some(1), true)]
            }
            Direction::Relative(count) if count > 0 => {
                vec![forward(Some(count.unsigned_abs() - 1), false), forward(Some(1), true)]
            }
            Direction::Relative(count) => {
                vec![backward(Some(count.unsigned_abs() - 1), false), backward(Some(1), true)]
            }
        }
    }

    /// Whether the position is a row.
    pub(crate) fn is_on_row(&self) -> bool {
        (1..=self.read()).contains(&self.at)
    }

    fn read(&self) -> u64 {
        self.dropped + self.rows.len() as u64
    }

    fn current(&self) -> Option<&Row> {
        let place = self.at.checked_sub(self.dropped + 1)?;
        self.rows.get(usize::try_from(place).ok()?)
    }

    /// Drops the rows up to a number.
    fn drop_fetched(&mut self, last: u64) {
        while self.dropped < last {
            let Some(row) = self.rows.pop_front() else { return };
            self.bytes -= row_bytes(&row);
            self.dropped += 1;
        }
    }
}

impl Drop for ScrollRows {
    /// Many rows are freed on another thread.
    fn drop(&mut self) {
        if self.rows.len() > MANY {
            drop_elsewhere(std::mem::take(&mut self.rows));
        }
    }
}

/// The approximate bytes of a row.
pub(crate) fn row_bytes(row: &Row) -> usize {
    size_of::<Row>() + row.iter().map(Datum::memory).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(number: u64) -> Row {
        vec![Datum::Int(i64::try_from(number).unwrap())]
    }

    /// All rows of a query in memory.
    fn filled(keep: Keep, count: u64) -> ScrollRows {
        let mut rows = ScrollRows::new(keep);
        (1..=count).for_each(|number| rows.push(row(number), usize::MAX).unwrap());
        rows
    }

    /// Runs the steps. Returns the rows that are sent, and the number of the statement.
    fn run(rows: &mut ScrollRows, direction: Direction, moves: bool) -> Result<(Vec<Row>, u64), SqlError> {
        let (mut sent_rows, mut passed) = (Vec::new(), 1);
        for step in rows.steps(direction, moves) {
            passed = 0;
            let (is_forward, count, sent) = match step {
                Step::Rewind => {
                    rows.check_backward()?;
                    rows.rewind();
                    continue;
                }
                Step::Forward { count, sent } => (true, count, sent),
                Step::Backward { count, sent } => (false, count, sent),
            };
            if !is_forward {
                rows.check_backward()?;
            }
            while count.is_none_or(|count| passed < count) {
                let next = if is_forward { rows.forward() } else { rows.backward() };
                let Some(row) = next else {
                    if is_forward {
                        rows.pass_end();
                    }
                    break;
                };
                if sent {
                    sent_rows.push(row.clone());
                }
                passed += 1;
            }
        }
        Ok((sent_rows, passed))
    }

    /// What the documentation of FETCH says: the rows, and the new position.
    fn expected(at: i64, last: i64, direction: Direction) -> (Vec<i64>, i64) {
        let clamp = |at: i64| at.clamp(0, last + 1);
        let on = |at: i64| if (1..=last).contains(&at) { vec![at] } else { Vec::new() };
        match direction {
            Direction::Forward(Some(0)) | Direction::Backward(Some(0)) | Direction::Relative(0) => (on(at), at),
            Direction::Backward(count) => expected(at, last, Direction::Forward(Some(-count.unwrap_or(1 << 40)))),
            Direction::Forward(count) => {
                let count = count.unwrap_or(1 << 40);
                let end = clamp(at + count);
                let rows =
                    if count > 0 { (at + 1..=end.min(last)).collect() } else { (end.max(1)..at).rev().collect() };
                (rows, end)
            }
            Direction::Absolute(row) => {
                let to = clamp(if row < 0 { last + 1 + row } else { row });
                (on(to), to)
            }
            Direction::Relative(count) => {
                let to = clamp(at + count);
                (on(to), to)
            }
        }
    }

    fn directions() -> impl Strategy<Value = Direction> {
        let count = || proptest::option::weighted(0.8, -4i64..5);
        prop_oneof![
            count().prop_map(Direction::Forward),
            count().prop_map(Direction::Backward),
            (-7i64..8).prop_map(Direction::Absolute),
            (-4i64..5).prop_map(Direction::Relative),
        ]
    }

    proptest! {
        #[test]
        fn every_direction_is_as_documented(
            last in 0u64..6,
            directions in proptest::collection::vec((directions(), any::<bool>()), 1..12),
        ) {
            let mut rows = filled(Keep::All, last);
            let last = i64::try_from(last).unwrap();
            let mut at = 0;
            for (direction, moves) in directions {
                let (wanted, after) = expected(at, last, direction);
                let (sent, passed) = run(&mut rows, direction, moves).unwrap();
                prop_assert_eq!(passed, wanted.len() as u64, "{:?} at {} of {}", direction, at, last);
                let wanted: Vec<Row> = wanted.into_iter().map(|n| vec![Datum::Int(n)]).collect();
                prop_assert_eq!(sent, if moves { Vec::new() } else { wanted });
                prop_assert_eq!(rows.at, u64::try_from(after).unwrap(), "{:?} at {} of {}", direction, at, last);
                at = after;
            }
        }
    }

    #[test]
    fn without_scroll_no_fetched_row_is_kept() {
        let mut rows = filled(Keep::Nothing, 5);
        assert_eq!(run(&mut rows, Direction::Absolute(3), false).unwrap(), (vec![row(3)], 1));
        assert_eq!((rows.rows.len(), rows.dropped), (3, 2), "the current row, and those behind it");
        assert_eq!(rows.bytes(), rows.rows.iter().map(row_bytes).sum::<usize>());
        for direction in [
            Direction::Forward(Some(0)),
            Direction::Backward(Some(1)),
            Direction::Relative(0),
            Direction::Absolute(3),
            Direction::Absolute(0),
            Direction::Forward(Some(-1)),
        ] {
            let error = run(&mut rows, direction, false).unwrap_err();
            assert_eq!((error.code.0, rows.at), ("55000", 3), "{direction:?}");
        }
        assert_eq!(run(&mut rows, Direction::Forward(Some(0)), true).unwrap().1, 1, "MOVE stays on the row");
        assert_eq!(run(&mut rows, Direction::Forward(None), true).unwrap().1, 2);
        assert_eq!(run(&mut rows, Direction::Absolute(-1), false).unwrap_err().code.0, "55000");
        let mut unmoved = filled(Keep::Nothing, 5);
        assert_eq!(run(&mut unmoved, Direction::Absolute(0), false).unwrap().1, 0);
    }

    #[test]
    fn memory_is_bounded_and_a_window_is_given_up() {
        let wide = vec![Datum::Text("x".repeat(WINDOW_BYTES / 4).into())];
        let mut rows = ScrollRows::new(Keep::Window);
        for _ in 0..3 {
            rows.push(wide.clone(), usize::MAX).unwrap();
            assert!(rows.forward().is_some() && rows.is_scrollable());
        }
        rows.push(wide.clone(), usize::MAX).unwrap();
        assert!(!rows.is_scrollable() && rows.dropped == 3, "what was fetched is gone");
        assert_eq!(rows.forward(), Some(&wide));
        let mut rows = ScrollRows::new(Keep::All);
        rows.push(wide.clone(), WINDOW_BYTES / 3).unwrap();
        assert_eq!(rows.push(wide, WINDOW_BYTES / 3).unwrap_err().code, SqlState::OUT_OF_MEMORY);
        assert_eq!((ScrollRows::new(Keep::All).batch(), rows.batch(), filled(Keep::All, 9).batch()), (16, 3, 128));
    }
}
