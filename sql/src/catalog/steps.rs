//! Schema changes in steps: each raises the catalog version and waits until every node has adopted it or has no lease.
//!
//! ```text
//!  CREATE:           T commits ---------------------------------------------> publish -> every node has it -> answer
//!  DROP, TRUNCATE:   close -> every node has drained -> T commits ----------> publish -> every node has it -> answer
//!                      '----------------------------> T fails or is dropped -> open again
//! ```
//!
//! T is the user's transaction, with its own start_ts from before the closing. T writes descriptors, names and rows,
//! and its *publication record*, all atomically. It does not write the version record: renewals and other schema
//! changes of the time since its start_ts would make it fail. Closing, publishing and opening again are transactions of
//! their own. Each of them raises the version by one, and only when every node with a lease has adopted the version
//! before: no two nodes are more than one version apart.
//!
//! **Closing.** A closed table is used by no new statement but those of T. A node names the version of the closing in
//! its lease record only when no other transaction of the node that writes to the table can still commit: the node
//! waits for them, and after a grace aborts those that have not begun their commit. If the lease of a node is over,
//! nothing of it commits above the end E of that lease, and E is below the timestamp of the step. What it committed up
//! to E counts as before the change. A commit may still be on its way with a commit_ts up to E. So the old rows are
//! read once at a timestamp above E: the read resolves every lock that it meets, and the commit fails or is visible.
//! Minutes later the record of the lease is removed. What comes so late is refused by the stores.
//!
//! **T's commit_ts** is taken after that, so it is above every commit to the old rows.
//!
//! **The end of T.** [`NodeCatalog::finish`] reads T's publication record at a snapshot. If it is there, T has
//! committed, and its change is published. If not, the tables are opened again, and a deletion of the publication
//! record is written: T writes the same key from an older start_ts, so either T commits first and is seen, or T
//! conflicts. So anyone may finish any schema change at any time. The session of T does. If it fails to, its node does
//! in its [`NodeCatalog::sweep`]; and if that node has lost its lease, any other.

use std::sync::Arc;
use std::time::Duration;

use kv::client::ScanRange;
use kv::concurrency::COMMIT_LATE_MAX;
use tso::Timestamp;
use txn::{Transaction, TxnError};

use super::control::{Control, Step};
use super::keys::{self, OwnerRecord, VersionRecord};
use super::lease::NodeCatalog;
use super::planted::PlantedBug;
use super::uses::DoomWatch;
use crate::clock;
use crate::codec::{CodecError, key};
use crate::error::{SqlError, SqlState, storage_error};
use crate::table::{StorageId, Table, TableId};

/// How long a schema change waits for one step. Longer than a lease and the longest drain of a healthy node.
const STEP_WAIT: Duration = Duration::from_secs(60);
/// The pauses between two looks at the leases.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);
/// The interval at which the other nodes are asked again.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// The age at which the record of a lease that is over is removed. Until then a closing reads the rows of its tables.
/// After half of it, stores refuse what its node may still ask them to commit.
const LEASE_RECORD_AGE_MS: u64 = 2 * COMMIT_LATE_MAX.as_millis() as u64;
/// Rows per page when locks are looked for.
const PAGE_ROWS: u32 = 1_024;

/// What a try to close tables met.
enum Closing {
    /// They are closed by the step to this version.
    Closed(u64),
    /// Another schema change closes one of them, or a step is not complete.
    Busy,
}

impl NodeCatalog {
    /// Closes tables for the transaction `owner`, and returns when no other transaction can commit to them any more.
    /// 55P03 if another schema change keeps one of them closed. Not undone on an error: the caller finishes `owner`.
    pub(super) async fn close(
        &self,
        owner: Timestamp,
        tables: &[Arc<Table>],
        watch: &DoomWatch,
    ) -> Result<(), SqlError> {
        if self.state.planted(PlantedBug::NoClosing) {
            return Ok(());
        }
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        let deadline = clock::instant() + self.state.config.closed_wait;
        let mut pause = FIRST_PAUSE;
        let version = loop {
            if watch.is_doomed() {
                return Err(doomed());
            }
            match self.try_close(owner, &ids).await? {
                Closing::Closed(version) => break version,
                Closing::Busy if clock::instant() >= deadline => {
                    let name = tables.first().map_or("", |table| &table.name);
                    return Err(closed_too_long(name));
                }
                Closing::Busy => clock::sleep(self.spread(pause)).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        if self.step(version).await? && !self.state.planted(PlantedBug::LocksLeft) {
            for table in tables {
                self.resolve_locks(table.storage).await?;
            }
        }
        Ok(())
    }

    async fn try_close(&self, owner: Timestamp, tables: &[TableId]) -> Result<Closing, SqlError> {
        let mut txn = self.state.db.begin().await?;
        let control = self.read_control(&txn).await?;
        if let Some(other) = control.closed_by_another(owner, tables) {
            if self.is_abandoned(&control, &other) {
                self.finish(other.owner).await?;
            }
            return Ok(Closing::Busy);
        }
        let closed = control.closed_by(owner);
        if tables.iter().all(|table| closed.contains(table)) {
            return Ok(Closing::Closed(control.version));
        }
        if !self.is_settled(&control).await? {
            return Ok(Closing::Busy);
        }
        let Some(lease) = self.current() else { return Ok(Closing::Busy) };
        let record = OwnerRecord { owner, node: self.state.node, term: lease.term };
        for table in tables {
            txn.put(keys::closed(*table), record.encode()).map_err(storage_error)?;
        }
        let version = raise_version(&mut txn, &control)?;
        match txn.commit().await {
            Ok(_) => Ok(Closing::Closed(version)),
            Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => Ok(Closing::Busy),
            Err(error) => Err(error.into()),
        }
    }

    /// Publishes the committed schema change of `owner`. Returns when every node has adopted it.
    pub(super) async fn publish(&self, owner: Timestamp) -> Result<(), SqlError> {
        let version = self.finish(owner).await?;
        self.step(version).await.map(|_| ())
    }

    /// Ends the schema change of `owner`: publishes it if its transaction has committed, otherwise opens its tables
    /// again and makes its transaction fail. Returns the catalog version that has it. Safe at any time.
    pub(super) async fn finish(&self, owner: Timestamp) -> Result<u64, SqlError> {
        let deadline = clock::instant() + STEP_WAIT;
        let mut pause = FIRST_PAUSE;
        while clock::instant() < deadline {
            match self.try_finish(owner).await {
                Ok(Some(version)) => return Ok(version),
                Ok(None) => {}
                Err(error) => tracing::debug!("a schema change is not finished yet: {error}"),
            }
            clock::sleep(self.spread(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(unpublished())
    }

    async fn try_finish(&self, owner: Timestamp) -> Result<Option<u64>, SqlError> {
        let mut txn = self.state.db.begin().await?;
        let control = self.read_control(&txn).await?;
        let (tables, is_committed) = (control.closed_by(owner), control.is_unpublished(owner));
        if tables.is_empty() && !is_committed {
            return Ok(Some(control.version));
        }
        if !self.is_settled(&control).await? {
            return Ok(None);
        }
        for table in tables {
            txn.delete(keys::closed(table)).map_err(storage_error)?;
        }
        if is_committed || !self.state.planted(PlantedBug::UnfencedReopening) {
            // Of a transaction that has not committed, this is the mark that it fails on.
            txn.delete(keys::publication(owner)).map_err(storage_error)?;
        }
        let version = raise_version(&mut txn, &control)?;
        match txn.commit().await {
            Ok(_) => Ok(Some(version)),
            Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the newest version is complete. If not, adopts it here. Who published it has asked the other nodes.
    async fn is_settled(&self, control: &Control) -> Result<bool, SqlError> {
        if self.state_of(control, control.version) != Step::Waiting {
            return Ok(true);
        }
        self.acknowledge(control.version).await?;
        Ok(false)
    }

    fn state_of(&self, control: &Control, version: u64) -> Step {
        match control.step(version) {
            Step::Waiting if self.state.planted(PlantedBug::ImpatientStep) => Step::Complete { silent: false },
            step => step,
        }
    }

    /// Returns when the step to `version` is complete, and whether a node has no lease.
    async fn step(&self, version: u64) -> Result<bool, SqlError> {
        let deadline = clock::instant() + STEP_WAIT;
        let mut ask_at = clock::instant();
        let mut pause = FIRST_PAUSE;
        loop {
            let now = clock::instant();
            if now >= ask_at {
                self.ask_others();
                ask_at = now + ASK_INTERVAL;
            }
            let looked = async {
                self.acknowledge(version).await?;
                let txn = self.state.db.begin().await?;
                self.read_control(&txn).await
            };
            match looked.await {
                Ok(control) => match self.state_of(&control, version) {
                    Step::Complete { silent } => return Ok(silent),
                    Step::Waiting => {}
                },
                Err(error) if now >= deadline => return Err(error),
                Err(error) => tracing::debug!("a step of a schema change waits: {error}"),
            }
            if now >= deadline {
                return Err(unpublished());
            }
            clock::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks the other nodes to renew their leases, without waiting for them.
    fn ask_others(&self) {
        if let Some(peers) = self.state.peers.get().cloned() {
            tokio::spawn(async move { peers.renew_leases().await });
        }
    }

    /// Reads all rows of a storage at a fresh timestamp, and so resolves every lock there.
    async fn resolve_locks(&self, storage: StorageId) -> Result<(), SqlError> {
        let txn = self.state.db.begin().await?;
        let (start, end) = key::storage_range(storage);
        let mut range = ScanRange { start, end, reverse: false };
        loop {
            let page = txn.scan(&range, PAGE_ROWS).await.map_err(storage_error)?;
            match page.resume {
                Some(resume) if resume > range.start => range.start = resume,
                Some(_) => return Err(CodecError::new("page of a table", "does not advance").into()),
                None => return Ok(()),
            }
        }
    }

    /// Finishes the schema changes that nobody else will, and removes the records of leases that are long over.
    pub(crate) async fn sweep(&self) {
        if let Err(error) = self.try_sweep().await {
            tracing::debug!("schema changes without a node are left for later: {error}");
        }
    }

    async fn try_sweep(&self) -> Result<(), SqlError> {
        let mut txn = self.state.db.begin().await?;
        let control = self.read_control(&txn).await?;
        for record in control.owners() {
            if self.is_abandoned(&control, &record) {
                self.finish(record.owner).await?;
            }
        }
        let mut removed = control.over_since(LEASE_RECORD_AGE_MS).peekable();
        if removed.peek().is_some() {
            for node in removed {
                txn.delete(keys::lease(node)).map_err(storage_error)?;
            }
            txn.commit().await?;
        }
        Ok(())
    }

    /// Whether nobody else finishes a schema change.
    fn is_abandoned(&self, control: &Control, record: &OwnerRecord) -> bool {
        match record.node == self.state.node {
            true => !self.state.changes.lock().contains(&record.owner),
            false => control.has_lost_its_node(record),
        }
    }

    async fn read_control(&self, txn: &Transaction) -> Result<Control, SqlError> {
        self.count_read();
        Control::read(txn).await
    }

    /// Allocates the id of a table or storage, in a transaction of its own. Ids of failed transactions stay unused.
    pub(super) async fn allocate_id(&self) -> Result<u32, SqlError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut txn = self.state.db.begin().await?;
            self.count_read();
            let next = txn.get(&keys::next_id()).await.map_err(storage_error)?;
            let id = keys::decode_id(&next.ok_or_else(|| CodecError::new("catalog", "not initialised"))?)?;
            let exhausted = || SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "table ids are used up");
            let next = id.checked_add(1).ok_or_else(exhausted)?;
            txn.put(keys::next_id(), keys::encode_id(next)).map_err(storage_error)?;
            match txn.commit().await {
                Ok(_) => return Ok(id),
                Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            clock::sleep(self.spread(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Raises the version record. Returns the new version.
fn raise_version(txn: &mut Transaction, control: &Control) -> Result<u64, SqlError> {
    let raised = VersionRecord { version: control.version + 1, writer: txn.start_ts() };
    txn.put(keys::version(), raised.encode()).map_err(storage_error)?;
    Ok(raised.version)
}

/// The error of a transaction that a schema change has aborted.
pub(crate) fn doomed() -> SqlError {
    SqlError::new(SqlState::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
        .detail("A table that it uses was dropped or truncated.")
}

/// The error of a statement that has waited too long for a schema change.
pub(crate) fn closed_too_long(table: &str) -> SqlError {
    let message = format!("could not obtain lock on relation \"{table}\"");
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message).detail("A schema change of the table is under way.")
}

fn unpublished() -> SqlError {
    let message = "the schema change may be committed, and not every node has adopted it";
    SqlError::new(SqlState::TRANSACTION_RESOLUTION_UNKNOWN, message)
}
