//! Sharing a thread: yields between pieces of work, and work moved to other threads.
//!
//! Sessions share their thread with other sessions, so no poll of a session may compute for more than a
//! millisecond. A loop counts its work in a [`Turn`] and yields when the turn is over. Work that cannot yield, such as
//! parsing, runs on a thread for blocking work: [`Workers`] bounds how many such tasks of clients run at once.
//!
//! [`Turn::spend`] yields with `yield_now`, not with `consume_budget`. The task's budget counts operations, here 128 of
//! any cost, and once it is used up the task's other futures, a timeout for one, make no progress in the same poll.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::error::SqlError;

/// The work of one turn, in units of roughly 100 ns: about a quarter of a millisecond. A unit is the evaluation of a
/// node of an expression, or the handling of one value of a row. A longer turn shows in the 99th percentile of the
/// short statements beside a long one, which take less than that themselves; a yield costs about a microsecond.
const TURN_UNITS: usize = 2_500;

/// More parts than this are sorted or dropped on another thread. Fewer take less than a millisecond.
pub(crate) const MANY: usize = 4096;

/// The work of a loop until it yields.
#[derive(Debug)]
pub(crate) struct Turn {
    left: usize,
}

impl Turn {
    /// A whole turn.
    pub(crate) fn new() -> Turn {
        Turn { left: TURN_UNITS }
    }

    /// Adds `units` of work that was done. At the end of the turn all other ready tasks of the thread run, and its I/O
    /// and timers are polled. Safe to drop at any time.
    pub(crate) async fn spend(&mut self, units: usize) {
        match self.left.checked_sub(units) {
            Some(left) => self.left = left,
            None => {
                self.left = TURN_UNITS;
                tokio::task::yield_now().await;
            }
        }
    }
}

/// The threads that parse and bind long texts: a bound on the tasks of a node that run at once. Others wait in order.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    free: Arc<Semaphore>,
}

impl Workers {
    /// Workers for half of the processors, at least one. The other processors stay free for short statements.
    pub(crate) fn for_node() -> Workers {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Workers::new((processors / 2).max(1))
    }

    fn new(count: usize) -> Workers {
        Workers { free: Arc::new(Semaphore::new(count)) }
    }

    /// The number of tasks that may start at once.
    #[cfg(test)]
    pub(crate) fn free_places(&self) -> usize {
        self.free.available_permits()
    }

    /// Runs `work` on a thread for blocking work, after the tasks that came before. If the future is dropped, work that
    /// waits is not started. Work that runs is not stopped: it keeps its place to its end, and its result is dropped on
    /// its thread.
    ///
    /// # Errors
    /// That of `work`; XX000 if the runtime shuts down.
    ///
    /// # Panics
    /// If `work` panics, and outside of a tokio runtime.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        let permit = self.free.clone().acquire_owned().await;
        let permit = permit.map_err(|_| SqlError::internal("the workers are closed"))?;
        on_other_thread(move || {
            let done = work();
            drop(permit);
            done
        })
        .await?
    }
}

/// Runs `work` on a thread for blocking work. Dropping the future does not stop it; see [`Workers::run`].
///
/// # Errors
/// XX000 if the runtime shuts down.
///
/// # Panics
/// If `work` panics, and outside of a tokio runtime.
pub(crate) async fn on_other_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SqlError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(SqlError::internal(&format!("a task has not run: {error}"))),
        },
    }
}

/// Drops a value of many parts on a thread for blocking work; here, outside of a runtime.
pub(crate) fn drop_elsewhere<T: Send + 'static>(value: T) {
    if let Ok(runtime) = Handle::try_current() {
        // Nobody waits for it.
        drop(runtime.spawn_blocking(move || drop(value)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    /// Counts how often another task of the thread runs while `work` does.
    async fn turns_during(work: impl Future<Output = ()>) -> usize {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        work.await;
        other.abort();
        turns.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn other_tasks_run_once_in_a_turn() {
        let work = async {
            let mut turn = Turn::new();
            for _ in 0..50 * TURN_UNITS / 100 {
                turn.spend(100).await;
            }
        };
        // The piece that ends a turn is not counted to the next one, and the work of the last turn is done.
        let pieces = TURN_UNITS / 100;
        assert_eq!(turns_during(work).await, 50 * pieces / (pieces + 1));
        assert_eq!(turns_during(async { Turn::new().spend(TURN_UNITS).await }).await, 0, "little work never yields");
        assert_eq!(turns_during(async { Turn::new().spend(usize::MAX).await }).await, 1);
    }

    /// A task that is dropped while it runs keeps its place, or dropped tasks would add up to any number of threads.
    #[tokio::test]
    async fn the_number_of_tasks_is_bounded_also_when_their_callers_leave() {
        let workers = Workers::new(2);
        let running = Arc::new(AtomicUsize::new(0));
        let (started, starts) = mpsc::sync_channel(8);
        let release: Vec<_> = (0..5)
            .map(|number| {
                let (release, wait) = mpsc::sync_channel::<()>(1);
                let (workers, running, started) = (workers.clone(), running.clone(), started.clone());
                let caller = tokio::spawn(async move {
                    let work = move || {
                        started.send((number, running.fetch_add(1, Ordering::SeqCst) + 1)).unwrap();
                        let _ = wait.recv();
                        running.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    };
                    workers.run(work).await.unwrap();
                });
                (release, caller)
            })
            .collect();
        let starts = Arc::new(parking_lot::Mutex::new(starts));
        let next = || {
            let starts = starts.clone();
            async move { tokio::task::spawn_blocking(move || starts.lock().recv().unwrap()).await.unwrap() }
        };
        let mut first = [next().await, next().await];
        first.sort_unstable();
        assert_eq!(first.map(|(number, _)| number), [0, 1], "in order");
        assert_eq!(workers.free_places(), 0);
        release[0].1.abort();
        release[2].1.abort();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!((workers.free_places(), running.load(Ordering::SeqCst)), (0, 2), "its thread still runs");
        drop(release);
        let mut rest = [next().await, next().await];
        rest.sort_unstable();
        assert_eq!(rest.map(|(number, _)| number), [3, 4], "the one that was dropped in the queue never starts");
        assert!(rest.iter().all(|(_, running)| *running <= 2), "{rest:?}");
    }

    #[test]
    fn values_are_dropped_outside_of_a_runtime_too() {
        let value = Arc::new(());
        drop_elsewhere(value.clone());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
