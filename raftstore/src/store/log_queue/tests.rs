//! The queue over a log on a disk that fills up: order, and what is acknowledged.

use engine::disk::{Operation, SimDisk};
use engine::log::{GroupId, LogOptions, LogWriter};

use super::*;

const GROUP: GroupId = GroupId(7);

struct Fixture {
    disk: Arc<SimDisk>,
    log: LogEngine,
    writer: LogWriter,
    inbox: Arc<Inbox>,
    queue: Arc<LogQueue>,
}

impl Fixture {
    fn new() -> Fixture {
        let disk = SimDisk::new();
        let options =
            LogOptions { identity: Some(1), prefill_bytes: 0, compress_from: usize::MAX, ..LogOptions::default() };
        let (log, writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
        let (inbox, mailbox) = (Arc::<Inbox>::default(), Arc::new(Mailbox::new(16)));
        let metrics = Metrics::new(&prometheus::Registry::new()).unwrap();
        let queue = LogQueue::new(log.clone(), Arc::clone(&inbox), mailbox, metrics);
        Fixture { disk, log, writer, inbox, queue }
    }

    /// Appends an entry of that many bytes at `number`, as batch `number`.
    fn append(&self, number: u64, bytes: usize) {
        let mut batch = LogBatch::new();
        batch.append(GROUP, number, vec![vec![number as u8; bytes].into()]);
        self.queue.submit(number, batch, Durability::Synced);
    }

    /// Lets the log write until it has nothing to do; the last number acknowledged, and a failure.
    fn run(&mut self) -> (u64, Option<String>) {
        while self.writer.turn() > 0 {}
        let done = self.inbox.take();
        (done.durable, done.log_failure)
    }
}

#[test]
fn batches_are_under_way_together_and_acknowledged_in_order() {
    let mut f = Fixture::new();
    (1..=5).for_each(|number| f.append(number, 100));
    assert_eq!(f.writer.turn(), 5, "nothing waits for the first to be durable");
    assert_eq!(f.inbox.take().durable, 5);
    assert_eq!(f.log.bounds(GROUP).map(|b| (b.first, b.last)), Some((1, 5)));
}

/// A batch that met a full disk was given up, and with it the store. Now it waits, and so does a smaller one behind it that would fit.
#[test]
fn a_full_disk_keeps_everything_in_order_until_there_is_space() {
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
    assert_eq!(f.log.bounds(GROUP).map(|b| b.last), Some(1), "nothing overtakes what waits");
    f.append(4, 10);
    f.disk.set_capacity(None);
    f.queue.retry();
    assert_eq!(f.run(), (4, None));
    assert!(!f.queue.is_full());
    assert_eq!(f.log.entry(GROUP, 2).unwrap().len(), 100_000);
    assert_eq!(f.log.bounds(GROUP).map(|b| b.last), Some(4));
}

#[test]
fn any_other_failure_is_final() {
    let mut f = Fixture::new();
    f.disk.fail_nth(Operation::Sync, 1, std::io::ErrorKind::Other);
    f.append(1, 100);
    f.append(2, 100);
    let (durable, failure) = f.run();
    assert_eq!(durable, 0);
    assert!(failure.is_some());
    f.queue.retry();
    assert_eq!(f.run(), (0, None), "told once, and nothing is handed over any more");
}
