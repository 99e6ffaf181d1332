//! The client over an in-memory cluster: routing, regrouping, paging, deadlines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use kv::api::{CheckTxnStatusRequest, KeyError, Mutation, MutationOp, TxnStatus};
use kv::client::{Client, ClientConfig, ClientError, HedgePolicy, ReadOptions, ReplicaPolicy, ScanRange, Snapshot};
use kv::memory::{Fault, Faults, MemoryCluster};
use prometheus::Registry;
use raftstore::{RegionError, RegionId, StoreId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tso::Timestamp;

use super::counter;

type Model = BTreeMap<Key, Bytes>;

fn key(n: u32) -> Key {
    // Keys of several lengths: their storage forms have one, two or three groups.
    Key::new(format!("{n:03}{}", "x".repeat(n as usize % 20)))
}

fn client(cluster: &MemoryCluster, config: ClientConfig) -> Client {
    Client::with_config(Arc::new(cluster.clone()), config, &Registry::new()).expect("valid settings")
}

fn seeded(seed: u64) -> ClientConfig {
    ClientConfig { seed: Some(seed), ..ClientConfig::default() }
}

async fn write(client: &Client, cluster: &MemoryCluster, pairs: &[(Key, Bytes)]) -> (Timestamp, Timestamp) {
    let start_ts = cluster.timestamp();
    let mutations = pairs.iter().map(|(key, value)| Mutation::new(key.clone(), MutationOp::Put(value.clone())));
    let primary = pairs[0].0.clone();
    client.prewrite(mutations.collect(), &primary, start_ts, || 3_000).await.expect("prewritten");
    let commit_ts = cluster.timestamp();
    let others: Vec<Key> = pairs[1..].iter().map(|(key, _)| key.clone()).collect();
    let left = client.commit_primary(&primary, &others, start_ts, commit_ts).await.expect("committed");
    client.commit(&left, start_ts, commit_ts).await.expect("committed");
    (start_ts, commit_ts)
}

async fn filled(seed: u64, faults: Faults, cached_regions: usize) -> (MemoryCluster, Client, Model) {
    let builder = MemoryCluster::builder().stores(3).faults(faults);
    let cluster = (1..6).fold(builder, |builder, n| builder.split_at(key(n * 17))).build();
    let client = client(&cluster, ClientConfig { cached_regions, batch_keys: 7, ..seeded(seed) });
    let pairs: Vec<(Key, Bytes)> = (0..100).map(|n| (key(n), Bytes::from(vec![n as u8; n as usize]))).collect();
    for chunk in pairs.chunks(25) {
        write(&client, &cluster, chunk).await;
    }
    (cluster, client, pairs.into_iter().collect())
}

/// Reads that choose replicas, of which only the leaders serve here.
fn some_options(rng: &mut StdRng) -> Arc<ReadOptions> {
    use ReplicaPolicy::{Any, Closest, Follower, Leader, Learner};
    let replica = [Leader, Follower, Closest, Any, Learner][rng.random_range(0..5)];
    let hedge = [HedgePolicy::Off, HedgePolicy::Auto, HedgePolicy::After(Duration::ZERO)][rng.random_range(0..3)];
    let patience = ClientConfig::default().deadline;
    Arc::new(ReadOptions { replica, hedge, read_only: rng.random(), patience, ..ReadOptions::default() })
}

/// The number of region lookups so far.
fn locates(registry: &Registry) -> u64 {
    counter(registry, "cortado_kv_client_locates_total")
}

fn expected(model: &Model, range: &ScanRange) -> Vec<(Key, Bytes)> {
    let inside = |key: &Key| *key >= range.start && (range.end.is_empty() || *key < range.end);
    let mut pairs: Vec<(Key, Bytes)> =
        model.iter().filter(|(key, _)| inside(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    if range.reverse {
        pairs.reverse();
    }
    pairs
}

#[tokio::test]
async fn reads_match_the_model_while_regions_split_and_leaders_move() {
    for seed in 0..8 {
        println!("seed {seed}");
        let faults = Faults { undetermined: 0.03, ..Faults::mixed(seed) };
        let (cluster, client, model) = filled(seed, faults, 4).await;
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..20 {
            let (a, b) = (rng.random_range(0..105), rng.random_range(0..105));
            let start = if rng.random_bool(0.2) { Key::default() } else { key(a) };
            let end = if rng.random_bool(0.2) { Key::default() } else { key(b) };
            let range = ScanRange { start, end, reverse: rng.random() };
            let limit = rng.random_range(1..40);
            let start_ts = cluster.timestamp();
            let options = rng.random_bool(0.5).then(|| some_options(&mut rng));
            let at = Snapshot { options: options.clone(), ..Snapshot::from(start_ts) };
            let (mut rest, mut found) = (range.clone(), Vec::new());
            loop {
                let page = client.scan(&rest, at.clone(), limit).await.expect("served");
                assert!(page.pairs.len() <= limit as usize, "seed {seed}");
                found.extend(page.pairs);
                match page.resume {
                    Some(resume) => rest = rest.resume_at(resume),
                    None => break,
                }
            }
            assert_eq!(found, expected(&model, &range), "seed {seed}, {range:?}, limit {limit}");

            let asked: Vec<Key> = (0..rng.random_range(1..30)).map(|_| key(rng.random_range(0..120))).collect();
            let found: Model = client.batch_get(&asked, at.clone()).await.expect("served").into_iter().collect();
            let wanted: Model = asked.iter().filter_map(|key| Some((key.clone(), model.get(key)?.clone()))).collect();
            assert_eq!(found, wanted, "seed {seed}");
            let one = key(rng.random_range(0..120));
            assert_eq!(client.get(&one, at).await, Ok(model.get(&one).cloned()), "seed {seed}");
            if let Some(first) = client.first_get(&one, options.as_deref()).await {
                assert_eq!(first.outcome, Ok(model.get(&one).cloned()), "seed {seed}");
                assert!(first.start_ts > start_ts, "seed {seed}");
            }
        }
    }
}

#[tokio::test]
async fn pages_are_bounded_by_bytes() {
    let (cluster, _, model) = filled(1, Faults::none(), 100).await;
    let client = client(&cluster, ClientConfig { page_bytes: 300, ..seeded(1) });
    for reverse in [false, true] {
        let range = ScanRange { start: Key::default(), end: Key::default(), reverse };
        let (mut rest, mut found, mut pages) = (range.clone(), Vec::new(), 0);
        loop {
            let page = client.scan(&rest, cluster.timestamp(), 1_000).await.expect("served");
            let size: usize = page.pairs.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum();
            assert!(size < 600, "a page of {size} bytes");
            pages += 1;
            found.extend(page.pairs);
            match page.resume {
                Some(resume) => rest = rest.resume_at(resume),
                None => break,
            }
        }
        assert_eq!(found, expected(&model, &range));
        assert!(pages > 10);
    }
}

/// The values exceed one response of a region. A batch get returns all of them, a page returns a prefix without a gap.
#[tokio::test]
async fn batch_gets_resume_where_a_response_ended() {
    for seed in 0..4 {
        let cluster = MemoryCluster::builder().stores(3).split_at(key(3)).split_at(key(9)).build();
        let config = ClientConfig { page_bytes: 5 << 20, fan_out: 2, ..seeded(seed) };
        let client = client(&cluster, config);
        let there = (0..12).filter(|n| *n != 6);
        let pairs: Vec<(Key, Bytes)> = there.map(|n| (key(n), Bytes::from(vec![n as u8; 1 << 20]))).collect();
        write(&client, &cluster, &pairs).await;
        cluster.set_faults(Faults::mixed(seed));
        let start_ts = cluster.timestamp();
        // One key is absent, one is repeated, and the order is reversed.
        let asked: Vec<Key> = (0..12).rev().chain([5]).map(key).collect();
        let all = client.batch_get(&asked, start_ts).await.expect("served");
        assert!(all == pairs, "seed {seed}: {} of {}", all.len(), pairs.len());

        let (mut rest, mut found, mut pages) = (asked, Vec::new(), 0);
        while !rest.is_empty() {
            let page = client.batch_get_page(&rest, start_ts).await.expect("served");
            assert!(!page.pairs.is_empty() && page.pairs.len() <= 9, "seed {seed}: {} pairs", page.pairs.len());
            found.extend(page.pairs);
            pages += 1;
            rest = page.resume.map_or(Vec::new(), |resume| rest.into_iter().filter(|key| *key >= resume).collect());
        }
        assert!(found == pairs && pages > 1, "seed {seed}: {} pairs in {pages} pages", found.len());
    }
}

/// Keys of 16 KiB: a thousand of them in one request would make a proposal that every store refuses.
#[tokio::test]
async fn requests_are_bounded_by_the_size_of_their_proposals() {
    let cluster = MemoryCluster::builder().max_proposal_bytes(4 << 20).build();
    let client = client(&cluster, seeded(1));
    let long = |n: u32| Key::new(format!("{n:04}{}", "x".repeat(16_000)));
    let pairs: Vec<(Key, Bytes)> = (0..400).map(|n| (long(n), Bytes::from_static(b"v"))).collect();
    let (start_ts, _) = write(&client, &cluster, &pairs).await;
    let keys: Vec<Key> = pairs.iter().map(|(key, _)| key.clone()).collect();
    assert!(client.batch_get(&keys, cluster.timestamp()).await.expect("served") == pairs);
    client.resolve_locks(&keys, start_ts, None).await.expect("nothing to do");

    // Other transactions resolve the reported locks, and the coordinator rolls back the rest.
    let start_ts = cluster.timestamp();
    let mutations = keys.iter().map(|key| Mutation::new(key.clone(), MutationOp::Delete)).collect();
    client.prewrite(mutations, &keys[0], start_ts, || 3_000).await.expect("prewritten");
    let Err(ClientError::Key(KeyError::Locked(met))) = client.batch_get(&keys, cluster.timestamp()).await else {
        panic!("the locks were not reported")
    };
    assert!((1..400).contains(&met.len()), "{} locks in one answer", met.len());
    let met: Vec<Key> = met.into_iter().map(|lock| lock.key).collect();
    client.resolve_locks(&met, start_ts, None).await.expect("resolved");
    client.rollback(&keys, start_ts).await.expect("rolled back");
    assert!(client.batch_get(&keys, cluster.timestamp()).await.expect("served") == pairs);
}

/// An invalid request fails at once, and its leader stays the target of the route: the next request reaches it at once.
#[tokio::test]
async fn an_invalid_request_is_not_retried() {
    let (cluster, registry) = (MemoryCluster::builder().stores(3).build(), Registry::new());
    let client = Client::with_config(Arc::new(cluster.clone()), seeded(1), &registry).expect("valid settings");
    let at = key(5);
    client.get(&at, cluster.timestamp()).await.expect("served");
    let (calls, located) = (cluster.calls(), locates(&registry));
    let twice = vec![Mutation::new(at.clone(), MutationOp::Delete); 2];
    let refused = client.prewrite(twice, &at, cluster.timestamp(), || 3_000).await;
    assert_eq!(refused, Err(ClientError::Invalid("two mutations of one key".to_owned())));
    let commit = client.commit(std::slice::from_ref(&at), Timestamp::MAX, Timestamp::MAX).await;
    assert!(matches!(commit, Err(ClientError::Invalid(_))), "{commit:?}");
    assert_eq!(cluster.calls() - calls, 2);
    client.get(&at, cluster.timestamp()).await.expect("served");
    assert_eq!((cluster.calls() - calls, locates(&registry)), (3, located));
}

#[tokio::test]
async fn empty_and_inverted_ranges_are_empty() {
    let (cluster, client, _) = filled(1, Faults::none(), 100).await;
    for (start, end) in [(key(50), key(50)), (key(60), key(50))] {
        for reverse in [false, true] {
            let range = ScanRange { start: start.clone(), end: end.clone(), reverse };
            let page = client.scan(&range, cluster.timestamp(), 10).await.expect("served");
            assert_eq!((page.pairs.len(), page.resume), (0, None));
        }
    }
    assert_eq!(client.batch_get(&[], cluster.timestamp()).await, Ok(Vec::new()));
}

/// The pairs before a lock are read once, however many regions they come from.
#[tokio::test]
async fn a_page_of_a_scan_hands_out_what_is_before_a_lock() {
    let (cluster, client, model) = filled(1, Faults::none(), 100).await;
    let start_ts = cluster.timestamp();
    let delete = vec![Mutation::new(key(40), MutationOp::Delete)];
    client.prewrite(delete, &key(40), start_ts, || 3_000).await.expect("prewritten");
    let [before, after] = [(Key::default(), key(40)), (key(40).successor(), Key::default())];
    for (reverse, (start, end), resume) in [(false, before, key(40)), (true, after, key(40).successor())] {
        let whole = ScanRange { start: Key::default(), end: Key::default(), reverse };
        let page = client.scan(&whole, cluster.timestamp(), 1_000).await.expect("served");
        assert_eq!(page.pairs, expected(&model, &ScanRange { start, end, reverse }));
        assert_eq!(page.resume, Some(resume.clone()));
        let locked = client.scan(&whole.resume_at(resume), cluster.timestamp(), 1_000).await;
        assert!(matches!(&locked, Err(ClientError::Key(KeyError::Locked(locks))) if locks.len() == 1), "{locked:?}");
    }
}

#[tokio::test]
async fn all_locks_of_all_regions_are_reported() {
    let (cluster, client, _) = filled(1, Faults::none(), 100).await;
    let locked = [key(3), key(40), key(90)];
    let start_ts = cluster.timestamp();
    let mutations = locked.iter().map(|key| Mutation::new(key.clone(), MutationOp::Delete)).collect();
    client.prewrite(mutations, &locked[1], start_ts, || 3_000).await.expect("prewritten");
    let asked: Vec<Key> = (0..100).map(key).collect();
    let Err(ClientError::Key(KeyError::Locked(locks))) = client.batch_get(&asked, cluster.timestamp()).await else {
        panic!("the locks were not reported")
    };
    let mut met: Vec<Key> = locks.into_iter().map(|lock| lock.key).collect();
    met.sort();
    assert_eq!(met, locked);
    assert!(client.batch_get(&asked, start_ts.prev()).await.is_ok(), "locks after the snapshot do not block");

    assert_eq!(client.heartbeat(&locked[1], start_ts, || 9_000, Duration::from_secs(9)).await, Ok(9_000));
    let status = CheckTxnStatusRequest {
        primary: locked[1].clone(),
        lock_ts: start_ts,
        current_ts: cluster.timestamp(),
        rollback_if_missing: false,
        reader_ts: Timestamp::ZERO,
        fell_back: false,
    };
    let alive = TxnStatus::Alive { ttl_ms: 9_000, min_commit_ts: start_ts.next() };
    assert_eq!(client.check_txn_status(status.clone()).await, Ok(alive));
    client.rollback(&locked[1..2], start_ts).await.expect("rolled back");
    assert_eq!(client.check_txn_status(status).await, Ok(TxnStatus::RolledBack));
    client.resolve_locks(&locked, start_ts, None).await.expect("resolved");
    assert!(client.batch_get(&asked, cluster.timestamp()).await.is_ok());
}

/// The request of the primary also commits the secondaries in its region; after a split, fewer of them.
#[tokio::test]
async fn a_primary_commits_with_the_secondaries_of_its_region() {
    let (cluster, client, _) = filled(1, Faults::none(), 100).await;
    let keys: Vec<Key> = [1, 5, 9, 95].map(key).into();
    let start_ts = cluster.timestamp();
    let mutations = keys.iter().map(|key| Mutation::new(key.clone(), MutationOp::Delete)).collect();
    client.prewrite(mutations, &keys[0], start_ts, || 3_000).await.expect("prewritten");
    cluster.split(&keys[2]);
    let left = client.commit_primary(&keys[0], &keys[1..], start_ts, cluster.timestamp()).await;
    assert_eq!(left, Ok(keys[2..].to_vec()));
}

#[tokio::test]
async fn a_leader_hint_costs_one_retry_and_is_cached() {
    let (cluster, client, _) = filled(1, Faults::none(), 100).await;
    let at = key(5);
    client.get(&at, cluster.timestamp()).await.expect("served");
    for store in [1, 2, 3] {
        cluster.move_leader(&at, StoreId::new(store));
        let calls = cluster.calls();
        client.get(&at, cluster.timestamp()).await.expect("served");
        assert!(cluster.calls() - calls <= 2);
        // The leader is cached: it gets the next request.
        let calls = cluster.calls();
        client.get(&at, cluster.timestamp()).await.expect("served");
        assert_eq!(cluster.calls() - calls, 1);
    }
}

#[tokio::test]
async fn retries_end_at_the_deadline() {
    let deadline = Duration::from_millis(40);
    let everything = |fault: Fault| std::iter::repeat_n(fault, 10_000);
    let busy = RegionError::ServerBusy { store: StoreId::new(1), what: "injected".to_owned() };
    for fault in [Fault::Unreachable, Fault::LoseReply, Fault::Refuse(busy)] {
        let cluster = MemoryCluster::builder().stores(3).build();
        let client = client(&cluster, ClientConfig { deadline, ..seeded(1) });
        cluster.inject(everything(fault.clone()));
        let refused = client.get(&key(1), cluster.timestamp()).await;
        match (&fault, &refused) {
            // For want of room, which others have.
            (Fault::Refuse(_), Err(ClientError::Overloaded { .. })) => {}
            (Fault::Unreachable | Fault::LoseReply, Err(ClientError::Unavailable { .. })) => {}
            _ => panic!("{fault:?}: {refused:?}"),
        }
        let refused = client.rollback(&[key(1), key(2)], cluster.timestamp()).await;
        assert!(matches!(refused, Err(ClientError::Unavailable { .. })), "{fault:?}: {refused:?}");

        // Only for a commit does it matter whether it may have been delivered.
        let start_ts = cluster.timestamp();
        let commit = client.commit(&[key(1)], start_ts, cluster.timestamp()).await;
        if fault == Fault::LoseReply {
            assert_eq!(commit, Err(ClientError::Undetermined(RegionId::FIRST_DATA)));
        } else {
            assert!(matches!(commit, Err(ClientError::Unavailable { .. })), "{fault:?}: {commit:?}");
        }
    }
}

#[test]
fn settings_below_their_minimum_are_refused() {
    let cluster = MemoryCluster::new();
    let config = ClientConfig { fan_out: 0, ..ClientConfig::default() };
    let refused = Client::with_config(Arc::new(cluster), config, &Registry::new());
    assert_eq!(refused.err(), Some(ClientError::Failed("client.fan_out is below its minimum".to_owned())));
}

/// A first read takes its timestamp at the store, in one request; a scan goes on in the next region at that timestamp.
#[tokio::test]
async fn first_reads_take_their_timestamp_at_the_store() {
    let (cluster, client, model) = filled(1, Faults::none(), 100).await;
    let (before, calls) = (cluster.timestamp(), cluster.calls());
    let read = client.first_get(&key(40), None).await.expect("its region is known");
    assert_eq!((read.outcome, cluster.calls() - calls), (Ok(model.get(&key(40)).cloned()), 1));
    assert!(read.start_ts > before && read.start_ts == cluster.tso().last());
    for reverse in [false, true] {
        let range = ScanRange { start: Key::default(), end: Key::default(), reverse };
        let read = client.first_scan(&range, 1_000, None).await.expect("its region is known");
        let page = read.outcome.expect("no locks");
        assert!((10..30).contains(&page.pairs.len()), "one region");
        let rest = range.resume_at(page.resume.expect("there are more regions"));
        let rest = client.scan(&rest, read.start_ts, 1_000).await.expect("served");
        assert_eq!([page.pairs, rest.pairs].concat(), expected(&model, &range));
        let limited = client.first_scan(&range, 3, None).await.expect("served").outcome.expect("no locks");
        assert_eq!(limited.pairs, expected(&model, &range)[..3]);
    }
    let delete = vec![Mutation::new(key(40), MutationOp::Delete)];
    client.prewrite(delete, &key(40), cluster.timestamp(), || 3_000).await.expect("prewritten");
    let read = client.first_get(&key(40), None).await.expect("served");
    assert!(matches!(&read.outcome, Err(locks) if locks.len() == 1 && locks[0].start_ts < read.start_ts), "{read:?}");
}

/// It is one attempt: the caller goes on with a timestamp of its own. The next first read finds the new leader.
#[tokio::test]
async fn a_first_read_that_fails_is_not_retried() {
    let (cluster, client, model) = filled(1, Faults::none(), 100).await;
    let fresh = Client::new(Arc::new(cluster.clone()));
    assert_eq!(fresh.first_get(&key(1), None).await, None, "its region is not known");
    let leader = cluster.regions()[0].leader.expect("it has one").store;
    let other = StoreId::new(leader.get() % 3 + 1);
    cluster.inject([Fault::MoveLeader(other)]);
    let calls = cluster.calls();
    assert_eq!(client.first_get(&key(1), None).await, None);
    assert_eq!(cluster.calls() - calls, 1);
    let read = client.first_get(&key(1), None).await.expect("the store has named the leader");
    assert_eq!(read.outcome, Ok(model.get(&key(1)).cloned()));
    cluster.inject([Fault::LoseReply]);
    assert_eq!(client.first_get(&key(1), None).await, None);
}
