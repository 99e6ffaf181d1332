//! Sends a snapshot file in chunks, under flow control and the common rate limit, on its own connection.
//!
//! A receiver that has the file already answers to its announcement, and the rest of it is not sent.
//!
//! What goes wrong is either the file's fault or that of the receiver and the way to it ([`Delivery`]). Only the first
//! is a reason to build the file anew.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::context::{SendContext, describe, describe_status};
use super::proto::{SnapshotStart, wire};
use crate::ports::{Delivery, DeliveryDone, RaftMessage};
use crate::snapshot::SnapshotKey;

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;

/// Reports once what became of a snapshot; [`Delivery::Busy`] if it is dropped unreported.
pub(super) struct DeliveryReport(Option<DeliveryDone>);

impl DeliveryReport {
    /// Wraps the caller's callback.
    pub(super) fn new(done: DeliveryDone) -> DeliveryReport {
        DeliveryReport(Some(done))
    }

    fn report(mut self, delivery: Delivery) {
        if let Some(done) = self.0.take() {
            done(delivery);
        }
    }
}

impl Drop for DeliveryReport {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Delivery::Busy);
        }
    }
}

/// Why a snapshot was not delivered.
#[derive(Debug, thiserror::Error)]
enum Undelivered {
    /// The receiver, or the way to it, is at fault.
    #[error("{0}")]
    Busy(String),
    /// The file is at fault.
    #[error("the file is damaged: {0}")]
    Damaged(String),
}

impl Undelivered {
    fn busy(what: impl ToString) -> Undelivered {
        Undelivered::Busy(what.to_string())
    }
}

impl From<Status> for Undelivered {
    /// The receiver's answer. It verifies the whole file, and says `DataLoss` of a damaged one only.
    fn from(status: Status) -> Undelivered {
        match status.code() {
            Code::DataLoss => Undelivered::Damaged(describe_status(&status)),
            _ => Undelivered::Busy(describe_status(&status)),
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
    done.report(match result {
        Ok(()) => Delivery::Delivered,
        Err(Undelivered::Busy(_)) => Delivery::Busy,
        Err(Undelivered::Damaged(_)) => Delivery::Damaged,
    });
}

async fn send(context: &Arc<SendContext>, message: RaftMessage, key: SnapshotKey) -> Result<(), Undelivered> {
    let Ok(_waiting) = context.waiting.try_acquire() else {
        return Err(Undelivered::busy("too many snapshots wait to be sent"));
    };
    let _sending = context.sending.acquire().await.map_err(Undelivered::busy)?;
    let store = message.to.store;
    let files = context.files.clone();
    let size = blocking(move || files.size(key)).await?;
    let start = SnapshotStart { message, key, size }.encode(context.options.hello(store));
    let endpoint = context.endpoint(store).map_err(Undelivered::Busy)?;
    let channel = endpoint.connect().await.map_err(|error| Undelivered::Busy(describe(&error)))?;
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
            answer.map_err(|_| Undelivered::busy("no answer in time"))?
        }
    };
    Ok(ended.map(|_| ())?)
}

/// Sends the announcement and then the file. If the call ends early, returns without an error: the call's status says
/// more.
async fn feed(
    context: &Arc<SendContext>,
    start: wire::SnapshotStart,
    key: SnapshotKey,
    chunks: mpsc::Sender<wire::SnapshotChunk>,
) -> Result<(), Undelivered> {
    let mut chunk = wire::SnapshotChunk { start: Some(start), data: Vec::new().into() };
    let mut offset = 0;
    loop {
        let sent = tokio::time::timeout(context.options.snapshot_stall, chunks.send(chunk)).await;
        if sent.map_err(|_| Undelivered::busy("no progress in time"))?.is_err() {
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

/// Reads the file on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> engine::store::Result<T> + Send + 'static,
) -> Result<T, Undelivered> {
    let result = tokio::task::spawn_blocking(work).await.map_err(Undelivered::busy)?;
    result.map_err(|error| match Delivery::of_unreadable(&error) {
        Delivery::Damaged => Undelivered::Damaged(error.to_string()),
        Delivery::Busy | Delivery::Delivered => Undelivered::busy(error),
    })
}

#[cfg(test)]
mod tests;
