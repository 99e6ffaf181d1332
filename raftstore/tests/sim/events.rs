//! The events of a run, in the order of virtual time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use raftstore::StoreId;
use raftstore::ports::{DeliveryDone, RaftMessage};
use raftstore::snapshot::SnapshotKey;

use crate::faults::Fault;

/// A scheduled event.
pub(crate) enum Event {
    /// A message arrives.
    Deliver(Box<RaftMessage>),
    /// A message arrives in spite of a cut, because it had passed the link before.
    DeliverPast(Box<RaftMessage>),
    /// A snapshot file and its message arrive. `life` identifies the sender's life, to find the file. `writes` were
    /// confirmed in the region before it was sent.
    Snapshot { message: Box<RaftMessage>, key: SnapshotKey, life: u64, done: DeliveryDone, writes: u64 },
    /// A tick of a store.
    Tick { store: StoreId, life: u64 },
    /// A turn of a store's loop.
    Turn { store: StoreId, life: u64, part: Part },
    /// A client starts an operation or proposes the write it holds.
    Client { client: usize, ticket: u64 },
    /// A client's timeout for the operation with this value.
    ClientTimeout { client: usize, value: u64 },
    /// The prober takes its next step.
    Probe,
    /// A fault begins.
    Fault,
    /// A fault ends.
    EndFault(Fault),
    /// A store restarts.
    Restart(StoreId),
}

/// A part of a store that runs turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Store,
    Log,
    Apply,
    Background,
    Build,
    Install,
    LogRead,
}

/// All parts.
pub(crate) const PARTS: [Part; 7] =
    [Part::Store, Part::Log, Part::Apply, Part::Background, Part::Build, Part::Install, Part::LogRead];

/// Scheduled events. Events of the same time run in the order in which they were pushed.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    /// Number of events pushed so far.
    pushed: u64,
}

impl EventQueue {
    /// Adds an event at a virtual time.
    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.pushed += 1;
        self.heap.push(Reverse(Entry { at, number: self.pushed, event }));
    }

    /// Takes the next event at or before `end`, with its time.
    pub(crate) fn pop_until(&mut self, end: u64) -> Option<(u64, Event)> {
        self.heap.peek().filter(|Reverse(entry)| entry.at <= end)?;
        let Reverse(entry) = self.heap.pop()?;
        Some((entry.at, entry.event))
    }
}

struct Entry {
    at: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.number == other.number
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
