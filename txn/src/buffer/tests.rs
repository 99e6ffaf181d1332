//! The write buffer against a model: the merge table, savepoints, and scans laid over a snapshot.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl WriteBuffer {
    /// Panics if an invariant does not hold.
    fn check(&self) {
        let live: usize = self.entries.iter().map(|(key, entry)| entry_bytes(key, &entry.op)).sum();
        let kept: usize = self.undo.iter().filter_map(|u| u.old.as_ref().map(|old| entry_bytes(&u.key, &old.op))).sum();
        assert_eq!(self.bytes, live + kept, "bytes are those of entries and undo log");
        for (key, entry) in &self.entries {
            let last = self.undo.iter().rposition(|undo| &undo.key == key);
            assert_eq!(Some(entry.undo), last, "an entry knows its last undo record");
        }
        let savepoint = self.savepoint.load(Ordering::Relaxed);
        let mut recent: Vec<&Key> = self.undo.iter().skip(savepoint).map(|undo| &undo.key).collect();
        let all = recent.len();
        recent.sort();
        recent.dedup();
        assert_eq!(recent.len(), all, "one undo record for a key since the newest savepoint");
    }
}

fn key(n: u8) -> Key {
    Key::new(vec![b'k', n])
}

fn value(n: u8) -> Bytes {
    Bytes::from(vec![n])
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Put(u8, u8),
    Insert(u8, u8),
    Delete(u8),
    Lock(u8),
    Share(u8, LockMode),
    Savepoint,
    /// Rolls back to the savepoint that is this many before the newest.
    RollbackTo(usize),
}

/// The model's state of a key, independent of the buffer's representation.
#[derive(Clone, Debug)]
struct Own {
    /// The value that the transaction's reads see; `None` where they see the snapshot.
    view: Option<Option<Bytes>>,
    /// The transaction once inserted the key, so the commit must find it absent.
    must_be_absent: bool,
    /// It has locked the key, and shares it.
    shared: Option<LockMode>,
}

const UNTOUCHED: Own = Own { view: None, must_be_absent: false, shared: None };

type Model = BTreeMap<Key, Own>;

fn apply_to_model(model: &mut Model, op: Op) -> bool {
    match op {
        Op::Put(k, v) => {
            let own = model.entry(key(k)).or_insert(UNTOUCHED);
            own.view = Some(Some(value(v)));
        }
        Op::Insert(k, v) => {
            let old = model.get(&key(k)).cloned();
            let must_be_absent = match &old {
                Some(Own { view: Some(Some(_)), .. }) => return false,
                Some(Own { view: Some(None), must_be_absent, .. }) => *must_be_absent,
                Some(Own { view: None, .. }) | None => true,
            };
            model.insert(key(k), Own { view: Some(Some(value(v))), must_be_absent, shared: None });
        }
        Op::Delete(k) => {
            let own = model.entry(key(k)).or_insert(UNTOUCHED);
            own.view = Some(None);
        }
        Op::Lock(k) => {
            model.entry(key(k)).or_insert(UNTOUCHED).shared = None;
        }
        Op::Share(k, mode) => {
            let own = model.entry(key(k)).or_insert(Own { shared: Some(mode), ..UNTOUCHED });
            own.shared = own.shared.map(|held| held.max(mode));
        }
        Op::Savepoint | Op::RollbackTo(_) => {}
    }
    true
}

fn model_mutations(model: &Model) -> Vec<Mutation> {
    let op = |own: &Own| match (&own.view, own.must_be_absent) {
        (None, _) => own.shared.map_or(MutationOp::Lock, MutationOp::Shared),
        (Some(Some(value)), true) => MutationOp::Insert(value.clone()),
        (Some(Some(value)), false) => MutationOp::Put(value.clone()),
        (Some(None), true) => MutationOp::CheckNotExists,
        (Some(None), false) => MutationOp::Delete,
    };
    let mutations: Vec<Mutation> = model.iter().map(|(key, own)| Mutation::new(key.clone(), op(own))).collect();
    let is_writer = mutations.iter().any(|mutation| mutation.op.is_exclusive());
    let counts = |mutation: &Mutation| is_writer || mutation.op == MutationOp::CheckNotExists;
    mutations.into_iter().filter(counts).collect()
}

/// Applies operations to a buffer and to the model, checking after each.
fn run(ops: &[Op]) -> (WriteBuffer, Model) {
    let mut buffer = WriteBuffer::new(BufferLimits::default());
    let mut model = Model::new();
    let mut marks: Vec<(usize, Model)> = Vec::new();
    for op in ops {
        let done = match *op {
            Op::Put(k, v) => buffer.put(key(k), value(v), None).is_ok(),
            Op::Insert(k, v) => match buffer.insert(key(k), value(v), None) {
                Err(TxnError::AlreadyExists { key: met }) => {
                    assert_eq!(met, key(k));
                    false
                }
                other => other.is_ok(),
            },
            Op::Delete(k) => buffer.delete(key(k), None).is_ok(),
            Op::Lock(k) => buffer.lock(key(k), None).is_ok(),
            Op::Share(k, mode) => buffer.share(key(k), mode, None).is_ok(),
            Op::Savepoint => {
                marks.push((buffer.savepoint(), model.clone()));
                true
            }
            Op::RollbackTo(n) => {
                let keep = marks.len().saturating_sub(n);
                marks.truncate(keep);
                if let Some((mark, state)) = marks.last() {
                    buffer.rollback_to(*mark);
                    model = state.clone();
                }
                true
            }
        };
        assert_eq!(apply_to_model(&mut model, *op), done, "{op:?}");
        buffer.check();
        for k in 0..8 {
            assert_eq!(
                buffer.get(&key(k)),
                model.get(&key(k)).and_then(|own| own.view.clone()),
                "key {k} after {op:?}"
            );
        }
    }
    (buffer, model)
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u8..8, any::<u8>()).prop_map(|(k, v)| Op::Put(k, v)),
        4 => (0u8..8, any::<u8>()).prop_map(|(k, v)| Op::Insert(k, v)),
        4 => (0u8..8).prop_map(Op::Delete),
        2 => (0u8..8).prop_map(Op::Lock),
        2 => (0u8..8, prop_oneof![Just(LockMode::KeyShare), Just(LockMode::Share), Just(LockMode::NoKeyUpdate)])
            .prop_map(|(k, mode)| Op::Share(k, mode)),
        2 => Just(Op::Savepoint),
        2 => (0usize..3).prop_map(Op::RollbackTo),
    ]
}

fn in_range(range: &ScanRange, key: &Key) -> bool {
    *key >= range.start && (range.end.as_bytes().is_empty() || *key < range.end)
}

/// One page of a scan of the snapshot, as the key-value client returns it.
fn scan_base(base: &BTreeMap<Key, Bytes>, range: &ScanRange, limit: usize) -> Page {
    let mut all: Vec<(Key, Bytes)> =
        base.iter().filter(|(key, _)| in_range(range, key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    if range.reverse {
        all.reverse();
    }
    let resume = all.get(limit).and_then(|(next, _)| {
        if range.reverse { all.get(limit - 1).map(|(last, _)| last.clone()) } else { Some(next.clone()) }
    });
    all.truncate(limit);
    Page { pairs: all, resume }
}

proptest! {
    #[test]
    fn mutations_and_views_match_the_model(ops in prop::collection::vec(any_op(), 0..40)) {
        let (buffer, model) = run(&ops);
        prop_assert_eq!(buffer.into_mutations(), model_mutations(&model));
    }

    #[test]
    fn merged_scans_match_the_model(
        ops in prop::collection::vec(any_op(), 0..30),
        stored in prop::collection::btree_map(0u8..8, any::<u8>(), 0..8),
        bounds in (0u8..9, 0u8..9, any::<bool>()),
        reverse in any::<bool>(),
        limit in 1usize..5,
    ) {
        let (buffer, model) = run(&ops);
        let base: BTreeMap<Key, Bytes> = stored.into_iter().map(|(k, v)| (key(k), value(v))).collect();
        let (start, end, unbounded) = bounds;
        let end = if unbounded { Key::default() } else { key(end) };
        let whole = ScanRange { start: key(start), end, reverse };

        let mut view = base.clone();
        for (key, own) in &model {
            match &own.view {
                Some(Some(value)) => { view.insert(key.clone(), value.clone()); }
                Some(None) => { view.remove(key); }
                None => {}
            }
        }
        let mut expected: Vec<(Key, Bytes)> = view.into_iter().filter(|(key, _)| in_range(&whole, key)).collect();
        if reverse {
            expected.reverse();
        }

        let mut found = Vec::new();
        let mut rest = whole;
        for _ in 0..100 {
            let page = buffer.merge(&rest, scan_base(&base, &rest, limit), limit);
            prop_assert!(page.pairs.len() <= limit);
            found.extend(page.pairs);
            match page.resume {
                Some(resume) => rest = rest.resume_at(resume),
                None => break,
            }
        }
        prop_assert_eq!(found, expected);
    }
}

/// Applies an operation. `marks` are the savepoints that a rollback may go back to.
fn write(buffer: &mut WriteBuffer, marks: &mut Vec<usize>, op: Op) {
    // An insert of a key that exists is refused, and changes nothing.
    let _ = match op {
        Op::Put(k, v) => buffer.put(key(k), value(v), None),
        Op::Insert(k, v) => buffer.insert(key(k), value(v), None),
        Op::Delete(k) => buffer.delete(key(k), None),
        Op::Lock(k) => buffer.lock(key(k), None),
        Op::Share(k, mode) => buffer.share(key(k), mode, None),
        Op::Savepoint => {
            marks.push(buffer.savepoint());
            Ok(())
        }
        Op::RollbackTo(n) => {
            marks.truncate(marks.len().saturating_sub(n).max(1));
            marks.last().into_iter().for_each(|mark| buffer.rollback_to(*mark));
            Ok(())
        }
    };
}

/// What reads of all keys and a scan of everything return.
fn seen_by_reads(buffer: &WriteBuffer, base: &BTreeMap<Key, Bytes>, reverse: bool) -> (Vec<Option<Bytes>>, Page) {
    let gets = (0..8).map(|k| buffer.get(&key(k)).unwrap_or_else(|| base.get(&key(k)).cloned())).collect();
    let range = ScanRange { start: Key::default(), end: Key::default(), reverse };
    (gets, buffer.merge(&range, scan_base(base, &range, 100), 100))
}

proptest! {
    /// A portal saw the later writes of its own transaction, also those that follow a rollback to a savepoint after it.
    #[test]
    fn a_view_does_not_see_later_writes(
        before in prop::collection::vec(any_op(), 0..20),
        between in prop::collection::vec(any_op(), 0..20),
        after in prop::collection::vec(any_op(), 0..20),
        stored in prop::collection::btree_map(0u8..8, any::<u8>(), 0..8),
        reverse in any::<bool>(),
        end_before in any::<bool>(),
    ) {
        let base: BTreeMap<Key, Bytes> = stored.into_iter().map(|(k, v)| (key(k), value(v))).collect();
        let mut buffer = WriteBuffer::new(BufferLimits::default());
        let mut earlier = vec![buffer.savepoint()];
        before.into_iter().for_each(|op| write(&mut buffer, &mut earlier, op));
        let expected = seen_by_reads(&buffer, &base, reverse);
        let mut view = Some(buffer.view());
        // The savepoints to which a rollback leaves the view valid.
        let mut marks = vec![buffer.savepoint()];
        // The view is used, put aside, and used again after more writes.
        for ops in [between, after] {
            ops.into_iter().for_each(|op| write(&mut buffer, &mut marks, op));
            let newest = seen_by_reads(&buffer, &base, reverse);
            prop_assert!(buffer.set_view(view.take()).is_none());
            prop_assert_eq!(&seen_by_reads(&buffer, &base, reverse), &expected);
            view = buffer.set_view(None);
            prop_assert_eq!(seen_by_reads(&buffer, &base, reverse), newest, "without the view all writes are seen");
        }
        buffer.check();
        // A rollback to a savepoint before the view ends it: reads with it may return anything, but do not fail, and
        // the buffer is not affected.
        if end_before {
            earlier.last().into_iter().for_each(|mark| buffer.rollback_to(*mark));
            let newest = seen_by_reads(&buffer, &base, reverse);
            buffer.set_view(view.take());
            seen_by_reads(&buffer, &base, reverse);
            buffer.set_view(None);
            prop_assert_eq!(seen_by_reads(&buffer, &base, reverse), newest);
            buffer.check();
        }
    }
}

#[test]
fn a_write_beyond_a_limit_leaves_the_buffer_unchanged() {
    let limits = BufferLimits { bytes: 390, keys: 3, key_bytes: 4, value_bytes: 100 };
    let mut buffer = WriteBuffer::new(limits);
    let too_large = |result: Result<(), TxnError>| assert!(matches!(result, Err(TxnError::TooLarge(_))), "{result:?}");
    buffer.put(key(1), value(1), None).expect("fits");
    let row_too_large =
        |result: Result<(), TxnError>| assert!(matches!(result, Err(TxnError::RowTooLarge(_))), "{result:?}");
    row_too_large(buffer.put(Key::new("longer"), value(1), None));
    row_too_large(buffer.put(key(2), Bytes::from(vec![0; 101]), None));
    buffer.delete(key(2), None).expect("fits");
    buffer.lock(key(3), None).expect("fits");
    too_large(buffer.delete(key(4), None));
    buffer.put(key(3), Bytes::from(vec![0; 100]), None).expect("a known key does not count again");
    too_large(buffer.put(key(1), Bytes::from(vec![0; 100]), None));
    assert_eq!(buffer.get(&key(1)), Some(Some(value(1))));
    buffer.check();
}

/// A rollback makes the buffer shorter than what the view has seen of it; the records that follow were not seen.
#[test]
fn a_view_does_not_see_writes_after_a_rollback() {
    let mut buffer = WriteBuffer::new(BufferLimits::default());
    buffer.put(key(1), value(1), None).expect("fits");
    let mut view = Some(buffer.view());
    let mark = buffer.savepoint();
    buffer.put(key(2), value(2), None).expect("fits");
    buffer.set_view(view.take());
    view = buffer.set_view(None);
    buffer.rollback_to(mark);
    buffer.put(key(3), value(3), None).expect("fits");
    buffer.set_view(view);
    let seen: Vec<_> = (1..=3).map(|k| buffer.get(&key(k))).collect();
    assert_eq!(seen, [Some(Some(value(1))), None, None]);
}

/// Updates of one key under an open portal, which is read in between: one undo record restores what the portal sees.
#[test]
fn repeated_writes_under_a_view_need_one_undo_record() {
    let mut buffer = WriteBuffer::new(BufferLimits::default());
    buffer.put(key(1), value(1), None).expect("fits");
    let (mut view, records, bytes) = (Some(buffer.view()), buffer.undo.len(), buffer.bytes);
    for n in 0..=255 {
        buffer.put(key(1), value(n), None).expect("fits");
        buffer.set_view(view.take());
        assert_eq!(buffer.get(&key(1)), Some(Some(value(1))));
        view = buffer.set_view(None);
    }
    assert_eq!((buffer.undo.len(), buffer.bytes), (records + 1, 2 * bytes));
    assert_eq!(view.map(|view| view.old.len()), Some(1));
    buffer.check();
}

#[test]
fn repeated_writes_of_one_key_need_no_more_memory() {
    let mut buffer = WriteBuffer::new(BufferLimits { bytes: 1_000, ..BufferLimits::default() });
    for n in 0..=255 {
        buffer.put(key(1), value(n), None).expect("only the newest value is kept");
    }
    let mark = buffer.savepoint();
    for n in 0..=255 {
        buffer.put(key(1), value(n), None).expect("and the one to go back to");
    }
    buffer.put(key(1), value(7), None).expect("fits");
    buffer.rollback_to(mark);
    assert_eq!(buffer.get(&key(1)), Some(Some(value(255))));
    buffer.check();
}

/// An update may come between the lock of a key and a write of its row, and is seen by then.
#[test]
fn a_write_follows_from_the_row_as_it_was_when_no_other_could_change_it() {
    let at = |n: u64| Some(Timestamp::new(n, 0));
    let seen_by = |first: LockMode| {
        let mut buffer = WriteBuffer::new(BufferLimits::default());
        buffer.share(key(1), first, at(10)).expect("fits");
        buffer.put(key(1), value(1), at(20)).expect("fits");
        buffer.put(key(1), value(2), at(30)).expect("fits");
        buffer.into_mutations().remove(0).seen_ts
    };
    assert_eq!((seen_by(LockMode::KeyShare), seen_by(LockMode::Share)), (at(20), at(10)));
}
