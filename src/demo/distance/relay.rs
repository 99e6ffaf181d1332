//! The thread that relays all connections between nodes, each byte when it arrives according to its [`Pipe`].
//!
//! One thread owns all sockets and all pipes, so there are no locks, and time is read in one place. It has a high
//! priority if the user may set one. It sleeps in `ppoll` with a timeout in nanoseconds and without timer slack:
//! tokio's timers have a resolution of a millisecond, which would be several percent of a short distance. No call
//! blocks. A receiver that does not read stops its sender, because a flow holds a bounded number of bytes.
//!
//! A connection to a node is dialled one way's delay after it was accepted, and its client's bytes are read a round
//! trip after: as long as a handshake of TCP takes. When a side resets the connection, the other side learns of it a
//! delay later.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prometheus::IntCounter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::pairs::Pairs;
use super::pipe::{CHUNK, Delivery, Flow, Pipe};
use super::sockets;

/// The most connections; further ones wait in the backlog of the listening socket.
const CONNECTIONS_MAX: usize = 1024;
/// The nice value of the thread, if the user may set it.
const NICE: i32 = -15;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The listening socket at the address of a place, and where its connections go.
pub(super) struct Gate {
    pub(super) listener: TcpListener,
    pub(super) to: usize,
    pub(super) target: SocketAddr,
}

/// The running thread. Dropping it closes all connections and ends the thread.
pub(super) struct Relay {
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts the thread. `pipes` has one place more than there are nodes: for connections from elsewhere. `sent`
    /// counts the bytes that enter each pipe.
    pub(super) fn start(gates: Vec<Gate>, pipes: Pairs<Pipe>, sent: Pairs<IntCounter>) -> io::Result<Relay> {
        for gate in &gates {
            gate.listener.set_nonblocking(true)?;
        }
        let (stop, stopped) = UnixStream::pair()?;
        let work = Work {
            epoch: clock(),
            stopped,
            gates,
            accepts_at: Duration::ZERO,
            wires: Wires { pipes, sent, scratch: vec![0; CHUNK] },
            connections: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("demo-distance".to_string()).spawn(move || work.run())?;
        Ok(Relay { stop, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The thread ends when its half of the pair is closed. Fails only if it has ended.
        let _ = self.stop.shutdown(Shutdown::Both);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread between the nodes panicked");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge where the distance reads its clock")]
fn clock() -> Instant {
    Instant::now()
}

/// The pipes, with the counter of each.
struct Wires {
    pipes: Pairs<Pipe>,
    sent: Pairs<IntCounter>,
    scratch: Vec<u8>,
}

impl Wires {
    /// Reads what `source` has sent, as far as there is room.
    fn take_in(
        &mut self,
        pair: (usize, usize),
        flow: &mut Flow,
        mut source: &TcpStream,
        now: Duration,
    ) -> io::Result<()> {
        let pipe = &mut self.pipes[pair];
        if flow.room() == 0 || now < flow.accepts_at(pipe) {
            return Ok(());
        }
        match source.read(&mut self.scratch[..flow.room()]) {
            Ok(0) => flow.end(pipe, now),
            Ok(bytes) => {
                flow.send(pipe, now, &self.scratch[..bytes]);
                self.sent[pair].inc_by(bytes as u64);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The connection to the node.
enum Target {
    /// To be dialled at this time.
    Later(Duration),
    Dialling(TcpStream),
    Open(TcpStream),
}

/// A connection between two places.
struct Connection {
    /// Whence and where to.
    pair: (usize, usize),
    address: SocketAddr,
    client: TcpStream,
    target: Target,
    /// From the client, and to it. Each with whether its receiver takes no more for now.
    there: (Flow, bool),
    back: (Flow, bool),
    /// When both sides learn that the connection has failed.
    reset_at: Option<Duration>,
}

/// What a polled socket is.
#[derive(Clone, Copy)]
enum Token {
    Stop,
    Gate(usize),
    Client(usize),
    Target(usize),
}

/// The thread's state.
struct Work {
    epoch: Instant,
    stopped: UnixStream,
    gates: Vec<Gate>,
    accepts_at: Duration,
    wires: Wires,
    connections: Vec<Connection>,
}

impl Work {
    fn now(&self) -> Duration {
        clock().duration_since(self.epoch)
    }

    fn run(mut self) {
        // Without it a sleep ends up to 50 us late.
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::warn!(%error, "the distance between the nodes is less accurate: no precise timers");
        }
        // On a busy machine the thread would wait for a processor, as a network does not. Linux sets the priority of
        // the calling thread alone. Only some users may raise it, so the distance does not depend on it.
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "the thread between the nodes has no priority");
        }
        loop {
            let now = self.now();
            for connection in &mut self.connections {
                connection.advance(&self.wires, now);
            }
            self.connections.retain(|connection| !connection.is_done(now));
            let ready = match self.wait(now) {
                Ok(ready) => ready,
                Err(Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!(%error, "the connections between the nodes end");
                    return;
                }
            };
            let now = self.now();
            for (token, flags) in ready {
                match token {
                    Token::Stop => return,
                    Token::Gate(gate) => self.accept(gate, now),
                    Token::Client(at) => self.connections[at].client_ready(&mut self.wires, flags, now),
                    Token::Target(at) => self.connections[at].target_ready(&mut self.wires, flags, now),
                }
            }
        }
    }

    /// Sleeps until a socket is ready or something arrives.
    fn wait(&self, now: Duration) -> Result<Vec<(Token, PollFlags)>, Errno> {
        let mut tokens = vec![Token::Stop];
        let mut polled = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        let mut wake_at = Wake(None);
        if self.connections.len() < CONNECTIONS_MAX {
            if now >= self.accepts_at {
                tokens.extend((0..self.gates.len()).map(Token::Gate));
                polled.extend(self.gates.iter().map(|gate| PollFd::new(&gate.listener, PollFlags::IN)));
            } else {
                wake_at.at(self.accepts_at);
            }
        }
        for (at, connection) in self.connections.iter().enumerate() {
            let (client, target) = connection.wants(&self.wires, now, &mut wake_at);
            if !client.is_empty() {
                tokens.push(Token::Client(at));
                polled.push(PollFd::new(&connection.client, client));
            }
            if let (false, Target::Dialling(stream) | Target::Open(stream)) = (target.is_empty(), &connection.target) {
                tokens.push(Token::Target(at));
                polled.push(PollFd::new(stream, target));
            }
        }
        let timeout = wake_at.0.map(|at| {
            let left = at.saturating_sub(self.now());
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        poll(&mut polled, timeout.as_ref())?;
        let flags = polled.iter().map(PollFd::revents);
        Ok(tokens.into_iter().zip(flags).filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn accept(&mut self, gate: usize, now: Duration) {
        let Gate { listener, to, target } = &self.gates[gate];
        match listener.accept() {
            Ok((client, source)) => {
                let elsewhere = self.wires.pipes.places() - 1;
                let from = sockets::place_of(source, elsewhere).unwrap_or(elsewhere);
                let (there, back) = (self.wires.pipes[(from, *to)].delay(), self.wires.pipes[(*to, from)].delay());
                if let Err(error) = client.set_nonblocking(true).and_then(|()| client.set_nodelay(true)) {
                    tracing::debug!(%error, "a connection between nodes is broken");
                    return;
                }
                self.connections.push(Connection {
                    pair: (from, *to),
                    address: *target,
                    client,
                    target: Target::Later(now + there),
                    there: (Flow::new(now + there + back), false),
                    back: (Flow::new(now), false),
                    reset_at: None,
                });
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // No descriptors are left, or the client is gone.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection between nodes");
                self.accepts_at = now + ACCEPT_PAUSE;
            }
        }
    }
}

/// The earliest time at which something is due.
struct Wake(Option<Duration>);

impl Wake {
    fn at(&mut self, time: Duration) {
        self.0 = Some(self.0.map_or(time, |earlier| earlier.min(time)));
    }
}

impl Connection {
    fn back_pair(&self) -> (usize, usize) {
        (self.pair.1, self.pair.0)
    }

    /// Whether nothing is left to do.
    fn is_done(&self, now: Duration) -> bool {
        self.reset_at.is_some_and(|at| at <= now) || (self.there.0.is_done() && self.back.0.is_done())
    }

    /// Dials when it is time to, and writes what has arrived.
    fn advance(&mut self, wires: &Wires, now: Duration) {
        if self.reset_at.is_some() {
            return;
        }
        let done = self.dial(now).and_then(|()| {
            if let Target::Open(target) = &self.target {
                deliver(&mut self.there, target, now)?;
            }
            deliver(&mut self.back, &self.client, now)
        });
        self.reset_on_error(done, wires, now);
    }

    fn dial(&mut self, now: Duration) -> io::Result<()> {
        if let Target::Later(at) = self.target
            && at <= now
        {
            self.target = Target::Dialling(sockets::begin_to_connect(self.address)?);
        }
        Ok(())
    }

    fn client_ready(&mut self, wires: &mut Wires, flags: PollFlags, now: Duration) {
        if flags.intersects(PollFlags::OUT) {
            self.back.1 = false;
        }
        if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            let done = wires.take_in(self.pair, &mut self.there.0, &self.client, now);
            self.reset_on_error(done, wires, now);
        }
    }

    fn target_ready(&mut self, wires: &mut Wires, flags: PollFlags, now: Duration) {
        let back = self.back_pair();
        match std::mem::replace(&mut self.target, Target::Later(now)) {
            Target::Dialling(stream) => {
                let done = match stream.take_error() {
                    Ok(None) => Ok(()),
                    Ok(Some(error)) | Err(error) => Err(error),
                };
                self.target = Target::Open(stream);
                self.reset_on_error(done, wires, now);
            }
            Target::Open(stream) => {
                if flags.intersects(PollFlags::OUT) {
                    self.there.1 = false;
                }
                if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    let done = wires.take_in(back, &mut self.back.0, &stream, now);
                    self.reset_on_error(done, wires, now);
                }
                self.target = Target::Open(stream);
            }
            // Never polled.
            later @ Target::Later(_) => self.target = later,
        }
    }

    /// After an error of either side the connection ends, once the other side could know.
    fn reset_on_error(&mut self, done: io::Result<()>, wires: &Wires, now: Duration) {
        if let Err(error) = done
            && self.reset_at.is_none()
        {
            tracing::debug!(%error, "a connection between nodes is reset");
            self.reset_at = Some(now + wires.pipes[self.back_pair()].delay());
        }
    }

    /// The events of its client and of its target that it waits for. Adds the times.
    fn wants(&self, wires: &Wires, now: Duration, wake: &mut Wake) -> (PollFlags, PollFlags) {
        let (mut client, mut target) = (PollFlags::empty(), PollFlags::empty());
        if let Some(at) = self.reset_at {
            wake.at(at);
            return (client, target);
        }
        client.set(PollFlags::IN, takes(&self.there.0, &wires.pipes[self.pair], now, wake));
        client.set(PollFlags::OUT, self.back.1);
        match &self.target {
            Target::Later(at) => wake.at(*at),
            Target::Dialling(_) => target = PollFlags::OUT,
            Target::Open(_) => {
                target.set(PollFlags::IN, takes(&self.back.0, &wires.pipes[self.back_pair()], now, wake));
                target.set(PollFlags::OUT, self.there.1);
                self.there.0.arrives_at().filter(|_| !self.there.1).into_iter().for_each(|at| wake.at(at));
            }
        }
        self.back.0.arrives_at().filter(|_| !self.back.1).into_iter().for_each(|at| wake.at(at));
        (client, target)
    }
}

/// Whether a flow takes bytes now. If only time is missing, adds that time.
fn takes(flow: &Flow, pipe: &Pipe, now: Duration, wake: &mut Wake) -> bool {
    let accepts_at = flow.accepts_at(pipe);
    let has_room = flow.room() > 0;
    if has_room && accepts_at > now {
        wake.at(accepts_at);
    }
    has_room && accepts_at <= now
}

/// Writes what has arrived, until the receiver takes no more.
fn deliver((flow, is_blocked): &mut (Flow, bool), mut to: &TcpStream, now: Duration) -> io::Result<()> {
    while !*is_blocked {
        let written = match flow.arrived(now) {
            None => break,
            Some(Delivery::Bytes(bytes)) => to.write(bytes),
            Some(Delivery::End) => to.shutdown(Shutdown::Write).map(|()| 0),
        };
        match written {
            Ok(count) => flow.delivered(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => *is_blocked = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
