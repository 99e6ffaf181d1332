//! The serving side at work: the links that other nodes opened to this one.
//!
//! [`crate::callee`] decides; this file reads, executes requests and writes. A request is polled once where it was
//! read: if it ends at once, it costs no task, and its answer shares a frame with those of the same read. Otherwise it
//! gets a task of its own, so a slow request delays no other.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::callee::{Action, Callee, CalleeOptions};
use crate::frame::FrameReader;
use crate::handshake;
use crate::hello::{ClusterTag, Hello, Welcome};
use crate::message::{Kind, Reason, Refused, Reply, RequestId};
use crate::metrics::LinkMetrics;
use crate::wire::{Frames, Input, Ready, Wire};

/// After so many messages of one link, its answers are written and other tasks get their turn.
const TURN: usize = 64;

/// Settings of the links that other nodes open.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// This node's cluster; links of others are refused.
    pub cluster: ClusterTag,
    /// The time for the handshake. Default 2 s.
    pub handshake_timeout: Duration,
    /// The most open links; further ones are refused. Default 1,024, minimum 1.
    pub links_max: usize,
    /// Limits and times of each link.
    pub callee: CalleeOptions,
}

impl ServerOptions {
    /// The defaults.
    pub fn new(cluster: ClusterTag) -> ServerOptions {
        ServerOptions {
            cluster,
            handshake_timeout: Duration::from_secs(2),
            links_max: 1024,
            callee: CalleeOptions::default(),
        }
    }
}

/// What a service does with a request.
pub enum Answer {
    /// It is done.
    Ready(Reply),
    /// It may wait. The future may be dropped at any time: the requesting side has gone away.
    Later(BoxFuture<'static, Reply>),
}

/// Executes the requests of one kind. Called on the network's tasks; must not block.
pub trait Service: Send + Sync + 'static {
    /// Executes a request. What cannot be decoded is refused as [`Reason::Malformed`].
    fn call(&self, payload: Bytes) -> Answer;
}

/// Serves links. Clones share the services, the limits and the stop.
#[derive(Clone)]
pub struct LinkServer {
    node: Arc<ServingNode>,
}

struct ServingNode {
    options: ServerOptions,
    services: BTreeMap<Kind, Arc<dyn Service>>,
    metrics: LinkMetrics,
    links: Semaphore,
    tasks: TaskTracker,
    stop: CancellationToken,
    kill: CancellationToken,
}

impl LinkServer {
    /// A server of these services.
    pub fn new(
        options: ServerOptions,
        services: impl IntoIterator<Item = (Kind, Arc<dyn Service>)>,
        metrics: LinkMetrics,
    ) -> LinkServer {
        let node = ServingNode {
            links: Semaphore::new(options.links_max),
            services: services.into_iter().collect(),
            options,
            metrics,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
        };
        LinkServer { node: Arc::new(node) }
    }

    /// Serves a new connection in a task of its own, from the handshake to its end.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn serve(&self, stream: TcpStream) {
        let node = Arc::clone(&self.node);
        let kill = node.kill.clone();
        self.node.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = kill.cancelled() => {}
                () = node.serve(stream) => {}
            }
        });
    }

    /// Stops: finishes the requests in flight, refuses further ones, and closes each link when all its answers have
    /// left. After `grace` closes what is left.
    pub async fn stop(&self, grace: Duration) {
        self.node.stop.cancel();
        self.node.tasks.close();
        if tokio::time::timeout(grace, self.node.tasks.wait()).await.is_err() {
            self.node.kill.cancel();
            self.node.tasks.wait().await;
        }
    }
}

impl ServingNode {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let peer = stream.peer_addr().map_or_else(|_| "an unknown address".to_owned(), |peer| peer.to_string());
        let permit = self.links.try_acquire();
        let objection = match &permit {
            Ok(_) if self.stop.is_cancelled() => Some("the node is stopping".to_owned()),
            Ok(_) => None,
            Err(_) => Some("the node has its maximum of links".to_owned()),
        };
        let shaken = self.shake_hands(&mut stream, objection);
        let shaken = tokio::time::timeout(self.options.handshake_timeout, shaken).await;
        match shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(None) => {}
            Ok(Some(why)) => {
                self.metrics.refused.inc();
                tracing::warn!(peer, why, "a link was refused");
                return;
            }
            Err(error) => {
                tracing::debug!(peer, %error, "a link was not opened");
                return;
            }
        }
        self.metrics.accepted.inc();
        let (link, input) = ServedLink::new(stream, Arc::clone(&self));
        let why = Arc::new(link).run(input).await;
        tracing::info!(peer, why, "a link from a node ended");
    }

    /// Reads the Hello and answers it. Returns why the link is refused.
    async fn shake_hands(&self, stream: &mut TcpStream, objection: Option<String>) -> io::Result<Option<String>> {
        let ours = Hello::new(self.options.cluster);
        let objection = match handshake::read_hello(stream, ours).await? {
            // What speaks another protocol could not read the answer.
            None => return Ok(Some("it does not begin with a handshake".to_owned())),
            Some(hello) => hello.objection(ours).or(objection),
        };
        let welcome = Welcome(objection.clone().map_or(Ok(()), Err));
        handshake::answer_hello(stream, ours, &welcome).await?;
        Ok(objection)
    }
}

/// One link while it is served. Dropping it drops its requests.
struct ServedLink {
    node: Arc<ServingNode>,
    wire: Wire,
    callee: Mutex<Callee<AbortHandle>>,
    /// Time zero of `callee`.
    epoch: Instant,
}

/// Ends the requests of a link whose task ends or is dropped.
struct EndOnDrop<'a>(&'a ServedLink);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.wire.close();
        abort_all(self.0.callee.lock().end());
    }
}

impl Frames for ServedLink {
    fn next_frame(&self, out: &mut BytesMut) -> usize {
        self.callee.lock().next_frame(out)
    }
}

impl ServedLink {
    fn new(stream: TcpStream, node: Arc<ServingNode>) -> (ServedLink, Input) {
        let (wire, input) = Wire::new(stream, node.metrics.wire());
        let callee = Mutex::new(Callee::new(node.options.callee, Duration::ZERO));
        (ServedLink { wire, callee, node, epoch: clock() }, input)
    }

    /// Serves until the link ends. Returns why.
    async fn run(self: Arc<Self>, mut input: Input) -> String {
        let _end = EndOnDrop(&self);
        let mut reader = FrameReader::default();
        let mut timer = pin!(tokio::time::sleep_until(self.epoch + self.callee.lock().next_timer()));
        let mut stop = pin!(self.node.stop.cancelled());
        let mut stopping = false;
        loop {
            let (reads, drained) = {
                let callee = self.callee.lock();
                (callee.takes_input(), callee.is_drained())
            };
            if drained && self.wire.is_idle() {
                return "the node is stopping".to_owned();
            }
            let ready = poll_fn(|cx| {
                if !stopping && stop.as_mut().poll(cx).is_ready() {
                    stopping = true;
                    return Poll::Ready(Ready::default());
                }
                self.wire.poll_ready(cx, timer.as_mut(), reads.then_some((&mut input, reader.buffer())))
            })
            .await;
            if stopping {
                self.callee.lock().stop();
            }
            if let Some(Err(error)) = ready.read {
                return error.to_string();
            }
            if ready.timer
                && let Some(why) = self.on_timer(timer.as_mut())
            {
                return why.to_owned();
            }
            if ready.rung {
                // The answers of the other ready tasks share the frame.
                tokio::task::yield_now().await;
            }
            if let Err(why) = self.execute_received(&mut reader).await {
                return why;
            }
            if let Some(error) = self.wire.take_failure() {
                return error.to_string();
            }
            if self.callee.lock().is_overrun() {
                return "the node does not read its answers".to_owned();
            }
        }
    }

    /// Executes the requests that have been read and writes what is answered, turn by turn.
    async fn execute_received(self: &Arc<Self>, reader: &mut FrameReader) -> Result<(), String> {
        loop {
            let frames = reader.frames();
            let mut messages = 0;
            while messages < TURN
                && self.callee.lock().takes_input()
                && let Some(message) = reader.next_message().map_err(|error| error.to_string())?
            {
                messages += 1;
                let action = self.callee.lock().received(self.now(), message)?;
                match action {
                    Action::None => {}
                    Action::Drop(handle) => handle.abort(),
                    Action::Start { id, kind, payload } => self.start(id, kind, payload),
                }
            }
            self.node.metrics.received_frames.inc_by(reader.frames() - frames);
            self.wire.flush(self.as_ref());
            if messages < TURN {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    fn start(self: &Arc<Self>, id: RequestId, kind: Kind, payload: Bytes) {
        let answer = match self.node.services.get(&kind) {
            Some(service) => service.call(payload),
            None => {
                let why = format!("this node serves no requests of kind {kind}");
                Answer::Ready(Err(Refused { reason: Reason::UnknownKind, why }))
            }
        };
        let mut later = match answer {
            Answer::Ready(reply) => return self.callee.lock().answered(id, reply),
            Answer::Later(later) => later,
        };
        if let Some(reply) = (&mut later).now_or_never() {
            return self.callee.lock().answered(id, reply);
        }
        self.node.metrics.spawned.inc();
        let link = Arc::clone(self);
        let task = tokio::spawn(async move {
            let reply = later.await;
            link.answer(id, reply);
        });
        if let Some(ended) = self.callee.lock().started(id, task.abort_handle()) {
            ended.abort();
        }
    }

    /// Queues the answer of a request that ended in its own task, and has it written.
    fn answer(&self, id: RequestId, reply: Reply) {
        let is_last = {
            let mut callee = self.callee.lock();
            callee.answered(id, reply);
            callee.in_flight() == 0
        };
        // Others may end now too: the link's task collects their answers. It also ends a link that is stopping.
        if is_last {
            self.wire.flush(self);
        }
        if !is_last || self.node.stop.is_cancelled() {
            self.wire.ring();
        }
    }

    fn on_timer(&self, mut timer: Pin<&mut Sleep>) -> Option<&'static str> {
        let mut callee = self.callee.lock();
        let tick = callee.timer(self.now(), self.wire.is_blocked());
        timer.as_mut().reset(self.epoch + callee.next_timer());
        drop(callee);
        abort_all(tick.expired);
        tick.dead.then_some("the node is silent or does not read its answers")
    }

    fn now(&self) -> Duration {
        clock().duration_since(self.epoch)
    }
}

fn abort_all(requests: Vec<AbortHandle>) {
    requests.iter().for_each(AbortHandle::abort);
}

#[expect(clippy::disallowed_methods, reason = "the link is an edge; its clock is read at this place only")]
fn clock() -> Instant {
    Instant::now()
}
