//! The receiving side: accepts the streams of messages of other stores (`receiver`), and serves the gRPC service for
//! snapshots.
//!
//! Streams are independent. Each starts with a Hello for this cluster and this store. A message that cannot be decoded,
//! is for another store or exceeds a limit ends its stream; the sender then reconnects.
//!
//! A snapshot file is received once. A sender may have given up on a receiver whose disk is slow, and announce the file
//! again: while it is still being verified, the announcement is refused, and once it is here, it is not received again.
//! Its size is limited by the disk only. `DATA_LOSS` says that the file itself is damaged and is to be built anew;
//! every other status says that it may be sent again later.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::store::StoreError;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tonic::{Request, Response, Status, Streaming};

use super::cluster_id::ClusterId;
use super::metrics::{DropReason, TransportMetrics};
use super::options::TransportOptions;
use super::proto::wire::raft_transport_server::{RaftTransport, RaftTransportServer};
use super::proto::{Malformed, PROTOCOL, SnapshotStart, wire};
use super::receiver::{Inbox, Receiver};
use super::stream::Stores;
use crate::region::StoreId;
use crate::snapshot::{SnapshotFiles, SnapshotKey, SnapshotWriter};

/// The gRPC service, as the node's router takes it.
pub type TransportService = RaftTransportServer<TransportServer>;

/// Flow-control window of a stream in bytes: a few frames on a link with latency.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for a connection.
const CONNECTION_WINDOW: u32 = 8 << 20;

/// The most streams of messages at a time; further ones are refused. Two per store of the cluster are needed, and some
/// more while old connections are not known to be dead.
const STREAMS_MAX: usize = 1024;

/// See the module documentation. Clones serve the same store.
#[derive(Clone)]
pub struct TransportServer {
    receiver: Receiver,
    streams: Arc<Semaphore>,
    files: SnapshotFiles,
    receiving: Arc<Semaphore>,
    /// Snapshots being received.
    arriving: Arc<Mutex<BTreeSet<SnapshotKey>>>,
    stop: Arc<watch::Sender<bool>>,
}

impl TransportServer {
    /// Delivers messages to `inbox` and stores snapshots in `files`.
    pub fn new(
        options: TransportOptions,
        inbox: Arc<dyn Inbox>,
        files: SnapshotFiles,
        metrics: TransportMetrics,
    ) -> TransportServer {
        let receiving = Arc::new(Semaphore::new(options.snapshots_receiving.max(1)));
        let stop = Arc::new(watch::channel(false).0);
        let arriving = Arc::default();
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        let receiver = Receiver { options: Arc::new(options), inbox, metrics };
        TransportServer { receiver, streams, files, receiving, arriving, stop }
    }

    /// Receives the messages of a new connection in a task of its own, from the handshake to its end. Its first byte is
    /// [`FIRST_BYTE`](super::FIRST_BYTE).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn serve(&self, stream: TcpStream) {
        let (receiver, mut stop) = (self.receiver.clone(), self.stop.subscribe());
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        tokio::spawn(async move {
            let objection = permit.is_err().then(|| "the store has its maximum of streams".to_owned());
            let ended = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                ended = receiver.serve(stream, objection) => ended,
            };
            if let Err(why) = ended {
                receiver.metrics.refused_streams.inc();
                tracing::warn!(%why, "a stream of messages ended");
            }
        });
    }

    /// A gRPC server builder with the windows and keep-alive probes that long streams need. The node adds its services
    /// to it.
    pub fn builder(options: &TransportOptions) -> tonic::transport::Server {
        tonic::transport::Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keepalive_interval(Some(options.keep_alive))
            .http2_keepalive_timeout(Some(options.keep_alive))
            .tcp_nodelay(true)
    }

    /// The service with its decoding limit.
    pub fn service(&self) -> TransportService {
        RaftTransportServer::new(self.clone()).max_decoding_message_size(self.receiver.options.max_frame_bytes)
    }

    /// Ends all streams, present and future. A graceful stop of the gRPC server would otherwise wait for them.
    pub fn close(&self) {
        self.stop.send_replace(true);
    }

    /// Serves one snapshot until it ends or the server closes. Counts streams that end in an error.
    async fn guard<T>(&self, serve: impl Future<Output = Result<T, Status>>) -> Result<Response<T>, Status> {
        let mut stop = self.stop.subscribe();
        let result = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Err(Status::unavailable("the store is stopping")),
            result = serve => result,
        };
        if let Err(status) = &result {
            self.receiver.metrics.refused_streams.inc();
            tracing::warn!(code = ?status.code(), message = status.message(), "incoming stream ended");
        }
        result.map(Response::new)
    }

    /// Checks that the stream is of this cluster and for this store. Returns the sending store.
    fn check_hello(&self, hello: Option<wire::Hello>) -> Result<StoreId, Status> {
        let Some(hello) = hello else { return Err(Status::invalid_argument("stream begins without a Hello")) };
        if hello.protocol != PROTOCOL {
            let text = format!("protocol {} is not spoken here, {PROTOCOL} is", hello.protocol);
            return Err(Status::failed_precondition(text));
        }
        if hello.cluster_id != self.receiver.options.cluster.get() {
            let text = format!(
                "store {} belongs to cluster {}, store {} to cluster {}",
                hello.from_store,
                ClusterId::new(hello.cluster_id),
                self.receiver.options.store,
                self.receiver.options.cluster
            );
            return Err(Status::permission_denied(text));
        }
        if hello.to_store != self.receiver.options.store.get() {
            let text = format!("this is store {}, not store {}", self.receiver.options.store, hello.to_store);
            return Err(Status::failed_precondition(text));
        }
        Ok(StoreId::new(hello.from_store))
    }

    async fn serve_snapshot(&self, mut stream: Streaming<wire::SnapshotChunk>) -> Result<wire::SnapshotDone, Status> {
        let first = with_timeout(self.receiver.options.connect_timeout, stream.message()).await?;
        let start = first.and_then(|chunk| chunk.start);
        let Some(mut start) = start else { return Err(Status::invalid_argument("no snapshot announced")) };
        let from = self.check_hello(start.hello.take())?;
        let start = SnapshotStart::decode(start)?;
        Stores { from, to: self.receiver.options.store }.check(&start.message)?;
        let Some(arriving) = Arriving::begin(&self.arriving, start.key) else {
            return Err(Status::aborted("this store already receives the snapshot"));
        };
        let files = self.files.clone();
        if !blocking(move || Ok(files.contains(start.key))).await? {
            self.receive_file(&mut stream, &start, arriving).await?;
        }
        if self.receiver.inbox.deliver(&mut vec![start.message]) == 0 {
            self.receiver.metrics.drop_messages(DropReason::NotTaken, 1);
            return Err(Status::unavailable("the store did not take the message"));
        }
        Ok(wire::SnapshotDone {})
    }

    /// Receives a file, verifies it and makes it durable. `arriving` lasts until then, even if the sender gives up.
    async fn receive_file(
        &self,
        stream: &mut Streaming<wire::SnapshotChunk>,
        start: &SnapshotStart,
        arriving: Arriving,
    ) -> Result<(), Status> {
        let Ok(_receiving) = self.receiving.try_acquire() else {
            return Err(Status::resource_exhausted("this store already receives its maximum of snapshots"));
        };
        let (files, key) = (self.files.clone(), start.key);
        let mut writer = blocking(move || files.receive(key)).await?;
        let mut received = 0;
        while let Some(chunk) = with_timeout(self.receiver.options.snapshot_stall, stream.message()).await? {
            received += chunk.data.len() as u64;
            if chunk.start.is_some() {
                return Err(Status::invalid_argument("a second announcement"));
            }
            if received > start.size {
                return Err(Status::data_loss(format!("more than the {} bytes of the snapshot", start.size)));
            }
            writer = blocking(move || append(writer, &chunk.data)).await?;
        }
        if received != start.size {
            return Err(Status::data_loss(format!("received {received} of {} bytes of the snapshot", start.size)));
        }
        let finish = move || {
            let _arriving = arriving;
            writer.finish()
        };
        blocking(finish).await?;
        self.receiver.metrics.snapshots_received.inc();
        Ok(())
    }
}

/// A snapshot in `TransportServer::arriving`, until dropped.
struct Arriving {
    all: Arc<Mutex<BTreeSet<SnapshotKey>>>,
    key: SnapshotKey,
}

impl Arriving {
    /// `None` if the snapshot is arriving already.
    fn begin(all: &Arc<Mutex<BTreeSet<SnapshotKey>>>, key: SnapshotKey) -> Option<Arriving> {
        all.lock().insert(key).then(|| Arriving { all: Arc::clone(all), key })
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

#[tonic::async_trait]
impl RaftTransport for TransportServer {
    async fn snapshot(
        &self,
        request: Request<Streaming<wire::SnapshotChunk>>,
    ) -> Result<Response<wire::SnapshotDone>, Status> {
        self.guard(self.serve_snapshot(request.into_inner())).await
    }
}

impl From<Malformed> for Status {
    fn from(malformed: Malformed) -> Status {
        Status::invalid_argument(malformed.to_string())
    }
}

/// The next item of a stream, with a timeout.
async fn with_timeout<T>(limit: Duration, next: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    match tokio::time::timeout(limit, next).await {
        Ok(result) => result,
        Err(_) => Err(Status::deadline_exceeded("the stream made no progress in time")),
    }
}

fn append(mut writer: SnapshotWriter, bytes: &[u8]) -> Result<SnapshotWriter, StoreError> {
    writer.write(bytes)?;
    Ok(writer)
}

/// Runs blocking file I/O on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(StoreError::Corrupt(what))) => Err(Status::data_loss(what)),
        Ok(Err(error)) => Err(Status::internal(error.to_string())),
        Err(error) => Err(Status::internal(error.to_string())),
    }
}
