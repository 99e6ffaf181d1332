//! Requests of garbage collection, region by region: raise the safe point, list the locks of old transactions.

use tso::Timestamp;

use super::bound;
use super::error::ClientError;
use super::retry::pause;
use super::router::Router;
use crate::api::{LockInfo, OldLocksRequest, RequestBody, Response};
use crate::key::Key;

/// Some locks of old transactions, of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPage {
    /// The locks, in key order.
    pub locks: Vec<LockInfo>,
    /// Where the next page begins, in this region or the next one. `None` after the last page.
    pub resume: Option<Key>,
}

impl Router {
    /// [`super::Client::raise_safe_point`].
    pub(super) async fn raise_safe_point(
        &self,
        at: &Key,
        (writes, reads): (Timestamp, Timestamp),
    ) -> Result<Option<Key>, ClientError> {
        let mut retry = self.idempotent_retry();
        loop {
            let route = self.route(&at.to_storage(), &mut retry).await?;
            let body = || RequestBody::RaiseSafePoint { at: at.clone(), writes, reads };
            match retry.attempt(self, &route, body).await {
                Ok(Response::Done) => return Ok(next_region(&route.region.end)),
                Ok(other) => return Err(ClientError::unexpected_response("RaiseSafePoint", &other)),
                Err(error) => pause(retry.on_failure(self, &route, error)?).await,
            }
        }
    }

    /// [`super::Client::old_locks`].
    pub(super) async fn old_locks(&self, start: &Key, max_ts: Timestamp) -> Result<LockPage, ClientError> {
        let mut retry = self.idempotent_retry();
        loop {
            let route = self.route(&start.to_storage(), &mut retry).await?;
            let next = next_region(&route.region.end);
            let end = next.clone().unwrap_or_else(|| Key::new(""));
            let body = || RequestBody::OldLocks(OldLocksRequest { start: start.clone(), end: end.clone(), max_ts });
            match retry.attempt(self, &route, body).await {
                Ok(Response::OldLocks { locks, resume }) => return Ok(LockPage { locks, resume: resume.or(next) }),
                Ok(other) => return Err(ClientError::unexpected_response("OldLocks", &other)),
                Err(error) => pause(retry.on_failure(self, &route, error)?).await,
            }
        }
    }
}

/// The first key after a region that ends at this bound; `None` after the last region.
fn next_region(end: &[u8]) -> Option<Key> {
    (!end.is_empty()).then(|| bound::ceil(end))
}
