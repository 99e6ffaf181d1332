//! One connection: the startup, then messages in and replies out until either side closes.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, SecretKey};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::cluster::NodeSessions;
use super::config::SqlConfig;
use super::registry::{Registered, Registry};
use crate::clock;
use crate::coop::Turn;
use crate::error::{SqlError, SqlState};
use crate::protocol::frame::{Frontend, violation};
use crate::protocol::input::{Input, READ_BYTES, SharedInput};
use crate::protocol::output::{Output, Severity};
use crate::protocol::startup::{PROTOCOL_3_0, Packet, StartupRequest, next_packet};
use crate::session::fault::Fault;
use crate::session::interrupt::shutdown_error;
use crate::session::settings::Settings;
use crate::session::sight::no_database;
use crate::session::state::NodeContext;
use crate::session::values::ClusterSessions;
use crate::session::{Next, Session};
use crate::sessions::{SessionInfo, Signal};

/// Time and bytes for draining the input after the last reply: closing a socket with unread input would discard the
/// reply.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// How long a cancel request may take to reach the node of its session.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// The work of a message of a pipeline, in units of [`Turn`].
const MESSAGE_UNITS: usize = 100;

/// The components that all connections of a node share.
pub(crate) struct Node {
    pub(crate) context: Arc<NodeContext>,
    pub(crate) config: SqlConfig,
    pub(crate) sessions: Arc<Registry>,
    pub(super) cluster: Arc<NodeSessions>,
}

/// Serves one connection. `permit` counts it as a handshake until the session starts. A panic ends only this
/// connection, with an error to the client.
pub(crate) async fn run(
    node: Arc<Node>,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    (client, port): (Option<SocketAddr>, Option<u16>),
    permit: OwnedSemaphorePermit,
    stop: CancellationToken,
) {
    let out = Output::new(writer, node.config.reply_buffer_bytes);
    let input = Arc::new(Mutex::new(Input::new(reader, node.config.max_message_bytes)));
    let mut connection = Connection { node, client, port, input, out };
    match AssertUnwindSafe(connection.serve(permit, &stop)).catch_unwind().await {
        Ok(Ok(())) => connection.close().await,
        Ok(Err(fault)) => connection.fail(fault).await,
        Err(panic) => connection.panicked(panic).await,
    }
}

struct Connection {
    node: Arc<Node>,
    input: SharedInput,
    /// The client's address, if it is known.
    client: Option<SocketAddr>,
    /// The port of the node that it has connected to, if it is known.
    port: Option<u16>,
    out: Output,
}

/// The result of waiting for input.
enum Wait {
    /// Bytes were received.
    Bytes,
    /// The client closed its side.
    Closed,
    /// The statement timeout of a pipeline expired before its next message came.
    TimedOut,
}

impl Connection {
    async fn serve(&mut self, permit: OwnedSemaphorePermit, stop: &CancellationToken) -> Result<(), Fault> {
        match self.begin(permit, stop).await? {
            // `message_loop` drops the session's registration before the closing handshake.
            Some((session, registered)) => self.message_loop(session, registered).await,
            None => Ok(()),
        }
    }

    /// The startup. `None` after a cancel request, or if the client left.
    async fn begin(
        &mut self,
        permit: OwnedSemaphorePermit,
        stop: &CancellationToken,
    ) -> Result<Option<(Session, Registered)>, Fault> {
        let deadline = clock::instant() + self.node.config.authentication_timeout;
        let handshake = self.node.context.metrics.handshake();
        let request = tokio::select! {
            biased;
            request = timeout_at(deadline, self.read_startup()) => request,
            () = stop.cancelled() => return Err(Fault::Fatal(shutdown_error())),
        };
        let Ok(request) = request else {
            // Closed without an error, as in PostgreSQL.
            tracing::debug!("a client did not finish its startup in time");
            return Ok(None);
        };
        let Some(request) = request? else {
            return Ok(None);
        };
        let started = self.start_session(request).await?;
        drop((handshake, permit));
        self.out.flush().await?;
        Ok(Some(started))
    }

    /// Reads packets up to the startup packet.
    async fn read_startup(&mut self) -> Result<Option<StartupRequest>, Fault> {
        let (mut ssl_requested, mut gss_requested) = (false, false);
        let mut input = self.input.lock().await;
        loop {
            let Some(packet) = next_packet(&mut input.buffer).map_err(Fault::Fatal)? else {
                match input.read(READ_BYTES).await? {
                    0 => return Ok(None),
                    _ => continue,
                }
            };
            match packet {
                Packet::SslRequest if !ssl_requested => ssl_requested = true,
                Packet::GssRequest if !gss_requested => gss_requested = true,
                Packet::SslRequest | Packet::GssRequest => {
                    return Err(Fault::Fatal(violation("encryption was requested twice")));
                }
                Packet::Cancel { pid, secret } => {
                    let signal = Signal::CancelWithSecret(secret);
                    let found = timeout_at(clock::instant() + CANCEL_LIMIT, self.node.cluster.signal(pid, signal));
                    if !matches!(found.await, Ok(Ok(true))) {
                        tracing::debug!(pid, "a cancel request reaches no session");
                    }
                    return Ok(None);
                }
                Packet::Startup(request) => return Ok(Some(request)),
                Packet::Malformed => {
                    // As in PostgreSQL: the peer may not speak this protocol at all.
                    tracing::debug!("a startup packet has an invalid length");
                    return Ok(None);
                }
            }
            // Bytes after the request, sent before its answer, were not encrypted. Treating them as encrypted input
            // would let a man in the middle inject statements.
            if !input.buffer.is_empty() {
                let error = violation("received unencrypted data after SSL or GSS request").detail(
                    "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
                );
                return Err(Fault::Fatal(error));
            }
            self.out.put_encoded(b"N");
            self.out.flush().await?;
        }
    }

    async fn start_session(&mut self, request: StartupRequest) -> Result<(Session, Registered), Fault> {
        if let Some(unknown) = request.negotiate {
            self.out.put(&NegotiateProtocolVersion::new(PROTOCOL_3_0, unknown)).map_err(Fault::Fatal)?;
        }
        if !self.node.context.catalog.has_database(&request.database).await.map_err(Fault::Fatal)? {
            return Err(Fault::Fatal(no_database(&request.database)));
        }
        let Some(registered) = self.node.sessions.register(self.node.config.max_connections) else {
            self.node.context.metrics.connection_refused();
            let message = "sorry, too many clients already";
            return Err(Fault::Fatal(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message)));
        };
        let mut settings = Settings::new(&request.user);
        settings.set_node(self.node.config.max_connections, self.port);
        for (name, value) in &request.settings {
            settings.set_initial(name, value).map_err(Fault::Fatal)?;
        }
        self.out.put(&Authentication::Ok).map_err(Fault::Fatal)?;
        let key = BackendKeyData::new(registered.pid, SecretKey::I32(registered.secret));
        registered.activity.open(SessionInfo {
            pid: registered.pid,
            user: request.user.as_str().into(),
            database: request.database.as_str().into(),
            application: settings.show("application_name").map_or_else(|_| "".into(), |(_, name)| (&*name).into()),
            client: self.client,
            started: (self.node.context.wall_clock)(),
            ..SessionInfo::default()
        });
        let shared = (registered.interrupt.clone(), registered.activity.clone());
        let mut session = Session::new(self.node.context.clone(), request.user, request.database, settings, shared);
        session.input = Some(self.input.clone());
        session.send_startup_replies(&key, &mut self.out)?;
        Ok((session, registered))
    }

    /// Handles messages until the client leaves.
    async fn message_loop(&mut self, mut session: Session, registered: Registered) -> Result<(), Fault> {
        let _counted = self.node.context.metrics.connection();
        let mut request_start = None;
        let mut turn = Turn::new();
        loop {
            let mut input = self.input.lock().await;
            let Some(message) = input.next().map_err(Fault::Fatal)? else {
                if input.buffer.is_empty() {
                    turn = Turn::new();
                }
                let waited = wait(&mut input, &session, &registered).await?;
                drop(input);
                match waited {
                    Wait::Bytes => continue,
                    Wait::Closed => return Ok(()),
                    Wait::TimedOut => {
                        session.time_out(&mut self.out).await?;
                        continue;
                    }
                }
            };
            let start = *request_start.get_or_insert_with(clock::instant);
            let ends = matches!(message, Frontend::Query(_) | Frontend::Sync | Frontend::FunctionCall);
            let sync_follows = input.sync_follows();
            let has_more = !input.buffer.is_empty();
            drop(input);
            if session.handle(message, sync_follows, &mut self.out).await? == Next::Close {
                return Ok(());
            }
            if ends {
                self.node.context.metrics.request(clock::instant().duration_since(start).as_secs_f64());
                request_start = None;
            }
            if has_more {
                // Few messages of a pipeline wait for anything if their data is on this node.
                turn.spend(MESSAGE_UNITS).await;
            }
        }
    }

    /// Sends the error, then closes.
    async fn fail(mut self, fault: Fault) {
        match fault {
            Fault::Fatal(error) | Fault::Statement(error) | Fault::Retry(error) => {
                self.node.context.metrics.error(error.code);
                tracing::debug!("a connection is closed: {error}");
                if self.out.put_error(Severity::Fatal, &error, 0).is_ok() {
                    self.close().await;
                }
            }
            Fault::Io(error) => tracing::debug!("a connection broke: {error}"),
        }
    }

    /// Sends XX000, then closes. Discards the output buffer, which may hold half a message.
    async fn panicked(mut self, panic: Box<dyn Any + Send>) {
        let why = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        tracing::error!("a connection failed: {}", why.unwrap_or("a panic without a message"));
        self.node.context.metrics.panic();
        self.out.discard();
        let error = SqlError::new(SqlState::INTERNAL_ERROR, "internal error: the session has failed");
        self.fail(Fault::Fatal(error)).await;
    }

    /// Writes the output buffer, shuts the socket down and drains the input for a moment.
    async fn close(mut self) {
        let deadline = clock::instant() + LINGER;
        let shutdown = async {
            self.out.finish().await?;
            let mut left = LINGER_BYTES;
            let mut input = self.input.lock().await;
            while left > 0 {
                input.buffer.clear();
                match input.read(READ_BYTES).await? {
                    0 => break,
                    count => left = left.saturating_sub(count),
                }
            }
            Ok::<(), std::io::Error>(())
        };
        // The client may have left already.
        let _ = timeout_at(deadline, shutdown).await;
    }
}

/// Waits for more input, until the idle timeout or the server's stop.
async fn wait(input: &mut Input, session: &Session, registered: &Registered) -> Result<Wait, Fault> {
    let limit = session.idle_limit().map(|(limit, error)| (clock::instant() + limit, error));
    let idle = session.is_idle();
    tokio::select! {
        biased;
        read = input.read_more() => Ok(if read? { Wait::Bytes } else { Wait::Closed }),
        () = registered.interrupt.stopped(idle) => Err(Fault::Fatal(registered.interrupt.end_error())),
        error = idle_too_long(limit) => Err(Fault::Fatal(error)),
        () = at_deadline(session.deadline) => Ok(Wait::TimedOut),
    }
}

async fn at_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn idle_too_long(limit: Option<(Instant, SqlError)>) -> SqlError {
    match limit {
        Some((deadline, error)) => {
            sleep_until(deadline).await;
            error
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use kv::client::Client;
    use kv::memory::MemoryCluster;
    use tokio::io::{AsyncReadExt, ReadBuf};
    use tokio::sync::Semaphore;
    use tso::TsoClient;
    use txn::Database;

    use super::*;
    use crate::metrics::SqlMetrics;

    /// A node over an in-memory cluster.
    fn node(metrics: &prometheus::Registry) -> Arc<Node> {
        let cluster = MemoryCluster::new();
        let tso = TsoClient::new(cluster.tso());
        let db = Database::new(Client::new(Arc::new(cluster)), tso);
        let metrics = SqlMetrics::new(metrics).unwrap();
        let context = Arc::new(NodeContext::new(db.clone(), metrics, clock::system_micros));
        let config = SqlConfig::default();
        let sessions = Registry::new(config.node_id);
        let cluster = Arc::new(NodeSessions::new(sessions.clone(), db));
        Arc::new(Node { context, config, sessions, cluster })
    }

    /// A reader that panics at its first read.
    struct Broken(bool);

    impl AsyncRead for Broken {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
            assert!(std::mem::replace(&mut self.0, true), "planted");
            Poll::Ready(Ok(()))
        }
    }

    /// A panic closed the connection without an error and was not counted.
    #[tokio::test]
    async fn a_panic_is_reported_to_the_client_and_counted() {
        let metrics = prometheus::Registry::new();
        let node = node(&metrics);
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let permit = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        run(node, Box::new(Broken(false)), Box::new(ours), (None, None), permit, CancellationToken::new()).await;
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).await.unwrap();
        let text = received.escape_ascii().to_string();
        assert!(text.starts_with("E") && text.contains("SFATAL") && text.contains("CXX000"), "{text}");
        let metrics = prometheus::TextEncoder::new().encode_to_string(&metrics.gather()).unwrap();
        assert!(metrics.contains("sql_panics_total 1"), "{metrics}");
    }
}
