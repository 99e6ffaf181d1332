//! Cursors: DECLARE, FETCH and MOVE, CLOSE, and what the end of a transaction does to them.
//!
//! A cursor is a portal. FETCH reads the portals of the protocol too, forward only, and Execute reads on in a cursor.
//! Its query runs as far as rows were asked for; its snapshot is that of DECLARE, and it sees no later write of its
//! transaction. WITH HOLD reads the rest of the rows before the commit. A cursor whose FETCH has failed is useless, but
//! keeps its name until it is closed.

use std::sync::Arc;

use super::fault::Fault;
use super::nested::{Declare, Direction, Fetch};
use super::rows::{Formats, put_row};
use super::scroll::{KEPT_BYTES, Keep, ScrollRows, Step, row_bytes};
use super::state::Session;
use super::statement::{Action, BoundStatement, Call, Cursor, Hold, Listing, Portal, unknown_cursor};
use super::txn_state::Block;
use crate::catalog::Catalog;
use crate::coop::Turn;
use crate::error::{SqlError, SqlState};
use crate::exec::Row;
use crate::metrics::StatementKind;
use crate::protocol::output::Output;
use pgtypes::{Datum, DatumRef, Names, NoNames};

/// Rows that are read or sent at a time.
const BATCH_ROWS: u64 = 128;

/// Where the rows of a FETCH go.
pub(crate) enum Target<'a> {
    /// To the client.
    Client(&'a Formats),
    /// Into memory.
    Memory(&'a mut Collected),
}

/// Rows of a FETCH in memory.
#[derive(Default)]
pub(crate) struct Collected {
    rows: Vec<Row>,
    bytes: usize,
}

impl Collected {
    /// Adds a row. 53200 if they are too large.
    fn push(&mut self, row: &Row) -> Result<(), SqlError> {
        self.bytes += row_bytes(row);
        if self.bytes > KEPT_BYTES {
            let detail = format!("The result of FETCH needs more than {} MiB.", KEPT_BYTES >> 20);
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(detail));
        }
        self.rows.push(row.clone());
        Ok(())
    }
}

impl Session {
    /// DECLARE. `call`: the query with its parameters.
    pub(crate) async fn declare(&mut self, declare: &Declare, call: Call) -> Result<(), Fault> {
        self.state.check_not_failed()?;
        if let Some(clash) = &declare.clash {
            return Err((**clash).clone().into());
        }
        // Others may follow in its transaction, and share it.
        self.is_alone = false;
        let bound = self.plan(&call.query, Some(&call.bound.params), Some(&call.bound)).await?;
        check_lock(declare, &bound)?;
        if !declare.hold && self.state.block() != Block::Explicit && !self.in_string {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message).into());
        }
        if self.portals.get(&declare.name).is_some() {
            return Err(duplicate_cursor(&declare.name).into());
        }
        let bytes = call.params.iter().map(Datum::memory).sum::<usize>().saturating_add(declare.text.len());
        self.portals.check_capacity(&declare.name, bytes)?;
        let keep = match declare.scroll {
            _ if bound.plan.writes => Keep::Nothing,
            Some(true) => Keep::All,
            Some(false) => Keep::Nothing,
            None => Keep::Window,
        };
        let mut run = self.start(Call { bound: bound.clone(), ..call }, false).await?;
        if let Some(active) = &mut self.active
            && active.floor.is_none()
        {
            let take = async { Ok::<_, Fault>(active.txn.take_read_ts().await?) };
            self.interrupt.guard(self.deadline, take).await?;
            active.check(&self.node.catalog)?;
            run.snapshot = active.txn.statement();
        }
        let cursor = Cursor {
            name: declare.name.clone(),
            bound,
            run: Some(Box::new(run)),
            rows: ScrollRows::new(keep),
            binary: declare.binary,
            hold: if declare.hold { Hold::Asked } else { Hold::No },
            failed: false,
        };
        let action = Action::Cursor(Box::new(cursor));
        let portal = Portal {
            level: self.savepoints.len(),
            text: declare.text.as_str().into(),
            created: (self.node.wall_clock)(),
            ..Portal::new(action, Formats::TEXT, self.char_offset)
        };
        self.portals.insert(declare.name.clone(), portal, bytes);
        Ok(())
    }

    /// FETCH or MOVE. Returns the number of rows of the tag.
    pub(crate) async fn fetch(
        &mut self,
        fetch: &Fetch,
        mut target: Target<'_>,
        out: &mut Output,
    ) -> Result<u64, Fault> {
        self.state.check_not_failed()?;
        self.node.metrics.statement(StatementKind::Other);
        let Some(mut portal) = self.portals.take(&fetch.name) else {
            return Err(unknown_cursor(&fetch.name).into());
        };
        let fetched = match self.open_cursor(&fetch.name, &mut portal.value, out).await {
            Ok(()) => self.fetch_from(fetch, &mut portal.value, &mut target, out).await,
            Err(fault) => Err(fault),
        };
        self.portals.put_back(fetch.name.clone(), portal);
        fetched
    }

    /// Execute of a cursor: fetches up to `limit` rows (0: all). Returns their number, and whether it is at its end.
    pub(crate) async fn continue_cursor(
        &mut self,
        portal: &mut Portal,
        limit: usize,
        out: &mut Output,
    ) -> Result<(u64, bool), Fault> {
        self.state.check_not_failed()?;
        let count = if limit == 0 { None } else { Some(i64::try_from(limit).unwrap_or(i64::MAX)) };
        let fetch = Fetch { name: String::new(), direction: Direction::Forward(count), moves: false };
        let formats = portal.formats.clone();
        let sent = self.fetch_from(&fetch, portal, &mut Target::Client(&formats), out).await?;
        Ok((sent, limit == 0 || sent < limit as u64))
    }

    /// The rows of a FETCH, in memory.
    pub(crate) async fn fetch_listing(&mut self, fetch: &Fetch, out: &mut Output) -> Result<Listing, Fault> {
        let columns = self.cursor_columns(&fetch.name).unwrap_or_default();
        let mut fetched = Collected::default();
        self.fetch(fetch, Target::Memory(&mut fetched), out).await?;
        Ok(Listing { columns, rows: fetched.rows.into_iter(), is_fetch: true })
    }

    /// Makes a cursor of a portal. 55000 if it has no rows.
    async fn open_cursor(&mut self, name: &str, portal: &mut Portal, out: &mut Output) -> Result<(), Fault> {
        let run = match std::mem::replace(&mut portal.action, Action::Done) {
            Action::Call(call) if call.bound.plan.columns.is_some() && call.bound.copy.is_none() => {
                let bound = self.plan(&call.query, Some(&call.bound.params), Some(&call.bound)).await?;
                let mut run = self.start(Call { bound, ..*call }, false).await?;
                if let Some(view) = portal.view.take() {
                    run.execution.freeze(|| view);
                }
                Box::new(run)
            }
            Action::Run(run) => run,
            cursor @ Action::Cursor(_) => {
                portal.action = cursor;
                return Ok(());
            }
            other => {
                portal.action = other;
                return Err(unusable(name).into());
            }
        };
        let bound = run.bound.clone();
        let finished = run.finished;
        let mut cursor = Cursor {
            name: name.to_owned(),
            bound,
            run: Some(run),
            rows: ScrollRows::new(Keep::Nothing),
            binary: false,
            hold: Hold::No,
            failed: false,
        };
        if finished {
            cursor.run = None;
            cursor.rows.pass_end();
        }
        portal.action = Action::Cursor(Box::new(cursor));
        // Warnings of the start come before the rows.
        if out.is_full() { self.write_pending(out).await } else { Ok(()) }
    }

    async fn fetch_from(
        &mut self,
        fetch: &Fetch,
        portal: &mut Portal,
        target: &mut Target<'_>,
        out: &mut Output,
    ) -> Result<u64, Fault> {
        let Some(cursor) = portal.cursor_mut() else { return Err(unusable(&fetch.name).into()) };
        if cursor.failed {
            return Err(unusable(&cursor.name).into());
        }
        let fetched = self.run_steps(fetch, cursor, target, out).await;
        cursor.failed = fetched.is_err();
        fetched
    }

    async fn run_steps(
        &mut self,
        fetch: &Fetch,
        cursor: &mut Cursor,
        target: &mut Target<'_>,
        out: &mut Output,
    ) -> Result<u64, Fault> {
        // The current row, if there is no step.
        let mut passed = 1;
        for step in cursor.rows.steps(fetch.direction, fetch.moves) {
            passed = match step {
                Step::Rewind => {
                    cursor.rows.check_backward()?;
                    cursor.rows.rewind();
                    0
                }
                Step::Forward { count, sent } => self.pass(cursor, true, count, (target, sent), out).await?,
                Step::Backward { count, sent } => {
                    cursor.rows.check_backward()?;
                    self.pass(cursor, false, count, (target, sent), out).await?
                }
            };
        }
        Ok(passed)
    }

    /// Passes up to `count` rows in one direction. Returns their number.
    async fn pass(
        &mut self,
        cursor: &mut Cursor,
        is_forward: bool,
        count: Option<u64>,
        (target, sent): (&mut Target<'_>, bool),
        out: &mut Output,
    ) -> Result<u64, Fault> {
        let mut turn = Turn::new();
        let width = 1 + cursor.bound.plan.columns.as_ref().map_or(0, Vec::len);
        let mut passed = 0;
        while count.is_none_or(|count| passed < count) {
            let left = count.map_or(BATCH_ROWS, |count| (count - passed).min(BATCH_ROWS));
            if is_forward && cursor.rows.unread() == 0 {
                if cursor.run.is_none() {
                    cursor.rows.pass_end();
                    break;
                }
                Box::pin(self.read_rows(cursor, left, out)).await?;
                continue;
            }
            let catalog = self.shown_catalog();
            let batch = self.put_rows(cursor, (is_forward, left), (target, sent), catalog.as_deref(), out)?;
            passed += batch;
            if !is_forward && batch < left {
                break;
            }
            if out.is_full() {
                self.write_pending(out).await?;
            }
            self.interrupt.check()?;
            self.check_timeout()?;
            turn.spend(usize::try_from(batch).unwrap_or(0) * width).await;
        }
        Ok(passed)
    }

    /// Passes up to `count` rows in memory. Returns their number.
    fn put_rows(
        &self,
        cursor: &mut Cursor,
        (is_forward, count): (bool, u64),
        (target, sent): (&mut Target<'_>, bool),
        catalog: Option<&Catalog>,
        out: &mut Output,
    ) -> Result<u64, SqlError> {
        let names: &dyn Names = catalog.map_or(&NoNames, |catalog| catalog);
        let io = self.settings.io(self.now, names);
        let columns = cursor.bound.plan.columns.as_deref().unwrap_or_default();
        for passed in 0..count {
            let row = if is_forward { cursor.rows.forward() } else { cursor.rows.backward() };
            let Some(row) = row else { return Ok(passed) };
            if !sent {
                continue;
            }
            match target {
                Target::Client(formats) => {
                    let values: Vec<DatumRef<'_>> = row.iter().map(Datum::borrow).collect();
                    put_row(out.buffer(), &values, columns, formats, &io)?;
                }
                Target::Memory(fetched) => fetched.push(row)?,
            }
        }
        Ok(count)
    }

    /// Reads up to `wanted` rows of a cursor's query.
    async fn read_rows(&mut self, cursor: &mut Cursor, wanted: u64, out: &mut Output) -> Result<(), Fault> {
        let Cursor { run: source, rows, .. } = cursor;
        let Some(run) = source else { return Ok(()) };
        let others: usize = self.portals.iter().map(|(_, portal)| portal.kept_bytes()).sum();
        let wanted = usize::try_from(wanted.min(rows.batch())).unwrap_or(1);
        let mut keep = |row| rows.push(row, KEPT_BYTES.saturating_sub(others));
        let count = self.next_rows(run, wanted, Some(&mut keep), out).await?;
        if count < wanted {
            run.finished = true;
            self.send_notices(run, out)?;
            *source = None;
        }
        Ok(())
    }

    /// Before the commit: reads the rest of the rows of cursors WITH HOLD.
    pub(crate) async fn hold_cursors(&mut self, out: &mut Output) -> Result<(), Fault> {
        let asked = |p: &Portal| p.cursor().is_some_and(|cursor| cursor.hold == Hold::Asked && !cursor.failed);
        let names: Vec<String> = self.portals.iter().filter(|(_, p)| asked(p)).map(|(n, _)| n.to_owned()).collect();
        for name in names {
            let Some(mut portal) = self.portals.take(&name) else { continue };
            let Some(cursor) = portal.value.cursor_mut() else { continue };
            while cursor.run.is_some() {
                self.read_rows(cursor, BATCH_ROWS, out).await?;
            }
            cursor.hold = Hold::Ready;
            self.portals.put_back(name, portal);
        }
        Ok(())
    }

    /// Commits the implicit transaction, if there is one, as [`Session::commit_implicit`].
    pub(crate) async fn end_implicit(&mut self, out: &mut Output) -> Result<(), Fault> {
        if self.state.block() == Block::Implicit {
            Box::pin(self.hold_cursors(out)).await?;
        }
        self.commit_implicit().await
    }

    /// The result columns of a cursor; `None` if there is none, or it has no rows.
    pub(crate) fn cursor_columns(&self, name: &str) -> Option<Vec<crate::plan::ResultColumn>> {
        let bound: &BoundStatement = match &self.portals.get(name)?.action {
            Action::Cursor(cursor) => &cursor.bound,
            Action::Run(run) => &run.bound,
            Action::Call(call) => &call.bound,
            _ => return None,
        };
        bound.plan.columns.clone()
    }

    /// The formats in which the simple protocol sends the rows of a cursor.
    pub(crate) fn cursor_formats(&self, name: &str) -> Formats {
        let cursor = self.portals.get(name).and_then(Portal::cursor);
        if cursor.is_some_and(|cursor| cursor.binary) { Formats::BINARY } else { Formats::TEXT }
    }

    /// The catalog whose names rows show: that of the transaction, or the node's.
    pub(crate) fn shown_catalog(&self) -> Option<Arc<Catalog>> {
        match &self.active {
            Some(active) => Some(active.catalog().0.clone()),
            None => self.node.catalog.newest_lease().map(|lease| lease.catalog.clone()),
        }
    }
}

/// Refuses what a cursor cannot be that locks its rows or changes some.
fn check_lock(declare: &Declare, bound: &BoundStatement) -> Result<(), SqlError> {
    if bound.plan.changes_in_with {
        let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let Some(clause) = bound.plan.command.filter(|_| bound.plan.writes).and_then(|name| name.strip_prefix("SELECT "))
    else {
        return Ok(());
    };
    let refuse = |kind: &str, code, what: &str, detail: &str| {
        Err(SqlError::new(code, format!("DECLARE {kind} ... {clause} is {what}")).detail(detail))
    };
    let unsupported = SqlState::FEATURE_NOT_SUPPORTED;
    if declare.hold {
        return refuse("CURSOR WITH HOLD", unsupported, "not supported", "Holdable cursors must be READ ONLY.");
    }
    if declare.scroll == Some(true) {
        return refuse("SCROLL CURSOR", unsupported, "not supported", "Scrollable cursors must be READ ONLY.");
    }
    if declare.insensitive {
        let code = SqlState::INVALID_CURSOR_DEFINITION;
        return refuse("INSENSITIVE CURSOR", code, "not valid", "Insensitive cursors must be READ ONLY.");
    }
    Ok(())
}

/// 42P03.
pub(crate) fn duplicate_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists"))
}

/// 55000 for a portal without rows, or whose FETCH has failed.
fn unusable(name: &str) -> SqlError {
    let message = format!("portal \"{name}\" cannot be run");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}
