//! Catalogs of the past: a read in the past is planned with the catalog of that time.
//!
//! A catalog version is in force from its commit to that of the next. The node's lease shows the current version, which
//! it has loaded at a timestamp `since`: it is the right one for every start_ts from there to the end of the lease, by
//! the argument of [`super::lease`], whether the lease is over by now or not. So a node without a lease still serves
//! reads in the past.
//!
//! For an older start_ts the version record is read there, unless [`super::versions`] knows what it would say.
//!
//! Rows of dropped and truncated tables are removed as ordinary transactions remove rows ([`super::reclaim`]): their
//! versions stay, and a read in the past finds them.

use std::sync::Arc;

use kv::client::ReadOptions;
use tso::Timestamp;
use txn::{CommitBound, Transaction};

use super::keys::{self, VersionRecord};
use super::lease::NodeCatalog;
use super::snapshot::Catalog;
use super::uses::Lease;
use crate::error::{SqlError, SqlState, storage_error};

impl NodeCatalog {
    /// Begins a transaction that reads the past, with the catalog of that time. `reads`: how the catalog is read, if
    /// that is necessary, and the transaction reads.
    ///
    /// # Errors
    /// 22023 for a timestamp in the future, 72000 for one before the database, 57P03 if the store or the oracle does
    /// not answer.
    pub(crate) async fn begin_at(
        &self,
        start_ts: Timestamp,
        reads: Option<Arc<ReadOptions>>,
    ) -> Result<(Arc<Lease>, Transaction), SqlError> {
        let mut txn = self.state.db.begin_at(start_ts).await?;
        txn.set_reads(reads);
        let current = self.current().filter(|lease| lease.since <= start_ts && lease.covers(start_ts));
        let known = current.map(|lease| lease.catalog.clone()).or_else(|| self.state.versions.at(start_ts));
        let catalog = match known {
            Some(catalog) => catalog,
            None => self.load_past(&txn).await?,
        };
        let bound = CommitBound::new(start_ts);
        Ok((Arc::new(Lease { catalog, term: Timestamp::ZERO, since: start_ts, bound }), txn))
    }

    async fn load_past(&self, txn: &Transaction) -> Result<Arc<Catalog>, SqlError> {
        let ts = txn.start_ts();
        self.count_read();
        let Some(record) = txn.get(&keys::version()).await.map_err(storage_error)? else {
            let message = format!("snapshot too old: the database did not exist at {ts}");
            return Err(SqlError::new(SqlState::SNAPSHOT_TOO_OLD, message));
        };
        let version = VersionRecord::decode(&record)?.version;
        if let Some(catalog) = self.state.versions.extend(version, ts) {
            return Ok(catalog);
        }
        let current = self.current().map(|lease| lease.catalog.clone());
        if let Some(catalog) = current.as_ref().filter(|catalog| catalog.version == version) {
            self.state.versions.remember(catalog.clone(), ts);
            return Ok(catalog.clone());
        }
        let catalog = Arc::new(Catalog::load_version(txn, version, current.as_deref()).await?);
        self.state.versions.remember(catalog.clone(), ts);
        Ok(catalog)
    }

    /// Begins a transaction whose snapshot a replica takes with the first read, and the least timestamp that it may be,
    /// that of the current catalog. The caller checks after the read that the lease covers the snapshot. So neither
    /// this node's lease nor the oracle is asked.
    ///
    /// # Errors
    /// 57P03 if the node has never had a lease, and gets none.
    pub(crate) async fn begin_shared(&self) -> Result<(Arc<Lease>, Transaction), SqlError> {
        loop {
            if let Some(lease) = self.current() {
                // The keeper renews it behind the statement. A node that is cut off goes on without.
                self.renew_in_time(&lease, self.state.db.latest());
                return Ok((lease, self.state.db.begin_shared()));
            }
            self.renew().await?;
        }
    }

    /// About the oracle's time; see [`txn::Database::now`].
    pub(crate) async fn now(&self) -> Result<Timestamp, SqlError> {
        Ok(self.state.db.now().await?)
    }

    /// 22023 unless the oracle has issued `timestamp` or a greater one.
    pub(crate) async fn check_issued(&self, timestamp: Timestamp) -> Result<(), SqlError> {
        Ok(self.state.db.check_issued(timestamp).await?)
    }
}
