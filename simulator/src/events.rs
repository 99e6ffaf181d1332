//! The events of a run, in the order of virtual time, and the faults among them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use raftstore::StoreId;
use raftstore::ports::{DeliveryDone, RaftMessage};
use raftstore::snapshot::SnapshotKey;

/// A scheduled event. `E` is an event of the load.
pub enum Event<E> {
    /// A message arrives.
    Deliver(Box<RaftMessage>),
    /// A message arrives in spite of a cut, because it had passed the link before.
    DeliverPast(Box<RaftMessage>),
    /// A snapshot file and its message arrive.
    Snapshot(Box<SnapshotArrival>),
    /// A tick of a store in this life.
    Tick {
        /// The store.
        store: StoreId,
        /// The life in which it was scheduled.
        life: u64,
    },
    /// A turn of a store's loop.
    Turn {
        /// The store.
        store: StoreId,
        /// The life in which it was scheduled.
        life: u64,
        /// The loop.
        part: Part,
    },
    /// An event of the load.
    Load(E),
    /// A fault begins.
    Fault,
    /// A fault ends.
    EndFault(Fault),
    /// A store restarts.
    Restart(StoreId),
}

/// A snapshot file and its message, on their way.
pub struct SnapshotArrival {
    /// The message that goes with the file.
    pub(crate) message: RaftMessage,
    /// The file.
    pub(crate) key: SnapshotKey,
    /// The sender's life, to find the file.
    pub(crate) life: u64,
    /// Tells the sender what became of it.
    pub(crate) done: DeliveryDone,
    /// The writes confirmed in the region before it was sent.
    pub(crate) writes: u64,
}

/// An active fault, with the data needed to end it.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The store is poisoned.
    Poisoned(StoreId),
    /// The store was to lose power during its disk writes, but made none.
    Torn(StoreId),
    /// The store is paused.
    Paused(StoreId),
    /// These directions are cut.
    Cut(Vec<(StoreId, StoreId)>),
    /// Cuts the first store off from the second.
    CutOff(StoreId, StoreId),
    /// Isolates the leader (the first store) and restarts these followers at once.
    RestartIsolated(StoreId, Vec<StoreId>),
    /// Isolates the store and probes whether it still serves lease reads.
    Isolate(StoreId),
    /// The load starts no operations for a while.
    Quiet,
    /// The held `MsgTimeoutNow` messages arrive, and the store that sent them is isolated.
    DeliverHeldOffers(StoreId),
    /// Looks whether the leader whose answers are held was replaced, until this time.
    AwaitSuccessor(u64),
    /// The held answers arrive.
    DeliverHeldAnswers,
    /// Probes whether the store still serves lease reads.
    ProbeLease(StoreId),
    /// The log's disk of the store is full.
    Full(StoreId),
    /// The store's log is slow.
    Slow(StoreId),
    /// The store's apply is slow.
    SlowApply(StoreId),
    /// The store's turns are stalled between stages.
    SlowTurns(StoreId),
    /// The syncs of the store's log are slow.
    SlowSync(StoreId),
    /// What the store sends leaves it slowly.
    SlowLink(StoreId),
    /// The store has campaigned and loses power.
    CandidateCrash(StoreId),
}

/// A part of a store that runs turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The store loop.
    Store,
    /// The writer of the log.
    Log,
    /// The apply loop.
    Apply,
    /// Flushes, purge and scrub.
    Background,
    /// The builder of snapshots.
    Build,
    /// The installer of snapshots.
    Install,
    /// The reader of old log entries.
    LogRead,
}

/// All parts.
pub(crate) const PARTS: [Part; 7] =
    [Part::Store, Part::Log, Part::Apply, Part::Background, Part::Build, Part::Install, Part::LogRead];

/// Scheduled events. Events of the same time run in the order in which they were pushed.
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    /// Number of events pushed so far.
    pushed: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue { heap: BinaryHeap::new(), pushed: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event at a virtual time.
    pub(crate) fn push(&mut self, at: u64, event: Event<E>) {
        self.pushed += 1;
        self.heap.push(Reverse(Entry { at, number: self.pushed, event }));
    }

    /// When the next event is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next event at or before `end`, with its time.
    pub(crate) fn pop_until(&mut self, end: u64) -> Option<(u64, Event<E>)> {
        self.heap.peek().filter(|Reverse(entry)| entry.at <= end)?;
        let Reverse(entry) = self.heap.pop()?;
        Some((entry.at, entry.event))
    }
}

struct Entry<E> {
    at: u64,
    number: u64,
    event: Event<E>,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Entry<E>) -> bool {
        self.number == other.number
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Entry<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Entry<E>) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
