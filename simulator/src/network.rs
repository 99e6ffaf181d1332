//! The simulated network: which messages arrive, when and how often; and the transport of a simulated store.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;

use raftstore::StoreId;
use raftstore::ports::{DeliveryDone, RaftMessage, SendError, Transport};
use raftstore::snapshot::SnapshotKey;
use raftstore::transport::{LaneKind, frame_bytes};

use crate::options::NetworkOptions;

/// Directed links that carry nothing, with the number of faults that cut each. Shared with the transports, which report
/// a cut link if the options say so.
pub type Cuts = Arc<Mutex<BTreeMap<(StoreId, StoreId), u32>>>;

/// Decides when each message arrives, and how often.
pub struct Network {
    options: NetworkOptions,
    cuts: Cuts,
    /// Bytes per second of what a store sends to each other store, if its links are slow.
    slow: BTreeMap<StoreId, u64>,
    /// Until when each lane of a slow link is busy.
    busy: BTreeMap<(StoreId, StoreId, LaneKind), u64>,
    rng: StdRng,
}

/// A lane that would be busy for longer than this, in nanoseconds, loses its messages, as a full queue does.
const LONGEST_QUEUE: u64 = 2_000_000_000;

impl Network {
    /// A network without cuts.
    pub(crate) fn new(options: NetworkOptions, rng: StdRng) -> Network {
        Network { options, cuts: Cuts::default(), slow: BTreeMap::new(), busy: BTreeMap::new(), rng }
    }

    /// The shared cuts.
    pub fn cuts(&self) -> Cuts {
        Arc::clone(&self.cuts)
    }

    /// Whether the link is cut.
    pub fn is_cut(&self, from: StoreId, to: StoreId) -> bool {
        self.cuts.lock().contains_key(&(from, to))
    }

    /// Cuts a direction.
    pub(crate) fn cut(&mut self, from: StoreId, to: StoreId) {
        *self.cuts.lock().entry((from, to)).or_default() += 1;
    }

    /// Restores a direction; each cut needs one call.
    pub(crate) fn restore(&mut self, from: StoreId, to: StoreId) {
        let mut cuts = self.cuts.lock();
        if let Some(count) = cuts.get_mut(&(from, to)) {
            *count -= 1;
            if *count == 0 {
                cuts.remove(&(from, to));
            }
        }
    }

    /// Limits what a store sends to each other store to this rate, in bytes per second.
    pub(crate) fn slow_down(&mut self, from: StoreId, rate: u64) {
        self.slow.insert(from, rate.max(1));
    }

    /// Ends the limit. What is queued still takes its time.
    pub(crate) fn speed_up(&mut self, from: StoreId) {
        self.slow.remove(&from);
    }

    /// Whether what the store sends is slow, or still queued.
    pub(crate) fn is_slow(&self, from: StoreId, now: u64) -> bool {
        let queued = || self.busy.iter().any(|((sender, ..), until)| *sender == from && *until > now);
        self.slow.contains_key(&from) || queued()
    }

    /// Ends all cuts, losses and delays of stragglers for good.
    pub(crate) fn heal(&mut self) {
        self.cuts.lock().clear();
        self.slow.clear();
        self.options.drop = 0.0;
        self.options.duplicate = 0.0;
        self.options.straggle = 0.0;
        self.options.busy_receiver = 0.0;
    }

    /// The delays in nanoseconds after which copies of a message arrive; empty if it is lost.
    pub(crate) fn delivery_delays(&mut self, message: &RaftMessage, now: u64) -> Vec<u64> {
        let (from, to) = (message.from.store, message.to.store);
        let Some(queued) = self.queue(message, now) else { return Vec::new() };
        if self.is_cut(from, to) || self.rng.random_bool(self.options.drop) {
            return Vec::new();
        }
        let copies = if self.rng.random_bool(self.options.duplicate) { 2 } else { 1 };
        (0..copies).map(|_| queued + self.delay()).collect()
    }

    /// How long the message takes to leave on a slow link, with what is queued before it; `None` if the queue is full.
    /// The lanes share the link equally.
    fn queue(&mut self, message: &RaftMessage, now: u64) -> Option<u64> {
        let (from, to) = (message.from.store, message.to.store);
        let Some(rate) = self.slow.get(&from) else { return Some(0) };
        let (lane, lanes) = if self.options.one_lane { (LaneKind::Bulk, 1) } else { (LaneKind::of(message), 2) };
        let until = self.busy.entry((from, to, lane)).or_default();
        let queued = until.saturating_sub(now);
        if queued > LONGEST_QUEUE {
            return None;
        }
        *until = now + queued + frame_bytes(message) as u64 * 1_000_000_000 * lanes / rate;
        Some(*until - now)
    }

    /// The transfer time of a snapshot in nanoseconds: 20 MB/s plus a message delay.
    pub(crate) fn snapshot_delay(&mut self, bytes: u64) -> u64 {
        self.delay() + bytes * 50
    }

    /// What the receiver of a snapshot file does.
    pub(crate) fn receiver(&mut self) -> Receiver {
        if self.options.busy_receiver == 0.0 || !self.rng.random_bool(self.options.busy_receiver) {
            return Receiver::Ready;
        }
        if self.rng.random_bool(0.5) { Receiver::Busy } else { Receiver::Slow }
    }

    /// A number of this range.
    pub(crate) fn pick(&mut self, least: u64, most: u64) -> u64 {
        self.rng.random_range(least..=most)
    }

    fn delay(&mut self) -> u64 {
        let (low, high) = self.options.latency_us;
        let mut micros = self.rng.random_range(low..=high);
        if self.rng.random_bool(self.options.straggle) {
            micros += self.rng.random_range(0..=self.options.straggle_us);
        }
        micros * 1000 + self.rng.random_range(0..1000)
    }
}

/// What the receiver of a snapshot file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// It takes the file and the message.
    Ready,
    /// It refuses the file.
    Busy,
    /// It takes the file so slowly that the sender gives up before it takes the message.
    Slow,
}

/// Output of a store's turn.
pub(crate) enum Outgoing {
    /// A message.
    Message(RaftMessage),
    /// A refused message above the frame limit, and its size.
    TooLarge(RaftMessage, usize),
    /// A message with a snapshot file.
    Snapshot(RaftMessage, SnapshotKey, DeliveryDone),
}

/// A store's transport: collects what a turn sends.
pub(crate) struct Outbox {
    store: StoreId,
    sent: Mutex<Vec<Outgoing>>,
    cuts: Cuts,
    reports: bool,
    limit: usize,
}

impl Outbox {
    /// The outbox of a store for one life.
    pub(crate) fn new(store: StoreId, cuts: Cuts, options: &NetworkOptions) -> Arc<Outbox> {
        let (reports, limit) = (options.reports_unreachable, options.frame_bytes);
        Arc::new(Outbox { store, sent: Mutex::default(), cuts, reports, limit })
    }

    /// Takes everything sent since the last call.
    pub(crate) fn take(&self) -> Vec<Outgoing> {
        std::mem::take(&mut self.sent.lock())
    }
}

impl Transport for Outbox {
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        if self.reports && self.cuts.lock().contains_key(&(self.store, message.to.store)) {
            return Err(SendError::Unreachable);
        }
        let (bytes, limit) = (frame_bytes(&message), self.limit);
        if bytes > limit {
            self.sent.lock().push(Outgoing::TooLarge(message, bytes));
            return Err(SendError::TooLarge { bytes, limit });
        }
        self.sent.lock().push(Outgoing::Message(message));
        Ok(())
    }

    fn send_snapshot(&self, message: RaftMessage, snapshot: SnapshotKey, done: DeliveryDone) {
        self.sent.lock().push(Outgoing::Snapshot(message, snapshot, done));
    }
}
