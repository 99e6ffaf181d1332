//! Sends a snapshot file in chunks, under flow control and the common rate limit, on its own connection.
//!
//! A receiver that has the file already answers to its announcement, and the rest of it is not sent.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::context::{SendContext, describe, describe_status};
use super::proto::{SnapshotStart, wire};
use crate::ports::RaftMessage;
use crate::snapshot::SnapshotKey;

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;

/// Reports once whether a snapshot was delivered; `false` if it is dropped unreported.
pub(super) struct DeliveryReport(Option<Box<dyn FnOnce(bool) + Send>>);

impl DeliveryReport {
    /// Wraps the caller's callback.
    pub(super) fn new(done: Box<dyn FnOnce(bool) + Send>) -> DeliveryReport {
        DeliveryReport(Some(done))
    }

    fn report(mut self, delivered: bool) {
        if let Some(done) = self.0.take() {
            done(delivered);
        }
    }
}

impl Drop for DeliveryReport {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(false);
        }
    }
}

/// Sends one snapshot and reports the result.
pub(super) async fn run(
    context: Arc<SendContext>,
    message: RaftMessage,
    key: SnapshotKey,
    done: DeliveryReport,
    mut stop: watch::Receiver<()>,
) {
    let store = message.to.store;
    let result = tokio::select! {
        _ = stop.changed() => return,
        result = send(&context, message, key) => result,
    };
    match &result {
        Ok(()) => context.metrics.snapshots_sent.inc(),
        Err(failure) => {
            context.metrics.snapshots_failed.inc();
            tracing::warn!(%store, snapshot = %key, %failure, "snapshot was not delivered");
        }
    }
    done.report(result.is_ok());
}

async fn send(context: &Arc<SendContext>, message: RaftMessage, key: SnapshotKey) -> Result<(), String> {
    let Ok(_waiting) = context.waiting.try_acquire() else {
        return Err("too many snapshots wait to be sent".to_owned());
    };
    let _sending = context.sending.acquire().await.map_err(|error| error.to_string())?;
    let store = message.to.store;
    let files = context.files.clone();
    let size = blocking(move || files.size(key)).await?;
    let start = SnapshotStart { message, key, size }.encode(context.options.hello(store));
    let channel = context.endpoint(store)?.connect().await.map_err(|error| describe(&error))?;
    let mut client = wire::raft_transport_client::RaftTransportClient::new(channel)
        .max_encoding_message_size(context.options.max_frame_bytes);
    let (chunks, outgoing) = mpsc::channel(1);
    let feeder = feed(context, start, key, chunks);
    let call = client.snapshot(ReceiverStream::new(outgoing));
    tokio::pin!(feeder, call);
    let ended = tokio::select! {
        ended = &mut call => ended,
        fed = &mut feeder => {
            fed?;
            // Everything is sent; the receiver still has to verify and sync the file.
            let answer = tokio::time::timeout(context.options.snapshot_answer_timeout(size), call).await;
            answer.map_err(|_| "no answer in time".to_owned())?
        }
    };
    ended.map(|_| ()).map_err(|status| describe_status(&status))
}

/// Sends the announcement and then the file. If the call ends early, returns without an error: the call's status says
/// more.
async fn feed(
    context: &Arc<SendContext>,
    start: wire::SnapshotStart,
    key: SnapshotKey,
    chunks: mpsc::Sender<wire::SnapshotChunk>,
) -> Result<(), String> {
    let mut chunk = wire::SnapshotChunk { start: Some(start), data: Vec::new().into() };
    let mut offset = 0;
    loop {
        let sent = tokio::time::timeout(context.options.snapshot_stall, chunks.send(chunk)).await;
        if sent.map_err(|_| "no progress in time".to_owned())?.is_err() {
            return Ok(());
        }
        let files = context.files.clone();
        let data = blocking(move || files.read(key, offset, CHUNK)).await?;
        if data.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(context.throttle(data.len())).await;
        context.metrics.snapshot_bytes.inc_by(data.len() as u64);
        offset += data.len() as u64;
        chunk = wire::SnapshotChunk { start: None, data: data.into() };
    }
}

/// Runs blocking file I/O on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> engine::store::Result<T> + Send + 'static,
) -> Result<T, String> {
    let result = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?;
    result.map_err(|error| error.to_string())
}
