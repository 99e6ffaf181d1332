//! A timestamp source without a clock.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tso::{NewestTimestamp, Timestamp, TsRange, TsoError, TsoSource};

use crate::api::{RequestBody, ScanRequest};
use crate::concurrency::TimestampSource;

/// The physical time of a new cluster, in milliseconds.
const EPOCH_MS: u64 = 100_000;

/// A timestamp source that counts. Its time advances when a test says so, or by a fixed step with every call.
#[derive(Debug)]
pub struct CountingTso {
    last: Mutex<Timestamp>,
    ms_per_call: u64,
}

impl CountingTso {
    /// A source whose time advances by `ms_per_call` milliseconds with every call.
    pub fn new(ms_per_call: u64) -> CountingTso {
        CountingTso { last: Mutex::new(Timestamp::new(EPOCH_MS, 0)), ms_per_call }
    }

    /// Advances the time. Locks whose ttl ends within `ms` milliseconds are expired afterwards.
    pub fn advance_ms(&self, ms: u64) {
        let mut last = self.last.lock();
        *last = Timestamp::new(last.physical_ms() + ms, last.counter());
    }

    /// The newest timestamp issued.
    pub fn last(&self) -> Timestamp {
        *self.last.lock()
    }

    /// The next timestamp.
    pub fn next(&self) -> Timestamp {
        self.take(1).last
    }

    fn take(&self, count: u32) -> TsRange {
        let mut last = self.last.lock();
        let mut ms = last.physical_ms() + self.ms_per_call;
        let mut counter = last.counter().saturating_add(count);
        if counter >= 1 << Timestamp::COUNTER_BITS {
            (ms, counter) = (ms + 1, count);
        }
        *last = Timestamp::new(ms, counter);
        TsRange { last: *last, count }
    }
}

impl TsoSource for CountingTso {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        let range = self.take(count.clamp(1, 1 << 17));
        Box::pin(std::future::ready(Ok(range)))
    }
}

impl TimestampSource for CountingTso {
    fn timestamp(&self) -> BoxFuture<'_, Result<Timestamp, TsoError>> {
        Box::pin(std::future::ready(Ok(self.next())))
    }

    fn newest(&self) -> NewestTimestamp {
        NewestTimestamp { timestamp: self.last(), age: Duration::ZERO }
    }
}

/// Where the servers of a cluster get timestamps. Tests may take theirs from another source than the cluster's. So a
/// server gets the next one of the cluster's, or the greatest that any request to the cluster was a read at, if that is
/// greater. For a new leader this is as good as a timestamp of the oracle: it is at or above every read that an earlier
/// leader served. A test whose timestamps come from another source leaves none to a store.
#[derive(Debug)]
pub(super) struct ObservedTimestamps {
    tso: Arc<CountingTso>,
    newest: Mutex<Timestamp>,
}

impl ObservedTimestamps {
    pub(super) fn new(tso: Arc<CountingTso>) -> ObservedTimestamps {
        ObservedTimestamps { tso, newest: Mutex::new(Timestamp::ZERO) }
    }

    /// Takes note of the timestamp of a read.
    pub(super) fn observe(&self, body: &RequestBody) {
        let read_ts = match body {
            RequestBody::Get { start_ts, .. }
            | RequestBody::BatchGet { start_ts, .. }
            | RequestBody::Scan(ScanRequest { start_ts, .. }) => *start_ts,
            RequestBody::CheckTxnStatus(request) => request.reader_ts,
            RequestBody::CheckLocks(request) => request.reader_ts,
            RequestBody::Acquire(request) => request.start_ts.max(request.seen_ts),
            RequestBody::RaiseSafePoint { writes, .. } => *writes,
            _ => return,
        };
        let mut newest = self.newest.lock();
        *newest = read_ts.max(*newest);
    }

    fn greatest(&self) -> Timestamp {
        self.tso.last().max(*self.newest.lock())
    }
}

impl TimestampSource for ObservedTimestamps {
    fn timestamp(&self) -> BoxFuture<'_, Result<Timestamp, TsoError>> {
        Box::pin(std::future::ready(Ok(self.tso.next().max(self.greatest()))))
    }

    /// Of the cluster's own.
    fn newest(&self) -> NewestTimestamp {
        TimestampSource::newest(&*self.tso)
    }
}
