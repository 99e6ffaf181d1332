//! What the commits and the readers of a run did, as the metrics of the gateways count it and as their requests and
//! answers show it. All seeds together must have done enough of each.

use std::collections::BTreeSet;

use kv::api::{LocksStatus, RequestBody, Response, TxnStatus};
use prometheus::Registry;
use prometheus::proto::MetricFamily;
use tso::Timestamp;

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protocols {
    /// Transactions by the protocol that committed them.
    pub(crate) one_phase: u64,
    pub(crate) async_commits: u64,
    pub(crate) two_phase: u64,
    /// Commits that a region turned into two phases.
    pub(crate) fallbacks: u64,
    /// Locks of living transactions that reads passed.
    pub(crate) passed: u64,
    /// Answers that a lock was pushed right above the reader who asked.
    pub(crate) pushes: u64,
    /// Asynchronous commits whose coordinator was not answered and asked all keys instead.
    pub(crate) settled: u64,
    /// Asynchronous commits that ended by a rollback mark on a missing key.
    pub(crate) marked: u64,
    /// Those among them that had expired, and that another transaction ended.
    pub(crate) expired: u64,
}

impl Protocols {
    /// Adds another count.
    pub(crate) fn add(&mut self, other: &Protocols) {
        self.one_phase += other.one_phase;
        self.async_commits += other.async_commits;
        self.two_phase += other.two_phase;
        self.fallbacks += other.fallbacks;
        self.passed += other.passed;
        self.pushes += other.pushes;
        self.settled += other.settled;
        self.marked += other.marked;
        self.expired += other.expired;
    }

    /// Adds what the metrics of a gateway say.
    pub(crate) fn add_metrics(&mut self, registry: &Registry) {
        let families = registry.gather();
        let commits = |protocol| sum(&families, "cortado_txn_commit_protocols_total", Some(protocol));
        self.one_phase += commits("one_phase");
        self.async_commits += commits("async");
        self.two_phase += commits("two_phase");
        self.fallbacks += sum(&families, "cortado_txn_commit_fallbacks_total", None);
        self.passed += sum(&families, "cortado_txn_locks_passed_total", None);
    }
}

/// The sum of a counter, or of those with a value of their label.
fn sum(families: &[MetricFamily], name: &str, value: Option<&str>) -> u64 {
    let family = families.iter().find(|family| family.name() == name);
    let family = family.unwrap_or_else(|| panic!("no metric {name}"));
    let counted = family
        .get_metric()
        .iter()
        .filter(|metric| value.is_none_or(|value| metric.get_label().iter().any(|label| label.value() == value)));
    counted.map(|metric| metric.get_counter().get_value() as u64).sum()
}

/// Follows the requests of all gateways and their answers.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) counts: Protocols,
    /// Transactions that a request rolled back, or an answer shows rolled back.
    rolled_back: BTreeSet<Timestamp>,
    settled: BTreeSet<Timestamp>,
}

impl Watch {
    /// Sees a request and its answer. `is_own` says that its gateway commits the transaction that it asks about.
    pub(crate) fn see(&mut self, request: &RequestBody, answer: &Response, is_own: bool) {
        match (request, answer) {
            (RequestBody::CheckTxnStatus(request), Response::Status(status)) => match status {
                TxnStatus::Alive { min_commit_ts, .. } if request.reader_ts > Timestamp::ZERO => {
                    self.counts.pushes += u64::from(*min_commit_ts == request.reader_ts.next());
                }
                TxnStatus::RolledBack => drop(self.rolled_back.insert(request.lock_ts)),
                _ => {}
            },
            (RequestBody::CheckLocks(request), Response::Locks(status)) if request.mark_missing => {
                let is_settling = is_own && request.reader_ts == Timestamp::ZERO;
                self.counts.settled += u64::from(is_settling && self.settled.insert(request.lock_ts));
                if *status == LocksStatus::RolledBack && self.rolled_back.insert(request.lock_ts) {
                    self.counts.marked += 1;
                    self.counts.expired += u64::from(!is_own);
                }
            }
            _ => {}
        }
    }

    /// Sees a request before it leaves, which may roll its transaction back whether it is answered or not.
    pub(crate) fn leaves(&mut self, request: &RequestBody) {
        if let RequestBody::Rollback { start_ts, .. } | RequestBody::ResolveLock { start_ts, commit_ts: None, .. } =
            request
        {
            self.rolled_back.insert(*start_ts);
        }
    }
}
