//! Rows of functions, in FROM and in select lists.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::context::ExecContext;
use super::input::{BATCH, Input, ROW_UNITS};
use super::rows::Row;
use crate::coop::Turn;
use crate::error::SqlError;
use crate::expr::eval::{Env, eval};
use crate::expr::system_env;
use crate::plan::{FunctionScan, SetCall, SetValues};
use crate::system::{self, Rows};
use pgtypes::functions::{Args, Run, SetRows};
use pgtypes::{Datum, Record, SqlType};

/// The rows of a call, as they come.
enum CallRows {
    /// Of a function that returns a set.
    Set(SetRows),
    /// Of one of the system catalog.
    System(Rows),
    /// Rows that are one value each, with the types of their fields.
    Records(Box<CallRows>, Vec<SqlType>),
    /// The one row that is left of another expression.
    One(Option<Datum>),
}

impl CallRows {
    /// Begins a call over a row. `is_inner`: its rows stay as they are.
    fn begin(call: &SetCall, row: &[Datum], env: &Env<'_>, is_inner: bool) -> Result<CallRows, SqlError> {
        match call {
            SetCall::One(expr) => Ok(CallRows::One(Some(eval(expr, row, env)?.into_owned()))),
            SetCall::Set { fields: Some(fields), .. } if !is_inner => {
                Ok(CallRows::Records(Box::new(CallRows::begin(call, row, env, true)?), fields.clone()))
            }
            SetCall::Set { function, args, types, result, .. } => {
                let values = args.iter().map(|arg| eval(arg, row, env)).collect::<Result<Vec<Cow<'_, Datum>>, _>>()?;
                let args = Args::new(&values, types, *result, &env.io);
                if function.is_strict && args.any_null() {
                    return Ok(CallRows::One(None));
                }
                match function.run {
                    Run::Set(begin) => Ok(CallRows::Set(begin(&args)?)),
                    Run::SessionSet => {
                        let values: Vec<&Datum> = values.iter().map(|value| &**value).collect();
                        let env = system_env(env.session, &env.io)?;
                        Ok(CallRows::System(system::set(function, &values, &env)?))
                    }
                    _ => Err(SqlError::internal("a function does not return a set")),
                }
            }
        }
    }

    /// The next row; `None` at the end.
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        match self {
            CallRows::Set(rows) => Ok(rows.next().transpose()?),
            CallRows::System(rows) => Ok(rows.next()),
            CallRows::Records(rows, fields) => Ok(rows.next()?.map(|row| {
                let record = Record::new(fields.iter().copied().zip(row).collect());
                vec![Datum::Record(Box::new(record))]
            })),
            CallRows::One(value) => Ok(value.take().map(|value| vec![value])),
        }
    }
}

/// A running function.
pub(super) struct FunctionRun {
    rows: Option<CallRows>,
    given: i64,
    turn: Turn,
}

/// Running functions over rows.
pub(super) struct SetValuesRun {
    waiting: VecDeque<Row>,
    current: Option<(Row, Vec<CallRows>)>,
    /// The rows that the functions over the current one have given.
    given: i64,
    turn: Turn,
}

impl FunctionRun {
    /// The state of a function before its first row.
    pub(super) fn new() -> FunctionRun {
        FunctionRun { rows: None, given: 0, turn: Turn::new() }
    }

    /// The next rows, at most `most`, and none only at the end.
    pub(super) async fn next(
        &mut self,
        scan: &FunctionScan,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        if self.rows.is_none() {
            if ctx.rehearses() {
                let args = |env: &Env<'_>| scan.call.args().iter().try_for_each(|arg| eval(arg, &[], env).map(drop));
                ctx.rehearse(frame, args).await?;
            }
            self.rows = Some(CallRows::begin(&scan.call, &[], &ctx.env(frame), false)?);
        }
        let mut out = Vec::new();
        let Some(rows) = &mut self.rows else { return Ok(out) };
        while out.len() < most {
            let Some(mut row) = rows.next()? else { break };
            self.given += 1;
            if scan.ordinality {
                row.push(Datum::Int(self.given));
            }
            out.push(row);
            self.turn.spend(ROW_UNITS).await;
        }
        Ok(out)
    }
}

impl SetValuesRun {
    /// The state of functions over rows before the first one.
    pub(super) fn new() -> SetValuesRun {
        SetValuesRun { waiting: VecDeque::new(), current: None, given: 0, turn: Turn::new() }
    }

    /// The next rows, at most `most`, and none only at the end.
    pub(super) async fn next(
        &mut self,
        values: &SetValues,
        input: &mut dyn Input,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        let mut out = Vec::new();
        while out.len() < most {
            self.turn.spend(ROW_UNITS).await;
            if let Some((row, calls)) = &mut self.current {
                match advance(row, calls)? {
                    Some(mut row) => {
                        self.given += 1;
                        if values.ordinality {
                            row.push(Datum::Int(self.given));
                        }
                        out.push(row);
                    }
                    None => self.current = None,
                }
                continue;
            }
            if self.waiting.is_empty() {
                self.waiting = input.next(ctx, frame, BATCH).await?.into();
            }
            let Some(row) = self.waiting.pop_front() else { break };
            if ctx.rehearses() {
                let args = |env: &Env<'_>| {
                    let mut args = values.calls.iter().flat_map(|call| call.args());
                    args.try_for_each(|arg| eval(arg, &row, env).map(drop))
                };
                ctx.rehearse(frame, args).await?;
            }
            let env = ctx.env(frame);
            let calls = values.calls.iter().map(|call| CallRows::begin(call, &row, &env, false));
            let calls = calls.collect::<Result<Vec<_>, SqlError>>()?;
            (self.current, self.given) = (Some((row, calls)), 0);
        }
        Ok(out)
    }
}

/// The next row of several calls; `None` when all have ended.
fn advance(row: &Row, calls: &mut [CallRows]) -> Result<Option<Row>, SqlError> {
    let mut out = row.clone();
    let mut is_any = false;
    for call in calls {
        match call.next()? {
            Some(values) => {
                is_any = true;
                out.extend(values);
            }
            None => out.push(Datum::Null),
        }
    }
    Ok(is_any.then_some(out))
}
