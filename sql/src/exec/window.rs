//! Window functions: for each window, sorts all rows of the input, walks its partitions, and appends a value of each
//! call to each row.
//!
//! All rows are kept, within `work_mem`. A frame that only grows at its end, as most do, continues the state of its
//! aggregate; any other frame is aggregated from its first row on. [`frame`] says which rows a frame has.
//!
//! [`frame`]: super::frame

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::aggregate::Accumulator;
use super::budget::Budget;
use super::context::ExecContext;
use super::frame::{Frames, Offsets, Partition};
use super::input::{BATCH, Input, ROW_UNITS};
use super::rows::{Row, key_order, row_bytes};
use crate::coop::{MANY, Turn, drop_elsewhere, on_other_thread};
use crate::error::{SqlError, SqlState};
use crate::expr::eval::{Env, eval};
use crate::plan::{AggregateCall, Window, WindowCall, WindowFunction, Windows};
use pgtypes::Datum;
use pgtypes::functions::WindowFn;

/// A running node of window functions.
pub(super) struct WindowRun {
    /// The rows with their values, once they are computed.
    rows: Option<VecDeque<Row>>,
    turn: Turn,
}

/// What the computation of values uses.
struct Work<'w> {
    env: &'w Env<'w>,
    budget: &'w mut Budget,
    turn: &'w mut Turn,
}

impl Work<'_> {
    /// Adds a value to those of a call. The row has its place already.
    async fn keep(&mut self, values: &mut Vec<Datum>, value: Datum) -> Result<(), SqlError> {
        self.budget.charge(value.memory() - size_of::<Datum>())?;
        values.push(value);
        self.turn.spend(ROW_UNITS).await;
        Ok(())
    }
}

impl Drop for WindowRun {
    /// A query that ends early leaves rows behind.
    fn drop(&mut self) {
        if let Some(rows) = self.rows.take().filter(|rows| rows.len() > MANY) {
            drop_elsewhere(rows);
        }
    }
}

impl WindowRun {
    /// The state of the node before its first row.
    pub(super) fn new() -> WindowRun {
        WindowRun { rows: None, turn: Turn::new() }
    }

    /// The next rows, at most `most`, and none only at the end.
    pub(super) async fn next(
        &mut self,
        windows: &Windows,
        input: &mut dyn Input,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        if self.rows.is_none() {
            self.rows = Some(self.compute(windows, input, ctx, frame).await?.into());
        }
        let Some(rows) = &mut self.rows else { return Ok(Vec::new()) };
        let count = most.min(rows.len());
        Ok(rows.drain(..count).collect())
    }

    async fn compute(
        &mut self,
        windows: &Windows,
        input: &mut dyn Input,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
    ) -> Result<Vec<Row>, SqlError> {
        let mut budget = Budget::of_work(ctx.session);
        let (mut rows, values): (Vec<Row>, usize) = (Vec::new(), windows.values());
        loop {
            let batch = input.next(ctx, frame, BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for mut row in batch {
                row.resize(windows.width + values, Datum::Null);
                budget.charge(row_bytes(&row))?;
                rows.push(row);
                self.turn.spend(ROW_UNITS).await;
            }
        }
        if rows.is_empty() {
            return Ok(rows);
        }
        if ctx.rehearses() {
            ctx.rehearse(frame, |env| windows.offsets().try_for_each(|offset| eval(offset, &[], env).map(drop)))
                .await?;
        }
        let env = ctx.env(frame);
        let mut work = Work { env: &env, budget: &mut budget, turn: &mut self.turn };
        for window in &windows.windows {
            rows = sorted(window, rows).await?;
            let offsets = window.calls.iter().map(|call| Offsets::of(&call.frame, work.env));
            let offsets = offsets.collect::<Result<Vec<Offsets>, SqlError>>()?;
            let mut start = 0;
            while start < rows.len() {
                let partition = Partition::new(window, &rows, start, work.turn).await;
                let mut columns = Vec::with_capacity(window.calls.len());
                for (call, offsets) in window.calls.iter().zip(&offsets) {
                    let values = values_of(call, window, &partition, offsets, &mut work).await?;
                    columns.push((windows.width + call.place, values));
                }
                let end = start + partition.len();
                for (place, values) in columns {
                    for (row, value) in rows.get_mut(start..end).unwrap_or_default().iter_mut().zip(values) {
                        row[place] = value;
                        work.turn.spend(1).await;
                    }
                }
                start = end;
            }
        }
        Ok(rows)
    }
}

/// Rows in the order of a window. Many are sorted on another thread.
async fn sorted(window: &Window, mut rows: Vec<Row>) -> Result<Vec<Row>, SqlError> {
    if window.partition.is_empty() && window.order.is_empty() {
        return Ok(rows);
    }
    let (partition, order) = (window.partition.clone(), window.order.clone());
    let compare = move |a: &Row, b: &Row| {
        let keys = partition.iter().map(|at| key_order(&a[*at], &b[*at], false, false));
        let order = order.iter().map(|key| key_order(&a[key.column], &b[key.column], key.descending, key.nulls_first));
        keys.chain(order).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    if rows.len() <= MANY {
        rows.sort_by(compare);
        return Ok(rows);
    }
    on_other_thread(move || {
        rows.sort_by(compare);
        rows
    })
    .await
}

/// The values of a call for the rows of a partition.
async fn values_of(
    call: &WindowCall,
    window: &Window,
    partition: &Partition<'_>,
    offsets: &Offsets,
    work: &mut Work<'_>,
) -> Result<Vec<Datum>, SqlError> {
    let frames = Frames::new(&call.frame, offsets, window, partition);
    match &call.function {
        WindowFunction::Aggregate(aggregate) => aggregated(aggregate, frames, partition, work).await,
        WindowFunction::Own(WindowFn::Ntile, args) => tiles(args, partition, work).await,
        WindowFunction::Own(function, args) => {
            let mut frames = frames;
            let mut values = Vec::with_capacity(partition.len());
            for at in 0..partition.len() {
                let value = match function {
                    WindowFn::Lag | WindowFn::Lead => shifted(*function, args, partition, at),
                    WindowFn::FirstValue | WindowFn::LastValue | WindowFn::NthValue => {
                        let (start, end) = frames.bounds(at, work.env)?;
                        framed(*function, args, partition, at, (start, end))?
                    }
                    _ => ranked(*function, partition, at),
                };
                work.keep(&mut values, value).await?;
            }
            Ok(values)
        }
    }
}

/// The values of an aggregate over the frames of all rows.
async fn aggregated(
    call: &AggregateCall,
    mut frames: Frames<'_>,
    partition: &Partition<'_>,
    work: &mut Work<'_>,
) -> Result<Vec<Datum>, SqlError> {
    let mut values: Vec<Datum> = Vec::with_capacity(partition.len());
    let mut last: Option<(usize, usize)> = None;
    let (mut state, mut budget) = (Accumulator::new(call), Budget::of_work(work.env.session));
    for at in 0..partition.len() {
        let (start, end) = frames.bounds(at, work.env)?;
        if let (Some(known), Some(value)) = (last, values.last())
            && known == (start, end)
        {
            let value = value.clone();
            work.keep(&mut values, value).await?;
            continue;
        }
        let first = match last {
            Some((before, to)) if before == start && to <= end && state.is_lasting() => to,
            _ => {
                (state, budget) = (Accumulator::new(call), Budget::of_work(work.env.session));
                start
            }
        };
        for row in partition.rows.get(first..end).unwrap_or_default() {
            state.add(call, row, work.env, &mut budget)?;
            work.turn.spend(ROW_UNITS).await;
        }
        let value = state.finish(call, &[], work.env, &mut budget)?;
        work.keep(&mut values, value).await?;
        last = Some((start, end));
    }
    Ok(values)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "as PostgreSQL computes it")]
fn fraction(part: usize, whole: usize) -> Datum {
    Datum::Float(part as f64 / whole as f64)
}

/// The functions of a row's place.
fn ranked(function: WindowFn, partition: &Partition<'_>, at: usize) -> Datum {
    let group = partition.group_of(at);
    let (first, behind) = partition.group(group);
    match function {
        WindowFn::RowNumber => Datum::Int(count(at + 1)),
        WindowFn::Rank => Datum::Int(count(first + 1)),
        WindowFn::DenseRank => Datum::Int(count(group + 1)),
        WindowFn::PercentRank if partition.len() == 1 => Datum::Float(0.0),
        WindowFn::PercentRank => fraction(first, partition.len() - 1),
        _ => fraction(behind, partition.len()),
    }
}

/// `lag` and `lead`: a value of another row of the partition.
fn shifted(function: WindowFn, args: &[usize], partition: &Partition<'_>, at: usize) -> Datum {
    let offset = match args.get(1) {
        None => 1,
        Some(column) => match partition.value(at, *column) {
            Datum::Int(offset) => *offset,
            _ => return Datum::Null,
        },
    };
    let place = if function == WindowFn::Lag { count(at) - offset } else { count(at) + offset };
    let place = usize::try_from(place).ok().filter(|place| *place < partition.len());
    match (place, args) {
        (Some(place), [value, ..]) => partition.value(place, *value).clone(),
        (None, [_, _, default]) => partition.value(at, *default).clone(),
        _ => Datum::Null,
    }
}

/// The functions of a row of the frame.
fn framed(
    function: WindowFn,
    args: &[usize],
    partition: &Partition<'_>,
    at: usize,
    (start, end): (usize, usize),
) -> Result<Datum, SqlError> {
    let place = match (function, args) {
        (WindowFn::FirstValue, _) => Some(start),
        (WindowFn::LastValue, _) => end.checked_sub(1),
        (_, [_, number, ..]) => match partition.value(at, *number) {
            Datum::Int(number) => {
                let number = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                let number = number.ok_or_else(|| {
                    let message = "argument of nth_value must be greater than zero";
                    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE, message)
                })?;
                start.checked_add(number)
            }
            _ => None,
        },
        _ => None,
    };
    let place = place.filter(|place| (start..end).contains(place));
    Ok(match (place, args) {
        (Some(place), [value, ..]) => partition.value(place, *value).clone(),
        _ => Datum::Null,
    })
}

/// `ntile`: the rows in so many parts, of which the first ones have a row more if they cannot be equal.
async fn tiles(args: &[usize], partition: &Partition<'_>, work: &mut Work<'_>) -> Result<Vec<Datum>, SqlError> {
    let mut values = Vec::with_capacity(partition.len());
    // The rows of a part, how many parts have one more, the current part, and its rows so far.
    let mut parts: Option<(usize, usize, usize, usize)> = None;
    for at in 0..partition.len() {
        let Some((size, larger, part, taken)) = &mut parts else {
            let number = args.first().map_or(&Datum::Null, |column| partition.value(at, *column));
            let Datum::Int(number) = number else {
                work.keep(&mut values, Datum::Null).await?;
                continue;
            };
            let number = usize::try_from(*number).ok().filter(|number| *number > 0).ok_or_else(|| {
                let message = "argument of ntile must be greater than zero";
                SqlError::new(SqlState::INVALID_ARGUMENT_FOR_NTILE, message)
            })?;
            parts = Some((partition.len() / number, partition.len() % number, 1, 1));
            work.keep(&mut values, Datum::Int(1)).await?;
            continue;
        };
        let room = *size + usize::from(*part <= *larger);
        if *taken < room.max(1) {
            *taken += 1;
        } else {
            (*part, *taken) = (*part + 1, 1);
        }
        let part = count(*part);
        work.keep(&mut values, Datum::Int(part)).await?;
    }
    Ok(values)
}
