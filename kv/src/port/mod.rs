//! What the server side needs of the store below it: snapshots of regions, and replication.
//!
//! `raftstore::StoreHandle` is the real one; the tests of the scheduler and of the server put in one whose leadership and whose
//! proposals fail on order.

#[cfg(test)]
pub(crate) mod fake;

use std::future::Future;

use engine::WriteBatch;
use engine::store::{Reader, Store};
use raftstore::{
    LogIndex, ProposeError, Region, RegionContext, RegionError, RegionSnapshot, RegionStatus, StoreHandle, StoreId,
    Term,
};

use crate::api::ServerError;
use crate::error::ActionError;

/// A consistent view of one region.
pub trait RegionView: Reader + Clone + Send + Sync + 'static {
    /// The region's descriptor when the view was taken.
    fn region(&self) -> &Region;
    /// The term of the leader it was taken on.
    fn term(&self) -> Term;
}

/// A store of replicated regions; see `raftstore::StoreHandle`, whose methods these are.
pub trait RegionStore: Clone + Send + Sync + 'static {
    /// Its views.
    type View: RegionView;

    /// This store.
    fn store_id(&self) -> StoreId;
    /// The region with a replica here whose range holds a storage key.
    fn locate(&self, key: &[u8]) -> Option<RegionStatus>;
    /// A view for a linearizable read, at once; `None` if only `read` can give it.
    fn try_read(&self, context: RegionContext) -> Result<Option<Self::View>, RegionError>;
    /// A view for a linearizable read.
    fn read(&self, context: RegionContext) -> impl Future<Output = Result<Self::View, RegionError>> + Send;
    /// A view to evaluate a write on: all entries of earlier terms are applied in it.
    fn evaluate(&self, context: RegionContext) -> Result<Self::View, RegionError>;
    /// Replicates `batch`, evaluated on `basis`, and waits until it is applied here; refused if the term or the epoch changed.
    fn propose(
        &self,
        basis: &Self::View,
        batch: WriteBatch,
    ) -> impl Future<Output = Result<LogIndex, ProposeError>> + Send;
    /// The store's data is damaged: it serves nothing from now on, and its leaderships pass to others.
    fn fail(&self, why: &str);
}

/// What a request is answered whose read or evaluation failed. Damaged data ends the store's service: a leader that went on would refuse, for
/// ever, what another replica may have intact.
pub(crate) fn refusal<H: RegionStore>(store: &H, error: ActionError) -> ServerError {
    if error.is_damage() {
        store.fail(&error.to_string());
    }
    error.into()
}

impl<S: Store> RegionView for RegionSnapshot<S> {
    fn region(&self) -> &Region {
        &self.region
    }

    fn term(&self) -> Term {
        self.term
    }
}

impl<S: Store> RegionStore for StoreHandle<S> {
    type View = RegionSnapshot<S>;

    fn store_id(&self) -> StoreId {
        StoreHandle::store_id(self)
    }

    fn locate(&self, key: &[u8]) -> Option<RegionStatus> {
        StoreHandle::locate(self, key)
    }

    fn try_read(&self, context: RegionContext) -> Result<Option<RegionSnapshot<S>>, RegionError> {
        StoreHandle::try_read(self, context)
    }

    fn read(&self, context: RegionContext) -> impl Future<Output = Result<RegionSnapshot<S>, RegionError>> + Send {
        StoreHandle::read(self, context)
    }

    fn evaluate(&self, context: RegionContext) -> Result<RegionSnapshot<S>, RegionError> {
        StoreHandle::evaluate(self, context)
    }

    fn propose(
        &self,
        basis: &RegionSnapshot<S>,
        batch: WriteBatch,
    ) -> impl Future<Output = Result<LogIndex, ProposeError>> + Send {
        StoreHandle::propose(self, basis, batch)
    }

    fn fail(&self, why: &str) {
        StoreHandle::poison(self, why);
    }
}
