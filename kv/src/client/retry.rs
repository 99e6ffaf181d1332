//! The edge of the retry loop: clock and randomness around [`Backoff`], and the final error when retries end.

use std::time::Duration;

use raftstore::RegionId;
use tokio::time::Instant;

use super::backoff::{Backoff, RetryClass};
use super::endpoint::CallError;
use super::error::ClientError;
use super::region_cache::Route;
use super::router::Router;
use crate::api::{Response, ServerError};

/// What it means that the outcome of a request is unknown when its retries end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetrySemantics {
    /// A read, or a write whose outcome the caller need not know: the caller repeats it, or other transactions clean
    /// up. An unknown outcome is reported as a failure.
    Idempotent,
    /// A commit: an unknown outcome must be reported as unknown.
    Commit,
}

impl Router {
    /// The retry state of a read or an idempotent write, with the configured deadline.
    pub(super) fn idempotent_retry(&self) -> Retry {
        Retry::new(self.config.deadline, RetrySemantics::Idempotent)
    }

    /// The error of a response that is not of the kind that `request` asks for. It proves nothing about a commit: the
    /// store may have executed it.
    pub(super) fn unexpected_response(
        &self,
        request: &str,
        semantics: RetrySemantics,
        region: RegionId,
        response: &Response,
    ) -> ClientError {
        match semantics {
            RetrySemantics::Idempotent => ClientError::unexpected_response(request, response),
            RetrySemantics::Commit => {
                self.metrics.undetermined.inc();
                ClientError::Undetermined(region)
            }
        }
    }
}

/// The retry state of one request, or of one run of a larger operation.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    backoff: Backoff,
    semantics: RetrySemantics,
    /// The time of the first failure, or of the start if there is a cutoff.
    started: Option<Instant>,
    /// When an attempt under way is abandoned. `None`: the endpoint's own timeout ends it.
    cutoff: Option<Instant>,
    /// The region in which an attempt may have taken effect although it failed.
    maybe_applied: Option<RegionId>,
}

impl Retry {
    /// Retries until `deadline` has passed since the first failure.
    pub(super) fn new(deadline: Duration, semantics: RetrySemantics) -> Retry {
        Retry { backoff: Backoff::new(deadline), semantics, started: None, cutoff: None, maybe_applied: None }
    }

    /// Retries until `limit` has passed from now, and abandons an attempt that is under way then.
    pub(super) fn with_cutoff(limit: Duration, semantics: RetrySemantics) -> Retry {
        let now = now();
        Retry { started: Some(now), cutoff: Some(now + limit), ..Retry::new(limit, semantics) }
    }

    /// Runs one attempt along `route`, up to the cutoff.
    pub(super) async fn limit_attempt(
        &self,
        route: &Route,
        attempt: impl Future<Output = Result<Response, CallError>>,
    ) -> Result<Response, CallError> {
        let Some(cutoff) = self.cutoff else { return attempt.await };
        let timed_out = |_| Err(CallError::Lost { store: route.store, why: "no answer in time".to_owned() });
        tokio::time::timeout_at(cutoff, attempt).await.unwrap_or_else(timed_out)
    }

    /// Handles the failure of a call along `route`: updates the cache, and returns the wait before the next attempt or
    /// the final error.
    pub(super) fn on_failure(
        &mut self,
        router: &Router,
        route: &Route,
        error: CallError,
    ) -> Result<Duration, ClientError> {
        if let CallError::Server(ServerError::Key(error)) = error {
            return Err(ClientError::Key(error));
        }
        if error.maybe_delivered() {
            self.maybe_applied = Some(route.region.id);
        }
        match router.learn_failure(route, &error) {
            Some(class) => self.next_wait(router, class, &error),
            None => Err(self.final_error(router, Duration::ZERO, &error)),
        }
    }

    /// The wait before the next attempt after a failure of `class`, or the final error.
    pub(super) fn next_wait(
        &mut self,
        router: &Router,
        class: RetryClass,
        error: &CallError,
    ) -> Result<Duration, ClientError> {
        let elapsed = now().saturating_duration_since(*self.started.get_or_insert_with(now));
        match self.backoff.next(class, elapsed, router.jitter()) {
            Some(wait) => {
                router.metrics.count_retry(class);
                Ok(wait)
            }
            None => Err(self.final_error(router, elapsed, error)),
        }
    }

    fn final_error(&self, router: &Router, waited: Duration, error: &CallError) -> ClientError {
        if !error.is_final() {
            router.metrics.exhausted.inc();
        }
        match (self.semantics, self.maybe_applied, error) {
            (RetrySemantics::Commit, Some(region), _) => {
                router.metrics.undetermined.inc();
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

/// Sleeps for the wait before a retry.
pub(super) async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge where retries read the clock; the arithmetic is in `backoff`")]
fn now() -> Instant {
    Instant::now()
}
