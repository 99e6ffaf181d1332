//! Execution of plans: the transaction, the plan of a text, rows to the client, and retries after conflicts.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::response::CommandComplete;
use tokio::time::Instant;

use super::activity::Activity;
use super::copy_out::CopyOut;
use super::fault::Fault;
use super::long_text::{SplitText, bind_body, check_body, is_long, parse_body};
use super::reads::LastRead;
use super::rows::{keep_row, put_row};
use super::state::{ActiveTxn, Session};
use super::statement::{BoundStatement, Call, Hold, Query, Replay, Run, StatementBody, several_commands};
use super::txn_state::Block;
use super::values::{SessionValues, Shown};
use crate::advisory::AdvisorySession;
use crate::catalog::{Access, SchemaChange, closed_too_long, doomed};
use crate::clock;
use crate::coop::Turn;
use crate::error::{CHANGED_RESULT, SqlError, SqlState};
use crate::exec::{ExecContext, Execution, ReferenceQueue, Row, Tag};
use crate::lexer;
use crate::metrics::StatementKind;
use crate::plan::Plan;
use crate::protocol::output::{Notice, Output};
use crate::sessions::SessionWait;
use crate::table::Table;
use pgtypes::{DatumRef, SqlType};

/// Rows fetched from an execution at a time.
const BATCH_ROWS: usize = 128;

/// Limit of retries of a statement after conflicts.
const MAX_RETRIES: u32 = 10;

/// The longest wait before a retry.
const MAX_BACKOFF: Duration = Duration::from_millis(100);

/// How far a run got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The end. Holds the command tag.
    Complete(String),
    /// The row limit.
    Suspended,
}

impl Session {
    /// Parses one statement. A cached text is not parsed again.
    pub(crate) fn parse_statement(&mut self, text: &str, declared: &[SqlType]) -> Result<StatementBody, SqlError> {
        if let Some((query, _)) = self.plans.get(text, declared) {
            return Ok(StatementBody::Query(query.clone()));
        }
        parse_body(text).map_err(|error| self.refused_command(error, &lexer::command_name(text)))
    }

    /// As [`Session::parse_statement`], for a text of any length.
    pub(crate) async fn parse_any(&mut self, text: &str, declared: &[SqlType]) -> Result<StatementBody, SqlError> {
        if !is_long(text) {
            return self.parse_statement(text, declared);
        }
        let parsed = Box::pin(self.off_thread(text, parse_body)).await?;
        parsed.map_err(|error| self.refused_command(error, &lexer::command_name(text)))
    }

    /// Parses one statement to find its errors only.
    pub(crate) async fn check_statement(&mut self, text: &str) -> Result<(), SqlError> {
        if !is_long(text) {
            return self.parse_statement(text, &[]).map(drop);
        }
        let checked = Box::pin(self.off_thread(text, check_body)).await?;
        checked.map_err(|error| self.refused_command(error, &lexer::command_name(text)))
    }

    /// Splits a long text, and parses it if it is one statement.
    pub(crate) async fn split_long(&mut self, text: &str) -> Result<SplitText, SqlError> {
        Ok(match self.off_thread(text, SplitText::new).await? {
            SplitText::Single(span, parsed) => {
                self.char_offset = span.char_offset;
                let refused = |error| span.locate(self.refused_command(error, &lexer::command_name(span.text(text))));
                SplitText::Single(span, parsed.map_err(refused))
            }
            spans => spans,
        })
    }

    /// Parses the single statement of an extended-protocol text. Returns the number of characters before it too.
    pub(crate) fn parse_single(&mut self, text: &str, declared: &[SqlType]) -> Result<(StatementBody, u32), SqlError> {
        match lexer::split_statements(text).as_slice() {
            [] => Ok((StatementBody::Empty, 0)),
            [span] => {
                self.char_offset = span.char_offset;
                let parsed = self.parse_statement(span.text(text), declared);
                Ok((parsed.map_err(|error| span.locate(error))?, span.char_offset))
            }
            _ => Err(several_commands()),
        }
    }

    /// As [`Session::parse_single`], for a long text.
    pub(crate) async fn parse_single_long(&mut self, text: &str) -> Result<(StatementBody, u32), SqlError> {
        match self.split_long(text).await? {
            SplitText::Spans(none) if none.is_empty() => Ok((StatementBody::Empty, 0)),
            SplitText::Single(span, parsed) => Ok((parsed?, span.char_offset)),
            SplitText::Spans(_) => Err(several_commands()),
        }
    }

    /// The error of a command that is not supported: 25006 in a read-only transaction if the command writes.
    fn refused_command(&self, error: SqlError, command: &str) -> SqlError {
        let first = command.split(' ').next().unwrap_or(command);
        let writes = matches!(first, "ALTER" | "COMMENT" | "CREATE" | "DROP" | "GRANT" | "REVOKE");
        let is_refusal = error.code == SqlState::FEATURE_NOT_SUPPORTED && writes && command != "ALTER SYSTEM";
        match is_refusal && self.state.check_not_failed().is_ok() {
            true => self.state.check_write(command).err().unwrap_or(error),
            false => error,
        }
    }

    /// The plan of a query for the transaction's catalog: `known` or the cached plan if still valid, else a new one.
    /// Waits while a schema change closes one of its tables. `declared`: the declared types of parameters, `None` if
    /// the query can have no parameters.
    pub(crate) async fn plan(
        &mut self,
        query: &Arc<Query>,
        declared: Option<&Arc<[SqlType]>>,
        known: Option<&Arc<BoundStatement>>,
    ) -> Result<Arc<BoundStatement>, Fault> {
        let mut wait = None;
        if self.advisory.holds_any() {
            let confirm = async { Ok::<_, Fault>(self.advisory.confirm().await?) };
            Box::pin(self.interrupt.guard(self.deadline, confirm)).await?;
        }
        loop {
            self.begin_for(query).await?;
            let bound = match self.known_plan(query, declared, known)? {
                Some(bound) => bound,
                None => self.bind_query(query, declared).await?,
            };
            if self.may_use(&bound, &mut wait).await? {
                return Ok(bound);
            }
        }
    }

    /// `known` or the cached plan, if valid for the transaction's catalog.
    fn known_plan(
        &mut self,
        query: &Arc<Query>,
        declared: Option<&Arc<[SqlType]>>,
        known: Option<&Arc<BoundStatement>>,
    ) -> Result<Option<Arc<BoundStatement>>, Fault> {
        let (catalog, own_schema) = self.catalog()?;
        self.state.mark_snapshot_used();
        if own_schema {
            return Ok(None);
        }
        let holds = |bound: &&Arc<BoundStatement>| !bound.provisional && bound.plan.is_valid_for(&catalog);
        if let Some(bound) = known.filter(holds) {
            return Ok(Some(bound.clone()));
        }
        let cached = self.plans.get(&query.text, declared.unwrap_or(&self.no_types)).map(|(_, b)| b);
        let fits = |bound: &&Arc<BoundStatement>| declared.is_some() || bound.params.is_empty();
        Ok(cached.filter(holds).filter(fits).cloned())
    }

    /// Binds a query for the transaction's catalog.
    async fn bind_query(
        &mut self,
        query: &Arc<Query>,
        declared: Option<&Arc<[SqlType]>>,
    ) -> Result<Arc<BoundStatement>, Fault> {
        let (catalog, own_schema) = self.catalog()?;
        self.node.metrics.binding();
        let bound = if is_long(&query.text) {
            Box::pin(self.bind_off_thread(query, declared, (catalog, own_schema))).await
        } else {
            bind_body(query, declared.map(|types| &**types), &catalog, own_schema)
        };
        let bound = bound.map_err(|error| self.refused_command(error, &query.command))?;
        if !own_schema {
            self.plans.put(&query.text, declared.unwrap_or(&self.no_types), (query.clone(), bound.clone()));
        }
        Ok(bound)
    }

    /// Whether the transaction may use the tables of a plan. If not, the caller plans again: a schema change was waited
    /// for. `wait`: until when, once there is something to wait for.
    async fn may_use(&mut self, bound: &BoundStatement, wait: &mut Option<Instant>) -> Result<bool, Fault> {
        let Some(active) = &mut self.active else { return Err(missing_transaction().into()) };
        active.check(&self.node.catalog)?;
        let active = &*active;
        if active.is_past() {
            return Ok(true);
        }
        // A schema change waits by itself, for its tables to be closed by itself.
        if bound.plan.is_ddl && !bound.plan.is_created_from_query() {
            return Ok(true);
        }
        let (start_ts, planned) = (active.txn.start_ts(), &active.lease.catalog);
        let access = match self.node.catalog.access(planned, active.shared_tables(bound), start_ts) {
            Access::Open => return Ok(true),
            // It keeps what it has.
            _ if active.live.has_entered(active.shared_tables(bound), &bound.plan.written()) => return Ok(true),
            refused => refused,
        };
        // Without a statement the transaction can have a newer snapshot.
        let is_fresh = self.executed == 0 && active.schema.is_none();
        let may_look_again = is_fresh || active.by_statement;
        if access == Access::Closed {
            let limit = self.node.catalog.closed_wait();
            let until = *wait.get_or_insert_with(|| clock::instant() + limit);
            if clock::instant() >= until {
                let name = bound.plan.tables().next().map_or("", |table| &table.name);
                return Err(closed_too_long(name).into());
            }
            let version = self.node.catalog.version();
            let changed = async {
                self.node.catalog.until_changed(version).await;
                Ok::<(), Fault>(())
            };
            let _waiting = self.activity.wait(SessionWait::Table);
            self.interrupt.guard(self.deadline, changed).await?;
        } else if !may_look_again {
            return Err(doomed().into());
        }
        if is_fresh {
            self.active = None;
        }
        Ok(false)
    }

    /// Begins the schema change of the transaction, if it has none.
    fn begin_schema_change(&mut self) -> Result<(), Fault> {
        let sight = self.catalog()?.0.sight().clone();
        let Some(active) = &mut self.active else {
            return Err(missing_transaction().into());
        };
        let (node, temporary, catalog) = (&self.node.catalog, &self.temporary, &active.lease.catalog);
        active.schema.get_or_insert_with(|| {
            let change = SchemaChange::new(node.clone(), &active.txn, &active.live, catalog.clone());
            change.of_session(temporary.clone(), &sight)
        });
        Ok(())
    }

    /// Starts a run. Refuses what the transaction's modes do not allow. `commit_follows`: the commit is the next action
    /// and may report duplicate keys.
    pub(crate) async fn start(&mut self, call: Call, commit_follows: bool) -> Result<Run, Fault> {
        let Call { query, bound, params, formats } = call;
        if bound.plan.writes {
            let command = bound.plan.command.unwrap_or(&query.command);
            self.state.check_write(command)?;
            self.check_stale_write(&query, command)?;
        }
        if let Some(function) = bound.plan.changed_sequence {
            self.state.check_write(function)?;
            self.check_stale_write(&query, function)?;
        }
        if let Some(table) = bound.plan.dropped_tables().iter().find(|table| self.is_open(table)) {
            let verb = if query.command.starts_with("DROP") { "DROP TABLE" } else { "TRUNCATE" };
            let message =
                format!("cannot {verb} \"{}\" because it is being used by active queries in this session", table.name);
            return Err(SqlError::new(SqlState::OBJECT_IN_USE, message).into());
        }
        if let Some(command) = bound.plan.outside_block_only {
            self.state.check_outside_block(command, self.in_string || self.executed > 0)?;
        }
        self.node.metrics.statement(StatementKind::of_command(&query.command));
        self.executed += 1;
        let reads = self.read_options(&query, &bound);
        self.settings.live.last_read = LastRead::Nothing;
        let Some(active) = &mut self.active else {
            return Err(missing_transaction().into());
        };
        active.begin_statement();
        if bound.plan.needs_transaction && !bound.plan.is_ddl {
            let start = async { Ok::<_, Fault>(active.start(&self.node.catalog).await?) };
            self.interrupt.guard(self.deadline, start).await?;
        }
        if bound.plan.is_ddl {
            // It owns the tables that it closes, by its start_ts.
            let start = async { Ok::<_, Fault>(active.start(&self.node.catalog).await?) };
            self.interrupt.guard(self.deadline, start).await?;
            self.begin_schema_change()?;
        }
        let Some(active) = &mut self.active else {
            return Err(missing_transaction().into());
        };
        let reads_or_writes = !bound.plan.is_ddl || bound.plan.is_created_from_query();
        if reads_or_writes && !active.is_past() {
            let (tables, written) = (active.shared_tables(&bound), bound.plan.written());
            self.node.catalog.enter(&active.live, tables, &written).map_err(|_| doomed())?;
        }
        if bound.plan.writes {
            active.writes = true;
            self.portals.values_mut().for_each(|portal| portal.freeze(&active.txn));
        }
        let execution = Execution::new(bound.plan.clone(), params)?;
        let notices = query.hints.as_ref().map_or_else(Vec::new, |hints| hints.notices(!bound.plan.writes));
        // It is better not to run again what takes advisory locks. Foreign keys hold because rows are locked before
        // others are looked for.
        let locks_rows =
            !commit_follows || self.is_contended || bound.plan.takes_locks || bound.plan.references.is_some();
        let snapshot = active.txn.statement();
        let copy = CopyOut::of(bound.copy.as_ref());
        Ok(Run {
            bound,
            execution,
            formats,
            reads,
            notices,
            commit_follows,
            locks_rows,
            snapshot,
            finished: false,
            copy,
        })
    }

    /// Whether a cursor or portal reads a table.
    fn is_open(&self, table: &Table) -> bool {
        let reads = |plan: &Plan| plan.tables().any(|other| other.id == table.id);
        self.portals.iter().any(|(_, portal)| portal.open_plan().is_some_and(reads))
    }

    /// Sends up to `limit` rows (0: all). Writes the buffer whenever it is full, so large results stream.
    pub(crate) async fn send_rows(&mut self, run: &mut Run, limit: usize, out: &mut Output) -> Result<Progress, Fault> {
        let mut sent = 0;
        let mut turn = Turn::new();
        if let (Some(copy), Some(columns)) = (&mut run.copy, &run.bound.plan.columns) {
            copy.begin(columns, out.buffer())?;
        }
        let width = 1 + run.bound.plan.columns.as_ref().map_or(0, Vec::len);
        while !run.finished {
            let wanted = if limit == 0 { BATCH_ROWS } else { BATCH_ROWS.min(limit - sent) };
            let count = self.next_rows(run, wanted, None, out).await?;
            run.finished = count < wanted;
            sent += count;
            if out.is_full() && !(run.commit_follows && run.bound.plan.changes_rows()) {
                self.write_pending(out).await?;
            }
            if !run.finished {
                // Rows in memory, and a client that reads at once, never wait.
                turn.spend(count * width).await;
            }
            if limit != 0 && sent >= limit {
                return Ok(Progress::Suspended);
            }
        }
        if let Some(copy) = &mut run.copy {
            copy.end(out.buffer())?;
        }
        self.send_notices(run, out)?;
        Ok(Progress::Complete(match &run.copy {
            Some(_) => format!("COPY {sent}"),
            None => tag_text(&run.execution.tag(), sent),
        }))
    }

    /// Sends the notices of a run at its end.
    pub(crate) fn send_notices(&self, run: &mut Run, out: &mut Output) -> Result<(), Fault> {
        for message in std::mem::take(&mut run.notices) {
            self.send_notice(&Notice::note(SqlState::SUCCESSFUL_COMPLETION, &message), out)?;
        }
        for notice in &run.bound.plan.notices {
            let message = notice.message.as_str();
            let notice = match notice.is_warning {
                true => Notice::warning(notice.code, message),
                false => Notice::note(notice.code, message),
            };
            self.send_notice(&notice, out)?;
        }
        Ok(())
    }

    /// Sends up to `wanted` rows, or passes them to `keep`. Returns their number, fewer only at the end. A statement
    /// without result columns ends at once.
    pub(crate) async fn next_rows(
        &mut self,
        run: &mut Run,
        wanted: usize,
        mut keep: Option<&mut (dyn FnMut(Row) -> Result<(), SqlError> + Send)>,
        out: &mut Output,
    ) -> Result<usize, Fault> {
        let (catalog, _) = self.catalog()?;
        let Some(active) = &mut self.active else { return Err(missing_transaction().into()) };
        run.resume(&mut active.txn);
        let statement = run.execution.statement();
        let io = self.settings.io(self.now, &*catalog);
        let (user, database) = (&*self.user, &*self.database);
        let kept = (&self.statements, &self.portals);
        let (seen, since) = ((&self.node.view, &self.chance), (&*self.activity, self.now));
        let shown = Shown::new(&catalog, (user, database), active.id(), seen, since, kept);
        let own = (shown, &self.sequences);
        let values = SessionValues::new(&self.settings, (&self.state, !self.savepoints.is_empty()), self.pid, own);
        let mut context = ExecContext {
            txn: &mut active.txn,
            schema: active.schema.as_mut(),
            io,
            user,
            database,
            current_schema: catalog.current_schema(),
            session: &values,
            commit_follows: run.commit_follows,
            locks_rows: run.locks_rows,
            lock_timeout: self.settings.lock_timeout(),
            advisory: run.bound.plan.takes_locks.then_some(&mut self.advisory),
            uses_sequences: run.bound.plan.uses_sequences,
            params: run.bound.params.len(),
            statement: statement.as_deref(),
            references: ReferenceQueue::default(),
        };
        let (bound, formats, mut copy) = (&run.bound, &run.formats, run.copy.as_mut());
        let (start, columns) = (out.position(), bound.plan.columns.as_deref());
        let mut put = |row: &[DatumRef<'_>]| {
            if bound.plan.takes_locks {
                values.take_warnings().iter().try_for_each(|warning| out.put_notice(warning))?;
            }
            match (columns, &mut keep, &mut copy) {
                (Some(columns), Some(keep), _) => keep(keep_row(row, columns)),
                (Some(columns), None, Some(copy)) => copy.row(row, columns, &io, out.buffer()),
                (Some(columns), None, None) => put_row(out.buffer(), row, columns, formats, &io),
                (None, ..) => Ok(()),
            }
        };
        // A replica takes a shared one, with the first read.
        let takes_snapshot = self.state.block() == Block::Explicit && active.floor.is_none() && !active.by_statement;
        let activity = &self.activity;
        let read = {
            let next = pin!(async {
                let count = run.execution.send(&mut context, wanted, &mut put).await?;
                if takes_snapshot {
                    // Later statements see the snapshot of the first one, whatever that was.
                    context.txn.take_start_ts().await?;
                }
                rest(&values, activity).await;
                confirm(context.advisory.as_deref()).await?;
                Ok::<_, Fault>(if columns.is_some() { count } else { 0 })
            });
            self.interrupt.guard(self.deadline, next).await
        };
        run.snapshot = active.txn.statement();
        // An error may come from rows that do not count, too.
        let checked = active.check(&self.node.catalog).map_err(Fault::from);
        // One in the past says nothing about now.
        self.advisory.check(active.txn.read_ts()).map_err(Fault::from)?;
        // Also the rows of a batch that sleeps before it is sent.
        let count = counted(read, checked).inspect_err(|_| _ = out.truncate_to(start))?;
        values.take_warnings().iter().try_for_each(|warning| out.put_notice(warning))?;
        let (settings, state) = values.into_changed();
        settings.into_iter().for_each(|settings| self.settings = settings);
        state.into_iter().for_each(|state| self.state = state);
        self.note_read(run);
        Ok(count)
    }

    /// Keeps what the statement has read, for SHOW and for the session's next snapshot.
    fn note_read(&mut self, run: &Run) {
        let Some(active) = &self.active else { return };
        let (start_ts, live) = (active.txn.read_ts(), &mut self.settings.live);
        if !active.wanted.is_unproven() {
            live.raise(start_ts);
        }
        match run.reads.as_ref().map(|reads| reads.trace.take()) {
            Some(Some(report)) => live.last_read.add(report),
            Some(None) => {}
            None if run.bound.plan.tables().next().is_some() => live.last_read = LastRead::Leader(start_ts),
            None => {}
        }
    }

    /// Retries a statement of the extended protocol in a new transaction after a conflict, with its commit if `commit`.
    /// Discards its earlier output. If that has been written already, the conflict goes to the client. Returns the run,
    /// which is at its end.
    pub(crate) async fn retry(
        &mut self,
        conflict: SqlError,
        replay: &Replay,
        commit: bool,
        out: &mut Output,
    ) -> Result<Run, Fault> {
        let mut conflict = conflict;
        let mut attempt = 0;
        while self.may_retry(attempt) && out.truncate_to(replay.mark) {
            self.wait_to_retry(attempt).await?;
            match self.retry_once(&replay.call, commit, out).await {
                Err(Fault::Retry(error)) => conflict = error,
                other => return other,
            }
            attempt += 1;
        }
        Err(Fault::Statement(conflict))
    }

    async fn retry_once(&mut self, call: &Call, commit: bool, out: &mut Output) -> Result<Run, Fault> {
        self.restart_statement(self.char_offset);
        let bound = self.plan(&call.query, Some(&call.bound.params), Some(&call.bound)).await?;
        if !call.bound.same_columns(&bound) {
            return Err(changed_result().into());
        }
        let mut run = self.start(Call { bound, ..call.clone() }, commit).await?;
        let start = out.position();
        let progress = self.send_rows(&mut run, 0, out).await?;
        if commit {
            self.commit_implicit().await?;
        }
        if let Progress::Complete(tag) = progress {
            self.last_complete = Some(if run.bound.plan.changes_rows() { start } else { out.position() });
            out.put(&CommandComplete::new(tag))?;
        }
        Ok(run)
    }

    /// Drops the transaction after a conflict and waits, so that the other transaction may end.
    pub(crate) async fn wait_to_retry(&mut self, attempt: u32) -> Result<(), Fault> {
        // Only the transaction in the store begins anew. Modes and settings that earlier statements of the pipeline
        // have set, and reported, stay.
        self.discard_transaction();
        // Those of the attempt.
        self.portals.retain(|portal| portal.cursor().is_none_or(|cursor| cursor.hold != Hold::Ready));
        self.advisory.undo_statement();
        self.executed = 0;
        self.is_contended = true;
        self.now = (self.node.wall_clock)();
        self.node.metrics.retry();
        // The first time it locks its rows, and waits for them in line.
        let longest = Duration::from_millis(1).saturating_mul((1 << attempt.min(8)) - 1).min(MAX_BACKOFF);
        let pause = clock::jitter(longest);
        let wait = async {
            clock::sleep(pause).await;
            Ok::<(), Fault>(())
        };
        self.interrupt.guard(self.deadline, wait).await
    }

    /// Whether the first statement of a transaction that has met a conflict may run again in a new one. In a block it
    /// is for the client to see that a row has changed; only of a change of the schema it sees nothing.
    pub(crate) fn may_begin_anew(&mut self) -> bool {
        let in_block = self.state.block() == Block::Explicit;
        let has_changed_schema = |active: &mut ActiveTxn| active.check(&self.node.catalog).is_err();
        !in_block || self.active.as_mut().is_none_or(has_changed_schema)
    }

    /// Whether the running statement may be retried.
    pub(crate) fn may_retry(&self, attempt: u32) -> bool {
        attempt < MAX_RETRIES && clock::instant() < self.retry_until
    }
}

/// Fails if locks that the statement has taken are lost meanwhile.
async fn confirm(advisory: Option<&AdvisorySession>) -> Result<(), SqlError> {
    match advisory {
        Some(advisory) => advisory.confirm().await,
        None => Ok(()),
    }
}

/// Sleeps as long as the statement has asked for. Other tasks use the thread meanwhile, and cancel and timeout apply.
async fn rest(values: &SessionValues<'_>, activity: &Activity) {
    if let Some(pause) = values.pause() {
        let _waiting = activity.wait(SessionWait::Sleep);
        clock::sleep(pause).await;
    }
}

fn tag_text(tag: &Tag, rows: usize) -> String {
    match tag {
        Tag::Select => format!("SELECT {rows}"),
        Tag::CreatedFrom(count) => format!("SELECT {count}"),
        Tag::Insert(count) => format!("INSERT 0 {count}"),
        Tag::Update(count) => format!("UPDATE {count}"),
        Tag::Delete(count) => format!("DELETE {count}"),
        Tag::Plain(text) => (*text).to_owned(),
    }
}

/// The error of a prepared statement whose result columns have changed. Drivers prepare it again.
pub(crate) fn changed_result() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, CHANGED_RESULT)
}

fn missing_transaction() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "internal error: a statement runs without a transaction")
}

/// The outcome of a batch: what was read counts if the check that follows allows it.
fn counted(read: Result<usize, Fault>, checked: Result<(), Fault>) -> Result<usize, Fault> {
    match (read, checked) {
        (Err(fault), _) if !fault.is_of_rows() => Err(fault),
        (_, Err(refused)) => Err(refused),
        (read, Ok(())) => read,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::protocol::frame::Gateway;
    use crate::session::state::{NodeContext, RETRY_WINDOW};

    /// Passes the messages in `bytes` to the session.
    async fn send(session: &mut Session, out: &mut Output, bytes: &[u8]) {
        let mut input = BytesMut::from(bytes);
        while let Some(message) = Gateway::new(1 << 20).next(&mut input).unwrap() {
            session.handle(message, input.first() == Some(&b'S'), out).await.unwrap();
        }
    }

    /// The timeout of each message was its own, so that it never fired between Parse and Execute.
    #[tokio::test(start_paused = true)]
    async fn the_timeout_runs_from_the_first_message_of_a_statement_to_the_end_of_its_execute() {
        const PARSE: &[u8] = b"P\0\0\0\x11\0values(1)\0\0\0";
        const BIND: &[u8] = b"B\0\0\0\x0c\0\0\0\0\0\0\0\0";
        let execute = |limit: u8| [b"E\0\0\0\x09\0\0\0\0", &[limit][..]].concat();
        let mut session = Session::over(NodeContext::in_memory());
        let mut out = Output::new(Box::new(tokio::io::sink()), 1 << 20);
        session.settings.set("statement_timeout", Some(&["2s".to_owned()]), false).unwrap();
        session.settings.commit();
        send(&mut session, &mut out, PARSE).await;
        let deadline = session.deadline.expect("it runs");
        tokio::time::advance(Duration::from_secs(1)).await;
        for message in [BIND, &execute(1)] {
            send(&mut session, &mut out, message).await;
            assert_eq!(session.deadline, Some(deadline), "the portal is suspended, the statement goes on");
        }
        send(&mut session, &mut out, &execute(0)).await;
        assert_eq!(session.deadline, None, "the statement is at its end");
        tokio::time::advance(Duration::from_secs(5)).await;
        send(&mut session, &mut out, PARSE).await;
        assert!(!session.skipping && session.deadline > Some(deadline), "the next one has its own time");
        tokio::time::advance(Duration::from_secs(3)).await;
        send(&mut session, &mut out, BIND).await;
        assert!(session.skipping, "it expires between two messages");
        send(&mut session, &mut out, b"S\0\0\0\x04").await;
        assert_eq!((session.skipping, session.deadline), (false, None));
    }

    /// Every retry started a new timeout: a statement that had waited for a lock in vain waited ten times.
    #[tokio::test(start_paused = true)]
    async fn retries_share_the_timeout_of_the_statement() {
        let mut session = Session::over(NodeContext::in_memory());
        session.settings.set("statement_timeout", Some(&["2000".to_owned()]), false).unwrap();
        session.settings.commit();
        session.begin_statement(0);
        let (deadline, until) = (session.deadline, session.retry_until);
        assert!(session.may_retry(0) && !session.may_retry(10));
        tokio::time::advance(Duration::from_secs(1)).await;
        session.wait_to_retry(0).await.unwrap();
        session.restart_statement(0);
        assert_eq!((session.deadline, session.retry_until), (deadline, until));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(session.wait_to_retry(1).await.unwrap_err().into_statement().unwrap().code.0, "57014");
        tokio::time::advance(RETRY_WINDOW).await;
        assert!(!session.may_retry(1), "it has waited long enough");
        session.begin_statement(0);
        assert!(session.may_retry(0) && session.deadline > deadline, "the next statement has its own time");
    }
}
