//! Interruption of a session: by a CancelRequest on another connection, or by server shutdown.
//!
//! One [`Interrupt`] per session, shared with the session registry. The session checks it between batches of rows and
//! races it against everything it awaits, except a commit, which always runs to its end.
//!
//! Invariants:
//! 1. A cancel applies to the message that the session handles when it arrives. Between two messages, also of one
//!    pipeline, it is dropped, as in PostgreSQL: it never affects a later statement.
//! 2. `drain`, `kill` and `lose` are permanent.

use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

use crate::advisory::lost;
use crate::error::{SqlError, SqlState};

const RUNNING: u8 = 1;
const CANCEL: u8 = 2;
const DRAIN: u8 = 4;
const KILL: u8 = 8;
const LOST: u8 = 16;

/// The interrupt flags of one session.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    flags: AtomicU8,
    wake: Notify,
}

impl Interrupt {
    /// Marks a message as being handled: cancels apply to it.
    pub(crate) fn begin(&self) {
        self.flags.fetch_or(RUNNING, Ordering::AcqRel);
    }

    /// Marks the message as handled and drops a cancel that came too late.
    pub(crate) fn end(&self) {
        self.flags.fetch_and(!(RUNNING | CANCEL), Ordering::AcqRel);
    }

    /// Cancels the message that is being handled, if there is one.
    pub(crate) fn cancel(&self) {
        let set = |flags: u8| (flags & RUNNING != 0).then_some(flags | CANCEL);
        if self.flags.fetch_update(Ordering::AcqRel, Ordering::Acquire, set).is_ok() {
            self.wake.notify_one();
        }
    }

    /// Ends the session once it is idle outside a transaction.
    pub(crate) fn drain(&self) {
        self.flags.fetch_or(DRAIN, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// Ends the session now, except in the middle of a commit.
    pub(crate) fn kill(&self) {
        self.flags.fetch_or(KILL, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// Ends the session now, except in the middle of a commit, because its advisory locks are lost.
    pub(crate) fn lose(&self) {
        self.flags.fetch_or(LOST | KILL, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// The FATAL error of a session that has to end.
    pub(crate) fn end_error(&self) -> SqlError {
        if self.flags.load(Ordering::Acquire) & LOST != 0 { lost() } else { shutdown_error() }
    }

    /// Waits until the session has to end. `idle`: no transaction is open.
    pub(crate) async fn stopped(&self, idle: bool) {
        let mask = if idle { DRAIN | KILL } else { KILL };
        self.any_of(mask).await;
    }

    /// The error of a pending cancel or kill.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        let flags = self.flags.load(Ordering::Acquire);
        if flags & KILL != 0 {
            Err(self.end_error())
        } else if flags & CANCEL != 0 {
            self.flags.fetch_and(!CANCEL, Ordering::AcqRel);
            Err(canceled_error())
        } else {
            Ok(())
        }
    }

    /// Runs `work` until the request is interrupted or `deadline` passes. `work` must be safe to drop at any await.
    pub(crate) async fn guard<T, E: From<SqlError>>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.check()?;
        let timeout = async {
            match deadline {
                // The budget of the task may be used up by `work`, in every poll.
                Some(at) => unconstrained(sleep_until(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = self.any_of(CANCEL | KILL) => {
                self.check()?;
                Err(self.end_error().into())
            }
            () = timeout => Err(timeout_error().into()),
        }
    }

    async fn any_of(&self, mask: u8) {
        // `notify_one` stores a permit when nobody waits, so a flag set between the check and the wait is not missed. A
        // stale permit costs one more check.
        while self.flags.load(Ordering::Acquire) & mask == 0 {
            self.wake.notified().await;
        }
    }
}

/// Abandons what a read waits for before it can begin, after its patience: a node that is cut off has neither a lease
/// on the catalog nor an oracle. Cancel safe as `work` is.
pub(crate) async fn in_time<T, E: From<SqlError>>(
    patience: Option<Duration>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(patience) = patience else { return work.await };
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done,
        Err(_) => {
            let why = format!("neither the catalog nor the oracle answered within {patience:?}");
            Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now").detail(why).into())
        }
    }
}

/// The error of a statement that runs longer than `statement_timeout`.
pub(crate) fn timeout_error() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
}

/// The error of a statement that somebody cancels.
pub(crate) fn canceled_error() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

/// The FATAL error of a session that the server ends.
pub(crate) fn shutdown_error() -> SqlError {
    SqlError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pending_work() -> Result<(), SqlError> {
        std::future::pending().await
    }

    #[tokio::test]
    async fn a_cancel_stops_the_running_request_only() {
        let interrupt = Interrupt::default();
        interrupt.cancel();
        interrupt.begin();
        assert_eq!(interrupt.check(), Ok(()), "a cancel from before the request is dropped");
        interrupt.cancel();
        assert_eq!(interrupt.guard(None, pending_work()).await.unwrap_err().code.0, "57014");
        assert_eq!(interrupt.check(), Ok(()), "it stops one request");
        interrupt.cancel();
        interrupt.end();
        interrupt.begin();
        assert_eq!(interrupt.guard(None, async { Ok::<_, SqlError>(1) }).await, Ok(1), "a late one is dropped");
    }

    #[tokio::test]
    async fn a_cancel_wakes_waiting_work() {
        let interrupt = std::sync::Arc::new(Interrupt::default());
        interrupt.begin();
        let other = interrupt.clone();
        let cancel = tokio::spawn(async move { other.cancel() });
        assert_eq!(interrupt.guard(None, pending_work()).await.unwrap_err().code.0, "57014");
        cancel.await.unwrap();
    }

    #[tokio::test]
    async fn a_drain_ends_idle_sessions_and_a_kill_ends_all() {
        let interrupt = Interrupt::default();
        interrupt.begin();
        interrupt.drain();
        interrupt.stopped(true).await;
        assert_eq!(interrupt.check(), Ok(()), "the running request continues");
        interrupt.kill();
        interrupt.stopped(false).await;
        assert_eq!(interrupt.guard(None, pending_work()).await.unwrap_err().code.0, "57P01");
        interrupt.end();
        assert_eq!(interrupt.check().unwrap_err().code.0, "57P01", "a kill stays");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a test of a deadline")]
    async fn a_deadline_stops_work() {
        let interrupt = Interrupt::default();
        interrupt.begin();
        let deadline = Some(Instant::now());
        let error = interrupt.guard(deadline, pending_work()).await.unwrap_err();
        assert_eq!(error.message, "canceling statement due to statement timeout");
    }

    /// Work that used up the budget of its task in every poll starved the timer: the timeout never came.
    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "a test of a deadline")]
    async fn a_deadline_stops_work_that_never_waits() {
        let session = tokio::spawn(async {
            let interrupt = Interrupt::default();
            interrupt.begin();
            let deadline = Some(Instant::now() + std::time::Duration::from_secs(1));
            let busy = async {
                for _ in 0..1_000_000 {
                    tokio::task::coop::consume_budget().await;
                }
                Ok::<_, SqlError>(())
            };
            interrupt.guard(deadline, busy).await
        });
        tokio::task::yield_now().await;
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        assert_eq!(session.await.unwrap().unwrap_err().code.0, "57014");
    }
}
