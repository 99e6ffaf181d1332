//! The batching client: many callers, few requests.
//!
//! A caller that finds no request in flight sends one itself. A caller that arrives during a request is queued and
//! joins the *next* request, together with all others queued meanwhile: its timestamp must be issued after its call.
//! The next request leaves with the answer of one before, or a while after the last one left, whichever comes first. So
//! near the oracle one request at a time is in flight and the round trip bounds their rate. Far from it a caller waits
//! little longer than one round trip, instead of up to two, and the pause between requests bounds their rate. While
//! requests fail, one at a time is retried.
//!
//! Transactions that read nothing take their names from a range that is fetched ahead (`ahead`).
//!
//! If the oracle is in this process, a caller gets its timestamp within its call and meets none of this.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::ahead::{self, Ahead};
use crate::metrics::ClientMetrics;
use crate::source::{TsoError, TsoSource};
use crate::timestamp::{MAX_COUNT, Timestamp, TsRange};

/// Settings of a [`TsoClient`].
#[derive(Clone, Debug)]
pub struct TsoClientOptions {
    /// The longest time that a caller waits. Default 10 s.
    pub deadline: Duration,
    /// The pause after the first failed request. Each further pause is twice as long, and each is shortened by up to
    /// half at random. Default 2 ms.
    pub backoff_min: Duration,
    /// The longest pause. Default 250 ms.
    pub backoff_max: Duration,
    /// The most callers in the queue; further callers fail. Default 65,536, at most 2^17.
    pub queue: usize,
    /// How long after a request the next one may leave although no answer has come. Default 1 ms.
    pub spacing: Duration,
    /// Below so many requests in flight a caller sends its own at once, if the last answer took more than four times
    /// the spacing: there the spacing adds to what every caller waits for, and few callers have few requests in a round
    /// trip. Default 16.
    pub prompt: usize,
    /// The most requests in flight. Default 64, minimum 1.
    pub in_flight: usize,
    /// The seed of the jitter of pauses, so that a run repeats. Default `None`: from the operating system.
    pub seed: Option<u64>,
}

impl Default for TsoClientOptions {
    fn default() -> TsoClientOptions {
        TsoClientOptions {
            deadline: Duration::from_secs(10),
            backoff_min: Duration::from_millis(2),
            backoff_max: Duration::from_millis(250),
            queue: 1 << 16,
            spacing: Duration::from_millis(1),
            prompt: 16,
            in_flight: 64,
            seed: None,
        }
    }
}

/// Fetches timestamps for any number of callers. Clones share the requests in flight, the queue and the closed state.
#[derive(Clone)]
pub struct TsoClient {
    batcher: Arc<Batcher>,
}

struct Batcher {
    source: Arc<dyn TsoSource>,
    options: TsoClientOptions,
    runtime: Handle,
    state: Mutex<State>,
    newest: Newest,
    ahead: Mutex<Ahead>,
    closed: AtomicBool,
    /// Whether the last answer was a failure.
    failing: AtomicBool,
    /// Whether the last answer took long beside the spacing.
    far: AtomicBool,
    /// Only for the length of pauses.
    rng: Mutex<StdRng>,
    metrics: Option<ClientMetrics>,
}

/// The newest timestamp that a client has received. The oracle's time was at or above it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestTimestamp {
    /// The timestamp; [`Timestamp::ZERO`] before the first.
    pub timestamp: Timestamp,
    /// The time since it was received, or since one of the same millisecond was; [`Duration::MAX`] before the first.
    pub age: Duration,
}

/// The newest timestamp, without a lock: every caller updates it.
///
/// Invariants:
/// 1. `timestamp` is at or above every timestamp handed out.
/// 2. `received` is the time at which `timestamp`, or an older one, was received: `timestamp` is written first and read
///    last.
struct Newest {
    timestamp: AtomicU64,
    /// Nanoseconds since `base`, plus one; 0 before the first timestamp.
    received: AtomicU64,
    base: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the client is an edge: it reads the clock when timestamps arrive")]
impl Newest {
    fn new() -> Newest {
        Newest { timestamp: AtomicU64::new(0), received: AtomicU64::new(0), base: Instant::now() }
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_raw(self.timestamp.load(Acquire))
    }

    /// Notes a timestamp that was received now. Reads the clock once in a millisecond of the oracle's time.
    fn note(&self, timestamp: Timestamp) {
        let before = Timestamp::from_raw(self.timestamp.fetch_max(timestamp.raw(), AcqRel));
        if timestamp.physical_ms() > before.physical_ms() || self.received.load(Acquire) == 0 {
            let elapsed = u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX - 1);
            self.received.fetch_max(elapsed + 1, Release);
        }
    }

    fn get(&self) -> NewestTimestamp {
        let age = match self.received.load(Acquire) {
            0 => Duration::MAX,
            received => self.base.elapsed().saturating_sub(Duration::from_nanos(received - 1)),
        };
        NewestTimestamp { timestamp: self.timestamp(), age }
    }
}

type Waiter = oneshot::Sender<Result<Timestamp, TsoError>>;

/// Invariants:
/// 1. `in_flight` counts the [`RequestPermit`]s; it is at most [`TsoClientOptions::in_flight`].
/// 2. The queue is empty while no request is in flight.
/// 3. Nobody is queued once the client is closed.
#[derive(Default)]
struct State {
    in_flight: usize,
    /// Whether a task waits to send the next request.
    is_timed: bool,
    queue: VecDeque<Waiter>,
}

impl TsoClient {
    /// A client over `source` with default options and no metrics.
    ///
    /// # Panics
    /// Outside of a tokio runtime. Batches of queued callers run on the runtime of this call.
    pub fn new(source: Arc<dyn TsoSource>) -> TsoClient {
        TsoClient::with_options(source, TsoClientOptions::default(), None)
    }

    /// A client over `source` with these options. `options.queue` is capped at 2^17, so that one request serves a whole
    /// queue.
    ///
    /// # Panics
    /// Outside of a tokio runtime. Batches of queued callers run on the runtime of this call.
    pub fn with_options(
        source: Arc<dyn TsoSource>,
        mut options: TsoClientOptions,
        metrics: Option<ClientMetrics>,
    ) -> TsoClient {
        options.queue = options.queue.min(MAX_COUNT as usize);
        #[expect(clippy::disallowed_methods, reason = "the edge where the jitter of retries gets its seed")]
        let rng = Mutex::new(options.seed.map_or_else(StdRng::from_os_rng, StdRng::seed_from_u64));
        let runtime = Handle::current();
        options.in_flight = options.in_flight.max(1);
        let (state, newest, ahead) = (Mutex::default(), Newest::new(), Mutex::default());
        let (closed, failing, far) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        TsoClient {
            batcher: Arc::new(Batcher {
                source,
                options,
                runtime,
                state,
                newest,
                ahead,
                closed,
                failing,
                far,
                rng,
                metrics,
            }),
        }
    }

    /// Fetches a timestamp within this call, if the oracle is in this process and serves. Otherwise returns `None`, and
    /// [`TsoClient::timestamp`] is the way.
    pub fn try_timestamp(&self) -> Option<Timestamp> {
        let batcher = &self.batcher;
        if batcher.closed.load(Acquire) {
            return None;
        }
        let newest = batcher.newest.timestamp();
        let range = batcher.source.try_allocate(1)?;
        if let Some(metrics) = &batcher.metrics {
            metrics.requests.inc();
        }
        batcher.check_range(range, 1, newest).ok().map(|range| range.last)
    }

    /// Fetches a timestamp that is issued after the first poll of the future: above every timestamp that any caller of
    /// the cluster had received before. Each caller gets a timestamp of its own. Waits for `options.deadline` at most
    /// (10 s by default); until then failed requests are retried.
    ///
    /// Any number of tasks may call it at once.
    ///
    /// # Errors
    /// - [`TsoError::Unavailable`]: no oracle answered before the deadline, or `options.queue` callers are waiting
    ///   already. A later call may succeed.
    /// - [`TsoError::Closed`]: [`TsoClient::close`] was called, the source is closed, or the runtime is shutting down.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time. Its timestamp, if one was issued, is never used; other callers are not
    /// affected: if the dropped caller had a request in flight, the queued callers send a new one.
    pub async fn timestamp(&self) -> Result<Timestamp, TsoError> {
        if let Some(timestamp) = self.try_timestamp() {
            // A caller in a loop yields to other tasks now and then, although it never waits.
            tokio::task::coop::consume_budget().await;
            return Ok(timestamp);
        }
        let batcher = &self.batcher;
        match batcher.admit()? {
            Admission::Send(_permit) => batcher.fetch(1).await.map(|range| range.last),
            Admission::Queued(reply) => match tokio::time::timeout(batcher.options.deadline, reply).await {
                Ok(Ok(result)) => result,
                // The runtime is shutting down and dropped the batch.
                Ok(Err(_)) => Err(TsoError::Closed),
                Err(_) => Err(TsoError::Unavailable("waited too long for the requests before".to_owned())),
            },
        }
    }

    /// Takes a timestamp that was issued before this call, at most 10 s ago, if one is there. It may name a
    /// transaction, and says nothing about what is committed by now. Now and then, the client fetches a range of them
    /// in a task.
    pub fn take_ahead(&self) -> Option<Timestamp> {
        let batcher = &self.batcher;
        if batcher.closed.load(Acquire) {
            return None;
        }
        let asked = now();
        let taken = batcher.ahead.lock().take(asked);
        if taken.must_fetch {
            let batcher = Arc::clone(batcher);
            self.batcher.runtime.spawn(async move {
                let range = batcher.request(ahead::COUNT).await.ok();
                batcher.ahead.lock().put(range, asked);
            });
        }
        taken.timestamp
    }

    /// The smallest timestamp that [`TsoClient::take_ahead`] may still give, of those that are there.
    pub fn oldest_ahead(&self) -> Option<Timestamp> {
        let now = now();
        self.batcher.ahead.lock().oldest(now)
    }

    /// Drops the timestamps that [`TsoClient::take_ahead`] would give: a transaction that had one met a newer commit.
    pub fn drop_ahead(&self) {
        self.batcher.ahead.lock().clear();
    }

    /// The newest timestamp that this client has received, for any of its callers. Sends nothing.
    pub fn newest(&self) -> NewestTimestamp {
        self.batcher.newest.get()
    }

    /// The timestamp of [`TsoClient::newest`]. Does not read the clock.
    pub fn newest_timestamp(&self) -> Timestamp {
        self.batcher.newest.timestamp()
    }

    /// Takes note of a timestamp that this node has received on another way than from this client.
    pub fn note(&self, timestamp: Timestamp) {
        self.batcher.newest.note(timestamp);
    }

    /// Closes the client and all its clones: queued callers and all later calls fail with [`TsoError::Closed`]. The
    /// callers of a request in flight still get its answer. If it fails, they get `Closed`; a retry that waits for its
    /// pause is sent before that. Does not block; may be called from any thread and more than once.
    pub fn close(&self) {
        let queue = {
            let mut state = self.batcher.state.lock();
            self.batcher.closed.store(true, Release);
            std::mem::take(&mut state.queue)
        };
        for waiter in queue {
            let _ = waiter.send(Err(TsoError::Closed));
        }
    }
}

/// How a caller gets its timestamp.
enum Admission {
    /// It sends the request itself.
    Send(RequestPermit),
    /// The next request serves it.
    Queued(oneshot::Receiver<Result<Timestamp, TsoError>>),
}

/// A permit to have a request in flight. On drop, also by a cancelled caller, it passes to the callers queued
/// meanwhile.
struct RequestPermit {
    batcher: Arc<Batcher>,
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let waiters = {
            let mut state = self.batcher.state.lock();
            state.in_flight -= usize::from(state.queue.is_empty());
            std::mem::take(&mut state.queue)
        };
        if !waiters.is_empty() {
            // A runtime that is shutting down drops the task at once, and with it the waiters. The task's permit then
            // finds an empty queue, which ends the recursion.
            self.batcher.runtime.spawn(send_batch(RequestPermit { batcher: Arc::clone(&self.batcher) }, waiters));
        }
    }
}

/// Sends one request for `waiters` and for the callers queued before it is sent. Callers queued during the request are
/// served by the next batch, which the drop of `permit` starts.
async fn send_batch(permit: RequestPermit, mut waiters: VecDeque<Waiter>) {
    let batcher = &permit.batcher;
    {
        let mut state = batcher.state.lock();
        let room = (MAX_COUNT as usize).saturating_sub(waiters.len()).min(state.queue.len());
        waiters.extend(state.queue.drain(..room));
    }
    waiters.retain(|waiter| !waiter.is_closed());
    let Ok(count) = u32::try_from(waiters.len()) else { return };
    if count == 0 {
        return;
    }
    match batcher.fetch(count).await {
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

/// Sends a request for those who are queued after a while, although others are in flight.
async fn send_later(batcher: Arc<Batcher>) {
    tokio::time::sleep(batcher.options.spacing).await;
    let waiters = {
        let mut state = batcher.state.lock();
        state.is_timed = false;
        let has_room = state.in_flight < batcher.options.in_flight && !batcher.failing.load(Acquire);
        if state.queue.is_empty() || !has_room {
            return;
        }
        state.in_flight += 1;
        std::mem::take(&mut state.queue)
    };
    send_batch(RequestPermit { batcher }, waiters).await;
}

impl Batcher {
    fn admit(self: &Arc<Batcher>) -> Result<Admission, TsoError> {
        let mut state = self.state.lock();
        if self.closed.load(Acquire) {
            return Err(TsoError::Closed);
        }
        if state.in_flight == 0 {
            assert!(state.queue.is_empty(), "invariant 2: callers are queued only during a request");
            state.in_flight = 1;
            return Ok(Admission::Send(RequestPermit { batcher: Arc::clone(self) }));
        }
        let may_pipeline = !self.failing.load(Acquire);
        let prompt = self.options.prompt.min(self.options.in_flight);
        if may_pipeline && self.far.load(Acquire) && state.queue.is_empty() && state.in_flight < prompt {
            state.in_flight += 1;
            return Ok(Admission::Send(RequestPermit { batcher: Arc::clone(self) }));
        }
        if state.queue.len() >= self.options.queue {
            return Err(TsoError::Unavailable("too many callers are waiting".to_owned()));
        }
        let (sender, receiver) = oneshot::channel();
        state.queue.push_back(sender);
        let has_room = state.in_flight < self.options.in_flight && may_pipeline;
        if has_room && !std::mem::replace(&mut state.is_timed, true) {
            self.runtime.spawn(send_later(Arc::clone(self)));
        }
        Ok(Admission::Queued(receiver))
    }

    /// Requests `count` timestamps, with retries, until the deadline.
    async fn fetch(&self, count: u32) -> Result<TsRange, TsoError> {
        if let Some(metrics) = &self.metrics {
            metrics.batch_size.observe(f64::from(count));
        }
        let mut last_error = None;
        let attempts = self.retry(count, &mut last_error);
        match tokio::time::timeout(self.options.deadline, attempts).await {
            Ok(result) => result,
            Err(_) => Err(last_error.unwrap_or_else(|| TsoError::Unavailable("no answer in time".to_owned()))),
        }
    }

    async fn retry(&self, count: u32, last_error: &mut Option<TsoError>) -> Result<TsRange, TsoError> {
        let mut pause = self.options.backoff_min;
        loop {
            let error = match self.request(count).await {
                Err(error @ TsoError::Unavailable(_)) => error,
                done => return done,
            };
            tracing::debug!(%error, "no timestamp yet");
            *last_error = Some(error);
            if self.closed.load(Acquire) {
                return Err(TsoError::Closed);
            }
            let shortened = self.rng.lock().random_range(0.5..=1.0);
            tokio::time::sleep(pause.mul_f64(shortened)).await;
            pause = (pause * 2).min(self.options.backoff_max);
        }
    }

    /// Requests `count` timestamps once.
    async fn request(&self, count: u32) -> Result<TsRange, TsoError> {
        let (newest, sent) = (self.newest.timestamp(), now());
        let answer = self.source.allocate(count).await.and_then(|range| self.check_range(range, count, newest));
        self.failing.store(answer.is_err(), Release);
        self.far.store(now().saturating_duration_since(sent) > self.options.spacing * 4, Release);
        if let Some(metrics) = &self.metrics {
            metrics.requests.inc();
            metrics.failures.inc_by(u64::from(answer.is_err()));
        }
        answer
    }

    /// Validates a source's answer: the requested count, and above every timestamp handed out before the request.
    fn check_range(&self, range: TsRange, count: u32, newest: Timestamp) -> Result<TsRange, TsoError> {
        if range.count != count || range.first() <= newest {
            tracing::error!(?range, count, %newest, "the timestamp oracle issued a range that is not new");
            return Err(TsoError::Unavailable(format!("a range of {} up to {} is not new", range.count, range.last)));
        }
        self.newest.note(range.last);
        Ok(range)
    }
}

#[expect(clippy::disallowed_methods, reason = "the client is an edge: timestamps that it keeps grow old")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
