//! UNION, INTERSECT, EXCEPT over the rows of two inputs. Rows are equal if all values are, NULLs among them.

use std::collections::HashMap;

use super::budget::Budget;
use super::context::ExecContext;
use super::input::{BATCH, Input, ROW_UNITS};
use super::rows::{Row, distinct_key};
use crate::coop::Turn;
use crate::error::SqlError;
use crate::plan::{SetKind, SetOperation};
use pgtypes::Datum;

/// A running set operation.
pub(super) struct SetRun {
    is_left_at_end: bool,
    /// How often a row of the right side may still be matched, or has been given.
    counts: Option<HashMap<Vec<u8>, usize>>,
    budget: Option<Budget>,
    turn: Turn,
}

impl SetRun {
    /// The state of a set operation before its first row.
    pub(super) fn new() -> SetRun {
        SetRun { is_left_at_end: false, counts: None, budget: None, turn: Turn::new() }
    }

    /// The next rows, at most `most`, and none only at the end.
    pub(super) async fn next(
        &mut self,
        set: &SetOperation,
        (left, right): (&mut dyn Input, &mut dyn Input),
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        self.budget.get_or_insert_with(|| Budget::of_work(ctx.session));
        if set.kind != SetKind::Union && self.counts.is_none() {
            self.count_right(right, ctx, frame).await?;
        }
        let mut out = Vec::new();
        while out.is_empty() {
            let batch = if self.is_left_at_end {
                match set.kind {
                    SetKind::Union => right.next(ctx, frame, most).await?,
                    _ => Vec::new(),
                }
            } else {
                left.next(ctx, frame, most).await?
            };
            if batch.is_empty() {
                if self.is_left_at_end || set.kind != SetKind::Union {
                    break;
                }
                self.is_left_at_end = true;
                continue;
            }
            for row in batch {
                self.turn.spend(ROW_UNITS).await;
                if self.passes(set, &row)? {
                    out.push(row);
                }
            }
        }
        Ok(out)
    }

    async fn count_right(
        &mut self,
        right: &mut dyn Input,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
    ) -> Result<(), SqlError> {
        let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
        loop {
            let batch = right.next(ctx, frame, BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for row in batch {
                self.turn.spend(ROW_UNITS).await;
                let key = distinct_key(&row)?;
                let bytes = key.len() + size_of::<(Vec<u8>, usize)>();
                let count = counts.entry(key).or_default();
                if *count == 0 {
                    charge(&mut self.budget, bytes)?;
                }
                *count += 1;
            }
        }
        self.counts = Some(counts);
        Ok(())
    }

    /// Whether a row is one of the result.
    fn passes(&mut self, set: &SetOperation, row: &Row) -> Result<bool, SqlError> {
        if set.kind == SetKind::Union && set.all {
            return Ok(true);
        }
        let key = distinct_key(row)?;
        let bytes = key.len() + size_of::<(Vec<u8>, usize)>();
        let counts = self.counts.get_or_insert_default();
        Ok(match (set.kind, set.all) {
            (SetKind::Union, _) => {
                let is_new = counts.insert(key, 1).is_none();
                if is_new {
                    charge(&mut self.budget, bytes)?;
                }
                is_new
            }
            // Each row of the right side has one partner.
            (SetKind::Intersect, true) => match counts.get_mut(&key) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    true
                }
                _ => false,
            },
            (SetKind::Intersect, false) => match counts.get_mut(&key) {
                Some(left) if *left > 0 => {
                    *left = 0;
                    true
                }
                _ => false,
            },
            (SetKind::Except, true) => match counts.get_mut(&key) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    false
                }
                _ => true,
            },
            (SetKind::Except, false) => {
                // A row that was given is not given again.
                let is_new = !counts.contains_key(&key);
                if is_new {
                    charge(&mut self.budget, bytes)?;
                    counts.insert(key, 1);
                }
                is_new
            }
        })
    }
}

/// Charges bytes to the account, which the first call of [`SetRun::next`] opens.
fn charge(budget: &mut Option<Budget>, bytes: usize) -> Result<(), SqlError> {
    budget.as_mut().map_or(Ok(()), |budget| budget.charge(bytes))
}
