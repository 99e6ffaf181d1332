//! A session: the state of one connection between messages, and the handling of each message.
//!
//! The server's connection loop passes checked messages to [`Session::handle`], which writes replies into the
//! [`Output`]. The submodules: the session's state ([`state`]) and that of its transaction ([`txn_state`]); the
//! session's own statements, parsed by [`control`] and executed by [`command`]; those around a query, parsed by
//! [`nested`] and executed by [`prepared`] and [`cursors`]; settings ([`settings`]); which snapshot
//! a statement reads ([`reads`], [`snapshot`]); the simple ([`simple`]) and the extended ([`extended`]) query protocol;
//! execution of plans ([`execute`]); COPY ([`copy`]); cancellation ([`interrupt`]).
//!
//! Invariants:
//! 1. `active`, the transaction in the store, exists only in the states `Implicit` and `Explicit`, and in `Failed` if
//!    there is a savepoint. The first statement that needs it begins it, not BEGIN.
//! 2. A portal does not outlive the transaction that created it, unless it is a cursor WITH HOLD: its rows are in
//!    memory then.
//! 3. A commit that has begun runs to its end. Cancel, timeout, disconnect and shutdown do not interrupt it.
//! 4. After an error in a pipeline, messages are skipped up to its Sync.
//!
//! # Layers
//!
//! 1. `activity`, `bounded_map`, `copy_out`, `fault`, `interrupt`, `plans`, `reader`, `reads`, `rows`, `sight`: parts
//!    without knowledge of the session
//! 2. `nested`: statements around a query
//! 3. `control`, `scroll`: the session's own statements; the rows and the position of a cursor
//! 4. `txn_state`: the state of the transaction
//! 5. `settings`: the values of settings
//! 6. `statement`: statements, prepared statements, portals
//! 7. `values`: the session as expressions and the system catalog see it
//! 8. `state`: the state of the session, the components of the node
//! 9. `long_text`: parsing and binding, on other threads if a text is long
//! 10. `snapshot`: which snapshot a statement reads
//! 11. `copy`, `execute`, `savepoints`: COPY; execution of plans; SAVEPOINT and ROLLBACK TO
//! 12. `cursors`, `prepared`, `temporary`: DECLARE and FETCH; PREPARE and EXECUTE; the end of temporary tables
//! 13. `command`: execution of the session's own statements
//! 14. `simple`, `extended`: the query protocols

pub(crate) mod activity;
mod bounded_map;
mod command;
mod control;
mod copy;
mod copy_out;
#[cfg(test)]
mod cursor_tests;
mod cursors;
mod execute;
mod extended;
pub(crate) mod fault;
pub(crate) mod interrupt;
mod long_text;
#[cfg(test)]
mod long_text_tests;
mod nested;
mod plans;
mod prepared;
mod reader;
mod reads;
mod rows;
mod savepoints;
mod scroll;
pub(crate) mod settings;
pub(crate) mod sight;
mod simple;
mod snapshot;
pub(crate) mod state;
mod statement;
mod temporary;
mod txn_state;
pub(crate) mod values;

use crate::error::{SqlError, SqlState};
use crate::protocol::frame::Frontend;
use crate::protocol::output::Output;
use fault::Fault;
pub(crate) use state::Session;

/// What the connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Read the next message.
    Continue,
    /// Close the connection: the client sent Terminate.
    Close,
}

impl Session {
    /// Handles one message. An error ends the connection; all other errors have been sent to the client.
    /// `sync_follows`: the input buffer already holds the next message, and it is a Sync.
    pub(crate) async fn handle(
        &mut self,
        message: Frontend,
        sync_follows: bool,
        out: &mut Output,
    ) -> Result<Next, Fault> {
        self.interrupt.begin();
        self.in_string = false;
        self.sync_follows = sync_follows;
        let next = self.dispatch(message, out).await;
        self.interrupt.end();
        next
    }

    async fn dispatch(&mut self, message: Frontend, out: &mut Output) -> Result<Next, Fault> {
        if self.skipping && !matches!(message, Frontend::Sync | Frontend::Terminate) {
            return Ok(Next::Continue);
        }
        if !matches!(message, Frontend::Sync | Frontend::Execute(_)) {
            // A retry of the Execute would lose the effects of later messages of its pipeline.
            self.replay = None;
            self.last_complete = None;
        }
        match message {
            Frontend::Query(query) => self.simple_query(&query.query, out).await?,
            Frontend::FunctionCall => self.refuse(function_call_error(), out).await?,
            Frontend::BadText { is_query: true, error } => self.refuse(*error, out).await?,
            Frontend::Sync => self.sync(out).await?,
            Frontend::Terminate => return Ok(Next::Close),
            other => {
                if let Err(fault) = self.extended(other, out).await {
                    self.fail_pipeline(fault, out).await?;
                }
            }
        }
        Ok(Next::Continue)
    }

    /// Handles a message of the extended protocol other than Sync.
    async fn extended(&mut self, message: Frontend, out: &mut Output) -> Result<(), Fault> {
        self.check_timeout()?;
        match message {
            Frontend::Parse(parse) => self.parse(parse, out).await?,
            Frontend::Bind(bind) => self.bind(bind, out).await?,
            Frontend::Describe(describe) => self.describe(&describe, out).await?,
            Frontend::Execute(execute) => self.execute(&execute, out).await?,
            Frontend::Close(close) => self.close(&close, out)?,
            Frontend::Flush => self.flush(out).await?,
            Frontend::BadText { error, .. } => return Err((*error).into()),
            _ => {}
        }
        if out.is_full() && !self.holds_reply() { self.write_pending(out).await } else { Ok(()) }
    }

    /// Ends the pipeline with an error: messages are skipped up to its Sync. The error is sent at once, as in
    /// PostgreSQL: a client that sends Flush, not Sync, waits for it.
    async fn fail_pipeline(&mut self, fault: Fault, out: &mut Output) -> Result<(), Fault> {
        self.report(fault.into_statement()?, out)?;
        self.skipping = true;
        self.flush_reply(out).await
    }

    /// Handles the expiry of the statement timeout between two messages of a pipeline.
    pub(crate) async fn time_out(&mut self, out: &mut Output) -> Result<(), Fault> {
        self.fail_pipeline(interrupt::timeout_error().into(), out).await
    }

    /// Answers a message outside of the extended protocol with an error.
    async fn refuse(&mut self, error: SqlError, out: &mut Output) -> Result<(), Fault> {
        self.report(error, out)?;
        self.send_ready(out)?;
        self.flush_reply(out).await
    }
}

fn function_call_error() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "the function call protocol is not supported")
}

#[cfg(test)]
mod tests {
    use super::*;
    use state::NodeContext;

    /// Each message creates this future, moves it and polls it: with 25 KB of it, a point select cost a tenth more.
    /// What is rare and large inside, such as a schema change, belongs in a box.
    #[tokio::test]
    async fn the_future_of_a_message_is_small() {
        let mut session = Session::over(NodeContext::in_memory());
        let mut out = Output::new(Box::new(tokio::io::sink()), 1 << 10);
        let size = size_of_val(&session.handle(Frontend::Sync, false, &mut out));
        assert!(size <= 8 << 10, "{size} bytes");
    }
}
