//! How the reads of a transaction choose their replicas, and what they report.
//!
//! A session makes one [`ReadOptions`] from its settings and hints and passes it with every read. Without options a
//! read goes to the leader.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use raftstore::{RegionId, StoreId};
use tso::Timestamp;

use crate::api::ReadPath;

/// How reads choose their replicas.
#[derive(Debug)]
pub struct ReadOptions {
    /// Which replicas serve.
    pub replica: ReplicaPolicy,
    /// What proves a read at a replica that does not lead.
    pub proof: ProofPolicy,
    /// Whether a slow read is sent to a second replica.
    pub hedge: HedgePolicy,
    /// Of a first read: which snapshot the replica takes. `None`: a fresh one. `Some`: the newest that it can prove, if
    /// it is not below this bound.
    pub floor: Option<Timestamp>,
    /// Whether the transaction never writes. Only then may its first read leave a fresh snapshot to a replica that does
    /// not lead: other transactions may read at the same one, and a writer needs a name of its own.
    pub read_only: bool,
    /// How long a read waits for a replica that can prove it. Default 5 s.
    pub patience: Duration,
    /// What the reads report.
    pub trace: ReadTrace,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            replica: ReplicaPolicy::Leader,
            proof: ProofPolicy::Grants,
            hedge: HedgePolicy::Off,
            floor: None,
            read_only: false,
            patience: Duration::from_secs(5),
            trace: ReadTrace::default(),
        }
    }
}

/// Which replicas serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaPolicy {
    /// The leader.
    #[default]
    Leader,
    /// A follower, the nearest first; the leader if none can.
    Follower,
    /// The nearest.
    Closest,
    /// All, by turns, as their load allows.
    Any,
    /// A learner, the nearest first; others if there is none.
    Learner,
}

/// What proves a read at a replica that does not lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofPolicy {
    /// Grants.
    #[default]
    Grants,
    /// A read index for each request.
    ReadIndex,
    /// Nothing: the read sees what the replica has applied.
    Unproven,
}

/// Whether a slow read is sent to a second replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HedgePolicy {
    /// No.
    #[default]
    Off,
    /// After the 95th percentile of the time that such reads take.
    Auto,
    /// After this time.
    After(Duration),
}

/// How one read of a transaction chooses its replica.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) options: &'a ReadOptions,
    /// That of the options, or the leader after locks.
    pub(super) policy: ReplicaPolicy,
    /// Where its requests report.
    pub(super) trace: &'a ReadTrace,
    /// Whether it sends requests to several regions at a time.
    pub(super) is_parallel: bool,
}

impl<'a> Reading<'a> {
    /// A read with these options. After an attempt that met locks it goes to the leader.
    pub(super) fn new(options: &'a ReadOptions, locks_met: bool) -> Reading<'a> {
        let policy = if locks_met { ReplicaPolicy::Leader } else { options.replica };
        Reading { options, policy, trace: &options.trace, is_parallel: false }
    }

    /// Whether its requests are those of a read without options.
    pub(super) fn is_plain(&self) -> bool {
        self.policy == ReplicaPolicy::Leader && self.options.hedge == HedgePolicy::Off
    }

    /// Reports a request that a region has answered.
    pub(super) fn report(&self, report: ReadReport, region: RegionId) {
        self.options.trace.note_region(region);
        if self.is_parallel { self.trace.join(report) } else { self.trace.add(report) }
    }
}

/// What the reads of a statement report. Shared by the session, which shows it, and the reads.
///
/// One statement at a time reports. Of requests that are under way together, the caller that sends them adds one
/// report.
#[derive(Debug, Default)]
pub struct ReadTrace {
    report: Mutex<Option<ReadReport>>,
    /// Round trips for the snapshot, before the requests.
    waited: AtomicU32,
    /// The regions that have answered; `None` if nobody asks.
    regions: Option<Mutex<RegionSet>>,
    /// The last snapshot that a read index has proved, and the store of the replica. It outlasts the report.
    indexed: Mutex<Option<(Timestamp, StoreId)>>,
}

/// How the requests of a statement were served: the last one in full, the others by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadReport {
    /// The proof of the last request.
    pub path: ReadPath,
    /// The store of its replica.
    pub store: StoreId,
    /// The snapshot.
    pub start_ts: Timestamp,
    /// The safe_ts of its replica; for the leader the snapshot.
    pub safe_ts: Timestamp,
    /// The requests.
    pub requests: u32,
    /// The round trips that they took, one after the other: to another node, of replicas to their leaders, and of
    /// whoever took the snapshot to the oracle.
    pub round_trips: u32,
}

/// Regions that have answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionSet(BTreeSet<RegionId>);

impl RegionSet {
    /// Their number.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds others.
    pub fn add(&mut self, others: RegionSet) {
        self.0.extend(others.0);
    }
}

impl ReadTrace {
    /// One that counts regions too.
    pub fn with_regions() -> ReadTrace {
        ReadTrace { regions: Some(Mutex::default()), ..ReadTrace::default() }
    }

    /// Notes a region that has answered.
    pub(super) fn note_region(&self, region: RegionId) {
        if let Some(regions) = &self.regions {
            regions.lock().0.insert(region);
        }
    }

    /// The regions that have answered since the last call, if they are counted.
    pub fn take_regions(&self) -> RegionSet {
        self.regions.as_ref().map(|regions| std::mem::take(&mut *regions.lock())).unwrap_or_default()
    }

    /// What was reported since the last call.
    pub fn take(&self) -> Option<ReadReport> {
        let report = self.report.lock().take();
        report.map(|report| report.after(self.waited.swap(0, Ordering::Relaxed)))
    }

    /// As [`ReadTrace::take`], and leaves it there.
    pub fn last(&self) -> Option<ReadReport> {
        let report = *self.report.lock();
        report.map(|report| report.after(self.waited.load(Ordering::Relaxed)))
    }

    /// Whether a read index has proved this snapshot at this store for the statement.
    pub(super) fn is_indexed(&self, start_ts: Timestamp, store: StoreId) -> bool {
        *self.indexed.lock() == Some((start_ts, store))
    }

    /// Notes a round trip for the snapshot.
    pub fn add_wait(&self) {
        self.waited.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a request that was sent after those before.
    pub fn add(&self, report: ReadReport) {
        self.merge(report, u32::saturating_add);
    }

    /// Adds a request that was sent together with those before: of their round trips, the most count.
    pub(super) fn join(&self, report: ReadReport) {
        self.merge(report, u32::max);
    }

    fn merge(&self, report: ReadReport, round_trips: fn(u32, u32) -> u32) {
        if report.path == ReadPath::ReadIndex {
            *self.indexed.lock() = Some((report.start_ts, report.store));
        }
        let mut last = self.report.lock();
        *last = Some(match *last {
            None => report,
            Some(before) => ReadReport {
                requests: before.requests.saturating_add(report.requests),
                round_trips: round_trips(before.round_trips, report.round_trips),
                ..report
            },
        });
    }
}

impl ReadReport {
    /// The same after so many round trips.
    fn after(self, waited: u32) -> ReadReport {
        ReadReport { round_trips: self.round_trips.saturating_add(waited), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_add_up_and_requests_under_way_together_count_their_longest_way() {
        let report = |store, round_trips| {
            let (path, start_ts) = (ReadPath::Grant, Timestamp::new(store, 0));
            ReadReport { path, store: StoreId::new(store), start_ts, safe_ts: start_ts, requests: 1, round_trips }
        };
        let trace = ReadTrace::default();
        assert_eq!(trace.take(), None);
        trace.add(report(1, 2));
        trace.add(report(2, 0));
        trace.add(report(3, 1));
        assert_eq!(trace.take(), Some(ReadReport { requests: 3, ..report(3, 3) }));
        assert_eq!(trace.take(), None);
        trace.join(report(1, 2));
        trace.join(report(2, 1));
        assert_eq!(trace.take(), Some(ReadReport { requests: 2, ..report(2, 2) }));
        trace.add_wait();
        assert_eq!(trace.take(), None, "nothing was read yet");
        trace.add(report(1, 1));
        assert_eq!((trace.last(), trace.take()), (Some(report(1, 2)), Some(report(1, 2))));
        trace.add(report(1, 0));
        assert_eq!(trace.take(), Some(report(1, 0)));
        let (at, store) = (Timestamp::new(2, 0), StoreId::new(2));
        assert!(!trace.is_indexed(Timestamp::new(1, 0), StoreId::new(1)), "a grant is not an index");
        trace.add(ReadReport { path: ReadPath::ReadIndex, ..report(2, 1) });
        trace.take();
        assert!(trace.is_indexed(at, store), "the next page needs none");
        assert!(!trace.is_indexed(at, StoreId::new(1)) && !trace.is_indexed(Timestamp::ZERO, store));
    }
}
