//! The threads of the read pool, and the jobs that they run slice by slice.
//!
//! A thread starts when a job waits that no idle thread takes, up to the number of its group. Those of long scans ask
//! the system for a lower priority, for good: a thread must not raise its own again.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::cost::{Cost, Level};
use super::levels::{Admitted, Entered, Group, Levels};
use super::metrics::PoolMetrics;

/// By how much the nice value of the threads that run long scans is above that of the process: they get about a tenth
/// of the processor time of another thread where both want all of it.
#[cfg(target_os = "linux")]
const SCAN_NICE: i32 = 10;

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
    /// The most threads of each group.
    threads_max: [usize; Group::ALL.len()],
    metrics: PoolMetrics,
}

struct State {
    levels: Levels<Entry>,
    /// Threads of each group that wait for a job.
    idle: [usize; Group::ALL.len()],
    running: [Vec<JoinHandle<()>>; Group::ALL.len()],
    is_closed: bool,
}

impl Threads {
    /// A pool of up to `threads_max` threads for each group.
    pub(super) fn new(threads_max: [usize; 2], (jobs, bytes): (usize, usize), metrics: PoolMetrics) -> Threads {
        let (levels, running) = (Levels::new(jobs, bytes), [Vec::new(), Vec::new()]);
        let state = Mutex::new(State { levels, idle: [0; 2], running, is_closed: false });
        Threads { state, wake: [Condvar::new(), Condvar::new()], threads_max, metrics }
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

    /// Ends all threads, each after the slice that it runs. The jobs are lost.
    pub(super) fn close(&self) {
        let (lost, running) = {
            let mut state = self.state.lock();
            state.is_closed = true;
            for wake in &self.wake {
                wake.notify_all();
            }
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
        let mut state = self.state.lock();
        while !state.is_closed {
            match state.levels.next(group) {
                Some((level, admitted)) => self.run_slice(&mut state, level, admitted),
                None => {
                    state.idle[group.index()] += 1;
                    self.wake[group.index()].wait(&mut state);
                    state.idle[group.index()] -= 1;
                }
            }
        }
    }

    /// Runs a slice of a job without the lock, and queues the rest.
    fn run_slice(self: &Arc<Self>, state: &mut MutexGuard<'_, State>, level: Level, mut admitted: Admitted<Entry>) {
        self.measure(&state.levels);
        let entry = &mut admitted.job;
        let (elapsed, outcome) = MutexGuard::unlocked(state, || {
            let ran = self.time_slice(level, entry);
            if Group::of(level) == Group::Scan {
                // Whoever woke up meanwhile runs now. The system would let them wait for its own, longer slice to end.
                std::thread::yield_now();
            }
            ran
        });
        state.levels.charge(level, elapsed);
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

/// Lowers the priority of the calling thread. On Linux a nice value is that of a thread, elsewhere of the process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(SCAN_NICE) {
        tracing::warn!(%error, "the threads of long scans run at the priority of all others");
    }
}
