//! The extended query protocol: Parse, Bind, Describe, Execute, Close, Flush, Sync.
//!
//! A pipeline up to its Sync is one implicit transaction, unless a block is open. Replies stay in the output buffer
//! until Sync or Flush. A pipeline whose only executed statement writes is retried when it meets a conflict, at Execute
//! or at the commit. The retry replaces the buffered reply, so the client sees a single execution.

use std::sync::Arc;

use bytes::Bytes;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
    TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};

use super::command::Reply;
use super::control::Control;
use super::cursors::{Target, duplicate_cursor};
use super::execute::{Progress, changed_result};
use super::fault::Fault;
use super::long_text::is_long;
use super::nested::Execute as ExecuteStatement;
use super::prepared::{duplicate_statement, prepared_bytes};
use super::rows::Formats;
use super::state::Session;
use super::statement::{
    Action, Call, Listing, Portal, Prepared, Replay, Run, StatementBody, describe, listing_columns, unknown_statement,
};
use super::txn_state::Block;
use crate::error::{SqlError, SqlState};
use crate::plan::{ResultColumn, explain_column, explain_format};
use crate::protocol::frame::violation;
use crate::protocol::output::Output;
use pgtypes::{Datum, Names, NoNames, Oid, SqlType};

/// Parameters that are decoded before the session yields, in less than a millisecond.
const PARAMETERS_AT_ONCE: usize = 2048;

impl Session {
    /// Parse: prepares a statement. Binds it at once, so that errors are reported here.
    pub(crate) async fn parse(&mut self, message: Parse, out: &mut Output) -> Result<(), Fault> {
        let name = message.name.unwrap_or_default();
        if name.is_empty() {
            self.statements.remove("");
        } else if self.statements.get(&name).is_some() {
            return Err(duplicate_statement(&name).into());
        }
        let text: Arc<str> = message.query.as_str().into();
        self.activity.begin(&text, self.node.wall_clock);
        let bytes = prepared_bytes(&message.query);
        self.statements.check_capacity(&name, bytes)?;
        let declared = declared_types(&message.type_oids)?;
        let (body, char_offset) = if is_long(&message.query) {
            self.begin_parsing();
            Box::pin(self.parse_single_long(&message.query)).await?
        } else {
            self.parse_single(&message.query, &declared)?
        };
        if !ends_failure(&body) && !matches!(body, StatementBody::Empty) {
            self.state.check_not_failed()?;
        }
        self.begin_message(char_offset);
        self.expect_alone();
        let bound = match &body {
            StatementBody::Query(query) | StatementBody::Declare(_, query) => {
                Some(self.plan(query, Some(&declared), None).await?)
            }
            StatementBody::Control(control) => {
                if let Control::Unsupported(error) = &**control {
                    return Err((**error).clone().into());
                }
                None
            }
            StatementBody::Empty | StatementBody::Prepare(..) | StatementBody::Execute(..) => None,
        };
        let created = (self.node.wall_clock)();
        self.statements.insert(name, Prepared { body, bound, char_offset, text, created, from_sql: false }, bytes);
        out.put(&ParseComplete::new())?;
        Ok(())
    }

    /// Until a statement is executed, it is planned for the snapshot that it gets if it is alone in its transaction.
    fn expect_alone(&mut self) {
        self.is_alone = self.state.block() == Block::Implicit && self.executed == 0;
    }

    /// Bind: creates a portal from a statement and parameter values.
    pub(crate) async fn bind(&mut self, message: Bind, out: &mut Output) -> Result<(), Fault> {
        let statement = message.statement_name.as_deref().unwrap_or("");
        let name = message.portal_name.as_deref().unwrap_or("");
        let Some(prepared) = self.statements.get(statement).cloned() else {
            return Err(unknown_statement(statement).into());
        };
        self.activity.begin(&prepared.text, self.node.wall_clock);
        let formats = Formats::read(&message.parameter_format_codes, Some(message.parameters.len()), |count| {
            let codes = message.parameter_format_codes.len();
            format!("bind message has {codes} parameter formats but {count} parameters")
        })?;
        check_parameter_count(statement, message.parameters.len(), prepared.params().len())?;
        if !ends_failure(&prepared.body) {
            self.state.check_not_failed()?;
        }
        if !name.is_empty() && self.portals.get(name).is_some() {
            return Err(duplicate_cursor(name).into());
        }
        let bytes = message.parameters.iter().flatten().map(|value| value.len() + size_of::<Datum>()).sum();
        self.portals.check_capacity(name, bytes)?;
        self.begin_message(prepared.char_offset);
        self.expect_alone();
        let columns = |count: Option<usize>| {
            Formats::read(&message.result_column_format_codes, count, |columns| {
                let codes = message.result_column_format_codes.len();
                format!("bind message has {codes} result formats but query has {columns} columns")
            })
        };
        let (action, formats) = match &prepared.body {
            StatementBody::Empty => (Action::Empty, columns(None)?),
            StatementBody::Control(control) => {
                let count = self.control_columns(control).map(|c| c.len());
                (Action::Control(control.clone()), columns(count)?)
            }
            StatementBody::Prepare(prepare, query) => (Action::Prepare(prepare.clone(), query.clone()), columns(None)?),
            StatementBody::Execute(execute, values) => {
                let count = self.execute_columns(execute).map(|c| c.len());
                (Action::Execute(execute.clone(), values.clone()), columns(count)?)
            }
            StatementBody::Query(query) | StatementBody::Declare(_, query) => {
                let bound = self.current_plan(statement, &prepared).await?;
                let params = self.read_parameters((&*bound.params, &formats), &message.parameters).await?;
                let is_cursor = matches!(prepared.body, StatementBody::Declare(..));
                let formats = columns(bound.plan.columns.as_ref().map(Vec::len).filter(|_| !is_cursor))?;
                let params = if bound.plan.is_large() {
                    self.check_constants(&bound, params).await?
                } else {
                    bound.plan.check_constants(&params, &self.settings.io(self.now, &NoNames))?;
                    params
                };
                let call = Box::new(Call { query: query.clone(), bound, params, formats: formats.clone() });
                match &prepared.body {
                    StatementBody::Declare(declare, _) => (Action::Declare(declare.clone(), call), formats),
                    _ => (Action::Call(call), formats),
                }
            }
        };
        let portal = Portal {
            level: self.savepoints.len(),
            text: prepared.text.clone(),
            created: (self.node.wall_clock)(),
            ..Portal::new(action, formats, prepared.char_offset)
        };
        self.portals.insert(name.to_owned(), portal, bytes);
        out.put(&BindComplete::new())?;
        Ok(())
    }

    /// Describe: parameter types of a statement, result columns of a statement or portal.
    pub(crate) async fn describe(&mut self, message: &Describe, out: &mut Output) -> Result<(), Fault> {
        let name = message.name.as_deref().unwrap_or("");
        if message.target_type == TARGET_TYPE_BYTE_STATEMENT {
            return self.describe_statement(name, out).await;
        }
        let Some(portal) = self.portals.get(name) else {
            return Err(unknown_portal(name).into());
        };
        match self.portal_description(portal)? {
            Some(encoded) => {
                self.state.check_not_failed()?;
                out.put_encoded(&encoded);
            }
            None => out.put(&NoData::new())?,
        }
        Ok(())
    }

    async fn describe_statement(&mut self, name: &str, out: &mut Output) -> Result<(), Fault> {
        let Some(prepared) = self.statements.get(name).cloned() else {
            return Err(unknown_statement(name).into());
        };
        let rows = match &prepared.body {
            StatementBody::Empty => None,
            StatementBody::Prepare(..) | StatementBody::Declare(..) => None,
            StatementBody::Control(control) => {
                self.control_columns(control).map(|columns| describe(&columns, &Formats::TEXT)).transpose()?
            }
            StatementBody::Execute(execute, _) => {
                self.execute_columns(execute).map(|columns| describe(&columns, &Formats::TEXT)).transpose()?
            }
            StatementBody::Query(_) if self.state.block() == Block::Failed => {
                if prepared.bound.as_ref().is_some_and(|b| b.plan.columns.is_some()) {
                    self.state.check_not_failed()?;
                }
                None
            }
            StatementBody::Query(_) => {
                self.begin_message(prepared.char_offset);
                self.expect_alone();
                self.current_plan(name, &prepared).await?.row_description(&Formats::TEXT)?
            }
        };
        let types = prepared.params().iter().map(|ty| ty.oid.0).collect();
        out.put(&ParameterDescription::new(types))?;
        match rows {
            Some(encoded) => out.put_encoded(&encoded),
            None => out.put(&NoData::new())?,
        }
        Ok(())
    }

    /// The encoded RowDescription of a portal; `None` for a statement without rows.
    fn portal_description(&self, portal: &Portal) -> Result<Option<Bytes>, SqlError> {
        let columns = match &portal.action {
            Action::Call(call) => return call.bound.row_description(&portal.formats),
            Action::Run(run) => return run.bound.row_description(&portal.formats),
            Action::Cursor(cursor) => return cursor.bound.row_description(&portal.formats),
            Action::Control(control) => self.control_columns(control),
            Action::Execute(execute, _) => self.execute_columns(execute),
            Action::Listing(listing) => return describe(&listing.columns, &portal.formats).map(Some),
            Action::Empty | Action::Done | Action::Prepare(..) | Action::Declare(..) => None,
        };
        columns.map(|columns| describe(&columns, &portal.formats)).transpose()
    }

    /// The result columns of a session statement, as far as it is known what it will return.
    fn control_columns(&self, control: &Control) -> Option<Vec<ResultColumn>> {
        match control {
            Control::Fetch(fetch) if fetch.moves => None,
            Control::Fetch(fetch) => self.cursor_columns(&fetch.name),
            other => listing_columns(other),
        }
    }

    /// The result columns of EXECUTE, if there is such a statement.
    fn execute_columns(&self, execute: &ExecuteStatement) -> Option<Vec<ResultColumn>> {
        let prepared = self.statements.get(&execute.name)?;
        match &execute.explain {
            Some(explain) => Some(vec![explain_column(explain_format(explain))]),
            None => prepared.bound.as_ref()?.plan.columns.clone(),
        }
    }

    /// Execute: starts or continues a portal.
    pub(crate) async fn execute(&mut self, message: &Execute, out: &mut Output) -> Result<(), Fault> {
        let name = message.name.as_deref().unwrap_or("");
        let Some(mut portal) = self.portals.take(name) else {
            return Err(unknown_portal(name).into());
        };
        // As in PostgreSQL, a limit of zero or below means no limit.
        let limit = usize::try_from(message.max_rows).unwrap_or(0);
        self.activity.begin(&portal.value.text, self.node.wall_clock);
        self.begin_message(portal.value.char_offset);
        self.replay = None;
        self.last_complete = None;
        let complete = self.run_portal(&mut portal.value, limit, out).await?;
        if complete {
            // The next message of the pipeline begins a statement with a timeout of its own.
            self.deadline = None;
        }
        // COMMIT and ROLLBACK close all portals.
        if self.state.block() != Block::Idle || portal.value.is_held() {
            self.portals.put_back(name.to_owned(), portal);
        }
        Ok(())
    }

    /// Runs a portal. Returns whether it is at its end.
    async fn run_portal(&mut self, portal: &mut Portal, limit: usize, out: &mut Output) -> Result<bool, Fault> {
        match std::mem::replace(&mut portal.action, Action::Done) {
            Action::Empty => {
                portal.action = Action::Empty;
                out.put(&EmptyQueryResponse::new())?;
                Ok(true)
            }
            Action::Control(control) => self.run_control(&control, portal, limit, out).await,
            Action::Prepare(prepare, query) => {
                Box::pin(self.prepare(&prepare, &query)).await?;
                out.put(&CommandComplete::new("PREPARE".to_owned()))?;
                Ok(true)
            }
            Action::Declare(declare, call) => {
                Box::pin(self.declare(&declare, *call)).await?;
                out.put(&CommandComplete::new("DECLARE CURSOR".to_owned()))?;
                Ok(true)
            }
            Action::Execute(execute, values) => {
                self.is_alone = self.state.block() == Block::Implicit && self.executed == 0 && self.sync_follows;
                let formats = portal.formats.clone();
                let call = Box::pin(self.execute_call(&execute, values.as_ref(), formats, out)).await?;
                self.run_call(call, portal, limit, out).await
            }
            Action::Cursor(cursor) => {
                portal.action = Action::Cursor(cursor);
                let (sent, complete) = Box::pin(self.continue_cursor(portal, limit, out)).await?;
                if complete {
                    out.put(&CommandComplete::new(format!("SELECT {sent}")))?;
                } else {
                    out.put(&PortalSuspended::new())?;
                }
                Ok(complete)
            }
            Action::Listing(listing) => {
                portal.action = Action::Listing(listing);
                self.run_listing(portal, limit, out)
            }
            Action::Call(call) => self.run_call(*call, portal, limit, out).await,
            Action::Run(run) => {
                self.state.check_not_failed()?;
                self.continue_run(run, portal, limit, out).await
            }
            Action::Done => {
                let message = "portal cannot be run anymore";
                Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into())
            }
        }
    }

    /// Executes a session statement.
    async fn run_control(
        &mut self,
        control: &Control,
        portal: &mut Portal,
        limit: usize,
        out: &mut Output,
    ) -> Result<bool, Fault> {
        if let Control::Fetch(fetch) = control
            && limit == 0
            && !fetch.moves
        {
            let count = Box::pin(self.fetch(fetch, Target::Client(&portal.formats), out)).await?;
            out.put(&CommandComplete::new(format!("FETCH {count}")))?;
            let columns = self.cursor_columns(&fetch.name).unwrap_or_default();
            portal.action = Action::Listing(Listing { columns, rows: Vec::new().into_iter(), is_fetch: true });
            return Ok(true);
        }
        match self.command(control, out).await? {
            Reply::Listing(listing) => {
                portal.action = Action::Listing(listing);
                self.run_listing(portal, limit, out)
            }
            tag => {
                out.put(&CommandComplete::new(tag.tag()))?;
                Ok(true)
            }
        }
    }

    fn run_listing(&mut self, portal: &mut Portal, limit: usize, out: &mut Output) -> Result<bool, Fault> {
        let Action::Listing(listing) = &mut portal.action else {
            return Ok(true);
        };
        let (sent, complete) = self.put_listing(listing, &portal.formats, limit, out)?;
        if complete {
            out.put(&CommandComplete::new(listing.tag(sent)))?;
        } else {
            out.put(&PortalSuspended::new())?;
        }
        Ok(complete)
    }

    /// The first Execute of a query.
    async fn run_call(
        &mut self,
        mut call: Call,
        portal: &mut Portal,
        limit: usize,
        out: &mut Output,
    ) -> Result<bool, Fault> {
        self.state.check_not_failed()?;
        let is_first = self.state.block() == Block::Implicit && self.executed == 0;
        self.is_alone = is_first && self.sync_follows;
        let bound = self.plan(&call.query, Some(&call.bound.params), Some(&call.bound)).await?;
        if !call.bound.same_columns(&bound) {
            return Err(changed_result().into());
        }
        call.bound = bound;
        if call.bound.receives_data() {
            // The end of the data and Sync come together.
            let tag = Box::pin(self.copy_in(call, is_first, out)).await?;
            self.last_complete = Some(out.position());
            out.put(&CommandComplete::new(tag))?;
            return Ok(true);
        }
        // The rows of COPY have no limit.
        let limit = if call.bound.copy.is_some() { 0 } else { limit };
        // A statement without result columns ignores the limit. Some drivers send one anyway.
        let whole = limit == 0 || call.bound.plan.columns.is_none();
        let commit_follows = is_first && whole;
        let sync_follows = self.sync_follows;
        if commit_follows && call.bound.plan.writes {
            let replay = Replay { call: Box::new(call.clone()), mark: out.position() };
            let run = self.start(call, sync_follows).await?;
            match self.continue_run(Box::new(run), portal, limit, out).await {
                Err(Fault::Retry(conflict)) => drop(Box::pin(self.retry(conflict, &replay, false, out)).await?),
                other => drop(other?),
            }
            self.replay = Some(replay);
            return Ok(true);
        }
        // A schema change may come between the plan and start_ts, which the first read takes.
        let may_change = whole && self.executed == 0 && self.active.as_ref().is_some_and(|active| !active.is_started);
        let replay = may_change.then(|| Replay { call: Box::new(call.clone()), mark: out.position() });
        let mut run = self.start(call, false).await?;
        if let Some(view) = portal.view.take() {
            run.execution.freeze(|| view);
        }
        match (self.continue_run(Box::new(run), portal, limit, out).await, replay) {
            (Err(Fault::Retry(conflict)), Some(replay)) if self.may_begin_anew() => {
                let run = Box::pin(self.retry(conflict, &replay, false, out)).await?;
                portal.action = Action::Run(Box::new(run));
                Ok(true)
            }
            (result, _) => result,
        }
    }

    async fn continue_run(
        &mut self,
        mut run: Box<Run>,
        portal: &mut Portal,
        limit: usize,
        out: &mut Output,
    ) -> Result<bool, Fault> {
        let start = out.position();
        let progress = self.send_rows(&mut run, limit, out).await?;
        let complete = matches!(progress, Progress::Complete(_));
        match progress {
            Progress::Complete(tag) => {
                // RETURNING: an error of the commit replaces the rows too. Rows of a query may have been written.
                let undone = if run.bound.plan.changes_rows() { start } else { out.position() };
                self.last_complete = Some(undone);
                out.put(&CommandComplete::new(tag))?;
            }
            Progress::Suspended => out.put(&PortalSuspended::new())?,
        }
        // A portal with result columns can be executed again at its end; one without cannot.
        if run.bound.plan.columns.is_some() && run.copy.is_none() {
            portal.action = Action::Run(run);
        }
        Ok(complete)
    }

    /// Close: drops a statement or portal. A missing one is no error.
    pub(crate) fn close(&mut self, message: &Close, out: &mut Output) -> Result<(), Fault> {
        let name = message.name.as_deref().unwrap_or("");
        if message.target_type == TARGET_TYPE_BYTE_STATEMENT {
            self.statements.remove(name);
        } else {
            self.portals.remove(name);
        }
        out.put(&CloseComplete::new())?;
        Ok(())
    }

    /// Flush: writes the output buffer. The client's next messages may depend on events after this reply, so a
    /// transaction that has not executed anything drops its snapshot. For the others the commit counts as one more
    /// statement.
    pub(crate) async fn flush(&mut self, out: &mut Output) -> Result<(), Fault> {
        if self.state.block() == Block::Implicit && self.executed == 0 {
            self.active = None;
        } else if self.executed > 0 {
            self.executed += 1;
        }
        self.write_pending(out).await
    }

    /// Sync: commits the implicit transaction and ends the skipping after an error.
    pub(crate) async fn sync(&mut self, out: &mut Output) -> Result<(), Fault> {
        self.skipping = false;
        let replay = self.replay.take();
        let last_complete = self.last_complete.take();
        let result = match (self.end_implicit(out).await, replay) {
            (Err(Fault::Retry(conflict)), Some(replay)) => {
                Box::pin(self.retry(conflict, &replay, true, out)).await.map(drop)
            }
            (result, _) => result,
        };
        if let Err(fault) = result {
            let error = fault.into_statement()?;
            // The client must not see CommandComplete of uncommitted work.
            if let Some(position) = last_complete {
                out.truncate_to(position);
            }
            self.report(error, out)?;
        }
        self.send_ready(out)?;
        self.flush_reply(out).await
    }

    /// Decodes the parameter values of a message. Yields between many.
    async fn read_parameters(
        &self,
        types: (&[SqlType], &Formats),
        values: &[Option<Bytes>],
    ) -> Result<Vec<Datum>, SqlError> {
        let mut params = Vec::with_capacity(values.len());
        if values.len() <= PARAMETERS_AT_ONCE {
            self.decode_parameters(types, values, &mut params)?;
            return Ok(params);
        }
        for chunk in values.chunks(PARAMETERS_AT_ONCE) {
            self.decode_parameters(types, chunk, &mut params)?;
            self.interrupt.check()?;
            tokio::task::yield_now().await;
        }
        Ok(params)
    }

    /// Decodes the parameter values that follow those in `params`, and appends them.
    fn decode_parameters(
        &self,
        (types, formats): (&[SqlType], &Formats),
        values: &[Option<Bytes>],
        params: &mut Vec<Datum>,
    ) -> Result<(), SqlError> {
        // The statement was planned with it.
        let names: &dyn Names = self.seen.last().map_or(&NoNames, |catalog| &**catalog);
        let first = params.len();
        for (index, (value, ty)) in values.iter().zip(types.iter().skip(first)).enumerate() {
            params.push(match value {
                Some(bytes) => Datum::decode(
                    *ty,
                    formats.get(first + index),
                    bytes,
                    &self.settings.io(crate::clock::system_micros(), names),
                )?,
                None => Datum::Null,
            });
        }
        Ok(())
    }
}

fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}

fn ends_failure(body: &StatementBody) -> bool {
    matches!(body, StatementBody::Control(control) if control.ends_failure())
}

fn check_parameter_count(statement: &str, supplied: usize, required: usize) -> Result<(), SqlError> {
    if supplied == required {
        return Ok(());
    }
    Err(violation(format!(
        "bind message supplies {supplied} parameters, but prepared statement \"{statement}\" requires {required}"
    )))
}

/// The types of the OIDs that a client declares. A user's type is not looked up before the text is bound.
fn declared_types(oids: &[u32]) -> Result<Arc<[SqlType]>, SqlError> {
    let declared = |oid: &u32| match SqlType::from_oid(*oid) {
        Some(ty) => Ok(ty),
        None if !Oid(*oid).is_builtin() => Ok(SqlType::new(Oid(*oid))),
        None => {
            let message = format!("parameters of the type with OID {oid} are not supported");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    };
    oids.iter().map(declared).collect()
}
