//! Artificial distance between the nodes of a demo: a proxy for each ordered pair of nodes, with a delay and a
//! bandwidth.
//!
//! How the traffic gets there: the address that a node advertises is not its own, it is its proxies'. So every
//! connection of another node passes them, whatever it is for: Raft streams, requests, calls of the node service. Each
//! node opens its connections from a loopback address of its own (`cortado start --connect-from`), by which the proxies
//! know the pair. A connection from any other address is delayed like one from the farthest node. SQL clients dial the
//! nodes themselves.
//!
//! # Layers
//!
//! 1. `pairs`, `pipe`, `sockets`: values by pair of places, the model of a distance, sockets with a local address
//! 2. `measure`, `relay`: what the distance is, the thread that relays

mod measure;
pub(super) mod pairs;
mod pipe;
mod relay;
mod sockets;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

use self::measure::Echo;
use self::pairs::Pairs;
use self::pipe::Pipe;
use self::relay::{Gate, Relay};
use crate::config::Bandwidth;

/// The label of connections that no node has opened.
const ELSEWHERE: &str = "elsewhere";

/// What to simulate.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The names of the nodes' places.
    pub(super) names: Vec<String>,
    /// The round trip between two places; the same in both directions, zero within a place.
    pub(super) round_trips: Pairs<Duration>,
    /// The bandwidth from each place to each other one.
    pub(super) bandwidth: Option<Bandwidth>,
}

/// By how much longer a round trip between two places takes with the proxies than without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Added {
    pub(super) pair: (usize, usize),
    pub(super) time: Duration,
}

/// What the proxies were measured to do.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Each pair of places once.
    pub(super) added: Vec<Added>,
    /// Bits per second between the first two places, there and back, if the bandwidth is limited.
    pub(super) bandwidth: Option<[f64; 2]>,
}

/// The running proxies. They end when it is dropped.
pub(super) struct Distance {
    measured: Measured,
    _relay: Relay,
}

/// The local address of the connections that the node at `place` (from 0) opens.
pub(super) fn connect_from(place: usize) -> IpAddr {
    sockets::address_of(place).into()
}

impl Plan {
    /// The pipes between the places, and with elsewhere, the last place: as far away as the farthest.
    fn pipes(&self) -> Pairs<Pipe> {
        let places = self.names.len();
        let farthest = |place: usize| (0..places).map(|other| self.round_trips[(place, other)]).max();
        Pairs::new(places + 1, |from, to| {
            let round_trip = match (from < places, to < places) {
                (true, true) => self.round_trips[(from, to)],
                (true, false) => farthest(from).unwrap_or_default(),
                (false, true) => farthest(to).unwrap_or_default(),
                (false, false) => Duration::ZERO,
            };
            Pipe::new(round_trip / 2, self.bandwidth.filter(|_| from != to))
        })
    }
}

impl Distance {
    /// Starts the proxies and measures them. `nodes`: by place, the listening socket at the address that the node
    /// advertises, and the address at which it listens itself. Blocks for about ten round trips. The counters of bytes
    /// are added to `registry`.
    pub(super) fn start(
        plan: &Plan,
        nodes: Vec<(TcpListener, SocketAddr)>,
        registry: &Registry,
    ) -> io::Result<Distance> {
        let labels = |place: usize| plan.names.get(place).map_or(ELSEWHERE, String::as_str);
        let help = "Bytes that nodes have sent through the proxies of the demo, by pair of regions.";
        let sent = IntCounterVec::new(Opts::new("cortado_demo_sent_bytes_total", help), &["from", "to"]);
        let sent = sent.map_err(io::Error::other)?;
        registry.register(Box::new(sent.clone())).map_err(io::Error::other)?;
        let places = nodes.len();
        let sent = Pairs::new(places + 1, |from, to| sent.with_label_values(&[labels(from), labels(to)]));

        let echo = Echo::start()?;
        let gate = |(to, (listener, target))| Gate { listener, to, target };
        let mut gates: Vec<Gate> = nodes.into_iter().enumerate().map(gate).collect();
        let mut probed = Vec::new();
        for to in 0..places {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            probed.push(listener.local_addr()?);
            gates.push(Gate { listener, to, target: echo.address() });
        }
        let relay = Relay::start(gates, plan.pipes(), sent.clone())?;
        let measured = measure(plan, &probed, echo.address())?;
        // Only what nodes send counts.
        sent.iter().for_each(IntCounter::reset);
        Ok(Distance { measured, _relay: relay })
    }

    /// What the proxies were measured to do, at their start.
    pub(super) fn measured(&self) -> &Measured {
        &self.measured
    }
}

/// Measures all pairs at once, then the bandwidth of one. `probed` are the proxies of the echo server, by place.
fn measure(plan: &Plan, probed: &[SocketAddr], echo: SocketAddr) -> io::Result<Measured> {
    let without = measure::round_trip(None, echo)?;
    let pairs: Vec<(usize, usize)> = (0..probed.len()).flat_map(|a| (0..a).map(move |b| (b, a))).collect();
    let added = thread::scope(|scope| {
        let probe = |(a, b): (usize, usize)| {
            let to = probed[b];
            (scope.spawn(move || measure::round_trip(Some(sockets::address_of(a)), to)), (a, b))
        };
        let probes: Vec<_> = pairs.into_iter().map(probe).collect();
        let finished = probes.into_iter().map(|(probe, pair)| {
            let took = probe.join().map_err(|_| io::Error::other("a probe panicked"))??;
            Ok(Added { pair, time: took.saturating_sub(without) })
        });
        finished.collect::<io::Result<Vec<_>>>()
    })?;
    let bandwidth = plan.bandwidth.map(|expected| {
        // The bytes come back from the place that is asked.
        let back = measure::bandwidth(Some(sockets::address_of(0)), probed[1], expected)?;
        let there = measure::bandwidth(Some(sockets::address_of(1)), probed[0], expected)?;
        io::Result::Ok([there, back])
    });
    Ok(Measured { added, bandwidth: bandwidth.transpose()? })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;

    use super::measure::clock;
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    /// Three places: nothing listens at the first two, a node at the third. Returns the addresses of their proxies.
    fn start(registry: &Registry, bandwidth: &str) -> (Distance, [SocketAddr; 3], TcpListener) {
        let bound = || TcpListener::bind("127.0.0.1:0").unwrap();
        let address = |listener: &TcpListener| listener.local_addr().unwrap();
        let (node, nothing) = (bound(), address(&bound()));
        let nodes = vec![(bound(), nothing), (bound(), nothing), (bound(), address(&node))];
        let proxies = [0, 1, 2].map(|place| address(&nodes[place].0));
        let plan = Plan {
            names: ["a", "b", "c"].map(str::to_string).to_vec(),
            round_trips: Pairs::new(3, |a, b| if a == b { Duration::ZERO } else { ROUND_TRIP }),
            bandwidth: bandwidth.parse().ok(),
        };
        (Distance::start(&plan, nodes, registry).unwrap(), proxies, node)
    }

    /// Lower bounds only: a machine under load makes everything later, nothing earlier.
    #[test]
    fn proxies_delay_and_limit() {
        let registry = Registry::new();
        let (distance, proxies, node) = start(&registry, "80Mbit");
        let measured = distance.measured();
        // What a probe takes without proxies is subtracted, which is far less than a millisecond on an idle machine.
        assert!(measured.added.len() == 3 && measured.added.iter().all(|a| a.time > ROUND_TRIP / 2), "{measured:?}");
        assert!(measured.bandwidth.unwrap().iter().all(|bits| *bits < 90e6), "{measured:?}");

        let dial = |place: usize| sockets::connect(Some(sockets::address_of(0)), proxies[place]).unwrap();
        let begun = clock();
        let mut sender = dial(2);
        sender.write_all(b"all of it").unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
        let (mut receiver, _) = node.accept().unwrap();
        let mut received = String::new();
        receiver.read_to_string(&mut received).unwrap();
        assert_eq!(received, "all of it");
        assert!(clock().duration_since(begun) >= ROUND_TRIP + ROUND_TRIP / 2, "a handshake and one way");
        receiver.write_all(b"answer").unwrap();
        drop(receiver);
        received.clear();
        sender.read_to_string(&mut received).unwrap();
        assert_eq!(received, "answer");
        assert!(clock().duration_since(begun) >= 2 * ROUND_TRIP, "and one way back");

        // A connection to a node that is not there ends.
        assert_eq!(dial(1).read(&mut [0]).unwrap_or(0), 0);
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        assert!(page.contains(r#"cortado_demo_sent_bytes_total{from="elsewhere",to="a"} 0"#), "{page}");
        drop(distance);
        assert!(sockets::connect(None, proxies[2]).is_err(), "the proxies have ended");
    }

    /// A receiver that does not read stops its sender: the bytes under way are bounded.
    #[test]
    fn a_full_receiver_stops_its_sender() {
        let (_distance, proxies, node) = start(&Registry::new(), "unlimited");
        let mut sender = sockets::connect(Some(sockets::address_of(0)), proxies[2]).unwrap();
        let (mut receiver, _) = node.accept().unwrap();
        let sending = thread::spawn(move || {
            let block = vec![1; 1 << 20];
            // More than the window and all buffers of sockets hold.
            (0..48).try_for_each(|_| sender.write_all(&block)).map(|()| sender)
        });
        // The sender waits for the first byte to be read, so this cannot be too early.
        let mut buffer = vec![0; 1 << 20];
        let mut left: usize = 48 << 20;
        while left > 0 {
            let read = receiver.read(&mut buffer).unwrap();
            assert!(read > 0 && buffer[..read].iter().all(|byte| *byte == 1));
            left -= read;
        }
        drop(sending.join().unwrap().unwrap());
        assert_eq!(receiver.read(&mut buffer).unwrap(), 0);
    }

    #[test]
    fn connections_from_elsewhere_come_from_afar() {
        let round_trips = Pairs::new(3, |a, b| Duration::from_millis(if a == b { 0 } else { 10 * (a + b) as u64 }));
        let names = ["a", "b", "c"].map(str::to_string).to_vec();
        let pipes = Plan { names, round_trips, bandwidth: None }.pipes();
        let delay = |pair| pipes[pair].delay().as_millis();
        assert_eq!([delay((0, 1)), delay((1, 2)), delay((1, 1))], [5, 15, 0]);
        assert_eq!([delay((3, 0)), delay((3, 1)), delay((2, 3))], [10, 15, 15]);
    }
}
