//! The requesting side at work: a node's links to other nodes, each opened by the first request and again by the first
//! request after it broke.
//!
//! [`crate::caller`] decides; this file connects, reads, writes, and wakes the callers. A node has several links to
//! another one, its lanes: `lanes` says which thread uses which.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::caller::{CallError, Caller, CallerOptions, Outcome, Submission};
use crate::frame::FrameReader;
use crate::handshake;
use crate::hello::{ClusterTag, Hello};
use crate::lanes::{self, Lanes};
use crate::message::{Kind, RequestId};
use crate::metrics::LinkMetrics;
use crate::wire::{Frames, Input, Wire};

/// The most nodes with a link. Beyond it, those without a connection are forgotten.
const PEERS_MAX: usize = 256;

/// Settings of a node's links to others.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// This node's cluster; a node of another one refuses the link.
    pub cluster: ClusterTag,
    /// The time for opening a connection, handshake included. Default 1 s.
    pub connect_timeout: Duration,
    /// Limits and times of each link.
    pub caller: CallerOptions,
    /// The local address of the connections; by default the system chooses.
    pub connect_from: Option<IpAddr>,
}

impl LinkOptions {
    /// The defaults.
    pub fn new(cluster: ClusterTag) -> LinkOptions {
        LinkOptions {
            cluster,
            connect_timeout: Duration::from_secs(1),
            caller: CallerOptions::default(),
            connect_from: None,
        }
    }
}

/// An address that is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed address {0:?}: it is not of the form host:port")]
pub struct BadAddress(pub String);

/// All links of a node to others, by address. Dropping it closes them.
#[derive(Debug)]
pub struct Links {
    options: LinkOptions,
    metrics: LinkMetrics,
    peers: Mutex<HashMap<String, Peer>>,
}

impl Links {
    /// No links yet.
    pub fn new(options: LinkOptions, metrics: LinkMetrics) -> Links {
        Links { options, metrics, peers: Mutex::default() }
    }

    /// The node at `address`. Does not connect: the first request does. Everyone who asks for an address shares its
    /// links.
    ///
    /// # Errors
    ///
    /// [`BadAddress`] unless it is `host:port`.
    pub fn peer(&self, address: &str) -> Result<Peer, BadAddress> {
        let mut peers = self.peers.lock();
        if let Some(peer) = peers.get(address) {
            return Ok(peer.clone());
        }
        let valid = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '/') && port.parse::<u16>().is_ok()
        });
        if !valid {
            return Err(BadAddress(address.to_owned()));
        }
        if peers.len() >= PEERS_MAX {
            peers.retain(|_, peer| peer.lanes.iter().any(|link| !link.state.lock().caller.is_disconnected()));
        }
        let (to, options, metrics) = (address.to_owned(), self.options.clone(), self.metrics.clone());
        let open = Box::new(move || Arc::new(Link::new(&to, &options, &metrics)));
        let peer = Peer { address: address.into(), lanes: Arc::new(Lanes::new(open, Link::close)) };
        peers.insert(address.to_owned(), peer.clone());
        Ok(peer)
    }

    /// The node at `address` is there no more: ends its requests and closes its links. Asking for the address again
    /// begins anew.
    pub fn close(&self, address: &str) {
        let closed = self.peers.lock().remove(address);
        if let Some(peer) = closed {
            peer.lanes.close();
        }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.peers.get_mut().values().for_each(|peer| peer.lanes.close());
    }
}

/// Another node. Clones share its links.
#[derive(Clone)]
pub struct Peer {
    address: Arc<str>,
    lanes: Arc<Lanes<Link>>,
}

impl Peer {
    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and waits for its answer, for `timeout` at most. While a connection is being opened it waits for
    /// the end of that, which is [`LinkOptions::connect_timeout`] at most.
    ///
    /// # Errors
    ///
    /// See [`CallError`]. `Lost` means that the request may have been executed.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the request: it is not sent if it was not, and else the other node is told.
    pub async fn call(&self, kind: Kind, payload: Bytes, timeout: Duration) -> Outcome {
        let link = self.lane();
        let (waiter, answer) = oneshot::channel();
        let submitted = link.submit(Submission { kind, payload, timeout }, waiter);
        let id = submitted.inspect_err(|error| link.count_busy(error))?;
        let mut call = PendingCall { link, id, ended: false };
        let outcome = answer.await;
        call.ended = true;
        let outcome = outcome.unwrap_or_else(|_| Err(CallError::Lost("the runtime is shutting down".to_owned())));
        outcome.inspect_err(|error| link.count_busy(error))
    }

    /// The link for a request of this thread. While its own one is not open yet, the shared one if that is.
    fn lane(&self) -> &Arc<Link> {
        let own = self.lanes.link(lanes::of_this_thread());
        let shared = self.lanes.shared();
        if !own.is_open() && !Arc::ptr_eq(own, shared) && shared.is_open() {
            own.prepare();
            return shared;
        }
        own
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.address).finish()
    }
}

/// A request whose caller waits; withdraws it when dropped before its end.
struct PendingCall<'a> {
    link: &'a Link,
    id: RequestId,
    ended: bool,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.link.cancel(self.id);
        }
    }
}

type Waiter = oneshot::Sender<Outcome>;

struct LinkState {
    caller: Caller<Waiter>,
    wire: Option<Arc<Wire>>,
}

/// One lane to an address, over all its connections.
struct Link {
    address: String,
    hello: Hello,
    connect_timeout: Duration,
    connect_from: Option<IpAddr>,
    /// Time zero of `state.caller`.
    epoch: Instant,
    state: Mutex<LinkState>,
    /// Whether there is a connection. A hint: it may break at any moment.
    is_open: AtomicBool,
    metrics: LinkMetrics,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.address).finish()
    }
}

impl Frames for Link {
    fn next_frame(&self, out: &mut BytesMut) -> usize {
        self.state.lock().caller.next_frame(out)
    }
}

impl Link {
    fn new(address: &str, options: &LinkOptions, metrics: &LinkMetrics) -> Link {
        Link {
            address: address.to_owned(),
            hello: Hello::new(options.cluster),
            connect_timeout: options.connect_timeout,
            connect_from: options.connect_from,
            epoch: clock(),
            state: Mutex::new(LinkState { caller: Caller::new(options.caller), wire: None }),
            is_open: AtomicBool::new(false),
            metrics: metrics.clone(),
        }
    }

    fn now(&self) -> Duration {
        clock().duration_since(self.epoch)
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Opens a connection if there is none, for requests that follow.
    fn prepare(self: &Arc<Self>) {
        let connect = self.state.lock().caller.open(self.now());
        if connect {
            tokio::spawn(run(Arc::clone(self)));
        }
    }

    fn submit(self: &Arc<Self>, request: Submission, waiter: Waiter) -> Result<RequestId, CallError> {
        let now = self.now();
        let (accepted, wire) = {
            let mut state = self.state.lock();
            (state.caller.submit(now, request, waiter)?, state.wire.clone())
        };
        self.metrics.requests.inc();
        if accepted.connect {
            tokio::spawn(run(Arc::clone(self)));
        }
        if let Some(wire) = wire {
            if accepted.alone {
                wire.flush(self.as_ref());
            }
            if accepted.sooner || !accepted.alone {
                wire.ring();
            }
        }
        Ok(accepted.id)
    }

    fn cancel(&self, id: RequestId) {
        let (cancelled, wire) = {
            let mut state = self.state.lock();
            (state.caller.cancel(id), state.wire.clone())
        };
        if cancelled.is_some() {
            self.metrics.cancels.inc();
        }
        if let Some(wire) = wire {
            wire.ring();
        }
    }

    fn close(&self) {
        let wire = self.state.lock().wire.clone();
        let written = wire.as_ref().map_or(0, |wire| wire.close());
        let ended = self.state.lock().caller.close(written);
        end_all(ended);
        if let Some(wire) = wire {
            wire.ring();
        }
    }

    fn count_busy(&self, error: &CallError) {
        if matches!(error, CallError::Busy(_)) {
            self.metrics.busy.inc();
        }
    }

    /// Opens a connection and shakes hands.
    async fn open(&self) -> Result<TcpStream, String> {
        let connected = handshake::connect(&self.address, self.connect_from, self.hello, &[]);
        match tokio::time::timeout(self.connect_timeout, connected).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no connection within {:?}", self.connect_timeout)),
        }
    }

    /// Handles what has arrived. `Err` ends the link.
    fn receive(&self, reader: &mut FrameReader) -> Result<(), String> {
        let frames = reader.frames();
        let mut ended = Vec::new();
        let received = {
            let mut state = self.state.lock();
            loop {
                match reader.next_message() {
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error.to_string()),
                    Ok(Some(message)) => match state.caller.received(message) {
                        Ok(done) => ended.extend(done),
                        Err(why) => break Err(why.to_owned()),
                    },
                }
            }
        };
        self.metrics.received_frames.inc_by(reader.frames() - frames);
        for (waiter, outcome) in ended {
            // A caller that went away meanwhile has cancelled.
            let _ = waiter.send(outcome);
        }
        received
    }

    /// Serves one connection until it ends. Returns why.
    async fn serve(&self, wire: &Wire, mut input: Input) -> String {
        let mut reader = FrameReader::default();
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            // Only a link that was closed has no timer.
            let Some(next) = self.state.lock().caller.next_timer() else { return "closed".to_owned() };
            let at = self.epoch + next;
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            let ready = poll_fn(|cx| wire.poll_ready(cx, timer.as_mut(), Some((&mut input, reader.buffer())))).await;
            let received = match ready.read {
                Some(Ok(())) => self.receive(&mut reader),
                Some(Err(error)) => Err(error.to_string()),
                None => Ok(()),
            };
            if let Err(why) = received {
                return why;
            }
            if ready.rung {
                // What the other ready tasks send shares the frame.
                tokio::task::yield_now().await;
            }
            if ready.timer {
                let tick = self.state.lock().caller.timer(self.now());
                self.metrics.cancels.inc_by(tick.expired.len() as u64);
                end_all(tick.expired);
                if tick.dead {
                    return "no answer to a probe".to_owned();
                }
            }
            wire.flush(self);
            if let Some(error) = wire.take_failure() {
                return error.to_string();
            }
        }
    }
}

/// Opens a connection and serves it until it ends.
async fn run(link: Arc<Link>) {
    let mut run = Run { link: &link, wire: None, why: "the runtime is shutting down".to_owned() };
    let address = &link.address;
    let stream = match link.open().await {
        Ok(stream) => stream,
        Err(why) => {
            link.metrics.open_failures.inc();
            tracing::info!(address, why, "no link to a node");
            run.why = why;
            return;
        }
    };
    link.metrics.opened.inc();
    let (wire, input) = Wire::new(stream, link.metrics.wire());
    let wire = Arc::new(wire);
    {
        let mut state = link.state.lock();
        state.caller.connected(link.now());
        state.wire = Some(Arc::clone(&wire));
        link.is_open.store(true, Ordering::Relaxed);
    }
    run.wire = Some(Arc::clone(&wire));
    wire.flush(link.as_ref());
    run.why = link.serve(&wire, input).await;
}

/// A connection that is being opened or served. Its drop ends the connection and its requests, also if the runtime ends
/// before: the next request opens another one.
struct Run<'a> {
    link: &'a Arc<Link>,
    wire: Option<Arc<Wire>>,
    why: String,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let Run { link, wire, why } = self;
        let (now, address) = (link.now(), &link.address);
        let why = format!("{address}: {why}");
        let Some(wire) = wire.take() else {
            let ended = link.state.lock().caller.connect_failed(now, &why);
            return end_all(ended);
        };
        let written = wire.close();
        let ended = {
            let mut state = link.state.lock();
            state.wire = None;
            link.is_open.store(false, Ordering::Relaxed);
            if !state.caller.is_closed() {
                link.metrics.broken.inc();
            }
            state.caller.broken(now, written, &why)
        };
        tracing::info!(why, requests = ended.len(), "a link to a node ended");
        end_all(ended);
    }
}

fn end_all(ended: Vec<(Waiter, CallError)>) {
    for (waiter, error) in ended {
        let _ = waiter.send(Err(error));
    }
}

#[expect(clippy::disallowed_methods, reason = "the link is an edge; this is the only place where it reads a clock")]
fn clock() -> Instant {
    Instant::now()
}
