//! The connections of other nodes: one port, three protocols. The first byte of a connection tells links and streams of
//! Raft messages from gRPC.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use link::LinkServer;
use raftstore::transport;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// The most connections whose first byte has not arrived; further ones are closed.
const SILENT_MAX: usize = 1024;
/// How long a connection may be silent.
const SILENT_LIMIT: Duration = Duration::from_secs(5);
/// The most connections that wait for the gRPC server.
const GRPC_BACKLOG: usize = 64;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves a connection of one protocol in a task of its own.
pub(crate) type Serve = Arc<dyn Fn(TcpStream) + Send + Sync>;

/// Accepts connections until `stop`. Links go to `links`, streams of Raft messages to `raft`, all others to the
/// returned stream, which ends after `stop`.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub(crate) fn accept(
    listener: TcpListener,
    links: LinkServer,
    raft: Serve,
    stop: CancellationToken,
) -> impl Stream<Item = io::Result<TcpStream>> {
    let (grpc, incoming) = mpsc::channel(GRPC_BACKLOG);
    tokio::spawn(accept_until(listener, (links, raft), grpc, stop));
    futures::stream::unfold(incoming, async |mut incoming| {
        let stream = incoming.recv().await?;
        Some((Ok(stream), incoming))
    })
}

async fn accept_until(
    listener: TcpListener,
    (links, raft): (LinkServer, Serve),
    grpc: mpsc::Sender<TcpStream>,
    stop: CancellationToken,
) {
    let silent = Arc::new(Semaphore::new(SILENT_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&silent).try_acquire_owned() else {
                    tracing::warn!("too many silent connections");
                    continue;
                };
                let (links, raft, grpc) = (links.clone(), Arc::clone(&raft), grpc.clone());
                tokio::spawn(async move {
                    let first = tokio::time::timeout(SILENT_LIMIT, first_byte(&stream)).await;
                    drop(permit);
                    match first {
                        Ok(Ok(Some(link::FIRST_BYTE))) => links.serve(stream),
                        Ok(Ok(Some(transport::FIRST_BYTE))) => raft(stream),
                        Ok(Ok(Some(_))) => hand_over(stream, &grpc).await,
                        // Closed, broken or silent.
                        Ok(Ok(None) | Err(_)) | Err(_) => {}
                    }
                });
            }
            // No descriptors are left, or the other node has disconnected. Neither may end the loop.
            Err(error) => {
                tracing::warn!("cannot accept a connection of a node: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The first byte, which stays in the socket; `None` if the connection was closed before.
async fn first_byte(stream: &TcpStream) -> io::Result<Option<u8>> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    Ok((read > 0).then_some(first[0]))
}

async fn hand_over(stream: TcpStream, grpc: &mpsc::Sender<TcpStream>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("cannot set TCP_NODELAY: {error}");
    }
    // It is closed if the gRPC server has stopped.
    let _ = grpc.send(stream).await;
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use link::{ClusterTag, LinkMetrics, LinkOptions, Links, ServerOptions};
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// All protocols on one port; a connection that closes without a word stops none.
    #[tokio::test]
    async fn the_first_byte_tells_the_protocols_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let metrics = || LinkMetrics::new(&prometheus::Registry::new()).unwrap();
        let (cluster, stop) = (ClusterTag::new(1), CancellationToken::new());
        let server = LinkServer::new(ServerOptions::new(cluster), [], metrics());
        let (raft, mut raft_streams) = mpsc::channel(1);
        let raft: Serve = Arc::new(move |stream| raft.try_send(stream).unwrap());
        let mut grpc = Box::pin(accept(listener, server, raft, stop.clone()));
        drop(TcpStream::connect(&address).await.unwrap());

        let links = Links::new(LinkOptions::new(cluster), metrics());
        let peer = links.peer(&address).unwrap();
        let answer = peer.call(link::Kind::new(1), bytes::Bytes::new(), Duration::from_secs(60)).await;
        let why = "this node serves no requests of kind 1".to_owned();
        assert_eq!(answer, Err(link::CallError::Unreachable(why)));

        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(&[transport::FIRST_BYTE]).await.unwrap();
        let taken = raft_streams.recv().await.unwrap();
        assert_eq!(taken.peer_addr().unwrap(), stream.local_addr().unwrap());
        assert_eq!(first_byte(&taken).await.unwrap(), Some(transport::FIRST_BYTE), "nothing was read");

        let mut http = TcpStream::connect(&address).await.unwrap();
        http.write_all(b"PRI * HTTP/2.0").await.unwrap();
        let taken = grpc.next().await.unwrap().unwrap();
        assert_eq!(taken.peer_addr().unwrap(), http.local_addr().unwrap());
        assert!(taken.nodelay().unwrap());
        assert_eq!(first_byte(&taken).await.unwrap(), Some(b'P'), "nothing was read");

        stop.cancel();
        assert!(grpc.next().await.is_none());
        drop(taken);
    }
}
