//! A system region in memory: the durable mark, and a leadership that moves when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tso::{Inquiry, LeaderTerm, TimeReport, Timestamp, Window, WindowError};

/// The system region: one mark, one leadership at a time.
pub(crate) struct Region {
    pub(crate) mark: Mutex<Timestamp>,
    /// The node that leads, and its term.
    pub(crate) leader: Mutex<(usize, LeaderTerm)>,
    /// The number of raises that fail without effect.
    pub(crate) fail_raises: AtomicU32,
    /// The number of raises that take effect and then report a failure.
    pub(crate) lose_raises: AtomicU32,
    /// The leader's address that the nodes return as a hint.
    pub(crate) hint: Mutex<Option<String>>,
    /// How long ago every node received its newest timestamp.
    pub(crate) quiet: Mutex<Duration>,
    /// What each other voter answers to a new leader; `None` as long as it is silent.
    pub(crate) answers: Mutex<Vec<Option<TimeReport>>>,
}

impl Default for Region {
    fn default() -> Region {
        Region {
            mark: Mutex::default(),
            leader: Mutex::new((usize::MAX, LeaderTerm(0))),
            fail_raises: AtomicU32::new(0),
            lose_raises: AtomicU32::new(0),
            hint: Mutex::default(),
            quiet: Mutex::default(),
            answers: Mutex::default(),
        }
    }
}

impl Region {
    fn check(&self, node: usize, term: LeaderTerm) -> Result<(), WindowError> {
        if *self.leader.lock() == (node, term) { Ok(()) } else { Err(WindowError::NotLeader) }
    }

    /// The answer of another voter, once it has one.
    async fn answer(&self, other: usize) -> TimeReport {
        loop {
            let answer = self.answers.lock()[other];
            if let Some(report) = answer {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Moves the leadership to `node`, in a new term.
    pub(crate) fn elect(&self, node: usize) -> LeaderTerm {
        let mut leader = self.leader.lock();
        *leader = (node, LeaderTerm(leader.1.0 + 1));
        leader.1
    }
}

/// Decrements a counter; false if it is 0.
fn take_one(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

pub(crate) struct NodeWindow {
    pub(crate) region: Arc<Region>,
    pub(crate) node: usize,
}

impl Window for NodeWindow {
    fn load(&self, term: LeaderTerm) -> BoxFuture<'_, Result<Timestamp, WindowError>> {
        async move {
            self.region.check(self.node, term)?;
            Ok(*self.region.mark.lock())
        }
        .boxed()
    }

    fn raise(&self, term: LeaderTerm, mark: Timestamp) -> BoxFuture<'_, Result<(), WindowError>> {
        async move {
            tokio::task::yield_now().await;
            self.region.check(self.node, term)?;
            if take_one(&self.region.fail_raises) {
                return Err(WindowError::Failed("dropped".into()));
            }
            {
                let mut stored = self.region.mark.lock();
                *stored = mark.max(*stored);
            }
            if take_one(&self.region.lose_raises) {
                return Err(WindowError::Failed("no answer".into()));
            }
            Ok(())
        }
        .boxed()
    }

    fn lease_holds(&self, term: LeaderTerm) -> bool {
        self.region.check(self.node, term).is_ok()
    }

    fn quiet(&self) -> Duration {
        *self.region.quiet.lock()
    }

    fn inquire(&self, term: LeaderTerm) -> Result<Inquiry<'_>, WindowError> {
        self.region.check(self.node, term)?;
        let others = self.region.answers.lock().len();
        let of_voters = (0..others).map(|other| self.region.answer(other).boxed()).collect();
        Ok(Inquiry { of_voters, of_others: Vec::new() })
    }

    fn leader_address(&self) -> Option<String> {
        self.region.hint.lock().clone()
    }
}
