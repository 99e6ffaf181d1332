//! The simple query protocol: a string of statements as one implicit transaction.
//!
//! The whole string is parsed before anything runs. Every statement's reply follows it, the last one's after the commit, so that a
//! client never sees a command tag of work that was not committed. A string of one statement is run again inside when it meets a
//! conflict.

use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};

use super::Session;
use super::fault::Fault;
use super::rows::Formats;
use super::state::Block;
use super::statement::{Call, StatementBody, describe};
use crate::error::{SqlError, SqlState};
use crate::lexer::{self, StatementText};
use crate::protocol::output::Output;
use crate::session::command::Reply;

/// Most statements of one query string.
const MAX_STATEMENTS: usize = 100_000;

impl Session {
    /// Answers a query string, up to ReadyForQuery.
    pub(crate) async fn simple_query(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        // A simple query takes the place of the unnamed statement and portal.
        self.statements.remove("");
        self.portals.remove("");
        if let Err(fault) = self.run_query_string(text, out).await {
            self.report(fault.into_statement()?, out)?;
        }
        self.send_ready(out)?;
        self.flush_reply(out).await
    }

    async fn run_query_string(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        let pieces = lexer::split_statements(text);
        match pieces.as_slice() {
            [] => {
                out.put(&EmptyQueryResponse::new())?;
                Ok(())
            }
            [piece] => {
                self.char_offset = piece.char_offset;
                let body = self.parse_statement(piece.text, &[])?;
                if matches!(body, StatementBody::Empty) {
                    out.put(&EmptyQueryResponse::new())?;
                    return Ok(());
                }
                let tag = self.run_single(&body, piece.char_offset, out).await?;
                out.put(&CommandComplete::new(tag))?;
                Ok(())
            }
            several => self.run_multi(several, out).await,
        }
    }

    /// Runs statements one after the other in one transaction. First all of them are parsed; the trees are not kept, for there may be a
    /// million of them.
    async fn run_multi(&mut self, pieces: &[StatementText<'_>], out: &mut Output) -> Result<(), Fault> {
        if pieces.len() > MAX_STATEMENTS {
            let message = format!("query string of {} statements exceeds the limit of {MAX_STATEMENTS}", pieces.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).into());
        }
        for piece in pieces {
            self.interrupt.check()?;
            // Nothing here waits for anything; others have to run all the same.
            tokio::task::coop::consume_budget().await;
            self.char_offset = piece.char_offset;
            self.parse_statement(piece.text, &[])?;
        }
        let last = pieces.len() - 1;
        for (at, piece) in pieces.iter().enumerate() {
            self.begin_statement(piece.char_offset);
            let body = self.parse_statement(piece.text, &[])?;
            let tag = self.run_body(&body, false, out).await?;
            if at == last {
                self.commit_implicit().await?;
            }
            out.put(&CommandComplete::new(tag))?;
        }
        Ok(())
    }

    /// Runs the only statement of a string, and again as long as it meets conflicts and the client has seen nothing.
    async fn run_single(&mut self, body: &StatementBody, char_offset: u32, out: &mut Output) -> Result<String, Fault> {
        let mark = out.position();
        let mut attempt = 0;
        self.begin_statement(char_offset);
        loop {
            self.restart_statement(char_offset);
            // A pipeline without Sync may have left work in the transaction.
            let commit_follows = self.state.block() == Block::Implicit && self.executed == 0;
            let result = match self.run_body(body, commit_follows, out).await {
                Ok(tag) => self.commit_implicit().await.map(|()| tag),
                Err(fault) => Err(fault),
            };
            match result {
                Err(Fault::Retry(_)) if commit_follows && self.may_retry(attempt) && out.truncate_to(mark) => {
                    self.wait_to_retry(attempt).await?;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Runs one statement; its rows go out, its tag comes back. `commit_follows`: its commit follows at once.
    async fn run_body(
        &mut self,
        body: &StatementBody,
        commit_follows: bool,
        out: &mut Output,
    ) -> Result<String, Fault> {
        match body {
            StatementBody::Empty => Ok(String::new()),
            StatementBody::Control(control) => {
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
                let bound = self.plan(query, &self.no_types.clone(), None).await?;
                let call = Call { query: query.clone(), bound, params: Vec::new(), formats: Formats::TEXT };
                let mut run = self.start(call, commit_follows).await?;
                if let Some(row_description) = run.bound.row_description(&Formats::TEXT)? {
                    out.put_encoded(&row_description);
                }
                match self.send_rows(&mut run, 0, out).await? {
                    super::execute::Progress::Complete(tag) => Ok(tag),
                    super::execute::Progress::Suspended => Ok(String::new()),
                }
            }
        }
    }
}
