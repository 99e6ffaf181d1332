//! The node's ports: taken all at once before anything else happens.
//!
//! The PostgreSQL port is bound at the start, so that a taken one is told at once, but listened on only when the node serves: until then clients are
//! refused by the operating system instead of being left waiting.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};
use tonic::transport::server::TcpIncoming;

use crate::config::NodeConfig;

/// Clients that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// A port that cannot be had; printed as one line.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {flag} {addr}: {source}")]
pub(crate) struct PortError {
    flag: &'static str,
    addr: SocketAddr,
    source: io::Error,
}

/// See the module documentation.
pub(crate) struct Ports {
    addrs: NodeConfig,
    listen: StdListener,
    http: Option<StdListener>,
    pg: Mutex<Option<TcpSocket>>,
}

impl Ports {
    /// Takes all ports of a node.
    pub(crate) fn bind(config: &NodeConfig) -> Result<Ports, PortError> {
        let pg = bind_only(config.pg).map_err(error("--pg", config.pg))?;
        let listen = listener(config.listen).map_err(error("--listen", config.listen))?;
        let http = config.http.map(|addr| listener(addr).map_err(error("--http", addr))).transpose()?;
        Ok(Ports { addrs: config.clone(), listen, http, pg: Mutex::new(Some(pg)) })
    }

    /// The connections of other nodes. May be called again when the stream of the last call is dropped.
    pub(crate) fn listen(&self) -> Result<TcpIncoming, PortError> {
        let incoming = self.listen.try_clone().and_then(TcpListener::from_std);
        let incoming = incoming.map_err(error("--listen", self.addrs.listen))?;
        Ok(TcpIncoming::from(incoming).with_nodelay(Some(true)))
    }

    /// The connections for metrics and health, if they are wanted.
    pub(crate) fn http(&self) -> Result<Option<TcpListener>, PortError> {
        let Some((listener, addr)) = self.http.as_ref().zip(self.addrs.http) else {
            return Ok(None);
        };
        listener.try_clone().and_then(TcpListener::from_std).map(Some).map_err(error("--http", addr))
    }

    /// Begins to listen for PostgreSQL clients; once.
    pub(crate) fn pg(&self) -> Result<Option<TcpListener>, PortError> {
        let socket = self.pg.lock().take();
        socket.map(|socket| socket.listen(BACKLOG)).transpose().map_err(error("--pg", self.addrs.pg))
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

/// Takes a port without listening. The system lets two sockets do that, so a look by listening comes first.
fn bind_only(addr: SocketAddr) -> io::Result<TcpSocket> {
    drop(StdListener::bind(addr)?);
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
