//! Two commit groups in flight: one is written before the previous one is published, as two threads of the log do. The
//! tests drive them step by step, so that each interleaving occurs every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::disk::{Operation, RealDisk, SimDisk};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter, Result, Ticket};

use crate::model::{Change, Driver, small_options};

const GROUP: GroupId = GroupId(1);

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 0,
        purge_threshold: 0,
        spare_files: 0,
        compress_from: usize::MAX,
        ..LogOptions::default()
    }
}

fn opened(disk: &Arc<SimDisk>) -> (LogEngine, LogWriter) {
    let (engine, writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
    (engine, writer)
}

fn append(group: GroupId, first: u64, lens: &[usize]) -> LogBatch {
    let mut batch = LogBatch::new();
    batch.append(group, first, lens.iter().map(|len| Bytes::from(vec![first as u8; *len])).collect());
    batch
}

/// Submits the batches and writes each as a group of its own; keeps the last one in flight.
fn in_flight(engine: &LogEngine, writer: &mut LogWriter, batches: Vec<LogBatch>) -> Vec<Ticket> {
    let tickets = batches.into_iter().map(|batch| engine.submit(batch, Durability::Synced).unwrap()).collect();
    while writer.begin(1) > 0 {}
    tickets
}

#[test]
fn a_group_in_flight_is_published_by_the_next_call() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let tickets = in_flight(&engine, &mut writer, vec![append(GROUP, 1, &[10]), append(GROUP, 2, &[10])]);
    assert!(tickets[0].poll().unwrap().is_ok(), "it was published when the second was written");
    assert!(tickets[1].poll().is_none());
    assert_eq!(engine.bounds(GROUP).unwrap().last, 1);
    assert_eq!(writer.turn(), 0, "nothing was queued");
    assert!(tickets[1].poll().unwrap().is_ok());
    assert_eq!(engine.bounds(GROUP).unwrap().last, 2);
}

/// A batch that fails on a full disk breaks its sequence before the next batch is validated, although its own outcome
/// is not delivered yet.
#[test]
fn no_batch_overtakes_a_failed_batch_of_its_sequence() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    engine.submit(append(GROUP, 1, &[10]), Durability::Synced).unwrap();
    writer.turn();
    disk.set_capacity(Some(disk.used() + 2000));
    let sequence = engine.sequence();
    let large = sequence.submit(append(GROUP, 2, &[9000]), Durability::Synced).unwrap();
    assert_eq!(writer.begin(1), 1);
    assert!(large.poll().is_none(), "not completed yet");
    // One depends on it. The other concerns another group and would fit.
    let behind = sequence.submit(append(GROUP, 3, &[10]), Durability::Synced).unwrap();
    let beside = sequence.submit(append(GroupId(2), 1, &[10]), Durability::Synced).unwrap();
    assert_eq!((writer.begin(1), writer.begin(1)), (1, 1));
    writer.turn();
    for ticket in [large, behind, beside] {
        let outcome = ticket.poll().unwrap();
        assert!(matches!(outcome, Err(LogError::NoSpace(_))), "{outcome:?}");
    }
    assert_eq!((engine.bounds(GROUP).unwrap().last, engine.bounds(GroupId(2))), (1, None));
}

/// A rewrite by purge is checked against an index with all groups written before it.
#[test]
fn purge_sees_groups_in_flight() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    // A live entry of the group in an otherwise dead file.
    let mut tickets = vec![engine.submit(append(GROUP, 1, &[100]), Durability::Synced).unwrap()];
    for index in 1..=20 {
        tickets.push(engine.submit(append(GroupId(2), index, &[9000]), Durability::Synced).unwrap());
        writer.turn();
    }
    let mut batch = LogBatch::new();
    batch.compact(GroupId(2), 20);
    tickets.push(engine.submit(batch, Durability::Synced).unwrap());
    writer.turn();
    let mut rewritten = 0;
    for round in 2..40 {
        // In flight when the rewrite of purge is written.
        let ahead = in_flight(&engine, &mut writer, vec![append(GROUP, round, &[100])]);
        rewritten += engine.purge(Budget::default()).unwrap().rewritten;
        while writer.begin(1) > 0 {}
        writer.turn();
        assert!(ahead[0].poll().unwrap().is_ok());
        assert_eq!(engine.bounds(GROUP).unwrap().last, round, "purge cut acknowledged entries");
    }
    assert!(rewritten > 0, "purge rewrote nothing");
    writer.finish();
    let (engine, _writer) = opened(&disk);
    assert_eq!(engine.entries(GROUP, 1, 40, usize::MAX).unwrap().len(), 39);
}

/// Writes continue after a clean stop: the mark of the stop is an ordinary group for later ones.
#[test]
fn a_log_continues_after_the_mark_of_a_clean_stop() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    for index in 1..=30 {
        let ticket = engine.submit(append(GROUP, index, &[9000]), Durability::Buffered).unwrap();
        writer.turn();
        writer.finish();
        ticket.wait().unwrap();
    }
    drop(writer);
    let (engine, _writer) = opened(&disk);
    assert_eq!(engine.bounds(GROUP).unwrap().last, 30);
}

fn on_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Otherwise two threads, or two sequences, that append to one group at the same time would both get an acknowledgement
/// for the same indexes.
#[test]
fn only_their_owner_replaces_entries_in_flight() {
    let in_use = |outcome: Result<_>| matches!(outcome, Err(LogError::InUse { group: GROUP }));
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let submit = |batch| engine.submit(batch, Durability::Synced).unwrap();
    let own = submit(append(GROUP, 1, &[10, 10]));
    let other = on_another_thread(|| submit(append(GROUP, 2, &[20])));
    let after = on_another_thread(|| submit(append(GROUP, 3, &[20])));
    let repeated = submit(append(GROUP, 3, &[30]));
    writer.turn();
    own.wait().unwrap();
    assert!(in_use(other.wait()), "in one commit group");
    after.wait().unwrap();
    assert!(in_use(repeated.wait()), "no owner may replace entries that two owners have in flight");
    // Any owner may replace acknowledged entries, as a new leader does.
    let replacing = on_another_thread(|| submit(append(GROUP, 2, &[40])));
    writer.begin(1);
    let replacing_again = submit(append(GROUP, 2, &[50]));
    let behind = submit(append(GROUP, 3, &[50]));
    writer.begin(2);
    writer.turn();
    replacing.wait().unwrap();
    assert!(in_use(replacing_again.wait()), "in flight");
    behind.wait().unwrap();
    let sequences = [engine.sequence(), engine.sequence()];
    let submit = |at: usize, batch| sequences[at].submit(batch, Durability::Synced).unwrap();
    let tickets = [
        submit(0, append(GROUP, 4, &[10])),
        submit(0, append(GROUP, 4, &[11])),
        submit(1, append(GROUP, 4, &[12])),
        submit(1, append(GroupId(2), 1, &[10])),
    ];
    writer.turn();
    let outcomes = tickets.map(Ticket::wait);
    assert!(outcomes[..2].iter().all(Result::is_ok), "{outcomes:?}");
    assert!(matches!(outcomes[2..], [Err(LogError::InUse { .. }), Err(LogError::InUse { .. })]), "{outcomes:?}");
    assert_eq!(engine.entry(GROUP, 4).unwrap().len(), 11);
}

/// A callback drops the last handle. It must not wait for the threads that wait for it.
#[test]
fn a_callback_may_drop_the_last_handle() {
    for _ in 0..50 {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        let (engine, _) = LogEngine::open(disk, LogOptions::default()).unwrap();
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let held = engine.clone();
        let done = Box::new(move |outcome: Result<_>| {
            held.close();
            drop(held);
            sender.send(outcome.is_ok()).unwrap();
        });
        engine.submit_with(append(GROUP, 1, &[10]), Durability::Buffered, done).unwrap();
        let ticket = engine.submit(append(GROUP, 2, &[10]), Durability::Synced);
        drop(engine);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(true));
        if let Ok(ticket) = ticket {
            ticket.wait().unwrap();
        }
    }
}

/// A panic in a callback poisons the log. It does not propagate to another caller that serves the queue while it waits.
#[test]
fn a_callback_that_panics_does_not_panic_another_caller() {
    let disk = SimDisk::new();
    let (engine, _writer) = opened(&disk);
    let done = Box::new(|_| panic!("planted"));
    engine.submit_with(append(GROUP, 1, &[10]), Durability::Synced, done).unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let counting = Box::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    engine.submit_with(append(GROUP, 2, &[10]), Durability::Synced, counting).unwrap();
    // Serves the queue with the batches of the earlier callers.
    engine.write(append(GROUP, 3, &[10]), Durability::Synced).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the other callbacks are called");
    let poisoned = engine.poisoned().unwrap().to_string();
    assert!(poisoned.contains("planted"), "{poisoned}");
    assert!(matches!(engine.write(LogBatch::new(), Durability::Synced), Err(LogError::Poisoned(_))));
}

/// Dropping the writer completes a group in flight.
#[test]
fn a_group_in_flight_is_completed_when_the_writer_is_dropped() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let calls = Arc::new(AtomicBool::new(false));
    let seen = calls.clone();
    let done =
        Box::new(move |outcome: Result<_>| seen.store(matches!(outcome, Err(LogError::Closed)), Ordering::SeqCst));
    engine.submit_with(append(GROUP, 1, &[10]), Durability::Synced, done).unwrap();
    writer.begin(1);
    drop(writer);
    assert!(calls.load(Ordering::SeqCst));
}

/// A group written before the sync of the previous group starts is durable with that sync.
#[test]
fn one_sync_serves_both_groups_in_flight() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let before = disk.calls(Operation::Sync);
    let tickets = in_flight(&engine, &mut writer, (1..=4).map(|index| append(GROUP, index, &[10])).collect());
    writer.turn();
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert_eq!(disk.calls(Operation::Sync) - before, 2, "one for groups 1 and 2, one for 3 and 4");
    disk.crash(0);
    let (engine, _writer) = opened(&disk);
    assert_eq!(engine.bounds(GROUP).unwrap().last, 4);
}

/// A change of the active file costs the writer one write: the header of the prepared file. No sync, no rename and no
/// index of the full file is on its path, and no allocation of the next file.
#[test]
fn a_file_change_waits_for_no_sync() {
    let options = LogOptions { prefill_bytes: 16 << 10, compress_from: usize::MAX, spare_files: 0, ..small_options() };
    let mut driver = Driver::new(options);
    let append =
        |first: u64, len: usize| vec![Change::Append { group: 1, first, entries: vec![vec![first as u8; len].into()] }];
    let second = "0000000000000002.log";
    let mut first = 0;
    while driver.disk.content("0000000000000001.log").unwrap().len() < 56 << 10 {
        first += 1;
        driver.submit(append(first, 2000), Durability::Synced);
        driver.turn();
    }
    driver.writer.tend_files();
    assert!(driver.disk.content(second).is_some_and(|content| content.len() > 16 << 10), "prepared, with zeros");
    let counts = |driver: &Driver| {
        let of = |operation| driver.disk.calls(operation);
        let others = [Operation::Sync, Operation::SyncDir, Operation::Create, Operation::Rename].map(of);
        (of(Operation::Write), others)
    };
    let headerless = |driver: &Driver| driver.disk.content(second).unwrap()[..8] == [0; 8];
    // A group in flight at a time, unsynced: what is counted is the writer's.
    loop {
        first += 1;
        let (writes, others) = counts(&driver);
        driver.submit(append(first, 2000), Durability::Buffered);
        driver.lag();
        let (writes_now, others_now) = counts(&driver);
        assert_eq!(others_now, others, "group {first}");
        if !headerless(&driver) {
            assert_eq!(writes_now - writes, 2, "the header and the group");
            break;
        }
    }
    driver.turn();
    driver.check_live();
    driver.crash(1).unwrap();
}
