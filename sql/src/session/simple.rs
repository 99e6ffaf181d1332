//! The simple query protocol: a string of statements as one implicit transaction.
//!
//! The whole string is parsed before anything runs. Every statement's reply follows it, the last one's after the commit, so that a
//! client never sees a command tag of work that was not committed. A string of one statement is run again inside when it meets a
//! conflict.

use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};

use super::Session;
use super::fault::Fault;
use super::lexer::{self, Piece};
use super::output::Output;
use super::rows::Formats;
use super::state::Block;
use super::statement::{Body, Call, describe};
use crate::session::command::Reply;

impl Session {
    /// Answers a query string, up to ReadyForQuery.
    pub(crate) async fn simple_query(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        // A simple query takes the place of the unnamed statement and portal.
        self.statements.remove("");
        self.portals.remove("");
        if let Err(fault) = self.run_string(text, out).await {
            self.report(fault.into_statement()?, out)?;
        }
        self.ready(out)?;
        self.deliver(out).await
    }

    async fn run_string(&mut self, text: &str, out: &mut Output) -> Result<(), Fault> {
        let pieces = lexer::split(text);
        let mut bodies = Vec::with_capacity(pieces.len());
        for Piece { text, shift } in pieces {
            self.shift = shift;
            let body = self.read(text, &[])?;
            if !matches!(body, Body::Empty) {
                bodies.push((body, shift));
            }
        }
        let Some((last, others)) = bodies.split_last() else {
            out.put(&EmptyQueryResponse::new())?;
            return Ok(());
        };
        for (body, shift) in others {
            self.open(*shift);
            let tag = self.run_body(body, false, out).await?;
            out.put(&CommandComplete::new(tag))?;
        }
        let tag = if others.is_empty() {
            self.run_alone(&last.0, last.1, out).await?
        } else {
            self.open(last.1);
            let tag = self.run_body(&last.0, false, out).await?;
            self.finish().await?;
            tag
        };
        out.put(&CommandComplete::new(tag))?;
        Ok(())
    }

    /// Runs the only statement of a string, and again as long as it meets conflicts and the client has seen nothing.
    async fn run_alone(&mut self, body: &Body, shift: u32, out: &mut Output) -> Result<String, Fault> {
        let mark = out.position();
        let mut attempt = 0;
        loop {
            self.open(shift);
            // A pipeline without Sync may have left work in the transaction.
            let alone = self.state.block() == Block::Implicit && self.executed == 0;
            let result = match self.run_body(body, alone, out).await {
                Ok(tag) => self.finish().await.map(|()| tag),
                Err(fault) => Err(fault),
            };
            match result {
                Err(Fault::Retry(_)) if alone && Session::may_retry(attempt) && out.take_back_to(mark) => {
                    self.wait_to_retry(attempt).await?;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Runs one statement; its rows go out, its tag comes back. `alone`: its commit follows at once.
    async fn run_body(&mut self, body: &Body, alone: bool, out: &mut Output) -> Result<String, Fault> {
        match body {
            Body::Empty => Ok(String::new()),
            Body::Control(control) => {
                let mut reply = self.command(control, out).await?;
                if let Reply::Listing(listing) = &mut reply {
                    let row_description = describe(&listing.columns, &Formats::TEXT)?;
                    out.put_encoded(&row_description);
                    self.put_listing(listing, &Formats::TEXT, 0, out)?;
                }
                Ok(reply.tag())
            }
            Body::Query(query) => {
                self.state.check_alive()?;
                let bound = self.plan(query, &self.no_types.clone(), None).await?;
                let call = Call { query: query.clone(), bound, params: Vec::new(), formats: Formats::TEXT };
                let mut run = self.start(call, alone).await?;
                if let Some(row_description) = run.bound.row_description(&Formats::TEXT)? {
                    out.put_encoded(&row_description);
                }
                match self.pump(&mut run, 0, out).await? {
                    super::execute::Progress::Complete(tag) => Ok(tag),
                    super::execute::Progress::Suspended => Ok(String::new()),
                }
            }
        }
    }
}
