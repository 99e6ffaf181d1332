//! COPY over the protocol: the data of the client, and rows as data for the client.
//!
//! While COPY FROM runs, the session reads the messages of the client itself: cancel, timeout and shutdown end the wait
//! as they end any other. Sync and Flush are ignored: clients send them before they know that the statement is a COPY.
//! After an error, the messages of data that follow are dropped where messages are dispatched.
//!
//! COPY TO is a query: [`super::execute`] runs it, and [`super::copy_out`] makes messages of its rows.

use bytes::Bytes;

use super::copy_out::put_response;
use super::fault::Fault;
use super::state::Session;
use super::statement::{Call, Run};
use super::values::{SessionValues, Shown};
use crate::error::{SqlError, SqlState};
use crate::exec::{CopyIn, ExecContext, ReferenceQueue};
use crate::plan::CopySpec;
use crate::protocol::frame::{Frontend, violation};
use crate::protocol::input::Input;
use crate::protocol::output::Output;
use pgtypes::Format;

/// What the client sends while COPY FROM runs.
enum Sent {
    Data(Bytes),
    End,
    /// It gives up. Holds its reason.
    Failure(String),
}

impl Session {
    /// Runs COPY FROM STDIN. Returns its tag. `commit_follows`: as of [`Session::start`].
    pub(crate) async fn copy_in(
        &mut self,
        call: Call,
        commit_follows: bool,
        out: &mut Output,
    ) -> Result<String, Fault> {
        let spec = call.bound.clone();
        let (Some(CopySpec::From { columns, .. }), Some(reader)) =
            (spec.copy.as_ref(), spec.copy.as_ref().and_then(CopySpec::reader))
        else {
            return Err(SqlError::internal("a statement receives no data").into());
        };
        let mut run = self.start(call, commit_follows).await?;
        let is_own = self.active.as_ref().is_some_and(|active| active.shared_tables(&run.bound).next().is_none());
        // Nobody else sees a table of this transaction.
        run.locks_rows &= !is_own;
        let Some(input) = self.input.clone() else {
            return Err(SqlError::internal("the session has no client").into());
        };
        let format = if reader.is_binary() { Format::Binary } else { Format::Text };
        put_response(b'G', reader.is_binary(), columns.len(), out.buffer());
        let mut copy = CopyIn::new(run.bound.plan.clone(), reader, format);
        self.write_pending(out).await?;
        // What was buffered behind the statement is part of the data, or ignored.
        self.sync_follows = false;
        let mut input = input.lock().await;
        match self.receive(&mut copy, &mut run, &mut input).await {
            Ok(rows) => {
                if let Some(active) = &mut self.active {
                    active.copied = copy.take_key_lines();
                    // A commit that follows may take a name from before commits that the client has seen, and conflict
                    // with them. Other statements are run again then. The client cannot send its data again.
                    let named = async { active.txn.take_start_ts().await.map(drop).map_err(Fault::from) };
                    self.interrupt.guard(self.deadline, named).await?;
                    active.check(&self.node.catalog)?;
                }
                Ok(format!("COPY {rows}"))
            }
            Err(Fault::Statement(error)) => Err(Fault::Statement(copy.interrupted(error))),
            // The client cannot be asked for its data again.
            Err(Fault::Retry(error)) => Err(Fault::Retry(copy.interrupted(error))),
            Err(other) => Err(other),
        }
    }

    /// Stores what the client sends, up to its end.
    async fn receive(&mut self, copy: &mut CopyIn, run: &mut Run, input: &mut Input) -> Result<u64, Fault> {
        loop {
            let sent = self.interrupt.guard(self.deadline, sent(input)).await?;
            match sent {
                Sent::Data(bytes) => {
                    self.store(copy, run, Some(&bytes)).await?;
                }
                Sent::End => return self.store(copy, run, None).await,
                Sent::Failure(reason) => {
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(SqlError::new(SqlState::QUERY_CANCELED, message).into());
                }
            }
        }
    }

    /// Stores the rows of data, or ends it. Returns the number of rows at the end.
    async fn store(&mut self, copy: &mut CopyIn, run: &mut Run, bytes: Option<&Bytes>) -> Result<u64, Fault> {
        let (catalog, _) = self.catalog()?;
        let Some(active) = &mut self.active else {
            return Err(SqlError::internal("a statement runs without a transaction").into());
        };
        active.txn.set_statement(run.snapshot.clone());
        let (user, database) = (&*self.user, &*self.database);
        let kept = (&self.statements, &self.portals);
        let (seen, since) = ((&self.node.view, &self.chance), (&*self.activity, self.now));
        let shown = Shown::new(&catalog, (user, database), active.id(), seen, since, kept);
        let own = (shown, &self.sequences);
        let values = SessionValues::new(&self.settings, (&self.state, !self.savepoints.is_empty()), self.pid, own);
        let mut context = ExecContext {
            txn: &mut active.txn,
            schema: active.schema.as_mut(),
            io: self.settings.io(self.now, &*catalog),
            user,
            database,
            current_schema: catalog.current_schema(),
            session: &values,
            commit_follows: run.commit_follows,
            locks_rows: run.locks_rows,
            lock_timeout: self.settings.lock_timeout(),
            advisory: None,
            uses_sequences: run.bound.plan.uses_sequences,
            params: 0,
            statement: None,
            references: ReferenceQueue::default(),
        };
        let work = async {
            match bytes {
                Some(bytes) => copy.push(bytes, &mut context).await.map(|()| 0),
                None => copy.finish(&mut context).await,
            }
            .map_err(Fault::from)
        };
        let stored = self.interrupt.guard(self.deadline, work).await;
        run.snapshot = active.txn.statement();
        let (settings, state) = values.into_changed();
        let stored = stored?;
        active.check(&self.node.catalog)?;
        settings.into_iter().for_each(|settings| self.settings = settings);
        state.into_iter().for_each(|state| self.state = state);
        Ok(stored)
    }
}

/// Waits for the next message of the data. Cancel safe.
async fn sent(input: &mut Input) -> Result<Sent, Fault> {
    loop {
        let Some(message) = input.next().map_err(Fault::Fatal)? else {
            if !input.read_more().await? {
                return Err(Fault::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
            continue;
        };
        match message {
            Frontend::CopyData(bytes) => return Ok(Sent::Data(bytes)),
            Frontend::CopyDone => return Ok(Sent::End),
            Frontend::CopyFail(reason) => return Ok(Sent::Failure(reason)),
            Frontend::Flush | Frontend::Sync => {}
            other => {
                let message = format!("unexpected message type 0x{:02X} during COPY from stdin", other.kind());
                return Err(Fault::Fatal(violation(message)));
            }
        }
    }
}
