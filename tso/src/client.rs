//! The batching client: many callers, one request in flight.
//!
//! A caller that finds nothing in flight asks the source itself. One that arrives while a request is in flight
//! queues up and joins the *next* request, with everybody who queued meanwhile: its timestamp must be issued after its
//! call. So the rate of requests is bounded by the round trip, whatever the number of callers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::metrics::ClientMetrics;
use crate::oracle::MAX_COUNT;
use crate::timestamp::Timestamp;

/// Why no timestamp could be had.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TsoError {
    /// No oracle served within the deadline.
    #[error("no timestamp oracle answered: {0}")]
    Unavailable(String),
    /// The node is stopping.
    #[error("the timestamp client is closed")]
    Closed,
}

/// `count` consecutive timestamps that end with `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsRange {
    /// The largest of them.
    pub last: Timestamp,
    /// How many, at least 1.
    pub count: u32,
}

impl TsRange {
    /// The smallest of them.
    pub fn first(&self) -> Timestamp {
        Timestamp::from_raw(self.last.raw().saturating_sub(u64::from(self.count).saturating_sub(1)))
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> + use<> {
        (self.first().raw()..=self.last.raw()).map(Timestamp::from_raw)
    }
}

/// Where timestamps come from: the oracle of this node, the one of another, or a counter in a test.
pub trait TsoSource: Send + Sync + 'static {
    /// `count` timestamps (1 to 2^17) issued after this call was made. One attempt, bounded in time; the client retries.
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>>;
}

/// Settings of a [`TsoClient`].
#[derive(Clone, Debug)]
pub struct TsoClientOptions {
    /// How long a caller waits at most. Default 10 s.
    pub deadline: Duration,
    /// The pause after the first failed request; each further one is twice as long, and each is shortened by up to
    /// half at random. Default 2 ms.
    pub backoff_min: Duration,
    /// The longest pause. Default 250 ms.
    pub backoff_max: Duration,
    /// Callers that may be queued; one more is refused. Default 65,536, at most 2^17.
    pub queue: usize,
}

impl Default for TsoClientOptions {
    fn default() -> TsoClientOptions {
        TsoClientOptions {
            deadline: Duration::from_secs(10),
            backoff_min: Duration::from_millis(2),
            backoff_max: Duration::from_millis(250),
            queue: 1 << 16,
        }
    }
}

/// Hands out timestamps; clones share the one request in flight.
#[derive(Clone)]
pub struct TsoClient {
    inner: Arc<Inner>,
}

struct Inner {
    source: Arc<dyn TsoSource>,
    options: TsoClientOptions,
    runtime: Handle,
    state: Mutex<State>,
    /// Only for the length of pauses.
    rng: Mutex<StdRng>,
    metrics: Option<ClientMetrics>,
}

type Waiter = oneshot::Sender<Result<Timestamp, TsoError>>;

/// Invariants:
/// 1. At most one flight exists; it is a [`Flight`] value, and `in_flight` says that there is one.
/// 2. Nobody is queued while nothing is in flight.
/// 3. `newest` is at or above every timestamp handed out, and a range starts above the `newest` of its request.
#[derive(Default)]
struct State {
    in_flight: bool,
    queue: VecDeque<Waiter>,
    newest: Timestamp,
    closed: bool,
}

impl TsoClient {
    /// A client over a source. Must be called within a tokio runtime.
    pub fn new(source: Arc<dyn TsoSource>) -> TsoClient {
        TsoClient::with_options(source, TsoClientOptions::default(), None)
    }

    /// A client with other settings, and with metrics. Must be called within a tokio runtime.
    pub fn with_options(
        source: Arc<dyn TsoSource>,
        mut options: TsoClientOptions,
        metrics: Option<ClientMetrics>,
    ) -> TsoClient {
        // A whole queue fits one request.
        options.queue = options.queue.min(MAX_COUNT as usize);
        #[expect(clippy::disallowed_methods, reason = "the edge where the jitter of retries gets its seed")]
        let rng = Mutex::new(StdRng::from_os_rng());
        let runtime = Handle::current();
        TsoClient { inner: Arc::new(Inner { source, options, runtime, state: Mutex::default(), rng, metrics }) }
    }

    /// A timestamp issued after this call was made. Fails after a bounded time of retries. May be dropped at any time
    /// without an effect on other callers.
    pub async fn timestamp(&self) -> Result<Timestamp, TsoError> {
        let inner = &self.inner;
        match inner.join()? {
            Ticket::Fly(_flight) => inner.fetch(1).await.map(|range| range.last),
            Ticket::Wait(answer) => match tokio::time::timeout(inner.options.deadline, answer).await {
                Ok(Ok(result)) => result,
                // The runtime is being torn down and has dropped the flight.
                Ok(Err(_)) => Err(TsoError::Closed),
                Err(_) => Err(TsoError::Unavailable("waited too long for the requests before".to_owned())),
            },
        }
    }

    /// Refuses further callers and those in the queue; a request in flight ends by itself.
    pub fn close(&self) {
        let queue = {
            let mut state = self.inner.state.lock();
            state.closed = true;
            std::mem::take(&mut state.queue)
        };
        for waiter in queue {
            let _ = waiter.send(Err(TsoError::Closed));
        }
    }
}

/// How a caller gets its timestamp.
enum Ticket {
    /// It makes the request.
    Fly(Flight),
    /// It is served by the next request.
    Wait(oneshot::Receiver<Result<Timestamp, TsoError>>),
}

/// The right to have a request in flight. Dropped, also by a caller that is cancelled, it passes to those who queued
/// meanwhile.
struct Flight {
    inner: Arc<Inner>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let waiters = {
            let mut state = self.inner.state.lock();
            state.in_flight = !state.queue.is_empty();
            std::mem::take(&mut state.queue)
        };
        if !waiters.is_empty() {
            // On a runtime that is being torn down the task is dropped at once, and with it the callers it carries, so
            // that the flight it holds finds an empty queue and ends this.
            self.inner.runtime.spawn(fly(Flight { inner: Arc::clone(&self.inner) }, waiters));
        }
    }
}

/// Serves those who queued up before the request is made. Whoever queues up during it is served by the next flight,
/// which the drop of this one starts.
async fn fly(flight: Flight, mut waiters: VecDeque<Waiter>) {
    let inner = &flight.inner;
    {
        let mut state = inner.state.lock();
        let room = (MAX_COUNT as usize).saturating_sub(waiters.len()).min(state.queue.len());
        waiters.extend(state.queue.drain(..room));
    }
    waiters.retain(|waiter| !waiter.is_closed());
    let Ok(count) = u32::try_from(waiters.len()) else { return };
    if count == 0 {
        return;
    }
    match inner.fetch(count).await {
        Ok(range) => {
            for (waiter, timestamp) in waiters.into_iter().zip(range.iter()) {
                let _ = waiter.send(Ok(timestamp));
            }
        }
        Err(error) => {
            for waiter in waiters {
                let _ = waiter.send(Err(error.clone()));
            }
        }
    }
}

impl Inner {
    fn join(self: &Arc<Inner>) -> Result<Ticket, TsoError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(TsoError::Closed);
        }
        if !state.in_flight {
            assert!(state.queue.is_empty(), "invariant 2: callers queue only behind a flight");
            state.in_flight = true;
            return Ok(Ticket::Fly(Flight { inner: Arc::clone(self) }));
        }
        if state.queue.len() >= self.options.queue {
            return Err(TsoError::Unavailable("too many callers are waiting".to_owned()));
        }
        let (sender, receiver) = oneshot::channel();
        state.queue.push_back(sender);
        Ok(Ticket::Wait(receiver))
    }

    /// Asks until there is an answer or the deadline has passed.
    async fn fetch(&self, count: u32) -> Result<TsRange, TsoError> {
        if let Some(metrics) = &self.metrics {
            metrics.batch_size.observe(f64::from(count));
        }
        let mut last_error = None;
        let attempts = self.attempts(count, &mut last_error);
        match tokio::time::timeout(self.options.deadline, attempts).await {
            Ok(result) => result,
            Err(_) => Err(last_error.unwrap_or_else(|| TsoError::Unavailable("no answer in time".to_owned()))),
        }
    }

    async fn attempts(&self, count: u32, last_error: &mut Option<TsoError>) -> Result<TsRange, TsoError> {
        let mut pause = self.options.backoff_min;
        loop {
            let newest = self.state.lock().newest;
            let answer = self.source.allocate(count).await.and_then(|range| self.accept(range, count, newest));
            if let Some(metrics) = &self.metrics {
                metrics.requests.inc();
                metrics.failures.inc_by(u64::from(answer.is_err()));
            }
            let error = match answer {
                Err(error @ TsoError::Unavailable(_)) => error,
                done => return done,
            };
            tracing::debug!(%error, "no timestamp yet");
            *last_error = Some(error);
            if self.state.lock().closed {
                return Err(TsoError::Closed);
            }
            let shortened = self.rng.lock().random_range(0.5..=1.0);
            tokio::time::sleep(pause.mul_f64(shortened)).await;
            pause = (pause * 2).min(self.options.backoff_max);
        }
    }

    /// Checks what came from outside: as many as asked for, and above everything handed out before the request.
    fn accept(&self, range: TsRange, count: u32, newest: Timestamp) -> Result<TsRange, TsoError> {
        if range.count != count || range.first() <= newest {
            tracing::error!(?range, count, %newest, "the timestamp oracle broke its promise");
            return Err(TsoError::Unavailable(format!("a range of {} up to {} is not new", range.count, range.last)));
        }
        let mut state = self.state.lock();
        state.newest = state.newest.max(range.last);
        Ok(range)
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
