//! The answer to clients while the node starts: 57P03, as in PostgreSQL.
//!
//! The node listens from the start, so that no other process takes the port. Early clients get an answer at once, which
//! drivers treat as "try again". Bounded: [`MAX_CONNECTIONS`] at a time, each for at most [`DEADLINE`]; one more is
//! closed without an answer. Lengths that a client claims are never allocated (see [`crate::protocol::startup`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::error::{SqlError, SqlState};
use crate::protocol::frame::violation;
use crate::protocol::output::{Output, Severity};
use crate::protocol::startup::{Packet, next_packet};

/// Pause after a failed accept.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limit of concurrent connections.
const MAX_CONNECTIONS: usize = 64;

/// Limit of a connection's duration.
const DEADLINE: Duration = Duration::from_secs(2);

/// Limit of encryption requests: one for SSL, one for GSSAPI.
const MAX_REQUESTS: usize = 2;

/// Bytes read from an answered client: closing a socket with unread input could lose the answer.
const LINGER_BYTES: u64 = 64 << 10;

/// Rejects clients until `until`. Then returns the listener with its backlog.
pub async fn reject_while_starting(listener: TcpListener, until: CancellationToken) -> TcpListener {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            biased;
            () = until.cancelled() => return listener,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(permit) = permits.clone().try_acquire_owned() else { continue };
                tokio::spawn(async move {
                    // The client may have left or take too long. Neither matters.
                    let _ = tokio::time::timeout(DEADLINE, reject(stream)).await;
                    drop(permit);
                });
            }
            // No descriptors are left, or the client has disconnected. Neither may end the loop.
            Err(error) => {
                tracing::debug!("cannot accept a connection: {error}");
                clock::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn reject(stream: TcpStream) -> io::Result<()> {
    let (mut reader, writer) = stream.into_split();
    let mut out = Output::new(Box::new(writer), LINGER_BYTES as usize);
    let mut input = BytesMut::new();
    let mut requests = 0;
    let error = loop {
        match next_packet(&mut input) {
            Ok(None) => {
                if reader.read_buf(&mut input).await? == 0 {
                    return Ok(());
                }
            }
            Ok(Some(Packet::SslRequest | Packet::GssRequest)) if requests < MAX_REQUESTS && input.is_empty() => {
                requests += 1;
                out.put_encoded(b"N");
                out.flush().await?;
            }
            Ok(Some(Packet::SslRequest | Packet::GssRequest)) => {
                break violation("received unexpected data after SSL or GSS request");
            }
            Ok(Some(Packet::Cancel { .. } | Packet::Malformed)) => return Ok(()),
            Ok(Some(Packet::Startup(_))) => {
                break SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is starting up");
            }
            Err(error) => break error,
        }
    };
    out.put_error(Severity::Fatal, &error, 0).map_err(|error| io::Error::other(error.to_string()))?;
    out.finish().await?;
    copy(&mut reader.take(LINGER_BYTES), &mut sink()).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::AsyncWriteExt;
    use tokio::task::JoinHandle;

    use super::*;

    const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
    const STARTUP: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";

    async fn early() -> (SocketAddr, CancellationToken, JoinHandle<TcpListener>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let until = CancellationToken::new();
        let task = tokio::spawn(reject_while_starting(listener, until.clone()));
        (address, until, task)
    }

    /// The node's reply to a client that sends `bytes`.
    async fn reply_to(address: SocketAddr, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn early_clients_get_57p03() {
        let (address, ..) = early().await;
        let answer = reply_to(address, STARTUP).await;
        assert!(answer.starts_with('E') && answer.contains("SFATAL\0") && answer.contains("C57P03\0"), "{answer:?}");

        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(SSL_REQUEST).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'N');
        stream.write_all(STARTUP).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(String::from_utf8_lossy(&answer).contains("C57P03\0"));
    }

    #[tokio::test]
    async fn malformed_packets_are_refused() {
        let (address, ..) = early().await;
        for bytes in [&b"\0\0\0\0"[..], b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"] {
            assert_eq!(reply_to(address, bytes).await, "", "closed without a word: {bytes:?}");
        }
        let answer = reply_to(address, &[SSL_REQUEST, STARTUP].concat()).await;
        assert!(answer.starts_with('E') && answer.contains("C08P01\0"), "{answer:?}");
    }

    #[tokio::test]
    async fn connections_are_limited_and_freed() {
        let (address, ..) = early().await;
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut over_limit = TcpStream::connect(address).await.unwrap();
        assert_eq!(over_limit.read(&mut [0]).await.unwrap(), 0, "no permit is left");
        drop(silent);
        let answered = async {
            loop {
                let mut stream = TcpStream::connect(address).await.unwrap();
                // A connection over the limit is closed at once.
                let _ = stream.write_all(STARTUP).await;
                if stream.read_u8().await.is_ok_and(|kind| kind == b'E') {
                    return;
                }
            }
        };
        tokio::time::timeout(10 * DEADLINE, answered).await.unwrap();
    }

    #[tokio::test]
    async fn the_listener_is_returned_with_its_backlog() {
        let (address, until, task) = early().await;
        until.cancel();
        let listener = task.await.unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
    }
}
