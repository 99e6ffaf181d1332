//! The service: runs the oracle on a node, with its clock, its durable window and its leadership.
//!
//! The node calls [`TsoService::on_leader`] and [`TsoService::on_step_down`] as its leadership of the system region
//! changes. While it leads, a task keeps the window ahead of the clock. A request computes its timestamps under a short
//! lock and checks *afterwards* that the lease still holds. In this order a node that was paused between the two steps
//! hands out nothing: if another leader had taken over meanwhile, the lease would have ended before.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::leap::{self, Leap, Survey, TimeReport};
use crate::metrics::ServiceMetrics;
use crate::oracle::{ClockReading, Oracle, OracleError, WINDOW_MS};
use crate::source::{AllocateError, OracleNode, TsoError, TsoSource};
use crate::timestamp::{Timestamp, TsRange};
use crate::window::{Inquiry, LeaderTerm, Window, WindowError};

/// How often the window is checked while no timestamps are requested.
const WINDOW_CHECK_INTERVAL: Duration = Duration::from_millis(WINDOW_MS / 8);
/// How long a request waits for a window before it fails.
const WINDOW_WAIT: Duration = Duration::from_secs(1);
/// Pause after a failed attempt to read or raise the mark. It doubles from `RETRY_MIN` to `RETRY_MAX`.
const RETRY_MIN: Duration = Duration::from_millis(5);
const RETRY_MAX: Duration = Duration::from_millis(500);
/// How often a survey is decided anew without another answer, because time passes.
const SURVEY_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The oracle's distance from the wall clock that is logged, in milliseconds. A handover alone stays below it.
const LOGGED_OFFSET_MS: u64 = 10_000;

/// Reads both clocks of a node.
pub type Clocks = Arc<dyn Fn() -> ClockReading + Send + Sync>;

/// The clocks of this machine. The monotonic one counts the time for which the machine was suspended, as the wall clock
/// does: the oracle does not lag after it.
#[expect(clippy::disallowed_methods, reason = "the edge at which the oracle's clocks are read")]
pub fn system_clock() -> Clocks {
    Arc::new(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_boot = clock_gettime(ClockId::Boottime);
        let (seconds, nanos) = (u64::try_from(since_boot.tv_sec), u64::try_from(since_boot.tv_nsec));
        let mono = Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_nanos(nanos.unwrap_or(0));
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        ClockReading { wall_ms: ms(wall), mono_ms: ms(mono) }
    })
}

/// The oracle of one node; clones share it. In-process callers and the adapter to links both call
/// [`TsoService::allocate`].
#[derive(Clone)]
pub struct TsoService {
    host: Arc<OracleHost>,
}

struct OracleHost {
    state: Mutex<State>,
    window: Arc<dyn Window>,
    clock: Clocks,
    runtime: Handle,
    /// Its waiters, requests without a window, are notified after a raise or a leadership change. They then retry.
    changed: Notify,
    /// Wakes the window task early: a request found the window used up.
    raise_requested: Notify,
    metrics: Option<ServiceMetrics>,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

/// A deliberate bug, so that a test can prove that it finds real ones. Inert unless a service is built with it.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// The lease is checked before the timestamps are computed, not afterwards.
    LeaseCheckedBeforeCompute,
    /// The lease is not checked.
    LeaseNotChecked,
}

#[derive(Default)]
struct State {
    oracle: Oracle,
    /// The leadership that the window task serves, also while it is still reading the mark.
    leader_term: Option<LeaderTerm>,
    window_task: Option<AbortHandle>,
}

impl TsoService {
    /// A service without leadership. Its window task will run on the runtime of this call.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(window: Arc<dyn Window>, clock: Clocks, metrics: Option<ServiceMetrics>) -> TsoService {
        TsoService { host: Arc::new(OracleHost::new(window, clock, metrics)) }
    }

    /// A service with this deliberate bug; otherwise as [`TsoService::new`].
    #[cfg(feature = "planted-bugs")]
    pub fn with_planted_bug(window: Arc<dyn Window>, clock: Clocks, bug: PlantedBug) -> TsoService {
        let host = OracleHost { planted_bug: Some(bug), ..OracleHost::new(window, clock, None) };
        TsoService { host: Arc::new(host) }
    }

    /// The node leads the system region in `term` and has applied an entry of that term. The service issues timestamps
    /// once a new window is durable. Callable from any thread. Ignored unless `term` is above the current one.
    pub fn on_leader(&self, term: LeaderTerm) {
        let mut state = self.host.state.lock();
        if state.leader_term.is_some_and(|current| current >= term) {
            return;
        }
        state.step_down();
        state.leader_term = Some(term);
        state.window_task = Some(self.host.runtime.spawn(maintain_window(Arc::clone(&self.host), term)).abort_handle());
    }

    /// The node no longer leads. After this call returns no timestamp is computed; one computed before is handed out
    /// only if the lease still held after it was computed. Callable from any thread.
    pub fn on_step_down(&self) {
        self.host.state.lock().step_down();
        self.host.notify_waiters();
    }

    /// What this node knows about the time: its answer to another node that begins to lead.
    pub fn time_report(&self) -> TimeReport {
        self.host.time_report()
    }

    /// Whether this node leads and has a window. Does not check the lease.
    pub fn is_serving(&self) -> bool {
        self.host.state.lock().oracle.is_serving()
    }

    /// Issues `count` (1 to 2^17) timestamps within this call. `None` if this node does not lead or has no window now:
    /// [`TsoService::allocate`] then waits, or says why.
    pub fn try_allocate(&self, count: u32) -> Option<TsRange> {
        let range = self.host.try_allocate(count).ok()?;
        self.host.count(range);
        Some(range)
    }

    /// Issues `count` (1 to 2^17) timestamps after this call was made. Waits up to one second for a window that is
    /// being raised.
    ///
    /// # Errors
    /// - [`AllocateError::NotLeader`]: this node does not lead, or its lease has ended.
    /// - [`AllocateError::Unavailable`]: the window was not raised in time.
    /// - [`AllocateError::InvalidCount`]: `count` is out of range.
    ///
    /// # Panics
    /// Outside of a tokio runtime, if it has to wait.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; timestamps that were issued to it are never used.
    pub async fn allocate(&self, count: u32) -> Result<TsRange, AllocateError> {
        let host = &self.host;
        // The common path does not wait, so it creates no timer.
        let result = match host.try_allocate(count) {
            Err(Rejection::NoWindow) => match tokio::time::timeout(WINDOW_WAIT, host.wait_and_allocate(count)).await {
                Ok(result) => result,
                Err(_) => Err(AllocateError::Unavailable("its window was not raised in time".to_owned())),
            },
            Err(rejection) => Err(host.error(rejection)),
            Ok(range) => Ok(range),
        };
        host.record(&result);
        result
    }
}

impl OracleNode for TsoService {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, AllocateError>> {
        TsoService::allocate(self, count).boxed()
    }
}

impl TsoSource for TsoService {
    fn try_allocate(&self, count: u32) -> Option<TsRange> {
        TsoService::try_allocate(self, count)
    }

    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        TsoService::allocate(self, count).map(|result| result.map_err(TsoError::from)).boxed()
    }
}

/// Why one attempt at the oracle issued no timestamps.
enum Rejection {
    /// The window is missing or used up: retry when `changed` notifies.
    NoWindow,
    /// The node does not lead.
    NotLeader,
    Failed(AllocateError),
}

impl OracleHost {
    fn new(window: Arc<dyn Window>, clock: Clocks, metrics: Option<ServiceMetrics>) -> OracleHost {
        OracleHost {
            state: Mutex::default(),
            window,
            clock,
            runtime: Handle::current(),
            changed: Notify::new(),
            raise_requested: Notify::new(),
            metrics,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { wall_ms: (self.clock)().wall_ms, quiet: self.window.quiet() }
    }

    /// What a planted bug takes for the state of the lease, decided before the timestamps are computed.
    #[cfg(feature = "planted-bugs")]
    fn planted_lease(&self) -> Option<bool> {
        match self.planted_bug? {
            PlantedBug::LeaseCheckedBeforeCompute => {
                let term = self.state.lock().leader_term;
                Some(term.is_some_and(|term| self.window.lease_holds(term)))
            }
            PlantedBug::LeaseNotChecked => Some(true),
        }
    }

    fn try_allocate(&self, count: u32) -> Result<TsRange, Rejection> {
        #[cfg(feature = "planted-bugs")]
        let planted_lease = self.planted_lease();
        let issued = {
            let mut state = self.state.lock();
            state.leader_term.map(|term| (term, state.oracle.allocate((self.clock)(), count)))
        };
        let Some((term, issued)) = issued else { return Err(Rejection::NotLeader) };
        // The lease is checked after the range was computed: see the module documentation.
        let lease_holds = self.window.lease_holds(term);
        #[cfg(feature = "planted-bugs")]
        let lease_holds = planted_lease.unwrap_or(lease_holds);
        match issued {
            Ok(range) if lease_holds => Ok(range),
            Err(OracleError::InvalidCount) => Err(Rejection::Failed(AllocateError::InvalidCount(count))),
            // The node does lead: the window task is reading or raising the mark.
            Err(OracleError::WindowUsedUp | OracleError::NotLeader) if lease_holds => Err(Rejection::NoWindow),
            Ok(_) | Err(_) => Err(Rejection::Failed(AllocateError::NotLeader { hint: None })),
        }
    }

    async fn wait_and_allocate(&self, count: u32) -> Result<TsRange, AllocateError> {
        loop {
            // Notices every change from here on.
            let changed = self.changed.notified();
            match self.try_allocate(count) {
                Ok(range) => return Ok(range),
                Err(Rejection::NoWindow) => self.raise_requested.notify_one(),
                Err(rejection) => return Err(self.error(rejection)),
            }
            changed.await;
        }
    }

    /// The error of a rejection that a wait does not cure.
    fn error(&self, rejection: Rejection) -> AllocateError {
        match rejection {
            Rejection::NoWindow => AllocateError::Unavailable("it has no window".to_owned()),
            Rejection::NotLeader => AllocateError::NotLeader { hint: self.window.leader_address() },
            Rejection::Failed(error) => error,
        }
    }

    fn notify_waiters(&self) {
        self.changed.notify_waiters();
        if let Some(metrics) = &self.metrics {
            let state = self.state.lock();
            metrics.serving.set(i64::from(state.oracle.is_serving()));
            metrics.offset_ms.set(state.oracle.offset_ms((self.clock)()).unwrap_or(0));
        }
    }

    /// Logs when the oracle's distance from the wall clock becomes large, and when it is small again. `was_large` is
    /// the state that was logged.
    fn log_offset(&self, offset_ms: i64, was_large: &mut bool) {
        let is_large = offset_ms.unsigned_abs() >= LOGGED_OFFSET_MS;
        match (is_large, *was_large) {
            (true, false) => tracing::warn!(
                offset_ms,
                "the oracle is far from this node's wall clock and approaches it at half the pace of time"
            ),
            (false, true) => tracing::info!(offset_ms, "the oracle is near this node's wall clock again"),
            _ => {}
        }
        *was_large = is_large;
    }

    fn record(&self, result: &Result<TsRange, AllocateError>) {
        let error = match result {
            Ok(range) => return self.count(*range),
            Err(error) => error,
        };
        let Some(metrics) = &self.metrics else { return };
        metrics.requests.inc();
        let reason = match error {
            AllocateError::NotLeader { .. } => "not_leader",
            AllocateError::Unavailable(_) => "unavailable",
            AllocateError::InvalidCount(_) => "invalid",
        };
        metrics.refused.with_label_values(&[reason]).inc();
    }

    /// Counts a request that was served.
    fn count(&self, range: TsRange) {
        if let Some(metrics) = &self.metrics {
            metrics.requests.inc();
            metrics.timestamps.inc_by(u64::from(range.count));
        }
    }
}

impl State {
    fn step_down(&mut self) {
        self.oracle.stop();
        self.leader_term = None;
        if let Some(window_task) = self.window_task.take() {
            window_task.abort();
        }
    }
}

/// The window task of one leadership: reads the mark, then keeps the window ahead until the leadership ends.
async fn maintain_window(host: Arc<OracleHost>, term: LeaderTerm) {
    let mark = load_mark(&host, term).await;
    let leap_ms = find_leap(&host, term, mark).await;
    {
        let mut state = host.state.lock();
        if state.leader_term != Some(term) {
            return;
        }
        state.oracle.start(term, mark, (host.clock)(), leap_ms);
    }
    let mut pause = RETRY_MIN;
    let mut offset_is_large = false;
    loop {
        let (next, offset_ms) = {
            let mut state = host.state.lock();
            if state.leader_term != Some(term) {
                return;
            }
            let now = (host.clock)();
            (state.oracle.extend(now), state.oracle.offset_ms(now).unwrap_or(0))
        };
        host.log_offset(offset_ms, &mut offset_is_large);
        if let Some(metrics) = &host.metrics {
            metrics.offset_ms.set(offset_ms);
        }
        let wait = match next {
            None => WINDOW_CHECK_INTERVAL,
            Some(mark) => match raise_mark(&host, term, mark).await {
                Ok(()) => {
                    pause = RETRY_MIN;
                    // Check again at once: requests may have used the window up during the raise.
                    continue;
                }
                // Retry also if the leadership seems lost: only the node ends this task, when it steps down. Until then
                // a dropped proposal must not leave a leader without a window.
                Err(_) => next_backoff(&mut pause),
            },
        };
        // A wake-up and a timeout have the same effect.
        let _ = tokio::time::timeout(wait, host.raise_requested.notified()).await;
    }
}

/// Reads the mark that the leadership starts from. Retries until the task is aborted.
async fn load_mark(host: &OracleHost, term: LeaderTerm) -> Timestamp {
    let mut pause = RETRY_MIN;
    loop {
        match host.window.load(term).await {
            Ok(mark) => return mark,
            Err(error) => {
                tracing::warn!(%term, %error, "timestamp mark could not be read");
                tokio::time::sleep(next_backoff(&mut pause)).await;
            }
        }
    }
}

/// The time to which the leadership leaps from `mark`, if it does.
async fn find_leap(host: &OracleHost, term: LeaderTerm, mark: Timestamp) -> Option<u64> {
    if !leap::must_ask(mark, host.window.quiet()) {
        return None;
    }
    let decided = survey_until_decided(host, term, mark).await;
    let lag_ms = (host.clock)().wall_ms.saturating_sub(mark.physical_ms());
    match decided {
        Leap::To(leap_ms) => {
            tracing::info!(
                lag_ms,
                leap_ms,
                "no node that answers has had a timestamp for long: the oracle leaps to the wall clocks"
            );
            Some(leap_ms)
        }
        Leap::NotDue => {
            tracing::info!(lag_ms, "the oracle starts where it ended");
            None
        }
        Leap::Refused => {
            tracing::info!(lag_ms, "transactions are running: the oracle starts where it ended");
            None
        }
        Leap::Unknown | Leap::Undecided => {
            tracing::warn!(lag_ms, "too few nodes report their time: the oracle approaches the wall clock slowly");
            None
        }
    }
}

/// Asks the other nodes until [`Survey::decide`] has what it needs.
async fn survey_until_decided(host: &OracleHost, term: LeaderTerm, mark: Timestamp) -> Leap {
    let Inquiry { of_voters, of_others } = inquire(host, term).await;
    let mut survey = Survey::new(of_voters.len() + 1, of_others.len());
    survey.voter_answered(host.time_report(), Duration::ZERO);
    let of_voters = of_voters.into_iter().map(|answer| answer.map(|report| (report, true)).boxed());
    let of_others = of_others.into_iter().map(|answer| answer.map(|report| (report, false)).boxed());
    let answers: FuturesUnordered<_> = of_voters.chain(of_others).collect();
    let mut answers = answers.chain(stream::pending());
    let asked_ms = (host.clock)().mono_ms;
    let waited = || Duration::from_millis((host.clock)().mono_ms.saturating_sub(asked_ms));
    loop {
        let decided = survey.decide(mark, waited());
        if decided != Leap::Undecided {
            return decided;
        }
        match tokio::time::timeout(SURVEY_CHECK_INTERVAL, answers.next()).await {
            Ok(Some((report, true))) => survey.voter_answered(report, waited()),
            Ok(Some((report, false))) => survey.other_answered(report),
            // Time has passed.
            Ok(None) | Err(_) => {}
        }
    }
}

/// The questions to the other nodes. Retries until the task is aborted.
async fn inquire(host: &OracleHost, term: LeaderTerm) -> Inquiry<'_> {
    let mut pause = RETRY_MIN;
    loop {
        match host.window.inquire(term) {
            Ok(inquiry) => return inquiry,
            Err(error) => {
                tracing::warn!(%term, %error, "the nodes of the cluster could not be read");
                tokio::time::sleep(next_backoff(&mut pause)).await;
            }
        }
    }
}

async fn raise_mark(host: &OracleHost, term: LeaderTerm, mark: Timestamp) -> Result<(), WindowError> {
    let result = host.window.raise(term, mark).await;
    match &result {
        Ok(()) => host.state.lock().oracle.raised(term, mark),
        Err(error) => {
            tracing::warn!(%term, %mark, %error, "timestamp window not raised");
            host.state.lock().oracle.raise_failed(term);
        }
    }
    if let Some(metrics) = &host.metrics {
        if result.is_ok() { metrics.raises.inc() } else { metrics.raise_failures.inc() }
    }
    host.notify_waiters();
    result
}

/// Returns the current pause and doubles it for the next call, up to `RETRY_MAX`.
fn next_backoff(pause: &mut Duration) -> Duration {
    let current = *pause;
    *pause = (current * 2).min(RETRY_MAX);
    current
}
