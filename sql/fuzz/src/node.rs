//! A node over a cluster in memory, without sockets.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use kv::client::Client;
use kv::memory::MemoryCluster;
use prometheus::Registry;
use sql::catalog::{Catalog, CatalogConfig};
use sql::server::{AdvisoryConfig, SqlConfig, SqlMetrics, SqlServer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};
use tso::TsoClient;
use txn::Database;

use crate::program;

/// No session of an input runs longer. An input may raise `statement_timeout`, so the session is dropped then.
const PATIENCE: Duration = Duration::from_secs(3);

/// A time that never moves: 2026-01-02 03:04:05 UTC, in microseconds.
const NOW: i64 = 1_767_323_045_000_000;

/// A node with an empty database.
pub struct FuzzNode {
    runtime: Runtime,
    server: Arc<SqlServer>,
    metrics: Registry,
}

impl FuzzNode {
    pub fn start() -> FuzzNode {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let entered = runtime.enter();
        let cluster = MemoryCluster::new();
        let tso = TsoClient::new(cluster.tso());
        let db = Database::new(Client::new(Arc::new(cluster)), tso);
        // Leases are renewed by the statement that finds them over.
        let renew_interval = Duration::from_secs(3_600);
        let catalog =
            CatalogConfig { renew_interval, drain_grace: Duration::from_millis(1), ..CatalogConfig::default() };
        let advisory = AdvisoryConfig { renew_interval, ..AdvisoryConfig::default() };
        let config = SqlConfig { catalog, advisory, ..SqlConfig::default() };
        let metrics = Registry::new();
        let server = SqlServer::with_clock(db, config, SqlMetrics::new(&metrics).unwrap(), || NOW);
        drop(entered);
        FuzzNode { runtime, server, metrics }
    }

    /// A node whose database has the objects of a script.
    pub fn with(script: &str) -> FuzzNode {
        let node = FuzzNode::start();
        let replies = node.serve([[program::login().as_slice(), &program::query(script)].concat()]);
        assert!(replies.is_some_and(|replies| !replies.windows(6).any(|bytes| bytes == b"SERROR")), "the script fails");
        node
    }

    /// The catalog, as a session of the database `postgres` sees it.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.server.newest_catalog().expect("a statement has run")
    }

    /// The bytes that the server sends to a client that sends these pieces and then closes its side. `None` if that
    /// takes too long.
    ///
    /// # Panics
    /// If the session does.
    pub fn serve(&self, pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<Vec<u8>> {
        let sent = Sent { pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(), is_ready: true };
        self.serve_from(Box::new(sent))
    }

    /// The same for a client whose bytes come from `reader`.
    pub fn serve_from(&self, reader: Box<dyn AsyncRead + Send + Unpin>) -> Option<Vec<u8>> {
        let received = Received::default();
        let session = self.server.serve_streams(reader, Box::new(received.clone()));
        let ended = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, session).await.is_ok() });
        assert_eq!(self.panics(), 0, "a session panicked");
        ended.then(|| std::mem::take(&mut *received.0.lock().unwrap()))
    }

    /// The number of sessions that ended in a panic. The server catches it, so nothing else shows one.
    fn panics(&self) -> u64 {
        let families = self.metrics.gather();
        let panics = families.iter().find(|family| family.name() == "sql_panics_total").expect("is registered");
        panics.get_metric()[0].get_counter().get_value() as u64
    }
}

/// The client's side: a piece for each read, with a wait before each but the first.
struct Sent {
    pieces: VecDeque<Vec<u8>>,
    is_ready: bool,
}

impl AsyncRead for Sent {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if !std::mem::replace(&mut self.is_ready, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(piece) = self.pieces.front_mut() else { return Poll::Ready(Ok(())) };
        let count = piece.len().min(to.remaining());
        to.put_slice(&piece[..count]);
        piece.drain(..count);
        if piece.is_empty() {
            self.pieces.pop_front();
            self.is_ready = false;
        }
        Poll::Ready(Ok(()))
    }
}

/// What the client receives.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Received {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
