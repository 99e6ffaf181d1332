//! Computed commits and the reads beside them, case by case, through a server over a store whose proposals the test
//! decides. `tests/kv/write_path` has the random histories.

use bytes::Bytes;
use futures::poll;
use prometheus::Registry;
use tokio::sync::oneshot;

use super::*;
use crate::api::{
    CheckLocksRequest, CheckTxnStatusRequest, CommitBounds, CommitMode, KeyError, LocksStatus, Mutation, MutationOp,
    PrewriteRequest, Request, Response, ScanRequest, TxnStatus,
};
use crate::memory::CountingTso;
use crate::region_store::fake::{FakeStore, ProposalOutcome};
use crate::server::{KvServer, KvServerConfig};

struct Fixture {
    store: FakeStore,
    oracle: Arc<CountingTso>,
    server: KvServer<FakeStore>,
}

impl Fixture {
    fn new() -> Fixture {
        let (store, oracle) = (FakeStore::new(), Arc::new(CountingTso::new(1)));
        let server =
            KvServer::new(store.clone(), oracle.clone(), &KvServerConfig::default(), &Registry::new()).unwrap();
        Fixture { store, oracle, server }
    }

    /// A fixture whose region is synced.
    async fn synced() -> Fixture {
        let fixture = Fixture::new();
        assert_eq!(fixture.put(b"x").await, Ok(Response::Done));
        fixture.let_sync_run().await;
        fixture
    }

    async fn let_sync_run(&self) {
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }

    async fn send(&self, body: RequestBody) -> Result<Response, ServerError> {
        self.server.handle(Request { context: self.store.context(), body }).await
    }

    fn one_phase(&self, at: &'static [u8], start_ts: Timestamp, greatest: Timestamp) -> RequestBody {
        let key = Key::from_static(at);
        let mutations = vec![Mutation::new(key.clone(), MutationOp::Put(Bytes::from_static(b"v")))];
        let commit = CommitMode::OnePhase(CommitBounds { least: start_ts, greatest });
        RequestBody::Prewrite(PrewriteRequest {
            mutations,
            primary: key,
            start_ts,
            ttl_ms: 1_000,
            commit,
            locker: None,
        })
    }

    async fn put(&self, at: &'static [u8]) -> Result<Response, ServerError> {
        self.send(self.one_phase(at, self.oracle.next(), Timestamp::MAX)).await
    }

    fn get(at: &'static [u8], start_ts: Timestamp) -> RequestBody {
        RequestBody::Get { key: Key::from_static(at), start_ts, pass: Vec::new() }
    }

    fn scan(start_ts: Timestamp) -> RequestBody {
        let [start, end] = [Key::from_static(b"c"), Key::from_static(b"m")];
        let (limit, max_bytes, pass) = (10, 1_000, Vec::new());
        RequestBody::Scan(ScanRequest {
            start,
            end,
            start_ts,
            limit,
            max_bytes,
            reverse: false,
            keys_only: false,
            pass,
        })
    }
}

fn value() -> Option<Bytes> {
    Some(Bytes::from_static(b"v"))
}

/// The first write of a leadership asks for the timestamp that later ones need, and locks for two phases.
#[tokio::test]
async fn a_commit_in_one_phase_is_one_proposal_once_the_region_is_synced() {
    let fixture = Fixture::new();
    assert_eq!(fixture.put(b"k").await, Ok(Response::Done));
    fixture.let_sync_run().await;
    let renewals: [fn(&FakeStore); 3] = [|_| (), |store| store.set_term(6), FakeStore::raise_epoch];
    let keys: [[&[u8]; 2]; 3] = [[b"c", b"d"], [b"e", b"f"], [b"g", b"h"]];
    for (n, (renew, [first, second])) in renewals.into_iter().zip(keys).enumerate() {
        renew(&fixture.store);
        if n > 0 {
            assert_eq!(fixture.put(first).await, Ok(Response::Done), "a new leadership is not synced");
            fixture.let_sync_run().await;
        }
        let (start_ts, before) = (fixture.oracle.next(), fixture.store.proposals());
        let body = fixture.one_phase(second, start_ts, Timestamp::MAX);
        let committed = fixture.send(body.clone()).await;
        assert!(matches!(committed, Ok(Response::Committed { commit_ts }) if commit_ts > start_ts), "{committed:?}");
        assert_eq!(fixture.store.proposals() - before, 1);
        // A repeated request finds the commit.
        assert_eq!(fixture.send(body).await, committed);
        assert_eq!(fixture.store.proposals() - before, 1);
    }
}

#[tokio::test]
async fn a_commit_comes_above_every_read_and_within_its_bounds() {
    let fixture = Fixture::synced().await;
    let start_ts = fixture.oracle.next();
    let read_ts = fixture.oracle.next();
    assert_eq!(fixture.send(Fixture::get(b"n", read_ts)).await, Ok(Response::Value(None)));
    let committed = fixture.send(fixture.one_phase(b"k", start_ts, Timestamp::MAX)).await;
    assert_eq!(committed, Ok(Response::Committed { commit_ts: read_ts.next() }));
    // The greatest commit_ts allowed is below: two phases.
    let start_ts = fixture.oracle.next();
    let read_ts = fixture.oracle.next();
    assert_eq!(fixture.send(Fixture::get(b"n", read_ts)).await, Ok(Response::Value(None)));
    assert_eq!(fixture.send(fixture.one_phase(b"l", start_ts, read_ts)).await, Ok(Response::Done));
}

/// A read below the commit passes it, one above waits for it.
#[tokio::test]
async fn a_read_waits_for_a_commit_under_way() {
    let fixture = Fixture::synced().await;
    let before = fixture.oracle.next();
    assert_eq!(fixture.send(Fixture::get(b"k", before)).await, Ok(Response::Value(None)));
    let (release, held) = oneshot::channel();
    fixture.store.push_outcome(ProposalOutcome::Held(held));
    let mut write = Box::pin(fixture.put(b"k"));
    assert!(poll!(&mut write).is_pending());
    let after = fixture.oracle.next();
    let (mut get, mut scan) =
        (Box::pin(fixture.send(Fixture::get(b"k", after))), Box::pin(fixture.send(Fixture::scan(after))));
    assert!(poll!(&mut get).is_pending() && poll!(&mut scan).is_pending());
    assert_eq!(fixture.send(Fixture::get(b"k", before)).await, Ok(Response::Value(None)));
    assert_eq!(fixture.send(Fixture::get(b"n", after)).await, Ok(Response::Value(None)));
    release.send(()).unwrap();
    assert!(matches!(write.await, Ok(Response::Committed { .. })));
    assert_eq!(get.await, Ok(Response::Value(value())));
    let found = Response::Pairs { pairs: vec![(Key::from_static(b"k"), Bytes::from_static(b"v"))], resume: None };
    assert_eq!(scan.await, Ok(found));
}

/// The locks in memory of a write whose outcome is unknown stay until a later term, in which it is applied or lost.
#[tokio::test]
async fn an_unknown_outcome_blocks_reads_until_a_later_term() {
    for applied in [false, true] {
        let fixture = Fixture::synced().await;
        fixture.store.push_outcome(ProposalOutcome::Unknown { applied });
        let region = fixture.store.context().region;
        assert_eq!(fixture.put(b"k").await, Err(ServerError::Undetermined(region)));
        let read = Fixture::get(b"k", fixture.oracle.next());
        let blocked = fixture.send(read.clone()).await;
        assert!(matches!(blocked, Err(ServerError::Key(KeyError::Locked(_)))), "{blocked:?}");
        fixture.store.set_term(6);
        let found = Response::Value(value().filter(|_| applied));
        assert_eq!(fixture.send(read).await, Ok(found));
    }
}

/// A reader that waits is woken when the outcome becomes unknown.
#[tokio::test]
async fn a_waiting_read_learns_that_the_outcome_is_unknown() {
    let fixture = Fixture::synced().await;
    let entry = ConcurrencyManager::new(fixture.oracle.clone()).region(fixture.store.context().region);
    let owner = LockOwner { primary: Key::from_static(b"k"), start_ts: fixture.oracle.next(), ttl_ms: 1 };
    let locks = entry.publish(Term::new(5), vec![Key::from_static(b"k")], owner, Timestamp::ZERO);
    let body = Fixture::get(b"k", fixture.oracle.next());
    assert!(matches!(entry.look(&body), Found::InFlight));
    let mut changed = Box::pin(entry.changed());
    assert!(poll!(&mut changed).is_pending());
    locks.keep_doubtful();
    changed.await;
    assert!(matches!(entry.look(&body), Found::Doubtful(locks) if locks.len() == 1));
    assert!(!entry.retire_before(Term::new(5)) && entry.retire_before(Term::new(6)));
    assert!(matches!(entry.look(&body), Found::Nothing));
}

/// A question about a transaction raises `max_ts` too: what is prewritten after it commits above the reader.
#[tokio::test]
async fn a_status_check_of_a_reader_raises_max_ts() {
    let fixture = Fixture::synced().await;
    let lock_ts = fixture.oracle.next();
    let reader_ts = fixture.oracle.next();
    let check = CheckTxnStatusRequest {
        primary: Key::from_static(b"k"),
        lock_ts,
        current_ts: reader_ts,
        rollback_if_missing: false,
        reader_ts,
        fell_back: false,
    };
    let status = fixture.send(RequestBody::CheckTxnStatus(check)).await;
    assert_eq!(status, Ok(Response::Status(TxnStatus::Missing)));
    let committed = fixture.send(fixture.one_phase(b"k", lock_ts, Timestamp::MAX)).await;
    assert_eq!(committed, Ok(Response::Committed { commit_ts: reader_ts.next() }));
}

impl Fixture {
    async fn check_locks(&self, lock_ts: Timestamp, reader_ts: Timestamp, mark_missing: bool) -> LocksStatus {
        let keys = vec![Key::from_static(b"k")];
        let check = CheckLocksRequest { keys, lock_ts, reader_ts, mark_missing };
        let Ok(Response::Locks(status)) = self.send(RequestBody::CheckLocks(check)).await else { panic!("no status") };
        status
    }

    fn async_lock(&self, start_ts: Timestamp) -> RequestBody {
        let mut body = self.one_phase(b"k", start_ts, Timestamp::MAX);
        if let RequestBody::Prewrite(prewrite) = &mut body {
            let bounds = CommitBounds { least: start_ts, greatest: Timestamp::MAX };
            prewrite.commit = CommitMode::Async { bounds, secondaries: Vec::new() };
        }
        body
    }
}

/// So does a question about the keys of an asynchronous commit.
#[tokio::test]
async fn a_key_that_a_reader_found_missing_is_locked_above_the_reader() {
    let fixture = Fixture::synced().await;
    let lock_ts = fixture.oracle.next();
    let reader_ts = fixture.oracle.next();
    assert_eq!(fixture.check_locks(lock_ts, reader_ts, false).await, LocksStatus::Missing);
    let min_commit_ts = reader_ts.next();
    let locked = fixture.send(fixture.async_lock(lock_ts)).await;
    assert_eq!(locked, Ok(Response::AsyncLocked { min_commit_ts }));
    // It is not missing any more, so that it gets no mark.
    assert_eq!(fixture.check_locks(lock_ts, reader_ts, true).await, LocksStatus::Locked { min_commit_ts });
}

#[tokio::test]
async fn a_key_that_was_marked_as_missing_is_never_locked() {
    let fixture = Fixture::synced().await;
    let lock_ts = fixture.oracle.next();
    let reader_ts = fixture.oracle.next();
    assert_eq!(fixture.check_locks(lock_ts, reader_ts, true).await, LocksStatus::RolledBack);
    let refused = fixture.send(fixture.async_lock(lock_ts)).await;
    assert_eq!(refused, Err(KeyError::RolledBack { start_ts: lock_ts }.into()));
}

#[tokio::test]
async fn timestamps_that_the_oracle_has_not_issued_are_refused() {
    let fixture = Fixture::synced().await;
    let start_ts = fixture.oracle.next();
    for ahead in [Timestamp::MAX, Timestamp::MAX.prev(), Timestamp::new(start_ts.physical_ms() + 10 * WINDOW_MS, 0)] {
        let refused = fixture.send(Fixture::get(b"k", ahead)).await;
        assert!(matches!(refused, Err(ServerError::Invalid(_))), "{ahead}: {refused:?}");
    }
    // None of them raised `max_ts`.
    let committed = fixture.send(fixture.one_phase(b"k", start_ts, Timestamp::MAX)).await;
    assert_eq!(committed, Ok(Response::Committed { commit_ts: start_ts.next() }));
}

/// A read that leaves its timestamp to the store is a read at a timestamp from after its arrival.
#[tokio::test]
async fn a_store_takes_the_timestamp_of_a_read_when_it_arrives() {
    let fixture = Fixture::synced().await;
    assert!(matches!(fixture.put(b"k").await, Ok(Response::Committed { .. })));
    for body in [Fixture::get(b"k", Timestamp::ZERO), Fixture::scan(Timestamp::ZERO)] {
        let before = fixture.oracle.next();
        let Ok(Response::Started { start_ts, outcome, .. }) = fixture.send(body).await else { panic!("no timestamp") };
        assert_eq!(start_ts, before.max(fixture.oracle.last()), "the next one");
        assert!(start_ts > before && outcome.is_ok(), "{outcome:?}");
        // It raises `max_ts` like any other.
        let Ok(Response::Committed { commit_ts }) = fixture.send(fixture.one_phase(b"k", before, Timestamp::MAX)).await
        else {
            continue;
        };
        assert!(commit_ts > start_ts);
    }
}

#[tokio::test]
async fn a_read_without_a_timestamp_that_meets_a_lock_learns_its_timestamp() {
    let fixture = Fixture::new();
    // Not synced yet: locked for two phases.
    assert_eq!(fixture.put(b"k").await, Ok(Response::Done));
    let Ok(Response::Started { start_ts, outcome, .. }) = fixture.send(Fixture::get(b"k", Timestamp::ZERO)).await
    else {
        panic!("no timestamp")
    };
    let Err(KeyError::Locked(locks)) = *outcome else { panic!("{outcome:?}") };
    assert!(locks.len() == 1 && locks[0].start_ts < start_ts);
}

/// A transaction whose name is old commits above what was acknowledged before its request was sent. A repeated request
/// finds that commit, and a commit since then is a conflict.
#[tokio::test]
async fn a_commit_without_a_least_comes_above_a_timestamp_that_its_store_takes() {
    let fixture = Fixture::synced().await;
    let [name, later_name] = [(); 2].map(|()| fixture.oracle.next());
    let acknowledged = fixture.oracle.next();
    let body = without_least(fixture.one_phase(b"k", name, Timestamp::MAX));
    let committed = fixture.send(body.clone()).await;
    assert!(matches!(committed, Ok(Response::Committed { commit_ts }) if commit_ts > acknowledged), "{committed:?}");
    assert_eq!(fixture.send(body).await, committed);
    let refused = fixture.send(without_least(fixture.one_phase(b"k", later_name, Timestamp::MAX))).await;
    assert!(matches!(refused, Err(ServerError::Key(KeyError::WriteConflict { .. }))), "{refused:?}");
    // The least counts as any other.
    let bounded = fixture.one_phase(b"l", fixture.oracle.next(), fixture.oracle.last());
    assert_eq!(fixture.send(without_least(bounded)).await, Ok(Response::Done), "out of bounds: two phases");
}

fn without_least(mut body: RequestBody) -> RequestBody {
    if let RequestBody::Prewrite(PrewriteRequest { commit: CommitMode::OnePhase(bounds), .. }) = &mut body {
        bounds.least = Timestamp::ZERO;
    }
    body
}

#[tokio::test]
async fn a_store_that_does_not_lead_takes_no_timestamp() {
    let fixture = Fixture::synced().await;
    fixture.store.set_leader(false);
    let before = fixture.oracle.next();
    let prewrite = without_least(fixture.one_phase(b"k", before, Timestamp::MAX));
    for body in [Fixture::get(b"k", Timestamp::ZERO), prewrite] {
        let refused = fixture.send(body).await;
        assert!(matches!(refused, Err(ServerError::Region(RegionError::NotLeader { .. }))), "{refused:?}");
    }
    assert_eq!(fixture.oracle.last(), before);
}

/// An oracle that a store does not reach, after so many answers.
struct Silent(AtomicU64);

impl TimestampSource for Silent {
    fn timestamp(&self) -> BoxFuture<'_, Result<Timestamp, TsoError>> {
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Box::pin(std::future::ready(Ok(Timestamp::new(1_000, 0)))),
            Err(_) => Box::pin(std::future::pending()),
        }
    }

    fn newest(&self) -> NewestTimestamp {
        NewestTimestamp { timestamp: Timestamp::new(1_000, 0), age: Duration::ZERO }
    }
}

/// The client may reach the oracle although the store does not.
#[tokio::test(start_paused = true)]
async fn a_store_without_an_oracle_refuses_reads_without_a_timestamp_only() {
    let store = FakeStore::new();
    let silent = Arc::new(Silent(AtomicU64::new(0)));
    let server = KvServer::new(store.clone(), silent, &KvServerConfig::default(), &Registry::new()).unwrap();
    let send = |start_ts| server.handle(Request { context: store.context(), body: Fixture::get(b"k", start_ts) });
    let refused = send(Timestamp::ZERO).await;
    assert!(matches!(refused, Err(ServerError::Region(RegionError::ServerBusy { .. }))), "{refused:?}");
    assert_eq!(send(Timestamp::new(1_000, 0)).await, Ok(Response::Value(None)));
}

/// The coordinator then takes the commit_ts, from the oracle that it reaches.
#[tokio::test(start_paused = true)]
async fn a_store_without_an_oracle_locks_for_two_phases() {
    let silent = Arc::new(Silent(AtomicU64::new(1)));
    let store = FakeStore::new();
    let server = KvServer::new(store.clone(), silent, &KvServerConfig::default(), &Registry::new()).unwrap();
    let fixture = Fixture { store, oracle: Arc::new(CountingTso::new(0)), server };
    let ts = |ms| Timestamp::new(ms, 0);
    assert_eq!(fixture.send(fixture.one_phase(b"x", ts(1_001), Timestamp::MAX)).await, Ok(Response::Done));
    fixture.let_sync_run().await;
    let synced = fixture.send(fixture.one_phase(b"k", ts(1_002), Timestamp::MAX)).await;
    assert!(matches!(synced, Ok(Response::Committed { .. })), "{synced:?}");
    let locked = fixture.send(without_least(fixture.one_phase(b"l", ts(1_003), Timestamp::MAX))).await;
    assert_eq!(locked, Ok(Response::Done));
}

/// Regression: a node that was suspended for longer than the records of leases are kept committed up to the end of its
/// lease, to rows that a TRUNCATE had removed meanwhile.
#[tokio::test]
async fn a_commit_that_comes_minutes_late_is_refused() {
    let fixture = Fixture::synced().await;
    let [start_ts, done, late] = [(); 3].map(|()| fixture.oracle.next());
    let commit = |at, start_ts, commit_ts| {
        let keys = vec![Key::from_static(at)];
        fixture.send(RequestBody::Commit { keys, start_ts, commit_ts })
    };
    for (at, start_ts) in [(b"k" as &[u8], start_ts), (b"l", done)] {
        let body = fixture.one_phase(at, start_ts, start_ts);
        assert_eq!(fixture.send(body).await, Ok(Response::Done), "locked for two phases");
    }
    let commit_ts = fixture.oracle.next();
    assert_eq!(commit(b"l", done, commit_ts).await, Ok(Response::Done));
    fixture.oracle.advance_ms(u64::try_from(COMMIT_LATE_MAX.as_millis()).unwrap() - 1_000);
    let body = fixture.one_phase(b"m", late, commit_ts);
    assert!(matches!(fixture.send(body).await, Ok(Response::Committed { .. })), "seconds late");
    fixture.oracle.advance_ms(2_000);
    let refused = commit(b"k", start_ts, commit_ts).await;
    assert!(matches!(refused, Err(ServerError::Key(KeyError::CommitTsTooEarly { .. }))), "{refused:?}");
    assert_eq!(commit(b"l", done, commit_ts).await, Ok(Response::Done), "a repeated request changes nothing");
    let body = fixture.one_phase(b"n", late, commit_ts);
    assert_eq!(fixture.send(body).await, Ok(Response::Done), "locked for two phases");
}
