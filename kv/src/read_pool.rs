//! Threads for reads that take long, so that the workers of the async runtime never wait for a disk on their account.
//!
//! A bounded number of jobs runs at a time on the runtime's blocking threads; a bounded number more may wait.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Why a job did not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// As many jobs run and wait as are allowed.
    #[error("read pool is full")]
    Full,
    /// The job panicked, or the runtime is stopping.
    #[error("a job of the read pool was lost")]
    Lost,
}

/// See the module documentation. Clones share it.
#[derive(Clone, Debug)]
pub struct ReadPool {
    /// One for each job that runs or waits.
    places: Arc<Semaphore>,
    /// One for each job that runs.
    threads: Arc<Semaphore>,
}

impl ReadPool {
    /// For `threads` jobs at a time, and `queue` that wait.
    pub fn new(threads: usize, queue: usize) -> ReadPool {
        ReadPool { places: Arc::new(Semaphore::new(threads + queue)), threads: Arc::new(Semaphore::new(threads)) }
    }

    /// Runs a job. Must be called within a tokio runtime. A job whose caller goes away while it waits does not run; one that runs goes on to its end.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, PoolError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| PoolError::Full)?;
        let thread = Arc::clone(&self.threads).acquire_owned().await.map_err(|_| PoolError::Lost)?;
        let work = move || {
            let (_place, _thread) = (place, thread);
            job()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| PoolError::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn jobs_are_bounded() {
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
    async fn a_panic_stays_in_its_job() {
        let pool = ReadPool::new(1, 0);
        assert_eq!(pool.run(|| panic!("planted")).await, Err::<(), _>(PoolError::Lost));
        assert_eq!(pool.run(|| 1).await, Ok(1));
    }
}
