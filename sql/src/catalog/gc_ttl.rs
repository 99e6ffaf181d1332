//! How long old versions are kept: `cortado.gc_ttl`, a setting of the whole cluster, as a record of the system region.

use std::time::Duration;

use futures::FutureExt;
use txn::{Database, TxnError};

use super::keys;
use super::lease::NodeCatalog;
use crate::error::{SqlError, storage_error};

/// The ttl of a cluster that has not set any.
pub const GC_TTL_DEFAULT: Duration = Duration::from_secs(600);
/// The least ttl: snapshots are reported about once a second.
pub(crate) const GC_TTL_MIN: Duration = Duration::from_secs(1);

/// How long old versions are kept.
///
/// # Errors
///
/// Those of a read. [`TxnError::Internal`] if the record is malformed.
pub async fn gc_ttl(db: &Database) -> Result<Duration, TxnError> {
    let Some(record) = db.begin_deferred().get(&keys::gc_ttl()).await? else { return Ok(GC_TTL_DEFAULT) };
    keys::decode_gc_ttl(&record).map_err(|error| TxnError::Internal(error.to_string()))
}

impl NodeCatalog {
    /// [`gc_ttl`].
    pub(crate) async fn gc_ttl(&self) -> Result<Duration, SqlError> {
        gc_ttl(&self.state.db).await.map_err(storage_error)
    }

    /// Sets the ttl; `None` for the default.
    pub(crate) async fn set_gc_ttl(&self, ttl: Option<Duration>) -> Result<(), SqlError> {
        let set = self.state.db.run(move |txn| {
            async move {
                match ttl {
                    Some(ttl) => txn.put(keys::gc_ttl(), keys::encode_gc_ttl(ttl).into()),
                    None => txn.delete(keys::gc_ttl()),
                }
            }
            .boxed()
        });
        Ok(set.await?)
    }
}
