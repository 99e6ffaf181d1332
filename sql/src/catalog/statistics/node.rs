//! The statistics that a node knows. Clones share them; so do all catalogs of the node.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kv::client::ScanRange;
use parking_lot::{Mutex, RwLock};
use txn::{Database, Transaction, TxnError};

use super::record::TableStatistics;
use crate::catalog::keys;
use crate::clock;
use crate::error::{SqlError, storage_error};
use crate::table::TableId;

/// Records per page.
const PAGE_ROWS: u32 = 64;
/// The first pause after a conflict with another node, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The statistics that a node knows.
#[derive(Clone, Default)]
pub(crate) struct NodeStatistics(Arc<Known>);

#[derive(Default)]
struct Known {
    db: Option<Database>,
    /// Raised whenever `tables` changes.
    version: AtomicU64,
    tables: RwLock<HashMap<TableId, Arc<TableStatistics>>>,
    /// The counter and the catalog version that `tables` is from.
    seen: Mutex<Option<(u64, u64)>>,
}

impl fmt::Debug for NodeStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeStatistics(version {})", self.version())
    }
}

impl NodeStatistics {
    /// A node that knows nothing yet.
    pub(crate) fn new(db: Database) -> NodeStatistics {
        NodeStatistics(Arc::new(Known { db: Some(db), ..Known::default() }))
    }

    /// What is known of a table.
    pub(crate) fn get(&self, id: TableId) -> Option<Arc<TableStatistics>> {
        self.0.tables.read().get(&id).cloned()
    }

    /// Changes with what the node knows.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Reads the records if there is something new: another ANALYZE, or another version of the catalog, whose writer
    /// may have analyzed its own tables.
    pub(crate) async fn refresh(&self, catalog_version: u64) -> Result<(), SqlError> {
        let Some(db) = &self.0.db else { return Ok(()) };
        let txn = db.begin().await?;
        let counter = read_counter(&txn).await?;
        if *self.0.seen.lock() == Some((counter, catalog_version)) {
            return Ok(());
        }
        let mut tables = HashMap::new();
        let (start, end) = keys::all_statistics();
        let mut range = ScanRange { start, end, reverse: false };
        loop {
            let page = txn.scan(&range, PAGE_ROWS).await.map_err(storage_error)?;
            for (key, value) in page.pairs {
                let Some(id) = keys::statistics_table(&key) else { continue };
                match TableStatistics::decode(&value) {
                    Ok(found) => drop(tables.insert(id, found)),
                    // They are hints. The next ANALYZE replaces them.
                    Err(error) => tracing::warn!(table = %id, %error, "statistics cannot be read"),
                }
            }
            match page.resume {
                Some(resume) => range.start = resume,
                None => break,
            }
        }
        self.install(tables);
        *self.0.seen.lock() = Some((counter, catalog_version));
        Ok(())
    }

    /// Replaces what is known. Statistics that are the same stay in place.
    fn install(&self, found: HashMap<TableId, TableStatistics>) {
        let mut tables = self.0.tables.write();
        let is_same = tables.len() == found.len()
            && found.iter().all(|(id, new)| tables.get(id).is_some_and(|known| **known == *new));
        if !is_same {
            *tables = found.into_iter().map(|(id, found)| (id, Arc::new(found))).collect();
            self.0.version.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Writes the statistics of a table, in a transaction of its own, and uses them at once. False if no committed
    /// catalog has the table: then nothing is written.
    pub(crate) async fn save(&self, id: TableId, found: &TableStatistics) -> Result<bool, SqlError> {
        let Some(db) = &self.0.db else { return Ok(false) };
        let mut pause = FIRST_PAUSE;
        loop {
            let mut txn = db.begin().await?;
            if txn.get(&keys::table(id)).await.map_err(storage_error)?.is_none() {
                return Ok(false);
            }
            let counter = read_counter(&txn).await? + 1;
            txn.put(keys::statistics(id), found.encode().into()).map_err(storage_error)?;
            txn.put(keys::statistics_counter(), keys::encode_counter(counter).into()).map_err(storage_error)?;
            match txn.commit().await {
                Ok(_) => break,
                Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            clock::sleep(clock::jitter(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.0.tables.write().insert(id, Arc::new(found.clone()));
        self.0.version.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }
}

/// The number of ANALYZEs so far.
async fn read_counter(txn: &Transaction) -> Result<u64, SqlError> {
    let record = txn.get(&keys::statistics_counter()).await.map_err(storage_error)?;
    Ok(record.map(|record| keys::decode_counter(&record)).transpose()?.unwrap_or(0))
}
