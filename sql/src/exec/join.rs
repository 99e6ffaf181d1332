//! Joins: over the rows of two inputs.
//!
//! A hash join keeps the right side by its keys, or the left one if that is smaller. A loop runs the right side for
//! each row of the left side.

use std::collections::{HashMap, VecDeque};

use super::budget::Budget;
use super::context::ExecContext;
use super::input::{BATCH, Input, ROW_UNITS};
use super::rows::{Row, equality_key, row_bytes};
use crate::coop::Turn;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval, qualifies};
use crate::plan::{Join, JoinMethod};
use pgtypes::Datum;

/// A running join.
pub(super) struct JoinRun {
    built: Option<Built>,
    out: VecDeque<Row>,
    is_left_at_end: bool,
    budget: Option<Budget>,
    turn: Turn,
}

/// The right side of a hash join.
#[derive(Default)]
struct Built {
    rows: Vec<Row>,
    by_key: HashMap<Vec<u8>, Vec<usize>>,
    /// Whether a row has found a partner.
    is_matched: Vec<bool>,
}

impl JoinRun {
    /// The state of a join before its first row.
    pub(super) fn new() -> JoinRun {
        JoinRun { built: None, out: VecDeque::new(), is_left_at_end: false, budget: None, turn: Turn::new() }
    }

    /// The next rows, at most `most`, and none only at the end.
    pub(super) async fn next<'i>(
        &mut self,
        join: &Join,
        (left, right): (&'i mut (dyn Input + 'i), &'i mut (dyn Input + 'i)),
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        // The side that runs once, and the other one.
        let is_reverse = join.builds_left || matches!(join.method, JoinMethod::Reverse(_));
        let (left, right) = if is_reverse { (right, left) } else { (left, right) };
        while self.out.len() < most && !self.is_left_at_end {
            if let JoinMethod::Hash(keys) = &join.method
                && self.built.is_none()
            {
                self.build((join, keys), right, ctx, frame).await?;
            }
            let batch = left.next(ctx, frame, BATCH.min(most)).await?;
            if batch.is_empty() {
                self.is_left_at_end = true;
                self.leftovers(join);
                break;
            }
            for row in batch {
                match &join.method {
                    JoinMethod::Hash(keys) => self.probe((join, keys), row, ctx, frame).await?,
                    JoinMethod::Loop(args) | JoinMethod::Reverse(args) => {
                        self.look_up((join, args), row, right, ctx, frame).await?
                    }
                }
            }
        }
        Ok(self.out.drain(..most.min(self.out.len())).collect())
    }

    /// Reads the side that is kept: the right one, unless the join says otherwise.
    async fn build(
        &mut self,
        (join, keys): (&Join, &[(Expr, Expr)]),
        right: &mut dyn Input,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
    ) -> Result<(), SqlError> {
        let mut built = Built::default();
        loop {
            let batch = right.next(ctx, frame, BATCH).await?;
            if batch.is_empty() {
                break;
            }
            let env = ctx.env(frame);
            for row in batch {
                self.turn.spend(ROW_UNITS).await;
                let kept = keys.iter().map(|(left, right)| if join.builds_left { left } else { right });
                let key = key_of(kept, &row, &env)?;
                let bytes = row_bytes(&row) + key.as_ref().map_or(0, |key| key.len() + size_of::<Vec<usize>>());
                self.budget.get_or_insert_with(|| Budget::of_work(ctx.session)).charge(bytes)?;
                if let Some(key) = key {
                    built.by_key.entry(key).or_default().push(built.rows.len());
                }
                built.rows.push(row);
            }
        }
        if join.kind.keeps_right() {
            built.is_matched = vec![false; built.rows.len()];
        }
        self.built = Some(built);
        Ok(())
    }

    /// Finds the partners of a row of the other side.
    async fn probe(
        &mut self,
        (join, keys): (&Join, &[(Expr, Expr)]),
        left: Row,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
    ) -> Result<(), SqlError> {
        let probed = keys.iter().map(|(left, right)| if join.builds_left { right } else { left });
        let key = key_of(probed, &left, &ctx.env(frame))?;
        let Some(built) = &mut self.built else { return Ok(()) };
        let places = key.and_then(|key| built.by_key.get(&key)).cloned().unwrap_or_default();
        let mut has_partner = false;
        for place in places {
            self.turn.spend(ROW_UNITS).await;
            let Some(right) = built.rows.get(place) else { continue };
            let row = if join.builds_left { joined(right, &left) } else { joined(&left, right) };
            if !holds(join.condition.as_ref(), &row, ctx, frame).await? {
                continue;
            }
            has_partner = true;
            if let Some(is_matched) = built.is_matched.get_mut(place) {
                *is_matched = true;
            }
            self.out.push_back(row);
        }
        if !has_partner && join.kind.keeps_left() {
            self.out.push_back(joined(&left, &vec![Datum::Null; join.right_width]));
        }
        self.turn.spend(ROW_UNITS).await;
        Ok(())
    }

    /// Runs the right side for a row of the left side; of a reverse loop, the left side for a row of the right one.
    async fn look_up(
        &mut self,
        (join, args): (&Join, &[Expr]),
        left: Row,
        right: &mut dyn Input,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
    ) -> Result<(), SqlError> {
        let env = ctx.env(frame);
        let mut inner = frame.get(..env.first_outer).unwrap_or(frame).to_vec();
        for arg in args {
            inner.push(eval(arg, &left, &env)?.into_owned());
        }
        right.restart();
        let is_reverse = matches!(join.method, JoinMethod::Reverse(_));
        let mut has_partner = false;
        loop {
            let batch = right.next(ctx, &inner, BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for partner in batch {
                self.turn.spend(ROW_UNITS).await;
                let row = if is_reverse { joined(&partner, &left) } else { joined(&left, &partner) };
                if holds(join.condition.as_ref(), &row, ctx, frame).await? {
                    has_partner = true;
                    self.out.push_back(row);
                }
            }
        }
        if !has_partner && join.kind.keeps_left() {
            self.out.push_back(joined(&left, &vec![Datum::Null; join.right_width]));
        }
        self.turn.spend(ROW_UNITS).await;
        Ok(())
    }

    /// The rows of the right side without a partner.
    fn leftovers(&mut self, join: &Join) {
        let Some(built) = &mut self.built else { return };
        let nothing = vec![Datum::Null; join.left_width];
        let unmatched = built.rows.iter().zip(&built.is_matched).filter(|(_, is_matched)| !**is_matched);
        self.out.extend(unmatched.map(|(right, _)| joined(&nothing, right)));
    }
}

fn joined(left: &Row, right: &Row) -> Row {
    let mut row = Vec::with_capacity(left.len() + right.len());
    row.extend_from_slice(left);
    row.extend_from_slice(right);
    row
}

/// The key of a row; `None` if a part is NULL, which equals nothing.
fn key_of<'e>(exprs: impl Iterator<Item = &'e Expr>, row: &Row, env: &Env<'_>) -> Result<Option<Vec<u8>>, SqlError> {
    let values = exprs.map(|expr| Ok(eval(expr, row, env)?.into_owned())).collect::<Result<Vec<Datum>, SqlError>>()?;
    if values.iter().any(Datum::is_null) {
        return Ok(None);
    }
    equality_key(&values).map(Some)
}

/// Whether a joined row satisfies the condition.
async fn holds(
    condition: Option<&Expr>,
    row: &Row,
    ctx: &mut ExecContext<'_>,
    frame: &[Datum],
) -> Result<bool, SqlError> {
    let Some(condition) = condition else { return Ok(true) };
    if ctx.rehearses() && (condition.has_subquery() || condition.takes_locks()) {
        ctx.rehearse(frame, |env| qualifies(condition, row, env).map(drop)).await?;
    }
    qualifies(condition, row, &ctx.env(frame))
}
