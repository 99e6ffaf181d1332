//! What fuzzers and the benchmark of the planner reach without a socket. Behind the feature `fuzzing`; not part of the
//! server.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{SqlServer, connection};
use crate::catalog::Catalog;

impl SqlServer {
    /// Serves one connection over any pair of streams, until either side closes.
    ///
    /// # Panics
    /// Never for what the client sends: a panic of the session is an error to the client, and counted in
    /// `sql_panics_total`.
    pub async fn serve_streams(
        &self,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) {
        let permit = self.handshakes.clone().acquire_owned().await.expect("the semaphore is never closed");
        connection::run(self.node.clone(), reader, writer, None, permit, CancellationToken::new()).await;
    }

    /// The newest catalog that the node has a lease on, as a session of the database `postgres` sees it. `None` before
    /// the first statement.
    pub fn newest_catalog(&self) -> Option<Arc<Catalog>> {
        self.node.context.catalog.newest_lease().map(|lease| lease.catalog.clone())
    }
}
