//! The read pool: runs long reads on blocking threads, so that they do not occupy the async runtime's workers.
//!
//! The number of running jobs and the number of waiting jobs are both bounded.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Why a job did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// All threads are busy and the queue is full. The job did not start.
    #[error("read pool is full")]
    Full,
    /// The job panicked, or the runtime is stopping.
    #[error("a job of the read pool was lost")]
    Lost,
}

/// A bounded pool for blocking jobs. Clones share the pool.
#[derive(Clone, Debug)]
pub struct ReadPool {
    /// One permit for each job that runs or waits.
    admitted: Arc<Semaphore>,
    /// One permit for each job that runs.
    threads: Arc<Semaphore>,
}

impl ReadPool {
    /// A pool that runs up to `threads` jobs at a time and queues up to `queue` more.
    pub fn new(threads: usize, queue: usize) -> ReadPool {
        ReadPool { admitted: Arc::new(Semaphore::new(threads + queue)), threads: Arc::new(Semaphore::new(threads)) }
    }

    /// Runs a job and returns its result. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`PoolError::Full`] at once if the queue is full; [`PoolError::Lost`] if the job panicked or the runtime stops.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while the job waits, the job does not run. A running job completes; its result is
    /// dropped.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, PoolError> {
        let admission = Arc::clone(&self.admitted).try_acquire_owned().map_err(|_| PoolError::Full)?;
        let thread = Arc::clone(&self.threads).acquire_owned().await.map_err(|_| PoolError::Lost)?;
        let job = move || {
            let (_admission, _thread) = (admission, thread);
            job()
        };
        tokio::task::spawn_blocking(job).await.map_err(|_| PoolError::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn running_and_waiting_jobs_are_bounded() {
        let pool = ReadPool::new(1, 1);
        let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
        let running = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(move || held.recv().is_ok()).await }
        });
        while pool.threads.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let mut waiting = Box::pin(pool.run(|| 7));
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(pool.run(|| 8).await, Err(PoolError::Full));
        release.send(()).unwrap();
        assert_eq!(running.await.unwrap(), Ok(true));
        assert_eq!(waiting.await, Ok(7));
        assert_eq!(pool.run(|| 9).await, Ok(9));
    }

    #[tokio::test]
    async fn a_panic_fails_only_its_own_job() {
        let pool = ReadPool::new(1, 0);
        assert_eq!(pool.run(|| panic!("planted")).await, Err::<(), _>(PoolError::Lost));
        assert_eq!(pool.run(|| 1).await, Ok(1));
    }
}
