//! A node's cache of catalogs by version.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kv::client::ScanRange;
use parking_lot::{Mutex, RwLock};
use tso::Timestamp;
use txn::{Database, Transaction, TxnError};

use super::descriptor;
use super::keys::{self, VersionRecord};
use super::snapshot::Catalog;
use crate::codec::CodecError;
use crate::error::{SqlError, storage_error};
use crate::table::StorageId;

/// Limit of cached versions: the current one and those of running transactions.
const MAX_CATALOGS: usize = 4;
/// Number of slots that remember a transaction's version between its statements.
const VERSION_SLOTS: usize = 256;
/// First version number for catalogs with a transaction's own schema changes. Above every committed version.
const OWN_VERSIONS: u64 = 1 << 63;
/// Descriptors per page when a catalog is loaded.
const PAGE_ROWS: u32 = 256;

/// A node's catalog cache. Clones share it.
#[derive(Clone)]
pub struct CatalogCache {
    state: Arc<CacheState>,
}

struct CacheState {
    /// By version, newest last.
    catalogs: RwLock<Vec<Arc<Catalog>>>,
    /// Direct-mapped by start_ts: the version that a transaction sees. A lost entry costs a read.
    versions: Vec<Mutex<(Timestamp, u64)>>,
    hasher: RandomState,
    own: AtomicU64,
}

impl Default for CatalogCache {
    fn default() -> CatalogCache {
        CatalogCache::new()
    }
}

impl CatalogCache {
    /// An empty cache.
    pub fn new() -> CatalogCache {
        let versions = (0..VERSION_SLOTS).map(|_| Mutex::new((Timestamp::ZERO, 0))).collect();
        CatalogCache {
            state: Arc::new(CacheState {
                catalogs: RwLock::new(Vec::new()),
                versions,
                hasher: RandomState::new(),
                own: AtomicU64::new(OWN_VERSIONS),
            }),
        }
    }

    /// The catalog at the transaction's snapshot, with its own schema changes. Reads the version record once per
    /// transaction. An unknown version is loaded as a whole.
    pub async fn at(&self, txn: &Transaction) -> Result<Arc<Catalog>, SqlError> {
        let start_ts = txn.start_ts();
        let slot = *self.slot(start_ts).lock();
        if slot.0 == start_ts
            && let Some(catalog) = self.cached(slot.1)
        {
            return Ok(catalog);
        }
        let record = match txn.get(&keys::version()).await.map_err(storage_error)? {
            Some(bytes) => VersionRecord::decode(&bytes)?,
            None => VersionRecord { version: 0, writer: Timestamp::ZERO },
        };
        if record.writer == start_ts {
            // The transaction's own changes may be rolled back. No other transaction may see this catalog, nor this one
            // after its next change.
            let version = self.state.own.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::new(load(txn, version).await?));
        }
        let catalog = match self.cached(record.version) {
            Some(catalog) => catalog,
            None => self.insert(load(txn, record.version).await?),
        };
        *self.slot(start_ts).lock() = (start_ts, record.version);
        Ok(catalog)
    }

    /// Whether a newer catalog in the cache lacks one of these storages of `seen`: DROP or TRUNCATE has removed it.
    pub(crate) fn was_dropped_since(&self, seen: &Catalog, storages: &[StorageId]) -> bool {
        if storages.is_empty() {
            return false;
        }
        let newest = self.state.catalogs.read().last().cloned();
        newest.is_some_and(|newest| {
            newest.version > seen.version && storages.iter().any(|storage| newest.by_storage(*storage).is_none())
        })
    }

    /// Forgets the version of a transaction. Called before it changes the schema.
    pub(super) fn forget_version(&self, start_ts: Timestamp) {
        let mut slot = self.slot(start_ts).lock();
        if slot.0 == start_ts {
            *slot = (Timestamp::ZERO, 0);
        }
    }

    /// Creates the catalog's own records in a new cluster. Idempotent: every node may call it.
    pub async fn initialise(&self, db: &Database) -> Result<(), SqlError> {
        let mut txn = db.begin().await.map_err(storage_error)?;
        if let Some(record) = txn.get(&keys::version()).await.map_err(storage_error)? {
            VersionRecord::decode(&record)?;
            return Ok(());
        }
        // No transaction owns version 1.
        let record = VersionRecord { version: 1, writer: Timestamp::ZERO };
        txn.insert(keys::version(), record.encode()).map_err(storage_error)?;
        txn.insert(keys::next_id(), keys::encode_id(keys::FIRST_ID)).map_err(storage_error)?;
        match txn.commit().await {
            // Another node has created them.
            Ok(_) | Err(TxnError::AlreadyExists { .. } | TxnError::Conflict(_)) => Ok(()),
            Err(error) => Err(storage_error(error)),
        }
    }

    fn slot(&self, start_ts: Timestamp) -> &Mutex<(Timestamp, u64)> {
        let hash = self.state.hasher.hash_one(start_ts);
        &self.state.versions[(hash % VERSION_SLOTS as u64) as usize]
    }

    fn cached(&self, version: u64) -> Option<Arc<Catalog>> {
        self.state.catalogs.read().iter().rev().find(|catalog| catalog.version == version).cloned()
    }

    fn insert(&self, catalog: Catalog) -> Arc<Catalog> {
        let mut catalogs = self.state.catalogs.write();
        if let Some(same) = catalogs.iter().find(|cached| cached.version == catalog.version) {
            return same.clone();
        }
        let catalog = Arc::new(catalog);
        catalogs.push(catalog.clone());
        catalogs.sort_by_key(|cached| cached.version);
        let surplus = catalogs.len().saturating_sub(MAX_CATALOGS);
        catalogs.drain(..surplus);
        catalog
    }
}

/// Loads the catalog at a transaction's snapshot.
async fn load(txn: &Transaction, version: u64) -> Result<Catalog, SqlError> {
    let (start, end) = keys::tables();
    let mut range = ScanRange { start, end, reverse: false };
    let mut tables = Vec::new();
    loop {
        let page = txn.scan(&range, PAGE_ROWS).await.map_err(storage_error)?;
        for (_, value) in &page.pairs {
            tables.push(descriptor::decode(value)?);
        }
        match page.resume {
            Some(resume) if resume > range.start => range.start = resume,
            Some(_) => return Err(CodecError::new("page of the catalog", "does not advance").into()),
            None => return Ok(Catalog::new(version, tables)),
        }
    }
}
