//! The queue over a log on a disk that fills up: order and acknowledgements.

use engine::disk::{Operation, SimDisk};
use engine::log::{Budget, GroupId, LogOptions, LogWriter};

use super::*;
use crate::records;
use crate::region::{LogIndex, Term};

const GROUP: GroupId = GroupId(7);

struct Fixture {
    disk: Arc<SimDisk>,
    log: LogEngine,
    writer: LogWriter,
    inbox: Arc<CompletionInbox>,
    queue: Arc<LogQueue>,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with(LogOptions { prefill_bytes: 0, ..LogOptions::default() })
    }

    fn with(options: LogOptions) -> Fixture {
        let disk = SimDisk::new();
        let options = LogOptions { identity: Some(1), compress_from: usize::MAX, ..options };
        let (log, writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
        let (inbox, mailbox) = (Arc::<CompletionInbox>::default(), Arc::new(Mailbox::new(16)));
        let metrics = Metrics::new(&prometheus::Registry::new()).unwrap();
        let queue = LogQueue::new(log.clone(), Arc::clone(&inbox), mailbox, metrics);
        Fixture { disk, log, writer, inbox, queue }
    }

    /// Appends an entry of `bytes` bytes at index `number`, as batch `number`.
    fn append(&self, number: u64, bytes: usize) {
        let mut batch = LogBatch::new();
        batch.append(GROUP, number, vec![vec![number as u8; bytes].into()]);
        self.queue.submit(number, batch, Durability::Synced);
    }

    /// Drops entries up to `index`.
    fn truncate(&self, index: u64) {
        let start = LogPosition { index: LogIndex::new(index), term: Term::new(1) };
        self.queue.truncate(Truncations::from([(RegionId::new(GROUP.0), start)]));
    }

    /// The recorded log start, and the first and last index in the log.
    fn start(&self) -> (u64, u64, u64) {
        let start = self.log.get(GROUP, records::LOG_START_KEY).unwrap();
        let start = start.map_or(0, |start| records::decode_position(&start).unwrap().index.get());
        let bounds = self.log.bounds(GROUP).unwrap();
        (start, bounds.first, bounds.last)
    }

    /// Runs the log until it is idle. Returns the last acknowledged number and the failure, if any.
    fn run(&mut self) -> (u64, Option<String>) {
        while self.writer.turn() > 0 {}
        let done = self.inbox.take();
        (done.durable, done.log_failure)
    }
}

#[test]
fn batches_are_pipelined_and_acknowledged_in_order() {
    let mut f = Fixture::new();
    (1..=5).for_each(|number| f.append(number, 100));
    assert_eq!(f.writer.turn(), 5, "no batch waits for the first to be durable");
    assert_eq!(f.inbox.take().durable, 5);
    assert_eq!(f.log.bounds(GROUP).map(|b| (b.first, b.last)), Some((1, 5)));
}

/// Regression: a batch that met a full disk was dropped and the store stopped. Now it waits, and a smaller batch behind
/// it that would fit waits too.
#[test]
fn full_disk_keeps_batches_in_order_until_space_returns() {
    let mut f = Fixture::new();
    f.append(1, 100);
    assert_eq!(f.run(), (1, None));
    f.disk.set_capacity(Some(f.disk.used() + 8192));
    f.append(2, 100_000);
    f.append(3, 10);
    assert_eq!(f.run(), (1, None));
    assert!(f.queue.is_full());
    f.queue.retry();
    assert_eq!(f.run(), (1, None));
    assert_eq!(f.log.bounds(GROUP).map(|b| b.last), Some(1), "nothing overtakes a queued batch");
    f.append(4, 10);
    f.disk.set_capacity(None);
    f.queue.retry();
    assert_eq!(f.run(), (4, None));
    assert!(!f.queue.is_full());
    assert_eq!(f.log.entry(GROUP, 2).unwrap().len(), 100_000);
    assert_eq!(f.log.bounds(GROUP).map(|b| b.last), Some(4));
}

/// A log of small files that has filled its disk: batches 1 to 12 are written, 13 to 15 wait for space. It has a
/// reserve.
fn full() -> Fixture {
    let options = LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 8 << 10,
        spare_files: 1,
        purge_threshold: 64 << 10,
        ..LogOptions::default()
    };
    let mut f = Fixture::with(options);
    (1..=12).for_each(|number| f.append(number, 12_000));
    assert_eq!(f.run(), (12, None));
    f.log.purge(Budget::default()).unwrap();
    f.disk.set_capacity(Some(f.disk.used()));
    (13..=15).for_each(|number| f.append(number, 40_000));
    assert_eq!(f.run(), (12, None));
    assert!(f.queue.is_full());
    f
}

/// Regression: truncations waited behind batches that did not fit, so a store whose log had filled the disk could never
/// free space.
#[test]
fn truncations_bypass_the_stalled_queue_and_free_space() {
    let mut f = full();
    f.truncate(11);
    f.truncate(12);
    f.queue.retry();
    assert_eq!(f.run(), (12, None));
    assert_eq!(f.start(), (12, 13, 12), "the newest truncation is written");
    assert!(f.queue.is_full(), "the reserve is not for entries");
    let mut durable = 12;
    for _ in 0..10 {
        f.log.purge(Budget::default()).unwrap();
        f.writer.turn();
        f.queue.retry();
        durable = f.run().0;
    }
    assert_eq!(durable, 15, "purge has freed the old files without outside help");
    assert!(!f.queue.is_full());
    assert_eq!(f.start(), (12, 13, 15));
}

/// Truncations in flight when the disk filled up must not be written after newer ones: the recorded log start would
/// precede the first entry.
#[test]
fn log_start_never_moves_back() {
    let mut f = full();
    f.disk.set_capacity(Some(f.disk.used() + 1_000_000));
    f.queue.retry();
    assert_eq!(f.run(), (15, None));
    f.disk.set_capacity(Some(f.disk.used()));
    f.append(16, 60_000);
    f.truncate(3);
    f.append(17, 60_000);
    assert_eq!(f.run(), (15, None));
    assert_eq!(f.start(), (0, 1, 15), "the truncation is behind a rejected batch");
    f.truncate(5);
    f.queue.retry();
    assert_eq!(f.run(), (15, None));
    assert_eq!(f.start(), (5, 6, 15));
    f.disk.set_capacity(None);
    f.queue.retry();
    assert_eq!(f.run(), (17, None));
    assert_eq!(f.start(), (5, 6, 17));
}

/// A truncation that fits must clear the disk-full state when nothing else is queued to probe for space.
#[test]
fn lone_truncation_clears_disk_full() {
    let mut f = Fixture::with(LogOptions { prefill_bytes: 0, spare_files: 0, ..LogOptions::default() });
    (1..=3).for_each(|number| f.append(number, 100));
    assert_eq!(f.run(), (3, None));
    f.disk.set_capacity(Some(f.disk.used()));
    f.truncate(2);
    assert_eq!(f.run(), (3, None));
    assert!(f.queue.is_full());
    f.disk.set_capacity(None);
    f.queue.retry();
    f.run();
    assert!(!f.queue.is_full());
    assert_eq!(f.start(), (2, 3, 3));
}

/// A batch behind a rejected one may be refused with a gap for that reason alone.
#[test]
fn gap_behind_a_rejected_batch_is_retried() {
    let mut f = Fixture::new();
    f.append(1, 100);
    assert_eq!(f.run(), (1, None));
    (2..=3).for_each(|number| f.append(number, 100));
    let third = f.queue.state.lock().submitted;
    // The log's answers as they would come if the third overtook the failure of the second.
    f.queue.on_outcome(third - 1, Err(LogError::NoSpace("the test says so".into())));
    f.queue.on_outcome(third, Err(LogError::Gap { expected: 2 }));
    assert!(f.queue.is_full());
    assert_eq!(f.inbox.take().log_failure, None);
    assert_eq!(f.queue.state.lock().waiting.iter().map(|batch| batch.number).collect::<Vec<_>>(), [2, 3]);
    // Without a rejection before it, a gap is a defect.
    let mut f = Fixture::new();
    f.append(5, 100);
    f.queue.on_outcome(1, Err(LogError::Gap { expected: 1 }));
    assert!(f.run().1.is_some());
}

#[test]
fn other_failures_are_final() {
    for operation in [Operation::Sync, Operation::Write] {
        let mut f = Fixture::new();
        f.disk.fail_nth(operation, 1, std::io::ErrorKind::Other);
        f.append(1, 100);
        f.append(2, 100);
        let (durable, failure) = f.run();
        assert_eq!(durable, 0);
        assert!(failure.is_some());
        f.queue.retry();
        assert_eq!(f.run(), (0, None), "reported once, and nothing is submitted any more");
    }
}
