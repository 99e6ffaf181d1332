//! The task that sends the queue of one lane to a store: connects, says Hello, streams frames, and starts again after
//! a failure.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::context::{SendContext, describe, describe_status, now};
use super::lane_kind::LaneKind;
use super::metrics::DropReason;
use super::pacing::Backoff;
use super::proto::{encode_message, wire};
use super::queue::Queue;
use crate::region::StoreId;

/// Frames between queue and stream: one being sent, one ready.
const FRAMES_AHEAD: usize = 2;

/// Runs the lane until the transport is dropped.
pub(super) async fn run(
    context: Arc<SendContext>,
    queue: Arc<Queue>,
    (store, kind): (StoreId, LaneKind),
    mut stop: watch::Receiver<()>,
) {
    tokio::select! {
        _ = stop.changed() => {}
        () = drive(&context, &queue, store, kind) => {}
    }
    queue.close();
}

/// Connects whenever messages are queued. During the backoff the queue is closed, so sends are refused and the sender
/// learns that the store is unreachable.
async fn drive(context: &SendContext, queue: &Queue, store: StoreId, kind: LaneKind) {
    let options = &context.options;
    let seed = options.jitter_seed ^ (store.get() * 2 + kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut backoff = Backoff::new(options.backoff_floor, options.backoff_cap, seed);
    loop {
        queue.wait().await;
        let began = now();
        let failure = connection(context, queue, store).await;
        let dropped = queue.close();
        context.metrics.connection_failures.inc();
        context.metrics.drop_messages(DropReason::Disconnected, dropped);
        // A connection that lasted resets the backoff; one that was refused right after connecting does not.
        if now().duration_since(began) > options.backoff_cap {
            backoff.reset();
        }
        let pause = backoff.next();
        tracing::info!(%store, lane = kind.label(), %failure, dropped, ?pause, "connection to a store ended");
        tokio::time::sleep(pause).await;
        queue.reopen();
    }
}

/// Runs one connection. Returns why it ended.
async fn connection(context: &SendContext, queue: &Queue, store: StoreId) -> String {
    let channel = match context.endpoint(store) {
        Ok(endpoint) => endpoint.connect().await,
        Err(failure) => return failure,
    };
    let channel = match channel {
        Ok(channel) => channel,
        Err(error) => return describe(&error),
    };
    let mut client = wire::raft_transport_client::RaftTransportClient::new(channel)
        .max_encoding_message_size(context.options.max_frame_bytes);
    let (frames, outgoing) = mpsc::channel(FRAMES_AHEAD);
    let call = client.messages(ReceiverStream::new(outgoing));
    tokio::pin!(call);
    let pump = pump(context, queue, store, frames);
    tokio::pin!(pump);
    // The pump ends because the call dropped its half, so the call's result is available at once or soon.
    let ended = tokio::select! {
        ended = &mut call => Some(ended),
        () = &mut pump => tokio::time::timeout(Duration::from_secs(1), call).await.ok(),
    };
    match ended {
        Some(Ok(_)) => "closed by the store".to_owned(),
        Some(Err(status)) => describe_status(&status),
        None => "stream broke".to_owned(),
    }
}

/// Moves queued messages into frames, as fast as the stream accepts them.
async fn pump(context: &SendContext, queue: &Queue, store: StoreId, frames: mpsc::Sender<wire::MessageFrame>) {
    let hello = wire::MessageFrame { hello: Some(context.options.hello(store)), messages: Vec::new() };
    if frames.send(hello).await.is_err() {
        return;
    }
    let limit = context.options.frame_bytes.min(context.options.max_message_bytes());
    loop {
        queue.wait().await;
        // Reserves a place first: while the stream is blocked, the messages stay in the bounded queue.
        let Ok(permit) = frames.reserve().await else { return };
        let messages: Vec<wire::RaftMessage> = queue.take(limit).iter().map(encode_message).collect();
        if !messages.is_empty() {
            context.metrics.sent_frames.inc();
            context.metrics.sent_messages.inc_by(messages.len() as u64);
            permit.send(wire::MessageFrame { hello: None, messages });
        }
    }
}
