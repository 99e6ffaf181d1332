//! The links between the nodes of a cluster: a relay for each ordered pair, with a delay, which a test can cut.
//!
//! The address that a node advertises is its relay's, and each node opens its connections from a loopback address of
//! its own, by which the relay knows the pair. SQL clients and `cortado status` dial the nodes themselves, so a node
//! that is cut off from the others still serves them. A cut link loses nothing: it delivers nothing, and accepts no
//! more than its sockets hold, until it is whole again. Then what was under way arrives late, as with TCP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The most bytes that are read at a time, and the most such pieces under way in one direction of a connection.
const PIECE: usize = 64 << 10;
const PIECES: usize = 256;

/// The relays. They end when it is dropped.
pub struct Links {
    /// By node, the port that it advertises.
    ports: Vec<u16>,
    /// The nodes that are cut off from all others.
    cut: watch::Sender<Vec<usize>>,
    _relays: JoinSet<()>,
}

/// One direction between two nodes.
#[derive(Clone)]
struct Wire {
    pair: [usize; 2],
    delay: Duration,
    cut: watch::Receiver<Vec<usize>>,
}

impl Links {
    /// Starts the relays of nodes that listen at `targets`, with this delay in each direction.
    pub async fn start(targets: Vec<u16>, delay: Duration) -> Links {
        let (cut, cut_off) = watch::channel(Vec::new());
        let (mut ports, mut relays) = (Vec::new(), JoinSet::new());
        for (to, target) in targets.into_iter().enumerate() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            ports.push(listener.local_addr().unwrap().port());
            relays.spawn(accept(listener, to, target, delay, cut_off.clone()));
        }
        Links { ports, cut, _relays: relays }
    }

    /// The port that a node advertises.
    pub fn port(&self, node: usize) -> u16 {
        self.ports[node]
    }

    /// The address from which a node opens its connections.
    pub fn connect_from(node: usize) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, 31 + node as u8).into()
    }

    /// Cuts all links of these nodes, and no others.
    pub fn cut_off(&self, nodes: &[usize]) {
        self.cut.send_replace(nodes.to_vec());
    }
}

async fn accept(listener: TcpListener, to: usize, target: u16, delay: Duration, cut: watch::Receiver<Vec<usize>>) {
    // Dropped with its connections.
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = listener.accept().await.unwrap();
        let from = (0..usize::from(u8::MAX) - 31).find(|node| Links::connect_from(*node) == peer.ip());
        let from = from.unwrap_or_else(|| panic!("{peer} is no node"));
        let wire = Wire { pair: [from, to], delay, cut: cut.clone() };
        connections.spawn(relay(stream, target, wire));
        while connections.try_join_next().is_some() {}
    }
}

/// Relays one connection until one of its ends closes it.
async fn relay(near: TcpStream, target: u16, wire: Wire) {
    let mut cut = wire.cut.clone();
    wire.until_whole(&mut cut).await;
    let Ok(far) = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, target))).await else { return };
    for stream in [&near, &far] {
        stream.set_nodelay(true).unwrap();
    }
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    // A node that is killed resets its connections. Then both directions end.
    tokio::select! {
        () = pump(near_in, far_out, wire.clone()) => {}
        () = pump(far_in, near_out, wire) => {}
    }
}

async fn pump(mut source: OwnedReadHalf, mut sink: OwnedWriteHalf, wire: Wire) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES);
    let delay = wire.delay;
    let read = async move {
        let mut buffer = vec![0; PIECE];
        while let Ok(bytes @ 1..) = source.read(&mut buffer).await {
            if sender.send((Instant::now() + delay, buffer[..bytes].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let mut cut = wire.cut.clone();
    let write = async move {
        while let Some((due, piece)) = pieces.recv().await {
            tokio::time::sleep_until(due.into()).await;
            wire.until_whole(&mut cut).await;
            if sink.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}

impl Wire {
    /// Waits while one of its ends is cut off.
    async fn until_whole(&self, cut: &mut watch::Receiver<Vec<usize>>) {
        // The sender lives as long as the relays.
        let _ = cut.wait_for(|cut| !self.pair.iter().any(|node| cut.contains(node))).await;
    }
}
