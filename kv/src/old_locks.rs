//! Lists the locks of old transactions in a region, for garbage collection and for the sweep of dead coordinators.
//!
//! It is a read of the leader, in the read pool at the level of scans. Its snapshot is linearizable, so after a safe
//! point was acknowledged it holds every lock at or below it that there will ever be.

use std::ops::ControlFlow;

use raftstore::RegionContext;

use crate::api::{OldLocksRequest, RequestBody, Response, ServerError};
use crate::mvcc::old_locks::OldLocks;
use crate::read::ReadExecutor;
use crate::read_pool::{Cost, Demand};
use crate::region_store::{RegionReads, RegionView};

/// About the bytes of the answer, for the limits of the pool.
const ANSWER_BYTES: usize = 1 << 20;

impl<H: RegionReads> ReadExecutor<H> {
    /// Lists locks. The page ends early when it is full or has taken many steps.
    ///
    /// # Errors
    ///
    /// As [`ReadExecutor::run`].
    pub(crate) async fn old_locks(
        &self,
        context: RegionContext,
        request: OldLocksRequest,
    ) -> Result<Response, ServerError> {
        let view = self.proven_view(context).await?;
        let body = RequestBody::OldLocks(request.clone());
        body.check_range(view.region())?;
        let mut walk = Some(OldLocks::new(request));
        let work = move |steps: usize| match walk.as_mut().map(|walk| walk.advance(&view, steps)) {
            Some(Ok(false)) => ControlFlow::Continue(()),
            Some(Ok(true)) | None => ControlFlow::Break(Ok(walk.take().map(OldLocks::into_page).unwrap_or_default())),
            Some(Err(error)) => ControlFlow::Break(Err(error.into())),
        };
        let ((locks, resume), _) = self.in_pool(Demand::scan(Cost::default(), ANSWER_BYTES), work).await?;
        Ok(Response::OldLocks { locks, resume })
    }
}
