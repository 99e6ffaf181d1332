//! The retry loop's edge: the clock and the randomness around [`Backoff`], and the verdict when retries end.

use std::time::Duration;

use raftstore::RegionId;
use tokio::time::Instant;

use super::Shared;
use super::backoff::{Backoff, RetryClass};
use super::endpoint::CallError;
use super::error::ClientError;
use super::region_cache::Route;
use crate::api::{Response, ServerError};

/// What a request does to the store: decides what the end of its retries means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// A read, or a write whose fate the caller need not know: it repeats it, or others clean up after it.
    Repeatable,
    /// A commit: unknown is not the same as failed.
    Commit,
}

/// The retry state of one request, or of one group of a larger one.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    backoff: Backoff,
    nature: Nature,
    started: Option<Instant>,
    /// When the last attempt ends, answered or not. Without it, an attempt ends as its endpoint says.
    ends: Option<Instant>,
    /// The region where an attempt may have taken effect without our knowing.
    maybe_done: Option<RegionId>,
}

impl Retry {
    pub(super) fn new(limit: Duration, nature: Nature) -> Retry {
        Retry { backoff: Backoff::new(limit), nature, started: None, ends: None, maybe_done: None }
    }

    /// For a request that is of no use after `limit`, counted from now: attempts are cut off then.
    pub(super) fn within(limit: Duration, nature: Nature) -> Retry {
        let now = now();
        Retry { started: Some(now), ends: Some(now + limit), ..Retry::new(limit, nature) }
    }

    /// An attempt sent along `route`, no longer than there is time.
    pub(super) async fn bound(
        &self,
        route: &Route,
        attempt: impl Future<Output = Result<Response, CallError>>,
    ) -> Result<Response, CallError> {
        let Some(ends) = self.ends else { return attempt.await };
        let late = |_| Err(CallError::Lost { store: route.store, why: "no answer in the time there was".to_owned() });
        tokio::time::timeout_at(ends, attempt).await.unwrap_or_else(late)
    }

    /// Learns from the failure of a call sent along `route`: how long to wait before the next one, or the final error.
    pub(super) fn after_call(
        &mut self,
        shared: &Shared,
        route: &Route,
        error: CallError,
    ) -> Result<Duration, ClientError> {
        if let CallError::Server(ServerError::Key(error)) = error {
            return Err(ClientError::Key(error));
        }
        if error.maybe_delivered() {
            self.maybe_done = Some(route.region.id);
        }
        match shared.learn(route, &error) {
            Some(class) => self.next(shared, class, &error),
            None => Err(self.give_up(shared, Duration::ZERO, &error)),
        }
    }

    /// The wait before the next attempt after a failure of `class`, or the final error.
    pub(super) fn next(
        &mut self,
        shared: &Shared,
        class: RetryClass,
        error: &CallError,
    ) -> Result<Duration, ClientError> {
        let elapsed = now().saturating_duration_since(*self.started.get_or_insert_with(now));
        match self.backoff.next(class, elapsed, shared.jitter()) {
            Some(wait) => {
                shared.metrics.retried(class);
                Ok(wait)
            }
            None => Err(self.give_up(shared, elapsed, error)),
        }
    }

    fn give_up(&self, shared: &Shared, waited: Duration, error: &CallError) -> ClientError {
        if !error.is_final() {
            shared.metrics.exhausted.inc();
        }
        match (self.nature, self.maybe_done, error) {
            (Nature::Commit, Some(region), _) => {
                shared.metrics.undetermined.inc();
                ClientError::Undetermined(region)
            }
            (_, _, CallError::Server(ServerError::TooLarge { bytes, limit })) => {
                ClientError::TooLarge { bytes: *bytes, limit: *limit }
            }
            (_, _, CallError::Server(ServerError::Invalid(why))) => ClientError::Invalid(why.clone()),
            (_, _, CallError::Server(ServerError::Failed(why))) => ClientError::Failed(why.clone()),
            _ => ClientError::Unavailable { waited, last: error.to_string() },
        }
    }
}

/// Waits out a retry delay.
pub(super) async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge where retries meet the clock; the arithmetic is in `backoff`")]
fn now() -> Instant {
    Instant::now()
}
