//! Links over real sockets: answers, cancels, deadlines, deaths and stops.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::future::join_all;
use link::hello::{Hello, VERSION, WELCOME_BYTES, Welcome};
use link::{
    CallError, CallerOptions, ClusterTag, Kind, LinkMetrics, LinkOptions, Links, PAYLOAD_BYTES_MAX, ServerOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{BYTES, CLUSTER, ECHO, GATED, LONG, Node, eventually, links, metrics};

fn number(n: u32) -> Bytes {
    n.to_be_bytes().to_vec().into()
}

/// Ten thousand at once: each gets its own answer, over one connection, and those that take long delay no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_share_one_connection() {
    const REQUESTS: u32 = 10_000;
    let node = Node::start().await;
    let counts = metrics();
    let links = links(&counts);
    let peer = links.peer(&node.address).unwrap();
    let calls = (0..REQUESTS).map(|n| {
        // Every tenth request waits on the other side.
        let (peer, kind) = (peer.clone(), if n % 10 == 0 { GATED } else { ECHO });
        tokio::spawn(async move { peer.call(kind, number(n), LONG).await })
    });
    let calls: Vec<_> = calls.collect();
    eventually("the other requests pass those that wait", || {
        node.gate.waiting() == 1_000 && calls.iter().filter(|call| call.is_finished()).count() == 9_000
    })
    .await;
    node.gate.permits.add_permits(1_000);
    for (n, answer) in (0..REQUESTS).zip(join_all(calls).await) {
        assert_eq!(answer.unwrap(), Ok(number(n)));
    }
    assert_eq!((counts.opened.get(), counts.requests.get()), (1, REQUESTS.into()));
    assert_eq!(node.metrics.spawned.get(), 1_000);
}

/// A link without probes, for tests that count frames.
fn unprobed(counts: &LinkMetrics) -> Links {
    let caller = CallerOptions { keep_alive: LONG, ..CallerOptions::default() };
    Links::new(LinkOptions { caller, ..LinkOptions::new(CLUSTER) }, counts.clone())
}

/// Callers, their link's task and the tasks of requests write at the same time. None of their messages stays behind:
/// without probes nothing else would send it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_leave_nothing_behind() {
    let node = Node::start().await;
    node.gate.permits.add_permits(usize::MAX >> 4);
    let links = unprobed(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let callers = (0..4).map(|caller: u32| {
        let peer = peer.clone();
        tokio::spawn(async move {
            for n in 0..3_000 {
                let kind = if n % 4 == caller { GATED } else { ECHO };
                assert_eq!(peer.call(kind, number(n), LONG).await, Ok(number(n)));
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// What is requested in one turn leaves in one frame, and so do its answers.
#[tokio::test]
async fn requests_of_one_turn_share_a_frame() {
    let node = Node::start().await;
    let counts = metrics();
    let links = unprobed(&counts);
    let peer = links.peer(&node.address).unwrap();
    for round in 1..=10 {
        let answers = join_all((0..60).map(|n| peer.call(ECHO, number(n), LONG))).await;
        assert!((0..60).zip(answers).all(|(n, answer)| answer == Ok(number(n))));
        assert_eq!((counts.sent_frames.get(), counts.sent_messages.get()), (round, 60 * round));
        assert_eq!((node.metrics.sent_frames.get(), node.metrics.sent_messages.get()), (round, 60 * round));
    }
}

/// One request at a time is one frame each way, and nothing else.
#[tokio::test]
async fn a_request_alone_is_one_frame_each_way() {
    let node = Node::start().await;
    let counts = metrics();
    let links = unprobed(&counts);
    let peer = links.peer(&node.address).unwrap();
    for n in 0..100 {
        assert_eq!(peer.call(ECHO, number(n), LONG).await, Ok(number(n)));
    }
    assert_eq!((counts.sent_frames.get(), counts.received_frames.get()), (100, 100));
    assert_eq!((node.metrics.sent_frames.get(), node.metrics.spawned.get()), (100, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_payloads_pass_and_short_ones_pass_them() {
    let node = Node::start().await;
    let links = unprobed(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let long: Bytes = (0..PAYLOAD_BYTES_MAX).map(|at| (at % 251) as u8).collect::<Vec<u8>>().into();
    let longs = join_all([peer.call(ECHO, long.clone(), LONG), peer.call(ECHO, long.clone(), LONG)]);
    let shorts = join_all((0..500).map(|n| peer.call(ECHO, number(n), LONG)));
    let (longs, shorts) = futures::join!(longs, shorts);
    assert!(longs.iter().all(|answer| answer.as_ref() == Ok(&long)));
    assert!((0..500).zip(shorts).all(|(n, answer)| answer == Ok(number(n))));

    let mut above = BytesMut::from(long.as_ref());
    above.put_u8(0);
    let refused = peer.call(ECHO, above.freeze(), LONG).await;
    assert!(matches!(refused, Err(CallError::Invalid(_))), "{refused:?}");
    let refused = peer.call(BYTES, number(PAYLOAD_BYTES_MAX as u32 + 1), LONG).await;
    assert!(matches!(refused, Err(CallError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn requests_of_unknown_kinds_are_refused() {
    let node = Node::start().await;
    let links = links(&metrics());
    let refused = links.peer(&node.address).unwrap().call(Kind::new(99), Bytes::new(), LONG).await;
    let why = "this node serves no requests of kind 99".to_owned();
    assert_eq!(refused, Err(CallError::Unreachable(why)));
}

/// The request is dropped on the other side when its caller goes away and when its time is up.
#[tokio::test]
async fn abandoned_requests_are_dropped_on_the_other_side() {
    let node = Node::start().await;
    let counts = metrics();
    let links = links(&counts);
    let peer = links.peer(&node.address).unwrap();
    let mut call = Box::pin(peer.call(GATED, number(1), LONG));
    assert!(futures::poll!(&mut call).is_pending());
    eventually("the request arrives", || node.gate.waiting() == 1).await;
    drop(call);
    eventually("the request is dropped", || node.gate.waiting() == 0).await;

    let lost = peer.call(GATED, number(2), Duration::from_millis(20)).await;
    assert_eq!(lost, Err(CallError::Lost("no answer within 20ms".to_owned())));
    eventually("the request is dropped", || node.gate.started() == 2 && node.gate.waiting() == 0).await;
    assert_eq!((counts.cancels.get(), counts.opened.get()), (2, 1));
    // The link goes on.
    assert_eq!(peer.call(ECHO, number(3), LONG).await, Ok(number(3)));
}

/// When a node dies its requests were sent; when it is dead they are not.
#[tokio::test]
async fn a_death_loses_what_was_sent_and_nothing_else() {
    let node = Node::start().await;
    let (address, gate) = (node.address.clone(), node.gate.clone());
    let links = links(&metrics());
    let peer = links.peer(&address).unwrap();
    let mut call = Box::pin(peer.call(GATED, number(1), LONG));
    assert!(futures::poll!(&mut call).is_pending());
    eventually("the request arrives", || gate.waiting() == 1).await;
    node.kill().await;
    let lost = call.await;
    assert!(matches!(lost, Err(CallError::Lost(_))), "{lost:?}");
    assert_eq!(gate.waiting(), 0, "nobody waits for it any more");
    for _ in 0..3 {
        let refused = peer.call(ECHO, number(2), LONG).await;
        assert!(matches!(refused, Err(CallError::Unreachable(_))), "{refused:?}");
    }
}

/// Callers that never pause, while the node dies and returns: every answer is right, every other outcome says what it
/// must, and the link is back by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_returns_under_load() {
    let mut node = Node::start().await;
    let address = node.address.clone();
    let counts = metrics();
    let links = links(&counts);
    let peer = links.peer(&address).unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let callers: Vec<_> = (0..32)
        .map(|caller: u32| {
            let (peer, stop) = (peer.clone(), stop.clone());
            tokio::spawn(async move {
                let mut answered = 0_u32;
                while !stop.is_cancelled() {
                    let payload = number(caller << 20 | answered);
                    match peer.call(ECHO, payload.clone(), LONG).await {
                        Ok(answer) => {
                            assert_eq!(answer, payload);
                            answered += 1;
                        }
                        Err(CallError::Lost(_) | CallError::Unreachable(_)) => tokio::task::yield_now().await,
                        Err(other) => panic!("{other}"),
                    }
                }
                answered
            })
        })
        .collect();
    for _ in 0..5 {
        let started = node.gate.started.clone();
        eventually("requests are served", || started.load(std::sync::atomic::Ordering::SeqCst) > 1_000).await;
        node.kill().await;
        node = Node::with(ServerOptions::new(CLUSTER), &address).await;
    }
    eventually("requests are served", || node.gate.started() > 1_000).await;
    stop.cancel();
    let answered: u32 = join_all(callers).await.into_iter().map(Result::unwrap).sum();
    assert!(answered > 6_000, "{answered}");
    assert_eq!((counts.opened.get(), counts.broken.get()), (6, 5));
}

/// A node that stops finishes what it has and refuses what comes.
#[tokio::test]
async fn a_node_that_stops_answers_what_it_has() {
    let node = Node::start().await;
    let links = unprobed(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let call = peer.call(GATED, number(1), LONG);
    let mut call = std::pin::pin!(call);
    assert!(futures::poll!(&mut call).is_pending());
    eventually("the request arrives", || node.gate.waiting() == 1).await;
    let mut stop = std::pin::pin!(node.server.stop(LONG));
    assert!(futures::poll!(&mut stop).is_pending());
    for _ in 0..20 {
        let refused = peer.call(ECHO, number(2), LONG).await;
        if refused.is_ok() {
            // It has not heard of the stop yet.
            tokio::task::yield_now().await;
            continue;
        }
        assert_eq!(refused, Err(CallError::Unreachable("the node is stopping".to_owned())));
    }
    assert!(futures::poll!(&mut stop).is_pending());
    node.gate.permits.add_permits(1);
    assert_eq!(call.await, Ok(number(1)));
    tokio::time::timeout(Duration::from_secs(20), stop).await.expect("the stop ends with the last answer");
    let refused = peer.call(ECHO, number(3), LONG).await;
    assert!(matches!(refused, Err(CallError::Unreachable(_))), "{refused:?}");
}

/// After its grace a stop drops what is left.
#[tokio::test]
async fn a_stop_ends_what_does_not_end() {
    let node = Node::start().await;
    let links = links(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let mut call = Box::pin(peer.call(GATED, number(1), LONG));
    assert!(futures::poll!(&mut call).is_pending());
    eventually("the request arrives", || node.gate.waiting() == 1).await;
    node.server.stop(Duration::from_millis(1)).await;
    assert_eq!(node.gate.waiting(), 0);
    let lost = call.await;
    assert!(matches!(lost, Err(CallError::Lost(_))), "{lost:?}");
}

/// A node with several addresses chooses the one that others see.
#[tokio::test]
async fn a_link_comes_from_the_address_that_was_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let from = |ip: &str| {
        let options = LinkOptions { connect_from: Some(ip.parse().unwrap()), ..LinkOptions::new(CLUSTER) };
        Links::new(options, metrics())
    };
    let links = from("127.0.0.9");
    let peer = links.peer(&address).unwrap();
    let call = tokio::spawn(async move { peer.call(ECHO, number(1), LONG).await });
    let (_stream, source) = listener.accept().await.unwrap();
    assert_eq!(source.ip().to_string(), "127.0.0.9");
    call.abort();
    let refused = from("::1").peer(&address).unwrap().call(ECHO, number(1), LONG).await;
    let Err(CallError::Unreachable(why)) = refused else { panic!("{refused:?}") };
    assert_eq!(why, format!("{address}: {address} has no address of ::1's family"));
}

/// The refusal reaches the error's text; the requests were not executed.
#[tokio::test]
async fn links_of_another_cluster_or_version_are_refused() {
    let node = Node::start().await;
    let foreign = Links::new(LinkOptions::new(ClusterTag::new(8)), metrics());
    let refused = foreign.peer(&node.address).unwrap().call(ECHO, number(1), LONG).await;
    let why = format!(
        "{}: this node belongs to cluster 0000000000000007, the request to cluster 0000000000000008",
        node.address
    );
    assert_eq!(refused, Err(CallError::Unreachable(why)));

    let hello = Hello { version: VERSION + 1, ..Hello::new(CLUSTER) };
    let mut newer = TcpStream::connect(&node.address).await.unwrap();
    newer.write_all(&hello.encode()).await.unwrap();
    let mut head = [0; WELCOME_BYTES];
    newer.read_exact(&mut head).await.unwrap();
    let len = Welcome::decode_head(&head, Hello::new(CLUSTER)).unwrap();
    let mut why = vec![0; len];
    newer.read_exact(&mut why).await.unwrap();
    assert_eq!(String::from_utf8(why).unwrap(), "link version 2 is not spoken here, 1 is");
    assert_eq!((node.gate.started(), node.metrics.refused.get()), (0, 2));
}

#[tokio::test]
async fn the_number_of_links_is_bounded() {
    let options = ServerOptions { links_max: 1, ..ServerOptions::new(CLUSTER) };
    let node = Node::with(options, "127.0.0.1:0").await;
    let (first, second) = (links(&metrics()), links(&metrics()));
    let call = async |links: &Links| links.peer(&node.address).unwrap().call(ECHO, number(1), LONG).await;
    assert!(call(&first).await.is_ok());
    let refused = call(&second).await;
    let Err(CallError::Unreachable(why)) = refused else { panic!("{refused:?}") };
    assert!(why.ends_with("the node has its maximum of links"), "{why}");
    // A link ends when its owner does.
    drop(first);
    eventually("the first link ends", || node.metrics.open.get() == 0).await;
}

/// Whoever asks for an address shares its link; an address that is closed begins anew.
#[tokio::test]
async fn an_address_has_one_link() {
    let node = Node::start().await;
    let counts = metrics();
    let links = links(&counts);
    for _ in 0..3 {
        assert!(links.peer(&node.address).unwrap().call(ECHO, number(1), LONG).await.is_ok());
    }
    assert_eq!(counts.opened.get(), 1);
    let old = links.peer(&node.address).unwrap();
    links.close(&node.address);
    let refused = old.call(ECHO, number(1), LONG).await;
    assert!(matches!(refused, Err(CallError::Unreachable(_))), "{refused:?}");
    assert!(links.peer(&node.address).unwrap().call(ECHO, number(1), LONG).await.is_ok());
    assert_eq!((counts.opened.get(), counts.broken.get()), (2, 0));
    for malformed in ["", "host", "host:", ":1", "host:port", "http://host:1", "a b:1", "host:70000"] {
        assert!(links.peer(malformed).is_err(), "{malformed:?}");
    }
}

/// A thread with a runtime of its own gets a link of its own. Its first request does not wait for that if the shared
/// one is open. The end of its runtime ends its link, and the requests on it, and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_with_its_own_runtime_has_its_own_link() {
    let node = Node::start().await;
    let counts = metrics();
    let links = links(&counts);
    let peer = links.peer(&node.address).unwrap();
    // The body of the test is polled on a thread of its own, but on the runtime that its tasks share.
    let shared = || {
        tokio::spawn({
            let peer = peer.clone();
            async move { peer.call(ECHO, number(1), LONG).await }
        })
    };
    assert!(shared().await.unwrap().is_ok());
    assert_eq!(counts.opened.get(), 1);
    let (own, asks) = (peer.clone(), counts.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert!(own.call(ECHO, number(2), LONG).await.is_ok());
            eventually("a link of its own", || asks.opened.get() == 2).await;
            assert!(own.call(ECHO, number(3), LONG).await.is_ok());
            runtime.spawn(async move { own.call(GATED, number(4), LONG).await });
        });
        runtime.shutdown_background();
    });
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap().unwrap();
    eventually("the end of its link", || counts.broken.get() == 1).await;
    assert!(shared().await.unwrap().is_ok());
    assert_eq!((counts.opened.get(), counts.broken.get()), (2, 1));
}

/// An idle link is probed and stays.
#[tokio::test(start_paused = true)]
async fn an_idle_link_is_kept() {
    let node = Node::with(ServerOptions::new(CLUSTER), "127.0.0.1:0").await;
    let counts = metrics();
    let links = Links::new(
        LinkOptions { connect_timeout: LONG, caller: CallerOptions::default(), ..LinkOptions::new(CLUSTER) },
        counts.clone(),
    );
    let peer = links.peer(&node.address).unwrap();
    assert!(peer.call(ECHO, number(1), LONG).await.is_ok());
    // Virtual time: the probes of ten seconds.
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Lets the sockets deliver what was written meanwhile.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }
    assert!(peer.call(ECHO, number(2), LONG).await.is_ok());
    assert_eq!((counts.opened.get(), counts.broken.get()), (1, 0));
    assert!(counts.sent_messages.get() >= 5, "{} messages", counts.sent_messages.get());
}
