//! The steps of a commit at which its coordinator may die: before a request leaves, and after it was executed.
//!
//! They cover every effect of the coordinator. It dies while it fetches the commit_ts if it dies after the last
//! prewrite was executed, and with a commit_ts in hand if it dies before the commit of the primary leaves.

use std::collections::BTreeSet;

use kv::api::RequestBody;
use parking_lot::Mutex;
use tso::Timestamp;

/// A request of a coordinator, or of a reader that resolves its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    Prewrite,
    CommitPrimary,
    CommitSecondaries,
    Rollback,
    CheckStatus,
    ResolveLocks,
    Heartbeat,
}

/// A step: a request, before it leaves or after it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Before(Work),
    After(Work),
}

/// All steps.
pub(crate) const STEPS: [Step; 14] = [
    Step::Before(Work::Prewrite),
    Step::After(Work::Prewrite),
    Step::Before(Work::CommitPrimary),
    Step::After(Work::CommitPrimary),
    Step::Before(Work::CommitSecondaries),
    Step::After(Work::CommitSecondaries),
    Step::Before(Work::Rollback),
    Step::After(Work::Rollback),
    Step::Before(Work::CheckStatus),
    Step::After(Work::CheckStatus),
    Step::Before(Work::ResolveLocks),
    Step::After(Work::ResolveLocks),
    Step::Before(Work::Heartbeat),
    Step::After(Work::Heartbeat),
];

impl Step {
    fn work(self) -> Work {
        match self {
            Step::Before(work) | Step::After(work) => work,
        }
    }

    /// Whether only few commits take the step, unless locks live so shortly that most of them need heartbeats.
    pub(crate) fn needs_short_locks(self) -> bool {
        self.work() == Work::Heartbeat
    }

    /// How much more likely than at other steps a coordinator must die here, because few commits take the step.
    pub(crate) fn scale(self) -> f64 {
        match self.work() {
            Work::Heartbeat => 5.0,
            Work::CommitSecondaries => 4.0,
            _ => 1.0,
        }
    }

    /// Whether commits are under way that have all or some of their locks.
    pub(crate) fn is_mid_commit(self) -> bool {
        matches!(self, Step::After(Work::Prewrite) | Step::Before(Work::CommitPrimary | Work::CommitSecondaries))
    }
}

/// The transactions of a gateway.
#[derive(Default)]
pub(crate) struct Commits {
    /// Those that it has begun to commit.
    begun: Mutex<BTreeSet<Timestamp>>,
    /// Those whose primary's commit was acknowledged: their next commits are those of secondaries.
    acknowledged: Mutex<BTreeSet<Timestamp>>,
}

impl Commits {
    /// What a request does, and for which transaction. `None` for a read, or a request about row locks.
    pub(crate) fn work(&self, body: &RequestBody) -> Option<(Work, Timestamp)> {
        Some(match body {
            body if !body.is_write() => return None,
            RequestBody::Prewrite(request) => {
                self.begun.lock().insert(request.start_ts);
                (Work::Prewrite, request.start_ts)
            }
            RequestBody::Commit { start_ts, .. } if self.acknowledged.lock().contains(start_ts) => {
                (Work::CommitSecondaries, *start_ts)
            }
            RequestBody::Commit { start_ts, .. } => (Work::CommitPrimary, *start_ts),
            RequestBody::Rollback { start_ts, .. } => (Work::Rollback, *start_ts),
            RequestBody::CheckTxnStatus(request) => (Work::CheckStatus, request.lock_ts),
            RequestBody::CheckLocks(request) => (Work::CheckStatus, request.lock_ts),
            RequestBody::ResolveLock { start_ts, .. } => (Work::ResolveLocks, *start_ts),
            RequestBody::Heartbeat { start_ts, .. } => (Work::Heartbeat, *start_ts),
            _ => return None,
        })
    }

    /// Whether the gateway commits this transaction.
    pub(crate) fn is_own(&self, start_ts: Timestamp) -> bool {
        self.begun.lock().contains(&start_ts)
    }

    /// The commit of a primary was acknowledged.
    pub(crate) fn acknowledge(&self, start_ts: Timestamp) {
        self.acknowledged.lock().insert(start_ts);
    }
}
