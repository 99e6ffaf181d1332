//! Apply over an in-memory store: writes, refusals, and the faults that stop the store.

use engine::store::Reader;
use engine::store::memory::MemoryStore;

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::command::{encode_floors, encode_write};
use crate::mailbox::Mailbox;
use crate::peer::effects::position;
use crate::region::{Epoch, Floor, PeerId, PeerMeta, PeerRole, StoreId};
use crate::reply::testing::probe;

const EPOCH: Epoch = Epoch { conf_ver: 1, version: 1 };
const ID: RegionId = RegionId::new(2);

struct Fixture {
    store: MemoryStore,
    apply: ApplyLoop<MemoryStore>,
    delegate: Arc<Delegate>,
    inbox: Arc<CompletionInbox>,
    health: Arc<Health>,
}

/// Region 2 with range `[a, m)`, applied up to (5, term 2).
fn fixture() -> Fixture {
    let peer = PeerMeta { id: PeerId::new(1), store: StoreId::new(1), role: PeerRole::Voter };
    let region = Region { id: ID, start: b"a".to_vec(), end: b"m".to_vec(), epoch: EPOCH, peers: vec![peer] };
    let region = Arc::new(region);
    let (store, inbox, health) = (MemoryStore::new(), Arc::<CompletionInbox>::default(), Arc::<Health>::default());
    let delegate = Arc::new(Delegate::new(Arc::clone(&region), position(5, 2)));
    let mut apply = ApplyLoop::new(ApplyParts {
        store: store.clone(),
        queue: Arc::new(ApplyQueue { mailbox: Mailbox::new(16), backlog: AtomicUsize::new(0) }),
        inbox: Arc::clone(&inbox),
        wake: Box::new(|| {}),
        health: Arc::clone(&health),
        metrics: Metrics::new(&prometheus::Registry::new()).unwrap(),
        batch_bytes: 1 << 20,
    });
    apply.add_region(region, Arc::clone(&delegate), position(5, 2));
    Fixture { store, apply, delegate, inbox, health }
}

fn write(index: u64, term: u64, key: &[u8]) -> Entry {
    let mut batch = WriteBatch::new();
    batch.put(Cf::Default, key, b"v");
    Entry { index, term, data: encode_write(Term::new(term), EPOCH, None, &batch), ..Entry::default() }
}

impl Fixture {
    /// Queues entries with a reply each and applies them.
    fn run(&mut self, entries: Vec<Entry>, commit: u64) -> Vec<Option<Result<LogIndex, ProposeError>>> {
        let mut replies = std::collections::VecDeque::new();
        let mut outcomes = Vec::new();
        for entry in &entries {
            let (reply, outcome) = probe();
            outcomes.push(outcome);
            replies.push_back((entry.index, reply));
        }
        let committed = Committed { entries, replies, commit: LogIndex::new(commit) };
        let task = ApplyTask::Entries(ID, committed);
        self.apply.queue.backlog.fetch_add(task.bytes(), Ordering::SeqCst);
        self.apply.queue.mailbox.push(task).unwrap();
        assert!(self.apply.turn());
        assert_eq!(self.apply.queue.backlog.load(Ordering::SeqCst), 0);
        outcomes.iter().map(|o| o.try_get()).collect()
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.store.snapshot().get(Cf::Default, key).unwrap()
    }

    fn applied(&self) -> Option<LogPosition> {
        let bytes = self.store.snapshot().get(Cf::Meta, &records::applied_key(ID)).unwrap()?;
        Some(records::decode_position(&bytes).unwrap())
    }
}

fn poisoned(outcome: &Option<Result<LogIndex, ProposeError>>) -> bool {
    matches!(outcome, Some(Err(ProposeError::Poisoned(_))))
}

#[test]
fn data_and_applied_position_are_one_write() {
    let mut fixture = fixture();
    let outcomes = fixture.run(vec![write(6, 2, b"b"), Entry { index: 7, term: 3, ..Entry::default() }], 7);
    assert_eq!(outcomes, [Some(Ok(LogIndex::new(6))), Some(Ok(LogIndex::new(7)))]);
    assert_eq!((fixture.get(b"b").is_some(), fixture.applied()), (true, Some(position(7, 3))));
    assert_eq!(fixture.delegate.applied_index(), LogIndex::new(7));
    assert_eq!(fixture.inbox.take().applied.get(&ID), Some(&position(7, 3)));
}

#[test]
fn write_of_another_term_or_epoch_has_no_effect() {
    let mut fixture = fixture();
    let mut stale = write(6, 2, b"b");
    stale.term = 3;
    let batch = WriteBatch::new();
    let old = Epoch { conf_ver: 1, version: 0 };
    let data = encode_write(Term::new(3), old, None, &batch);
    let outcomes = fixture.run(vec![stale, Entry { index: 7, term: 3, data, ..Entry::default() }], 7);
    assert!(matches!(outcomes[0], Some(Err(ProposeError::Region(RegionError::StaleCommand { .. })))));
    assert!(matches!(outcomes[1], Some(Err(ProposeError::Region(RegionError::EpochNotMatch { .. })))));
    assert_eq!((fixture.get(b"b"), fixture.applied()), (None, Some(position(7, 3))));
}

/// Whoever evaluated a dated write, and when: from the entry that raises the floor on it has no effect.
#[test]
fn floors_rise_in_the_order_of_the_log_and_refuse_older_writes() {
    let mut fixture = fixture();
    let floors = |writes, reads| Floors { writes: Floor::new(writes), reads: Floor::new(reads) };
    let raise =
        |index, floors| Entry { index, term: 2, data: encode_floors(Term::new(2), EPOCH, floors), ..Entry::default() };
    let dated = |index, key: &[u8], date| {
        let mut batch = WriteBatch::new();
        batch.put(Cf::Default, key, b"v");
        let data = encode_write(Term::new(2), EPOCH, Some(Floor::new(date)), &batch);
        Entry { index, term: 2, data, ..Entry::default() }
    };
    let entries = vec![
        dated(6, b"b", 10),
        raise(7, floors(10, 0)),
        dated(8, b"c", 10),
        dated(9, b"d", 11),
        write(10, 2, b"e"),
        raise(11, floors(9, 8)),
        raise(12, floors(9, 11)),
    ];
    let outcomes = fixture.run(entries, 12);
    let refused: Vec<usize> = (0..7).filter(|at| !matches!(outcomes[*at], Some(Ok(_)))).collect();
    assert_eq!(refused, [2, 6], "{outcomes:?}");
    assert!(matches!(outcomes[2], Some(Err(ProposeError::Region(RegionError::StaleCommand { .. })))));
    let written: Vec<bool> = [b"b", b"c", b"d", b"e"].iter().map(|key| fixture.get(*key).is_some()).collect();
    assert_eq!(written, [true, false, true, true]);
    assert_eq!(fixture.delegate.floors().load(), floors(10, 8));
    let stored = fixture.store.snapshot().get(Cf::Meta, &records::floors_key(ID)).unwrap().unwrap();
    assert_eq!(records::decode_floors(&stored), Ok(floors(10, 8)));
    assert!(!matches!(fixture.run(vec![dated(13, b"f", 10)], 13)[0], Some(Ok(_))), "in a later write too");
}

#[test]
fn gap_stops_the_store() {
    let mut fixture = fixture();
    let outcomes = fixture.run(vec![write(7, 2, b"b")], 7);
    assert!(poisoned(&outcomes[0]) && fixture.health.poisoned().is_some());
    assert_eq!(fixture.applied(), None);
}

#[test]
fn entry_above_the_commit_index_stops_the_store() {
    let mut fixture = fixture();
    let outcomes = fixture.run(vec![write(6, 2, b"b")], 5);
    assert!(poisoned(&outcomes[0]) && fixture.health.poisoned().is_some());
    assert_eq!(fixture.get(b"b"), None);
}

#[test]
fn malformed_entry_stops_the_store() {
    let conf_change = || {
        let mut entry = Entry { index: 6, term: 2, ..Entry::default() };
        entry.set_entry_type(EntryType::EntryConfChange);
        entry
    };
    let garbage = Entry { index: 6, term: 2, data: b"garbage".to_vec(), ..Entry::default() };
    for entry in [garbage, write(6, 2, b"z"), conf_change()] {
        let mut fixture = fixture();
        let outcomes = fixture.run(vec![entry, write(7, 2, b"b")], 7);
        assert!(outcomes.iter().all(poisoned), "{outcomes:?}");
        assert!(fixture.health.poisoned().is_some());
        assert_eq!(fixture.get(b"b"), None);
        // Later entries are not acknowledged either.
        assert!(poisoned(&fixture.run(vec![write(6, 2, b"b")], 7)[0]));
    }
}

#[test]
fn failed_write_acknowledges_nothing() {
    let mut fixture = fixture();
    fixture.store.fail_write(1);
    let outcomes = fixture.run(vec![write(6, 2, b"b")], 6);
    assert!(poisoned(&outcomes[0]) && fixture.health.poisoned().is_some());
    assert_eq!(fixture.delegate.applied_index(), LogIndex::new(5));
}
