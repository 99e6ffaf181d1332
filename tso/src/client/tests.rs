//! Batching, ordering and failures of the client, over sources whose answers the test controls.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::sync::Semaphore;

use super::*;

/// A counter whose answers wait for permits, and which loses the next `replies_to_lose` answers.
struct Gated {
    last: Mutex<Timestamp>,
    permits: Semaphore,
    requests: AtomicU32,
    in_flight: AtomicU32,
    replies_to_lose: AtomicU32,
    closed: AtomicBool,
}

impl Gated {
    fn new(permits: usize) -> Arc<Gated> {
        Arc::new(Gated {
            last: Mutex::default(),
            permits: Semaphore::new(permits),
            requests: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            replies_to_lose: AtomicU32::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// The newest timestamp issued.
    fn last(&self) -> Timestamp {
        *self.last.lock()
    }

    fn issue(&self, count: u32) -> TsRange {
        let mut last = self.last.lock();
        *last = Timestamp::from_raw(last.raw() + u64::from(count));
        TsRange { last: *last, count }
    }

    /// Waits until `requests` requests have arrived.
    async fn wait_for(&self, requests: u32) {
        for _ in 0..10_000 {
            if self.requests.load(Ordering::SeqCst) >= requests {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} of {requests} requests", self.requests.load(Ordering::SeqCst));
    }
}

/// Decrements the number of requests in flight on drop, also for a cancelled request.
struct InFlight<'a>(&'a AtomicU32);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TsoSource for Gated {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        async move {
            assert_eq!(self.in_flight.fetch_add(1, Ordering::SeqCst), 0, "one request in flight");
            let _in_flight = InFlight(&self.in_flight);
            // Issued when the request arrives; the answer may be delayed after that.
            let range = self.issue(count);
            self.requests.fetch_add(1, Ordering::SeqCst);
            if self.closed.load(Ordering::SeqCst) {
                return Err(TsoError::Closed);
            }
            self.permits.acquire().await.unwrap().forget();
            if self.replies_to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            {
                return Err(TsoError::Unavailable("lost".into()));
            }
            Ok(range)
        }
        .boxed()
    }
}

/// One request at a time, and short pauses.
fn options() -> TsoClientOptions {
    TsoClientOptions { backoff_min: Duration::from_millis(1), in_flight: 1, ..TsoClientOptions::default() }
}

#[tokio::test]
async fn sequential_callers_send_their_own_requests() {
    let source = Gated::new(3);
    let client = TsoClient::with_options(source.clone(), options(), None);
    let mut last = Timestamp::ZERO;
    for _ in 0..3 {
        let next = client.timestamp().await.unwrap();
        assert!(next > last);
        last = next;
    }
    assert_eq!(source.requests.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn callers_during_a_request_share_the_next_one() {
    let source = Gated::new(0);
    let client = TsoClient::with_options(source.clone(), options(), None);
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.timestamp().await }
    });
    source.wait_for(1).await;
    let issued_before = source.last();
    let mut others: Vec<_> = (0..1000).map(|_| client.timestamp().boxed()).collect();
    // Every caller has made its call and is queued.
    for other in &mut others {
        assert!(other.now_or_never().is_none());
    }
    source.permits.add_permits(2);
    let first = first.await.unwrap().unwrap();
    let others: Vec<Timestamp> = join_all(others).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(source.requests.load(Ordering::SeqCst), 2);
    assert!(others.is_sorted() && others.iter().all(|timestamp| *timestamp > issued_before));
    assert!(!others.contains(&first));
    assert_eq!(others.iter().collect::<HashSet<_>>().len(), 1000);
}

/// Many callers on many threads: every timestamp is above all that were issued before its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn timestamps_are_issued_after_the_call() {
    let source = Gated::new(1_000_000);
    let client = TsoClient::with_options(source.clone(), options(), None);
    let callers = (0..16).map(|_| {
        let (client, source) = (client.clone(), source.clone());
        tokio::spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..500 {
                let issued_before = source.last();
                let timestamp = client.timestamp().await.unwrap();
                assert!(timestamp > issued_before, "{timestamp} after {issued_before}");
                taken.push(timestamp);
            }
            taken
        })
    });
    let taken: Vec<Timestamp> = join_all(callers).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 8000);
    assert!(source.requests.load(Ordering::SeqCst) <= 8000);
}

#[tokio::test]
async fn a_cancelled_caller_passes_its_permit_on() {
    let source = Gated::new(0);
    let client = TsoClient::with_options(source.clone(), options(), None);
    let mut first = client.timestamp().boxed();
    assert!((&mut first).now_or_never().is_none());
    let mut cancelled = client.timestamp().boxed();
    assert!((&mut cancelled).now_or_never().is_none());
    let mut second = client.timestamp().boxed();
    assert!((&mut second).now_or_never().is_none());
    drop(cancelled);
    drop(first);
    source.permits.add_permits(1);
    let last = second.await.unwrap();
    // The second request was for the one remaining caller.
    assert_eq!((source.requests.load(Ordering::SeqCst), source.last()), (2, last));
    // The client also works after its only caller was cancelled.
    let mut alone = client.timestamp().boxed();
    assert!((&mut alone).now_or_never().is_none());
    drop(alone);
    source.permits.add_permits(1);
    client.timestamp().await.unwrap();
}

#[tokio::test]
async fn lost_answers_are_retried() {
    let source = Gated::new(1000);
    source.replies_to_lose.store(5, Ordering::SeqCst);
    let client = TsoClient::with_options(source.clone(), options(), None);
    let timestamp = client.timestamp().await.unwrap();
    assert_eq!(source.requests.load(Ordering::SeqCst), 6);
    assert_eq!(timestamp, source.last());
}

#[tokio::test]
async fn retries_end_at_the_deadline() {
    let source = Gated::new(100_000);
    source.replies_to_lose.store(u32::MAX, Ordering::SeqCst);
    let deadline = Duration::from_millis(50);
    let registry = prometheus::Registry::new();
    let metrics = ClientMetrics::new(&registry).unwrap();
    let client =
        TsoClient::with_options(source.clone(), TsoClientOptions { deadline, ..options() }, Some(metrics.clone()));
    assert_eq!(client.timestamp().await, Err(TsoError::Unavailable("lost".into())));
    assert_eq!(metrics.requests.get(), metrics.failures.get());
    // A source that never answers.
    let client = TsoClient::with_options(Gated::new(0), TsoClientOptions { deadline, ..options() }, None);
    let (flying, queued) = tokio::join!(client.timestamp(), client.timestamp());
    assert!(matches!((flying, queued), (Err(TsoError::Unavailable(_)), Err(TsoError::Unavailable(_)))));
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let source = Gated::new(0);
    let client = TsoClient::with_options(source.clone(), TsoClientOptions { queue: 2, ..options() }, None);
    let mut callers: Vec<_> = (0..3).map(|_| client.timestamp().boxed()).collect();
    for caller in &mut callers {
        assert!(caller.now_or_never().is_none());
    }
    assert!(matches!(client.timestamp().await, Err(TsoError::Unavailable(_))));
    source.permits.add_permits(2);
    assert!(join_all(callers).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn close_fails_queued_and_later_callers() {
    let source = Gated::new(0);
    let client = TsoClient::with_options(source.clone(), options(), None);
    let mut flying = client.timestamp().boxed();
    assert!((&mut flying).now_or_never().is_none());
    let mut queued = client.timestamp().boxed();
    assert!((&mut queued).now_or_never().is_none());
    client.close();
    assert_eq!(queued.await, Err(TsoError::Closed));
    assert_eq!(client.timestamp().await, Err(TsoError::Closed));
    source.permits.add_permits(1);
    assert!(flying.await.is_ok());
    // A closed source is not asked again.
    let source = Gated::new(1);
    source.closed.store(true, Ordering::SeqCst);
    assert_eq!(TsoClient::with_options(source.clone(), options(), None).timestamp().await, Err(TsoError::Closed));
    assert_eq!(source.requests.load(Ordering::SeqCst), 1);
}

/// The client rejects a source that issues the same timestamp twice.
#[tokio::test]
async fn a_repeated_timestamp_is_rejected() {
    struct Stuck;
    impl TsoSource for Stuck {
        fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
            std::future::ready(Ok(TsRange { last: Timestamp::new(7, 7), count })).boxed()
        }
    }
    let deadline = Duration::from_millis(20);
    let client = TsoClient::with_options(Arc::new(Stuck), TsoClientOptions { deadline, ..options() }, None);
    assert_eq!(client.timestamp().await, Ok(Timestamp::new(7, 7)));
    assert!(matches!(client.timestamp().await, Err(TsoError::Unavailable(_))));
}

#[test]
fn a_runtime_shutdown_fails_the_waiting_callers() {
    let source = Gated::new(0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(async { TsoClient::with_options(source.clone(), options(), None) });
    let mut flying = client.timestamp().boxed();
    let mut queued = client.timestamp().boxed();
    runtime.block_on(async {
        assert!((&mut flying).now_or_never().is_none());
        assert!((&mut queued).now_or_never().is_none());
    });
    let _ = source.wait_for(1).now_or_never();
    drop(runtime);
    drop(flying);
    assert_eq!(queued.now_or_never(), Some(Err(TsoError::Closed)));
}

/// A node may receive most of its timestamps on other ways, with answers of stores.
#[tokio::test(start_paused = true)]
async fn a_timestamp_from_elsewhere_counts_for_what_the_node_knows() {
    let gated = Gated::new(usize::MAX >> 3);
    let client = TsoClient::new(gated.clone());
    let first = client.timestamp().await.unwrap();
    let elsewhere = gated.issue(1_000).last;
    client.note(elsewhere);
    assert_eq!(client.newest().timestamp, elsewhere);
    client.note(first);
    assert_eq!(client.newest().timestamp, elsewhere);
    assert!(client.timestamp().await.unwrap() > elsewhere);
}

/// An oracle that is far away, and which may be out of order.
struct Far {
    last: Mutex<Timestamp>,
    is_failing: AtomicBool,
    requests: AtomicU32,
    in_flight: AtomicU32,
    most_in_flight: AtomicU32,
}

const ONE_WAY: Duration = Duration::from_millis(14);

impl TsoSource for Far {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        async move {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            let _in_flight = InFlight(&self.in_flight);
            self.most_in_flight.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(ONE_WAY).await;
            if self.is_failing.load(Ordering::SeqCst) {
                return Err(TsoError::Unavailable("out of order".into()));
            }
            let range = {
                let mut last = self.last.lock();
                *last = Timestamp::from_raw(last.raw() + u64::from(count));
                TsRange { last: *last, count }
            };
            tokio::time::sleep(ONE_WAY).await;
            Ok(range)
        }
        .boxed()
    }
}

fn far() -> Arc<Far> {
    Arc::new(Far {
        last: Mutex::default(),
        is_failing: AtomicBool::new(false),
        requests: AtomicU32::new(0),
        in_flight: AtomicU32::new(0),
        most_in_flight: AtomicU32::new(0),
    })
}

/// A caller waits for one round trip and the spacing, whoever else asks, and the spacing bounds the rate of requests.
#[tokio::test(start_paused = true)]
async fn far_from_the_oracle_a_caller_waits_for_little_more_than_one_round_trip() {
    let source = far();
    let options = TsoClientOptions { spacing: Duration::from_millis(2), prompt: 0, ..TsoClientOptions::default() };
    let client = TsoClient::with_options(source.clone(), options, None);
    let mut callers = Vec::new();
    for _ in 0..1_000 {
        let client = client.clone();
        callers.push(tokio::spawn(async move {
            let called = now();
            let timestamp = client.timestamp().await.unwrap();
            (timestamp, now().duration_since(called))
        }));
        // Tokio's least.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let answers: Vec<_> = join_all(callers).await.into_iter().map(Result::unwrap).collect();
    let distinct: HashSet<_> = answers.iter().map(|(timestamp, _)| *timestamp).collect();
    assert_eq!(distinct.len(), 1_000);
    let longest = answers.iter().map(|(_, waited)| *waited).max().unwrap();
    assert!(longest <= 2 * ONE_WAY + Duration::from_millis(4), "{longest:?}");
    assert!(source.requests.load(Ordering::SeqCst) <= 500 + 20, "{:?}", source.requests);
    assert!(source.most_in_flight.load(Ordering::SeqCst) > 1);
}

/// Few callers of a far oracle wait for one round trip and nothing else. Many share requests.
#[tokio::test(start_paused = true)]
async fn few_callers_of_a_far_oracle_wait_for_one_round_trip() {
    let source = far();
    let client = TsoClient::with_options(source.clone(), TsoClientOptions::default(), None);
    client.timestamp().await.unwrap();
    let timed = |client: TsoClient| async move {
        let called = now();
        client.timestamp().await.unwrap();
        now().duration_since(called)
    };
    let few = join_all((0..16).map(|_| timed(client.clone()))).await;
    assert_eq!(few, [2 * ONE_WAY; 16]);
    assert_eq!(source.requests.load(Ordering::SeqCst), 17);
    let many = join_all((0..1_000).map(|_| timed(client.clone()))).await;
    assert!(many.iter().all(|waited| *waited <= 2 * ONE_WAY + Duration::from_millis(2)), "{:?}", many.iter().max());
    assert_eq!(source.requests.load(Ordering::SeqCst), 17 + 16 + 1, "the others share one");
}

/// While the oracle does not answer, callers do not add to its requests.
#[tokio::test(start_paused = true)]
async fn while_requests_fail_one_at_a_time_is_retried() {
    let source = far();
    let client = TsoClient::with_options(source.clone(), TsoClientOptions::default(), None);
    source.is_failing.store(true, Ordering::SeqCst);
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.timestamp().await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    source.most_in_flight.store(0, Ordering::SeqCst);
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.timestamp().await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(source.most_in_flight.load(Ordering::SeqCst) <= 2, "{:?}", source.most_in_flight);
    source.is_failing.store(false, Ordering::SeqCst);
    first.await.unwrap().unwrap();
    assert!(join_all(callers).await.into_iter().all(|answer| answer.unwrap().is_ok()));
}
