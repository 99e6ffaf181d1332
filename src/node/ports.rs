//! The listening sockets of a node, opened together before the node does anything else.
//!
//! A port that is bound but not listened on can be bound by a second process, which would then fail too late. So the
//! node listens on all its ports at once. Connections of other nodes wait for a server. PostgreSQL clients that connect
//! before the node serves are rejected with that reason ([`sql::server::reject_while_starting`]).

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;

/// The most PostgreSQL connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A port that cannot be listened on; printed as one line.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {flag} {addr}: {source}")]
pub(crate) struct PortError {
    flag: &'static str,
    addr: SocketAddr,
    source: io::Error,
}

/// The listening sockets of a node.
pub(crate) struct Ports {
    config: NodeConfig,
    listen: StdListener,
    http: Option<StdListener>,
    pg: Mutex<Option<RejectingListener>>,
}

/// The PostgreSQL port before the node serves: a task rejects its clients, and returns the listener once cancelled.
struct RejectingListener {
    cancel: CancellationToken,
    task: JoinHandle<TcpListener>,
}

impl Ports {
    /// Listens on all ports of a node, and writes the actual ports to `config`. Must be called within a tokio runtime.
    pub(crate) fn bind(config: &mut NodeConfig) -> Result<Ports, PortError> {
        let pg = pg_listener(config.pg).map_err(error("--pg", config.pg))?;
        let listen = match listener(config.listen) {
            Err(taken) if config.fall_back_to_any_port && taken.kind() == io::ErrorKind::AddrInUse => {
                listener((config.listen.ip(), 0).into())
            }
            other => other,
        };
        let listen = listen.map_err(error("--listen", config.listen))?;
        let http = config.http.map(|addr| listener(addr).map_err(error("--http", addr))).transpose()?;

        let advertises_listen = config.advertises_listen();
        config.pg = pg.local_addr().map_err(error("--pg", config.pg))?;
        config.listen = listen.local_addr().map_err(error("--listen", config.listen))?;
        if let Some((listener, addr)) = http.as_ref().zip(config.http) {
            config.http = Some(listener.local_addr().map_err(error("--http", addr))?);
        }
        if advertises_listen {
            config.advertise = config.listen.into();
        }
        let cancel = CancellationToken::new();
        let task = tokio::spawn(sql::server::reject_while_starting(pg, cancel.clone()));
        Ok(Ports { config: config.clone(), listen, http, pg: Mutex::new(Some(RejectingListener { cancel, task })) })
    }

    /// The listener for the connections of other nodes. May be called again once that of the last call is dropped.
    pub(crate) fn listen(&self) -> Result<TcpListener, PortError> {
        self.listen.try_clone().and_then(TcpListener::from_std).map_err(error("--listen", self.config.listen))
    }

    /// The listener for metrics and health checks, if `--http` was given.
    pub(crate) fn http(&self) -> Result<Option<TcpListener>, PortError> {
        let Some((listener, addr)) = self.http.as_ref().zip(self.config.http) else {
            return Ok(None);
        };
        listener.try_clone().and_then(TcpListener::from_std).map(Some).map_err(error("--http", addr))
    }

    /// Stops rejecting PostgreSQL clients and returns their listener. `None` after the first call.
    pub(crate) async fn pg(&self) -> Result<Option<TcpListener>, PortError> {
        let Some(rejecting) = self.pg.lock().take() else {
            return Ok(None);
        };
        rejecting.cancel.cancel();
        rejecting.task.await.map(Some).map_err(|e| error("--pg", self.config.pg)(io::Error::other(e)))
    }
}

fn error(flag: &'static str, addr: SocketAddr) -> impl Fn(io::Error) -> PortError {
    move |source| PortError { flag, addr, source }
}

fn listener(addr: SocketAddr) -> io::Result<StdListener> {
    let listener = StdListener::bind(addr)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn pg_listener(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Ignores connections of an earlier process in TIME_WAIT. A listening socket still conflicts.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::config::tests::raft_log;
    use crate::config::{Locality, Membership};

    fn config(listen: SocketAddr, pg: SocketAddr) -> NodeConfig {
        NodeConfig {
            data: PathBuf::from("unused"),
            listen,
            fall_back_to_any_port: false,
            advertise: listen.into(),
            connect_from: None,
            pg,
            http: None,
            cache_bytes: 1 << 20,
            retry_for: Duration::from_secs(1),
            push_interval: Duration::ZERO,
            shadow_reads: 0.0,
            max_advisory_locks: 10,
            max_transaction_size: 256 << 20,
            raft_log: raft_log(),
            membership: Membership::SingleNode,
            locality: Locality::default(),
            cluster_id: None,
        }
    }

    #[tokio::test]
    async fn bound_ports_are_listened_on_at_once() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut first = config(any, any);
        let ports = Ports::bind(&mut first).unwrap();
        assert!(first.pg.port() != 0 && first.listen.port() != 0);
        assert_eq!(first.advertise, first.listen.into());

        let refused = |mut config| Ports::bind(&mut config).map(|_| ()).unwrap_err().to_string();
        assert!(refused(config(any, first.pg)).starts_with(&format!("cannot listen on --pg {}", first.pg)));
        assert!(refused(config(first.listen, any)).starts_with(&format!("cannot listen on --listen {}", first.listen)));
        let mut elsewhere = NodeConfig { fall_back_to_any_port: true, ..config(first.listen, any) };
        Ports::bind(&mut elsewhere).unwrap();
        assert!(elsewhere.listen != first.listen && elsewhere.advertise == elsewhere.listen.into());

        let listener = ports.pg().await.unwrap().unwrap();
        assert_eq!(listener.local_addr().unwrap(), first.pg);
        assert!(ports.pg().await.unwrap().is_none(), "only the first call returns it");
    }
}
