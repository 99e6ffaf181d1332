//! The frames of windows: which rows of its partition a call sees from each row.

use super::input::ROW_UNITS;
use super::rows::{Row, key_order};
use crate::coop::Turn;
use crate::error::{SqlError, SqlState};
use crate::expr::eval::{Env, eval, is_true};
use crate::plan::{Frame, FrameBound, FrameUnits, RangeBound, Window};
use pgtypes::Datum;
use pgtypes::datetime::Interval;
use pgtypes::datum::compare;

/// A partition: sorted rows, and the groups of those that are equal in the order.
pub(super) struct Partition<'r> {
    pub(super) rows: &'r [Row],
    /// The first row of each group.
    starts: Vec<usize>,
    /// The group of each row.
    groups: Vec<usize>,
}

impl<'r> Partition<'r> {
    /// The partition that begins with a row of sorted ones.
    pub(super) async fn new(window: &Window, rows: &'r [Row], start: usize, turn: &mut Turn) -> Partition<'r> {
        let rows = rows.get(start..).unwrap_or_default();
        let (mut starts, mut groups) = (vec![0], vec![0]);
        let is_equal = |a: &Row, b: &Row, at: usize| key_order(&a[at], &b[at], false, false).is_eq();
        for (at, pair) in rows.windows(2).enumerate() {
            let [before, row] = pair else { break };
            if !window.partition.iter().all(|key| is_equal(before, row, *key)) {
                break;
            }
            if !window.order.iter().all(|key| is_equal(before, row, key.column)) {
                starts.push(at + 1);
            }
            groups.push(starts.len() - 1);
            turn.spend(ROW_UNITS).await;
        }
        Partition { rows: rows.get(..groups.len()).unwrap_or_default(), starts, groups }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// A value of a row.
    pub(super) fn value(&self, at: usize, column: usize) -> &Datum {
        self.rows.get(at).and_then(|row| row.get(column)).unwrap_or(&Datum::Null)
    }

    /// The group of a row.
    pub(super) fn group_of(&self, at: usize) -> usize {
        self.groups.get(at).copied().unwrap_or(0)
    }

    /// The first row of a group, and the one behind its last. Of one behind the last group, the end.
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        let start = |group: usize| self.starts.get(group).copied().unwrap_or(self.rows.len());
        (start(group), start(group.saturating_add(1)))
    }
}

/// The values of a frame's offsets.
pub(super) struct Offsets {
    start: Datum,
    end: Datum,
}

impl Offsets {
    /// Evaluates the offsets of a frame. 22004 for NULL, 22013 for one below zero.
    pub(super) fn of(frame: &Frame, env: &Env<'_>) -> Result<Offsets, SqlError> {
        let value = |bound: &FrameBound, name: &str| {
            let FrameBound::Offset { offset, .. } = bound else { return Ok(Datum::Null) };
            let value = eval(offset, &[], env)?.into_owned();
            if value.is_null() {
                let message = format!("frame {name} offset must not be null");
                return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
            }
            let is_negative = match &value {
                Datum::Int(value) => *value < 0,
                Datum::Float(value) => *value < 0.0 || value.is_nan(),
                Datum::Numeric(value) => value.signum().is_none_or(|sign| sign < 0),
                Datum::Interval(_) => compare(&value, &Datum::Interval(Interval::default())).is_lt(),
                _ => false,
            };
            if is_negative {
                let message = match frame.units {
                    FrameUnits::Range => "invalid preceding or following size in window function".to_owned(),
                    _ => format!("frame {name} offset must not be negative"),
                };
                return Err(SqlError::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message));
            }
            Ok(value)
        };
        Ok(Offsets { start: value(&frame.start, "starting")?, end: value(&frame.end, "ending")? })
    }
}

/// The frames of the rows of a partition, which are asked for in their order.
pub(super) struct Frames<'f> {
    frame: &'f Frame,
    offsets: &'f Offsets,
    partition: &'f Partition<'f>,
    /// The column of RANGE, and whether NULLs come first.
    key: Option<(usize, bool)>,
    /// Bounds by values move forward only.
    from: usize,
    to: usize,
}

impl<'f> Frames<'f> {
    /// The frames of a call.
    pub(super) fn new(
        frame: &'f Frame,
        offsets: &'f Offsets,
        window: &Window,
        partition: &'f Partition<'f>,
    ) -> Frames<'f> {
        let key = window.order.first().map(|key| (key.column, key.nulls_first));
        Frames { frame, offsets, partition, key, from: 0, to: 0 }
    }

    /// The first row of the frame of a row, and the one behind its last. The same if it has none.
    pub(super) fn bounds(&mut self, at: usize, env: &Env<'_>) -> Result<(usize, usize), SqlError> {
        let (group, last) = (self.partition.group_of(at), self.partition.len());
        let (first_peer, behind_peers) = self.partition.group(group);
        let frame = self.frame;
        let start = match (&frame.start, frame.units) {
            (FrameBound::Unbounded, _) => 0,
            (FrameBound::Current, FrameUnits::Rows) => at,
            (FrameBound::Current, _) => first_peer,
            (FrameBound::Offset { follows, .. }, FrameUnits::Rows) => moved(at, &self.offsets.start, *follows),
            (FrameBound::Offset { follows, .. }, FrameUnits::Groups) => {
                self.partition.group(moved(group, &self.offsets.start, *follows)).0
            }
            (FrameBound::Offset { range, .. }, FrameUnits::Range) => {
                self.from = self.bound_by_values((self.from, at), range.as_deref(), false, env)?;
                self.from
            }
        };
        let end = match (&frame.end, frame.units) {
            (FrameBound::Unbounded, _) => last,
            (FrameBound::Current, FrameUnits::Rows) => at + 1,
            (FrameBound::Current, _) => behind_peers,
            (FrameBound::Offset { follows, .. }, FrameUnits::Rows) => behind(at, &self.offsets.end, *follows),
            (FrameBound::Offset { follows, .. }, FrameUnits::Groups) => {
                match behind(group, &self.offsets.end, *follows).checked_sub(1) {
                    Some(group) => self.partition.group(group).1,
                    None => 0,
                }
            }
            (FrameBound::Offset { range, .. }, FrameUnits::Range) => {
                self.to = self.bound_by_values((self.to, at), range.as_deref(), true, env)?;
                self.to
            }
        };
        let end = end.min(last);
        Ok((start.min(end), end))
    }

    /// The first row from `from` on that is not before the bound by values of a frame's start, or that is behind the
    /// one of its end. NULLs are beside NULLs only.
    fn bound_by_values(
        &self,
        (from, at): (usize, usize),
        range: Option<&RangeBound>,
        is_end: bool,
        env: &Env<'_>,
    ) -> Result<usize, SqlError> {
        let (Some((column, nulls_first)), Some(range)) = (self.key, range) else { return Ok(at + usize::from(is_end)) };
        let current = self.partition.value(at, column);
        let offset = if is_end { &self.offsets.end } else { &self.offsets.start };
        let edge = edge_of(range, current, offset, env)?;
        // Which of NULLs and values come first.
        let rank = |value: &Datum| u8::from(value.is_null() != nulls_first);
        let mut place = from;
        while place < self.partition.len() {
            let value = self.partition.value(place, column);
            let stops = match (value.is_null() || current.is_null(), is_end) {
                (true, false) => rank(value) >= rank(current),
                (true, true) => rank(value) > rank(current),
                (false, is_end) => in_range(range, value, edge.as_ref(), env)? != is_end,
            };
            if stops {
                break;
            }
            place += 1;
        }
        Ok(place)
    }
}

/// So many rows, or groups, before or behind one.
fn moved(at: usize, offset: &Datum, follows: bool) -> usize {
    let offset = match offset {
        Datum::Int(offset) => usize::try_from(*offset).unwrap_or(0),
        _ => 0,
    };
    if follows { at.saturating_add(offset) } else { at.saturating_sub(offset) }
}

/// The one behind the last of a frame that ends so many rows, or groups, before or behind one. 0: it ends before the
/// first.
fn behind(at: usize, offset: &Datum, follows: bool) -> usize {
    moved(at.saturating_add(1), offset, follows)
}

/// The value at a bound; `None` if it is out of the range of its type, or there is none.
fn edge_of(range: &RangeBound, value: &Datum, offset: &Datum, env: &Env<'_>) -> Result<Option<Datum>, SqlError> {
    if value.is_null() {
        return Ok(None);
    }
    let row = [value.clone(), offset.clone()];
    match eval(&range.edge, &row, env) {
        Ok(edge) => Ok(Some(edge.into_owned())),
        Err(error)
            if matches!(error.code, SqlState::NUMERIC_VALUE_OUT_OF_RANGE | SqlState::DATETIME_FIELD_OVERFLOW) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn in_range(range: &RangeBound, value: &Datum, edge: Option<&Datum>, env: &Env<'_>) -> Result<bool, SqlError> {
    match edge {
        Some(edge) => is_true(&range.test, &[value.clone(), edge.clone()], env),
        None => Ok(range.beyond),
    }
}
