//! The service, the router and the client, over a simulated system region and real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use link::{ClusterTag, LinkMetrics, LinkOptions, LinkServer, Links, ServerOptions};
use parking_lot::Mutex;
use prometheus::Registry;
use tso::leap;
use tso::oracle::{ClockReading, WINDOW_MS};
use tso::service::Clocks;
use tso::timestamp::MAX_COUNT;
use tso::{
    AllocateError, NodeDirectory, OracleNode, RemoteSource, ServiceMetrics, TimeReport, Timestamp, TsoClient,
    TsoClientOptions, TsoError, TsoRouter, TsoService,
};

use super::region::{NodeWindow, Region};

/// A wall clock that the test sets, and a monotonic clock that moves only with `advance`.
#[derive(Clone)]
struct Clock {
    wall_ms: Arc<AtomicU64>,
    mono_ms: Arc<AtomicU64>,
}

impl Clock {
    fn at(now_ms: u64) -> Clock {
        Clock { wall_ms: Arc::new(AtomicU64::new(now_ms)), mono_ms: Arc::default() }
    }

    fn set(&self, now_ms: u64) {
        self.wall_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Time passes, by both clocks.
    fn advance(&self, ms: u64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.mono_ms.fetch_add(ms, Ordering::SeqCst);
    }

    fn clocks(&self) -> Clocks {
        let clock = self.clone();
        Arc::new(move || ClockReading {
            wall_ms: clock.wall_ms.load(Ordering::SeqCst),
            mono_ms: clock.mono_ms.load(Ordering::SeqCst),
        })
    }
}

fn service(region: &Arc<Region>, node: usize, clock: Clocks) -> TsoService {
    TsoService::new(Arc::new(NodeWindow { region: Arc::clone(region), node }), clock, None)
}

async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..5000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("timed out waiting for {what}");
}

#[tokio::test]
async fn a_leader_serves_until_it_steps_down() {
    let region = Arc::new(Region::default());
    let registry = prometheus::Registry::new();
    let window = Arc::new(NodeWindow { region: Arc::clone(&region), node: 1 });
    let metrics = ServiceMetrics::new(&registry).unwrap();
    let service = TsoService::new(window, Clock::at(50_000).clocks(), Some(metrics));
    *region.hint.lock() = Some("elsewhere".into());
    let not_leader = AllocateError::NotLeader { hint: Some("elsewhere".into()) };
    assert_eq!(service.allocate(1).await, Err(not_leader.clone()));

    // The first request waits for the first window.
    service.on_leader(region.elect(1));
    let first = service.allocate(3).await.unwrap();
    assert_eq!((first.first(), first.count), (Timestamp::new(50_000, 0), 3));
    assert_eq!(*region.mark.lock(), Timestamp::new(50_000 + WINDOW_MS, 0));
    assert!(service.is_serving());
    assert_eq!(service.allocate(1).await.unwrap().last, first.last.next());
    assert_eq!(service.allocate(0).await, Err(AllocateError::InvalidCount(0)));
    assert_eq!(service.allocate(MAX_COUNT + 1).await, Err(AllocateError::InvalidCount(MAX_COUNT + 1)));

    service.on_step_down();
    assert!(!service.is_serving());
    assert_eq!(service.allocate(1).await, Err(not_leader));
    let text = format!("{:?}", registry.gather());
    assert!(text.contains("tso_timestamps_total") && text.contains("tso_refused_total"), "{text}");
}

/// An hour's jump of the wall clock moves no timestamp, and shows as a metric until it is caught up.
#[tokio::test]
async fn the_distance_from_the_wall_clock_is_a_metric() {
    let (region, clock) = (Arc::new(Region::default()), Clock::at(50_000));
    let registry = prometheus::Registry::new();
    let window = Arc::new(NodeWindow { region: Arc::clone(&region), node: 1 });
    let service = TsoService::new(window, clock.clocks(), Some(ServiceMetrics::new(&registry).unwrap()));
    let offset_ms = || {
        let families = registry.gather();
        let family = families.iter().find(|family| family.name() == "tso_wall_clock_offset_ms").unwrap();
        family.get_metric()[0].get_gauge().get_value() as i64
    };
    service.on_leader(region.elect(1));
    let last = service.allocate(1).await.unwrap().last;
    clock.set(50_000 + 3_600_000);
    eventually("the metric", || offset_ms() == -3_600_000).await;
    assert_eq!(service.allocate(1).await.unwrap().last, last.next());
    clock.advance(1_000);
    eventually("the metric", || offset_ms() == -3_599_500).await;
    clock.set(49_000);
    eventually("the metric", || offset_ms() == 2_500).await;
    service.on_step_down();
    assert_eq!(offset_ms(), 0);
}

#[tokio::test]
async fn failed_raises_are_retried() {
    let region = Arc::new(Region::default());
    region.fail_raises.store(2, Ordering::SeqCst);
    region.lose_raises.store(2, Ordering::SeqCst);
    let service = service(&region, 1, Clock::at(50_000).clocks());
    service.on_leader(region.elect(1));
    let range = service.allocate(1).await.unwrap();
    assert!(range.last < *region.mark.lock());
}

/// A request that waits for a window fails after a bounded time.
#[tokio::test]
async fn a_window_that_cannot_be_raised_is_unavailable() {
    let region = Arc::new(Region::default());
    region.fail_raises.store(u32::MAX, Ordering::SeqCst);
    let service = service(&region, 1, Clock::at(50_000).clocks());
    service.on_leader(region.elect(1));
    let (raised, step_down) = (service.clone(), service.clone());
    let waiting = tokio::spawn(async move { raised.allocate(1).await });
    assert!(matches!(service.allocate(1).await, Err(AllocateError::Unavailable(_))));
    assert!(matches!(waiting.await.unwrap(), Err(AllocateError::Unavailable(_))));
    // A step-down wakes the waiting requests at once.
    let waiting = tokio::spawn(async move { service.allocate(1).await });
    tokio::task::yield_now().await;
    step_down.on_step_down();
    assert!(matches!(waiting.await.unwrap(), Err(AllocateError::NotLeader { hint: None })));
}

#[tokio::test]
async fn the_window_is_kept_ahead_of_the_clock() {
    let region = Arc::new(Region::default());
    let clock = Clock::at(50_000);
    let service = service(&region, 1, clock.clocks());
    service.on_leader(region.elect(1));
    let mut last = service.allocate(1).await.unwrap().last;
    // The window advances without requests.
    clock.advance(2_000);
    eventually("a raised window", || *region.mark.lock() == Timestamp::new(52_000 + WINDOW_MS, 0)).await;
    // Requests are served after clock jumps in either direction.
    for now_ms in [52_000 + 3_600_000, 52_000, 52_000 + 7_200_000, 1] {
        clock.set(now_ms);
        let next = service.allocate(10).await.unwrap();
        assert!(next.first() > last && next.last < *region.mark.lock());
        last = next.last;
    }
}

/// The lease is checked after the range was computed: a node that is paused in between hands out nothing. Here the
/// pause is in the clock, which the oracle reads before it computes the range.
#[tokio::test]
async fn a_paused_leader_hands_out_nothing() {
    let region = Arc::new(Region::default());
    let pause = Arc::new(AtomicBool::new(false));
    let clock: Clocks = {
        let (region, pause) = (Arc::clone(&region), Arc::clone(&pause));
        Arc::new(move || {
            if pause.load(Ordering::SeqCst) {
                region.elect(2);
            }
            ClockReading { wall_ms: 50_000, mono_ms: 0 }
        })
    };
    let service = service(&region, 1, clock);
    service.on_leader(region.elect(1));
    service.allocate(1).await.unwrap();
    pause.store(true, Ordering::SeqCst);
    assert_eq!(service.allocate(1).await, Err(AllocateError::NotLeader { hint: None }));
}

#[tokio::test]
async fn a_new_leader_starts_above_the_old_one() {
    let region = Arc::new(Region::default());
    let (old_clock, new_clock) = (Clock::at(90_000), Clock::at(50_000));
    let (old, new) = (service(&region, 1, old_clock.clocks()), service(&region, 2, new_clock.clocks()));
    old.on_leader(region.elect(1));
    let mut last = old.allocate(1).await.unwrap().last;
    let stale = region.elect(2);
    new.on_leader(stale);
    let range = new.allocate(1).await.unwrap();
    assert!(range.first() > last);
    assert_eq!(range.first(), Timestamp::new(90_000 + WINDOW_MS, 0));
    last = range.last;
    // The old leader has not stepped down, but its lease has ended.
    assert!(old.is_serving());
    assert_eq!(old.allocate(1).await, Err(AllocateError::NotLeader { hint: None }));
    // It leads again; a late call for the previous term is ignored.
    old.on_leader(region.elect(1));
    old.on_leader(stale);
    assert!(old.allocate(1).await.unwrap().first() > last);
}

/// What two other voters report, which have received no timestamp for `quiet`.
fn reported(walls_ms: [u64; 2], quiet: Duration) -> Vec<Option<TimeReport>> {
    walls_ms.map(|wall_ms| Some(TimeReport { wall_ms, quiet })).into()
}

/// A mark of 50,000 ms, a new leader with this wall clock that has received no timestamp for `quiet`, and what the
/// others answer.
fn new_leader(wall_ms: u64, quiet: Duration, answers: Vec<Option<TimeReport>>) -> NewLeader {
    let region = Arc::new(Region::default());
    *region.mark.lock() = Timestamp::new(50_000, 0);
    *region.answers.lock() = answers;
    *region.quiet.lock() = quiet;
    let clock = Clock::at(wall_ms);
    let service = service(&region, 1, clock.clocks());
    service.on_leader(region.elect(1));
    NewLeader { region, clock, service }
}

struct NewLeader {
    region: Arc<Region>,
    clock: Clock,
    service: TsoService,
}

impl NewLeader {
    async fn first_ms(&self) -> u64 {
        self.service.allocate(1).await.unwrap().first().physical_ms()
    }

    /// Time passes once the leader has begun, and the leader notices. Needs a paused runtime.
    async fn wait(&self, time: Duration) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.clock.advance(time.as_millis() as u64);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The mark lags by an hour, by the new leader's clock. Among running nodes that clock is wrong. If no node has a
/// timestamp the cluster was down, and a majority's clocks count.
#[tokio::test]
async fn a_lagging_mark_is_leapt_over_only_if_no_node_has_a_timestamp() {
    let start = async |quiet: Duration, own_quiet: Duration| {
        let leader = new_leader(3_650_000, own_quiet, reported([3_649_000, 3_640_000], quiet));
        leader.first_ms().await
    };
    let (never, recent) = (Duration::MAX, Duration::from_secs(1));
    assert_eq!(start(recent, never).await, 50_000);
    assert_eq!(start(never, recent).await, 50_000);
    assert_eq!(start(never, never).await, 3_649_000);
}

/// The new leader's clock is slow and shows no lag. The others' clocks count, and a clock of its own that is right does
/// not leap for two that are slow.
#[tokio::test]
async fn a_slow_clock_of_the_first_leader_hides_no_lag() {
    let start = async |wall_ms: u64, others_ms: [u64; 2]| {
        let leader = new_leader(wall_ms, Duration::MAX, reported(others_ms, Duration::MAX));
        leader.first_ms().await
    };
    assert_eq!(start(51_000, [3_650_000, 3_649_000]).await, 3_649_000);
    assert_eq!(start(0, [3_650_000, 3_649_000]).await, 3_649_000);
    assert_eq!(start(3_650_000, [51_000, 52_000]).await, 50_000);
}

/// A leader that has timestamps asks nobody: here nobody would answer.
#[tokio::test]
async fn a_leader_of_a_running_cluster_asks_nobody() {
    let leader = new_leader(3_650_000, Duration::from_secs(1), vec![None, None]);
    assert_eq!(leader.first_ms().await, 50_000);
}

/// Two voters have just restarted, the third has running transactions and is slow to answer. The leader waits for it.
/// Time passes meanwhile, also for the clocks that have been reported.
#[tokio::test(start_paused = true)]
async fn a_survey_waits_for_every_node() {
    for (answers_in_time, expected_ms) in [(true, 50_000), (false, 3_645_000)] {
        let quiet = Some(TimeReport { wall_ms: 3_640_000, quiet: Duration::MAX });
        let leader = new_leader(3_650_000, Duration::MAX, vec![quiet, None]);
        leader.wait(leap::SURVEY_LIMIT - Duration::from_millis(1)).await;
        assert!(!leader.service.is_serving());
        if answers_in_time {
            leader.region.answers.lock()[1] = Some(TimeReport { wall_ms: 3_640_000, quiet: Duration::from_secs(1) });
        }
        leader.wait(Duration::from_millis(u64::from(!answers_in_time))).await;
        assert_eq!(leader.first_ms().await, expected_ms);
    }
}

/// A leader waits for the answers of a majority, but not for ever.
#[tokio::test(start_paused = true)]
async fn a_survey_waits_longer_for_a_majority() {
    for answers_in_time in [true, false] {
        let leader = new_leader(3_650_000, Duration::MAX, vec![None, None]);
        leader.wait(leap::MAJORITY_LIMIT - Duration::from_millis(1)).await;
        assert!(!leader.service.is_serving());
        if answers_in_time {
            leader.region.answers.lock()[0] = Some(TimeReport { wall_ms: 3_649_000, quiet: Duration::MAX });
        }
        leader.wait(Duration::from_millis(u64::from(!answers_in_time))).await;
        assert_eq!(leader.first_ms().await, if answers_in_time { 3_649_000 } else { 50_000 });
    }
}

const CLUSTER: ClusterTag = ClusterTag::new(10);

fn link_metrics() -> LinkMetrics {
    LinkMetrics::new(&Registry::new()).unwrap()
}

fn links(cluster: ClusterTag) -> Arc<Links> {
    Arc::new(Links::new(LinkOptions::new(cluster), link_metrics()))
}

/// A node with its server on a loopback port, on a runtime of its own that can be killed like a process.
struct Server {
    address: String,
    service: TsoService,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    fn start(region: &Arc<Region>, node: usize, clock: &Clock) -> Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = service(region, node, clock.clocks());
        let services = tso::remote::link_services(service.clone());
        let server = LinkServer::new(ServerOptions::new(CLUSTER), services, link_metrics());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                server.serve(stream);
            }
        });
        Server { address, service, runtime: Some(runtime) }
    }

    /// Kills the server and its connections.
    fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Nodes by address, and a leader that may be out of date.
struct Nodes {
    nodes: Vec<String>,
    leader: Mutex<Option<String>>,
}

impl NodeDirectory for Nodes {
    fn leader(&self) -> Option<String> {
        self.leader.lock().clone()
    }
    fn nodes(&self) -> Vec<String> {
        self.nodes.clone()
    }
}

#[tokio::test]
async fn a_remote_oracle_over_a_socket() {
    let region = Arc::new(Region::default());
    let server = Server::start(&region, 1, &Clock::at(50_000));
    let links = links(CLUSTER);
    let remote = RemoteSource::new(links.peer(&server.address).unwrap());
    assert_eq!(OracleNode::allocate(&remote, 1).await, Err(AllocateError::NotLeader { hint: None }));
    *region.hint.lock() = Some("10.0.0.9:7000".into());
    let hint = Some("10.0.0.9:7000".to_owned());
    assert_eq!(OracleNode::allocate(&remote, 1).await, Err(AllocateError::NotLeader { hint }));
    server.service.on_leader(region.elect(1));
    assert_eq!(OracleNode::allocate(&remote, 0).await, Err(AllocateError::InvalidCount(0)));
    let range = OracleNode::allocate(&remote, 5).await.unwrap();
    assert_eq!((range.first(), range.count), (Timestamp::new(50_000, 0), 5));
    // It also serves a client directly.
    let client = TsoClient::new(Arc::new(remote));
    assert_eq!(client.timestamp().await, Ok(range.last.next()));
}

/// A node of another cluster issues no timestamps and reports no time.
#[tokio::test]
async fn another_cluster_gets_no_timestamps() {
    let region = Arc::new(Region::default());
    let server = Server::start(&region, 1, &Clock::at(50_000));
    server.service.on_leader(region.elect(1));
    let links = links(ClusterTag::new(11));
    let remote = RemoteSource::new(links.peer(&server.address).unwrap());
    let error = OracleNode::allocate(&remote, 1).await.unwrap_err().to_string();
    assert!(error.contains("this node belongs to cluster 000000000000000a"), "{error}");
    let peer = links.peer(&server.address).unwrap();
    let asked = peer.call(tso::remote::TIME_REPORT, Bytes::new(), Duration::from_secs(10)).await;
    assert!(matches!(asked, Err(link::CallError::Unreachable(_))), "{asked:?}");
}

/// A question over sockets goes to the address that is known when it is asked, and is repeated until the node is up.
#[tokio::test]
async fn a_node_is_asked_for_its_time_until_it_answers() {
    let region = Arc::new(Region::default());
    *region.quiet.lock() = Duration::from_millis(1_234);
    let (up, mut down) = (Server::start(&region, 1, &Clock::at(50_000)), Server::start(&region, 2, &Clock::at(60_000)));
    down.kill();
    let links = links(CLUSTER);
    let addresses = Mutex::new(vec![Some(up.address.clone()), Some(down.address.clone()), None]);
    let report = tso::remote::ask_time(|| addresses.lock().pop().flatten(), &links).await;
    assert_eq!(report, TimeReport { wall_ms: 50_000, quiet: Duration::from_millis(1_234) });
    assert!(addresses.lock().is_empty());
}

#[tokio::test]
async fn a_router_finds_the_leader() {
    let region = Arc::new(Region::default());
    let clock = Clock::at(50_000);
    let mut servers = Vec::new();
    for node in 0..3 {
        servers.push(Server::start(&region, node, &clock));
    }
    let nodes: Vec<String> = servers.iter().map(|server| server.address.clone()).collect();
    let directory = Arc::new(Nodes { nodes: nodes.clone(), leader: Mutex::new(None) });
    let services: Vec<TsoService> = servers.iter().map(|server| server.service.clone()).collect();
    let client = |local: usize| {
        let local = Some((nodes[local].clone(), services[local].clone()));
        TsoClient::new(Arc::new(TsoRouter::new(local, directory.clone(), links(CLUSTER))))
    };
    let (first, second) = (client(0), client(1));
    let foreign = TsoClient::new(Arc::new(TsoRouter::new(None, directory.clone(), links(CLUSTER))));

    // No leader is known: the round robin finds it.
    servers[2].service.on_leader(region.elect(2));
    let mut last = Timestamp::ZERO;
    for client in [&first, &second, &foreign, &first] {
        let next = client.timestamp().await.unwrap();
        assert!(next > last);
        last = next;
    }
    // Another node leads. The old leader first redirects to it, then does not answer at all.
    servers[2].service.on_step_down();
    *region.hint.lock() = Some(nodes[1].clone());
    servers[1].service.on_leader(region.elect(1));
    for client in [&first, &second, &foreign] {
        assert!(client.timestamp().await.unwrap() > last);
    }
    servers[1].kill();
    servers[1].service.on_step_down();
    servers[0].service.on_leader(region.elect(0));
    *directory.leader.lock() = Some(nodes[1].clone());
    for client in [&first, &second, &foreign] {
        assert!(client.timestamp().await.unwrap() > last);
    }
}

/// A deposed leader that has not stepped down, with its window used up: local callers reach the new leader, and none
/// waits for a window that the old one cannot raise.
#[tokio::test]
async fn a_deposed_leader_redirects_its_local_callers() {
    let region = Arc::new(Region::default());
    let old_clock = Clock::at(50_000);
    let (old, new) = (Server::start(&region, 0, &old_clock), Server::start(&region, 1, &Clock::at(50_000)));
    old.service.on_leader(region.elect(0));
    let last = old.service.allocate(1).await.unwrap().last;
    new.service.on_leader(region.elect(1));
    old_clock.set(3_600_000);
    assert!(old.service.is_serving());
    assert_eq!(old.service.allocate(1).await, Err(AllocateError::NotLeader { hint: None }));
    let nodes = vec![old.address.clone(), new.address.clone()];
    let directory = Arc::new(Nodes { leader: Mutex::new(Some(old.address.clone())), nodes });
    let local = Some((old.address.clone(), old.service.clone()));
    let client = TsoClient::new(Arc::new(TsoRouter::new(local, directory, links(CLUSTER))));
    for _ in 0..10 {
        assert!(client.timestamp().await.unwrap() > last);
    }
}

#[tokio::test]
async fn a_router_without_nodes_is_unavailable() {
    let directory = Arc::new(Nodes { nodes: Vec::new(), leader: Mutex::new(None) });
    let options = TsoClientOptions { deadline: Duration::from_millis(20), ..TsoClientOptions::default() };
    let client = TsoClient::with_options(Arc::new(TsoRouter::new(None, directory, links(CLUSTER))), options, None);
    assert!(matches!(client.timestamp().await, Err(TsoError::Unavailable(_))));
}

/// Callers on every node while the leadership moves and clocks jump: timestamps are distinct, and each is above all
/// that any caller had received before its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leader_changes_under_load() {
    let region = Arc::new(Region::default());
    let mut servers = Vec::new();
    let clocks: Vec<Clock> = [50_000, 40_000, 3_000_000].map(Clock::at).into();
    for (node, clock) in clocks.iter().enumerate() {
        servers.push(Server::start(&region, node, clock));
    }
    let nodes: Vec<String> = servers.iter().map(|server| server.address.clone()).collect();
    let directory = Arc::new(Nodes { nodes: nodes.clone(), leader: Mutex::new(None) });
    let newest = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for server in &servers {
        let local = Some((server.address.clone(), server.service.clone()));
        let client = TsoClient::new(Arc::new(TsoRouter::new(local, directory.clone(), links(CLUSTER))));
        for _ in 0..8 {
            let (client, newest, stop) = (client.clone(), Arc::clone(&newest), Arc::clone(&stop));
            callers.push(tokio::spawn(async move {
                let mut taken = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let before = newest.load(Ordering::SeqCst);
                    let timestamp = client.timestamp().await.unwrap();
                    assert!(timestamp.raw() > before, "{timestamp} after {}", Timestamp::from_raw(before));
                    newest.fetch_max(timestamp.raw(), Ordering::SeqCst);
                    taken.push(timestamp);
                }
                taken
            }));
        }
    }
    for round in 0..12 {
        let node = round % 3;
        let term = region.elect(node);
        if round % 2 == 0 {
            // In the other rounds the old leader does not step down.
            servers[(round + 2) % 3].service.on_step_down();
        }
        clocks[node].set(50_000 + (round as u64 % 4) * 1_000_000);
        servers[node].service.on_leader(term);
        let before = newest.load(Ordering::SeqCst);
        let far = before + 1000;
        eventually("timestamps of the new leader", || newest.load(Ordering::SeqCst) > far).await;
    }
    stop.store(true, Ordering::SeqCst);
    let mut taken: Vec<Timestamp> = join_all(callers).await.into_iter().flat_map(Result::unwrap).collect();
    let all = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), all);
    println!("{all} timestamps");
}
