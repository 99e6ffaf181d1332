//! Two commit groups under way: one is written while the one before it has not landed, as two threads of the log would. Here they are
//! driven step by step, so that what each must see of the other is met every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::disk::{Operation, RealDisk, SimDisk};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter, Result, Ticket};

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

/// Submits and writes, each batch for itself; the last one is left in flight.
fn in_flight(engine: &LogEngine, writer: &mut LogWriter, batches: Vec<LogBatch>) -> Vec<Ticket> {
    let tickets = batches.into_iter().map(|batch| engine.submit(batch, Durability::Synced).unwrap()).collect();
    while writer.begin(1) > 0 {}
    tickets
}

#[test]
fn a_group_in_flight_is_not_synced_nor_answered_and_the_next_call_lands_it() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let tickets = in_flight(&engine, &mut writer, vec![append(GROUP, 1, &[10]), append(GROUP, 2, &[10])]);
    assert!(tickets[0].poll().unwrap().is_ok(), "it landed when the second was written");
    assert!(tickets[1].poll().is_none());
    assert_eq!(engine.bounds(GROUP).unwrap().last, 1);
    assert_eq!(writer.turn(), 0, "nothing was queued");
    assert!(tickets[1].poll().unwrap().is_ok());
    assert_eq!(engine.bounds(GROUP).unwrap().last, 2);
}

/// A batch that meets a full disk has broken its sequence before the next one is looked at, though nobody has been told yet.
#[test]
fn nothing_overtakes_a_batch_of_its_sequence_that_met_a_full_disk() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    engine.submit(append(GROUP, 1, &[10]), Durability::Synced).unwrap();
    writer.turn();
    disk.set_capacity(Some(disk.used() + 2000));
    let sequence = engine.sequence();
    let large = sequence.submit(append(GROUP, 2, &[9000]), Durability::Synced).unwrap();
    assert_eq!(writer.begin(1), 1);
    assert!(large.poll().is_none(), "not told yet");
    // One stands on it, the other concerns another group, and would fit.
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

/// What purge writes again is checked against an index that has all that was written before.
#[test]
fn purge_sees_what_is_in_flight() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    // An entry of the group that lives on in a file that is otherwise dead.
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
        // In flight when purge's part is written.
        let flying = in_flight(&engine, &mut writer, vec![append(GROUP, round, &[100])]);
        rewritten += engine.purge(Budget::default()).unwrap().rewritten;
        while writer.begin(1) > 0 {}
        writer.turn();
        assert!(flying[0].poll().unwrap().is_ok());
        assert_eq!(engine.bounds(GROUP).unwrap().last, round, "purge cut off what was acknowledged");
    }
    assert!(rewritten > 0, "purge had nothing to write again");
    writer.finish();
    let (engine, _writer) = opened(&disk);
    assert_eq!(engine.entries(GROUP, 1, 40, usize::MAX).unwrap().len(), 39);
}

/// A clean stop, and then more: the mark of the stop is a group like others for what comes after.
#[test]
fn a_log_goes_on_after_its_mark_of_a_clean_stop() {
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

fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Two threads, or two sequences, that append to one group at once would both be told that their entries stand.
#[test]
fn entries_under_way_are_replaced_by_their_owner_alone() {
    let in_use = |outcome: Result<_>| matches!(outcome, Err(LogError::InUse { group: GROUP }));
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let submit = |batch| engine.submit(batch, Durability::Synced).unwrap();
    let mine = submit(append(GROUP, 1, &[10, 10]));
    let other = elsewhere(|| submit(append(GROUP, 2, &[20])));
    let after = elsewhere(|| submit(append(GROUP, 3, &[20])));
    let again = submit(append(GROUP, 3, &[30]));
    writer.turn();
    mine.wait().unwrap();
    assert!(in_use(other.wait()), "in one commit group");
    after.wait().unwrap();
    assert!(in_use(again.wait()), "what two have under way is nobody's to replace");
    // Acknowledged entries are replaced by anyone: so a new leader does.
    let replacing = elsewhere(|| submit(append(GROUP, 2, &[40])));
    writer.begin(1);
    let flying = submit(append(GROUP, 2, &[50]));
    let behind = submit(append(GROUP, 3, &[50]));
    writer.begin(2);
    writer.turn();
    replacing.wait().unwrap();
    assert!(in_use(flying.wait()), "in flight");
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

/// The last handle goes in a callback, which must not wait for the threads that wait for it.
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

/// A panic of someone's callback poisons the log, and is not that of a caller who works for the log while it waits.
#[test]
fn a_callback_that_panics_does_not_panic_another_caller() {
    let disk = SimDisk::new();
    let (engine, _writer) = opened(&disk);
    let done = Box::new(|_| panic!("planted"));
    engine.submit_with(append(GROUP, 1, &[10]), Durability::Synced, done).unwrap();
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let counting = Box::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    engine.submit_with(append(GROUP, 2, &[10]), Durability::Synced, counting).unwrap();
    // Does the work of those before it.
    engine.write(append(GROUP, 3, &[10]), Durability::Synced).unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 1, "the others are answered all the same");
    let poisoned = engine.poisoned().unwrap().to_string();
    assert!(poisoned.contains("planted"), "{poisoned}");
    assert!(matches!(engine.write(LogBatch::new(), Durability::Synced), Err(LogError::Poisoned(_))));
}

/// Dropping the writer answers a group that is in flight.
#[test]
fn a_group_in_flight_is_answered_when_the_log_ends() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let told = Arc::new(AtomicBool::new(false));
    let seen = told.clone();
    let done =
        Box::new(move |outcome: Result<_>| seen.store(matches!(outcome, Err(LogError::Closed)), Ordering::SeqCst));
    engine.submit_with(append(GROUP, 1, &[10]), Durability::Synced, done).unwrap();
    writer.begin(1);
    drop(writer);
    assert!(told.load(Ordering::SeqCst));
}

/// A group that was written before the sync of the one before it began is durable with that one.
#[test]
fn one_sync_serves_both_groups_under_way() {
    let disk = SimDisk::new();
    let (engine, mut writer) = opened(&disk);
    let before = disk.calls(Operation::Sync);
    let tickets = in_flight(&engine, &mut writer, (1..=4).map(|index| append(GROUP, index, &[10])).collect());
    writer.turn();
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert_eq!(disk.calls(Operation::Sync) - before, 2, "of the first and second, of the third and fourth");
    disk.crash(0);
    let (engine, _writer) = opened(&disk);
    assert_eq!(engine.bounds(GROUP).unwrap().last, 4);
}
