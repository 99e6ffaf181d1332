//! One lane to a store: its queue, its connection, and the task that keeps the connection.
//!
//! Who writes: [`Lane::flush`], called by the store thread at the end of a turn, if the lane is connected and the
//! network takes it all; else the lane's task, which waits until the network takes more. `link::wire` sees to it that
//! one writes at a time and nobody waits for another. Frames leave in the order of the queue, whoever writes them.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use link::handshake;
use link::wire::{Frames, Input, Wire};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

use super::context::{SendContext, now};
use super::lane_kind::LaneKind;
use super::metrics::DropReason;
use super::options::TransportOptions;
use super::pacing::Backoff;
use super::queue::{PushError, Queue};
use super::stream::{self, KEPT_BYTES, PROBE_ANSWER, Stores};
use crate::ports::RaftMessage;
use crate::region::StoreId;

/// See the module documentation.
pub(super) struct Lane {
    state: Mutex<LaneState>,
    /// Wakes the task while the lane is not connected.
    queued: Notify,
    /// A probe is due.
    probe: AtomicBool,
    /// The messages of one frame. Locked by the one that writes, so it is always free.
    frame: Mutex<Vec<RaftMessage>>,
    frame_bytes: usize,
}

struct LaneState {
    queue: Queue,
    /// The connection, after its handshake.
    wire: Option<Arc<Wire>>,
}

impl Frames for Lane {
    fn next_frame(&self, out: &mut BytesMut) -> usize {
        if out.capacity() > KEPT_BYTES {
            *out = BytesMut::new();
        }
        if self.probe.swap(false, Ordering::AcqRel) {
            stream::put_probe(out);
        }
        let mut messages = self.frame.lock();
        self.state.lock().queue.take(self.frame_bytes, &mut messages);
        if !messages.is_empty() {
            stream::put_frame(out, &messages);
        }
        let count = messages.len();
        messages.clear();
        count
    }
}

impl Lane {
    /// A lane without a connection. [`run`] connects it.
    pub(super) fn new(options: &TransportOptions) -> Lane {
        let queue = Queue::new(options.queue_messages, options.queue_bytes);
        Lane {
            state: Mutex::new(LaneState { queue, wire: None }),
            queued: Notify::new(),
            probe: AtomicBool::new(false),
            frame: Mutex::default(),
            frame_bytes: options.frame_bytes.min(options.max_message_bytes()),
        }
    }

    /// Queues a message, which leaves with the next flush.
    pub(super) fn push(&self, message: RaftMessage) -> Result<(), PushError> {
        self.state.lock().queue.push(message)
    }

    /// Sends what is queued, as far as the network takes it; the task sends the rest. Never waits.
    pub(super) fn flush(&self) {
        let wire = {
            let state = self.state.lock();
            if state.queue.is_empty() {
                return;
            }
            state.wire.clone()
        };
        match wire {
            Some(wire) => wire.flush(self),
            None => self.queued.notify_one(),
        }
    }

    /// Waits until a message is queued.
    async fn wait(&self) {
        while self.state.lock().queue.is_empty() {
            self.queued.notified().await;
        }
    }

    /// The connection is there: flushes use it.
    fn connected(&self, wire: Arc<Wire>) {
        self.probe.store(false, Ordering::Release);
        self.state.lock().wire = Some(wire);
    }

    /// There is no connection: drops what is queued and refuses messages. Returns how many were dropped.
    fn close(&self) -> usize {
        let (wire, dropped) = {
            let mut state = self.state.lock();
            (state.wire.take(), state.queue.close())
        };
        if let Some(wire) = wire {
            // A flush that has it still writes nothing more.
            wire.close();
        }
        dropped.len()
    }
}

/// Runs the lane until the transport is dropped.
pub(super) async fn run(
    context: Arc<SendContext>,
    lane: Arc<Lane>,
    (store, kind): (StoreId, LaneKind),
    mut stop: watch::Receiver<()>,
) {
    tokio::select! {
        _ = stop.changed() => {}
        () = drive(&context, &lane, store, kind) => {}
    }
    lane.close();
}

/// Connects whenever messages are queued. During the backoff the queue is closed, so sends are refused and the sender
/// learns that the store is unreachable.
async fn drive(context: &SendContext, lane: &Lane, store: StoreId, kind: LaneKind) {
    let options = &context.options;
    let seed = options.jitter_seed ^ (store.get() * 2 + kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut backoff = Backoff::new(options.backoff_floor, options.backoff_cap, seed);
    loop {
        lane.wait().await;
        let began = now();
        let failure = connection(context, lane, store).await;
        let dropped = lane.close();
        context.metrics.connection_failures.inc();
        context.metrics.drop_messages(DropReason::Disconnected, dropped);
        // A connection that lasted resets the backoff; one that was refused right after connecting does not.
        if now().duration_since(began) > options.backoff_cap {
            backoff.reset();
        }
        let pause = backoff.next();
        tracing::info!(%store, lane = kind.label(), %failure, dropped, ?pause, "connection to a store ended");
        tokio::time::sleep(pause).await;
        lane.state.lock().queue.reopen();
    }
}

/// Runs one connection. Returns why it ended.
async fn connection(context: &SendContext, lane: &Lane, store: StoreId) -> String {
    let limit = context.options.connect_timeout;
    let stream = match tokio::time::timeout(limit, connect(context, store)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(why)) => return why,
        Err(_) => return format!("no connection within {limit:?}"),
    };
    let (wire, input) = Wire::new(stream, context.metrics.wire());
    let wire = Arc::new(wire);
    lane.connected(Arc::clone(&wire));
    wire.flush(lane);
    serve(lane, &wire, input, context.options.keep_alive).await
}

/// Opens a connection to the store's current address.
async fn connect(context: &SendContext, store: StoreId) -> Result<TcpStream, String> {
    let address = context.address(store)?;
    let stores = Stores { from: context.options.store, to: store };
    let options = &context.options;
    let connected = handshake::connect(&address, options.connect_from, stream::hello(options), &stores.encode()).await;
    connected.unwrap_or_else(|error| Err(error.to_string()))
}

/// Writes what flushes leave, and probes the store. Returns why the connection ended.
async fn serve(lane: &Lane, wire: &Wire, mut input: Input, keep_alive: Duration) -> String {
    let mut answers = BytesMut::with_capacity(64);
    let mut timer = pin!(tokio::time::sleep(keep_alive));
    let mut probing = false;
    loop {
        answers.clear();
        let ready = poll_fn(|cx| wire.poll_ready(cx, timer.as_mut(), Some((&mut input, &mut answers)))).await;
        match ready.read {
            Some(Ok(())) if probing && *answers == [PROBE_ANSWER] => probing = false,
            Some(Ok(())) => return "it does not answer as a store does".to_owned(),
            Some(Err(error)) => return error.to_string(),
            None => {}
        }
        if ready.timer {
            if probing {
                return "no answer to a probe".to_owned();
            }
            probing = true;
            lane.probe.store(true, Ordering::Release);
            timer.as_mut().reset(now() + keep_alive);
        }
        wire.flush(lane);
        if let Some(error) = wire.take_failure() {
            return error.to_string();
        }
    }
}
