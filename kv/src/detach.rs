//! A future that runs to its end, also if nobody waits for it any more.
//!
//! The usual request is awaited to its end, and then this costs one allocation: no task, no channel. Only a future that
//! is dropped early becomes a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Runs a future to completion: if dropped earlier, it spawns the future as a task on the runtime that it was created
/// in. It may be dropped anywhere, also outside of a runtime.
pub struct DetachOnDrop<F: Future<Output: Send> + Send + 'static> {
    future: Option<Pin<Box<F>>>,
    runtime: Handle,
}

impl<F: Future<Output: Send> + Send + 'static> DetachOnDrop<F> {
    /// Wraps a future that has not been polled.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(future: F) -> DetachOnDrop<F> {
        DetachOnDrop { future: Some(Box::pin(future)), runtime: Handle::current() }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out, so that a future that panics is not spawned afterwards.
        let Some(mut future) = self.future.take() else { panic!("polled after completion") };
        let result = future.as_mut().poll(cx);
        if result.is_pending() {
            self.future = Some(future);
        }
        result
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            // A runtime that is shutting down drops the future at once.
            self.runtime.spawn(future);
        }
    }
}
