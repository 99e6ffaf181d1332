//! Measures the distance as nodes experience it: an echo through the same listening thread, sockets and pipes.
//!
//! A probe asks an echo server for a number of bytes. One byte measures a round trip, many measure the bandwidth of the
//! way back. What the same probe takes without the proxies is subtracted.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::sockets;
use crate::config::Bandwidth;

/// Round trips of each pair; the median counts.
const ROUND_TRIPS: usize = 9;
/// What is sent to measure a bandwidth takes about this long.
const TRANSFER: Duration = Duration::from_millis(100);
/// A probe that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(10);
const BUFFER: usize = 64 << 10;

#[expect(clippy::disallowed_methods, reason = "the edge where the distance is measured")]
pub(super) fn clock() -> Instant {
    Instant::now()
}

/// An echo server: answers each number, 4 bytes in big-endian order, with so many bytes. It ends when it is dropped.
pub(super) struct Echo {
    address: SocketAddr,
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Echo {
    /// Starts the server at any port of loopback.
    pub(super) fn start() -> io::Result<Echo> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let accept = move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // A broken connection fails its probe.
                let _ = stream.and_then(|stream| {
                    thread::Builder::new().name("demo-echo".to_string()).spawn(move || answer(stream))
                });
            }
        };
        let thread = thread::Builder::new().name("demo-echo".to_string()).spawn(accept)?;
        Ok(Echo { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

/// Answers until the connection ends.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let bytes = vec![0; BUFFER];
    let mut number = [0; 4];
    loop {
        stream.read_exact(&mut number)?;
        let mut left = u32::from_be_bytes(number) as usize;
        while left > 0 {
            let now = left.min(BUFFER);
            stream.write_all(&bytes[..now])?;
            left -= now;
        }
    }
}

/// Connects to an echo server, or to a proxy of it.
fn connect(from: Option<Ipv4Addr>, to: SocketAddr) -> io::Result<TcpStream> {
    let stream = sockets::connect(from, to)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// The median round trip from one address to an echo server.
pub(super) fn round_trip(from: Option<Ipv4Addr>, to: SocketAddr) -> io::Result<Duration> {
    let mut stream = connect(from, to)?;
    let mut probe = || {
        let begun = clock();
        stream.write_all(&1_u32.to_be_bytes())?;
        stream.read_exact(&mut [0])?;
        Ok(clock().duration_since(begun))
    };
    // The first one also opens the connection.
    probe()?;
    let mut times = (0..ROUND_TRIPS).map(|_| probe()).collect::<io::Result<Vec<Duration>>>()?;
    times.sort();
    Ok(times[ROUND_TRIPS / 2])
}

/// The bandwidth in bits per second from an echo server, which is about `expected`.
pub(super) fn bandwidth(from: Option<Ipv4Addr>, to: SocketAddr, expected: Bandwidth) -> io::Result<f64> {
    let mut stream = connect(from, to)?;
    let bytes = (expected.bits() as f64 / 8.0 * TRANSFER.as_secs_f64()) as u32;
    stream.write_all(&bytes.to_be_bytes())?;
    let mut buffer = vec![0; BUFFER];
    // From the arrival of the first bytes on.
    let first = stream.read(&mut buffer)?;
    let begun = clock();
    let rest = (bytes as usize).saturating_sub(first);
    let mut left = rest;
    while left > 0 {
        match stream.read(&mut buffer[..left.min(BUFFER)])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read,
        }
    }
    let took = clock().duration_since(begun);
    Ok(rest as f64 * 8.0 / took.as_secs_f64())
}
