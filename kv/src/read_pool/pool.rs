//! The pool as its callers see it: a future that completes when the job has.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::cost::{Cost, Level};
use super::metrics::PoolMetrics;
pub use super::threads::PoolError;
use super::threads::{Entry, Sliced, Threads};

/// Bytes that the result of a point job counts as.
const POINT_BYTES: usize = 64 << 10;

/// What runs the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// Threads of the pool.
    Threads {
        /// For the evaluation of writes, cold point reads and short scans. Minimum 1.
        reads: usize,
        /// For longer scans, at a lower priority of the system. Minimum 1.
        scans: usize,
    },
    /// The task of the caller, which yields between slices, without bounds. For a simulation on one thread, where no
    /// other thread may disturb the order.
    Caller,
}

/// Settings of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// What runs the jobs. Default: 4 threads for reads, and half of the processors, at least 2, for scans.
    pub workers: Workers,
    /// The most jobs that run or wait. Default 256, minimum 1.
    pub jobs: usize,
    /// The most bytes that the results of these jobs may take: each counts with the limit of its request. Default 256
    /// MiB, minimum 1. A job of more counts as so many, and runs alone.
    pub result_bytes: usize,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::Threads { reads: 4, scans: (processors / 2).max(2) };
        PoolConfig { workers, jobs: 256, result_bytes: 256 << 20 }
    }
}

/// What a job asks of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// `None`: the level of points.
    scan: Option<Cost>,
    bytes: usize,
}

impl Demand {
    /// A scan, or a read of many keys, of a statement that has cost so much before, with a result of up to `bytes`.
    pub fn scan(cost: Cost, bytes: usize) -> Demand {
        Demand { scan: Some(cost), bytes }
    }

    /// Work on few keys.
    pub fn point() -> Demand {
        Demand { scan: None, bytes: POINT_BYTES }
    }
}

/// A bounded pool for reads. Clones share the pool, and the last one to be dropped ends its threads: it waits for the
/// slices that they run.
#[derive(Clone)]
pub struct ReadPool {
    /// `None`: jobs run in the task of the caller.
    threads: Option<Arc<Owner>>,
}

/// Ends the threads, which hold the pool themselves.
struct Owner(Arc<Threads>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl ReadPool {
    /// A pool with these settings that counts into `metrics`. It starts threads as jobs need them.
    pub fn new(config: &PoolConfig, metrics: PoolMetrics) -> ReadPool {
        let threads = match config.workers {
            Workers::Threads { reads, scans } => {
                let bounds = (config.jobs.max(1), config.result_bytes.max(1));
                Some(Arc::new(Owner(Arc::new(Threads::new([reads.max(1), scans.max(1)], bounds, metrics)))))
            }
            Workers::Caller => None,
        };
        ReadPool { threads }
    }

    /// A pool that runs each job in the task of its caller: [`Workers::Caller`].
    pub fn in_caller() -> ReadPool {
        ReadPool { threads: None }
    }

    /// Whether jobs run on threads of the pool.
    pub fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Whether the threads of long scans rest between slices, because others want the processors.
    pub fn is_contended(&self) -> bool {
        self.threads.as_deref().is_some_and(|Owner(threads)| threads.is_contended())
    }

    /// As if a thread of long scans rested.
    #[cfg(test)]
    pub(crate) fn contend(&self) {
        self.threads.iter().for_each(|owner| owner.0.count_contended(false, true));
    }

    /// Runs a job in slices: calls `work` with about the number of steps that it may take, until it breaks with the
    /// result. Returns that, and what the statement has cost now. Must be polled within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`PoolError::Shed`] if the pool is full, at once or later; [`PoolError::Lost`] if `work` panicked.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a job that waits does not run, and one that runs ends with its slice.
    pub async fn run<T: Send + 'static>(
        &self,
        demand: Demand,
        work: impl FnMut(usize) -> ControlFlow<T> + Send + 'static,
    ) -> Result<(T, Cost), PoolError> {
        let Demand { scan, bytes } = demand;
        let Some(Owner(threads)) = self.threads.as_deref() else {
            return Ok(run_here(scan.unwrap_or_default(), work).await);
        };
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Sliced { work, result: None, reply });
        let fixed = if scan.is_none() { Some(Level::Point) } else { None };
        threads.submit(bytes, Entry::new(job, scan.unwrap_or_default(), fixed));
        answer.await.unwrap_or(Err(PoolError::Lost))
    }

    /// Runs a job on few keys in one slice. As [`ReadPool::run`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn run_point<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let mut work = Some(work);
        let whole = move |_| match work.take() {
            Some(work) => ControlFlow::Break(Some(work())),
            None => ControlFlow::Break(None),
        };
        self.run(Demand::point(), whole).await?.0.ok_or(PoolError::Lost)
    }
}

/// Runs a job in the task of the caller.
async fn run_here<T>(mut cost: Cost, mut work: impl FnMut(usize) -> ControlFlow<T>) -> (T, Cost) {
    loop {
        let steps = cost.steps();
        let ran = work(steps);
        // No clock has a say.
        cost.add(steps, Duration::ZERO, ran.is_continue());
        match ran {
            ControlFlow::Break(result) => return (result, cost),
            ControlFlow::Continue(()) => tokio::task::yield_now().await,
        }
    }
}

#[cfg(test)]
mod tests;
