//! The other side breaks the protocol, is silent, or does not read. A link ends then, and nothing else does.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use link::message::{Message, RequestId};
use link::{CallError, CalleeOptions, CallerOptions, LinkOptions, Links, ServerOptions};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{BYTES, CLUSTER, ECHO, GATED, LONG, Node, RawNode, eventually, links, metrics};

fn request(id: u64, kind: link::Kind, payload: impl Into<Bytes>) -> Message {
    Message::Request { id: RequestId::new(id), kind, timeout_ms: 60_000, payload: payload.into() }
}

/// Whatever arrives, the node closes that connection and serves the others.
#[tokio::test]
async fn a_node_survives_breaches() {
    let node = Node::start().await;
    let links = links(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let oversized = (128_u32 << 10 | 1).to_be_bytes().to_vec();
    let breaches: [&[u8]; 4] = [b"garbage, and more of it", &oversized, &[0; 4], &[0, 0, 0, 1, 0]];
    for breach in breaches {
        let mut raw = node.raw().await;
        raw.stream.write_all(breach).await.unwrap();
        assert_eq!(raw.next().await, None, "{breach:?}");
        assert!(peer.call(ECHO, Bytes::new(), LONG).await.is_ok());
    }
    // Without a handshake it is not even answered.
    let mut stranger = TcpStream::connect(&node.address).await.unwrap();
    stranger.write_all(b"\xc0 but something else entirely").await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut stranger, &mut answer).await;
    assert_eq!(answer, b"");
    // An answer, or a number that is in use, from the requesting side.
    let (mut answers, mut twice) = (node.raw().await, node.raw().await);
    answers.send([Message::Pong]).await;
    assert_eq!(answers.next().await, None);
    twice.send([request(1, GATED, ""), request(1, GATED, "")]).await;
    assert_eq!(twice.next().await, None);
    eventually("its requests are dropped", || node.gate.started() == 5 && node.gate.waiting() == 0).await;
}

/// A frame torn by the end of the connection executes nothing of it; the frames before it are executed.
#[tokio::test]
async fn a_torn_frame_is_not_executed() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.send([request(1, ECHO, "first")]).await;
    assert_eq!(raw.next().await, Some(Message::Answer { id: RequestId::new(1), payload: "first".into() }));
    raw.stream.write_all(b"\0\0\0\x14\x01\0\0\0\0\0\0\x01\x02\x01\0\0\x03\x04\0\0\0\x02a").await.unwrap();
    drop(raw);
    eventually("the link ends", || node.metrics.open.get() == 0).await;
    assert_eq!(node.gate.started(), 1);
}

/// A client that requests and does not read: the node stops reading it, at a bound, and ends the link.
#[tokio::test]
async fn answers_that_nobody_reads_are_bounded() {
    let callee = CalleeOptions {
        answer_bytes_pause: 1 << 20,
        silence_max: Duration::from_millis(200),
        ..CalleeOptions::default()
    };
    let node = Node::with(ServerOptions { callee, ..ServerOptions::new(CLUSTER) }, "127.0.0.1:0").await;
    let mut raw = node.raw().await;
    let mib = (1_u32 << 20).to_be_bytes().to_vec();
    let flood = async {
        for first in 0..1_000 {
            raw.send((0..10).map(|n| request(first * 10 + n, BYTES, mib.clone()))).await;
        }
    };
    // The kernel's buffers take the small requests; only a few are executed.
    flood.await;
    eventually("the link is closed", || node.metrics.open.get() == 0).await;
    let started = node.gate.started();
    assert!(started < 40, "{started} answers of 1 MiB were made for a client that reads none");
}

/// More requests than a link may have are refused, each by itself.
#[tokio::test]
async fn requests_above_the_limit_are_refused_as_busy() {
    let callee = CalleeOptions { requests_max: 10, ..CalleeOptions::default() };
    let node = Node::with(ServerOptions { callee, ..ServerOptions::new(CLUSTER) }, "127.0.0.1:0").await;
    let counts = metrics();
    let links = links(&counts);
    let peer = links.peer(&node.address).unwrap();
    let calls: Vec<_> = (0..15)
        .map(|_| {
            let peer = peer.clone();
            tokio::spawn(async move { peer.call(GATED, Bytes::new(), LONG).await })
        })
        .collect();
    eventually("the others are refused", || calls.iter().filter(|call| call.is_finished()).count() == 5).await;
    node.gate.permits.add_permits(10);
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10);
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Err(CallError::Busy(_)))).count(), 5);
    assert_eq!(counts.busy.get(), 5);
}

/// A node that answers what nobody asked, or garbage: what was sent is lost, and the next request connects again.
#[tokio::test]
async fn a_client_survives_breaches() {
    let node = RawNode::start().await;
    let links = links(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let breaches: [&[u8]; 3] = [b"garbage, and more of it", b"\0\0\0\x0d\x02\0\0\0\0\0\0\xff\xff\0\0\0\0", b""];
    for breach in breaches {
        let misbehave = async {
            let mut raw = node.accept().await;
            let Some(Message::Request { id, .. }) = raw.next().await else { panic!("no request") };
            // A right answer first, so that it was heard from.
            raw.send([Message::Answer { id, payload: "fine".into() }]).await;
            assert!(matches!(raw.next().await, Some(Message::Request { .. })));
            raw.stream.write_all(breach).await.unwrap();
        };
        let call = async {
            assert_eq!(peer.call(ECHO, Bytes::new(), LONG).await, Ok("fine".into()));
            let lost = peer.call(ECHO, Bytes::new(), LONG).await;
            assert!(matches!(lost, Err(CallError::Lost(_))), "{lost:?}");
        };
        futures::join!(misbehave, call);
    }
}

/// An answer whose caller has gone away goes nowhere, and the request is told about.
#[tokio::test]
async fn an_answer_after_the_cancel_is_ignored() {
    let node = RawNode::start().await;
    let links = links(&metrics());
    let peer = links.peer(&node.address).unwrap();
    let mut first = Box::pin(peer.call(ECHO, "1".into(), LONG));
    assert!(futures::poll!(&mut first).is_pending());
    let mut raw = node.accept().await;
    let Some(Message::Request { id: first_id, .. }) = raw.next().await else { panic!("no request") };
    drop(first);
    assert_eq!(raw.next().await, Some(Message::Cancel(first_id)));
    let mut second = Box::pin(peer.call(ECHO, "2".into(), LONG));
    assert!(futures::poll!(&mut second).is_pending());
    let Some(Message::Request { id: second_id, .. }) = raw.next().await else { panic!("no request") };
    let answer = |id, payload: &'static str| Message::Answer { id, payload: payload.into() };
    raw.send([answer(first_id, "late"), answer(second_id, "right"), answer(second_id, "again")]).await;
    assert_eq!(second.await, Ok("right".into()));
    let third = async {
        let Some(Message::Request { id, .. }) = raw.next().await else { panic!("no request") };
        raw.send([answer(id, "third")]).await;
    };
    let (third, ()) = futures::join!(peer.call(ECHO, "3".into(), LONG), third);
    assert_eq!(third, Ok("third".into()), "the link goes on");
}

/// A node that does not read: what waits is bounded, and when it dies only what left completely counts as sent.
#[tokio::test]
async fn a_node_that_does_not_read_blocks_within_bounds() {
    const SIZE: usize = 1 << 20;
    let node = RawNode::start().await;
    let caller = CallerOptions { unsent_bytes_max: 8 << 20, ..CallerOptions::default() };
    let options = LinkOptions { caller, ..LinkOptions::new(CLUSTER) };
    let links = Links::new(options, metrics());
    let peer = links.peer(&node.address).unwrap();
    let call = || {
        let peer = peer.clone();
        tokio::spawn(async move { peer.call(ECHO, vec![1; SIZE].into(), LONG).await })
    };
    let mut calls = vec![call()];
    let raw = node.accept().await;
    // The kernel's buffers take some; then up to the bound wait, and one more is refused.
    let busy = loop {
        calls.push(call());
        tokio::time::sleep(Duration::from_millis(1)).await;
        if let Some(at) = calls.iter().position(|call| call.is_finished()) {
            break calls.remove(at).await.unwrap();
        }
        assert!(calls.len() < 200, "{} MiB wait", calls.len());
    };
    assert!(matches!(busy, Err(CallError::Busy(_))), "{busy:?}");
    drop(raw);
    let ended: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let lost = ended.iter().filter(|outcome| matches!(outcome, Err(CallError::Lost(_)))).count();
    let unreachable = ended.iter().filter(|outcome| matches!(outcome, Err(CallError::Unreachable(_)))).count();
    assert_eq!(lost + unreachable, ended.len(), "{ended:?}");
    assert!((7..=9).contains(&unreachable), "{unreachable} of {} were not sent", ended.len());
}

/// A node that falls silent, as after a power cut, is found by a probe.
#[tokio::test]
async fn a_silent_node_is_given_up() {
    let node = RawNode::start().await;
    let caller = CallerOptions {
        keep_alive: Duration::from_millis(10),
        keep_alive_timeout: Duration::from_millis(20),
        ..CallerOptions::default()
    };
    let links = Links::new(LinkOptions { caller, ..LinkOptions::new(CLUSTER) }, metrics());
    let peer = links.peer(&node.address).unwrap();
    let mut call = Box::pin(peer.call(ECHO, Bytes::new(), LONG));
    assert!(futures::poll!(&mut call).is_pending());
    let mut raw = node.accept().await;
    let lost = call.await;
    assert_eq!(lost, Err(CallError::Lost(format!("{}: no answer to a probe", node.address))));
    assert!(matches!(raw.next().await, Some(Message::Request { .. })));
    assert_eq!((raw.next().await, raw.next().await), (Some(Message::Ping), None));
}

/// A node that accepts and does not shake hands is given up after the time for connecting; nothing was sent.
#[tokio::test]
async fn a_node_that_does_not_shake_hands_is_unreachable() {
    let node = RawNode::start().await;
    let options = LinkOptions { connect_timeout: Duration::from_millis(20), ..LinkOptions::new(CLUSTER) };
    let links = Links::new(options, metrics());
    let peer = links.peer(&node.address).unwrap();
    let refused = peer.call(ECHO, Bytes::new(), LONG).await;
    assert_eq!(refused, Err(CallError::Unreachable(format!("{}: no connection within 20ms", node.address))));
}

/// A client that falls silent loses its link, and its requests are dropped.
#[tokio::test]
async fn a_silent_client_loses_its_link() {
    let callee = CalleeOptions { silence_max: Duration::from_millis(20), ..CalleeOptions::default() };
    let node = Node::with(ServerOptions { callee, ..ServerOptions::new(CLUSTER) }, "127.0.0.1:0").await;
    let mut raw = node.raw().await;
    raw.send([request(1, GATED, "")]).await;
    eventually("the request arrives", || node.gate.started() == 1).await;
    assert_eq!(raw.next().await, None);
    eventually("the request is dropped", || node.gate.waiting() == 0).await;
}
