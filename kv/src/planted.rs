//! Deliberate bugs, so that a test can prove that it finds real ones. Each is inert unless a setting names it.

use tso::Timestamp;

use crate::api::{CommitMode, MutationOp, PrewriteRequest, RequestBody, Response, TxnStatus};

/// A deliberate bug of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A write releases its latches when it is proposed, before it is applied.
    EarlyLatchRelease,
    /// A proposal with an unknown outcome does not fence its region.
    MissingFence,
    /// A kept scan reads the locks of each page from a new snapshot, but its cursor over the write records stays on the
    /// old one.
    StaleScanCursor,
    /// A read does not raise `max_ts`.
    MaxTsNotRaised,
    /// A write reads `max_ts` before it publishes its locks in memory.
    MaxTsBeforeLocks,
    /// A write releases its locks in memory when it is proposed, before it is applied.
    EarlyMemoryRelease,
    /// A leader computes commit_ts although `max_ts` is not synced in its term.
    UnsyncedOnePhase,
    /// A store takes the timestamp of each read that has none ahead, when the read before it arrives.
    TimestampAhead,
    /// A store takes no least commit_ts for a prewrite that leaves it to the store: start_ts is the only bound.
    LeastNotTaken,
    /// The primary's lock of an async commit does not name the last secondary.
    ForgottenSecondary,
    /// A reader pushes the lock of an async commit as if it were a plain one.
    AsyncPushed,
    /// The expired lock of an async commit is rolled back at once. Its other keys are neither asked nor marked.
    ExpiredAsyncRolledBack,
    /// A push is answered before it is replicated.
    PushAnsweredEarly,
    /// The count of the locks in memory rises only after `max_ts` was read and the locks are in the map.
    LateCount,
    /// A replica's grants count on after its range has changed or its data was replaced.
    GrantKeptOverChange,
    /// The index of a grant is read before its timestamp is taken.
    GrantIndexEarly,
    /// A leader does not look at the locks in memory when it gives a grant.
    GrantIgnoresLocks,
    /// A grant counts before its index is applied.
    QueueAnsweredEarly,
    /// A wish for a grant joins the request that is on its way, whose timestamp may be older than the wish.
    WishJoinsRequest,
    /// A read looks at the lease when it arrives, and not again: neither when it takes its timestamp nor when it reads.
    /// Some are held up in between.
    LeaseCheckedFirst,
    /// A session snapshot may be below what the session has committed.
    FloorIgnored,
    /// A transaction that queues up for a row lock is told that it has the lock.
    LockHandedTwice,
    /// A row that has changed since it was read is answered as unchanged.
    OldRowEvaluated,
    /// The detector of deadlocks loses the waits of every second transaction.
    DetectorDropsEdge,
    /// A prewrite does not confirm the row locks that its transaction shares.
    SharedNotConfirmed,
    /// A prewrite does not ask whether the row locks that its transaction relies on were lost.
    LostLockIgnored,
    /// A leader that hands over keeps its row locks to itself.
    LocksNotHandedOver,
    /// A leader that inherits row locks does not know whose they are: whoever waits for them is never served.
    WaiterForgotten,
    /// A read does not look at the safe point after it has read.
    SafePointUnchecked,
    /// Transactions below the safe point still write.
    OldWritesAccepted,
}

impl PlantedBug {
    /// Changes what a write is asked to do.
    pub(crate) fn spoil_request(self, body: &mut RequestBody) {
        match (self, body) {
            (
                PlantedBug::ForgottenSecondary,
                RequestBody::Prewrite(PrewriteRequest { commit: CommitMode::Async { secondaries, .. }, .. }),
            ) => {
                secondaries.pop();
            }
            // The lock of a commit that fell back is a plain one. At time zero none has expired.
            (PlantedBug::AsyncPushed, RequestBody::CheckTxnStatus(request))
                if !request.fell_back && request.reader_ts > Timestamp::ZERO =>
            {
                (request.fell_back, request.current_ts) = (true, Timestamp::ZERO);
            }
            // Without a reader, a plain lock is not pushed.
            (PlantedBug::SharedNotConfirmed, RequestBody::Prewrite(request)) => {
                request.mutations.retain(|mutation| !matches!(mutation.op, MutationOp::Shared(_)));
            }
            (PlantedBug::LostLockIgnored, RequestBody::Prewrite(request)) => {
                request.mutations.iter_mut().for_each(|mutation| mutation.lock = None);
            }
            (PlantedBug::ExpiredAsyncRolledBack, RequestBody::CheckTxnStatus(request)) => {
                (request.fell_back, request.reader_ts) = (true, Timestamp::ZERO);
            }
            _ => {}
        }
    }

    /// Whether a write with this response, which changes data, is answered before it is replicated.
    pub(crate) fn answers_early(self, response: &Response) -> bool {
        self == PlantedBug::PushAnsweredEarly && matches!(response, Response::Status(TxnStatus::Alive { .. }))
    }
}
