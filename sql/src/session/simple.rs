//! The simple query protocol: a query string is one implicit transaction.
//!
//! The whole string is parsed before any statement runs. Each statement's reply follows it. The last CommandComplete
//! follows the commit, so a client never sees the tag of uncommitted work. A string of one statement is retried after a
//! conflict.

use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};

use super::command::Reply;
use super::control::Control;
use super::cursors::Target;
use super::execute::Progress;
use super::fault::Fault;
use super::long_text::{SplitText, is_long};
use super::nested::Fetch;
use super::rows::Formats;
use super::state::Session;
use super::statement::{Call, StatementBody, describe};
use super::txn_state::Block;
use crate::coop::Turn;
use crate::error::{SqlError, SqlState};
use crate::lexer::{self, StatementSpan};
use crate::protocol::output::Output;

/// Limit of statements in one query string.
const MAX_STATEMENTS: usize = 100_000;

/// The work of a statement apart from its text and its rows, in units of [`Turn`].
const STATEMENT_UNITS: usize = 100;

/// The work of parsing and binding a short text, in units of [`Turn`]. A long one is parsed on another thread.
fn parse_units(text: &str) -> usize {
    if is_long(text) { STATEMENT_UNITS } else { STATEMENT_UNITS + 2 * text.len() }
}

impl Session {
    /// Handles a query string and sends the reply with ReadyForQuery.
    pub(crate) async fn simple_query(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        // A simple query replaces the unnamed statement and portal.
        self.statements.remove("");
        self.portals.remove("");
        self.activity.begin_text(text, (self.node.wall_clock)());
        if let Err(fault) = self.run_query_string(text, out).await {
            self.report(fault.into_statement()?, out)?;
        }
        self.send_ready(out)?;
        self.flush_reply(out).await
    }

    async fn run_query_string(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        self.deadline = None;
        if is_long(text) {
            return Box::pin(self.run_long_string(text, out)).await;
        }
        let spans = lexer::split_statements(text);
        match spans.as_slice() {
            [] => {
                out.put(&EmptyQueryResponse::new())?;
                Ok(())
            }
            [span] => {
                self.char_offset = span.char_offset;
                let parsed = self.parse_statement(span.text(text), &[]);
                let mut body = parsed.map_err(|error| span.locate(error))?;
                body.within(text);
                self.run_only(&body, span.char_offset, out).await
            }
            several => self.run_multi(text, several, out).await,
        }
    }

    /// Runs a long string. The statement timeout includes the parsing.
    async fn run_long_string(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        self.begin_parsing();
        match self.split_long(text).await? {
            SplitText::Single(span, parsed) => {
                let mut body = parsed?;
                body.within(text);
                self.run_only(&body, span.char_offset, out).await
            }
            SplitText::Spans(none) if none.is_empty() => {
                out.put(&EmptyQueryResponse::new())?;
                Ok(())
            }
            SplitText::Spans(several) => self.run_multi(text, &several, out).await,
        }
    }

    /// Runs the only statement of a string and sends its tag.
    async fn run_only(&mut self, body: &StatementBody, char_offset: u32, out: &mut Output) -> Result<(), Fault> {
        if matches!(body, StatementBody::Empty) {
            out.put(&EmptyQueryResponse::new())?;
            return Ok(());
        }
        self.begin_message(char_offset);
        self.in_string = false;
        let tag = self.run_single(body, char_offset, out).await?;
        out.put(&CommandComplete::new(tag))?;
        Ok(())
    }

    /// Runs statements in order in one transaction. Parses all of them first and drops the trees: a string may have
    /// 100,000 statements.
    async fn run_multi(&mut self, query: &str, spans: &[StatementSpan], out: &mut Output) -> Result<(), Fault> {
        if spans.len() > MAX_STATEMENTS {
            let message = format!("query string of {} statements exceeds the limit of {MAX_STATEMENTS}", spans.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).into());
        }
        let mut turn = Turn::new();
        for span in spans {
            self.interrupt.check()?;
            self.char_offset = span.char_offset;
            let text = span.text(query);
            self.check_statement(text).await.map_err(|error| span.locate(error))?;
            turn.spend(parse_units(text)).await;
        }
        for (at, span) in spans.iter().enumerate() {
            self.begin_statement(span.char_offset);
            let text = span.text(query);
            let mut body = self.parse_any(text, &[]).await?;
            body.within(query);
            (self.is_alone, self.in_string) = (false, true);
            let tag = self.run_body(&body, false, out).await?;
            if at + 1 == spans.len() {
                self.end_implicit(out).await?;
            }
            out.put(&CommandComplete::new(tag))?;
            // Few statements wait for anything if their data is on this node.
            turn.spend(STATEMENT_UNITS + parse_units(text)).await;
        }
        Ok(())
    }

    /// Runs the only statement of a string. Retries it after conflicts as long as none of its output has been written.
    async fn run_single(&mut self, body: &StatementBody, char_offset: u32, out: &mut Output) -> Result<String, Fault> {
        let mark = out.position();
        let mut attempt = 0;
        loop {
            self.restart_statement(char_offset);
            // A pipeline without Sync may have statements in the transaction.
            let is_first = self.executed == 0;
            let commit_follows = self.state.block() == Block::Implicit && is_first;
            self.is_alone = commit_follows;
            let result = match self.run_body(body, commit_follows, out).await {
                Ok(tag) => self.end_implicit(out).await.map(|()| tag),
                Err(fault) => Err(fault),
            };
            match result {
                Err(Fault::Retry(_))
                    if is_first && self.may_begin_anew() && self.may_retry(attempt) && out.truncate_to(mark) =>
                {
                    self.wait_to_retry(attempt).await?;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Runs one statement, sends its rows and returns its tag. `commit_follows`: its commit is the next action.
    async fn run_body(
        &mut self,
        body: &StatementBody,
        commit_follows: bool,
        out: &mut Output,
    ) -> Result<String, Fault> {
        match body {
            StatementBody::Empty => Ok(String::new()),
            StatementBody::Control(control) => {
                if let Control::Fetch(fetch) = &**control
                    && !fetch.moves
                {
                    return self.run_fetch(fetch, out).await;
                }
                let mut reply = self.command(control, out).await?;
                if let Reply::Listing(listing) = &mut reply {
                    let row_description = describe(&listing.columns, &Formats::TEXT)?;
                    out.put_encoded(&row_description);
                    self.put_listing(listing, &Formats::TEXT, 0, out)?;
                }
                Ok(reply.tag())
            }
            StatementBody::Query(query) => {
                self.state.check_not_failed()?;
                let bound = self.plan(query, None, None).await?;
                let params = self.check_constants(&bound, Vec::new()).await?;
                if bound.receives_data() {
                    let call = Call { query: query.clone(), bound, params, formats: Formats::TEXT };
                    return Box::pin(self.copy_in(call, commit_follows, out)).await;
                }
                let call = Call { query: query.clone(), bound, params, formats: Formats::TEXT };
                self.run_whole(call, commit_follows, out).await
            }
            StatementBody::Execute(execute, values) => {
                let call = Box::pin(self.execute_call(execute, values.as_ref(), Formats::TEXT, out)).await?;
                self.run_whole(call, commit_follows, out).await
            }
            StatementBody::Prepare(prepare, query) => {
                Box::pin(self.prepare(prepare, query)).await?;
                Ok("PREPARE".to_owned())
            }
            StatementBody::Declare(declare, query) => {
                self.state.check_not_failed()?;
                let bound = self.plan(query, None, None).await?;
                let params = self.check_constants(&bound, Vec::new()).await?;
                let call = Call { query: query.clone(), bound, params, formats: Formats::TEXT };
                Box::pin(self.declare(declare, call)).await?;
                Ok("DECLARE CURSOR".to_owned())
            }
        }
    }

    /// Runs a query to its end, sends its rows and returns its tag.
    async fn run_whole(&mut self, call: Call, commit_follows: bool, out: &mut Output) -> Result<String, Fault> {
        // RETURNING: an error, also one of the commit, replaces the whole reply.
        let undone = call.bound.plan.changes_rows().then(|| out.position());
        let mut run = self.start(call, commit_follows).await?;
        if let Some(row_description) = run.bound.row_description(&Formats::TEXT)? {
            out.put_encoded(&row_description);
        }
        let sent = match self.send_rows(&mut run, 0, out).await {
            Ok(progress) if commit_follows && undone.is_some() => self.commit_implicit().await.map(|()| progress),
            other => other,
        };
        if let (Err(_), Some(position)) = (&sent, undone) {
            out.truncate_to(position);
        }
        match sent? {
            Progress::Complete(tag) => Ok(tag),
            Progress::Suspended => Ok(String::new()),
        }
    }

    /// FETCH: sends the rows in the format of the cursor, and returns the tag.
    async fn run_fetch(&mut self, fetch: &Fetch, out: &mut Output) -> Result<String, Fault> {
        let start = out.position();
        let formats = self.cursor_formats(&fetch.name);
        if let Some(columns) = self.cursor_columns(&fetch.name).filter(|_| self.state.check_not_failed().is_ok()) {
            out.put_encoded(&describe(&columns, &formats)?);
        }
        let fetched = Box::pin(self.fetch(fetch, Target::Client(&formats), out)).await;
        let count = fetched.inspect_err(|_| _ = out.truncate_to(start))?;
        Ok(format!("FETCH {count}"))
    }
}
