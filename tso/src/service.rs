//! The oracle at work on a node: its clock, its durable window, its leadership.
//!
//! The node tells the service when it starts and stops leading the system region. While it leads, a task keeps the
//! window ahead of the clock; a request computes its timestamps under a short lock and *then* asks whether the lease
//! still holds. In this order a node that was paused between the two hands out nothing: had another leader taken over
//! meanwhile, the lease would have ended before.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::client::{TsRange, TsoError, TsoSource};
use crate::metrics::ServiceMetrics;
use crate::oracle::{Now, Oracle, Refusal, WINDOW_MS};
use crate::router::OracleNode;
use crate::timestamp::Timestamp;
use crate::window::{LeaderTerm, Window, WindowError};

/// How often the window is looked at when nobody asks for timestamps.
const KEEP_EVERY: Duration = Duration::from_millis(WINDOW_MS / 8);
/// How long a request waits for a window before it is refused.
const WINDOW_WAIT: Duration = Duration::from_secs(1);
/// Pause after a failed attempt to read or raise the mark: twice as long each time, between these.
const RETRY_MIN: Duration = Duration::from_millis(5);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// A node's clocks, looked at together.
pub type Clocks = Arc<dyn Fn() -> Now + Send + Sync>;

/// The clocks of this machine.
#[expect(clippy::disallowed_methods, reason = "the edge at which the oracle's clocks are read")]
pub fn system_clock() -> Clocks {
    let started = Instant::now();
    Arc::new(move || {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { wall_ms: ms(wall), mono_ms: ms(started.elapsed()) }
    })
}

/// Why a node gave no timestamps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// Another node leads; its address, if known.
    #[error("not the leader of the timestamp oracle")]
    NotLeader {
        /// Address of the node believed to lead.
        hint: Option<String>,
    },
    /// The node leads but cannot serve now, or could not be reached: try again.
    #[error("timestamp oracle unavailable: {0}")]
    Unavailable(String),
    /// A count of 0 or above [`crate::oracle::MAX_COUNT`].
    #[error("{0} timestamps asked for at once")]
    InvalidCount(u32),
}

impl From<AllocateError> for TsoError {
    fn from(error: AllocateError) -> TsoError {
        TsoError::Unavailable(error.to_string())
    }
}

/// The oracle of one node; clones share it. In-process callers and the gRPC adapter use the same path.
#[derive(Clone)]
pub struct TsoService {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    window: Arc<dyn Window>,
    clock: Clocks,
    runtime: Handle,
    /// Bumped when requests that wait for a window should look again: it was raised, or the leadership changed.
    changed: watch::Sender<u64>,
    /// Wakes the keeper before its time: a request found the window used up.
    wanted: Notify,
    metrics: Option<ServiceMetrics>,
}

#[derive(Default)]
struct State {
    oracle: Oracle,
    /// The leadership that the keeper serves, also while it is still reading the mark.
    leading: Option<LeaderTerm>,
    keeper: Option<AbortHandle>,
}

impl TsoService {
    /// A service without leadership. Must be called within a tokio runtime, on which its window is kept.
    pub fn new(window: Arc<dyn Window>, clock: Clocks, metrics: Option<ServiceMetrics>) -> TsoService {
        let inner = Inner {
            state: Mutex::default(),
            window,
            clock,
            runtime: Handle::current(),
            changed: watch::Sender::new(0),
            wanted: Notify::new(),
            metrics,
        };
        TsoService { inner: Arc::new(inner) }
    }

    /// The node leads the system region in `term` and has applied an entry of that term. Timestamps can be had once
    /// a fresh window is durable. Callable from any thread; a term not above the present one is ignored.
    pub fn on_leader(&self, term: LeaderTerm) {
        let mut state = self.inner.state.lock();
        if state.leading.is_some_and(|leading| leading >= term) {
            return;
        }
        state.step_down();
        state.leading = Some(term);
        state.keeper = Some(self.inner.runtime.spawn(keep(Arc::clone(&self.inner), term)).abort_handle());
    }

    /// The node no longer leads: from the return of this call on no timestamp is computed, and one computed before is
    /// handed out only if the lease held after that. Callable from any thread.
    pub fn on_step_down(&self) {
        self.inner.state.lock().step_down();
        self.inner.announce();
    }

    /// Whether timestamps can be had here, as far as is known without asking the lease.
    pub fn is_serving(&self) -> bool {
        self.inner.state.lock().oracle.is_serving()
    }

    /// `count` timestamps issued after this call was made. Waits, bounded, for a window that is being raised.
    pub async fn allocate(&self, count: u32) -> Result<TsRange, AllocateError> {
        let inner = &self.inner;
        // Without a wait on the way this never becomes a timer.
        let result = match inner.try_allocate(count) {
            Err(Attempt::Wait) => match tokio::time::timeout(WINDOW_WAIT, inner.wait_and_allocate(count)).await {
                Ok(result) => result,
                Err(_) => Err(AllocateError::Unavailable("its window was not raised in time".to_owned())),
            },
            Err(Attempt::Failed(error)) => Err(error),
            Ok(range) => Ok(range),
        };
        inner.count(&result);
        result
    }
}

impl OracleNode for TsoService {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, AllocateError>> {
        TsoService::allocate(self, count).boxed()
    }
}

impl TsoSource for TsoService {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        TsoService::allocate(self, count).map(|result| result.map_err(TsoError::from)).boxed()
    }
}

/// What one look at the oracle came to, if not to timestamps.
enum Attempt {
    /// A window is missing: look again when something has changed.
    Wait,
    Failed(AllocateError),
}

impl Inner {
    fn try_allocate(&self, count: u32) -> Result<TsRange, Attempt> {
        let issued = {
            let mut state = self.state.lock();
            state.leading.map(|term| (term, state.oracle.allocate((self.clock)(), count)))
        };
        let Some((term, issued)) = issued else {
            return Err(Attempt::Failed(AllocateError::NotLeader { hint: self.window.leader_address() }));
        };
        match issued {
            // After the range was computed: see the module documentation.
            Ok(range) if self.window.lease_holds(term) => Ok(range),
            Err(Refusal::InvalidCount) => Err(Attempt::Failed(AllocateError::InvalidCount(count))),
            // Worth waiting for, while the node does lead: the keeper reads or raises the mark.
            Err(Refusal::WindowUsedUp | Refusal::NotLeader) if self.window.lease_holds(term) => Err(Attempt::Wait),
            Ok(_) | Err(_) => Err(Attempt::Failed(AllocateError::NotLeader { hint: None })),
        }
    }

    async fn wait_and_allocate(&self, count: u32) -> Result<TsRange, AllocateError> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            match self.try_allocate(count) {
                Ok(range) => return Ok(range),
                Err(Attempt::Failed(error)) => return Err(error),
                Err(Attempt::Wait) => self.wanted.notify_one(),
            }
            if changed.changed().await.is_err() {
                return Err(AllocateError::Unavailable("the node is stopping".to_owned()));
            }
        }
    }

    fn announce(&self) {
        self.changed.send_modify(|generation| *generation += 1);
        if let Some(metrics) = &self.metrics {
            metrics.serving.set(i64::from(self.state.lock().oracle.is_serving()));
        }
    }

    fn count(&self, result: &Result<TsRange, AllocateError>) {
        let Some(metrics) = &self.metrics else { return };
        metrics.requests.inc();
        match result {
            Ok(range) => metrics.timestamps.inc_by(u64::from(range.count)),
            Err(AllocateError::NotLeader { .. }) => metrics.refused.with_label_values(&["not_leader"]).inc(),
            Err(AllocateError::Unavailable(_)) => metrics.refused.with_label_values(&["unavailable"]).inc(),
            Err(AllocateError::InvalidCount(_)) => metrics.refused.with_label_values(&["invalid"]).inc(),
        }
    }
}

impl State {
    fn step_down(&mut self) {
        self.oracle.stop();
        self.leading = None;
        if let Some(keeper) = self.keeper.take() {
            keeper.abort();
        }
    }
}

/// Serves the leadership of `term`: reads the mark, then keeps the window ahead until the leadership ends.
async fn keep(inner: Arc<Inner>, term: LeaderTerm) {
    let mark = load(&inner, term).await;
    {
        let mut state = inner.state.lock();
        if state.leading != Some(term) {
            return;
        }
        state.oracle.start(term, mark);
    }
    let mut pause = RETRY_MIN;
    loop {
        let next = {
            let mut state = inner.state.lock();
            if state.leading != Some(term) {
                return;
            }
            state.oracle.extend((inner.clock)())
        };
        let wait = match next {
            None => KEEP_EVERY,
            Some(mark) => match raise(&inner, term, mark).await {
                Ok(()) => {
                    pause = RETRY_MIN;
                    // Look again at once: requests may have used the window up while it was raised.
                    continue;
                }
                // Also if the leadership seems lost: it is the node that ends this task, when it steps down. Until
                // then a proposal that was dropped must not leave a leader without a window.
                Err(_) => doubled(&mut pause),
            },
        };
        // Being woken early is as good as being woken in time.
        let _ = tokio::time::timeout(wait, inner.wanted.notified()).await;
    }
}

/// The mark that the leadership starts from. Tries until the task is ended.
async fn load(inner: &Inner, term: LeaderTerm) -> Timestamp {
    let mut pause = RETRY_MIN;
    loop {
        match inner.window.load(term).await {
            Ok(mark) => return mark,
            Err(error) => {
                tracing::warn!(%term, %error, "timestamp mark could not be read");
                tokio::time::sleep(doubled(&mut pause)).await;
            }
        }
    }
}

async fn raise(inner: &Inner, term: LeaderTerm, mark: Timestamp) -> Result<(), WindowError> {
    let result = inner.window.raise(term, mark).await;
    match &result {
        Ok(()) => inner.state.lock().oracle.raised(term, mark),
        Err(error) => {
            tracing::warn!(%term, %mark, %error, "timestamp window not raised");
            inner.state.lock().oracle.raise_failed(term);
        }
    }
    if let Some(metrics) = &inner.metrics {
        if result.is_ok() { metrics.raises.inc() } else { metrics.raise_failures.inc() }
    }
    inner.announce();
    result
}

/// The present pause; the next one is twice as long.
fn doubled(pause: &mut Duration) -> Duration {
    let present = *pause;
    *pause = (present * 2).min(RETRY_MAX);
    present
}
