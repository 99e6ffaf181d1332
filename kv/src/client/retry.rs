//! The edge of the retry loop: clock and randomness around [`Backoff`], and the final error when retries end.

use std::time::Duration;

use futures::FutureExt;
use raftstore::{RegionError, RegionId};
use tokio::time::Instant;

use super::backoff::{Backoff, RetryClass};
use super::congestion::{Outcome, Turn};
use super::endpoint::CallError;
use super::error::ClientError;
use super::options::{Reading, ReplicaPolicy};
use super::region_cache::Route;
use super::router::Router;
use crate::api::{Request, RequestBody, Response, ServerError};

/// A read that no replica has served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadFailure {
    /// The last failure.
    pub(super) error: CallError,
    /// Whether it is that of the route's target.
    pub(super) at_target: bool,
}

/// What it means that the outcome of a request is unknown when its retries end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetrySemantics {
    /// A read. That a store has no room for it is an error of its own.
    Read,
    /// A write whose outcome the caller need not know: the caller repeats it, or other transactions clean
    /// up. An unknown outcome is reported as a failure.
    Idempotent,
    /// A commit: an unknown outcome must be reported as unknown.
    Commit,
}

impl Router {
    /// The retry state of an idempotent write, with the configured deadline.
    pub(super) fn idempotent_retry(&self) -> Retry {
        Retry::new(self.config.deadline, RetrySemantics::Idempotent)
    }

    /// The retry state of a read. With options for other replicas than the leader it ends with their patience.
    pub(super) fn read_retry(&self, reading: Option<Reading<'_>>) -> Retry {
        match reading {
            Some(Reading { options, .. }) if options.replica != ReplicaPolicy::Leader => {
                let patience = options.patience.min(self.config.deadline);
                Retry { patience: Some(patience), ..Retry::new(patience, RetrySemantics::Read) }
            }
            _ => Retry::new(self.config.deadline, RetrySemantics::Read),
        }
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
            RetrySemantics::Read | RetrySemantics::Idempotent => ClientError::unexpected_response(request, response),
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
    /// The time of the first failure, or of the start if there is a cutoff. Later by the time that does not count.
    started: Option<Instant>,
    /// When an attempt under way is abandoned. `None`: the endpoint's own timeout ends it.
    cutoff: Option<Instant>,
    /// How long a read may take from its first attempt.
    patience: Option<Duration>,
    /// The region in which an attempt may have taken effect although it failed.
    maybe_applied: Option<RegionId>,
}

impl Retry {
    /// Retries until `deadline` has passed since the first failure.
    pub(super) fn new(deadline: Duration, semantics: RetrySemantics) -> Retry {
        Retry {
            backoff: Backoff::new(deadline),
            semantics,
            started: None,
            cutoff: None,
            patience: None,
            maybe_applied: None,
        }
    }

    /// Retries until `limit` has passed from now, and abandons an attempt that is under way then.
    pub(super) fn with_cutoff(limit: Duration, semantics: RetrySemantics) -> Retry {
        let now = now();
        Retry { started: Some(now), cutoff: Some(now + limit), ..Retry::new(limit, semantics) }
    }

    /// Sends a request along `route`: once and up to the cutoff, if there is one. Otherwise a write that the store
    /// refuses as busy is sent again in here, when it is its turn and after a pause, until the deadline. `body` makes
    /// the request, anew for each time it is sent.
    pub(super) async fn attempt(
        &mut self,
        router: &Router,
        route: &Route,
        body: impl Fn() -> RequestBody,
    ) -> Result<Response, CallError> {
        let make = || Request { context: route.context(), body: body() };
        let mut request = make();
        if let Some(cutoff) = self.cutoff {
            let timed_out = |_| Err(CallError::Lost { store: route.store, why: "no answer in time".to_owned() });
            return tokio::time::timeout_at(cutoff, router.send(route, request)).await.unwrap_or_else(timed_out);
        }
        if !request.body.is_write() {
            return router.send(route, request).await;
        }
        let mut turn = None;
        loop {
            if turn.is_none() && router.windows.has_busy() {
                let waits = || router.metrics.waits.inc();
                turn = self.in_line(router.windows.enter(route.store, waits)).await;
                request = make();
            }
            let result = router.send(route, request).await;
            if router.windows.learn(route.store, &result) != Outcome::Refused {
                return result;
            }
            if let Some(line) = turn.as_ref().and_then(Turn::step_back) {
                if self.in_line(line.map(Result::ok)).await.is_none() {
                    turn = None;
                }
            } else if let Some(wait) = self.wait_after(router, RetryClass::Busy) {
                pause(wait).await;
            } else {
                router.windows.lift(route.store);
                return result;
            }
            request = make();
        }
    }

    /// Waits for the turn of a write. While the line moves, the time does not count.
    async fn in_line<T>(&mut self, turn: impl Future<Output = Option<T>>) -> Option<T> {
        let since = now();
        let turn = turn.await;
        if turn.is_some() {
            self.started = self.started.map(|started| started + now().saturating_duration_since(since));
        }
        turn
    }

    /// Begins an attempt of a read. Returns when it is abandoned. The patience counts from the first attempt, not from
    /// when the read was queued.
    pub(super) fn begin_read(&mut self) -> Option<Instant> {
        if let Some(patience) = self.patience.take() {
            let now = now();
            (self.started, self.cutoff) = (Some(now), Some(now + patience));
        }
        self.cutoff
    }

    /// As [`Retry::on_failure`], of a read. What other replicas than the target did says nothing about the target.
    pub(super) fn on_read_failure(
        &mut self,
        router: &Router,
        route: &Route,
        ReadFailure { error, at_target }: ReadFailure,
    ) -> Result<Duration, ClientError> {
        if at_target || error.is_final() {
            return self.on_failure(router, route, error);
        }
        self.next_wait(router, RetryClass::Stale, &error)
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
        self.wait_after(router, class).ok_or_else(|| self.final_error(router, self.elapsed(), error))
    }

    /// The wait before the next attempt after a failure of `class`; `None` if there is none.
    fn wait_after(&mut self, router: &Router, class: RetryClass) -> Option<Duration> {
        self.started.get_or_insert_with(now);
        let wait = self.backoff.next(class, self.elapsed(), router.jitter())?;
        router.metrics.count_retry(class);
        Some(wait)
    }

    /// The time since the first failure.
    fn elapsed(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| now().saturating_duration_since(started))
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
            (RetrySemantics::Read, _, CallError::Server(ServerError::Region(RegionError::ServerBusy { .. }))) => {
                ClientError::Overloaded { waited, last: error.to_string() }
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
pub(super) fn now() -> Instant {
    Instant::now()
}
