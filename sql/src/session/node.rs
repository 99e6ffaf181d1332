//! What all sessions of a node share.

use tokio::sync::OnceCell;
use txn::Database;

use super::fault::Fault;
use crate::catalog::CatalogCache;
use crate::clock::WallClock;
use crate::metrics::SqlMetrics;

/// The components that every session of a node uses.
pub(crate) struct NodeContext {
    pub(crate) db: Database,
    pub(crate) catalog: CatalogCache,
    pub(crate) metrics: SqlMetrics,
    /// The source of `now()`.
    pub(crate) wall_clock: WallClock,
    /// Set once the catalog's own records are known to exist.
    initialised: OnceCell<()>,
}

impl NodeContext {
    /// A context with an empty catalog cache.
    pub(crate) fn new(db: Database, metrics: SqlMetrics, wall_clock: WallClock) -> NodeContext {
        NodeContext { db, catalog: CatalogCache::new(), metrics, wall_clock, initialised: OnceCell::new() }
    }

    /// Creates the catalog's own records if they are missing. The first statement of a new cluster does.
    pub(crate) async fn ensure_initialised(&self) -> Result<(), Fault> {
        self.initialised.get_or_try_init(|| async { self.catalog.initialise(&self.db).await }).await?;
        Ok(())
    }
}
