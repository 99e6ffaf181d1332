//! The threads of the read pool, and the jobs that they run slice by slice.
//!
//! A thread starts when a job waits that no idle thread takes, up to the number of its group. Those of long scans ask
//! the system for a lower priority, for good: a thread must not raise its own again.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::cost::{Cost, Level};
use super::levels::{Admitted, Entered, Group, Levels};
use super::metrics::PoolMetrics;
use super::pace::Pace;

/// By how much the nice value of the threads that run long scans is above that of the process: they get about a tenth
/// of the processor time of another thread where both want all of it.
#[cfg(target_os = "linux")]
const SCAN_NICE: i32 = 10;

/// A thread without a job for so long knows nothing of who wants the processors.
const FORGET_AFTER: Duration = Duration::from_secs(1);

/// Why a job did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The pool is full. The job was refused, or shed for one of a higher level. It may have run in part.
    #[error("read pool is full")]
    Shed,
    /// The job panicked, or the pool is gone.
    #[error("a job of the read pool was lost")]
    Lost,
}

/// What the caller of a job gets.
pub(super) type Done<T> = Result<(T, Cost), PoolError>;

/// A job whose result has any type.
pub(super) trait Job: Send {
    /// Runs a slice of about `steps` steps. Returns whether the job is done.
    fn run(&mut self, steps: usize) -> bool;
    /// Whether the caller has left.
    fn is_gone(&self) -> bool;
    /// Answers the caller, with the result if the job is done.
    fn answer(self: Box<Self>, outcome: Result<Cost, PoolError>);
}

/// A job that is `work`, called with the steps of each slice until it breaks with the result.
pub(super) struct Sliced<T, W> {
    pub(super) work: W,
    pub(super) result: Option<T>,
    pub(super) reply: oneshot::Sender<Done<T>>,
}

impl<T: Send, W: FnMut(usize) -> ControlFlow<T> + Send> Job for Sliced<T, W> {
    fn run(&mut self, steps: usize) -> bool {
        if let ControlFlow::Break(result) = (self.work)(steps) {
            self.result = Some(result);
        }
        self.result.is_some()
    }

    fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self: Box<Self>, outcome: Result<Cost, PoolError>) {
        let Sliced { work, result, reply } = *self;
        drop(work);
        let done = outcome.and_then(|cost| result.map(|result| (result, cost)).ok_or(PoolError::Lost));
        // A caller that has left wants no answer.
        let _ = reply.send(done);
    }
}

/// A job of the pool.
pub(super) struct Entry {
    pub(super) job: Box<dyn Job>,
    /// What the statement has cost, with what the job has.
    pub(super) cost: Cost,
    /// The level that the job keeps. `None`: its cost decides.
    pub(super) fixed: Option<Level>,
    /// Since when it waits.
    since: Instant,
}

impl Entry {
    pub(super) fn new(job: Box<dyn Job>, cost: Cost, fixed: Option<Level>) -> Entry {
        Entry { job, cost, fixed, since: now() }
    }

    fn level(&self) -> Level {
        self.fixed.unwrap_or(self.cost.level())
    }
}

/// The jobs and threads of a pool.
pub(super) struct Threads {
    state: Mutex<State>,
    /// Wakes an idle thread of a group.
    wake: [Condvar; Group::ALL.len()],
    /// Wakes the threads that rest between slices of long scans.
    rested: Condvar,
    /// Threads whose last slice of a long scan was followed by a rest.
    contended: AtomicUsize,
    /// The most threads of each group.
    threads_max: [usize; Group::ALL.len()],
    metrics: PoolMetrics,
}

struct State {
    levels: Levels<Entry>,
    /// Threads of each group that wait for a job.
    idle: [usize; Group::ALL.len()],
    /// Threads that rest.
    resting: usize,
    running: [Vec<JoinHandle<()>>; Group::ALL.len()],
    is_closed: bool,
}

impl Threads {
    /// A pool of up to `threads_max` threads for each group.
    pub(super) fn new(threads_max: [usize; 2], (jobs, bytes): (usize, usize), metrics: PoolMetrics) -> Threads {
        let (levels, running) = (Levels::new(jobs, bytes), [Vec::new(), Vec::new()]);
        let state = Mutex::new(State { levels, idle: [0; 2], resting: 0, running, is_closed: false });
        let wake = [Condvar::new(), Condvar::new()];
        Threads { state, wake, rested: Condvar::new(), contended: AtomicUsize::new(0), threads_max, metrics }
    }

    /// Admits a job, which is answered whatever becomes of it.
    pub(super) fn submit(self: &Arc<Self>, bytes: usize, entry: Entry) {
        let level = entry.level();
        let Entered { refused, shed, gone } = {
            let mut state = self.state.lock();
            let entered = state.levels.enter(level, bytes, entry, |entry| entry.job.is_gone());
            self.measure(&state.levels);
            self.serve(&mut state, Group::of(level), None);
            entered
        };
        drop(gone);
        for (level, entry) in shed.into_iter().chain(refused.map(|entry| (level, entry))) {
            self.metrics.of(level).shed.inc();
            entry.job.answer(Err(PoolError::Shed));
        }
    }

    /// Whether threads rest between slices of long scans.
    pub(super) fn is_contended(&self) -> bool {
        self.contended.load(Ordering::Relaxed) > 0
    }

    /// Counts a thread whose pace was `before` and is `after`.
    pub(super) fn count_contended(&self, before: bool, after: bool) {
        match (before, after) {
            (false, true) => _ = self.contended.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.contended.fetch_sub(1, Ordering::Relaxed),
            _ => (),
        }
    }

    /// Ends all threads, each after the slice that it runs. The jobs are lost.
    pub(super) fn close(&self) {
        let (lost, running) = {
            let mut state = self.state.lock();
            state.is_closed = true;
            self.wake.iter().chain([&self.rested]).for_each(|wake| _ = wake.notify_all());
            (state.levels.clear(), std::mem::take(&mut state.running))
        };
        lost.into_iter().for_each(|entry| entry.job.answer(Err(PoolError::Lost)));
        let own = std::thread::current().id();
        for thread in running.into_iter().flatten().filter(|thread| thread.thread().id() != own) {
            // A job that panics is caught, so a thread does not.
            let _ = thread.join();
        }
    }

    /// Sees to it that a thread takes the next job of a group: wakes an idle one, or starts one. `own`: the group of
    /// the calling thread, which will take a job itself.
    fn serve(self: &Arc<Self>, state: &mut State, group: Group, own: Option<Group>) {
        let at = group.index();
        let waiting = state.levels.waiting_for(group).saturating_sub(usize::from(own == Some(group)));
        if waiting == 0 || state.is_closed {
            return;
        }
        if state.idle[at] > 0 {
            self.wake[at].notify_one();
        }
        if state.resting > 0 && state.levels.waiting(Level::Medium) > 0 {
            self.rested.notify_all();
        }
        let count = state.running[at].len();
        if waiting > state.idle[at] && count < self.threads_max[at] {
            let name = match group {
                Group::Read => format!("cortado-read-{count}"),
                Group::Scan => format!("cortado-scan-{count}"),
            };
            let threads = Arc::clone(self);
            match std::thread::Builder::new().name(name).spawn(move || threads.work(group)) {
                Ok(thread) => state.running[at].push(thread),
                // The threads that run take the job later.
                Err(error) if count > 0 => tracing::warn!(%error, "a thread of the read pool did not start"),
                Err(error) => {
                    tracing::error!(%error, "the read pool has no thread");
                    // Nobody would ever answer the callers.
                    state.levels.clear().into_iter().for_each(|entry| entry.job.answer(Err(PoolError::Lost)));
                }
            }
        }
    }

    /// Runs jobs of a group until the pool is closed.
    fn work(self: Arc<Self>, group: Group) {
        if group == Group::Scan {
            lower_priority();
        }
        let mut pace = Pace::default();
        let mut state = self.state.lock();
        while !state.is_closed {
            match state.levels.next(group) {
                Some((level, admitted)) => self.run_slice(&mut state, level, admitted, &mut pace),
                None => self.idle(&mut state, group, &mut pace),
            }
        }
    }

    /// Waits for a job. What a thread knew of others is forgotten when none comes soon.
    fn idle(&self, state: &mut MutexGuard<'_, State>, group: Group, pace: &mut Pace) {
        let wake = &self.wake[group.index()];
        state.idle[group.index()] += 1;
        if !pace.is_contended() {
            wake.wait(state);
        } else if wake.wait_for(state, FORGET_AFTER).timed_out() {
            self.count_contended(true, false);
            *pace = Pace::default();
        }
        state.idle[group.index()] -= 1;
    }

    /// Runs a slice of a job without the lock, and queues the rest of the job. After one of a long scan the thread
    /// rests first, also before an answer: the next page would come at once, and to another thread.
    fn run_slice(
        self: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
        level: Level,
        mut admitted: Admitted<Entry>,
        pace: &mut Pace,
    ) {
        self.measure(&state.levels);
        let entry = &mut admitted.job;
        let (elapsed, outcome) = MutexGuard::unlocked(state, || self.time_slice(level, entry));
        state.levels.charge(level, elapsed);
        if Group::of(level) == Group::Scan {
            // Whoever woke up meanwhile runs now. The system would let them wait for its own, longer slice to end.
            let offered = MutexGuard::unlocked(state, offer_processor);
            if level == Level::Long && outcome.is_some() {
                self.keep_pace(state, pace, (elapsed, offered));
            }
        }
        if outcome == Some(Ok(false)) && !state.is_closed {
            let next = admitted.job.level();
            state.levels.queue(next, admitted);
            self.serve(state, Group::of(next), Some(Group::of(level)));
        } else {
            let Admitted { place, job: entry } = admitted;
            state.levels.leave(place);
            self.metrics.of(level).done.inc();
            self.measure(&state.levels);
            MutexGuard::unlocked(state, || match outcome {
                Some(Ok(true)) => entry.job.answer(Ok(entry.cost)),
                _ => entry.job.answer(Err(PoolError::Lost)),
            });
        }
    }

    /// Rests after a slice of a long scan that took `elapsed`, as the time tells for which others had the processor.
    fn keep_pace(&self, state: &mut MutexGuard<'_, State>, pace: &mut Pace, (elapsed, offered): (Duration, Duration)) {
        let before = pace.is_contended();
        let rest = pace.rest(elapsed, offered);
        self.count_contended(before, pace.is_contended());
        if !rest.is_zero() {
            self.metrics.rests.inc_by(self.rest(state, rest).as_secs_f64());
        }
    }

    /// Rests until a job waits that is not long, and at most for `rest`. Returns how long it was.
    fn rest(&self, state: &mut MutexGuard<'_, State>, rest: Duration) -> Duration {
        let started = now();
        state.resting += 1;
        while !state.is_closed && state.levels.waiting(Level::Medium) == 0 {
            if self.rested.wait_until(state, started + rest).timed_out() {
                break;
            }
        }
        state.resting -= 1;
        now().duration_since(started)
    }

    /// Rests as a thread does.
    #[cfg(test)]
    pub(super) fn rest_for(&self, rest: Duration) {
        self.rest(&mut self.state.lock(), rest);
    }

    /// Keeps the pace of a thread, and returns whether the pool is contended then.
    #[cfg(test)]
    pub(super) fn paced(&self, pace: &mut Pace, times: (Duration, Duration)) -> bool {
        self.keep_pace(&mut self.state.lock(), pace, times);
        self.is_contended()
    }

    #[cfg(test)]
    pub(super) fn resting(&self) -> usize {
        self.state.lock().resting
    }

    /// Seconds of all rests.
    #[cfg(test)]
    pub(super) fn rested(&self) -> f64 {
        self.metrics.rests.get()
    }

    /// Runs a slice. Returns its time, and whether the job is done; `None` if the caller has left.
    fn time_slice(&self, level: Level, entry: &mut Entry) -> (Duration, Option<Result<bool, PoolError>>) {
        if entry.job.is_gone() {
            return (Duration::ZERO, None);
        }
        let (started, steps) = (now(), entry.cost.steps());
        let ran = catch_unwind(AssertUnwindSafe(|| entry.job.run(steps)));
        let ended = now();
        let elapsed = ended.duration_since(started);
        self.metrics.of(level).observe(started.duration_since(entry.since), elapsed);
        entry.since = ended;
        entry.cost.add(steps, elapsed, matches!(ran, Ok(false)));
        (elapsed, Some(ran.map_err(|_| PoolError::Lost)))
    }

    fn measure(&self, levels: &Levels<Entry>) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Level::ALL.into_iter().for_each(|level| self.metrics.of(level).waiting.set(gauge(levels.waiting(level))));
        self.metrics.bytes.set(gauge(levels.bytes()));
    }
}

#[expect(clippy::disallowed_methods, reason = "the threads are an edge: they measure their slices")]
fn now() -> Instant {
    Instant::now()
}

/// Lets other threads run that wait for this one's processor. Returns how long they did.
fn offer_processor() -> Duration {
    let offered = now();
    std::thread::yield_now();
    now().duration_since(offered)
}

/// Lowers the priority of the calling thread. On Linux a nice value is that of a thread, elsewhere of the process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(SCAN_NICE) {
        tracing::warn!(%error, "the threads of long scans run at the priority of all others");
    }
}
